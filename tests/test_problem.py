"""What is said about lam before solving, against certificates and a conic solver."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import oracles
from tubal import noise as noises
from tubal.input import read
from tubal.problem import Lambda, Problem, resolve_lam, suggested_rank
from tubal.reduction import reduce
from tubal.transforms import resolve

TRANSFORMS = {
    "dft": naive.dft_matrix,
    "dct": naive.dct_matrix,
    "rom": lambda n3: naive.random_orthogonal(n3, seed=0),
}
NOISES = {"l21": naive.norm_l21, "l1": naive.norm_l1}
DICTIONARIES = ("data", "identity", "array")

each_transform = pytest.mark.parametrize("name", TRANSFORMS)
each_noise = pytest.mark.parametrize("noise", NOISES)
each_dictionary = pytest.mark.parametrize("kind", DICTIONARIES)

cases = st.fixed_dictionaries(
    {
        "name": st.sampled_from(list(TRANSFORMS)),
        "kind": st.sampled_from(DICTIONARIES),
        "noise": st.sampled_from(list(NOISES)),
        "n1": st.integers(1, 4),
        "n2": st.integers(2, 6),
        "n3": st.sampled_from([1, 2, 3, 4]),
        "seed": st.integers(0, 99),
    }
)


def samples(A, **options):
    """Samples of a tensor in the paper's layout."""
    return read(np.moveaxis(A, 1, 0), min_samples=1, **options)


def make(X, D="data", noise="l21", transform="dft", **options):
    """Return the problem of tensors in the paper's layout."""
    data = samples(X, **options)
    dictionary = D if isinstance(D, str) else samples(D, **options)
    L = resolve(transform, X.shape[2])
    return Problem(data, reduce(data, L, dictionary), noises.resolve(noise))


def instance(kind, noise, name, shape=(3, 4, 3), seed=2, rank=None):
    """Return a problem, and what the oracles need: X, D and the matrix L.

    An array dictionary explains every sample.
    """
    rng, (n1, n2, n3) = np.random.default_rng(seed), shape
    L = TRANSFORMS[name](n3)
    X = rng.standard_normal(shape)
    if rank is not None:
        X = naive.tprod(rng.standard_normal((n1, rank, n3)), rng.standard_normal((rank, n2, n3)), L)
    D = rng.standard_normal((n1, n1 + 2, n3)) if kind == "array" else kind
    p = make(X, D, noise, L if name == "rom" else name)
    return p, X, {"data": X, "identity": "identity", "array": D}[kind], L


def sign(X, noise):
    """Subgradient of the noise at X without zeros."""
    return np.sign(X) if noise == "l1" else X / naive.column_norms(X)[None, :, None]


def pulled(D, Y, L):
    """``D^H * Y``."""
    return Y if isinstance(D, str) else naive.tprod(naive.transpose(D, L), Y, L)


def pinv(D, L):
    """Pseudo-inverse that takes singular values at the level of rounding for zero."""
    hat = naive.forward(D, L)
    return naive.inverse(naive.slicewise(lambda d: np.linalg.pinv(d, rcond=1e-9), hat), L)


def representation(X, D, L):
    """Coefficients of least nuclear norm that explain X without noise."""
    return X if isinstance(D, str) else naive.tprod(pinv(D, L), X, L)


def polar(Z, L):
    """``U * V^H`` of the skinny t-SVD, slice by slice."""

    def one(slice_):
        u, s, vh = np.linalg.svd(slice_, full_matrices=False)
        kept = s > 1e-9 * s[0]
        return u[:, kept] @ vh[kept]

    return naive.inverse(naive.slicewise(one, naive.forward(Z, L)), L)


def close(A, B, tol=1e-9):
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


def same(A, B, tol=1e-9):
    """Numbers of any size that agree in their digits."""
    np.testing.assert_allclose(A, B, rtol=tol)


# ---- lam_min ------------------------------------------------------------------------------------


@each_transform
@each_dictionary
@each_noise
def test_lam_min_is_where_coefficients_start(noise, kind, name):
    """Below it Z = 0 is optimal for the conic solver, above it is not."""
    p, X, D, L = instance(kind, noise, name)
    g = NOISES[noise](X)
    below, above = 0.98 * p.lam_min(), 1.1 * p.lam_min()
    value, Z = oracles.optimal_value(X, D, noise, L, below)
    same(value, below * g, 1e-7)
    close(Z, 0, 1e-5)
    value, _ = oracles.optimal_value(X, D, noise, L, above)
    assert value < above * g * (1 - 1e-5)


@given(cases)
def test_lam_min_equals_its_naive_formula(case):
    """`Y = lam sign(X)` is the only multiplier of Z = 0, and `||D^H Y|| = 1` at lam_min."""
    kind, noise, n1 = case["kind"], case["noise"], case["n1"]
    # The rule for entries and the identity is that of data of full row rank.
    n2 = max(case["n2"], n1) if (kind, noise) == ("identity", "l1") else case["n2"]
    p, X, D, L = instance(kind, noise, case["name"], (n1, n2, case["n3"]), case["seed"])
    lam = p.lam_min()
    same(lam, 1 / naive.spectral_norm(pulled(D, sign(X, noise), L), L))
    value, violation = oracles.dual_value_and_violation(X, D, lam * sign(X, noise), noise, L, lam)
    same(value, lam * NOISES[noise](X))
    assert violation <= 1e-9


