"""t-product algebra against naive versions and its own laws."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import naive
from tubal import algebra
from tubal.algebra import (
    bdiag,
    column_ambiguity,
    column_basis,
    column_incoherence,
    identity,
    inner,
    inverse,
    ivec,
    multirank,
    norm_l1,
    norm_l2inf,
    norm_l21,
    nuclear_norm,
    pinv,
    project_columns,
    project_rows,
    restrict_columns,
    row_basis,
    spectral_norm,
    tensor_coefficients,
    tprod,
    transpose,
    tsvd,
    tubal_rank,
    tube_basis,
    vec,
)
from tubal.transforms import RandomOrthogonal, resolve

TRANSFORMS = ("dft", "dct", "rom", "data", "none", "unitary")


def make(name, n3, seed=0):
    """Return a transform of a kind and its matrix, made without the package where possible."""
    rng = np.random.default_rng(seed)
    if name == "rom":
        t = RandomOrthogonal(seed, n3)
        return t, t.matrix
    if name == "data":
        t = resolve("data", n3, data=rng.standard_normal((9, n3)))
        return t, t.matrix
    if name == "unitary":
        Q = np.linalg.qr(rng.standard_normal((n3, n3)) + 1j * rng.standard_normal((n3, n3)))[0]
        return resolve(2 * Q, n3), 2 * Q
    return name, {"dft": naive.dft_matrix, "dct": naive.dct_matrix, "none": np.eye}[name](n3)


def tensors(shapes, n3, *, complex_values=False, seed=0):
    rng = np.random.default_rng(seed)
    draw = [rng.standard_normal((*shape, n3)) for shape in shapes]
    if complex_values:
        draw = [A + 1j * rng.standard_normal(A.shape) for A in draw]
    return draw


settings = st.fixed_dictionaries(
    {
        "name": st.sampled_from(TRANSFORMS),
        "n3": st.sampled_from([1, 2, 3, 4, 5, 8]),
        "n": st.tuples(*[st.integers(1, 4)] * 4),
        "complex_values": st.booleans(),
        "seed": st.integers(0, 99),
    }
)


def problem(case, *shapes):
    """Draw tensors whose shapes are given as index pairs into the case's sizes."""
    n = case["n"]
    t, L = make(case["name"], case["n3"], case["seed"])
    arrays = tensors(
        [(n[i], n[j]) for i, j in shapes],
        case["n3"],
        complex_values=case["complex_values"],
        seed=case["seed"],
    )
    return t, L, arrays


def close(A, B, tol=1e-9):
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


@pytest.mark.parametrize("n3", [1, 2, 3, 6, 7])
def test_tprod_is_block_circulant_under_dft(n3):
    A, B = tensors([(3, 4), (4, 2)], n3)
    C = tprod(A, B)
    assert C.dtype == np.float64
    close(C, naive.tprod_circulant(A, B), 1e-12)


@given(settings)
def test_operations_equal_the_naive_ones(case):
    t, L, (A, B) = problem(case, (0, 1), (1, 2))
    close(tprod(A, B, t), naive.tprod(A, B, L))
    close(transpose(A, t), naive.transpose(A, L))
    close(pinv(A, t), naive.pinv(A, L))
    close(bdiag(A, t), naive.bdiag(A, L))
    close(nuclear_norm(A, t), naive.nuclear_norm(A, L))
    close(spectral_norm(A, t), naive.spectral_norm(A, L))
    close(norm_l21(A), naive.norm_l21(A))
    close(norm_l2inf(A), naive.column_norms(A).max())
    close(norm_l1(A), np.abs(A).sum())
    close(inner(A, A), np.sum(np.abs(A) ** 2))
    np.testing.assert_array_equal(multirank(A, t), naive.multirank(A, L))


@given(settings)
def test_real_in_real_out(case):
    t, _, (A, B) = problem({**case, "complex_values": False}, (0, 1), (1, 2))
    expected = np.complexfloating if case["name"] == "unitary" else np.floating
    results = [tprod(A, B, t), transpose(A, t), pinv(A, t), *tsvd(A, t), *tsvd(A, t, mode="full")]
    for result in results:
        assert np.issubdtype(result.dtype, expected)


