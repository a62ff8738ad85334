"""The oracles of ``naive`` and ``oracles``, checked against each other and by independent means."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.fft

import naive
import oracles

TRANSFORMS = {
    "dft": naive.dft_matrix,
    "dct": naive.dct_matrix,
    "random": lambda n: naive.random_orthogonal(n, seed=0),
}


@pytest.fixture(params=TRANSFORMS)
def transform(request):
    return TRANSFORMS[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def instance(L, noise, missing, dictionary="data", shape=(3, 5)):
    """Two-dimensional samples, the last one an outlier: ``(X, D, noise, L, lam, observed)``."""
    rng, n3 = np.random.default_rng(1), len(L)
    X = naive.tprod(
        rng.standard_normal((shape[0], 2, n3)), rng.standard_normal((2, shape[1], n3)), L
    )
    X[:, -1] += 2 * rng.standard_normal((shape[0], n3))
    observed = rng.random(X.shape) > 0.2 if missing else None
    D = "identity" if dictionary == "identity" else X if observed is None else observed * X
    size = naive.spectral_norm(X, L) if dictionary == "data" else np.sqrt(naive.scale(L))
    lam = {"l21": 1.5 / size, "l1": 2 / size / np.sqrt(shape[0] * n3), "exact": None}[noise]
    X = X if observed is None else np.where(observed, X, np.nan)
    return X, D, noise, L, lam, observed


# ---- naive: algebra -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_transform_matrices(n, rng):
    A = rng.standard_normal((2, 3, n))
    np.testing.assert_allclose(naive.mode3(A, naive.dft_matrix(n)), np.fft.fft(A), atol=1e-12)
    np.testing.assert_allclose(
        naive.mode3(A, naive.dct_matrix(n)), scipy.fft.dct(A, norm="ortho"), atol=1e-12
    )
    scales = [naive.scale(make(n)) for make in TRANSFORMS.values()]
    np.testing.assert_allclose(scales, [n, 1, 1])
    with pytest.raises(AssertionError):
        naive.scale(np.ones((2, 2)))


@pytest.mark.parametrize("n3", [1, 4, 5])
def test_product_is_circular_convolution(n3, rng):
    A, B = rng.standard_normal((2, 3, n3)), rng.standard_normal((3, 4, n3))
    C = naive.tprod(A, B, naive.dft_matrix(n3))
    assert np.isrealobj(C)
    np.testing.assert_allclose(C, naive.tprod_circulant(A, B), atol=1e-12)


@pytest.mark.parametrize("n3", [1, 4, 5])
def test_algebra(transform, n3, rng):
    L = transform(n3)
    A, B = rng.standard_normal((2, 3, n3)), rng.standard_normal((3, 4, n3))
    AH = naive.transpose(A, L)
    np.testing.assert_allclose(naive.tprod(naive.identity(2, n3, L), A, L), A, atol=1e-12)
    np.testing.assert_allclose(
        naive.transpose(naive.tprod(A, B, L), L),
        naive.tprod(naive.transpose(B, L), AH, L),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        naive.bdiag(naive.tprod(A, B, L), L), naive.bdiag(A, L) @ naive.bdiag(B, L), atol=1e-12
    )
    np.testing.assert_allclose(
        naive.tprod(naive.tprod(A, naive.pinv(A, L), L), A, L), A, atol=1e-12
    )
    C = rng.standard_normal((2, 4, n3))
    assert naive.inner(naive.tprod(A, B, L), C) == pytest.approx(
        naive.inner(B, naive.tprod(AH, C, L))
    )
    M = naive.bdiag(A, L)
    assert naive.norm_fro(A) ** 2 == pytest.approx(np.linalg.norm(M) ** 2 / naive.scale(L))


@pytest.mark.parametrize("n3", [1, 4, 5])
def test_tsvd(transform, n3, rng):
    L = transform(n3)
    X = naive.tprod(rng.standard_normal((4, 2, n3)), rng.standard_normal((2, 6, n3)), L)
    U, S, V = naive.tsvd_skinny(X, L)
    assert all(map(np.isrealobj, (U, S, V)))
    assert (U.shape[1], V.shape[1]) == (2, 2)
    USV = naive.tprod(naive.tprod(U, S, L), naive.transpose(V, L), L)
    np.testing.assert_allclose(USV, X, atol=1e-12)
    for Q in (U, V):
        QHQ = naive.tprod(naive.transpose(Q, L), Q, L)
        np.testing.assert_allclose(QHQ, naive.identity(2, n3, L), atol=1e-12)
    assert naive.nuclear_norm(X, L) == pytest.approx(naive.inner(S, naive.identity(2, n3, L)))
    # The nuclear and the spectral norm are dual: U V^H attains <X, W> = ||X||_* with ||W|| = 1.
    W = naive.tprod(U, naive.transpose(V, L), L)
    assert naive.spectral_norm(W, L) == pytest.approx(1)
    assert naive.inner(X, W) == pytest.approx(naive.nuclear_norm(X, L))


def test_proximal_operators_satisfy_moreau(transform, rng):
    L, t = transform(4), 1.5
    B = rng.standard_normal((3, 5, 4))
    cases = [
        (
            naive.svt(B, t, L),
            lambda A: naive.nuclear_norm(A, L),
            lambda A: naive.spectral_norm(A, L),
        ),
        (naive.shrink_samples(B, t), naive.norm_l21, lambda A: naive.column_norms(A).max()),
        (naive.shrink_entries(B, t), naive.norm_l1, naive.norm_inf),
    ]
    for P, norm, dual_norm in cases:
        assert norm(P) > 0
        assert dual_norm(B - P) <= t * (1 + 1e-12)
        assert naive.inner(B - P, P) == pytest.approx(t * norm(P))


# ---- naive: the paper's algorithms --------------------------------------------------------------


@pytest.fixture(params=[pytest.param("dft_even", marks=pytest.mark.slow), "dct"])
def released(request, golden):
    """Inputs and outputs of the authors' code, and the matrix ``L`` of its transform."""
    case = golden(request.param)
    L = case.get("transform_matrix", naive.dft_matrix(case["X"].shape[2]))
    return case, L


