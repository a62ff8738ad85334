"""`tubal.solve` against the authors' code, CVXPY, a transcription and its own certificate."""

import itertools
import pickle
import threading
import warnings
from types import SimpleNamespace

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import naive
import oracles
import tubal
from tubal import Lambda, StopReason, solve
from tubal.algebra import slice_gram as gram
from tubal.algebra import tprod, transpose, tsvd
from tubal.datasets import make_tensor_subspaces
from tubal.input import from_paper, to_paper
from tubal.noise import L1
from tubal.solvers import (
    Certified,
    Inline,
    Published,
    Threads,
    certified,
    driver,
    kernels,
    operators,
    published,
)
from tubal.solvers.fields import Original
from tubal.solvers.parts import Part
from tubal.solvers.represent import RepresentOriginal, RepresentReduced
from tubal.transforms import RandomOrthogonal, resolve

# The rows of the table of methods: dictionary, noise, needs missing entries.
ROWS = {
    "OR-TLRR": {"dictionary": "data", "noise": "l21"},
    "TLRR": {"dictionary": "data", "noise": "l1"},
    "OR-TPCA": {"dictionary": "identity", "noise": "l21"},
    "TRPCA": {"dictionary": "identity", "noise": "l1"},
    "TNN": {"dictionary": "identity", "noise": "exact"},
    "OR-TLRR, array": {"dictionary": "array", "noise": "l21"},
    "TLRR, array": {"dictionary": "array", "noise": "l1"},
}
MATRICES = {"dft": naive.dft_matrix, "dct": naive.dct_matrix}


def transform_pair(name, n3):
    """Return a transform for `solve` and its matrix for the oracles."""
    if name == "rom":
        L = naive.random_orthogonal(n3, 7)
        return L, L
    return name, MATRICES[name](n3)


