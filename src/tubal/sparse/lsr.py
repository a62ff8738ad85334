"""Least squares regression: each sample from all others, with small coefficients.

For samples in the rows of X, and each sample x_j on its own,

    min_c  ||x_j - X^T c||^2 + weight ||c||^2   [ s.t. c_j = 0 ]

With `P = (X X^T + weight I)^-1` the coefficients are

    Z_ji = -P_ji / P_jj       with the constraint, for i != j (LSR1 of the reference),
    Z    = I - weight P       without it (LSR2).

So both agree up to a factor for each sample, once the diagonal of the second is left out. When
there are fewer features than samples, the matrix to invert is that of the features,

    (X X^T + weight I)^-1 X = X M,   M = (X^T X + weight I)^-1,

and the coefficients are products of two thin matrices, of which rows are formed when they are read.

Reference: C.-Y. Lu, H. Min, Z.-Q. Zhao, L. Zhu, D.-S. Huang, S. Yan, "Robust and efficient subspace
segmentation via least squares regression", ECCV 2012, arXiv:1404.6736; released functions `LSR1`
and `LSR2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import check_flag, check_positive
from tubal.sparse.representation import as_table, as_targets, hide_own, in_units

TILE = 256
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RidgeRepresentation:
    """Samples as combinations of all other samples, in the units of the data.

    Attributes
    ----------
    left : array of shape (m, r)
        Of the samples that are represented.
    right : array of shape (n_samples, r) or None
        Of the samples that represent them: coefficients are `left right^T`. None: they are `left`.
    own : int array of shape (m,)
        The sample whose coefficient is left out, -1 for none.
    E : array of shape (m, n_features)
        What the combinations leave over. Without the constraint the coefficient of a sample on
        itself counts here, although it is left out of `coefficients`.
    weight : float
        Weight of the squared coefficients.
    n_iter : int
        One: there is a closed form.
    gap : None
        Nothing was iterated, so there is nothing to certify.
    """

    left: np.ndarray
    right: np.ndarray | None
    own: np.ndarray
    E: np.ndarray
    weight: float
    n_iter: int = 1
    gap: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples that are represented, and of those that represent them."""
        return len(self.left), len(self.left.T if self.right is None else self.right)

    @property
    def coefficients(self) -> np.ndarray:
        """All coefficients, a row a sample; the diagonal is zero."""
        return self.tile(slice(None))

    def tile(self, rows: Any) -> np.ndarray:
        """Return the coefficients of some samples: a new array."""
        left = self.left[rows]
        table = left.copy() if self.right is None else left @ self.right.T
        hide_own(table, self.own[rows], 0.0)
        return table


def lsr(
    X: Any,
    *,
    queries: Any = None,
    twins: np.ndarray | None = None,
    weight: float = 1e-3,
    exclude_self: bool = True,
    normalize: bool = True,
    n_jobs: int | None = None,
) -> RidgeRepresentation:
    """Write each sample as a combination of all others, by ridge regression (LSR).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Complete data. The work is done in double precision.
    queries : array of shape (m, n_features) or None
        Samples to write as combinations of those of X; None: the samples of X themselves.
    twins : int array of shape (m,) or None
        For each query the sample of X that it is, -1 for none. Only with `queries`.
    weight : float
        Weight of the squared coefficients, in the unit of a squared sample. 0.001 is the default
        of the released functions; smaller values fit more closely.
    exclude_self : bool
        Whether a sample may not represent itself. True is LSR1, with the constraint `diag(Z) = 0`
        that SSC, SSC-OMP and EnSC have, too. False is LSR2, without it; the coefficient of a sample
        on itself is left out afterwards.
    normalize : bool
        Whether samples are divided by their Euclidean norms first, so that `weight` means the same
        for all data. In the released functions these lines are there, commented out.
    n_jobs : int or None
        Number of threads of the matrix products; None: as many as BLAS may use. It does not change
        the result.

    Returns
    -------
    RidgeRepresentation
        With `normalize`, in the units of X, while `weight` belongs to the samples of unit norm.

    Examples
    --------
    Two lines in space, three samples each:

    >>> import numpy as np
    >>> X = np.outer([1.0, 1.0, 1.0, 1.0, -1.0, 1.0], [1, 0, 0])
    >>> X[3:] = X[3:, [1, 0, 2]]
    >>> np.round(lsr(X).coefficients, 2)
    array([[ 0. ,  0.5,  0.5,  0. ,  0. ,  0. ],
           [ 0.5,  0. ,  0.5,  0. ,  0. ,  0. ],
           [ 0.5,  0.5,  0. ,  0. ,  0. ,  0. ],
           [ 0. ,  0. ,  0. ,  0. , -0.5,  0.5],
           [ 0. ,  0. ,  0. , -0.5,  0. , -0.5],
           [ 0. ,  0. ,  0. ,  0.5, -0.5,  0. ]])
    """
    weight = check_positive("weight", weight)
    exclude_self = check_flag("exclude_self", exclude_self)
    threads = effective_jobs(n_jobs)
    X = as_table(X)
    Y, own = as_targets(X, queries, twins)
    samples, norms, targets, sizes = in_units(X, Y, check_flag("normalize", normalize))
    solve = _by_samples if len(X) <= X.shape[1] else _by_features
    free = own if exclude_self else np.full(len(Y), -1)
    left, right, explained = solve(samples, targets, free, weight, threads)
    E = (targets - explained) * sizes[:, None]
    left = left * sizes[:, None]
    if right is None:
        left /= norms
    else:
        right = right / norms[:, None]
    return RidgeRepresentation(left, right, own, E, weight)


