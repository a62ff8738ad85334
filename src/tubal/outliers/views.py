"""What a score looks at: samples beside each other, before anything is called usual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import Samples
from tubal.representation import Neighbours, Representation, norms_of

ROUNDING = 1e-6
"""Smaller differences of entries of samples of unit norm are those of rounding."""

FAR = 1e12
"""Over the usual norm: no point is farther away than this."""

TINY = np.finfo(float).tiny
SMALL = 0.1
"""Of norms far below this part of the median, only that they are small matters."""


@dataclass(frozen=True, eq=False)
class Table:
    """Samples as rows, less a common centre; `seen` is None when nothing is missing.

    Samples have unit norm, and their own norm is looked at by itself. Rows of tables are points:
    they are looked at where they were given, and their norm means nothing. Only differences of
    samples count; without what is common to all, single precision does.
    """

    x: np.ndarray
    seen: np.ndarray | None
    size: np.ndarray  # logarithm of the norm that a sample had before it was scaled, and `floor`
    centre: np.ndarray
    floor: float  # a part of the usual norm; for points the usual norm

    @classmethod
    def of(cls, representation: Representation, fitted: Table | None = None) -> Table:
        """Return the samples in question; `fitted` are those of the fit, None for themselves."""
        samples = representation.samples
        n = samples.n_samples
        x = samples.values.reshape(n, -1)
        seen = None if samples.observed is None else samples.observed.reshape(n, -1)
        sizes = representation.sizes().astype(float)  # in single precision TINY is 0
        usual = float(np.median(sizes))
        if samples.table:
            floor = (usual if usual > 0 else 1.0) if fitted is None else fitted.floor
            with np.errstate(over="ignore"):
                given = np.minimum(representation.divisors() / floor, FAR)
            x, logs = x.astype(float) * given[:, None], np.zeros(n)
        else:
            floor = SMALL * usual if fitted is None else fitted.floor
            size = np.sqrt(np.sum(x**2, axis=1) / (1 if seen is None else seen.mean(axis=1)))
            x = x / np.where(size > 0, size, 1)[:, None]
            logs = np.log(np.maximum(sizes + floor, TINY))
        centre = _centre(x, seen, samples.table) if fitted is None else fitted.centre
        x = (x - centre).astype(np.float32)
        return cls(np.where(np.abs(x) > ROUNDING, x, 0), seen, logs, centre, floor)

    @cached_property
    def columns(self) -> np.ndarray:
        """The entries of each column, one after the other in memory."""
        return np.ascontiguousarray(self.x.T)

    def median(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the median of some rows, of the entries seen."""
        if self.seen is None:
            return _median(self.columns, np.flatnonzero(rows), effective_jobs(n_jobs))
        ordered = np.sort(np.where(self.seen[rows], self.x[rows], np.inf), axis=0)
        count = self.seen[rows].sum(axis=0)
        middle = [np.clip((count - 1 + shift) // 2, 0, len(ordered) - 1) for shift in (0, 1)]
        low, high = (np.take_along_axis(ordered, m[None], axis=0)[0] for m in middle)
        return np.where(count > 0, (low + high) / 2, 0)

    def distances(self, other: Table, index: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return mean squares of the differences to some rows of another table, infinite for none.

        `index` has the rows for each row, -1 for none. Entries that both have count.
        """
        out = np.empty(index.shape)

        def fill(some: slice) -> None:
            for i, column in zip(index.T[some], out.T[some], strict=True):
                column[:] = self._distance(other, i)

        jobs = effective_jobs(n_jobs)
        threaded(fill, spans(index.shape[1], jobs), jobs)
        out[index < 0] = np.inf
        return out

    def _distance(self, other: Table, index: np.ndarray) -> np.ndarray:
        """Return the mean squares of the differences to one row each."""
        squares = other.x[index]
        squares -= self.x
        with np.errstate(over="ignore"):  # a point that far away is at infinity
            squares *= squares
        both = _both(self.seen, None if other.seen is None else other.seen[index])
        if both is None:
            mean: np.ndarray = squares.mean(axis=1)
            return mean
        count = both.sum(axis=1)
        total = np.where(both, squares, 0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def _centre(x: np.ndarray, seen: np.ndarray | None, points: bool) -> np.ndarray:
    """Return the mean of samples, of points the median: one of them may be very far away."""
    if points:
        return np.median(x if seen is None else np.where(seen, x, 0), axis=0)
    return mean_of(x, seen, np.ones(len(x), bool))


def explained(rows: Representation) -> Representation:
    """Return samples of which only the part that was explained is left, at unit norm."""
    n = len(rows.L)
    size = norms_of(rows.L)
    unit = np.where(size > 0, size, 1).reshape(n, *(1,) * (rows.L.ndim - 1))
    values = rows.L / (1 if rows.samples.table else unit)  # points stay where they are
    samples = Samples(values.reshape(rows.samples.values.shape), None, rows.samples.table)
    scale = rows.scale if rows.samples.table else rows.sizes()
    return replace(rows, samples=samples, E=np.zeros_like(rows.E), scale=scale)


@dataclass(frozen=True, eq=False)
class Views:
    """What a score looks at, before anything is compared with the inliers."""

    table: Table
    around: np.ndarray  # the listed samples of the fit, closest first; -1 for none
    apart: np.ndarray  # root of the mean distance to the neighbours, entry by entry
    shared: np.ndarray | None  # entries that some neighbour has too; None when nothing is missing
    points: bool  # whether samples are rows of a table
    lonely: np.ndarray
    residual: np.ndarray  # norm of what was not explained, over that of the sample
    beside: np.ndarray  # logarithm of the size, over the median of those of the neighbours

    @cached_property
    def apart_squared(self) -> np.ndarray:
        """Mean distances to the neighbours, entry by entry."""
        return self.apart**2

    @classmethod
    def of(
        cls,
        new: Representation,
        lists: Neighbours,
        table: Table,
        fitted: Table,
        counts: tuple[int, int],
        n_jobs: int | None,
    ) -> Views:
        """Return the views of samples in question; `table` are they, `fitted` those of the fit.

        `lists` are the most similar samples of the fit; `counts` are the number of neighbours, and
        of similar samples that an isolated one lacks.
        """
        count, similar = counts
        around = _closest(table, fitted, new, lists, n_jobs)
        apart, shared = _differences(table, fitted, around[:, :count])
        value = lists.value[:, :similar]
        lonely = 1 - value.mean(axis=1) if value.shape[1] else np.ones(len(table.x))
        sizes = fitted.size[lists.index[:, :count]]
        beside = table.size - np.median(sizes, axis=1) if sizes.shape[1] else 0 * table.size
        norms = new.norms()
        residual = new.residuals() / np.where(norms > 0, norms, 1)
        points = new.samples.table
        return cls(table, around, np.sqrt(apart), shared, points, lonely, residual, beside)


def far_from(table: Table, median: np.ndarray) -> np.ndarray:
    """Return how far each entry is from the median."""
    far = table.x - median
    return np.abs(far, out=far)


def mean_of(A: np.ndarray, there: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Return the mean over some rows, of the entries that are there."""
    if there is None:
        return (rows / max(rows.sum(), 1)).astype(A.dtype) @ A
    return np.where(there[rows], A[rows], 0).sum(axis=0) / np.maximum(there[rows].sum(axis=0), 1)


def average_of(A: np.ndarray, there: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """Return the mean of `A weights` over the entries that are there of each row."""
    if there is None:
        return A @ weights / A.shape[1]
    return np.where(there, A, 0) @ weights / np.maximum(there.sum(axis=1), 1)


def _closest(
    table: Table, fitted: Table, new: Representation, lists: Neighbours, n_jobs: int | None
) -> np.ndarray:
    """Return the most similar samples of the fit, the closest first; -1 is a sample itself."""
    index = np.where(lists.index == new.twins[:, None], -1, lists.index)
    distances = table.distances(fitted, index, n_jobs)
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


def _differences(
    table: Table, fitted: Table, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return mean moduli of the differences to some samples, and which entries have any."""
    total, pairs = np.zeros_like(table.x), np.zeros_like(table.x[:, :1])
    for i in index.T:
        both = (i >= 0)[:, None] if fitted.seen is None else (i >= 0)[:, None] & fitted.seen[i]
        apart = fitted.x[i]
        apart -= table.x
        total += np.where(both, np.abs(apart, out=apart), 0)
        pairs = pairs + both
    shared = None if fitted.seen is None else pairs > 0
    return total / np.maximum(pairs, 1), _both(table.seen, shared)


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where both masks hold; None is a mask that hides nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _median(columns: np.ndarray, places: np.ndarray, jobs: int) -> np.ndarray:
    """Return `np.median(columns[:, places], axis=1)`.

    By sorting, which NumPy does with vector instructions. Its partial sorts, and so `np.median`,
    are up to six times slower where many entries are equal, as the dark ones of pictures are.
    """
    middle, odd = divmod(len(places), 2)

    def of_some(some: slice) -> np.ndarray:
        part = columns[some].take(places, axis=1)
        part.sort(axis=1)
        upper = part[:, middle]
        return upper.copy() if odd else (part[:, middle - 1] + upper) / 2

    return np.concatenate(threaded(of_some, spans(len(columns), jobs), jobs))