def instance(row, *, shape=(6, 4, 3), missing=0.0, seed=0, rank=None):
    """Return samples-first data with a planted low-rank part and some gross errors."""
    rng = np.random.default_rng(seed)
    n2, n1, n3 = shape
    rank = max(1, min(n1, n2) // 2) if rank is None else rank
    X = from_paper(
        tprod(rng.standard_normal((n1, rank, n3)), rng.standard_normal((rank, n2, n3)))
    ).copy()
    X[0] += 2 * rng.standard_normal((n1, n3))
    X[1, 0, 0] += 5
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[:, 0, 0] = np.nan_to_num(X[:, 0, 0], nan=1.0)
    options = dict(ROWS[row])
    if options["dictionary"] == "array":
        options["dictionary"] = rng.standard_normal((3, n1, n3))
    return X, options


def paper_problem(X, options):
    """Return data, mask and dictionary in the paper's layout, as the oracles want them."""
    observed = None if not np.isnan(X).any() else to_paper(~np.isnan(X))
    A = to_paper(np.nan_to_num(X))
    D = options["dictionary"]
    D = A if isinstance(D, str) and D == "data" else D
    return A, observed, D if isinstance(D, str) or D is A else to_paper(D)


# ---- the authors' code --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "_missing"])
@pytest.mark.parametrize(
    ("name", "as_matrix"), [("dft_even", False), ("dct", False), ("dct", True)]
)
def test_published_equals_the_authors_code(golden, name, as_matrix, suffix):
    data = golden(name)
    transform = data["transform_matrix"] if as_matrix else name[:3]
    X = from_paper(data["X" + suffix])
    sol = solve(X, lam=float(data["lam" + suffix]), transform=transform, solver="published")
    assert sol.stop_reason is StopReason.RESIDUALS
    np.testing.assert_allclose(to_paper(sol.E), data["E" + suffix], atol=1e-9)
    np.testing.assert_allclose(sol.Z.to_array(), data["Z" + suffix], atol=1e-9)


@pytest.mark.parametrize("name", ["dft_even", "dct"])
@pytest.mark.parametrize("suffix", ["", "_missing"])
def test_certified_is_at_least_as_good_as_published_on_the_golden_problems(golden, name, suffix):
    data = golden(name)
    X, lam = from_paper(data["X" + suffix]), float(data["lam" + suffix])
    certified = solve(X, lam=lam, transform=name[:3], tol=1e-6)
    published = solve(X, lam=lam, transform=name[:3], solver="published")
    assert certified.certificate.gap <= 1e-6
    assert certified.certificate.primal <= published.certificate.primal * (1 + 1e-6)
    assert certified.certificate.dual >= published.certificate.dual * (1 - 1e-6)
    assert certified.n_iter < published.n_iter


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("name", ["dft", "dct", "rom"])
def test_published_equals_the_transcription(name, missing):
    X, options = instance("OR-TLRR", shape=(9, 5, 4), missing=missing)
    transform, L = transform_pair(name, 4)
    A, observed, _ = paper_problem(X, options)
    sol = solve(X, lam=0.2, transform=transform, solver=Published(beta0=1e-2), tol=1e-6)
    if missing:
        slow = naive.ortlrr_algorithm2(A, observed, L, 0.2, beta0=1e-2, tol=1e-6)
    else:
        slow = naive.ortlrr_algorithm1(A, L, 0.2, beta0=1e-2, tol=1e-6)
    assert abs(sol.n_iter - slow["n_iter"]) <= 3
    np.testing.assert_allclose(to_paper(sol.E), slow["E"], atol=1e-5)
    np.testing.assert_allclose(sol.Z.to_array(), slow["Z"], atol=1e-5)


# ---- the certificate ----------------------------------------------------------------------------


def check_certificate(X, sol, options, L, lam, tol):
    """The reported primal value is that of the returned Z, and the dual one is a bound."""
    A, observed, D = paper_problem(X, options)
    primal = sol.certificate.primal
    Z = sol.Z.to_array()
    value = oracles.objective(A, D, Z, options["noise"], L, lam, observed)
    if options["noise"] == "exact":
        value = naive.nuclear_norm(Z, L)
        np.testing.assert_allclose(Z[observed], A[observed], atol=1e-9)
    np.testing.assert_allclose(primal, value, rtol=1e-8)
    assert -1e-12 <= sol.certificate.gap <= tol


@pytest.mark.parametrize(
    ("row", "missing"),
    [(row, missing) for row in ROWS for missing in (0.0, 0.25) if missing or row != "TNN"],
)
@pytest.mark.parametrize("name", ["dft", "dct", "rom"])
def test_optimal_value_is_that_of_cvxpy(row, name, missing):
    X, options = instance(row, missing=missing)
    transform, L = transform_pair(name, 3)
    lam = None if row == "TNN" else (0.25 if options["noise"] == "l21" else 0.1)
    A, observed, D = paper_problem(X, options)
    truth, _ = oracles.optimal_value(A, D, options["noise"], L, lam, observed)
    sol = solve(X, lam=lam, transform=transform, tol=1e-8, max_iter=20_000, **options)
    check_certificate(X, sol, options, L, lam, 1e-8)
    np.testing.assert_allclose(sol.certificate.primal, truth, rtol=1e-6)
    np.testing.assert_allclose(sol.certificate.dual, truth, rtol=1e-6)


SHAPES = {
    "tall": (8, 20, 4),
    "wide": (26, 6, 5),
    "matrix": (30, 8, 1),
    "two tubes": (12, 5, 2),
    "odd": (15, 6, 7),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", ROWS)
def test_gap_is_closed_for_every_row_and_shape(row, shape):
    for missing in (0.0, 0.15):
        if row == "TNN" and not missing:
            continue
        X, options = instance(row, shape=SHAPES[shape], missing=missing, seed=3)
        L = naive.dft_matrix(X.shape[2])
        lam = 1.0 if row == "TNN" else Lambda.relative(0.5)
        sol = solve(X, lam=lam, **options)
        assert sol.stop_reason is StopReason.GAP
        check_certificate(X, sol, options, L, sol.lam, 1e-4)


@pytest.mark.parametrize("row", ["OR-TLRR", "OR-TPCA", "TRPCA", "TNN"])
@pytest.mark.parametrize("name", ["dft", "dct", "rom"])
def test_small_gaps_are_reachable(row, name):
    X, options = instance(row, shape=(40, 12, 6), missing=0.1, seed=1)
    transform, L = transform_pair(name, 6)
    lam = 1.0 if row == "TNN" else Lambda.relative(0.5)
    sol = solve(X, lam=lam, transform=transform, tol=1e-7, **options)
    check_certificate(X, sol, options, L, sol.lam, 1e-7)


def test_the_dual_value_is_never_above_the_optimum():
    """Every check of a run brackets the optimum, from the first on."""
    X, options = instance("TLRR", shape=(20, 6, 4), seed=2)
    precise = solve(X, lam=0.08, tol=1e-8, max_iter=50_000, **options)
    rough = solve(X, lam=0.08, tol=1e-3, solver=Certified(first_check=1), **options)
    for check in rough.history:
        assert check.dual <= precise.certificate.primal * (1 + 1e-12)
        assert check.primal >= precise.certificate.dual * (1 - 1e-12)


def test_rank_deficient_and_duplicate_samples():
    X, options = instance("OR-TLRR", shape=(6, 5, 4))
    X = np.concatenate([X, X, np.zeros((2, 5, 4))])
    sol = solve(X, lam=0.2, tol=1e-7)
    check_certificate(X, sol, options, naive.dft_matrix(4), 0.2, 1e-7)
    np.testing.assert_array_equal(sol.E[-2:], 0)


def test_slices_of_different_rank():
    """Constant tubes: under the DFT only the mean slice is not zero."""
    X = np.repeat(np.random.default_rng(0).standard_normal((12, 5, 1)), 4, axis=2)
    sol = solve(X, lam=0.3, tol=1e-7)
    check_certificate(X, sol, ROWS["OR-TLRR"], naive.dft_matrix(4), 0.3, 1e-7)
    # ||Z||_* = ||Z_0||_* / 4 and ||E_j|| = 2 ||e_j||: four times this is a problem of matrices.
    matrix = solve(X[..., 0], lam=8 * 0.3, tol=1e-7)
    np.testing.assert_allclose(matrix.certificate.primal / 4, sol.certificate.primal, rtol=1e-6)


def test_more_trailing_axes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 5, 3, 4))
    t = resolve("dft", (3, 4))
    sol = solve(X, lam=Lambda.relative(0.4), tol=1e-7, transform=t)
    assert sol.E.shape == sol.L.shape == X.shape
    flat = X.reshape(20, 5, 12)
    check_certificate(flat, replace_z(sol), ROWS["OR-TLRR"], t.matrix, sol.lam, 1e-7)


def replace_z(sol):
    """Flatten the tubes of Z for the oracles."""

    class Flat:
        certificate = sol.certificate

        class Z:
            @staticmethod
            def to_array():
                Z = sol.Z.to_array()
                return Z.reshape(*Z.shape[:2], -1)

    return Flat


