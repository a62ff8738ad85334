"""Synthetic tensor subspaces: the truth that comes with the samples is true."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from tubal.datasets import TensorSubspaces, make_tensor_subspaces
from tubal.transforms import RandomOrthogonal, resolve

MATRIX = naive.random_orthogonal(4, seed=3)
TRANSFORMS = {
    "dft": ("dft", naive.dft_matrix(4)),
    "dct": ("dct", naive.dct_matrix(4)),
    "none": ("none", np.eye(4)),
    "matrix": (MATRIX, MATRIX),
    "scaled matrix": (3 * MATRIX, 3 * MATRIX),
    "rom": (RandomOrthogonal(5, 4), RandomOrthogonal(5, 4).matrix),
    "rom rule": (RandomOrthogonal(5), RandomOrthogonal(5, 4).matrix),
}

cases = st.fixed_dictionaries(
    {
        "n1": st.integers(1, 8),
        "n3": st.integers(1, 5),
        "n_subspaces": st.integers(1, 3),
        "rank": st.integers(1, 3),
        "samples_per_subspace": st.integers(1, 8),
        "outliers": st.sampled_from([0.0, 0.3, 0.9]),
        "missing": st.sampled_from([0.0, 0.2, 0.95]),
        "noise": st.sampled_from([0.0, 0.1]),
        "transform": st.sampled_from(["dft", "dct", "none", "rom"]),
        "random_state": st.integers(0, 99),
    }
)


def paper(X):
    """Samples in the paper's layout."""
    return np.moveaxis(X, 0, 1)


def energies(X):
    """Squared norms of the samples."""
    return (X**2).sum(axis=(1, 2))


def make(**options):
    defaults = {"n1": 10, "n3": 4, "n_subspaces": 3, "rank": 2, "samples_per_subspace": 12}
    return make_tensor_subspaces(**{**defaults, "random_state": 0, **options})


def close(A, B, tol=1e-10):
    np.testing.assert_allclose(A, B, rtol=tol, atol=tol)


# ---- subspaces ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("outliers", [0.0, 0.3])
def test_clean_samples_span_the_subspaces(name, outliers):
    """Each subspace has tubal rank 2, three of them together 6, in every slice."""
    transform, L = TRANSFORMS[name]
    data = make(transform=transform, outliers=outliers)
    np.testing.assert_array_equal(naive.multirank(paper(data.clean), L), [6] * 4)
    for label in range(3):
        part = paper(data.clean[data.labels == label])
        np.testing.assert_array_equal(naive.multirank(part, L), [2] * 4)
    rest = paper(data.clean[np.isin(data.labels, [0, 2])])
    assert naive.tubal_rank(rest, L) == 4


def test_samples_of_a_subspace_represent_each_other():
    """A sample is a t-combination of others of its subspace, not of another one."""
    data, L = make(outliers=0.0), naive.dft_matrix(4)
    A = paper(data.clean)
    basis, sample = A[:, 1:4], A[:, :1]
    for others, inside in ((basis, True), (A[:, 12:15], False)):
        fit = naive.tprod(others, naive.tprod(naive.pinv(others, L), sample, L), L)
        share = np.linalg.norm(sample - fit) / np.linalg.norm(sample)
        assert share < 1e-10 if inside else share > 0.1


def test_subspaces_belong_to_their_transform():
    data = make(transform="dct", outliers=0.0)
    assert naive.tubal_rank(paper(data.clean), naive.dct_matrix(4)) == 6
    assert naive.tubal_rank(paper(data.clean), naive.dft_matrix(4)) == 10


def test_rank_is_cut_by_the_size_of_a_sample():
    data, L = make(n1=5, outliers=0.0), naive.dft_matrix(4)
    assert naive.tubal_rank(paper(data.clean), L) == 5


@pytest.mark.parametrize("n3", [1, 2, 5])
def test_every_number_of_tubes(n3):
    data = make(n3=n3, outliers=0.0)
    assert data.X.shape == (36, 10, n3)
    np.testing.assert_array_equal(
        naive.multirank(paper(data.clean), naive.dft_matrix(n3)), [6] * n3
    )


def test_random_matrix_is_the_first_draw():
    """The name "rom" draws from the random state before anything else."""
    L = resolve("rom", 4, random_state=np.random.default_rng(0)).matrix
    data = make(transform="rom", outliers=0.0)
    assert naive.tubal_rank(paper(data.clean), L) == 6
    assert naive.tubal_rank(paper(data.clean), naive.random_orthogonal(4, seed=9)) == 10


