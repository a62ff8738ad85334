"""Similarities at several ranks against a dense version in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from tubal import transforms
from tubal.scales import FACTORS, ScaleKernel, View, combinations, comparison


def matrix_of(transform, n3, values=None):
    """Return the explicit matrix of a transform of the library."""
    if transform == "dft":
        return naive.dft_matrix(n3)
    if transform == "dct":
        return naive.dct_matrix(n3)
    plan = transforms.resolve(transform, n3, data=values, random_state=0)
    return plan.forward(np.eye(n3), axis=0)


def samples(n, n1, n3, rank=None, seed=0):
    """Gaussian samples; with a rank, all in so many directions of R^(n1 n3)."""
    rng = np.random.default_rng(seed)
    if rank is None:
        return rng.standard_normal((n, n1, n3))
    flat = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n1 * n3))
    return flat.reshape(n, n1, n3)


def whole(kernel):
    return kernel.tile(np.arange(kernel.shape[0]))


def naive_similarity(values, L, factors=FACTORS):
    return naive.scale_similarity(np.moveaxis(values, 0, 1), L, factors)


@pytest.mark.parametrize("transform", ["dft", "dct", "data", "rom"])
@pytest.mark.parametrize(
    ("n", "n1", "n3"),
    [(12, 5, 4), (12, 5, 5), (6, 15, 3), (25, 3, 2), (9, 1, 6), (2, 3, 2), (7, 4, 1)],
)
def test_dense_version(transform, n, n1, n3):
    values = samples(n, n1, n3, seed=n)
    L = matrix_of(transform, n3, values)
    kernel = ScaleKernel.of(values, View(transform))
    np.testing.assert_allclose(whole(kernel), naive_similarity(values, L), atol=5e-5)
    expected = naive.suggested_rank(np.moveaxis(values, 0, 1), L)
    assert kernel.rank == pytest.approx(expected, rel=1e-5)
    assert kernel.shape == (n, n)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("transform", ["dft", "dct"])
def test_samples_in_few_directions(transform, rank):
    values = samples(14, 6, 5, rank=rank)
    L = matrix_of(transform, 5)
    S = whole(ScaleKernel.of(values, View(transform)))
    np.testing.assert_allclose(S, naive_similarity(values, L), atol=2e-5)


@pytest.mark.parametrize("shape", [(8, 1), (4, 3), (3, 2, 2)])
def test_samples_as_vectors(shape):
    values = np.random.default_rng(0).standard_normal((15, *shape))
    S = whole(ScaleKernel.of(values, View("none", None)))
    expected = naive_similarity(values.reshape(15, -1, 1), np.eye(1))
    np.testing.assert_allclose(S, expected, atol=2e-5)


@pytest.mark.parametrize("axis", [1, 2])
def test_another_axis_first(axis):
    """As if the user had turned the samples, those of the fit and new ones."""
    values, new = (np.random.default_rng(seed).standard_normal((12, 3, 4, 5)) for seed in (0, 1))
    kernel = ScaleKernel.of(values, View("dct", axis))
    turned = ScaleKernel.of(np.moveaxis(values, 1 + axis, 1), View("dct"))
    np.testing.assert_array_equal(whole(kernel), whole(turned))
    np.testing.assert_array_equal(
        whole(kernel.extended(new)), whole(turned.extended(np.moveaxis(new, 1 + axis, 1)))
    )


def test_no_transform_along_tubes():
    values = samples(11, 4, 3)
    S = whole(ScaleKernel.of(values, View("none")))
    np.testing.assert_allclose(S, naive_similarity(values, np.eye(3)), atol=2e-5)


def test_more_trailing_axes():
    values = np.random.default_rng(0).standard_normal((10, 4, 3, 2))
    kernel = ScaleKernel.of(values, View("dft"))
    L = np.kron(naive.dft_matrix(3), naive.dft_matrix(2))
    expected = naive_similarity(values.reshape(10, 4, 6), L)
    np.testing.assert_allclose(whole(kernel), expected, atol=2e-5)


@pytest.mark.parametrize("factors", [(1.0,), (0.3, 1.9), (1.0, 1.0)])
def test_factors(factors):
    values = samples(16, 6, 3)
    S = whole(ScaleKernel.of(values, View("dct"), factors))
    expected = naive_similarity(values, naive.dct_matrix(3), factors)
    np.testing.assert_allclose(S, expected, atol=2e-5)


@settings(max_examples=40)
@given(
    n=st.integers(1, 12),
    n1=st.integers(1, 6),
    n3=st.integers(1, 5),
    transform=st.sampled_from(["dft", "dct", "none"]),
    seed=st.integers(0, 99),
)
def test_symmetric_with_ones_on_the_diagonal(n, n1, n3, transform, seed):
    values = samples(n, n1, n3, seed=seed)
    S = whole(ScaleKernel.of(values, View(transform)))
    assert S.dtype == np.float32
    np.testing.assert_allclose(S, S.T, atol=1e-6)
    np.testing.assert_allclose(np.diag(S), 1, atol=1e-6)
    assert S.min() >= 0
    assert S.max() <= 1


@pytest.mark.parametrize("transform", ["dft", "dct", "data"])
def test_samples_of_the_fit_come_back_with_their_rows(transform):
    values = samples(20, 6, 5)
    kernel = ScaleKernel.of(values, View(transform))
    again = kernel.extended(values[[7, 0, 3]])
    assert again.shape == (3, 20)
    np.testing.assert_allclose(whole(again), whole(kernel)[[7, 0, 3]], atol=1e-4)
    np.testing.assert_allclose(whole(kernel.extended(values)), whole(kernel), atol=1e-4)


def test_new_samples_are_coded_by_the_solution():
    """`z = V (1 - theta / S^2)_+ S^-1 U^H x` is the row of a new sample, at each rank."""
    values, new = samples(18, 5, 4), samples(3, 5, 4, seed=9)
    L = naive.dct_matrix(4)
    rank = naive.suggested_rank(np.moveaxis(values, 0, 1), L)
    X, Y = (naive.forward(np.moveaxis(A, 0, 1), L) for A in (values, new))
    total = np.zeros((3, 18))
    for factor in FACTORS:
        Z = naive.closed_form(np.moveaxis(values, 0, 1), L, factor * rank)
        back = [np.linalg.pinv(X[:, :, k]) @ Y[:, :, k] for k in range(4)]  # X+ y
        ties = np.sqrt(sum(np.abs(Z[k] @ back[k]) ** 2 for k in range(4)))
        own = np.sqrt(sum(np.abs(np.diag(Z[k])) ** 2 for k in range(4)))
        mine = np.sqrt(
            sum(np.abs(np.einsum("im,ij,jm->m", back[k], Z[k], back[k])) ** 2 for k in range(4))
        )
        total += (ties / np.sqrt(np.outer(own, mine))).T
    kernel = ScaleKernel.of(values, View("dct")).extended(new)
    expected = np.minimum(total / len(FACTORS), 1)
    np.testing.assert_allclose(whole(kernel), expected, atol=1e-4)


@pytest.mark.parametrize("transform", ["dft", "dct"])
def test_products_or_one_slice_after_another(transform, monkeypatch):
    """Both ways to the squares of similarities, also mixed, give the same."""
    values, new = samples(40, 9, 4), samples(6, 9, 4, seed=1)
    expected = []
    for most in (100, 0, 30):
        monkeypatch.setattr(combinations, "MOST_FEATURES", most)
        kernel = ScaleKernel.of(values, View(transform))
        expected.append((whole(kernel), whole(kernel.extended(new))))
        one_by_one = [len(part.single) for part in kernel.columns]
        assert {100: sum(one_by_one) == 0, 0: min(one_by_one) > 0, 30: sum(one_by_one) > 0}[most]
    for other in expected[1:]:
        for a, b in zip(expected[0], other, strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


def test_large_products_are_not_kept(monkeypatch):
    kernel = ScaleKernel.of(samples(40, 9, 4), View("dct"))
    S = whole(kernel)
    monkeypatch.setattr(combinations, "MOST_BYTES", 0)
    again = ScaleKernel.of(samples(40, 9, 4), View("dct"))
    np.testing.assert_allclose(whole(again), S, atol=2e-5)
    assert [part.products.shape for part in again.columns] == 3 * [(0, 40)]


def test_tiles_do_not_matter():
    kernel = ScaleKernel.of(samples(30, 6, 4), View("dft"))
    S = whole(kernel)
    for rows in (slice(3, 17), np.array([4, 2, 29]), np.array([11])):
        np.testing.assert_allclose(kernel.tile(rows), S[rows], atol=1e-6)


@pytest.mark.parametrize("size", [1e-38, 1e-30, 1e30, 1e38])
def test_sizes_outside_of_single_precision(size):
    values, new = samples(12, 5, 4), samples(4, 5, 4, seed=1)
    kernel, scaled = (ScaleKernel.of(A, View("dct")) for A in (values, size * values))
    np.testing.assert_allclose(whole(scaled), whole(kernel), atol=1e-5)
    expected = whole(kernel.extended(new))
    np.testing.assert_allclose(whole(scaled.extended(size * new)), expected, atol=1e-5)
    np.testing.assert_allclose(whole(kernel.extended(size * new)), expected, atol=1e-5)


@pytest.mark.parametrize("transform", ["dft", "dct"])
@pytest.mark.parametrize("factor", [1e-5, 1e-11, 1e-25])
def test_small_samples_keep_their_similarities(factor, transform):
    """Small beside others: not more than rounding is left of them in the spectrum."""
    values = samples(30, 6, 4, rank=3)
    values[::2] *= factor
    S = whole(ScaleKernel.of(values, View(transform)))
    np.testing.assert_allclose(S.diagonal(), 1, atol=1e-5)
    only = whole(ScaleKernel.of(values[1::2], View(transform)))
    np.testing.assert_allclose(S[1::2, 1::2], only, atol=1e-5)
    levelled = values.copy()
    levelled[::2] /= factor
    new = ScaleKernel.of(values, View(transform)).extended(levelled)
    np.testing.assert_allclose(S, whole(new), atol=1e-4)


def test_levels_change_no_digit(monkeypatch):
    values = samples(30, 6, 4) * np.logspace(0, -3, 30)[:, None, None]
    first = whole(ScaleKernel.of(values, View("dft")))
    monkeypatch.setattr(combinations, "SMALL", 100)
    np.testing.assert_array_equal(whole(ScaleKernel.of(values, View("dft"))), first)


def test_a_zero_sample_is_like_nothing():
    values = samples(10, 5, 4)
    values[3] = 0
    kernel = ScaleKernel.of(values, View("dft"))
    S, others = whole(kernel), np.arange(10) != 3
    assert not S[3].any()
    assert not S[:, 3].any()
    alone = whole(ScaleKernel.of(values[others], View("dft")))
    np.testing.assert_allclose(S[np.ix_(others, others)], alone, atol=1e-5)
    assert not whole(kernel.extended(np.zeros((2, 5, 4)))).any()


def test_zero_data():
    kernel = ScaleKernel.of(np.zeros((5, 3, 2)), View("dft"))
    assert kernel.rank == 0
    np.testing.assert_array_equal(whole(kernel), np.zeros((5, 5)))
    np.testing.assert_array_equal(whole(kernel.extended(np.ones((2, 3, 2)))), np.zeros((2, 5)))


def test_one_sample():
    kernel = ScaleKernel.of(samples(1, 3, 4), View("dft"))
    np.testing.assert_allclose(whole(kernel), [[1]], atol=1e-6)


def test_copies_are_alike():
    values = samples(8, 5, 3)
    values[5] = 3 * values[2]
    S = whole(ScaleKernel.of(values, View("dct")))
    assert S[2, 5] == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(S[2], S[5], atol=1e-5)


@pytest.mark.parametrize("transform", ["dft", "dct"])
def test_many_samples_and_few_new_ones(monkeypatch, transform):
    """Whether products are kept depends on the samples of the fit, not on the new ones."""
    X = np.random.default_rng(0).standard_normal((40, 6, 5))
    with_products = ScaleKernel.of(X, View(transform)).extended(X[:2]).tile(slice(None))
    monkeypatch.setattr(combinations, "MOST_BYTES", 4 * combinations.MOST_FEATURES * 10)
    kernel = ScaleKernel.of(X, View(transform))
    assert len(kernel.columns[0].products) == 0
    np.testing.assert_allclose(kernel.extended(X[:2]).tile(slice(None)), with_products, atol=1e-5)


@pytest.mark.parametrize("transform", ["dft", "dct", "none"])
def test_whole_table(transform, monkeypatch):
    """Each pair is computed once, and is what the tiles say, for any tiles and threads."""
    kernel = ScaleKernel.of(samples(70, 15, 6), View(transform))
    for tile, n_jobs in ((128, 1), (9, 1), (9, 3)):
        monkeypatch.setattr(comparison, "TILE", tile)
        table = kernel.whole(n_jobs).table
        np.testing.assert_array_equal(table, table.T)
        np.testing.assert_allclose(table, whole(kernel), atol=1e-6)
    new = kernel.extended(samples(5, 15, 6, seed=1))
    np.testing.assert_array_equal(new.whole(1).table, kernel.whole(1).table)


@pytest.mark.parametrize("most", [0, 10**6])
def test_some_columns(most, monkeypatch):
    monkeypatch.setattr(combinations, "MOST_FEATURES", most)
    kernel = ScaleKernel.of(samples(30, 5, 4), View("dft"))
    part = kernel.tile(np.array([4, 20]), slice(7, 19))
    np.testing.assert_allclose(part, whole(kernel)[[4, 20], 7:19], atol=1e-6)