def test_tables_have_tables_as_results():
    X = np.random.default_rng(0).standard_normal((20, 5))
    sol = solve(X, lam=Lambda.relative(0.5))
    assert sol.E.shape == sol.L.shape == X.shape
    assert sol.Z.shape == (20, 20, 1)


# ---- recovery -----------------------------------------------------------------------------------


SMALL = {"n1": 40, "n3": 20, "rank": 4, "samples_per_subspace": 40}
PAPER = {"n1": 60, "n3": 100, "rank": 6, "samples_per_subspace": 60}


@pytest.mark.parametrize(
    ("size", "alpha"), [(SMALL, 5), pytest.param(PAPER, 4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("outliers", [0.2, pytest.param(0.4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["dft", "dct", "rom"])
def test_recovery_as_in_the_tables(name, outliers, size, alpha):
    """The four columns of the paper's Tables 1-3, with their lam.

    alpha = 4 under the DFT and 40 = 4 sqrt(n3) under DCT and ROM for the paper's size. Rank, row
    space and error are those of the samples that are no outliers, in the recovered tensor.
    """
    n3 = size["n3"]
    L = resolve(RandomOrthogonal(1) if name == "rom" else name, n3)
    data = make_tensor_subspaces(**size, outliers=outliers, transform=L, random_state=0)
    alpha = alpha if name == "dft" else alpha * n3**0.5
    sol = solve(data.X, lam=Lambda.paper(alpha), transform=L, tol=1e-7)
    norms = np.linalg.norm(sol.E, axis=(1, 2))
    assert np.all(norms[~data.outliers] == 0)
    assert np.all(norms[data.outliers] > 0)
    clean = to_paper(data.clean)
    recovered = to_paper(np.where(data.outliers[:, None, None], 0, sol.L))
    assert np.linalg.norm(recovered - clean) <= 1e-6 * np.linalg.norm(clean)
    V0, V = (tsvd(A, L, rtol=1e-4).V for A in (clean, recovered))
    assert V0.shape == V.shape == (len(data.X), 5 * size["rank"], n3)
    assert row_space_distance(V0, V, L) <= 1e-6


@pytest.mark.parametrize("outliers", [0.1, 0.2])
@pytest.mark.parametrize("name", ["dft", "dct", "rom"])
def test_theorem_2(name, outliers):
    """The column space of Z is the row space of the clean data, to the letter of the theorem.

    This needs clean data and outliers to span independent spaces (Lemma 2), hence fewer of them
    than in the tables, where 60 outliers alone span all of R^60.
    """
    L = resolve(RandomOrthogonal(1) if name == "rom" else name, 8)
    data = make_tensor_subspaces(60, 8, 3, 2, 50, outliers=outliers, transform=L, random_state=0)
    sol = solve(data.X, lam=Lambda.relative(0.5), transform=L, tol=1e-8)
    norms = np.linalg.norm(sol.E, axis=(1, 2))
    np.testing.assert_array_equal(norms > 0, data.outliers)
    V0 = tsvd(to_paper(data.clean), L).V
    U = tsvd(sol.Z.to_array(), L, rtol=1e-6).U
    assert V0.shape == U.shape
    assert row_space_distance(V0, U, L) <= 1e-6


def row_space_distance(V, W, L):
    """Relative distance of the projections onto two spaces."""
    P, Q = (tprod(A, transpose(A, L), L) for A in (V, W))
    return np.linalg.norm(P - Q) / np.linalg.norm(P)


@pytest.mark.parametrize("missing", [0.1, 0.2])
def test_outliers_are_found_with_missing_entries(missing):
    data = make_tensor_subspaces(40, 20, 5, 4, 40, missing=missing, random_state=0)
    sol = solve(data.X, lam=Lambda.paper(2))
    norms = np.linalg.norm(sol.E, axis=(1, 2))
    assert norms[data.outliers].min() > 2 * norms[~data.outliers].max()
    assert not np.isnan(sol.L).any()
    assert np.all(sol.E[np.isnan(data.X)] == 0)


def test_completion_recovers_low_rank_data():
    rng = np.random.default_rng(0)
    L0 = from_paper(tprod(rng.standard_normal((20, 2, 6)), rng.standard_normal((2, 40, 6))))
    X = L0.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    sol = solve(X, dictionary="identity", noise="exact", lam=None, tol=1e-7)
    seen = ~np.isnan(X)
    np.testing.assert_allclose(sol.L[seen], L0[seen], atol=1e-10)
    np.testing.assert_allclose(sol.L, L0, atol=1e-3)
    np.testing.assert_array_equal(sol.E, 0)


def test_trpca_separates_sparse_errors():
    rng = np.random.default_rng(0)
    L0 = from_paper(tprod(rng.standard_normal((20, 2, 5)), rng.standard_normal((2, 60, 5)))).copy()
    S0 = np.where(rng.random(L0.shape) < 0.05, 5.0, 0.0)
    sol = solve(L0 + S0, dictionary="identity", noise="l1", lam=1 / np.sqrt(60 * 5), tol=1e-6)
    np.testing.assert_allclose(sol.L, L0, atol=1e-2)
    np.testing.assert_array_equal(sol.E != 0, S0 != 0)


# ---- lambda -------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR", "OR-TPCA", "TRPCA"])
def test_ends_of_the_range_of_lam(row):
    X, options = instance(row, shape=(12, 5, 4))
    nothing = solve(X, lam=Lambda.relative(-0.01), tol=1e-6, **options)
    np.testing.assert_allclose(nothing.Z.to_array(), 0, atol=1e-6)
    everything = solve(X, lam=Lambda.relative(1.01), tol=1e-6, **options)
    np.testing.assert_allclose(everything.E, 0, atol=1e-5)


def test_paper_lambda():
    X = np.random.default_rng(0).standard_normal((15, 6, 4))
    sol = solve(X, lam=Lambda.paper(3.0))
    norm = naive.spectral_norm(to_paper(X), naive.dft_matrix(4))
    np.testing.assert_allclose(sol.lam, 3.0 / (np.sqrt(np.log(15)) * norm))


def test_path_equals_single_solutions():
    X, _ = instance("OR-TLRR", shape=(20, 6, 4))
    lams = [0.05, 0.1, Lambda.relative(0.6)]
    sols = tubal.path(X, lams=lams, tol=1e-7)
    for lam, sol in zip(lams, sols, strict=True):
        alone = solve(X, lam=lam, tol=1e-7)
        assert sol.lam == alone.lam
        np.testing.assert_allclose(sol.certificate.primal, alone.certificate.primal, rtol=2e-7)


def test_warm_start_continues():
    X, options = instance("OR-TLRR", shape=(20, 6, 4))
    for row in ("OR-TLRR", "TLRR", "OR-TPCA", "TRPCA"):
        options = ROWS[row]
        lam = Lambda.relative(0.5)
        first = solve(X, lam=lam, tol=1e-6, max_iter=10_000, **options)
        again = solve(X, lam=lam, tol=1e-6, warm_start=first, **options)
        assert again.n_iter <= max(10, first.n_iter // 2)
        np.testing.assert_allclose(again.certificate.primal, first.certificate.primal, rtol=2e-6)


# ---- behaviour ----------------------------------------------------------------------------------


def bits(sol):
    return [sol.E, sol.L, sol.Z.core, np.array([sol.certificate.primal, sol.certificate.dual])]


@pytest.mark.parametrize("solver", ["certified", "published"])
@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR", "TRPCA"])
def test_same_bits_for_any_number_of_threads(row, solver):
    X, options = instance(row, shape=(300, 8, 6))
    options |= {"lam": Lambda.relative(0.5), "solver": solver, "max_iter": 60, "tol": 1e-3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = [bits(solve(X, n_jobs=n, **options)) for n in (1, 2, 3)]
    for one, other in itertools.product(results[:1], results[1:]):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_blas_threads_are_restored_also_on_errors(error):
    X, _ = instance("OR-TLRR", shape=(200, 6, 4))

    def fail(check):
        assert set(blas_threads()) == {1}
        raise error

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        solve(X, lam=0.1, n_jobs=2)
        assert blas_threads() == before
        running = threading.active_count()
        with pytest.raises(error):
            solve(X, lam=0.1, n_jobs=2, callback=fail)
        assert blas_threads() == before
        assert threading.active_count() == running


def test_callback_sees_checks_and_can_stop():
    X, _ = instance("OR-TLRR", shape=(30, 6, 4))
    seen = []
    sol = solve(X, lam=0.1, tol=1e-6, callback=seen.append)
    assert tuple(seen) == sol.history
    assert [c.n_iter for c in seen] == sorted({c.n_iter for c in seen})
    assert all(a.gap >= b.gap for a, b in itertools.pairwise(seen))
    stopped = solve(X, lam=0.1, tol=1e-6, callback=lambda check: True)
    assert stopped.stop_reason is StopReason.CALLBACK
    assert stopped.n_iter == seen[0].n_iter


def test_iteration_limit_warns_with_the_gap_reached():
    X, _ = instance("TLRR", shape=(30, 6, 4))
    with pytest.warns(
        ConvergenceWarning, match=r"after 7 iterations: the duality gap is .*max_iter"
    ):
        sol = solve(X, lam=0.05, noise="l1", max_iter=7, tol=1e-6)
    assert sol.n_iter == 7
    assert sol.stop_reason is StopReason.MAX_ITER
    assert not sol.stop_reason.converged
    check_certificate(X, sol, ROWS["TLRR"], naive.dft_matrix(4), 0.05, np.inf)
    with pytest.warns(ConvergenceWarning, match="the residuals are"):
        solve(X, lam=0.05, solver="published", max_iter=7)


@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR", "OR-TPCA", "TRPCA", "TNN"])
def test_published_runs_every_row(row):
    X, options = instance(row, shape=(20, 6, 4), missing=0.1 if row == "TNN" else 0)
    lam = 1.0 if row == "TNN" else Lambda.relative(0.5)
    sol = solve(X, lam=lam, solver="published", **options)
    assert sol.stop_reason is StopReason.RESIDUALS
    check_certificate(X, sol, options, naive.dft_matrix(4), sol.lam, 1.0)
    seen = ~np.isnan(X)
    np.testing.assert_allclose((sol.L + sol.E)[seen], X[seen], atol=1e-6)


@pytest.mark.parametrize("row", ROWS)
def test_float32(row):
    X, options = instance(row, shape=(40, 8, 5), missing=0.1 if row == "TNN" else 0)
    lam = 1.0 if row == "TNN" else Lambda.relative(0.4)
    double = solve(X, lam=lam, **options)
    single = solve(X.astype(np.float32), lam=lam, **options)
    assert single.E.dtype == single.L.dtype == np.float32
    assert single.stop_reason is StopReason.GAP
    np.testing.assert_allclose(single.certificate.primal, double.certificate.primal, rtol=3e-4)


@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR", "OR-TPCA", "TRPCA"])
@pytest.mark.parametrize("name", ["dft", "dct"])
def test_other_array_libraries(row, name):
    X, options = instance(row, shape=(20, 5, 4))
    here = solve(X, lam=0.1, transform=name, tol=1e-5, **options)
    there = solve(strict.asarray(X), lam=0.1, transform=name, tol=1e-5, **options)
    assert isinstance(there.E, type(strict.asarray(X)))
    np.testing.assert_allclose(np.asarray(there.E), here.E, atol=1e-4)
    np.testing.assert_allclose(there.certificate.primal, here.certificate.primal, rtol=2e-5)


def test_engines_agree():
    X, _ = instance("OR-TLRR", shape=(200, 6, 4))
    sols = [
        solve(X, lam=0.1, tol=1e-7, engine=engine)
        for engine in (Threads(2), Threads(1, max_block_bytes=1), Inline())
    ]
    for sol in sols[1:]:
        np.testing.assert_allclose(sol.E, sols[0].E, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dft", "dct"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR"])
def test_compiled_passes_equal_the_plain_ones(monkeypatch, row, missing, name):
    pytest.importorskip("numba")
    X, options = instance(row, shape=(60, 8, 5), missing=missing)
    options |= {"lam": Lambda.relative(0.5), "transform": name}
    for more in ({"tol": 1e-4}, {"solver": Published(), "tol": 1e-6}):
        sols = []
        for small in (0, 10**9):
            monkeypatch.setattr(kernels, "SMALL", small)
            sols.append(solve(X, **options, **more))
        assert sols[0].n_iter == sols[1].n_iter
        assert sols[0].stop_reason is not StopReason.MAX_ITER
        np.testing.assert_allclose(sols[0].E, sols[1].E, atol=1e-9)


@pytest.mark.parametrize("solver", [Certified(), Published()])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR"])
def test_passes_equal_the_iteration_of_any_library(monkeypatch, row, missing, solver):
    """What NumPy arrays get, against the steps written out for every array library."""
    X, options = instance(row, shape=(20, 6, 5), missing=missing)
    options |= {"lam": 0.2, "solver": solver, "tol": 1e-6}
    fast = solve(X, **options)

    def plain(self, field, penalties, J, Y):
        original = isinstance(field, Original)
        return (RepresentOriginal if original else RepresentReduced)(field, penalties, J, Y)

    monkeypatch.setattr(Part, "represent", plain)
    slow = solve(X, **options)
    assert fast.n_iter == slow.n_iter
    np.testing.assert_allclose(fast.E, slow.E, atol=1e-9)
    np.testing.assert_allclose(fast.L, slow.L, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
@pytest.mark.parametrize("growth", [1.1, 2.0, 5.0])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("noise", ["l21", "l1"])
@pytest.mark.parametrize("clean", [False, True])
def test_published_stops_where_the_whole_test_would(
    monkeypatch, clean, noise, missing, growth, tol
):
    """The test is made in parts, and what it compares with is kept near the end only."""
    data = make_tensor_subspaces(
        8, 6, 3, 1, 8, outliers=0 if clean else 0.2, missing=missing, random_state=0
    )
    X = data.X + (0.1 if clean else 0) * np.random.default_rng(0).standard_normal(data.X.shape)
    run = {"solver": Published(growth=growth), "tol": tol, "lam": 0.1, "noise": noise}
    found = solve(X, **run)
    monkeypatch.setattr(published, "NEAR", np.inf)
    monkeypatch.setattr(published.Follower, "_change", lambda self, Z, goal: (0.0, 0.0))
    whole = solve(X, **run)
    assert found.n_iter == whole.n_iter
    np.testing.assert_allclose(found.E, whole.E, atol=1e-9)


@pytest.mark.parametrize("solver", [Certified(), Published()])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_noise_may_answer_in_another_precision(monkeypatch, compiled, solver):
    """Weights in double precision make double numbers of single ones."""

    class Weighted(L1):
        def weights(self, A):
            return np.linspace(0.9, 1.1, A.shape[-1])

        def project(self, Y, radius):
            bound = radius * self.weights(Y)
            return np.clip(Y, -bound, bound)

        def value(self, E):
            return float(np.sum(self.weights(E) * np.abs(E)))

    if compiled:
        pytest.importorskip("numba")
    monkeypatch.setattr(kernels, "SMALL", 0 if compiled else 10**9)
    X = instance("TLRR", shape=(20, 6, 5))[0]
    run = {"noise": Weighted(), "lam": 0.2, "solver": solver, "tol": 1e-3}
    double, single = solve(X, **run), solve(X.astype(np.float32), **run)
    np.testing.assert_allclose(single.E, double.E, atol=1e-2)


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((20, 30, 40), 1),  # fewer samples than one block
        ((20, 10, 2000), 4),  # small: as many as an engine wants
        ((51, 20, 4000), 32),  # large: as small as the caches
        ((51, 200, 4000), 20),  # no narrower than slices are tall
        ((51, 900, 4000), 8),  # but eight
    ],
)
def test_blocks_follow_the_size_of_the_problem(shape, blocks):
    reduction = SimpleNamespace(shape=shape, x=np.zeros(0, complex))
    problem = SimpleNamespace(reduction=reduction)
    found = driver.block_spans(problem, Threads(1))
    assert len(found) == blocks
    assert [span.stop for span in found[:-1]] == [span.start for span in found[1:]]
    assert (found[0].start, found[-1].stop) == (0, shape[2])


class TestOperators:
    """Slices of every kind: nothing above the threshold, little, all, and mixed ranks."""

    @pytest.mark.parametrize("kind", [float, complex, np.float32, np.complex64])
    @pytest.mark.parametrize("r", [8, 40])
    def test_shrink_like_the_singular_value_decomposition(self, r, kind):
        rng = np.random.default_rng(0)
        A = rng.standard_normal((5, r, 3 * r)).astype(kind)
        if np.dtype(kind).kind == "c":
            A += 1j * rng.standard_normal(A.shape).astype(A.real.dtype)
        A *= np.array([0.0, 0.01, 0.3, 1.0, 5.0])[:, None, None].astype(A.real.dtype)
        A[4, :, :] = A[4, :, :3] @ A[4, :3, :]  # rank 3
        threshold = float(np.sqrt(r))
        U, s, Vh = np.linalg.svd(A, full_matrices=False)
        kept = (s > threshold).sum(axis=1)
        assert kept[0] == kept[1] == 0 and kept[4] == 3 and kept[3] > 0.5 * r
        left, pieces = operators.decompose(gram(A), threshold)
        tolerance = 2e-4 if A.real.dtype == np.float32 else 1e-10
        expected = np.maximum(s - threshold, 0)
        np.testing.assert_allclose(left[:, ::-1], expected, atol=tolerance * s.max())
        shrunk = operators.join([pieces]) @ A
        assert shrunk.dtype == A.dtype
        np.testing.assert_allclose(
            shrunk, (U * expected[:, None]) @ Vh, atol=tolerance * np.abs(A).max() * r
        )

    def test_do_not_depend_on_how_slices_are_spread(self):
        A = np.random.default_rng(0).standard_normal((6, 30, 90))
        A *= np.array([0.1, 1, 2, 0.01, 5, 1])[:, None, None]
        G = gram(A)
        whole = operators.join([operators.decompose(G, 8.0)[1]]) @ A
        parts = [operators.decompose(G[k], 8.0)[1] for k in (slice(0, 1), slice(1, 4), slice(4, 6))]
        np.testing.assert_array_equal(operators.join(parts) @ A, whole)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(operators.join(parts))) @ A, whole)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_following_is_a_step_and_a_change_of_penalty(monkeypatch, compiled):
    """The pass that does both, against the two that do one each."""
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(kernels, "SMALL", 0)
    rng = np.random.default_rng(0)
    follow = kernels.passes(10).follow
    g, D, A, y = rng.standard_normal((4, 3, 5, 7))
    f, omega = rng.random(7), rng.random(3)
    rho, tau = rng.random((2, 3, 5, 1))
    stepped, multiplier = A.copy(), y.copy()
    steps = [g.copy(), g.copy()]
    kernels.update_numpy(steps[0], f, D, stepped, multiplier, rho, tau, 1.0, True)
    J = stepped - multiplier
    np.testing.assert_allclose(steps[0], J - (A - y), atol=1e-14)
    total = follow(steps[1], f, D, A, y, rho, tau, 0.7, omega, True)
    np.testing.assert_allclose(steps[1], steps[0], atol=1e-14)
    np.testing.assert_allclose(y, 0.7 * multiplier, atol=1e-14)
    np.testing.assert_allclose(A, J + 0.7 * multiplier, atol=1e-14)
    assert total == pytest.approx(np.sum(omega[:, None, None] * (D - J) ** 2))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("a", "q"), [(1.0, 1.0), (1.6, 1.0), (1.0, 1.1), (1.6, 1.1)])
def test_settling_follows_a_step_in_the_original_domain(monkeypatch, compiled, a, q):
    """Against the formulas: `G = b (X - D J) + Y` before and after."""
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(kernels, "SMALL", 0)
    new, Y, moved, residual = np.random.default_rng(0).standard_normal((4, 70_001))
    G = residual + Y
    expected = Y + a * (new - Y) - moved
    kernels.passes(10).settle(new, Y, moved, G, a, q)
    np.testing.assert_allclose(Y, expected, atol=1e-14)
    np.testing.assert_allclose(G, q * (residual - moved) + expected, atol=1e-13)


def test_zero_data():
    sol = solve(np.zeros((5, 3, 4)), lam=0.1)
    assert sol.stop_reason is StopReason.TRIVIAL
    assert not sol.E.any()
    assert not sol.L.any()
    assert not sol.Z.to_array().any()


def test_factored_coefficients():
    X, _ = instance("OR-TLRR", shape=(9, 5, 4))
    sol = solve(X, lam=0.2, tol=1e-6)
    Z = sol.Z.to_array()
    assert Z.shape == sol.Z.shape == (9, 9, 4)
    np.testing.assert_allclose(sol.Z.rows(3), Z[3], atol=1e-12)
    np.testing.assert_allclose(sol.Z.rows([1, 4]), Z[[1, 4]], atol=1e-12)
    np.testing.assert_allclose(sol.Z.tile(slice(2, 5), [0, 7]), Z[2:5][:, [0, 7]], atol=1e-12)
    np.testing.assert_allclose(to_paper(sol.L), tprod(to_paper(X), Z), atol=1e-9)
    np.testing.assert_allclose(sol.L + sol.E, X, atol=1e-2)


def test_input_is_not_changed():
    X, _ = instance("OR-TLRR", missing=0.2)
    before = X.copy()
    for row in ("OR-TLRR", "TLRR", "TRPCA", "TNN"):
        solve(X, lam=0.1, **ROWS[row])
    np.testing.assert_array_equal(X, before)


def test_permuting_samples_permutes_the_solution():
    X, _ = instance("OR-TLRR", shape=(20, 6, 4))
    order = np.random.default_rng(0).permutation(20)
    a, b = (solve(A, lam=0.1, tol=1e-8) for A in (X, X[order]))
    np.testing.assert_allclose(a.E[order], b.E, atol=1e-4)
    np.testing.assert_allclose(a.certificate.primal, b.certificate.primal, rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": 0}, "lam must be positive, got 0"),
        ({"lam": -1.0}, "lam must be positive"),
        ({"lam": float("nan")}, "lam must be a finite number, got nan"),
        ({"lam": "auto"}, "lam must be a finite number, got 'auto'"),
        ({"lam": None}, "lam must be a finite number, got None"),
        ({"transform": np.eye(5)}, "tubes of length 5, the data has 4"),
        ({"transform": "fourier"}, "got 'fourier'"),
        ({"dictionary": np.ones((3, 5, 4))}, r"samples of shape \(5, 4\), X of shape \(6, 4\)"),
        ({"dictionary": np.zeros((3, 6, 4))}, "dictionary is zero"),
        ({"dictionary": "own"}, "'data', 'identity' or an array, got 'own'"),
        ({"noise": "exact"}, "X has no missing entry"),
        ({"noise": "l2"}, r"one of \['exact', 'l1', 'l21'\]"),
        ({"solver": "admm"}, r"one of \['certified', 'published'\]"),
        ({"tol": 0}, "tol must be positive"),
        ({"tol": 1e-15}, "below what float64 can reach"),
        ({"tol": 1e-7, "dtype": "float32"}, "below what float32 can reach.*dtype='float64'"),
        ({"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive integer, got 0"),
        ({"callback": 3}, "callback must be callable"),
        ({"engine": "threads"}, "engine must be an Engine"),
        ({"warm_start": 3}, "warm_start must be a Solution"),
        ({"dtype": "float16"}, "dtype must be"),
    ],
)
def test_bad_arguments_are_named(change, message):
    X = np.random.default_rng(0).standard_normal((8, 6, 4))
    with pytest.raises(ValueError, match=message):
        solve(X, **{"lam": 0.1, **change})


def test_bad_combinations_are_named():
    X, _ = instance("TNN", shape=(8, 6, 4), missing=0.2)
    with pytest.raises(ValueError, match="needs dictionary='identity'"):
        solve(X, noise="exact", lam=1.0)
    other = solve(np.nan_to_num(X), lam=0.1)
    with pytest.raises(ValueError, match="another kind of problem or shape"):
        solve(X, lam=0.1, warm_start=other)
    with pytest.raises(ValueError, match="lams must be a positive number"):
        tubal.path(X, lams=0)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))[0]
    with pytest.raises(ValueError, match="is complex"):
        solve(X, lam=0.1, transform=Q)


