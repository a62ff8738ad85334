"""Ties between samples against their definitions, and the search for neighbours by brute force."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import naive
from tubal import Lambda, representation, solve
from tubal.datasets import make_tensor_subspaces
from tubal.input import Samples, to_paper
from tubal.representation import (
    LISTED,
    Moduli,
    Representation,
    RowSpace,
    SparseTable,
    Ties,
    TubeKernel,
    TubeModuli,
    Whole,
    hat,
    nearest,
    neighbours,
    stack_tiles,
)
from tubal.sparse import lsr
from tubal.transforms import resolve

MATRICES = {"dft": naive.dft_matrix, "dct": naive.dct_matrix, "none": np.eye}

each_transform = pytest.mark.parametrize("name", MATRICES)


class Dense(Ties):
    """A table that is there already."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)
        self.shape = self.table.shape

    def tile(self, rows):
        return self.table[rows].copy()


def represent(similarity, twins="own"):
    """A representation of which only the similarity matters."""
    ties = similarity if isinstance(similarity, Ties) else Dense(similarity)
    m = ties.shape[0]
    empty = np.zeros((m, 1, 1))
    twins = np.arange(m) if isinstance(twins, str) else np.asarray(twins)
    return Representation(Samples(empty, None, False), empty, empty, ties, ties, twins)


def close(A, B, tol=1e-9):
    assert A.shape == B.shape
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


def coefficients(name, n=14, p=9, n3=4, rank=3, seed=0):
    """Real coefficients p x n x n3 of some rank, their slices (K, p, n), transform and matrix."""
    rng, L = np.random.default_rng(seed), MATRICES[name](n3)
    Z = naive.tprod(rng.standard_normal((p, rank, n3)), rng.standard_normal((rank, n, n3)), L)
    plan = resolve(name, n3)
    return Z, hat(plan, np.moveaxis(Z, 1, 0)), plan, L


def modulus(Z, L):
    """`(Z^H Z)^(1/2)` as a tensor, by the matrix square root of SciPy."""

    def one(z):
        gram = z.conj().T @ z
        return scipy.linalg.sqrtm(gram + 1e-13 * np.trace(gram).real * np.eye(len(gram)))

    return naive.inverse(naive.slicewise(one, naive.forward(Z, L)), L)


def similarities(C):
    """`||C_ij|| / sqrt(||C_ii|| ||C_jj||)` from tubes, one by one."""
    n = C.shape[1]
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            own = np.linalg.norm(C[i, i]) * np.linalg.norm(C[j, j])
            S[i, j] = np.linalg.norm(C[i, j]) / np.sqrt(own)
    return S


# ---- the kernel ---------------------------------------------------------------------------------


@each_transform
@pytest.mark.parametrize(("p", "rank"), [(9, 3), (9, 9), (20, 5), (3, 2)])
def test_kernel_is_the_modulus_of_the_coefficients(name, p, rank):
    Z, slices, plan, L = coefficients(name, p=p, rank=rank)
    kernel = TubeKernel.of(plan, slices)
    expected = similarities(modulus(Z, L))
    assert kernel.shape == (14, 14)
    close(kernel.tile(slice(None)), expected, 1e-5)
    close(kernel.tile(np.array([3, 0, 3])), expected[[3, 0, 3]], 1e-5)
    close(np.diag(kernel.tile(slice(None))), np.ones(14))
    close(kernel.tile(slice(None)), kernel.tile(slice(None)).T)


