"""Optimal values of tiny instances by a general-purpose conic solver, and naive certificates.

    min_Z  ||Z||_*  +  lam g( P( X - D *_L Z ) )            P keeps the observed entries

with g = ||.||_21, ||.||_1, or "exact" (no noise term, ``P(D *_L Z) = P(X)`` instead). Its dual is

    max_Y  <X, Y>   s.t.  ||D^H *_L Y|| <= 1,  Y = P(Y),  g_dual(Y) <= lam

with g_dual = largest sample norm, largest absolute entry, or no such constraint. Layout and
transforms are those of ``naive``; X, D and Z are real, so L must be real or, like the DFT, have
its complex rows in conjugate pairs. Entries of X that are not observed are never read.
"""

import contextlib
import warnings

import cvxpy as cp
import numpy as np

import naive

DUAL_NORM = {"l21": lambda Y: naive.column_norms(Y).max(), "l1": naive.norm_inf}


def optimal_value(X, D, noise, L, lam=None, observed=None):
    """Optimal value and a minimiser: ``(value, Z)``, Z of shape ``p x n2 x n3``.

    D is an ``n1 x p x n3`` tensor or the string "identity" (then ``D *_L Z = Z``, p = n1).
    """
    X, observed = _zero_fill(X, observed)
    n2, n3 = X.shape[1:]
    C = _product_matrix(D, X.shape[0], L)
    Z = cp.Variable((C.shape[1], n2))
    Xu, Wu = _unfold(X), _unfold(observed)
    R = cp.multiply(Wu, Xu - C @ Z)
    value = _nuclear_norm(Z, L)
    problem = {
        "l21": lambda: cp.Problem(cp.Minimize(value + lam * cp.sum(cp.norm(R, 2, axis=0)))),
        "l1": lambda: cp.Problem(cp.Minimize(value + lam * cp.sum(cp.abs(R)))),
        "exact": lambda: cp.Problem(cp.Minimize(value), _exact_fit(C, Z, Xu, Wu)),
    }[noise]()
    return _solve(problem), _fold(Z.value, n3)


def optimal_dual(X, D, noise, L, lam=None, observed=None):
    """Optimal value and a maximiser of the dual: ``(value, Y)``, Y of shape ``n1 x n2 x n3``."""
    X, observed = _zero_fill(X, observed)
    n3 = X.shape[2]
    C = _product_matrix(D, X.shape[0], L)
    Y = cp.Variable((C.shape[0], X.shape[1]))
    # C^T is the adjoint of Z -> D *_L Z for the plain inner product, that is, D^H *_L Y.
    constraints = [cp.sigma_max(B) <= 1 for B, _ in _slices(C.T @ Y, L)]
    constraints += _zero_where(Y, ~_unfold(observed))
    constraints += {
        "l21": lambda: [cp.norm(Y, 2, axis=0) <= lam],
        "l1": lambda: [cp.abs(Y) <= lam],
        "exact": lambda: [],
    }[noise]()
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(_unfold(X), Y))), constraints)
    return _solve(problem), _fold(Y.value, n3)


def residual(X, D, Z, L, observed=None):
    """``P(X - D *_L Z)``."""
    X, observed = _zero_fill(X, observed)
    DZ = Z if isinstance(D, str) else naive.tprod(D, Z, L)
    return np.where(observed, X - DZ, 0.0)


def objective(X, D, Z, noise, L, lam=None, observed=None):
    """Primal value of Z; for "exact" just ``||Z||_*`` (look at ``residual`` for feasibility)."""
    value = naive.nuclear_norm(Z, L)
    if noise == "exact":
        return value
    norm = {"l21": naive.norm_l21, "l1": naive.norm_l1}[noise]
    return value + lam * norm(residual(X, D, Z, L, observed))


def dual_value_and_violation(X, D, Y, noise, L, lam=None, observed=None):
    """Dual value ``<P(X), Y>`` and the largest constraint violation of Y (0 when feasible).

    The violation is the maximum of ``||D^H *_L Y|| - 1``, ``g_dual(Y) / lam - 1`` and the largest
    ``|Y|`` outside the mask: a Y supported on the mask is feasible after division by 1 + violation.
    """
    X, observed = _zero_fill(X, observed)
    DY = Y if isinstance(D, str) else naive.tprod(naive.transpose(D, L), Y, L)
    violations = [0.0, naive.spectral_norm(DY, L) - 1, naive.norm_inf(np.where(observed, 0.0, Y))]
    if noise != "exact":
        violations.append(DUAL_NORM[noise](Y) / lam - 1)
    return naive.inner(X, Y), max(violations)