# ---- single precision first ---------------------------------------------------------------------


@pytest.fixture(name="single_first")
def _single_first(monkeypatch):
    monkeypatch.setattr(certified, "SINGLE_SIZE", 0)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_single_precision_first_ends_with_a_double_certificate(row, single_first):
    X, options = instance(row, shape=(40, 8, 5), missing=0.1 if row == "TNN" else 0)
    lam = 1.0 if row == "TNN" else Lambda.relative(0.4)
    mixed = solve(X, lam=lam, tol=1e-6, max_iter=20_000, **options)
    assert mixed.E.dtype == mixed.L.dtype == np.float64
    assert mixed.Z.core.dtype in (np.float64, np.complex128)
    check_certificate(X, mixed, options, naive.dft_matrix(5), mixed.lam, 1e-6)
    double = solve(X, lam=lam, tol=1e-6, solver=Certified(single_first=False), **options)
    np.testing.assert_allclose(mixed.certificate.primal, double.certificate.primal, rtol=2e-6)


def test_callback_can_stop_in_single_precision(single_first):
    X, options = instance("OR-TLRR", shape=(40, 8, 5))
    sol = solve(X, lam=0.1, tol=1e-9, callback=lambda check: True)
    assert sol.stop_reason is StopReason.CALLBACK
    assert sol.n_iter == 10
    check_certificate(X, sol, options, naive.dft_matrix(5), 0.1, np.inf)


