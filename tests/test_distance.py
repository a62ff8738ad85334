"""Rows of tables compared by distance: the kernel, its choice, and estimators that take it."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs

from tubal import ORTLRR, metrics
from tubal.graph import MultiScale
from tubal.scales import Distance, View
from tubal.scales.distances import REACH
from tubal.selection import views

ROUNDING = 2e-5


def points(n=40, p=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p, 1))


def naive_similarity(columns, rows=None):
    """Gaussians with the reach of both points as length, distance by distance."""

    def reach(x):
        d = np.sort([np.linalg.norm(x - c) for c in columns if (x != c).any()])
        return d[min(REACH, len(d)) - 1]

    rows = columns if rows is None else rows
    h_columns, h_rows = ([reach(x) for x in side] for side in (columns, rows))
    return np.array(
        [
            [
                np.exp(-np.sum((r - c) ** 2) / (h * g))
                for c, g in zip(columns, h_columns, strict=True)
            ]
            for r, h in zip(rows, h_rows, strict=True)
        ]
    )


def compared(values, sizes=None, sized=False):
    sizes = np.ones(len(values)) if sizes is None else sizes
    return Distance(sized=sized).compare(values, sizes)


def whole(kernel):
    return kernel.tile(np.arange(kernel.shape[0]))


@pytest.mark.parametrize(("n", "p"), [(40, 3), (140, 2), (6, 10), (3, 1), (2, 2)])
def test_naive_version(n, p):
    values = points(n, p)
    kernel = compared(values)
    expected = naive_similarity(values[..., 0])
    np.testing.assert_allclose(whole(kernel), expected, atol=ROUNDING)
    np.testing.assert_allclose(kernel.whole(1).table, expected, atol=ROUNDING)
    np.testing.assert_allclose(
        kernel.tile([1, 0], slice(1, 2)), expected[[1, 0], 1:2], atol=ROUNDING
    )
    assert kernel.shape == (n, n)
    assert np.isnan(kernel.rank)


def test_new_samples():
    values, new = points(), points(7, seed=1)
    kernel = compared(values).extended(new, np.ones(7))
    expected = naive_similarity(values[..., 0], new[..., 0])
    np.testing.assert_allclose(whole(kernel), expected, atol=ROUNDING)


@pytest.mark.parametrize("sized", [False, True])
def test_sizes_count_when_asked_to(sized):
    values, new = points(), points(5, seed=1)
    size, new_size = np.linspace(1, 3, 40), np.linspace(2, 4, 5)
    kernel = compared(values, size, sized)
    factor, new_factor = (size, new_size) if sized else (np.ones(40), np.ones(5))
    at, new_at = values[..., 0] * factor[:, None], new[..., 0] * new_factor[:, None]
    np.testing.assert_allclose(whole(kernel), naive_similarity(at), atol=ROUNDING)
    extended = kernel.extended(new, new_size)
    np.testing.assert_allclose(whole(extended), naive_similarity(at, new_at), atol=ROUNDING)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_neither_scale_nor_place_matters(scale, offset):
    values = points()
    moved = compared((values + offset) * scale)
    np.testing.assert_allclose(whole(moved), whole(compared(values)), atol=1e-6)
    sized = compared(values, np.full(40, scale), sized=True).extended(values, np.full(40, scale))
    np.testing.assert_allclose(whole(sized), whole(compared(values)), atol=1e-6)


@pytest.mark.parametrize("apart", [1e2, 1e4])
def test_near_and_far_in_one_table(apart):
    """Distances inside of groups are not lost beside those between them."""
    values = points(60)
    values[30:] += apart
    values[0] += 100 * apart
    kernel, expected = compared(values), naive_similarity(values[..., 0])
    np.testing.assert_allclose(whole(kernel), expected, atol=1e-4)
    np.testing.assert_allclose(kernel.whole(1).table, whole(kernel), atol=1e-4)


@pytest.mark.parametrize("far", [1e8, 1e12, 1e50])
def test_one_point_far_away_takes_nothing_from_the_others(far):
    values = points(40)
    values[20:] += 5
    kernel = compared(np.concatenate([values, np.full((1, 3, 1), far)]))
    alone = compared(values)
    np.testing.assert_allclose(whole(kernel)[:40, :40], whole(alone), atol=1e-6)
    new = points(5, seed=1)
    found = whole(kernel.extended(new, np.ones(5)))[:, :40]
    np.testing.assert_allclose(found, whole(alone.extended(new, np.ones(5))), atol=1e-6)


def test_the_nearest_of_far_points_is_the_most_similar():
    values = np.append(np.linspace(0, 1e-3, 20), [1.0, 5.0]).reshape(-1, 1, 1)
    S = whole(compared(values))
    assert (S > 0).all()
    np.testing.assert_array_equal(S[:20, 20] > S[:20, 21], True)


@pytest.mark.parametrize("seed", range(5))
def test_points_that_stand_on_each_other(seed):
    """They are alike, and see the others as if each place had one point of many."""
    values = np.repeat(points(10, seed=seed), 8, axis=0)
    S = whole(compared(values))
    np.testing.assert_allclose(S, naive_similarity(values[..., 0]), atol=ROUNDING)
    np.testing.assert_allclose(S[np.repeat(np.eye(10, dtype=bool), 8, 0).repeat(8, 1)], 1)


def test_points_at_one_place():
    assert (whole(compared(np.ones((5, 2, 1)))) == 1).all()
    assert whole(compared(np.ones((1, 2, 1)))) == 1


def test_new_samples_one_by_one():
    values = points()
    new = np.concatenate([values[:3], points(3, seed=1), 1e40 * points(1, seed=2)])
    kernel = compared(values)
    alone = [whole(kernel.extended(new[i : i + 1])) for i in range(len(new))]
    np.testing.assert_allclose(whole(kernel.extended(new)), np.concatenate(alone), atol=1e-7)
    np.testing.assert_allclose(whole(kernel.extended(new))[:3], whole(kernel)[:3], atol=1e-6)
    with pytest.raises(ValueError, match="sizes"):
        compared(values, np.ones(40), sized=True).extended(new)


def test_views():
    near, sized, vectors = Distance(), Distance(sized=True), View("none", None)
    assert views((5, 1)) == [vectors, near, sized]
    assert views((5, 1), scaled=False) == [vectors, sized]
    assert str(near) == "distance at unit norm"
    assert str(sized) == "distance"
    assert near.is_same(Distance())
    for one, other in ((near, sized), (near, vectors), (vectors, near)):
        assert not one.is_same(other)
    with pytest.raises(ValueError, match="sized"):
        Distance(sized="yes")


def table(seed=0):
    X, labels = make_blobs(200, 4, centers=4, random_state=seed, cluster_std=1.5)
    return X, labels


def test_places_are_found():
    """Groups on one ray from the origin: only their distance tells them apart."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    X = np.array([8.0, 16.0, 24.0])[labels, None] * [1, 0.5, -1, 0.2] + rng.standard_normal(
        (180, 4)
    )
    est = ORTLRR(3, random_state=0).fit(X)
    assert est.selection_.view == Distance(sized=True)
    assert metrics.clustering_accuracy(labels, est.labels_) > 0.95
    vectors = ORTLRR(3, graph=MultiScale(view=View("none", None)), random_state=0).fit(X)
    assert metrics.clustering_accuracy(labels, vectors.labels_) < 0.6


