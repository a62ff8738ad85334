"""The model behind the estimators: samples, how they are explained, and how odd they are.

    read -> complete -> scale -> represent -> detect outliers

A method says how samples are represented (`_represent`, `_extend`); the rest is shared.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import check_random_state

from tubal import outliers as detectors
from tubal._threads import effective_jobs
from tubal.estimators.alike import first_of_each, least
from tubal.estimators.base import (
    Progress,
    TensorEstimator,
    on_cpu,
    with_transform_parameter,
)
from tubal.estimators.known import Known
from tubal.input import Samples, check_flag, check_share, namespace, to_numpy
from tubal.representation import Representation


def seed_from(random_state: Any) -> int:
    """Return the seed of the cut, one for all cuts of a fit."""
    return int(check_random_state(random_state).randint(2**31 - 1))


@with_transform_parameter
class TensorModel(TransformerMixin, TensorEstimator):  # type: ignore[misc]
    """Base of clusterers and detectors. Subclasses say how samples are represented.

    They have the parameters `outliers`, `contamination`, `completion`, `normalize`, `random_state`
    and `n_jobs`.
    """

    def _fit_model(
        self, samples: Samples, progress: Progress, n_clusters: int | None = None
    ) -> None:
        """Represent and score the samples of a fit."""
        for name in ("completion_", "selection_"):
            self.__dict__.pop(name, None)
        self._seed = seed_from(self._frozen.random_state)
        given = on_cpu(samples)
        self._observed, self._known = given.observed, Known.of(given)
        self._first = first_of_each(given)
        samples = self._complete(samples)
        scaled, sizes = self._scale(samples)
        with progress.stage("represent", steps=True) as step:
            self._choose(scaled, sizes, n_clusters)
            self._fitted = replace(self._represent(scaled, sizes, step), scale=sizes)
        with progress.stage("detect outliers"):
            detector = detectors.resolve(self._frozen.outliers, self._false_alarms)
            found = detector.detect(self._fitted, self._frozen.n_jobs)
            self._detection = replace(found, scores=least(found.scores, self._first))
        self.outlier_scores_ = self._detection.scores
        self.X_clean_ = self._restore(self._fitted.L, sizes)
        self._sizes = sizes

    @property
    def residuals_(self) -> np.ndarray:
        """What the model does not explain of the samples, entry by entry; NaN where missing."""
        self._check_fitted()
        left: np.ndarray = self._inputs() - self.X_clean_
        return left

    @property
    def _false_alarms(self) -> float:
        return getattr(self._frozen, "false_alarms", 0.01)

    def _inputs(self) -> np.ndarray:
        """Return the samples of the fit, to rounding, with NaN where an entry was missing."""
        values = self._restore(self._fitted.samples.values, self._sizes)
        if self._observed is None:
            return values
        return np.where(self._observed.reshape(values.shape), values, np.nan)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how normal samples are: the negative outlier score, high for normal ones.

        Samples of the fit have the score that they had there.
        """
        new, _ = self._code(X)
        return -self._scores(new)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return `score_samples` minus the threshold: negative for outliers.

        With an infinite threshold nothing is an outlier, and all get the largest number there is.
        """
        scores = self.score_samples(X)
        if np.isinf(self.threshold_):
            return np.full_like(scores, np.finfo(scores.dtype).max)
        return scores - self.offset_

    def transform(self, X: Any) -> np.ndarray:
        """Return samples as the fit explains them: without noise, missing entries filled.

        Samples of the fit become what they are in `X_clean_`. The others are explained by the
        solution; with `solver="published"`, which is not optimal, they may leave more over than
        the samples of the fit did.

        Parameters
        ----------
        X : array-like of shape (m, ...)
            New samples or those of the fit.

        Returns
        -------
        array in the shape of X
        """
        new, sizes = self._code(X)
        return self._restore(_old_where_known(new.twins, self._fitted.L, new.L), sizes)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the clean data `X_clean_`."""
        return self.fit(X).X_clean_

    def _scores(self, new: Representation) -> np.ndarray:
        scores = self._detection.scorer(new, self._frozen.n_jobs)
        return _old_where_known(new.twins, self.outlier_scores_, scores)

    @property
    def offset_(self) -> float:
        """Threshold on `score_samples`: samples below it are outliers."""
        return -self.threshold_

    def _choose(self, samples: Samples, sizes: np.ndarray, n_clusters: int | None) -> None:
        """Choose from the data what the user left open, before samples are represented."""

    @abstractmethod
    def _represent(self, samples: Samples, sizes: np.ndarray, step: Any) -> Representation:
        """Represent the samples of a fit, and keep what `_extend` needs."""

    @abstractmethod
    def _extend(self, samples: Samples, sizes: np.ndarray, twins: np.ndarray) -> Representation:
        """Represent further samples by those of the fit."""

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        effective_jobs(self.n_jobs)
        detectors.resolve(self.outliers)
        check_contamination(self.contamination)
        check_share("false_alarms", self._false_alarms)
        check_flag("normalize", self.normalize)
        _check_random_state(self.random_state)
        filler = self.completion
        object_ = hasattr(filler, "fit_transform") and not isinstance(filler, type)
        if not (filler is None or _is_tnn(filler) or object_):
            msg = f"completion must be None, 'tnn' or a transformer, got {filler!r}"
            raise ValueError(msg)

    def _complete(self, samples: Samples) -> Samples:
        """Fill missing entries first, when a method wants that."""
        filler = self._frozen.completion
        if filler is None or samples.observed is None:
            return samples
        from tubal.estimators.completer import TensorCompleter

        if _is_tnn(filler):
            transform = getattr(self._frozen, "transform", "dft")
            transform = "dft" if is_auto(transform) else transform
            filler = TensorCompleter(transform=transform, n_jobs=self._frozen.n_jobs)
        self.completion_ = clone(filler)
        return _filled(samples, self.completion_.fit_transform(with_holes(samples)))

    def _scale(self, samples: Samples, name: str = "X") -> tuple[Samples, np.ndarray]:
        """Bring samples to unit norm, when asked to; return their sizes too."""
        values, n = samples.values, samples.n_samples
        xp = namespace(values)
        if not self._frozen.normalize:  # a copy: what the caller does later is not our business
            return replace(samples, values=xp.asarray(values, copy=True)), np.ones(n)
        size = _norms(samples)
        if not bool(xp.all(xp.isfinite(size))):
            return self._scale_large(samples, name)
        unit = values / xp.reshape(size, (n,) + (1,) * (values.ndim - 1))
        return replace(samples, values=unit), to_numpy(size)

    def _scale_large(self, samples: Samples, name: str) -> tuple[Samples, np.ndarray]:
        """Bring samples to unit norm whose norms leave the range of single precision."""
        values = samples.values
        xp = namespace(values)
        if values.dtype == xp.float64:
            msg = (
                f"{name} has samples whose norm is above {np.finfo(float).max:.1e}, the largest "
                f"float64; entries are up to {float(xp.max(xp.abs(values))):.1e}: scale {name} down"
            )
            raise ValueError(msg)
        unit, sizes = self._scale(replace(samples, values=xp.astype(values, xp.float64)), name)
        return replace(unit, values=xp.astype(unit.values, values.dtype)), sizes

    def _restore(self, L: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Give recovered samples their size and the shape of the user's samples."""
        L = L.reshape(len(L), *self.sample_shape_)
        return L * sizes.reshape(-1, *(1,) * (L.ndim - 1))

    def _code(self, X: Any) -> tuple[Representation, np.ndarray]:
        """Represent samples by the fit; return their sizes too."""
        self._check_fitted()
        samples = on_cpu(self._read(X, reset=False))
        twins = self._known.find(samples, self._observed)
        if samples.observed is not None and hasattr(self, "completion_"):
            samples = _filled(samples, self.completion_.transform(with_holes(samples)))
        samples, sizes = self._scale(samples)
        sizes = _old_where_known(twins, self._sizes, sizes)  # as large as they were completed then
        new = self._extend(samples, sizes, twins)
        return replace(new, scale=sizes), sizes


def _norms(samples: Samples) -> Any:
    """Return the norms of samples as if missing entries were like the others; 1 for zero."""
    values, n = samples.values, samples.n_samples
    xp = namespace(values)
    flat = xp.reshape(values, (n, -1))
    largest = xp.max(xp.abs(flat), axis=1)
    largest = xp.where(largest > 0, largest, xp.ones_like(largest))
    energy = xp.mean((flat / largest[:, None]) ** 2, axis=1)
    if samples.observed is not None:
        seen = xp.reshape(samples.observed, (n, -1))
        energy = energy / xp.mean(xp.astype(seen, values.dtype), axis=1)
    with np.errstate(over="ignore"):
        size = largest * xp.sqrt(energy * flat.shape[1])
    return xp.where(size > 0, size, xp.ones_like(size))


def _old_where_known(twins: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the old row for a sample of the fit, else the new one."""
    known = (twins >= 0).reshape(-1, *(1,) * (new.ndim - 1))
    return np.where(known, old[twins], new)


def _filled(samples: Samples, values: Any) -> Samples:
    """Check what a completion returned."""
    values = np.asarray(values, dtype=to_numpy(samples.values).dtype)
    shape = samples.restore(to_numpy(samples.values)).shape
    if values.shape != shape or not np.isfinite(values).all():
        problem = f"shape {values.shape}" if values.shape != shape else "missing or infinite values"
        msg = f"completion must return finite values of shape {shape}, it returned {problem}"
        raise ValueError(msg)
    return Samples(values[..., None] if samples.table else values, None, samples.table)


def _check_random_state(random_state: Any) -> None:
    try:
        check_random_state(random_state)
    except ValueError:
        msg = f"random_state must be None, an integer or a RandomState, got {random_state!r}"
        raise ValueError(msg) from None
    if isinstance(random_state, (int, np.integer)) and not 0 <= random_state < 2**32:
        msg = f"random_state must be an integer from 0 to 2**32 - 1, got {random_state!r}"
        raise ValueError(msg)


def check_contamination(contamination: Any) -> float | None:
    """Return the share of outliers, None when the detector decides."""
    if isinstance(contamination, str) and contamination == "auto":
        return None
    number = isinstance(contamination, (int, float, np.integer, np.floating))
    if not number or isinstance(contamination, bool) or not 0 <= contamination <= 0.5:
        msg = f"contamination must be 'auto' or a number from 0 to 0.5, got {contamination!r}"
        raise ValueError(msg)
    return float(contamination)


def new_threshold(
    fitted: Any, threshold: Any, contamination: Any, of_share: Callable[[float | None], float]
) -> float:
    """Return the threshold that `relabel` was asked for, the present one when for nothing."""
    if threshold is not None and contamination is not None:
        msg = "give threshold or contamination to relabel, not both"
        raise ValueError(msg)
    if contamination is not None:
        return of_share(check_contamination(contamination))
    if threshold is None:
        return float(fitted.threshold_)
    try:
        value = float(threshold)
    except (TypeError, ValueError):
        value = np.nan
    if np.isnan(value) or isinstance(threshold, (bool, np.bool_, str)):
        msg = f"threshold must be a number (infinity flags nothing), got {threshold!r}"
        raise ValueError(msg)
    return value


def is_auto(value: Any) -> bool:
    """Return whether a choice is left to the data."""
    return isinstance(value, str) and value == "auto"


def _is_tnn(completion: Any) -> bool:
    return isinstance(completion, str) and completion == "tnn"


def with_holes(samples: Samples) -> Any:
    """Return samples with NaN where entries are missing, in the layout of the user."""
    if samples.observed is None:
        return samples.restore(samples.values)
    xp = namespace(samples.values)
    return samples.restore(xp.where(samples.observed, samples.values, xp.nan))
