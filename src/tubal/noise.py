"""Noise: what the part of the data that the dictionary does not explain may look like.

A noise `g` is a sum over samples, so one block of samples is enough to evaluate it. Arrays have the
samples along their last axis. For each norm three things stand side by side: its value, the
projection onto the ball of its dual norm, and the dual norm. The proximal step follows from the
projection by Moreau's identity,

    prox_{t g}(V) = V - P(V),    P = projection onto { Y : g°(Y) <= t }.

Reference: N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in Optimization 1
(2014).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tubal.input import Array, check_choice, namespace

__all__ = [
    "L1",
    "L21",
    "Exact",
    "Noise",
    "resolve",
    "sample_norms",
]


class Noise(ABC):
    """A sum over samples of a norm of what is not explained."""

    name: str

    @abstractmethod
    def value(self, E: Array) -> float:
        """Return g(E)."""

    @abstractmethod
    def project(self, G: Array, radius: float) -> Array:
        """Return the projection of `G` onto the ball of the dual norm of this radius."""

    @abstractmethod
    def dual_norm(self, Y: Array) -> float:
        """Return g°(Y)."""

    def prox(self, V: Array, t: float) -> Array:
        """Return `argmin_E t g(E) + ||E - V||^2 / 2`."""
        return V - self.project(V, t)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class L1(Noise):
    """Entries: `g(E) = sum |E_ijk|`, prox = soft thresholding, dual norm = largest entry.

    >>> L1().prox(np.array([3.0, -0.5, -2.0]), 1.0)
    array([ 2.,  0., -1.])
    """

    name = "l1"

    def value(self, E: Array) -> float:
        """Return the sum of the moduli."""
        xp = namespace(E)
        return float(xp.sum(xp.abs(E)))

    def project(self, G: Array, radius: float) -> Array:
        """Clip every entry to modulus `radius`."""
        xp = namespace(G)
        if not xp.isdtype(G.dtype, "complex floating"):
            return xp.clip(G, -radius, radius)
        size = xp.abs(G)
        large = size > radius
        return G * xp.where(large, radius / xp.where(large, size, xp.ones_like(size)), 1.0)

    def dual_norm(self, Y: Array) -> float:
        """Return the largest modulus."""
        xp = namespace(Y)
        return float(xp.max(xp.abs(Y)))


class Exact(Noise):
    """No noise: `g(E)` is 0 for E = 0 and infinite elsewhere; the dual norm is 0.

    >>> Exact().prox(np.array([3.0, -0.5]), 1.0)
    array([0., 0.])
    """

    name = "exact"

    def value(self, E: Array) -> float:
        """Return 0 for E = 0, else infinity."""
        return float(np.inf) if bool(namespace(E).any(E != 0)) else 0.0

    def project(self, G: Array, radius: float) -> Array:
        """Return `G`: every multiplier is allowed."""
        return G

    def dual_norm(self, Y: Array) -> float:
        """Return 0."""
        return 0.0


class L21(Noise):
    """Whole samples: `g(E) = sum_j ||E_j||_2`, prox = shrinking each sample towards zero.

    Two generalisations let the same code work in the coordinates of `tubal.reduction`, where
    samples are stacks of slices that count with weights: `||E_j||^2 = sum weights |E_j|^2 +
    offset_j^2`. The offset is the norm of a part of sample j that no coefficients can change; the
    multiplier of this function is then not a projection but `P(G) = G - prox(G)` all the same
    (`project` with `offset` in the units of G).

    >>> L21().prox(np.array([[3.0, 0.3], [4.0, 0.4]]), 1.0)
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """

    name = "l21"

    def value(self, E: Array, weights: Array | None = None, offset: Array | None = None) -> float:
        """Return the sum of the norms of the samples."""
        norms = sample_norms(E, weights)
        xp = namespace(norms)
        return float(xp.sum(norms if offset is None else xp.sqrt(norms**2 + offset**2)))

    def project(
        self,
        G: Array,
        radius: float,
        weights: Array | None = None,
        offset: Array | None = None,
    ) -> Array:
        """Scale every sample of a norm above `radius` down to it."""
        return G * self.factor(sample_norms(G, weights), radius, offset)

    def factor(self, norms: Array, radius: float, offset: Array | None = None) -> Array:
        """Return what `project` multiplies a sample of each norm with."""
        xp = namespace(norms)
        safe = xp.where(norms > 0, norms, xp.ones_like(norms))
        if offset is None:
            return xp.where(norms > radius, radius / safe, xp.ones_like(norms))
        # The shrunk norm t solves t + radius t / sqrt(t^2 + offset^2) = norm.
        return xp.where(norms > 0, 1 - _shrunk(norms, radius, offset) / safe, xp.ones_like(norms))

    def dual_norm(self, Y: Array, weights: Array | None = None) -> float:
        """Return the largest norm of a sample."""
        norms = sample_norms(Y, weights)
        return float(namespace(norms).max(norms))


CHUNK = 2**16
"""So many numbers are squared at a time: few enough for the caches of a core."""


def sample_norms(E: Array, weights: Array | None = None) -> Array:
    """Return `sqrt(sum weights |E|^2)` over all axes but the last.

    >>> sample_norms(np.array([[3.0, 0.0], [4.0, 2.0]]))
    array([5., 2.])
    """
    xp = namespace(E)
    if isinstance(E, np.ndarray):
        return np.sqrt(_sum_squares(E, weights))
    squares = (
        xp.real(E) ** 2 + xp.imag(E) ** 2 if xp.isdtype(E.dtype, "complex floating") else E * E
    )
    if weights is not None:
        squares = squares * weights[..., None]
    return xp.sqrt(xp.sum(xp.reshape(squares, (-1, E.shape[-1])), axis=0))


def _sum_squares(E: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Weighted sums of squared moduli over all axes but the last, some rows at a time."""
    n = E.shape[-1]
    rows = np.ascontiguousarray(E).reshape(-1, n)
    pairs = 2 if np.iscomplexobj(E) else 1
    rows = rows.view(rows.real.dtype)  # complex columns become pairs of real ones
    factors = np.ones(len(rows), rows.dtype) if weights is None else weights.reshape(-1)
    sums = np.zeros(pairs * n, rows.dtype)
    size = max(1, CHUNK // max(1, pairs * n))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        sums += factors[start : start + size] @ (part * part)
    return sums.reshape(n, pairs).sum(axis=1)


def _shrunk(norms: Array, radius: float, offset: Array) -> Array:
    """Solve `t + radius t / sqrt(t^2 + offset^2) = norm` for t >= 0, by Newton's method.

    The left side is increasing and concave, so from the left the iterates rise to the root.
    """
    xp = namespace(norms)
    smooth = offset > 0
    c = xp.where(smooth, offset, xp.ones_like(offset))
    t = xp.maximum(norms - radius, norms * c / (c + radius))
    for _ in range(50):
        h = xp.sqrt(t * t + c * c)
        step = (norms - t - radius * t / h) / (1 + radius * c**2 / h**3)
        t = xp.maximum(t + step, xp.zeros_like(t))
        if bool(xp.all(xp.abs(step) <= 4 * xp.finfo(norms.dtype).eps * t)):
            break
    return xp.where(smooth, t, xp.maximum(norms - radius, xp.zeros_like(norms)))


NAMES: dict[str, Noise] = {noise.name: noise() for noise in (L21, L1, Exact)}


def resolve(noise: Any) -> Noise:
    """Turn a name or an object into a Noise; the only place that reads these names.

    >>> resolve("l1")
    L1()
    """
    return check_choice("noise", noise, NAMES, Noise)
