"""Samples as combinations of each other, at several effective ranks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tubal._threads import serial_blas
from tubal.algebra import slice_adjoint, slice_gram
from tubal.problem import suggested_rank, theta_of_rank
from tubal.reduction import slices
from tubal.representation import Rows, stacked, turned
from tubal.scales.comparison import Comparison
from tubal.transforms import Transform

if TYPE_CHECKING:
    from tubal.scales.views import View

FACTORS = (0.35, 0.7, 2.8)
"""Effective ranks, as multiples of the suggested one."""

MOST_FEATURES = 100
"""Slices with more products of coordinates than this are multiplied one by one."""

MOST_BYTES = 2**24
"""Where the products of a slice of the fit could be larger, no products are kept."""

SMALL = -20
"""Samples whose entries have no higher exponent than this are brought to the size of others."""


@dataclass(frozen=True, eq=False)
class ScaleKernel(Comparison):
    """Mean over several ranks of the similarities of the closed-form representation.

    With noise `||X - X * Z||_F^2 / (2 theta)` the program has the solution
    `Z = V (1 - theta / S^2)_+ V^H`, slice by slice; theta sets how many directions are left on the
    average, the effective rank. Each rank gives the similarities of `TubeKernel`; their mean is
    that of the samples. Single precision is enough for it.

    Attributes
    ----------
    view : View
    transform : Transform
    rank : float
        The suggested effective rank.
    back : array of shape (K, r, n1)
        `S^-1 U^H`, which turns slices of samples to rows of V^H.
    roots : arrays of shape (K, r)
        `(1 - theta / S^2)_+^(1/2)`, one for each rank.
    columns, rows : tuples of Coded
        The samples of the fit and those in question, at each rank.
    """

    view: View
    transform: Transform
    rank: float
    back: np.ndarray
    roots: tuple[np.ndarray, ...]
    columns: tuple[Coded, ...]
    rows: tuple[Coded, ...]

    @classmethod
    def of(cls, values: np.ndarray, view: View, factors: Sequence[float] = FACTORS) -> ScaleKernel:
        """Build it for complete samples `(n, n1, *sizes)`."""
        arranged = view.arrange(in_range(values))
        transform = view.plan(arranged)
        X = slices(transform, arranged)
        with serial_blas():
            s, Q, left = _spectrum(X)
        weights = transform.weights
        rank = suggested_rank(s, weights)
        d = s**2
        thetas = [theta_of_rank(d, weights, rank * factor) for factor in factors]
        used = max(1, int((d > min(thetas)).sum(axis=1).max(initial=0)))
        d, back = np.maximum(d[:, :used], 1e-300), _back(s[:, :used], Q[:, :, :used], left)
        back = back.astype(X.dtype)
        roots = tuple(np.sqrt(np.clip(1 - theta / d, 0, None)).astype("f4") for theta in thetas)
        most = MOST_FEATURES if 4 * MOST_FEATURES * len(values) <= MOST_BYTES else 0
        columns = _coded(_rows(back, _levelled(X)), roots, transform, most)
        return cls(view, transform, rank, back, roots, columns, columns)

    def extended(self, new: np.ndarray, sizes: np.ndarray | None = None) -> ScaleKernel:
        """Return the similarities of new complete samples `(m, n1, *sizes)` of any norm."""
        arranged = self.view.arrange(in_range(new, tuple(range(1, new.ndim))))
        V = _rows(self.back, slices(self.transform, arranged))
        most = self.columns[0].most  # new samples are split into slices as those of the fit are
        return replace(self, rows=_coded(V, self.roots, self.transform, most))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return self.rows[0].count, self.columns[0].count

    def tile(self, rows: Rows, columns: Rows = slice(None)) -> np.ndarray:
        """Return similarities, a row a sample in question, in single precision."""
        mean: Any = 0.0
        for own, other in zip(self.rows, self.columns, strict=True):
            part = own.squares(rows, other, columns)
            mean += np.sqrt(part, out=part)
        mean /= len(self.columns)
        return np.minimum(mean, 1, out=mean)


@dataclass(frozen=True, eq=False)
class Coded:
    """Samples at one rank: `b_k = roots V^H` of each slice, scaled to similarity 1 with itself.

    The square of a similarity is `sum_k omega_k |b_k^H c_k|^2`. For slices with few coordinates
    that is an inner product of their products, which one matrix product gives for all slices.

    Attributes
    ----------
    slices : list of arrays of shape (r_k, m)
        Times `omega_k^(1/4)`.
    count : int
        Number of samples.
    most : int
        Slices with at most so many products of coordinates are multiplied by these.
    """

    slices: list[np.ndarray]
    count: int
    most: int

    def squares(self, rows: Rows, other: Coded, columns: Rows = slice(None)) -> np.ndarray:
        """Return the squared similarities of some of these samples with some others."""
        total = self.products[:, rows].T @ other.products[:, columns]
        for mine, theirs in zip(self.single, other.turned, strict=True):
            left = stacked(mine[:, rows]).T
            for right in theirs:
                part = left @ right[:, columns]
                part *= part
                total += part
        return np.maximum(total, 0, out=total)

    @cached_property
    def single(self) -> list[np.ndarray]:
        """The slices with many coordinates."""
        return [part for part in self.slices if _n_products(part) > self.most]

    @cached_property
    def turned(self) -> list[list[np.ndarray]]:
        """The same as `tubal.representation.turned` gives them."""
        return [turned(part) for part in self.single]

    @cached_property
    def products(self) -> np.ndarray:
        """Products of coordinates of all other slices, one below the other."""
        parts = [_products(part) for part in self.slices if 0 < _n_products(part) <= self.most]
        return np.concatenate([np.zeros((0, self.count), "f4"), *parts])


def in_range(values: np.ndarray, axis: tuple[int, ...] | None = None) -> np.ndarray:
    """Return values in single precision, over the power of two that brings the largest to 1.

    Squares of very large or small numbers would leave the range of the type; a power of two
    changes no digit.
    """
    high, low = (f(values, axis=axis, keepdims=True, initial=0) for f in (np.max, np.min))
    _, exponent = np.frexp(np.maximum(high, -low))
    if not exponent.any():
        return values.astype(np.float32, copy=False)
    return np.ldexp(values, -exponent).astype(np.float32)


def _levelled(X: np.ndarray) -> np.ndarray:
    """Return slices (K, n1, n) with samples that are small beside others brought to their size.

    A sample has the similarities of its multiples, but fourth powers of very small numbers would
    leave the range of single precision. Powers of two change no digit.
    """
    parts = [np.abs(part).max(axis=(0, 1), initial=0) for part in (X.real, X.imag)]
    _, exponent = np.frexp(np.maximum(*parts))
    if exponent.min(initial=0) > SMALL:
        return X
    return X * np.ldexp(np.float32(1), np.minimum(-exponent, 126))


def _spectrum(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return singular values (K, r) of slices, falling, and vectors of the smaller Gram matrix.

    In double precision. The third is None for left singular vectors; for right ones it is the
    slices, adjoint.
    """
    wide = X.astype(np.result_type(X.dtype, np.float64))
    tall = X.shape[1] > X.shape[2]
    left = slice_adjoint(wide) if tall else wide
    squares, Q = np.linalg.eigh(slice_gram(left))
    squares, Q = squares[:, ::-1], Q[:, :, ::-1]
    level = (max(X.shape) * np.finfo(np.float32).eps) ** 2 * squares.max(initial=0)
    return np.sqrt(np.where(squares > level, squares, 0)), Q, left if tall else None