@each_transform
@pytest.mark.parametrize("noise", NOISES)
def test_lam_min_for_a_dictionary_that_can_not_explain_everything(noise, name):
    rng, L = np.random.default_rng(2), TRANSFORMS[name](3)
    X, D = rng.standard_normal((4, 5, 3)), rng.standard_normal((4, 2, 3))
    p = make(X, D, noise, L if name == "rom" else name)
    if noise == "l21":
        assert p.reduction.offset.min() > 0.1
    same(p.lam_min(), 1 / naive.spectral_norm(pulled(D, sign(X, noise), L), L))
    g, lam = NOISES[noise](X), p.lam_min()
    same(oracles.optimal_value(X, D, noise, L, 0.98 * lam)[0], 0.98 * lam * g, 1e-7)
    assert oracles.optimal_value(X, D, noise, L, 1.1 * lam)[0] < 1.1 * lam * g * (1 - 1e-5)


@each_noise
@pytest.mark.parametrize("kind", ["data", "identity"])
def test_lam_min_with_missing_entries(noise, kind):
    """The multiplier is zero where nothing is observed."""
    rng, L = np.random.default_rng(4), naive.dct_matrix(3)
    X = rng.standard_normal((3, 5, 3))
    observed = rng.random(X.shape) > 0.3
    filled = np.where(observed, X, 0.0)
    p = make(np.where(observed, X, np.nan), kind, noise, "dct")
    D = filled if kind == "data" else kind
    same(p.lam_min(), 1 / naive.spectral_norm(pulled(D, sign(filled, noise), L), L))
    g, lam = NOISES[noise](filled), p.lam_min()
    low = oracles.optimal_value(X, D, noise, L, 0.98 * lam, observed)[0]
    same(low, 0.98 * lam * g, 1e-7)
    high = oracles.optimal_value(X, D, noise, L, 1.1 * lam, observed)[0]
    assert high < 1.1 * lam * g * (1 - 1e-5)


def test_lam_min_and_lam_max_by_hand():
    """One slice `diag(3, 2)`: samples e1, e2 of norms 3 and 2."""
    X = np.diag([3.0, 2.0])[:, :, None]
    for noise in NOISES:
        close(make(X, noise=noise).lam_min(), 1 / 3)
        close(make(X, noise=noise).lam_max(), 1 / 2)
        close(make(X, "identity", noise).lam_min(), 1.0)
        close(make(X, "identity", noise).lam_max(), 1.0)
        array = make(X, np.diag([5.0, 4.0])[:, :, None], noise)
        close((array.lam_min(), array.lam_max()), (1 / 5, 1 / 4))


def test_samples_of_zeros_do_not_matter():
    X = np.random.default_rng(0).standard_normal((3, 5, 4))
    longer = np.concatenate([X, np.zeros((3, 2, 4))], axis=1)
    for kind in ("data", "identity"):
        for noise in NOISES:
            p, q = make(X, kind, noise), make(longer, kind, noise)
            same((p.lam_min(), p.lam_max()), (q.lam_min(), q.lam_max()))


# ---- lam_max ------------------------------------------------------------------------------------


@each_transform
@each_dictionary
@each_noise
def test_lam_max_is_where_noise_ends(noise, kind, name):
    """Above it everything is explained, below it is not (for slices of full row rank)."""
    p, X, D, L = instance(kind, noise, name)
    exact = naive.nuclear_norm(representation(X, D, L), L)
    value, Z = oracles.optimal_value(X, D, noise, L, 1.02 * p.lam_max())
    same(value, exact, 1e-7)
    close(oracles.residual(X, D, Z, L), 0, 1e-5)
    value, _ = oracles.optimal_value(X, D, noise, L, 0.9 * p.lam_max())
    assert value < exact * (1 - 1e-6)


@given(cases, st.integers(1, 3))
def test_lam_max_is_certified(case, rank):
    """Its multiplier is feasible and as large as the nuclear norm, for data of any rank."""
    kind, noise = case["kind"], case["noise"]
    shape = tuple(case[key] for key in ("n1", "n2", "n3"))
    p, X, D, L = instance(kind, noise, case["name"], shape, case["seed"], rank)
    Z = representation(X, D, L)
    P = polar(Z, L)
    Y = P if kind == "identity" else naive.tprod(naive.transpose(pinv(D, L), L), P, L)
    lam = p.lam_max()
    same(lam, oracles.DUAL_NORM[noise](Y), 1e-6)
    value, violation = oracles.dual_value_and_violation(X, D, Y, noise, L, lam)
    same(value, naive.nuclear_norm(Z, L), 1e-6)
    assert violation <= 1e-6


@pytest.mark.parametrize("name", ["dft", "dct"])
def test_lam_max_of_rank_deficient_data(name):
    """Whole samples: for the data as dictionary the threshold is exact also then."""
    p, X, D, L = instance("data", "l21", name, (4, 5, 3), seed=1, rank=2)
    exact = naive.nuclear_norm(representation(X, D, L), L)
    same(oracles.optimal_value(X, D, "l21", L, 1.02 * p.lam_max())[0], exact, 1e-7)
    assert oracles.optimal_value(X, D, "l21", L, 0.9 * p.lam_max())[0] < exact * (1 - 1e-6)


