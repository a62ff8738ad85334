"""Dictionaries that estimators make themselves: without outliers, and after robust PCA."""

import copy

import numpy as np
import pytest

from tubal import ORTLRR, Lambda, LowRankClusterer, TensorOutlierDetector, metrics, solve
from tubal.datasets import make_tensor_subspaces
from tubal.graph import Absolute

OPTIONS = {"random_state": 0, "n_jobs": 1, "transform": "dct"}


def planted(**options):
    settings = {"outliers": 0.15, "noise": 0.1, "random_state": 0, "transform": "dct", **options}
    return make_tensor_subspaces(20, 6, 3, 2, 40, **settings)


def unit(X):
    """Samples at unit norm, and their norms."""
    sizes = np.sqrt(np.nansum(X**2, axis=(1, 2), keepdims=True))
    return X / sizes, sizes


def check_old_and_new(est, data):
    """Samples of the fit keep their answers; new ones are sorted in, and junk is not."""
    np.testing.assert_array_equal(est.predict(data.X[:20]), est.labels_[:20])
    np.testing.assert_allclose(-est.score_samples(data.X), est.outlier_scores_, rtol=1e-6)
    members = [data.X[data.labels == k] for k in range(3)]
    new = np.stack([0.6 * part[0] + 0.4 * part[1] for part in members])
    wanted = [np.bincount(est.labels_[data.labels == k] + 1).argmax() - 1 for k in range(3)]
    np.testing.assert_array_equal(est.predict(new), wanted)
    junk = np.random.default_rng(5).standard_normal((3, *data.X.shape[1:]))
    np.testing.assert_array_equal(est.predict(junk), -1)
    error, junk_error = (
        np.linalg.norm(est.transform(X) - X) / np.linalg.norm(X) for X in (new, junk)
    )
    assert error < 0.6 < 0.8 < junk_error


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def clean(data):
    return ORTLRR(3, dictionary="clean", **OPTIONS).fit(data.X)


@pytest.fixture(scope="module")
def trpca(data):
    return ORTLRR(3, dictionary="trpca", **OPTIONS).fit(data.X)


class TestClean:
    def test_solved_by_hand(self, data, clean):
        """Those whom a first fit does not call outliers are the dictionary of the second one."""
        first = ORTLRR(3, **OPTIONS).fit(data.X)
        assert 0 < first.outliers_.sum() < len(data.X)
        X, sizes = unit(data.X)
        solution = solve(
            X,
            lam=Lambda.auto(),
            dictionary=X[~first.outliers_],
            transform="dct",
            tol=1e-4,
            n_jobs=1,
        )
        assert clean.lam_ == pytest.approx(solution.lam)
        np.testing.assert_allclose(clean.X_clean_, sizes * solution.L, atol=1e-8 * sizes.max())
        assert clean.certificate_.gap <= 1e-4
        assert not np.allclose(clean.X_clean_, first.X_clean_, atol=1e-3)

    def test_as_if_the_dictionary_had_been_given(self, data, clean):
        kept = ~ORTLRR(3, **OPTIONS).fit(data.X).outliers_
        given = ORTLRR(3, dictionary=data.X[kept], **OPTIONS).fit(data.X)
        np.testing.assert_array_equal(clean.labels_, given.labels_)
        np.testing.assert_allclose(clean.outlier_scores_, given.outlier_scores_, rtol=1e-6)
        new = data.X[:9] * 1.1 + 0.01
        np.testing.assert_array_equal(clean.predict(new), given.predict(new))

    def test_finds_what_was_planted(self, data, clean):
        assert metrics.clustering_accuracy(data.labels, clean.labels_) > 0.95
        assert metrics.outlier_auc(data.labels, clean.outlier_scores_) > 0.99

    def test_old_and_new_samples(self, data, clean):
        check_old_and_new(clean, data)

    @pytest.mark.parametrize("graph", ["auto", Absolute()])
    def test_without_outliers_the_data_itself(self, data, graph):
        options = {"outliers": None, "graph": graph, **OPTIONS}
        est, other = (ORTLRR(3, dictionary=d, **options).fit(data.X) for d in ("clean", "data"))
        np.testing.assert_array_equal(est.X_clean_, other.X_clean_)
        np.testing.assert_array_equal(est.labels_, other.labels_)
        np.testing.assert_array_equal(est.affinity_.toarray(), other.affinity_.toarray())
        assert est.n_iter_ == other.n_iter_

    def test_nothing_stale(self, data, clean):
        """A second fit starts from the data, not from the dictionary of the first."""
        est = copy.deepcopy(clean).fit(planted(random_state=1).X)
        est.fit(data.X)
        np.testing.assert_array_equal(est.labels_, clean.labels_)
        np.testing.assert_array_equal(est.X_clean_, clean.X_clean_)
        est.set_params(dictionary="data").fit(data.X)
        fresh = ORTLRR(3, **OPTIONS).fit(data.X)
        np.testing.assert_array_equal(est.X_clean_, fresh.X_clean_)
        est.set_params(dictionary="clean", outliers=None).fit(data.X)
        np.testing.assert_array_equal(est.X_clean_, fresh.X_clean_)

    def test_missing_entries(self):
        data = planted(missing=0.1)
        est = ORTLRR(3, dictionary="clean", **OPTIONS).fit(data.X)
        assert np.isfinite(est.X_clean_).all()
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.9
        np.testing.assert_array_equal(est.predict(data.X[:20]), est.labels_[:20])

    def test_detector(self, data, clean):
        est = TensorOutlierDetector(dictionary="clean", transform="dct").fit(data.X)
        np.testing.assert_allclose(est.outlier_scores_, clean.outlier_scores_, rtol=1e-6)

    def test_samples_as_vectors(self, data):
        est = LowRankClusterer(3, dictionary="clean", vectorize=True, random_state=0).fit(data.X)
        assert est.X_clean_.shape == data.X.shape
        assert est.solution_.Z.left.shape[1] < len(data.X)


