"""From a representation to an outlier score for each sample, and from scores to a decision.

A detector is a small object: `detect` looks at a fit and returns a `Detection`, which holds the
scores, the threshold that the detector chose, and what is needed to score further samples. A high
score means an outlier; a sample is flagged when its score is above the threshold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tubal.input import check_count, check_positive
from tubal.representation import Representation, nearest

__all__ = [
    "Consensus",
    "Detection",
    "Detector",
    "Nothing",
    "Residual",
    "Scorer",
    "contamination_threshold",
    "resolve",
    "two_means",
]


class Scorer(Protocol):
    """What scores further samples, all in the scale of the fit."""

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        """Return a score for each sample."""


@dataclass(frozen=True, eq=False)
class Detection:
    """Scores of the samples of a fit and the decision about them.

    Attributes
    ----------
    scores : array of shape (n,)
        High for outliers.
    threshold : float
        Samples with a score above it are flagged.
    scorer : Scorer
        Scores further samples.
    """

    scores: np.ndarray
    threshold: float
    scorer: Scorer


class Detector(ABC):
    """A way of scoring the samples of a fit and of deciding which are outliers."""

    @abstractmethod
    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""


@dataclass(frozen=True)
class Residual(Detector):
    """The paper's rule: 2-means on the squared norms of what was not explained.

    The optimum of 2-means on a line is found exactly by trying every cut of the sorted values, so
    there is no random start. The upper group are the outliers; equal values are one group, and
    then nothing is flagged.

    Reference: T. Wu, "Robust data clustering with outliers via transformed tensor low-rank
    representation", AISTATS 2024, section 6.2.
    """

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        scores = _residual_energy(fitted)
        return Detection(scores, two_means(scores), _residual_energy)


@dataclass(frozen=True)
class Nothing(Detector):
    """No detection: every sample is kept; scores are those of `Residual`."""

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit; the threshold is infinite."""
        return Detection(_residual_energy(fitted), np.inf, _residual_energy)


@dataclass(frozen=True)
class Consensus(Detector):
    """Five views of a sample, each on a robust scale, and a cut that knows the inliers.

    Unit-norm samples x with entries p; N = the most similar samples; K = the samples that count as
    inliers. With `W(A)_j = mean_p sqrt(A_jp / (d_p + .03 mean d))`, `d_p` the mean of `A_jp` over
    K, the views are

    - global: `W(|x_j - median_K|)`, far from everything;
    - local: `W(mean over N of |x_j - x_i|)`, far from its own neighbours;
    - lonely: `1 - mean similarity over N`, not expressed by others;
    - residual: `||E_j|| / ||X_j||`, not explained;
    - size: the norm that the sample had before it was scaled, far larger or smaller than those of
      all samples and than those of N: `min(|z(log size)|, |z(log size - median over N)|)`.

    On the scale `z` of median and 1.4826 MAD over K the score is the root of
    `z(log global)_+^2 + z(log local)_+^2 + z(logit lonely)_+^2 + (z(log residual) - 2)_+^2
    + (size - 1)_+^2`. It
    starts with the lower 60 % as K and repeats with `K = {score <= t}`,
    `t = margin * 95th percentile over K`, no less than `least` and no more than `limit`, but at
    least half of all samples, until K stays the same. When 8 or more samples are flagged, the cut
    moves up to the largest ratio of consecutive scores, if that is clear (1.2 or more) and leaves
    at least 75 % of the flagged above it. Where there is room between the kept and the flagged,
    the threshold for new samples lies in its middle.

    Missing entries are left out of the means.

    Parameters
    ----------
    n_neighbors : int
        Size of N.
    margin, least, limit : float
        Of the threshold.
    """

    n_neighbors: int = 3
    margin: float = 1.55
    least: float = 2.5
    limit: float = 4.25

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        for name in ("margin", "least", "limit"):
            check_positive(name, getattr(self, name))

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        table = _Table.of(fitted)
        views = _Views.of(fitted, table, table, self.n_neighbors, n_jobs)
        everyone = np.ones(len(views.lonely), bool)
        scale, values = _Scale.of(views, everyone)
        inliers = _lowest(scale.scores(values), 0.6)
        for _ in range(30):
            scale, values = _Scale.of(views, inliers)
            scores = scale.scores(values)
            level = self.margin * float(np.percentile(scores[inliers], 95))
            level = min(max(level, self.least), self.limit)
            new = scores <= level
            if 2 * new.sum() < len(new):  # outliers are the minority
                new = _lowest(scores, 0.5)
                level = float(scores[new].max())
            if np.array_equal(new, inliers):
                break
            inliers = new
        scorer = _ConsensusScorer(scale, table, self.n_neighbors)
        return Detection(scores, _centred(scores, _clear_gap(scores, level)), scorer)


