"""Ward's method on diffusion coordinates, and the most modular of several proposals."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

import tubal.spectral.assignment as module
from tubal.spectral import (
    Best,
    Cut,
    DiffusionWard,
    Discretise,
    KMeansRows,
    ModularityKMeans,
    embed,
    modularity,
    ncut,
    resolve,
)


def planted(sizes, p=0.6, q=0.05, seed=0):
    """A weighted random graph with denser blocks, and the blocks."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    edges = rng.random((n, n)) < np.where(labels[:, None] == labels, p, q)
    W = np.triu(edges * rng.uniform(0.5, 1, (n, n)), 1)
    return W + W.T, labels


def in_pieces(sizes, seed=0):
    """Dense blocks without an edge between them."""
    return planted(sizes, p=0.9, q=0.0, seed=seed)


def dense_blocks(sizes, seed=0):
    """A graph of all pairs, blocks of which are heavier."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    W = rng.uniform(0.5, 1, (len(labels),) * 2) * np.where(labels[:, None] == labels, 1, 0.05)
    W = np.triu(W, 1)
    return W + W.T, labels


def dense_candidate(W, k, time, spread):
    """Coordinates from NumPy's eigenvectors, clusters from SciPy's linkage."""
    d = W.sum(axis=1)
    values, U = np.linalg.eigh(W / np.sqrt(np.outer(d, d)))
    count = max(k, int(spread * k))
    values, U = values[::-1][:count], U[:, ::-1][:, :count]
    rows = U * np.maximum(values, 0) ** time
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return fcluster(linkage(rows, "ward"), k, "maxclust")


class TestDiffusionWard:
    @pytest.mark.parametrize("spread", [0.5, 1.0, 1.5, 2.5])
    @pytest.mark.parametrize("seed", range(3))
    def test_candidates_by_numpy_and_scipy(self, seed, spread):
        W, _ = planted([14, 9, 20, 7], p=0.5, q=0.12, seed=seed)
        assign = DiffusionWard(times=(2, 8.5), spread=spread)
        embedding = embed(W, assign.n_vectors(4))
        found = assign.candidates(embedding, 4, W)
        assert len(found) == 2
        for labels, time in zip(found, assign.times, strict=True):
            expected = dense_candidate(W, 4, time, spread)
            assert adjusted_rand_score(labels, expected) == 1

    @pytest.mark.parametrize("sizes", [[30, 30], [25, 10, 40], [12] * 8])
    def test_planted_clusters(self, sizes):
        W, labels = planted(sizes, q=0.03)
        found = ncut(W, len(sizes), assign=DiffusionWard(), random_state=0)
        assert adjusted_rand_score(labels, found) > 0.95

    def test_the_most_modular_length_is_kept(self):
        W, _ = planted([15] * 6, p=0.4, q=0.13, seed=2)
        assign = DiffusionWard(times=(1, 4, 16, 64))
        embedding = embed(W, assign.n_vectors(6))
        scores = [modularity(W, labels) for labels in assign.candidates(embedding, 6, W)]
        assert len(set(scores)) > 1
        assert modularity(W, assign.labels(embedding, 6, W)) == max(scores)

    def test_no_chance(self):
        W, _ = planted([15] * 6, p=0.4, q=0.13)
        found = [ncut(W, 6, assign="ward", random_state=seed) for seed in range(4)]
        for labels in found[1:]:
            assert_array_equal(labels, found[0])

    def test_fewer_vectors_than_it_likes(self):
        W, labels = planted([20, 20, 20], q=0.03)
        found = DiffusionWard().labels(embed(W, 3), 3, W)
        assert adjusted_rand_score(labels, found) == 1

    def test_number_of_vectors(self):
        assert [DiffusionWard().n_vectors(k) for k in (1, 2, 3, 10)] == [1, 3, 4, 15]
        assert DiffusionWard(spread=0.1).n_vectors(4) == 4

    @pytest.mark.parametrize("most", [5000, 10])
    def test_a_graph_in_pieces(self, monkeypatch, most):
        """Pieces are found, fewer clusters than pieces too; warnings would be errors."""
        monkeypatch.setattr(module, "MOST_PAIRWISE", most)
        W, labels = in_pieces([12, 9, 15, 7])
        found = ncut(W, 4, assign="ward", random_state=0)
        assert adjusted_rand_score(labels, found) == 1
        two = ncut(W, 2, assign="ward", random_state=0)
        assert len(np.unique(two)) == 2
        assert all(len(np.unique(two[labels == piece])) == 1 for piece in range(4))

    @pytest.mark.parametrize("most", [5000, 3])
    def test_isolated_vertices(self, monkeypatch, most):
        monkeypatch.setattr(module, "MOST_PAIRWISE", most)
        W, labels = planted([10, 10], p=0.95, q=0.02)
        W[3] = W[:, 3] = W[17] = W[:, 17] = 0
        for k in (2, 4, 7):
            assert len(np.unique(ncut(W, k, assign="ward", random_state=0))) == k
        tied = np.delete(np.arange(20), [3, 17])
        found = ncut(W, 4, assign="ward", random_state=0)
        assert adjusted_rand_score(labels[tied], found[tied]) == 1

    def test_a_graph_without_edges(self, monkeypatch):
        for most in (5000, 2):
            monkeypatch.setattr(module, "MOST_PAIRWISE", most)
            found = ncut(np.zeros((8, 8)), 3, assign="ward", random_state=0)
            assert_array_equal(np.unique(found), [0, 1, 2])

    def test_large_graphs_merge_tied_clusters_only(self, monkeypatch):
        W, labels = planted([25, 25, 30], q=0.02)
        pairwise = ncut(W, 3, assign="ward", random_state=0)
        seen = []
        ward = module._ward
        monkeypatch.setattr(module, "_ward", lambda *args: seen.append(args[2]) or ward(*args))
        monkeypatch.setattr(module, "MOST_PAIRWISE", 79)
        tied = ncut(W, 3, assign="ward", random_state=0)
        assert all(scipy.sparse.issparse(graph) for graph in seen)
        assert len(seen) == 3
        assert adjusted_rand_score(labels, tied) == adjusted_rand_score(labels, pairwise) == 1

    @pytest.mark.parametrize("times", [(), 8, "8", (0,), (8, -1), (np.inf,), (None,)])
    def test_times(self, times):
        with pytest.raises(ValueError, match="times must be"):
            DiffusionWard(times=times)

    @pytest.mark.parametrize("spread", [0, -1.0, np.nan, "2", True])
    def test_spread(self, spread):
        with pytest.raises(ValueError, match="spread must be a finite number above 0"):
            DiffusionWard(spread=spread)


class TestBest:
    @pytest.mark.parametrize("seed", range(6))
    def test_no_less_modular_than_its_parts(self, seed):
        W, _ = planted([15] * 6, p=0.35, q=0.12, seed=seed)
        parts = (KMeansRows(2), ModularityKMeans(3), DiffusionWard(), Discretise())
        best = Best(parts, moves=0)
        embedding = embed(W, best.n_vectors(6))
        reached = modularity(W, best.labels(embedding, 6, W, np.random.RandomState(seed)))
        rng = np.random.RandomState(seed)  # the same numbers, drawn in the same order
        scores = [modularity(W, part.labels(embedding, 6, W, rng)) for part in parts]
        assert reached == max(scores) > min(scores)

    def test_default_is_no_less_modular_than_ward(self):
        for seed in range(4):
            W, _ = planted([15] * 5, p=0.35, q=0.12, seed=seed)
            cuts = [ncut(W, 5, assign=name, random_state=0) for name in ("best", "ward")]
            best, ward = (modularity(W, labels) for labels in cuts)
            assert best >= ward

    def test_vectors_for_all_parts(self):
        assert Best((KMeansRows(), DiffusionWard(spread=2))).n_vectors(5) == 10
        assert Best((KMeansRows(),)).n_vectors(5) == 5

    def test_same_seed_same_labels(self):
        W, _ = planted([15] * 6, p=0.4, q=0.13)
        assert_array_equal(*(ncut(W, 6, assign=Best(), random_state=7) for _ in range(2)))

    def test_estimated_number(self):
        W, labels = planted([20, 25, 30], q=0.02)
        clusters = Cut(Best())(W, random_state=0)
        assert clusters.n_clusters == 3
        assert adjusted_rand_score(labels, clusters.labels) == 1
        assert clusters.vectors.shape == (75, 3)

    @pytest.mark.parametrize("parts", [(), DiffusionWard(), None, ("ward",), (DiffusionWard,)])
    def test_arguments(self, parts):
        with pytest.raises(ValueError, match="assignments must be a tuple of at least one"):
            Best(parts)

    def test_names(self):
        assert resolve("ward") == DiffusionWard((8, 12, 16), 1.5)
        assert resolve("best") == Best((ModularityKMeans(4), DiffusionWard((8, 16))))

    @pytest.mark.parametrize("seed", range(3))
    def test_dense_graphs_are_left_to_the_rows(self, seed):
        """Every vertex tied to every cluster: k-means on the rows, whatever the parts propose."""
        W, labels = dense_blocks([40, 8, 12], seed)
        embedding = embed(W, 4)
        for parts in (Best().assignments, (Discretise(),)):
            found = Best(parts).labels(embedding, 3, W, np.random.RandomState(seed))
            rows = KMeansRows().labels(embedding, 3, W, np.random.RandomState(seed))
            assert_array_equal(found, rows)
        assert adjusted_rand_score(labels, ncut(W, 3, random_state=seed)) == 1

    def test_dense_graphs_in_a_sparse_array(self):
        """How a graph is stored does not matter."""
        W, _ = dense_blocks([40, 8, 12])
        dense, sparse = (ncut(A, 3, random_state=0) for A in (W, scipy.sparse.csr_array(W)))
        assert_array_equal(dense, sparse)

    @pytest.mark.parametrize("moves", [-1, 1.5, "all", None, True])
    def test_moves(self, moves):
        with pytest.raises(ValueError, match="moves must be a positive integer"):
            Best(moves=moves)

    def test_what_is_gone(self):
        with pytest.raises(TypeError, match="close"):
            Best(close=0.1)
        assert not hasattr(Best(), "proposals")
        assert not hasattr(Cut(), "proposals")
