"""What samples are represented by: each other, nothing, or given samples."""

import copy

import numpy as np
import pytest

from tubal import ORTLRR, Lambda, LowRankClusterer, TensorOutlierDetector, metrics, solve
from tubal.datasets import make_tensor_subspaces

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
def atoms(data):
    """Some of the samples that are no outliers."""
    return data.X[~data.outliers][::2]


@pytest.fixture(scope="module")
def given(data, atoms):
    return ORTLRR(3, dictionary=atoms, **OPTIONS).fit(data.X)


class TestGiven:
    def test_solved_by_hand(self, data, atoms, given):
        X, sizes = unit(data.X)
        solution = solve(
            X, lam=Lambda.auto(), dictionary=unit(atoms)[0], transform="dct", tol=1e-4, n_jobs=1
        )
        assert given.lam_ == pytest.approx(solution.lam)
        np.testing.assert_allclose(given.X_clean_, sizes * solution.L, atol=1e-8 * sizes.max())
        assert given.certificate_.gap <= 1e-4
        assert not hasattr(given, "selection_")

    def test_finds_what_was_planted(self, data, given):
        assert metrics.clustering_accuracy(data.labels, given.labels_) > 0.95
        assert metrics.outlier_auc(data.labels, given.outlier_scores_) > 0.99

    def test_old_and_new_samples(self, data, given):
        check_old_and_new(given, data)

    def test_nothing_stale(self, data, atoms, given):
        """A second fit starts from the data, not from what the first one left."""
        est = copy.deepcopy(given).fit(planted(random_state=1).X)
        est.fit(data.X)
        np.testing.assert_array_equal(est.labels_, given.labels_)
        np.testing.assert_array_equal(est.X_clean_, given.X_clean_)
        est.set_params(dictionary="data").fit(data.X)
        fresh = ORTLRR(3, **OPTIONS).fit(data.X)
        np.testing.assert_array_equal(est.X_clean_, fresh.X_clean_)
        assert est.selection_ == fresh.selection_
        est.set_params(dictionary=atoms).fit(data.X)
        np.testing.assert_array_equal(est.X_clean_, given.X_clean_)
        assert not hasattr(est, "selection_")

    def test_missing_entries(self, atoms):
        data = planted(missing=0.1)
        est = ORTLRR(3, dictionary=atoms, **OPTIONS).fit(data.X)
        assert np.isfinite(est.X_clean_).all()
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.9
        np.testing.assert_array_equal(est.predict(data.X[:20]), est.labels_[:20])

    def test_detector(self, data, atoms, given):
        est = TensorOutlierDetector(dictionary=atoms, transform="dct").fit(data.X)
        np.testing.assert_allclose(est.outlier_scores_, given.outlier_scores_, rtol=1e-6)

    def test_samples_as_vectors(self, data, atoms):
        est = LowRankClusterer(3, dictionary=atoms, vectorize=True, random_state=0).fit(data.X)
        assert est.X_clean_.shape == data.X.shape
        assert est.solution_.Z.left.shape[1] == len(atoms) < len(data.X)

    def test_other_libraries(self, data, atoms, given):
        xp = pytest.importorskip("array_api_strict")
        est = ORTLRR(3, dictionary=xp.asarray(atoms), **OPTIONS).fit(xp.asarray(data.X))
        np.testing.assert_array_equal(est.labels_, given.labels_)
        np.testing.assert_allclose(est.X_clean_, given.X_clean_, atol=1e-6)

    @pytest.mark.parametrize("vectorize", [True, False])
    def test_another_shape(self, data, atoms, vectorize):
        est = LowRankClusterer(3, dictionary=atoms.swapaxes(1, 2), vectorize=vectorize)
        with pytest.raises(ValueError, match=r"dictionary holds samples of shape \(6, 20\), X of"):
            est.fit(data.X)


class TestIdentity:
    """Robust PCA: the explained part itself has low rank."""

    def test_solved_by_hand(self, data):
        est = LowRankClusterer(3, dictionary="identity", **OPTIONS).fit(data.X)
        X, sizes = unit(data.X)
        solution = solve(
            X, lam=Lambda.auto(), dictionary="identity", transform="dct", tol=1e-4, n_jobs=1
        )
        assert est.lam_ == pytest.approx(solution.lam)
        np.testing.assert_allclose(est.X_clean_, sizes * solution.L, atol=1e-8 * sizes.max())
        assert est.certificate_.gap <= 1e-4

    def test_nothing_is_chosen(self, data):
        """A choice is made where samples represent each other."""
        options = {"dictionary": "identity", "random_state": 0, "n_jobs": 1}
        est, other = (ORTLRR(3, transform=t, **options).fit(data.X) for t in ("auto", "dft"))
        assert not hasattr(est, "selection_")
        np.testing.assert_array_equal(est.X_clean_, other.X_clean_)
        np.testing.assert_array_equal(est.labels_, other.labels_)


@pytest.mark.parametrize("dictionary", ["clean", "trpca", "DATA", "rpca", ""])
def test_unknown_names(data, dictionary):
    with pytest.raises(
        ValueError, match=f"dictionary must be 'data', 'identity' or an array, got {dictionary!r}"
    ):
        ORTLRR(3, dictionary=dictionary, **OPTIONS).fit(data.X)
