"""New samples under a solved problem: the fit continued, a conic solver, and plain least squares.

`K = D W D^H` is built here from the coefficient tensor itself, slice by slice. With `z = W^(1/2) a`
the small problem of a sample is `min ||a||^2 / 2 + lam g(mask(y - C a))`, `C = D W^(1/2)`, which is
real in the original domain under every transform.
"""

import functools
import itertools

import cvxpy as cp
import numpy as np
import pytest

import naive
import oracles
from tubal import Lambda, solve
from tubal import noise as noises
from tubal.datasets import make_tensor_subspaces
from tubal.input import Samples, read, to_paper
from tubal.solvers import Extension, extension
from tubal.transforms import resolve

MATRICES = {"dft": naive.dft_matrix, "dct": naive.dct_matrix, "none": np.eye}
N1, N3 = 6, 4
ROWS = [(noise, kind) for noise in ("l21", "l1") for kind in ("data", "identity", "array")]
ROWS.append(("exact", "identity"))

# Relative gap (residual) at which the answers below agree to about five digits; the ascent for
# entry-wise noise is slow beyond that.
TIGHT = {"l21": 1e-12, "l1": 3e-8, "exact": 1e-10}

each_row = pytest.mark.parametrize(("noise", "kind"), ROWS)
each_transform = pytest.mark.parametrize("name", MATRICES)


@functools.cache
def fitted(noise, kind, name, *, missing=False, shape=(N1, N3, 16), t=0.5, seed=1):
    """Return data and its solution to many digits; the rows of `noise` "exact" have holes."""
    n1, n3, n2 = shape
    holes = 0.2 if missing or noise == "exact" else 0.0
    truth = make_tensor_subspaces(
        n1, n3, 2, 2, n2 // 2, 0.2, holes, 0.05, name, random_state=seed
    )  # fmt: skip
    D = kind
    if kind == "array":
        D = np.random.default_rng(seed).standard_normal((6, n1, n3)) / n1
    lam = None if noise == "exact" else Lambda.relative(t)
    tol = 1e-9 if noise == "l21" else 1e-8
    sol = solve(truth.X, dictionary=D, noise=noise, transform=name, lam=lam, tol=tol, n_jobs=1)
    return truth.X, D, sol


def extend(sol, noise, X, **options):
    return Extension.of(sol, noises.resolve(noise)).apply(_samples(X), **options)


def _samples(X):
    return X if isinstance(X, Samples) else read(X, min_samples=1)


def close(A, B, tol):
    """Agreement relative to the largest entry."""
    assert A.shape == B.shape
    assert np.all(np.isfinite(A))
    np.testing.assert_allclose(A, B, rtol=0, atol=tol * max(1e-300, np.abs(B).max()))


def square_root(Z, L):
    """`W^(1/2)` of `W = (Z Z^H)^(1/2)`, slice by slice."""

    def one(slice_):
        u, s, _ = np.linalg.svd(slice_)
        s = np.concatenate([s, np.zeros(len(u) - len(s))])
        return (u * np.sqrt(np.where(s > 1e-7 * s.max(initial=1e-300), s, 0))) @ u.conj().T

    return naive.inverse(naive.slicewise(one, naive.forward(Z, L)), L)


def small_problem(X, D, sol, name):
    """Return `W^(1/2)`, and C as a matrix on unfolded samples."""
    L = MATRICES[name](X.shape[2])
    if isinstance(D, str) and D == "identity":
        half = square_root(to_paper(sol.L), L)
        return half, oracles._product_matrix(half, X.shape[1], L)
    half = square_root(sol.Z.to_array(), L)
    A = to_paper(np.nan_to_num(X)) if isinstance(D, str) else to_paper(D)
    return half, oracles._product_matrix(naive.tprod(A, half, L), X.shape[1], L)


