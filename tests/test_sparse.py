"""Samples from other samples: each method against its definition, by other solvers."""

import sys
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso

import tubal.sparse  # noqa: F401  (fills sys.modules)
from tubal.sparse import (
    RidgeRepresentation,
    SparseRepresentation,
    active,
    ensc,
    lsr,
    ssc,
    ssc_omp,
)

# In the package the names of these modules stand for their functions.
program_module = sys.modules["tubal.sparse.program"]
omp_module = sys.modules["tubal.sparse.omp"]
lsr_module = sys.modules["tubal.sparse.lsr"]


def subspaces(n_each=12, n_features=20, dimension=3, count=3, noise=0.0, offset=0.0, seed=0):
    """Samples of some random subspaces, one after the other, and the label of each sample."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n_each, dimension)) @ rng.standard_normal((dimension, n_features))
        + offset * rng.standard_normal(n_features)
        for _ in range(count)
    ]
    X = np.concatenate(parts) + noise * rng.standard_normal((count * n_each, n_features))
    return X, np.repeat(np.arange(count), n_each)


def objective(X, j, c, e, lam, outlier_lam):
    fit = lam / 2 * np.sum((X[j] - c @ X - e) ** 2)
    return np.abs(c).sum() + fit + (outlier_lam * np.abs(e).sum() if outlier_lam else 0)


def by_cvxpy(X, j, lam, outlier_lam, affine):
    """Return the optimal value for sample j and a minimiser, by a general-purpose solver."""
    c, e = cp.Variable(len(X)), cp.Variable(X.shape[1])
    constraints = [c[j] == 0] + ([cp.sum(c) == 1] if affine else [])
    value = cp.norm1(c) + lam / 2 * cp.sum_squares(X[j] - X.T @ c - e)
    if outlier_lam is None:
        constraints.append(e == 0)
    else:
        value += outlier_lam * cp.norm1(e)
    problem = cp.Problem(cp.Minimize(value), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the oracle itself
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value, c.value


def outside(C, labels):
    """Return the largest coefficient on a sample of another subspace."""
    C = C.tocoo()
    return np.abs(C.data[labels[C.row] != labels[C.col]]).max(initial=0.0)


def mu_z(X):
    G = np.abs(X @ X.T)
    np.fill_diagonal(G, 0)
    return G.max(axis=1).min()


def mu_e(X):
    norms = np.abs(X).sum(axis=1)
    return min(np.delete(norms, i).max() for i in range(len(X)))


# --- SSC --------------------------------------------------------------------------------------


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("outlier_alpha", [None, 3.0, 20.0])
@pytest.mark.parametrize("alpha", [5.0, 50.0])
def test_ssc_reaches_the_optimum_of_a_conic_solver(alpha, outlier_alpha, affine):
    X, _ = subspaces(n_each=5, n_features=7, noise=0.3, seed=1)
    X[2, 3] += 4  # an outlying entry
    s = ssc(X, alpha=alpha, outlier_alpha=outlier_alpha, affine=affine)
    C, E = s.coefficients.toarray(), s.E if outlier_alpha else np.zeros_like(s.E)
    assert s.gap <= 1e-6
    assert not C.diagonal().any()
    for j in range(0, len(X), 2):
        value, c = by_cvxpy(X, j, s.lam, s.outlier_lam, affine)
        assert objective(X, j, C[j], E[j], s.lam, s.outlier_lam) == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(C[j], c, atol=2e-4)
    if affine:
        np.testing.assert_allclose(C.sum(axis=1), 1, rtol=1e-12)


def test_ssc_without_outlier_term_is_the_lasso():
    X, _ = subspaces(noise=0.1)
    s = ssc(X, alpha=30.0)
    for j in range(0, len(X), 5):
        others = np.delete(np.arange(len(X)), j)
        lasso = Lasso(
            alpha=1 / (s.lam * X.shape[1]), fit_intercept=False, tol=1e-12, max_iter=10**6
        ).fit(X[others].T, X[j])
        c = s.coefficients[[j]].toarray()[0]
        np.testing.assert_allclose(c[others], lasso.coef_, atol=1e-6)
    np.testing.assert_allclose(s.E, X - s.coefficients @ X)


def test_ssc_weights_follow_the_rules_of_the_paper():
    X, _ = subspaces(noise=0.1)
    s = ssc(X, alpha=7.0, outlier_alpha=9.0)
    assert s.lam == pytest.approx(7 / mu_z(X))
    assert s.outlier_lam == pytest.approx(9 / mu_e(X))
    # Below 1 some sample is not represented at all, above 1 every one is (Proposition 1).
    assert np.diff(ssc(X, alpha=0.95).coefficients.indptr).min() == 0
    assert np.diff(ssc(X, alpha=1.05).coefficients.indptr).min() > 0


@pytest.mark.parametrize("outlier_alpha", [None, 20.0])
@pytest.mark.parametrize("normalize", [False, True])
def test_ssc_represents_samples_by_their_own_subspace(outlier_alpha, normalize):
    X, labels = subspaces(n_features=30)
    X *= np.random.default_rng(3).uniform(0.5, 2, len(X))[:, None]
    s = ssc(X, alpha=1e4, outlier_alpha=outlier_alpha, normalize=normalize)
    assert outside(s.coefficients, labels) < 1e-4  # vanishes as alpha grows
    np.testing.assert_allclose(s.coefficients @ X, X, atol=1e-2)


def test_ssc_outlier_term_finds_outlying_entries():
    X, _ = subspaces(n_each=30, n_features=40, dimension=2)
    clean = X.copy()
    where = np.random.default_rng(5).random(X.shape) < 0.01
    X[where] += 10
    s = ssc(X, alpha=800, outlier_alpha=5)
    assert np.median(np.abs(s.E[where] - 10)) < 0.1
    assert np.abs(s.E[~where]).mean() < 0.2
    residual = X - s.coefficients @ X - s.E
    assert np.abs(residual).max() <= s.outlier_lam / s.lam * (1 + 1e-9)
    assert np.linalg.norm(X - s.E - clean) < 0.3 * np.linalg.norm(X - clean)


def test_ssc_finds_affine_subspaces():
    X, labels = subspaces(n_features=30, dimension=2, offset=4.0)
    assert outside(ssc(X, alpha=1e5, affine=True).coefficients, labels) < 1e-4


def test_ssc_normalize_undoes_the_scaling():
    X, _ = subspaces(noise=0.1)
    scale = np.random.default_rng(4).uniform(0.1, 10, len(X))
    plain = ssc(X / np.linalg.norm(X, axis=1, keepdims=True))
    scaled = ssc(X * scale[:, None], normalize=True)
    norms = np.linalg.norm(X, axis=1) * scale
    expected = plain.coefficients.toarray() * norms[:, None] / norms
    np.testing.assert_allclose(scaled.coefficients.toarray(), expected, atol=1e-10)
    np.testing.assert_allclose(scaled.E, plain.E * norms[:, None], atol=1e-10)
    assert scaled.lam == pytest.approx(plain.lam)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_ssc_does_not_depend_on_the_unit(factor):
    X, _ = subspaces(noise=0.1)
    for outlier_alpha in (None, 5.0):
        s = ssc(X, outlier_alpha=outlier_alpha)
        t = ssc(factor * X, outlier_alpha=outlier_alpha)
        np.testing.assert_allclose(t.coefficients.toarray(), s.coefficients.toarray(), atol=1e-8)
        np.testing.assert_allclose(t.E, factor * s.E, atol=1e-6 * factor)


@pytest.mark.parametrize("outlier_alpha", [None, 20.0])
@pytest.mark.parametrize("affine", [False, True])
def test_ssc_takes_duplicates_zeros_and_dependent_samples(outlier_alpha, affine):
    X, _ = subspaces(n_each=10, n_features=4)  # more samples than features
    X = np.concatenate([X, X[:5], -X[:3], np.zeros((2, 4)), 2 * X[:2]])
    s = ssc(X, alpha=200, outlier_alpha=outlier_alpha, affine=affine)
    assert s.gap <= 1e-6
    if not affine:
        assert s.coefficients[[38, 39]].nnz == 0
        assert not s.E[38:40].any()


def test_ssc_takes_samples_without_any_inner_product():
    s = ssc(np.eye(4), outlier_alpha=20.0)
    assert s.coefficients.nnz == 0
    assert s.gap <= 1e-12
    s = ssc(np.zeros((3, 2)))
    assert s.coefficients.nnz == 0
    assert s.gap == 0


@pytest.mark.parametrize("options", [{}, {"outlier_alpha": 20.0}, {"affine": True}])
def test_ssc_is_the_same_for_any_number_of_threads(options, monkeypatch):
    monkeypatch.setattr(program_module, "TILE", 10)
    X, _ = subspaces(noise=0.1)
    one, two = (ssc(X, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert (one.coefficients != two.coefficients).nnz == 0
    np.testing.assert_array_equal(one.E, two.E)
    assert one.gap == two.gap


@pytest.mark.parametrize("options", [{}, {"outlier_alpha": 20.0}, {"affine": True}])
def test_ssc_does_not_need_the_gram_matrix(options, monkeypatch):
    X, _ = subspaces(noise=0.1)
    kept = ssc(X, **options)
    monkeypatch.setattr(program_module, "GRAM_LIMIT", 10)
    without = ssc(X, **options)
    np.testing.assert_allclose(
        without.coefficients.toarray(), kept.coefficients.toarray(), atol=1e-9
    )


def test_ssc_warns_when_the_limit_is_reached_and_the_gap_is_honest():
    X, _ = subspaces(noise=0.3)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        s = ssc(X, alpha=100, max_iter=2)
    assert s.n_iter <= 2
    best = ssc(X, alpha=100)
    C, D = s.coefficients.toarray(), best.coefficients.toarray()
    for j in range(len(X)):
        value = objective(X, j, C[j], 0, s.lam, None)
        optimum = objective(X, j, D[j], 0, s.lam, None)
        assert (value - optimum) / value <= s.gap + 1e-12
    assert s.gap > 1e-3


@pytest.mark.parametrize("clip", [np.inf, 0.3])
def test_the_certificate_holds_for_any_coefficients(clip):
    rng = np.random.default_rng(8)
    X, _ = subspaces(n_each=6, noise=0.3)
    outlier_lam = None if np.isinf(clip) else 4.0 * clip
    program = program_module.Program(
        X, None, np.full(len(X), 4.0), outlier_lam, False, X, np.arange(len(X))
    )
    assert program.clip == pytest.approx(clip)
    best = by_cvxpy(X, 0, 4.0, outlier_lam, False)[0]
    for size in (0, 0.1, 1):
        c = size * rng.standard_normal(len(X)) * (np.arange(len(X)) > 0)
        C = scipy.sparse.csr_array(c[None])
        H, nu = program_module._conditions(program, np.array([0]), C, exact=True)
        gap = program.gaps(np.array([0]), C, H, nu)[0]
        e = program.outlying(X[:1] - C @ X)[0] if outlier_lam else 0
        value = objective(X, 0, c, e, 4.0, outlier_lam)
        assert (value - best) / value <= gap + 1e-8


def test_clipped_fit_with_a_high_clip_equals_squares():
    X, _ = subspaces(noise=0.2)
    Y, x = X[1:9], X[0]
    squares = active.Squares(5 * Y @ Y.T, 5 * Y @ x, np.zeros(8))
    clipped = active.Clipped(Y, x, np.zeros(8), 5.0, 1e6)
    a, _ = active.minimise(squares, np.zeros(8), False, 1e-10, 100)
    b, _ = active.minimise(clipped, np.zeros(8), False, 1e-10, 100)
    np.testing.assert_allclose(a, b, atol=1e-10)


# --- SSC-OMP ----------------------------------------------------------------------------------


def naive_omp(X, j, n_nonzero, tol):
    """Orthogonal matching pursuit of one sample, with least squares from the start every time."""
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    support, residual = [], units[j]
    while len(support) < n_nonzero and residual @ residual >= tol:
        correlations = np.abs(units @ residual)
        correlations[[j, *support]] = -1
        support.append(int(correlations.argmax()))
        fit = np.linalg.lstsq(units[support].T, units[j], rcond=None)[0]
        residual = units[j] - fit @ units[support]
    c = np.zeros(len(X))
    c[support] = np.linalg.lstsq(X[support].T, X[j], rcond=None)[0]
    return c


@pytest.mark.parametrize("n_nonzero", [1, 4, 10])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_omp_equals_a_plain_loop(n_nonzero, noise):
    X, _ = subspaces(noise=noise, n_each=20)
    s = ssc_omp(X, n_nonzero=n_nonzero)
    C = s.coefficients.toarray()
    for j in range(len(X)):
        c = naive_omp(X, j, n_nonzero, 1e-6)
        np.testing.assert_array_equal(np.flatnonzero(C[j]), np.flatnonzero(c))
        np.testing.assert_allclose(C[j], c, atol=1e-8)
    np.testing.assert_allclose(s.E, X - C @ X, atol=1e-12)
    assert s.gap is None
    assert s.n_iter <= n_nonzero


def test_omp_stops_early_inside_the_right_subspace():
    X, labels = subspaces(n_features=30)
    s = ssc_omp(X)
    C = s.coefficients.tocoo()
    assert s.n_iter == 3  # the dimension of the subspaces
    assert (labels[C.row] == labels[C.col]).all()
    np.testing.assert_allclose(s.E, 0, atol=1e-2)


def test_omp_with_more_nonzeros_than_samples_or_features():
    X, _ = subspaces(n_each=3, n_features=40, noise=0.2)
    s = ssc_omp(X, n_nonzero=100)
    assert (np.diff(s.coefficients.indptr) == len(X) - 1).all()
    np.testing.assert_allclose(s.E @ X.T * (1 - np.eye(len(X))), 0, atol=1e-9)
    wide, _ = subspaces(n_each=10, n_features=4)
    s = ssc_omp(wide, n_nonzero=100, tol=0)
    assert np.diff(s.coefficients.indptr).max() <= 4
    np.testing.assert_allclose(s.E, 0, atol=1e-9)


def test_omp_takes_duplicates_and_zeros():
    X, _ = subspaces(noise=0.2)
    X = np.concatenate([X, X[:4], np.zeros((2, X.shape[1]))])
    s = ssc_omp(X, n_nonzero=5)
    C = s.coefficients
    np.testing.assert_allclose(C[:4].toarray()[np.arange(4), 36 + np.arange(4)], 1)
    assert (np.diff(C.indptr)[:4] == 1).all()
    assert C[[40, 41]].nnz == 0
    assert C[:, [40, 41]].nnz == 0
    assert not s.E[40:].any()
    np.testing.assert_allclose(s.E[:4], 0, atol=1e-12)


def test_omp_takes_many_copies_of_one_sample():
    X = np.repeat(np.random.default_rng(0).standard_normal((2, 5)), 40, axis=0)
    C = ssc_omp(X, tol=0).coefficients
    assert (np.diff(C.indptr) == 1).all()  # a second copy adds nothing
    np.testing.assert_allclose(C.data, 1)
    assert C[[0]].indices[0] == 1
    assert C[[1]].indices[0] == 0


def test_omp_stops_when_nothing_new_is_left():
    X = np.outer([1.0, 2.0, -3.0], [1, 1, 0]) + np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1.0]])
    s = ssc_omp(X, n_nonzero=3, tol=0)
    np.testing.assert_allclose((s.coefficients @ X)[:2], X[:2], atol=1e-12)
    assert np.isfinite(s.coefficients.data).all()
    assert ssc_omp(np.eye(4)).coefficients.nnz <= 4 * 3
    assert ssc_omp(np.zeros((3, 2))).coefficients.nnz == 0


def test_omp_is_the_same_for_any_number_of_threads(monkeypatch):
    X, _ = subspaces(noise=0.2)
    whole = ssc_omp(X)
    monkeypatch.setattr(omp_module, "TILE_NUMBERS", 2000)
    one, two = (ssc_omp(X, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert (one.coefficients != two.coefficients).nnz == 0
    np.testing.assert_allclose(one.coefficients.toarray(), whole.coefficients.toarray(), atol=1e-10)


def test_omp_single_precision_search_selects_like_double_precision(monkeypatch):
    X, _ = subspaces(n_each=40, n_features=60, noise=1e-4)
    fast = ssc_omp(X, tol=1e-12)
    monkeypatch.setattr(omp_module, "CLOSE", 0)
    exact = ssc_omp(X, tol=1e-12)
    np.testing.assert_array_equal(fast.coefficients.indices, exact.coefficients.indices)


# --- EnSC -------------------------------------------------------------------------------------


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def largest_product(X, j):
    return np.abs(np.delete(X, j, axis=0) @ X[j]).max()


def net_objective(X, x, c, gamma, l1_ratio):
    penalty = l1_ratio * np.abs(c).sum() + (1 - l1_ratio) / 2 * c @ c
    return penalty + gamma / 2 * np.sum((x - c @ X) ** 2)


def net_by_cvxpy(X, j, gamma, l1_ratio):
    """Return a minimiser for sample j by a general-purpose solver."""
    c = cp.Variable(len(X))
    value = l1_ratio * cp.norm1(c) + (1 - l1_ratio) / 2 * cp.sum_squares(c)
    value += gamma / 2 * cp.sum_squares(X[j] - X.T @ c)
    problem = cp.Problem(cp.Minimize(value), [c[j] == 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the oracle itself
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value, c.value


@pytest.mark.parametrize("alpha", [3.0, 50.0])
@pytest.mark.parametrize("l1_ratio", [0.3, 0.95, 1.0])
def test_ensc_reaches_the_optimum_of_a_conic_solver(alpha, l1_ratio):
    X = unit(subspaces(n_each=5, n_features=7, noise=0.3, seed=1)[0])
    s = ensc(X, alpha=alpha, l1_ratio=l1_ratio)
    C = s.coefficients.toarray()
    assert s.gap <= 1e-6
    assert not C.diagonal().any()
    for j in range(0, len(X), 2):
        gamma = alpha * l1_ratio / largest_product(X, j)
        assert s.lam[j] * l1_ratio == pytest.approx(gamma)
        value, c = net_by_cvxpy(X, j, gamma, l1_ratio)
        assert net_objective(X, X[j], C[j], gamma, l1_ratio) == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(C[j], c, atol=2e-4)


@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 0.95])
def test_ensc_is_the_elastic_net_of_scikit_learn(l1_ratio):
    X = subspaces(noise=0.1)[0]
    s = ensc(X, alpha=30.0, l1_ratio=l1_ratio, normalize=False, tol=1e-10)
    for j in range(0, len(X), 5):
        # There: residual / (2 d) + alpha (l1_ratio ||c||_1 + (1 - l1_ratio) / 2 ||c||^2).
        others = np.delete(np.arange(len(X)), j)
        net = ElasticNet(
            alpha=1 / (s.lam[j] * l1_ratio * X.shape[1]),
            l1_ratio=l1_ratio,
            fit_intercept=False,
            tol=1e-12,
            max_iter=10**6,
        ).fit(X[others].T, X[j])
        np.testing.assert_allclose(s.coefficients[[j]].toarray()[0, others], net.coef_, atol=1e-6)
    np.testing.assert_allclose(s.E, X - s.coefficients @ X)


@pytest.mark.parametrize("l1_ratio", [0.2, 0.9])
def test_ensc_conditions_hold_for_every_sample(l1_ratio):
    X = unit(subspaces(noise=0.2)[0])
    s = ensc(X, l1_ratio=l1_ratio, tol=1e-10)
    C = s.coefficients.toarray()
    gamma = s.lam * l1_ratio
    pull = gamma[:, None] * (s.E @ X.T)  # of the squared residual
    used = C != 0
    expected = l1_ratio * np.sign(C) + (1 - l1_ratio) * C
    np.testing.assert_allclose(pull[used], expected[used], atol=1e-6)
    free = ~used & ~np.eye(len(X), dtype=bool)
    assert np.abs(pull[free]).max() <= l1_ratio + 1e-6
    # The oracle region of the paper holds the samples in use.
    assert np.abs(pull[used]).min() >= l1_ratio - 1e-6


def test_ensc_without_ridge_is_the_lasso():
    X = unit(subspaces(noise=0.1)[0])
    limit, near = (ensc(X, l1_ratio=ratio, tol=1e-9) for ratio in (1.0, 1 - 1e-7))
    np.testing.assert_allclose(near.coefficients.toarray(), limit.coefficients.toarray(), atol=1e-4)
    # SSC has one weight for all: that of the sample with the smallest largest product.
    products = [largest_product(X, j) for j in range(len(X))]
    j = int(np.argmin(products))
    lasso = ssc(X, alpha=50.0, tol=1e-9)
    assert limit.lam[j] == pytest.approx(lasso.lam)
    np.testing.assert_allclose(
        limit.coefficients[[j]].toarray(), lasso.coefficients[[j]].toarray(), atol=1e-8
    )


def test_ensc_with_little_of_the_first_term_is_ridge_regression():
    X = unit(subspaces(noise=0.3, n_each=6)[0])
    ratio = 1e-8
    alpha = 1e9  # gamma of the order of one
    s = ensc(X, alpha=alpha, l1_ratio=ratio, tol=1e-12)
    gamma = s.lam * ratio
    for j in range(len(X)):
        others = np.delete(np.arange(len(X)), j)
        A = X[others]
        c = np.linalg.solve(A @ A.T + (1 - ratio) / gamma[j] * np.eye(len(A)), A @ X[j])
        np.testing.assert_allclose(s.coefficients[[j]].toarray()[0, others], c, atol=1e-5)


def test_ensc_weight_is_a_multiple_of_the_smallest_that_matters():
    X = subspaces(noise=0.1)[0]
    assert ensc(X, alpha=0.99).coefficients.nnz == 0
    assert np.diff(ensc(X, alpha=1.01).coefficients.indptr).min() > 0


def test_ensc_spreads_coefficients_over_the_own_subspace():
    X, labels = subspaces(n_features=30)
    sparse, spread = (ensc(X, l1_ratio=ratio).coefficients for ratio in (1.0, 0.6))
    assert spread.nnz > 1.5 * sparse.nnz
    assert outside(ensc(X, alpha=1e4).coefficients, labels) < 1e-3


def test_ensc_normalize_undoes_the_scaling():
    X, _ = subspaces(noise=0.1)
    norms = np.linalg.norm(X, axis=1)
    plain, scaled = ensc(unit(X), normalize=False), ensc(X)
    expected = plain.coefficients.toarray() * norms[:, None] / norms
    np.testing.assert_allclose(scaled.coefficients.toarray(), expected, atol=1e-10)
    np.testing.assert_allclose(scaled.E, plain.E * norms[:, None], atol=1e-10)
    np.testing.assert_allclose(scaled.lam, plain.lam)


def test_ensc_takes_duplicates_zeros_and_dependent_samples():
    X, _ = subspaces(n_each=10, n_features=4)  # more samples than features
    X = np.concatenate([X, X[:5], -X[:3], np.zeros((2, 4)), 2 * X[:2]])
    s = ensc(X, alpha=200)
    assert s.gap <= 1e-6
    assert s.coefficients[[38, 39]].nnz == 0
    C = s.coefficients.toarray()
    norms = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(C[5, 0] * norms[0], C[5, 30] * norms[30], atol=1e-6)  # equal shares
    assert ensc(np.eye(4)).coefficients.nnz == 0
    assert ensc(np.zeros((3, 2))).gap == 0


def test_ensc_is_the_same_for_any_number_of_threads_and_without_gram(monkeypatch):
    monkeypatch.setattr(program_module, "TILE", 10)
    X, _ = subspaces(noise=0.1)
    one, two = (ensc(X, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert (one.coefficients != two.coefficients).nnz == 0
    monkeypatch.setattr(program_module, "GRAM_LIMIT", 10)
    without = ensc(X)
    np.testing.assert_allclose(
        without.coefficients.toarray(), one.coefficients.toarray(), atol=1e-9
    )


def test_ensc_warns_when_the_limit_is_reached_and_the_gap_is_honest():
    X = unit(subspaces(noise=0.3)[0])
    with pytest.warns(ConvergenceWarning, match="above tol"):
        s = ensc(X, alpha=500, l1_ratio=0.7, max_iter=1)
    best = ensc(X, alpha=500, l1_ratio=0.7)
    C, D = s.coefficients.toarray(), best.coefficients.toarray()
    for j in range(len(X)):
        gamma = s.lam[j] * 0.7
        value, optimum = (net_objective(X, X[j], A[j], gamma, 0.7) for A in (C, D))
        assert (value - optimum) / value <= s.gap + 1e-12
    assert s.gap > 1e-3


@pytest.mark.parametrize("ridge", [0.05, 2.0])
def test_the_certificate_of_the_elastic_net_holds_for_any_coefficients(ridge):
    rng = np.random.default_rng(8)
    X, _ = subspaces(n_each=6, noise=0.3)
    n, ratio = len(X), 1 / (1 + ridge)
    program = program_module.Program(
        X, None, np.full(n, 4.0), None, False, X, np.arange(n), ridge=ridge
    )
    best = net_by_cvxpy(X, 0, 4.0 * ratio, ratio)[0]
    for size in (0, 0.1, 1):
        c = size * rng.standard_normal(n) * (np.arange(n) > 0)
        C = scipy.sparse.csr_array(c[None])
        H, nu = program_module._conditions(program, np.array([0]), C, exact=True)
        gap = program.gaps(np.array([0]), C, H, nu)[0]
        value = net_objective(X, X[0], c, 4.0 * ratio, ratio)
        assert (value - best) / value <= gap + 1e-8


# --- LSR --------------------------------------------------------------------------------------


def ridge_of(X, x, weight, without=None):
    """Ridge regression of one sample on the others, by the normal equations."""
    kept = np.delete(np.arange(len(X)), [] if without is None else without)
    A = X[kept]
    c = np.zeros(len(X))
    c[kept] = np.linalg.solve(A @ A.T + weight * np.eye(len(A)), A @ x)
    return c


SHAPES = [(12, 40), (12, 36), (12, 7)]  # fewer samples than features, as many, and more


@pytest.mark.parametrize(("n_each", "n_features"), SHAPES)
@pytest.mark.parametrize("weight", [1e-3, 0.1, 10.0])
def test_lsr_is_a_ridge_regression_of_each_sample_on_the_others(n_each, n_features, weight):
    X = unit(subspaces(n_each, n_features, noise=0.1)[0])
    s = lsr(X, weight=weight)
    expected = np.stack([ridge_of(X, X[j], weight, j) for j in range(len(X))])
    np.testing.assert_allclose(s.coefficients, expected, atol=1e-10)
    np.testing.assert_allclose(s.E, X - expected @ X, atol=1e-10)
    assert not s.coefficients.diagonal().any()
    assert s.shape == (len(X), len(X))
    # The closed form of the paper.
    P = np.linalg.inv(X @ X.T + weight * np.eye(len(X)))
    closed = -P / P.diagonal()[:, None]
    np.fill_diagonal(closed, 0)
    np.testing.assert_allclose(s.coefficients, closed, atol=1e-9)


@pytest.mark.parametrize(("n_each", "n_features"), SHAPES)
def test_lsr_with_the_sample_itself(n_each, n_features):
    X = unit(subspaces(n_each, n_features, noise=0.1)[0])
    s = lsr(X, weight=0.02, exclude_self=False)
    G = X @ X.T
    Z = np.linalg.solve(G + 0.02 * np.eye(len(X)), G)
    np.testing.assert_allclose(s.E, X - Z @ X, atol=1e-10)
    own = Z.diagonal().copy()
    np.fill_diagonal(Z, 0)
    np.testing.assert_allclose(s.coefficients, Z, atol=1e-10)
    # Both versions agree up to a factor for each sample.
    other = lsr(X, weight=0.02).coefficients * (1 - own)[:, None]
    np.testing.assert_allclose(s.coefficients, other, atol=1e-10)


@pytest.mark.parametrize(("n_each", "n_features"), SHAPES)
def test_lsr_of_other_samples(n_each, n_features):
    X = unit(subspaces(n_each, n_features, noise=0.1)[0])
    rng = np.random.default_rng(0)
    Y, twins = rng.standard_normal((5, n_features)), np.array([-1, 3, -1, 0, 7])
    s = lsr(X, queries=Y, twins=twins, weight=0.05, normalize=False)
    for j, twin in enumerate(twins):
        c = ridge_of(X, Y[j], 0.05, None if twin < 0 else twin)
        np.testing.assert_allclose(s.coefficients[j], c, atol=1e-9)
        np.testing.assert_allclose(s.E[j], Y[j] - c @ X, atol=1e-9)
    with_itself = lsr(X, queries=Y, weight=0.05, normalize=False, exclude_self=False)
    np.testing.assert_allclose(with_itself.coefficients[1], ridge_of(X, Y[1], 0.05), atol=1e-9)
    again = lsr(X, queries=X, twins=np.arange(len(X)))
    np.testing.assert_allclose(again.coefficients, lsr(X).coefficients, atol=1e-8)


@pytest.mark.parametrize(("n_each", "n_features"), SHAPES)
def test_lsr_normalize_undoes_the_scaling(n_each, n_features):
    X = subspaces(n_each, n_features, noise=0.1)[0]
    norms = np.linalg.norm(X, axis=1)
    plain, scaled = lsr(unit(X), normalize=False), lsr(X)
    expected = plain.coefficients * norms[:, None] / norms
    np.testing.assert_allclose(scaled.coefficients, expected, atol=1e-9)
    np.testing.assert_allclose(scaled.E, plain.E * norms[:, None], atol=1e-9)
    np.testing.assert_allclose(scaled.E, X - scaled.coefficients @ X, atol=1e-9)


def test_lsr_never_forms_the_whole_table_when_features_are_few():
    X = subspaces(n_features=7)[0]
    s = lsr(X)
    assert s.left.shape == s.right.shape == X.shape
    np.testing.assert_allclose(s.tile(slice(3, 9)), s.coefficients[3:9], atol=1e-12)
    np.testing.assert_allclose(s.tile(np.array([5, 0])), s.coefficients[[5, 0]], atol=1e-12)
    s.tile(slice(None))[:] = 7  # a copy, in both cases
    wide = lsr(subspaces(n_features=50)[0])
    wide.tile(slice(None))[:] = 7
    assert np.abs(wide.coefficients).max() < 7


@pytest.mark.parametrize("n_features", [60, 12])
def test_lsr_represents_samples_by_their_own_subspace(n_features):
    X, labels = subspaces(n_features=n_features)
    C = np.abs(lsr(X, weight=1e-8, normalize=True).coefficients)
    assert C[labels[:, None] != labels].max() < 1e-4 * C.max()


def test_lsr_takes_duplicates_zeros_and_lonely_samples():
    for n_features in (4, 60):
        X = subspaces(n_each=10, n_features=n_features)[0]
        X = np.concatenate([X, X[:5], np.zeros((2, n_features))])
        s = lsr(X)
        assert np.isfinite(s.coefficients).all()
        assert not s.coefficients[35:].any()
        assert not s.coefficients[:, 35:].any()
    X = np.eye(5)[[0, 0, 0, 1]]  # the last one is orthogonal to all others
    np.testing.assert_allclose(lsr(X).coefficients[3], 0, atol=1e-12)


def test_lsr_is_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(lsr_module, "TILE", 10)
    for n_features in (60, 12):
        X = subspaces(n_features=n_features, noise=0.1)[0]
        one, two = (lsr(X, n_jobs=n_jobs) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.coefficients, two.coefficients)
        np.testing.assert_array_equal(one.E, two.E)


@pytest.mark.parametrize("n_features", [60, 12])
def test_lsr_refuses_a_weight_that_rounding_loses(n_features):
    X = subspaces(n_features=n_features)[0]
    with pytest.raises(ValueError, match="weight=1e-18 is too small for these samples"):
        lsr(X, weight=1e-18)


# --- all --------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [ssc, ssc_omp, ensc, lsr])
def test_results_are_double_precision_and_leave_the_data_alone(function):
    X = subspaces(noise=0.1)[0].astype(np.float32)
    before = X.copy()
    s = function(X)
    if function is lsr:
        assert isinstance(s, RidgeRepresentation)
    else:
        assert isinstance(s, SparseRepresentation)
        assert isinstance(s.coefficients, scipy.sparse.csr_array)
        assert s.coefficients.has_sorted_indices
    assert s.coefficients.dtype == s.E.dtype == np.float64
    assert s.E.shape == X.shape
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("function", [ssc, ssc_omp, ensc, lsr])
@pytest.mark.parametrize("factor", [1e-200, 1e150])
def test_extreme_units(function, factor):
    X, _ = subspaces(noise=0.1)
    options = {"normalize": True} if function is ssc else {}
    s, t = (function(A, **options).coefficients for A in (X, factor * X))
    s, t = (s, t) if function is lsr else (s.toarray(), t.toarray())
    np.testing.assert_allclose(t, s, atol=1e-8)


@pytest.mark.parametrize("function", [ssc, ssc_omp, ensc, lsr])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((3, 2, 2)), "X must have 2 axes"),
        (np.full((3, 2), np.nan), "X holds 6 missing"),
        (np.ones((1, 2)), "at least 2"),
    ],
)
def test_wrong_data_is_refused(function, X, message):
    with pytest.raises(ValueError, match=message):
        function(X)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (ssc, {"alpha": 0}, "alpha must be a finite number above 0, got 0"),
        (ssc, {"alpha": "20"}, "alpha must be"),
        (ssc, {"alpha": np.inf}, "alpha must be"),
        (ssc, {"alpha": None}, "alpha must be"),
        (ssc, {"outlier_alpha": -1.0}, "outlier_alpha must be"),
        (ssc, {"tol": 0}, "tol must be a finite number above 0"),
        (ssc, {"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        (ssc, {"max_iter": 1.5}, "max_iter must be"),
        (ssc, {"affine": 1}, "affine must be True or False, got 1"),
        (ssc, {"normalize": "l2"}, "normalize must be True or False"),
        (ssc, {"affine": True, "normalize": True}, "affine=True and normalize=True"),
        (ssc, {"n_jobs": 0}, "n_jobs must be"),
        (ssc_omp, {"n_nonzero": 0}, "n_nonzero must be a positive integer, got 0"),
        (ssc_omp, {"n_nonzero": True}, "n_nonzero must be"),
        (ssc_omp, {"tol": -1e-6}, "tol must be a finite number of at least 0"),
        (ssc_omp, {"n_jobs": -2}, "n_jobs must be"),
        (ensc, {"alpha": 0}, "alpha must be a finite number above 0, got 0"),
        (ensc, {"l1_ratio": 0}, "l1_ratio must be a finite number above 0, got 0"),
        (ensc, {"l1_ratio": 1.1}, "l1_ratio must be above 0 and at most 1, got 1.1"),
        (ensc, {"tol": None}, "tol must be a finite number above 0"),
        (ensc, {"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        (ensc, {"normalize": "l2"}, "normalize must be True or False"),
        (ensc, {"n_jobs": 0}, "n_jobs must be"),
        (lsr, {"weight": 0}, "weight must be a finite number above 0, got 0"),
        (lsr, {"weight": np.nan}, "weight must be"),
        (lsr, {"exclude_self": 1}, "exclude_self must be True or False, got 1"),
        (lsr, {"normalize": None}, "normalize must be True or False"),
        (lsr, {"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_arguments_are_refused(function, options, message):
    with pytest.raises(ValueError, match=message):
        function(np.ones((4, 3)), **options)


class TestQueries:
    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(3)
        bases = rng.normal(size=(3, 2, 12))
        X = np.concatenate([rng.normal(size=(15, 2)) @ basis for basis in bases])
        return X, X[::4] + 0.01 * rng.normal(size=X[::4].shape)

    @pytest.mark.parametrize("options", [{}, {"outlier_alpha": 5.0}, {"affine": True}])
    def test_samples_as_their_own_queries(self, data, options):
        X, _ = data
        whole = ssc(X, **options)
        again = ssc(X, queries=X, twins=np.arange(len(X)), **options)
        if not options.get("affine"):  # there the minimiser is not unique
            difference = (whole.coefficients - again.coefficients).toarray()
            np.testing.assert_allclose(difference, 0, atol=1e-5)
            np.testing.assert_allclose(again.E, whole.E, atol=1e-5)
        assert again.gap <= 1e-6
        assert again.coefficients.diagonal().max() == 0
        assert (whole.lam, whole.outlier_lam) == (again.lam, again.outlier_lam)

    @pytest.mark.parametrize("normalize", [False, True])
    def test_a_query_is_a_lasso(self, data, normalize):
        X, Y = data
        found = ssc(X, queries=Y, normalize=normalize, tol=1e-10)
        norms = np.linalg.norm(X, axis=1) if normalize else np.ones(len(X))
        sizes = np.linalg.norm(Y, axis=1) if normalize else np.ones(len(Y))
        weight = 1 / (found.lam * X.shape[1])
        lasso = Lasso(alpha=weight, fit_intercept=False, tol=1e-12, max_iter=10**6)
        for j in range(len(Y)):
            expected = lasso.fit((X / norms[:, None]).T, Y[j] / sizes[j]).coef_
            expected = expected * sizes[j] / norms
            np.testing.assert_allclose(found.coefficients[[j]].toarray()[0], expected, atol=1e-5)
        np.testing.assert_allclose(found.E, Y - found.coefficients @ X, atol=1e-12)

    def test_pursuit(self, data):
        X, Y = data
        whole = ssc_omp(X, n_nonzero=3).coefficients
        again = ssc_omp(X, queries=X, twins=np.arange(len(X)), n_nonzero=3).coefficients
        np.testing.assert_allclose(again.toarray(), whole.toarray(), atol=1e-10)
        itself = ssc_omp(X, queries=X, n_nonzero=3).coefficients
        np.testing.assert_allclose(itself.toarray(), np.eye(len(X)), atol=1e-10)
        found = ssc_omp(X, queries=Y, n_nonzero=1)
        units = X / np.linalg.norm(X, axis=1)[:, None]
        np.testing.assert_array_equal(
            found.coefficients.indices, np.abs(Y @ units.T).argmax(axis=1)
        )
        np.testing.assert_allclose(found.E, Y - found.coefficients @ X, atol=1e-12)

    def test_elastic_net(self, data):
        X, Y = data
        whole = ensc(X)
        again = ensc(X, queries=X, twins=np.arange(len(X)))
        np.testing.assert_allclose(
            again.coefficients.toarray(), whole.coefficients.toarray(), atol=1e-5
        )
        np.testing.assert_allclose(again.lam, whole.lam)
        found = ensc(X, queries=Y, l1_ratio=0.5, tol=1e-10)
        units, targets = unit(X), unit(Y)
        np.testing.assert_allclose(found.lam, 50 / np.abs(targets @ units.T).max(axis=1))
        for j in range(len(Y)):
            net = ElasticNet(
                alpha=1 / (found.lam[j] * 0.5 * X.shape[1]),
                l1_ratio=0.5,
                fit_intercept=False,
                tol=1e-12,
                max_iter=10**6,
            ).fit(units.T, targets[j])
            expected = net.coef_ * np.linalg.norm(Y[j]) / np.linalg.norm(X, axis=1)
            np.testing.assert_allclose(found.coefficients[[j]].toarray()[0], expected, atol=1e-5)
        np.testing.assert_allclose(found.E, Y - found.coefficients @ X, atol=1e-12)

    @pytest.mark.parametrize("method", [ssc, ssc_omp, ensc, lsr])
    def test_bad_queries_are_named(self, data, method):
        X, Y = data
        with pytest.raises(ValueError, match="queries has 11 features, X has 12"):
            method(X, queries=Y[:, 1:])
        with pytest.raises(ValueError, match="twins was given without queries"):
            method(X, twins=np.arange(len(X)))
        for twins in (np.arange(3), np.full(len(Y), len(X)), np.zeros(len(Y))):
            with pytest.raises(ValueError, match="twins must hold"):
                method(X, queries=Y, twins=twins)
