"""Transforms of short tubes, as products with a matrix.

Pictures have tubes of some tens of entries. For many of them at once a matrix product beats the
fast transforms: that of the DCT up to 64 entries, that of the DFT up to 28, or up to 64 where the
length has a prime factor above 7 (`benchmarks/transforms.py`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.fft

LONGEST = 64
"""Longer tubes are left to the fast transforms."""
LONGEST_SMOOTH = 28
"""So are those of the DFT that are longer than this and have small prime factors only."""
FAST_FACTOR = 7
"""Largest prime factor that counts as small."""
ENOUGH = 1000
"""Fewer tubes than this are left to the fast transforms too: they cost nothing."""


def suits_cosine(A: np.ndarray, n: int, axis: int) -> bool:
    """Whether the DCT of the tubes of `A`, of length `n`, shall be a product."""
    return 1 < n <= LONGEST and A.dtype.char in "fd" and _many(A, axis)


def suits_fourier(A: np.ndarray, n: int, axis: int) -> bool:
    """Whether the DFT shall be one."""
    return A.dtype.char in "fd" and _suits_waves(A, n, axis)


def suits_half_spectrum(A: np.ndarray, n: int, axis: int) -> bool:
    """Whether the inverse DFT shall be one, for the half spectrum `A` of tubes of length `n`."""
    return A.dtype.char in "FD" and _suits_waves(A, n, axis)


def cosine(A: np.ndarray, axis: int, inverse: bool = False) -> np.ndarray:
    """Return the orthonormal DCT-II of real tubes along `axis` (0 or -1), or undo it."""
    C = _cosines(A.shape[axis], A.dtype.name)
    return _product(C.T if inverse else C, A, axis)


def rfft(A: np.ndarray, axis: int) -> np.ndarray:
    """Return the half spectrum of real tubes along `axis` (0 or -1)."""
    n = A.shape[axis]
    k, kind = n // 2 + 1, np.result_type(A.dtype, np.complex64)
    M = _waves(n, A.dtype.name)
    if axis == -1:  # real and imaginary parts side by side, as complex numbers have them
        return _product(_woven(M), A, -1).view(kind)
    parts = _product(M, A, 0)
    out = np.empty((k, *parts.shape[1:]), kind)
    out.real, out.imag = parts[:k], parts[k:]
    return out


def irfft(A: np.ndarray, n: int, axis: int) -> np.ndarray:
    """Return the real tubes of length `n` with this half spectrum along `axis` (0 or -1)."""
    k, kind = n // 2 + 1, A.real.dtype
    M = _waves(n, kind.name)
    twice = np.where((np.arange(2 * k) % k == 0) | (2 * (np.arange(2 * k) % k) == n), 1.0, 2.0)
    M = (M * (twice / n)[:, None].astype(kind)).T
    if axis == -1:
        return _product(_woven(M.T).T, np.ascontiguousarray(A).view(kind), -1)
    parts = np.empty((2 * k, *A.shape[1:]), kind)
    parts[:k], parts[k:] = A.real, A.imag
    return _product(M, parts, 0)


def _product(M: np.ndarray, A: np.ndarray, axis: int) -> np.ndarray:
    """Multiply the tubes of `A` by `M`."""
    if axis == -1:
        return (A.reshape(-1, A.shape[-1]) @ M.T).reshape(*A.shape[:-1], len(M))
    return (M @ A.reshape(len(A), -1)).reshape(len(M), *A.shape[1:])


def _woven(M: np.ndarray) -> np.ndarray:
    """Return the rows of the first and of the second half in turn."""
    return M.reshape(2, -1, M.shape[1]).swapaxes(0, 1).reshape(M.shape)


@cache
def _cosines(n: int, dtype: str) -> np.ndarray:
    return scipy.fft.dct(np.eye(n), norm="ortho", axis=0).astype(dtype)


@cache
def _waves(n: int, dtype: str) -> np.ndarray:
    """Return the real parts of the rows of the half DFT, then their imaginary parts."""
    turns = np.outer(np.arange(n // 2 + 1), np.arange(n)) % n
    sines = np.where(2 * turns % n == 0, 0.0, np.sin(2 * np.pi / n * turns))  # zeros are exact
    return np.concatenate([np.cos(2 * np.pi / n * turns), -sines]).astype(dtype)


@cache
def _largest_factor(n: int) -> int:
    factor = 2
    while factor * factor <= n:
        if n % factor:
            factor += 1
        else:
            n //= factor
    return n


def _suits_waves(A: np.ndarray, n: int, axis: int) -> bool:
    longest = LONGEST if _largest_factor(n) > FAST_FACTOR else LONGEST_SMOOTH
    return 1 < n <= longest and _many(A, axis)


def _many(A: np.ndarray, axis: int) -> bool:
    return bool(A.size >= ENOUGH * A.shape[axis])
