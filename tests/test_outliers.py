"""Outlier scores by loops over their definition, and cuts by trying everything."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
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
    tail_quantile,
    two_means,
)
from tubal.outliers.consensus import LEAST_RESIDUAL, LEAST_SPREAD
from tubal.outliers.decisions import (
    centred,
    clear_gap,
    false_alarm_threshold,
    flagged_by_share,
    lowest,
)
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


def represent(x, S, E, twins=None, seen=None, table=False, hidden=0.0, scaled=True):
    """A representation of vectors x with similarities S (m, n) and residuals E.

    Samples are brought to unit norm, as estimators do, when `scaled`. Where entries are missing,
    `hidden` is explained.
    """
    m = len(x)
    sizes = norms(x, seen) if scaled else np.ones(m)
    unit = np.where(sizes > 0, sizes, 1)
    values, E, L = (
        np.reshape(A / unit[:, None], (m, -1, 1)).astype(float) for A in (x, E, x - E + hidden)
    )
    observed = None if seen is None else np.reshape(seen, values.shape)
    twins = np.arange(m) if twins is None else np.asarray(twins)
    samples = Samples(values, observed, table)
    return Representation(samples, L, E, Dense(S), Dense(S), twins, scale=unit)


def norms(x, seen=None):
    """Norms of vectors, as if missing entries were like the others."""
    shares = np.ones(len(x)) if seen is None else seen.mean(axis=1)
    return np.sqrt((x**2).sum(axis=1) / shares)


def draw(n=40, p=6, seed=0, outliers=6, damaged=4):
    """Two clusters, a few odd samples, a few covered by noise, and similarities without ties."""
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
    E += 0.1 * rng.standard_normal((n, p))
    noise = rng.standard_normal((damaged, p)) * min(p - 1, 1)
    noise *= 3.5 / np.maximum(np.linalg.norm(noise, axis=1, keepdims=True), 1e-9)
    x[outliers : outliers + damaged] += noise
    E[outliers : outliers + damaged] += noise
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


def root_of_squares(values):
    return math.sqrt(sum(max(v, 0) ** 2 for v in values))


class Naive:
    """The five views of the docstring, entry by entry; `seen` marks entries that exist.

    `sizes` are the norms before anything was scaled. `around` has the similar samples of the fit
    by distance, `local` None where no neighbour has the entry.
    """

    def __init__(self, x, S, E, sizes, twins, seen, fit, counts, table):
        count, similar = counts
        self.n, self.p = x.shape
        self.seen = np.ones(x.shape, bool) if seen is None else seen
        self.table = table
        self.residual = relative(E, x)
        own = np.ones(self.n) if table else norms(x, self.seen)
        self.x = x / np.where(own > 0, own, 1)[:, None]
        fit = self if fit is None else fit
        self.floor = 0.1 * median(sizes) if fit is self else fit.floor
        self.size = [0.0 if table else math.log(max(s + self.floor, TINY)) for s in sizes]
        self.local = [[None] * self.p for _ in range(self.n)]
        self.around, self.lonely, self.beside = [], [], []
        for j in range(self.n):
            self.around.append(self.by_distance(j, near(S, j, twins[j], LISTED), fit))
            for p in range(self.p):
                some = [i for i in self.around[j][:count] if fit.seen[i, p]]
                if some and self.seen[j, p]:
                    self.local[j][p] = mean(abs(self.x[j, p] - fit.x[i, p]) for i in some)
            like = near(S, j, twins[j], similar)
            self.lonely.append(1 - mean(S[j, i] for i in like) if like else 1.0)
            beside = near(S, j, twins[j], count)
            self.beside.append(self.size[j] - median(fit.size[i] for i in beside))

    def by_distance(self, j, listed, fit):
        def distance(i):
            both = [p for p in range(self.p) if self.seen[j, p] and fit.seen[i, p]]
            return mean((self.x[j, p] - fit.x[i, p]) ** 2 for p in both) if both else math.inf

        return sorted(listed, key=distance)

    def entries(self, K):
        """Median and mean distances of the inliers K, entry by entry."""
        entries = range(self.p)
        self_seen = [[j for j in K if self.seen[j, p]] for p in entries]
        centre = [median(self.x[j, p] for j in self_seen[p]) for p in entries]
        far = [mean(abs(self.x[j, p] - centre[p]) for j in self_seen[p]) for p in entries]
        locals_ = [[self.local[j][p] for j in K if self.local[j][p] is not None] for p in entries]
        apart = [mean(values) for values in locals_]
        return centre, far, apart

    def views(self, entries):
        """log global, log local, logit isolation, log residual and both log sizes."""
        centre, far, apart = entries

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
            logs = [math.log(max(g, 1e-6)), math.log(max(local, 1e-6)), math.log(s / (1 - s))]
            logs.append(math.log(max(self.residual[j], LEAST_RESIDUAL)))
            rows.append([*logs, self.size[j], self.beside[j]])
        return np.array(rows)

    def scale(self, K):
        """Return what inliers K are like: entries, location and spread, and z of all samples."""
        entries = self.entries(K)
        views = self.views(entries)
        where = [median(views[j, v] for j in K) for v in range(6)]
        spread = [
            max(1.4826 * median(abs(views[j, v] - where[v]) for j in K), LEAST_SPREAD[v])
            for v in range(6)
        ]
        return entries, where, spread, (views - where) / spread

    def deviations(self, scale):
        """Return how far each sample is from inliers, in the five views."""
        entries, where, spread, _ = scale
        rows = []
        for z in (self.views(entries) - where) / spread:
            size = min(abs(z[4]), abs(z[5])) - 1
            rows.append([z[0], z[1], 0.0 if self.table else z[2], z[3] - 2, size])
        return rows

    def scores(self, scale, K, company):
        """Return scores, when K are the inliers and `scale` theirs."""
        z, scores = scale[-1], []
        for around, (g, local, *others) in zip(self.around, self.deviations(scale), strict=True):
            asked = [i for i in around if i in set(K)], around
            excused = []
            for v, some in enumerate(asked):
                values = [z[i][v] for i in some[:company]]
                values += [0.0] * (company - len(values))
                excused.append(max(np.percentile(values, 100 / 6) - 0.5, 0))
            scores.append(root_of_squares([g - excused[0], local - excused[1], *others]))
        return np.array(scores)


class Definition:
    """Scores and threshold by their definition."""

    def __init__(
        self,
        x,
        S,
        E,
        seen=None,
        table=False,
        hidden=0.0,
        counts=(3, 12),
        company=12,
        share=0.01,
        damage=True,
    ):
        self.options, self.company, self.damage = (counts, table), company, damage
        self.seen, self.hidden = seen, hidden
        n = len(x)
        self.fit = None
        self.fit = observed, explained = self.looked_at(x, S, E, range(n), seen, hidden)
        K = max((self.inliers(observed, share, at) for at in (0.75, 0.5)), key=self.gap)
        self.K, self.scales = K, [part.scale(K) for part in (observed, explained)]
        both = zip(self.fit, self.scales, strict=True)
        whole, part = (samples.scores(scale, K, company) for samples, scale in both)
        unusual, usual, self.home = (
            naive_tail([values[j] for j in K], share) for values in (observed.residual, whole, part)
        )
        self.unusual = max(unusual, LEAST_RESIDUAL)
        self.scores, at_home = self.combined(self.fit)
        self.level = naive_false_alarms(self.scores, K, share)
        self.threshold = naive_centred(self.scores, clear_gap(self.scores, self.level))
        self.damaged = at_home & (whole > usual)

    def looked_at(self, x, S, E, twins, seen=None, hidden=0.0):
        """Return the samples as they are, and as they were explained; the latter are complete."""
        fit, sizes, L = self.fit or (None, None), norms(x, seen), x - E + hidden
        observed = Naive(x, S, E, sizes, twins, seen, fit[0], *self.options)
        explained = Naive(L, S, 0 * E, sizes, twins, None, fit[1], *self.options)
        return observed, explained

    def gap(self, K):
        """Smallest score outside of K over the largest inside; 1 when those outside are a group."""
        samples, others = self.fit[0], [j for j in range(self.fit[0].n) if j not in K]
        around = [i for j in others for i in samples.around[j][: self.company] if i is not None]
        if len(K) <= self.company or 2 * sum(i not in K for i in around) >= len(around):
            return 1.0
        T = samples.scores(samples.scale(K), K, self.company)
        largest = max(T[j] for j in K)
        return min(T[j] for j in others) / largest if largest > 0 else math.inf

    def inliers(self, samples, share, at):
        n = samples.n
        start = samples.deviations(samples.scale(range(n)))
        K = naive_lowest([root_of_squares(z[1:]) for z in start], at)
        for _ in range(30):
            T = samples.scores(samples.scale(K), K, self.company)
            level = min(naive_tail([T[j] for j in K], 0.01), 6.0)
            new = [j for j in range(n) if T[j] <= level]
            new = new if 2 * len(new) >= n else naive_lowest(T, 0.5)
            if new == K:
                return K
            K = new
        raise AssertionError("draw something for which the inliers stay the same")

    def combined(self, both):
        """Return scores, and which samples are covered by noise but at home."""
        whole, part = (
            samples.scores(scale, self.K, self.company)
            for samples, scale in zip(both, self.scales, strict=True)
        )
        scores, at_home = [], []
        for r, a, b in zip(both[0].residual, whole, part, strict=True):
            noisy = r > self.unusual and r <= 0.6 and self.damage
            at_home.append(noisy and b <= self.home)
            scores.append(b if at_home[-1] else max(a, b))
        return np.array(scores), np.array(at_home)

    def of_new(self, x, S, E):
        return self.combined(self.looked_at(x, S, E, [-1] * len(x)))[0]

    def check(self, found):
        np.testing.assert_allclose(found.scores, self.scores, rtol=SINGLE, atol=SINGLE)
        np.testing.assert_allclose(found.threshold, self.threshold, rtol=SINGLE)
        np.testing.assert_array_equal(found.damaged, self.damaged)


def relative(E, x):
    pairs = zip(np.linalg.norm(E, axis=1), np.linalg.norm(x, axis=1), strict=True)
    return [left / (size or 1.0) for left, size in pairs]


def naive_lowest(T, share):
    return sorted(sorted(range(len(T)), key=lambda j: T[j])[: math.ceil(share * len(T))])


def naive_tail(values, share):
    """Return the quantile of the exponential law that has the 95 % quantile of these values."""
    ordered = sorted(values)
    place = 0.95 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    quantile = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return float(quantile) * (math.log(share) / math.log(0.05))


def naive_false_alarms(T, K, share):
    """Return the level above which scores are flagged, by asking for every score."""
    T, K, n = list(T), sorted(K), len(T)
    for _ in range(30):
        mean_of_tail = naive_tail([T[j] for j in K], math.exp(-1))
        step = math.inf  # the lowest score from which on half are outliers
        for t in T:
            beyond = sum(other >= t for other in T)
            if mean_of_tail > 0:
                p = math.exp(-min(float(t) / mean_of_tail, 1e3))  # nought from 746 on
            else:
                p = float(t <= 0)
            if n * p <= beyond / 2:
                step = min(step, t)
        level = max(T)
        if step < math.inf:
            level = max(naive_tail([T[j] for j in K], share), math.nextafter(step, -math.inf))
        rare = naive_tail([T[j] for j in K], 0.01)
        new = [j for j in range(n) if T[j] <= max(level, rare)]
        new = new if 2 * len(new) >= n else naive_lowest(T, 0.5)
        if new == K:
            break
        K = new
    return max([level, *(T[j] for j in naive_lowest(T, 0.5))])


def naive_centred(T, cut):
    kept, flagged = [t for t in T if t <= cut], [t for t in T if t > cut]
    if not kept or not flagged:
        return cut
    return max(cut, min(math.sqrt(max(kept) * min(flagged)), 1.5 * cut))


@pytest.mark.parametrize(("p", "seed"), [(1, 0), (1, 1), (1, 4), (6, 0), (6, 1), (6, 2), (6, 3)])
def test_consensus_by_its_definition(seed, p):
    x, S, E, _ = draw(p=p, seed=seed)
    found = Consensus().detect(represent(x, S, E))
    Definition(x, S, E).check(found)
    assert found.scores.max() > 1


@pytest.mark.parametrize("seed", [6])
def test_the_definition_tells_damaged_samples(seed):
    """Noise makes them odd, but what is left without it is not."""
    x, S, E, odd = draw(seed=seed, outliers=3)
    naive = Definition(x, S, E)
    naive.check(Consensus().detect(represent(x, S, E)))
    assert set(np.flatnonzero(naive.damaged)) >= {3, 4, 5}  # of 6 there is more noise than that
    assert (naive.scores > naive.threshold)[odd].all()
    assert not (naive.scores > naive.threshold)[[3, 4, 5, *range(7, 40)]].any()
    careless = Definition(x, S, E, damage=False)
    np.testing.assert_array_equal(careless.scores > careless.threshold, np.arange(40) < 7)
    assert not careless.damaged.any()


def test_what_all_samples_share_costs_no_digits():
    """Differences are small beside the samples; single precision alone would drown them."""
    x, S, E, _ = draw(p=6, seed=0)
    x = 100 + x
    Definition(x, S, E).check(Consensus().detect(represent(x, S, E)))


@pytest.mark.parametrize(("p", "seed"), [(2, 0), (2, 2), (9, 0), (9, 1)])
def test_rows_of_tables_are_where_they_were_given(seed, p):
    x, S, E, _ = draw(p=p, seed=seed)
    x[::3] *= 3
    E[::3] *= 3
    found = Consensus().detect(represent(x, S, E, table=True))
    Definition(x, S, E, table=True).check(found)
    other = Consensus().detect(represent(x, S, E))
    assert np.abs(other.scores - found.scores).max() > 0.1


class TestPoints:
    """Rows of tables."""

    def table(self, columns=3):
        X, labels = make_blobs(120, columns, centers=3, random_state=2)
        far = X.mean(axis=0) + 40 * np.eye(columns)[:2]
        return np.concatenate([X, far]), labels

    @pytest.mark.parametrize("columns", [2, 3, 8])
    def test_far_ones_are_found(self, columns):
        X, _ = self.table(columns)
        plain = TensorOutlierDetector().fit(X)
        assert plain.outliers_[-2:].all()
        assert plain.outliers_[:-2].mean() < 0.03
        for other in (1e5 * X, -X):
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

    def test_their_norm_and_their_ties_say_nothing(self):
        """Similarities choose who is around, not how lonely a row is."""
        x, S, E, _ = draw(p=4)
        one, two = (Consensus().detect(represent(x, T, E, table=True)) for T in (S, S / 3))
        np.testing.assert_array_equal(one.scores, two.scores)
        rows = represent(x, S, E, table=True)
        raw = Consensus().detect(represent(x, S, E, table=True, scaled=False))
        np.testing.assert_allclose(Consensus().detect(rows).scores, raw.scores, rtol=1e-3)

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
    for far in (7.0, 1e25):
        X[0] = far
        plain, scaled = (ORTLRR(2, random_state=0).fit(Y) for Y in (X, scale * X))
        assert plain.outliers_[0]
        assert scaled.outliers_[0]
        a, b = (est.outlier_scores_ for est in (plain, scaled))
        # the far point resembles all others as little: which are its nearest is left to rounding
        np.testing.assert_allclose(b[0], a[0], rtol=0.05)
        if far < 10:
            np.testing.assert_allclose(b[1:], a[1:], rtol=5e-3, atol=1e-3)
        assert np.isfinite(plain.score_samples(X[1:4] * 1e-200)).all()


def test_points_near_the_origin_are_no_outliers():
    """A moon around the origin has points of one norm, the other one of many norms."""
    X, _ = make_moons(300, noise=0.05, random_state=0)
    assert ORTLRR(2, random_state=0).fit(X).outliers_.mean() < 0.04


@pytest.mark.parametrize("share", [0.001, 0.02])
def test_parameters_of_consensus(share):
    x, S, E, _ = draw(seed=5)
    found = Consensus(share, 5, 4, company=6).detect(represent(x, S, E))
    Definition(x, S, E, counts=(5, 4), company=6, share=share).check(found)


def test_floors_of_consensus():
    """Inliers that agree exactly: what is left of a sample's views are the least spreads."""
    n, p = 20, 4
    x = np.ones((n, p))
    S = np.full((n, n), 0.9)
    E = 0.001 * x
    E[1] = 8 * LEAST_RESIDUAL * x[1]  # less of the same is no oddity
    S[2] = S[:, 2] = 0.8
    x[3] = 2
    found = Consensus().detect(represent(x, S, E))
    expected = np.zeros(n)
    expected[2] = (math.log(0.2 / 0.8) - math.log(0.1 / 0.9)) / LEAST_SPREAD[2]
    expected[3] = math.log((2 + 0.1) / (1 + 0.1)) / LEAST_SPREAD[4] - 1
    np.testing.assert_allclose(found.scores, expected, atol=SINGLE)
    naive = Definition(x, S, E)
    np.testing.assert_allclose(found.scores, naive.scores, atol=SINGLE)
    np.testing.assert_array_equal(np.flatnonzero(found.scores > found.threshold), [2, 3])