@each_transform
def test_lam_max_of_design(name):
    """`max_j sqrt(sum_k omega_k ||S_k^-1 V_k^H[:, j]||^2)`, from a naive pseudo-inverse."""
    p, X, _, L = instance("data", "l21", name, (4, 6, 4), seed=3)
    rows = naive.transpose(pinv(X, L), L)
    same(p.lam_max(), naive.column_norms(rows).max())


# ---- rules --------------------------------------------------------------------------------------


@each_dictionary
@each_transform
@pytest.mark.parametrize("shape", [(3, 7, 4), (7, 3, 4), (2, 2, 1)])
def test_paper_rule(shape, name, kind):
    p, X, _, L = instance(kind, "l21", name, shape, seed=5)
    same(p.spectral_norm(), naive.spectral_norm(X, L))
    for alpha in (0.5, 1, 10):
        expected = alpha / (np.sqrt(np.log(max(shape[:2]))) * naive.spectral_norm(X, L))
        same(Lambda.paper(alpha).of(p), expected)


def test_paper_rule_reads_missing_entries_as_zeros():
    X = np.random.default_rng(0).standard_normal((3, 5, 4))
    holes = X.copy()
    holes[0, 1, 2] = holes[2, 4, 0] = np.nan
    filled = np.nan_to_num(holes)
    expected = 2 / np.sqrt(np.log(5)) / naive.spectral_norm(filled, naive.dft_matrix(4))
    same(Lambda.paper(2).of(make(holes)), expected)


def test_paper_rule_by_hand():
    X = np.array([[[6.0], [0.0]], [[0.0], [8.0]]])
    same(Lambda.paper(3).of(make(X)), 3 / (np.sqrt(np.log(2)) * 8))


@each_noise
@each_dictionary
def test_relative_rule(kind, noise):
    p, _, _, _ = instance(kind, noise, "dft", seed=6)
    low, high = p.lam_min(), p.lam_max()
    assert low < high
    same(Lambda.relative(0).of(p), low)
    same(Lambda.relative(1).of(p), high)
    same(Lambda.relative(0.5).of(p), np.sqrt(low * high))
    same(Lambda.relative(0.25).of(p), low**0.75 * high**0.25)
    same(Lambda.relative(2).of(p) * low, high**2)
    positions = [Lambda.relative(t).of(p) for t in np.linspace(-0.5, 1.5, 9)]
    assert np.all(np.diff(positions) > 0)
    same(np.diff(np.log(positions)), np.log(high / low) / 4)


def shrinkage(X, kind, L, theta):
    """Minimiser of `||Z||_* + ||X - D Z||^2 / (2 theta)`, slice by slice, and its factors."""
    factors = []

    def one(slice_):
        u, s, vh = np.linalg.svd(slice_, full_matrices=False)
        factors.append(np.clip(1 - theta / (s if kind == "identity" else s**2), 0, None))
        left = u * s if kind == "identity" else vh.conj().T
        return left * factors[-1] @ vh

    Z = naive.inverse(naive.slicewise(one, naive.forward(X, L)), L)
    return Z, np.array(factors)


def typical(R, noise):
    """Harmonic mean of the sample norms; 0.8 of the root mean square entry."""
    norms = naive.column_norms(R)
    return len(norms) / np.sum(1 / norms) if noise == "l21" else 0.8 * np.sqrt(np.mean(R**2))


@each_transform
@each_noise
@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("n3", [1, 3, 4])
def test_effective_rank(n3, kind, noise, name):
    """theta gives the quadratic program's solution this rank; lam is its residual over theta."""
    p, X, D, L = instance(kind, noise, name, (4, 6, n3), seed=7)
    for rank in (0.3, 1, 2.5, 3.9):
        theta = p.theta_of_rank(rank)
        Z, factors = shrinkage(X, kind, L, theta)
        R = oracles.residual(X, D, Z, L)
        # The closed form is the solution: D^H R / theta is a subgradient of the nuclear norm at Z.
        W = pulled(D, R, L) / theta
        assert naive.spectral_norm(W, L) <= 1 + 1e-9
        same(naive.inner(W, Z), naive.nuclear_norm(Z, L))
        # Its factors add up to the rank, averaged over slices ...
        same(factors.sum() / n3, rank)
        if kind == "data":  # ... which then is the nuclear norm
            same(naive.nuclear_norm(Z, L) * naive.scale(L) / n3, rank)
        same(p.typical()(theta), typical(R, noise))
        same(Lambda.effective_rank(rank).of(p), typical(R, noise) / theta)


def test_effective_rank_by_hand():
    """Singular values 2 and 1: rank 1 is `2 - theta / 4 - theta`, so theta = 0.8."""
    X = np.array([[[2.0], [0.0]], [[0.0], [1.0]]])
    p = make(X)
    close(p.theta_of_rank(1), 0.8)
    close(p.typical()(0.8), 2 / (1 / 0.4 + 1 / 0.8))  # residuals 2 * 0.8 / 4 and 0.8
    close(Lambda.effective_rank(1).of(p), 2 / (1 / 0.4 + 1 / 0.8) / 0.8)
    # Only the larger direction is explained at rank 1/4: theta = 3.
    close(p.theta_of_rank(0.25), 3.0)
    close(Lambda.effective_rank(0.25).of(p), 2 / (1 / 1.5 + 1 / 1) / 3)


