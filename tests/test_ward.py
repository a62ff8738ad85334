"""Ward's clustering by rounds of mutual neighbours."""

from time import process_time

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from tubal.spectral import ward as module
from tubal.spectral.ward import ward


@pytest.fixture(params=[0, 500], autouse=True)
def small(request, monkeypatch):
    """Both ways, for all sizes."""
    monkeypatch.setattr(module, "SMALL", request.param)


def rows(n, d, seed=0, groups=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((groups, d))[rng.integers(groups, size=n)]
    X = X + 0.5 * rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (60, 3), (301, 5), (700, 12)])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_finds_the_clusters_of_the_table_of_all_distances(n, d, k):
    for seed in range(4):
        X, count = rows(n, d, seed), min(k, n)
        naive = AgglomerativeClustering(count).fit_predict(X)
        found = ward(X, count)
        assert set(found) == set(range(count))
        assert adjusted_rand_score(naive, found) == 1


def test_each_row_by_itself():
    assert sorted(ward(rows(30, 4), 30)) == list(range(30))


def test_equal_rows_are_one_point_of_their_weight():
    X = rows(40, 3)
    many = np.repeat(X, np.arange(40) % 5 + 1, axis=0)
    many = many + 1e-13 * np.random.default_rng(1).standard_normal(many.shape)
    naive = AgglomerativeClustering(6).fit_predict(many)
    assert adjusted_rand_score(naive, ward(many, 6)) == 1


def test_fewer_points_than_clusters():
    X = np.eye(3)[[0, 1, 2, 0, 1]]
    np.testing.assert_array_equal(ward(X, 5), ward(X, 3))
    assert len(set(ward(X, 3))) == 3


def test_order_of_rows_does_not_matter():
    X, order = rows(200, 6), np.random.default_rng(2).permutation(200)
    assert adjusted_rand_score(ward(X, 9)[order], ward(X[order], 9)) == 1


@pytest.mark.parametrize("kind", ["simplex", "grid", "doubling", "equal"])
def test_ties_and_long_chains_end_soon(kind):
    n = 400
    X = {
        "simplex": np.eye(n),
        "grid": np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(n, 2) / 20,
        "doubling": 0.9 ** np.arange(n)[:, None],
        "equal": np.ones((n, 4)),
    }[kind]
    start = process_time()
    labels = ward(X.astype(float), 4)
    assert process_time() - start < 5
    assert len(set(labels)) == (1 if kind == "equal" else 4)


def test_order_of_merges_survives_rounding():
    """Many pairs at the same distance: every number of clusters must come out exactly."""
    X = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(64, 2) / 7
    assert [len(set(ward(X, k))) for k in range(1, 65)] == list(range(1, 65))
