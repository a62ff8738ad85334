"""What the solver costs, as ratios in one run.

Problems: the paper's synthetic one (60 x 300 x 100, 20 % outliers, DFT, alpha = 4) and, when
TUBAL_DATA names the folder of the data sets, ORL + 100 outlier pictures (unit-norm samples,
effective rank 2).

iteration / floor   time of one certified iteration over that of its bare calls: Gram matrices by
                    matmul, batched eigh, one product with the samples, all samples at once
two / one           time of an iteration with two threads over one thread, and the same ratio for
the
                    bare calls with half of the slices in each of two threads
certified           iterations and seconds to a duality gap of 1e-5, and at most 1e-4 (the default)
published           iterations and seconds of the authors' schedule, its gap when it stops
naive               seconds of a literal transcription of the paper's Algorithm 1 (tests/naive.py):
                    ten iterations are timed and multiplied by the iterations it needs; --full
                    runs it to its end
memory              peak of what `solve` allocates over the size of the reduced half-spectrum data

Run: python benchmarks/solver.py [--full] [--skip-naive]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from tubal import Lambda, solve
from tubal.datasets import make_tensor_subspaces
from tubal.input import to_paper
from tubal.solvers import Certified, Threads
from tubal.solvers.driver import Driver
from tubal.solvers.entry import prepare
from tubal.solvers.parts import left_over, start_block

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import naive


def synthetic() -> tuple[np.ndarray, Lambda]:
    return make_tensor_subspaces(random_state=0).X, Lambda.paper(4)


def orl() -> tuple[np.ndarray, Lambda] | None:
    folder = os.environ.get("TUBAL_DATA")
    if not folder:
        return None
    with (
        np.load(Path(folder) / "orl.npz") as faces,
        np.load(Path(folder) / "mirflickr.npz") as junk,
    ):
        chosen = np.random.default_rng(0).choice(len(junk["images"]), 100, replace=False)
        X = np.concatenate([faces["images"], junk["images"][chosen]]) / 255.0
    return X / np.linalg.norm(X, axis=(1, 2), keepdims=True), Lambda.effective_rank(2)


def seconds(function: Callable[[], object], repeat: int = 9) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def iteration_times(X: np.ndarray, lam: Lambda) -> dict[str, float]:
    problem = prepare(X, "data", "l21", "dft", None).problem
    value = lam.of(problem)
    A = problem.reduction.x.copy()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        G = A @ A.conj().mT
        calls = [
            lambda k: A[k] @ A[k].conj().mT,
            lambda k: np.linalg.eigh(G[k]),
            lambda k: G[k] @ A[k],
        ]
        half = len(A) // 2
        halves = [slice(0, half), slice(half, len(A))]
        floor = sum(seconds(lambda call=call: call(slice(None))) for call in calls)
        two = sum(seconds(lambda call=call: list(pool.map(call, halves))) for call in calls)
    penalties, theta = Certified()._start(problem, value)
    times = {"floor": floor, "floor, 2 threads": two}
    for threads in (1, 2):
        with Threads(threads) as engine:
            driver = Driver(problem, value, engine)
            start = partial(start_block, penalties, theta, left_over(problem, theta))
            state = {"G": driver.place(start)}

            def iterate(driver: Driver = driver, state: dict = state) -> None:
                spectrum = driver.spectrum(state["G"], 1 / penalties.b1)
                state["G"] = driver.engine.total("step", spectrum.shrink)

            for _ in range(3):
                iterate()
            times[f"iteration, {threads} thread(s)"] = seconds(iterate, 15)
    return times


def peak_memory(X: np.ndarray, lam: Lambda) -> float:
    K, r, n2 = prepare(X, "data", "l21", "dft", None).problem.reduction.shape
    tracemalloc.start()
    solve(X, lam=lam, n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (K * r * n2 * 16)


def naive_seconds(X: np.ndarray, lam: float, n_iter: int, full: bool) -> float:
    A, L = np.ascontiguousarray(to_paper(X)), naive.dft_matrix(X.shape[2])
    with threadpool_limits(1, user_api="blas"):
        start = time.perf_counter()
        if full:
            naive.ortlrr_algorithm1(A, L, lam)
            return time.perf_counter() - start
        naive.ortlrr_algorithm1(A, L, lam, max_iter=1)
        one = time.perf_counter() - start
        start = time.perf_counter()
        naive.ortlrr_algorithm1(A, L, lam, max_iter=11)
        each = (time.perf_counter() - start - one) / 10
    return one + each * (n_iter - 1)


def report(name: str, X: np.ndarray, lam: Lambda, arguments: argparse.Namespace) -> None:
    solve(X, lam=lam, max_iter=100)  # compile and warm up
    times = iteration_times(X, lam)
    one, two = times["iteration, 1 thread(s)"], times["iteration, 2 thread(s)"]
    rows: dict[str, object] = {
        "problem": name,
        "iteration / floor": round(one / times["floor"], 2),
        "two / one": round(two / one, 2),
        "two / one of the floor": round(times["floor, 2 threads"] / times["floor"], 2),
        "memory": round(peak_memory(X, lam), 2),
    }
    runs = {}
    for label, options in {
        "certified 1e-4": {"tol": 1e-4},
        "certified 1e-5": {"tol": 1e-5},
        "published": {"solver": "published"},
    }.items():
        start = time.perf_counter()
        sol = solve(X, lam=lam, n_jobs=1, **options)
        runs[label] = time.perf_counter() - start
        rows[label] = {
            "iterations": sol.n_iter,
            "seconds": round(runs[label], 2),
            "gap": float(f"{sol.certificate.gap:.1e}"),
            "objective": float(f"{sol.certificate.primal:.6g}"),
        }
    rows["published / certified 1e-5"] = round(runs["published"] / runs["certified 1e-5"], 1)
    if not arguments.skip_naive:
        slow = naive_seconds(X, sol.lam, sol.n_iter, arguments.full)
        rows["naive seconds"] = round(slow, 1)
        rows["naive / certified 1e-5"] = round(slow / runs["certified 1e-5"], 1)
    print(json.dumps(rows, indent=1), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="run the naive version to its end")
    parser.add_argument("--skip-naive", action="store_true", help="leave the naive version out")
    arguments = parser.parse_args()
    problems = {"synthetic 60x300x100": synthetic(), "ORL + 100": orl()}
    for name, problem in problems.items():
        if problem is None:
            print(f"{name}: left out, TUBAL_DATA is not set")
        else:
            report(name, *problem, arguments)


if __name__ == "__main__":
    main()
