"""From a representation to a graph between the kept samples, and to votes for new ones.

A graph is a small object with two methods: `build` makes the affinity of the samples of a fit,
`votes` says how strongly new samples are tied to each of them. All graphs are symmetric and
non-negative, without loops where the method has none, and sparse arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from tubal.input import check_choice, check_count, check_flag, check_positives
from tubal.representation import (
    Neighbours,
    Representation,
    Whole,
    nearest,
    neighbours,
    stack_tiles,
)
from tubal.scales import FACTORS, Comparison, View

__all__ = [
    "Absolute",
    "Graph",
    "MultiScale",
    "Nearest",
    "resolve",
]


NEIGHBOURS = (5, 4, 7)
"""Numbers of neighbours that `MultiScale` leaves to the data; without a choice the first counts."""

MOST_BYTES = 2**26
"""Tables of similarities up to this size are kept while a graph is built, others in tiles."""


class Graph(ABC):
    """A rule that ties samples to each other."""

    @abstractmethod
    def build(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the affinity between the samples of the fit, empty for those not kept."""

    @abstractmethod
    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return how much each new sample (row) is tied to each kept sample of the fit."""


@dataclass(frozen=True)
class Nearest(Graph):
    """The most similar samples of each sample, and what keeps the graph in one piece.

    Each sample is tied to its `n_neighbors` most similar ones, made symmetric by the mean; the
    maximum spanning tree of all similarities joins what would fall apart.

    Parameters
    ----------
    n_neighbors : int
    tree : bool
        Whether to add the maximum spanning tree.
    """

    n_neighbors: int = 5
    tree: bool = True

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_flag("tree", self.tree)

    def build(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the affinity between the samples of the fit, empty for those not kept."""
        return _graphs(representation, kept, (self.n_neighbors,), self.tree, n_jobs)[0]

    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the similarities with the nearest kept samples."""
        near = nearest(new, self.n_neighbors, kept, n_jobs)
        return _table(near, self.n_neighbors, len(kept))


@dataclass(frozen=True)
class MultiScale(Graph):
    """As `Nearest`, with similarities at several effective ranks, of the kept samples alone.

    Two differences to `Nearest`: outliers are set aside before the similarities are computed, so
    that no direction is spent on them; and the similarities are those of the closed-form
    representation, averaged over effective ranks (see `tubal.scales`), instead of those of the
    robust solution at one rank. Missing entries are filled by the robust solution first. With a
    view that is a `tubal.scales.Distance` the similarities follow from the distances alone.

    Parameters
    ----------
    n_neighbors : int or tuple of int
        A tuple of three or more leaves the number open: an estimator chooses it
        (`tubal.selection.tie`), and without one the first counts.
    tree : bool
        Whether to add the maximum spanning tree.
    factors : tuple of float
        Effective ranks, as multiples of the one that the spectrum suggests. Distances have none.
    view : View or None
        Arrangement and transform under which samples are compared, or a `Distance`; None: those of
        the fit.
    """

    n_neighbors: int | tuple[int, ...] = NEIGHBOURS
    tree: bool = True
    factors: tuple[float, ...] = FACTORS
    view: View | None = None

    def __post_init__(self) -> None:
        given: Any = self.n_neighbors
        # Each of two agrees with the other one as much, so there is nothing to choose.
        if isinstance(given, list) or len(self.choices) in (0, 2):
            msg = (
                "n_neighbors must be a positive integer or a tuple of three or more to choose "
                f"from, got {self.n_neighbors!r}"
            )
            raise ValueError(msg)
        for count in self.choices:
            check_count("n_neighbors", count)
        check_flag("tree", self.tree)
        check_positives("factors", self.factors)
        view: Any = self.view
        if view is not None and not isinstance(view, View):
            msg = f"view must be a View or None, got {self.view!r}"
            raise ValueError(msg)

    def build(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the affinity between the samples of the fit, empty for those not kept."""
        return replace(self, n_neighbors=self.choices[0]).builds(representation, kept, n_jobs)[0]

    def builds(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> list[scipy.sparse.csr_array]:
        """Return the affinity for each number of neighbours that is left open."""
        n = len(kept)
        if not kept.any():
            return [scipy.sparse.csr_array((n, n)) for _ in self.choices]
        inner = self.compared(representation, kept, n_jobs)
        everyone, place = np.ones(int(kept.sum()), bool), _places(kept)
        graphs = _graphs(inner, everyone, self.choices, self.tree, n_jobs)
        return [scipy.sparse.csr_array(place.T @ graph @ place) for graph in graphs]

    def compared(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> Representation:
        """Return the kept samples alone, with their similarities: as a table where it is small."""
        inner = self._inner(representation, kept)
        if 4 * int(kept.sum()) ** 2 > MOST_BYTES:
            return inner
        ties = cast(Comparison, inner.similarity).whole(n_jobs)
        return replace(inner, coefficients=ties, similarity=ties)

    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the similarities with the nearest kept samples."""
        if not kept.any():
            return scipy.sparse.csr_array((len(new.twins), len(kept)))
        kernel = cast(Comparison, self._inner(new.fitted or new, kept).similarity)
        position = np.where(kept, np.cumsum(kept) - 1, -1)
        twins = np.where(new.twins >= 0, position[new.twins], -1)
        ties = kernel.extended(new.complete(), new.divisors())
        rows = replace(new, coefficients=ties, similarity=ties, twins=twins, fitted=None)
        votes = self._nearest.votes(rows, np.ones(int(kept.sum()), bool), n_jobs)
        return scipy.sparse.csr_array(votes @ _places(kept))

    def rank(self, representation: Representation, kept: np.ndarray) -> float:
        """Return the effective rank that the spectrum of the kept samples suggests, or NaN."""
        return cast(Comparison, self._inner(representation, kept).similarity).rank

    @property
    def _nearest(self) -> Nearest:
        return Nearest(self.choices[0], self.tree)

    @property
    def choices(self) -> tuple[int, ...]:
        """The numbers of neighbours that it leaves open, or the one."""
        return self.n_neighbors if isinstance(self.n_neighbors, tuple) else (self.n_neighbors,)

    def _inner(self, fitted: Representation, kept: np.ndarray) -> Representation:
        """Return the kept samples with their similarities, made once."""
        view = self.view or View(fitted.transform)
        key = (self.factors, kept.tobytes())
        last = fitted.__dict__.get("_scales")
        if last is None or last[0] != key or not view.is_same(last[1]):
            if view.transform is None:
                msg = "MultiScale needs a method with a transform, or a view; use Nearest"
                raise ValueError(msg)
            sizes = fitted.divisors()[kept]
            ties = view.compare(fitted.complete()[kept], sizes, self.factors)
            n = int(kept.sum())
            inner = Representation(
                fitted.samples, fitted.L[:0], fitted.E[:0], ties, ties, np.arange(n)
            )
            last = fitted.__dict__["_scales"] = (key, view, inner)
        found: Representation = last[2]
        return found


def _places(kept: np.ndarray) -> scipy.sparse.csr_array:
    """Return the table that takes the kept samples to their places among all."""
    n = int(kept.sum())
    return scipy.sparse.csr_array(
        (np.ones(n), (np.arange(n), np.flatnonzero(kept))), shape=(n, len(kept))
    )


@dataclass(frozen=True)
class Absolute(Graph):
    """`(|Z| + |Z|^T) / 2`, averaged over the tubes: the affinity of the paper.

    Parameters
    ----------
    scale_rows : bool
        Whether the coefficients of each sample are first divided by the largest one, as the
        released codes of SSC and SSC-OMP do.
    """

    scale_rows: bool = False

    def __post_init__(self) -> None:
        check_flag("scale_rows", self.scale_rows)

    def build(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the affinity between the samples of the fit, empty for those not kept."""
        table = self.votes(representation, kept, n_jobs)
        _clear(table, ~kept)
        table = scipy.sparse.csr_array(table + table.T)
        table.data /= 2
        return table

    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the moduli of the coefficients on the kept samples."""

        def tile(size: np.ndarray) -> np.ndarray:
            if self.scale_rows:
                largest = size.max(axis=1, keepdims=True, initial=0)
                size = size / np.where(largest > 0, largest, 1)
            return np.where(kept, size, 0)

        return stack_tiles(new.coefficients, tile, n_jobs)


def resolve(graph: Any, auto: Graph | None = None) -> Graph:
    """Turn a name or an object into a Graph; the only place that reads these names.

    "auto" is what the method prefers, `Nearest` when it says nothing.

    >>> resolve("auto")
    Nearest(n_neighbors=5, tree=True)
    >>> resolve("published")
    Absolute(scale_rows=False)
    """
    names: dict[str, Graph] = {
        "auto": auto or Nearest(),
        "nearest": Nearest(),
        "multiscale": MultiScale(),
        "published": Absolute(),
        "scaled": Absolute(scale_rows=True),
    }
    return check_choice("graph", graph, names, Graph)


def _graphs(
    representation: Representation,
    kept: np.ndarray,
    counts: Sequence[int],
    tree: bool,
    n_jobs: int | None,
) -> list[scipy.sparse.csr_array]:
    """Return the graphs of `Nearest` for several numbers of neighbours, which share the tree."""
    near = nearest(representation, max(counts), kept, n_jobs)
    ties, edges = representation.similarity, None
    if tree and isinstance(ties, Whole) and kept.all():
        edges = tree_of_table(ties.table)
    elif tree:
        edges = _spanning_tree(representation, kept, n_jobs)
    graphs = []
    for count in counts:
        table = _table(near, count, len(kept))
        _clear(table, ~kept)
        graph = (table + table.T) / 2
        graphs.append(scipy.sparse.csr_array(graph if edges is None else graph.maximum(edges)))
    return graphs


def _clear(table: scipy.sparse.csr_array, rows: np.ndarray) -> None:
    """Empty some rows of a table in place."""
    if rows.any():
        table.data[np.repeat(rows, np.diff(table.indptr))] = 0
        table.eliminate_zeros()


def _table(near: Neighbours, count: int, n: int) -> scipy.sparse.csr_array:
    """Return the first `count` neighbours of each row as a sparse table."""
    index, value = near.index[:, :count], near.value[:, :count]
    starts = np.arange(len(index) + 1) * index.shape[1]
    table = scipy.sparse.csr_array(
        (value.reshape(-1), index.reshape(-1), starts), shape=(len(index), n), copy=True
    )
    table.eliminate_zeros()  # in place: hence the copy
    return table


def tree_of_table(S: np.ndarray) -> scipy.sparse.csr_array:
    """Return the edges of the maximum spanning tree of a table of similarities.

    Prim's algorithm: the sample most similar to those of the tree joins it, until all have.
    """
    n = len(S)
    best, link, outside = S[0].copy(), np.zeros(n, int), np.ones(n, bool)
    outside[0], best[0] = False, -1
    closer = np.zeros(n, bool)
    for _ in range(n - 1):
        new = best.argmax()
        outside[new] = False
        np.greater(S[new], best, out=closer)
        closer &= outside
        np.copyto(best, S[new], where=closer)
        np.copyto(link, new, where=closer)
        best[new] = -1
    ends = link[1:], np.arange(1, n)
    strength = np.maximum(S[ends], 1e-12).astype(float)  # strangers are joined too, but barely
    edges = scipy.sparse.coo_array((strength, ends), shape=(n, n))
    return scipy.sparse.csr_array(edges + edges.T)


def _spanning_tree(
    representation: Representation, kept: np.ndarray, n_jobs: int | None
) -> scipy.sparse.csr_array:
    """Return the edges of the maximum spanning tree of the similarities between kept samples.

    Boruvka's algorithm: every component but the largest takes its strongest edge to another one,
    until there is one component. That edge is mostly in the list of neighbours; where all
    neighbours of a sample lie in its own component, its similarities are computed again. Ties may
    close a cycle, which does no harm here.
    """
    n = len(kept)
    tree = scipy.sparse.csr_array((n, n))
    while True:
        component, sizes = _components(tree, kept)
        if len(sizes) <= 1:
            return tree
        rows = np.flatnonzero(kept & (component != sizes.argmax()))
        best, value = _best_outside(representation, rows, component, n_jobs)
        chosen = _strongest_of_each(component[rows], value)
        strength = np.maximum(value[chosen], 1e-12)  # strangers are joined too, but barely
        edges = scipy.sparse.csr_array(
            scipy.sparse.coo_array((strength, (rows[chosen], best[chosen])), shape=(n, n))
        )
        tree = scipy.sparse.csr_array(tree.maximum(edges.maximum(edges.T)))


def _components(graph: scipy.sparse.csr_array, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the component of each sample (-1: not kept) and the sizes of the components."""
    _, labels = connected_components(graph[kept][:, kept], directed=False)
    component = np.full(len(kept), -1)
    component[kept] = labels
    return component, np.bincount(labels)


def _best_outside(
    representation: Representation,
    rows: np.ndarray,
    component: np.ndarray,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each row, the most similar kept sample of another component."""
    near = representation.lists(n_jobs)
    other = component[near.index[rows]]
    outside = (other != component[rows, None]) & (other >= 0) & (near.value[rows] > 0)
    first = outside.argmax(axis=1)
    best, value = near.index[rows, first], near.value[rows, first]
    lost = ~outside.any(axis=1)
    if lost.any():
        found = neighbours(
            representation,
            1,
            rows=rows[lost],
            hidden=lambda part: (component == -1) | (component == component[part, None]),
            n_jobs=n_jobs,
        )
        best[lost], value[lost] = found.index[:, 0], found.value[:, 0]
    return best, value


def _strongest_of_each(component: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return for each component the position of its largest value."""
    order = np.argsort(-value, kind="stable")
    _, first = np.unique(component[order], return_index=True)
    return order[first]
