"""Samples that are covered by noise are damaged, and no outliers."""

from types import SimpleNamespace

import numpy as np
import pytest

from tubal import ORTLRR, SSC, TensorOutlierDetector
from tubal.datasets import make_tensor_subspaces
from tubal.metrics import clustering_accuracy
from tubal.outliers import Consensus, consensus

SIZE = dict(n1=20, n3=8, n_subspaces=3, rank=2, samples_per_subspace=40)
SEEDS = pytest.mark.parametrize("planted", [0, 3, 6], indirect=True)


def with_noise(X, rng, energy=0.3):
    """Return samples with white noise of this part of their energy."""
    noise = rng.standard_normal(X.shape)
    sizes = [np.linalg.norm(A, axis=(1, 2), keepdims=True) for A in (X, noise)]
    return X + energy**0.5 * noise * sizes[0] / sizes[1]


def plant(seed):
    """Subspaces in which a fifth of the samples is covered by noise, and a few are junk."""
    data = make_tensor_subspaces(**SIZE, outliers=0.04, random_state=seed)
    rng = np.random.default_rng(seed)
    count = len(data.X) // 5
    hurt = rng.choice(np.flatnonzero(~data.outliers), count, replace=False)
    X = data.X.copy()
    X[hurt] = with_noise(X[hurt], rng)
    noisy = np.zeros(len(X), bool)
    noisy[hurt] = True
    return SimpleNamespace(X=X, labels=data.labels, junk=data.outliers, hurt=noisy, seed=seed)


def fitted(data):
    return ORTLRR(3, random_state=0).fit(data.X)


@pytest.fixture(scope="module")
def planted(request):
    data = plant(getattr(request, "param", 0))
    assert data.junk.sum() >= 3
    assert data.hurt.sum() == 24
    data.est = fitted(data)
    return data


# ---- damaged samples and junk -------------------------------------------------------------------


@SEEDS
def test_damaged_samples_keep_their_labels(planted):
    est, hurt = planted.est, planted.hurt
    assert est.outliers_[hurt].mean() < 0.05
    kept = ~planted.junk & ~est.outliers_
    assert clustering_accuracy(planted.labels[kept], est.labels_[kept]) > 0.98
    assert est.outliers_[~hurt & ~planted.junk].mean() < 0.02


@SEEDS
def test_damaged_samples_are_listed(planted):
    damaged = planted.est.damaged_
    assert damaged.dtype == bool
    assert damaged[planted.hurt].mean() > 0.95
    assert not damaged[~planted.hurt].any()


@SEEDS
def test_junk_is_flagged_and_not_damaged(planted):
    assert planted.est.outliers_[planted.junk].all()
    assert not planted.est.damaged_[planted.junk].any()


@SEEDS
def test_without_the_rule_damaged_samples_are_flagged(planted, monkeypatch):
    """No residual is taken for noise then."""
    monkeypatch.setattr(consensus, "MOST_NOISE", 0.0)
    est = fitted(planted)
    assert est.outliers_[planted.hurt].all()
    assert est.outliers_[planted.junk].all()
    assert not est.damaged_.any()


def test_undamaged_data():
    data = make_tensor_subspaces(**SIZE, outliers=0.1, random_state=0)
    est = ORTLRR(3, random_state=0).fit(data.X)
    assert not est.damaged_.any()
    np.testing.assert_array_equal(est.outliers_, data.outliers)


@pytest.mark.parametrize("energy", [10, 30])
def test_more_noise_than_signal_is_no_damage(energy):
    data = make_tensor_subspaces(**SIZE, outliers=0, random_state=0)
    some = np.arange(len(data.X)) % 10 == 0
    X = data.X.copy()
    X[some] = with_noise(X[some], np.random.default_rng(0), energy)
    est = ORTLRR(3, random_state=0).fit(X)
    assert est.outliers_[some].all()
    assert est.outliers_[~some].mean() < 0.02
    assert not est.damaged_[some].any()


