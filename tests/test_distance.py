"""Rows of tables compared by distance: the kernel, its choice, and estimators that take it."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs

from tubal import ORTLRR, metrics
from tubal.graph import MultiScale
from tubal.scales import REACH, Distance, View
from tubal.selection import views

ROUNDING = 2e-5


def points(n=40, p=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p, 1))


def naive_similarity(columns, rows=None):
    """Gaussians with the reach of both points as length, distance by distance."""

    def reach(x, own):
        d = np.sort([np.linalg.norm(x - c) for c in columns])
        return d[min(REACH - 1 + own, len(columns) - 1)]

    own = rows is None
    rows = columns if own else rows
    h_columns = [reach(c, True) for c in columns]
    h_rows = [reach(r, own) for r in rows]
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


@pytest.mark.parametrize(("n", "p"), [(40, 3), (300, 2), (6, 10), (3, 1), (2, 2)])
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


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_neither_scale_nor_place_matters(scale, offset):
    values = points()
    moved = compared((values + offset) * scale)
    np.testing.assert_allclose(whole(moved), whole(compared(values)), atol=1e-4)


def test_the_nearest_of_far_points_is_the_most_similar():
    values = np.append(np.linspace(0, 1e-3, 20), [1.0, 5.0]).reshape(-1, 1, 1)
    S = whole(compared(values))
    assert (S > 0).all()
    np.testing.assert_array_equal(S[:20, 20] > S[:20, 21], True)


def test_points_that_stand_on_each_other():
    values = np.repeat(points(3), 8, axis=0)
    S = whole(compared(values))
    assert np.isfinite(S).all()
    np.testing.assert_allclose(S[:8, :8], 1, atol=1e-5)
    assert S[:8, 8:].max() < 1e-6
    assert (whole(compared(np.ones((5, 2, 1)))) == 1).all()
    assert whole(compared(np.ones((1, 2, 1)))) == 1


def test_views():
    near, sized, vectors = Distance(), Distance(sized=True), View("none", None)
    assert views((5, 1)) == [vectors, near, sized]
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
    assert "counts as" not in str(est.selection_)


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
