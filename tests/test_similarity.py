"""Similarities read off coefficients, against full decompositions in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from tubal import Lambda, representation, solve, transforms
from tubal.datasets import make_tensor_subspaces
from tubal.representation import TubeKernel
from tubal.similarity import STRENGTHS, GaussianKernel, Shrunken, Spectrum, View, shrunken
from tubal.similarity.views import LANDMARKS

ROUNDING = 1e-4  # similarities are in single precision


def samples(n=20, n1=6, n3=5, rank=None, seed=0):
    """Gaussian samples; with a rank, all in so many directions of R^(n1 n3)."""
    rng = np.random.default_rng(seed)
    if rank is None:
        return rng.standard_normal((n, n1, n3))
    flat = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n1 * n3))
    return flat.reshape(n, n1, n3)


def matrix_of(name, n3):
    return {"dft": naive.dft_matrix, "dct": naive.dct_matrix, "none": np.eye}[name](n3)


def spectrum(values, name="dct", axis=0):
    return Spectrum.of(values, np.ones(len(values)), View(name, axis))


def all_of(ties):
    return ties.tile(slice(None))


def normalised(slices, tau):
    """`||C_ij|| / sqrt(||C_ii|| ||C_jj||)`, the norms those of tubes."""
    size = np.sqrt(sum(np.abs(C) ** 2 for C in slices) / tau)
    own = np.sqrt(np.diag(size))
    safe = np.where(own > 0, own, 1)
    return size / np.outer(safe, safe) * np.outer(own > 0, own > 0)


def at_least(share, total):
    """The share of so many directions of all slices that is kept: never fewer than a few."""
    return max(share, min(1, shrunken.FEWEST / total))


def naive_closed_form(values, L, rank, strengths=STRENGTHS):
    """Full SVDs; `V (1 - theta / S^2)_+ V^H` at the share of the effective rank; the mean."""
    X, tau = np.moveaxis(values, 0, 1), naive.scale(L)
    ranks = [rank * at_least(share, rank * len(L)) for share in strengths]
    return np.mean([normalised(naive.closed_form(X, L, each), tau) for each in ranks], axis=0)


def naive_of_coefficients(Z, L, strengths=STRENGTHS):
    """Moduli of the slices of Z, whose values f become `(1 - t (1 - f))_+`; t by halving."""
    hat, tau = naive.forward(Z, L), naive.scale(L)
    parts = [np.linalg.svd(hat[:, :, k])[1:] for k in range(hat.shape[2])]
    largest = max(1.0, max(f.max() for f, _ in parts))
    parts = [(np.minimum(f / largest, 1 - 1e-7), vh) for f, vh in parts]

    def shrunken_by(t):
        return [np.maximum(1 - t * (1 - f), 0) for f, _ in parts]

    total, tables = sum(f.sum() for f, _ in parts), []
    for share in (at_least(share, total) for share in strengths):
        low, high = 0.0, np.log(1e8)
        for _ in range(80):
            middle = (low + high) / 2
            enough = sum(f.sum() for f in shrunken_by(np.exp(middle))) > share * total
            low, high = (middle, high) if enough else (low, middle)
        values = shrunken_by(np.exp(low)) if share < 1 else [f for f, _ in parts]
        moduli = [(vh.conj().T * f) @ vh for f, (_, vh) in zip(values, parts, strict=True)]
        tables.append(normalised(moduli, tau))
    return np.mean(tables, axis=0)


# ---- the closed form ----------------------------------------------------------------------------


class TestClosedForm:
    @pytest.mark.parametrize("name", ["dft", "dct", "none"])
    @pytest.mark.parametrize(
        ("n", "n1", "n3"), [(20, 6, 5), (20, 6, 4), (7, 15, 3), (25, 3, 2), (9, 1, 6), (12, 8, 1)]
    )
    def test_naive_version(self, name, n, n1, n3):
        values, L = samples(n, n1, n3, seed=n), matrix_of(name, n3)
        made = spectrum(values, name)
        expected = naive.suggested_rank(np.moveaxis(values, 0, 1), L)
        assert made.rank == pytest.approx(expected, rel=1e-5)
        most = 0.9 * made.largest_rank
        for rank in (0.3 * most, most):
            found = all_of(made.similarity(rank))
            np.testing.assert_allclose(found, naive_closed_form(values, L, rank), atol=ROUNDING)

    @pytest.mark.parametrize("name", ["dft", "dct"])
    @pytest.mark.parametrize("rank", [1, 3])
    def test_samples_in_few_directions(self, name, rank):
        values, L = samples(14, rank=rank), matrix_of(name, 5)
        made = spectrum(values, name)
        assert made.largest_rank <= rank
        expected = naive_closed_form(values, L, 0.5 * rank)
        np.testing.assert_allclose(all_of(made.similarity(0.5 * rank)), expected, atol=ROUNDING)

    @pytest.mark.parametrize("strengths", [(1.0,), (0.3, 0.6), (0.5, 0.5)])
    def test_strengths(self, strengths):
        values, L = samples(), matrix_of("dct", 5)
        found = all_of(spectrum(values).similarity(3.0, strengths))
        np.testing.assert_allclose(
            found, naive_closed_form(values, L, 3.0, strengths), atol=ROUNDING
        )

    def test_few_directions_are_always_left(self, monkeypatch):
        """With a single one, all samples would be alike."""
        made = spectrum(samples(), "none", None)
        found, weakest = (all_of(made.similarity(4.0, (s,))) for s in (0.01, 1.0))
        np.testing.assert_allclose(found, all_of(made.similarity(2.0, (1.0,))), atol=1e-6)
        assert found.std() > 0.5 * weakest.std()
        monkeypatch.setattr(shrunken, "FEWEST", 0.0)
        alike = all_of(made.similarity(4.0, (0.01,)))
        assert alike.min() > 0.999

    def test_samples_as_vectors(self):
        values = samples()
        found = all_of(spectrum(values, "none", None).similarity(8.0))
        expected = naive_closed_form(values.reshape(20, -1, 1), np.eye(1), 8.0)
        np.testing.assert_allclose(found, expected, atol=ROUNDING)

    @pytest.mark.parametrize("axis", [1, 2])
    def test_another_axis_first(self, axis):
        """As if the user had turned the samples."""
        values = np.random.default_rng(0).standard_normal((12, 3, 4, 5))
        view = spectrum(values, "dct", axis)
        turned = spectrum(np.moveaxis(values, 1 + axis, 1), "dct")
        np.testing.assert_array_equal(*(all_of(made.similarity(2.0)) for made in (view, turned)))

    def test_the_closed_form_is_what_its_coefficients_say(self):
        """Both ways to similarities: from the spectrum, and from Z at the weakest shrinkage."""
        values, L = samples(), matrix_of("dft", 5)
        direct = all_of(spectrum(values, "dft").similarity(3.0))
        hat = np.stack(naive.closed_form(np.moveaxis(values, 0, 1), L, 3.0))
        plan = transforms.resolve("dft", 5)
        made = Shrunken.of_coefficients(plan, hat[: plan.n_slices])
        np.testing.assert_allclose(all_of(made), direct, atol=ROUNDING)

    @pytest.mark.parametrize("name", ["dft", "dct"])
    @pytest.mark.parametrize("factor", [-3.0, 1e-5, 1e-11])
    def test_multiples_have_the_same_similarities(self, name, factor):
        values = samples(16)
        values[5] = factor * values[2]
        found = all_of(spectrum(values, name).similarity(3.0))
        assert found[2, 5] == pytest.approx(1, abs=ROUNDING)
        np.testing.assert_allclose(found[2], found[5], atol=ROUNDING)

    @pytest.mark.parametrize("size", [1e-38, 1e-30, 1e30, 1e38])
    def test_scale_does_not_matter(self, size):
        values = samples()
        expected = all_of(spectrum(values).similarity(3.0))
        found = all_of(spectrum(size * values).similarity(3.0))
        np.testing.assert_allclose(found, expected, atol=1e-5)

    @settings(max_examples=25)
    @given(
        n=st.integers(1, 12),
        n1=st.integers(1, 6),
        n3=st.integers(1, 5),
        name=st.sampled_from(["dft", "dct", "none"]),
        seed=st.integers(0, 99),
    )
    def test_symmetric_with_ones_on_the_diagonal(self, n, n1, n3, name, seed):
        made = spectrum(samples(n, n1, n3, seed=seed), name)
        found = all_of(made.similarity(0.5 * made.largest_rank, (1.0,)))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, found.T, atol=1e-6)
        assert found.min() >= 0
        assert found.max() <= 1
        own = np.diag(found)  # a sample may lie in directions that were shrunken to nothing
        np.testing.assert_allclose(own[own > 0], 1, atol=1e-5)

    @settings(max_examples=25)
    @given(seed=st.integers(0, 999), name=st.sampled_from(["dft", "dct", "none"]))
    def test_order_of_the_samples(self, seed, name):
        values = samples(12, seed=seed)
        order = np.random.default_rng(seed).permutation(12)
        found = all_of(spectrum(values, name).similarity(2.0))
        turned = all_of(spectrum(values[order], name).similarity(2.0))
        np.testing.assert_allclose(turned, found[np.ix_(order, order)], atol=ROUNDING)

    def test_a_zero_sample_is_like_nothing(self):
        values = samples()
        values[3] = 0
        found, others = all_of(spectrum(values).similarity(3.0)), np.arange(20) != 3
        assert not found[3].any()
        assert not found[:, 3].any()
        alone = all_of(spectrum(values[others]).similarity(3.0))
        np.testing.assert_allclose(found[np.ix_(others, others)], alone, atol=ROUNDING)

    def test_zero_data(self):
        made = spectrum(np.zeros((5, 3, 2)), "dft")
        assert made.rank == made.largest_rank == 0
        np.testing.assert_array_equal(all_of(made.similarity(1.0)), np.zeros((5, 5)))


# ---- coefficients of a solution -----------------------------------------------------------------


@pytest.fixture(scope="module", params=["dft", "dct", "none"])
def solved(request):
    """A solution, its coefficients as a tensor, and the matrix of its transform."""
    data = make_tensor_subspaces(8, 5, 2, 2, 12, 0.1, noise=0.3, random_state=0)
    Z = solve(data.X, transform=request.param, lam=Lambda.relative(0.5), tol=1e-6).Z
    return Z, np.asarray(Z.to_array()), matrix_of(request.param, 5)


class TestCoefficients:
    @pytest.mark.parametrize("strengths", [STRENGTHS, (1.0,), (0.4, 0.7)])
    def test_naive_version(self, solved, strengths):
        Z, full, L = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core, strengths)
        expected = naive_of_coefficients(full, L, strengths)
        np.testing.assert_allclose(all_of(made), expected, atol=ROUNDING)
        assert made.shape == expected.shape

    def test_one_strength_is_the_modulus(self, solved):
        Z, _, _ = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core, (1.0,))
        modulus = TubeKernel.of(Z.transform, Z.core)
        np.testing.assert_allclose(all_of(made), all_of(modulus), atol=ROUNDING)

    def test_stronger_shrinkage_changes_something(self, solved):
        Z, _, _ = solved
        several, one = (
            all_of(Shrunken.of_coefficients(Z.transform, Z.core, s)) for s in (STRENGTHS, (1.0,))
        )
        assert np.abs(several - one).max() > 0.05

    def test_weakest(self, solved):
        Z, _, _ = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        alone = Shrunken.of_coefficients(Z.transform, Z.core, (1.0,))
        np.testing.assert_array_equal(all_of(made.weakest), all_of(alone))
        assert len(made.weakest.roots) == len(made.weakest.columns) == 1
        new = made.extended(Z.core[:, :, :4])
        np.testing.assert_array_equal(all_of(new.weakest), all_of(alone.extended(Z.core[:, :, :4])))

    def test_samples_of_the_fit_have_their_own_rows(self, solved):
        Z, _, _ = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        np.testing.assert_allclose(all_of(made.extended(Z.core)), all_of(made), atol=ROUNDING)
        some = made.extended(Z.core[:, :, [7, 0, 3]])
        assert some.shape == (3, made.shape[1])
        np.testing.assert_allclose(all_of(some), all_of(made)[[7, 0, 3]], atol=ROUNDING)

    @pytest.mark.parametrize("factor", [-2.0, 1e-6, 1e6])
    def test_multiples_of_new_samples(self, solved, factor):
        Z, _, _ = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        new = Z.core[:, :, :5] - 0.4 * Z.core[:, :, 5:10]
        one, other = (all_of(made.extended(f * new)) for f in (1, factor))
        np.testing.assert_allclose(one, other, atol=ROUNDING)

    def test_new_samples_in_the_naive_way(self, solved):
        """A new sample with coefficients z has `C z` with the others and `z^H C z` with itself."""
        Z, full, L = solved
        a, b = np.arange(6), np.arange(6, 12)
        new = Z.core[:, :, a] - 0.4 * Z.core[:, :, b]
        hat = naive.forward(full, L)
        total, own, mine = 0.0, 0.0, 0.0
        for k in range(5):
            s, vh = np.linalg.svd(hat[:, :, k])[1:]
            s = s / max(1.0, np.linalg.norm(hat, 2, axis=(0, 1)).max())
            used = s > 1e-6
            rows = vh[used][:, a] - 0.4 * vh[used][:, b]  # S^-1 U^H z
            total = total + np.abs((rows.conj().T * s[used]) @ vh[used]) ** 2
            own = own + np.abs((np.abs(vh[used]) ** 2).T @ s[used]) ** 2
            mine = mine + np.abs((np.abs(rows) ** 2).T @ s[used]) ** 2
        expected = np.sqrt(total) / (np.outer(mine, own) ** 0.25)
        made = Shrunken.of_coefficients(Z.transform, Z.core, (1.0,)).extended(new)
        np.testing.assert_allclose(all_of(made), np.minimum(expected, 1), atol=ROUNDING)

    def test_order_of_the_samples(self, solved):
        Z, _, _ = solved
        order = np.random.default_rng(0).permutation(Z.core.shape[2])
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        turned = Shrunken.of_coefficients(Z.transform, Z.core[:, :, order])
        expected = all_of(made)[np.ix_(order, order)]
        np.testing.assert_allclose(all_of(turned), expected, atol=ROUNDING)

    def test_no_coefficients(self):
        plan = transforms.resolve("dct", 3)
        made = Shrunken.of_coefficients(plan, np.zeros((3, 2, 5)))
        np.testing.assert_array_equal(all_of(made), np.zeros((5, 5)))
        np.testing.assert_array_equal(all_of(made.extended(np.ones((3, 2, 4)))), np.zeros((4, 5)))


# ---- tiles, tables, products --------------------------------------------------------------------


class TestTiles:
    @pytest.mark.parametrize("name", ["dft", "dct", "none"])
    def test_whole_table(self, name, monkeypatch):
        """Each pair is computed once, and is what the tiles say, for any tiles and threads."""
        made = spectrum(samples(70, 15, 6), name).similarity(5.0)
        for tile, n_jobs in ((128, 1), (9, 1), (9, 3)):
            monkeypatch.setattr(shrunken, "TILE", tile)
            table = made.whole(n_jobs).table
            np.testing.assert_array_equal(table, table.T)
            np.testing.assert_allclose(table, all_of(made), atol=1e-6)

    def test_the_table_is_that_of_the_fit(self, solved):
        Z, _, _ = solved
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        new = made.extended(Z.core[:, :, :3])
        np.testing.assert_array_equal(new.whole(1).table, made.whole(1).table)

    @pytest.mark.parametrize("most", [0, 100, 10**6])
    def test_some_rows_and_columns(self, most, monkeypatch):
        monkeypatch.setattr(shrunken, "MOST_FEATURES", most)
        made = spectrum(samples(30, 5, 4), "dft").similarity(3.0)
        whole = all_of(made)
        for rows in (slice(3, 17), np.array([4, 2, 29]), np.array([11])):
            np.testing.assert_allclose(made.tile(rows), whole[rows], atol=1e-6)
        part = made.tile(np.array([4, 20]), slice(7, 19))
        np.testing.assert_allclose(part, whole[[4, 20], 7:19], atol=1e-6)

    @pytest.mark.parametrize("name", ["dft", "dct"])
    def test_products_or_one_slice_after_another(self, name, monkeypatch):
        """All ways to the squares of similarities, also mixed, give the same."""
        found = []
        for most in (100, 0, 12):
            monkeypatch.setattr(shrunken, "MOST_FEATURES", most)
            made = spectrum(samples(40, 9, 4), name).similarity(5.0)
            found.append(all_of(made))
            single = [len(part.single) for part in made.columns]
            assert {100: sum(single) == 0, 0: min(single) > 0, 12: sum(single) > 0}[most]
        np.testing.assert_allclose(found[0], found[1], atol=2e-5)
        np.testing.assert_allclose(found[0], found[2], atol=2e-5)

    def test_large_products_are_not_kept(self, monkeypatch, solved):
        """That depends on the samples of the fit, not on the new ones."""
        Z, _, _ = solved
        kept = Shrunken.of_coefficients(Z.transform, Z.core)
        monkeypatch.setattr(shrunken, "MOST_BYTES", 4 * shrunken.MOST_FEATURES * 10)
        made = Shrunken.of_coefficients(Z.transform, Z.core)
        assert all(len(part.products) == 0 for part in made.columns)
        np.testing.assert_allclose(all_of(made), all_of(kept), atol=2e-5)
        new = Z.core[:, :, :2]
        np.testing.assert_allclose(
            all_of(made.extended(new)), all_of(kept.extended(new)), atol=2e-5
        )

    def test_where_tables_are_made(self):
        assert shrunken.TILE == representation.TILE


# ---- the null model -----------------------------------------------------------------------------


class TestAtRandom:
    @pytest.mark.parametrize("name", ["dft", "dct", "none"])
    @pytest.mark.parametrize("n3", [1, 4, 5])
    def test_same_values_other_directions(self, name, n3):
        made = spectrum(samples(20, 6, n3), name)
        null = made.at_random(np.random.default_rng(0))
        np.testing.assert_array_equal(null.s, made.s)
        assert null.rank == made.rank
        assert null.transform is made.transform
        assert null.V.shape == made.V.shape
        assert null.V.dtype == made.V.dtype
        for mine, own in zip(null.V, made.V, strict=True):
            eye = np.eye(len(mine))
            np.testing.assert_allclose(mine @ mine.conj().T, eye, atol=1e-5)
            np.testing.assert_allclose(own @ own.conj().T, eye, atol=1e-4)
        assert np.abs(null.V - made.V).max() > 0.1
        real = made.transform.real_slices
        if np.iscomplexobj(made.V):
            assert not null.V[real].imag.any()
            others = np.delete(np.arange(len(null.V)), real)
            assert all(null.V[k].imag.any() for k in others)

    def test_same_seed_same_model(self):
        made = spectrum(samples(), "dft")
        one, same, other = (made.at_random(np.random.default_rng(seed)).V for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, same)
        assert np.abs(one - other).max() > 0.1

    def test_no_clusters_are_left(self):
        data = make_tensor_subspaces(12, 5, 2, 2, 20, 0, random_state=0)
        made = spectrum(data.X, "dft")
        across = data.labels[:, None] != data.labels
        for some, low, high in (
            (made, 2, np.inf),
            (made.at_random(np.random.default_rng(0)), 0, 1.1),
        ):
            found = all_of(some.similarity(3.0))
            inside = found[~across & ~np.eye(len(found), dtype=bool)].mean()
            assert low < inside / found[across].mean() < high


# ---- views --------------------------------------------------------------------------------------


class TestView:
    @pytest.mark.parametrize("axis", [0, 1, None])
    @pytest.mark.parametrize("shape", [(5, 1), (5, 4), (5, 4, 3), (5, 4, 3, 2)])
    def test_there_and_back(self, shape, axis):
        values = np.random.default_rng(0).standard_normal((7, *shape))
        view, before = View("none" if axis is None else "dct", axis), values.copy()
        arranged = view.arrange(values, np.ones(7))
        assert arranged.shape[1] == (np.prod(shape) if axis is None else shape[axis])
        assert view.plan(arranged).sizes == arranged.shape[2:]
        np.testing.assert_array_equal(view.restore(arranged, shape), values)
        np.testing.assert_array_equal(values, before)
        assert view.is_linear
        assert view.fit(values, np.ones(7)) is view

    def test_layouts(self):
        values, sizes = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5), np.ones(2)
        for axis, order in ((0, (0, 1, 2, 3)), (1, (0, 2, 1, 3)), (2, (0, 3, 1, 2))):
            arranged = View("dft", axis).arrange(values, sizes)
            np.testing.assert_array_equal(arranged, values.transpose(order))
            np.testing.assert_array_equal(View("dft", axis).restore(arranged, (3, 4, 5)), values)
        vectors = View("none", None).arrange(values, sizes)
        np.testing.assert_array_equal(vectors, values.reshape(2, 60, 1))

    def test_names(self):
        assert str(View("dct")) == "dct"
        assert str(View("dft", 1)) == "dft, axis 1 first"
        assert str(View("none", None)) == "none (samples as vectors)"
        assert str(View(transforms.Cosine(4))) == "Cosine(4)"
        assert str(GaussianKernel()) == "Gaussian kernel"

    @pytest.mark.parametrize("axis", [-1, 1.0, "0", True, [0]])
    def test_other_axes_are_refused(self, axis):
        with pytest.raises(ValueError, match="axis must be None or an integer from 0 on, got"):
            View("dft", axis)

    def test_other_names_are_refused(self):
        with pytest.raises(ValueError, match="transform must be"):
            View("fourier")


# ---- points by a kernel -------------------------------------------------------------------------


def points(n=60, p=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


def as_given(x):
    """Rows at unit norm, and their norms."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    largest = np.where(largest > 0, largest, 1)
    sizes = largest[:, 0] * np.linalg.norm(x / largest, axis=1)
    sizes = np.where(sizes > 0, sizes, 1)
    return (x / sizes[:, None])[..., None], sizes


