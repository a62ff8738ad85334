"""Outlier scores by loops over their definition, and cuts by trying everything."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.neighbors import LocalOutlierFactor

from tubal import ORTLRR, Lambda, TensorOutlierDetector, solve
from tubal.datasets import make_tensor_subspaces
from tubal.input import Samples, read
from tubal.outliers import (
    Consensus,
    Detection,
    Detector,
    Nothing,
    Residual,
    contamination_threshold,
    resolve,
    tail_cut,
    two_means,
)
from tubal.outliers.consensus import LEAST_RESIDUAL, LEAST_SPREAD
from tubal.outliers.decisions import clear_gap, flagged_by_share
from tubal.outliers.views import TINY
from tubal.representation import LISTED, Representation, Ties, TubeKernel

SINGLE = 5e-5
"""How far scores agree: entries are compared in single precision."""


class Dense(Ties):
    """A table that is there already."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)
        self.shape = self.table.shape

    def tile(self, rows):
        return self.table[rows].copy()


def represent(x, S, E, twins=None, seen=None, scale=None, table=False):
    """A representation of vectors x with similarities S (m, n) and residuals E."""
    m = len(x)
    values, E = (np.reshape(A, (m, -1, 1)).astype(float) for A in (x, E))
    observed = None if seen is None else np.reshape(seen, values.shape)
    twins = np.arange(m) if twins is None else np.asarray(twins)
    samples = Samples(values, observed, table)
    return Representation(samples, values - E, E, Dense(S), Dense(S), twins, scale=scale)


