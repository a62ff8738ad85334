"""Coordinates against naive t-SVDs: they reproduce the data and keep products and norms."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from tubal.input import Samples, read, samples_first, tubes_first
from tubal.noise import sample_norms
from tubal.reduction import reduce, skinny_svd, slices
from tubal.transforms import resolve

TRANSFORMS = ("dft", "dct", "rom", "data", "none")

cases = st.fixed_dictionaries(
    {
        "name": st.sampled_from(TRANSFORMS),
        "n1": st.integers(1, 5),
        "n2": st.integers(1, 6),
        "p": st.integers(1, 6),
        "n3": st.sampled_from([1, 2, 3, 4, 5]),
        "rank": st.integers(1, 5),
        "seed": st.integers(0, 99),
    }
)


def tensors(case):
    """Transform, its matrix, data of bounded tubal rank and a dictionary (paper's layout)."""
    rng = np.random.default_rng(case["seed"])
    n1, n2, p, n3, rank = (case[key] for key in ("n1", "n2", "p", "n3", "rank"))
    t = resolve(case["name"], n3, data=rng.standard_normal((9, n3)), random_state=case["seed"])
    X = naive.tprod(
        rng.standard_normal((n1, rank, n3)), rng.standard_normal((rank, n2, n3)), t.matrix
    )
    return t, t.matrix, X, rng.standard_normal((n1, p, n3))


def samples(A):
    """Samples of a tensor in the paper's layout."""
    return read(np.moveaxis(A, 1, 0), min_samples=1)


def full(t, kept):
    """All n3 slices n1 x n2 x n3 from the kept ones K x n1 x n2: twins are conjugates."""
    index, conjugate = t.expansion
    hat = np.where(conjugate[:, None, None], kept[index].conj(), kept[index])
    return np.moveaxis(hat, 0, -1)


def adjoint(A):
    return A.conj().swapaxes(-1, -2)


def close(A, B, tol=1e-10):
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


def check_basis(Q, s):
    """Orthonormal columns where the singular value is positive, zeros elsewhere."""
    for basis, values in zip(Q, s, strict=True):
        close(adjoint(basis) @ basis, np.diag((values > 0).astype(float)))
        assert not basis[:, values == 0].any()


# ---- the three dictionaries ---------------------------------------------------------------------


@given(cases)
def test_data_dictionary_is_its_own_svd(case):
    t, L, X, _ = tensors(case)
    red = reduce(samples(X), t, "data")
    hat = naive.forward(X, L)
    close(full(t, red.U * red.s[:, None, :] @ red.rows()), hat)
    close(full(t, red.U @ red.x), hat)
    close(np.moveaxis(red.lift(red.x), 0, -1), X)
    close(full(t, adjoint(red.U) @ slices(t, np.moveaxis(X, 1, 0))), full(t, red.x))
    check_basis(red.U, red.s)
    check_basis(adjoint(red.rows()), red.s)
    np.testing.assert_array_equal(red.left(), adjoint(red.rows()))
    np.testing.assert_array_equal(red.values, red.s)
    assert red.shape == (len(t.weights), min(case["n1"], case["n2"], case["rank"]), case["n2"])
    assert red.kind == "data"
    assert red.offset is None
    assert red.V is None


@given(cases)
def test_singular_values_equal_the_naive_ones(case):
    t, L, X, _ = tensors(case)
    s = reduce(samples(X), t, "data").s
    assert np.all(np.diff(s, axis=1) <= 0)
    assert np.all((s > 0).sum(axis=1) == min(case["n1"], case["n2"], case["rank"]))
    for k, values in enumerate(s[t.expansion[0]]):
        expected = np.linalg.svd(naive.forward(X, L)[:, :, k], compute_uv=False)
        close(values, expected[: len(values)])
        close(expected[len(values) :], 0)


@given(cases)
def test_identity_dictionary_counts_every_direction_once(case):
    t, L, X, _ = tensors(case)
    red, data = reduce(samples(X), t, "identity"), reduce(samples(X), t, "data")
    np.testing.assert_array_equal(red.s, np.ones_like(red.s))
    np.testing.assert_array_equal(red.values, data.s)
    np.testing.assert_array_equal(red.x, data.x)
    np.testing.assert_array_equal(red.left(), red.U)
    close(full(t, red.U @ red.x), naive.forward(X, L))
    close(red.rows(), data.rows())
    check_basis(adjoint(red.rows()), red.values)
    assert (red.kind, red.offset, red.V) == ("identity", None, None)


@given(cases)
def test_array_dictionary_in_its_own_coordinates(case):
    t, L, X, D = tensors(case)
    red = reduce(samples(X), t, samples(D))
    close(full(t, red.U * red.s[:, None, :] @ adjoint(red.V)), naive.forward(D, L))
    close(red.x, adjoint(red.U) @ slices(t, np.moveaxis(X, 1, 0)))
    np.testing.assert_array_equal(red.left(), red.V)
    np.testing.assert_array_equal(red.values, red.s)
    check_basis(red.U, red.s)
    check_basis(red.V, red.s)
    assert red.shape == (len(t.weights), min(case["n1"], case["p"]), case["n2"])
    assert red.kind == "array"


@given(cases)
def test_offset_is_the_norm_outside_the_range_of_the_dictionary(case):
    t, L, X, D = tensors(case)
    red = reduce(samples(X), t, samples(D))
    explained = naive.tprod(D, naive.tprod(naive.pinv(D, L), X, L), L)
    outside = naive.column_norms(X - explained)
    if case["p"] >= case["n1"]:  # a generic dictionary then explains everything
        assert red.offset is None
        close(outside, 0)
    else:
        close(red.offset, outside)
        inside = sample_norms(red.x, np.repeat(red.omega[:, None], red.shape[1], axis=1))
        close(inside, naive.column_norms(explained))
        close(np.hypot(inside, red.offset), naive.column_norms(X))


def test_offset_by_hand():
    X = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0], [1.0, 2.0, 2.0]])
    D = np.array([[2.0, 0.0, 0.0]])
    red = reduce(read(X), resolve("none", 1), read(D, min_samples=1))
    close(red.offset, [4.0, 2.0, np.sqrt(8)])
    close(np.abs(red.x), [[[3.0, 0.0, 1.0]]])
    close(red.s, [[2.0]])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_no_offset_for_samples_inside_the_range_of_a_thin_dictionary(name):
    """Rounding is not an offset."""
    rng = np.random.default_rng(0)
    t = resolve(name, 4, data=rng.standard_normal((9, 4)), random_state=0)
    D = rng.standard_normal((5, 2, 4))
    for size in (1e-8, 1.0, 1e8):
        X = size * naive.tprod(D, rng.standard_normal((2, 6, 4)), t.matrix)
        assert reduce(samples(X), t, samples(D)).offset is None
    X[:, 3] += 1e-3 * size * rng.standard_normal((5, 4))
    offset = reduce(samples(X), t, samples(D)).offset
    assert offset[3] > 1e-4 * size > 1e4 * np.delete(offset, 3).max()


