"""Sparse subspace clustering by orthogonal matching pursuit.

For each sample x_j of unit norm, starting from the residual r = x_j:

1. select the sample `i != j` with the largest `|<x_i, r>|`;
2. replace r by what remains of x_j outside the span of the selected samples;

until `n_nonzero` samples are selected or `||r||^2 < tol`. The coefficients are those of the
projection of x_j onto the span (Algorithm 1 of the reference).

Step 1 of many samples is one matrix product, taken tile by tile: no array of size `n_samples ^ 2`
is ever held. Step 2 extends an orthonormal basis of the span, for all samples of a tile at once.

Reference: C. You, D. P. Robinson, R. Vidal, "Scalable sparse subspace clustering by orthogonal
matching pursuit", CVPR 2016; released code `OMP_mat_func.m`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import check_count, check_positive
from tubal.sparse.representation import (
    SparseRepresentation,
    as_table,
    as_targets,
    hide_own,
    in_input_units,
    rows_to_csr,
    unit_samples,
)

TILE_NUMBERS = 2**21
"""Numbers in the correlations, and in the bases, of a tile: a few of these stay in the cache."""

CLOSE = 8
"""Candidates a sample, on average, up to which they are compared one by one."""

DEPENDENT = 1e-7
"""Part of a unit-norm sample outside the span below which it counts as inside (sqrt of eps)."""


def ssc_omp(
    X: Any,
    *,
    queries: Any = None,
    twins: np.ndarray | None = None,
    n_nonzero: int = 10,
    tol: float = 1e-6,
    n_jobs: int | None = None,
) -> SparseRepresentation:
    """Write each sample as a combination of few others, chosen one after the other (SSC-OMP).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Complete data. Samples are divided by their norms first; the work is done in double
        precision.
    queries : array of shape (m, n_features) or None
        Samples to write as combinations of those of X; None: the samples of X themselves, each
        without itself.
    twins : int array of shape (m,) or None
        For each query the sample of X that it may not use, -1 for none. Only with `queries`.
    n_nonzero : int
        Largest number of samples in a combination. More than `n_samples - 1` or `n_features` are
        never selected.
    tol : float
        A combination is complete when its squared residual is below `tol` times the squared norm
        of the sample. This is `thr` of the released function, which has no defaults; scripts
        around it pass 1e-6, with 5 (faces) to 10 samples.
    n_jobs : int or None
        Number of threads; None: as many as BLAS may use. It does not change the result.

    Returns
    -------
    SparseRepresentation
        In the units of X: `E = X - coefficients @ X`.

    Notes
    -----
    A sample without anything to select (zero, or orthogonal to all others) has an empty row. The
    selection also ends when the best candidate lies in the span of the selected samples as far as
    rounding lets us see; the released code then solves a singular system.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0, 0], [0, 2, 0], [3, 4, 0], [0, 0, 1], [0, 0, -2]])
    >>> np.round(ssc_omp(X).coefficients.toarray(), 2)
    array([[ 0.  , -0.67,  0.33,  0.  ,  0.  ],
           [-1.5 ,  0.  ,  0.5 ,  0.  ,  0.  ],
           [ 3.  ,  2.  ,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  ,  0.  , -0.5 ],
           [ 0.  ,  0.  ,  0.  , -2.  ,  0.  ]])
    """
    n_nonzero = check_count("n_nonzero", n_nonzero)
    tol = check_positive("tol", tol, zero=True)
    threads = effective_jobs(n_jobs)
    X = as_table(X)
    Y, own = as_targets(X, queries, twins)
    n, n_features = X.shape
    n_nonzero = min(n_nonzero, n - 1, n_features)
    units, norms = unit_samples(X)
    targets, sizes = (units, norms) if queries is None else unit_samples(Y)
    # By the size of the problem only, so that threads do not change the result.
    tile = max(1, TILE_NUMBERS // max(n, n_nonzero * n_features))
    coarse = units.astype(np.float32)
    parts = threaded(
        lambda part: _pursue(units, coarse, targets[part], own[part], n_nonzero, tol),
        spans(len(Y), -(-len(Y) // tile)),
        threads,
    )
    C = in_input_units(scipy.sparse.csr_array(scipy.sparse.vstack(parts)), sizes, norms)
    return SparseRepresentation(C, Y - C @ X, int(np.diff(C.indptr).max()))


def _pursue(
    X: np.ndarray,
    coarse: np.ndarray,
    targets: np.ndarray,
    own: np.ndarray,
    n_nonzero: int,
    tol: float,
) -> scipy.sparse.csr_array:
    """Return the coefficients of some targets; `own` is the sample that each may not use."""
    m, n_features = targets.shape
    selected = np.tile(own[:, None], n_nonzero + 1)
    basis = np.zeros((m, n_nonzero, n_features))
    # x_j = R^T z in the basis; an identity in the rows that a sample never fills.
    R = np.tile(np.eye(n_nonzero), (m, 1, 1))
    z = np.zeros((m, n_nonzero))
    residual = targets.copy()
    open_ = np.flatnonzero(residual.any(axis=1))
    counts = np.zeros(m, dtype=int)
    for step in range(n_nonzero if len(open_) else 0):
        best = _best(X, coarse, residual[open_], selected[open_, : step + 1])
        q, along = _orthogonalise(X[best], basis[open_, :step])
        length = np.sqrt((q * q).sum(axis=1))
        new = length > DEPENDENT
        open_, q, along, length = open_[new], q[new] / length[new, None], along[new], length[new]
        selected[open_, step + 1] = best[new]
        basis[open_, step] = q
        R[open_, :step, step], R[open_, step, step] = along, length
        z[open_, step] = (q * residual[open_]).sum(axis=1)
        residual[open_] -= z[open_, step, None] * q
        counts[open_] = step + 1
        open_ = open_[(residual[open_] ** 2).sum(axis=1) >= tol]
        if not len(open_):
            break
    values = np.linalg.solve(R, z[..., None])[..., 0]
    rows = [(s[1 : k + 1], v[:k]) for s, v, k in zip(selected, values, counts, strict=True)]
    return rows_to_csr([row[0] for row in rows], [row[1] for row in rows], len(X))


def _best(
    X: np.ndarray, coarse: np.ndarray, residual: np.ndarray, excluded: np.ndarray
) -> np.ndarray:
    """Return the sample most correlated with each residual, the first of equals.

    The product with all samples, nearly all of the work, is done in single precision; `coarse` is X
    in that type. It tells all samples apart but those within its rounding error of the best, and
    among these double precision decides.
    """
    sizes = _sizes(coarse, residual.astype(np.float32), excluded)
    # A product of d numbers errs by at most (d + 2) u |x| |r|, u the rounding unit, and |x| = 1.
    error = (X.shape[1] + 4) * np.finfo(np.float32).eps / 2 * np.linalg.norm(residual, axis=1)
    least = (sizes.max(axis=1) - 2 * error).astype(np.float32)
    row, column = np.divmod(np.flatnonzero(sizes >= least[:, None]), len(X))
    if len(row) > CLOSE * len(residual):  # such as many copies of the same samples
        return _sizes(X, residual, excluded).argmax(axis=1)
    exact = np.abs((X[column] * residual[row]).sum(axis=1))
    order = np.lexsort((column, -exact, row))
    return column[order[np.searchsorted(row, np.arange(len(residual)))]]


def _sizes(X: np.ndarray, residual: np.ndarray, excluded: np.ndarray) -> np.ndarray:
    """Return the moduli of all correlations, -1 for excluded samples."""
    sizes = residual @ X.T
    np.abs(sizes, out=sizes)
    for own in excluded.T:
        hide_own(sizes, own, -1)
    return sizes


def _orthogonalise(A: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the parts of the rows of A outside of their bases, and the coordinates inside.

    Twice: what one pass leaves inside is small against the row, but not against a small remainder.
    """
    coordinates = np.zeros(basis.shape[:2])
    for _ in range(2):
        along = np.matmul(basis, A[..., None])[..., 0]
        A = A - np.matmul(along[:, None], basis)[:, 0]
        coordinates += along
    return A, coordinates
