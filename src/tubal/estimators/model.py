"""The model behind the estimators: samples, how they are explained, and how odd they are.

    read -> complete -> scale -> represent -> detect outliers

A method says how samples are represented (`_represent`, `_extend`); the rest is shared.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_random_state

from tubal import outliers as detectors
from tubal._threads import effective_jobs, spans
from tubal.estimators.base import (
    Progress,
    TensorEstimator,
    on_cpu,
    with_transform_parameter,
)
from tubal.input import Samples, namespace, to_numpy
from tubal.representation import Representation


@with_transform_parameter
class TensorModel(OneToOneFeatureMixin, TransformerMixin, TensorEstimator):  # type: ignore[misc]
    """Base of clusterers and detectors. Subclasses say how samples are represented.

    They have the parameters `outliers`, `contamination`, `completion`, `normalize`, `random_state`
    and `n_jobs`.
    """

    def _fit_model(self, samples: Samples, progress: Progress) -> None:
        """Represent and score the samples of a fit."""
        detector = detectors.resolve(self.outliers)
        samples = self._complete(samples)
        scaled, sizes = self._scale(samples)
        with progress.stage("represent", steps=True) as step:
            self._fitted = self._represent(scaled, step)
        with progress.stage("detect outliers"):
            self._detection = detector.detect(self._fitted, self.n_jobs)
        self.outlier_scores_ = self._detection.scores
        self.X_clean_ = self._restore(self._fitted.L, sizes)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how normal samples are: the negative outlier score, high for normal ones."""
        new, _ = self._code(X)
        return -self._detection.scorer(new, self.n_jobs)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return `score_samples` minus the threshold: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def transform(self, X: Any) -> np.ndarray:
        """Return samples as the fit explains them: without noise, missing entries filled.

        Parameters
        ----------
        X : array-like of shape (m, ...)
            New samples or those of the fit.

        Returns
        -------
        array in the shape of X
        """
        new, sizes = self._code(X)
        return self._restore(new.L, sizes)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the clean data `X_clean_`."""
        return self.fit(X).X_clean_

    @property
    def offset_(self) -> float:
        """Threshold on `score_samples`: samples below it are outliers."""
        return -self.threshold_

    @abstractmethod
    def _represent(self, samples: Samples, step: Any) -> Representation:
        """Represent the samples of a fit, and keep what `_extend` needs."""

    @abstractmethod
    def _extend(self, samples: Samples, twins: np.ndarray) -> Representation:
        """Represent further samples by those of the fit."""

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        effective_jobs(self.n_jobs)
        detectors.resolve(self.outliers)
        check_contamination(self.contamination)
        if not isinstance(self.normalize, (bool, np.bool_)):
            msg = f"normalize must be True or False, got {self.normalize!r}"
            raise ValueError(msg)
        named = self.completion is None or _is_tnn(self.completion)
        if not (named or hasattr(self.completion, "fit_transform")):
            msg = f"completion must be None, 'tnn' or a transformer, got {self.completion!r}"
            raise ValueError(msg)

    def _complete(self, samples: Samples) -> Samples:
        """Fill missing entries first, when a method wants that."""
        if self.completion is None or samples.observed is None:
            return samples
        from tubal.estimators.completer import TensorCompleter

        filler = self.completion
        if _is_tnn(filler):
            transform = self.__dict__.get("transform", "dft")
            filler = TensorCompleter(transform=transform, n_jobs=self.n_jobs)
        self.completion_ = clone(filler)
        values = self.completion_.fit_transform(with_holes(samples))
        return Samples(values[..., None] if samples.table else values, None, samples.table)

    def _scale(self, samples: Samples) -> tuple[Samples, np.ndarray]:
        """Bring samples to unit norm, when asked to; return their sizes too."""
        values, n = samples.values, samples.n_samples
        if not self.normalize:
            return samples, np.ones(n)
        xp = namespace(values)
        flat = xp.reshape(values, (n, -1))
        largest = xp.max(xp.abs(flat), axis=1)
        largest = xp.where(largest > 0, largest, xp.ones_like(largest))
        energy = xp.mean((flat / largest[:, None]) ** 2, axis=1)
        if samples.observed is not None:  # as if the missing entries were like the others
            seen = xp.reshape(samples.observed, (n, -1))
            energy = energy / xp.mean(xp.astype(seen, values.dtype), axis=1)
        size = largest * xp.sqrt(energy * flat.shape[1])
        size = xp.where(size > 0, size, xp.ones_like(size))
        unit = values / xp.reshape(size, (n,) + (1,) * (values.ndim - 1))
        return replace(samples, values=unit), to_numpy(size)

    def _restore(self, L: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Give recovered samples their size and the shape of the user's samples."""
        L = L.reshape(len(L), *self.sample_shape_)
        return L * sizes.reshape(-1, *(1,) * (L.ndim - 1))

    def _code(self, X: Any) -> tuple[Representation, np.ndarray]:
        """Represent samples by the fit; return their sizes too."""
        self._check_fitted()
        samples, sizes = self._scale(on_cpu(self._read(X, reset=False)))
        return self._extend(samples, find_twins(samples, self._fitted.samples)), sizes


def find_twins(samples: Samples, fitted: Samples) -> np.ndarray:
    """Return for each sample the sample of the fit that is the same (to 1e-6), else -1.

    A sample of the fit helps to represent itself, so that its own row has to be left out when it
    comes back as a new one.
    """
    new, old = (data.values.reshape(data.n_samples, -1) for data in (samples, fitted))
    sizes = [np.linalg.norm(x, axis=1) for x in (new, old)]
    unit = [
        x / np.where(size > 0, size, 1)[:, None] for x, size in zip((new, old), sizes, strict=True)
    ]
    twins = np.empty(len(new), dtype=int)
    for part in spans(len(new), -(-len(new) // 1024)):
        twins[part] = (unit[0][part] @ unit[1].T).argmax(axis=1)
    same = np.linalg.norm(new - old[twins], axis=1) <= 1e-6 * sizes[0]
    seen = [
        np.ones(x.shape, bool) if data.observed is None else data.observed.reshape(x.shape)
        for data, x in ((samples, new), (fitted, old))
    ]
    same &= (seen[0] == seen[1][twins]).all(axis=1)
    return np.where(same, twins, -1)


def check_contamination(contamination: Any) -> float | None:
    """Return the share of outliers, None when the detector decides."""
    if isinstance(contamination, str) and contamination == "auto":
        return None
    number = isinstance(contamination, (int, float, np.integer, np.floating))
    if not number or isinstance(contamination, bool) or not 0 <= contamination <= 0.5:
        msg = f"contamination must be 'auto' or a number from 0 to 0.5, got {contamination!r}"
        raise ValueError(msg)
    return float(contamination)


def _is_tnn(completion: Any) -> bool:
    return isinstance(completion, str) and completion == "tnn"


def with_holes(samples: Samples) -> Any:
    """Return samples with NaN where entries are missing, in the layout of the user."""
    if samples.observed is None:
        return samples.restore(samples.values)
    xp = namespace(samples.values)
    return samples.restore(xp.where(samples.observed, samples.values, xp.nan))
