"""What a Dask cluster costs against threads, as ratios in one run on one machine.

A certified solve of synthetic samples (n1 = 30, n3 = 32, 10 subspaces) with one thread, with two,
and on two workers of one thread each, for growing numbers of samples; all to the same number of
iterations. On one machine a cluster cannot win: what shows is the price of a round, and that it
does not grow with the samples.

Run: python benchmarks/engines.py
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from tubal import Dask, Lambda, datasets
from tubal.solvers import Certified, Engine, Threads
from tubal.solvers.entry import solve

ITERATIONS = 40
SAMPLES = (500, 2000, 8000)


def seconds_an_iteration(X: Any, engine: Engine) -> float:
    """Time the iterations alone: from the first certificate to the last one."""
    seen: list[tuple[int, float]] = []

    def look(check: Any) -> bool:
        seen.append((check.n_iter, time.perf_counter()))
        return check.n_iter >= ITERATIONS

    solver = Certified(single_first=False)  # going over to double would be timed too
    for _ in range(2):  # the first time compiles
        seen.clear()
        solve(X, lam=Lambda.relative(0.5), solver=solver, engine=engine, tol=1e-11, callback=look)
    (first, begin), (last, end) = seen[0], seen[-1]
    return (end - begin) / (last - first)


def main() -> None:
    """Print a table."""
    with closing(Dask(n_workers=2)) as workers:
        engines = {"1 thread": Threads(1), "2 threads": Threads(2), "2 workers": workers}
        print("samples  " + "".join(f"{name:>22}" for name in engines))
        for n in SAMPLES:
            data = datasets.make_tensor_subspaces(30, 32, 10, 2, n // 10, random_state=0)
            times = {name: seconds_an_iteration(data.X, e) for name, e in engines.items()}
            base = times["2 threads"]
            cells = [f"{1e3 * t:8.1f} ms ({t / base:5.2f} x)" for t in times.values()]
            print(f"{n:7d}  " + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