def test_iteration_limit_holds_over_both_precisions(single_first):
    X, _ = instance("TLRR", shape=(40, 8, 5))
    with pytest.warns(ConvergenceWarning, match="after 30 iterations"):
        sol = solve(X, noise="l1", lam=0.05, tol=1e-9, max_iter=30)
    assert sol.n_iter == 30


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_data_of_any_scale(single_first, scale):
    """Single precision cannot hold the squares; such data stays in double precision."""
    X, _ = instance("OR-TLRR", shape=(40, 8, 5))
    plain = solve(X, lam=Lambda.relative(0.5), tol=1e-6)
    scaled = solve(scale * X, lam=Lambda.relative(0.5), tol=1e-6)
    np.testing.assert_allclose(scaled.E / scale, plain.E, atol=1e-3)
    np.testing.assert_allclose(scaled.certificate.primal, plain.certificate.primal, rtol=2e-6)


# ---- found in review ----------------------------------------------------------------------------


def test_tiles_index_like_arrays():
    X, _ = instance("OR-TLRR", shape=(6, 3, 4))
    factored = solve(X, lam=0.2).Z
    Z = factored.to_array()
    for i, j in itertools.product([0, 5, slice(1, 3), [2, 4]], repeat=2):
        np.testing.assert_allclose(factored.tile(i, j), Z[i][..., j, :], atol=1e-12)