# ---- tensors as matrices: frontal slices on top of each other, one column a sample --------------


def _unfold(A):
    return np.concatenate([A[:, :, k] for k in range(A.shape[2])], axis=0)


def _fold(M, n3):
    return np.stack(np.split(M, n3, axis=0), axis=2)


def _zero_fill(X, observed):
    observed = np.ones(X.shape, bool) if observed is None else np.asarray(observed, bool)
    return np.where(observed, X, 0.0), observed


def _product_matrix(D, n1, L):
    """Matrix C with ``unfold(D *_L Z) = C unfold(Z)``.

    Block (l, m) is ``sum_k (L^-1)[l, k] L[k, m] D_k``: the block circulant matrix for the DFT.
    """
    n3 = len(L)
    if isinstance(D, str):
        return np.eye(n1 * n3)
    hat, inverse = naive.forward(D, L), L.conj().T / naive.scale(L)
    C = np.block([[hat @ (inverse[row] * L[:, col]) for col in range(n3)] for row in range(n3)])
    np.testing.assert_allclose(C.imag, 0, atol=1e-12 * np.abs(C).max())
    return C.real


def _slices(A, L):
    """Real matrices with the singular values of the slices of ``L(A)``, each with its weight.

    A complex slice becomes ``[[Re, -Im], [Im, Re]]``, which has its singular values twice: weight
    1/2. Only one slice of a conjugate pair is kept: weight 2.
    """
    n = A.shape[0] // len(L)
    for k, row in enumerate(L):
        real, imag = (np.kron(part, np.eye(n)) @ A for part in (row.real, row.imag))
        twins = [m for m in range(len(L)) if m != k and np.allclose(L[m], row.conj())]
        if np.allclose(row.imag, 0):
            yield real, 1.0
        elif not twins:
            yield cp.bmat([[real, -imag], [imag, real]]), 0.5
        elif k < twins[0]:
            yield cp.bmat([[real, -imag], [imag, real]]), 1.0


def _nuclear_norm(A, L):
    return sum(weight * cp.normNuc(B) for B, weight in _slices(A, L)) / naive.scale(L)


def _exact_fit(C, Z, X, observed):
    """``(C Z)[i, j] = X[i, j]`` where observed, without redundant equations (solvers mind them)."""
    constraints = []
    for j in range(X.shape[1]):
        rows, x = C[observed[:, j]], X[observed[:, j], j]
        if not x.size:
            continue
        u, s, vh = np.linalg.svd(rows, full_matrices=False)
        keep = s > 1e-10 * s[0]
        z = u[:, keep].T @ x / s[keep]
        np.testing.assert_allclose(
            rows @ (vh[keep].T @ z), x, atol=1e-9 * np.abs(X).max(), err_msg="no exact fit exists"
        )
        constraints.append(vh[keep] @ Z[:, j] == z)
    return constraints


def _zero_where(A, mask):
    """``A = 0`` on the entries of the mask."""
    indices = np.flatnonzero(mask.ravel(order="F"))
    return [cp.vec(A, order="F")[indices] == 0] if len(indices) else []


def _solve(problem):
    """Solve to nine or ten digits, eight at worst; a solution of unknown accuracy is refused.

    Interior points are quick but often stall at the ninth digit (doubled singular values);
    splitting then gets there in most cases.
    """

    def clarabel(tol):
        return cp.CLARABEL, {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}

    scs = cp.SCS, {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iters": 10_000}
    for solver, settings in (clarabel(1e-10), clarabel(1e-9), scs, clarabel(1e-8)):
        with warnings.catch_warnings(), contextlib.suppress(cp.error.SolverError):
            warnings.simplefilter("ignore")  # the status says it too
            problem.solve(solver=solver, **settings)
        if problem.status == cp.OPTIMAL:
            return float(problem.value)
    raise RuntimeError(f"no accurate solution: {problem.status}")