@pytest.mark.parametrize(("transform", "tau"), [("dft", 5), ("dct", 1), ("none", 1)])
def test_size_of_samples(transform, tau):
    """Entries of A and B have variance 1/n1: a sample has energy `tau rank n3 / n1` in the mean."""
    sizes = {"n1": 8, "n3": 5, "n_subspaces": 60, "rank": 3, "samples_per_subspace": 20}
    data = make(**sizes, transform=transform, outliers=0.0)
    np.testing.assert_allclose(energies(data.clean).mean(), tau * 3 * 5 / 8, rtol=0.05)
    assert abs(data.clean.mean()) < 0.02 * data.clean.std()


# ---- outliers -----------------------------------------------------------------------------------


@given(cases)
def test_truth_is_consistent(case):
    data = make_tensor_subspaces(**case)
    n = case["n_subspaces"] * case["samples_per_subspace"]
    shape = (n, case["n1"], case["n3"])
    assert isinstance(data, TensorSubspaces)
    assert data.X.shape == data.clean.shape == shape
    assert data.X.dtype == data.clean.dtype == np.float64
    assert data.labels.shape == data.outliers.shape == (n,)
    assert data.outliers.dtype == bool
    assert data.labels.dtype.kind == "i"
    # Samples keep the order of their subspaces; outliers have label -1 and no clean part.
    order = np.repeat(np.arange(case["n_subspaces"]), case["samples_per_subspace"])
    np.testing.assert_array_equal(data.labels, np.where(data.outliers, -1, order))
    assert not data.clean[data.outliers].any()
    assert np.all(energies(data.clean[~data.outliers]) > 0)
    assert not np.isnan(data.clean).any()
    # What is seen of an inlier is its clean part, but for noise and holes.
    seen = ~np.isnan(data.X)
    assert np.all(seen.any(axis=(1, 2)))
    assert seen.all() or case["missing"] > 0
    if case["outliers"] == 0:
        assert not data.outliers.any()
    if case["noise"] == 0:
        inliers = seen & ~data.outliers[:, None, None]
        np.testing.assert_array_equal(data.X[inliers], data.clean[inliers])
    assert np.all(data.X[seen & data.outliers[:, None, None]] != 0)


def test_outliers_have_the_energy_of_an_average_sample():
    """Each has energy `zeta chi2(n1 n3) / (n1 n3)`, with zeta the mean over all samples drawn."""
    sizes = {"n1": 6, "n3": 5, "n_subspaces": 10, "samples_per_subspace": 100}
    data = make(**sizes, outliers=0.4)
    zeta = energies(make(**sizes, outliers=0.0).clean).mean()
    found = energies(data.X[data.outliers]) / zeta
    m, k = len(found), 30
    assert abs(found.mean() - 1) < 5 * np.sqrt(2 / (k * m))
    np.testing.assert_allclose(found.var(), 2 / k, rtol=0.3)
    entries = data.X[data.outliers].ravel() * np.sqrt(k / zeta)
    assert abs(entries.mean()) < 5 / np.sqrt(entries.size)
    np.testing.assert_allclose((entries**4).mean(), 3.0, rtol=0.05)  # Gaussian


def test_outliers_are_in_no_subspace():
    data, L = make(n1=16, outliers=0.3), naive.dft_matrix(4)
    A = paper(data.X)
    U = naive.tsvd_skinny(paper(data.clean), L)[0]
    rest = A - naive.tprod(U, naive.tprod(naive.transpose(U, L), A, L), L)
    shares = naive.column_norms(rest) / naive.column_norms(A)
    assert shares[data.outliers].min() > 0.4
    assert shares[~data.outliers].max() < 1e-10


def test_share_of_outliers():
    for share in (0.1, 0.5, 0.9):
        found = make(n_subspaces=20, samples_per_subspace=100, outliers=share).outliers
        assert abs(found.mean() - share) < 5 * np.sqrt(share * (1 - share) / len(found))


# ---- noise and holes ----------------------------------------------------------------------------


def test_noise_is_relative_to_the_entries():
    plain, noisy = (make(samples_per_subspace=100, noise=level) for level in (0.0, 0.2))
    np.testing.assert_array_equal(plain.clean, noisy.clean)
    np.testing.assert_array_equal(plain.outliers, noisy.outliers)
    zeta = energies(make(samples_per_subspace=100, outliers=0.0).clean).mean()
    added = noisy.X - plain.X
    np.testing.assert_allclose(added.std(), 0.2 * np.sqrt(zeta / 40), rtol=0.05)
    assert abs(added.mean()) < 5 * added.std() / np.sqrt(added.size)
    per_kind = [added[noisy.outliers].std(), added[~noisy.outliers].std()]
    np.testing.assert_allclose(per_kind, added.std(), rtol=0.05)


