"""Sparse subspace clustering, with the sparse outlying entries of its paper.

For samples in the rows of X, and each sample x_j on its own,

    min_{c, e}  ||c||_1 + outlier_lam ||e||_1 + lam / 2 ||x_j - X^T c - e||^2
    s.t.        c_j = 0   [ , sum(c) = 1 ]

(equation (13) of the reference; its matrices are the transposes of ours). Without the outlier term
e is zero and this is the lasso. The dual, which proves how good an answer is,

    max_{v, nu}  <x_j, v> - ||v||^2 / (2 lam) - nu
    s.t.         |<x_i, v> - nu| <= 1 for all i != j,  |v|_k <= outlier_lam   [ nu = 0 without sum ]

Few coefficients are not zero, so a sample is solved on a small working set of others, exactly (see
`tubal.sparse.active`), and those that violate the conditions most join the set until the duality
gap is small enough. Samples are independent; they are taken in tiles because the correlations of a
tile with all samples are one matrix product.

Reference: E. Elhamifar, R. Vidal, "Sparse subspace clustering: algorithm, theory, and
applications", IEEE Transactions on Pattern Analysis and Machine Intelligence 35 (2013),
arXiv:1203.1005; released code SSC_ADMM_v1.1. Working sets: M. Massias, A. Gramfort, J. Salmon,
"Celer: a fast solver for the lasso with dual extrapolation", ICML 2018.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import check_count, check_flag, check_positive
from tubal.sparse import active
from tubal.sparse.representation import (
    SparseRepresentation,
    as_table,
    as_targets,
    hide_own,
    in_input_units,
    rows_to_csr,
    unit_samples,
)

TILE = 128
STAGE_FACTOR, STAGE_TOL = 10.0, 1e-4
GRAM_LIMIT = 2**26
"""Inner products of all samples are kept up to this many numbers (half a gigabyte)."""


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
    scale = check_flag("normalize", normalize)
    samples, norms = unit_samples(X) if scale else (X, np.ones(len(X)))
    targets, sizes = (samples, norms) if queries is None else (Y, np.ones(len(Y)))
    if scale and queries is not None:
        targets, sizes = unit_samples(Y)
    program = _program(samples, alpha, outlier_alpha, affine, threads)
    program = replace(program, targets=targets, own=own)
    tiles = _tiles(len(Y))
    solved = threaded(partial(_solve_tile, program, tol=tol, max_iter=max_iter), tiles, threads)
    C = scipy.sparse.csr_array(scipy.sparse.vstack([part for part, _ in solved]))
    gap = _certify(program, C, tiles, threads)
    if gap > tol:
        warnings.warn(
            f"the relative duality gap of some sample is {gap:.1e}, above tol={tol:g}, after at "
            f"most {max_iter} steps; increase max_iter or tol, or decrease alpha",
            ConvergenceWarning,
            stacklevel=2,
        )
    return SparseRepresentation(
        in_input_units(C, sizes, norms),
        program.outlying(targets - C @ samples) * sizes[:, None],
        max(int(steps.max()) for _, steps in solved),
        gap,
        program.lam,
        program.outlier_lam,
    )


@dataclass(frozen=True, eq=False)
class Program:
    """The program of all samples: data, weights and constraint.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        The samples.
    gram : array of shape (n_samples, n_samples) or None
        `X X^T`; None when it is not worth its memory.
    lam : float
        Weight of the squared residual.
    outlier_lam : float or None
        Weight of the outlying entries.
    affine : bool
        Whether coefficients sum to one.
    targets : array of shape (m, n_features)
        What is written as combinations of samples: the samples themselves, or others.
    own : int array of shape (m,)
        The sample that each target may not use, -1 for none.
    """

    X: np.ndarray
    gram: np.ndarray | None
    lam: float
    outlier_lam: float | None
    affine: bool
    targets: np.ndarray
    own: np.ndarray

    @property
    def products(self) -> np.ndarray | None:
        """Inner products of the samples, when targets are samples."""
        return self.gram if self.targets is self.X else None

    @property
    def clip(self) -> float:
        """Largest residual that is not an outlying entry."""
        return np.inf if self.outlier_lam is None else self.outlier_lam / self.lam

    def outlying(self, R: np.ndarray) -> np.ndarray:
        """Return the minimising E for the residuals `R = X - C X`, or R without outlier term."""
        return R if self.outlier_lam is None else R - np.clip(R, -self.clip, self.clip)

    def correlations(self, rows: np.ndarray, C: scipy.sparse.csr_array) -> np.ndarray:
        """Return `<x_i, v_j>` for the samples j in `rows`, v the derivative at the residual."""
        if self.products is not None and self.outlier_lam is None:
            return self.lam * (self.products[rows] - C @ self.products)
        return self.multipliers(rows, C) @ self.X.T

    def multipliers(self, rows: np.ndarray, C: scipy.sparse.csr_array) -> np.ndarray:
        """Return the derivative of the loss at the residuals: candidates for the dual v."""
        return self.lam * np.clip(self.targets[rows] - C @ self.X, -self.clip, self.clip)

    def fit(self, j: int, atoms: np.ndarray, c: np.ndarray) -> active.Fit:
        """Return the loss of sample j on some atoms."""
        if self.outlier_lam is not None:
            return active.Clipped(self.X[atoms], self.targets[j], c, self.lam, self.clip)
        if self.products is not None:
            K, b = self.products[atoms[:, None], atoms], self.products[j, atoms]
        else:
            Y = self.X[atoms]
            K, b = Y @ Y.T, Y @ self.targets[j]
        return active.Squares(self.lam * K, self.lam * b, c)

    def gaps(
        self, rows: np.ndarray, C: scipy.sparse.csr_array, H: np.ndarray, nu: np.ndarray
    ) -> np.ndarray:
        """Return the relative duality gap of each sample, given `H = correlations - nu`.

        The dual point is `(v, nu)`, scaled to be feasible and, within that, to be best.
        """
        V = self.multipliers(rows, C)
        E = self.targets[rows] - C @ self.X - V / self.lam
        half = (V * V).sum(axis=1) / (2 * self.lam)
        primal = np.abs(C).sum(axis=1) + half
        bound = np.maximum(np.abs(H).max(axis=1), EPSILON)
        if self.outlier_lam is not None:
            primal += self.outlier_lam * np.abs(E).sum(axis=1)
            bound = np.maximum(bound, np.abs(V).max(axis=1) / self.outlier_lam)
        linear = (V * self.targets[rows]).sum(axis=1) - nu
        best = np.divide(linear, 2 * half, out=np.where(linear > 0, np.inf, 0.0), where=half > 0)
        scale = np.clip(best, 0, 1 / bound)
        dual = scale * linear - scale**2 * half
        return np.divide(primal - dual, primal, out=np.zeros_like(primal), where=primal > 0)


EPSILON = float(np.finfo(np.float64).tiny)


def _tiles(n: int) -> list[slice]:
    """Cut the samples into tiles, by their number only: threads do not change the result."""
    return spans(n, -(-n // TILE))


def _program(
    X: np.ndarray, alpha: float, outlier_alpha: float | None, affine: bool, threads: int
) -> Program:
    """Find the weights by the rules of equation (14), and the inner products when they fit."""
    gram = np.empty((len(X), len(X))) if len(X) ** 2 <= GRAM_LIMIT else None

    def largest_products(tile: slice) -> np.ndarray:
        products = X[tile] @ X.T
        if gram is not None:
            gram[tile] = products
        np.abs(products, out=products)
        products[np.arange(len(products)), np.arange(tile.start, tile.stop)] = 0
        return products.max(axis=1)

    largest = np.concatenate(threaded(largest_products, _tiles(len(X)), threads))
    mu = largest[largest > 0].min(initial=np.inf)
    lam = alpha / (mu if np.isfinite(mu) else 1.0)
    outlier_lam = None
    if outlier_alpha is not None:
        mu_e = np.sort(np.abs(X).sum(axis=1))[-2]  # the largest one, left out itself, has this max
        outlier_lam = float(outlier_alpha / (mu_e or 1.0))
    return Program(X, gram, float(lam), outlier_lam, affine, X, np.arange(len(X)))


def _solve_tile(
    program: Program, tile: slice, tol: float, max_iter: int
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return the coefficients of the samples of a tile and the Newton steps of each."""
    rows = np.arange(tile.start, tile.stop)
    atoms, values = _start(program, rows)
    steps = np.zeros(len(rows), dtype=int)
    for stage in _stages(program):
        loose = tol if stage is program else max(tol, STAGE_TOL)
        _advance(stage, rows, atoms, values, steps, loose, max_iter)
    return rows_to_csr(atoms, values, len(program.X)), steps


