"""The default detector: several views of a sample, on the scale of those that are usual."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tubal.input import check_count, check_positive
from tubal.outliers.decisions import centred, clear_gap, lowest, tail_cut
from tubal.outliers.detection import Detection, Detector
from tubal.outliers.views import (
    Table,
    Views,
    are_points,
    as_points,
    average_of,
    far_from,
    mean_of,
)
from tubal.representation import Representation
from tubal.scales import DistanceKernel

# A residual of less than a twentieth of the sample is no sign of anything; and views in which the
# inliers agree (almost) exactly must not make an outlier of the smallest difference.
LEAST_RESIDUAL = 0.05

# Clusters of points have edges, and so their scores long tails: `margin` and `false_alarms` times
# these numbers.
POINT_MARGIN, POINT_ALARMS = 1.3, 0.6
LEAST_SPREAD = np.array([0.02, 0.02, 0.1, 0.2, 0.05, 0.05])


@dataclass(frozen=True)
class Consensus(Detector):
    """Five views of a sample, each on a robust scale, and a cut that knows the inliers.

    Unit-norm samples x with entries p; K = the samples that count as inliers. S = the most similar
    samples; N = the closest ones of the LISTED most similar. With
    `W(A)_j = mean_p sqrt(A_jp / (d_p + .03 mean d))`, `d_p` the mean of `A_jp` over K, the views
    are

    - global: `W(|x_j - median_K|)`, far from everything;
    - local: `W(mean over N of |x_j - x_i|)`, far from its own neighbours;
    - lonely: `1 - mean similarity` with the `n_similar` most similar ones, not expressed by others;
    - residual: `||E_j|| / ||X_j||`, not explained;
    - size: the norm that the sample had before it was scaled, plus a tenth of the median norm (in
      few dimensions some inliers are close to zero), far larger or smaller than those of all
      samples and than those of S: `min(|z(log size)|, |z(log size - median over S)|)`; of rows of
      tables, which are points, than those of the closest ones as they were given.

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

    Rows of tables with fewer than eight columns are points. They are looked at where they are, not
    at unit norm; similar are those that are near (`tubal.scales.DistanceKernel`); and residual and
    size say nothing about them. Their scores have longer tails, so `margin` is 1.3 times as large
    and `false_alarms` .6 times.

    Parameters
    ----------
    n_neighbors : int
        Size of S and N.
    n_similar : int
        How many similar samples an inlier has.
    margin, least, limit : float
        Of the threshold; `least` is at most `limit`.
    company : int
        How many inliers around a sample are asked.
    false_alarms : float
        Share of the flagged that may be the end of the inliers.
    """

    n_neighbors: int = 3
    n_similar: int = 12
    margin: float = 1.55
    least: float = 2.5
    limit: float = 4.25
    company: int = 12
    false_alarms: float = 0.25

    def __post_init__(self) -> None:
        for name in ("n_neighbors", "n_similar", "company"):
            check_count(name, getattr(self, name))
        for name in ("margin", "least", "limit", "false_alarms"):
            check_positive(name, getattr(self, name))
        if self.least > self.limit:
            msg = f"least must be at most limit={self.limit!r}, got least={self.least!r}"
            raise ValueError(msg)

    @property
    def _counts(self) -> tuple[int, int]:
        return self.n_neighbors, self.n_similar

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        points = are_points(fitted)
        margin = self.margin * (POINT_MARGIN if points else 1)
        fitted = as_points(fitted) if points else fitted
        table = Table.of_points(fitted) if points else Table.of(fitted)
        views = Views.of(fitted, table, table, self._counts, n_jobs)
        everyone = np.ones(len(views.lonely), bool)
        scale, values = Scale.of(views, everyone, self.company, n_jobs)
        inliers = lowest(length(scale.deviations(values)[1:]), 0.75)
        for _ in range(30):
            scale, values = Scale.of(views, inliers, self.company, n_jobs)
            scores = scale.scores(views, values)
            level = margin * float(np.percentile(scores[inliers], 95))
            level = min(max(level, self.least), self.limit)
            new = scores <= level
            if 2 * new.sum() < len(new):  # outliers are the minority
                new = lowest(scores, 0.5)
                level = float(scores[new].max())
            if np.array_equal(new, inliers):
                break
            inliers = new
        share = self.false_alarms * (POINT_ALARMS if points else 1)
        cut = clear_gap(scores, tail_cut(scores, level, share))
        kernel = fitted.similarity if isinstance(fitted.similarity, DistanceKernel) else None
        scorer = ConsensusScorer(scale, replace(table), self._counts, kernel)  # without `columns`
        return Detection(scores, centred(scores, cut), scorer)


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
        raw = cls(median, weights, apart, np.zeros(6), np.ones(6), inliers, company, nothing)
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
        return np.stack([z[0], z[1], z[2], z[3] - 2, size])

    def allowances(self, views: Views) -> np.ndarray:
        """Return what the inliers around a sample excuse, in the global and the local view."""
        kept = (views.around >= 0) & self.inliers[views.around]
        order = np.argsort(~kept, axis=1, kind="stable")[:, : self.company]
        kept, index = (np.take_along_axis(A, order, axis=1) for A in (kept, views.around))
        values = np.where(kept, self.usual[:, index], 0)
        lacking = np.zeros((2, len(index), max(self.company - index.shape[1], 0)))
        most = np.percentile(np.concatenate([values, lacking], axis=2), 25, axis=2)
        return np.clip(most - 0.5, 0, None)

    def scores(self, views: Views, values: np.ndarray) -> np.ndarray:
        """Return the score of each sample from the values of its views."""
        z = self.deviations(values)
        z[:2] -= self.allowances(views)
        return length(z)


@dataclass(frozen=True, eq=False)
class ConsensusScorer:
    """Scores further samples as `Consensus` does, with the inliers of the fit."""

    scale: Scale
    fitted: Table
    counts: tuple[int, int]
    kernel: DistanceKernel | None = None
    """That of the samples of the fit, when they are points."""

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        """Return a score for each sample."""
        if self.kernel is None:
            table = Table.of(new, self.fitted)
        else:
            new = as_points(new, self.kernel)
            table = Table.of_points(new, self.fitted)
        views = Views.of(new, table, self.fitted, self.counts, n_jobs)
        values = self.scale.values(views, far_from(table, self.scale.median))
        return self.scale.scores(views, values)


def length(z: np.ndarray) -> np.ndarray:
    """Return the root of the sum of squares over views, of what is positive."""
    return np.sqrt(np.sum(np.clip(z, 0, None) ** 2, axis=0))


def entry_weights(d: np.ndarray) -> np.ndarray:
    """Return `(d + .03 mean d)^(-1/2)`, zero when d is."""
    level = d + 0.03 * d.mean()
    return np.where(level > 0, 1 / np.sqrt(np.where(level > 0, level, 1)), 0).astype(d.dtype)
