"""Graphs against dense brute force: sort every row, and SciPy's spanning tree."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from tubal import Lambda, representation, solve
from tubal.datasets import make_tensor_subspaces
from tubal.graph import Absolute, AllPairs, Graph, Nearest, resolve, tree_of_table
from tubal.input import Samples
from tubal.representation import Representation, SparseTable, Ties, TubeKernel, TubeModuli, Whole
from tubal.similarity import Shrunken, Spectrum, View


class Dense(Ties):
    """A table that is there already; counts the rows that are read."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)
        self.shape = self.table.shape
        self.rows = 0

    def tile(self, rows):
        tile = self.table[rows].copy()
        self.rows += len(tile)
        return tile


def represent(similarity, coefficients=None, twins=None):
    ties = [
        S if isinstance(S, Ties) else Dense(S)
        for S in (similarity if coefficients is None else coefficients, similarity)
    ]
    m = ties[0].shape[0]
    empty = np.zeros((m, 1, 1))
    twins = np.arange(m) if twins is None else np.asarray(twins)
    return Representation(Samples(empty, None, False), empty, empty, *ties, twins)


def random_similarity(n, seed=0, labels=None):
    """Symmetric, 1 on the diagonal, no two values alike; lower between clusters."""
    rng = np.random.default_rng(seed)
    S = np.triu(rng.random((n, n)), 1)
    S = S + S.T
    if labels is not None:
        S = np.where(labels[:, None] == labels, 0.5 + S / 2, S / 3)
    np.fill_diagonal(S, 1)
    return S


def brute(S, k, kept, tree=True):
    """The graph of the docstring, one sample after the other."""
    n = len(S)
    table = np.zeros((n, n))
    inside = [j for j in range(n) if kept[j]]
    for i in inside:
        others = sorted((j for j in inside if j != i), key=lambda j: -S[i, j])
        for j in others[:k]:
            table[i, j] = S[i, j]
    graph = (table + table.T) / 2
    if tree and len(inside) > 1:
        part = np.ix_(inside, inside)
        cost = 2 - S[part]  # positive: SciPy takes zeros for missing edges
        np.fill_diagonal(cost, 0)
        edges = minimum_spanning_tree(cost).toarray() > 0
        joined = np.where(edges | edges.T, S[part], 0)
        graph[part] = np.maximum(graph[part], joined)
    return graph


def pieces(graph, kept):
    return connected_components(graph[kept][:, kept], directed=False)[0]


def check(graph, kept):
    """Return the graph, dense, after what holds for every one of them."""
    assert isinstance(graph, scipy.sparse.csr_array)
    dense = graph.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert dense.min(initial=0) >= 0
    assert not dense[~kept].any()
    assert not dense[:, ~kept].any()
    return dense