@given(settings)
def test_ring_laws(case):
    t, _, (A, B, C, D) = problem(case, (0, 1), (1, 2), (2, 3), (1, 2))
    close(tprod(tprod(A, B, t), C, t), tprod(A, tprod(B, C, t), t))
    close(tprod(A, B + D, t), tprod(A, B, t) + tprod(A, D, t))
    close(transpose(tprod(A, B, t), t), tprod(transpose(B, t), transpose(A, t), t))
    close(transpose(transpose(A, t), t), A)
    n1, n2 = A.shape[:2]
    close(tprod(identity(n1, case["n3"], t), A, t), A)
    close(tprod(A, identity(n2, case["n3"], t), t), A)


@given(settings)
def test_penrose_conditions(case):
    t, _, (B, C) = problem(case, (0, 1), (1, 2))
    A = tprod(B, C, t)  # of low rank whenever the middle size is small
    P = pinv(A, t)
    AP, PA = tprod(A, P, t), tprod(P, A, t)
    close(tprod(AP, A, t), A, 1e-7)
    close(tprod(PA, P, t), P, 1e-7)
    close(transpose(AP, t), AP, 1e-7)
    close(transpose(PA, t), PA, 1e-7)


@pytest.mark.parametrize("mode", ["skinny", "economy", "full"])
@given(settings)
def test_tsvd(mode, case):
    t, L, (B, C) = problem(case, (0, 1), (1, 2))
    A = tprod(B, C, t)
    U, S, V = tsvd(A, t, mode=mode)
    n1, n2 = A.shape[:2]
    q = {"skinny": min(case["n"][:3]), "economy": min(n1, n2), "full": None}[mode]
    assert S.shape[:2] == ((n1, n2) if q is None else (q, q))
    close(tprod(tprod(U, S, t), transpose(V, t), t), A)
    for Q in (U, V):
        close(tprod(transpose(Q, t), Q, t), identity(Q.shape[1], case["n3"], t))
    if mode == "full":
        for Q in (U, V):
            close(tprod(Q, transpose(Q, t), t), identity(Q.shape[0], case["n3"], t))
    off = ~np.eye(*S.shape[:2], dtype=bool)
    close(S[off], 0)
    diagonal = np.abs(naive.forward(S, L)[np.arange(min(S.shape[:2])), np.arange(min(S.shape[:2]))])
    assert np.all(np.diff(diagonal, axis=0) <= 1e-9)


@given(settings)
def test_inverse(case):
    t, _, (A,) = problem(case, (0, 0))
    A = A + 6 * identity(A.shape[0], case["n3"], t)
    B = inverse(A, t)
    eye = identity(A.shape[0], case["n3"], t)
    close(tprod(A, B, t), eye, 1e-8)
    close(tprod(B, A, t), eye, 1e-8)


@given(settings)
def test_norm_identities(case):
    t, L, (A, B) = problem(case, (0, 1), (0, 1))
    tau = naive.scale(L)
    close(np.linalg.norm(A), np.linalg.norm(bdiag(A, t)) / np.sqrt(tau))
    close(inner(A, B), np.vdot(bdiag(A, t), bdiag(B, t)) / tau)
    # spectral and nuclear norm are dual: |<A, B>| <= ||A|| ||B||_*, with equality for B = U * V^H
    slack = 1 + 1e-9
    assert abs(inner(A, B)) <= spectral_norm(A, t) * nuclear_norm(B, t) * slack
    U, _, V = tsvd(A, t)
    close(inner(A, tprod(U, transpose(V, t), t)), nuclear_norm(A, t))
    assert abs(inner(A, B)) <= norm_l21(A) * norm_l2inf(B) * slack
    # orthogonal invariance
    Q = tsvd(tensors([(A.shape[0],) * 2], case["n3"], seed=5)[0], t, mode="full").U
    close(nuclear_norm(tprod(Q, A, t), t), nuclear_norm(A, t))
    close(spectral_norm(tprod(Q, A, t), t), spectral_norm(A, t))


