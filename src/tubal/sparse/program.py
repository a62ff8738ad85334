"""One convex program for each sample: a sparse combination of the other samples.

For samples in the rows of X, and each target x_j on its own,

    min_{c, e}  ||c||_1 + ridge / 2 ||c||^2 + outlier_lam ||e||_1 + lam_j / 2 ||x_j - X^T c - e||^2
    s.t.        c_j = 0   [ , sum(c) = 1 ]

`tubal.sparse.ssc` has no ridge and one `lam` for all samples; `tubal.sparse.ensc` has a ridge and
no outlier term. With a ridge this is still a lasso, in more dimensions: `x_j` is continued by zeros
and atom i by `sqrt(ridge / lam_j)` in place i. So the ridge adds to the inner products of atoms
with themselves, and the dual has a further vector t, for which `-ridge c` is the candidate:

    max_{v, t, nu}  <x_j, v> - ||v||^2 / (2 lam_j) - ||t||^2 / (2 ridge) - nu
    s.t.            |<x_i, v> + t_i - nu| <= 1 for all i != j,  |v|_k <= outlier_lam
                    [ nu = 0 without sum, t = 0 without ridge ]

Few coefficients are not zero, so a sample is solved on a small working set of others, exactly (see
`tubal.sparse.active`), and those that violate the conditions most join the set until the duality
gap is small enough. Samples are independent; they are taken in tiles because the correlations of a
tile with all samples are one matrix product.

References: M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the lasso with dual
extrapolation", ICML 2018 (working sets). For the elastic net they are the oracle regions of C. You,
C.-G. Li, D. P. Robinson, R. Vidal, "Oracle based active set algorithm for scalable elastic net
subspace clustering", CVPR 2016: the samples with `|<x_i, v>| > 1`, among them those in
use.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from tubal._threads import spans, threaded
from tubal.sparse import active
from tubal.sparse.representation import hide_own, rows_to_csr

TILE = 128
STAGE_FACTOR, STAGE_TOL = 10.0, 1e-4
GRAM_LIMIT = 2**26
"""Inner products of all samples are kept up to this many numbers (half a gigabyte)."""

EPSILON = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Program:
    """The program of all samples: data, weights and constraint.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        The samples.
    gram : array of shape (n_samples, n_samples) or None
        `X X^T`; None when it is not worth its memory.
    lam : array of shape (m,)
        Weight of the squared residual of each target.
    outlier_lam : float or None
        Weight of the outlying entries.
    affine : bool
        Whether coefficients sum to one.
    targets : array of shape (m, n_features)
        What is written as combinations of samples: the samples themselves, or others.
    own : int array of shape (m,)
        The sample that each target may not use, -1 for none.
    ridge : float
        Weight of the squared coefficients.
    joining : int
        The number of samples that join a working set at once, unless it is large already.
    """

    X: np.ndarray
    gram: np.ndarray | None
    lam: np.ndarray
    outlier_lam: float | None
    affine: bool
    targets: np.ndarray
    own: np.ndarray
    ridge: float = 0.0
    joining: int = 10

    @property
    def products(self) -> np.ndarray | None:
        """Inner products of the samples, when targets are samples."""
        return self.gram if self.targets is self.X else None

    @property
    def clip(self) -> np.ndarray:
        """Largest residual of each target that is not an outlying entry."""
        return np.inf / self.lam if self.outlier_lam is None else self.outlier_lam / self.lam

    def outlying(self, R: np.ndarray) -> np.ndarray:
        """Return the minimising E for the residuals `R = X - C X`, or R without outlier term."""
        if self.outlier_lam is None:
            return R
        clip = self.clip[:, None]
        return R - np.clip(R, -clip, clip)

    def correlations(
        self, rows: np.ndarray, C: scipy.sparse.csr_array, exact: bool = False
    ) -> np.ndarray:
        """Return `<x_i, v_j> + t_ij` for the targets j in `rows`, v the derivative of the loss.

        `exact` takes them from the residuals, not from differences of inner products.
        """
        if exact or self.products is None or self.outlier_lam is not None:
            H = self.multipliers(rows, C) @ self.X.T
        else:
            H = self.lam[rows, None] * (self.products[rows] - C @ self.products)
        if self.ridge:
            H[np.repeat(np.arange(len(rows)), np.diff(C.indptr)), C.indices] -= self.ridge * C.data
        return H

    def multipliers(self, rows: np.ndarray, C: scipy.sparse.csr_array) -> np.ndarray:
        """Return the derivative of the loss at the residuals: candidates for the dual v."""
        R = self.targets[rows] - C @ self.X
        if self.outlier_lam is not None:
            clip = self.clip[rows, None]
            R = np.clip(R, -clip, clip)
        return self.lam[rows, None] * R

    def fit(self, j: int, atoms: np.ndarray, c: np.ndarray) -> active.Fit:
        """Return the smooth part of the program of target j on some atoms."""
        lam = float(self.lam[j])
        if self.outlier_lam is not None:
            return active.Clipped(self.X[atoms], self.targets[j], c, lam, self.outlier_lam / lam)
        if self.products is not None:
            K, b = self.products[atoms[:, None], atoms], self.products[j, atoms]
        else:
            Y = self.X[atoms]
            K, b = Y @ Y.T, Y @ self.targets[j]
        K = lam * K
        K.flat[:: len(K) + 1] += self.ridge
        return active.Squares(K, lam * b, c)

    def gaps(
        self, rows: np.ndarray, C: scipy.sparse.csr_array, H: np.ndarray, nu: np.ndarray
    ) -> np.ndarray:
        """Return the relative duality gap of each target, given `H = correlations - nu`.

        The dual point is `(v, t, nu)`, scaled to be feasible and, within that, to be best.
        """
        V, lam = self.multipliers(rows, C), self.lam[rows]
        half = (V * V).sum(axis=1) / (2 * lam) + self.ridge / 2 * (C * C).sum(axis=1)
        primal = np.abs(C).sum(axis=1) + half
        bound = np.maximum(np.abs(H).max(axis=1), EPSILON)
        if self.outlier_lam is not None:
            E = self.targets[rows] - C @ self.X - V / lam[:, None]
            primal += self.outlier_lam * np.abs(E).sum(axis=1)
            bound = np.maximum(bound, np.abs(V).max(axis=1) / self.outlier_lam)
        linear = (V * self.targets[rows]).sum(axis=1) - nu
        best = np.divide(linear, 2 * half, out=np.where(linear > 0, np.inf, 0.0), where=half > 0)
        scale = np.clip(best, 0, 1 / bound)
        dual = scale * linear - scale**2 * half
        return np.divide(primal - dual, primal, out=np.zeros_like(primal), where=primal > 0)


def largest_products(
    X: np.ndarray, targets: np.ndarray, own: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return `max_i |<x_i, x_j>|` for each target j, and the products when they are worth it.

    Products are kept of the samples with themselves, and where they fit.
    """
    keep = targets is X and len(X) ** 2 <= GRAM_LIMIT
    gram = np.empty((len(X), len(X))) if keep else None

    def largest(tile: slice) -> np.ndarray:
        products = targets[tile] @ X.T
        if gram is not None:
            gram[tile] = products
        np.abs(products, out=products)
        hide_own(products, own[tile], 0)
        return products.max(axis=1)

    return np.concatenate(threaded(largest, _tiles(len(targets)), threads)), gram


