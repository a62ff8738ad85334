"""The clusterer: from the model to labels, by a graph and a cut."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClusterMixin

from tubal import graph as graphs
from tubal import spectral
from tubal.estimators.alike import most_frequent
from tubal.estimators.base import fits
from tubal.estimators.model import TensorModel, check_contamination, is_auto, new_threshold
from tubal.input import check_flag
from tubal.outliers import contamination_threshold
from tubal.outliers.decisions import flagged_by_share
from tubal.representation import Representation


class SubspaceClusterer(ClusterMixin, TensorModel):  # type: ignore[misc]
    """Base of the clusterers: graph, cut and labels on top of the model.

    Subclasses have the further parameters `n_clusters`, `graph` and `partition`.
    """

    @fits
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find clusters and outliers, and recover clean data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n1), (n_samples, n1, n3) or with more trailing axes
            Samples first; NaN marks a missing entry.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        samples = self._read(X, reset=True)
        n_clusters = self._check_clusterer(samples.n_samples)
        with self._progress(stages=3) as progress:
            self._fit_model(samples, progress, n_clusters)
            with progress.stage("cluster"):
                share = check_contamination(self.contamination)
                self._label(n_clusters, self._threshold(share, n_clusters))
        self._fitted.release()
        return self

    def relabel(
        self,
        *,
        threshold: float | None = None,
        contamination: float | str | None = None,
        n_clusters: int | str | None = None,
        recut: bool = True,
    ) -> Self:
        """Decide again about outliers and clusters, without solving again.

        What is not given stays as it is; parameters that were set after the fit do not matter.

        By default the graph of the kept samples is built and cut again, so that clusters may
        change everywhere. With `recut=False` the clusters of the last cut stand: samples above the
        threshold become outliers, and one that is taken back joins the cluster for which the
        samples of that cut vote, as a new sample does in `predict`; when it is tied to none of
        them it stays an outlier. Only `labels_`, `outliers_` and `threshold_` change then, and the
        answer for a threshold does not depend on thresholds that were tried before.

        Parameters
        ----------
        threshold : float or None
            Samples with an outlier score above it are outliers.
        contamination : float in [0, 0.5], "auto" or None
            Share of outliers; "auto" asks the detector. Not together with `threshold`.
        n_clusters : int, "auto" or None
            "auto" estimates the number. None keeps the number that was asked for, and estimates
            again where none was. Only with `recut`.
        recut : bool
            Whether the clusters are found again.

        Returns
        -------
        self
        """
        self._check_fitted()
        check_flag("recut", recut)
        if not recut and n_clusters is not None:
            msg = f"n_clusters={n_clusters!r} needs recut=True: clusters stand without a cut"
            raise ValueError(msg)
        asked = self._n_clusters_given if n_clusters is None else n_clusters
        count = None if is_auto(asked) else _check_n_clusters(asked, len(self.outlier_scores_))
        value = new_threshold(
            self, threshold, contamination, lambda share: self._threshold(share, count)
        )
        if recut:
            self._label(count, value)
        else:
            self._flag(value)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Label new samples as the fit labelled its own; -1 marks outliers.

        A sample is explained by the model of the fit, scored by the detector of the fit, and gets
        the label for which the samples of the fit that it is tied to vote. A sample that is tied
        to none of them is labelled -1 too. Samples of the fit keep their labels.

        The answer continues the fit when that is optimal (`solver="certified"`). A published
        schedule stops before; then new samples may look odder than those of the fit.

        Parameters
        ----------
        X : array-like of shape (m, ...)
            Samples of the same shape; NaN marks a missing entry.

        Returns
        -------
        labels : int array of shape (m,)
        """
        labels, _ = self._vote(X)
        return labels

    def margins(self, X: Any = None) -> np.ndarray:
        """Return how clearly samples belong to their cluster rather than to the next one.

        Of all that ties a sample to samples of the fit, the share that goes to its own cluster,
        minus the share of the best other cluster: 1 when no other cluster matters, 0 on a border,
        below 0 when a sample of the fit is tied more to another cluster than to its own. Outliers
        have no cluster, so their margin is NaN.

        Parameters
        ----------
        X : array-like of shape (m, ...) or None
            Samples as in `predict`; None: those of the fit.

        Returns
        -------
        margins : array of shape (m,), from -1 to 1
        """
        if X is not None:
            _, margins = self._vote(X)
            return margins
        self._check_fitted()
        kept = ~self.outliers_
        share = (self.affinity_ @ self._members(kept, self.labels_)).toarray()
        back = kept & (share.max(axis=1, initial=0) <= 0)  # taken back after the cut: no edges
        if back.any():
            share[back] = self._shares(self._fitted, kept, self.labels_)[back]
        return margins_of(share, self.labels_)

    @property
    def nearest_cluster_(self) -> np.ndarray:
        """The cluster of each sample; for outliers the one that they would belong to."""
        return self._belonging()[0]

    @property
    def membership_(self) -> np.ndarray:
        """How much each sample belongs to its `nearest_cluster_`, from 0 to 1.

        The share of its ties that goes to that cluster, times the strength of all its ties over the
        median of the kept samples, where it is below.
        """
        return self._belonging()[1]

    def _belonging(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest cluster of each sample of the fit, and its membership."""
        self._check_fitted()
        kept = self._cut_labels >= 0
        share = self._shares(self._fitted, kept, self._cut_labels)
        self._fitted.release()
        nearest = np.where(self.labels_ >= 0, self.labels_, share.argmax(axis=1))
        total = share.sum(axis=1)
        usual = float(np.median(total[kept]))
        strength = np.minimum(total / usual, 1) if usual > 0 else np.zeros(len(total))
        own = share[np.arange(len(nearest)), nearest]
        return nearest, strength * own / np.where(total > 0, total, 1)

    def _vote(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return labels and margins of samples; those of the fit keep what they had there."""
        new, _ = self._code(X)
        share = self._shares(new, ~self.outliers_, self.labels_)
        labels = share.argmax(axis=1)
        labels[~(self._scores(new) <= self.threshold_) | (share.max(axis=1) <= 0)] = -1
        old = new.twins >= 0
        margins = np.where(old, self.margins()[new.twins], margins_of(share, labels))
        return np.where(old, self.labels_[new.twins], labels), margins

    def _shares(self, samples: Representation, kept: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how much the kept samples of each cluster vote for samples, a column a cluster."""
        votes = self._graph().votes(samples, kept, self._frozen.n_jobs)
        table: np.ndarray = (votes @ self._members(kept, labels)).toarray()
        return table

    def _members(self, kept: np.ndarray, labels: np.ndarray) -> scipy.sparse.csr_array:
        """Return which kept sample (row) belongs to which cluster (column)."""
        return scipy.sparse.csr_array(
            (np.ones(kept.sum()), (np.flatnonzero(kept), labels[kept])),
            shape=(len(kept), self.n_clusters_),
        )

    def _standing(self) -> np.ndarray:
        """Return the cluster of each sample by the last cut, whatever its score is.

        Outliers of the cut have the cluster that they join when they are taken back.
        """
        cut = self._cut_labels
        if (cut >= 0).all():
            return cut
        share = self._shares(self._fitted, cut >= 0, cut)
        joined = np.where(share.max(axis=1) > 0, share.argmax(axis=1), -1)
        return np.where(cut >= 0, cut, joined)

    def _flag(self, threshold: float) -> None:
        """Move the threshold and let the clusters stand."""
        labels = np.where(self.outlier_scores_ <= threshold, self._standing(), -1)
        self.threshold_, self.labels_, self.outliers_ = threshold, labels, labels == -1
        self.damaged_ = self._detection.is_damaged(self.outliers_)

    def _check_clusterer(self, n_samples: int) -> int | None:
        """Check what does not depend on the values of the data; return the number of clusters."""
        self._check_model()
        graphs.resolve(self.graph)
        spectral.resolve_cut(self.partition)
        n_clusters = _check_n_clusters(self.n_clusters, n_samples)
        share = check_contamination(self.contamination) or 0.0
        left = n_samples - flagged_by_share(n_samples, share)
        if left < (n_clusters or 1):
            msg = (
                f"contamination={share} of {n_samples} samples leaves {left}, fewer than "
                f"n_clusters={n_clusters}: lower one of them"
            )
            raise ValueError(msg)
        return n_clusters

    def _graph(self) -> graphs.Graph:
        """Return the graph that was asked for, or chosen."""
        chosen = self.__dict__.get("selection_")
        if chosen is not None and is_auto(self._frozen.graph):
            return chosen.graph
        return graphs.resolve(self._frozen.graph)

    def _threshold(self, share: float | None, n_clusters: int | None) -> float:
        """Return the threshold for a share of outliers, or the one of the detector.

        The detector leaves enough samples for so many clusters.
        """
        if share is not None:
            return contamination_threshold(self.outlier_scores_, share)
        smallest = float(np.sort(self.outlier_scores_)[(n_clusters or 1) - 1])
        return max(self._detection.threshold, smallest)

    def _label(self, n_clusters: int | None, threshold: float) -> None:
        """Set all that follows from the threshold and the number of clusters."""
        kept = self.outlier_scores_ <= threshold
        if kept.sum() < (n_clusters or 1):
            needed = "1" if n_clusters is None else f"n_clusters={n_clusters}"
            msg = (
                f"only {kept.sum()} of {len(kept)} samples are not outliers at this threshold, "
                f"fewer than {needed}: lower contamination or raise threshold"
            )
            raise ValueError(msg)
        W = self._graph().build(self._fitted, kept, self._frozen.n_jobs)
        cut = spectral.resolve_cut(self._frozen.partition)
        chosen = self.__dict__.get("selection_")
        count = chosen.count if chosen is not None and n_clusters is None else None
        k = n_clusters if count is None else min(count.n_clusters, int(kept.sum()))
        result = cut(W if kept.all() else W[kept][:, kept], k, self._seed)
        self.threshold_, self.outliers_, self.affinity_ = threshold, ~kept, W
        self.damaged_ = self._detection.is_damaged(~kept)
        self._n_clusters_given = n_clusters
        self.n_clusters_ = result.n_clusters
        self.n_clusters_confidence_ = (count or result).confidence
        self.n_clusters_candidates_ = (count or result).candidates
        self.eigenvalues_ = result.eigenvalues
        self.labels_ = np.full(len(kept), -1)
        self.labels_[kept] = most_frequent(result.labels, self._first[kept])
        self._cut_labels, self._cut_threshold = self.labels_.copy(), threshold
        self.embedding_ = np.full((len(kept), result.vectors.shape[1]), np.nan)
        self.embedding_[kept] = result.vectors


def margins_of(ties: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the share of the own cluster minus that of the best other one; NaN for label -1.

    Parameters
    ----------
    ties : array of shape (n, n_clusters)
        How much each sample is tied to each cluster.
    labels : int array of shape (n,)

    Examples
    --------
    >>> margins_of(np.array([[3.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), np.array([0, 1, -1]))
    array([0.5, 0. , nan])
    """
    total = ties.sum(axis=1, keepdims=True)
    share = ties / np.where(total > 0, total, 1)
    rows = np.arange(len(labels))
    own = share[rows, labels]
    share[rows, labels] = 0  # a single cluster has no other one: its share is 0
    return np.where(labels >= 0, own - share.max(axis=1), np.nan)


def _check_n_clusters(n_clusters: Any, n_samples: int) -> int | None:
    if n_clusters is None:
        return None
    integer = isinstance(n_clusters, (int, np.integer)) and not isinstance(n_clusters, bool)
    if not integer or not 1 <= n_clusters <= n_samples:
        msg = (
            f"n_clusters must be None or an integer from 1 to n_samples={n_samples}, "
            f"got {n_clusters!r}"
        )
        raise ValueError(msg)
    return int(n_clusters)