@given(settings)
def test_bases_read_samples_and_entries(case):
    t, L, (A,) = problem(case, (0, 1))
    (n1, n2), n3 = A.shape[:2], case["n3"]
    i, j, k = n1 - 1, n2 - 1, n3 - 1
    close(tprod(A, column_basis(n2, j, n3, t), t), A[:, [j]])
    close(tprod(row_basis(n1, i, n3, t), A, t), A[[i]])
    unit = naive.tprod(
        naive.tprod(column_basis(n1, i, n3, t), tube_basis(k, n3, t), L),
        row_basis(n2, j, n3, t),
        L,
    )
    expected = np.zeros(A.shape)
    expected[i, j, k] = 1
    close(naive.forward(unit, L), expected)


@given(settings)
def test_projections(case):
    t, _, (A, B) = problem(case, (0, 1), (0, 1))
    U, _, V = tsvd(A, t)
    for project, basis in ((project_columns, U), (project_rows, V)):
        P = project(B, basis, t)
        close(project(P, basis, t), P)
        close(inner(P, B - P), 0)
        close(project(A, basis, t), A)


def test_restrict_columns():
    (A,) = tensors([(2, 4)], 3)
    for support in ([0, 2], np.array([True, False, True, False])):
        R = restrict_columns(A, support)
        np.testing.assert_array_equal(R[:, [0, 2]], A[:, [0, 2]])
        assert not R[:, [1, 3]].any()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_incoherence_and_ambiguity_from_their_definitions(name):
    t, L = make(name, 4)
    B, C = tensors([(5, 2), (2, 7)], 4)
    A = naive.tprod(B, C, L)
    A = A.real if name != "unitary" else A
    r, tau = 2, naive.scale(L)
    _, _, V = tsvd(A, t)
    norms = [
        np.linalg.norm(naive.tprod(naive.transpose(V, L), column_basis(7, j, 4, t), L)) ** 2
        for j in range(7)
    ]
    close(column_incoherence(A, t), 7 * tau / r * max(norms))
    E = A.copy()
    E[:, [1, 4]] = 0
    unit = E / np.where(naive.column_norms(E) > 0, naive.column_norms(E), 1)[None, :, None]
    close(column_ambiguity(E, t), naive.spectral_norm(unit, L))


def test_incoherence_ignores_directions_of_zero_singular_values():
    A = np.zeros((3, 4, 2))
    A[:, :, 0] = A[:, :, 1] = np.ones((3, 4))  # the second DFT slice is zero
    close(column_incoherence(A), 1.0)
    with pytest.raises(ValueError, match="A is zero"):
        column_incoherence(np.zeros((3, 4, 2)))


@given(settings)
def test_theorem_1_vector_representations_are_tensor_representations(case):
    t, _, (A,) = problem(case, (0, 1))
    Z = np.random.default_rng(1).standard_normal((A.shape[1], 3))
    X = ivec(vec(A) @ Z, A.shape[0])
    close(tprod(A, tensor_coefficients(Z, case["n3"], t), t), X)


def test_theorem_1_the_converse_fails():
    """A tube and its shift: one t-multiple of the other, but not parallel as vectors."""
    A = np.array([[[1.0, 2.0, 4.0]]])
    X = tprod(A, np.array([[[0.0, 1.0, 0.0]]]))
    close(X, np.roll(A, 1, axis=-1))
    _, residual, *_ = np.linalg.lstsq(vec(A), vec(X), rcond=None)
    assert residual[0] > 1


@given(settings)
def test_vec_stacks_frontal_columns(case):
    _, _, (A,) = problem(case, (0, 1))
    M = vec(A)
    for j in range(A.shape[1]):
        np.testing.assert_array_equal(M[:, j], np.concatenate(list(A[:, j, :].T)))
    np.testing.assert_array_equal(ivec(M, A.shape[0]), A)


@pytest.mark.parametrize("spec", ["dft", "dct", ["dft", "dct"], ["none", "dft"]])
def test_more_trailing_axes(spec):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((3, 4, 2, 5)), rng.standard_normal((4, 2, 2, 5))
    t = resolve(spec, (2, 5))
    flat = naive.tprod(A.reshape(3, 4, 10), B.reshape(4, 2, 10), t.matrix)
    C = tprod(A, B, t)
    assert C.dtype == np.float64
    close(C.reshape(flat.shape), flat)
    U, S, V = tsvd(A, t)
    assert U.dtype == np.float64
    close(tprod(tprod(U, S, t), transpose(V, t), t), A)
    close(tprod(transpose(U, t), U, t), identity(3, (2, 5), t))
    close(ivec(vec(A), 3, (2, 5)), A)