def two_means(scores: np.ndarray) -> float:
    """Return the threshold of the best split of numbers into a lower and an upper group.

    It lies halfway between the groups; infinite when all numbers are equal.

    >>> two_means(np.array([1.0, 1.2, 5.0, 0.9]))
    3.1
    """
    x = np.sort(np.asarray(scores, dtype=float))
    n = len(x)
    if n < 2 or x[-1] - x[0] <= 1e-12 * abs(x[-1]):
        return float(np.inf)
    below = np.arange(1, n)
    sums = np.cumsum(x - x.mean())[:-1]  # centred: the means of the groups follow from it
    between = sums**2 * (1 / below + 1 / (n - below))
    between[x[1:] == x[:-1]] = -1  # equal numbers stay together
    cut = int(between.argmax())
    return float((x[cut] + x[cut + 1]) / 2)


def contamination_threshold(scores: np.ndarray, share: float) -> float:
    """Return the threshold that flags this share of the scores (ties are never flagged).

    >>> scores = np.array([1.0, 2.0, 3.0, 4.0])
    >>> contamination_threshold(scores, 0.25), contamination_threshold(scores, 0)
    (3.25, 4.0)
    """
    return float(np.percentile(scores, 100 * (1 - share)))


def resolve(outliers: Any) -> Detector:
    """Turn a name, None or an object into a Detector; the only place that reads these names.

    >>> resolve("published")
    Residual()
    """
    names: dict[str, Detector] = {"auto": Consensus(), "published": Residual()}
    if outliers is None:
        return Nothing()
    if isinstance(outliers, Detector):
        return outliers
    if not isinstance(outliers, str) or outliers not in names:
        msg = f"outliers must be one of {sorted(names)}, None or a Detector, got {outliers!r}"
        raise ValueError(msg)
    return names[outliers]


def _residual_energy(new: Representation, n_jobs: int | None = None) -> np.ndarray:
    return new.residuals() ** 2


