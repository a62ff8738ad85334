"""The choice of view, level and graph, and that a fit is the program of that choice."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from tubal import ORTLRR, Lambda, metrics, selection, solve, transforms
from tubal.datasets import make_tensor_subspaces
from tubal.estimators import lowrank
from tubal.graph import Absolute, AllPairs, Nearest
from tubal.selection import Candidate, Selection, open_views, select
from tubal.similarity import GaussianKernel, View

VECTORS = View("none", None)


def unit(X):
    """Samples at unit norm, and their norms."""
    sizes = np.sqrt(np.sum(X**2, axis=tuple(range(1, X.ndim))))
    sizes = np.where(sizes > 0, sizes, 1)
    return X / sizes.reshape(-1, *(1,) * (X.ndim - 1)), sizes


def choose(X, n_clusters=None, views=None, **options):
    """Choose for samples; rows of tables have two axes."""
    values, sizes = unit(np.asarray(X, dtype=float))
    table = values.ndim == 2
    values = values[..., None] if table else values
    views = open_views(values.shape[1:], table) if views is None else views
    settings = {"random_state": 0, "n_jobs": 1, **options}
    return select(values, sizes, views, n_clusters=n_clusters, **settings)


def fit(X, n_clusters=3, **options):
    return ORTLRR(n_clusters, **{"random_state": 0, "n_jobs": 1, **options}).fit(X)


def planted(transform="dct", axis=0, **options):
    """Five tensor subspaces; axis `axis` of a sample takes the place of n1."""
    settings = {"outliers": 0, "random_state": 0, "transform": transform, **options}
    data = make_tensor_subspaces(16, 14, 5, 3, 16, **settings)
    return np.ascontiguousarray(np.moveaxis(data.X, 1, 1 + axis)), data.labels


def small(**options):
    """Three tensor subspaces under the DCT, with noise."""
    settings = {"outliers": 0, "noise": 0.3, "random_state": 0, "transform": "dct", **options}
    data = make_tensor_subspaces(16, 6, 3, 2, 25, **settings)
    return data.X, data.labels


def independent(shape=None):
    """Independent subspaces of vectors, in a table or in samples of some shape."""
    if shape is None:
        data = make_tensor_subspaces(30, 1, 3, 4, 25, outliers=0, random_state=0)
        return data.X[..., 0], data.labels
    data = make_tensor_subspaces(60, 1, 5, 6, 30, outliers=0, random_state=0)
    return data.X.reshape(-1, *shape), data.labels


def places():
    """Points around four places."""
    return make_blobs(150, 3, centers=4, random_state=1, center_box=(-12, 12))


def arcs():
    """Twelve arcs, each of them in a plane of its own with an offset."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 15)
    at = 2.4 * rng.random(180)
    basis = rng.standard_normal((12, 3, 20))
    weights = np.stack([np.ones(180), np.cos(at), np.sin(at)], axis=1)
    return np.einsum("ni,nij->nj", weights, basis[labels]), labels


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


accuracy = metrics.clustering_accuracy


# ---- what there is to choose from ---------------------------------------------------------------


class TestOpenViews:
    @pytest.mark.parametrize(
        ("shape", "expected"),
        [
            ((5, 4), ["dft", "dct", "dft, axis 1 first", "dct, axis 1 first"]),
            ((5, 4, 3), ["dft", "dct", "dft, axis 1 first", "dct, axis 1 first"]),
            ((1, 5), ["dft", "dct"]),
            ((5, 1, 3), ["dft", "dct"]),
            ((5, 1), ["none (samples as vectors)"]),
            ((5, 1, 1), ["none (samples as vectors)"]),
            ((1, 1), ["none (samples as vectors)"]),
        ],
    )
    def test_tensors(self, shape, expected):
        assert [str(view) for view in open_views(shape, table=False)] == expected

    def test_tables(self):
        assert open_views((5, 1), table=True) == [VECTORS, GaussianKernel()]
        assert open_views((5, 1), table=True, complete=False) == [VECTORS]


# ---- the choice ---------------------------------------------------------------------------------