def naive_width(x):
    """20 times the median squared distance to the fifth nearest row at another place."""
    fifth = [np.sort([np.sum((a - b) ** 2) for b in x if (a != b).any()])[4] for a in x]
    return 20 * np.median(fifth)


def width_of(view):
    """The width in the unit of the rows as they were given."""
    return view.width * view.unit**2


def naive_kernel(x, width, y=None):
    """The kernel of the docstring, distance by distance."""
    y = x if y is None else y
    return np.array([[np.exp(-np.sum((a - b) ** 2) / width) for b in x] for a in y])


class TestGaussianKernel:
    @pytest.mark.parametrize(("n", "p"), [(60, 3), (30, 8), (120, 1), (8, 2)])
    @pytest.mark.parametrize("shift", [0.0, 100.0])
    def test_features_reproduce_the_kernel(self, n, p, shift):
        x = points(n, p)
        given = as_given(x + shift)
        features = GaussianKernel().arrange(*given)
        assert features.shape[::2] == (n, 1)
        inner = features[..., 0] @ features[..., 0].T
        width = width_of(GaussianKernel().fit(*given))
        np.testing.assert_allclose(inner, naive_kernel(x, width), atol=1e-4)
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-12)
        assert width == pytest.approx(naive_width(x), rel=0.2)

    def test_width(self):
        for p in (3, 4, 8):
            for x in (points(60, p), points(60, p) + 100, np.repeat(points(10, p), 8, axis=0)):
                view = GaussianKernel().fit(*as_given(x))
                assert width_of(view) == pytest.approx(naive_width(x), rel=1e-6)

    def test_the_place_of_few_points_does_not_matter(self):
        x = points(5, 2)
        widths = [width_of(GaussianKernel().fit(*as_given(x + shift))) for shift in (0, 1000)]
        assert widths[0] == pytest.approx(widths[1], rel=0.1)

    @pytest.mark.parametrize("scale", [1e-100, 0.5, 1e100])
    def test_scale_does_not_matter(self, scale):
        one, other = (
            GaussianKernel().arrange(*as_given(x))[..., 0] for x in (points(), scale * points())
        )
        np.testing.assert_allclose(one @ one.T, other @ other.T, atol=0.05)  # of the width

    def test_rows_of_other_sizes(self):
        """Points are compared as they were given, not at unit norm: a ray has many places."""
        x = np.outer(np.repeat([1.0, 2.0, 3.0], 20), [1.0, 2.0]) + 0.01 * points(60, 2)
        features = GaussianKernel().arrange(*as_given(x))[..., 0]
        inner = features @ features.T
        assert inner[:20, :20].min() > 0.4 > 1e-3 > inner[:20, 20:].max()

    def test_points_of_the_fit_as_new_points(self):
        values, sizes = as_given(points())
        view = GaussianKernel().fit(values, sizes)
        features = view.arrange(values, sizes)
        np.testing.assert_array_equal(features, GaussianKernel().arrange(values, sizes))
        some = view.arrange(values[[7, 3]], sizes[[7, 3]])
        np.testing.assert_allclose(some, features[[7, 3]], atol=1e-4)

    def test_new_points(self):
        """Features of a new point are those of its kernel with the points of the fit."""
        x, new = points(), 0.7 * points(9, seed=1)
        view = GaussianKernel().fit(*as_given(x))
        old, fresh = (view.arrange(*as_given(part))[..., 0] for part in (x, new))
        np.testing.assert_allclose(np.linalg.norm(fresh, axis=1), 1, atol=1e-12)
        ratio = fresh @ old.T / naive_kernel(x, width_of(view), new)
        # What of a new point lies outside of the span of the features is not there.
        np.testing.assert_allclose(ratio, ratio[:, :1].repeat(60, 1), rtol=1e-3)
        assert 1 - 1e-9 <= ratio.min()
        assert ratio.max() < 1.05

    def test_far_away(self):
        x = points()
        view = GaussianKernel().fit(*as_given(x))
        assert not view.arrange(*as_given(np.full((1, 3), 1e30))).any()
        joined = GaussianKernel().arrange(*as_given(np.vstack([x, np.full((1, 3), 1e200)])))
        inner = joined[..., 0] @ joined[..., 0].T
        assert inner[-1, -1] == pytest.approx(1)
        assert np.abs(inner[-1, :-1]).max() < 1e-6
        np.testing.assert_allclose(inner[:-1, :-1], naive_kernel(x, width_of(view)), atol=0.05)

    def test_more_points_than_landmarks(self):
        x = np.random.default_rng(0).random((LANDMARKS + 150, 2))
        given = as_given(x)
        features = GaussianKernel().arrange(*given)[..., 0]
        assert features.shape[1] <= LANDMARKS
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-12)
        squares = np.sum((x[:, None] - x) ** 2, axis=2)
        kernel = np.exp(-squares / width_of(GaussianKernel().fit(*given)))
        np.testing.assert_allclose(features @ features.T, kernel, atol=0.02)

    def test_points_that_stand_on_each_other(self):
        x = np.repeat(points(10), 8, axis=0)
        given = as_given(x)
        features = GaussianKernel().arrange(*given)[..., 0]
        width = width_of(GaussianKernel().fit(*given))
        np.testing.assert_allclose(features @ features.T, naive_kernel(x, width), atol=1e-4)
        same = GaussianKernel().arrange(*as_given(np.ones((5, 2))))[..., 0]
        np.testing.assert_allclose(same @ same.T, 1, atol=1e-9)

    def test_single_precision(self):
        values, sizes = as_given(points())
        view = GaussianKernel().fit(values.astype(np.float32), sizes)
        features = view.arrange(values.astype(np.float32), sizes)
        assert features.dtype == np.float32
        inner = features[..., 0] @ features[..., 0].T
        np.testing.assert_allclose(inner, naive_kernel(points(), width_of(view)), atol=1e-5)

    @settings(max_examples=20)
    @given(seed=st.integers(0, 999))
    def test_order_of_the_points(self, seed):
        values, sizes = as_given(points(20, 2, seed))
        order = np.random.default_rng(seed).permutation(20)
        made = Spectrum.of(values, sizes, GaussianKernel())
        turned = Spectrum.of(values[order], sizes[order], GaussianKernel())
        found, expected = (all_of(each.similarity(2.0)) for each in (turned, made))
        np.testing.assert_allclose(found, expected[np.ix_(order, order)], atol=1e-3)

    def test_it_is_a_view(self):
        view = GaussianKernel()
        assert isinstance(view, View)
        assert not view.is_linear
        assert (view.transform, view.axis) == ("none", None)
        assert view == GaussianKernel() != View("none", None)
        assert view.fit(*as_given(points())) == view  # what was fitted is no part of its name
        assert "array" not in repr(view.fit(*as_given(points())))

    @pytest.mark.parametrize("options", [{"transform": "dft"}, {"axis": 1}])
    def test_nothing_to_set(self, options):
        with pytest.raises(TypeError):
            GaussianKernel(**options)

    def test_points_of_another_length(self):
        view = GaussianKernel().fit(*as_given(points()))
        with pytest.raises(ValueError, match="broadcast"):
            view.arrange(*as_given(points(4, 5)))