def solve(
    program: Program, tol: float, max_iter: int, threads: int
) -> tuple[scipy.sparse.csr_array, int, float]:
    """Return the coefficients of all targets, the largest number of Newton steps, the largest gap.

    Warns when that gap is above `tol`.
    """
    tiles = _tiles(len(program.targets))
    solved = threaded(partial(_solve_tile, program, tol=tol, max_iter=max_iter), tiles, threads)
    C = scipy.sparse.csr_array(scipy.sparse.vstack([part for part, _ in solved]))
    gap = _certify(program, C, tiles, threads)
    if gap > tol:
        warnings.warn(
            f"the relative duality gap of some sample is {gap:.1e}, above tol={tol:g}, after at "
            f"most {max_iter} steps; increase max_iter or tol, or decrease alpha",
            ConvergenceWarning,
            stacklevel=3,
        )
    return C, max(int(steps.max()) for _, steps in solved), gap


def _tiles(n: int) -> list[slice]:
    """Cut the samples into tiles, by their number only: threads do not change the result."""
    return spans(n, -(-n // TILE))


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
    ratio = largest / float(program.clip.min())
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
            atoms[i], c = _enlarge(atoms[i], values[i], np.abs(H[k]), program.joining)
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
    """Return correlations less the multiplier of the sum, zero for a sample itself; multipliers."""
    H = program.correlations(rows, C, exact)
    nu = np.zeros(len(rows))
    if program.affine:
        used = [slice(*ends) for ends in zip(C.indptr, C.indptr[1:], strict=False)]
        pairs = zip(H, used, strict=True)
        nu = np.array([active.multiplier(h[C.indices[s]], C.data[s]) for h, s in pairs])
        H -= nu[:, None]
    hide_own(H, program.own[rows], 0)
    return H, nu


def _enlarge(
    atoms: np.ndarray, values: np.ndarray, size: np.ndarray, joining: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add the atoms that violate their condition most: a few, since most of them drop out again."""
    size[atoms] = 0
    new = np.flatnonzero(size > 1)
    count = max(joining, len(atoms) // 10)
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