def test_the_name_rom_means_one_matrix():
    X, _ = instance("OR-TLRR", shape=(20, 6, 4))
    a, b = (solve(X, lam=0.2, transform="rom") for _ in range(2))
    np.testing.assert_array_equal(a.E, b.E)


def test_published_takes_float32_with_its_default_tol():
    X, _ = instance("OR-TLRR", shape=(20, 6, 4))
    sol = solve(X.astype(np.float32), lam=Lambda.relative(0.5), solver="published")
    assert sol.stop_reason is StopReason.RESIDUALS


@pytest.mark.parametrize("row", ["OR-TLRR", "TLRR", "OR-TPCA", "TRPCA"])
def test_warm_starts_from_the_other_solver(row):
    X, options = instance(row, shape=(20, 6, 4))
    options |= {"lam": Lambda.relative(0.5)}
    published = solve(X, solver="published", **options)
    cold = solve(X, tol=1e-5, **options)
    warm = solve(X, tol=1e-5, warm_start=published, **options)
    np.testing.assert_allclose(warm.certificate.primal, cold.certificate.primal, rtol=2e-5)
    assert warm.n_iter <= 2 * cold.n_iter
    again = solve(X, solver="published", warm_start=cold, **options)
    assert again.stop_reason is StopReason.RESIDUALS


