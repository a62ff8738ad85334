"""The door of the house: every check of user data, once.

Public arrays are samples-first: `(n_samples, n1)`, `(n_samples, n1, n3)` or with more trailing
axes; `NaN` marks a missing entry. Inside, the paper's letters hold: a tensor is `n1 x n2 x n3` and
its lateral slices `A[:, j, :]` are the `n2` samples. `to_paper` and `from_paper` turn
one layout into the other, `tubes_first` and `samples_first` to the layout of the solvers and back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import array_api_compat as aac
import numpy as np
import scipy.sparse

__all__ = [
    "Samples",
    "from_paper",
    "read",
    "to_paper",
]

Array = Any
"""An array of any library that follows the array API (NumPy, PyTorch, CuPy, ...)."""

T = TypeVar("T")


def namespace(*arrays: Array) -> Any:
    """Return the array namespace that the given arrays share."""
    return aac.array_namespace(*arrays)


@dataclass(frozen=True, eq=False)
class Samples:
    """User data that passed every check.

    Attributes
    ----------
    values : array of shape `(n_samples, n1, *sizes)`
        Floating point, zero where an entry is missing. At least one trailing axis: a table
        `(n_samples, n1)` becomes `(n_samples, n1, 1)`.
    observed : bool array of the same shape, or None
        True where an entry was given; None when nothing is missing.
    table : bool
        Whether the data came as a table `(n_samples, n1)`.
    """

    values: Array
    observed: Array | None
    table: bool

    @property
    def n_samples(self) -> int:
        """Number of samples (the paper's n2)."""
        return int(self.values.shape[0])

    @property
    def n1(self) -> int:
        """Length of the first axis of a sample."""
        return int(self.values.shape[1])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the axes along which the transform runs (the paper's n3)."""
        return tuple(int(n) for n in self.values.shape[2:])

    def part(self, span: Any) -> Samples:
        """Return some of the samples: those of a slice, or of an array of bool."""
        observed = None if self.observed is None else self.observed[span, ...]
        return Samples(self.values[span, ...], observed, self.table)

    def restore(self, A: Array) -> Array:
        """Give a samples-first result the number of axes that the user's data had."""
        return A[..., 0] if self.table else A


def read(
    X: Any, *, name: str = "X", allow_missing: bool = True, min_samples: int = 2, dtype: Any = None
) -> Samples:
    """Check samples-first data and separate values from missing entries.

    Parameters
    ----------
    X : array-like of shape (n_samples, n1), (n_samples, n1, n3) or with more trailing axes
        Lists, NumPy arrays (also memory-mapped and masked), data frames, PyTorch and CuPy arrays.
        Integers and bool become float64, float16 becomes float32; float32 and float64 are kept,
        without a copy when nothing is missing. Arrays of other libraries stay on their device.
    name : str
        What error messages call the argument.
    allow_missing : bool
        Whether NaN (or a masked entry) is accepted.
    min_samples : int
        The smallest number of samples accepted.
    dtype : {"float32", "float64"} or None
        Floating type of the values; None keeps that of the data.

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        For anything that is not a dense real array of numbers of 2 or more axes, an empty axis,
        too few samples, infinite values, or a sample without a single observed entry.

    Examples
    --------
    >>> import numpy as np
    >>> s = read([[1, 2], [3, np.nan]])
    >>> s.values[..., 0]
    array([[1., 2.],
           [3., 0.]])
    >>> s.observed[..., 0]
    array([[ True,  True],
           [ True, False]])
    """
    A, masked = _as_array(X, name)
    _check_shape(A, name, min_samples)
    A = _as_floating(A, name, dtype)
    table = A.ndim == 2
    if table:
        A = A[..., None]
        masked = None if masked is None else masked[..., None]
    values, observed = _split_missing(A, masked, name)
    if observed is not None:
        _check_observed(observed, name, allow_missing)
    return Samples(values, observed, table)


def to_paper(X: Array) -> Array:
    """Turn samples-first `(n2, n1, *sizes)` into the paper's `n1 x n2 x n3` layout (a view).

    A table `(n2, n1)` becomes `n1 x n2 x 1`.

    >>> import numpy as np
    >>> to_paper(np.zeros((7, 3, 4))).shape, to_paper(np.zeros((7, 3))).shape
    ((3, 7, 4), (3, 7, 1))
    """
    X = X if X.ndim > 2 else X[..., None]
    return namespace(X).moveaxis(X, 0, 1)


def from_paper(A: Array) -> Array:
    """Turn the paper's `n1 x n2 x n3` layout into samples-first `(n2, n1, n3)` (a view).

    >>> import numpy as np
    >>> from_paper(np.zeros((3, 7, 4))).shape
    (7, 3, 4)
    """
    return namespace(A).moveaxis(A, 1, 0)


def tubes_first(values: Array) -> Array:
    """Turn samples-first values (n2, n1, *sizes) to (*sizes, n1, n2), a view.

    >>> import numpy as np
    >>> tubes_first(np.zeros((7, 3, 4))).shape
    (4, 3, 7)
    """
    axes = tuple(range(values.ndim))
    return namespace(values).permute_dims(values, (*axes[2:], 1, 0))


def samples_first(values: Array) -> Array:
    """Undo `tubes_first`.

    >>> import numpy as np
    >>> samples_first(np.zeros((4, 3, 7))).shape
    (7, 3, 4)
    """
    axes = tuple(range(values.ndim))
    return namespace(values).permute_dims(values, (axes[-1], axes[-2], *axes[:-2]))


def to_numpy(A: Array) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    return A if isinstance(A, np.ndarray) else np.asarray(A.cpu() if hasattr(A, "cpu") else A)


def device_of(A: Array) -> Any:
    """Return the device to make further arrays on; None for NumPy."""
    return None if isinstance(A, np.ndarray) else A.device


def check_no_dates(X: Any, name: str = "X") -> None:
    """Refuse dates and time spans, which other libraries would turn into numbers of their own.

    Arrays, masked arrays, data frames, and lists by their first entry.
    """
    first = X
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    dtypes = getattr(first, "dtypes", None)
    for dtype in [getattr(first, "dtype", None)] if dtypes is None else list(dtypes):
        if getattr(dtype, "kind", "") in ("m", "M"):
            raise ValueError(_of_no_numbers(name, dtype))


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a finite number above zero (or from zero on) as a float."""
    accepted = f"a finite number {'of at least' if zero else 'above'} 0"
    try:
        number = math.nan if isinstance(value, (bool, np.bool_, str)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        msg = f"{name} must be {accepted}, got {value!r}"
        raise ValueError(msg)
    return number


def check_share(name: str, value: Any) -> float:
    """Return a number between 0 and 0.5 as a float."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0 < value < 0.5:
        msg = f"{name} must be a number between 0 and 0.5, got {value!r}"
        raise ValueError(msg)
    return float(value)


def check_positives(name: str, values: Any) -> None:
    """Refuse anything but a sequence of at least one finite number above zero.

    Others that can be read number by number, such as iterators, may be empty the second time.
    """
    listed = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, (str, bytes))
    if not listed or getattr(values, "ndim", 1) != 1 or not len(values):
        msg = f"{name} must be a sequence of at least one number, got {values!r}"
        raise ValueError(msg)
    for value in values:
        check_positive(name, value)


def check_count(name: str, value: Any) -> int:
    """Return a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        msg = f"{name} must be a positive integer, got {value!r}"
        raise ValueError(msg)
    return int(value)


def check_choice(
    name: str, value: Any, choices: Mapping[str, T], kind: type[Any], more: str = ""
) -> T:
    """Return an object of a kind as it is, or the one that a name stands for.

    `more` says what else the parameter accepts, where another place reads it.
    """
    if isinstance(value, kind):
        return cast("T", value)
    if not isinstance(value, str) or value not in choices:
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        accepted = f"one of {sorted(choices)}{more} or {article} {kind.__name__}"
        msg = f"{name} must be {accepted}, got {value!r}"
        raise ValueError(msg)
    return choices[value]


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        msg = f"{name} must be True or False, got {value!r}"
        raise ValueError(msg)
    return bool(value)


def _as_array(X: Any, name: str) -> tuple[Array, Array | None]:
    """Return `X` as an array of its own library and the mask of a masked array."""
    if scipy.sparse.issparse(X):
        msg = f"{name} is a sparse matrix; a dense array is needed: pass {name}.toarray()"
        raise ValueError(msg)
    if aac.is_dask_array(X):
        msg = f"{name} is a Dask array; an array in memory is needed: pass {name}.compute()"
        raise ValueError(msg)
    if isinstance(X, np.ma.MaskedArray):
        return np.asarray(X.data), np.ma.getmaskarray(X)
    if aac.is_array_api_obj(X):
        X = X.detach() if aac.is_torch_array(X) else X  # gradients have no place here
        return (np.asarray(X) if isinstance(X, np.ndarray) else X), None
    try:
        A = np.asarray(X)
    except ValueError as error:
        msg = f"{name} cannot be read as an array: its samples differ in shape ({error})"
        raise ValueError(msg) from error
    if A.dtype == object and hasattr(X, "to_numpy"):  # data frames with nullable columns
        try:
            A = X.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            pass  # the object dtype is refused below, with the right words
    return A, None


def _check_shape(A: Array, name: str, min_samples: int) -> None:
    shape = tuple(A.shape)
    if len(shape) < 2:
        msg = (
            f"{name} must have 2 or more axes (n_samples, n1, ...), got shape {shape}; "
            f"one sample of n1 features is {name}.reshape(1, -1)"
        )
        raise ValueError(msg)
    if 0 in shape[1:]:
        msg = f"{name} has an empty axis: shape {shape}; every axis needs at least 1 entry"
        raise ValueError(msg)
    if shape[0] < min_samples:
        msg = f"{name} has {shape[0]} sample(s) (shape {shape}); at least {min_samples} are needed"
        raise ValueError(msg)


def _as_floating(A: Array, name: str, dtype: Any) -> Array:
    xp = namespace(A) if not (isinstance(A, np.ndarray) and A.dtype.kind in "OUSVMm") else None
    if xp is None or not xp.isdtype(A.dtype, ("bool", "numeric")):
        raise ValueError(_of_no_numbers(name, A.dtype))
    if xp.isdtype(A.dtype, "complex floating"):
        msg = f"{name} is complex ({A.dtype}); pass real data, such as the real part or the modulus"
        raise ValueError(msg)
    if dtype is not None:
        return xp.astype(A, getattr(xp, _floating_name(dtype)), copy=False)
    if A.dtype in (xp.float32, xp.float64):
        return A
    small = xp.isdtype(A.dtype, "real floating") and xp.finfo(A.dtype).bits < 32
    return xp.astype(A, xp.float32 if small else xp.float64)


def _of_no_numbers(name: str, dtype: Any) -> str:
    return (
        f"{name} has dtype {dtype}; real numbers are needed (float32, float64, integers or "
        "bool): convert it first, for example with astype(float)"
    )


def _floating_name(dtype: Any) -> str:
    """Return "float32" or "float64" for a name, a NumPy type or a type of another library."""
    name = str(dtype).rpartition(".")[2]
    if name not in ("float32", "float64"):
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = ""
    if name not in ("float32", "float64"):
        msg = f"dtype must be 'float32', 'float64' or None, got {dtype!r}"
        raise ValueError(msg)
    return name


def _split_missing(A: Array, masked: Array | None, name: str) -> tuple[Array, Array | None]:
    xp = namespace(A)
    with np.errstate(over="ignore", invalid="ignore"):
        total = xp.sum(A)
    if masked is None and bool(xp.isfinite(total)):
        return A, None  # one pass without a temporary: the usual case, also for memory maps
    observed = ~xp.isnan(A) if masked is None else ~(xp.isnan(A) | masked)
    infinite = xp.isinf(A) & observed
    if bool(xp.any(infinite)):
        first = tuple(int(i[0]) for i in xp.nonzero(infinite))
        count = int(xp.sum(xp.astype(infinite, xp.int64)))
        msg = (
            f"{name} holds {count} infinite value(s), the first at index {first}; "
            "mark missing entries with NaN"
        )
        raise ValueError(msg)
    if bool(xp.all(observed)):
        return A, None
    return xp.where(observed, A, xp.zeros_like(A)), observed


def _check_observed(observed: Array, name: str, allow_missing: bool) -> None:
    xp = namespace(observed)
    if not allow_missing:
        count = int(xp.sum(xp.astype(~observed, xp.int64)))
        msg = f"{name} holds {count} missing value(s) (NaN), which are not accepted here"
        raise ValueError(msg)
    empty = ~xp.any(xp.reshape(observed, (observed.shape[0], -1)), axis=1)
    if bool(xp.any(empty)):
        where = [int(i) for i in xp.nonzero(empty)[0][:5]]
        msg = (
            f"{name} has {int(xp.sum(xp.astype(empty, xp.int64)))} sample(s) without a single "
            f"observed entry, at index {where}; remove them"
        )
        raise ValueError(msg)
