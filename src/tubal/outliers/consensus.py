"""The default detector: several views of a sample, on the scale of those that are usual."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tubal.input import check_count, check_share
from tubal.outliers.decisions import (
    RARE,
    centred,
    clear_gap,
    false_alarm_threshold,
    lowest,
    tail_quantile,
)
from tubal.outliers.detection import Detection, Detector
from tubal.outliers.views import (
    Table,
    Views,
    average_of,
    explained,
    far_from,
    mean_of,
)
from tubal.representation import Representation

# A residual of less than a twentieth of the sample is no sign of anything; and views in which the
# inliers agree (almost) exactly must not make an outlier of the smallest difference.
LEAST_RESIDUAL = 0.05
LEAST_SPREAD = np.array([0.02, 0.02, 0.1, 0.2, 0.05, 0.05])

LARGEST = 6.0
"""Deviation up to which a sample may count as an inlier; without a bound, many outliers hide."""

STARTS = (0.75, 0.5)
"""Shares of the samples that count as inliers to begin with. With the first one alone, 30 % of
planted outliers hide each other: F1 .84 instead of .96 over 24 synthetic problems."""

MOST_NOISE = 0.6
"""Residual over the norm of a sample, up to which the explained part can be relied on."""


@dataclass(frozen=True)
class Consensus(Detector):
    """Five views of a sample, as it is and as it was explained, on robust scales.

    Unit-norm samples x with entries p; K = the samples that count as inliers. S = the most similar
    samples by the solution; N = the closest ones among the 32 most similar. With
    `W(A)_j = mean_p sqrt(A_jp / (d_p + .03 mean d))`, `d_p` the mean of `A_jp` over K, the views
    are

    - global: `W(|x_j - median_K|)`, far from everything;
    - local: `W(mean over N of |x_j - x_i|)`, far from its own neighbours;
    - isolation: `1 - mean similarity` with the `n_similar` most similar ones, not expressed by
      others;
    - residual: `||E_j|| / ||X_j||`, not explained;
    - size: the norm that the sample had before it was scaled, plus a tenth of the median norm (in
      few dimensions some inliers are close to zero), far larger or smaller than those of all
      samples and than those of S: `min(|z(log size)|, |z(log size - median over S)|)`.

    Rows of tables are points. They are looked at where they were given, and neither isolation nor
    size mean anything for them.

    On the scale `z` of median and 1.4826 MAD over K the deviation of a sample is the root of
    `(z(log global) - c)_+^2 + (z(log local) - c')_+^2 + z(logit isolation)_+^2
    + (z(log residual) - 2)_+^2 + (size - 1)_+^2`.
    An outlier has no company: c is what five sixths of the `company` closest samples among the 32
    most similar ones have in this view themselves, less .5 and at least 0; those that are missing
    count as 0. In the global view inliers are asked, in the local one all samples. So a cluster far
    from the bulk, or wider than others, is no outlier as a whole.

    **Damage.** The deviation is measured twice: for the sample as it is, and for the part L of it
    that the program explains, of which nothing is left over. The score is the larger of the two.
    But a sample whose residual is unusually large, and at most .6 of its norm, is covered by noise.
    When its explained part is at home among the others, deviating no more than they do, only that
    part counts: the sample is damaged, not an outlier.

    **Decision.** A sample is flagged when the tail of the inliers exceeds its score with a
    probability of at most `false_alarms`, and when more than half of the flagged cannot be
    explained by that tail (`false_alarm_threshold`). The tail is an exponential one from the 95 %
    quantile of K on; it says which residuals are unusual and what is at home, too. K begins with
    the lower 75 %, and with the lower half, of the deviations without the global view, since a
    cluster may be far from all others, and is then what is not flagged, at least half of all
    samples, until it stays the same. Of the two ends the one counts that leaves the larger gap
    between K and the others. It is no gap when K has at most `company` samples, or when
    most of the `company` samples around the others are no inliers either: these may be a cluster.
    When 8 or more samples are flagged, the threshold moves up into a clear gap of the scores, if
    there is one (`clear_gap`). Where there is room between the kept and the flagged, the threshold
    for new samples lies in its middle. Missing entries, and in the local view those that no
    neighbour has, are left out of the means.

    Parameters
    ----------
    false_alarms : float
        Share of the inliers that may be flagged, between 0 and 0.5.
    n_neighbors : int
        Size of S and N.
    n_similar : int
        How many similar samples an inlier has.
    company : int
        How many inliers around a sample are asked.
    """

    false_alarms: float = 0.01
    n_neighbors: int = 3
    n_similar: int = 12
    company: int = 12

    def __post_init__(self) -> None:
        check_share("false_alarms", self.false_alarms)
        for name in ("n_neighbors", "n_similar", "company"):
            check_count(name, getattr(self, name))

    @property
    def _counts(self) -> tuple[int, int]:
        return self.n_neighbors, self.n_similar

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        views = _both_views(fitted.tabled(n_jobs), None, self._counts, n_jobs)
        found_from = [self._inliers(views[0], share, n_jobs) for share in STARTS]
        gaps = [_gap(views[0], K, scale, self.company) for K, scale in found_from]
        inliers, observed = found_from[int(np.argmax(gaps))]
        explained, _ = Scale.of(views[1], inliers, self.company, n_jobs)
        found = observed.measure(views[0]), explained.measure(views[1])
        unusual, usual, home = (
            tail_quantile(each[inliers], self.false_alarms) for each in (views[0].residual, *found)
        )
        scorer = ConsensusScorer(
            (observed, explained),
            (replace(views[0].table), replace(views[1].table)),  # without `columns`
            max(unusual, LEAST_RESIDUAL),
            home,
            self._counts,
        )
        scores, at_home = scorer.combine(views[0].residual, *found)
        level = false_alarm_threshold(scores, inliers, self.false_alarms)
        threshold = centred(scores, clear_gap(scores, level))
        return Detection(scores, threshold, scorer, at_home & (found[0] > usual))

    def _inliers(self, views: Views, start: float, n_jobs: int | None) -> tuple[np.ndarray, Scale]:
        """Return which samples count as inliers, and their scale, from a share to begin with."""
        everyone = np.ones(len(views.lonely), bool)
        scale, values = Scale.of(views, everyone, self.company, n_jobs)
        inliers = lowest(length(scale.deviations(values)[1:]), start)
        for _ in range(30):
            scale, values = Scale.of(views, inliers, self.company, n_jobs)
            scores = scale.scores(views, values)
            new = scores <= min(tail_quantile(scores[inliers], RARE), LARGEST)
            new = new if 2 * new.sum() >= len(new) else lowest(scores, 0.5)
            if np.array_equal(new, inliers):
                return inliers, scale
            inliers = new
        return inliers, Scale.of(views, inliers, self.company, n_jobs)[0]


def _gap(views: Views, inliers: np.ndarray, scale: Scale, company: int) -> float:
    """Return the smallest score outside of the inliers over the largest one of theirs.

    It is 1, no gap, when most of the samples around those outside are outside, too: such a group of
    its own may be a cluster. And when there are no more than `company` inliers: too few to tell.
    """
    around = views.around[~inliers][:, :company]
    there = around >= 0
    apart = there & ~inliers[around]
    if inliers.sum() <= company or 2 * apart.sum() >= there.sum():
        return 1.0
    scores = scale.measure(views)
    largest = float(scores[inliers].max())
    return float(scores[~inliers].min()) / largest if largest > 0 else np.inf


def _both_views(
    rows: Representation,
    fitted: tuple[Table, Table] | None,
    counts: tuple[int, int],
    n_jobs: int | None,
) -> tuple[Views, Views]:
    """Return the views of samples as they are, and as they were explained."""
    lists, found = rows.lists(n_jobs), []
    for i, each in enumerate((rows, explained(rows))):
        table = Table.of(each, None if fitted is None else fitted[i])
        of = table if fitted is None else fitted[i]
        found.append(Views.of(each, lists, table, of, counts, n_jobs))
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Scale:
    """Where the inliers lie and how far they spread, in each view, and which samples they are."""

    median: np.ndarray
    global_weights: np.ndarray
    local_weights: np.ndarray
    location: np.ndarray
    spread: np.ndarray
    inliers: np.ndarray
    company: int
    usual: np.ndarray  # global and local view of the samples of the fit, (2, n)
    points: bool  # whether samples are rows of a table

    @classmethod
    def of(
        cls, views: Views, inliers: np.ndarray, company: int, n_jobs: int | None = None
    ) -> tuple[Scale, np.ndarray]:
        """Return it with the values of the views, which scores are made from."""
        table = views.table
        median = table.median(inliers, n_jobs)
        far = far_from(table, median)
        weights = entry_weights(mean_of(far, table.seen, inliers))
        apart = entry_weights(mean_of(views.apart_squared, views.shared, inliers))
        nothing = np.zeros((2, len(inliers)))
        raw = cls(
            median, weights, apart, np.zeros(6), np.ones(6), inliers, company, nothing, views.points
        )
        values = raw.values(views, far)
        location = np.median(values[:, inliers], axis=1)
        spread = 1.4826 * np.median(np.abs(values[:, inliers] - location[:, None]), axis=1)
        spread = np.maximum(spread, LEAST_SPREAD)
        usual = (values[:2] - location[:2, None]) / spread[:2, None]
        return replace(raw, location=location, spread=spread, usual=usual), values

    def values(self, views: Views, far: np.ndarray) -> np.ndarray:
        """Return the views of each sample, on the scale where inliers are symmetric.

        `far` is what `far_from` says of them; it is overwritten.
        """
        table = views.table
        far = average_of(np.sqrt(far, out=far), table.seen, self.global_weights)
        apart = average_of(views.apart, views.shared, self.local_weights)
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
        isolation = np.zeros_like(z[2]) if self.points else z[2]
        return np.stack([z[0], z[1], isolation, z[3] - 2, size])

    def allowances(self, views: Views) -> np.ndarray:
        """Return what the samples around a sample excuse, in the global and the local view."""
        there = views.around >= 0
        inliers = there & self.inliers[views.around]
        shown = [
            self._shown(z, mask, views.around)
            for z, mask in zip(self.usual, (inliers, there), strict=True)
        ]
        return np.clip(np.stack(shown) - 0.5, 0, None)

    def _shown(self, z: np.ndarray, mask: np.ndarray, around: np.ndarray) -> np.ndarray:
        """Return what five sixths of the closest samples in question have at least."""
        order = np.argsort(~mask, axis=1, kind="stable")[:, : self.company]
        asked, index = (np.take_along_axis(A, order, axis=1) for A in (mask, around))
        lacking = np.zeros((len(index), max(self.company - index.shape[1], 0)))
        values = np.concatenate([np.where(asked, z[index], 0), lacking], axis=1)
        found: np.ndarray = np.percentile(values, 100 / 6, axis=1)
        return found

    def measure(self, views: Views) -> np.ndarray:
        """Return the deviation of each sample."""
        return self.scores(views, self.values(views, far_from(views.table, self.median)))

    def scores(self, views: Views, values: np.ndarray) -> np.ndarray:
        """Return the score of each sample from the values of its views."""
        z = self.deviations(values)
        z[:2] -= self.allowances(views)
        return length(z)


@dataclass(frozen=True, eq=False)
class ConsensusScorer:
    """Scores further samples as `Consensus` does, with the inliers of the fit.

    Attributes
    ----------
    scales, tables : pairs of Scale and Table
        Of the samples of the fit as they are, and as they were explained.
    unusual : float
        A residual above this is unusually large.
    home : float
        Deviation of an explained part up to which it is at home.
    """

    scales: tuple[Scale, Scale]
    tables: tuple[Table, Table]
    unusual: float
    home: float
    counts: tuple[int, int]

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        """Return a score for each sample."""
        views = _both_views(new, self.tables, self.counts, n_jobs)
        found = (scale.measure(view) for scale, view in zip(self.scales, views, strict=True))
        scores, _ = self.combine(views[0].residual, *found)
        return scores

    def combine(
        self, residual: np.ndarray, observed: np.ndarray, explained: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores from both deviations, and which samples are covered by noise but at home.

        These are scored by their explained part, the others by the larger deviation.
        """
        covered = (residual > self.unusual) & (residual <= MOST_NOISE)
        at_home = covered & (explained <= self.home)
        return np.where(at_home, explained, np.maximum(observed, explained)), at_home


def length(z: np.ndarray) -> np.ndarray:
    """Return the root of the sum of squares over views, of what is positive."""
    return np.sqrt(np.sum(np.clip(z, 0, None) ** 2, axis=0))


def entry_weights(d: np.ndarray) -> np.ndarray:
    """Return `(d + .03 mean d)^(-1/2)`, zero when d is."""
    level = d + 0.03 * d.mean()
    return np.where(level > 0, 1 / np.sqrt(np.where(level > 0, level, 1)), 0).astype(d.dtype)
