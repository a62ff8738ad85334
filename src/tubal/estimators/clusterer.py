"""The clusterer: from the model to labels, by a graph and a cut."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClusterMixin

from tubal import graph as graphs
from tubal import spectral
from tubal.estimators.base import fits
from tubal.estimators.model import TensorModel, check_contamination, new_threshold
from tubal.input import check_flag
from tubal.outliers import contamination_threshold
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
            self._fit_model(samples, progress)
            with progress.stage("cluster"):
                share = check_contamination(self.contamination)
                self._label(n_clusters, self._threshold(share))
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
        value = new_threshold(self, threshold, contamination, self._threshold)
        if not recut:
            if n_clusters is not None:
                msg = f"n_clusters={n_clusters!r} needs recut=True: clusters stand without a cut"
                raise ValueError(msg)
            self._flag(value)
            return self
        if isinstance(n_clusters, str) and n_clusters == "auto":
            count = None
        else:
            count = self._n_clusters_given if n_clusters is None else n_clusters
        self._label(_check_n_clusters(count, len(self.outlier_scores_)), value)
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
        new, _ = self._code(X)
        labels = self._elect(new, self.labels_)
        labels[self._scores(new) > self.threshold_] = -1
        return np.where(new.twins >= 0, self.labels_[new.twins], labels)

    def _elect(self, samples: Representation, labels: np.ndarray) -> np.ndarray:
        """Return the label for which the labelled samples of the fit vote; -1 without a vote."""
        kept = labels >= 0
        votes = graphs.resolve(self._frozen.graph).votes(samples, kept, self._frozen.n_jobs)
        members = scipy.sparse.csr_array(
            (np.ones(kept.sum()), (np.flatnonzero(kept), labels[kept])),
            shape=(len(kept), self.n_clusters_),
        )
        share = (votes @ members).toarray()
        return np.where(share.max(axis=1) > 0, share.argmax(axis=1), -1)

    def _standing(self) -> np.ndarray:
        """Return the cluster of each sample by the last cut, whatever its score is.

        Outliers of the cut have the cluster that they join when they are taken back.
        """
        cut = self._cut_labels
        return cut if (cut >= 0).all() else np.where(cut >= 0, cut, self._elect(self._fitted, cut))

    def _flag(self, threshold: float) -> None:
        """Move the threshold and let the clusters stand."""
        labels = np.where(self.outlier_scores_ > threshold, -1, self._standing())
        self.threshold_, self.labels_, self.outliers_ = threshold, labels, labels == -1

    def _check_clusterer(self, n_samples: int) -> int | None:
        """Check what does not depend on the values of the data; return the number of clusters."""
        self._check_model()
        graphs.resolve(self.graph)
        spectral.resolve_cut(self.partition)
        n_clusters = _check_n_clusters(self.n_clusters, n_samples)
        share = check_contamination(self.contamination) or 0.0
        left = n_samples - int(share * n_samples)
        if left < (n_clusters or 1):
            msg = (
                f"contamination={share} of {n_samples} samples leaves {left}, fewer than "
                f"n_clusters={n_clusters}: lower one of them"
            )
            raise ValueError(msg)
        return n_clusters

    def _threshold(self, share: float | None) -> float:
        """Return the threshold for a share of outliers, or the one of the detector."""
        if share is not None:
            return contamination_threshold(self.outlier_scores_, share)
        least = self._frozen.n_clusters or 1  # the detector leaves enough samples to cluster
        smallest = float(np.sort(self.outlier_scores_)[least - 1])
        return max(self._detection.threshold, smallest)

    def _label(self, n_clusters: int | None, threshold: float) -> None:
        """Set all that follows from the threshold and the number of clusters."""
        outliers = self.outlier_scores_ > threshold
        kept = ~outliers
        if kept.sum() < (n_clusters or 1):
            msg = (
                f"only {kept.sum()} of {len(kept)} samples are not outliers at this threshold, "
                f"fewer than n_clusters={n_clusters}: lower contamination or raise threshold"
            )
            raise ValueError(msg)
        graph, cut = graphs.resolve(self._frozen.graph), self._frozen.partition
        affinity = graph.build(self._fitted, kept, self._frozen.n_jobs)
        result = spectral.resolve_cut(cut)(affinity[kept][:, kept], n_clusters, self._seed)
        self.threshold_, self.outliers_, self.affinity_ = threshold, outliers, affinity
        self._n_clusters_given = n_clusters
        self.n_clusters_ = result.n_clusters
        self.n_clusters_confidence_ = result.confidence
        self.eigenvalues_ = result.eigenvalues
        self.labels_ = np.full(len(kept), -1)
        self.labels_[kept] = result.labels
        self._cut_labels, self._cut_threshold = self.labels_.copy(), threshold
        self.embedding_ = np.full((len(kept), result.vectors.shape[1]), np.nan)
        self.embedding_[kept] = result.vectors


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
