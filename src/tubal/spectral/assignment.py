"""From eigenvectors to labels: one small object a method."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from tubal._threads import serial_blas
from tubal.input import check_choice, check_count, check_positive, check_positives
from tubal.spectral.affinity import check_affinity, is_sparse, modularity_of
from tubal.spectral.embedding import Embedding, embed, unit_rows
from tubal.spectral.moves import raise_modularity
from tubal.spectral.ward import nested_ward, ward


class Assignment(ABC):
    """A way from eigenvectors to labels."""

    name: str

    @abstractmethod
    def labels(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> np.ndarray:
        """Return a label from 0 to n_clusters - 1 for each vertex; some may be unused."""

    def candidates(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> list[np.ndarray]:
        """Return all labels that were found on the way, for a choice among them."""
        return [self.labels(embedding, n_clusters, affinity, random_state)]

    def n_vectors(self, n_clusters: int) -> int:
        """Return how many eigenvectors it likes to see."""
        return n_clusters


class _MostModular(Assignment):
    """Of all candidates the one with the largest modularity on the graph.

    A sum of squares knows only the embedding; the modularity asks the graph itself.
    """

    def labels(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> np.ndarray:
        """Return the best candidate."""
        W = check_affinity(affinity)
        found = self.candidates(embedding, n_clusters, W, random_state)
        if len(found) == 1:
            return found[0]
        return max(found, key=lambda labels: modularity_of(W, labels))


@dataclass(frozen=True)
class Discretise(Assignment):
    """The rotation of Yu and Shi (2003), as in the Ncut toolbox of Cour, Yu and Shi.

    With X the rows of `Embedding.cut_rows`, it looks for a rotation R that brings X close to the
    0-1 matrix Y of a partition, `min ||Y - X R||`, in turns:

        Y = largest entry of each row of X R,    R = V U^T  with  Y^T X = U S V^T,

    from an R whose columns are rows of X: a random one, then each time the row with the smallest
    sum of moduli of inner products with those before. It stops when Y stays.

    Differences from the toolbox: its offset of 0.5 belongs to `embed` and is 0 by default; weights
    below 1e-6 are kept; eigenvectors are computed to 1e-10 instead of 1e-6. Its signs and its
    column norm of sqrt(n) do not change anything here.

    Differences from `sklearn.cluster.spectral_clustering(assign_labels="discretize")`, which also
    has no offset: that function ignores the diagonal of W, warns about disconnected graphs and
    takes whatever basis of the eigenspace comes, starts again from another row when an SVD fails,
    and may leave clusters empty. The iteration is the same.

    Parameters
    ----------
    max_iter : int
        Most updates of the rotation, 20 in the toolbox.
    """

    name = "discretise"
    max_iter: int = 20

    def __post_init__(self) -> None:
        check_count("max_iter", self.max_iter)

    def labels(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> np.ndarray:
        """Return the partition nearest to a rotation of the eigenvectors."""
        X, rng = embedding.cut_rows(n_clusters), check_random_state(random_state)
        with serial_blas():
            labels = np.argmax(X @ self._start(X, rng), axis=1)
            for _ in range(self.max_iter):
                U, _, Vh = np.linalg.svd(cluster_sums(X, labels, n_clusters))
                previous, labels = labels, np.argmax(X @ (U @ Vh).T, axis=1)
                # The toolbox compares the objective, to machine precision: the same in effect.
                if np.array_equal(previous, labels):
                    break
        return labels

    def _start(self, X: np.ndarray, rng: Any) -> np.ndarray:
        seen = np.flatnonzero(X.any(axis=1))  # zero rows, possible with an offset, say nothing
        X = X[seen]
        R = X[[rng.randint(len(X))] * X.shape[1]].T
        overlap = np.zeros(len(X))
        for j in range(1, X.shape[1]):
            overlap += np.abs(X @ R[:, j - 1])
            R[:, j] = X[np.argmin(overlap)]
        return R


def cluster_sums(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return Y^T X: the sum of the rows of each cluster."""
    n = len(labels)
    Y = scipy.sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_clusters, n))
    return Y @ X


