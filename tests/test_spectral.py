"""Spectral: eigenvectors against dense oracles, cuts of graphs whose clusters are known."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import ArpackNoConvergence

import tubal.spectral.embedding as embedding_module
from tubal.spectral import (
    Best,
    Cut,
    DiffusionWard,
    Discretise,
    Embedding,
    KMeansRows,
    ModularityKMeans,
    check_affinity,
    embed,
    estimate_n_clusters,
    modularity,
    ncut,
    partition,
    resolve,
    resolve_cut,
)

ASSIGNMENTS = [Discretise(), KMeansRows(), ModularityKMeans(), DiffusionWard(), Best()]


def planted(sizes, p=0.7, q=0.03, seed=0):
    """A weighted random graph with denser blocks, and the blocks."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    edges = rng.random((n, n)) < np.where(labels[:, None] == labels, p, q)
    W = np.triu(edges * rng.uniform(0.5, 1, (n, n)), 1)
    return W + W.T, labels


def blocks(sizes, weight=1.0):
    return scipy.linalg.block_diag(*[np.full((size, size), weight) for size in sizes])


def nearest_ring(n, steps=3):
    """A ring of vertices, each tied to the next few."""
    i = np.arange(n)
    rows = np.concatenate([i] * steps)
    cols = np.concatenate([(i + step) % n for step in range(1, steps + 1)])
    W = scipy.sparse.csr_array((np.ones(steps * n), (rows, cols)), shape=(n, n))
    return W + W.T


