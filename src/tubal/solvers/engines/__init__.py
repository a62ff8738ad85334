"""Who runs the steps on the blocks: threads of this machine, or one array library.

An engine is three methods, so that a cluster can follow: `place` puts the blocks where they live,
`each` calls one method of every block and returns the results in the order of the blocks, and
`over` spreads work of the driver itself.
"""

from tubal.solvers.engines.base import Engine, Inline
from tubal.solvers.engines.threads import Threads

__all__ = ["Engine", "Inline", "Threads"]