def test_wine():
    data = load_wine()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    est = ORTLRR(3, random_state=0).fit(X)
    assert metrics.clustering_accuracy(data.target, est.labels_) > 0.93
    assert "effective rank" not in str(est.selection_)
    paid = {str(one.view): one.handicap for one in est.selection_.candidates}
    at_unit_norm = pytest.approx(0.07 / 13)
    assert paid["distance"] == 0
    assert paid["distance at unit norm"] == paid["none (samples as vectors)"] == at_unit_norm


@pytest.mark.parametrize("shift", [0.0, 30.0])
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_rows_of_few_columns_are_points(columns, shift):
    """Directions from the origin tell nothing about them, wherever that is."""
    X, labels = make_blobs(300, columns, centers=4, random_state=1, center_box=(-12, 12))
    est = ORTLRR(4, random_state=0).fit(X + shift)
    assert metrics.clustering_accuracy(labels, est.labels_) > 0.95
    assert est.outliers_.mean() <= 0.02
    assert isinstance(est.selection_.view, Distance)


def test_lines_through_the_origin_are_no_points():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    X = 2 * rng.standard_normal((180, 1)) * np.eye(3)[labels] + 0.03 * rng.standard_normal((180, 3))
    est = ORTLRR(3, random_state=0).fit(X)
    assert est.selection_.view == View("none", None)
    assert metrics.clustering_accuracy(labels, est.labels_) > 0.9