def test_algorithm1_equals_the_released_code(released):
    case, L = released
    assert naive.tubal_rank(case["X"], L) == case["rank"]
    result = naive.ortlrr_algorithm1(case["X"], L, case["lam"])
    for name in ("Z", "E"):
        np.testing.assert_allclose(result[name], case[name], rtol=0, atol=1e-10)


def test_algorithm2_equals_the_released_code(released):
    case, L = released
    observed = ~np.isnan(case["X_missing"])
    result = naive.ortlrr_algorithm2(case["X_missing"], observed, L, case["lam_missing"])
    for name in ("Z", "E", "H"):
        np.testing.assert_allclose(result[name], case[f"{name}_missing"], rtol=0, atol=1e-10)
    assert naive.norm_inf(result["E"][~observed]) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
def test_algorithms_with_fixed_penalty_reach_the_optimum(transform, missing):
    X, D, noise, L, lam, observed = instance(transform(3), "l21", missing)
    schedule = {"beta0": 1 / naive.scale(L) ** 0.5, "growth": 1.0, "max_iter": 3000, "tol": 1e-9}
    if missing:
        Z = naive.ortlrr_algorithm2(X, observed, L, lam, **schedule)["Z"]
    else:
        Z = naive.ortlrr_algorithm1(X, L, lam, **schedule)["Z"]
    optimum, _ = oracles.optimal_value(X, D, noise, L, lam, observed)
    reached = oracles.objective(X, D, Z, noise, L, lam, observed)
    assert reached == pytest.approx(optimum, rel=1e-6)


