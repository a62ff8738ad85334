"""Noise: every prox against numerical minimisers and its optimality condition, norms with duals."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

import naive
from tubal.noise import L1, L21, NAMES, Exact, Noise, resolve, sample_norms

positive = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)

cases = st.fixed_dictionaries(
    {
        "shape": st.tuples(*[st.integers(1, 4)] * 3),
        "complex_values": st.booleans(),
        "weighted": st.booleans(),
        "offset": st.booleans(),
        "radius": positive,
        "size": positive,
        "seed": st.integers(0, 999),
    }
)


def draw(case, n=1):
    """Arrays of slices with samples last, about as large as the radius, one with a zero sample."""
    rng = np.random.default_rng(case["seed"])
    arrays = [case["radius"] * rng.standard_normal(case["shape"]) for _ in range(n)]
    if case["complex_values"]:
        arrays = [A + 1j * case["radius"] * rng.standard_normal(A.shape) for A in arrays]
    if case["seed"] % 3 == 0:
        arrays[0][..., 0] = 0
    return arrays


def options(case, offset=True):
    """Weights of the entries and offsets of the samples, as the case has them."""
    rng = np.random.default_rng(case["seed"] + 1)
    chosen = {}
    if case["weighted"]:
        chosen["weights"] = rng.uniform(0.2, 3, case["shape"][:-1])
    if offset and case["offset"]:
        chosen["offset"] = case["size"] * rng.uniform(0.1, 2, case["shape"][-1])
    return chosen


def inner(A, B, weights=None):
    """Weighted real inner product."""
    products = (A.conj() * B).real
    return float(np.sum(products if weights is None else products * weights[..., None]))


def prox21(V, t, **chosen):
    """Proximal step of L21 in the metric of its weights."""
    return V - L21().project(V, t, **chosen)


def close(A, B, tol=1e-10):
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


def close_to_scale(A, B, scale, tol=1e-10):
    np.testing.assert_allclose(A, B, rtol=0, atol=tol * scale)


# ---- prox ---------------------------------------------------------------------------------------


@given(cases)
def test_prox_equals_the_naive_shrinkage(case):
    (V,) = draw({**case, "complex_values": False})
    V = np.moveaxis(V, 0, -1)  # n1 x n2 x n3, as naive has it
    back = (2, 0, 1)
    t = case["radius"]
    close(L1().prox(V, t), naive.shrink_entries(V, t))
    close(L21().prox(V.transpose(back), t).transpose(1, 2, 0), naive.shrink_samples(V, t))


def test_l1_prox_by_a_scalar_minimiser():
    V = np.array([-4.0, -1.2, -0.3, 0.0, 0.7, 2.5])
    for t in (0.1, 1.0, 3.0):
        for v, p in zip(V, L1().prox(V, t), strict=True):
            found = minimize_scalar(
                lambda e, v=v, t=t: t * abs(e) + (e - v) ** 2 / 2,
                bounds=(-5, 5),
                options={"xatol": 1e-10},
                method="bounded",
            )
            close(p, found.x, 1e-6)


@given(cases)
def test_l21_prox_satisfies_its_optimality_condition(case):
    """V - p is t times a subgradient at p: inside the dual ball, and aligned with p."""
    (V,), chosen, t = draw(case), options(case, offset=False), case["radius"]
    p = prox21(V, t, **chosen)
    assert L21().dual_norm(V - p, **chosen) <= t * (1 + 1e-12)
    close_to_scale(inner(V - p, p, **chosen), t * L21().value(p, **chosen), t * t * p.size)


@given(cases)
def test_l1_prox_satisfies_its_optimality_condition(case):
    (V,), t = draw({**case, "complex_values": False}), case["radius"]
    p = L1().prox(V, t)
    assert L1().dual_norm(V - p) <= t * (1 + 1e-12)
    close_to_scale(inner(V - p, p), t * L1().value(p), t * t * p.size)


@given(cases)
def test_l21_prox_with_offset_satisfies_its_optimality_condition(case):
    """The function is smooth: V - p is t times its gradient at p, sample by sample."""
    case = {**case, "offset": True}
    (V,), chosen, t = draw(case), options(case), case["radius"]
    p = prox21(V, t, **chosen)
    squares = np.abs(p) ** 2
    weights = chosen.get("weights")
    squares = squares if weights is None else squares * weights[..., None]
    norms = np.sqrt(squares.sum(axis=(0, 1)) + chosen["offset"] ** 2)
    steepness = 1 + t / chosen["offset"].min()  # of the gradient, as a function of p
    close_to_scale(V - p, t * p / norms, np.abs(V).max() * steepness, 1e-13)


@given(positive, positive, positive)
def test_l21_prox_with_offset_by_scalar_methods(norm, t, offset):
    """One sample of one entry: `t sqrt(e^2 + offset^2) + (e - norm)^2 / 2` has one variable."""
    (p,) = prox21(np.array([[norm]]), t, offset=np.array([offset]))[0]
    root = brentq(lambda e: e - norm + t * e / np.hypot(e, offset), 0, norm, xtol=1e-300)
    close_to_scale(p, root, norm, 1e-12)

    def objective(e):
        """The function without its value at zero, which would drown it."""
        return t * e**2 / (np.hypot(e, offset) + offset) + (e - norm) ** 2 / 2

    tight = {"xatol": 1e-10 * norm}
    found = minimize_scalar(objective, bounds=(0, norm), options=tight, method="bounded")
    assert objective(p) <= found.fun * (1 + 1e-13)
    close_to_scale(p, found.x, norm, 1e-5)


@pytest.mark.parametrize("complex_values", [False, True])
def test_l21_prox_with_weights_and_offset_by_a_vector_minimiser(complex_values):
    rng = np.random.default_rng(3)
    parts = 2 if complex_values else 1
    V = rng.standard_normal((parts, 2, 3, 4))
    weights, offset, t = rng.uniform(0.5, 2, (2, 3)), rng.uniform(0.1, 1, 4), 1.3

    def objective(e):
        E = e.reshape(V.shape)
        norms = np.sqrt((weights[..., None] * E**2).sum(axis=(0, 1, 2)) + offset**2)
        return t * norms.sum() + (weights[..., None] * (E - V) ** 2).sum() / 2

    found = minimize(objective, V.ravel(), method="BFGS", options={"gtol": 1e-8, "maxiter": 500})
    E = found.x.reshape(V.shape)
    given_V = V[0] + 1j * V[1] if complex_values else V[0]
    p = prox21(given_V, t, weights=weights, offset=offset)
    close(p, E[0] + 1j * E[1] if complex_values else E[0], 1e-5)
    assert objective(np.stack([p.real, p.imag])[:parts].ravel()) <= found.fun + 1e-12


def test_l21_offset_of_zero_is_no_offset():
    rng = np.random.default_rng(0)
    V = rng.standard_normal((3, 2, 6))
    for t in (0.5, 1.0, 3.0):
        zero = np.zeros(6)
        close(prox21(V, t, offset=zero), L21().prox(V, t), 1e-9)
        close(L21().value(V, offset=zero), L21().value(V), 1e-15)


def test_l21_small_offsets_approach_no_offset():
    V = np.array([[0.5, 1.0, 1.5, 4.0]])
    errors = [
        np.abs(prox21(V, 1.0, offset=np.full(4, size)) - L21().prox(V, 1.0)).max()
        for size in (1e-1, 1e-3, 1e-5)
    ]
    # At norm = radius the shrunk norm is (offset^2 / 2)^(1/3): the slowest of all.
    close(errors[1:], [(size**2 / 2) ** (1 / 3) for size in (1e-3, 1e-5)], 1e-2)
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("g", [L1(), L21(), Exact()], ids=repr)
@given(cases)
def test_prox_is_firmly_nonexpansive(g, case):
    case = {**case, "complex_values": case["complex_values"] and g.name == "l21"}
    V, W = draw(case, 2)
    p, q = g.prox(V, case["radius"]), g.prox(W, case["radius"])
    slack = 1e-12 * (inner(V, V) + inner(W, W))
    assert inner(p - q, p - q) <= inner(p - q, V - W) + slack


@given(cases)
def test_l21_prox_with_weights_and_offset_is_firmly_nonexpansive(case):
    V, W = draw(case, 2)
    chosen, t = options(case), case["radius"]
    weights = chosen.get("weights")
    d = prox21(V, t, **chosen) - prox21(W, t, **chosen)
    slack = 1e-12 * (inner(V, V, weights) + inner(W, W, weights))
    assert inner(d, d, weights) <= inner(d, V - W, weights) + slack


@pytest.mark.parametrize("g", [L1(), L21()], ids=repr)
@given(cases)
def test_prox_scales_and_splits_over_samples(g, case):
    case = {**case, "complex_values": case["complex_values"] and g.name == "l21"}
    (V,), t, c = draw(case), case["radius"], case["size"]
    scale = max(np.abs(V).max(), t)
    close_to_scale(g.prox(c * V, c * t), c * g.prox(V, t), c * scale)
    parts = [g.prox(V[..., j : j + 1], t) for j in range(V.shape[-1])]
    close_to_scale(np.concatenate(parts, axis=-1), g.prox(V, t), scale, 1e-14)
    total = sum(g.value(V[..., j : j + 1]) for j in range(V.shape[-1]))
    close(total, g.value(V), 1e-13)


@given(cases)
def test_l21_prox_commutes_with_rotations_of_samples(case):
    (V,), t = draw(case), case["radius"]
    n = V.shape[0] * V.shape[1]
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    rotated = (Q @ V.reshape(n, -1)).reshape(V.shape)
    expected = (Q @ L21().prox(V, t).reshape(n, -1)).reshape(V.shape)
    close_to_scale(L21().prox(rotated, t), expected, np.abs(V).max() + t)


# ---- projection ---------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [L1(), L21()], ids=repr)
@given(cases)
def test_projection_is_the_nearest_point_of_the_dual_ball(g, case):
    """Variational inequality `<G - P, Y - P> <= 0` for Y in the ball, and Moreau's identity."""
    case = {**case, "complex_values": case["complex_values"] and g.name == "l21"}
    G, Y = draw(case, 2)
    radius = case["radius"]
    P = g.project(G, radius)
    assert g.dual_norm(P) <= radius * (1 + 1e-12)
    close_to_scale(P + g.prox(G, radius), G, np.abs(G).max() + radius, 1e-14)
    close_to_scale(g.project(P, radius), P, radius, 1e-14)
    Y = Y * (radius / max(g.dual_norm(Y), radius))
    assert inner(G - P, Y - P) <= 1e-12 * radius * (radius + np.abs(G).max()) * G.size


