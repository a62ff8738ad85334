"""From a representation to an outlier score for each sample, and from scores to a decision.

A detector is a small object: `detect` looks at a fit and returns a `Detection`, which holds the
scores, the threshold that the detector chose, and what is needed to score further samples. A high
score means an outlier; a sample is flagged when its score is above the threshold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
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
    "tail_cut",
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

    Unit-norm samples x with entries p; K = the samples that count as inliers. S = the most similar
    samples; N = the closest ones of the LISTED most similar. With
    `W(A)_j = mean_p sqrt(A_jp / (d_p + .03 mean d))`, `d_p` the mean of `A_jp` over K, the views
    are

    - global: `W(|x_j - median_K|)`, far from everything;
    - local: `W(mean over N of |x_j - x_i|)`, far from its own neighbours;
    - lonely: `1 - mean similarity over S`, not expressed by others;
    - residual: `||E_j|| / ||X_j||`, not explained;
    - size: the norm that the sample had before it was scaled, far larger or smaller than those of
      all samples and than those of S: `min(|z(log size)|, |z(log size - median over S)|)`.

    On the scale `z` of median and 1.4826 MAD over K the score is the root of
    `(z(log global) - c)_+^2 + (z(log local) - c')_+^2 + z(logit lonely)_+^2
    + (z(log residual) - 2)_+^2 + (size - 1)_+^2`. An outlier has no company: `c` is what three
    quarters of the `company` closest inliers of the LISTED most similar samples have in this view
    themselves, `(lower quartile of z - .5)_+`; those that are missing count as 0. So a cluster far
    from the bulk, or wider than others, is no outlier as a whole.

    The beginning of K are the lower 75 % of a score without the global view, since a cluster may be
    far from all others. It repeats with `K = {score <= t}`,
    `t = margin * 95th percentile over K`, no less than `least` and no more than `limit`, but at
    least half of all samples, until K stays the same. Then the cut moves up

    - until the tail of the inliers explains no more than the share `false_alarms` of the flagged,
      see `tail_cut`;
    - when 8 or more samples are flagged, to the largest ratio of consecutive scores, if that is 1.5
      or more and leaves at least a third of the flagged above it; else to the largest ratio over a
      twentieth of the flagged, if that is 1.15 or more and leaves 75 % of them above its beginning.

    Where there is room between the kept and the flagged, the threshold for new samples lies in its
    middle. Missing entries, and in the local view those that no neighbour has, are left out of the
    means.

    Parameters
    ----------
    n_neighbors : int
        Size of S and N.
    margin, least, limit : float
        Of the threshold.
    company : int
        How many inliers around a sample are asked.
    false_alarms : float
        Share of the flagged that may be the end of the inliers.
    """

    n_neighbors: int = 3
    margin: float = 1.55
    least: float = 2.5
    limit: float = 4.25
    company: int = 12
    false_alarms: float = 0.2

    def __post_init__(self) -> None:
        for name in ("n_neighbors", "company"):
            check_count(name, getattr(self, name))
        for name in ("margin", "least", "limit", "false_alarms"):
            check_positive(name, getattr(self, name))

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        table = _Table.of(fitted)
        views = _Views.of(fitted, table, table, self.n_neighbors, n_jobs)
        everyone = np.ones(len(views.lonely), bool)
        scale, values = _Scale.of(views, everyone, self.company)
        inliers = _lowest(_length(scale.deviations(values)[1:]), 0.75)
        for _ in range(30):
            scale, values = _Scale.of(views, inliers, self.company)
            scores = scale.scores(views, values)
            level = self.margin * float(np.percentile(scores[inliers], 95))
            level = min(max(level, self.least), self.limit)
            new = scores <= level
            if 2 * new.sum() < len(new):  # outliers are the minority
                new = _lowest(scores, 0.5)
                level = float(scores[new].max())
            if np.array_equal(new, inliers):
                break
            inliers = new
        cut = _clear_gap(scores, tail_cut(scores, level, self.false_alarms))
        scorer = _ConsensusScorer(scale, replace(table), self.n_neighbors)  # without `columns`
        return Detection(scores, _centred(scores, cut), scorer)


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