@dataclass(frozen=True, eq=False)
class _Table:
    """Samples as rows of unit norm; `seen` is None when nothing is missing."""

    x: np.ndarray
    seen: np.ndarray | None
    size: np.ndarray  # logarithm of the norm that a sample had before it was scaled

    @classmethod
    def of(cls, representation: Representation) -> _Table:
        samples = representation.samples
        n = samples.n_samples
        x = samples.values.reshape(n, -1)
        seen = None if samples.observed is None else samples.observed.reshape(n, -1)
        size = np.sqrt(np.sum(x**2, axis=1) / (1 if seen is None else seen.mean(axis=1)))
        logs = np.log(np.maximum(representation.sizes(), 1e-100))
        return cls(x / np.where(size > 0, size, 1)[:, None], seen, logs)

    def mean(self, A: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the mean of A over some rows, of the entries seen."""
        if self.seen is None:
            return (rows / max(rows.sum(), 1)) @ A
        count = self.seen[rows].sum(axis=0)
        return np.where(self.seen[rows], A[rows], 0).sum(axis=0) / np.maximum(count, 1)

    def median(self, rows: np.ndarray) -> np.ndarray:
        """Return the median of some rows, of the entries seen."""
        if self.seen is None:
            return _median_of_rows(self.x[rows])
        ordered = np.sort(np.where(self.seen[rows], self.x[rows], np.inf), axis=0)
        count = self.seen[rows].sum(axis=0)
        middle = [np.clip((count - 1 + shift) // 2, 0, len(ordered) - 1) for shift in (0, 1)]
        low, high = (np.take_along_axis(ordered, m[None], axis=0)[0] for m in middle)
        return np.where(count > 0, (low + high) / 2, 0)

    def average(self, A: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the mean of `A weights` over the entries seen of each row."""
        if self.seen is None:
            return A @ weights / A.shape[1]
        return np.where(self.seen, A, 0) @ weights / np.maximum(self.seen.sum(axis=1), 1)


@dataclass(frozen=True, eq=False)
class _Views:
    """What a score looks at, before anything is compared with the inliers."""

    table: _Table
    apart: np.ndarray  # root of the mean distance to the neighbours, entry by entry
    lonely: np.ndarray
    residual: np.ndarray
    beside: np.ndarray  # logarithm of the size, over the median of those of the neighbours

    @classmethod
    def of(
        cls, new: Representation, table: _Table, fitted: _Table, count: int, n_jobs: int | None
    ) -> _Views:
        near = nearest(new, count, np.ones(new.similarity.shape[1], bool), n_jobs)
        apart = np.zeros_like(table.x)
        pairs = np.full((1, 1), float(near.index.shape[1]))
        if fitted.seen is not None:
            pairs = np.sum([fitted.seen[i] for i in near.index.T], axis=0, dtype=float)
        for i in near.index.T:
            difference = np.abs(table.x - fitted.x[i])
            apart += difference if fitted.seen is None else fitted.seen[i] * difference
        norms = new.norms()
        residual = new.residuals() / np.where(norms > 0, norms, 1)
        lonely = 1 - near.value.mean(axis=1) if near.value.shape[1] else np.ones(len(norms))
        apart = np.sqrt(apart / np.maximum(pairs, 1))
        around = fitted.size[near.index]
        beside = table.size - np.median(around, axis=1) if around.shape[1] else 0 * table.size
        return cls(table, apart, lonely, residual, beside)


@dataclass(frozen=True, eq=False)
class _Scale:
    """Where the inliers lie and how far they spread, in each view."""

    median: np.ndarray
    global_weights: np.ndarray
    local_weights: np.ndarray
    location: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, views: _Views, inliers: np.ndarray) -> tuple[_Scale, np.ndarray]:
        """Return it with the values of the views, which scores are made from."""
        table = views.table
        median = table.median(inliers)
        far = _entry_weights(table.mean(np.abs(table.x - median), inliers))
        apart = _entry_weights(table.mean(views.apart**2, inliers))
        raw = cls(median, far, apart, np.zeros(6), np.ones(6))
        values = raw.values(views)
        location = np.median(values[:, inliers], axis=1)
        spread = 1.4826 * np.median(np.abs(values[:, inliers] - location[:, None]), axis=1)
        spread = np.maximum(spread, LEAST_SPREAD)
        return cls(median, far, apart, location, spread), values

    def values(self, views: _Views) -> np.ndarray:
        """Return the views of each sample, on the scale where inliers are symmetric."""
        table = views.table
        far = table.average(np.sqrt(np.abs(table.x - self.median)), self.global_weights)
        apart = table.average(views.apart, self.local_weights)
        lonely = np.clip(views.lonely, 1e-6, 1 - 1e-6)
        return np.stack(
            [
                np.log(np.maximum(far, 1e-6)),
                np.log(np.maximum(apart, 1e-6)),
                np.log(lonely / (1 - lonely)),
                np.log(np.maximum(views.residual, LEAST_RESIDUAL)),
                table.size,
                views.beside,
            ]
        )

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the score of each sample from the values of its views."""
        z = (values - self.location[:, None]) / self.spread[:, None]
        z[3] -= 2
        size = np.minimum(np.abs(z[4]), np.abs(z[5])) - 1
        return np.sqrt(np.sum(np.clip([*z[:4], size], 0, None) ** 2, axis=0))


@dataclass(frozen=True, eq=False)
class _ConsensusScorer:
    """Scores further samples as `Consensus` does, with the inliers of the fit."""

    scale: _Scale
    fitted: _Table
    n_neighbors: int

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        views = _Views.of(new, _Table.of(new), self.fitted, self.n_neighbors, n_jobs)
        return self.scale.scores(self.scale.values(views))


# A residual of less than a twentieth of the sample is no sign of anything; and views in which the
# inliers agree (almost) exactly must not make an outlier of the smallest difference.
LEAST_RESIDUAL = 0.05
LEAST_SPREAD = np.array([0.02, 0.02, 0.1, 0.1, 0.05, 0.05])


def _entry_weights(d: np.ndarray) -> np.ndarray:
    """Return `(d + .03 mean d)^(-1/2)`, zero when d is."""
    level = d + 0.03 * d.mean()
    return np.where(level > 0, 1 / np.sqrt(np.where(level > 0, level, 1)), 0)


def _median_of_rows(A: np.ndarray) -> np.ndarray:
    """Return `np.median(A, axis=0)`, by partial sorts along memory."""
    n, columns = len(A), np.ascontiguousarray(A.T)
    columns.partition(sorted({(n - 1) // 2, n // 2}), axis=1)
    return (columns[:, (n - 1) // 2] + columns[:, n // 2]) / 2


def _lowest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return the lowest scores: this share of them, at least one."""
    count = max(1, int(np.ceil(share * len(scores))))
    lowest = np.zeros(len(scores), bool)
    lowest[np.argsort(scores, kind="stable")[:count]] = True
    return lowest


def _clear_gap(scores: np.ndarray, level: float) -> float:
    """Move the cut up to a clear gap between the scores above it, if there is one."""
    above = np.sort(scores[scores > level])
    if len(above) < 8:
        return level
    ladder = np.concatenate([[level], above])
    ratios = np.divide(above, ladder[:-1], out=np.full(len(above), np.inf), where=ladder[:-1] > 0)
    most = len(above) - int(np.ceil(0.75 * len(above)))  # how many flagged may fall below it
    step = int(ratios[: most + 1].argmax())
    if step == 0 or ratios[step] < 1.2:
        return level
    return float((ladder[step] + ladder[step + 1]) / 2)


def _centred(scores: np.ndarray, cut: float) -> float:
    """Move a cut up to the middle (of logarithms) of the room around it, by at most one half."""
    below, above = scores[scores <= cut], scores[scores > cut]
    if not (len(below) and len(above)):
        return cut
    middle = float(np.sqrt(below.max() * above.min()))
    return max(cut, min(middle, 1.5 * cut))
