"""The largest eigenvectors of the normalised affinity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu
from sklearn.utils import check_random_state

from tubal._threads import serial_blas
from tubal.spectral.affinity import check_affinity, check_count

# Below this size, above this density or for a larger share of the eigenvectors, a dense
# decomposition is faster than Lanczos steps.
DENSE_SIZE = 250
DENSE_SHARE = 0.1

# From this size on, few eigenvectors of a dense matrix cost fewer operations by Lanczos steps with
# the matrix than its tridiagonal form does (n = 3000, 20 vectors: .7 s instead of 2.7 s).
LARGE_SIZE = 1500
LARGE_SHARE = 0.02

# Up to this size and this many edges a vertex the factors of a graph stay sparse enough to be
# cheaper than the many Lanczos steps that they save; beyond, they are the second choice.
FACTORED_SIZE = 4000
FACTORED_EDGES = 12
FACTORED_SHARE = 0.2

PRECISION = 1e-10


@dataclass(frozen=True, eq=False)
class Embedding:
    """The largest eigenvectors of `P = D^-1/2 W D^-1/2`.

    Attributes
    ----------
    values : array of shape (n_components,)
        The largest eigenvalues of P, descending; the eigenvalues of the normalised Laplacian are
        `1 - values`.
    vectors : array of shape (n, n_components)
        Orthonormal eigenvectors; the first of the largest entries of each one is positive.
    degrees : array of shape (n,)
        The diagonal of D, positive.
    """

    values: np.ndarray
    vectors: np.ndarray
    degrees: np.ndarray

    def rows(self, n_clusters: int) -> np.ndarray:
        """Return the first `n_clusters` eigenvectors with rows of unit norm."""
        return unit_rows(self._first(n_clusters))

    def cut_rows(self, n_clusters: int) -> np.ndarray:
        """Return the same for `D^-1/2 u`, the solutions of `W v = value D v`, columns first.

        Every column is brought to the same norm before the rows are. Without that step between,
        the degrees would cancel.
        """
        V = self._first(n_clusters) / np.sqrt(self.degrees)[:, None]
        return unit_rows(V / np.linalg.norm(V, axis=0))

    def _first(self, n_clusters: int) -> np.ndarray:
        if n_clusters > self.vectors.shape[1]:
            msg = f"embedding must have at least {n_clusters} vectors, has {self.vectors.shape[1]}"
            raise ValueError(msg)
        return self.vectors[:, :n_clusters]


def embed(
    affinity: Any, n_components: int, *, offset: float = 0.0, random_state: Any = None
) -> Embedding:
    """Compute the largest eigenvectors of the normalised affinity.

    Each connected component is decomposed by itself. So c components give c eigenvalues that are
    exactly one and vectors that are exactly indicators (times the root of the degrees), the largest
    component first. When there are more components than `n_components`, the last vector indicates
    all those together that have no vector of their own. A vertex without edges is a component: it
    is given a loop as heavy as the mean degree.

    Parameters
    ----------
    affinity : array or sparse array of shape (n, n)
    n_components : int
        Number of eigenvectors, from 1 to n.
    offset : float
        Regularisation of the Ncut toolbox of Cour, Yu and Shi, which takes 0.5: it is added to the
        diagonal of W, and twice to D. It has the unit of the affinity, so only `offset=0` does not
        depend on the scale of W. With it no eigenvalue is one.
    random_state : int, RandomState or None
        Draws the start of the Lanczos steps on large sparse graphs.

    Returns
    -------
    Embedding

    Examples
    --------
    >>> W = np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    >>> embedding = embed(W, 2)
    >>> embedding.values
    array([1., 1.])
    >>> embedding.vectors.round(3)
    array([[0.707, 0.   ],
           [0.707, 0.   ],
           [0.   , 1.   ]])
    """
    W = check_affinity(affinity)
    m = check_count("n_components", n_components, W.shape[0])
    if not (np.isfinite(offset) and offset >= 0):
        msg = f"offset must be a finite number >= 0, got {offset!r}"
        raise ValueError(msg)
    return _embed(W, m, float(offset), random_state)


def _embed(W: Any, m: int, offset: float, random_state: Any) -> Embedding:
    rng = check_random_state(random_state)
    W, d = _regularise(W, offset)
    P, scale = scipy.sparse.csr_array(W, copy=True), 1 / np.sqrt(d)
    P.data *= np.repeat(scale, np.diff(P.indptr)) * scale[P.indices]
    parts, each = _parts(W, d, m, exact=offset == 0)
    pairs: list[tuple[float, np.ndarray, np.ndarray]] = []
    for part in parts:
        if offset == 0 and each == 1:
            values, U = np.ones(1), np.sqrt(d[part])[:, None]
            U = U / np.linalg.norm(U)
        else:
            block = P if len(part) == len(d) else P[part][:, part]
            values, U = _largest(block, min(each, len(part)), rng)
            if offset == 0:
                values[0] = 1.0  # known; rounding must not decide the order of components
        pairs += [(value, part, u) for value, u in zip(values, U.T, strict=True)]
    pairs = sorted(pairs, key=lambda pair: -pair[0])[:m]
    vectors = np.zeros((len(d), m))
    for j, (_, part, u) in enumerate(pairs):
        vectors[part, j] = u
    return Embedding(np.array([pair[0] for pair in pairs]), _signed(vectors), d)


def _regularise(W: Any, offset: float) -> tuple[Any, np.ndarray]:
    """Return the affinity and the positive degrees that the embedding works with."""
    d = W.sum(axis=1)
    if offset > 0:
        return W + offset * scipy.sparse.eye_array(len(d)), d + 2 * offset
    alone = d == 0
    if not alone.any():
        return W, d
    loop = 1.0 if alone.all() else d[~alone].mean()
    return W + scipy.sparse.diags_array(np.where(alone, loop, 0.0)), np.where(alone, loop, d)


def _parts(W: Any, d: np.ndarray, m: int, *, exact: bool) -> tuple[list[np.ndarray], int]:
    """Return the vertices of each component, heaviest first, and how many vectors each needs."""
    count, member = connected_components(W, directed=False)
    volumes = np.bincount(member, weights=d)
    rank = np.empty(count, dtype=int)
    rank[np.argsort(-volumes, kind="stable")] = np.arange(count)
    if exact and count > m:
        count, rank = m, np.minimum(rank, m - 1)
    member = rank[member]
    ends = np.cumsum(np.bincount(member))[:-1]
    parts = np.split(np.argsort(member, kind="stable"), ends)
    # Every component has one eigenvalue 1, which is the largest there is.
    return parts, (m - count + 1 if exact else m)


def _largest(P: Any, m: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues of a sparse symmetric matrix, descending, and vectors.

    BLAS is held at one thread: the same bits for any number of threads, at little cost.
    """
    n = P.shape[0]
    with serial_blas():
        methods = _sparse_methods(P, m)
        if methods and _is_dense(P):
            P = P.toarray()
        start = rng.uniform(-1, 1, n) if methods else None
        for method in methods:
            try:
                values, U = method(P, m, start)
            except ArpackNoConvergence:
                continue
            return np.minimum(values, 1.0), U
        values, U = _dense(P if isinstance(P, np.ndarray) else P.toarray(), m)
    return np.minimum(values[::-1], 1.0), U[:, ::-1]


