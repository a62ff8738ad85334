"""The graph at several ranks against `Nearest` on dense similarities of the kept samples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import naive
from tubal import ORTLRR, SSC, LowRankClusterer, transforms
from tubal import graph as graphs
from tubal.datasets import make_tensor_subspaces
from tubal.graph import MultiScale, Nearest, resolve
from tubal.input import Samples
from tubal.representation import Representation, Ties
from tubal.scales import FACTORS, ScaleKernel, View


class Dense(Ties):
    """A table that is there already."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)
        self.shape = self.table.shape

    def tile(self, rows):
        return self.table[rows].copy()


UNREAD = Dense(np.full((0, 0), np.nan))  # MultiScale has no use for the ties of the solution


def represent(values, transform="dct", *, observed=None, L=None, twins=None, fitted=None):
    n3 = values.shape[2]
    seen = values if observed is None else np.where(observed, values, 0)
    return Representation(
        Samples(seen, observed, False),
        seen if L is None else L,
        np.zeros_like(values),
        UNREAD,
        UNREAD,
        np.arange(len(values)) if twins is None else np.asarray(twins),
        transforms.resolve(transform, n3),
        fitted,
    )


def dense(S, n, twins=None):
    """A representation whose similarities are a table."""
    empty = np.zeros((len(S), 1, 1))
    twins = np.arange(n) if twins is None else np.asarray(twins)
    return Representation(
        Samples(empty, None, False), empty, empty, Dense(S), Dense(S), twins, None
    )


@pytest.fixture(scope="module")
def planted():
    """Three clusters and outliers among them, in no order."""
    data = make_tensor_subspaces(12, 4, 3, 2, 14, outliers=0.15, transform="dct", random_state=3)
    order = np.random.default_rng(0).permutation(len(data.X))
    return data.X[order], data.labels[order]


def naive_similarity(values):
    return naive.scale_similarity(
        np.moveaxis(values, 0, 1), naive.dct_matrix(values.shape[2]), FACTORS
    )


class TestBuild:
    @pytest.mark.parametrize("tree", [True, False])
    @pytest.mark.parametrize("k", [1, 3, 5])
    def test_nearest_on_the_similarities_of_the_kept(self, planted, k, tree):
        X, labels = planted
        kept = labels >= 0
        graph = MultiScale(k, tree).build(represent(X), kept).toarray()
        n = int(kept.sum())
        inner = Nearest(k, tree).build(dense(naive_similarity(X[kept]), n), np.ones(n, bool))
        np.testing.assert_allclose(graph[np.ix_(kept, kept)], inner.toarray(), atol=2e-5)
        assert not graph[~kept].any()
        assert not graph[:, ~kept].any()
        np.testing.assert_array_equal(graph, graph.T)
        assert not np.diag(graph).any()

    def test_one_piece_with_the_tree(self, planted):
        X, labels = planted
        kept = labels >= 0
        graph = MultiScale(1).build(represent(X), kept)
        assert connected_components(graph[kept][:, kept], directed=False)[0] == 1

    def test_samples_that_are_not_kept_do_not_matter(self, planted):
        X, labels = planted
        kept = labels >= 0
        graph = MultiScale().build(represent(X), kept)
        other = X.copy()
        other[~kept] = np.random.default_rng(5).standard_normal(other[~kept].shape) * 1e6
        np.testing.assert_array_equal(
            MultiScale().build(represent(other), kept).toarray(), graph.toarray()
        )

    def test_threads_do_not_matter(self, planted):
        X, labels = planted
        one, two = (MultiScale().build(represent(X), labels >= 0, jobs) for jobs in (1, 2))
        np.testing.assert_array_equal(one.toarray(), two.toarray())

    def test_missing_entries_are_filled_by_the_solution(self, planted):
        X, labels = planted
        observed = np.random.default_rng(1).random(X.shape) < 0.8
        filler = np.random.default_rng(2).standard_normal(X.shape)
        holes = represent(X, observed=observed, L=filler)
        np.testing.assert_array_equal(holes.complete(), np.where(observed, X, filler))
        complete = represent(np.where(observed, X, filler))
        graphs = [MultiScale().build(rows, labels >= 0).toarray() for rows in (holes, complete)]
        np.testing.assert_array_equal(*graphs)

    @pytest.mark.parametrize("count", [1, 2])
    def test_few_kept(self, planted, count):
        X, _ = planted
        kept = np.arange(len(X)) < count
        graph = MultiScale().build(represent(X), kept)
        assert graph.shape == (len(X), len(X))
        assert graph.nnz == (0 if count == 1 else 2)

    def test_the_rank_is_that_of_the_kept(self, planted):
        X, labels = planted
        kept = labels >= 0
        L = naive.dct_matrix(4)
        for mask in (kept, np.ones(len(X), bool)):
            expected = naive.suggested_rank(np.moveaxis(X[mask], 0, 1), L)
            assert MultiScale().rank(represent(X), mask) == pytest.approx(expected, rel=1e-5)

    def test_nothing_stale(self, planted):
        """One representation is asked for several masks and factors, as `relabel` does."""
        X, labels = planted
        rows, kept = represent(X), labels >= 0
        asked = [
            (MultiScale(), kept),
            (MultiScale(), ~(labels == 1)),
            (MultiScale(factors=(1.0,)), ~(labels == 1)),
            (MultiScale(2), kept),
            (MultiScale(view=View("dft", 1)), kept),
            (MultiScale(view=View(naive.random_orthogonal(4, 0))), kept),
            (MultiScale(view=View(naive.random_orthogonal(4, 1))), kept),
            (MultiScale(), kept),
        ]
        for graph, mask in asked:
            fresh = graph.build(represent(X), mask).toarray()
            np.testing.assert_array_equal(graph.build(rows, mask).toarray(), fresh)

    def test_similarities_are_made_once(self, planted, monkeypatch):
        X, labels = planted
        rows, made, of = represent(X), [], ScaleKernel.of
        monkeypatch.setattr(ScaleKernel, "of", lambda *args: made.append(1) or of(*args))
        kept = labels >= 0
        MultiScale().build(rows, kept)
        MultiScale(3).build(rows, kept)
        MultiScale().votes(represent(X[:2], twins=[-1, -1], fitted=rows), kept)
        assert len(made) == 1


