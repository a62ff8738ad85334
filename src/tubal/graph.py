"""From a representation to a graph between the kept samples, and to votes for new ones.

A graph is a small object with two methods: `build` makes the affinity of the samples of a fit,
`votes` says how strongly new samples are tied to each of them. All graphs are symmetric and
non-negative, without loops where the method has none, and sparse arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from tubal.input import check_choice, check_count, check_flag
from tubal.representation import (
    Neighbours,
    Representation,
    Whole,
    largest,
    nearest,
    neighbours,
    stack_tiles,
)
from tubal.similarity import Shrunken

__all__ = [
    "Absolute",
    "AllPairs",
    "Graph",
    "Nearest",
    "resolve",
]


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
        representation = representation.tabled(n_jobs)
        if isinstance(representation.similarity, Whole) and kept.all():
            return self.of_table(representation.similarity.table)
        table = _table(nearest(representation, self.n_neighbors, kept, n_jobs), len(kept))
        _clear(table, ~kept)
        graph = (table + table.T) / 2
        if not self.tree:
            return scipy.sparse.csr_array(graph)
        return scipy.sparse.csr_array(graph.maximum(_spanning_tree(representation, kept, n_jobs)))

    def of_table(self, similarities: np.ndarray) -> scipy.sparse.csr_array:
        """Return the graph of a table of similarities."""
        n = len(similarities)
        others = similarities.copy()
        np.fill_diagonal(others, -1)
        index, value = largest(others, min(self.n_neighbors, max(n - 1, 1)))
        table = _table(Neighbours(index, np.clip(value, 0, None, dtype=float)), n)
        graph = (table + table.T) / 2
        return scipy.sparse.csr_array(
            graph.maximum(tree_of_table(similarities)) if self.tree else graph
        )

    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the similarities with the nearest kept samples."""
        return _table(nearest(new, self.n_neighbors, kept, n_jobs), len(kept))


@dataclass(frozen=True)
class AllPairs(Graph):
    """Every pair of samples, by the fourth power of its similarity at the weakest shrinkage.

    Between samples of independent subspaces coefficients vanish, and all those within a subspace
    say which samples belong together (J. Costeira, T. Kanade, "A multibody factorization method for
    independently moving objects", IJCV 29, 1998). The power keeps what is small between subspaces
    from adding up. The graph has n^2 edges.
    """

    def build(
        self, representation: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return the affinity between the samples of the fit, empty for those not kept."""
        table = self._powers(representation, kept, n_jobs)
        _clear(table, ~kept)
        return scipy.sparse.csr_array(table.maximum(table.T))

    def of_table(self, similarities: np.ndarray) -> np.ndarray:
        """Return the graph of a table of similarities at the weakest shrinkage, dense."""
        W = np.power(similarities, 4, dtype=float)
        np.fill_diagonal(W, 0)
        return np.maximum(W, W.T)

    def votes(
        self, new: Representation, kept: np.ndarray, n_jobs: int | None = None
    ) -> scipy.sparse.csr_array:
        """Return powers of similarities over the degrees of the kept samples.

        Without the degrees, large clusters would win by their size.
        """
        degrees = self.build(new.fitted or new, kept, n_jobs).sum(axis=0)
        scale = np.where(degrees > 0, 1 / np.where(degrees > 0, degrees, 1), 0)
        votes = self._powers(new, kept, n_jobs)
        votes.data *= scale[votes.indices]
        return votes

    def _powers(
        self, rows: Representation, kept: np.ndarray, n_jobs: int | None
    ) -> scipy.sparse.csr_array:
        """Return powers of similarities with the kept samples, zero for a sample with itself."""

        def of_tile(tile: np.ndarray, part: slice) -> np.ndarray:
            powers = np.where(kept, np.power(tile, 4, dtype=float), 0)
            own = rows.twins[part]
            powers[own >= 0, own[own >= 0]] = 0
            return powers

        similarity = rows.similarity
        weakest = similarity.weakest if isinstance(similarity, Shrunken) else similarity
        return stack_tiles(weakest, of_tile, n_jobs)


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

        def tile(size: np.ndarray, part: slice) -> np.ndarray:
            if self.scale_rows:
                largest = size.max(axis=1, keepdims=True, initial=0)
                size = size / np.where(largest > 0, largest, 1)
            return np.where(kept, size, 0)

        return stack_tiles(new.coefficients, tile, n_jobs)


def resolve(graph: Any) -> Graph:
    """Turn a name or an object into a Graph; the only place that reads these names.

    "auto" is `Nearest` where nothing is chosen from the data.

    >>> resolve("auto")
    Nearest(n_neighbors=5, tree=True)
    >>> resolve("published")
    Absolute(scale_rows=False)
    """
    names: dict[str, Graph] = {
        "auto": Nearest(),
        "nearest": Nearest(),
        "all pairs": AllPairs(),
        "published": Absolute(),
        "scaled": Absolute(scale_rows=True),
    }
    return check_choice("graph", graph, names, Graph)


def _clear(table: scipy.sparse.csr_array, rows: np.ndarray) -> None:
    """Empty some rows of a table in place."""
    if rows.any():
        table.data[np.repeat(rows, np.diff(table.indptr))] = 0
        table.eliminate_zeros()


def _table(near: Neighbours, n: int) -> scipy.sparse.csr_array:
    """Return the neighbours of each row as a sparse table."""
    index, value = near.index, near.value
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