def test_small_residuals_do_not_cover_a_sample():
    """Below a twentieth they are no sign of noise, however unusual."""
    x, S, E, odd = draw(outliers=3, damaged=0)
    E = 1e-6 * x
    E[:3] = 0.9 * LEAST_RESIDUAL * x[:3]
    found = Consensus().detect(represent(x, S, E))
    Definition(x, S, E).check(found)
    assert found.scorer.unusual == LEAST_RESIDUAL
    assert (found.scores > found.threshold)[odd].all()


def test_consensus_leaves_missing_entries_out():
    """As observed; the explained part has no holes."""
    rng = np.random.default_rng(3)
    x, S, E, _ = draw(p=8)
    seen = rng.random(x.shape) > 0.1
    seen[:, 0] = True
    hidden = np.where(seen, 0, x - E)
    x, E = x * seen, E * seen
    found = Consensus().detect(represent(x, S, E, seen=seen, hidden=hidden))
    Definition(x, S, E, seen=seen, hidden=hidden).check(found)
    other = Consensus().detect(represent(x, S, E, seen=seen))  # zero is explained in the holes
    assert np.abs(other.scores - found.scores).max() > 0.1


@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("table", [False, True])
def test_an_entry_that_no_neighbour_has_is_left_out(share, table):
    """It is no distance of zero: the local view is a mean over the other entries."""
    rng = np.random.default_rng(5)
    x, S, E, _ = draw(p=8)
    seen = rng.random(x.shape) > share
    seen[:, 0] = True
    hidden = np.where(seen, 0, x - E)
    x, E = x * seen, E * seen
    naive = Definition(x, S, E, seen=seen, hidden=hidden, table=table)
    lines = zip(naive.fit[0].local, seen, strict=True)
    alone = [sum(v is None for v in row) - (~own).sum() for row, own in lines]
    assert sum(alone) > 5
    naive.check(Consensus().detect(represent(x, S, E, seen=seen, hidden=hidden, table=table)))


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