def test_effective_rank_with_missing_entries():
    """Zeros fill the holes; for entries the mean is over what is observed."""
    rng, L = np.random.default_rng(8), naive.dct_matrix(3)
    X = rng.standard_normal((4, 6, 3))
    observed = rng.random(X.shape) > 0.3
    filled = np.where(observed, X, 0.0)
    for noise in NOISES:
        p = make(np.where(observed, X, np.nan), "data", noise, "dct")
        theta = p.theta_of_rank(2)
        R = filled - naive.tprod(filled, shrinkage(filled, "data", L, theta)[0], L)
        size = typical(R, noise)
        if noise == "l1":
            size *= np.sqrt(X.size / observed.sum())
        same(Lambda.effective_rank(2).of(p), size / theta)


def test_typical_residual_of_an_array_dictionary():
    """Residuals of the directions it has are shrunk by its spectrum, the rest of a sample stays."""
    rng, L = np.random.default_rng(9), naive.dct_matrix(3)
    X, D = rng.standard_normal((4, 6, 3)), rng.standard_normal((4, 2, 3))
    p = make(X, D, "l21", "dct")
    for theta in (0.1, 1.0, 10.0):
        R = []
        for k in range(3):
            u, s, _ = np.linalg.svd(naive.forward(D, L)[:, :, k], full_matrices=False)
            x = naive.forward(X, L)[:, :, k]
            coordinates = u.T @ x
            level = s * np.linalg.norm(coordinates, axis=1)
            R.append(x - u @ (np.clip(1 - theta / level, 0, None)[:, None] * coordinates))
        same(p.typical()(theta), typical(naive.inverse(np.stack(R, axis=2), L), "l21"))


@each_noise
@each_dictionary
def test_effective_rank_rises_with_lam(kind, noise):
    """Strictly as long as some direction is not explained at all, and never falling."""
    p, _, _, _ = instance(kind, noise, "dft", (4, 7, 3), seed=8)
    ranks = np.linspace(0.2, 3.8, 19)
    thetas = np.array([p.theta_of_rank(rank) for rank in ranks])
    assert np.all(np.diff(thetas) < 0)
    lams = np.array([Lambda.effective_rank(rank).of(p) for rank in ranks])
    partial = thetas > p.curvature.min()
    assert partial.sum() > 5
    assert np.all(np.diff(lams[partial]) > 0)
    same(lams[~partial], lams[-1])


@each_noise
@pytest.mark.parametrize("kind", ["data", "identity"])
def test_theta_of_lam_undoes_typical_over_theta(kind, noise):
    p, _, _, _ = instance(kind, noise, "dft", (4, 7, 3), seed=8)
    for rank in (0.3, 0.8, 1.2):
        theta = p.theta_of_rank(rank)
        assert theta > p.curvature.min()
        same(p.theta_of_lam(p.typical()(theta) / theta), theta)
    # Beyond the range of the spectrum the ends are returned.
    same(p.theta_of_lam(1e-12), p.curvature.max())
    assert p.theta_of_lam(1e12) < p.curvature.min()


def test_curvature_is_where_directions_start():
    X = np.random.default_rng(0).standard_normal((3, 5, 4))
    L = naive.dct_matrix(4)
    s = np.array([np.linalg.svd(naive.forward(X, L)[:, :, k], compute_uv=False) for k in range(4)])
    close(make(X, "data", transform="dct").curvature, s**2)
    close(make(X, "identity", transform="dct").curvature, s)


# ---- invariances --------------------------------------------------------------------------------


def rules(p):
    """Every number that a rule gives, without the paper's."""
    numbers = [Lambda.relative(t).of(p) for t in (0, 0.3, 1)]
    return np.array([*numbers, Lambda.effective_rank(1.5).of(p)])


@each_noise
@pytest.mark.parametrize("factor", [1e-6, 0.3, 2.0, 1e6])
def test_scale_of_the_data(factor, noise):
    """`lam(c X) = lam(X) / c` when the data is its own dictionary; else lam has no units."""
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((3, 6, 4)), rng.standard_normal((3, 5, 4))
    same(rules(make(factor * X, "data", noise)), rules(make(X, "data", noise)) / factor, 1e-8)
    same(rules(make(factor * X, "identity", noise)), rules(make(X, "identity", noise)), 1e-8)
    expected = rules(make(X, D, noise))
    same(rules(make(factor * X, D, noise)), expected, 1e-8)
    same(rules(make(X, factor * D, noise)), expected / factor, 1e-8)
    same(Lambda.paper(1).of(make(factor * X)), Lambda.paper(1).of(make(X)) / factor)


@pytest.mark.parametrize("rule", [Lambda.relative(0.5), Lambda.effective_rank(1.5)], ids=repr)
def test_scale_of_the_data_leaves_the_optimum(rule):
    X, L = np.random.default_rng(1).standard_normal((3, 4, 3)), naive.dft_matrix(3)
    value, Z = oracles.optimal_value(X, X, "l21", L, rule.of(make(X)))
    scaled, scaled_Z = oracles.optimal_value(5 * X, 5 * X, "l21", L, rule.of(make(5 * X)))
    same(scaled, value, 1e-7)
    close(scaled_Z, Z, 1e-3)
    assert 0.01 < np.abs(Z).max()