def conic(C, y, seen, noise, lam):
    """Minimise `||a||^2 / 2 + lam g(mask(y - C a))` for one sample, unfolded."""
    a = cp.Variable(C.shape[1])
    r = cp.multiply(seen, y - C @ a)
    g = {"l21": lambda: cp.norm(r, 2), "l1": lambda: cp.norm(r, 1)}[noise]()
    value = oracles._solve(cp.Problem(cp.Minimize(cp.sum_squares(a) / 2 + lam * g)))
    return value, a.value


# ---- samples of the fit -------------------------------------------------------------------------


@each_transform
@pytest.mark.parametrize("missing", [False, True])
@each_row
def test_samples_of_the_fit_are_explained_as_the_fit_did(noise, kind, missing, name):
    X, _, sol = fitted(noise, kind, name, missing=missing)
    out = extend(sol, noise, X, tol=TIGHT[noise])
    scale = np.nanmax(np.abs(X))
    close(out.L, sol.L, 1e-4)
    np.testing.assert_allclose(out.E, sol.E, rtol=0, atol=1e-4 * scale)
    assert not out.E[np.isnan(X)].any()
    if kind == "identity":
        assert out.core is None
    else:
        close(out.core, np.asarray(sol.Z.core), 1e-4)
    if not missing and noise == "l21":
        np.testing.assert_allclose(out.L + out.E, X, atol=1e-14 * scale)


@pytest.mark.parametrize("t", [0.2, 0.9, 1.2])
@pytest.mark.parametrize("kind", ["data", "identity"])
def test_from_nearly_all_noise_to_none(kind, t):
    X, _, sol = fitted("l21", kind, "dft", t=t)
    out = extend(sol, "l21", X)
    close(out.L, sol.L, 1e-5)
    np.testing.assert_allclose(out.E, sol.E, atol=1e-5 * np.abs(X).max())
    if t > 1:
        np.testing.assert_allclose(out.E, 0, atol=1e-9 * np.abs(X).max())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("noise", ["l21", "l1"])
@pytest.mark.parametrize("kind", ["data", "identity"])
def test_a_fit_that_explains_nothing_explains_nothing(kind, noise, missing):
    X, _, sol = fitted(noise, kind, "dft", missing=missing, t=-0.1)
    assert not sol.L.any()
    out = extend(sol, noise, X)
    assert not out.L.any()
    np.testing.assert_array_equal(out.E, np.nan_to_num(X))


@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("noise", ["l21", "l1"])
def test_a_fit_of_zeros(noise, kind):
    sol = solve(np.zeros((5, 4, 3)), dictionary=kind, noise=noise, lam=1.0)
    X = np.random.default_rng(0).standard_normal((3, 4, 3))
    out = extend(sol, noise, X)
    assert not out.L.any()
    np.testing.assert_array_equal(out.E, X)


@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("t", [0.5, 0.9, 1.1])
def test_slices_of_different_rank(kind, t):
    """Slices of ranks 8, 2, 1: the coordinates hold directions that are nothing."""
    rng = np.random.default_rng(0)
    hat = np.zeros((3, 8, 20), dtype=complex)
    for k, rank in enumerate([8, 2, 1]):
        hat[k] = rng.standard_normal((8, rank)) @ rng.standard_normal((rank, 20))
    X = np.fft.irfft(hat, n=4, axis=0).transpose(2, 1, 0).copy()
    sol = solve(X, dictionary=kind, lam=Lambda.relative(t), tol=1e-8)
    out = extend(sol, "l21", X)
    close(out.L, sol.L, 1e-5)


@pytest.mark.parametrize("noise", ["l1", "exact"])
def test_more_rows_than_samples(noise):
    """The solver swaps samples and rows here; the extension sees the samples."""
    X, _, sol = fitted(noise, "identity", "dct", shape=(20, 3, 10))
    out = extend(sol, noise, X, tol=TIGHT[noise])
    close(out.L, sol.L, 5e-5)