def draw(n=40, p=6, seed=0, outliers=6):
    """Two clusters, a few odd samples, similarities without ties and residuals."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((2, p))
    centres *= 6 / np.linalg.norm(centres, axis=1, keepdims=True)
    x = centres[np.arange(n) % 2] + 0.3 * rng.standard_normal((n, p))
    odd = np.arange(n) < outliers
    x[odd] = 2 * rng.standard_normal((outliers, p))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    S = np.clip(np.abs(unit @ unit.T) - 0.02 * rng.random((n, n)), 0, 1)
    S = (S + S.T) / 2
    E = x * (0.1 + 0.5 * odd + 0.1 * rng.random(n))[:, None]
    return x, S, E, odd


# ---- the score, naively -------------------------------------------------------------------------


def near(S, j, twin, count):
    order = sorted((i for i in range(S.shape[1]) if i != twin), key=lambda i: (-S[j, i], i))
    return order[:count]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def median(values):
    values = sorted(values)
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2 if n else 0.0


def unit_norm(x, seen):
    size = [math.sqrt(sum(v * v for v in x[j]) / mean(seen[j])) for j in range(len(x))]
    return np.array([x[j] / size[j] if size[j] > 0 else x[j] for j in range(len(x))])


class Naive:
    """The five views of the docstring, entry by entry; `seen` marks entries that exist.

    `around` has the similar samples of the fit by distance, `local` None where no neighbour has
    the entry.
    """

    def __init__(self, x, S, E, twins=None, seen=None, fit=None, count=3, similar=12, table=False):
        self.n, self.p = x.shape
        self.seen = np.ones(x.shape, bool) if seen is None else seen
        self.x = unit_norm(x, self.seen)
        fit = self if fit is None else fit
        twins = range(self.n) if twins is None else twins
        self.local = [[None] * self.p for _ in range(self.n)]
        self.around = []
        self.lonely, self.residual, self.beside = [], [], []
        norms = [math.sqrt(sum(v * v for v in row)) for row in x]
        shares = [mean(row) or 1.0 for row in self.seen]
        norms = [norm / math.sqrt(share) for norm, share in zip(norms, shares, strict=True)]
        self.floor = 0.1 * median(norms) if fit is self else fit.floor
        self.size = [math.log(max(norm + self.floor, TINY)) for norm in norms]
        self.given = [row * math.exp(size) for row, size in zip(self.x, self.size, strict=True)]
        for j in range(self.n):
            N = near(S, j, twins[j], count)
            self.around.append(self.by_distance(j, near(S, j, twins[j], LISTED), fit))
            for p in range(self.p):
                some = [i for i in self.around[j][:count] if fit.seen[i, p]]
                if some and self.seen[j, p]:
                    self.local[j][p] = mean(abs(self.x[j, p] - fit.x[i, p]) for i in some)
            like = near(S, j, twins[j], similar)
            self.lonely.append(1 - mean(S[j, i] for i in like) if like else 1.0)
            size = math.sqrt(sum(v * v for v in x[j]))
            self.residual.append(math.sqrt(sum(e * e for e in E[j])) / (size or 1.0))
            if table:
                apart = [(sum((self.given[j] - fit.given[i]) ** 2), i) for i in self.around[j]]
                N = [i for _, i in sorted(apart)[:count]]
            self.beside.append(self.size[j] - median(fit.size[i] for i in N) if N else 0.0)

    def by_distance(self, j, listed, fit):
        def distance(i):
            both = [p for p in range(self.p) if self.seen[j, p] and fit.seen[i, p]]
            return mean((self.x[j, p] - fit.x[i, p]) ** 2 for p in both) if both else math.inf

        return sorted(listed, key=distance)

    def scale(self, K):
        """Median and mean distances of the inliers K, entry by entry."""
        entries = range(self.p)
        self_seen = [[j for j in K if self.seen[j, p]] for p in entries]
        centre = [median(self.x[j, p] for j in self_seen[p]) for p in entries]
        far = [mean(abs(self.x[j, p] - centre[p]) for j in self_seen[p]) for p in entries]
        locals_ = [[self.local[j][p] for j in K if self.local[j][p] is not None] for p in entries]
        apart = [mean(values) for values in locals_]
        return centre, far, apart

    def views(self, scale):
        """log global, log local, logit lonely, log residual, log size of every sample."""
        centre, far, apart = scale

        def W(A, d, there):
            level = [d[p] + 0.03 * mean(d) for p in range(self.p)]
            return mean(
                math.sqrt(A[p] / level[p]) if level[p] > 0 else 0.0
                for p in range(self.p)
                if there[p]
            )

        rows = []
        for j in range(self.n):
            g = W([abs(self.x[j, p] - centre[p]) for p in range(self.p)], far, self.seen[j])
            local = W(self.local[j], apart, [value is not None for value in self.local[j]])
            s = min(max(self.lonely[j], 1e-6), 1 - 1e-6)
            e = max(self.residual[j], LEAST_RESIDUAL)
            rows.append(
                [
                    math.log(max(g, 1e-6)),
                    math.log(max(local, 1e-6)),
                    math.log(s / (1 - s)),
                    math.log(e),
                    self.size[j],
                    self.beside[j],
                ]
            )
        return np.array(rows)

    def location(self, scale, K):
        views = self.views(scale)
        where = [median(views[j, v] for j in K) for v in range(6)]
        spread = [
            max(1.4826 * median(abs(views[j, v] - where[v]) for j in K), LEAST_SPREAD[v])
            for v in range(6)
        ]
        return where, spread

    def deviations(self, scale, location):
        where, spread = location
        return [(row - np.array(where)) / np.array(spread) for row in self.views(scale)]

    def company(self, K, z, size=12):
        """Allowance of every sample, from the global and local views z of the fit."""
        inliers = set(K)
        rows = []
        for around in self.around:
            some = [i for i in around if i in inliers][:size]
            values = [[z[i][v] for i in some] + [0.0] * (size - len(some)) for v in (0, 1)]
            rows.append([max(np.percentile(value, 25) - 0.5, 0) for value in values])
        return rows

    def scores(self, scale, location, allowances=None):
        """Return scores; without allowances, those of the beginning: no global view either."""
        T = []
        for j, z in enumerate(self.deviations(scale, location)):
            c = (math.inf, 0) if allowances is None else allowances[j]
            size = min(abs(z[4]), abs(z[5])) - 1
            parts = [z[0] - c[0], z[1] - c[1], z[2], z[3] - 2, size]
            T.append(math.sqrt(sum(max(v, 0) ** 2 for v in parts)))
        return np.array(T)

    def of_inliers(self, K, company=12):
        scale = self.scale(K)
        location = self.location(scale, K)
        z = self.deviations(scale, location)
        return self.scores(scale, location, self.company(K, z, company)), scale, location

    def detect(self, margin=1.55, limit=4.25, company=12):
        """Return scores, the level before any gap, and what scores further samples."""

        def lowest(T, share):
            return sorted(sorted(range(self.n), key=lambda j: T[j])[: math.ceil(share * self.n)])

        first = self.scale(range(self.n))
        K = lowest(self.scores(first, self.location(first, range(self.n))), 0.75)
        for _ in range(30):
            T, scale, location = self.of_inliers(K, company)
            self.last = K
            level = min(max(margin * np.percentile(T[K], 95), 2.5), limit)
            new = [j for j in range(self.n) if T[j] <= level]
            if 2 * len(new) < self.n:
                new = lowest(T, 0.5)
                level = max(T[new])
            if new == K:
                break
            K = new
        return T, level, scale, location


def tail(T, level, share):
    """Return the lowest cut above which the exponential tail of what is below explains little."""
    while True:
        kept = [t for t in T if t <= level]
        u = np.percentile(kept, 80)
        visible = [t - u for t in kept if t > u]
        if not visible or level >= max(T):
            return level
        b = decay(mean(visible), level - u)
        every = len(visible) / (1 - math.exp(-(level - u) / b))
        for cut in [level, *sorted(t for t in T if t > level)]:
            above = [t for t in T if t > cut]
            if not above or every * math.exp(-(min(above) - u) / b) <= share * len(above):
                break
        if cut == level:
            return level
        level = cut


def decay(average, end):
    """Return the mean of the exponential law whose part below `end` has this average."""

    def short(b):
        return b - end / math.expm1(min(end / b, 700)) - average

    return 10 * end if short(10 * end) < 0 else brentq(short, average, 10 * end, xtol=1e-13)


def threshold(T, level, share=0.25):
    """Return the threshold by its definition: tail, clear gap, then the middle of the room."""
    cut = clear_gap(T, tail(T, level, share))
    kept, flagged = [t for t in T if t <= cut], [t for t in T if t > cut]
    if not kept or not flagged:
        return cut
    return max(cut, min(math.sqrt(max(kept) * min(flagged)), 1.5 * cut))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("p", [1, 6])
def test_consensus_by_its_definition(seed, p):
    x, S, E, _ = draw(p=p, seed=seed)
    found = Consensus().detect(represent(x, S, E))
    T, level, _, _ = Naive(x, S, E).detect()
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)
    assert found.scores.max() > 1


def test_what_all_samples_share_costs_no_digits():
    """Differences are small beside the samples; single precision alone would drown them."""
    x, S, E, _ = draw(p=6, seed=0)
    x = 1e5 + x
    found = Consensus().detect(represent(x, S, E))
    T, level, _, _ = Naive(x, S, E).detect()
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_tables_are_beside_those_that_are_near(seed):
    x, S, E, _ = draw(p=9, seed=seed)
    x[::3] *= 3  # so that near ones and similar ones differ
    E[::3] *= 3
    found = Consensus().detect(represent(x, S, E, table=True))
    T, level, _, _ = Naive(x, S, E, table=True).detect()
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)
    other = Consensus().detect(represent(x, S, E))
    assert np.abs(other.scores - found.scores).max() > 0.1


class TestPoints:
    """Rows of tables with few columns."""

    def table(self, columns=3):
        X, labels = make_blobs(120, columns, centers=3, random_state=2)
        far = X.mean(axis=0) + 40 * np.eye(columns)[:2]
        return np.concatenate([X, far]), labels

    def test_are_found_wherever_the_origin_is(self):
        X, _ = self.table()
        plain = TensorOutlierDetector().fit(X)
        assert plain.outliers_[-2:].all()
        assert plain.outliers_[:-2].mean() < 0.02
        for other in (X + 1000, 1e5 * X - 7, -X):
            scores = TensorOutlierDetector().fit(other).outlier_scores_
            np.testing.assert_allclose(scores, plain.outlier_scores_, rtol=1e-3, atol=1e-3)

    def test_new_ones(self):
        X, _ = self.table()
        est = TensorOutlierDetector().fit(X)
        np.testing.assert_array_equal(-est.score_samples(X), est.outlier_scores_)
        near, far = X[:5] + 1e-3, X[:5] + 60
        # No lonelier than the samples that they are beside.
        assert (-est.score_samples(near) <= est.outlier_scores_[:5] + 0.1).all()
        assert (est.predict(far) == -1).all()

    def test_what_the_solver_left_says_nothing(self):
        x, S, E, _ = draw(p=4)
        one, two = (
            Consensus().detect(represent(x, ties, left, table=True))
            for ties, left in ((S, E), (S[:, ::-1], 0 * E))
        )
        np.testing.assert_array_equal(one.scores, two.scores)
        wide, S, E, _ = draw(p=8)
        one, two = (Consensus().detect(represent(wide, S, F, table=True)) for F in (E, 0 * E))
        assert np.abs(one.scores - two.scores).max() > 0.1

    def test_missing_entries(self):
        X, _ = self.table(5)
        X[::7, 1] = np.nan
        est = TensorOutlierDetector().fit(X)
        assert np.isfinite(est.outlier_scores_).all()
        assert est.outliers_[-2:].all()

    def test_all_in_one_place(self):
        assert not TensorOutlierDetector().fit(np.full((20, 3), 2.0)).outliers_.any()


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e120])
def test_points_of_any_size_are_compared(scale):
    """No warning, and the scale of a table does not matter; a far point among them is found."""
    X, _ = make_moons(60, noise=0.05, random_state=0)
    X[0] = 1e25
    plain, scaled = (ORTLRR(2, random_state=0).fit(Y) for Y in (X, scale * X))
    np.testing.assert_allclose(scaled.outlier_scores_, plain.outlier_scores_, rtol=1e-3, atol=1e-3)
    assert plain.outliers_[0]
    assert np.isfinite(plain.score_samples(X[1:4] * 1e-200)).all()


def test_points_near_the_origin_are_no_outliers():
    """A moon around the origin has points of one norm, the other one of many norms."""
    X, _ = make_moons(300, noise=0.05, random_state=0)
    assert ORTLRR(2, random_state=0).fit(X).outliers_.mean() < 0.04


def test_parameters_of_consensus():
    x, S, E, _ = draw()
    odd = Consensus(5, 4, margin=1.2, least=2.0, limit=2.0, company=6, false_alarms=0.01)
    found = odd.detect(represent(x, S, E))
    T, level, _, _ = Naive(x, S, E, count=5, similar=4).detect(margin=1.2, limit=2.0, company=6)
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level, 0.01), rtol=SINGLE)


def test_floors_of_consensus():
    """Inliers that agree exactly: what is left of a sample's views are the least spreads."""
    n, p = 20, 4
    x = np.ones((n, p))
    S = np.full((n, n), 0.9)
    E = 0.001 * x
    E[1] = 8 * LEAST_RESIDUAL * x[1]
    S[2] = S[:, 2] = 0.8
    found = Consensus().detect(represent(x, S, E))
    z = (math.log(0.2 / 0.8) - math.log(0.1 / 0.9)) / LEAST_SPREAD[2]
    expected = np.zeros(n)
    expected[1] = math.log(8) / LEAST_SPREAD[3] - 2
    expected[2] = z
    np.testing.assert_allclose(found.scores, expected, atol=SINGLE)
    T, level, _, _ = Naive(x, S, E).detect()
    np.testing.assert_allclose(found.scores, T, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, level, atol=SINGLE)
    np.testing.assert_array_equal(np.flatnonzero(found.scores > found.threshold), [1, 2])