@pytest.mark.parametrize("table", [False, True])
def test_further_samples(table):
    """Old samples get their old scores, new ones those of the definition."""
    x, S, E, _ = draw()
    found = Consensus().detect(represent(x, S, E, table=table))
    again = found.scorer(represent(x, S, E, table=table))
    np.testing.assert_allclose(again, found.scores, rtol=SINGLE, atol=SINGLE)
    rows = [7, 0, 33]
    some = found.scorer(represent(x[rows], S[rows], E[rows], twins=rows, table=table), 1)
    np.testing.assert_allclose(some, found.scores[rows], rtol=SINGLE, atol=SINGLE)
    y, R, F, _ = draw(seed=9)
    naive = Definition(x, S, E, table=table)
    expected = naive.of_new(y, R, F)
    assert sum(r > naive.unusual for r in relative(F, y)) > 3
    twins = np.full(40, -1)
    np.testing.assert_allclose(
        found.scorer(represent(y, R, F, twins, table=table)), expected, rtol=SINGLE, atol=SINGLE
    )
    one = found.scorer(represent(y[4:5], R[4:5], F[4:5], twins[:1], table=table))
    np.testing.assert_allclose(one, expected[4:5], rtol=SINGLE)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_the_samples_does_not_matter(seed):
    x, S, E, _ = draw(seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    first = Consensus().detect(represent(x, S, E))
    second = Consensus().detect(represent(x[order], S[np.ix_(order, order)], E[order]))
    np.testing.assert_allclose(second.scores, first.scores[order], rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(second.threshold, first.threshold, rtol=SINGLE)
    np.testing.assert_array_equal(second.damaged, first.damaged[order])


@pytest.mark.parametrize("scaled", [False, True])
def test_a_common_scale_does_not_matter(scaled):
    x, S, E, _ = draw()
    first, second = (
        Consensus().detect(represent(c * x, S, c * E, scaled=scaled)) for c in (1, 1e3)
    )
    np.testing.assert_allclose(second.scores, first.scores, rtol=SINGLE, atol=SINGLE)


def test_scaling_of_points_that_is_known_does_not_matter():
    x, S, E, _ = draw()
    x[::4] *= 3
    E[::4] *= 3
    first, second = (
        Consensus().detect(represent(x, S, E, scaled=scaled, table=True))
        for scaled in (True, False)
    )
    np.testing.assert_allclose(second.scores, first.scores, rtol=SINGLE, atol=SINGLE)


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
    rows = represent(c * x, S, c * E)
    samples = replace(rows.samples, values=rows.samples.values.astype("f4"))
    found = Consensus().detect(replace(rows, samples=samples, scale=rows.scale.astype("f4")))
    assert np.isfinite(found.scores).all()
    assert found.scores[11] > found.threshold


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_outliers_are_found(seed):
    x, S, E, odd = draw(seed=seed)
    found = Consensus().detect(represent(x, S, E))
    assert found.scores[odd].min() > found.scores[~odd].max()
    flagged = found.scores > found.threshold
    assert flagged[odd].all()
    assert flagged[~odd].sum() <= 2
    assert not found.damaged[odd].any()


def test_scores_of_a_solution():
    data = make_tensor_subspaces(12, 4, 2, 2, 15, 0.1, noise=0.05, random_state=0)
    sol = solve(data.X, lam=Lambda.auto(), tol=1e-5)
    kernel = TubeKernel.of(sol.Z.transform, sol.Z.core)
    n = len(data.X)
    sizes = np.linalg.norm(data.X, axis=(1, 2))
    parts = [A / sizes[:, None, None] for A in (data.X, sol.L, sol.E)]
    rep = Representation(read(parts[0]), *parts[1:], kernel, kernel, np.arange(n), scale=sizes)
    found = Consensus().detect(rep)
    np.testing.assert_allclose(found.scorer(rep), found.scores, rtol=SINGLE, atol=SINGLE)
    flat = [A.reshape(n, -1) for A in (data.X, sol.E)]
    Definition(flat[0], np.round(kernel.tile(slice(None)), 10), flat[1]).check(found)


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
    assert max(shares) <= (0.03 if count else 0.25)
    assert (~flagged[len(cluster) :]).sum() <= 1


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_many_planted_outliers_do_not_hide_each_other(share, noise):
    data = make_tensor_subspaces(30, 10, 4, 3, 40, outliers=share, noise=noise, random_state=1)
    est = ORTLRR(4, transform="dft", graph="nearest", random_state=0).fit(data.X)
    np.testing.assert_array_equal(est.outliers_, data.outliers)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12])