@pytest.mark.parametrize(("first", "second"), [("dct", "dft"), ("dft", "dct"), ("none", "dct")])
def test_warm_start_of_another_transform_is_refused(first, second):
    X = np.random.default_rng(0).standard_normal((16, 5, 2))
    sol = solve(X, lam=0.1, transform=first)
    with pytest.raises(ValueError, match="another kind of problem"):
        solve(X, lam=0.1, transform=second, warm_start=sol)


def test_warm_start_of_a_tall_problem():
    X, options = instance("TRPCA", shape=(8, 20, 4))
    first = solve(X, lam=0.1, tol=1e-6, **options)
    again = solve(X, lam=0.1, tol=1e-6, warm_start=first, **options)
    assert again.n_iter <= first.n_iter
    np.testing.assert_allclose(again.L, first.L, atol=1e-3)


def test_checks_have_the_residuals_of_the_last_review():
    X, _ = instance("OR-TLRR", shape=(30, 6, 4))
    history = solve(X, lam=0.1, tol=1e-8).history
    assert history[0].residuals == ()  # penalties are reviewed from iteration 20 on
    later = [check for check in history if check.n_iter > 20]
    assert all(len(check.residuals) == 4 for check in later)
    assert max(later[-1].residuals) < max(later[0].residuals)