def test_the_detector_tells_damage_too(planted):
    est = TensorOutlierDetector().fit(planted.X)
    np.testing.assert_array_equal(est.outliers_, planted.junk)
    np.testing.assert_array_equal(est.damaged_, planted.hurt)


def test_damage_with_missing_entries(planted):
    X = planted.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    est = ORTLRR(3, random_state=0).fit(X)
    assert est.damaged_[planted.hurt].mean() > 0.9
    assert not est.damaged_[~planted.hurt].any()
    assert est.outliers_[planted.junk].all()
    assert est.outliers_[planted.hurt].mean() < 0.1


def test_damage_is_independent_of_the_threshold(planted):
    est = fitted(planted)
    before = est.damaged_.copy()
    est.relabel(threshold=np.inf)
    np.testing.assert_array_equal(est.damaged_, before)
    assert not est.outliers_.any()


@pytest.mark.parametrize("outliers", ["published", None])
def test_other_detectors_do_not_look_for_damage(planted, outliers):
    est = ORTLRR(3, outliers=outliers, random_state=0).fit(planted.X)
    assert est.damaged_.shape == (len(planted.X),)
    assert est.damaged_.dtype == bool
    assert not est.damaged_.any()


def test_methods_without_the_parameter(planted):
    """They find outliers with the same detector, at the usual share of false alarms."""
    est = SSC(3, outliers="auto", random_state=0).fit(planted.X)
    assert est.damaged_.shape == (len(planted.X),)
    with_detector = SSC(3, outliers=Consensus(), random_state=0).fit(planted.X)
    np.testing.assert_array_equal(with_detector.outlier_scores_, est.outlier_scores_)


# ---- new samples --------------------------------------------------------------------------------


@SEEDS
def test_new_damaged_samples_get_labels(planted):
    """Those of the clusters that their clean versions belong to."""
    rng = np.random.default_rng(100 + planted.seed)
    clean = ~planted.hurt & ~planted.junk
    new = with_noise(planted.X[clean], rng)
    labels = planted.est.predict(new)
    assert (labels == planted.est.labels_[clean]).mean() > 0.9
    assert (planted.est.predict(rng.standard_normal(new.shape)) == -1).all()


@SEEDS
def test_samples_of_the_fit_have_their_scores(planted):
    est = planted.est
    np.testing.assert_array_equal(est.score_samples(planted.X), -est.outlier_scores_)
    np.testing.assert_array_equal(est.predict(planted.X), est.labels_)
    outliers = est.decision_function(planted.X) < 0
    np.testing.assert_array_equal(outliers, est.outliers_)


def test_the_scorer_agrees_with_the_fit(planted):
    """Also when it looks at samples of the fit as at any others."""
    est = planted.est
    new, _ = est._code(planted.X)
    scores = est._detection.scorer(new)
    assert np.median(np.abs(scores - est.outlier_scores_)) < 0.05
    np.testing.assert_array_equal((scores > est.threshold_)[planted.junk], True)
    assert (scores > est.threshold_)[planted.hurt].mean() < 0.1


# ---- residuals ----------------------------------------------------------------------------------


def test_residuals(planted):
    est = planted.est
    left = planted.X - est.X_clean_
    np.testing.assert_allclose(est.residuals_, left, rtol=0, atol=1e-12 * np.abs(planted.X).max())
    share = np.linalg.norm(left, axis=(1, 2)) / np.linalg.norm(planted.X, axis=(1, 2))
    clean = ~planted.hurt & ~planted.junk
    assert share[planted.hurt].min() > 2 * np.median(share[clean])


@pytest.mark.parametrize("make", [ORTLRR, TensorOutlierDetector])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("completion", [None, "tnn"])
def test_residuals_are_missing_where_entries_are(make, normalize, completion):
    data = make_tensor_subspaces(10, 4, 2, 2, 12, outliers=0.1, noise=0.1, random_state=0)
    X = data.X.copy()
    missing = np.random.default_rng(0).random(X.shape) < 0.2
    X[missing] = np.nan
    est = make(normalize=normalize, completion=completion, random_state=0).fit(X)
    np.testing.assert_array_equal(np.isnan(est.residuals_), missing)
    expected = (X - est.X_clean_)[~missing]
    np.testing.assert_allclose(est.residuals_[~missing], expected, rtol=0, atol=1e-12)