def sparse_clusters(n, k, seed=0):
    """Five random neighbours within the cluster and half an edge outside, a vertex."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    rows = np.repeat(np.arange(n), 5)
    cols = labels[rows] + k * rng.integers(0, n // k, len(rows))
    rows = np.concatenate([rows, rng.integers(0, n, n // 2)])
    cols = np.concatenate([cols, rng.integers(0, n, n // 2)])
    W = scipy.sparse.csr_array((rng.uniform(0.5, 1, len(rows)), (rows, cols)), shape=(n, n))
    return W + W.T, labels


def dense_oracle(W, offset=0.0):
    W = W + offset * np.eye(len(W))
    d = W.sum(axis=1) + offset
    values, U = np.linalg.eigh(W / np.sqrt(np.outer(d, d)))
    return values[::-1], U[:, ::-1]


def same_partition(a, b):
    return len(np.unique(np.stack([a, b]), axis=1).T) == len(np.unique(a)) == len(np.unique(b))


def projector(U):
    return U @ U.T


class TestEmbed:
    @pytest.mark.parametrize("offset", [0.0, 0.5])
    @pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
    def test_is_the_top_of_the_dense_spectrum(self, kind, offset):
        W, _ = planted([20, 15, 10])
        found = embed(kind(W), 6, offset=offset)
        values, U = dense_oracle(W, offset)
        assert_allclose(found.values, values[:6], atol=1e-12)
        assert_allclose(projector(found.vectors), projector(U[:, :6]), atol=1e-10)
        assert_allclose(found.degrees, W.sum(axis=1) + 2 * offset)

    def test_solves_the_generalised_problem(self):
        W, _ = planted([20, 15, 10])
        found = embed(W, 4)
        V = found.vectors / np.sqrt(found.degrees)[:, None]
        assert_allclose(W @ V, found.degrees[:, None] * V * found.values, atol=1e-12)

    def test_all_vectors(self):
        W, _ = planted([4, 3])
        found = embed(W, 7)
        assert_allclose(found.values, dense_oracle(W)[0], atol=1e-12)
        assert_allclose(found.vectors.T @ found.vectors, np.eye(7), atol=1e-12)

    @pytest.mark.parametrize("factored", [0, 4000])
    def test_lanczos_equals_dense(self, monkeypatch, factored):
        W, _ = sparse_clusters(1500, 12)
        monkeypatch.setattr(embedding_module, "FACTORED_SIZE", factored)
        monkeypatch.setattr(embedding_module, "FACTORED_EDGES", 1500)
        first = embedding_module._sparse_methods(W, 15)[0]
        assert first is (embedding_module._shift_invert if factored else embedding_module._lanczos)
        found = embed(W, 15, random_state=0)
        monkeypatch.setattr(embedding_module, "DENSE_SIZE", 2000)
        dense = embed(W, 15)
        assert_allclose(found.values, dense.values, atol=1e-10)
        # The first twelve lie apart from the rest; within them vectors are simple.
        assert_allclose(found.vectors[:, :12], dense.vectors[:, :12], atol=1e-6)

    def test_lanczos_equals_dense_on_a_full_graph(self, monkeypatch):
        rng = np.random.default_rng(0)
        centres = np.repeat(np.eye(4), 80, axis=0)
        points = centres + 0.2 * rng.standard_normal(centres.shape)
        W = np.exp(-(((points[:, None] - points) ** 2).sum(axis=2)))
        dense = embed(W, 5)
        monkeypatch.setattr(embedding_module, "LARGE_SIZE", 300)
        assert embedding_module._sparse_methods(scipy.sparse.csr_array(W), 5) == (
            embedding_module._lanczos,
        )
        assert embedding_module._sparse_methods(scipy.sparse.csr_array(W), 7) == ()
        found = embed(W, 5, random_state=0)
        assert_allclose(found.values, dense.values, atol=1e-10)
        assert_allclose(found.vectors, dense.vectors, atol=1e-6)

    def test_a_full_graph_that_lanczos_cannot_do_is_decomposed(self, monkeypatch):
        W = np.ones((300, 300))  # one eigenvalue 1, all others 0
        monkeypatch.setattr(embedding_module, "LARGE_SIZE", 300)

        def fails(*given):
            raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

        monkeypatch.setattr(embedding_module, "_lanczos", fails)
        assert_allclose(embed(W, 1, random_state=0).vectors, 300**-0.5)
        found = embed(W, 3, random_state=0)
        assert_allclose(found.values, [1, 0, 0], atol=1e-12)

    def test_crowded_eigenvalues_of_a_long_ring_come_in_pairs(self):
        """Circulant: 1 - mu = mean of cos(2 pi j step / n), twice each; Lanczos alone fails."""
        n = 4000
        j = np.repeat(np.arange(0, 11), 2)[1:22]
        wanted = np.mean([np.cos(2 * np.pi * j * step / n) for step in (1, 2, 3)], axis=0)
        with pytest.raises(ArpackNoConvergence):
            start = np.random.default_rng(0).standard_normal(n)
            embedding_module._lanczos(nearest_ring(n) / 6, 21, start)
        found = embed(nearest_ring(n), 21, random_state=0)
        assert_allclose(1 - found.values, 1 - wanted, atol=1e-12)
        assert_allclose(found.vectors.T @ found.vectors, np.eye(21), atol=1e-9)

    def test_falls_back_to_dense(self, monkeypatch):
        def fail(*_):
            raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

        W, _ = sparse_clusters(450, 5)
        assert len(embedding_module._sparse_methods(W, 5)) == 2
        monkeypatch.setattr(embedding_module, "_steps", fail)
        found = embed(W, 5)
        assert_allclose(found.values, dense_oracle(W.toarray())[0][:5], atol=1e-12)

    def test_components_are_indicators_heaviest_first(self):
        W = blocks([3, 5, 4])
        found = embed(W, 3)
        assert_array_equal(found.values, 1.0)
        indicators = np.zeros((12, 3))
        indicators[3:8, 0], indicators[8:, 1], indicators[:3, 2] = 5**-0.5, 0.5, 3**-0.5
        assert_allclose(found.vectors, indicators, atol=1e-15)

    def test_more_components_than_vectors_share_the_last(self):
        W = blocks([5, 4, 1, 2])
        found = embed(W, 3)
        assert_array_equal(found.values, 1.0)
        assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-15)
        shared = np.sqrt([1, 2, 2]) / np.sqrt(5)
        assert_allclose(found.vectors[9:], np.stack([0 * shared, 0 * shared, shared]).T)
        assert_array_equal(ncut(W, 3, random_state=0), np.repeat([0, 1, 2], [5, 4, 3]))

    def test_more_vectors_than_components(self):
        A, _ = planted([10, 10])
        B, _ = planted([8, 8], seed=1)
        W = scipy.linalg.block_diag(A, B)
        found = embed(W, 6)
        assert_array_equal(found.values[:2], 1.0)
        assert_allclose(found.values, dense_oracle(W)[0][:6], atol=1e-12)
        assert_allclose(projector(found.vectors), projector(dense_oracle(W)[1][:, :6]), atol=1e-10)

    def test_isolated_vertices_are_components(self):
        W, _ = planted([10, 10])
        W[[3, 15]] = 0
        W[:, [3, 15]] = 0
        found = embed(W, 3)
        assert_array_equal(found.values, 1.0)
        assert_array_equal(np.flatnonzero(found.vectors[:, 1]), [3])
        assert_array_equal(np.flatnonzero(found.vectors[:, 2]), [15])
        assert_allclose(embed(np.zeros((3, 3)), 3).vectors, np.eye(3))

    def test_isolated_vertex_with_offset(self):
        W = blocks([3, 3])
        W[0] = W[:, 0] = 0
        found = embed(W, 6, offset=0.5)
        assert np.any(np.isclose(found.values, 0.5))
        assert np.isfinite(found.vectors).all()

    def test_signs_do_not_depend_on_rounding(self):
        W = blocks([4, 4]) + 0.1
        assert_array_equal(np.sign(embed(W, 2).vectors[:, 1]), [1] * 4 + [-1] * 4)
        assert_array_equal(np.sign(embed(1.7 * W, 2).vectors[:, 1]), [1] * 4 + [-1] * 4)

    def test_same_bits_with_a_random_state(self):
        W, _ = sparse_clusters(600, 4)
        assert_array_equal(embed(W, 6, random_state=3).vectors, embed(W, 6, random_state=3).vectors)

    def test_rows(self):
        W, _ = planted([10, 10])
        found = embed(W, 3)
        assert_allclose(np.linalg.norm(found.rows(2), axis=1), 1)
        V = found.vectors / np.sqrt(found.degrees)[:, None]
        V /= np.linalg.norm(V, axis=0)
        assert_allclose(found.cut_rows(3), V / np.linalg.norm(V, axis=1)[:, None])
        with pytest.raises(ValueError, match="at least 4 vectors"):
            found.rows(4)


@pytest.mark.parametrize("assign", ASSIGNMENTS, ids=lambda assign: assign.name)
class TestCut:
    @pytest.mark.parametrize("sizes", [[5, 5], [3, 9, 4, 7], [6] * 15])
    def test_blocks_exactly(self, assign, sizes):
        wanted = np.repeat(np.arange(len(sizes)), sizes)
        for W in (blocks(sizes), blocks(sizes) + 0.01):
            for seed in range(3):
                assert_array_equal(ncut(W, len(sizes), assign=assign, random_state=seed), wanted)

    @pytest.mark.parametrize("offset", [0.0, 0.5])
    def test_planted(self, assign, offset):
        W, wanted = planted([30, 20, 40, 25])
        labels = ncut(W, 4, assign=assign, offset=offset, random_state=0)
        assert_array_equal(labels, wanted)

    def test_permuting_vertices_permutes_labels(self, assign):
        W, _ = planted([30, 20, 40], p=0.5, q=0.08)
        order = np.random.default_rng(1).permutation(90)
        labels = ncut(W, 3, assign=assign, random_state=0)
        permuted = ncut(W[np.ix_(order, order)], 3, assign=assign, random_state=0)
        assert same_partition(permuted, labels[order])

    @pytest.mark.parametrize("scale", [1e-150, 3e-7, 1e150])
    def test_scale(self, assign, scale):
        W, _ = planted([20, 20, 20], p=0.6, q=0.1)
        labels = ncut(W, 3, assign=assign, random_state=0)
        assert_array_equal(ncut(scale * W, 3, assign=assign, random_state=0), labels)

    @pytest.mark.parametrize("power", [-400, 4, 400])
    def test_scale_of_an_unclear_graph_with_an_isolated_vertex(self, assign, power):
        """Powers of four do not round, so even ties fall the same way."""
        W, _ = planted([20, 20, 20], p=0.4, q=0.1)
        W[5] = W[:, 5] = 0
        labels = ncut(W, 4, assign=assign, random_state=0)
        assert_array_equal(ncut(2.0**power * W, 4, assign=assign, random_state=0), labels)

    def test_sparse_equals_dense_input(self, assign):
        W, _ = planted([20, 20, 20])
        sparse = ncut(scipy.sparse.coo_array(W), 3, assign=assign, random_state=0)
        assert_array_equal(sparse, ncut(W, 3, assign=assign, random_state=0))

    def test_large_sparse(self, assign):
        W, wanted = sparse_clusters(1500, 6)
        labels = ncut(W, 6, assign=assign, random_state=0)
        # Half an edge in six is noise: a handful of vertices has more ties elsewhere.
        table = np.zeros((6, 6))
        np.add.at(table, (wanted, labels), 1)
        assert table.max(axis=1).sum() > 0.99 * 1500

    def test_isolated_vertex_is_a_cluster(self, assign):
        W, wanted = planted([12, 12])
        W = scipy.linalg.block_diag(W, 0)
        labels = ncut(W, 3, assign=assign, random_state=0)
        assert_array_equal(labels, np.append(wanted, 2))

    @pytest.mark.parametrize("graph", ["complete", "empty", "star", "random"])
    def test_every_cluster_is_used(self, assign, graph):
        n = 9
        W = np.zeros((n, n))
        if graph == "complete":
            W[:] = 1
        elif graph == "star":
            W[0, 1:] = W[1:, 0] = 1
        elif graph == "random":
            W = planted([n], p=0.5)[0]
        for k in range(1, n + 1):
            for offset in (0.0, 0.5):
                labels = ncut(W, k, assign=assign, offset=offset, random_state=0)
                _, first = np.unique(labels, return_index=True)
                assert_array_equal(np.unique(labels), np.arange(k))
                assert_array_equal(first, np.sort(first))

    def test_ends(self, assign):
        W, _ = planted([5, 5])
        assert_array_equal(ncut(W, 1, assign=assign), np.zeros(10))
        assert_array_equal(ncut(W, 10, assign=assign), np.arange(10))
        assert_array_equal(ncut([[0.0]], 1, assign=assign), [0])

    def test_same_labels_with_a_random_state(self, assign):
        W, _ = planted([30, 30, 30], p=0.3, q=0.15)
        first = ncut(W, 5, assign=assign, random_state=7)
        assert_array_equal(ncut(W, 5, assign=assign, random_state=7), first)


class TestAssignments:
    def test_discretise_reaches_a_fixed_point_of_the_objective(self):
        """No rotation of the final partition is better, and no row would change sides."""
        W, _ = planted([30, 20, 40], p=0.4, q=0.1)
        embedding = embed(W, 3)
        X = embedding.cut_rows(3)
        labels = Discretise(max_iter=200).labels(embedding, 3, W, 0)
        U, _, Vh = np.linalg.svd(np.eye(3)[labels].T @ X)
        assert_array_equal(np.argmax(X @ (U @ Vh).T, axis=1), labels)

    def test_discretise_equals_scikit_learn_without_loops_and_offset(self):
        from sklearn.cluster._spectral import discretize

        W, _ = planted([30, 20, 40], p=0.4, q=0.1)
        embedding = embed(W, 3)
        V = embedding.vectors / np.sqrt(embedding.degrees)[:, None]
        for seed in range(5):
            wanted = discretize(V, random_state=seed)
            assert_array_equal(Discretise().labels(embedding, 3, W, seed), wanted)

    def test_offset_changes_the_toolbox_eigenvectors_as_written(self):
        """(D - W + offset) v = mu (D + 2 offset) v, with mu = 1 - value."""
        W, _ = planted([10, 10])
        found = embed(W, 3, offset=0.5)
        V = found.vectors / np.sqrt(found.degrees)[:, None]
        d = W.sum(axis=1)
        left = np.diag(d + 0.5) @ V - W @ V
        assert_allclose(left, (d + 1)[:, None] * V * (1 - found.values), atol=1e-12)

    def test_modularity_picks_the_best_of_the_single_starts(self):
        W, _ = planted([15] * 8, p=0.5, q=0.12)
        embedding = embed(W, 8)
        best = modularity(W, ModularityKMeans(n_init=8).labels(embedding, 8, W, 0))
        rng = np.random.RandomState(0)
        starts = [KMeansRows(n_init=1).labels(embedding, 8, W, rng) for _ in range(8)]
        scores = [modularity(W, labels) for labels in starts]
        assert best == max(scores) > min(scores)

    def test_repair_takes_the_farthest_vertex(self):
        vectors = np.array([[1, 0.0], [1, 0.1], [1, -0.5], [1, 0.1]])

        class Lazy(Discretise):
            def labels(self, *_):
                return np.zeros(4, dtype=int)

        embedding = Embedding(np.ones(2), vectors, np.ones(4))
        labels = partition(embedding, 2, np.ones((4, 4)), assign=Lazy())
        assert_array_equal(labels, [0, 0, 1, 0])

    def test_names(self):
        assert resolve("discretise") == Discretise()
        assert resolve("modularity") == ModularityKMeans(n_init=10)
        assert resolve(KMeansRows(3)) == KMeansRows(3)
        for wrong in ("median", 3, None):
            with pytest.raises(ValueError, match="assign must be one of"):
                resolve(wrong)
        assert resolve_cut("auto") == Cut() == Cut(Best(), 0.0)
        assert resolve_cut("published") == Cut(Discretise())
        with pytest.raises(ValueError, match="or a Cut, got 'ratio'"):
            resolve_cut("ratio")


class TestWholeCut:
    def test_given_number(self):
        W, wanted = planted([20, 20, 20])
        found = Cut()(W, 3, random_state=0)
        assert_array_equal(found.labels, wanted)
        assert (found.n_clusters, found.confidence) == (3, 1.0)
        assert_allclose(found.eigenvalues, 1 - dense_oracle(W)[0][:3], atol=1e-12)
        assert_allclose(found.vectors, embed(W, 3).vectors)

    @pytest.mark.parametrize("name", ["auto", "published"])
    def test_estimated_number(self, name):
        W, wanted = planted([20, 20, 20, 20])
        found = resolve_cut(name)(W, None, random_state=0)
        assert_array_equal(found.labels, wanted)
        assert found.n_clusters == 4
        assert found.confidence == estimate_n_clusters(W).confidence
        assert found.eigenvalues.shape == (41,)
        assert found.vectors.shape == (80, 4)


class TestEstimate:
    @pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 13, 20, 30])
    @pytest.mark.parametrize("mixing", [0.02, 0.1, 0.3])
    def test_planted(self, k, mixing):
        size = 20 if k > 5 else 40
        W, _ = planted([size] * k, p=0.6, q=0.6 * mixing / max(k - 1, 1), seed=k)
        assert estimate_n_clusters(W).n_clusters == k

    @pytest.mark.parametrize("k", [4, 25])
    def test_large_sparse(self, k):
        W, _ = sparse_clusters(1000, k)
        assert estimate_n_clusters(W, max_clusters=60, random_state=0).n_clusters == k

    def test_gaps_as_documented(self):
        W, _ = planted([10, 10, 10])
        count = estimate_n_clusters(W, max_clusters=8)
        mu = 1 - dense_oracle(W)[0][:9]
        assert_allclose(count.eigenvalues, mu, atol=1e-12)
        k = np.arange(2, 9)
        wanted = np.sqrt(k) * np.log((mu[2:] + 0.01) / (mu[1:-1] + 0.01))
        assert_allclose(count.gaps, [0.6, *wanted], atol=1e-10)
        second, first = np.sort(wanted)[-2:]
        assert_allclose(count.confidence, 1 - max(second, 0.6) / first)
        assert count.n_clusters == 3

    def test_components_count(self):
        count = estimate_n_clusters(blocks([4, 6, 5]))
        assert count.n_clusters == 3
        assert_array_equal(count.gaps[:2], 0)
        assert count.confidence > 0.9

    def test_clusters_within_components(self):
        A, _ = planted([20, 20, 20], q=0.02)
        B, _ = planted([20, 20], q=0.02, seed=1)
        assert estimate_n_clusters(scipy.linalg.block_diag(A, B)).n_clusters == 5

    def test_more_components_than_allowed(self):
        count = estimate_n_clusters(blocks([3] * 6), max_clusters=4)
        assert (count.n_clusters, count.confidence) == (4, 0.0)

    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_no_edges(self, n):
        assert estimate_n_clusters(np.zeros((n, n))).n_clusters == n

    def test_complete_graph_is_one_cluster(self):
        count = estimate_n_clusters(np.ones((30, 30)) - np.eye(30))
        assert count.n_clusters == 1
        assert_allclose(count.confidence, 1, atol=1e-9)

    def test_scale(self):
        W, _ = planted([20, 20, 20], q=0.1)
        one, other = estimate_n_clusters(W), estimate_n_clusters(1e6 * W)
        assert_allclose(one.gaps, other.gaps, atol=1e-8)

    def test_embedding_serves_the_partition(self):
        W, wanted = planted([20, 20, 20])
        count = estimate_n_clusters(W)
        assert_array_equal(partition(count.embedding, count.n_clusters, W, random_state=0), wanted)


class TestModularity:
    @pytest.mark.parametrize("loops", [False, True])
    def test_naive(self, loops):
        W, _ = planted([6, 5, 7])
        W += 0.3 * np.eye(18) if loops else 0
        labels = np.random.default_rng(0).choice([-3, 4, 9, 10], 18)
        d, total = W.sum(axis=1), W.sum()
        naive = sum(
            (W[i, j] - d[i] * d[j] / total) / total
            for i in range(18)
            for j in range(18)
            if labels[i] == labels[j]
        )
        assert_allclose(modularity(W, labels), naive, atol=1e-14)
        assert_allclose(modularity(scipy.sparse.csc_matrix(W), labels), naive, atol=1e-14)

    def test_ends(self):
        W, _ = planted([6, 5])
        assert_allclose(modularity(W, np.zeros(11)), 0, atol=1e-15)
        assert modularity(np.zeros((4, 4)), [0, 1, 2, 3]) == 0
        assert_allclose(modularity(blocks([5] * 4), np.repeat(list("abcd"), 5)), 0.75)

    def test_labels_must_fit(self):
        with pytest.raises(ValueError, match="one for each of 2 vertices"):
            modularity(np.eye(2), [0, 1, 2])


class TestInput:
    @pytest.mark.parametrize(
        ("affinity", "message"),
        [
            (np.ones((2, 3)), "square"),
            (np.ones(4), "square"),
            (np.ones((0, 0)), "square"),
            (np.array([[0, 1], [1 + 1e-6, 0]]), "symmetric"),
            (scipy.sparse.csr_array([[0, 1], [0, 0]]), "symmetric"),
            (np.array([[0, -1.0], [-1, 0]]), "non-negative, smallest entry is -1"),
            (np.array([[0, np.nan], [np.nan, 0]]), "finite"),
            (np.array([[0, np.inf], [np.inf, 0]]), "finite"),
            (np.array([[0, 1j], [-1j, 0]]), "real numbers"),
            ([["a", "b"], ["b", "a"]], "real numbers"),
        ],
    )
    def test_bad_affinity(self, affinity, message):
        for call in (
            lambda: ncut(affinity, 1),
            lambda: embed(affinity, 1),
            lambda: estimate_n_clusters(affinity),
            lambda: modularity(affinity, [0, 0]),
        ):
            with pytest.raises(ValueError, match=f"affinity must .*{message}"):
                call()

    def test_symmetric_to_rounding(self):
        W, _ = planted([5, 5])
        noisy = W * (1 + 1e-13 * np.random.default_rng(0).standard_normal(W.shape))
        checked = check_affinity(noisy)
        assert_array_equal(checked.toarray(), checked.toarray().T)
        assert_allclose(checked.toarray(), W, rtol=1e-12)
        single = (W * (1 + 1e-7 * np.random.default_rng(0).standard_normal(W.shape))).astype("f4")
        assert check_affinity(single).dtype == float

    def test_stored_zeros_are_no_edges_and_input_is_left_alone(self):
        W = scipy.sparse.csr_array(np.ones((4, 4)))
        W.data[:] = blocks([2, 2]).ravel()
        assert_array_equal(ncut(W, 2, random_state=0), [0, 0, 1, 1])
        assert W.nnz == 16

    @pytest.mark.parametrize("count", [0, -1, 5, 2.0, True, "2"])
    def test_bad_counts(self, count):
        W = np.ones((4, 4))
        with pytest.raises(ValueError, match="n_clusters must be an integer from 1 to 4"):
            ncut(W, count)
        with pytest.raises(ValueError, match="n_components must be an integer from 1 to 4"):
            embed(W, count)
        with pytest.raises(ValueError, match="max_clusters must be an integer from 1 to 4"):
            estimate_n_clusters(W, max_clusters=count)

    @pytest.mark.parametrize("offset", [-1.0, np.nan, np.inf])
    def test_bad_offset(self, offset):
        with pytest.raises(ValueError, match="offset must be a finite number >= 0"):
            embed(np.ones((2, 2)), 1, offset=offset)