@pytest.mark.parametrize("g", [L1(), L21()], ids=repr)
def test_projection_keeps_the_ball_and_shrinks_to_zero(g):
    V = np.random.default_rng(0).standard_normal((2, 3, 4))
    inside = V / g.dual_norm(V)
    np.testing.assert_array_equal(g.project(inside, 1.5), inside)
    assert not g.prox(inside, 1.5).any()
    assert not g.project(V, 0.0).any()
    np.testing.assert_array_equal(g.prox(V, 0.0), V)


@given(cases)
def test_l21_factor_is_what_project_multiplies_with(case):
    (G,), chosen, radius = draw(case), options(case), case["radius"]
    factor = L21().factor(
        sample_norms(G, chosen.get("weights")), radius, offset=chosen.get("offset")
    )
    close(L21().project(G, radius, **chosen), factor * G, 1e-14)
    assert np.all((factor > 0) & (factor <= 1))


def test_l21_projection_by_hand():
    G = np.array([[3.0, 0.3, 0.0], [4.0, 0.4, 0.0]])
    close(L21().project(G, 2.0), [[1.2, 0.3, 0.0], [1.6, 0.4, 0.0]])
    # Weights 4: norms 10, 1, 0.
    close(L21().project(G, 2.0, weights=np.array([4.0, 4.0])), G * [0.2, 1.0, 1.0])
    # t + 2 t / sqrt(t^2 + 9) = 5.6 has the root t = 4, for the sample of norm 5.6.
    G = np.array([[5.6]])
    close(L21().project(G, 2.0, offset=np.array([3.0])), [[1.6]])