def test_rank_tolerance():
    B, C = tensors([(6, 2), (2, 8)], 5)
    A = tprod(B, C)
    assert tubal_rank(A) == 2
    assert tubal_rank(A + 1e-7 * tensors([(6, 8)], 5, seed=3)[0]) == 6
    assert tubal_rank(A + 1e-7 * tensors([(6, 8)], 5, seed=3)[0], rtol=1e-4) == 2
    assert tubal_rank(A.astype(np.float32)) == 2
    assert tubal_rank(np.zeros((2, 3, 4))) == 0
    assert tsvd(np.zeros((2, 3, 4))).U.shape == (2, 0, 4)


def test_float32_stays_single():
    A, B = (T.astype(np.float32) for T in tensors([(3, 4), (4, 2)], 5))
    for t in ("dft", "dct", RandomOrthogonal(0, 5)):
        assert tprod(A, B, t).dtype == np.float32
        assert all(F.dtype == np.float32 for F in tsvd(A, t))


def test_integers_are_read_as_floats():
    A = np.arange(24).reshape(2, 3, 4)
    close(tprod(A, np.ones((3, 1, 4), dtype=int)), naive.tprod_circulant(A, np.ones((3, 1, 4))))
    assert tubal_rank(A) == tubal_rank(A.astype(float))


@pytest.mark.parametrize("n3", [4, 5])
def test_array_api_arrays(n3):
    A, B = tensors([(3, 4), (4, 2)], n3)
    for t in ("dft", "dct", RandomOrthogonal(0, n3)):
        a, b = strict.asarray(A), strict.asarray(B)
        C = tprod(a, b, t)
        assert isinstance(C, type(a))
        close(np.asarray(C), tprod(A, B, t))
        close(np.asarray(pinv(a, t)), pinv(A, t))
        close(nuclear_norm(a, t), nuclear_norm(A, t))


def test_same_numbers_with_one_thread_and_two():
    A, B = tensors([(6, 9), (9, 7)], 10)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append([tprod(A, B), *tsvd(A), np.array(nuclear_norm(A))])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tprod(np.ones((2, 3, 4)), np.ones((2, 3, 4))), r"got shapes \(2, 3, 4\)"),
        (lambda: tprod(np.ones((2, 3, 4)), np.ones((3, 2, 5))), "n2 x n4 x n3"),
        (lambda: tprod(np.ones((2, 3)), np.ones((3, 2))), "n1 x n2 x n3"),
        (lambda: tsvd(np.ones((2, 3))), r"3 or more axes .*got shape \(2, 3\)"),
        (
            lambda: tsvd(np.ones((2, 3, 4)), mode="thin"),
            "'skinny', 'economy' or 'full', got 'thin'",
        ),
        (lambda: inverse(np.ones((2, 3, 4))), "n x n x n3"),
        (lambda: inverse(np.ones((2, 2, 4))), "no inverse.*pinv"),
        (lambda: inner(np.ones((2, 2, 4)), np.ones((2, 2, 3))), "one shape"),
        (lambda: column_basis(3, 3, 4), r"i must lie in 0\.\.2, got 3"),
        (lambda: ivec(np.ones((7, 2)), 3), "multiple of n1 = 3"),
        (lambda: tprod(np.ones((2, 3, 4)), np.ones((3, 2, 4)), "rom"), "drawn anew in every call"),
        (lambda: tsvd(np.ones((2, 3, 4)), "data"), "fitted to data and none was given"),
        (lambda: tsvd(np.ones((2, 3, 4)), "fft"), "got 'fft'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_public_function_has_a_doctest():
    public = [
        f for n, f in vars(algebra).items() if callable(f) and f.__module__ == algebra.__name__
    ]
    for function in public:
        if not function.__name__.startswith("_") and function is not algebra.TSVD:
            assert ">>>" in function.__doc__, function.__name__
