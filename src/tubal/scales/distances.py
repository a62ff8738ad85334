"""Samples as points: similar when they are near."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tubal._threads import spans
from tubal.representation import TILE, Rows
from tubal.scales.comparison import Comparison

REACH = 5
"""The distance to so many others is the length that a sample measures distances by."""

BARELY = 1e-12
"""Similarity of points that are far from each other, at most."""

FAR = 1e12
"""Farther than this, over the size of those of the fit, no new point is."""


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
        The median of the points, as they are kept: near to most of them, since distances are
        differences of squared norms and have their rounding.
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
        centre = np.median(at, axis=0)  # the mean may lie far from nearly all, for one that does
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