def tail_cut(scores: np.ndarray, level: float, false_alarms: float) -> float:
    """Move a cut up until the tail of the scores below it hardly explains what is above it.

    The scores between u, the 80th percentile of those up to the cut, and the cut are taken as the
    visible part of an exponential tail. It goes on above the cut: above t there should be `E(t)`
    scores, and there are `F(t)`. The new cut is the lowest one among `level` and the scores above
    it with `E(t) <= false_alarms F(t)`, t the lowest score above the cut. A cut that has moved
    shows more of the tail: once again then.

    >>> clean = -np.log(np.linspace(0.001, 1, 1000))
    >>> bool(tail_cut(clean, 4.0, 0.3) == clean.max())  # the end of a tail, nothing else
    True
    >>> bool(tail_cut(np.append(clean, [20.0] * 9), 4.0, 0.3) < 20)
    True
    """
    while True:
        kept, above = scores[scores <= level], np.sort(scores[scores > level])
        start = float(np.percentile(kept, 80))
        visible = kept[kept > start] - start
        if not len(above) or not len(visible):
            return level
        decay = _truncated_mean(float(visible.mean()), level - start)
        total = len(visible) / -np.expm1(-(level - start) / decay)
        lowest = np.unique(above)  # of the flagged, cut by cut
        expected = total * np.exp(-(lowest - start) / decay)
        flagged = len(above) - np.searchsorted(above, lowest)
        cuts = np.append(level, lowest)
        cut = float(cuts[np.append(expected <= false_alarms * flagged, True).argmax()])
        if cut == level:
            return cut
        level = cut


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
    """Samples as rows of unit norm, less a common centre; `seen` is None when nothing is missing.

    Only differences of samples count. Without what is common to all, single precision does.
    """

    x: np.ndarray
    seen: np.ndarray | None
    size: np.ndarray  # logarithm of the norm that a sample had before it was scaled
    centre: np.ndarray

    @classmethod
    def of(cls, representation: Representation, fitted: _Table | None = None) -> _Table:
        """Return the samples in question; `fitted` are those of the fit, None for themselves."""
        samples = representation.samples
        n = samples.n_samples
        x = samples.values.reshape(n, -1)
        seen = None if samples.observed is None else samples.observed.reshape(n, -1)
        size = np.sqrt(np.sum(x**2, axis=1) / (1 if seen is None else seen.mean(axis=1)))
        logs = np.log(np.maximum(representation.sizes(), 1e-100))
        x = x / np.where(size > 0, size, 1)[:, None]
        centre = _mean(x, seen, np.ones(n, bool)) if fitted is None else fitted.centre
        return cls((x - centre).astype(np.float32), seen, logs, centre)

    @cached_property
    def columns(self) -> np.ndarray:
        """The entries of each column, one after the other in memory."""
        return np.ascontiguousarray(self.x.T)

    def median(self, rows: np.ndarray) -> np.ndarray:
        """Return the median of some rows, of the entries seen."""
        if self.seen is None:
            return _median(self.columns.take(np.flatnonzero(rows), axis=1))
        ordered = np.sort(np.where(self.seen[rows], self.x[rows], np.inf), axis=0)
        count = self.seen[rows].sum(axis=0)
        middle = [np.clip((count - 1 + shift) // 2, 0, len(ordered) - 1) for shift in (0, 1)]
        low, high = (np.take_along_axis(ordered, m[None], axis=0)[0] for m in middle)
        return np.where(count > 0, (low + high) / 2, 0)

    def distances(self, other: _Table, index: np.ndarray) -> np.ndarray:
        """Return mean squares of the differences to some rows of another table, infinite for none.

        `index` has the rows for each row, -1 for none. Entries that both have count.
        """
        out = np.full(index.shape, np.inf)
        for i, column in zip(index.T, out.T, strict=True):
            squares = other.x[i]
            squares -= self.x
            squares *= squares
            both = _both(self.seen, None if other.seen is None else other.seen[i])
            if both is None:
                column[:] = squares.mean(axis=1)
            else:
                count = both.sum(axis=1)
                column[count > 0] = (np.where(both, squares, 0).sum(axis=1) / np.maximum(count, 1))[
                    count > 0
                ]
        out[index < 0] = np.inf
        return out


@dataclass(frozen=True, eq=False)
class _Views:
    """What a score looks at, before anything is compared with the inliers."""

    table: _Table
    around: np.ndarray  # the listed samples of the fit, closest first; -1 for none
    apart: np.ndarray  # root of the mean distance to the neighbours, entry by entry
    shared: np.ndarray | None  # entries that some neighbour has too; None when nothing is missing
    lonely: np.ndarray
    residual: np.ndarray
    beside: np.ndarray  # logarithm of the size, over the median of those of the neighbours

    @cached_property
    def apart_squared(self) -> np.ndarray:
        return self.apart**2

    @classmethod
    def of(
        cls, new: Representation, table: _Table, fitted: _Table, count: int, n_jobs: int | None
    ) -> _Views:
        near = nearest(new, count, np.ones(new.similarity.shape[1], bool), n_jobs)
        around = _closest(table, fitted, new, n_jobs)
        apart, shared = _differences(table, fitted, around[:, :count])
        norms = new.norms()
        residual = new.residuals() / np.where(norms > 0, norms, 1)
        lonely = 1 - near.value.mean(axis=1) if near.value.shape[1] else np.ones(len(norms))
        sizes = fitted.size[near.index]
        beside = table.size - np.median(sizes, axis=1) if sizes.shape[1] else 0 * table.size
        return cls(table, around, np.sqrt(apart), shared, lonely, residual, beside)


def _closest(table: _Table, fitted: _Table, new: Representation, n_jobs: int | None) -> np.ndarray:
    """Return the most similar samples of the fit, the closest first; -1 for a sample itself."""
    index = new.lists(n_jobs).index
    index = np.where(index == new.twins[:, None], -1, index)
    order = np.argsort(table.distances(fitted, index), axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


def _differences(
    table: _Table, fitted: _Table, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return mean moduli of the differences to some samples, and which entries have any."""
    total, pairs = np.zeros_like(table.x), np.zeros_like(table.x[:, :1])
    for i in index.T:
        both = (i >= 0)[:, None] if fitted.seen is None else (i >= 0)[:, None] & fitted.seen[i]
        apart = fitted.x[i]
        apart -= table.x
        total += np.where(both, np.abs(apart, out=apart), 0)
        pairs = pairs + both
    shared = None if fitted.seen is None else pairs > 0
    return total / np.maximum(pairs, 1), _both(table.seen, shared)


@dataclass(frozen=True, eq=False)
class _Scale:
    """Where the inliers lie and how far they spread, in each view, and which samples they are."""

    median: np.ndarray
    global_weights: np.ndarray
    local_weights: np.ndarray
    location: np.ndarray
    spread: np.ndarray
    inliers: np.ndarray
    company: int
    usual: np.ndarray  # global and local view of the samples of the fit, (2, n)

    @classmethod
    def of(cls, views: _Views, inliers: np.ndarray, company: int) -> tuple[_Scale, np.ndarray]:
        """Return it with the values of the views, which scores are made from."""
        table = views.table
        median = table.median(inliers)
        far = _far(table, median)
        weights = _entry_weights(_mean(far, table.seen, inliers))
        apart = _entry_weights(_mean(views.apart_squared, views.shared, inliers))
        nothing = np.zeros((2, len(inliers)))
        raw = cls(median, weights, apart, np.zeros(6), np.ones(6), inliers, company, nothing)
        values = raw.values(views, far)
        location = np.median(values[:, inliers], axis=1)
        spread = 1.4826 * np.median(np.abs(values[:, inliers] - location[:, None]), axis=1)
        spread = np.maximum(spread, LEAST_SPREAD)
        usual = (values[:2] - location[:2, None]) / spread[:2, None]
        return replace(raw, location=location, spread=spread, usual=usual), values

    def values(self, views: _Views, far: np.ndarray) -> np.ndarray:
        """Return the views of each sample, on the scale where inliers are symmetric.

        `far` is what `_far` says of them; it is overwritten.
        """
        table = views.table
        far = _average(np.sqrt(far, out=far), table.seen, self.global_weights)
        apart = _average(views.apart, views.shared, self.local_weights)
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

    def deviations(self, values: np.ndarray) -> np.ndarray:
        """Return how far each sample is from the inliers in the five views."""
        z = (values - self.location[:, None]) / self.spread[:, None]
        size = np.minimum(np.abs(z[4]), np.abs(z[5])) - 1
        return np.stack([z[0], z[1], z[2], z[3] - 2, size])

    def allowances(self, views: _Views) -> np.ndarray:
        """Return what the inliers around a sample excuse, in the global and the local view."""
        kept = (views.around >= 0) & self.inliers[views.around]
        order = np.argsort(~kept, axis=1, kind="stable")[:, : self.company]
        kept, index = (np.take_along_axis(A, order, axis=1) for A in (kept, views.around))
        values = np.where(kept, self.usual[:, index], 0)
        lacking = np.zeros((2, len(index), max(self.company - index.shape[1], 0)))
        most = np.percentile(np.concatenate([values, lacking], axis=2), 25, axis=2)
        return np.clip(most - 0.5, 0, None)

    def scores(self, views: _Views, values: np.ndarray) -> np.ndarray:
        """Return the score of each sample from the values of its views."""
        z = self.deviations(values)
        z[:2] -= self.allowances(views)
        return _length(z)


@dataclass(frozen=True, eq=False)
class _ConsensusScorer:
    """Scores further samples as `Consensus` does, with the inliers of the fit."""

    scale: _Scale
    fitted: _Table
    n_neighbors: int

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        table = _Table.of(new, self.fitted)
        views = _Views.of(new, table, self.fitted, self.n_neighbors, n_jobs)
        values = self.scale.values(views, _far(table, self.scale.median))
        return self.scale.scores(views, values)


# A residual of less than a twentieth of the sample is no sign of anything; and views in which the
# inliers agree (almost) exactly must not make an outlier of the smallest difference.
LEAST_RESIDUAL = 0.05
LEAST_SPREAD = np.array([0.02, 0.02, 0.1, 0.1, 0.05, 0.05])


def _truncated_mean(mean: float, end: float) -> float:
    """Return the mean of an exponential law that has this mean when it is cut off at `end`.

    It solves `b - end / (exp(end / b) - 1) = mean`. A mean of almost half the end is that of a law
    that hardly falls; then b is ten times the end.
    """
    low, high = mean, 10 * end
    for _ in range(60):
        b = (low + high) / 2
        if b - end / np.expm1(min(end / b, 700)) < mean:
            low = b
        else:
            high = b
    return (low + high) / 2


def _far(table: _Table, median: np.ndarray) -> np.ndarray:
    """Return how far each entry is from the median."""
    far = table.x - median
    return np.abs(far, out=far)


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return where both masks hold; None is a mask that hides nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _mean(A: np.ndarray, there: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Return the mean over some rows, of the entries that are there."""
    if there is None:
        return (rows / max(rows.sum(), 1)).astype(A.dtype) @ A
    return np.where(there[rows], A[rows], 0).sum(axis=0) / np.maximum(there[rows].sum(axis=0), 1)


def _average(A: np.ndarray, there: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """Return the mean of `A weights` over the entries that are there of each row."""
    if there is None:
        return A @ weights / A.shape[1]
    return np.where(there, A, 0) @ weights / np.maximum(there.sum(axis=1), 1)


def _length(z: np.ndarray) -> np.ndarray:
    """Return the root of the sum of squares over views, of what is positive."""
    return np.sqrt(np.sum(np.clip(z, 0, None) ** 2, axis=0))


def _entry_weights(d: np.ndarray) -> np.ndarray:
    """Return `(d + .03 mean d)^(-1/2)`, zero when d is."""
    level = d + 0.03 * d.mean()
    return np.where(level > 0, 1 / np.sqrt(np.where(level > 0, level, 1)), 0).astype(d.dtype)


def _median(columns: np.ndarray) -> np.ndarray:
    """Return `np.median(columns, axis=1)`, by partial sorts along memory; they are overwritten.

    One place at a time: NumPy looks for two of them with a slower method.
    """
    middle = columns.shape[1] // 2
    columns.partition(middle, axis=1)
    upper = columns[:, middle]
    return upper if columns.shape[1] % 2 else (columns[:, :middle].max(axis=1) + upper) / 2


def _lowest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return the lowest scores: this share of them, at least one."""
    count = max(1, int(np.ceil(share * len(scores))))
    lowest = np.zeros(len(scores), bool)
    lowest[np.argsort(scores, kind="stable")[:count]] = True
    return lowest


def _clear_gap(scores: np.ndarray, level: float) -> float:
    """Move the cut up to a clear gap, or a sparse place, between the scores above it."""
    above = np.sort(scores[scores > level])
    if len(above) < 8:
        return level
    ladder = np.append(level, above)
    steps = _ratios(ladder, 1)
    for share, clear, width in ((1 / 3, 1.5, 1), (0.75, 1.15, max(1, round(len(above) / 20)))):
        most = len(above) - int(np.ceil(share * len(above)))  # how many flagged may fall below it
        ratios = _ratios(ladder, width)[: most + 1]
        place = int(ratios.argmax())
        step = place + int(steps[place : place + width].argmax())
        if step > 0 and ratios[place] >= clear:
            return float((ladder[step] + ladder[step + 1]) / 2)
    return level


def _ratios(ladder: np.ndarray, width: int) -> np.ndarray:
    """Return each number over the one `width` places before."""
    low, high = ladder[:-width], ladder[width:]
    return np.divide(high, low, out=np.full(len(high), np.inf), where=low > 0)


def _centred(scores: np.ndarray, cut: float) -> float:
    """Move a cut up to the middle (of logarithms) of the room around it, by at most one half."""
    below, above = scores[scores <= cut], scores[scores > cut]
    if not (len(below) and len(above)):
        return cut
    middle = float(np.sqrt(below.max() * above.min()))
    return max(cut, min(middle, 1.5 * cut))
