"""How the program is solved: blocks, engines that run them, and two drivers."""

from tubal.solvers.certified import Certified
from tubal.solvers.engines import Dask, Engine, Inline, Threads, use_engine
from tubal.solvers.entry import check_options, check_scale, path, solve
from tubal.solvers.extension import Extended, Extension
from tubal.solvers.published import Published
from tubal.solvers.solution import Certificate, Check, Factored, Solution, StopReason
from tubal.solvers.watching import Snapshot, Watcher, watch, watching

__all__ = [
    "Certificate",
    "Certified",
    "Check",
    "Dask",
    "Engine",
    "Extended",
    "Extension",
    "Factored",
    "Inline",
    "Published",
    "Snapshot",
    "Solution",
    "StopReason",
    "Threads",
    "Watcher",
    "check_options",
    "check_scale",
    "path",
    "solve",
    "use_engine",
    "watch",
    "watching",
]
