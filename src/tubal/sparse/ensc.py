"""Elastic net subspace clustering.

For samples in the rows of X, and each sample x_j on its own,

    min_c  l1_ratio ||c||_1 + (1 - l1_ratio) / 2 ||c||^2 + gamma_j / 2 ||x_j - X^T c||^2
    s.t.   c_j = 0

(`l1_ratio` is lambda in the reference). The first term keeps samples of other subspaces away; the
second one shares the coefficients among samples that are alike, so that those of a subspace are
connected. Divided by `l1_ratio` this is the program of `tubal.sparse.program`.

Reference: C. You, C.-G. Li, D. P. Robinson, R. Vidal, "Oracle based active set algorithm for
scalable elastic net subspace clustering", CVPR 2016; released toolbox, function
`elastic_net_subspace_clustering`.
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

JOINING = 20
"""Samples that join a working set at once: supports are wider than those of the lasso."""


def ensc(
    X: Any,
    *,
    queries: Any = None,
    twins: np.ndarray | None = None,
    alpha: float = 50.0,
    l1_ratio: float = 0.95,
    normalize: bool = True,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> SparseRepresentation:
    """Write each sample as a combination of others by the elastic net (EnSC).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Complete data. The work is done in double precision.
    queries : array of shape (m, n_features) or None
        Samples to write as combinations of those of X; None: the samples of X themselves, each
        without itself.
    twins : int array of shape (m,) or None
        For each query the sample of X that it may not use, -1 for none. Only with `queries`.
    alpha : float
        Weight of the squared residual, `gamma_j = alpha l1_ratio / max_{i != j} |<x_i, x_j>|`: up
        to 1 there are no coefficients at all. 50 is the default of the released toolbox (`gamma`
        there, with `gamma_nz`). Larger values fit more closely, with more coefficients and more
        time.
    l1_ratio : float
        Share of the first term, above 0 and at most 1 (lambda of the paper, tau of the toolbox). 1
        is the lasso; for 0 see `lsr`, which has a closed form.
    normalize : bool
        Whether samples are divided by their Euclidean norms first.
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
        With `normalize`, `coefficients` and `E` are turned back to the units of X, while `gap` and
        `lam` belong to the program that was solved. `lam` holds `gamma_j / l1_ratio`, one for each
        sample.

    Warns
    -----
    ConvergenceWarning
        When the gap of some sample is above `tol`.

    Notes
    -----
    Departures from the released toolbox: it keeps the 50 largest coefficients of a sample, and
    stops when the objective hardly falls; here the answer is the minimum of the program. A sample
    without any inner product, such as a zero sample, has no coefficient.

    Examples
    --------
    Two lines in space, three samples each. Samples that are alike share the coefficients:

    >>> import numpy as np
    >>> X = np.outer([1.0, 1.0, 1.0, 1.0, -1.0, 1.0], [1, 0, 0])
    >>> X[3:] = X[3:, [1, 0, 2]]
    >>> C = ensc(X).coefficients
    >>> np.round(C.toarray(), 2)
    array([[ 0.  ,  0.49,  0.49,  0.  ,  0.  ,  0.  ],
           [ 0.49,  0.  ,  0.49,  0.  ,  0.  ,  0.  ],
           [ 0.49,  0.49,  0.  ,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  ,  0.  , -0.49,  0.49],
           [ 0.  ,  0.  ,  0.  , -0.49,  0.  , -0.49],
           [ 0.  ,  0.  ,  0.  ,  0.49, -0.49,  0.  ]])
    """
    alpha, l1_ratio = check_positive("alpha", alpha), check_l1_ratio(l1_ratio)
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    threads = effective_jobs(n_jobs)
    X = as_table(X)
    Y, own = as_targets(X, queries, twins)
    samples, norms, targets, sizes = in_units(X, Y, check_flag("normalize", normalize))
    largest, gram = largest_products(samples, targets, own, threads)
    lam = alpha / np.where(largest > 0, largest, 1.0)
    ridge = (1 - l1_ratio) / l1_ratio
    program = Program(samples, gram, lam, None, False, targets, own, ridge, JOINING)
    C, n_iter, gap = solve(program, tol, max_iter, threads)
    E = (targets - C @ samples) * sizes[:, None]
    return SparseRepresentation(in_input_units(C, sizes, norms), E, n_iter, gap, lam)


def check_l1_ratio(l1_ratio: Any) -> float:
    """Return a number above 0 and at most 1."""
    l1_ratio = check_positive("l1_ratio", l1_ratio)
    if l1_ratio > 1:
        msg = f"l1_ratio must be above 0 and at most 1, got {l1_ratio!r}"
        raise ValueError(msg)
    return l1_ratio