@dataclass(frozen=True)
class KMeansRows(Assignment):
    """K-means on the rows of the eigenvectors, scaled to unit norm (Ng, Jordan, Weiss 2001).

    Parameters
    ----------
    n_init : int
        Number of starts; the one with the smallest sum of squares is kept.
    """

    name = "kmeans"
    n_init: int = 10

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)

    def labels(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> np.ndarray:
        """Return the clusters of the rows."""
        rng = check_random_state(random_state)
        return _kmeans(embedding.rows(n_clusters), n_clusters, self.n_init, rng)


@dataclass(frozen=True)
class ModularityKMeans(_MostModular):
    """As `KMeansRows`, but of all starts the one with the largest modularity on the graph is kept.

    Parameters
    ----------
    n_init : int
        Number of starts.
    """

    name = "modularity"
    n_init: int = 10

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)

    def candidates(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> list[np.ndarray]:
        """Return the clusters of every start."""
        rng = check_random_state(random_state)
        X = embedding.rows(n_clusters)
        return [_kmeans(X, n_clusters, 1, rng) for _ in range(self.n_init)]


@dataclass(frozen=True)
class DiffusionWard(_MostModular):
    """Ward's clustering of where random walks lead, for several lengths of the walk.

    After t steps a walk on the graph forgets directions with small eigenvalues: coordinates are
    the eigenvectors times their eigenvalues to the power t, in rows of unit norm (diffusion maps,
    Coifman and Lafon 2006). More eigenvectors than clusters take part, since the eigenvalues
    themselves tell which of them matter; and Ward's method, unlike k-means, has no random start.
    Of the lengths the one with the largest modularity is kept.

    Parameters
    ----------
    times : tuple of float
        Lengths of the walk.
    spread : float
        Eigenvectors for each cluster.
    """

    name = "ward"
    times: tuple[float, ...] = (8, 12, 16)
    spread: float = 1.5

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_positives("times", self.times)

    def n_vectors(self, n_clusters: int) -> int:
        """Return how many eigenvectors it likes to see."""
        return max(n_clusters, int(self.spread * n_clusters))

    def candidates(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> list[np.ndarray]:
        """Return the clusters for every length."""
        W = check_affinity(affinity) if len(embedding.vectors) > MOST_PAIRWISE else None
        return [
            _ward(self._coordinates(embedding, n_clusters, time), n_clusters, W)
            for time in self.times
        ]

    def nested(self, affinity: Any, numbers: Sequence[int], random_state: Any) -> list[np.ndarray]:
        """Return partitions for several numbers of clusters, after the first length of the walk.

        Numbers between two powers of two share coordinates and a tree.
        """
        W = check_affinity(affinity)
        most = min(self.n_vectors(max(numbers)), W.shape[0])
        embedding, found = embed(W, most, random_state=random_state), []
        octave = [(number - 1).bit_length() for number in numbers]
        for power in sorted(set(octave)):
            some = [k for k, own in zip(numbers, octave, strict=True) if own == power]
            X = self._coordinates(embedding, 2**power, self.times[0])
            found += nested_ward(X, some)
        return found

    def _coordinates(self, embedding: Embedding, n_clusters: int, time: float) -> np.ndarray:
        count = min(self.n_vectors(n_clusters), embedding.vectors.shape[1])
        values = np.clip(embedding.values[:count], 0, 1)
        return unit_rows(embedding.vectors[:, :count] * values**time)


@dataclass(frozen=True)
class Best(_MostModular):
    """What several assignments propose, and of it the partition with the largest modularity.

    In dense graphs, where every vertex is tied to every cluster, modularity prefers clusters of
    equal size; there it is `KMeansRows`.

    Parameters
    ----------
    assignments : tuple of Assignment
    moves : int
        In so many of the proposals, the most modular ones, single vertices move while that raises
        the modularity (see `tubal.spectral.moves`), before the best one is taken.
    """

    name = "best"
    assignments: tuple[Assignment, ...] = (ModularityKMeans(4), DiffusionWard((8, 16)))
    moves: int = 6

    def __post_init__(self) -> None:
        if self.moves != 0 or isinstance(self.moves, bool):
            check_count("moves", self.moves)
        given = self.assignments
        listed = isinstance(given, (tuple, list)) and len(given) > 0
        if not listed or not all(isinstance(assign, Assignment) for assign in given):
            msg = f"assignments must be a tuple of at least one Assignment, got {given!r}"
            raise ValueError(msg)

    def labels(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> np.ndarray:
        """Return the best candidate, after the moves."""
        W = check_affinity(affinity)
        if not is_sparse(W):
            return KMeansRows().labels(embedding, n_clusters, W, random_state)
        found = _most_modular_first(W, self.candidates(embedding, n_clusters, W, random_state))
        moved = [raise_modularity(W, labels) for labels in found[: self.moves]]
        return _most_modular_first(W, moved or found)[0]

    def n_vectors(self, n_clusters: int) -> int:
        """Return how many eigenvectors they like to see."""
        return max(assign.n_vectors(n_clusters) for assign in self.assignments)

    def candidates(
        self, embedding: Embedding, n_clusters: int, affinity: Any, random_state: Any = None
    ) -> list[np.ndarray]:
        """Return all that they propose."""
        rng = check_random_state(random_state)
        return [
            labels
            for assign in self.assignments
            for labels in assign.candidates(embedding, n_clusters, affinity, rng)
        ]


def _most_modular_first(W: Any, found: list[np.ndarray]) -> list[np.ndarray]:
    return sorted(found, key=lambda labels: -modularity_of(W, labels))


MOST_PAIRWISE = 5000
"""Up to this many samples Ward's method may merge any two clusters, beyond only tied ones."""


def _ward(X: np.ndarray, n_clusters: int, connectivity: Any = None) -> np.ndarray:
    if connectivity is None:
        return ward(X, n_clusters)
    tied = AgglomerativeClustering(n_clusters, connectivity=connectivity)
    with warnings.catch_warnings():
        # A graph in pieces is completed by scikit-learn, which is what is wanted here.
        warnings.filterwarnings("ignore", message="the number of connected components")
        return tied.fit(X).labels_.astype(int)


def _kmeans(X: np.ndarray, n_clusters: int, n_init: int, rng: Any) -> np.ndarray:
    # Fewer distinct rows than clusters, of which KMeans would warn: `partition` fills the empty
    # ones. (Filters of warnings belong to all threads; this one may be one of several.)
    largest = np.abs(X).max() or 1.0
    rows, of_row = np.unique((X / largest).round(9), axis=0, return_inverse=True)
    if len(rows) <= n_clusters:
        return of_row.reshape(-1)
    means = KMeans(n_clusters, n_init=n_init, random_state=rng)
    # With one thread of BLAS and OpenMP the labels do not depend on the number of threads.
    with serial_blas(), _openmp().limit(limits=1):
        return means.fit(X).labels_.astype(int)


@functools.cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


NAMES: dict[str, Assignment] = {
    kind.name: kind() for kind in (Discretise, KMeansRows, ModularityKMeans, DiffusionWard, Best)
}


def resolve(assign: Any) -> Assignment:
    """Turn a name or an object into an Assignment; the only place that reads these names.

    >>> resolve("kmeans")
    KMeansRows(n_init=10)
    """
    return check_choice("assign", assign, NAMES, Assignment)