class TestVotes:
    def test_table_of_similarities(self, planted):
        """Rows of new samples are what the whole set says about them, up to the change by them."""
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        new = X[[0, 1, 2]] + 0.01 * np.random.default_rng(0).standard_normal((3, *X.shape[1:]))
        votes = MultiScale(4).votes(represent(new, twins=[-1] * 3, fitted=fit), kept).toarray()
        kernel = ScaleKernel.of(X[kept], View(fit.transform), FACTORS).extended(new)
        S = kernel.tile(np.arange(3))
        expected = np.zeros((3, len(X)))
        for i in range(3):
            best = np.argsort(-S[i])[:4]
            expected[i, np.flatnonzero(kept)[best]] = S[i, best]
        np.testing.assert_allclose(votes, expected, atol=1e-9)

    def test_a_new_sample_votes_for_its_cluster(self, planted):
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        members = [X[labels == cluster] for cluster in range(3)]
        new = np.stack([0.6 * part[0] + 0.4 * part[1] for part in members])  # in the subspace
        votes = MultiScale().votes(represent(new, twins=[-1] * 3, fitted=fit), kept).toarray()
        shares = np.stack([votes[:, labels == cluster].sum(axis=1) for cluster in range(3)], axis=1)
        np.testing.assert_array_equal(shares.argmax(axis=1), [0, 1, 2])
        assert (shares.max(axis=1) > 0.6 * votes.sum(axis=1)).all()
        assert not votes[:, ~kept].any()

    def test_samples_of_the_fit_do_not_vote_for_themselves(self, planted):
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        old, gone = np.flatnonzero(kept)[:3], np.flatnonzero(~kept)[:1]
        who = np.concatenate([old, gone])
        votes = MultiScale(3).votes(represent(X[who], twins=who, fitted=fit), kept).toarray()
        np.testing.assert_array_equal(votes[np.arange(4), who], 0)
        np.testing.assert_array_equal((votes > 0).sum(axis=1), 3)
        alone = MultiScale(3, tree=False).build(fit, kept).toarray()
        # An edge of the graph is the mean of both directions: each vote stands in it with a half.
        assert (alone[old] >= votes[:3] / 2 - 1e-4).all()

    def test_without_a_twin_a_copy_votes_for_its_original(self, planted):
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        old = np.flatnonzero(kept)[:3]
        votes = MultiScale(3).votes(represent(X[old], twins=[-1] * 3, fitted=fit), kept)
        np.testing.assert_array_equal(votes.toarray().argmax(axis=1), old)

    def test_holes_of_new_samples(self, planted):
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        observed = np.random.default_rng(0).random(X[:4].shape) < 0.7
        filled = np.where(observed, X[:4], 0.3)
        options = {"twins": [-1] * 4, "fitted": fit}
        holes = represent(X[:4], observed=observed, L=np.full(X[:4].shape, 0.3), **options)
        votes = [
            MultiScale().votes(rows, kept).toarray()
            for rows in (holes, represent(filled, **options))
        ]
        np.testing.assert_array_equal(*votes)

    def test_samples_of_the_fit_ask_for_themselves(self, planted):
        """As `relabel(recut=False)` does for those that it takes back."""
        X, labels = planted
        kept, fit = labels >= 0, represent(X)
        votes = MultiScale(3).votes(fit, kept).toarray()
        asked = represent(X, twins=np.arange(len(X)), fitted=fit)
        np.testing.assert_array_equal(votes, MultiScale(3).votes(asked, kept).toarray())
        np.testing.assert_array_equal(np.diag(votes), 0)
        assert not votes[:, ~kept].any()
        assert (votes[~kept] > 0).any()

    def test_nobody_kept(self, planted):
        X, _ = planted
        nobody = np.zeros(len(X), bool)
        assert MultiScale().build(represent(X), nobody).nnz == 0
        assert MultiScale().votes(represent(X[:2]), nobody).shape == (2, len(X))