def test_few_samples_do_not_leave_each_other_out(n, monkeypatch):
    """Half of a few samples are no inliers to judge the others by."""
    X = np.random.default_rng(n).standard_normal((n, 6, 5))
    found = Consensus().detect(solved(X))
    monkeypatch.setattr("tubal.outliers.consensus.STARTS", (0.75,))
    plain = Consensus().detect(solved(X))
    np.testing.assert_array_equal(found.scores, plain.scores)
    assert (found.scores > found.threshold).mean() < 0.5


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


scores_of_any_kind = st.one_of(
    st.lists(st.floats(0, 50), min_size=2, max_size=30),
    st.lists(st.integers(0, 6).map(float), min_size=2, max_size=30),
    st.lists(st.floats(0, 5).map(math.exp), min_size=2, max_size=30),
)


@given(scores_of_any_kind, st.sampled_from([0.001, 0.01, math.exp(-1), 0.4]))
def test_tail_quantile_by_its_definition(values, share):
    assert tail_quantile(np.array(values), share) == pytest.approx(naive_tail(values, share))


def test_tail_quantile_by_hand():
    scores = np.linspace(0, 2, 21)  # its 95 % quantile is 1.9
    assert tail_quantile(scores, 0.05) == pytest.approx(1.9)
    assert tail_quantile(scores, 0.05**2) == pytest.approx(3.8)
    assert tail_quantile(scores, 0.05**0.5) == pytest.approx(0.95)
    assert tail_quantile(np.zeros(5), 0.01) == 0
    assert tail_quantile(np.array([3.0]), 0.05) == pytest.approx(3)


