"""Estimators that choose the view of their graph; what the choice changes and what it does not."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import naive
import tubal
from tubal import ORTLRR, LowRankClusterer, TensorOutlierDetector, metrics
from tubal.datasets import make_tensor_subspaces
from tubal.graph import Absolute, MultiScale
from tubal.scales import Distance, View
from tubal.selection import select
from tubal.solvers import Published
from tubal.transforms import same_transform


def planted(axis=1, transform="dct", **options):
    """Five subspaces under one transform; axis `axis` of a sample takes the place of n1."""
    settings = {"outliers": 0.1, "random_state": 0, "transform": transform, **options}
    data = make_tensor_subspaces(16, 14, 5, 3, 16, **settings)
    return np.ascontiguousarray(np.moveaxis(data.X, 1, 1 + axis)), data.labels


def fit(X, n_clusters=5, **options):
    return ORTLRR(n_clusters, **{"random_state": 0, "n_jobs": 1, **options}).fit(X)


def agreement(labels, found):
    """Adjusted Rand index on the samples that neither calls outliers."""
    both = (labels >= 0) & (found >= 0)
    assert both.sum() > 0.6 * len(labels)
    return adjusted_rand_score(labels[both], found[both])


def check_old_samples(est, X):
    """Samples of the fit, in any order, are answered by the fit."""
    order = np.random.default_rng(0).permutation(len(X))[: max(2, len(X) // 2)]
    np.testing.assert_array_equal(est.predict(X[order]), est.labels_[order])
    np.testing.assert_allclose(-est.score_samples(X[order]), est.outlier_scores_[order], rtol=1e-7)
    scale = np.abs(est.X_clean_).max()
    np.testing.assert_allclose(est.transform(X[order]), est.X_clean_[order], atol=1e-7 * scale)
    assert est.X_clean_.shape == X.shape


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data[0])


@pytest.fixture(scope="module")
def by_hand(data):
    """The program under the DFT, and the view that is right for the graph."""
    return fit(data[0], transform="dft", graph=MultiScale(view=View("dct", 1)))


def check_same_fit(est, other):
    """Two fits, one of which chose what the other was told; both choose the neighbourhood."""
    assert other.selection_.candidates == ()
    assert other.selection_.neighbourhoods == est.selection_.neighbourhoods
    for name in ("labels_", "outlier_scores_", "X_clean_"):
        np.testing.assert_array_equal(getattr(est, name), getattr(other, name))
    np.testing.assert_array_equal(est.affinity_.toarray(), other.affinity_.toarray())
    assert est.lam_ == other.lam_


class TestView:
    def test_the_planted_view(self, data, fitted):
        assert fitted.selection_.view == View("dct", 1)
        assert fitted.selection_.n_clusters == 5
        assert len(fitted.selection_.candidates) == 6
        assert agreement(data[1], fitted.labels_) == 1

    def test_as_if_the_user_had_said_so(self, fitted, by_hand):
        check_same_fit(fitted, by_hand)
        assert same_transform(fitted.solution_.Z.transform, by_hand.solution_.Z.transform)
        assert fitted.sample_shape_ == (14, 16)

    def test_the_choice_is_made_among_the_kept(self, data):
        est = fit(data[0], contamination=0.2)
        again = select(est._fitted, ~est.outliers_, n_clusters=5, random_state=est._seed)
        assert est.selection_.candidates == again.candidates
        assert est.selection_.lam == est.lam_
        assert len(est.selection_.chosen.labels) == 64

    def test_what_is_not_open_is_not_chosen(self, data, fitted):
        X = data[0]
        assert not hasattr(fit(X, graph="nearest"), "selection_")
        given = fit(X, graph=MultiScale(8, view=View("dft", 1)))
        assert not hasattr(given, "selection_")
        assert given._graph() == MultiScale(8, view=View("dft", 1))
        more = fit(X, graph=MultiScale(8))
        assert more.selection_ == replace(fitted.selection_, neighbourhoods=())
        assert more.selection_.n_neighbors is None
        assert more._graph().n_neighbors == 8
        assert more._graph() == MultiScale(8, view=View("dct", 1))

    def test_old_samples(self, data, fitted):
        check_old_samples(fitted, data[0])

    def test_new_samples(self, data, fitted, by_hand):
        X, labels = data
        rng = np.random.default_rng(1)
        new = np.stack([X[labels == k][0] - 0.5 * X[labels == k][3] for k in range(5)])
        new = np.concatenate([new, rng.standard_normal((2, *X.shape[1:]))])
        found = fitted.predict(new)
        np.testing.assert_array_equal(found, by_hand.predict(new))
        np.testing.assert_array_equal(fitted.margins(new), by_hand.margins(new))
        np.testing.assert_array_equal(fitted.transform(new), by_hand.transform(new))
        wanted = [np.bincount(fitted.labels_[labels == k] + 1).argmax() - 1 for k in range(5)]
        kept = found[:5] >= 0
        assert kept.sum() >= 4
        np.testing.assert_array_equal(found[:5][kept], np.array(wanted)[kept])

    def test_holes(self):
        X, labels = planted(missing=0.1)
        est = fit(X)
        assert est.selection_.view == View("dct", 1)
        check_same_fit(est, fit(X, transform="dft", graph=MultiScale(view=View("dct", 1))))
        assert agreement(labels, est.labels_) > 0.95
        check_old_samples(est, X)

    def test_an_open_number_of_neighbours(self, data, fitted):
        X = data[0]
        est = fit(X, graph=MultiScale((5, 3, 9)))
        chosen = est.selection_
        assert chosen == replace(fitted.selection_, neighbourhoods=chosen.neighbourhoods)
        assert {each.count for each in chosen.neighbourhoods} == {5, 3, 9}
        view = View("dct", 1)
        same = fit(X, transform="dft", graph=MultiScale(chosen.n_neighbors, view=view))
        np.testing.assert_array_equal(est.affinity_.toarray(), same.affinity_.toarray())
        alone = fit(X, transform="dft", graph=MultiScale((5, 3, 9), view=view))
        check_same_fit(est, alone)
        plain = fit(X, transform="dct", graph=MultiScale((4, 6, 9), tree=False))
        assert plain._graph().n_neighbors == plain.selection_.n_neighbors in (4, 6, 9)
        check_old_samples(est, X)
        check_old_samples(plain, X)

    def test_the_number_of_neighbours_is_open_by_default(self, data, fitted):
        assert {each.count for each in fitted.selection_.neighbourhoods} == {5, 4, 7}
        assert fit(data[0], graph="multiscale").selection_ == fitted.selection_
        fixed = fit(data[0], graph=MultiScale(fitted.selection_.n_neighbors))
        np.testing.assert_array_equal(fixed.affinity_.toarray(), fitted.affinity_.toarray())

    @pytest.mark.parametrize("axis", [0, 1])
    def test_colour(self, axis):
        L = np.kron(naive.dct_matrix(7), naive.dct_matrix(2))
        X, labels = planted(0, transform=L)
        X = np.ascontiguousarray(np.moveaxis(X.reshape(-1, 16, 7, 2), 1, 1 + axis))
        est = fit(X)
        view = est.selection_.view
        assert view.axis == axis
        assert view.transform in ("dct", "data")  # the second moments of such data say the same
        check_same_fit(est, fit(X, transform="dft", graph=MultiScale(view=view)))
        check_old_samples(est, X)
        assert agreement(labels, est.labels_) == 1

    def test_samples_as_vectors(self):
        data = make_tensor_subspaces(60, 1, 5, 6, 30, outliers=0, random_state=0)
        X = data.X.reshape(-1, 6, 10)
        est, table = fit(X, 5, contamination=0), fit(data.X[..., 0], 5, contamination=0)
        assert est.selection_.view == View("none", None) == table.selection_.view
        assert len(table.selection_.candidates) == 3  # by distance, too
        np.testing.assert_array_equal(est.labels_, table.labels_)
        np.testing.assert_allclose(est.affinity_.toarray(), table.affinity_.toarray(), atol=1e-5)
        check_old_samples(est, X)
        check_old_samples(table, data.X[..., 0])

    def test_single_precision(self, data, fitted):
        est = fit(data[0].astype(np.float32))
        assert est.selection_.view == fitted.selection_.view
        assert metrics.clustering_accuracy(fitted.labels_, est.labels_) > 0.97
        np.testing.assert_allclose(est.X_clean_, fitted.X_clean_, atol=1e-2)

    def test_sizes_do_not_matter(self, data, fitted):
        for size in (1e-30, 1e30):
            est = fit(size * data[0])
            assert est.selection_.view == fitted.selection_.view
            np.testing.assert_array_equal(est.labels_, fitted.labels_)
            new = est.predict(size * data[0][:4] * 1.1)
            np.testing.assert_array_equal(new, fitted.predict(data[0][:4] * 1.1))

    @pytest.mark.parametrize(
        "library", [pytest.param("torch", marks=pytest.mark.slow), "array_api_strict"]
    )
    def test_other_libraries(self, data, fitted, library):
        xp = pytest.importorskip(library)
        est = fit(xp.asarray(data[0]))
        assert est.selection_.view == View("dct", 1)
        np.testing.assert_array_equal(est.labels_, fitted.labels_)
        assert isinstance(est.X_clean_, np.ndarray)
        np.testing.assert_allclose(est.X_clean_, fitted.X_clean_, atol=1e-5)
        np.testing.assert_array_equal(est.predict(xp.asarray(data[0][:5])), fitted.labels_[:5])


class TestState:
    def test_pickle(self, data, fitted):
        again = pickle.loads(pickle.dumps(fitted))
        assert again.selection_ == fitted.selection_
        assert str(again.selection_) == str(fitted.selection_)
        new = data[0][:6] * 1.3 + 0.01
        np.testing.assert_array_equal(again.predict(new), fitted.predict(new))
        np.testing.assert_array_equal(again.transform(new), fitted.transform(new))

    def test_clone_has_no_choice(self, fitted):
        again = clone(fitted)
        assert again.get_params()["transform"] == "auto"
        assert not hasattr(again, "selection_")

    def test_a_fixed_transform_leaves_no_stale_choice(self, data, fitted):
        est = copy.deepcopy(fitted).set_params(transform="dft")
        assert est.selection_.view == View("dct", 1)  # the fit is still the old one
        check_old_samples(est, data[0])
        est.fit(data[0])
        assert est.selection_.candidates == ()
        fresh = fit(data[0], transform="dft")
        np.testing.assert_array_equal(est.labels_, fresh.labels_)
        np.testing.assert_array_equal(est.X_clean_, fresh.X_clean_)

    def test_a_fit_that_fails_leaves_the_old_choice(self, data, fitted):
        est = copy.deepcopy(fitted)
        wrong = np.random.default_rng(0).standard_normal((9, 4, 3))

        def stop(check):
            raise KeyError

        with pytest.raises(KeyError):
            est.set_params(callback=stop).fit(wrong)
        assert est.selection_ == fitted.selection_
        check_old_samples(est, data[0])

    def test_same_seed_same_choice(self, data, fitted):
        again = fit(data[0], n_jobs=2)
        assert again.selection_ == fitted.selection_
        np.testing.assert_array_equal(again.labels_, fitted.labels_)

    def test_relabel(self, data, fitted):
        """The graph is made again for the samples that are kept then, also for new samples."""
        est = copy.deepcopy(fitted).relabel(contamination=0.3, n_clusters=4)
        fresh = fit(data[0], contamination=0.3)
        np.testing.assert_array_equal(est.outliers_, fresh.outliers_)
        np.testing.assert_array_equal(est.affinity_.toarray(), fresh.affinity_.toarray())
        assert est.n_clusters_ == 4
        est.relabel(n_clusters=5)
        np.testing.assert_array_equal(est.labels_, fresh.labels_)
        new = data[0][:8] * 1.1 + 0.01
        np.testing.assert_array_equal(est.predict(new), fresh.predict(new))
        est.relabel(contamination="auto")
        assert est.selection_ == fitted.selection_
        np.testing.assert_array_equal(est.labels_, fitted.labels_)
        np.testing.assert_array_equal(est.predict(new), fitted.predict(new))

    def test_relabel_with_a_given_view(self, data):
        est = fit(data[0], transform="dct").relabel(n_clusters=3)
        assert est.selection_.n_clusters == est.n_clusters_ == 3

    def test_number_of_clusters_unknown(self):
        X, labels = planted()
        est = fit(X, None)
        assert est.selection_.view == View("dct", 1)
        assert est.n_clusters_ == est.selection_.n_clusters == 5
        assert agreement(labels, est.labels_) == 1


class TestOthers:
    def test_detector(self, data):
        """Without a graph there is nothing to choose: the program is the same."""
        est, other = (
            TensorOutlierDetector(transform=name, random_state=0).fit(data[0])
            for name in ("auto", "dft")
        )
        assert not hasattr(est, "selection_")
        np.testing.assert_array_equal(est.outlier_scores_, other.outlier_scores_)
        np.testing.assert_array_equal(est.X_clean_, other.X_clean_)

    @pytest.mark.parametrize("dictionary", ["identity", "array"])
    def test_dictionaries(self, data, dictionary):
        X, labels = data
        atoms = X[labels >= 0][::2] if dictionary == "array" else dictionary
        options = {"dictionary": atoms, "random_state": 0}
        est = LowRankClusterer(5, transform="auto", graph="multiscale", **options).fit(X)
        assert est.selection_.view == View("dct", 1)
        graph = MultiScale(view=View("dct", 1))
        check_same_fit(est, LowRankClusterer(5, graph=graph, **options).fit(X))
        assert not hasattr(LowRankClusterer(5, transform="auto", **options).fit(X), "selection_")

    def test_matrix_methods(self, data):
        """Samples that are vectors have no axes to choose from."""
        est = LowRankClusterer(
            5, transform="auto", vectorize=True, graph="multiscale", random_state=0
        ).fit(data[0])
        found = {c.view for c in est.selection_.candidates}
        assert found == {View("none", None), Distance(), Distance(sized=True)}

    @pytest.mark.parametrize("options", [{"transform": "auto"}, {"vectorize": True}, {}])
    def test_a_dictionary_of_another_shape(self, options):
        rng = np.random.default_rng(0)
        est = LowRankClusterer(2, dictionary=rng.standard_normal((7, 3, 4)), **options)
        with pytest.raises(ValueError, match=r"dictionary holds samples of shape \(3, 4\), X of"):
            est.fit(rng.standard_normal((9, 4, 3)))

    def test_completion_first(self):
        X, labels = planted(missing=0.05)
        est = fit(X, completion="tnn")
        assert est.completion_.get_params()["transform"] == "dft"
        assert np.isfinite(est.X_clean_).all()
        check_old_samples(est, X)
        assert agreement(labels, est.labels_) > 0.8

    @pytest.mark.parametrize(
        ("name", "transform"), [("DFT", "dft"), ("DCT", "dct"), ("ROM", "rom")]
    )
    def test_published_methods_choose_nothing(self, name, transform):
        est = tubal.make(f"OR-TLRR-{name}", 3, random_state=0)
        assert est.get_params()["transform"] == transform
        est.set_params(lam=tubal.Lambda.relative(0.6))
        data = make_tensor_subspaces(12, 4, 3, 2, 14, outliers=0.1, random_state=1)
        est.fit(data.X)
        assert not hasattr(est, "selection_")
        assert isinstance(est._graph(), Absolute)
        L = tubal.transforms.resolve(transform, 4, random_state=0)
        Z = est.solution_.Z
        full = np.moveaxis(L.inverse(np.moveaxis(Z.left @ Z.core, 0, -1)), -1, 0)
        size = np.abs(full).mean(axis=0)
        kept = ~est.outliers_
        expected = np.where(np.outer(kept, kept), (size + size.T) / 2, 0)
        np.testing.assert_allclose(est.affinity_.toarray(), expected, atol=1e-10)

    @pytest.mark.parametrize("name", tubal.methods())
    def test_no_method_of_the_tables_is_auto(self, name):
        params = tubal.make(name).get_params()
        assert params.get("transform", "dft") in ("dft", "dct", "rom")
        assert params["graph"] in ("published", "scaled")
        if "solver" in params:
            assert params["solver"] == "published" or isinstance(params["solver"], Published)

    @pytest.mark.parametrize("est", [ORTLRR(2), LowRankClusterer(2), TensorOutlierDetector()])
    @pytest.mark.parametrize("name", ["AUTO", "fourier", ""])
    def test_unknown_names(self, est, name):
        est = clone(est).set_params(transform=name)
        with pytest.raises(ValueError, match=f"transform must be one of .*got '{name}'; or 'auto'"):
            est.fit(gaussian(6, 3, 4))

    def test_defaults(self):
        assert ORTLRR().get_params()["transform"] == "auto"
        assert LowRankClusterer().get_params()["transform"] == "dft"
        assert TensorOutlierDetector().get_params()["transform"] == "dft"
        assert ORTLRR._auto_graph == MultiScale()


def gaussian(*shape):
    return np.random.default_rng(3).standard_normal(shape)


def with_zero(X):
    X[3] = 0
    return X


TINY = {
    "two samples": (gaussian(2, 4, 3), (None, 1, 2)),
    "two rows": (gaussian(2, 4), (None, 1, 2)),
    "three samples": (gaussian(3, 4, 3), (None, 2, 3)),
    "as many clusters as samples": (gaussian(8, 4, 3), (8,)),
    "one row a sample": (gaussian(12, 1, 5), (2,)),
    "one column a sample": (gaussian(12, 5, 1), (2,)),
    "one long axis": (gaussian(12, 1, 1, 5), (2,)),
    "five axes": (gaussian(12, 3, 2, 2, 2), (2,)),
    "a zero sample": (with_zero(gaussian(12, 4, 3)), (2, None)),
    "integers": (np.random.default_rng(0).integers(0, 9, (12, 4, 3)), (2,)),
}


@pytest.mark.parametrize("name", TINY)
def test_tiny(name):
    X, counts = TINY[name]
    for n_clusters in counts:
        est = fit(X, n_clusters)
        found = est.labels_[~est.outliers_]
        np.testing.assert_array_equal(np.unique(found), np.arange(est.n_clusters_))
        assert n_clusters in (None, est.n_clusters_)
        assert np.isfinite(est.X_clean_).all()
        assert np.isfinite(est.outlier_scores_).all()
        check_old_samples(est, X)
        assert set(est.predict(X * 1.1 + 0.01)) <= set(range(-1, est.n_clusters_))


@pytest.mark.parametrize(
    "X",
    [
        np.ones((10, 4, 3)),
        np.zeros((10, 4, 3)),
        np.ones((10, 4)),
        gaussian(10, 1),
        gaussian(9, 1, 1),
    ],
    ids=["ones", "zeros", "table", "one feature", "one entry"],
)
def test_samples_that_are_all_alike(X):
    """There is nothing to find; the promises about the number of clusters hold anyway."""
    for n_clusters in (None, 1, 2):
        est = fit(X, n_clusters)
        assert n_clusters in (None, est.n_clusters_)
        assert est.X_clean_.shape == X.shape
        assert np.isfinite(est.X_clean_).all()
        assert len(est.predict(X)) == len(X)


def test_copies_stay_together():
    X = np.repeat(gaussian(4, 5, 6), 6, axis=0)
    est = fit(X, 4, contamination=0)
    np.testing.assert_array_equal(est.labels_, np.repeat(np.arange(4), 6))
    check_old_samples(est, X)


@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_sizes_that_the_solver_refuses(size):
    with pytest.raises(ValueError, match="X has entries of size"):
        fit(size * gaussian(12, 4, 3), 2, normalize=False)
