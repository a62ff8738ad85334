"""Moves of single vertices against the modularity itself."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from tubal.spectral import Best, ModularityKMeans, check_affinity, embed, modularity
from tubal.spectral.moves import raise_modularity


def graph(n, density, seed, loops=False):
    """A random weighted graph, some vertices without edges."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.1, 1, (n, n)) * (rng.random((n, n)) < density), 0 if loops else 1)
    return check_affinity(W + W.T)


def better_moves(W, labels):
    """Every move of one vertex to a cluster it is tied to that raises the modularity."""
    dense, now = W.toarray(), modularity(W, labels)
    for i in range(len(labels)):
        if (labels == labels[i]).sum() == 1:
            continue
        for c in np.unique(labels[(dense[i] > 0) & (np.arange(len(labels)) != i)]):
            moved = labels.copy()
            moved[i] = c
            if modularity(W, moved) > now + 1e-7:
                yield i, c


@settings(deadline=None)
@given(st.integers(2, 25), st.integers(1, 5), st.floats(0.05, 0.9), st.booleans(), st.integers(0))
def test_it_ends_where_no_move_helps(n, k, density, loops, seed):
    W = graph(n, density, seed, loops)
    labels = np.random.default_rng(seed).integers(0, k, n)
    _, labels = np.unique(labels, return_inverse=True)
    found = raise_modularity(W, labels)
    assert modularity(W, found) >= modularity(W, labels) - 1e-12
    assert set(found) == set(labels)  # no cluster is emptied
    assert not list(better_moves(W, found))


def test_misplaced_vertices_return():
    truth = np.repeat([0, 1, 2], [30, 20, 10])
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((60, 60)) < np.where(truth[:, None] == truth, 0.5, 0.03), 1)
    W = check_affinity((W + W.T).astype(float))
    wrong = truth.copy()
    wrong[[0, 12, 33, 47, 58]] = [1, 2, 0, 2, 0]
    np.testing.assert_array_equal(raise_modularity(W, wrong), truth)


def test_names_of_clusters_do_not_matter():
    W = graph(40, 0.15, 3)
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(4), 10))
    names = np.array([2, 0, 3, 1])
    first, second = raise_modularity(W, labels), raise_modularity(W, names[labels])
    assert adjusted_rand_score(first, second) == 1


def test_the_input_stays():
    W, labels = graph(20, 0.4, 0), np.arange(20) % 3
    before = W.toarray(), labels.copy()
    raise_modularity(W, labels)
    np.testing.assert_array_equal(W.toarray(), before[0])
    np.testing.assert_array_equal(labels, before[1])


@pytest.mark.parametrize("W", [np.zeros((5, 5)), np.eye(5)])
def test_nothing_to_gain(W):
    labels = np.array([0, 0, 1, 1, 2])
    found = raise_modularity(scipy.sparse.csr_array(W), labels)
    np.testing.assert_array_equal(found, labels)


def test_best_moves_the_most_modular_ones():
    W = graph(80, 0.08, 5)
    starts = ModularityKMeans(6)
    found = starts.candidates(embed(W, 6), 6, W, 0)
    scores = sorted(found, key=lambda labels: -modularity(W, labels))
    for count in (1, 3, 9):
        labels = Best((starts,), moves=count).labels(embed(W, 6), 6, W, 0)
        moved = [modularity(W, raise_modularity(W, each)) for each in scores[:count]]
        assert modularity(W, labels) == max(moved) > modularity(W, scores[0])
    still = Best((starts,), moves=0).labels(embed(W, 6), 6, W, 0)
    np.testing.assert_array_equal(still, scores[0])


def test_dense_graphs_stay_as_they_are():
    W = graph(60, 0.9, 1)
    best = Best((ModularityKMeans(3),))
    still = Best((ModularityKMeans(3),), moves=0)
    found = (each.labels(embed(W, 4), 4, W, 0) for each in (best, still))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("moves", [-1, 1.5, True, "all"])
def test_bad_moves(moves):
    with pytest.raises(ValueError, match="moves must be a positive integer"):
        Best(moves=moves)
