"""No warnings from inside, no large matrix nobody asked for, and one answer for equal samples."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import tubal
from tubal.datasets import make_tensor_subspaces
from tubal.estimators.alike import first_of_each, least, most_frequent
from tubal.input import read
from tubal.transforms import DataDriven, matrices, resolve, same_transform

RNG = np.random.default_rng(0)
TENSOR = make_tensor_subspaces(8, 5, 3, 2, 8, outliers=0.1, random_state=0).X
DATA = {
    "tensor": TENSOR,
    "table": np.vstack([RNG.normal(size=(15, 4)), 3 + RNG.normal(size=(15, 4))]),
    "rank one": np.outer(RNG.normal(size=20), RNG.normal(size=6)),
    "16 bits as RGB": np.repeat(RNG.integers(0, 65536, (20, 6, 5, 1)) / 65535, 3, -1),
    "equal": np.repeat(RNG.normal(size=(1, 4, 3)), 12, 0),
    "tiny": RNG.normal(size=(3, 2)),
    "zeros": np.where(RNG.random((20, 1, 1)) < 0.3, 0, RNG.normal(size=(20, 4, 3))),
}
MAKERS = {
    "ORTLRR": lambda: tubal.ORTLRR(2, random_state=0),
    "detector": tubal.TensorOutlierDetector,
    "TLRR": lambda: tubal.make("TLRR-DFT", 2),
    "TRPCA": lambda: tubal.make("TRPCA-DCT", 2),
    "SSC": lambda: tubal.SSC(2),
    "LSR": lambda: tubal.make("LSR", 2),
}


@pytest.mark.parametrize(
    "scale", [1.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1e-150, 1e-30, 1e30, 1e150))]
)
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_warning_from_inside_at_any_scale(make, name, scale):
    """Warnings are errors in tests. What no solver could square is refused."""
    X = DATA[name] * scale
    est = MAKERS[make]().set_params(normalize=False)
    new = np.concatenate([0 * X[:1], 1.5 * X[:2], -X[1:2], X[:1] + scale])
    try:
        found = est.fit(X).score_samples(new)
    except ValueError as error:
        if make == "LSR" and "increase it" in str(error):  # a ridge that rounding would lose
            return
        assert "scale X" in str(error)
        assert abs(np.log10(scale)) > 40
        return
    assert np.isfinite(est.outlier_scores_).all()
    assert np.isfinite(found).all()
    est.predict(new)
    assert np.isfinite(est.transform(new)).all()


# ---- long tubes ----------------------------------------------------------------------------------


def peak_of(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("holes", [False, True])
def test_long_tubes_take_no_square_matrix(holes):
    X = np.random.default_rng(0).normal(size=(12, 3, 6000))
    if holes:
        X[0, 0, :3000] = np.nan
    square = 8 * X.shape[-1] ** 2
    taken = peak_of(lambda: tubal.solve(X, transform="data", lam=tubal.Lambda.relative(0.5)))
    assert taken < square / 4


@pytest.fixture
def reflected(monkeypatch):
    """The same data-driven transform as a matrix and as reflections."""
    X = np.random.default_rng(0).normal(size=(10, 3, 80))
    matrix = DataDriven().bind(80, X)
    monkeypatch.setattr(matrices, "LARGE", 10)
    return X, matrix, DataDriven().bind(80, X)


def test_reflections_are_the_transform(reflected):
    X, matrix, bound = reflected
    L = bound.matrix
    np.testing.assert_allclose(L @ L.T, np.eye(80), atol=1e-13)
    np.testing.assert_allclose(L[:30], matrix.matrix[:30], atol=1e-12)
    for axis in (-1, 0):
        A = np.random.default_rng(1).normal(size=(80, 2, 80))
        np.testing.assert_allclose(bound.forward(A, axis), matrices.along(L, A, axis), atol=1e-12)
        np.testing.assert_allclose(bound.inverse(bound.forward(A, axis), axis), A, atol=1e-12)
        assert bound.forward(A.astype("f4"), axis).dtype == np.float32
    np.testing.assert_allclose(bound.forward(X)[..., 30:], 0, atol=1e-12)


def test_reflections_are_compared_and_kept(reflected, tmp_path):
    X, matrix, bound = reflected
    assert same_transform(bound, DataDriven().bind(80, X))
    assert not same_transform(bound, DataDriven().bind(80, X + 1))
    assert not same_transform(bound, matrix)
    est = tubal.LowRankClusterer(2, transform="data", lam=tubal.Lambda.relative(0.5)).fit(X)
    tubal.save_model(est, tmp_path / "m.npz")
    new = X[:3] + 0.1
    again = tubal.load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.transform(new), est.transform(new))


def test_solutions_do_not_depend_on_how_the_transform_is_kept(reflected):
    X, matrix, bound = reflected
    lam = tubal.Lambda.relative(0.5)
    one, two = (tubal.solve(X, transform=L, lam=lam, tol=1e-8) for L in (matrix, bound))
    assert two.lam == pytest.approx(one.lam, rel=1e-9)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(two.L, one.L, atol=1e-3 * np.abs(X).max())


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_reflections_of_few_different_tubes(rank, monkeypatch):
    monkeypatch.setattr(matrices, "LARGE", 10)
    rng = np.random.default_rng(0)
    X = np.einsum("ir,rk->ik", rng.normal(size=(20, rank)), rng.normal(size=(rank, 64)))
    L = resolve("data", 64, data=X.reshape(10, 2, 64)).matrix
    np.testing.assert_allclose(L @ L.T, np.eye(64), atol=1e-12)
    np.testing.assert_allclose(X @ L[rank:].T, 0, atol=1e-12)


# ---- identical samples ---------------------------------------------------------------------------


FEW = {
    "table": np.random.default_rng(0).normal(size=(10, 5)),
    "tensor": TENSOR[::2],
    "grid": np.array(list(np.ndindex(4, 4)), float),
    "counts": np.random.default_rng(0).integers(0, 3, (30, 2)).astype(float),
    "blobs": np.vstack([RNG.normal(size=(10, 2)), 6 + RNG.normal(size=(10, 2))]),
}


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize(
    "make",
    [lambda: tubal.ORTLRR(2, random_state=0), tubal.TensorOutlierDetector, lambda: tubal.SSC(2)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_identical_samples_get_one_answer(make, name, times):
    n = len(FEW[name])
    index = np.random.default_rng(1).permutation(np.tile(np.arange(n), times))
    X = FEW[name][index]
    est = make().fit(X)
    labels = getattr(est, "labels_", est.outliers_)
    _, alike = np.unique(X.reshape(len(X), -1), axis=0, return_inverse=True)
    for group in range(alike.max() + 1):
        same = np.flatnonzero(alike == group)
        assert len(set(est.outlier_scores_[same])) == 1
        assert len(set(labels[same])) == 1
    if hasattr(est, "labels_"):
        np.testing.assert_array_equal(est.predict(X), est.labels_)


def test_samples_are_identical_with_their_holes():
    X = [[1.0, np.nan], [1.0, 0.0], [1.0, -0.0], [1.0, np.nan], [2.0, 0.0]]
    np.testing.assert_array_equal(first_of_each(read(X)), [0, 1, 1, 0, 4])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=20))
@settings(max_examples=200)
def test_one_label_for_each_and_no_cluster_lost(pairs):
    values, labels = map(np.array, zip(*pairs, strict=True))
    first = first_of_each(read(np.append(values, [7, 7])[:, None]))[: len(values)]
    found = most_frequent(labels, first)
    assert set(found) == set(labels)
    if len(set(values)) >= len(set(labels)):
        assert all(len(set(found[values == value])) == 1 for value in set(values))
    scores = least(np.arange(len(values), 0.0, -1), first)
    assert all(len(set(scores[values == value])) == 1 for value in set(values))


def test_identical_samples_may_be_fewer_than_clusters():
    X = np.repeat(np.eye(2), 4, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est = tubal.ORTLRR(3, contamination=0.0, random_state=0).fit(X)
    assert set(est.labels_) == {0, 1, 2}