@pytest.mark.parametrize("kind", ["data", "identity"])
def test_several_axes(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 5, 2, 3))
    sol = solve(X, dictionary=kind, lam=Lambda.relative(0.5), tol=1e-8)
    out = extend(sol, "l21", X)
    close(out.L, sol.L, 1e-5)
    masked = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    sol = solve(masked, dictionary=kind, lam=Lambda.relative(0.5), tol=1e-8)
    out = extend(sol, "l21", masked, tol=1e-10)
    close(out.L, sol.L, 2e-5)


@pytest.mark.parametrize("kind", ["data", "identity"])
def test_tables(kind):
    X = np.random.default_rng(0).standard_normal((12, 5))
    sol = solve(X, dictionary=kind, lam=Lambda.relative(0.5), tol=1e-8)
    out = extend(sol, "l21", X)
    close(out.L[..., 0], sol.L, 1e-5)


# ---- new samples --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("noise", "kind"), ROWS[:-1])
def test_new_samples_against_a_conic_solver(noise, kind, missing, name):
    X, D, sol = fitted(noise, kind, name, missing=missing, shape=(4, 3, 12), seed=3)
    rng = np.random.default_rng(5)
    new = np.nan_to_num(X[:1] + X[1:2]) + rng.standard_normal((1, 4, 3)) / 4
    seen = np.ones(new.shape, bool)
    if missing:
        seen = rng.random(new.shape) > 0.25
    out = extend(sol, noise, np.where(seen, new, np.nan), tol=1e-11)
    half, C = small_problem(X, D, sol, name)
    L = MATRICES[name](3)
    W = naive.tprod(half, half, L)
    inverse = naive.inverse(
        naive.slicewise(
            lambda w: np.linalg.pinv(w, rcond=1e-7, hermitian=True), naive.forward(W, L)
        ),
        L,
    )
    y, mask, explained, E = (oracles._unfold(to_paper(A))[:, 0] for A in (new, seen, out.L, out.E))
    value, a = conic(C, y, mask, noise, sol.lam)
    np.testing.assert_allclose(explained, C @ a, atol=5e-5)
    z = to_paper(out.L)
    if kind != "identity":
        z = sol.Z.transform.inverse(np.moveaxis(np.asarray(sol.Z.left) @ out.core, 0, -1))
    expected = naive.tprod(half, oracles._fold(a[:, None], 3), L)
    np.testing.assert_allclose(z, expected, atol=5e-5 * max(1, np.abs(expected).max()))
    residual = mask * (y - explained)
    np.testing.assert_allclose(E, residual, atol=1e-12)
    g = np.linalg.norm(residual) if noise == "l21" else np.abs(residual).sum()
    energy = naive.inner(z, naive.tprod(inverse, z, L)) / 2
    np.testing.assert_allclose(energy + sol.lam * g, value, rtol=1e-6)
    assert 0.02 * np.linalg.norm(mask * y) < np.linalg.norm(residual)  # both parts count
    assert 1e-3 * value < energy


@each_transform
@pytest.mark.parametrize("observed", [1.0, 0.7, 0.05])
def test_exact_fit_is_the_least_squares_fit_of_least_norm(name, observed):
    """With few entries observed it is exact; noisy samples with many have no exact fit."""
    rng, L = np.random.default_rng(2), MATRICES[name](4)
    A = naive.tprod(rng.standard_normal((9, 2, 4)), rng.standard_normal((2, 15, 4)), L)
    plan = resolve(name, 4)
    clean = np.moveaxis(A, 1, 0)
    ext = Extension.of_samples(plan, clean, noises.resolve("exact"), 1.0)
    new = clean[:6] + 0.3 * rng.standard_normal((6, 9, 4))
    new[5] = 0
    seen = rng.random(new.shape) < observed
    seen[:, 0, 0] = True
    out = ext.apply(Samples(np.where(seen, new, 0), seen, False), tol=1e-12)
    C = oracles._product_matrix(square_root(A, L), 9, L)
    worst = 0
    for j in range(6):
        y, mask = (oracles._unfold(to_paper(B[j : j + 1]))[:, 0] for B in (new, seen))
        a = np.linalg.lstsq(C[mask], y[mask], rcond=1e-9)[0]
        explained = oracles._unfold(to_paper(out.L[j : j + 1]))[:, 0]
        np.testing.assert_allclose(explained, C @ a, atol=1e-7 * max(1, np.abs(C @ a).max()))
        worst = max(worst, np.abs((y - C @ a)[mask]).max())
    assert (worst > 0.1) == (observed > 0.5)
    assert not out.L[5].any()


