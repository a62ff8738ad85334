"""How close `tprod` and skinny `tsvd` come to the calls that they cannot avoid.

Real 100 x 500 x 100 data under the DFT, one thread and two. All times of one line are taken in
turn in one run, and only their ratios are of interest:

floor     the bare library calls into the layout the operation needs: half-spectrum FFTs of the
          operands, one GEMM (or LAPACK SVD) a kept slice, inverse FFT of the result
kernel    the GEMM (or SVD) calls of the floor alone
loop      full complex spectrum, a Python loop over all n3 slices

Run: python benchmarks/algebra.py [--repeat N]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.fft
from threadpoolctl import threadpool_limits

from tubal.algebra import tprod, tsvd

N1, N2, N3 = 100, 500, 100


def spectrum(A: np.ndarray, workers: int) -> np.ndarray:
    return scipy.fft.rfft(np.moveaxis(A, -1, 0), axis=0, workers=workers)


def original(hat: np.ndarray, workers: int) -> np.ndarray:
    return scipy.fft.irfft(np.moveaxis(hat, 0, -1), n=N3, workers=workers)


def over_slices(function: Callable, arrays: list[np.ndarray], threads: int) -> list:
    """Bare calls on all slices: split between threads when there are several."""
    if threads == 1:
        return [function(*arrays)]
    half = len(arrays[0]) // 2
    parts = [[a[:half] for a in arrays], [a[half:] for a in arrays]]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda p: function(*p), parts))


def svd(A: np.ndarray) -> tuple:
    return np.linalg.svd(A, full_matrices=False)


def tprod_cases(A: np.ndarray, B: np.ndarray, threads: int) -> dict[str, Callable]:
    A_hat, B_hat = spectrum(A, threads), spectrum(B, threads)
    C_hat = A_hat @ B_hat

    def kernel() -> list:
        return over_slices(np.matmul, [A_hat, B_hat], threads)

    def floor() -> None:
        spectrum(A, threads), spectrum(B, threads)
        kernel()
        original(C_hat, threads)

    def loop() -> np.ndarray:
        A_full = scipy.fft.fft(A, workers=threads)
        B_full = scipy.fft.fft(B, workers=threads)
        C = np.empty((A.shape[0], B.shape[1], N3), dtype=complex)
        for k in range(N3):
            C[:, :, k] = A_full[:, :, k] @ B_full[:, :, k]
        return scipy.fft.ifft(C, workers=threads).real

    return {"tubal": lambda: tprod(A, B), "floor": floor, "kernel": kernel, "loop": loop}


def tsvd_cases(A: np.ndarray, threads: int) -> dict[str, Callable]:
    A_hat = spectrum(A, threads)
    U, s, Vh = svd(A_hat)
    S = np.zeros((len(s), N1, N1), dtype=complex)

    def kernel() -> list:
        return over_slices(svd, [A_hat], threads)

    def floor() -> None:
        spectrum(A, threads)
        kernel()
        original(U, threads), original(S, threads), original(Vh, threads)

    def loop() -> tuple:
        A_full = scipy.fft.fft(A, workers=threads)
        U = np.empty((N1, N1, N3), dtype=complex)
        S = np.zeros((N1, N1, N3), dtype=complex)
        V = np.empty((N2, N1, N3), dtype=complex)
        for k in range(N3):
            U[:, :, k], s, Vh = svd(A_full[:, :, k])
            S[:, :, k] = np.diag(s)
            V[:, :, k] = Vh.conj().T
        return tuple(scipy.fft.ifft(F, workers=threads).real for F in (U, S, V))

    return {"tubal": lambda: tsvd(A), "floor": floor, "kernel": kernel, "loop": loop}


def best_times(cases: dict[str, Callable], repeat: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeat):
        for name, function in cases.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7, help="runs of each case; the best counts")
    repeat = parser.parse_args().repeat
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N1, N2, N3))
    products = {
        "tprod 100x500 * 500x500": rng.standard_normal((N2, N2, N3)),
        "tprod 100x500 * 500x100": rng.standard_normal((N2, N1, N3)),
    }
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            cases = {name: tprod_cases(A, B, threads) for name, B in products.items()}
            cases["tsvd skinny 100x500"] = tsvd_cases(A, threads)
            for name, functions in cases.items():
                t = best_times(functions, repeat)
                row = {
                    "operation": name,
                    "threads": threads,
                    "seconds": round(t["tubal"], 4),
                    "tubal/floor": round(t["tubal"] / t["floor"], 2),
                    "tubal/kernel": round(t["tubal"] / t["kernel"], 2),
                    "loop/tubal": round(t["loop"] / t["tubal"], 2),
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