def test_small_values_do_not_pass_for_a_small_gap():
    X, options = instance("TRPCA", shape=(20, 6, 4))
    plain, scaled = (solve(c * X, lam=0.1, **options) for c in (1, 1e-20))
    assert scaled.n_iter == plain.n_iter
    np.testing.assert_allclose(scaled.E * 1e20, plain.E, atol=1e-6)


def test_matrices_of_single_precision_give_valid_certificates():
    X, options = instance("TRPCA", shape=(20, 6, 4))
    L = naive.random_orthogonal(4, 3).astype(np.float32)
    sol = solve(X, lam=0.1, transform=L, tol=1e-9, **options)
    assert sol.stop_reason is StopReason.GAP


def test_engine_in_use_is_refused():
    X, _ = instance("OR-TLRR", shape=(30, 6, 4))
    engine = Threads(1)
    with pytest.raises(RuntimeError, match="in use"):
        solve(X, lam=0.1, engine=engine, callback=lambda _: solve(X, lam=0.1, engine=engine))
    assert solve(X, lam=0.1, engine=engine).stop_reason is StopReason.GAP


def test_solutions_survive_pickling():
    X, _ = instance("OR-TLRR", shape=(20, 6, 4), missing=0.1)
    sol = solve(X, lam=0.1)
    copied = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(copied.Z.to_array(), sol.Z.to_array())
    assert solve(X, lam=0.1, warm_start=copied).stop_reason is StopReason.GAP


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Certified(relax=2.5), "relax must lie between 0 and 2"),
        (lambda: Certified(memory=-1), "memory must be an integer of at least 0"),
        (lambda: Published(beta0=0), "beta0 must be positive"),
        (lambda: Published(growth=0.5), "growth at least 1"),
        (lambda: Threads(max_block_bytes=0), "max_block_bytes must be a positive integer"),
        (lambda: solve(np.eye(4), lam=0.1, dictionary=None), "'data', 'identity' or an array"),
        (lambda: solve(1e-100 * np.eye(4), lam=0.1), "entries of size 1.0e-100"),
        (lambda: solve(1e12 * np.eye(4), lam=0.1, dtype="float32"), "float32 needs them between"),
        (
            lambda: solve(
                np.ones((4, 3, 2, 2)),
                lam=0.1,
                transform=[np.array([[1, 1j], [1, -1j]]) / 2**0.5, "dft"],
            ),
            "is complex",
        ),
        (
            lambda: solve(np.eye(4), lam=0.1, dictionary=strict.asarray(np.eye(4))),
            "another library",
        ),
    ],
)
def test_more_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
