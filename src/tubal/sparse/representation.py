"""What the sparse methods return, and the checks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tubal.input import read, to_numpy


@dataclass(frozen=True, eq=False)
class SparseRepresentation:
    """Samples as combinations of few other samples, in the units of the data.

    Attributes
    ----------
    coefficients : scipy.sparse.csr_array of shape (n_samples, n_samples)
        Row j holds the coefficients of sample j on the other samples; the diagonal is empty. With
        `queries`, row j holds those of query j on the samples.
    E : array of shape (n_samples, n_features)
        What the combinations leave over. `X - coefficients @ X`, or, when SSC was given an outlier
        term, the sparse outlying entries alone: `X = coefficients @ X + E + Z` with a small `Z`.
    n_iter : int
        Largest number of steps that a sample needed: Newton steps, or selected samples.
    gap : float or None
        Largest relative duality gap of a sample, from a feasible pair; None for the greedy method,
        which minimises nothing.
    lam : float, array of shape (n_samples,) or None
        Weight of the squared residual that the rule gave (lambda_z of the paper of SSC); for the
        elastic net one for each sample.
    outlier_lam : float or None
        Weight of the outlying entries that the rule gave (lambda_e of the paper).
    """

    coefficients: scipy.sparse.csr_array
    E: np.ndarray
    n_iter: int
    gap: float | None = None
    lam: float | np.ndarray | None = None
    outlier_lam: float | None = None


def as_table(X: Any, name: str = "X", min_samples: int = 2) -> np.ndarray:
    """Return checked samples in rows, in double precision: all methods solve linear systems."""
    samples = read(X, name=name, allow_missing=False, min_samples=min_samples)
    if not samples.table:
        shape = tuple(samples.values.shape)
        msg = (
            f"{name} must have 2 axes (n_samples, n_features), got shape {shape}; "
            f"pass {name}.reshape(len({name}), -1)"
        )
        raise ValueError(msg)
    return np.ascontiguousarray(to_numpy(samples.values)[..., 0], dtype=np.float64)


def as_targets(X: np.ndarray, queries: Any, twins: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what is to be written as combinations of X, and the sample each one may not use."""
    if queries is None:
        if twins is not None:
            msg = "twins was given without queries: a sample of X never uses itself"
            raise ValueError(msg)
        return X, np.arange(len(X))
    Y = as_table(queries, "queries", min_samples=1)
    if Y.shape[1] != X.shape[1]:
        msg = f"queries has {Y.shape[1]} features, X has {X.shape[1]}; they must be the same"
        raise ValueError(msg)
    own = np.full(len(Y), -1) if twins is None else np.asarray(twins)
    if own.shape != (len(Y),) or own.dtype.kind not in "iu" or (own >= len(X)).any():
        msg = f"twins must hold {len(Y)} positions of samples of X or -1, got {twins!r}"
        raise ValueError(msg)
    return Y, own


def hide_own(A: np.ndarray, own: np.ndarray, value: float) -> None:
    """Write a value where a row meets the sample that it may not use, in place."""
    rows = np.flatnonzero(own >= 0)
    A[rows, own[rows]] = value


def unit_samples(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of unit norm and the norms; zero samples stay zero, with norm 1.

    The largest entry is divided out first, so that very small and very large samples keep their
    direction.

    >>> unit_samples(np.array([[3.0, 4.0], [0.0, 0.0]]))
    (array([[0.6, 0.8], [0. , 0. ]]), array([5., 1.]))
    """
    largest = np.abs(X).max(axis=1)
    largest[largest == 0] = 1
    X = X / largest[:, None]
    norms = np.linalg.norm(X, axis=1)
    norms[norms == 0] = 1
    return X / norms[:, None], norms * largest


def in_units(
    X: np.ndarray, Y: np.ndarray, normalize: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return samples and targets, of unit norm if asked, each followed by what divided them.

    Targets that are the samples stay the same array.
    """
    if not normalize:
        return X, np.ones(len(X)), Y, np.ones(len(Y))
    samples, norms = unit_samples(X)
    targets, sizes = (samples, norms) if Y is X else unit_samples(Y)
    return samples, norms, targets, sizes


def rows_to_csr(
    indices: Sequence[np.ndarray], values: Sequence[np.ndarray], n_columns: int
) -> scipy.sparse.csr_array:
    """Return the sparse matrix with the given columns and values in each row.

    >>> C = rows_to_csr(
    ...     [np.array([2, 0]), np.array([], int)], [np.array([1.0, 5]), np.array([])], 3
    ... )
    >>> C.toarray()
    array([[5., 0., 1.],
           [0., 0., 0.]])
    """
    ends = np.cumsum([0, *(len(row) for row in indices)])
    parts = (np.concatenate(values), np.concatenate(indices), ends)
    C = scipy.sparse.csr_array(parts, shape=(len(indices), n_columns))
    C.sort_indices()
    return C


def in_input_units(
    C: scipy.sparse.csr_array, sizes: np.ndarray, norms: np.ndarray
) -> scipy.sparse.csr_array:
    """Turn coefficients of rows divided by `sizes` on samples divided by `norms` to input units."""
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    values = C.data * (sizes[row] / norms[C.indices])
    return scipy.sparse.csr_array((values, C.indices, C.indptr), shape=C.shape)