@each_noise
@each_dictionary
@pytest.mark.parametrize("n3", [3, 4])
def test_dft_and_its_normalised_matrix(n3, kind, noise):
    """With `F = L / sqrt(n3)` lam is n3 times as large, sqrt(n3) times for the identity."""
    rng = np.random.default_rng(2)
    X, D = rng.standard_normal((3, 6, n3)), rng.standard_normal((3, 5, n3))
    D = D if kind == "array" else kind
    unitary = naive.dft_matrix(n3) / np.sqrt(n3)
    p, q = make(X, D, noise), make(X, D, noise, unitary)
    assert (p.reduction.shape[0], q.reduction.shape[0]) == (n3 // 2 + 1, n3)
    factor = np.sqrt(n3) if kind == "identity" else n3
    same(rules(q), rules(p) * factor)
    # The paper's rule only sees the spectral norm: hence its larger alpha when tau = 1.
    same(Lambda.paper(1).of(q), Lambda.paper(1).of(p) * np.sqrt(n3))


def test_dft_and_its_normalised_matrix_have_one_optimum():
    X, rule = np.random.default_rng(3).standard_normal((3, 4, 3)), Lambda.relative(0.4)
    L = naive.dft_matrix(3)
    unitary = L / np.sqrt(3)
    value, Z = oracles.optimal_value(X, X, "l21", L, rule.of(make(X)))
    lam = rule.of(make(X, transform=unitary))
    other, other_Z = oracles.optimal_value(X, X, "l21", unitary, lam)
    same(other, 3 * value, 1e-7)
    close(naive.tprod(X, other_Z, unitary), naive.tprod(X, Z, L), 1e-3)


@each_noise
@each_dictionary
def test_scale_of_the_transform(kind, noise):
    """A matrix c Q counts as Q up to c^2 (c for the identity)."""
    rng, Q, c = np.random.default_rng(4), naive.random_orthogonal(4, seed=1), 3.0
    X, D = rng.standard_normal((3, 6, 4)), rng.standard_normal((3, 5, 4))
    D = D if kind == "array" else kind
    factor = c if kind == "identity" else c**2
    same(rules(make(X, D, noise, Q)), rules(make(X, D, noise, c * Q)) * factor)


@each_noise
@each_transform
def test_order_of_the_samples_does_not_matter(name, noise):
    p, X, _, L = instance("data", noise, name, (3, 6, 4), seed=9)
    order = np.random.default_rng(0).permutation(6)
    q = make(X[:, order], "data", noise, L if name == "rom" else name)
    same(rules(q), rules(p))


@each_transform
@pytest.mark.parametrize("kind", ["data", "identity"])
def test_rotations_of_samples_do_not_matter(name, kind):
    """`Q * X` with an orthogonal tensor Q has the same singular tubes and sample norms."""
    p, X, _, L = instance(kind, "l21", name, (3, 6, 4), seed=10)
    Q = naive.tsvd_skinny(np.random.default_rng(1).standard_normal((3, 3, 4)), L)[0]
    q = make(naive.tprod(Q, X, L), kind, "l21", L if name == "rom" else name)
    same(rules(q), rules(p))
    same(Lambda.paper(1).of(q), Lambda.paper(1).of(p))


def test_the_data_as_an_array_is_the_data():
    X = np.random.default_rng(5).standard_normal((3, 6, 4))
    for noise in NOISES:
        same(rules(make(X, X.copy(), noise)), rules(make(X, "data", noise)))


@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("name", ["dft", "dct"])
def test_several_axes_are_one_longer_tube(name, kind):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((6, 3, 2, 3))
    L = resolve(name, (2, 3))
    p = Problem(read(X), reduce(read(X), L, kind), noises.resolve("l21"))
    flat = np.moveaxis(X.reshape(6, 3, 6), 1, 0)
    D = flat if kind == "data" else kind
    same(p.lam_min(), 1 / naive.spectral_norm(pulled(D, sign(flat, "l21"), L.matrix), L.matrix))
    same(p.spectral_norm(), naive.spectral_norm(flat, L.matrix))
    same(rules(p), rules(make(flat, kind, transform=L.matrix)))


@each_noise
@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("name", ["dft", "dct"])
def test_float32_gives_the_same_numbers(name, kind, noise):
    X = np.random.default_rng(7).standard_normal((3, 6, 4))
    single, double = (make(X, kind, noise, name, dtype=dtype) for dtype in ("float32", None))
    assert single.reduction.s.dtype == np.float32
    same(rules(single), rules(double), 1e-4)
    same(Lambda.paper(1).of(single), Lambda.paper(1).of(double), 1e-5)


@each_noise
@each_dictionary
@pytest.mark.parametrize("name", ["dft", "dct"])
def test_array_api_arrays(name, kind, noise):
    rng = np.random.default_rng(8)
    X, D = rng.standard_normal((6, 3, 4)), rng.standard_normal((5, 3, 4))
    L = resolve(name, 4)
    p, q = (
        Problem(
            read(asarray(X)),
            reduce(read(asarray(X)), L, read(asarray(D)) if kind == "array" else kind),
            noises.resolve(noise),
        )
        for asarray in (np.asarray, strict.asarray)
    )
    assert isinstance(q.reduction.x, type(strict.asarray(X)))
    same(rules(q), rules(p))
    same(Lambda.paper(1).of(q), Lambda.paper(1).of(p))


def test_noise_is_in_coordinates_for_whole_samples_of_complete_data():
    X = np.random.default_rng(0).standard_normal((3, 5, 4))
    holes = X.copy()
    holes[0, 0, 0] = np.nan
    assert make(X).in_coordinates
    assert not make(X, noise="l1").in_coordinates
    assert not make(holes).in_coordinates


# ---- what a user may pass -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    return make(np.random.default_rng(0).standard_normal((3, 5, 4)))


def test_resolve_lam_takes_numbers_and_rules(small):
    for number in (0.5, 2, np.float32(0.5), np.int64(3), np.array(0.25)):
        lam = resolve_lam(number, small)
        assert type(lam) is float
        assert lam == number
    for rule in (Lambda.paper(2), Lambda.relative(0.5), Lambda.effective_rank(1)):
        assert resolve_lam(rule, small) == rule.of(small)


def test_rules_show_themselves():
    assert repr(Lambda.paper(2)) == "Lambda.paper(2.0)"
    assert repr(Lambda.relative(-0.5)) == "Lambda.relative(-0.5)"
    assert repr(Lambda.effective_rank(1.5)) == "Lambda.effective_rank(1.5)"
    assert Lambda.paper(2) == Lambda.paper(2.0) != Lambda.paper(3)
    with pytest.raises(AttributeError):
        Lambda.paper(2).parameter = 3


@pytest.mark.parametrize("bad", [0, -1, -1e-300, 0.0, np.float64(-2)])
def test_lam_must_be_positive(bad, small):
    with pytest.raises(ValueError, match=r"lam must be positive, got .*(0|-)"):
        resolve_lam(bad, small)


@pytest.mark.parametrize(
    "bad", [np.nan, np.inf, -np.inf, "0.1", "paper", None, True, False, 1j, [0.1, 0.2], {}]
)
def test_lam_must_be_a_finite_number(bad, small):
    with pytest.raises(ValueError, match="lam must be a finite number, got"):
        resolve_lam(bad, small)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda: Lambda.paper(0), "alpha must be positive, got 0"),
        (lambda: Lambda.paper(-2.0), "alpha must be positive, got -2.0"),
        (lambda: Lambda.paper("1"), "alpha must be a finite number, got '1'"),
        (lambda: Lambda.paper(True), "alpha must be a finite number, got True"),
        (lambda: Lambda.paper(np.nan), "alpha must be a finite number, got nan"),
        (lambda: Lambda.relative(np.nan), "t must be a finite number, got nan"),
        (lambda: Lambda.relative(np.inf), "t must be a finite number, got inf"),
        (lambda: Lambda.relative("half"), "t must be a finite number, got 'half'"),
        (lambda: Lambda.relative(None), "t must be a finite number, got None"),
        (lambda: Lambda.effective_rank(0), "rank must be positive, got 0"),
        (lambda: Lambda.effective_rank(-3), "rank must be positive, got -3"),
        (lambda: Lambda.effective_rank(False), "rank must be a finite number, got False"),
    ],
)
def test_bad_rules_are_named(rule, message):
    with pytest.raises(ValueError, match=message):
        rule()