# ---- the program looks the same in coordinates --------------------------------------------------


@pytest.mark.parametrize("kind", ["data", "identity", "array"])
@given(cases)
def test_coordinates_keep_products_and_norms(kind, case):
    """For Z = left Z': `D * Z = U S Z'`, and nuclear and sample norms are the weighted ones."""
    t, L, X, D = tensors(case)
    D = {"data": X, "identity": naive.identity(case["n1"], case["n3"], L), "array": D}[kind]
    red = reduce(samples(X), t, samples(D) if kind == "array" else kind)
    r = red.shape[1]
    core = t.forward(np.random.default_rng(1).standard_normal((case["n3"], r, 7)), axis=0)
    core = core * (red.values > 0)[..., None]
    Z = np.moveaxis(t.inverse(red.left() @ core, axis=0), 0, -1)
    explained = np.moveaxis(red.lift(red.s[..., None] * core), 0, -1)
    close(explained, naive.tprod(D, Z, L), 1e-9)
    singular = np.linalg.svd(core, compute_uv=False).sum(axis=1)
    close(red.omega @ singular, naive.nuclear_norm(Z, L), 1e-9)
    weights = np.repeat(red.omega[:, None], r, axis=1)
    norms = sample_norms(red.s[..., None] * core, weights)
    close(norms, naive.column_norms(explained), 1e-9)


@given(cases)
def test_weighted_norms_of_coordinates_are_norms_of_samples(case):
    t, _, X, _ = tensors(case)
    for kind in ("data", "identity"):
        red = reduce(samples(X), t, kind)
        weights = np.repeat(red.omega[:, None], red.shape[1], axis=1)
        close(sample_norms(red.x, weights), naive.column_norms(X))


@pytest.mark.parametrize(("n3", "omega"), [(1, [1]), (4, [0.25, 0.5, 0.25]), (5, [0.2, 0.4, 0.4])])
def test_omega_of_the_dft(n3, omega):
    X = np.random.default_rng(0).standard_normal((4, 3, n3))
    close(reduce(read(X), resolve("dft", n3), "data").omega, omega, 1e-15)
    close(reduce(read(X), resolve("dct", n3), "data").omega, np.ones(n3), 1e-15)


def test_omega_counts_the_scale_of_a_matrix():
    L = 3 * naive.random_orthogonal(4, seed=0)
    red = reduce(read(np.random.default_rng(0).standard_normal((5, 3, 4))), resolve(L, 4), "data")
    close(red.omega, np.full(4, 1 / 9), 1e-12)


