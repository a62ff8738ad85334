"""The elementwise half of a step, in a few passes over a block.

`noise` comes first where the noise lives in coordinates. Then one of two: `update` for any
relaxation, and `follow` for none, which also changes the penalty and measures a residual. Where the
noise lives in the original domain, `settle` does the same there.

The matrix products of an iteration are left to BLAS; what remains are some twenty elementwise
operations. Compiled by Numba (the extra `fast`) they are few passes over memory, four times faster
than NumPy's one pass an operation; without it they run slice by slice, so that temporaries stay in
the cache. Complex arrays are passed as real ones with twice as many columns: every factor is real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    keep: bool,
) -> None:
    """Finish a step: `d = tau (D - A + f g), c = a (f g - y) - rho d, A += d + c, y += c`.

    With `keep`, g becomes d.
    """
    for k in chunks(g):
        new, step = _step(g[k], f, D[k], A[k], tau[k])
        change = new - y[k]
        change *= a
        A[k] += step
        if keep:
            g[k] = step
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
    keep: bool,
) -> float:
    """Finish a step with `a = 1`, scale y by q; return the sum of `omega (D - J)^2`.

    `d = tau (D - A + f g), J = A - y + d, y = q (f g - rho d), A = J + y`; with `keep`, g becomes
    d.
    """
    total = 0.0
    for k in chunks(g):
        new, step = _step(g[k], f, D[k], A[k], tau[k])
        A[k] -= y[k]
        A[k] += step
        np.multiply(step, rho[k], out=y[k])
        np.subtract(new, y[k], out=y[k])
        y[k] *= q
        if keep:
            g[k] = step
        np.subtract(D[k], A[k], out=step)
        step *= step
        total += float(omega[k] @ step.sum(axis=(1, 2)))
        A[k] += y[k]
    return total


def _step(
    g: np.ndarray, f: np.ndarray, D: np.ndarray, A: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Overwrite g by `f g`; return it and the step `tau (D - A + f g)`."""
    g *= f
    step = D - A
    step += g
    step *= tau
    return g, step


def settle_numpy(
    new: np.ndarray, Y: np.ndarray, moved: np.ndarray, G: np.ndarray, a: float, q: float
) -> None:
    """Follow a step in the original domain: `c = a (new - Y) - moved, Y += c, G += c - moved`.

    `G - Y` is multiplied by q afterwards. All arrays are of one axis.
    """
    size = CHUNK_BYTES // Y.itemsize
    for start in range(0, len(Y), size):
        k = slice(start, start + size)
        change = new[k] - Y[k]
        change *= a
        change -= moved[k]
        Y[k] += change
        change -= moved[k]
        G[k] += change
        if q != 1:
            G[k] -= Y[k]
            G[k] *= q
            G[k] += Y[k]


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
                    g[k, i, j] = scale_i * x[k, i, j] - rho_i * (A[k, i, j] - old) + old
                for j in range(b):  # by itself: with one array less to tell apart it is faster
                    sums[j] += w_i * g[k, i, j] * g[k, i, j]

    def update(g, f, D, A, y, rho, tau, a, keep):  # type: ignore[no-untyped-def]
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
                    if keep:
                        g[k, i, j] = d

    def follow(g, f, D, A, y, rho, tau, q, omega, keep):  # type: ignore[no-untyped-def]
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
                    if keep:
                        g[k, i, j] = d
            total += omega[k] * part
        return total

    def settle(new, Y, moved, G, a, q):  # type: ignore[no-untyped-def]
        for i in range(len(Y)):
            old = Y[i]
            change = a * (new[i] - old) - moved[i]
            Y[i] = old + change
            G[i] = q * (G[i] - moved[i] - old) + (old + change)

    return compile_(noise), compile_(update), compile_(follow), compile_(settle)


@dataclass(frozen=True)
class Passes:
    """The passes for problems of one size."""

    noise: Callable[..., np.ndarray] = noise_numpy
    update: Callable[..., None] = update_numpy
    follow: Callable[..., float] = follow_numpy
    settle: Callable[..., None] = settle_numpy


def passes(size: int) -> Passes:
    """Return the passes for problems of this many numbers."""
    compiled = _compiled() if size >= SMALL else None
    if compiled is None:
        return Passes()
    noise, update, follow, settle = compiled

    def noise_pass(x, scale, A, y, rho, w, g):  # type: ignore[no-untyped-def]
        sums = np.zeros(x.shape[-1], x.dtype)
        noise(x, scale, A, y, rho, w, g, sums)
        return sums

    def update_pass(g, f, D, A, y, rho, tau, a, keep):  # type: ignore[no-untyped-def]
        update(g, f, D, A, y, rho, tau, g.dtype.type(a), keep)

    def follow_pass(g, f, D, A, y, rho, tau, q, omega, keep):  # type: ignore[no-untyped-def]
        return follow(g, f, D, A, y, rho, tau, g.dtype.type(q), omega, keep)

    def settle_pass(new, Y, moved, G, a, q):  # type: ignore[no-untyped-def]
        settle(new, Y, moved, G, Y.dtype.type(a), Y.dtype.type(q))

    return Passes(noise_pass, update_pass, follow_pass, settle_pass)
