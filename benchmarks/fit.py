"""What a default fit costs: over spectral clustering of a kNN graph, and stage by stage.

    [TUBAL_DATA=...] python benchmarks/fit.py [SET ...]

Sets are those of `quality_sets.py`. The goal is a ratio of at most 10. Times are those of the
process with one thread, the better of two: on a busy machine the clock on the wall measures others.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from quality_sets import SETS, DataSet
from quality_tools import SPECTRAL, TOOLS
from threadpoolctl import threadpool_limits

from tubal import ORTLRR
from tubal.estimators import clusterer, lowrank
from tubal.outliers import Consensus

GOAL = 10.0
DEFAULT = ("ORL+100", "COIL20+100", "COIL20+200", "Umist", "USPS SR=0.5", "digits", "FRDUE")
STAGES: dict[str, tuple[Any, str]] = {
    "solve": (lowrank, "solve"),
    "detect": (Consensus, "detect"),
    "choose": (lowrank, "select"),
    "graph and cut": (clusterer.SubspaceClusterer, "_label"),
}


def seconds(work: Callable[[], Any]) -> float:
    start = process_time()
    work()
    return process_time() - start


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Count the seconds of each stage."""
    spent = dict.fromkeys(STAGES, 0.0)

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            start = process_time()
            try:
                return function(*args, **options)
            finally:
                spent[name] += process_time() - start

        return run

    with ExitStack() as stack:
        for name, (owner, attribute) in STAGES.items():
            wrapped = counting(name, getattr(owner, attribute))
            stack.enter_context(patch.object(owner, attribute, wrapped))
        yield spent


def measure(data: DataSet) -> tuple[float, float, dict[str, float]]:
    """Return the seconds of a fit, of the other tool, and of the stages of the fit."""
    drawn = data.draw(0)
    count = len(np.unique(drawn.labels[drawn.labels >= 0]))
    theirs = min(seconds(lambda: TOOLS[SPECTRAL].run(drawn.X, count, False, 0)) for _ in range(2))
    best, stages = np.inf, {}
    for _ in range(2):
        with timed() as spent:
            ours = seconds(lambda: ORTLRR(count, random_state=0, n_jobs=1).fit(drawn.X))
        if ours < best:
            best, stages = ours, spent
    return best, theirs, stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of: {'; '.join(SETS)}")
    names = parser.parse_args().sets or DEFAULT
    for name in names:
        if name not in SETS:
            parser.error(f"sets are {'; '.join(SETS)}; got {name}")
        if SETS[name].missing():
            print(f"{name}: left out, needs {', '.join(SETS[name].missing())}", file=sys.stderr)
            continue
        ours, theirs, stages = measure(SETS[name])
        word = "holds" if ours <= GOAL * theirs else "FAILS"
        parts = ", ".join(f"{stage} {spent:.2f}" for stage, spent in stages.items())
        line = f"{name:12} {ours:6.2f} s, {SPECTRAL} {theirs:5.2f} s: {ours / theirs:5.1f} ({word})"
        print(f"{line}   {parts}", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Graph is not fully connected")
    with threadpool_limits(1):
        main()
