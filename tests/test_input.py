"""Every check of user data, and the two layouts."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse

from tubal.input import check_positives, from_paper, read, to_paper

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (5, 3, 4, 2), (5, 3, 1)])
def test_shapes_and_letters(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    samples = read(X)
    assert samples.values.shape == (shape if len(shape) > 2 else (*shape, 1))
    assert (samples.n_samples, samples.n1) == shape[:2]
    assert samples.sizes == (shape[2:] or (1,))
    assert samples.observed is None
    np.testing.assert_array_equal(samples.restore(samples.values), X)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.uint8, np.float64),
        (np.int64, np.float64),
        (bool, np.float64),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_dtypes(given, kept):
    X = np.array([[0, 1], [1, 1], [1, 0]], dtype=given)
    values = read(X).values
    assert values.dtype == kept
    np.testing.assert_array_equal(values[..., 0], X.astype(float))


def test_dtype_can_be_asked_for():
    X = np.ones((3, 2), dtype=np.uint8)
    assert read(X, dtype="float32").values.dtype == np.float32
    assert read(X, dtype=np.float64).values.dtype == np.float64
    with pytest.raises(ValueError, match="dtype must be 'float32', 'float64' or None, got 'int8'"):
        read(X, dtype="int8")


def test_no_copy_when_nothing_has_to_change():
    X = np.ones((4, 3, 2), dtype=np.float32)
    assert np.shares_memory(read(X).values, X)


def test_lists_and_data_frames():
    np.testing.assert_array_equal(read([[1, 2], [3, 4]]).values[..., 0], [[1, 2], [3, 4]])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": pandas.array([3, None], dtype="Int64")})
    samples = read(frame)
    np.testing.assert_array_equal(samples.values[..., 0], [[1, 3], [2, 0]])
    np.testing.assert_array_equal(samples.observed[..., 0], [[True, True], [True, False]])


def test_memory_map_is_read_in_place(tmp_path):
    X = np.random.default_rng(0).standard_normal((6, 3, 2))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    samples = read(mapped)
    assert np.shares_memory(samples.values, mapped)
    np.testing.assert_array_equal(samples.values, X)


def test_nan_becomes_unobserved_and_zero():
    X = np.arange(12.0).reshape(3, 2, 2)
    X[1, 0, 1] = X[2, 1, 0] = np.nan
    before = X.copy()
    samples = read(X)
    np.testing.assert_array_equal(samples.observed, ~np.isnan(X))
    np.testing.assert_array_equal(samples.values, np.nan_to_num(X))
    np.testing.assert_array_equal(X, before)


def test_masked_array_marks_missing_entries():
    X = np.ma.masked_equal(np.array([[1, 99], [2, 3]]), 99)
    samples = read(X)
    np.testing.assert_array_equal(samples.observed[..., 0], [[True, False], [True, True]])
    np.testing.assert_array_equal(samples.values[..., 0], [[1, 0], [2, 3]])


def test_infinite_value_under_a_mask_is_missing():
    X = np.ma.array([[np.inf, 1.0], [2.0, 3.0]], mask=[[True, False], [False, False]])
    np.testing.assert_array_equal(read(X).values[..., 0], [[0, 1], [2, 3]])


def test_large_finite_values_are_not_taken_for_infinite():
    X = np.full((4, 3), np.finfo(np.float64).max)
    assert read(X).observed is None


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.float64(3.0), r"2 or more axes .*got shape \(\)"),
        (np.ones(4), r"2 or more axes .*got shape \(4,\).*reshape\(1, -1\)"),
        (np.ones((1, 4)), r"has 1 sample\(s\).*at least 2"),
        (np.ones((0, 4)), r"has 0 sample\(s\)"),
        (np.ones((3, 0)), r"empty axis: shape \(3, 0\)"),
        (np.ones((3, 2, 0)), r"empty axis: shape \(3, 2, 0\)"),
        (
            np.array([[1.0, np.inf], [0, 0]]),
            r"1 infinite value\(s\), the first at index \(0, 1, 0\)",
        ),
        (np.array([[1.0, -np.inf], [np.nan, 0]]), r"infinite value"),
        (np.ones((3, 2), dtype=complex), r"complex \(complex128\)"),
        (np.ones((3, 2), dtype=object), r"dtype object"),
        (np.array([["a", "b"], ["c", "d"]]), r"dtype <U1"),
        (np.array([[1, 2]] * 2, dtype="M8[s]"), r"dtype datetime64"),
        ([[1, 2], [3]], r"samples differ in shape"),
        (np.array([[1.0, 2.0], [np.nan, np.nan]]), r"1 sample\(s\) without .* at index \[1\]"),
        (scipy.sparse.csr_matrix(np.eye(3)), r"sparse matrix.*toarray"),
    ],
)
def test_bad_input_is_named(X, message):
    with pytest.raises(ValueError, match=message) as error:
        read(X, name="faces")
    assert "faces" in str(error.value)


def test_missing_entries_can_be_refused():
    with pytest.raises(ValueError, match=r"X holds 1 missing value\(s\)"):
        read([[1.0, np.nan], [1.0, 2.0]], allow_missing=False)


@pytest.mark.parametrize("values", [[1], (0.5, 2), np.array([1.0, 3]), range(1, 4)])
def test_sequences_of_positive_numbers(values):
    check_positives("these", values)


@pytest.mark.parametrize(
    "values",
    [
        [],
        np.ones(0),
        iter([1.0]),
        (x for x in [1.0]),
        {1.0},
        {1.0: 2},
        np.ones((2, 2)),
        np.ones(()),
    ],
)
def test_what_is_no_sequence_of_numbers_is_refused(values):
    with pytest.raises(ValueError, match="these must be a sequence of at least one number, got"):
        check_positives("these", values)


def test_iterators_are_not_used_up():
    values = iter([1.0, 2.0])
    with pytest.raises(ValueError, match="these must be"):
        check_positives("these", values)
    assert list(values) == [1, 2]


def test_layouts_are_inverse_views():
    X = np.random.default_rng(0).standard_normal((5, 3, 4))
    A = to_paper(X)
    assert A.shape == (3, 5, 4)
    np.testing.assert_array_equal(A[:, 2, :], X[2])
    np.testing.assert_array_equal(from_paper(A), X)
    assert np.shares_memory(from_paper(A), X)
    assert to_paper(X[..., 0]).shape == (3, 5, 1)


def test_arrays_of_another_library_stay_there():
    X = strict.asarray([[1.0, float("nan")], [3.0, 4.0]])
    samples = read(X)
    assert isinstance(samples.values, type(X))
    assert isinstance(samples.observed, type(X))
    np.testing.assert_array_equal(np.asarray(samples.values)[..., 0], [[1, 0], [3, 4]])
    counts = read(strict.asarray([[1, 2], [3, 4]]))
    assert counts.values.dtype == strict.float64
    with pytest.raises(ValueError, match="complex"):
        read(strict.ones((2, 2), dtype=strict.complex128))
    with pytest.raises(ValueError, match="infinite"):
        read(strict.asarray([[1.0, float("inf")], [3.0, 4.0]]))


def test_torch_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X = torch.tensor([[1.0, float("nan")], [3.0, 4.0]], dtype=torch.float32)
    samples = read(X)
    assert isinstance(samples.values, torch.Tensor)
    assert samples.values.dtype == torch.float32
    assert samples.observed.tolist() == [[[True], [False]], [[True], [True]]]


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(float, np.float64), ("float32", np.float32), (np.float32, np.float32)],
)
def test_types_are_read_in_every_spelling(dtype, kept):
    assert read(np.ones((3, 2)), dtype=dtype).values.dtype == kept