@pytest.mark.parametrize("share", [0.002, 0.01, 0.05, 0.2])
def test_tail_quantile_of_exponential_scores(share):
    """So many of further scores are above it."""
    rng = np.random.default_rng(0)
    shares = [
        (7 * rng.exponential(size=5000) > tail_quantile(7 * rng.exponential(size=1000), share))
        for _ in range(20)
    ]
    assert np.mean(shares) == pytest.approx(share, rel=0.25)


@given(scores_of_any_kind, st.sampled_from([0.001, 0.01, 0.1, 0.4]), st.integers(0, 9999))
@example([0.0, 1.11e-308], 0.01, 0)
@example([0.0, 5e-324, 1.0], 0.01, 1)
def test_false_alarm_threshold_by_its_definition(values, share, seed):
    T = np.array(values)
    inliers = np.random.default_rng(seed).random(len(T)) < 0.7
    inliers[T.argmin()] = True
    level = false_alarm_threshold(T, inliers, share)
    assert level == pytest.approx(naive_false_alarms(T, np.flatnonzero(inliers), share))
    assert 2 * (T > level).sum() <= len(T)


def flagged_of(T, share=0.01):
    level = false_alarm_threshold(T, lowest(T, 0.75), share)
    return level < T


def test_the_end_of_a_tail_is_no_outlier():
    """A tail that falls faster than an exponential one does not end in outliers."""
    rng = np.random.default_rng(0)
    flagged = [flagged_of(np.abs(rng.standard_normal(400))) for _ in range(100)]
    assert np.mean([some.any() for some in flagged]) < 0.1
    assert np.mean(flagged) < 0.001


