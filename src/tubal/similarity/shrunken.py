"""Similarities from coefficients that are shrunken by several amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq

from tubal._threads import effective_jobs, serial_blas, spans, threaded
from tubal.algebra import slice_adjoint, slice_gram
from tubal.problem import suggested_rank, theta_of_rank
from tubal.reduction import slices
from tubal.representation import TILE, Rows, Ties, Whole, stacked, turned
from tubal.similarity.views import View
from tubal.transforms import Transform

STRENGTHS = (0.125, 0.25, 1.0)
"""Effective ranks at which coefficients are read, as shares of the one that they have."""

FEWEST = 2.0
"""Directions of all slices together that are left at least: with one, all samples are alike."""

MOST_FEATURES = 100
"""Slices with more products of coordinates than this are multiplied one by one."""

MOST_BYTES = 2**24
"""Where the products of a slice of the fit could be larger, no products are kept."""

SMALL = -20
"""Samples whose entries have no higher exponent than this are brought to the size of others."""


@dataclass(frozen=True, eq=False)
class Shrunken(Ties):
    """Similarity by the modulus of coefficients, averaged over several strengths of shrinkage.

    In every slice coefficients have the modulus `C = V f(S) V^H`, with V orthonormal. Between two
    samples it is a tube, and their similarity is its norm, scaled to 1 for a sample with itself:
    `||C_ij|| / sqrt(||C_ii|| ||C_jj||)`. With noise `||X - X * Z||_F^2 / (2 theta)` the program has
    the solution `f = (1 - theta / S^2)_+`; raising theta by a factor t turns every value f into
    `(1 - t (1 - f))_+`. So one tensor of coefficients gives those of all stronger shrinkages, and
    similarities at a few effective ranks are averaged. Single precision is enough for it.

    Attributes
    ----------
    transform : Transform
    back : array of shape (K, q, r)
        Takes slices of samples, or their coefficients, to rows of `V^H`.
    roots : arrays of shape (K, q)
        `f^(1/2)`, one for each strength, the strongest shrinkage first.
    columns, rows : tuples of Coded
        The samples of the fit and those in question, at each strength.
    """

    transform: Transform
    back: np.ndarray
    roots: tuple[np.ndarray, ...]
    columns: tuple[Coded, ...]
    rows: tuple[Coded, ...]

    @classmethod
    def of_coefficients(
        cls, transform: Transform, Z: np.ndarray, strengths: Sequence[float] = STRENGTHS
    ) -> Self:
        """Build it from the slices (K, r, n) of a solution whose dictionary are the samples."""
        with serial_blas():
            s, Q, left = _singular(Z)
        values = np.minimum(s / max(1.0, float(s.max(initial=0))), 1 - 1e-7)
        used = max(1, int((s > 0).sum(axis=1).max(initial=0)))
        back = _back(s[:, :used], Q[:, :, :used], left).astype(_single(Z.dtype))
        values, weights = values[:, :used], transform.weights
        least = FEWEST / max(float(weights @ values.sum(axis=1)), FEWEST)
        roots = [_stronger(values, weights, max(share, least)) for share in strengths]
        return cls._build(transform, back, back @ Z.astype(back.dtype), roots)

    @classmethod
    def _build(
        cls, transform: Transform, back: np.ndarray, V: np.ndarray, values: Sequence[np.ndarray]
    ) -> Self:
        roots = tuple(np.sqrt(value).astype("f4") for value in values)
        most = MOST_FEATURES if 4 * MOST_FEATURES * V.shape[2] <= MOST_BYTES else 0
        columns = _coded(V, roots, transform, most)
        return cls(transform, back, roots, columns, columns)

    def extended(self, new: np.ndarray) -> Self:
        """Return the similarities of new samples with slices or coefficients (K, r, m)."""
        V = _rows(self.back, new.astype(_single(new.dtype)))
        most = self.columns[0].most  # new samples are split into slices as those of the fit are
        return replace(self, rows=_coded(V, self.roots, self.transform, most))

    @property
    def weakest(self) -> Self:
        """The similarities at the weakest shrinkage alone."""
        last = slice(len(self.roots) - 1, None)
        return replace(
            self, roots=self.roots[last], columns=self.columns[last], rows=self.rows[last]
        )

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

    def whole(self, n_jobs: int | None = None) -> Whole:
        """Return the similarities of the samples of the fit as a table, each pair computed once."""
        n = self.shape[1]
        table = np.empty((n, n), np.float32)
        own = replace(self, rows=self.columns)

        def fill(rows: slice) -> None:
            table[rows, rows.start :] = own.tile(rows, slice(rows.start, None))
            table[rows.stop :, rows] = table[rows, rows.stop :].T
            corner = table[rows, rows]  # a product of a matrix with itself, but to rounding
            table[rows, rows] = np.maximum(corner, corner.T)

        threaded(fill, spans(n, -(-n // TILE)), effective_jobs(n_jobs))
        return Whole(table)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The slices of samples by their singular values and vectors: what closed forms are made of.

    Attributes
    ----------
    transform : Transform
    s : array of shape (K, r)
        Singular values, falling.
    V : array of shape (K, r, n)
        Rows of `V^H`.
    rank : float
        The effective rank that the singular values suggest.
    """

    transform: Transform
    s: np.ndarray
    V: np.ndarray
    rank: float

    @classmethod
    def of(cls, values: np.ndarray, sizes: np.ndarray, view: View) -> Spectrum:
        """Decompose complete samples `(n, n1, *sizes)`, which were divided by `sizes`."""
        arranged = _in_range(view.arrange(values, sizes))
        transform = view.plan(arranged)
        X = slices(transform, arranged)
        with serial_blas():
            s, Q, left = _singular(X)
        used = max(1, int((s > 0).sum(axis=1).max(initial=0)))
        back = _back(s[:, :used], Q[:, :, :used], left).astype(X.dtype)
        rank = suggested_rank(s, transform.weights)
        return cls(transform, s[:, :used], _rows(back, _levelled(X)), rank)

    @property
    def largest_rank(self) -> float:
        """Number of directions, averaged over slices."""
        weights = self.transform.weights
        return float(weights @ (self.s > 0).sum(axis=1) / weights.sum())

    def similarity(self, rank: float, strengths: Sequence[float] = STRENGTHS) -> Shrunken:
        """Return the similarities of the closed form with this effective rank."""
        d, weights = self.s**2, self.transform.weights
        safe, least = np.maximum(d, 1e-300), FEWEST / max(rank * float(weights.sum()), FEWEST)
        values = [
            np.clip(1 - theta_of_rank(d, weights, rank * max(share, least)) / safe, 0, None)
            for share in strengths
        ]
        nowhere = np.zeros((*self.s.shape, 0), self.V.dtype)
        return Shrunken._build(self.transform, nowhere, self.V, values)

    def at_random(self, rng: np.random.Generator) -> Spectrum:
        """Return the null model: the same singular values, directions of samples drawn at random.

        Slices of the DFT that are real for real samples stay so.
        """
        K, r, n = self.V.shape
        V = np.zeros_like(self.V)
        real = set(self.transform.real_slices.tolist())
        for k in range(K):
            A = rng.standard_normal((n, min(r, n)), np.float32)
            if np.iscomplexobj(V) and k not in real:
                A = A + 1j * rng.standard_normal(A.shape, np.float32)
            V[k, : A.shape[1]] = np.linalg.qr(A)[0].T
        return replace(self, V=V)


