"""Where products with a matrix beat the fast transforms of short tubes.

Blocks of two megabytes, tubes along the first axis, as the solver has them; one thread. A line a
length: how many times faster the product is than pocketfft, for the half DFT, its inverse and the
DCT (medians, taken in turn). Numbers above one say that `tubal.transforms.short` should take it;
the last column says what it does.

Run: python benchmarks/transforms.py [--lengths N ...] [--repeat N] [--single] [--last]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import scipy.fft
from threadpoolctl import threadpool_limits

from tubal.transforms import short

NUMBERS = 2**18


def ratio(fast: Callable[[], object], product: Callable[[], object], repeat: int) -> float:
    times: list[list[float]] = []
    for _ in range(repeat + 3):
        times.append([])
        for function in (fast, product):
            start = time.perf_counter()
            function()
            times[-1].append(time.perf_counter() - start)
    first, second = np.median(times[3:], axis=0)  # the first ones warm up
    return float(first / second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", metavar="N")
    parser.add_argument("--repeat", type=int, default=20, metavar="N")
    parser.add_argument("--single", action="store_true", help="in single precision")
    parser.add_argument("--last", action="store_true", help="tubes along the last axis")
    options = parser.parse_args()
    axis = -1 if options.last else 0
    rng = np.random.default_rng(0)
    print(f"{'length':>6} {'rfft':>6} {'irfft':>6} {'DCT':>6}  as a product")
    for n in options.lengths or (8, 11, 12, 16, 22, 23, 28, 32, 33, 46, 50, 64, 66, 92, 100, 128):
        A = rng.standard_normal((n, NUMBERS // n)).astype("f4" if options.single else "f8")
        A = np.ascontiguousarray(A.T) if options.last else A
        F = scipy.fft.rfft(A, axis=axis)
        pairs: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (lambda A=A: scipy.fft.rfft(A, axis=axis), lambda A=A: short.rfft(A, axis)),
            (
                lambda F=F, n=n: scipy.fft.irfft(F, n=n, axis=axis),
                lambda F=F, n=n: short.irfft(F, n, axis),
            ),
            (
                lambda A=A: scipy.fft.dct(A, axis=axis, norm="ortho"),
                lambda A=A: short.cosine(A, axis),
            ),
        ]
        with threadpool_limits(1, user_api="blas"):
            ratios = [ratio(fast, product, options.repeat) for fast, product in pairs]
        kinds = {"DFT": short.suits_fourier, "DCT": short.suits_cosine}
        taken = [name for name, suits in kinds.items() if suits(A, n, axis)]
        print(f"{n:6d} " + " ".join(f"{r:6.2f}" for r in ratios) + "  " + " ".join(taken))


if __name__ == "__main__":
    main()