@pytest.mark.parametrize("rank", [3, 3.5, 100])
def test_effective_rank_must_be_below_that_of_the_data(rank, small):
    with pytest.raises(ValueError, match=f"rank below that of the data, 3 on .*got {float(rank)}"):
        resolve_lam(Lambda.effective_rank(rank), small)


def test_effective_rank_of_data_of_low_rank():
    p, _, _, _ = instance("data", "l21", "dft", (5, 6, 3), rank=2)
    assert resolve_lam(Lambda.effective_rank(1.9), p) > 0
    with pytest.raises(ValueError, match=r"rank below that of the data, 2 on .*got 2\.0"):
        resolve_lam(Lambda.effective_rank(2), p)


def test_paper_rule_needs_a_logarithm():
    p = make(np.ones((1, 1, 3)))
    with pytest.raises(ValueError, match=r"needs max\(n1, n2\) of at least 2"):
        resolve_lam(Lambda.paper(1), p)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_rule_that_gives_nothing_usable_is_named(value, small):
    rule = Lambda("mine", 7.0, lambda problem, parameter: value)
    with pytest.raises(ValueError, match=rf"Lambda\.mine\(7\.0\) gives lam = {value}"):
        resolve_lam(rule, small)


def test_effective_rank_is_limited_by_the_average_rank_of_the_slices():
    """Slices of ranks 5, 1, 1 (weights 1, 2, 1): a rank of 4 cannot be reached."""
    rng = np.random.default_rng(0)
    hat = np.zeros((3, 5, 8), dtype=complex)
    hat[0] = rng.standard_normal((5, 8))
    for k in (1, 2):
        hat[k] = np.outer(rng.standard_normal(5), rng.standard_normal(8))
    X = np.moveaxis(np.fft.irfft(hat, n=4, axis=0), 0, -1)
    with pytest.raises(ValueError, match="2 on the average over slices, got 4"):
        Lambda.effective_rank(4).of(make(X))