@pytest.mark.parametrize(("n", "most"), [(400, 0.015), (2000, 0.008)])
def test_false_alarms_of_an_exponential_tail(n, most):
    """At the border of what is assumed, about the stated share is flagged."""
    rng = np.random.default_rng(0)
    assert np.mean([flagged_of(rng.exponential(size=n)) for _ in range(100)]) < most


@pytest.mark.parametrize("share", [0.001, 0.01])
def test_false_alarms_beside_outliers(share):
    """Where many are outliers, about the stated share of the inliers is flagged with them."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(50):
        T = np.append(rng.exponential(size=800), 30 + rng.exponential(size=200))
        flagged = flagged_of(T, share)
        assert flagged[800:].all()
        found.append(flagged[:800].mean())
    assert share / 2 < np.mean(found) < 2 * share


@pytest.mark.parametrize("count", [1, 2, 20, 80])
@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_far_scores_are_flagged(count, scale):
    rng = np.random.default_rng(count)
    T = scale * np.append(rng.exponential(size=300), np.full(count, 25.0))
    flagged = flagged_of(T)
    assert flagged[300:].all()
    assert flagged[:300].mean() < 0.03


def test_a_crowd_is_more_than_a_tail():
    """A few of 500 above what 1 % exceed are expected, fifty are not."""
    T = -np.log(np.linspace(1 / 500, 1, 500))
    assert (T > -np.log(0.01)).sum() > 2
    assert not flagged_of(T).any()
    crowd = flagged_of(np.append(T, np.full(50, 5.5)))
    assert crowd[500:].all()
    assert crowd[:500].sum() < 10


def test_no_tail():
    """Of equal scores none is flagged; of scores of zero, any other one is."""
    for value in (0.0, 1.0):
        level = false_alarm_threshold(np.full(9, value), np.ones(9, bool), 0.01)
        assert level >= value
    np.testing.assert_array_equal(flagged_of(np.append(np.zeros(40), 1e-9)), np.arange(41) == 40)


def test_at_most_half_are_flagged():
    T = np.append(np.zeros(4), 1 + np.arange(6.0))
    level = false_alarm_threshold(T, T == 0, 0.01)
    assert 1 <= level < 2


@given(scores_of_any_kind, st.floats(0, 50))
def test_centred(values, cut):
    """The threshold moves up at most by one half, and nothing changes sides."""
    T = np.array(values)
    moved = centred(T, cut)
    assert moved == pytest.approx(naive_centred(T, cut))
    assert cut <= moved <= max(1.5 * cut, cut)
    np.testing.assert_array_equal(moved < T, cut < T)


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
    found = Residual().detect(represent(x, S, E, scaled=False))
    energy = np.array([sum(e * e for e in row) for row in E])
    np.testing.assert_allclose(found.scores, energy)
    assert found.threshold == pytest.approx(two_means(energy))
    other = represent(x[:3], S[:3], 2 * E[:3], scaled=False)
    np.testing.assert_allclose(found.scorer(other), 4 * energy[:3])
    same = represent(x, S, np.ones_like(E), scaled=False)
    assert not np.any(Residual().detect(same).scores > Residual().detect(same).threshold)


def test_no_detection():
    x, S, E, _ = draw()
    found = Nothing().detect(represent(x, S, E, scaled=False))
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
    assert resolve("auto", 0.2) == Consensus(false_alarms=0.2) != Consensus()
    assert resolve("published") == Residual()
    assert resolve(None) == Nothing()
    mine = Consensus(n_neighbors=7)
    assert resolve(mine) is mine
    assert isinstance(mine, Detector)


@pytest.mark.parametrize("bad", [0, 0.5, -0.1, 1, "a", True, None, np.nan, np.inf])
def test_false_alarms_are_a_share(bad):
    with pytest.raises(ValueError, match=r"false_alarms must be a number between 0 and 0\.5, got"):
        Consensus(false_alarms=bad)
    assert Consensus(np.float32(0.25)).false_alarms == 0.25


@pytest.mark.parametrize("name", ["n_neighbors", "n_similar", "company"])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "a", True, None])
def test_counts_are_positive_integers(name, bad):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, got"):
        Consensus(**{name: bad})


@pytest.mark.parametrize("bad", ["none", "Auto", 0.1, True, Consensus, ["auto"]])
def test_other_names_are_refused(bad):
    with pytest.raises(ValueError, match=r"outliers must be one of .*'auto'.* or a Detector, got"):
        resolve(bad)


def test_a_detection_can_be_given_another_threshold():
    x, S, E, _ = draw()
    found = Residual().detect(represent(x, S, E))
    assert isinstance(found, Detection)
    assert replace(found, threshold=0.0).scores is found.scores