class TestPlanted:
    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("transform", ["dft", "dct"])
    def test_tensor_subspaces(self, transform, axis):
        X, labels = planted(transform, axis)
        found = choose(X, 5)
        assert found.view.axis == axis
        assert found.view.transform in ("dft", "dct")  # both see what the other one does
        assert isinstance(found.graph, Nearest)
        assert accuracy(labels, found.chosen.labels) == 1
        assert found.chosen.evidence > 0.5
        assert found.confidence > 0.9

    @pytest.mark.parametrize("shape", [None, (6, 10)])
    def test_independent_subspaces(self, shape):
        """They are found, as vectors and when they came as tensors."""
        X, labels = independent(shape)
        found = choose(X, labels.max() + 1)
        assert accuracy(labels, found.chosen.labels) > 0.98

    def test_places(self):
        X, labels = places()
        found = choose(X, 4)
        assert found.view == GaussianKernel()
        assert isinstance(found.graph, Nearest)
        assert accuracy(labels, found.chosen.labels) > 0.98

    @pytest.mark.parametrize("shape", [(20,), (4, 5)])
    def test_many_curved_clusters(self, shape):
        X, labels = arcs()
        found = choose(X.reshape(-1, *shape), 12)
        assert accuracy(labels, found.chosen.labels) > 0.9

    def test_number_of_clusters(self):
        X, labels = planted()
        found = choose(X)
        assert found.n_clusters == 5
        assert accuracy(labels, found.chosen.labels) == 1

    @pytest.mark.parametrize("axis", [0, 1])
    def test_outliers_do_not_disturb(self, axis):
        X, _ = planted("dct", axis)
        mixed = np.concatenate([X, noise(20, *X.shape[1:])])
        found = choose(mixed, 5, false_alarms=0.01)
        assert found.view.axis == axis
        assert isinstance(found.graph, Nearest)

    @pytest.mark.parametrize("transform", ["dft", "dct"])
    def test_outliers_are_not_looked_at(self, transform):
        """Those that nobody expresses in the first view; when asked to."""
        X, _ = planted(transform)
        mixed, view = np.concatenate([X, noise(20, *X.shape[1:])]), View(transform)
        found = choose(mixed, 5, [view], false_alarms=0.01)
        assert len(X) - 4 <= found.n_looked_at <= len(X)
        assert found.confidence > 0.9
        everyone = choose(mixed, 5, [view])
        assert everyone.n_looked_at == len(mixed)
        assert everyone.confidence < found.confidence


class TestEvidence:
    """What partitions have beyond chance: nothing in noise."""

    @pytest.mark.parametrize("graph", [Nearest(), AllPairs()])
    @pytest.mark.parametrize("view", [View("dft"), View("dct", 1), VECTORS])
    def test_noise_has_none(self, view, graph):
        found = [
            choose(noise(80, 12, 8, seed=seed), 3, [view], graph=graph, levels=(2.8,)).chosen
            for seed in range(4)
        ]
        evidence = [each.evidence for each in found]
        assert abs(np.mean(evidence)) < 0.15
        assert max(evidence) < 0.3

    def test_a_choice_in_noise_is_a_guess(self):
        for X in (noise(80, 12, 8), noise(90, 30)):
            found = choose(X, 3)
            assert found.chosen.evidence < 0.35
            assert found.confidence < 0.7
            assert "a guess" in str(found)

    def test_planted_ones_have_much(self):
        for X, k in ((planted()[0], 5), (independent()[0], 3), (places()[0], 4)):
            found = choose(X, k)
            assert found.chosen.evidence > 0.8
            assert found.chosen.evidence <= 1

    def test_candidates(self):
        """The first one was chosen; the best of every kind was asked how stable it is."""
        X, _ = planted()
        found = choose(X, 5)
        assert found.chosen is found.candidates[0]
        assert len(found.candidates) >= 3
        for each in found.candidates:
            assert np.isfinite(each.evidence)
            assert each.evidence <= 1
            assert len(each.labels) == (found.n_looked_at if each.is_plain else 0)
            assert each.level in selection.DEFAULTS.levels
        finalists = [each for each in found.candidates if np.isfinite(each.stability)]
        assert {each.kind for each in finalists} == {
            each.kind for each in found.candidates if each.is_plain
        }
        assert all(-0.5 <= each.stability <= 1 for each in finalists)
        assert found.confidence == found.chosen.stability

    def test_all_pairs_need_plain_evidence(self, monkeypatch):
        X, _ = independent((6, 10))
        always = replace(selection.DEFAULTS, same=1.1)
        monkeypatch.setattr(selection, "DEFAULTS", always)
        assert choose(X, 5).graph == AllPairs()
        monkeypatch.setattr(selection, "DEFAULTS", replace(always, plain=1.0))
        assert isinstance(choose(X, 5).graph, Nearest)