@pytest.mark.parametrize("name", ["dft", "dct"])
def test_kernel_of_several_axes(name):
    """Two axes are one tube under the Kronecker product of the transforms."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((10, 4, 2, 3))
    plan = resolve(name, (2, 3))
    flat = np.moveaxis(values.reshape(10, 4, 6), 1, 0)
    expected = similarities(modulus(flat, plan.matrix))
    close(TubeKernel.of(plan, hat(plan, values)).tile(slice(None)), expected, 1e-5)


@each_transform
def test_kernel_of_data_without_noise_is_z_itself(name):
    """Then `Z = V V^H` is its own modulus."""
    X = make_tensor_subspaces(8, 4, 2, 2, 10, 0, transform=name, random_state=0).X
    sol = solve(X, transform=name, lam=Lambda.relative(1.1), tol=1e-9)
    Z, L = sol.Z.to_array(), MATRICES[name](4)
    close(modulus(Z, L), Z, 1e-5)
    kernel = TubeKernel.of(sol.Z.transform, sol.Z.core)
    close(kernel.tile(slice(None)), similarities(Z), 1e-5)


@each_transform
def test_kernel_does_not_depend_on_coordinates(name):
    """Slices of Z and its coordinates in an orthonormal basis have one modulus."""
    X = make_tensor_subspaces(8, 4, 2, 2, 10, 0.2, noise=0.1, transform=name, random_state=0).X
    sol = solve(X, transform=name, lam=Lambda.relative(0.5), tol=1e-6)
    whole = TubeKernel.of(sol.Z.transform, hat(sol.Z.transform, sol.Z.to_array().swapaxes(0, 1)))
    assert len(whole.half[0]) > sol.Z.core.shape[1]
    close(TubeKernel.of(sol.Z.transform, sol.Z.core).tile(slice(None)), whole.tile(slice(None)))


@each_transform
def test_new_samples_that_are_old_ones(name):
    _, slices, plan, _ = coefficients(name)
    rows = np.array([5, 2, 13])
    old = TubeKernel.of(plan, slices)
    new = TubeKernel.of(plan, slices).extended(slices[:, :, rows])
    assert new.shape == (3, 14)
    close(new.tile(slice(None)), old.tile(rows), 1e-12)
    close(new.new, old.own[rows], 1e-12)


@each_transform
def test_new_samples_by_definition(name):
    """A new sample c has the tubes `c^H (Z Z^H)^(-1/2) Z` and `c^H (Z Z^H)^(-1/2) c`."""
    Z, slices, plan, L = coefficients(name, p=5, rank=5)
    C, cut, _, _ = coefficients(name, n=3, p=5, rank=5, seed=1)

    def inverse_root(z):
        root = scipy.linalg.sqrtm(z @ z.conj().T)  # SciPy 1.13 returns extended precision
        return np.linalg.inv(root.astype(np.result_type(z)))

    R = naive.slicewise(inverse_root, naive.forward(Z, L))
    Zh, Ch = naive.forward(Z, L), naive.forward(C, L)
    cross = naive.inverse(naive.slicewise(lambda c, r, z: c.conj().T @ r @ z, Ch, R, Zh), L)
    own = naive.inverse(naive.slicewise(lambda z, r: z.conj().T @ r @ z, Zh, R), L)
    new = naive.inverse(naive.slicewise(lambda c, r: c.conj().T @ r @ c, Ch, R), L)
    tile = TubeKernel.of(plan, slices).extended(cut).tile(slice(None))
    for i in range(3):
        for j in range(14):
            scale = np.linalg.norm(new[i, i]) * np.linalg.norm(own[j, j])
            np.testing.assert_allclose(
                tile[i, j], np.linalg.norm(cross[i, j]) / np.sqrt(scale), rtol=1e-9
            )


def test_kernel_of_samples_without_coefficients():
    _, slices, plan, _ = coefficients("dft")
    slices[:, :, 4] = 0
    tile = TubeKernel.of(plan, slices).tile(slice(None))
    assert not tile[4].any()
    assert not tile[:, 4].any()
    close(np.delete(np.diag(tile), 4), np.ones(13))
    zero = TubeKernel.of(plan, 0 * slices)
    assert not zero.tile(slice(None)).any()
    assert not TubeKernel.of(plan, slices).extended(0 * slices[:, :, :2]).tile(slice(None)).any()


def test_kernel_does_not_depend_on_the_scale_of_samples():
    _, slices, plan, _ = coefficients("dct", rank=9)
    new = slices[:, :, :3] + 0.5 * slices[:, :, 3:6]
    tile = TubeKernel.of(plan, slices).extended(new).tile(slice(None))
    close(TubeKernel.of(plan, slices).extended(1e-3 * new).tile(slice(None)), tile)
    close(TubeKernel.of(plan, 1e5 * slices).extended(new).tile(slice(None)), tile)


# ---- the other tables ---------------------------------------------------------------------------


@each_transform
def test_moduli_are_those_of_the_tubes(name):
    X = make_tensor_subspaces(6, 5, 2, 2, 8, 0.2, noise=0.1, transform=name, random_state=0).X
    sol = solve(X, transform=name, lam=Lambda.relative(0.5), tol=1e-6)
    ties = TubeModuli(sol.Z, sol.Z.core, sol.Z.transform, len(sol.L))
    Z = sol.Z.to_array()
    expected = np.zeros((16, 16))
    for i in range(16):
        for j in range(16):
            expected[j, i] = np.abs(Z[i, j]).mean()  # a row a sample that is represented
    assert ties.shape == (16, 16)
    close(ties.tile(slice(None)), expected, 1e-12)
    close(ties.tile(np.array([7, 2])), expected[[7, 2]], 1e-12)
    assert np.abs(expected - expected.T).max() > 1e-3


def test_moduli_of_several_axes_and_new_samples():
    X = np.random.default_rng(0).standard_normal((9, 4, 2, 3))
    sol = solve(X, lam=Lambda.relative(0.5))
    ties = TubeModuli(sol.Z, sol.Z.core[:, :, :2], sol.Z.transform, len(sol.L))
    assert ties.shape == (2, 9)
    close(ties.tile(slice(None)), np.abs(sol.Z.to_array())[:, :2].mean(axis=(2, 3)).T, 1e-12)


@pytest.mark.parametrize("shape", [(12, 5, 3), (12, 5), (5, 12, 3), (6, 4, 2, 2)])
def test_row_space_of_the_sum_of_the_slices(shape):
    rng = np.random.default_rng(0)
    L = rng.standard_normal(shape)
    L0 = np.zeros((shape[1], shape[0]))
    flat = L.reshape(*shape[:2], -1)
    for k in range(flat.shape[2]):
        L0 += flat[:, :, k].T
    V0 = np.linalg.svd(L0, full_matrices=False)[2].T
    ties = RowSpace.of(L)
    assert ties.shape == (shape[0], shape[0])
    close(ties.tile(slice(None)), np.abs(V0 @ V0.T))
    close(ties.tile(np.array([2, 0])), np.abs(V0 @ V0.T)[[2, 0]])
    close(RowSpace.of(L).extended(L[[3, 1]]).tile(slice(None)), np.abs(V0 @ V0.T)[[3, 1]])


def test_row_space_of_low_rank():
    rng = np.random.default_rng(0)
    L = (rng.standard_normal((12, 2)) @ rng.standard_normal((2, 5)))[..., None]
    P = L[..., 0] @ np.linalg.pinv(L[..., 0])
    ties = RowSpace.of(L)
    assert ties.rows.shape == (12, 2)
    close(ties.tile(slice(None)), np.abs(P))
    new = rng.standard_normal((3, 5, 1))
    close(
        RowSpace.of(L).extended(new).tile(slice(None)),
        np.abs(new[..., 0] @ np.linalg.pinv(L[..., 0])),
    )
    assert not RowSpace.of(0 * L).tile(slice(None)).any()


def test_sparse_table():
    table = np.array([[0.0, -2.0, 1.0], [0.0, 0.0, 0.0], [-4.0, 1.0, 0.0], [3.0, 0.0, -3.0]])
    ties = SparseTable(scipy.sparse.csr_array(table))
    unit = SparseTable(scipy.sparse.csr_array(table), unit=True)
    assert ties.shape == unit.shape == (4, 3)
    np.testing.assert_array_equal(ties.tile(slice(None)), np.abs(table))
    np.testing.assert_array_equal(
        unit.tile(slice(None)), [[0, 1, 0.5], [0, 0, 0], [1, 0.25, 0], [1, 0, 1]]
    )
    np.testing.assert_array_equal(unit.tile(np.array([2, 1])), [[1, 0.25, 0], [0, 0, 0]])


@pytest.mark.parametrize("n_features", [3, 20])
def test_moduli(n_features):
    codes = lsr(np.random.default_rng(0).standard_normal((8, n_features)))
    C = np.abs(codes.coefficients)
    ties, unit = Moduli(codes), Moduli(codes, unit=True)
    assert ties.shape == unit.shape == (8, 8)
    close(ties.tile(slice(None)), C)
    close(unit.tile(slice(2, 5)), (C / C.max(axis=1, keepdims=True))[2:5])
    close(ties.tile(np.array([6, 1])), C[[6, 1]])
    ties.tile(slice(None))[:] = 0  # no view of the codes
    close(ties.tile(slice(None)), C)


def test_residuals_and_norms():
    rng = np.random.default_rng(0)
    X, E = rng.standard_normal((2, 5, 3, 2))
    rep = Representation(Samples(X, None, False), X - E, E, None, None, np.arange(5))
    for j in range(5):
        np.testing.assert_allclose(rep.norms()[j], np.sqrt((X[j] ** 2).sum()))
        np.testing.assert_allclose(rep.residuals()[j], np.sqrt((E[j] ** 2).sum()))


def test_stacked_tiles(monkeypatch):
    table = np.random.default_rng(0).standard_normal((23, 7))
    monkeypatch.setattr(representation, "TILE", 5)
    for n_jobs in (1, 3):
        stacked = stack_tiles(Dense(table), lambda tile, _: np.clip(tile, 0, None), n_jobs)
        assert isinstance(stacked, scipy.sparse.csr_array)
        np.testing.assert_array_equal(stacked.toarray(), np.clip(table, 0, None))


def test_slices_of_values():
    X = np.random.default_rng(0).standard_normal((7, 3, 4))
    full = naive.forward(to_paper(X), naive.dft_matrix(4))
    close(hat(resolve("dft", 4), X), np.moveaxis(full, 2, 0)[:3])
    close(hat(resolve("dft", 1), X[..., 0]), X[..., 0].T[None])


# ---- neighbours ---------------------------------------------------------------------------------


def brute(S, count, twins, hidden=None, rows=None):
    """Sort every row; equal values in the order of the columns."""
    rows = range(len(S)) if rows is None else rows
    index, value = [], []
    for place, i in enumerate(rows):
        candidates = []
        for j in range(S.shape[1]):
            barred = j == twins[i] or (hidden is not None and hidden[place, j])
            candidates.append((-1.0 if barred else S[i, j], j))
        best = sorted(candidates, key=lambda pair: (-pair[0], pair[1]))[:count]
        index.append([j for _, j in best])
        value.append([max(s, 0.0) for s, _ in best])
    return np.array(index), np.array(value)


def agrees(found, expected):
    np.testing.assert_array_equal(found.index, expected[0])
    np.testing.assert_allclose(found.value, expected[1], rtol=0, atol=1e-9)


@given(
    st.integers(1, 9), st.integers(1, 30), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99)
)
def test_neighbours_by_brute_force(m, n, count, levels, seed):
    """Few different values: almost everything is a tie, and the first columns win."""
    rng = np.random.default_rng(seed)
    S = rng.integers(0, levels + 1, (m, n)) / levels
    twins = rng.integers(-1, n, m)
    hidden = rng.random((m, n)) < 0.3
    agrees(neighbours(represent(S, twins), count), brute(S, min(count, n), twins))
    found = neighbours(represent(S, twins), count, hidden=hidden[0])
    agrees(found, brute(S, min(count, n), twins, np.tile(hidden[0], (m, 1))))
    rows = rng.integers(0, m, 5)
    found = neighbours(represent(S, twins), count, rows=rows, hidden=lambda part: hidden[part])
    agrees(found, brute(S, min(count, n), twins, hidden[rows], rows))


def test_neighbours_of_many_rows(monkeypatch):
    rng = np.random.default_rng(0)
    S = rng.random((300, 40))
    twins = rng.integers(-1, 40, 300)
    expected = brute(S, 6, twins)
    for tile in (representation.TILE, 1, 7, 1000):
        monkeypatch.setattr(representation, "TILE", tile)
        agrees(neighbours(represent(S, twins), 6), expected)


def test_neighbours_that_differ_by_rounding_are_equal():
    S = np.array([[0.5, 0.7 - 1e-13, 0.7, 0.7 + 1e-13, 0.1]])
    found = neighbours(represent(S, [-1]), 3)
    np.testing.assert_array_equal(found.index, [[1, 2, 3]])
    found = neighbours(represent(S, [-1]), 2)
    np.testing.assert_array_equal(found.index, [[1, 2]])


def test_the_first_of_many_equal_ones_at_the_end_of_the_list():
    """Where a partial sort would take any of them."""
    S = np.zeros((3, 500))
    S[:, 400], S[:, 100] = 1.0, 0.5
    found = neighbours(represent(S, [0, 400, 2]), 5)
    np.testing.assert_array_equal(
        found.index, [[400, 100, 1, 2, 3], [100, 0, 1, 2, 3], [400, 100, 0, 1, 3]]
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("levels", [2, 30, 10**6])
@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_neighbours_among_many_columns(count, levels, dtype):
    rng = np.random.default_rng(count)
    S = (rng.integers(0, levels + 1, (20, 515)) / levels).astype(dtype)
    twins = rng.integers(-1, 515, 20)
    found = neighbours(represent(Whole(S), twins), count)
    expected = brute(S, count, twins)
    np.testing.assert_array_equal(found.index, expected[0])
    np.testing.assert_allclose(found.value, expected[1], atol=1e-9)
    assert found.value.dtype == float


def test_tiles_of_a_table_are_copies():
    table = Whole(np.eye(3))
    for rows in (slice(None), np.array([0, 2])):
        table.tile(rows)[:] = 7
    np.testing.assert_array_equal(table.table, np.eye(3))


def test_fewer_columns_than_asked_for():
    S = np.array([[1.0, 0.4, 0.9], [0.4, 1.0, 0.2], [0.9, 0.2, 1.0]])
    found = neighbours(represent(S), 10)
    np.testing.assert_allclose(found.value, [[0.9, 0.4, 0], [0.4, 0.2, 0], [0.9, 0.2, 0]])
    np.testing.assert_array_equal(found.index[:, :2], [[2, 1], [0, 2], [0, 1]])
    found = neighbours(represent(S), 2, hidden=np.array([True, False, True]))
    np.testing.assert_allclose(found.value, [[0.4, 0], [0, 0], [0.2, 0]])
    assert found.index[0, 0] == found.index[2, 0] == 1
    assert neighbours(represent(S), 0).index.shape == (3, 0)
    assert neighbours(represent(S), 2, rows=np.arange(0)).index.shape == (0, 2)
    alone = neighbours(represent(np.ones((1, 1))), 3)
    np.testing.assert_array_equal(alone.value, [[0.0]])


@pytest.mark.parametrize("n", [LISTED - 1, LISTED, LISTED + 1, LISTED + 2, 3 * LISTED])
def test_lists_are_left_where_they_do_not_reach(n):
    """A new sample has one other sample more than a sample of the fit, which is none to itself."""
    rng = np.random.default_rng(n)
    S, twins = rng.random((6, n)) + 0.1, np.array([-1, 0, -1, n - 1, 5, -1])
    for _ in range(20):
        kept = rng.random(n) < 2 / n
        kept[rng.integers(n)] = True
        found = nearest(represent(S, twins), 5, kept)
        expected = brute(S, 5, twins, np.tile(~kept, (6, 1)))
        np.testing.assert_allclose(found.value, expected[1], atol=1e-9)
        there = expected[1] > 0
        np.testing.assert_array_equal(found.index[there], expected[0][there])


def test_the_same_for_any_number_of_threads():
    X = make_tensor_subspaces(10, 4, 3, 2, 120, 0.1, noise=0.1, random_state=0).X
    sol = solve(X, lam=Lambda.relative(0.5), tol=1e-3)
    rep = represent(TubeKernel.of(sol.Z.transform, sol.Z.core))
    first = neighbours(rep, 8, n_jobs=1)
    for n_jobs in (1, 2, 5, None):
        other = neighbours(rep, 8, n_jobs=n_jobs)
        np.testing.assert_array_equal(other.index, first.index)
        np.testing.assert_array_equal(other.value, first.value)