class TestTrpca:
    def test_solved_by_hand(self, data, trpca):
        X, sizes = unit(data.X)
        atoms = solve(
            X, dictionary="identity", noise="l1", transform="dct", lam=Lambda.entries(), tol=1e-3
        ).L
        solution = solve(
            X, lam=Lambda.auto(), dictionary=atoms, transform="dct", tol=1e-4, n_jobs=1
        )
        assert trpca.lam_ == pytest.approx(solution.lam)
        np.testing.assert_allclose(trpca.X_clean_, sizes * solution.L, atol=1e-8 * sizes.max())
        assert trpca.certificate_.gap <= 1e-4

    def test_finds_what_was_planted(self, data, trpca):
        assert metrics.clustering_accuracy(data.labels, trpca.labels_) > 0.9
        assert metrics.outlier_auc(data.labels, trpca.outlier_scores_) > 0.95

    def test_old_and_new_samples(self, data, trpca):
        np.testing.assert_array_equal(trpca.predict(data.X[:20]), trpca.labels_[:20])
        np.testing.assert_allclose(trpca.transform(data.X), trpca.X_clean_, atol=1e-9)
        assert set(trpca.predict(1.1 * data.X[:9] + 0.01)) <= set(range(-1, 3))

    def test_missing_entries(self):
        est = ORTLRR(3, dictionary="trpca", **OPTIONS).fit(planted(missing=0.1).X)
        assert np.isfinite(est.X_clean_).all()


@pytest.mark.parametrize("dictionary", ["clean", "trpca"])
def test_other_libraries(data, clean, trpca, dictionary):
    xp = pytest.importorskip("array_api_strict")
    est = ORTLRR(3, dictionary=dictionary, **OPTIONS).fit(xp.asarray(data.X))
    known = clean if dictionary == "clean" else trpca
    np.testing.assert_array_equal(est.labels_, known.labels_)
    np.testing.assert_allclose(est.X_clean_, known.X_clean_, atol=1e-6)


@pytest.mark.parametrize("dictionary", ["CLEAN", "rpca", ""])
def test_unknown_names(data, dictionary):
    with pytest.raises(ValueError, match=f"dictionary must be .*'clean'.*'trpca'.*{dictionary!r}"):
        ORTLRR(3, dictionary=dictionary, **OPTIONS).fit(data.X)