def test_whole_sample_noise_solves_its_equation():
    """`||u|| = lam` and `u = lam e / ||e||` where something is left, `||u|| <= lam` where not."""
    X, D, sol = fitted("l21", "data", "dft")
    rng = np.random.default_rng(0)
    new = np.concatenate([X[:3], 1e-4 * rng.standard_normal((3, N1, N3)), 1e3 * X[3:5]])
    out = extend(sol, "l21", new)
    _, C = small_problem(X, D, sol, "dft")
    K = C @ C.T
    for j in range(len(new)):
        e = oracles._unfold(to_paper(out.E[j : j + 1]))[:, 0]
        explained = oracles._unfold(to_paper(out.L[j : j + 1]))[:, 0]
        u = sol.lam * e / np.linalg.norm(e)
        np.testing.assert_allclose(K @ u, explained, atol=1e-6 * np.abs(K).max() * sol.lam)


# ---- samples do not know of each other ----------------------------------------------------------


@each_transform
@pytest.mark.parametrize("kind", ["data", "identity", "array"])
def test_whole_sample_noise_on_complete_data_is_exact_for_each_sample(kind, name):
    X, _, sol = fitted("l21", kind, name)
    rng = np.random.default_rng(0)
    new = np.concatenate([X, rng.standard_normal((6, N1, N3)), np.zeros((1, N1, N3))])
    whole = extend(sol, "l21", new)
    order = rng.permutation(len(new))
    for part in (order, order[:5], [3], [len(new) - 1]):
        some = extend(sol, "l21", new[part])
        close(some.L, whole.L[part], 1e-12)
        np.testing.assert_allclose(some.E, whole.E[part], atol=1e-12 * np.abs(new).max())
        if whole.core is not None:
            close(some.core, whole.core[..., part], 1e-12)


@pytest.mark.parametrize(("noise", "missing"), [("l21", True), ("l1", False), ("exact", True)])
def test_iterations_agree_to_their_tolerance(noise, missing, monkeypatch):
    kind = "identity" if noise == "exact" else "data"
    X, _, sol = fitted(noise, kind, "dft", missing=missing)
    tol = 10 * TIGHT[noise]
    whole = extend(sol, noise, X, tol=tol)
    monkeypatch.setattr(extension, "BLOCK", 8)
    parts = extend(sol, noise, X, tol=tol)
    close(parts.L, whole.L, 1e-4)
    order = np.random.default_rng(0).permutation(len(X))
    close(extend(sol, noise, X[order], tol=tol).L, whole.L[order], 1e-4)


def test_more_samples_than_a_block():
    X, _, sol = fitted("l21", "data", "dft")
    copies = 2 * extension.BLOCK // len(X) + 1
    out = extend(sol, "l21", np.tile(X, (copies, 1, 1)))
    one = extend(sol, "l21", X)
    close(out.L, np.tile(one.L, (copies, 1, 1)), 1e-13)
    close(out.core, np.tile(one.core, (1, 1, copies)), 1e-13)