# ---- nearest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [True, False])
@given(n=st.integers(1, 25), k=st.integers(1, 6), seed=st.integers(0, 999))
def test_nearest_by_brute_force(n, k, seed, tree):
    S = random_similarity(n, seed)
    kept = np.random.default_rng(seed).random(n) < 0.8
    kept[0] = True
    graph = Nearest(k, tree=tree).build(represent(S), kept)
    dense = check(graph, kept)
    assert not np.diag(dense).any()
    np.testing.assert_allclose(dense, brute(S, k, kept, tree), atol=1e-9)
    assert not tree or pieces(graph, kept) == 1


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_larger_than_the_lists_of_neighbours(k, seed):
    """All listed neighbours lie in the own cluster: the tree must look again, and is exact."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), [50, 56, 50, 70])
    rng.shuffle(labels)
    S = random_similarity(len(labels), seed, labels)
    kept = rng.random(len(labels)) < 0.9
    rep = represent(S)
    assert np.bincount(labels[kept]).min() > representation.LISTED + 1
    alone = Nearest(k, tree=False).build(rep, kept)
    assert pieces(alone, kept) >= 4
    read = rep.similarity.rows
    graph = Nearest(k).build(rep, kept)
    assert rep.similarity.rows > read  # similarities were computed again
    np.testing.assert_allclose(check(graph, kept), brute(S, k, kept), atol=1e-9)
    assert pieces(graph, kept) == 1
    across = labels[:, None] != labels
    assert (graph.toarray()[across] > 0).sum() == 2 * 3  # three edges join four clusters


@given(n=st.integers(1, 25), seed=st.integers(0, 999), zeros=st.sampled_from([0.0, 0.5, 1.0]))
def test_tree_of_a_table(n, seed, zeros):
    """Prim's tree and SciPy's have the same weight; strangers are joined too."""
    S = random_similarity(n, seed)
    S[np.random.default_rng(seed).random((n, n)) < zeros] = 0
    S = np.minimum(S, S.T)
    tree = tree_of_table(S.astype(np.float32))
    cost = 2 - S
    np.fill_diagonal(cost, 0)
    expected = 2 * (n - 1) - minimum_spanning_tree(cost).sum()
    assert tree.nnz == 2 * (n - 1)
    assert tree.sum() / 2 == pytest.approx(expected, abs=1e-5)
    assert pieces(tree, np.ones(n, bool)) == 1


def test_tiles_and_threads_do_not_matter(monkeypatch):
    labels = np.repeat(np.arange(3), 40)
    S = random_similarity(120, 1, labels)
    kept = np.arange(120) % 7 > 0
    expected = Nearest(2).build(represent(S), kept, 1).toarray()
    for tile, n_jobs in ((128, 2), (7, 1), (7, 3), (1, None)):
        monkeypatch.setattr(representation, "TILE", tile)
        other = Nearest(2).build(represent(S), kept, n_jobs).toarray()
        np.testing.assert_array_equal(other, expected)


def test_order_of_the_samples_does_not_matter():
    S = random_similarity(40, 2, np.repeat([0, 1], 20))
    order = np.random.default_rng(0).permutation(40)
    kept = np.arange(40) % 5 > 0
    graph = Nearest(2).build(represent(S), kept).toarray()
    other = Nearest(2).build(represent(S[np.ix_(order, order)]), kept[order]).toarray()
    np.testing.assert_array_equal(other, graph[np.ix_(order, order)])


@pytest.mark.parametrize("n", [2, 3, 50])
def test_strangers_are_joined_all_the_same(n):
    kept = np.ones(n, bool)
    kept[n // 2] = n == 2
    graph = Nearest(3).build(represent(np.eye(n)), kept)
    dense = check(graph, kept)
    assert pieces(graph, kept) == 1
    assert 0 < dense.max() <= 1e-12
    assert Nearest(3, tree=False).build(represent(np.eye(n)), kept).nnz == 0


def test_clusters_of_strangers():
    """Two groups of twins, nothing between them: one weak edge."""
    labels = np.repeat([0, 1], [12, 15])
    S = (labels[:, None] == labels).astype(float)
    kept = np.ones(27, bool)
    graph = Nearest(2).build(represent(S), kept)
    dense = check(graph, kept)
    assert pieces(graph, kept) == 1
    across = dense[labels == 0][:, labels == 1]
    assert np.count_nonzero(across) >= 1
    assert across.max() <= 1e-12
    assert dense[labels == 0][:, labels == 0].max() == 1


def test_one_and_two_kept_samples():
    S = random_similarity(6)
    one = np.arange(6) == 3
    graph = Nearest().build(represent(S), one)
    assert graph.shape == (6, 6)
    assert graph.nnz == 0
    two = one | (np.arange(6) == 5)
    dense = check(Nearest().build(represent(S), two), two)
    np.testing.assert_allclose(dense[3, 5], S[3, 5], atol=1e-9)
    assert np.count_nonzero(dense) == 2
    single = Nearest().build(represent(np.ones((1, 1))), np.ones(1, bool))
    assert single.shape == (1, 1)
    assert single.nnz == 0


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_fewer_samples_than_neighbours(n):
    S = random_similarity(n)
    everyone = np.ones(n, bool)
    dense = check(Nearest(5).build(represent(S), everyone), everyone)
    np.testing.assert_allclose(dense, S - np.eye(n), atol=1e-9)
    kept = np.arange(n) != 1
    dense = check(Nearest(5).build(represent(S), kept), kept)
    np.testing.assert_allclose(dense, (S - np.eye(n)) * np.outer(kept, kept), atol=1e-9)


def test_outliers_do_not_bridge():
    """A sample between two groups is not kept: its ties do not count."""
    S = np.full((5, 5), 0.1)
    S[:2, :2] = S[3:, 3:] = 0.9
    S[2] = S[:, 2] = 0.8
    np.fill_diagonal(S, 1)
    kept = np.array([True, True, False, True, True])
    dense = check(Nearest(1).build(represent(S), kept), kept)
    np.testing.assert_allclose(dense[[0, 3], [1, 4]], 0.9)
    assert 0 < dense[:2, 3:].max() <= 0.1


def test_nearest_of_a_solution():
    data = make_tensor_subspaces(10, 4, 3, 2, 20, 0.1, noise=0.1, random_state=0)
    sol = solve(data.X, lam=Lambda.relative(0.5), tol=1e-6)
    kernel = TubeKernel.of(sol.Z.transform, sol.Z.core)
    kept = ~data.outliers
    graph = Nearest().build(represent(kernel), kept)
    expected = brute(kernel.tile(slice(None)), 5, kept)
    np.testing.assert_allclose(check(graph, kept), expected, atol=1e-9)


def test_ties_of_one_direction():
    """A sparse table need not be symmetric: half of a tie that one side knows."""
    table = np.zeros((4, 4))
    table[0, 1], table[2, 1], table[2, 3], table[3, 2] = 0.6, 0.5, -1.0, 0.4
    rep = represent(SparseTable(scipy.sparse.csr_array(table)))
    dense = check(Nearest(2, tree=False).build(rep, np.ones(4, bool)), np.ones(4, bool))
    expected = np.zeros((4, 4))
    expected[0, 1], expected[1, 2], expected[2, 3] = 0.3, 0.25, 0.7
    np.testing.assert_allclose(dense, expected + expected.T)
    graph = Nearest(2).build(rep, np.ones(4, bool))
    assert pieces(graph, np.ones(4, bool)) == 1


def test_votes_of_the_nearest():
    rng = np.random.default_rng(0)
    S = rng.random((7, 12))
    kept = rng.random(12) < 0.7
    twins = np.array([-1, 3, -1, 0, -1, -1, 11])
    votes = Nearest(3).votes(represent(S, twins=twins), kept)
    assert isinstance(votes, scipy.sparse.csr_array)
    expected = np.zeros((7, 12))
    for i in range(7):
        order = [j for j in np.argsort(-S[i]) if kept[j] and j != twins[i]]
        expected[i, order[:3]] = S[i, order[:3]]
    np.testing.assert_allclose(votes.toarray(), expected, atol=1e-9)


@pytest.mark.parametrize("tree", [True, False])
@given(n=st.integers(1, 25), k=st.integers(1, 6), seed=st.integers(0, 999))
def test_nearest_of_a_table(n, k, seed, tree):
    """A table is read as tiles are, and stays as it is."""
    S, everyone = random_similarity(n, seed), np.ones(n, bool)
    before = S.copy()
    found = Nearest(k, tree=tree).of_table(S)
    np.testing.assert_array_equal(S, before)
    built = Nearest(k, tree=tree).build(represent(S), everyone)
    np.testing.assert_allclose(check(found, everyone), built.toarray(), atol=1e-9)
    tabled = Nearest(k, tree=tree).build(represent(Whole(S)), everyone)
    np.testing.assert_array_equal(tabled.toarray(), found.toarray())


# ---- all pairs ----------------------------------------------------------------------------------


def shrunken(n=30, seed=0):
    """Similarities at several strengths, and those at the weakest shrinkage."""
    data = make_tensor_subspaces(10, 3, 3, 2, n // 3, 0, noise=0.3, random_state=seed)
    made = Spectrum.of(data.X, np.ones(len(data.X)), View("dft")).similarity(4.0)
    return made, made.weakest.tile(slice(None)).astype(float)


def naive_pairs(S, kept):
    """Fourth powers, pair by pair."""
    n = len(S)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and kept[i] and kept[j]:
                W[i, j] = max(S[i, j], S[j, i]) ** 4
    return W


@given(n=st.integers(1, 15), seed=st.integers(0, 999))
def test_all_pairs_by_brute_force(n, seed):
    S = random_similarity(n, seed)
    kept = np.random.default_rng(seed).random(n) < 0.8
    dense = check(AllPairs().build(represent(S), kept), kept)
    np.testing.assert_allclose(dense, naive_pairs(S, kept), atol=1e-12)
    everyone = np.ones(n, bool)
    table = AllPairs().of_table(S)
    assert isinstance(table, np.ndarray)
    np.testing.assert_allclose(table, naive_pairs(S, everyone), atol=1e-12)


def test_all_pairs_take_the_weakest_shrinkage():
    made, weakest = shrunken()
    assert isinstance(made, Shrunken)
    assert np.abs(made.tile(slice(None)) - weakest).max() > 0.1
    kept = np.arange(30) % 4 > 0
    dense = check(AllPairs().build(represent(made), kept), kept)
    np.testing.assert_allclose(dense, naive_pairs(weakest, kept), atol=1e-6)


def test_all_pairs_by_tiles_and_threads(monkeypatch):
    made, _ = shrunken()
    kept = np.arange(30) % 4 > 0
    expected = AllPairs().build(represent(made), kept, 1).toarray()
    for tile, n_jobs in ((7, 1), (7, 3), (1, 2)):
        monkeypatch.setattr(representation, "TILE", tile)
        other = AllPairs().build(represent(made), kept, n_jobs).toarray()
        np.testing.assert_allclose(other, expected, atol=1e-6)


def test_votes_of_all_pairs():
    """Fourth powers over the degrees of the graph of the fit, which new samples do not change."""
    rng = np.random.default_rng(0)
    S, new = random_similarity(12), rng.random((7, 12))
    kept = rng.random(12) < 0.7
    twins = np.array([-1, 3, -1, 0, -1, -1, 11])
    rows = replace(represent(new, twins=twins), fitted=represent(S))
    votes = AllPairs().votes(rows, kept)
    assert isinstance(votes, scipy.sparse.csr_array)
    degrees = naive_pairs(S, kept).sum(axis=1)
    expected = np.zeros((7, 12))
    for i in range(7):
        for j in range(12):
            if kept[j] and j != twins[i]:
                expected[i, j] = new[i, j] ** 4 / degrees[j]
    np.testing.assert_allclose(votes.toarray(), expected, atol=1e-12)
    own = AllPairs().votes(represent(S), kept).toarray()
    whole = np.where(kept, S**4 * (1 - np.eye(12)), 0)
    np.testing.assert_allclose(own, whole / np.where(kept, degrees, 1), atol=1e-12)


def test_large_clusters_do_not_win_votes_by_their_size():
    labels = np.repeat([0, 1], [40, 4])
    S = np.where(labels[:, None] == labels, 0.9, 0.3)
    new = np.where(labels == 1, 0.6, 0.5)[None]
    rows = replace(represent(new, twins=[-1]), fitted=represent(S))
    votes = AllPairs().votes(rows, np.ones(44, bool)).toarray()[0]
    assert votes[labels == 1].sum() > votes[labels == 0].sum()
    assert (new**4)[0, labels == 1].sum() < (new**4)[0, labels == 0].sum()


def test_all_pairs_of_strangers():
    everyone = np.ones(5, bool)
    assert AllPairs().build(represent(np.eye(5)), everyone).nnz == 0
    assert not AllPairs().votes(represent(np.eye(5)), everyone).toarray().any()
    one = AllPairs().build(represent(np.ones((1, 1))), np.ones(1, bool))
    assert one.shape == (1, 1)
    assert one.nnz == 0


# ---- the paper's affinity -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dft", "dct"])
def test_absolute_is_the_formula_of_the_paper(name):
    data = make_tensor_subspaces(8, 5, 2, 2, 9, 0.2, noise=0.1, transform=name, random_state=0)
    sol = solve(data.X, transform=name, lam=Lambda.relative(0.5), tol=1e-5)
    ties = TubeModuli(sol.Z, sol.Z.core, sol.Z.transform, len(sol.L))
    Z, n = sol.Z.to_array(), len(data.X)
    W = np.zeros((n, n))
    for k in range(5):
        W += (np.abs(Z[:, :, k]) + np.abs(Z[:, :, k]).T) / (2 * 5)
    everyone = np.ones(n, bool)
    rep = represent(ties)
    np.testing.assert_allclose(Absolute().build(rep, everyone).toarray(), W, atol=1e-13)
    kept = ~data.outliers
    assert kept.sum() < n
    dense = check(Absolute().build(rep, kept), kept)
    np.testing.assert_allclose(dense[np.ix_(kept, kept)], W[np.ix_(kept, kept)], atol=1e-13)
    votes = Absolute().votes(rep, kept).toarray()
    np.testing.assert_allclose(votes, np.abs(Z).mean(axis=2).T * kept, atol=1e-13)


def test_absolute_with_scaled_rows():
    """Each sample's coefficients over the largest of them, kept or not; rows of zeros stay."""
    rng = np.random.default_rng(0)
    C = rng.standard_normal((6, 6)) * (rng.random((6, 6)) < 0.6)
    C[4] = 0
    kept = np.array([True, True, False, True, True, True])
    expected = np.zeros((6, 6))
    for i in range(6):
        for j in range(6):
            if kept[j] and C[i].any():
                expected[i, j] = abs(C[i, j]) / max(abs(c) for c in C[i])
    rep = represent(np.eye(6), SparseTable(scipy.sparse.csr_array(C)))
    votes = Absolute(scale_rows=True).votes(rep, kept)
    np.testing.assert_allclose(votes.toarray(), expected)
    expected[~kept] = 0
    dense = check(Absolute(scale_rows=True).build(rep, kept), kept)
    np.testing.assert_allclose(dense, (expected + expected.T) / 2)


# ---- what a user may pass -----------------------------------------------------------------------


def test_names():
    assert resolve("auto") == resolve("nearest") == Nearest(5, True)
    assert resolve("all pairs") == AllPairs()
    assert resolve("published") == Absolute(scale_rows=False)
    assert resolve("scaled") == Absolute(scale_rows=True)
    mine = Nearest(3, tree=False)
    assert resolve(mine) is mine
    assert isinstance(mine, Graph)


@pytest.mark.parametrize("bad", ["knn", "multiscale", "Auto", None, 5, Nearest, ["auto"]])
def test_other_names_are_refused(bad):
    with pytest.raises(ValueError, match=r"graph must be one of .*auto.*published.*or a Graph"):
        resolve(bad)


@pytest.mark.parametrize("bad", [0, -1, 2.0, "5", None, True, np.nan])
def test_n_neighbors_must_be_a_positive_integer(bad):
    with pytest.raises(ValueError, match=r"n_neighbors must be a positive integer, got"):
        Nearest(bad)


def test_numpy_integers_are_integers():
    assert Nearest(np.int64(2)).n_neighbors == 2