def test_samples_of_zeros_stay_zero():
    zero = np.zeros((2, 3, 4))
    for weights in (None, np.ones((2, 3))):
        for offset in (None, np.array([0.0, 0.5, 1.0, 2.0])):
            assert not L21().project(zero, 1.0, weights, offset).any()
    assert not L1().project(zero, 1.0).any()
    assert L21().value(zero) == L1().value(zero) == L21().dual_norm(zero) == 0


# ---- values and dual norms ----------------------------------------------------------------------


@given(cases)
def test_values_equal_the_naive_norms(case):
    (E,) = draw(case)
    A = np.moveaxis(E, 0, -1)
    close(L1().value(E), naive.norm_l1(A), 1e-13)
    close(L21().value(E), naive.norm_l21(A), 1e-13)
    close(L1().dual_norm(E), naive.norm_inf(A), 1e-13)
    close(L21().dual_norm(E), naive.column_norms(A).max(), 1e-13)
    close(sample_norms(E), naive.column_norms(A), 1e-13)


@given(cases)
def test_weights_and_offsets_are_more_entries(case):
    """A weight scales its entry by a root, an offset is one more entry of the sample."""
    case = {**case, "weighted": True, "offset": True}
    (E,), chosen = draw(case), options(case)
    longer = (np.sqrt(chosen["weights"])[..., None] * E).reshape(-1, E.shape[-1])
    close(sample_norms(E, chosen["weights"]), np.linalg.norm(longer, axis=0), 1e-13)
    close(L21().dual_norm(E, chosen["weights"]), np.linalg.norm(longer, axis=0).max(), 1e-13)
    longer = np.vstack([longer, chosen["offset"]])
    close(L21().value(E, **chosen), np.linalg.norm(longer, axis=0).sum(), 1e-13)