def _stages(program: Program) -> list[Program]:
    """Return the programs to solve one after the other, each from the solution of the last.

    When `lam` is large against the weight of the outlying entries, almost every residual is clipped
    and the program is close to a linear one, with a vertex for every few steps. So it is reached
    from a smaller `lam`, by factors of ten, for which nothing is clipped at first: from least
    squares to least moduli (K. Madsen, H. B. Nielsen, "A finite smoothing algorithm for linear l1
    estimation", SIAM Journal on Optimization 3 (1993)).
    """
    if program.outlier_lam is None:
        return [program]
    largest = max(float(np.abs(A).max()) for A in (program.X, program.targets))
    ratio = largest / program.clip
    count = max(0, int(np.ceil(np.log(max(ratio, 1)) / np.log(STAGE_FACTOR))))
    weights = [program.lam / STAGE_FACTOR**k for k in range(count, 0, -1)]
    return [*(replace(program, lam=lam) for lam in weights), program]


def _advance(
    program: Program,
    rows: np.ndarray,
    atoms: list[np.ndarray],
    values: list[np.ndarray],
    steps: np.ndarray,
    tol: float,
    max_iter: int,
) -> None:
    """Bring the samples in `rows` to a gap of `tol`, in place."""
    n = len(program.X)
    pending = np.arange(len(rows))
    while len(pending):
        C = rows_to_csr([atoms[i] for i in pending], [values[i] for i in pending], n)
        H, nu = _conditions(program, rows[pending], C)
        late = program.gaps(rows[pending], C, H, nu) > tol
        pending, H = pending[late], H[late]
        advanced = np.zeros(len(pending), dtype=bool)
        for k, i in enumerate(pending):
            atoms[i], c = _enlarge(atoms[i], values[i], np.abs(H[k]))
            fit = program.fit(int(rows[i]), atoms[i], c)
            c, taken = active.minimise(fit, c, program.affine, tol / 4, max_iter - int(steps[i]))
            atoms[i], values[i] = atoms[i][c != 0], c[c != 0]
            steps[i] += taken
            advanced[k] = taken > 0
        pending = pending[advanced]  # the others are at their limit: of steps, or of precision