class TestSelect:
    def test_same_seed_same_choice(self):
        X, _ = small(noise=1.0)
        one, same, threads = (choose(X, 3, random_state=4, n_jobs=jobs) for jobs in (1, 1, 2))
        assert one == same == threads
        for a, b in zip(one.candidates, threads.candidates, strict=True):
            np.testing.assert_array_equal(a.labels, b.labels)

    def test_samples_are_left_alone(self):
        X, _ = small()
        values, sizes = unit(X)
        before = values.copy(), sizes.copy()
        select(values, sizes, open_views(X.shape[1:], False), n_clusters=3, random_state=0)
        np.testing.assert_array_equal(values, before[0])
        np.testing.assert_array_equal(sizes, before[1])

    @pytest.mark.parametrize(("n_clusters", "expected"), [(2, 30), (5, 50), (9, 60), (None, 60)])
    def test_how_many_are_looked_at(self, monkeypatch, n_clusters, expected):
        less = replace(selection.DEFAULTS, fewest=30, most=60, per_cluster=10)
        monkeypatch.setattr(selection, "DEFAULTS", less)
        X, _ = planted()
        found = choose(X, n_clusters)
        assert found.n_looked_at == len(found.chosen.labels) == expected < len(X)

    def test_too_many_for_all_pairs(self, monkeypatch):
        X, _ = independent((6, 10))
        few = replace(selection.DEFAULTS, most_pairs=100)
        monkeypatch.setattr(selection, "DEFAULTS", few)
        assert all(isinstance(each.graph, Nearest) for each in choose(X, 5).candidates)

    @pytest.mark.parametrize("graph", [Nearest(), Nearest(8), AllPairs()])
    def test_a_given_graph(self, graph):
        found = choose(small()[0], 3, graph=graph)
        assert {each.graph for each in found.candidates} == {graph}

    def test_given_views_and_levels(self):
        X, _ = small()
        found = choose(X, 3, [View("dft")], levels=(4.0,))
        assert {each.view for each in found.candidates} == {View("dft")}
        levels = {each.level for each in found.candidates if isinstance(each.graph, Nearest)}
        assert levels == {4.0}

    EDGES = (
        ("one cluster", noise(30, 6, 4), 1),
        ("one sample", noise(1, 6, 4), None),
        ("two samples", noise(2, 6, 4), 2),
        ("three rows", noise(3, 6), 2),
        ("four rows", noise(4, 6), 2),
        ("five rows", noise(5, 6), None),
        ("a cluster a sample", noise(8, 6, 4), 8),
        ("zeros", np.zeros((20, 6, 4)), 3),
        ("rows of zeros", np.zeros((20, 6)), None),
        ("ones", np.ones((20, 6, 4)), 3),
        ("rows of ones", np.ones((20, 6)), 3),
        ("copies", np.repeat(noise(4, 6, 4), 6, axis=0), 4),
        ("copies of rows", np.repeat(noise(4, 6), 6, axis=0), 6),
        ("some zeros", np.concatenate([noise(20, 6, 4), np.zeros((5, 6, 4))]), 3),
        ("one column", noise(20, 1), 2),
        ("one row a sample", noise(20, 1, 5), 2),
        ("one entry a sample", noise(20, 1, 1), 2),
    )

    @pytest.mark.parametrize(("X", "k"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
    @pytest.mark.parametrize("false_alarms", [None, 0.01])
    def test_edges(self, X, k, false_alarms):
        """There is an answer, and no warning."""
        found = choose(X, k, false_alarms=false_alarms)
        assert isinstance(found, Selection)
        assert isinstance(found.view, View)
        assert 1 <= found.n_clusters <= len(X)
        assert 0 <= found.confidence <= 1
        assert str(found)

    def test_copies_belong_together(self):
        X = np.repeat(noise(4, 6, 4), 8, axis=0)
        found = choose(X, 4)
        np.testing.assert_array_equal(found.chosen.labels, np.repeat(np.arange(4), 8))

    def test_copies_are_all_looked_at(self):
        for count in (6, 8, 12):
            X = np.repeat(noise(4, 6, 4), count, axis=0)
            assert choose(X, 4, false_alarms=0.01).n_looked_at == len(X)


class TestWords:
    def test_in_plain_words(self):
        nan = float("nan")
        found = Selection(
            (
                Candidate(View("dct", 1), 11.2, Nearest(), 0.914, 0.956),
                Candidate(VECTORS, 2.8, AllPairs(), 0.4, 0.71),
                Candidate(View("dft"), 2.8, Nearest(), 0.9, nan),
            ),
            5,
            80,
            0.01234,
        )
        assert str(found) == (
            "dct, axis 1 first, level 11.2, nearest samples, evidence 0.91, stability 0.96\n"
            "  not none (samples as vectors), level 2.8, all pairs, evidence 0.40, stability 0.71\n"
            "  not dft, level 2.8, nearest samples, evidence 0.90\n"
            "sure: partitions of 80% of the samples agree with it by 0.96\n"
            "lam 0.0123"
        )
        assert "array" not in repr(found)

    @pytest.mark.parametrize(
        ("stability", "word"), [(0.9, "sure"), (0.89, "likely"), (0.7, "likely"), (0.2, "a guess")]
    )
    def test_how_sure(self, stability, word):
        pair = [
            Candidate(View("dft"), 2.8, graph, 0.5, stability) for graph in (Nearest(), AllPairs())
        ]
        assert f"\n{word}: partitions" in str(Selection(tuple(pair), 3, 50))

    def test_without_a_choice(self):
        found = Selection((Candidate(VECTORS, 2.8, Nearest()),), 1, 3)
        assert str(found) == "none (samples as vectors), level 2.8, nearest samples"
        assert found.confidence == 1
        below = Candidate(VECTORS, 2.8, Nearest(), 0.1, -0.2)
        assert Selection((below,), 2, 30).confidence == 0

    def test_kinds(self):
        kinds = [
            Candidate(view, 2.8, graph).kind
            for view, graph in (
                (View("dft"), Nearest()),
                (VECTORS, Nearest()),
                (GaussianKernel(), Nearest()),
                (VECTORS, AllPairs()),
            )
        ]
        assert kinds == ["transform", "vectors", "kernel", "all pairs"]


# ---- fits: the program of the choice ------------------------------------------------------------


SETS = {  # samples, labels, number of clusters
    "nearest": (*small(), 3),
    "all pairs": (*independent((6, 10)), 5),
    "kernel": (*places(), 4),
    "another axis": (*planted("dct", 1), 5),
}


@pytest.fixture(scope="module", params=SETS)
def fitted(request):
    """Samples, labels, and a fit that chose everything itself."""
    X, labels, k = SETS[request.param]
    est = fit(X, k, outliers=None)
    return request.param, X, labels, est


class TestFit:
    def test_finds_what_was_planted(self, fitted):
        name, _, labels, est = fitted
        assert accuracy(labels, est.labels_) > 0.98
        if name != "all pairs":  # where both say the same, the nearest samples stay
            assert isinstance(est.selection_.graph, Nearest)
        assert est._graph() == est.selection_.graph
        assert (est.selection_.view == GaussianKernel()) == (name == "kernel")

    def test_the_solution_is_that_of_the_choice(self, fitted):
        """Solving by hand what `selection_` and `lam_` say gives the same."""
        _, X, _, est = fitted
        values, sizes = unit(X)
        values = values[..., None] if X.ndim == 2 else values
        view = est.selection_.view
        arranged = view.arrange(values, sizes)
        by_hand = solve(arranged, transform=view.transform, lam=est.lam_, tol=est.tol, n_jobs=1)
        assert est.certificate_.gap <= est.tol
        assert est.certificate_ == est.solution_.certificate
        scale = np.abs(by_hand.L).max()
        np.testing.assert_allclose(est.solution_.L, by_hand.L, atol=1e-8 * scale)
        assert est.solution_.lam == est.lam_ == est.selection_.lam
        if view.is_linear:
            clean = view.restore(by_hand.L, values.shape[1:]).reshape(X.shape)
            clean = clean * sizes.reshape(-1, *(1,) * (X.ndim - 1))
            np.testing.assert_allclose(est.X_clean_, clean, atol=1e-8 * np.abs(clean).max())

    def test_lam_is_that_of_the_level(self, fitted):
        _, X, _, est = fitted
        values, sizes = unit(X)
        values = values[..., None] if X.ndim == 2 else values
        view, level = est.selection_.view, est.selection_.level
        solution = solve(
            view.arrange(values, sizes),
            transform=view.transform,
            lam=Lambda.auto(level),
            max_iter=1,
            callback=lambda check: True,
        )
        assert est.lam_ == pytest.approx(solution.lam, rel=1e-9)

    def test_samples_of_the_fit_keep_their_labels(self, fitted):
        _, X, _, est = fitted
        order = np.random.default_rng(0).permutation(len(X))
        np.testing.assert_array_equal(est.predict(X[order]), est.labels_[order])

    def test_new_samples(self, fitted):
        """Nearly the same samples, which no list of known ones finds."""
        _, X, _, est = fitted
        new = X + 1e-4 * np.std(X) * noise(*X.shape)
        assert np.mean(est.predict(new) == est.labels_) > 0.98

    def test_the_graph_comes_from_the_solution(self, fitted, monkeypatch):
        """With random coefficients in the place of the solution, labels are chance."""
        _, X, labels, est = fitted
        true = lowrank.solve

        def spoiled(*args, **options):
            solution = true(*args, **options)
            core = solution.Z.core
            rng = np.random.default_rng(0)
            wrong = rng.standard_normal(core.shape)
            if np.iscomplexobj(core):
                wrong = wrong + 1j * rng.standard_normal(core.shape)
            wrong *= np.linalg.norm(core) / np.linalg.norm(wrong)
            return replace(solution, Z=replace(solution.Z, core=wrong.astype(core.dtype)))

        monkeypatch.setattr(lowrank, "solve", spoiled)
        other = fit(X, est.n_clusters_, outliers=None)
        assert other.selection_ == est.selection_
        chance = 1 / est.n_clusters_
        assert accuracy(labels, other.labels_) < chance + 0.2
        assert accuracy(labels, est.labels_) > 0.98


class TestFixed:
    @pytest.mark.parametrize("graph", ["nearest", "all pairs"])
    def test_lam_changes_the_graph(self, graph):
        """Everything else fixed, what is solved decides."""
        X, _ = small()
        options = {"transform": "dct", "graph": graph, "outliers": None}
        tables = [fit(X, lam=lam, **options).affinity_.toarray() for lam in (0.5, 1.5, 4.0)]
        for one, other in ((0, 1), (1, 2), (0, 2)):
            assert np.abs(tables[one] - tables[other]).max() > 0.05

    def test_transform(self):
        est = fit(small()[0], transform="dft")
        assert {each.view for each in est.selection_.candidates} == {View("dft")}
        assert isinstance(est.solution_.Z.transform, transforms.Fourier)

    def test_lam(self):
        est = fit(small()[0], lam=2.0)
        assert est.lam_ == 2.0
        assert est.selection_.lam is None
        levels = {each.level for each in est.selection_.candidates}
        assert levels == {selection.DEFAULTS.middle_level}

    @pytest.mark.parametrize("graph", [Nearest(7), AllPairs()])
    def test_graph(self, graph):
        est = fit(small()[0], graph=graph)
        assert {each.graph for each in est.selection_.candidates} == {graph}
        assert est._graph() == graph

    def test_nothing_open(self):
        X, _ = small()
        est = fit(X, transform="dct", lam=2.0, graph="nearest")
        assert not hasattr(est, "selection_")
        for graph in ("published", Absolute()):
            other = fit(X, graph=graph)
            assert not hasattr(other, "selection_")
            assert other._graph() == Absolute()

    def test_as_if_the_user_had_said_so(self):
        """A fit that chose, and one that was told what the first one chose."""
        X, _ = small()
        est = fit(X)
        assert est.selection_.view.axis == 0
        told = fit(
            X,
            transform=est.selection_.view.transform,
            graph=est.selection_.graph,
            lam=Lambda.auto(est.selection_.level),
        )
        assert not hasattr(told, "selection_")
        np.testing.assert_array_equal(est.labels_, told.labels_)
        np.testing.assert_array_equal(est.X_clean_, told.X_clean_)
        np.testing.assert_array_equal(est.affinity_.toarray(), told.affinity_.toarray())

    def test_nothing_stale(self):
        X, _ = small()
        est = fit(X)
        est.set_params(transform="dct", lam=2.0, graph="nearest").fit(X)
        assert not hasattr(est, "selection_")

    def test_outliers(self):
        """They are left out of the look, of the graph and of the clusters."""
        X, labels = small(outliers=0.15, noise=0.1)
        est, clean = fit(X), fit(X[labels >= 0])
        assert est.selection_.view.axis == clean.selection_.view.axis == 0
        assert est.selection_.graph == clean.selection_.graph
        assert est.selection_.n_looked_at < len(X)
        assert accuracy(labels, est.labels_) > 0.95
        assert metrics.outlier_auc(labels, est.outlier_scores_) > 0.98

    def test_holes(self):
        X, labels = small(missing=0.1, noise=0.1)
        est = fit(X, outliers=None)
        assert isinstance(est.selection_.graph, Nearest)
        assert accuracy(labels, est.labels_) > 0.95
        np.testing.assert_array_equal(est.predict(X[:20]), est.labels_[:20])

    def test_a_second_fit_of_points(self):
        """What a kernel combines are samples of this fit, not of the one before."""
        X, _ = places()
        est = fit(X[:100] + 50, 4, outliers=None)
        est.fit(X)
        fresh = fit(X, 4, outliers=None)
        assert est.selection_.view == GaussianKernel()
        np.testing.assert_array_equal(est.X_clean_, fresh.X_clean_)
        np.testing.assert_array_equal(est.labels_, fresh.labels_)