def test_values_by_hand():
    E = np.array([[3.0, 0.0, 1.0], [-4.0, 2.0, 0.0]])
    assert (L1().value(E), L1().dual_norm(E)) == (10.0, 4.0)
    assert (L21().value(E), L21().dual_norm(E)) == (8.0, 5.0)
    close(L21().value(E, offset=np.array([12.0, 0.0, 0.0])), 16.0)
    close(L21().value(E, weights=np.array([1.0, 0.25])), np.sqrt(13) + 2)


@pytest.mark.parametrize("g", [L1(), L21()], ids=repr)
@given(cases)
def test_dual_norm_bounds_the_inner_product(g, case):
    E, Y = draw(case, 2)
    chosen = options(case, offset=False) if g.name == "l21" else {}
    bound = g.value(E, **chosen) * g.dual_norm(Y, **chosen)
    assert abs(inner(E, Y, **chosen)) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("g", [L1(), L21()], ids=repr)
@given(cases)
def test_dual_norm_is_attained(g, case):
    """By the E that puts everything where Y is largest, and by the Y that is the sign of E."""
    (Y,) = draw({**case, "seed": 3 * case["seed"] + 1})  # a draw without a zero sample
    chosen = options(case, offset=False) if g.name == "l21" else {}
    if g.name == "l1":
        sign = Y / np.abs(Y)
        E = np.where(np.abs(Y) == np.abs(Y).max(), Y, 0)
    else:
        norms = sample_norms(Y, **chosen)
        sign = Y / norms
        E = np.where(norms == norms.max(), Y, 0)
    for first, second in ((E, Y), (Y, sign)):
        expected = g.value(first, **chosen) * g.dual_norm(second, **chosen)
        close(inner(first, second, **chosen), expected, 1e-12)


def test_exact_allows_nothing():
    V = np.array([[3.0, -0.5], [0.0, 1e-300]])
    g = Exact()
    assert g.value(V) == np.inf
    assert g.value(0 * V) == 0
    for t in (1e-9, 1.0, 1e9):
        assert not g.prox(V, t).any()
        np.testing.assert_array_equal(g.project(V, t), V)
    assert g.dual_norm(V) == 0
    assert g.value(g.prox(V, 1.0)) == 0


# ---- arrays of every kind -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_float32_stays_single_and_right(dtype):
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((3, 4, 5)) + 1j * rng.standard_normal((3, 4, 5))
    wide = wide if dtype == np.complex64 else wide.real
    V, weights = wide.astype(dtype), rng.uniform(0.5, 2, (3, 4))
    offset, single = rng.uniform(0.1, 1, 5), np.float32
    chosen = {"weights": weights.astype(single), "offset": offset.astype(single)}
    for short, full in (
        (L21().prox(V, 2.0), L21().prox(wide, 2.0)),
        (prox21(V, 2.0, **chosen), prox21(wide, 2.0, weights=weights, offset=offset)),
    ):
        assert short.dtype == dtype
        close(short, full, 1e-5)
    assert sample_norms(V, chosen["weights"]).dtype == single
    close(L21().value(V, **chosen), L21().value(wide, weights, offset), 1e-5)
    if dtype == single:
        assert L1().prox(V, 0.5).dtype == single
        close(L1().prox(V, 0.5), L1().prox(wide, 0.5), 1e-5)


@pytest.mark.parametrize("norm", [1e-3, 0.5, 1.0, 2.0, 1e3])
@pytest.mark.parametrize("offset", [1e-3, 1.0, 1e3])
def test_float32_prox_with_offset_from_small_to_large(norm, offset):
    (full,) = prox21(np.array([[norm]]), 1.0, offset=np.array([offset]))
    (p,) = prox21(np.float32([[norm]]), 1.0, offset=np.float32([offset]))
    assert p.dtype == np.float32
    np.testing.assert_allclose(p, full, rtol=1e-5, atol=1e-6 * norm)


