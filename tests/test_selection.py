"""The choice of the view of the graph: planted ones are found, among the samples kept."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import naive
from tubal import LowRankClusterer, metrics, selection, spectral, transforms
from tubal._threads import effective_jobs
from tubal.datasets import make_tensor_subspaces
from tubal.graph import MultiScale, Nearest
from tubal.input import Samples
from tubal.representation import Representation, Ties
from tubal.scales import ScaleKernel, View
from tubal.selection import Candidate, Neighbourhood, Selection, select, tie, views


class Unread(Ties):
    """Ties of the solution, of which the choice makes no use."""

    shape = (0, 0)

    def tile(self, rows):
        pytest.fail("the choice is made from the samples alone")


def given_as(values, observed=None, L=None):
    """A representation of samples; missing entries are explained by L."""
    values = np.asarray(values, dtype=float)
    seen = values if observed is None else np.where(observed, values, 0)
    L = seen if L is None else L
    samples, nobody = Samples(seen, observed, False), Unread()
    return Representation(samples, L, seen - L, nobody, nobody, np.arange(len(values)))


def choose(X, candidates=None, *, kept=None, **options):
    rows = X if isinstance(X, Representation) else given_as(X)
    kept = np.ones(len(rows.twins), bool) if kept is None else kept
    return select(rows, kept, candidates, **{"random_state": 0, **options})


def planted(transform, axis=0, seed=0, **options):
    """Five subspaces under one transform; axis `axis` of a sample takes the place of n1."""
    settings = {"outliers": 0, "random_state": seed, "transform": transform, **options}
    data = make_tensor_subspaces(16, 14, 5, 3, 16, **settings)
    return np.moveaxis(data.X, 1, 1 + axis), data.labels


# ---- views --------------------------------------------------------------------------------------


class TestView:
    def test_layouts(self):
        values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
        np.testing.assert_array_equal(View("dft").arrange(values), values)
        np.testing.assert_array_equal(View("dft", 1).arrange(values), values.transpose(0, 2, 1, 3))
        np.testing.assert_array_equal(View("dft", 2).arrange(values), values.transpose(0, 3, 1, 2))
        vectors = View("none", None).arrange(values)
        np.testing.assert_array_equal(vectors, values.reshape(2, 60, 1))

    @pytest.mark.parametrize("axis", [0, 1, 2, None])
    def test_the_transform_fits_the_arrangement(self, axis):
        view = View("none" if axis is None else "dct", axis)
        arranged = view.arrange(np.ones((2, 3, 4, 5)))
        assert view.plan(arranged).sizes == arranged.shape[2:]

    def test_same(self):
        matrix = np.eye(4)
        assert View("dft", 1).is_same(View("dft", 1))
        assert not View("dft", 1).is_same(View("dft", 0))
        assert not View("dft").is_same(View("dct"))
        assert View(matrix).is_same(View(matrix))
        assert not View(matrix).is_same(View(matrix.copy()))
        assert not View(matrix).is_same(View("dft"))

    def test_names(self):
        assert str(View("dct")) == "dct"
        assert str(View("dft", 1)) == "dft, axis 1 first"
        assert str(View("none", None)) == "none (samples as vectors)"
        assert str(View(transforms.Cosine(4))) == "Cosine(4)"

    @pytest.mark.parametrize(
        ("shape", "expected"),
        [
            ((5, 1), ["none (samples as vectors)", "distance at unit norm", "distance"]),
            ((5, 1, 1), ["none (samples as vectors)", "distance at unit norm", "distance"]),
            ((1, 1), ["none (samples as vectors)", "distance at unit norm", "distance"]),
            ((1, 5), ["dft", "dct", "data", "none (samples as vectors)"]),
            ((5, 1, 3), ["dft", "dct", "data", "none (samples as vectors)"]),
            (
                (5, 4),
                [
                    "dft",
                    "dct",
                    "dft, axis 1 first",
                    "dct, axis 1 first",
                    "data",
                    "none (samples as vectors)",
                ],
            ),
            (
                (5, 4, 3),
                [
                    "dft",
                    "dct",
                    "dft, axis 1 first",
                    "dct, axis 1 first",
                    "data",
                    "none (samples as vectors)",
                ],
            ),
        ],
    )
    def test_what_auto_chooses_from(self, shape, expected):
        assert [str(view) for view in views(shape)] == expected


# ---- the choice ---------------------------------------------------------------------------------


class TestSelect:
    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("transform", ["dft", "dct"])
    def test_planted_view(self, transform, axis):
        X, labels = planted(transform, axis)
        found = choose(X, n_clusters=5)
        assert found.view == View(transform, axis)
        assert found.n_clusters == 5
        assert {c.view for c in found.candidates} == set(views(X.shape[1:]))
        assert metrics.clustering_accuracy(labels, found.chosen.labels) == 1

    def test_planted_vectors(self):
        data = make_tensor_subspaces(60, 1, 5, 6, 30, outliers=0, random_state=0)
        found = choose(data.X.reshape(-1, 6, 10), n_clusters=5)
        assert found.view == View("none", None)
        assert metrics.clustering_accuracy(data.labels, found.chosen.labels) == 1

    @pytest.mark.parametrize("axis", [0, 1])
    def test_planted_axis_of_three(self, axis):
        """The transform runs along both axes that are left."""
        L = np.kron(naive.dct_matrix(7), naive.dct_matrix(2))
        data = make_tensor_subspaces(16, 14, 5, 3, 16, outliers=0, transform=L, random_state=0)
        found = choose(np.moveaxis(data.X.reshape(-1, 16, 7, 2), 1, 1 + axis), n_clusters=5)
        assert found.view == View("dct", axis)
        assert metrics.clustering_accuracy(data.labels, found.chosen.labels) == 1

    def test_outliers_have_no_say(self):
        """The answer is that for the kept samples alone, whatever the others are."""
        X, labels = planted("dct", 1)
        mixed = np.random.default_rng(0).standard_normal((len(X) + 30, *X.shape[1:])) * 1e3
        kept = np.random.default_rng(1).permutation(len(mixed)) < len(X)
        mixed[kept] = X
        found, alone = choose(mixed, kept=kept, n_clusters=5), choose(X, n_clusters=5)
        assert found == alone
        np.testing.assert_array_equal(found.chosen.labels, alone.chosen.labels)
        assert metrics.clustering_accuracy(labels, found.chosen.labels) == 1

    def test_holes_are_filled_by_what_was_explained(self):
        X, _ = planted("dct", 1)
        rng = np.random.default_rng(0)
        observed, L = rng.random(X.shape) < 0.8, X + 0.1 * rng.standard_normal(X.shape)
        rows = given_as(X, observed, L)
        before = rows.samples.values.copy()
        holes, complete = (choose(A, n_clusters=5) for A in (rows, np.where(observed, X, L)))
        assert holes == complete
        assert holes.view == View("dct", 1)
        np.testing.assert_array_equal(rows.samples.values, before)

    def test_candidates_by_hand(self):
        """Similarities, graph, cut and modularity of each view, from the rooms before."""
        X, _ = planted("dft", noise=0.5)
        choices = [View("dct", 1), View("dft"), View("none", None)]
        found = choose(X, choices, n_clusters=5)
        assert {c.view for c in found.candidates} == set(choices)
        for candidate in found.candidates:
            view = candidate.view
            arranged = X.reshape(len(X), -1, 1) if view.axis is None else X
            arranged = arranged.swapaxes(1, 2) if view.axis == 1 else arranged
            kernel = ScaleKernel.of(arranged, View(view.transform), selection.COMPARED)
            ties = Representation(
                Samples(arranged, None, False),
                arranged,
                arranged,
                kernel,
                kernel,
                np.arange(len(X)),
            )
            W = Nearest().build(ties, np.ones(len(X), bool))
            ward = spectral.Best((spectral.DiffusionWard(times=(12,)),))
            labels = spectral.ncut(W, 5, assign=ward, random_state=0)
            assert candidate.rank == kernel.rank
            assert adjusted_rand_score(labels, candidate.labels) == 1
            # Similarities are in single precision, made whole here and in tiles there.
            assert candidate.modularity == pytest.approx(spectral.modularity(W, labels), abs=1e-6)

    def test_vectors_have_to_be_clearly_better(self, monkeypatch):
        X, _ = planted("dft", noise=0.5)
        choices = [View("none", None), View("dft"), View("dct", 1)]
        for handicap in (0, selection.CLEARLY, 1):
            monkeypatch.setattr(selection, "CLEARLY", handicap)
            found = choose(X, choices, n_clusters=5).candidates
            paid = [c.modularity - handicap * (c.view.axis is None) for c in found]
            assert paid == sorted(paid, reverse=True)
        assert found[-1].view == View("none", None)

    def test_one_number_for_all(self):
        """The first view sees one cluster only; surer ones decide."""
        X, labels = planted("dct", 1)
        assert choose(X, [View("dft")]).n_clusters == 1
        found = choose(X)
        assert found.view == View("dct", 1)
        assert found.n_clusters == 5
        assert {len(np.unique(c.labels)) for c in found.candidates} == {5}
        assert metrics.clustering_accuracy(labels, found.chosen.labels) == 1

    def test_matrices(self):
        """Views by matrices are told apart, too; the right one wins."""
        right, wrong = naive.dct_matrix(14), naive.random_orthogonal(14, 0)
        X, _ = planted("dct")
        found = choose(X, [View(wrong), View(right)], n_clusters=5)
        assert found.view.transform is right
        named = choose(X, [View("dct")], n_clusters=5)
        assert found.chosen.modularity == pytest.approx(named.chosen.modularity, abs=1e-4)

    def test_deterministic(self):
        X, _ = planted("dft", noise=1.0)
        first, second, threads = (
            choose(X, n_clusters=5, random_state=4, n_jobs=jobs) for jobs in (1, 1, 2)
        )
        assert first == second == threads
        for a, b in zip(first.candidates, second.candidates, strict=True):
            np.testing.assert_array_equal(a.labels, b.labels)

    def test_the_first_of_equals(self):
        """One cluster has modularity zero under every view; two slices have one transform."""
        X, _ = planted("dft")
        for choices in ([View("dft"), View("dct")], [View("dct", 1), View("dft"), View("data")]):
            assert choose(X, choices, n_clusters=1).view == choices[0]
        two = make_tensor_subspaces(14, 2, 3, 2, 20, outliers=0, random_state=0).X
        for choices in ([View("dft"), View("dct")], [View("dct"), View("dft")]):
            found = choose(two, choices, n_clusters=3)
            assert found.view == choices[0]
            assert found.confidence == 1

    def test_some_samples_of_many(self, monkeypatch):
        X, labels = planted("dct", 1)
        kept = labels < 4
        monkeypatch.setattr(selection, "MOST_SAMPLES", 50)
        monkeypatch.setattr(selection, "CLOSE", 1.0)
        found, again, other = (
            choose(X, kept=kept, n_clusters=4, random_state=seed) for seed in (0, 0, 1)
        )
        assert found.view == View("dct", 1)
        assert len(found.chosen.labels) == 50
        assert found == again
        assert other.chosen.modularity != found.chosen.modularity
        assert kept.sum() == 64

    @pytest.mark.parametrize(("n_clusters", "looked_at"), [(2, 30), (4, 40), (10, 60), (None, 60)])
    def test_how_many_samples(self, monkeypatch, n_clusters, looked_at):
        """Ten a cluster, between 30 and 60; when the number is not known, the most."""
        monkeypatch.setattr(selection, "MOST_SAMPLES", 60)
        monkeypatch.setattr(selection, "ENOUGH_SAMPLES", 30)
        monkeypatch.setattr(selection, "PER_CLUSTER", 10)
        X, _ = planted("dct")
        for close, share in ((1.0, 1), (0.0, 2)):  # half of them when the first look is enough
            monkeypatch.setattr(selection, "CLOSE", close)
            found = choose(X, [View("dct"), View("dft")], n_clusters=n_clusters)
            assert len(found.chosen.labels) == looked_at // share < len(X)

    def test_close_calls_get_a_second_look(self, monkeypatch):
        """On more samples, among the views that were close; the others follow."""
        monkeypatch.setattr(selection, "MOST_SAMPLES", 60)
        X, _ = planted("dct", noise=0.5)
        choices = [View("dct"), View("dft"), View("dct", 1), View("none", None)]
        monkeypatch.setattr(selection, "CLOSE", 0.0)
        first = choose(X, choices, n_clusters=4).candidates
        assert {len(one.labels) for one in first} == {30}
        ratings = [one.rating for one in first]
        monkeypatch.setattr(selection, "CLOSE", ratings[0] - ratings[2] + 1e-9)
        found = choose(X, choices, n_clusters=4).candidates
        assert [len(one.labels) for one in found] == [60, 60, 60, 30]
        assert {one.view for one in found[:3]} == {one.view for one in first[:3]}
        assert found[3] == first[3]
        again = [one.rating for one in found[:3]]
        assert again == sorted(again, reverse=True)
        unknown = choose(X, choices).candidates
        assert len({len(np.unique(one.labels)) for one in unknown}) == 1
        alone = choose(X, choices[:1], n_clusters=4).candidates
        assert [len(one.labels) for one in alone] == [30]  # nothing to be close to

    def test_a_handicap_is_shown(self):
        X, _ = planted("dct")
        found = choose(X, [View("dct"), View("none", None)], n_clusters=4)
        plain, vectors = sorted(found.candidates, key=lambda candidate: candidate.handicap)
        assert plain.rating == pytest.approx(plain.modularity, abs=1e-6)
        assert vectors.rating == pytest.approx(vectors.modularity - selection.CLEARLY, abs=1e-6)
        assert str(vectors).endswith(f", counts as {vectors.rating:.3f}")
        assert f"not {vectors}" in str(found)

    def test_more_clusters_than_samples_looked_at(self, monkeypatch):
        monkeypatch.setattr(selection, "MOST_SAMPLES", 20)
        monkeypatch.setattr(selection, "CLOSE", 0.0)
        X, _ = planted("dct")
        assert choose(X, [View("dct"), View("dft")], n_clusters=40).n_clusters == 10

    @pytest.mark.parametrize("shape", [(2, 3, 4), (3, 1, 4), (2, 1, 1), (5, 2, 2, 2)])
    def test_tiny(self, shape):
        X = np.random.default_rng(0).standard_normal(shape)
        for n_clusters in (None, 1, 2):
            assert 0 <= choose(X, n_clusters=n_clusters).confidence <= 1

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_constant_data(self, value):
        found = choose(np.full((8, 3, 4), value), n_clusters=2)
        assert found.n_clusters == 2
        assert np.isfinite([c.modularity for c in found.candidates]).all()


# ---- how many neighbours ------------------------------------------------------------------------


def noisy(size=3.0):
    X, _ = planted("dct")
    return X + size * X.std() * np.random.default_rng(0).standard_normal(X.shape)


class TestTie:
    COUNTS = (7, 3, 5, 12)

    def by_definition(self, rows, kept, graph, cut, k, seed):
        """What each number proposes that agrees best with the first proposals of the others."""
        graphs = [replace(graph, n_neighbors=n).build(rows, kept) for n in graph.choices]
        found = [cut.proposals(W[kept][:, kept], k, seed) for W in graphs]
        best = []
        for i, proposals in enumerate(found):
            others = [other[0].labels for j, other in enumerate(found) if j != i]
            rated = [
                np.mean([adjusted_rand_score(one.labels, labels) for labels in others])
                for one in proposals
            ]
            best.append((max(rated), proposals[int(np.argmax(rated))].labels))
        return graphs, best

    @pytest.mark.parametrize("lead", [0.0, 0.01, 0.5])
    @pytest.mark.parametrize("close", [0.0, 0.02])
    def test_by_its_definition(self, monkeypatch, lead, close):
        monkeypatch.setattr(selection, "AGREES", lead)
        X = noisy()
        rows, kept = given_as(X), np.arange(len(X)) % 9 > 0
        graph = MultiScale(self.COUNTS, tree=False, factors=(2.0, 4.0), view=View("dct"))
        cut = spectral.Cut(spectral.Best(close=close))
        found = tie(graph, rows, kept, cut, n_clusters=4, random_state=3)
        graphs, best = self.by_definition(rows, kept, graph, cut, 4, 3)
        agreement = dict(zip(self.COUNTS, (value for value, _ in best), strict=True))
        assert len(set(np.round(list(agreement.values()), 6))) > 2
        given = {each.count: each.agreement for each in found.neighbourhoods}
        assert given == pytest.approx(agreement, abs=1e-6)
        first, *others = found.neighbourhoods
        rest = [each.agreement for each in others]
        assert rest == sorted(rest, reverse=True)
        leader = max(self.COUNTS[1:], key=agreement.get)
        expected = leader if agreement[leader] - agreement[7] > lead else 7
        assert first.count == expected
        taken = self.COUNTS.index(expected)
        np.testing.assert_array_equal(found.affinity.toarray(), graphs[taken].toarray())
        np.testing.assert_array_equal(found.clusters.labels, best[taken][1])

    def test_close_calls_are_decided_by_the_other_graphs(self):
        """Somewhere the most modular partition is not the one that shows in all graphs."""
        X = noisy(4.0)
        rows, kept = given_as(X), np.ones(len(X), bool)
        graph = MultiScale((5, 4, 7), view=View("dct"))
        changed = 0
        for seed in range(6):
            strict, loose = (
                tie(graph, rows, kept, spectral.Cut(spectral.Best(close=close)), n_clusters=5,
                    random_state=seed)
                for close in (0.0, 0.05)
            )  # fmt: skip
            assert loose.neighbourhoods[0].agreement >= strict.neighbourhoods[0].agreement - 0.01
            changed += not np.array_equal(strict.clusters.labels, loose.clusters.labels)
        assert changed

    @pytest.mark.parametrize(
        "graph", [MultiScale(7, view=View("dct")), MultiScale((7,)), Nearest(4)]
    )
    def test_a_number_that_is_not_open(self, graph):
        X, _ = planted("dct")
        est = LowRankClusterer(5, contamination=0, random_state=0).fit(X)
        rows, kept = est._fitted, np.ones(len(X), bool)
        found = tie(graph, rows, kept, spectral.Cut(), n_clusters=4, random_state=0)
        assert found.neighbourhoods == ()
        W = graph.build(rows, kept)
        np.testing.assert_array_equal(found.affinity.toarray(), W.toarray())
        labels = spectral.Cut()(W, 4, 0).labels
        np.testing.assert_array_equal(found.clusters.labels, labels)

    def test_an_unknown_number_of_clusters_is_that_of_the_first_graph(self):
        X, labels = planted("dct")
        rows, kept = given_as(X), np.ones(len(X), bool)
        graph = MultiScale((5, 4, 7), view=View("dct"))
        found = tie(graph, rows, kept, spectral.Cut(), random_state=0)
        count = spectral.estimate_n_clusters(graph.build(rows, kept), random_state=0)
        assert found.clusters.n_clusters == count.n_clusters == 5
        assert found.clusters.confidence == count.confidence
        assert metrics.clustering_accuracy(labels, found.clusters.labels) == 1

    def test_eigenvalues_are_those_of_the_graph_taken(self, monkeypatch):
        """Also where the number of clusters was estimated in another graph."""
        X = noisy(4.0)
        rows, kept = given_as(X), np.ones(len(X), bool)
        monkeypatch.setattr(selection, "AGREES", -2.0)  # any other number than the first
        graph = MultiScale((5, 4, 7), view=View("dct"))
        found = tie(graph, rows, kept, spectral.Cut(), random_state=0)
        assert found.neighbourhoods[0].count != 5
        count = spectral.estimate_n_clusters(graph.build(rows, kept), random_state=0)
        values = found.clusters.eigenvalues
        assert len(values) == len(count.eigenvalues) > found.clusters.n_clusters
        expected = 1 - spectral.embed(found.affinity, len(values), random_state=0).values
        np.testing.assert_allclose(values, expected, atol=1e-8)

    def test_threads_do_not_matter(self, monkeypatch):
        monkeypatch.setattr(selection, "MANY", 1)
        X = noisy()
        rows, kept = given_as(X), np.ones(len(X), bool)
        one, two = (
            tie(MultiScale(view=View("dct")), rows, kept, spectral.Cut(), n_clusters=5,
                random_state=0, n_jobs=jobs)
            for jobs in (1, 2)
        )  # fmt: skip
        assert one.neighbourhoods == two.neighbourhoods
        np.testing.assert_array_equal(one.clusters.labels, two.clusters.labels)


# ---- what is told -------------------------------------------------------------------------------


def candidate(view, modularity, labels):
    return Candidate(view, modularity, 2.0, np.asarray(labels))


class TestSelection:
    @settings(max_examples=30)
    @given(a=st.lists(st.integers(0, 2), min_size=6, max_size=6), seed=st.integers(0, 99))
    def test_confidence_is_the_agreement_of_the_two_best(self, a, seed):
        b = np.random.default_rng(seed).integers(0, 3, 6)
        third = candidate(View("data"), 0.1, np.arange(6))
        found = Selection(
            (candidate(View("dft"), 0.5, a), candidate(View("dct"), 0.4, b), third), 3
        )
        assert 0 <= found.confidence <= 1
        assert found.confidence == pytest.approx(max(0, adjusted_rand_score(a, b)))

    def test_nothing_to_choose(self):
        found = Selection((candidate(View("none", None), 0.5, [0, 1]),), 2)
        assert found.confidence == 1
        assert str(found).splitlines() == [
            "transform none (samples as vectors): modularity 0.500 with 2 clusters, "
            "effective rank 2",
        ]

    def test_reads_well(self):
        found = Selection(
            (
                candidate(View("dct", 1), 0.8123, [0, 0, 1, 1]),
                candidate(View("dft"), 0.75, [1, 1, 0, 0]),
            ),
            2,
        )
        assert str(found) == (
            "transform dct, axis 1 first: modularity 0.812 with 2 clusters, effective rank 2\n"
            "  not dft: 0.750\n"
            "agreement of the two best: 1.00"
        )
        assert found.chosen is found.candidates[0]
        assert not re.search("array", repr(found))
        known = Selection((), 2, (Neighbourhood(5, 0.91), Neighbourhood(7, 0.905)), 0.01234)
        assert str(known) == "5 neighbours: agreement 0.91\n  not 7: 0.91\nlam 0.0123"
        assert known.n_neighbors == 5
        assert known.chosen is None
        assert known.view is None
        assert known.confidence == 1


@pytest.mark.parametrize(("n_views", "within"), [(1, 2), (3, 1)])
def test_a_single_view_has_all_threads(n_views, within, monkeypatch):
    X = make_tensor_subspaces(10, 4, 2, 1, 20, outliers=0, random_state=0).X
    seen, graph_of = [], selection._graph_of

    def watched(view, rows, n_jobs):
        seen.append(effective_jobs(n_jobs))
        return graph_of(view, rows, n_jobs)

    monkeypatch.setattr(selection, "_graph_of", watched)
    with threadpool_limits(2, user_api="blas"):
        choose(X, [View("dft"), View("dct"), View("none")][:n_views], n_clusters=2, random_state=0)
    assert seen == [within] * n_views