def test_lam_min_of_entries_with_data_of_low_rank():
    """The signs of rank-one data are not in its range."""
    rng, L = np.random.default_rng(3), naive.dft_matrix(3)
    X = naive.tprod(rng.standard_normal((4, 1, 3)), rng.standard_normal((1, 6, 3)), L).real
    lam = make(X, "identity", "l1").lam_min()
    close(lam, 1 / naive.spectral_norm(np.sign(X), L))
    value, _ = oracles.optimal_value(X, "identity", "l1", L, 0.99 * lam)
    close(value, 0.99 * lam * np.abs(X).sum(), 1e-6)


# ---- rules by name of the noise, and the automatic one ------------------------------------------


def spectrum(*slices, n2=8, seed=0, transform="dct"):
    """Return a problem whose slices have exactly these singular values (weights 1)."""
    rng, n1 = np.random.default_rng(seed), max(map(len, slices))
    L = {"dct": naive.dct_matrix, "none": np.eye}[transform](len(slices))
    hat = np.zeros((n1, n2, len(slices)))
    for k, values in enumerate(slices):
        u = np.linalg.qr(rng.standard_normal((n1, n1)))[0][:, : len(values)]
        v = np.linalg.qr(rng.standard_normal((n2, n2)))[0][:, : len(values)]
        hat[:, :, k] = u * values @ v.T
    return make(naive.inverse(hat, L), transform=transform)


@each_noise
@each_dictionary
@pytest.mark.parametrize("shape", [(3, 7, 4), (9, 3, 4), (5, 5, 1)])
def test_entries_rule(shape, kind, noise):
    """`1 / sqrt(n3 max(n1, n2))` for the DFT (Lu et al.), without n3 for orthonormal matrices."""
    n1, n2, n3 = shape
    for name, tau in (("dft", n3), ("dct", 1), ("rom", 1)):
        p, _, _, _ = instance(kind, noise, name, shape)
        same(Lambda.entries().of(p), 1 / np.sqrt(tau * max(n1, n2)))
        same(Lambda.entries(2.5).of(p), 2.5 / np.sqrt(tau * max(n1, n2)))
    scaled = make(np.ones(shape), kind if kind != "array" else "data", noise, 3 * np.eye(n3))
    same(Lambda.entries().of(scaled), 1 / np.sqrt(9 * max(n1, n2)))


def test_entries_rule_by_hand():
    same(Lambda.entries().of(make(np.ones((25, 4, 4)))), 0.1)
    same(Lambda.entries().of(make(np.ones((4, 25, 4)), transform="dct")), 0.2)


@each_dictionary
def test_samples_rule(kind):
    for n2 in (2, 3, 50):
        p, _, _, _ = instance(kind, "l21", "dft", (3, n2, 2))
        same(Lambda.samples().of(p), 1 / np.sqrt(np.log(n2)))
        same(Lambda.samples(0.3).of(p), 0.3 / np.sqrt(np.log(n2)))
    one = make(np.ones((3, 1, 2)))
    same(Lambda.samples().of(one), 1 / np.sqrt(np.log(2)))  # of two samples: log 1 is no scale


def test_the_rules_of_the_noise_do_not_see_the_data():
    X = np.random.default_rng(0).standard_normal((3, 6, 4))
    for rule in (Lambda.entries(), Lambda.samples()):
        assert rule.of(make(X)) == rule.of(make(7 * X))


def explains(lam, p, rank):
    """The rule stands for this effective rank, and for no other nearby."""
    expected = Lambda.effective_rank(rank).of(p)
    same(lam, expected, 1e-7)
    for factor in (0.97, 1.03):
        assert abs(Lambda.effective_rank(factor * rank).of(p) / expected - 1) > 1e-4


GRADED = np.array([4.0, 3.9, 3.7, 3.5, 3.4, 3.0, 2.9, 2.5, 2.4, 2.0, 1.9, 1.0])
STEEP = 4.0 ** -np.arange(12)


def test_auto_takes_a_multiple_of_the_stable_rank():
    """`sum s^2 / max s^2`, but at least 2."""
    s = GRADED.copy()
    s[5:] /= 4
    stable = sum(x * x for x in s) / 16
    assert 2 < stable < 6
    p = spectrum(s, s, n2=20)
    for level in (0.3, 1.0, 1.7):
        explains(Lambda.auto(level).of(p), p, level * stable)
    p = spectrum(STEEP, STEEP, n2=20)  # stable rank 1.07
    explains(Lambda.auto().of(p), p, 5.6)
    explains(Lambda.auto(1).of(p), p, 2.0)


def test_auto_suggests_at_most_half_of_the_rank():
    p = spectrum(GRADED, GRADED, n2=20)
    assert (GRADED**2).sum() / 16 > 6
    explains(Lambda.auto(1).of(p), p, 6.0)
    explains(Lambda.auto(0.5).of(p), p, 3.0)
    few = spectrum([5.0, 4.0, 3.0], [5.0, 4.0, 2.0])
    explains(Lambda.auto(1).of(few), few, 1.5)
    uneven = spectrum([5.0, 4.0, 3.0, 1.0], [5.0, 4.0])  # ranks 4 and 2
    explains(Lambda.auto(1).of(uneven), uneven, 1.5)