# ---- oracles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n3", [1, 2, 3, 4])
def test_real_formulation(transform, n3, rng):
    L = transform(n3)
    A, B = rng.standard_normal((2, 3, n3)), rng.standard_normal((3, 4, n3))
    C = oracles._product_matrix(A, 2, L)
    np.testing.assert_allclose(
        oracles._fold(C @ oracles._unfold(B), n3), naive.tprod(A, B, L), atol=1e-12
    )
    Y = rng.standard_normal((2, 4, n3))
    np.testing.assert_allclose(
        oracles._fold(C.T @ oracles._unfold(Y), n3),
        naive.tprod(naive.transpose(A, L), Y, L),
        atol=1e-12,
    )
    unfolded = cp.Constant(oracles._unfold(B))
    nuclear = oracles._nuclear_norm(unfolded, L).value
    assert nuclear == pytest.approx(naive.nuclear_norm(B, L), rel=1e-12)
    spectral = max(cp.sigma_max(M).value for M, _ in oracles._slices(unfolded, L))
    assert spectral == pytest.approx(naive.spectral_norm(B, L), rel=1e-12)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("noise", ["l21", "l1", "exact"])
@pytest.mark.parametrize("dictionary", ["data", "identity"])
def test_strong_duality(transform, dictionary, noise, missing):
    problem = instance(transform(3), noise, missing, dictionary, shape=(3, 4))
    X, D, noise, L, lam, observed = problem
    value, Z = oracles.optimal_value(*problem)
    _, Y = oracles.optimal_dual(*problem)
    primal = oracles.objective(X, D, Z, noise, L, lam, observed)
    dual, violation = oracles.dual_value_and_violation(X, D, Y, noise, L, lam, observed)
    assert value == pytest.approx(primal, rel=1e-9)
    assert violation < 1e-6
    assert dual / (1 + violation) == pytest.approx(primal, rel=1e-7)
    if noise == "exact":
        assert naive.norm_inf(oracles.residual(X, D, Z, L, observed)) < 1e-7
    else:
        assert 0 < naive.nuclear_norm(Z, L) < value


def test_violations_are_seen(transform):
    X, D, noise, L, lam, observed = instance(transform(3), "l1", missing=True)
    Y = np.where(observed, 0.5 * lam, 0.0) / naive.spectral_norm(naive.transpose(D, L), L) / 10

    def violation(Y, lam):
        return oracles.dual_value_and_violation(X, D, Y, noise, L, lam, observed)[1]

    assert violation(Y, lam) == 0
    assert violation(Y, Y.max() / 3) == pytest.approx(2)
    assert violation(np.where(observed, Y, 0.25), lam=1e9) >= 0.25
    size = naive.spectral_norm(naive.tprod(naive.transpose(D, L), Y, L), L)
    assert violation(4 / size * Y, lam=1e9) == pytest.approx(3)


def test_extreme_lambdas_have_closed_forms(transform):
    """Above lam_max ``Z = V V^H``, E = 0; below lam_min ``Z = 0``, E = X."""
    X, D, noise, L, _, _ = instance(transform(3), "l21", missing=False)
    _, S, V = naive.tsvd_skinny(X, L)
    VH = naive.transpose(V, L)
    lam_max = naive.column_norms(naive.tprod(naive.pinv(S, L), VH, L)).max()
    value, Z = oracles.optimal_value(X, D, noise, L, 1.01 * lam_max)
    VVH = naive.tprod(V, VH, L)
    np.testing.assert_allclose(Z, VVH, atol=1e-5)
    assert value == pytest.approx(naive.nuclear_norm(VVH, L), rel=1e-7)
    unit = X / naive.column_norms(X)[:, None]
    lam_min = 1 / naive.spectral_norm(naive.tprod(naive.transpose(X, L), unit, L), L)
    value, Z = oracles.optimal_value(X, D, noise, L, 0.99 * lam_min)
    np.testing.assert_allclose(Z, 0, atol=1e-5)
    assert value == pytest.approx(0.99 * lam_min * naive.norm_l21(X), rel=1e-7)


def test_exact_fit_without_solution_is_refused():
    X, _, noise, L, _, _ = instance(naive.dct_matrix(3), "exact", missing=False)
    with pytest.raises(AssertionError, match="no exact fit exists"):
        oracles.optimal_value(X, X[:, :1], noise, L)
