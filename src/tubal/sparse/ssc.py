"""Sparse subspace clustering, with the sparse outlying entries of its paper.

For samples in the rows of X, and each sample x_j on its own,

    min_{c, e}  ||c||_1 + outlier_lam ||e||_1 + lam / 2 ||x_j - X^T c - e||^2
    s.t.        c_j = 0   [ , sum(c) = 1 ]

(equation (13) of the reference; its matrices are the transposes of ours). Without the outlier term
e is zero and this is the lasso. The dual, which
proves how good an answer is, and how both are solved stand in `tubal.sparse.program`.

Reference: E. Elhamifar, R. Vidal, "Sparse subspace clustering: algorithm, theory, and
applications", IEEE Transactions on Pattern Analysis and Machine Intelligence 35 (2013),
arXiv:1203.1005; released code SSC_ADMM_v1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tubal._threads import effective_jobs
from tubal.input import check_count, check_flag, check_positive
from tubal.sparse.program import Program, largest_products, solve
from tubal.sparse.representation import (
    SparseRepresentation,
    as_table,
    as_targets,
    in_input_units,
    in_units,
)


def ssc(
    X: Any,
    *,
    queries: Any = None,
    twins: np.ndarray | None = None,
    alpha: float = 20.0,
    outlier_alpha: float | None = None,
    affine: bool = False,
    normalize: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> SparseRepresentation:
    """Write each sample as a sparse combination of the others (SSC).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Complete data. The work is done in double precision.
    queries : array of shape (m, n_features) or None
        Samples to write as combinations of those of X, with the weights that X gives; None: the
        samples of X themselves, each without itself.
    twins : int array of shape (m,) or None
        For each query the sample of X that it may not use, -1 for none. Only with `queries`.
    alpha : float
        Weight of the squared residual, `lam = alpha / mu` with `mu = min_i max_{j != i}
        |<x_i, x_j>|`: for `alpha <= 1` some sample gets no coefficient at all (equation (14) of
        the paper). 20 is the default of the function `SSC` of the released code and its value for
        faces; it takes 800 for motion data. Larger values fit more closely, with more coefficients
        and more time.
    outlier_alpha : float or None
        Weight of the outlying entries, `outlier_lam = outlier_alpha / mu_e` with `mu_e = min_i
        max_{j != i} ||x_j||_1`; None leaves the outlier term out. The released code takes
        20 for faces.
    affine : bool
        Whether the coefficients of a sample must sum to one: for subspaces that do not pass through
        the origin. Not together with `normalize`, which does not keep such subspaces.
    normalize : bool
        Whether samples are divided by their Euclidean norms first. The released code does not.
    tol : float
        Largest relative duality gap of a sample, `(primal - dual) / primal`.
    max_iter : int
        Largest number of Newton steps of a sample.
    n_jobs : int or None
        Number of threads; None: as many as BLAS may use. It does not change the result, and it
        shortens little but the matrix products: the steps of single samples are Python.

    Returns
    -------
    SparseRepresentation
        With `normalize`, `coefficients` and `E` are turned back to the units of X, while `gap`,
        `lam` and `outlier_lam` belong to the program that was solved.

    Warns
    -----
    ConvergenceWarning
        When the gap of some sample is above `tol`.

    Notes
    -----
    Departures from the released code, which runs ADMM for at most 200 iterations: the answer here
    is the minimum of the program. Its version for outlying entries has no squared residual
    (`X = C X + E` exactly, which is the limit of a large `alpha` here) and takes the largest
    `||x_j||_1` in place of `mu_e`. Samples without any inner product, such as zero samples, are
    passed over in `mu`; otherwise it would be zero. Dividing the coefficients of each sample by
    their largest modulus (step 2 of Algorithm 1) is left to the graph.

    Examples
    --------
    Two lines in space, three samples each:

    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 3.0, 1.0, -1.5, 2.0], [1, 0, 0])
    >>> X[3:] = X[3:, [1, 0, 2]]
    >>> C = ssc(X, alpha=100).coefficients
    >>> np.round(C.toarray(), 2)
    array([[ 0.  ,  0.  ,  0.33,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.66,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  1.5 ,  0.  ,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  ,  0.  ,  0.  ,  0.5 ],
           [ 0.  ,  0.  ,  0.  ,  0.  ,  0.  , -0.74],
           [ 0.  ,  0.  ,  0.  ,  0.  , -1.32,  0.  ]])
    """
    alpha = check_positive("alpha", alpha)
    if outlier_alpha is not None:
        outlier_alpha = check_positive("outlier_alpha", outlier_alpha)
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    if check_flag("affine", affine) and check_flag("normalize", normalize):
        msg = (
            "affine=True and normalize=True were given together: dividing samples by their norms "
            "does not keep affine subspaces; set one of them to False"
        )
        raise ValueError(msg)
    threads = effective_jobs(n_jobs)
    X = as_table(X)
    Y, own = as_targets(X, queries, twins)
    samples, norms, targets, sizes = in_units(X, Y, check_flag("normalize", normalize))
    largest, gram = largest_products(samples, samples, np.arange(len(X)), threads)
    lam, outlier_lam = _weights(samples, largest, alpha, outlier_alpha)
    program = Program(samples, gram, np.full(len(Y), lam), outlier_lam, bool(affine), targets, own)
    C, n_iter, gap = solve(program, tol, max_iter, threads)
    return SparseRepresentation(
        in_input_units(C, sizes, norms),
        program.outlying(targets - C @ samples) * sizes[:, None],
        n_iter,
        gap,
        lam,
        outlier_lam,
    )


def _weights(
    X: np.ndarray, largest: np.ndarray, alpha: float, outlier_alpha: float | None
) -> tuple[float, float | None]:
    """Return the weights by the rules of equation (14), given the largest inner products."""
    mu = largest[largest > 0].min(initial=np.inf)
    lam = float(alpha / (mu if np.isfinite(mu) else 1.0))
    if outlier_alpha is None:
        return lam, None
    mu_e = np.sort(np.abs(X).sum(axis=1))[-2]  # the largest one, left out itself, has this max
    return lam, float(outlier_alpha / (mu_e or 1.0))