class TestView:
    @pytest.mark.parametrize("view", [View("dft", 1), View("dct", 1), View("none", None)])
    def test_as_if_the_samples_had_been_turned(self, planted, view):
        """The view counts, not the transform of the fit."""
        X, labels = planted
        kept = labels >= 0
        turned = view.arrange(X)
        graph, other = MultiScale(view=view), MultiScale()
        ours, theirs = represent(X, "dft"), represent(turned, view.transform)
        np.testing.assert_array_equal(
            graph.build(ours, kept).toarray(), other.build(theirs, kept).toarray()
        )
        assert graph.rank(ours, kept) == other.rank(theirs, kept)
        new = {"twins": [-1] * 3}
        votes = graph.votes(represent(1.1 * X[:3], fitted=ours, **new), kept)
        expected = other.votes(
            represent(1.1 * turned[:3], view.transform, fitted=theirs, **new), kept
        )
        np.testing.assert_array_equal(votes.toarray(), expected.toarray())

    def test_methods_without_a_transform(self, planted):
        X, labels = planted
        kept = labels >= 0
        rows = replace(represent(X), transform=None)
        expected = MultiScale().build(represent(X, "dct"), kept)
        found = MultiScale(view=View("dct")).build(rows, kept)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())


class TestArguments:
    @pytest.mark.parametrize(
        "factors",
        [(), 1.0, "1", (1.0, 0.0), (-1.0,), (np.nan,), (True,), iter([0.5, 1.0]), {0.5}, b"12"],
    )
    def test_factors(self, factors):
        with pytest.raises(ValueError, match="factors must be"):
            MultiScale(factors=factors)

    def test_others(self):
        for wrong in ((), [5, 4, 6], (5, 4), (5, 4, 0), (2.5,)):
            with pytest.raises(ValueError, match="n_neighbors must be a positive integer"):
                MultiScale(n_neighbors=wrong)
        with pytest.raises(ValueError, match="n_neighbors must be a positive integer, got 0"):
            MultiScale(0)
        with pytest.raises(ValueError, match="tree must be"):
            MultiScale(tree=1)

    def test_names(self):
        assert resolve("multiscale") == MultiScale()
        assert resolve("auto", MultiScale(3)) == MultiScale(3)
        assert resolve("nearest", MultiScale(3)) == Nearest()

    def test_methods_without_a_transform(self, planted):
        X, labels = planted
        with pytest.raises(ValueError, match="needs a method with a transform"):
            MultiScale().build(replace(represent(X), transform=None), labels >= 0)
        for graph in ("multiscale", MultiScale()):
            with pytest.raises(ValueError, match="graph must not be MultiScale for SSC"):
                SSC(3, graph=graph).fit(X)


def test_a_view_of_an_axis_that_is_not_there_is_refused_before_any_work():
    def never(check):
        raise AssertionError

    X = np.random.default_rng(0).standard_normal((12, 4, 3))
    est = ORTLRR(2, graph=MultiScale(view=View("dft", 2)), callback=never)
    with pytest.raises(ValueError, match="view must have an axis below 2"):
        est.fit(X)


def test_vectors_have_one_axis():
    def never(check):
        raise AssertionError

    X = np.random.default_rng(0).standard_normal((12, 4, 3, 2))
    for axis in (1, 2):
        graph = MultiScale(view=View("dft", axis))
        est = LowRankClusterer(2, vectorize=True, graph=graph, callback=never, random_state=0)
        with pytest.raises(ValueError, match=r"view must have an axis below 1 for vectors \(vec"):
            est.fit(X)
    for axis in (0, None):
        est = LowRankClusterer(2, vectorize=True, graph=MultiScale(view=View("dft", axis)))
        assert est.fit(X).n_clusters_ == 2
    est = LowRankClusterer(2, vectorize=True, graph=MultiScale(view=View("dft", 1)))
    assert est.fit(X.reshape(12, -1)).n_clusters_ == 2  # tables are what they were


@pytest.mark.parametrize("transform", ["dct", "dft"])
def test_the_same_graph_from_a_table_and_from_tiles(transform, monkeypatch):
    X = make_tensor_subspaces(12, 4, 3, 2, 60, outliers=0.1, noise=0.05, random_state=1).X
    kept = np.arange(len(X)) % 9 > 0
    table = MultiScale().build(represent(X, transform), kept).toarray()
    monkeypatch.setattr(graphs, "MOST_BYTES", 0)
    tiles = MultiScale().build(represent(X, transform), kept).toarray()
    np.testing.assert_array_equal(table > 0, tiles > 0)
    np.testing.assert_allclose(table, tiles, atol=1e-6)