def test_consensus_leaves_missing_entries_out():
    rng = np.random.default_rng(3)
    x, S, E, _ = draw(p=8)
    seen = rng.random(x.shape) > 0.1
    seen[:, 0] = True
    x, E = x * seen, E * seen
    found = Consensus().detect(represent(x, S, E, seen=seen))
    T, level, _, _ = Naive(x, S, E, seen=seen).detect()
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_an_entry_that_no_neighbour_has_is_left_out(share):
    """It is no distance of zero: the local view is a mean over the other entries."""
    rng = np.random.default_rng(5)
    x, S, E, _ = draw(p=8)
    seen = rng.random(x.shape) > share
    seen[:, 0] = True
    naive = Naive(x * seen, S, E * seen, seen=seen)
    lines = zip(naive.local, seen, strict=True)
    alone = [sum(v is None for v in row) - (~own).sum() for row, own in lines]
    assert sum(alone) > 5
    T, level, _, _ = naive.detect()
    found = Consensus().detect(represent(x * seen, S, E * seen, seen=seen))
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)


@pytest.mark.parametrize("n", [5, 6, 40])
def test_a_mask_that_hides_nothing(n):
    x, S, E, _ = draw(n=n, outliers=1)
    plain = Consensus().detect(represent(x, S, E))
    masked = Consensus().detect(represent(x, S, E, seen=np.ones(x.shape, bool)))
    np.testing.assert_allclose(masked.scores, plain.scores, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(masked.threshold, plain.threshold, rtol=SINGLE)
    again = masked.scorer(represent(x, S, E))
    np.testing.assert_allclose(again, plain.scores, rtol=SINGLE, atol=SINGLE)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_many_missing_entries(share):
    """Also entries that no neighbour, or no inlier at all, has."""
    rng = np.random.default_rng(0)
    x, S, E, _ = draw()
    seen = rng.random(x.shape) > share
    seen[np.arange(len(x)), rng.integers(0, 5, len(x))] = True
    seen[:, 5] = False
    seen[0] = True
    found = Consensus().detect(represent(x * seen, S, E * seen, seen=seen))
    assert np.all(np.isfinite(found.scores))
    assert np.isfinite(found.threshold)
    assert 2 * (found.scores > found.threshold).sum() <= len(x)


def test_further_samples():
    """Old samples get their old scores, new ones those of the definition."""
    x, S, E, _ = draw()
    found = Consensus().detect(represent(x, S, E))
    np.testing.assert_allclose(found.scorer(represent(x, S, E)), found.scores, rtol=SINGLE)
    rows = [7, 0, 33]
    some = found.scorer(represent(x[rows], S[rows], E[rows], twins=rows), 1)
    np.testing.assert_allclose(some, found.scores[rows], rtol=SINGLE)
    y, R, F, _ = draw(seed=9)
    old = Naive(x, S, E)
    _, _, scale, location = old.detect()
    new = Naive(y, R, F, twins=[-1] * 40, fit=old)
    excused = new.company(old.last, old.deviations(scale, location))
    expected = new.scores(scale, location, excused)
    twins = np.full(40, -1)
    np.testing.assert_allclose(
        found.scorer(represent(y, R, F, twins)), expected, rtol=SINGLE, atol=SINGLE
    )
    one = found.scorer(represent(y[4:5], R[4:5], F[4:5], twins[:1]))
    np.testing.assert_allclose(one, expected[4:5], rtol=SINGLE)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_the_samples_does_not_matter(seed):
    x, S, E, _ = draw(seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    first = Consensus().detect(represent(x, S, E))
    second = Consensus().detect(represent(x[order], S[np.ix_(order, order)], E[order]))
    np.testing.assert_allclose(second.scores, first.scores[order], rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(second.threshold, first.threshold, rtol=SINGLE)


def test_a_common_scale_does_not_matter():
    x, S, E, _ = draw()
    first, second = (Consensus().detect(represent(c * x, S, c * E)) for c in (1, 1e3))
    np.testing.assert_allclose(second.scores, first.scores, rtol=SINGLE, atol=SINGLE)


def test_scaling_that_is_known_does_not_matter():
    x, S, E, _ = draw()
    sizes = np.exp(np.random.default_rng(0).standard_normal(40))
    first = Consensus().detect(represent(x, S, E))
    scaled = represent(x / sizes[:, None], S, E / sizes[:, None], scale=sizes)
    np.testing.assert_allclose(Consensus().detect(scaled).scores, first.scores, rtol=SINGLE)


def test_a_louder_cluster_is_not_odd():
    x, S, E, _ = draw(outliers=0)
    first = Consensus().detect(represent(x, S, E))
    louder = np.arange(40) % 2 == 0  # one of the two clusters
    c = np.where(louder, 5.0, 1.0)[:, None]
    second = Consensus().detect(represent(c * x, S, c * E))
    flagged = [(found.scores > found.threshold)[louder].sum() for found in (first, second)]
    assert flagged[1] <= flagged[0]


def test_a_sample_of_another_size_is_odd():
    x, S, E, _ = draw(outliers=0)
    first = Consensus().detect(represent(x, S, E)).scores
    for factor in (1e-3, 1e3):
        c = np.where(np.arange(40) == 11, factor, 1)[:, None]
        second = Consensus().detect(represent(c * x, S, c * E))
        assert second.scores[11] > max(10, 2 * first[11])
        assert second.scores[11] > second.threshold


def test_a_sample_of_nothing_has_a_size_in_single_precision():
    x, S, E, _ = draw(outliers=0)
    c = (np.arange(40) != 11)[:, None]
    rows = represent(c * x, S, c * E, scale=np.ones(40, "f4"))
    samples = replace(rows.samples, values=rows.samples.values.astype("f4"))
    found = Consensus().detect(replace(rows, samples=samples))
    assert np.isfinite(found.scores).all()
    assert found.scores[11] > found.threshold


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_outliers_are_found(seed):
    x, S, E, odd = draw(seed=seed)
    found = Consensus().detect(represent(x, S, E))
    assert found.scores[odd].min() > found.scores[~odd].max()
    flagged = found.scores > found.threshold
    assert flagged[odd].all()
    assert flagged[~odd].sum() <= 1


def test_scores_of_a_solution():
    data = make_tensor_subspaces(12, 4, 2, 2, 15, 0.1, noise=0.05, random_state=0)
    sol = solve(data.X, lam=Lambda.auto(), tol=1e-5)
    kernel = TubeKernel.of(sol.Z.transform, sol.Z.core)
    n = len(data.X)
    rep = Representation(read(data.X), sol.L, sol.E, kernel, kernel, np.arange(n))
    found = Consensus().detect(rep)
    np.testing.assert_allclose(found.scorer(rep), found.scores, rtol=SINGLE)
    flat = [A.reshape(n, -1) for A in (data.X, sol.E)]
    naive = Naive(flat[0], np.round(kernel.tile(slice(None)), 10), flat[1])
    T, level, _, _ = naive.detect()
    np.testing.assert_allclose(found.scores, T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(found.threshold, threshold(T, level), rtol=SINGLE)


# ---- clusters and company -----------------------------------------------------------------------


def solved(X):
    """A representation of tensor samples by the robust program, as the estimators make it."""
    X = X / np.linalg.norm(X.reshape(len(X), -1), axis=1)[:, None, None]
    sol = solve(X, lam=Lambda.auto(), tol=1e-4)
    kernel = TubeKernel.of(sol.Z.transform, sol.Z.core)
    return Representation(read(X), sol.L, sol.E, kernel, kernel, np.arange(len(X)))


def cloud(rng, centre, count, width=0.3, noise=0.2):
    """Samples 8 x 6 around a centre: two directions of their own, and noise."""
    p = centre.size
    flat = width * rng.standard_normal((count, 2)) @ rng.standard_normal((2, p))
    flat = flat + noise * rng.standard_normal((count, p))
    return centre + flat.reshape(count, *centre.shape) / np.sqrt(p)


def directions(rng, count):
    C = rng.standard_normal((count, 8, 6))
    return C / np.linalg.norm(C, axis=(1, 2), keepdims=True)


def two_equal(rng):
    return [cloud(rng, c, 60) for c in directions(rng, 2)]


def two_tight(rng):
    return [cloud(rng, c, 60, 0.1, 0.05) for c in directions(rng, 2)]


def one_far(rng):
    """Four clusters on one side, and a small compact one on the other."""
    base, *others = directions(rng, 6)
    near = [cloud(rng, base + 0.5 * c, 40) for c in others[:4]]
    return [*near, cloud(rng, 0.2 * others[4] - base, 25, 0.1, 0.1)]


def unequal(rng):
    return [cloud(rng, c, n) for c, n in zip(directions(rng, 3), (120, 60, 40), strict=True)]


KINDS = pytest.mark.parametrize("kind", [two_equal, two_tight, one_far, unequal])


@KINDS
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [0, 12, 40])
def test_a_cluster_is_no_outlier(kind, seed, count):
    """However far from the rest; and scattered samples are found among clusters."""
    rng = np.random.default_rng(seed)
    parts = kind(rng)
    X = np.concatenate([*parts, directions(rng, count)])
    found = Consensus().detect(solved(X))
    flagged = found.scores > found.threshold
    cluster = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    shares = [flagged[: len(cluster)][cluster == k].mean() for k in range(len(parts))]
    assert max(shares) <= (0 if count else 0.25)
    assert flagged[len(cluster) :].all()


@pytest.mark.parametrize("seed", range(3))
def test_a_wide_cluster_beside_a_compact_one_is_no_outlier(seed):
    rng = np.random.default_rng(seed)
    one, other = directions(rng, 2)
    X = np.concatenate([cloud(rng, one, 50, 0.05, 0.05), cloud(rng, other, 50, 0.4, 0.25)])
    found = Consensus().detect(solved(X))
    assert (found.scores > found.threshold)[50:].mean() <= 0.2


def test_company_of_a_far_cluster():
    """Twenty of a kind are company, three are not."""
    rng = np.random.default_rng(0)
    bulk, far = np.ones(12), np.where(np.arange(12) % 2, 1.0, -1.0)
    for count, excused in ((20, True), (3, False)):
        x = np.concatenate([np.tile(bulk, (60, 1)), np.tile(far, (count, 1))])
        x = x + 0.1 * rng.standard_normal(x.shape)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        found = Consensus().detect(represent(x, np.clip(unit @ unit.T, 0, 1), 0.1 * x))
        flagged = (found.scores > found.threshold)[60:]
        assert (not flagged.any()) if excused else flagged.all()


# ---- odd data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 30])
@pytest.mark.parametrize("case", ["random", "identical", "zeros", "one zero", "strangers"])
def test_odd_data(case, n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 4))
    S = rng.random((n, n))
    E = 0.1 * rng.standard_normal((n, 4))
    if case == "identical":
        x[:], S[:], E[:] = x[0], 1, E[0]
    elif case == "zeros":
        x[:], S[:], E[:] = 0, 0, 0
    elif case == "one zero":
        x[0], S[0], S[:, 0], E[0] = 0, 0, 0, 0
    elif case == "strangers":
        S = np.eye(n)
    found = Consensus().detect(represent(x, S, E))
    assert np.all(np.isfinite(found.scores))
    assert np.isfinite(found.threshold)
    flagged = found.scores > found.threshold
    assert 2 * flagged.sum() <= n
    assert np.all(np.isfinite(found.scorer(represent(x[:1], S[:1], E[:1], [-1]))))
    if case in ("identical", "zeros"):
        assert not flagged.any()


@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 3), st.integers(0, 9999))
def test_outliers_are_the_minority(n, p, kind, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) ** 3 if kind else rng.standard_cauchy((n, p))
    S = rng.random((n, n)) ** rng.choice([0.2, 1, 5])
    if kind == 2:  # one sample many times over
        x[: n // 2], S = x[0], np.round(S)
    E = x * rng.random((n, 1)) ** rng.choice([0.5, 1, 8, 30])
    found = Consensus().detect(represent(x, S, E))
    assert np.all(np.isfinite(found.scores))
    assert 2 * (found.scores > found.threshold).sum() <= n


# ---- the clear gap ------------------------------------------------------------------------------


def ladder(*above, below=10):
    return np.concatenate([np.linspace(0, 1, below), above])


def test_no_gap_among_few():
    assert clear_gap(ladder(1.1, 5, 5, 5, 5, 5, 5), 1.0) == 1.0
    assert clear_gap(ladder(), 1.0) == 1.0


def test_a_clear_gap_moves_the_cut():
    above = [1.1, 1.2, *np.linspace(3, 3.5, 6)]  # 2 of 8 may fall below
    assert clear_gap(ladder(*above), 1.0) == pytest.approx((1.2 + 3) / 2)
    rng = np.random.default_rng(0)
    assert clear_gap(rng.permutation(ladder(*above)), 1.0) == pytest.approx(2.1)


def test_a_gap_may_leave_no_less_than_three_quarters():
    above = [1.1, 1.15, 1.2, *np.linspace(1.6, 1.9, 5)]  # the gap is after 3 of 8
    assert clear_gap(ladder(*above), 1.0) == 1.0
    above = [1.1, 1.22, 1.3, *np.linspace(1.9, 2.2, 6)]  # 9 flagged: 2 may fall below, not 3
    assert clear_gap(ladder(*above), 1.05) == 1.05
    above = [1.1, 1.4, *np.linspace(1.45, 2, 6), 9]  # the largest allowed ratio counts
    assert clear_gap(ladder(*above), 1.05) == pytest.approx(1.25)


@pytest.mark.parametrize("below", [4, 5, 6])
def test_a_gap_among_twenty(below):
    """A quarter of the flagged, 5, may fall below it."""
    above = [*np.linspace(1.05, 1.2, below), *np.linspace(1.6, 1.9, 20 - below)]
    expected = 1.4 if below <= 5 else 1.0
    assert clear_gap(ladder(*above), 1.0) == pytest.approx(expected)


@pytest.mark.parametrize(("below", "gap"), [(8, 1.52), (8, 1.48), (9, 1.52)])
def test_a_wide_gap_may_leave_a_third(below, gap):
    """Of 12 flagged 8 may fall below a ratio of 1.5."""
    above = [*np.linspace(1.1, 1.4, below), *np.linspace(1.4 * gap, 2.4, 12 - below)]
    expected = 1.4 * (1 + gap) / 2 if (below, gap) == (8, 1.52) else 1.0
    assert clear_gap(ladder(*above), 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("last", [1.7, 1.3])
def test_a_sparse_place_among_many(last):
    """Eight of 80 flagged thinly spread, then a crowd: four places make a clear ratio."""
    thin = np.geomspace(1.1, last, 8)
    crowd = np.linspace(1.01, 1.2, 72) * last
    clear = (last / 1.1) ** (4 / 7) >= 1.15
    cut = clear_gap(ladder(*thin, *crowd), 1.05)
    assert (1.1 < cut < crowd[0]) if clear else cut == 1.05
    few = clear_gap(ladder(*thin, *crowd[:12]), 1.05)  # of 20 flagged a single step counts
    assert few == 1.05


def test_a_gap_must_be_clear():
    above = [1.15, *np.linspace(1.31, 1.5, 7)]
    assert clear_gap(ladder(*above), 1.02) == 1.02  # a ratio of 1.14
    above[0] = 1.13
    assert clear_gap(ladder(*above), 1.02) == pytest.approx(1.22)  # of 1.159


def test_the_step_from_the_level_is_no_move():
    assert clear_gap(ladder(2, *np.linspace(2.5, 3, 7)), 1.0) == 1.0
    assert clear_gap(np.array([0.0] * 10 + [1.0] * 8), 0.0) == 0.0


# ---- the tail of the inliers --------------------------------------------------------------------


def test_the_end_of_a_tail_is_no_outlier():
    rng = np.random.default_rng(0)
    for scale in (0.3, 1, 10):
        tails = [scale * rng.exponential(size=400) for _ in range(20)]
        cuts = [tail_cut(t, float(np.percentile(t, 96)), 0.3) for t in tails]
        flagged = [(t > cut).sum() for t, cut in zip(tails, cuts, strict=True)]
        assert np.mean(flagged) < 1.5  # of 16 above the level


@pytest.mark.parametrize("count", [2, 20, 80])
def test_a_crowd_is_more_than_a_tail(count):
    scores = -np.log(np.linspace(1 / 500, 1, 500))
    crowd = 2 * scores.max() + np.linspace(0, 0.2, count)
    cut = tail_cut(np.append(scores, crowd), 5.0, 0.3)
    assert 5 <= cut < crowd.min()
    near = np.append(scores, np.full(count, 5.5))  # the tail has 2 of 500 above 5.5
    assert (tail_cut(near, 5.0, 0.3) < 5.5) == (count > 2)


@given(st.lists(st.floats(0, 50), min_size=2, max_size=30), st.floats(0, 40))
def test_tail_by_its_definition(values, level):
    T = np.array(values)
    assume((T <= level).any())
    assert tail_cut(T, level, 0.3) == pytest.approx(tail(T, level, 0.3))


def test_no_tail():
    assert tail_cut(np.ones(9), 2.0, 0.3) == 2.0
    assert tail_cut(np.append(np.ones(9), 7), 2.0, 0.3) == 2.0


# ---- the paper's rule ---------------------------------------------------------------------------


def inertia(groups):
    return sum(((np.array(g) - np.mean(g)) ** 2).sum() for g in groups if len(g))


numbers = st.one_of(
    st.lists(st.floats(0, 100), min_size=2, max_size=9),
    st.lists(st.integers(0, 4).map(float), min_size=2, max_size=9),
)


@given(numbers)
def test_two_means_by_trying_every_split(values):
    x = np.array(values)
    threshold = two_means(x)
    if np.ptp(x) <= 1e-12 * x.max():
        assert threshold == np.inf
        return
    lower, upper = x[x <= threshold], x[x > threshold]
    assert len(lower) and len(upper)
    best = min(
        inertia([x[np.array(side)], x[~np.array(side)]])
        for side in itertools.product([False, True], repeat=len(x))
        if 0 < sum(side) < len(x)
    )
    assert inertia([lower, upper]) <= best * (1 + 1e-9) + 1e-12 * (x**2).sum()
    assert threshold == pytest.approx((lower.max() + upper.min()) / 2)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=40, unique=True))