@each_row
def test_a_mask_that_hides_nothing(noise, kind):
    X, _, sol = fitted(noise, kind, "dft")
    new = np.nan_to_num(X)
    plain = extend(sol, noise, Samples(new, None, False))
    masked = extend(sol, noise, Samples(new, np.ones(new.shape, bool), False))
    close(masked.L, plain.L, 1e-13)
    np.testing.assert_allclose(masked.E, plain.E, atol=1e-13 * np.abs(new).max())


@each_row
@pytest.mark.parametrize("missing", [False, True])
def test_zero_samples(noise, kind, missing):
    X, _, sol = fitted(noise, kind, "dft")
    new = np.concatenate([np.zeros((1, N1, N3)), np.nan_to_num(X[:2])])
    seen = np.random.default_rng(0).random(new.shape) > (0.3 if missing else -1)
    out = extend(sol, noise, Samples(np.where(seen, new, 0), seen, False))
    assert not out.L[0].any()
    assert not out.E[0].any()
    assert np.abs(out.L[1:]).max() > 0
    if out.core is not None:
        assert not out.core[:, :, 0].any()


@each_transform
@pytest.mark.parametrize("kind", ["data", "identity", "array"])
def test_samples_in_the_range_are_explained_exactly_when_they_are_small(kind, name):
    """`y = K u` with `||u|| <= lam`: the optimum is y itself; a large multiple of it is not."""
    X, D, sol = fitted("l21", kind, name)
    _, C = small_problem(X, D, sol, name)
    u = np.random.default_rng(0).standard_normal(N1 * N3)
    y = C @ (C.T @ u)
    y *= 0.5 * sol.lam / np.linalg.norm(np.linalg.pinv(C @ C.T, rcond=1e-8) @ y)
    new = np.stack([np.moveaxis(oracles._fold(c * y[:, None], N3), 1, 0)[0] for c in (1, 100)])
    out = extend(sol, "l21", new)
    np.testing.assert_allclose(out.E[0], 0, atol=1e-9 * np.abs(new[0]).max())
    assert np.linalg.norm(out.E[1]) > 0.01 * np.linalg.norm(new[1])


@pytest.mark.parametrize(
    ("noise", "kind", "t"),
    [*itertools.product(["l21"], ["data", "identity"], [0.5, 0.9]), ("l1", "data", 0.5)],
)
def test_float32(noise, kind, t):
    """The same answers to single precision, also where the residual is zero."""
    X, _, sol = fitted(noise, kind, "dft", t=t)
    single = X.astype(np.float32)
    other = solve(single, dictionary=kind, noise=noise, lam=sol.lam, tol=1e-5)
    out = extend(other, noise, single)
    assert out.L.dtype == out.E.dtype == np.float32
    close(out.L, sol.L, 1e-3)
    if t == 0.9:
        close(out.L, sol.L, 3e-5)


def test_input_is_left_alone():
    X, _, sol = fitted("l1", "data", "dct", missing=True)
    samples = read(X)
    before = samples.values.copy(), samples.observed.copy()
    extend(sol, "l1", samples)
    np.testing.assert_array_equal(samples.values, before[0])
    np.testing.assert_array_equal(samples.observed, before[1])


class Tubes(noises.Noise):
    """A noise of a user's own: the sum of the norms of all tubes."""

    name = "tubes"

    def value(self, E):
        return float(np.linalg.norm(E, axis=0).sum())

    def project(self, G, radius):
        size = np.linalg.norm(G, axis=0)
        return G * np.minimum(1, radius / np.maximum(size, 1e-300))

    def dual_norm(self, Y):
        return float(np.linalg.norm(Y, axis=0).max())


@pytest.mark.parametrize("kind", ["data", "identity"])
def test_a_noise_of_ones_own_is_solved_as_far_as_any_other(kind):
    # With tubes of length 1 it is the l1 norm: the gap at which it stops is as small.
    X, _, sol = fitted("l1", kind, "dft", shape=(8, 1, 40))
    new = X[::-1] + 0.02
    close(extend(sol, Tubes(), new).L, extend(sol, "l1", new).L, 2e-3)
