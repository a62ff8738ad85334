"""Similarity of samples in a view: as combinations at several ranks at once, or by distance.

How many directions of each slice count is the one choice that matters most for a graph, and no
single answer serves a whole data set. So several are asked, and their similarities averaged. What
holds the classes of a table together may also be a place instead of a subspace: then samples are
compared by their distance.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from tubal._threads import effective_jobs, serial_blas, spans, threaded
from tubal.input import check_flag
from tubal.problem import suggested_rank, theta_of_rank
from tubal.reduction import slices
from tubal.representation import TILE, Rows, Ties, Whole, stacked, turned
from tubal.transforms import Transform, resolve

FACTORS = (0.35, 0.7, 2.8)
"""Effective ranks, as multiples of the suggested one."""

MOST_FEATURES = 100
"""Slices with more products of coordinates than this are multiplied one by one."""

MOST_BYTES = 2**24
"""Where the products of a slice of the fit could be larger, no products are kept."""

REACH = 5
"""The distance to so many others is the length that a sample measures distances by."""

BARELY = 1e-12
"""Similarity of points that are far from each other, at most."""

FAR = 1e12
"""Farther than this, over the size of those of the fit, no new point is."""


@dataclass(frozen=True)
class View:
    """An arrangement of the samples and a transform.

    Attributes
    ----------
    transform : Any
        What `tubal.transforms.resolve` understands.
    axis : int or None
        Which axis of a sample takes the place of n1, the others follow in their order; None makes
        vectors of the samples.
    """

    transform: Any
    axis: int | None = 0

    def __post_init__(self) -> None:
        if isinstance(self.transform, str):
            resolve(self.transform)
        if self.axis is not None and (type(self.axis) is not int or self.axis < 0):
            msg = f"axis must be None or an integer from 0 on, got {self.axis!r}"
            raise ValueError(msg)

    def __str__(self) -> str:
        if self.axis is None:
            return "none (samples as vectors)"
        what = self.transform if isinstance(self.transform, str) else repr(self.transform)
        return what if self.axis == 0 else f"{what}, axis {self.axis} first"

    def is_same(self, other: View) -> bool:
        """Whether axis and transform are the same, names by value and all else as one object."""
        if type(self) is not type(other):
            return False
        mine, its = self.transform, other.transform
        named = isinstance(mine, str) and isinstance(its, str)
        return self.axis == other.axis and (mine == its if named else mine is its)

    def arrange(self, values: np.ndarray) -> np.ndarray:
        """Return samples `(n, n1, *sizes)` in this arrangement."""
        if self.axis is None:
            return values.reshape(len(values), -1, 1)
        return np.moveaxis(values, 1 + self.axis, 1)

    def plan(self, arranged: np.ndarray) -> Transform:
        """Return the transform for arranged samples."""
        return resolve(self.transform, arranged.shape[2:], data=arranged, random_state=0)

    def compare(
        self, values: np.ndarray, sizes: np.ndarray, factors: Sequence[float] = FACTORS
    ) -> Comparison:
        """Return the similarities of complete samples `(n, n1, *sizes)`.

        `sizes` is what the samples were divided by; `factors` as for `MultiScale`.
        """
        return ScaleKernel.of(values, self, factors)


@dataclass(frozen=True)
class Distance(View):
    """Samples as points: those are similar that are near, not those that depend on each other.

    Attributes
    ----------
    sized : bool
        Whether samples have the size that they were given with, or unit norm, as in the fit.
    """

    transform: Any = field(default="none", init=False)
    axis: int | None = field(default=None, init=False)
    sized: bool = False

    def __post_init__(self) -> None:
        check_flag("sized", self.sized)

    def __str__(self) -> str:
        return "distance" if self.sized else "distance at unit norm"

    def is_same(self, other: View) -> bool:
        """Whether the other one measures the same distances."""
        return self == other

    def compare(
        self, values: np.ndarray, sizes: np.ndarray, factors: Sequence[float] = FACTORS
    ) -> Comparison:
        """Return the similarities; there are no ranks, so `factors` mean nothing here."""
        return DistanceKernel.of(values, sizes if self.sized else None)


class Comparison(Ties):
    """Similarities of samples in a view; both sides can be read in parts.

    Attributes
    ----------
    rank : float
        Effective rank that the spectrum suggests, NaN where there is none.
    """

    rank: float
    columns: Any
    rows: Any

    @abstractmethod
    def tile(self, rows: Rows, columns: Rows = slice(None)) -> np.ndarray:
        """Return similarities, a row a sample in question, in single precision."""

    @abstractmethod
    def extended(self, new: np.ndarray, sizes: np.ndarray | None = None) -> Self:
        """Return the similarities of new complete samples, which were divided by `sizes`."""

    def whole(self, n_jobs: int | None = None) -> Whole:
        """Return the similarities of the samples of the fit as a table, each pair computed once."""
        n = self.shape[1]
        table = np.empty((n, n), np.float32)

        own: Any = replace(self, rows=self.columns)  # type: ignore[type-var]

        def fill(rows: slice) -> None:
            table[rows, rows.start :] = own.tile(rows, slice(rows.start, None))
            table[rows.stop :, rows] = table[rows, rows.stop :].T
            corner = table[rows, rows]  # a product of a matrix with itself, but to rounding
            table[rows, rows] = np.maximum(corner, corner.T)

        threaded(fill, spans(n, -(-n // TILE)), effective_jobs(n_jobs))
        return Whole(table)


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
        columns = _coded(_rows(back, X), roots, transform, most)
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


@dataclass(frozen=True, eq=False)
class DistanceKernel(Comparison):
    """Similarity `exp(-d_ij^2 / (h_i h_j))` of points at the distance `d_ij`.

    `h_i` is the distance from a point to the `REACH`-th nearest one of the fit, those at the same
    place left out, so that it does not matter how dense they are somewhere (L. Zelnik-Manor, P.
    Perona, "Self-tuning spectral clustering", NIPS 2004). Points that are too far for the
    exponential are barely similar, but the nearest of them are still the most similar ones.

    Attributes
    ----------
    sized : bool
        Whether points have the size that they were given with.
    centre : array of shape (p,)
        Of the points, as they are kept.
    exponent : int
        Points are divided by this power of two.
    columns, rows : Points
        The samples of the fit and those in question.
    """

    sized: bool
    centre: np.ndarray
    exponent: int
    columns: Points
    rows: Points
    rank = float("nan")

    @classmethod
    def of(cls, values: np.ndarray, sizes: np.ndarray | None = None) -> DistanceKernel:
        """Build it for complete samples, multiplied by `sizes` if there are any."""
        exponent = _exponent(values) + (0 if sizes is None else _exponent(sizes))
        at = _points(values, sizes, exponent)
        centre = at.mean(axis=0)
        every = Points.of(at - centre)
        return cls(sizes is not None, centre, exponent, every, every)

    def extended(self, new: np.ndarray, sizes: np.ndarray | None = None) -> DistanceKernel:
        """Return the similarities of new complete samples; sized ones need their sizes."""
        if self.sized and sizes is None:
            msg = "sizes must be given: the samples of the fit have the sizes that they came with"
            raise ValueError(msg)
        at = _points(new, sizes if self.sized else None, self.exponent)
        return replace(self, rows=Points.of(np.clip(at, -FAR, FAR) - self.centre, self.columns))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return len(self.rows.at), len(self.columns.at)

    def tile(self, rows: Rows, columns: Rows = slice(None)) -> np.ndarray:
        """Return similarities, a row a sample in question, in single precision."""
        far = self.rows.squares(rows, self.columns, columns)
        far /= self.rows.reach[rows, None]
        far /= self.columns.reach[columns]
        return np.maximum(np.exp(-far), BARELY / (1 + far)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Points:
    """Points around the centre of those of the fit.

    In double precision: a table may hold distances of any size beside each other.

    Attributes
    ----------
    at : array of shape (m, p)
    reach : array of shape (m,)
        Distance to the `REACH`-th nearest point of the fit that is not at the same place.
    """

    at: np.ndarray
    reach: np.ndarray

    @classmethod
    def of(cls, at: np.ndarray, fit: Points | None = None) -> Points:
        """Measure the reach of points among those of a fit, or among themselves."""
        found = cls(at, np.ones(len(at)))
        others = found if fit is None else fit
        parts = [
            _reach(found.squares(rows, others)) for rows in spans(len(at), -(-len(at) // TILE))
        ]
        return replace(found, reach=np.concatenate([np.zeros(0), *parts]))

    @cached_property
    def half(self) -> np.ndarray:
        """Half of the squared norms."""
        return np.sum(self.at**2, axis=1) / 2

    def squares(self, rows: Rows, other: Points, columns: Rows = slice(None)) -> np.ndarray:
        """Return the squared distances to some other points, zero where they are rounding."""
        sums = self.half[rows, None] + other.half[columns]
        squares = 2 * (sums - self.at[rows] @ other.at[columns].T)
        rounding = 16 * np.finfo(float).eps * self.at.shape[1] ** 0.5
        return np.where(squares > rounding * sums, squares, 0.0)


def _reach(squares: np.ndarray) -> np.ndarray:
    """Return the `REACH`-th smallest positive distance of each row, or the largest; 1 for none."""
    apart = np.where(squares > 0, squares, np.inf)
    place = min(REACH, apart.shape[1]) - 1
    found = np.partition(apart, place, axis=1)[:, place]
    most = squares.max(axis=1, initial=0)
    return np.sqrt(np.where(np.isfinite(found), found, np.where(most > 0, most, 1.0)))


def _points(values: np.ndarray, sizes: np.ndarray | None, exponent: int) -> np.ndarray:
    """Return samples as points, multiplied by their sizes if there are any."""
    points = values.reshape(len(values), -1).astype(float)
    if sizes is None:
        return np.ldexp(points, -exponent)
    own = np.frexp(sizes)  # first the exponents: the product itself may be out of range
    return np.ldexp(points * own[0][:, None], own[1][:, None] - exponent)


def _exponent(values: np.ndarray) -> int:
    """Return the exponent of the largest modulus."""
    return int(np.frexp(np.abs(values).max(initial=0))[1])


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


def _spectrum(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return singular values (K, r) of slices, falling, and vectors of the smaller Gram matrix.

    In double precision. The third is None for left singular vectors; for right ones it is the
    slices, adjoint.
    """
    wide = X.astype(np.result_type(X.dtype, np.float64))
    tall = X.shape[1] > X.shape[2]
    left = wide.conj().mT if tall else wide
    squares, Q = np.linalg.eigh(left @ left.conj().mT)
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
    i, j = np.triu_indices(len(b), 1)
    mixed = b[i] * b[j].conj() * np.float32(2**0.5)
    parts = [(b * b.conj()).real, mixed.real]
    return np.concatenate([*parts, mixed.imag] if np.iscomplexobj(b) else parts)