def test_residuals_of_a_table():
    X = np.random.default_rng(0).standard_normal((30, 4))
    X[3, 1] = np.nan
    est = ORTLRR(2, random_state=0).fit(X)
    assert est.residuals_.shape == X.shape
    np.testing.assert_allclose(est.residuals_, X - est.X_clean_, rtol=0, atol=1e-12)


def test_residuals_need_a_fit():
    with pytest.raises(Exception, match="not fitted"):
        _ = ORTLRR(2).residuals_


# ---- the share of false alarms ------------------------------------------------------------------


@pytest.mark.parametrize("make", [ORTLRR, TensorOutlierDetector])
@pytest.mark.parametrize(
    "bad",
    [
        *(0, 0.5, -0.1, 1, True, np.nan, np.inf),
        *("a", None),
    ],
)
def test_false_alarms_are_checked(make, bad):
    with pytest.raises(ValueError, match=r"false_alarms must be a number between 0 and 0\.5, got"):
        make(false_alarms=bad).fit(np.random.default_rng(0).standard_normal((9, 4, 3)))


@pytest.mark.parametrize("share", [1e-4, 0.01])
def test_false_alarms_reach_the_detector(planted, share):
    est = TensorOutlierDetector(false_alarms=share).fit(planted.X)
    other = TensorOutlierDetector(outliers=Consensus(share)).fit(planted.X)
    assert est.threshold_ == other.threshold_
    np.testing.assert_array_equal(est.outlier_scores_, other.outlier_scores_)


def test_fewer_false_alarms_flag_no_more():
    data = make_tensor_subspaces(15, 5, 3, 2, 40, outliers=0.1, noise=0.2, random_state=0)
    counts = [
        TensorOutlierDetector(false_alarms=share).fit(data.X).outliers_.sum()
        for share in (1e-6, 1e-3, 0.01)
    ]
    assert counts == sorted(counts)
    assert TensorOutlierDetector().get_params()["false_alarms"] == 0.01


# ---- odd data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ORTLRR, TensorOutlierDetector])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_samples(make, shape, n):
    X = np.random.default_rng(n).standard_normal((n, *shape))
    est = make(random_state=0).fit(X)
    assert np.isfinite(est.outlier_scores_).all()
    assert 2 * est.outliers_.sum() <= n
    assert not (est.damaged_ & est.outliers_).any()
    np.testing.assert_array_equal(est.score_samples(X), -est.outlier_scores_)
    assert np.isfinite(est.score_samples(X + 1)).all()


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("value", [0.0, 2.0, 1 / 3])
@pytest.mark.parametrize("n", [2, 20])
def test_constant_data(shape, dtype, value, n):
    X = np.full((n, *shape), value, dtype)
    est = ORTLRR(1, random_state=0).fit(X)
    assert not est.outliers_.any()
    assert not est.damaged_.any()
    assert np.isfinite(est.outlier_scores_).all()


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_duplicates(shape):
    """Many of the same are no reason to flag one of them."""
    rng = np.random.default_rng(0)
    few = rng.standard_normal((3, *shape))
    X = few[np.arange(30) % 3]
    est = ORTLRR(3, random_state=0).fit(X)
    assert not est.outliers_.any()
    twice = np.concatenate([rng.standard_normal((15, *shape))] * 2)
    est = ORTLRR(2, random_state=0).fit(twice)
    np.testing.assert_allclose(est.outlier_scores_[:15], est.outlier_scores_[15:], atol=1e-2)


def test_single_precision(planted):
    est = fitted(SimpleNamespace(X=planted.X.astype("f4")))
    np.testing.assert_array_equal(est.outliers_, planted.est.outliers_)
    np.testing.assert_array_equal(est.damaged_, planted.est.damaged_)
    assert est.X_clean_.dtype == est.residuals_.dtype == np.float32
