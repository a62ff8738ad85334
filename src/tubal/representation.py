"""What a solver found, as the later rooms see it: samples, their coefficients, what is left.

Rows are the samples in question (those of the fit, or new ones), columns are the samples of the
fit. The full table of coefficients is never formed: it is read in tiles of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse

from tubal._threads import effective_jobs, serial_blas, spans, threaded
from tubal.input import Samples, to_numpy, tubes_first
from tubal.transforms import Transform

Rows = Any
"""A slice or an array of indices."""

TILE = 128  # rows at a time
LISTED = 32  # neighbours kept for each row
MOST_BYTES = 2**26  # of a table of similarities that is made as a whole


class Ties(ABC):
    """How much each sample (row) is tied to each sample of the fit (column), read in tiles."""

    shape: tuple[int, int]

    @abstractmethod
    def tile(self, rows: Rows) -> np.ndarray:
        """Return some rows, dense."""

    def whole(self, n_jobs: int | None = None) -> Whole | None:
        """Return all rows of the samples of the fit as a table, None where that brings nothing."""
        return None

    def extended(self, new: np.ndarray) -> Ties:
        """Return the ties of new samples to those of the fit."""
        msg = f"{type(self).__name__} does not tell the ties of new samples"
        raise NotImplementedError(msg)


@dataclass(frozen=True, eq=False)
class TubeModuli(Ties):
    """Moduli of the coefficients `Z_k = left_k core_k`, averaged over the tube.

    Attributes
    ----------
    source : object
        Its attribute `left` is an array of shape (K, n, r): samples of the fit. It is asked for
        when the moduli are read, since few graphs read them.
    core : array of shape (K, r, m)
        The samples in question.
    transform : Transform
    count : int
        The number n of samples of the fit.
    """

    source: Any
    core: np.ndarray
    transform: Transform
    count: int

    @cached_property
    def left(self) -> np.ndarray:
        """The factor of the samples of the fit."""
        return to_numpy(self.source.left)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return int(self.core.shape[2]), self.count

    def extended(self, new: np.ndarray) -> TubeModuli:
        """Return the moduli for new coefficients, (K, r, m)."""
        return replace(self, core=new)

    def tile(self, rows: Rows) -> np.ndarray:
        """Return `sum_k |Z[i, j, k]| / n3`, sample j along the rows."""
        tubes = self.transform.inverse(self.left @ self.core[:, :, rows], axis=0)
        return np.abs(tubes).mean(axis=tuple(range(tubes.ndim - 2))).T


@dataclass(frozen=True, eq=False)
class TubeKernel(Ties):
    """Similarity by the modulus `(Z^H Z)^(1/2)` of a coefficient tensor, slice by slice.

    For data that represents itself without noise, `Z = V V^H` shrunk, the modulus is Z itself; in
    general it is the symmetric version of Z, and it exists for every dictionary. Between samples i
    and j it gives a tube; similarity is its norm, scaled to 1 for a sample with itself:
    `||C_ij|| / sqrt(||C_ii|| ||C_jj||)`. No inverse transform is needed.

    In every slice it is `b^H b` with `b = W^H Z` and `W W^H = (Z Z^H)^(-1/2)`: as many rows as Z
    has directions, which are few after the thresholding of a solver.

    Attributes
    ----------
    half : tuple of arrays of shape (r, q_k)
        W of each slice.
    columns, rows : tuples of arrays of shape (q_k, n) and (q_k, m)
        `W^H` times the coefficients of the samples of the fit and of those in question.
    own, new : arrays of shape (n,) and (m,)
        `||C_ii||` for the samples of the fit and for those in question.
    transform : Transform
    """

    half: tuple[np.ndarray, ...]
    columns: tuple[np.ndarray, ...]
    rows: tuple[np.ndarray, ...]
    own: np.ndarray
    new: np.ndarray
    transform: Transform

    @classmethod
    def of(cls, transform: Transform, Z: np.ndarray) -> TubeKernel:
        """Build the kernel of the samples of a fit from the slices (K, r, n) of Z."""
        with serial_blas():
            half = _half_inverse(Z)
            columns = _coded(half, Z)
        own = _self_norms(columns, transform)
        return cls(half, columns, columns, own, own, transform)

    def extended(self, new: np.ndarray) -> TubeKernel:
        """Return the similarities of new samples with coefficients (K, r, m).

        One with coefficients c has `c^H (Z Z^H)^(-1/2) c` with itself.
        """
        rows = _coded(self.half, new)
        return replace(self, rows=rows, new=_self_norms(rows, self.transform))

    @property
    def left(self) -> np.ndarray:
        """`Z^H (Z Z^H)^(-1/2)` of each slice, (K, n, r): samples of the fit."""
        pairs = zip(self.half, self.columns, strict=True)
        return np.stack([(half @ part).conj().T for half, part in pairs])

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return len(self.new), len(self.own)

    def tile(self, rows: Rows) -> np.ndarray:
        """Return similarities, a row a sample in question."""
        new = self.new[rows]
        total = np.zeros((len(new), len(self.own)))
        weights = self.transform.weights / self.transform.scale
        for mine, theirs, omega in zip(self.rows, self._turned, weights, strict=True):
            left = (omega**0.5 * stacked(mine[:, rows])).T
            for right in theirs:
                part = left @ right
                part *= part
                total += part
        least = 1e-12 * self.own.max(initial=0)
        total *= _inverse(new, least)[:, None]
        total *= _inverse(self.own, least)
        return np.sqrt(total, out=total)

    @cached_property
    def _turned(self) -> list[list[np.ndarray]]:
        return [turned(part) for part in self.columns]


@dataclass(frozen=True, eq=False)
class SparseTable(Ties):
    """Ties given as a sparse table; moduli count.

    Attributes
    ----------
    table : sparse array of shape (m, n)
    unit : bool
        Whether each row is divided by its largest modulus.
    """

    table: scipy.sparse.csr_array
    unit: bool = False

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return self.table.shape

    def tile(self, rows: Rows) -> np.ndarray:
        """Return moduli."""
        return _moduli(self.table[rows].toarray(), self.unit)


@dataclass(frozen=True, eq=False)
class Moduli(Ties):
    """Moduli of coefficients that are computed when they are read.

    Attributes
    ----------
    codes : object
        With `shape` and a method `tile` of rows, such as `tubal.sparse.RidgeRepresentation`.
    unit : bool
        Whether each row is divided by its largest modulus.
    """

    codes: Any
    unit: bool = False

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        m, n = self.codes.shape
        return m, n

    def tile(self, rows: Rows) -> np.ndarray:
        """Return moduli."""
        return _moduli(self.codes.tile(rows), self.unit)


@dataclass(frozen=True, eq=False)
class Whole(Ties):
    """Ties given as a table.

    Attributes
    ----------
    table : array of shape (m, n)
    """

    table: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return self.table.shape[0], self.table.shape[1]

    def tile(self, rows: Rows) -> np.ndarray:
        """Return a copy of some rows."""
        return self.table[np.arange(len(self.table))[rows]]


@dataclass(frozen=True, eq=False)
class RowSpace(Ties):
    """Moduli of `V0 V0^T` for a matrix `L0 = U0 S0 V0^T` whose columns are the samples.

    The recipe of the paper for the PCA methods, with `L0 = sum_k L^(k)` (its section 6.2).

    Attributes
    ----------
    columns, rows : arrays of shape (n, q) and (m, q)
        Rows of V0 for the samples of the fit and for those in question.
    back : array of shape (n1, q)
        `U0 S0^-1`, which takes a sample to its row of V0.
    """

    columns: np.ndarray
    rows: np.ndarray
    back: np.ndarray

    @classmethod
    def of(cls, L: np.ndarray) -> RowSpace:
        """Build it from the recovered samples (n, n1, *sizes) of a fit."""
        V, s, Uh = np.linalg.svd(_summed(L), full_matrices=False)
        kept = s > max(L.shape) * np.finfo(s.dtype).eps * s.max(initial=0)
        return cls(V[:, kept], V[:, kept], Uh[kept].T / s[kept])

    def extended(self, new: np.ndarray) -> RowSpace:
        """Return the ties of recovered new samples (m, n1, *sizes)."""
        return replace(self, rows=_summed(new) @ self.back)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return len(self.rows), len(self.columns)

    def tile(self, rows: Rows) -> np.ndarray:
        """Return moduli."""
        return np.abs(self.rows[rows] @ self.columns.T)


@dataclass(frozen=True, eq=False)
class Representation:
    """Samples and how they were explained.

    Attributes
    ----------
    samples : Samples
        What was given to the solver, NumPy, zero in missing entries.
    L, E : arrays in the layout of the samples
        The part that was explained and the part that was not.
    coefficients : Ties
        Moduli of coefficients, as the published affinities use them.
    similarity : Ties
        From 0 for strangers to 1 for samples that are alike.
    twins : int array of shape (m,)
        For each row the column that is the same sample, -1 when there is none.
    transform : Transform or None
        Of the t-product; None for methods without one.
    fitted : Representation or None
        That of the samples of the fit, when the rows are new samples.
    scale : array of shape (m,) or None
        What the samples were divided by before.
    """

    samples: Samples
    L: np.ndarray
    E: np.ndarray
    coefficients: Ties
    similarity: Ties
    twins: np.ndarray
    transform: Transform | None = None
    fitted: Representation | None = None
    scale: np.ndarray | None = None
    _tabled: Representation | None = field(default=None, init=False, repr=False)

    def complete(self) -> np.ndarray:
        """Return the samples, missing entries filled by the part that was explained."""
        seen = self.samples.observed
        if seen is None:
            return self.samples.values
        return np.where(seen, self.samples.values, self.L.reshape(seen.shape))

    def tabled(self, n_jobs: int | None = None) -> Representation:
        """Return the samples with their similarities as a table, where that is small enough."""
        if self.fitted is not None or 4 * len(self.twins) ** 2 > MOST_BYTES:
            return self
        if self._tabled is None:
            table = self.similarity.whole(n_jobs)
            made = self if table is None else replace(self, similarity=table)
            object.__setattr__(self, "_tabled", made)
        return self._tabled or self

    def release(self) -> None:
        """Forget the tables that `tabled` and `lists` have made."""
        object.__setattr__(self, "_tabled", None)
        self.__dict__.pop("_lists", None)

    def lists(self, n_jobs: int | None = None) -> Neighbours:
        """Return the LISTED most similar samples of the fit for each row, computed once."""
        if "_lists" not in self.__dict__:
            self.__dict__["_lists"] = neighbours(self, LISTED, n_jobs=n_jobs)
        found: Neighbours = self.__dict__["_lists"]
        return found

    def residuals(self) -> np.ndarray:
        """Return the norms of what was not explained."""
        return norms_of(self.E)

    def norms(self) -> np.ndarray:
        """Return the norms of the samples."""
        return norms_of(self.samples.values)

    def divisors(self) -> np.ndarray:
        """Return what the samples were divided by."""
        return np.ones(len(self.twins)) if self.scale is None else self.scale

    def sizes(self) -> np.ndarray:
        """Return the norms that the samples had before they were scaled, per entry observed."""
        norms, seen = self.norms(), self.samples.observed
        if seen is not None:
            share = seen.reshape(len(seen), -1).mean(axis=1)
            norms = norms / np.sqrt(np.where(share > 0, share, 1))
        return norms * self.divisors()


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The columns most similar to each row, most similar first.

    Attributes
    ----------
    index : int array of shape (m, k)
    value : array of shape (m, k)
    """

    index: np.ndarray
    value: np.ndarray