def _by_samples(
    X: np.ndarray, Y: np.ndarray, own: np.ndarray, weight: float, threads: int
) -> tuple[np.ndarray, None, np.ndarray]:
    """Return coefficients and what they explain, from the inverse of a matrix of the samples."""
    P = _inverse(_gram(X, threads), weight)
    rows = np.flatnonzero(own >= 0)
    t = own[rows]
    if Y is X:
        C = P * np.where(own >= 0, -1 / P.diagonal(), -weight)[:, None]
        C.flat[:: len(C) + 1] += 1
    else:
        C = _product(_product(Y, X.T, threads), P, threads)
        C[rows] -= (C[rows, t] / P[t, t])[:, None] * P[t]
    C[rows, t] = 0  # to rounding it is already
    return C, None, _product(C, X, threads)


def _by_features(
    X: np.ndarray, Y: np.ndarray, own: np.ndarray, weight: float, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both factors of the coefficients and what they explain, by the features."""
    gram = _gram(X.T, threads)
    M = _inverse(gram.copy(), weight)
    B = _product(X, M, threads)
    left = B.copy() if Y is X else _product(Y, M, threads)
    rows = np.flatnonzero(own >= 0)
    t = own[rows]
    rest = np.maximum(1 - (B * X).sum(axis=1), EPSILON)  # weight P_jj
    left[rows] += ((left[rows] * X[t]).sum(axis=1) / rest[t])[:, None] * B[t]
    explained = _product(left, gram, threads)
    explained[rows] -= (left[rows] * X[t]).sum(axis=1)[:, None] * X[t]
    return left, X, explained


def _product(A: np.ndarray, B: np.ndarray, threads: int) -> np.ndarray:
    """Return `A B`, by tiles of rows that do not depend on the number of threads."""
    parts = spans(len(A), -(-len(A) // TILE))
    return np.concatenate(threaded(lambda rows: A[rows] @ B, parts, threads))


def _gram(A: np.ndarray, threads: int) -> np.ndarray:
    """Return `A A^T`; only what is on one side of the diagonal is computed."""
    G = np.empty((len(A), len(A)))

    def fill(rows: slice) -> None:
        part = A[rows] @ A[: rows.stop].T
        G[: rows.stop, rows] = part.T
        G[rows, : rows.stop] = part

    threaded(fill, spans(len(A), -(-len(A) // TILE)), threads)
    return G


def _inverse(gram: np.ndarray, weight: float) -> np.ndarray:
    """Return `(gram + weight I)^-1`, symmetric to the last bit; `gram` is overwritten."""
    lost = weight <= EPSILON * np.trace(gram)
    diagonal = slice(None, None, len(gram) + 1)
    gram.flat[diagonal] += weight
    factor, failed = dpotrf(gram.T, lower=True, overwrite_a=True)
    if lost or failed:
        msg = (
            f"weight={weight:g} is too small for these samples: it is lost in rounding beside "
            "their inner products; increase it"
        )
        raise ValueError(msg)
    lower, _ = dpotri(factor, lower=True, overwrite_c=True)  # zero above the diagonal
    P = lower + lower.T
    P.flat[diagonal] /= 2
    return P