def _start(program: Program, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return a feasible point: zero, or for sums of one the nearest other sample alone."""
    if not program.affine:
        return [np.empty(0, dtype=int)] * len(rows), [np.empty(0)] * len(rows)
    X = program.X
    distances = (X * X).sum(axis=1) / 2 - program.targets[rows] @ X.T
    hide_own(distances, program.own[rows], np.inf)
    return [np.array([i]) for i in distances.argmin(axis=1)], [np.ones(1)] * len(rows)


def _conditions(
    program: Program, rows: np.ndarray, C: scipy.sparse.csr_array, exact: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return correlations less the multiplier of the sum, zero for a sample itself; multipliers.

    `exact` takes the correlations from the residuals, not from differences of inner products.
    """
    H = program.multipliers(rows, C) @ program.X.T if exact else program.correlations(rows, C)
    nu = np.zeros(len(rows))
    if program.affine:
        used = [slice(*ends) for ends in zip(C.indptr, C.indptr[1:], strict=False)]
        pairs = zip(H, used, strict=True)
        nu = np.array([active.multiplier(h[C.indices[s]], C.data[s]) for h, s in pairs])
        H -= nu[:, None]
    hide_own(H, program.own[rows], 0)
    return H, nu


def _enlarge(
    atoms: np.ndarray, values: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add the atoms that violate their condition most: a few, since most of them drop out again."""
    size[atoms] = 0
    new = np.flatnonzero(size > 1)
    count = max(10, len(atoms) // 10)
    if len(new) > count:
        new = new[np.argpartition(-size[new], count)[:count]]
    return np.concatenate([atoms, new]), np.concatenate([values, np.zeros(len(new))])


def _certify(
    program: Program, C: scipy.sparse.csr_array, tiles: list[slice], threads: int
) -> float:
    """Return the largest gap, computed anew from the samples and the final coefficients."""

    def largest(tile: slice) -> float:
        rows, part = np.arange(tile.start, tile.stop), C[tile]
        H, nu = _conditions(program, rows, part, exact=True)
        return float(program.gaps(rows, part, H, nu).max())

    return max(threaded(largest, tiles, threads))