def test_auto_takes_at_most_nine_tenths_of_the_rank():
    """Of so many directions that a few are not explained even then, and lam tells the rank."""
    s = 1.5 ** -np.arange(30.0)  # stable rank 1.8
    p = spectrum(s, s, n2=40)
    explains(Lambda.auto(13.3).of(p), p, 26.6)
    for level in (13.5, 14, 1e300):
        explains(Lambda.auto(level).of(p), p, 27.0)
    few = spectrum([5.0, 4.0, 3.0], [5.0, 4.0, 2.0])
    same(Lambda.auto().of(few), Lambda.effective_rank(2.7).of(few), 1e-7)


def test_auto_averages_the_stable_rank_by_energy():
    first, second = np.append([4.0, 2.0, 1.0], STEEP[2:11] / 4), GRADED / 4
    energies = [sum(x * x for x in s) for s in (first, second)]
    ranks = [energies[0] / 16, energies[1] / 1]
    stable = (energies[0] * ranks[0] + energies[1] * ranks[1]) / sum(energies)
    assert abs(stable - sum(ranks) / 2) > 1
    assert 2 < stable < 6
    p = spectrum(first, second, n2=20)
    explains(Lambda.auto(1).of(p), p, stable)


def test_auto_counts_twin_slices_twice():
    """The DFT keeps one slice of a pair, for two."""
    rng = np.random.default_rng(0)
    spectra = 4 * STEEP[:10], GRADED[:10] / 4
    hat = np.zeros((2, 10, 20), dtype=complex)
    for k, values in enumerate(spectra):
        u = np.linalg.qr(rng.standard_normal((10, 10)))[0]
        v = np.linalg.qr(rng.standard_normal((20, 20)))[0][:, :10]
        hat[k] = u * values @ v.T
    p = make(np.moveaxis(np.fft.irfft(hat, n=3, axis=0), 0, -1))
    energies = [sum(x * x for x in s) for s in spectra]
    ranks = [energies[0] / 16, energies[1] / 1]
    stable = (energies[0] * ranks[0] + 2 * energies[1] * ranks[1]) / (energies[0] + 2 * energies[1])
    assert 2 < stable < 5
    explains(Lambda.auto(1).of(p), p, stable)


def test_auto_of_tables():
    """One slice: `(sum s)^2 / sum s^2`, from 2 to half of the rank."""
    s = STEEP.copy() + 0.02
    suggested = sum(s) ** 2 / sum(x * x for x in s)
    assert 2 < suggested < 6
    p = spectrum(s, n2=20, transform="none")
    explains(Lambda.auto(1).of(p), p, suggested)
    explains(Lambda.auto(0.4).of(p), p, 0.4 * suggested)
    p = spectrum(GRADED, n2=20, transform="none")
    assert sum(GRADED) ** 2 / sum(GRADED**2) > 6
    explains(Lambda.auto(1).of(p), p, 6.0)


@pytest.mark.parametrize("values", [[5.0, 4.0, 3.0], [5.0, 0.1], [5.0]])
def test_auto_of_tables_with_few_features(values):
    """Half of the rank is suggested, nine tenths are taken."""
    p = spectrum(values, transform="none")
    same(Lambda.auto().of(p), Lambda.effective_rank(0.9 * len(values)).of(p), 1e-7)
    same(Lambda.auto(1).of(p), Lambda.effective_rank(0.5 * len(values)).of(p), 1e-7)


def test_suggested_rank():
    ones = np.ones((2, 8))
    weights = np.array([1.0, 2.0])
    assert suggested_rank(ones, weights) == 4  # half of the rank
    assert suggested_rank(np.array([[3.0] + 7 * [1e-9]] * 2), weights) == 2
    assert suggested_rank(np.zeros((2, 8)), weights) == 0
    assert suggested_rank(np.zeros((1, 8)), weights[:1]) == 0
    # 11/4 in the first slice, 1 in the second one, twice: energies 11 and 2 x 4.
    s = np.array([[2.0, 2.0, 1.0, 1.0, 1.0, 0, 0, 0], [2.0, 0, 0, 0, 0, 0, 0, 0]])
    s[1, 1:] = 1e-12
    expected = (11 * 11 / 4 + 8 * 1) / 19
    assert suggested_rank(s, weights) == pytest.approx(max(2, expected))
    s[0] *= 10
    assert suggested_rank(s, weights) == pytest.approx((1100 * 11 / 4 + 8) / 1108)


@pytest.mark.parametrize("name", ["dft", "dct"])
def test_auto_does_not_depend_on_scale_and_order(name):
    X = np.random.default_rng(0).standard_normal((8, 12, 4))
    lam = Lambda.auto().of(make(X, transform=name))
    same(Lambda.auto().of(make(10 * X, transform=name)), lam / 10)
    same(Lambda.auto().of(make(X[:, ::-1], transform=name)), lam)
    assert Lambda.relative(0).of(make(X, transform=name)) < lam


RULES = (Lambda.auto, "level"), (Lambda.entries, "alpha"), (Lambda.samples, "alpha")


def test_new_rules_show_themselves_and_are_checked():
    assert repr(Lambda.auto()) == "Lambda.auto(2.8)"
    assert repr(Lambda.entries()) == "Lambda.entries(1.0)"
    assert repr(Lambda.samples(2)) == "Lambda.samples(2.0)"
    for rule, name in RULES:
        with pytest.raises(ValueError, match=f"{name} must be positive, got 0"):
            rule(0)
        with pytest.raises(ValueError, match=f"{name} must be a finite number, got 'x'"):
            rule("x")