@dataclass(frozen=True, eq=False)
class Coded:
    """Samples at one strength: `f^(1/2) V^H` of each slice, scaled to similarity 1 with itself.

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


def _stronger(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """Shrink values from 0 to 1 further until this share of their weighted sum is left."""
    there = values > 0
    target = share * float(weights @ values.sum(axis=1))

    def shrunken(log_factor: float) -> np.ndarray:
        return np.where(there, np.clip(1 - np.exp(log_factor) * (1 - values), 0, None), 0)

    if share >= 1 or target <= 0:
        return values
    most = -float(np.log1p(-values.max())) + 1e-9
    return shrunken(brentq(lambda x: weights @ shrunken(x).sum(axis=1) - target, 0, most))


def _single(dtype: Any) -> Any:
    return np.result_type(np.complex64 if np.issubdtype(dtype, np.complexfloating) else np.float32)


def _in_range(values: np.ndarray) -> np.ndarray:
    """Return values in single precision, over the power of two that brings the largest to 1.

    Squares of very large or small numbers would leave the range of the type; a power of two
    changes no digit.
    """
    high, low = float(values.max(initial=0)), float(values.min(initial=0))
    _, exponent = np.frexp(max(high, -low))
    if exponent == 0:
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


def _singular(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
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
    """Return `S^-1 U^H` (K, r, n1) for some of what `_singular` found."""
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
    """Return samples with rows V of the right singular vectors at every strength."""
    quarter = (transform.weights / transform.scale).astype("f4") ** 0.25

    def at_strength(root: np.ndarray) -> Coded:
        parts = [
            (q * r[r > 0])[:, None] * v[r > 0] for v, r, q in zip(V, root, quarter, strict=True)
        ]
        energy = [np.sum(part.real**2 + part.imag**2, axis=0) for part in parts]
        own = np.sqrt(np.sqrt(np.sum(np.square(energy), axis=0)))
        scale = np.where(own > 0, 1 / np.where(own > 0, own, 1), 0).astype("f4")
        return Coded([part * scale for part in parts], V.shape[2], most)

    return tuple(at_strength(root) for root in roots)


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
