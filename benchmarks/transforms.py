"""Where products with a matrix beat the fast transforms of short tubes.

Blocks of two megabytes, tubes along the first axis, as the solver has them; one thread. A line a
length: how many times faster the product is than pocketfft, for the half DFT, its inverse and the
DCT. Numbers above one say that `tubal.transforms.short` should take it; the last column says what
it does.

Run: python benchmarks/transforms.py [--lengths N ...] [--repeat N]
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


def seconds(function: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", metavar="N")
    parser.add_argument("--repeat", type=int, default=20, metavar="N")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{'length':>6} {'rfft':>6} {'irfft':>6} {'DCT':>6}  as a product")
    for n in options.lengths or (8, 11, 12, 16, 22, 23, 28, 32, 33, 46, 50, 64, 66, 92, 100, 128):
        A = rng.standard_normal((n, NUMBERS // n))
        F = scipy.fft.rfft(A, axis=0)
        pairs: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (lambda A=A: scipy.fft.rfft(A, axis=0), lambda A=A: short.rfft(A, 0)),
            (
                lambda F=F, n=n: scipy.fft.irfft(F, n=n, axis=0),
                lambda F=F, n=n: short.irfft(F, n, 0),
            ),
            (
                lambda A=A: scipy.fft.dct(A, axis=0, norm="ortho"),
                lambda A=A: short.cosine(A, 0),
            ),
        ]
        with threadpool_limits(1, user_api="blas"):
            ratios = [
                seconds(fast, options.repeat) / seconds(product, options.repeat)
                for fast, product in pairs
            ]
        kinds = {"DFT": short.suits_fourier, "DCT": short.suits_cosine}
        taken = [name for name, suits in kinds.items() if suits(A, n, 0)]
        print(f"{n:6d} " + " ".join(f"{r:6.2f}" for r in ratios) + "  " + " ".join(taken))


if __name__ == "__main__":
    main()
