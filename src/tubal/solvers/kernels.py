"""The elementwise half of a step, in two passes over a block.

The second pass is one of two: `update` for any relaxation, and `follow` for none, which also
changes the penalty and measures a residual.

The matrix products of an iteration are left to BLAS; what remains are some twenty elementwise
operations. Compiled by Numba (the extra `fast`) they are two passes over memory, four times faster
than NumPy's one pass an operation; without it they run slice by slice, so that temporaries stay in
the cache. Complex arrays are passed as real ones with twice as many columns: every factor is real.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

SMALL = 200_000
"""Blocks with fewer numbers are not worth loading a compiler for."""

CHUNK_BYTES = 2**19


def noise_numpy(
    x: np.ndarray,
    scale: np.ndarray,
    A: np.ndarray,
    y: np.ndarray,
    rho: np.ndarray,
    w: np.ndarray,
    g: np.ndarray,
) -> np.ndarray:
    """Write `g = scale x - rho (A - y) + y`; return sums of `w g^2` over slices and rows."""
    sums = np.zeros(x.shape[-1], x.dtype)
    for k in chunks(g):
        part = g[k]
        np.subtract(A[k], y[k], out=part)
        part *= rho[k]
        np.subtract(scale[k] * x[k], part, out=part)
        part += y[k]
        sums += w[k].reshape(-1) @ (part * part).reshape(-1, x.shape[-1])
    return sums


def update_numpy(
    g: np.ndarray,
    f: np.ndarray,
    D: np.ndarray,
    A: np.ndarray,
    y: np.ndarray,
    rho: np.ndarray,
    tau: np.ndarray,
    a: float,
) -> None:
    """Finish a step: `d = tau (D - A + f g), c = a (f g - y) - rho d, A += d + c, y += c`."""
    for k in chunks(g):
        change = g[k]
        change *= f
        step = D[k] - A[k]
        step += change
        step *= tau[k]
        change -= y[k]
        change *= a
        A[k] += step
        step *= rho[k]
        change -= step
        A[k] += change
        y[k] += change


def follow_numpy(
    g: np.ndarray,
    f: np.ndarray,
    D: np.ndarray,
    A: np.ndarray,
    y: np.ndarray,
    rho: np.ndarray,
    tau: np.ndarray,
    q: float,
    omega: np.ndarray,
) -> float:
    """Finish a step with `a = 1`, scale y by q; return the sum of `omega (D - J)^2`.

    `d = tau (D - A + f g), J = A - y + d, y = q (f g - rho d), A = J + y`.
    """
    total = 0.0
    for k in chunks(g):
        new = g[k]
        new *= f
        step = D[k] - A[k]
        step += new
        step *= tau[k]
        A[k] -= y[k]
        A[k] += step
        np.multiply(step, rho[k], out=y[k])
        np.subtract(new, y[k], out=y[k])
        y[k] *= q
        np.subtract(D[k], A[k], out=step)
        step *= step
        total += float(omega[k] @ step.sum(axis=(1, 2)))
        A[k] += y[k]
    return total


def chunks(A: np.ndarray) -> list[slice]:
    """Cut the slices of a block into groups that fit the cache of a core."""
    size = max(1, CHUNK_BYTES // max(1, A[0].nbytes))
    return [slice(k, k + size) for k in range(0, len(A), size)]


@cache
def _compiled() -> tuple[Callable[..., Any], ...] | None:
    if find_spec("numba") is None:
        return None
    from numba import njit

    # Sums may be taken in any order, but NaN and infinity keep their meaning.
    compile_ = njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})

    def noise(x, scale, A, y, rho, w, g, sums):  # type: ignore[no-untyped-def]
        K, r, b = g.shape
        for k in range(K):
            for i in range(r):
                scale_i, rho_i, w_i = scale[k, i, 0], rho[k, i, 0], w[k, i]
                for j in range(b):
                    old = y[k, i, j]
                    value = scale_i * x[k, i, j] - rho_i * (A[k, i, j] - old) + old
                    g[k, i, j] = value
                    sums[j] += w_i * value * value

    def update(g, f, D, A, y, rho, tau, a):  # type: ignore[no-untyped-def]
        K, r, b = g.shape
        for k in range(K):
            for i in range(r):
                rho_i, tau_i = rho[k, i, 0], tau[k, i, 0]
                for j in range(b):
                    new, old = f[j] * g[k, i, j], y[k, i, j]
                    d = tau_i * (D[k, i, j] - A[k, i, j] + new)
                    change = a * (new - old) - rho_i * d
                    y[k, i, j] = old + change
                    A[k, i, j] += d + change

    def follow(g, f, D, A, y, rho, tau, q, omega):  # type: ignore[no-untyped-def]
        K, r, b = g.shape
        total = 0.0
        for k in range(K):
            part = 0.0
            for i in range(r):
                rho_i, tau_i = rho[k, i, 0], tau[k, i, 0]
                for j in range(b):
                    new, old, z = f[j] * g[k, i, j], A[k, i, j], D[k, i, j]
                    d = tau_i * (z - old + new)
                    J = old - y[k, i, j] + d
                    scaled = q * (new - rho_i * d)
                    y[k, i, j] = scaled
                    A[k, i, j] = J + scaled
                    part += (z - J) * (z - J)
            total += omega[k] * part
        return total

    return compile_(noise), compile_(update), compile_(follow)


def passes(size: int) -> tuple[Callable[..., Any], ...]:
    """Return the passes `noise`, `update` and `follow` for problems of this many numbers."""
    compiled = _compiled() if size >= SMALL else None
    if compiled is None:
        return noise_numpy, update_numpy, follow_numpy
    noise, update, follow = compiled

    def noise_pass(x, scale, A, y, rho, w, g):  # type: ignore[no-untyped-def]
        sums = np.zeros(x.shape[-1], x.dtype)
        noise(x, scale, A, y, rho, w, g, sums)
        return sums

    def update_pass(g, f, D, A, y, rho, tau, a):  # type: ignore[no-untyped-def]
        update(g, f, D, A, y, rho, tau, g.dtype.type(a))

    def follow_pass(g, f, D, A, y, rho, tau, q, omega):  # type: ignore[no-untyped-def]
        return follow(g, f, D, A, y, rho, tau, g.dtype.type(q), omega)

    return noise_pass, update_pass, follow_pass
