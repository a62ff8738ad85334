"""The choice of transform and arrangement: planted ones are found, layouts come back."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import naive
from tubal import metrics, selection, spectral, transforms
from tubal.datasets import make_tensor_subspaces
from tubal.graph import MultiScale, Nearest
from tubal.input import Samples
from tubal.representation import Representation
from tubal.scales import ScaleKernel
from tubal.selection import Candidate, Selection, View, select, views


def given_as(values, observed=None):
    values = np.asarray(values, dtype=float)
    return Samples(values if observed is None else np.where(observed, values, 0), observed, False)


def planted(transform, axis=0, seed=0, **options):
    """Five subspaces under one transform; axis `axis` of a sample takes the place of n1."""
    settings = {"outliers": 0, "random_state": seed, "transform": transform, **options}
    data = make_tensor_subspaces(16, 14, 5, 3, 16, **settings)
    return np.moveaxis(data.X, 1, 1 + axis), data.labels


# ---- views --------------------------------------------------------------------------------------


class TestView:
    @settings(max_examples=60)
    @given(
        shape=st.lists(st.integers(1, 4), min_size=2, max_size=4),
        axis=st.sampled_from([None, 0, 1, "last"]),
        holes=st.booleans(),
    )
    def test_restore_undoes_arrange(self, shape, axis, holes):
        axis = len(shape) - 1 if axis == "last" else axis
        rng = np.random.default_rng(0)
        values, view = rng.standard_normal((5, *shape)), View("dft", axis)
        observed = rng.random(values.shape) < 0.6 if holes else None
        arranged = view.arrange(Samples(values, observed, False))
        np.testing.assert_array_equal(view.restore(arranged.values, tuple(shape)), values)
        if holes:
            assert arranged.observed.shape == arranged.values.shape
            np.testing.assert_array_equal(view.restore(arranged.observed, tuple(shape)), observed)
        else:
            assert arranged.observed is None

    def test_layouts(self):
        values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
        samples = Samples(values, values % 2 == 0, False)
        assert View("dft").arrange(samples) is samples
        second = View("dft", 1).arrange(samples)
        np.testing.assert_array_equal(second.values, values.transpose(0, 2, 1, 3))
        np.testing.assert_array_equal(second.observed, second.values % 2 == 0)
        third = View("dft", 2).arrange(samples).values
        np.testing.assert_array_equal(third, values.transpose(0, 3, 1, 2))
        vectors = View("none", None).arrange(samples).values
        np.testing.assert_array_equal(vectors, values.reshape(2, 60, 1))

    def test_tables(self):
        table = Samples(np.arange(12.0).reshape(4, 3, 1), None, True)
        arranged = View("none", None).arrange(table)
        assert arranged.table
        np.testing.assert_array_equal(arranged.values, table.values)
        restored = View("none", None).restore(arranged.values, (3,))
        np.testing.assert_array_equal(restored, table.values[..., 0])

    def test_names(self):
        assert str(View("dct")) == "dct"
        assert str(View("dft", 1)) == "dft, axis 1 first"
        assert str(View("none", None)) == "none (samples as vectors)"
        assert str(View(transforms.Cosine(4))) == "Cosine(4)"

    @pytest.mark.parametrize(
        ("shape", "expected"),
        [
            ((5, 1), ["none (samples as vectors)"]),
            ((5, 1, 1), ["none (samples as vectors)"]),
            ((1, 1), ["none (samples as vectors)"]),
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
        assert [str(view) for view in views(given_as(np.ones((3, *shape))))] == expected


# ---- the choice ---------------------------------------------------------------------------------


class TestSelect:
    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("transform", ["dft", "dct"])
    def test_planted_view(self, transform, axis):
        X, labels = planted(transform, axis)
        samples = given_as(X)
        found = select(samples, views(samples), n_clusters=5, random_state=0)
        assert found.view == View(transform, axis)
        assert found.n_clusters == 5
        assert metrics.clustering_accuracy(labels, found.chosen.labels) == 1

    def test_planted_vectors(self):
        data = make_tensor_subspaces(30, 1, 4, 2, 25, outliers=0, random_state=0)
        samples = given_as(data.X.reshape(-1, 6, 5))
        found = select(samples, views(samples), n_clusters=4, random_state=0)
        assert found.view == View("none", None)
        assert metrics.clustering_accuracy(data.labels, found.chosen.labels) == 1

    @pytest.mark.parametrize("axis", [0, 1])
    def test_planted_axis_of_three(self, axis):
        """The transform runs along both axes that are left."""
        L = np.kron(naive.dct_matrix(7), naive.dct_matrix(2))
        data = make_tensor_subspaces(16, 14, 5, 3, 16, outliers=0, transform=L, random_state=0)
        samples = given_as(np.moveaxis(data.X.reshape(-1, 16, 7, 2), 1, 1 + axis))
        found = select(samples, views(samples), n_clusters=5, random_state=0)
        assert found.view == View("dct", axis)
        assert metrics.clustering_accuracy(data.labels, found.chosen.labels) == 1

    @pytest.mark.parametrize("share", [0.05, 0.15])
    def test_missing_entries(self, share):
        X, labels = planted("dct", 1, missing=share)
        observed = ~np.isnan(X)
        samples = given_as(X, observed)
        before = samples.values.copy()
        found = select(samples, views(samples), n_clusters=5, random_state=0)
        assert found.view == View("dct", 1)
        assert metrics.clustering_accuracy(labels, found.chosen.labels) > 0.95
        np.testing.assert_array_equal(samples.values, before)

    def test_holes_are_filled_by_the_mean_of_the_entry(self):
        X, _ = planted("dct")
        observed = np.random.default_rng(0).random(X.shape) < 0.8
        observed[:, 2, 3] = False  # never seen: zero
        filled = X.copy()
        for i, j in np.ndindex(X.shape[1:]):
            seen = observed[:, i, j]
            filled[~seen, i, j] = X[seen, i, j].mean() if seen.any() else 0
        choices = [View("dct"), View("dft")]
        holes, complete = (
            select(samples, choices, n_clusters=5, random_state=0)
            for samples in (given_as(X, observed), given_as(filled))
        )
        assert holes.view == complete.view
        for a, b in zip(holes.candidates, complete.candidates, strict=True):
            assert a.modularity == pytest.approx(b.modularity, abs=1e-6)

    @pytest.mark.parametrize("k", [2, 5])
    def test_candidates_by_hand(self, k):
        """Similarities, graph, cut and modularity of each view, from the rooms before."""
        X, _ = planted("dft", noise=0.5)
        choices = [View("dct", 1), View("dft"), View("none", None)]
        found = select(given_as(X), choices, n_clusters=5, graph=MultiScale(k), random_state=0)
        assert {c.view for c in found.candidates} == set(choices)
        scores = [c.modularity for c in found.candidates]
        assert scores == sorted(scores, reverse=True)
        for candidate in found.candidates:
            view = candidate.view
            arranged = X.reshape(len(X), -1, 1) if view.axis is None else X
            arranged = arranged.swapaxes(1, 2) if view.axis == 1 else arranged
            plan = transforms.resolve(view.transform, arranged.shape[2])
            kernel, everyone = ScaleKernel.of(arranged, plan), np.ones(len(X), bool)
            ties = Representation(
                given_as(arranged), arranged, arranged, kernel, kernel, np.arange(len(X))
            )
            W = Nearest(k).build(ties, everyone)
            labels = spectral.ncut(W, 5, assign="ward", random_state=0)
            assert candidate.rank == kernel.rank
            assert adjusted_rand_score(labels, candidate.labels) == 1
            assert candidate.modularity == pytest.approx(spectral.modularity(W, labels), abs=1e-9)

    def test_one_number_for_all(self):
        """The first view sees one cluster only; surer ones decide."""
        X, labels = planted("dct", 1)
        alone = select(given_as(X), [View("dft")], random_state=0)
        assert alone.n_clusters == 1
        samples = given_as(X)
        found = select(samples, views(samples), random_state=0)
        assert found.view == View("dct", 1)
        assert found.n_clusters == 5
        assert {len(np.unique(c.labels)) for c in found.candidates} == {5}
        assert metrics.clustering_accuracy(labels, found.chosen.labels) == 1

    def test_deterministic(self):
        X, _ = planted("dft", noise=1.0)
        samples = given_as(X)
        first, second, threads = (
            select(samples, views(samples), n_clusters=5, random_state=4, n_jobs=jobs)
            for jobs in (1, 1, 2)
        )
        assert first == second == threads
        for a, b in zip(first.candidates, second.candidates, strict=True):
            np.testing.assert_array_equal(a.labels, b.labels)

    def test_the_first_of_equals(self):
        """One cluster has modularity zero under every view; two slices have one transform."""
        X, _ = planted("dft")
        for choices in ([View("dft"), View("dct")], [View("dct", 1), View("dft"), View("data")]):
            assert select(given_as(X), choices, n_clusters=1, random_state=0).view == choices[0]
        two = make_tensor_subspaces(14, 2, 3, 2, 20, outliers=0, random_state=0).X
        for choices in ([View("dft"), View("dct")], [View("dct"), View("dft")]):
            found = select(given_as(two), choices, n_clusters=3, random_state=0)
            assert found.view == choices[0]
            assert found.confidence == 1

    def test_some_samples_of_many(self, monkeypatch):
        X, _ = planted("dct", 1)
        monkeypatch.setattr(selection, "MOST_SAMPLES", 65)
        observed = np.random.default_rng(0).random(X.shape) < 0.95
        for samples in (given_as(X), given_as(X, observed)):
            found = select(samples, views(samples), n_clusters=5, random_state=0)
            assert found.view == View("dct", 1)
            assert len(found.chosen.labels) == 65
            again = select(samples, views(samples), n_clusters=5, random_state=0)
            assert found == again
        other = select(samples, views(samples), n_clusters=5, random_state=1)
        assert other.chosen.modularity != found.chosen.modularity

    def test_more_clusters_than_samples_looked_at(self, monkeypatch):
        monkeypatch.setattr(selection, "MOST_SAMPLES", 10)
        X, _ = planted("dct")
        found = select(given_as(X), [View("dct"), View("dft")], n_clusters=40, random_state=0)
        assert found.n_clusters == 10

    @pytest.mark.parametrize("shape", [(2, 3, 4), (3, 1, 4), (2, 1, 1), (5, 2, 2, 2)])
    def test_tiny(self, shape):
        samples = given_as(np.random.default_rng(0).standard_normal(shape))
        for n_clusters in (None, 1, 2):
            found = select(samples, views(samples), n_clusters=n_clusters, random_state=0)
            assert 0 <= found.confidence <= 1

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_constant_data(self, value):
        samples = given_as(np.full((8, 3, 4), value))
        found = select(samples, views(samples), n_clusters=2, random_state=0)
        assert found.n_clusters == 2
        assert np.isfinite([c.modularity for c in found.candidates]).all()


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
            "agreement of the two best: 1.00",
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