def _back(s: np.ndarray, Q: np.ndarray, left: np.ndarray | None) -> np.ndarray:
    """Return `S^-1 U^H` (K, r, n1) for some of what `_spectrum` found."""
    power = 1 if left is None else 2
    inverse = np.where(s > 0, 1 / np.where(s > 0, s, 1) ** power, 0)[..., None]
    return inverse * (Q.conj().mT if left is None else Q.conj().mT @ left)


def _rows(back: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return rows of V^H; what a sample has of a direction by rounding alone is zero."""
    V = back @ X
    size = np.sqrt(np.sum(X.real**2 + X.imag**2, axis=(0, 1)))
    least = 32 * np.finfo(np.float32).eps * np.linalg.norm(back, axis=2)[..., None] * size
    return np.where(np.abs(V) > least, V, 0)


def _coded(
    V: np.ndarray, roots: tuple[np.ndarray, ...], transform: Transform, most: int
) -> tuple[Coded, ...]:
    """Return samples with rows V of the right singular vectors at every rank."""
    quarter = (transform.weights / transform.scale).astype("f4") ** 0.25

    def at_rank(root: np.ndarray) -> Coded:
        parts = [
            (q * r[r > 0])[:, None] * v[r > 0] for v, r, q in zip(V, root, quarter, strict=True)
        ]
        energy = [np.sum(part.real**2 + part.imag**2, axis=0) for part in parts]
        own = np.sqrt(np.sqrt(np.sum(np.square(energy), axis=0)))
        scale = np.where(own > 0, 1 / np.where(own > 0, own, 1), 0).astype("f4")
        return Coded([part * scale for part in parts], V.shape[2], most)

    return tuple(at_rank(root) for root in roots)


def _n_products(part: np.ndarray) -> int:
    r = len(part)
    return r * r if np.iscomplexobj(part) else r * (r + 1) // 2


def _products(b: np.ndarray) -> np.ndarray:
    """Return products of coordinates f with `<f(b), f(c)> = |b^H c|^2` for every column."""
    i, j = _pairs(len(b))
    mixed = b[i] * b[j].conj() * np.float32(2**0.5)
    parts = [(b * b.conj()).real, mixed.real]
    return np.concatenate([*parts, mixed.imag] if np.iscomplexobj(b) else parts)


@cache
def _pairs(r: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of r coordinates; asked for thousands of slices, of few sizes."""
    i, j = np.triu_indices(r, 1)
    return i, j
