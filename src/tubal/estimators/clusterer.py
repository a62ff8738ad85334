"""The clusterer: from the model to labels, by a graph and a cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClusterMixin

from tubal import graph as graphs
from tubal import spectral
from tubal.estimators.base import reports_progress
from tubal.estimators.model import TensorModel, check_contamination
from tubal.outliers import contamination_threshold


@dataclass(frozen=True, eq=False)
class Plan:
    """The parameters of a fit, checked and resolved before any work starts."""

    graph: graphs.Graph
    cut: spectral.Cut
    contamination: float | None
    n_clusters: int | None


class SubspaceClusterer(ClusterMixin, TensorModel):  # type: ignore[misc]
    """Base of the clusterers: graph, cut and labels on top of the model.

    Subclasses have the further parameters `n_clusters`, `graph` and `partition`.
    """

    @reports_progress
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
        plan = self._check_parameters(samples.n_samples)
        with self._progress(stages=3) as progress:
            self._fit_model(samples, progress)
            with progress.stage("cluster"):
                self._label(plan, self._threshold(plan))
        return self

    def relabel(
        self,
        *,
        threshold: float | None = None,
        contamination: float | str | None = None,
        n_clusters: int | None = None,
    ) -> Self:
        """Decide again about outliers and clusters, without solving again.

        Parameters
        ----------
        threshold : float or None
            Samples with an outlier score above it are outliers.
        contamination : float in [0, 0.5], "auto" or None
            Share of outliers; "auto" asks the detector. Not together with `threshold`.
        n_clusters : int or None

        What is not given stays as it is: the present threshold, and the present number of clusters
        if that was given at the fit (an estimated one is estimated again).

        Returns
        -------
        self
        """
        self._check_fitted()
        if threshold is not None and contamination is not None:
            msg = "give threshold or contamination to relabel, not both"
            raise ValueError(msg)
        plan = self._check_parameters(len(self.outlier_scores_))
        if n_clusters is None and self._asked is not None:
            n_clusters = self._asked
        plan = replace(plan, n_clusters=_check_n_clusters(n_clusters, len(self.outlier_scores_)))
        if threshold is not None:
            value = _check_threshold(threshold)
        elif contamination is not None:
            plan = replace(plan, contamination=check_contamination(contamination))
            value = self._threshold(plan)
        else:
            value = self.threshold_
        self._label(plan, value)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Label new samples as the fit labelled its own; -1 marks outliers.

        A sample is coded by the model of the fit, scored by the detector of the fit, and gets the
        label for which the samples of the fit that it is tied to vote. A sample that is tied to
        none of them is labelled -1 too.

        Parameters
        ----------
        X : array-like of shape (m, ...)
            Samples of the same shape; NaN marks a missing entry.

        Returns
        -------
        labels : int array of shape (m,)
        """
        new, _ = self._code(X)
        kept = ~self.outliers_
        votes = graphs.resolve(self.graph).votes(new, kept, self.n_jobs)
        members = scipy.sparse.csr_array(
            (np.ones(kept.sum()), (np.flatnonzero(kept), self.labels_[kept])),
            shape=(len(kept), self.n_clusters_),
        )
        share = (votes @ members).toarray()
        labels = share.argmax(axis=1)
        scores = self._detection.scorer(new, self.n_jobs)
        labels[(scores > self.threshold_) | (share.max(axis=1) <= 0)] = -1
        return labels

    def _check_parameters(self, n_samples: int) -> Plan:
        """Check what does not depend on the values of the data."""
        self._check_model()
        return Plan(
            graphs.resolve(self.graph),
            spectral.resolve_cut(self.partition),
            check_contamination(self.contamination),
            _check_n_clusters(self.n_clusters, n_samples),
        )

    def _threshold(self, plan: Plan) -> float:
        """Return the threshold that contamination or the detector asks for."""
        if plan.contamination is not None:
            return contamination_threshold(self.outlier_scores_, plan.contamination)
        least = plan.n_clusters or 1  # a decision by itself leaves enough samples to cluster
        smallest = float(np.sort(self.outlier_scores_)[least - 1])
        return max(self._detection.threshold, smallest)

    def _label(self, plan: Plan, threshold: float) -> None:
        """Set all that follows from the threshold."""
        outliers = self.outlier_scores_ > threshold
        kept = ~outliers
        if kept.sum() < max(plan.n_clusters or 1, 1):
            msg = (
                f"only {kept.sum()} of {len(kept)} samples are not outliers at this threshold, "
                f"fewer than n_clusters={plan.n_clusters}: lower contamination or raise threshold"
            )
            raise ValueError(msg)
        affinity = plan.graph.build(self._fitted, kept, self.n_jobs)
        result = plan.cut(affinity[kept][:, kept], plan.n_clusters, self._seed)
        self.threshold_, self.outliers_, self.affinity_ = threshold, outliers, affinity
        self._asked = plan.n_clusters
        self.n_clusters_ = result.n_clusters
        self.n_clusters_confidence_ = result.confidence
        self.eigenvalues_ = result.eigenvalues
        self.labels_ = np.full(len(kept), -1)
        self.labels_[kept] = result.labels
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


def _check_threshold(threshold: Any) -> float:
    try:
        value = float(threshold)
    except (TypeError, ValueError):
        value = np.nan
    if np.isnan(value) or isinstance(threshold, (bool, str)):
        msg = f"threshold must be a number, got {threshold!r}"
        raise ValueError(msg)
    return value
