"""The whole way from a graph to labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tubal.input import check_choice, check_positive
from tubal.spectral.affinity import check_affinity, check_count
from tubal.spectral.assignment import (
    Assignment,
    Best,
    Discretise,
    cluster_sums,
    resolve,
)
from tubal.spectral.count import estimate_n_clusters
from tubal.spectral.embedding import Embedding, embed


def ncut(
    affinity: Any,
    n_clusters: int,
    *,
    assign: Any = "best",
    offset: float = 0.0,
    random_state: Any = None,
) -> np.ndarray:
    """Cut a graph into clusters.

    Parameters
    ----------
    affinity : array or sparse array of shape (n, n)
    n_clusters : int
        From 1 to n.
    assign : str or Assignment
        "best" (`Best`), "modularity" (`ModularityKMeans`), "ward" (`DiffusionWard`), "kmeans"
        (`KMeansRows`), "discretise" (`Discretise`) or such an object.
    offset : float
        See `embed`.
    random_state : int, RandomState or None
        An int gives the same labels in every call.

    Returns
    -------
    labels : int array of shape (n,)
        As `partition` returns them.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3))) + 0.01
    >>> ncut(W, 2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    W = check_affinity(affinity)
    k = check_count("n_clusters", n_clusters, W.shape[0])
    return Cut(resolve(assign), offset)(W, k, random_state).labels


def partition(
    embedding: Embedding,
    n_clusters: int,
    affinity: Any,
    *,
    assign: Any = "best",
    random_state: Any = None,
) -> np.ndarray:
    """Cut a graph whose embedding is known, as from `estimate_n_clusters`.

    Returns
    -------
    labels : int array of shape (n,)
        Numbered from 0 in the order of the first vertex of each cluster. No cluster is empty: the
        vertex farthest from the mean of its cluster fills one that an assignment left empty.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3))) + 0.01
    >>> count = estimate_n_clusters(W)
    >>> partition(count.embedding, count.n_clusters, W, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    n = len(embedding.vectors)
    k = check_count("n_clusters", n_clusters, n)
    if k in (1, n):
        return np.arange(n) if k == n else np.zeros(n, dtype=int)
    labels = resolve(assign).labels(embedding, k, affinity, random_state)
    return _by_appearance(_without_empty(labels, embedding.rows(k), k))


def _without_empty(labels: np.ndarray, X: np.ndarray, k: int) -> np.ndarray:
    """Move the vertex farthest from the mean of its cluster to each empty cluster."""
    labels = labels.copy()
    for empty in np.flatnonzero(np.bincount(labels, minlength=k) == 0):
        sizes = np.bincount(labels, minlength=k)
        means = cluster_sums(X, labels, k) / np.maximum(sizes, 1)[:, None]
        distance = np.linalg.norm(X - means[labels], axis=1)
        labels[np.argmax(np.where(sizes[labels] > 1, distance, -1.0))] = empty
    return labels


def _by_appearance(labels: np.ndarray) -> np.ndarray:
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


@dataclass(frozen=True, eq=False)
class Clusters:
    """What a `Cut` found.

    Attributes
    ----------
    labels : int array of shape (n,)
        As `partition` returns them.
    n_clusters : int
    confidence : float
        1 for a given number of clusters, else that of `ClusterCount`.
    eigenvalues : array
        Smallest eigenvalues of the normalised Laplacian, ascending: as many as there are clusters
        when their number was given, else those of `ClusterCount`.
    vectors : array of shape (n, n_clusters)
        The eigenvectors that the labels come from.
    candidates : dict of int to float
        Plausible numbers of clusters and their support; the given one alone has all of it.
    """

    labels: np.ndarray = field(repr=False)
    n_clusters: int
    confidence: float
    eigenvalues: np.ndarray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    candidates: dict[int, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Cut:
    """A rule from a graph to clusters, their number given or not.

    Parameters
    ----------
    assign : Assignment
    offset : float
        See `embed`. The number of clusters is always estimated without it.

    Examples
    --------
    >>> W = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    >>> clusters = Cut()(W, random_state=0)
    >>> clusters.n_clusters, round(clusters.confidence, 1)
    (3, 0.9)
    >>> clusters.labels
    array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """

    assign: Assignment = field(default_factory=Best)
    offset: float = 0.0

    def __post_init__(self) -> None:
        assign: Any = self.assign
        if not isinstance(assign, Assignment):
            msg = f"assign must be an Assignment, got {self.assign!r}"
            raise ValueError(msg)
        check_positive("offset", self.offset, zero=True)

    def __call__(
        self, affinity: Any, n_clusters: int | None = None, random_state: Any = None
    ) -> Clusters:
        """Cut the graph."""
        W = check_affinity(affinity)
        rng = check_random_state(random_state)
        k, confidence, embedding, mu = n_clusters, 1.0, None, None
        candidates = {} if k is None else {k: 1.0}
        if k is None:
            count = estimate_n_clusters(W, random_state=rng)
            k, confidence, mu = count.n_clusters, count.confidence, count.eigenvalues
            embedding = count.embedding if self.offset == 0 else None
            candidates = count.candidates
        k = check_count("n_clusters", k, W.shape[0])
        if embedding is None:
            most = min(self.assign.n_vectors(k), W.shape[0])
            embedding = embed(W, most, offset=self.offset, random_state=rng)
        mu = 1 - embedding.values[:k] if mu is None else mu
        labels = partition(embedding, k, W, assign=self.assign, random_state=rng)
        return Clusters(labels, k, confidence, mu, embedding.vectors[:, :k], candidates)


CUTS = {"auto": Cut(), "published": Cut(Discretise())}


def resolve_cut(cut: Any) -> Cut:
    """Turn a name or an object into a Cut; the only place that reads these names.

    "auto" is `Cut()`; "published" is the discretisation of the Ncut toolbox, without the offset of
    0.5 that the toolbox adds: that has the unit of the affinity, and the affinity of the paper,
    whose degrees are far below one, would vanish beside it (OR-TLRR-DFT on ORL with 100 outliers,
    one draw: accuracy .16 with the offset, .545 without, .592 in the paper).

    >>> resolve_cut("published")
    Cut(assign=Discretise(max_iter=20), offset=0.0)
    """
    return check_choice("partition", cut, CUTS, Cut)
