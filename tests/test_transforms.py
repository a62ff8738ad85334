"""Transforms against their matrices, alone and composed, and the names they answer to."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.fft

import naive
from tubal.transforms import (
    Composed,
    Cosine,
    DataDriven,
    Fourier,
    Identity,
    Orthogonal,
    RandomOrthogonal,
    resolve,
    same_transform,
    short,
)


def complex_unitary(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))[0]


CASES = {
    "dft odd": ("dft", (5,)),
    "dft even": ("dft", (6,)),
    "dft 1": ("dft", (1,)),
    "dft 2": ("dft", (2,)),
    "dct": ("dct", (5,)),
    "rom": (RandomOrthogonal(3), (4,)),
    "data": ("data", (4,)),
    "none": ("none", (3,)),
    "matrix": (3.0 * naive.random_orthogonal(4, 1), (4,)),
    "unitary": (complex_unitary(4), (4,)),
    "dft x dft": ("dft", (4, 6)),
    "dft x dft odd": ("dft", (3, 5)),
    "dft x dft x dft": ("dft", (3, 5, 4)),
    "dft x dct": (["dft", "dct"], (4, 3)),
    "dct x dft": (["dct", "dft"], (3, 4)),
    "dft x unitary": (["dft", complex_unitary(3)], (4, 3)),
    "data x none": (["data", "none"], (3, 2)),
}


@pytest.fixture(params=CASES, name="case")
def _case(request):
    spec, sizes = CASES[request.param]
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 3, 2, *sizes))
    return resolve(spec, sizes, data=X), X, Y


def lead(X):
    """Move the tubes to the front."""
    return np.moveaxis(X, (0, 1), (-2, -1))


def test_matrix_is_orthogonal_up_to_scale(case):
    t, *_ = case
    L = t.matrix
    np.testing.assert_allclose(L @ L.conj().T, t.scale * np.eye(t.n3), atol=1e-12 * t.scale)


@pytest.mark.parametrize("axis", [-1, 0])
def test_forward_is_the_matrix_and_inverse_undoes_it(case, axis):
    t, X, _ = case
    A = X if axis == -1 else lead(X)
    hat = t.forward(A, axis=axis)
    assert hat.shape[axis] == t.n_slices == len(t.weights)
    last = hat if axis == -1 else np.moveaxis(hat, 0, -1)
    index, conjugate = t.expansion
    full = np.where(conjugate, last[..., index].conj(), last[..., index])
    np.testing.assert_allclose(full, X.reshape(3, 2, -1) @ t.matrix.T, atol=1e-12)
    back = t.inverse(hat, axis=axis)
    np.testing.assert_allclose(back, A, atol=1e-12)


def test_inner_product_needs_no_inverse(case):
    t, X, Y = case
    omega = t.weights / t.scale
    product = np.sum(omega * (t.forward(X).conj() * t.forward(Y)).real)
    np.testing.assert_allclose(product, np.sum(X * Y), atol=1e-12)
    assert t.weights.sum() == t.n3


def test_real_slices_are_real_and_the_others_are_not(case):
    t, X, _ = case
    hat = t.forward(X)
    if not np.iscomplexobj(hat):
        assert t.is_real
        return
    real = np.isin(np.arange(t.n_slices), t.real_slices)
    imaginary = np.abs(hat.imag).max(axis=(0, 1))
    assert np.all(imaginary[real] < 1e-12)
    assert np.all(imaginary[~real] > 1e-3)


def test_half_spectrum_keeps_one_of_each_pair():
    for sizes in [(7,), (8,), (4, 6), (3, 5), (4, 4, 3)]:
        t = resolve("dft", sizes)
        own = [
            all((2 * k) % n == 0 for k, n in zip(index, sizes, strict=True))
            for index in np.ndindex(*sizes)
        ]
        assert t.n_slices == (t.n3 + sum(own)) // 2
        assert set(t.weights) <= {1.0, 2.0}


def test_full_spectrum_takes_complex_data(case):
    t, X, Y = case
    full = t.full()
    Z = X + 1j * Y
    hat = full.forward(Z)
    assert full.n_slices == full.n3
    np.testing.assert_allclose(hat, Z.reshape(3, 2, -1) @ t.matrix.T, atol=1e-12)
    np.testing.assert_allclose(full.inverse(hat), Z, atol=1e-12)


def test_float32_stays_single(case):
    t, X, _ = case
    A = X.astype(np.float32)
    hat = t.forward(A)
    assert hat.dtype in (np.float32, np.complex64)
    back = t.inverse(hat)
    assert back.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(back, A, atol=1e-5)


def test_other_array_libraries_give_the_same_numbers(case):
    t, X, _ = case
    hat = t.forward(strict.asarray(X))
    assert isinstance(hat, type(strict.asarray(X)))
    np.testing.assert_allclose(np.asarray(hat), t.forward(X), atol=1e-12)
    np.testing.assert_allclose(np.asarray(t.inverse(hat)), X, atol=1e-12)
    front = t.forward(strict.asarray(lead(X)), axis=0)
    np.testing.assert_allclose(np.asarray(t.inverse(front, axis=0)), lead(X), atol=1e-12)


def test_half_spectrum_refuses_complex_data():
    with pytest.raises(ValueError, match="half spectrum needs real data"):
        Fourier(4).forward(np.ones((2, 4)) + 0j)


def test_scales():
    assert Fourier(7).scale == 7
    assert Cosine(7).scale == Identity(7).scale == RandomOrthogonal(0, 7).scale == 1
    assert np.isclose(Orthogonal(naive.dft_matrix(5)).scale, 5)
    assert resolve(["dft", "dct"], (4, 3)).scale == 4


def test_dct_matches_its_definition():
    np.testing.assert_allclose(Cosine(6).matrix, naive.dct_matrix(6), atol=1e-14)
    np.testing.assert_allclose(Fourier(6).matrix, naive.dft_matrix(6), atol=1e-13)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("n", [2, 3, 11, 16, 22, 23, 46, 64])
def test_short_tubes_are_transformed_as_long_ones(n, axis, kind, layout):
    """Products with a matrix against the fast transforms."""
    A = np.random.default_rng(n).standard_normal((2 * n, 20, 2 * n)).astype(kind)
    A = A[::2, :, ::2]
    A = A if layout == "strided" else np.array(A, order=layout)
    tolerance = 1e-12 if kind is np.float64 else 1e-4
    F, C = scipy.fft.rfft(A, axis=axis), scipy.fft.dct(A, axis=axis, norm="ortho")
    pairs = [
        (short.rfft(A, axis), F),
        (short.irfft(F, n, axis), A),
        (short.cosine(A, axis), C),
        (short.cosine(C, axis, inverse=True), A),
    ]
    for found, expected in pairs:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=tolerance)


def test_inverse_of_short_tubes_ignores_what_must_be_real():
    """As `irfft` does with imaginary parts of the mean and of the Nyquist frequency."""
    F = np.random.default_rng(0).standard_normal((12, 5)) * (1 + 1j)
    np.testing.assert_allclose(short.irfft(F, 22, 0), scipy.fft.irfft(F, n=22, axis=0), atol=1e-14)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("rule", [Fourier, Cosine])
@pytest.mark.parametrize("kind", [np.int64, np.uint8, bool, np.float16])
def test_other_kinds_of_numbers_are_left_to_the_fast_transforms(rule, kind, axis):
    A = np.random.default_rng(0).integers(0, 100, (22, 60, 22)).astype(kind)
    transform = rule(22)
    expected = transform.forward(A.astype(np.float64), axis=axis)
    tolerance = {"atol": 1e-2, "rtol": 1e-2} if kind == np.float16 else {"atol": 1e-10}
    np.testing.assert_allclose(transform.forward(A, axis=axis), expected, **tolerance)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("axis", [0, -1])
def test_inverse_of_a_real_half_spectrum(n, axis):
    F = np.moveaxis(np.random.default_rng(0).random((2000, n // 2 + 1)), -1, axis)
    found = Fourier(n).inverse(F, axis=axis)
    np.testing.assert_allclose(found, scipy.fft.irfft(F, n=n, axis=axis), atol=1e-14)


@pytest.mark.parametrize(
    ("rule", "n", "many", "product"),
    [
        (Fourier, 22, True, True),
        (Fourier, 22, False, False),
        (Fourier, 28, True, True),
        (Fourier, 32, True, False),
        (Fourier, 46, True, True),
        (Fourier, 48, True, False),
        (Fourier, 68, True, False),
        (Cosine, 32, True, True),
        (Cosine, 32, False, False),
        (Cosine, 100, True, False),
    ],
)
def test_products_are_taken_where_they_pay(monkeypatch, rule, n, many, product):
    taken = []
    for name in ("rfft", "irfft", "cosine"):
        plain = getattr(short, name)
        monkeypatch.setattr(
            short, name, lambda *args, _plain=plain: (taken.append(1), _plain(*args))[1]
        )
    A = np.random.default_rng(0).standard_normal((n, 1200 if many else 20))
    back = rule(n).inverse(rule(n).forward(A, axis=0), axis=0)
    np.testing.assert_allclose(back, A, atol=1e-12)
    assert len(taken) == (2 if product else 0)


def test_orthogonal_names_the_deviation():
    bad = np.eye(3)
    bad[0, 1] = 0.25
    with pytest.raises(ValueError, match=r"not orthogonal.*tau = 1\.02.*by 0\.24"):
        Orthogonal(bad)
    for broken in (np.ones((2, 3)), np.zeros((2, 2)), np.full((2, 2), np.nan), np.ones(3)):
        with pytest.raises(ValueError, match="matrix"):
            Orthogonal(broken)


@pytest.mark.parametrize("unit", [1.0, 1j])
def test_orthogonal_matrices_without_a_scale_are_refused(unit):
    with pytest.raises(ValueError, match=r"matrix has entries of size 1\.0e\+200"):
        Orthogonal(np.eye(2) * unit * 1e200)
    assert Orthogonal(np.eye(2) * unit * 1e150).scale == pytest.approx(1e300)


def test_random_orthogonal_is_seeded_by_state_and_size():
    np.testing.assert_array_equal(
        RandomOrthogonal(5).bind(4).matrix, resolve("rom", 4, random_state=5).matrix
    )
    assert not np.allclose(RandomOrthogonal(5, 4).matrix, RandomOrthogonal(6, 4).matrix)
    assert not np.allclose(resolve("rom", 4).matrix, resolve("rom", 4).matrix)


def test_random_orthogonal_is_uniform():
    """Entries of a Haar matrix have mean 0 and variance 1/n; QR without signs fails this."""
    corner = [RandomOrthogonal(seed, 3).matrix[0, 0] for seed in range(2000)]
    assert abs(np.mean(corner)) < 0.05
    assert abs(np.var(corner) - 1 / 3) < 0.03


@pytest.mark.parametrize(
    ("dtype", "exponents"), [("f8", (-1000, -500, 500, 1000)), ("f4", (-110, -70, 70, 110))]
)
@pytest.mark.parametrize("missing", [False, True])
def test_data_driven_knows_no_scale(dtype, exponents, missing):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((7, 5, 4)) * [4, 3, 2, 1]).astype(dtype)
    observed = rng.random(X.shape) < 0.8 if missing else None
    expected = DataDriven().bind(4, X, observed).matrix
    for exponent in exponents:
        found = DataDriven().bind(4, np.ldexp(X, exponent), observed).matrix
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Fourier(4), Fourier(4).full()),
        (Composed([Fourier(4), Cosine(3)]), Composed([Fourier(4), Cosine(3)]).full()),
    ],
)
def test_transforms_that_keep_other_slices_are_others(one, other):
    assert not same_transform(one, other)
    assert same_transform(other, other.full())
    assert same_transform(one, one.bind(4) if isinstance(one, Fourier) else Composed(one.axes))


def test_data_driven_rows_are_left_singular_vectors():
    X = np.random.default_rng(0).standard_normal((7, 5, 4)) * [4, 3, 2, 1]
    U = np.linalg.svd(X.reshape(-1, 4).T)[0]
    L = resolve("data", 4, data=X).matrix
    np.testing.assert_allclose(np.abs(L @ U), np.eye(4), atol=1e-10)
    energy = np.sum(resolve("data", 4, data=X).forward(X) ** 2, axis=(0, 1))
    assert np.all(np.diff(energy) < 0)


def test_data_driven_uses_observed_entries_only():
    rng = np.random.default_rng(0)
    tubes = rng.standard_normal((5, 3)) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    X = np.repeat(tubes[None] * [3, 1, 0.2], 400, axis=0) * rng.choice([-1, 1], (400, 5, 1))
    observed = rng.random(X.shape) < 0.7
    garbage = np.where(observed, X, 1e6)
    full = resolve("data", 3, data=X).matrix
    masked = resolve("data", 3, data=garbage, observed=observed).matrix
    np.testing.assert_allclose(masked, full, atol=0.05)


def test_data_driven_needs_data():
    with pytest.raises(ValueError, match="fitted to data and none was given"):
        resolve("data", 4)
    with pytest.raises(ValueError, match="tubes of length 3, not 4"):
        DataDriven().bind(4, np.ones((2, 3)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dft", Fourier),
        ("dct", Cosine),
        ("rom", RandomOrthogonal),
        ("data", DataDriven),
        ("none", Identity),
    ],
)
def test_resolve_reads_names(name, kind):
    assert isinstance(resolve(name), kind)
    assert isinstance(resolve(name, 4, data=np.random.default_rng(0).random((9, 4))), kind)


def test_resolve_takes_objects_and_matrices():
    L = naive.random_orthogonal(4, 0)
    assert isinstance(resolve(L, 4), Orthogonal)
    assert isinstance(resolve(L.tolist(), 4), Orthogonal)
    bound = Cosine(4)
    assert resolve(bound, 4) is bound
    assert isinstance(resolve("dft", (4, 3)), Composed)
    assert resolve("dft", 1).scale == 1


@pytest.mark.parametrize(
    ("spec", "sizes", "message"),
    [
        ("dtf", 4, r"one of \['data', 'dct', 'dft', 'none', 'rom'\].*got 'dtf'"),
        (None, 4, "got None"),
        (3, 4, "got 3"),
        (np.ones(4), 4, "square matrix"),
        (np.eye(3), 4, "tubes of length 3, the data has 4"),
        (Cosine(3), 4, r"for sizes \(3,\), the data has \(4,\)"),
        (Cosine(12), (3, 4), r"for sizes \(12,\), the data has \(3, 4\)"),
        (["dft", "dct"], (2, 2, 2), "lists 2 transforms for 3 axes"),
        ("dft", 0, "positive integer, got 0"),
    ],
)
def test_resolve_refuses(spec, sizes, message):
    with pytest.raises(ValueError, match=message):
        resolve(spec, sizes)


def test_wrong_length_is_named():
    for t in (Fourier(4), Cosine(4), Identity(4), RandomOrthogonal(0, 4), Composed([Fourier(4)])):
        with pytest.raises(ValueError, match=r"4.*got shape \(2, 3\)"):
            t.forward(np.ones((2, 3)))
    with pytest.raises(ValueError, match="axis must be 0 or -1"):
        Fourier(3).forward(np.ones((2, 3)), axis=1)
    with pytest.raises(ValueError, match="has no size yet"):
        Fourier().inverse(np.ones((2, 3)) + 0j)