def _sparse_methods(P: Any, m: int) -> tuple[Callable[..., tuple[np.ndarray, np.ndarray]], ...]:
    """Return what is faster than a dense decomposition, to be tried in turn."""
    n = P.shape[0]
    if _is_dense(P):
        return (_lanczos,) if n >= LARGE_SIZE and m <= LARGE_SHARE * n else ()
    if n <= DENSE_SIZE:
        return ()
    if n <= FACTORED_SIZE and P.nnz <= FACTORED_EDGES * n and m <= FACTORED_SHARE * n:
        return _shift_invert, _lanczos
    return (_lanczos, _shift_invert) if m <= DENSE_SHARE * n else ()


def _is_dense(P: Any) -> bool:
    return bool(P.nnz > DENSE_SHARE * P.shape[0] ** 2)


def _dense(P: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    n = len(P)
    try:
        return scipy.linalg.eigh(P, subset_by_index=(n - m, n - 1))
    except np.linalg.LinAlgError:
        # LAPACK's choice for a subset can fail on an eigenvalue of high multiplicity, as of a
        # complete graph; divide and conquer does not.
        values, U = scipy.linalg.eigh(P, driver="evd")
        return values[n - m :], U[:, n - m :]


def _lanczos(P: Any, m: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos steps with P itself: quick unless the wanted eigenvalues crowd near 1.

    Krylov spaces do not change with a shift. A wide basis needs fewer restarts.
    """
    return _steps(P, m, start, max(2 * m + 1, m + 60))


def _steps(A: Any, m: int, start: np.ndarray, basis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m largest eigenvalues of a matrix or an operator, descending, and vectors."""
    basis = min(len(start), basis)
    values, U = eigsh(A, k=m, which="LA", v0=start, ncv=basis, tol=PRECISION, maxiter=20)
    order = np.argsort(-values, kind="stable")
    return values[order], U[:, order]


def _shift_invert(P: Any, m: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos steps with `(shift I - P)^-1`, whose largest eigenvalues are far apart.

    Eigenvalues crowd near 1 when the graph is long and thin, and then its factors are sparse. On
    graphs of a thousand to some thousand samples `embed` takes half to a quarter of the time.
    """
    n, shift = len(start), 1 + 1e-3
    matrix = scipy.sparse.csc_array(shift * scipy.sparse.eye_array(n) - P)
    # Positive definite, so no pivots are needed, and the ordering can be that of a symmetric one.
    options = {"SymmetricMode": True}
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    inverse = LinearOperator((n, n), factors.solve, dtype=float)
    # Far apart they need few steps, so that a narrow basis, cheap to keep orthogonal, will do.
    inverted, U = _steps(inverse, m, start, max(20, min(2 * m + 1, m + 60)))
    return shift - 1 / inverted, U


def _signed(U: np.ndarray) -> np.ndarray:
    """Make the first of the largest entries of each column positive; ties count up to rounding."""
    size = np.abs(U)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return U * np.where(U[first, np.arange(U.shape[1])] < 0, -1.0, 1.0)


def unit_rows(V: np.ndarray) -> np.ndarray:
    """Return V with rows of unit norm; zero rows stay."""
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(norms > 0, norms, 1.0)