def norms_of(A: np.ndarray) -> np.ndarray:
    """Return the norm of each sample, samples first, also where its square is no float32."""
    flat = A.reshape(len(A), -1)
    with np.errstate(over="ignore"):
        found: np.ndarray = np.linalg.norm(flat, axis=1)
    if A.dtype == np.float32 and not np.isfinite(found).all():
        found = np.linalg.norm(flat.astype(np.float64), axis=1)
    return found


def neighbours(
    representation: Representation,
    count: int,
    *,
    rows: np.ndarray | None = None,
    hidden: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None,
    n_jobs: int | None = None,
) -> Neighbours:
    """Find the most similar samples of the fit for each row, itself left out.

    Parameters
    ----------
    representation : Representation
    count : int
        Neighbours for each row. Where there are fewer to choose from, values of zero fill up.
    rows : int array or None
        Which rows; all by default.
    hidden : bool array, function of rows, or None
        Which columns may not be chosen: the same ones for every row (n,), or a function that
        returns a table (len(rows), n).
    n_jobs : int or None
    """
    ties, twins = representation.similarity, representation.twins
    rows = np.arange(ties.shape[0]) if rows is None else rows
    count = min(count, ties.shape[1])

    def of_rows(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tile = ties.tile(part)
        if tile.dtype == float:  # what differs by rounding is equal: first come
            tile = np.round(tile, 10)
        own = twins[part]
        tile[own >= 0, own[own >= 0]] = -1
        if hidden is not None:
            mask = hidden(part) if callable(hidden) else np.broadcast_to(hidden, tile.shape)
            np.putmask(tile, mask, -1)
        return largest(tile, count)

    parts = [rows[part] for part in spans(len(rows), -(-len(rows) // TILE))]
    found = threaded(of_rows, parts, effective_jobs(n_jobs))
    index, value = (np.concatenate(list(part)) for part in zip(*found, strict=True))
    return Neighbours(index, np.clip(value, 0, None, dtype=float))


def nearest(
    representation: Representation,
    count: int,
    kept: np.ndarray,
    n_jobs: int | None = None,
) -> Neighbours:
    """Find the most similar samples of the fit among those kept, from the lists where they reach.

    Parameters
    ----------
    representation : Representation
    count : int
    kept : bool array, one for each column
    n_jobs : int or None
    """
    if count > LISTED:
        hidden = None if kept.all() else ~kept
        return neighbours(representation, count, hidden=hidden, n_jobs=n_jobs)
    lists = representation.lists(n_jobs)
    good = kept[lists.index] & (lists.value > 0)
    order = np.argsort(~good, axis=1, kind="stable")[:, :count]
    index = np.take_along_axis(lists.index, order, axis=1)
    value = np.where(
        np.take_along_axis(good, order, axis=1), np.take_along_axis(lists.value, order, axis=1), 0
    )
    others = representation.similarity.shape[1] - (representation.twins >= 0)
    unlisted = others > LISTED  # else the list of a row holds everything
    short = np.flatnonzero(unlisted & (good.sum(axis=1) < index.shape[1]))
    if len(short):
        found = neighbours(representation, count, rows=short, hidden=~kept, n_jobs=n_jobs)
        index[short], value[short] = found.index, found.value
    return Neighbours(index, value)


def stack_tiles(
    ties: Ties,
    function: Callable[[np.ndarray, slice], np.ndarray],
    n_jobs: int | None = None,
) -> scipy.sparse.csr_array:
    """Apply a function to tiles, and to the rows they have, and stack the results as a table."""
    parts = spans(ties.shape[0], -(-ties.shape[0] // TILE))
    tiles = threaded(
        lambda rows: scipy.sparse.csr_array(function(ties.tile(rows), rows)),
        parts,
        effective_jobs(n_jobs),
    )
    return scipy.sparse.csr_array(scipy.sparse.vstack(tiles))


def hat(transform: Transform, values: np.ndarray) -> np.ndarray:
    """Return the slices (K, n1, n) of samples-first values."""
    values = values if values.ndim > 2 else values[..., None]
    return transform.forward(tubes_first(values), axis=0)


def _summed(L: np.ndarray) -> np.ndarray:
    """Return the sum of the frontal slices, a row a sample."""
    n, n1, *sizes = L.shape
    return L.reshape(n, n1, prod(sizes)).sum(axis=2)


def stacked(b: np.ndarray) -> np.ndarray:
    """Return a real array itself, and of a complex one the real parts above the imaginary ones."""
    return np.concatenate([b.real, b.imag]) if np.iscomplexobj(b) else b


def turned(b: np.ndarray) -> list[np.ndarray]:
    """Return real arrays c with `sum_c (stacked(a)^T c)^2 = |a^H b|^2`, entry by entry."""
    return [stacked(b), np.concatenate([b.imag, -b.real])] if np.iscomplexobj(b) else [b]


def _coded(half: tuple[np.ndarray, ...], core: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(W.conj().T @ part for W, part in zip(half, core, strict=True))


def _self_norms(coded: tuple[np.ndarray, ...], transform: Transform) -> np.ndarray:
    """Return norms of the tubes `sum_r |coded[k][r, j]|^2`."""
    tubes = np.stack([np.sum(part.real**2 + part.imag**2, axis=0) for part in coded])
    return np.sqrt((transform.weights / transform.scale) @ tubes**2)


def _half_inverse(C: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return W with `W W^H = (C C^H)^(-1/2)` of each slice, a column a direction of C.

    In double precision: the Gram matrix has the square of the condition number.
    """
    C = C.astype(np.result_type(C.dtype, np.float64), copy=False)
    wide = C.shape[1] <= C.shape[2]
    squares, Q = np.linalg.eigh(C @ C.conj().mT if wide else C.conj().mT @ C)
    level = 100 * max(Q.shape[1:]) * np.finfo(squares.dtype).eps * squares.max(initial=0)
    half = []
    for c, d, q in zip(C, squares, Q, strict=True):
        kept = d > level
        d, q = d[kept], q[:, kept]
        q = q if wide else c @ q / np.sqrt(d)  # from right to left singular vectors
        half.append(q * d**-0.25)
    return tuple(half)


def _moduli(tile: np.ndarray, unit: bool) -> np.ndarray:
    """Return moduli, over the largest of each row if asked; the tile is overwritten."""
    np.abs(tile, out=tile)
    return tile * _inverse(tile.max(axis=1, initial=0))[:, None] if unit else tile


def _inverse(size: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Return 1/size, zero where size is not above `least`."""
    return np.where(size > least, 1 / np.where(size > least, size, 1), 0)


def largest(tile: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and values of the largest entries of each row, in falling order.

    Of equal values the first ones are taken, in the order of the columns.
    """
    if count == 1:
        first = tile.argmax(axis=1)[:, None]
        return first, np.take_along_axis(tile, first, axis=1)
    i, j = np.nonzero(_large(tile, count))
    value = tile[i, j]
    order = np.lexsort((-value, i))  # stable: columns stay in their order
    starts = np.searchsorted(i, np.arange(len(tile)))
    chosen = order[starts[:, None] + np.arange(count)]
    return j[chosen], value[chosen]


GROUP = 8  # entries at a time, where the largest of a row are looked for


def _large(tile: np.ndarray, count: int) -> np.ndarray:
    """Return which entries of each row may be among the largest: `count` of them or some more."""
    rows, columns = tile.shape
    if not 0 < count < columns:
        return np.ones(tile.shape, bool) if count else np.zeros(tile.shape, bool)
    groups = columns // GROUP
    if groups > 2 * count:  # so many groups have an entry that is as large as this
        heads = tile[:, : groups * GROUP].reshape(rows, GROUP, groups).max(axis=1)
        large = tile >= np.partition(heads, groups - count, axis=1)[:, groups - count, None]
        if np.count_nonzero(large) <= 4 * rows * count:  # else many are equal
            return large
    last = np.partition(tile, columns - count, axis=1)[:, columns - count, None]
    above, level = tile > last, tile == last
    above |= level & (np.cumsum(level, axis=1) <= count - above.sum(axis=1, keepdims=True))
    return above