@pytest.mark.parametrize("complex_values", [False, True])
def test_memory_layout_does_not_matter(complex_values):
    rng = np.random.default_rng(0)
    V = rng.standard_normal((3, 4, 10)) + (1j * rng.standard_normal((3, 4, 10)))
    V = V if complex_values else V.real.copy()
    weights = rng.uniform(0.5, 2, (3, 4))
    layouts = (np.asfortranarray(V), V.transpose(1, 0, 2).copy().transpose(1, 0, 2))
    for view in layouts:
        close(sample_norms(view, weights), sample_norms(V, weights), 1e-14)
        close(L21().prox(view, 2.0), L21().prox(V, 2.0), 1e-14)
    close(sample_norms(V[:, 1:3, ::2]), np.linalg.norm(V[:, 1:3, ::2], axis=(0, 1)), 1e-14)
    close(sample_norms(V[0]), np.linalg.norm(V[0], axis=0), 1e-14)


def test_input_is_left_alone():
    V = np.random.default_rng(0).standard_normal((2, 3, 4))
    before = V.copy()
    for g in (L1(), L21(), Exact()):
        g.prox(V, 0.5), g.project(V, 0.5), g.value(V), g.dual_norm(V)
    prox21(V, 0.5, weights=np.ones((2, 3)), offset=np.ones(4))
    np.testing.assert_array_equal(V, before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_array_api_arrays(dtype):
    rng = np.random.default_rng(0)
    V = rng.standard_normal((2, 3, 4)) + (1j * rng.standard_normal((2, 3, 4)))
    V = (V if dtype.startswith("complex") else V.real).astype(dtype)
    tol = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    weights = rng.uniform(0.5, 2, (2, 3)).astype(V.real.dtype)
    v, w = strict.asarray(V), strict.asarray(weights)
    noises = [L21(), Exact()] if dtype.startswith("complex") else [L21(), L1(), Exact()]
    for g in noises:
        for result, expected in (
            (g.prox(v, 1.5), g.prox(V, 1.5)),
            (g.project(v, 1.5), g.project(V, 1.5)),
        ):
            assert isinstance(result, type(v))
            assert result.dtype == v.dtype
            close(np.asarray(result), expected, tol)
        close(g.value(v), g.value(V), tol)
        close(g.dual_norm(v), g.dual_norm(V), tol)
    close(np.asarray(L21().project(v, 1.5, w)), L21().project(V, 1.5, weights), tol)
    close(L21().value(v, w), L21().value(V, weights), tol)
    close(np.asarray(sample_norms(v, w)), sample_norms(V, weights), tol)


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("l21", L21), ("l1", L1), ("exact", Exact)])
def test_resolve_names(name, kind):
    noise = resolve(name)
    assert type(noise) is kind
    assert noise.name == name
    assert repr(noise) == f"{kind.__name__}()"
    assert resolve(noise) is noise
    assert set(NAMES) == {"l21", "l1", "exact"}


def test_resolve_takes_a_noise_of_the_user():
    class Quadratic(L1):
        name = "quadratic"

        def project(self, G, radius):
            return G * radius / (1 + radius)

    noise = Quadratic()
    assert resolve(noise) is noise
    close(noise.prox(np.array([3.0]), 2.0), [1.0])


def test_noise_alone_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Noise()


@pytest.mark.parametrize("bad", ["L21", "l2", "", None, 1, True, L21, ["l1"]])
def test_resolve_names_what_is_wrong(bad):
    with pytest.raises(ValueError, match=r"one of \['exact', 'l1', 'l21'\] or a Noise, got"):
        resolve(bad)


def test_l1_of_complex_entries_shrinks_moduli():
    np.testing.assert_allclose(L1().prox(np.array([3 + 4j, 0.1j]), 1.0), [2.4 + 3.2j, 0])


def test_offset_results_do_not_depend_on_other_samples():
    """One large sample must not stop the iteration of a small one."""
    alone = L21().factor(np.array([1.0]), 1.0, np.array([1e-9]))
    beside = L21().factor(np.array([1.0, 1e6]), 1.0, np.array([1e-9, 1e-9]))
    np.testing.assert_allclose(alone[0], beside[0], rtol=1e-12)


def test_offset_of_zero_is_no_offset():
    norms = np.array([0.0, 3.0, 9.0])
    np.testing.assert_array_equal(
        L21().factor(norms, 5.0, np.zeros(3))[1:], L21().factor(norms, 5.0)[1:]
    )