def test_holes_hide_entries_and_change_none():
    whole, holes = make(), make(missing=0.3)
    seen = ~np.isnan(holes.X)
    np.testing.assert_array_equal(holes.X[seen], whole.X[seen])
    np.testing.assert_array_equal(holes.clean, whole.clean)
    share = 0.3 * (1 - 1 / 40)  # one entry of each sample is never hidden
    spread = np.sqrt(0.3 * 0.7 / seen.size)
    assert abs((~seen).mean() - share) < 5 * spread
    # Holes fall on inliers and outliers, rows and tubes alike.
    for axes in ((0, 1), (0, 2)):
        np.testing.assert_allclose((~seen).mean(axis=axes), share, atol=0.1)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (3, 4)])
def test_every_sample_has_an_observed_entry(sizes):
    data = make(n1=sizes[0], n3=sizes[1], samples_per_subspace=60, missing=0.99)
    counts = (~np.isnan(data.X)).sum(axis=(1, 2))
    assert counts.min() == 1
    # The entry that stays is not always the same one.
    alone = np.argwhere(~np.isnan(data.X[counts == 1]))[:, 1:]
    assert len(np.unique(alone, axis=0)) == sizes[0] * sizes[1]


# ---- seeds --------------------------------------------------------------------------------------


@given(cases)
def test_a_seed_determines_everything(case):
    first, second = make_tensor_subspaces(**case), make_tensor_subspaces(**case)
    for name in ("X", "clean", "labels", "outliers"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    generator = np.random.default_rng(case["random_state"])
    third = make_tensor_subspaces(**{**case, "random_state": generator})
    np.testing.assert_array_equal(first.X, third.X)
    fourth = make_tensor_subspaces(**{**case, "random_state": generator})
    assert not np.array_equal(first.X, fourth.X, equal_nan=True)


def test_other_seeds_draw_other_samples():
    draws = [make(random_state=seed).X for seed in (0, 1, None, None)]
    for i, A in enumerate(draws):
        for B in draws[i + 1 :]:
            assert np.abs(A - B).min() > 0


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(noise=0.1, missing=0.1, transform="rom")
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_defaults_are_those_of_the_paper():
    data = make_tensor_subspaces(random_state=0)
    assert data.X.shape == (300, 60, 100)
    assert abs(data.outliers.mean() - 0.2) < 0.1
    assert not np.isnan(data.X).any()
    np.testing.assert_array_equal(np.unique(data.labels), [-1, 0, 1, 2, 3, 4])
    inliers = ~data.outliers
    np.testing.assert_array_equal(data.X[inliers], data.clean[inliers])
    hat = np.fft.rfft(data.clean[inliers], axis=2)[:, :, 7]
    assert np.linalg.matrix_rank(hat) == 30


def test_the_parts_are_arrays_of_their_own():
    data = make()
    data.X[:] = 0
    assert data.clean.any()
    with pytest.raises(AttributeError):
        data.X = data.clean


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n1", "n3", "n_subspaces", "rank", "samples_per_subspace"])
@pytest.mark.parametrize("bad", [0, -1, 2.0, "3", None, True])
def test_sizes_must_be_positive_integers(name, bad):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, got {bad!r}"):
        make(**{name: bad})


def test_integers_of_numpy_are_integers():
    data = make(n1=np.int64(10), rank=np.int32(2))
    np.testing.assert_array_equal(data.X, make().X)


@pytest.mark.parametrize("name", ["outliers", "missing"])
@pytest.mark.parametrize("bad", [1, 1.0, -0.1, 2, np.nan, np.inf])
def test_shares_must_lie_between_zero_and_one(name, bad):
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\), got {bad!r}"):
        make(**{name: bad})


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, -np.inf])
def test_noise_must_be_zero_or_positive(bad):
    with pytest.raises(ValueError, match=f"noise must be zero or positive, got {bad!r}"):
        make(noise=bad)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("fft", "got 'fft'"),
        ("data", "fitted to data and none was given"),
        (np.eye(3), "tubes of length 3, the data has 4"),
        (np.ones((4, 4)), "not orthogonal"),
        (RandomOrthogonal(0, 5), "the data has"),
    ],
)
def test_bad_transforms_are_named(transform, message):
    with pytest.raises(ValueError, match=message):
        make(transform=transform)
