"""The model as an outlier detector of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from tubal.estimators.base import fits
from tubal.estimators.lowrank import LowRankModel
from tubal.estimators.model import check_contamination, new_threshold
from tubal.outliers import contamination_threshold
from tubal.solvers import Check


class TensorOutlierDetector(OutlierMixin, LowRankModel):  # type: ignore[misc]
    """Finds outliers among multiway samples: the model of `ORTLRR` without the clusters.

    Without clusters there is nothing to choose a transform and a level by: the DFT and
    `Lambda.auto()` are the defaults.

    Parameters
    ----------
    transform, lam, dictionary, solver, outliers, tol, max_iter, callback, normalize, completion
        As in `ORTLRR`.
    contamination : "auto" or float in [0, 0.5]
        Share of samples to flag; "auto" leaves it to the detector.
    false_alarms : float
        Share of the inliers that may be flagged when `contamination` is "auto".
    random_state : int, RandomState or None
        Not used by the detectors of this package; for those of others.
    n_jobs : int or None

    Attributes
    ----------
    outliers_ : bool array of shape (n_samples,)
    outlier_scores_ : array of shape (n_samples,)
        High for outliers.
    threshold_, offset_ : float
        Samples with an outlier score above `threshold_` are outliers; `offset_` is its negative.
    X_clean_, solution_, certificate_, lam_, n_iter_, n_features_in_, sample_shape_
        As in `ORTLRR`.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(30, 10, 4, 3, 40, outliers=0.15, random_state=0)
    >>> found = TensorOutlierDetector().fit_predict(data.X)
    >>> bool(np.array_equal(found == -1, data.outliers))
    True
    """

    def __init__(
        self,
        *,
        transform: Any = "dft",
        lam: Any = "auto",
        dictionary: Any = "data",
        solver: Any = "certified",
        outliers: Any = "auto",
        contamination: float | str = "auto",
        false_alarms: float = 0.01,
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float | None = 1e-4,
        max_iter: int | None = None,
        callback: Callable[[Check], Any] | None = None,
        normalize: bool = True,
        completion: Any = None,
    ) -> None:
        self.transform = transform  # type: ignore[method-assign]
        self.lam = lam
        self.dictionary = dictionary
        self.solver = solver
        self.outliers = outliers
        self.contamination = contamination
        self.false_alarms = false_alarms
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.normalize = normalize
        self.completion = completion

    @fits
    def fit(self, X: Any, y: Any = None) -> Self:
        """Score the samples and decide which are outliers.

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
        self._check_model()
        with self._progress(stages=2) as progress:
            self._fit_model(samples, progress)
        self._decide(self._threshold(check_contamination(self.contamination)))
        return self

    def relabel(
        self, *, threshold: float | None = None, contamination: float | str | None = None
    ) -> Self:
        """Decide again about outliers, without solving again.

        Parameters
        ----------
        threshold : float or None
            Samples with an outlier score above it are outliers.
        contamination : float in [0, 0.5], "auto" or None
            Share of outliers; "auto" asks the detector. Not together with `threshold`.

        Returns
        -------
        self
        """
        self._check_fitted()
        self._decide(new_threshold(self, threshold, contamination, self._threshold))
        return self

    def _threshold(self, share: float | None) -> float:
        if share is None:
            return self._detection.threshold
        return contamination_threshold(self.outlier_scores_, share)

    def _decide(self, threshold: float) -> None:
        self.threshold_, self.outliers_ = threshold, ~(self.outlier_scores_ <= threshold)
        self.damaged_ = self._detection.is_damaged(self.outliers_)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> np.ndarray:
        """Fit, and return -1 for outliers and +1 for the other samples."""
        return np.where(self.fit(X).outliers_, -1, 1)

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for outliers and +1 for the other samples."""
        return np.where(-self.score_samples(X) <= self.threshold_, 1, -1)