def test_two_means_and_scikit_learn(values):
    x = np.array(values)
    assume(np.ptp(x) > 1e-3)
    threshold = two_means(x)
    model = KMeans(2, n_init=5, random_state=0).fit(x[:, None])
    ours = inertia([x[x <= threshold], x[x > threshold]])
    assert ours <= model.inertia_ * (1 + 1e-6) + 1e-9


def test_two_means_of_clear_groups():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(50), 10 + rng.random(7)])
    rng.shuffle(x)
    labels = KMeans(2, n_init=5, random_state=0).fit_predict(x[:, None])
    upper = labels == labels[x.argmax()]
    np.testing.assert_array_equal(x > two_means(x), upper)
    assert two_means(x) == pytest.approx((x[~upper].max() + x[upper].min()) / 2)


def test_two_means_of_hardly_anything():
    assert two_means(np.array([3.0])) == np.inf
    assert two_means(np.full(5, 0.1) * 3) == np.inf
    assert two_means(np.zeros(4)) == np.inf
    assert two_means(np.array([0.0, 1.0])) == 0.5
    assert two_means(np.array([1.0, 1.0, 1.0, 2.0])) == 1.5
    values = np.array([5, 1, 1], dtype=np.float32)
    assert two_means(values) == 3.0
    np.testing.assert_array_equal(values, [5, 1, 1])