@pytest.mark.parametrize("sized", [False, True])
def test_estimators_answer_for_new_samples(sized):
    X, labels = table(1)
    est = ORTLRR(
        4, graph=MultiScale(view=Distance(sized=sized)), contamination=0, random_state=0
    ).fit(X[:150])
    np.testing.assert_array_equal(est.predict(X[:150]), est.labels_)
    joined = np.concatenate([est.labels_, est.predict(X[150:])])
    fitted = metrics.clustering_accuracy(labels[:150], est.labels_)
    assert metrics.clustering_accuracy(labels, np.maximum(joined, 0)) > fitted - 0.03
    if sized:
        assert fitted > 0.95


def test_missing_entries():
    X, labels = table(2)
    X[np.random.default_rng(0).random(X.shape) < 0.03] = np.nan
    est = ORTLRR(4, graph=MultiScale(view=Distance(sized=True)), random_state=0).fit(X)
    assert metrics.clustering_accuracy(labels, est.labels_) > 0.8
    assert np.isfinite(est.X_clean_).all()


def test_samples_that_keep_their_size():
    """Without unit norm there is one distance, not the same one twice."""
    X, labels = table(3)
    est = ORTLRR(4, normalize=False, random_state=0).fit(X)
    assert {c.view for c in est.selection_.candidates} == {View("none", None), Distance(sized=True)}
    assert metrics.clustering_accuracy(labels, est.labels_) > 0.9


def test_a_graph_in_tiles(monkeypatch):
    """Where the table of similarities is too large to keep, the graph is the same."""
    X, _ = table()
    graph = MultiScale(view=Distance(sized=True))
    whole_table = ORTLRR(4, graph=graph, random_state=0).fit(X).affinity_
    monkeypatch.setattr("tubal.graph.MOST_BYTES", 0)
    tiles = ORTLRR(4, graph=graph, random_state=0).fit(X).affinity_
    np.testing.assert_allclose(tiles.toarray(), whole_table.toarray(), atol=1e-6)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_large_and_small_numbers(scale):
    X, _ = table()
    est = ORTLRR(4, random_state=0).fit(X * scale)
    plain = ORTLRR(4, random_state=0).fit(X)
    assert isinstance(plain.selection_.view, Distance)
    assert metrics.clustering_accuracy(plain.labels_, est.labels_) > 0.99


def test_a_new_sample_far_away():
    X, _ = table()
    est = ORTLRR(4, graph=MultiScale(view=Distance(sized=True)), random_state=0).fit(X)
    assert set(est.predict(np.concatenate([X[:2] * 3e19, -X[:2] * 1e200]))) <= set(range(-1, 4))


def test_blobs_in_the_plane_are_not_outliers():
    """Two columns explain most rows exactly; those that they explain less are still no outliers."""
    shares = []
    for seed in range(6):
        X, _ = make_blobs(400, 2, centers=4, random_state=seed)
        shares.append(ORTLRR(4, random_state=0).fit(X).outliers_.mean())
    assert np.median(shares) <= 0.01
    assert max(shares) <= 0.06
