"""Samples of a fit that come back."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from tubal import ORTLRR, TensorCompleter
from tubal.datasets import make_tensor_subspaces
from tubal.estimators import known
from tubal.estimators.known import Known
from tubal.input import read


def data(seed=0, shape=(40, 5, 3), missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    return np.where(rng.random(shape) < missing, np.nan, X)


def find(X, Y):
    old = read(X, min_samples=1)
    return Known.of(old).find(read(Y, min_samples=1), old.observed)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_samples_are_found_in_any_order_and_company(missing, monkeypatch):
    X, other = data(missing=missing), data(1, missing=missing)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(find(X, X[order]), order)
    np.testing.assert_array_equal(find(X, other), -1)
    np.testing.assert_array_equal(find(X, np.concatenate([other[:2], X[3:4]])), [-1, -1, 3])
    expected = find(X, X[order])
    monkeypatch.setattr(known, "AT_ONCE", 7)
    np.testing.assert_array_equal(find(X, X[order]), expected)


def test_rounding_does_not_matter_but_differences_do():
    X = data()
    noise = np.random.default_rng(1).normal(size=X.shape)
    np.testing.assert_array_equal(find(X, X.astype("f4")), np.arange(40))
    np.testing.assert_array_equal(find(X.astype("f4"), X), np.arange(40))
    np.testing.assert_array_equal(find(X, X + 1e-9 * noise), np.arange(40))
    np.testing.assert_array_equal(find(X, X + 1e-4 * noise), -1)
    one = X.copy()
    one[:, 2, 1] += 1e-3
    np.testing.assert_array_equal(find(X, one), -1)


def test_near_duplicates_are_told_apart():
    X = data(shape=(1, 5, 3)) + 1e-8 * data(1, shape=(40, 5, 3))
    np.testing.assert_array_equal(find(X, X), np.arange(40))


def test_of_equal_samples_the_first_is_taken():
    X = np.tile([1.0, 2.0], (30, 1))
    np.testing.assert_array_equal(find(X, X), 0)


@pytest.mark.parametrize("factor", [-1, 1 + 1e-4, 2, 1e-9, 1e9, 1e300])
def test_multiples_are_other_samples(factor):
    X = data()
    np.testing.assert_array_equal(find(X, factor * X), -1)


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e100, 1e307])
def test_samples_of_any_size(size):
    X = data() * size
    np.testing.assert_array_equal(find(X, X[::-1]), np.arange(40)[::-1])
    np.testing.assert_array_equal(find(X, data() + 0.0), -1)


def test_samples_of_all_sizes_at_once():
    X = data() * 10.0 ** np.arange(-60, 60, 3)[:, None, None]
    np.testing.assert_array_equal(find(X, X), np.arange(40))
    np.testing.assert_array_equal(find(X, 2 * X), -1)


def test_samples_without_content():
    X = data()
    X[7] = 0
    np.testing.assert_array_equal(find(X, X), np.arange(40))
    np.testing.assert_array_equal(find(data(), np.zeros((1, 5, 3))), -1)


def test_what_is_missing_is_not_zero():
    X = data()
    X[:, 0, 0] = 0
    holes = X.copy()
    holes[:, 0, 0] = np.nan
    np.testing.assert_array_equal(find(X, holes), -1)
    np.testing.assert_array_equal(find(holes, X), -1)
    both = np.concatenate([X, holes])
    np.testing.assert_array_equal(find(both, both), np.arange(80))


# ---- in estimators ------------------------------------------------------------------------------


def keeps(est, X, old):
    """Whether samples of the fit get what the fit gave them."""
    return (
        np.array_equal(est.predict(X), est.labels_[old])
        and np.array_equal(-est.score_samples(X), est.outlier_scores_[old])
        and np.array_equal(est.transform(X), est.X_clean_[old])
        and np.array_equal(est.margins(X), est.margins()[old], equal_nan=True)
    )


def test_a_multiple_of_a_sample_is_a_new_one():
    """Two groups of numbers, which differ by their size only."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(3, 0.1, (30, 1)), rng.normal(10, 0.1, (30, 1))])
    est = ORTLRR(2, outliers=None, random_state=0).fit(X)
    np.testing.assert_array_equal(est.predict(X), est.labels_)
    low, high = est.labels_[[0, -1]]
    assert low != high
    np.testing.assert_array_equal(
        est.predict([[3.0], [3.05], [10.0], [10.1]]), [low, low, high, high]
    )


def test_sizes_of_new_samples_matter_to_the_score():
    X = make_tensor_subspaces(8, 4, 2, 1, 15, outliers=0, random_state=0).X
    est = ORTLRR(2, random_state=0).fit(X)
    assert (est.predict(1000 * X) == -1).all()


class Moody(BaseEstimator):
    """Fills samples with one number when it is fitted, and with another one later."""

    def fit_transform(self, X, y=None):
        return np.where(np.isnan(X), 0.1, X) + 1

    def transform(self, X):
        return np.where(np.isnan(X), 0.2, X) + 1


@pytest.mark.parametrize("completion", ["tnn", Moody()])
def test_completed_samples_keep_what_the_fit_gave_them(completion):
    X = make_tensor_subspaces(8, 4, 2, 1, 15, missing=0.4, random_state=0).X
    est = ORTLRR(2, completion=completion, random_state=0).fit(X)
    order = np.random.default_rng(0).permutation(30)
    assert keeps(est, X[order], order)
    assert keeps(pickle.loads(pickle.dumps(est)), X[order], order)


def test_steps_before_may_round_in_another_way():
    X = make_tensor_subspaces(8, 4, 2, 1, 15, random_state=0).X.reshape(30, -1)
    model = make_pipeline(PCA(10, random_state=0), ORTLRR(2, random_state=0)).fit(X)
    np.testing.assert_array_equal(-model.score_samples(X), model[-1].outlier_scores_)
    np.testing.assert_array_equal(model.predict(X), model[-1].labels_)


@pytest.mark.parametrize("table", [False, True])
def test_completion_fills_samples_of_the_fit_as_it_did(table):
    X = make_tensor_subspaces(8, 4, 2, 1, 15, missing=0.3, random_state=0).X
    X = X.reshape(30, -1) if table else X
    est = TensorCompleter()
    filled = est.fit_transform(X)
    np.testing.assert_array_equal(est.transform(X[::-1]), filled[::-1])
    other = np.where(np.isnan(X[:3]), np.nan, 1.001 * X[:3])
    mixed = est.transform(np.concatenate([other, X[4:5]]))
    np.testing.assert_array_equal(mixed[3], filled[4])
    np.testing.assert_array_equal(mixed[:3], est.transform(other))
    assert est.transform(X.astype("f4")).dtype == np.float32