def test_residual_rule():
    x, S, E, _ = draw()
    found = Residual().detect(represent(x, S, E))
    energy = np.array([sum(e * e for e in row) for row in E])
    np.testing.assert_allclose(found.scores, energy)
    assert found.threshold == pytest.approx(two_means(energy))
    other = represent(x[:3], S[:3], 2 * E[:3])
    np.testing.assert_allclose(found.scorer(other), 4 * energy[:3])
    same = represent(x, S, np.ones_like(E))
    assert not np.any(Residual().detect(same).scores > Residual().detect(same).threshold)


def test_no_detection():
    x, S, E, _ = draw()
    found = Nothing().detect(represent(x, S, E))
    assert found.threshold == np.inf
    np.testing.assert_allclose(found.scores, (E**2).sum(axis=1))


# ---- a given share ------------------------------------------------------------------------------


@given(st.integers(2, 60), st.integers(0, 30), st.integers(0, 99))
def test_contamination_flags_the_share(n, count, seed):
    assume(2 * count <= n)
    scores = np.random.default_rng(seed).permutation(n) + 0.5
    threshold = contamination_threshold(scores, count / n)
    assert (scores > threshold).sum() == count
    assert set(scores[scores > threshold]) == set(np.sort(scores)[n - count :])


@pytest.mark.parametrize("n", [2, 3, 10, 11, 41, 51, 91, 101, 161, 1001])
def test_the_number_flagged_is_known_before(n):
    """Also where `share (n - 1)` is a whole number but for rounding."""
    scores = np.random.default_rng(0).permutation(n) + 0.5
    for percent in range(51):
        count = -(-percent * (n - 1) // 100)
        assert flagged_by_share(n, percent / 100) == count
        assert (scores > contamination_threshold(scores, percent / 100)).sum() == count


@pytest.mark.parametrize("share", [0.05, 0.1, 0.13, 0.25, 0.33, 0.5])
@pytest.mark.parametrize("n", [20, 21, 50])
def test_contamination_is_that_of_scikit_learn(share, n):
    X = np.random.default_rng(0).standard_normal((n, 2))
    model = LocalOutlierFactor(n_neighbors=5, contamination=share).fit(X)
    scores = -model.negative_outlier_factor_
    threshold = contamination_threshold(scores, share)
    assert threshold == pytest.approx(-model.offset_)
    np.testing.assert_array_equal(scores > threshold, model.fit_predict(X) == -1)


def test_contamination_never_flags_ties():
    assert not np.any(np.ones(10) > contamination_threshold(np.ones(10), 0.3))
    scores = np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 5.0])
    np.testing.assert_array_equal(scores > contamination_threshold(scores, 0.4), scores == 5)


# ---- what a user may pass -----------------------------------------------------------------------


def test_names():
    assert resolve("auto") == Consensus()
    assert resolve("published") == Residual()
    assert resolve(None) == Nothing()
    mine = Consensus(n_neighbors=7)
    assert resolve(mine) is mine
    assert isinstance(mine, Detector)


def test_the_limits_of_the_threshold_leave_room():
    with pytest.raises(ValueError, match=r"least must be at most limit=2, got least=5"):
        Consensus(least=5, limit=2)
    assert Consensus(least=3, limit=3).least == 3


@pytest.mark.parametrize("bad", ["none", "Auto", 0.1, True, Consensus, ["auto"]])
def test_other_names_are_refused(bad):
    with pytest.raises(ValueError, match=r"outliers must be one of .*'auto'.* or a Detector, got"):
        resolve(bad)


def test_a_detection_can_be_given_another_threshold():
    x, S, E, _ = draw()
    found = Residual().detect(represent(x, S, E))
    assert isinstance(found, Detection)
    assert replace(found, threshold=0.0).scores is found.scores