# ---- ranks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5)])
def test_slices_of_lower_rank_are_padded_with_zeros(shape):
    """Under the DCT slice k has rank `ranks[k]`: everything beyond it is exactly zero."""
    rng, ranks, L = np.random.default_rng(0), [2, 0, 4, 1], naive.dct_matrix(4)
    hat = [rng.standard_normal((shape[0], r)) @ rng.standard_normal((r, shape[1])) for r in ranks]
    X = naive.inverse(np.stack(hat, axis=2), L)
    for kind in ("data", "identity"):
        red = reduce(samples(X), resolve("dct", 4), kind)
        assert red.shape[1] == 4
        for k, rank in enumerate(ranks):
            assert np.all(red.values[k, :rank] > 0)
            for part in (red.values[k, rank:], red.U[k, :, rank:], red.x[k, rank:]):
                assert not part.any()
            assert not red.rows()[k, rank:].any()
            close(red.U[k] @ red.x[k], hat[k])
        assert np.all(np.isfinite(red.rows()))
    D = rng.standard_normal((shape[0], 9, 4))
    array = reduce(samples(D), resolve("dct", 4), samples(X))
    assert not any(array.V[k, :, rank:].any() for k, rank in enumerate(ranks))


@pytest.mark.parametrize("n3", [2, 3, 4, 5])
def test_constant_tubes_have_one_dft_slice(n3):
    M = np.random.default_rng(0).standard_normal((6, 4))
    red = reduce(read(np.repeat(M[..., None], n3, axis=2)), resolve("dft", n3), "data")
    assert red.shape == (n3 // 2 + 1, 4, 6)
    close(red.s[0], n3 * np.linalg.svd(M, compute_uv=False))
    assert not red.s[1:].any()
    assert not red.x[1:].any()


def test_rank_rule():
    """Singular values count above `max(n1, n2, K) eps` times the largest of all slices."""
    Q = naive.random_orthogonal(4, seed=0)
    eps = np.finfo(float).eps
    for small, rank in ((0.25, 1), (0.9, 1), (1.1, 2), (100, 2)):
        X = np.zeros((1, 4, 10))
        X[0, :, :4] = Q * [1.0, small * 10 * eps, 0.0, 0.0]
        assert skinny_svd(resolve("none", 1), X)[1].shape == (1, rank)
    slices_of_two_sizes = np.zeros((2, 3, 3))
    slices_of_two_sizes[0] = np.eye(3)
    slices_of_two_sizes[1] = 1e-17 * np.eye(3)
    s = skinny_svd(resolve("none", 2), slices_of_two_sizes)[1]
    close(s, [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("kind", ["data", "identity"])
@pytest.mark.parametrize("name", ["dft", "dct"])
def test_zero_data_keeps_one_direction_of_zeros(kind, name):
    red = reduce(read(np.zeros((5, 3, 4))), resolve(name, 4), kind)
    assert red.shape == (3 if name == "dft" else 4, 1, 5)
    assert not any(part.any() for part in (red.U, red.x, red.values, red.rows()))


def test_low_rank_plus_small_noise_has_full_rank():
    rng, t = np.random.default_rng(0), resolve("dft", 5)
    X = naive.tprod(rng.standard_normal((6, 2, 5)), rng.standard_normal((2, 9, 5)), t.matrix)
    assert reduce(samples(X), t, "data").shape == (3, 2, 9)
    noisy = X + 1e-7 * rng.standard_normal(X.shape)
    assert reduce(samples(noisy), t, "data").shape == (3, 6, 9)


# ---- layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 3, 4), (5, 3, 2, 4), (2, 3, 2, 3, 2)])
def test_layouts_are_views_and_undo_each_other(shape):
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    turned = tubes_first(values)
    assert turned.shape == (*shape[2:], shape[1], shape[0])
    assert np.shares_memory(turned, values)
    np.testing.assert_array_equal(samples_first(turned), values)
    for index in ((0, 2), (1, 0)):
        np.testing.assert_array_equal(turned[..., index[1], index[0]], values[index])


@given(cases)
def test_slices_equal_the_naive_ones(case):
    t, L, X, _ = tensors(case)
    close(full(t, slices(t, np.moveaxis(X, 1, 0))), naive.forward(X, L))


@pytest.mark.parametrize("spec", ["dft", "dct", ["dft", "dct"], ["none", "dft"], ["dct", "none"]])
@pytest.mark.parametrize("sizes", [(2, 5), (4, 3)])
def test_more_trailing_axes(spec, sizes):
    rng, n3 = np.random.default_rng(0), sizes[0] * sizes[1]
    X, D = rng.standard_normal((6, 4, *sizes)), rng.standard_normal((2, 4, *sizes))
    t = resolve(spec, sizes)
    flat = np.moveaxis(X.reshape(6, 4, n3), 1, 0)
    flat_D = np.moveaxis(D.reshape(2, 4, n3), 1, 0)
    red = reduce(read(X), t, "data")
    close(full(t, red.U * red.s[:, None, :] @ red.rows()), naive.forward(flat, t.matrix))
    close(samples_first(red.lift(red.x)), X)
    array = reduce(read(X), t, read(D))
    fit = naive.tprod(flat_D, naive.tprod(naive.pinv(flat_D, t.matrix), flat, t.matrix), t.matrix)
    close(array.offset, naive.column_norms(flat - fit))
    weights = np.repeat(red.omega[:, None], red.shape[1], axis=1)
    close(sample_norms(red.x, weights), naive.column_norms(flat))


def test_table_is_the_matrix_case():
    X = np.random.default_rng(0).standard_normal((6, 4))
    red = reduce(read(X), resolve("dft", 1), "data")
    assert np.isrealobj(red.x)
    close(red.s[0], np.linalg.svd(X, compute_uv=False))
    close((red.U @ red.x)[0].T, X)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (1, 5), (5, 1)])
@pytest.mark.parametrize("n3", [1, 2, 3, 4])
def test_tall_and_wide(shape, n3):
    X = np.random.default_rng(0).standard_normal((*shape, n3))
    for name in ("dft", "dct"):
        t = resolve(name, n3)
        red = reduce(samples(X), t, "data")
        assert red.shape == (len(t.weights), min(shape), shape[1])
        close(full(t, red.U @ red.x), naive.forward(X, t.matrix))


def test_missing_entries_count_as_zeros():
    X = np.random.default_rng(0).standard_normal((6, 4, 3))
    X[0, 1, 2] = X[4, 0, 0] = np.nan
    t = resolve("dct", 3)
    holes, filled = reduce(read(X), t, "data"), reduce(read(np.nan_to_num(X)), t, "data")
    np.testing.assert_array_equal(holes.x, filled.x)


# ---- precision ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dft", "dct", "rom", "data"])
@pytest.mark.parametrize("kind", ["data", "identity", "array"])
def test_float32_stays_single_and_right(name, kind):
    rng = np.random.default_rng(0)
    wide, D = rng.standard_normal((7, 4, 5)), rng.standard_normal((2, 4, 5))
    X = wide.astype(np.float32)
    t = resolve(name, 5, data=wide, random_state=0)
    single, double = (
        reduce(read(A), t, read(D.astype(A.dtype)) if kind == "array" else kind) for A in (X, wide)
    )
    kinds = ("complex64",) if name == "dft" else ("float32",)
    assert {str(A.dtype) for A in (single.U, single.x, single.left(), single.rows())} == {*kinds}
    assert {str(A.dtype) for A in (single.s, single.values, single.omega)} == {"float32"}
    close(single.s, double.s, 1e-4)
    close(single.U @ single.x, double.U @ double.x, 1e-4)
    if kind == "array":
        assert single.offset.dtype == np.float32
        close(single.offset, double.offset, 1e-4)


def test_float32_rank():
    rng, t = np.random.default_rng(0), resolve("dft", 5)
    X = naive.tprod(rng.standard_normal((6, 2, 5)), rng.standard_normal((2, 9, 5)), t.matrix)
    data = read(np.moveaxis(X, 1, 0).astype(np.float32))
    assert reduce(data, t, "data").shape == (3, 2, 9)


@pytest.mark.parametrize("name", ["dft", "dct"])
@pytest.mark.parametrize("kind", ["data", "identity", "array"])
def test_array_api_arrays(name, kind):
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((7, 4, 5)), rng.standard_normal((2, 4, 5))
    t = resolve(name, 5)
    given_D, given_d = (read(D), read(strict.asarray(D))) if kind == "array" else (kind, kind)
    plain, other = reduce(read(X), t, given_D), reduce(read(strict.asarray(X)), t, given_d)
    array = type(strict.asarray(X))
    for part in (other.U, other.s, other.x, other.omega, other.left(), other.rows()):
        assert isinstance(part, array)
    assert other.shape == plain.shape
    close(np.asarray(other.s), plain.s)
    close(np.asarray(other.values), plain.values)
    close(np.asarray(other.omega), plain.omega)
    close(np.asarray(other.U @ other.x), plain.U @ plain.x)
    close(np.asarray(other.left() @ other.x), plain.left() @ plain.x)
    if kind == "array":
        close(np.asarray(other.offset), plain.offset)


def test_input_is_left_alone_and_reductions_are_frozen():
    X = np.random.default_rng(0).standard_normal((5, 3, 4))
    before = X.copy()
    red = reduce(Samples(X, None, False), resolve("none", 4), "data")
    np.testing.assert_array_equal(X, before)
    with pytest.raises(AttributeError):
        red.kind = "identity"
