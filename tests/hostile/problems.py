"""Random programs of the family, and what must hold for every solution."""

import warnings
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import naive
import tubal
from tubal import Lambda, StopReason
from tubal.input import to_paper

ROWS = (
    ("data", "l21"), ("data", "l1"), ("identity", "l21"), ("identity", "l1"),
    ("identity", "exact"), ("array", "l21"), ("array", "l1"),
)  # fmt: skip
"""Dictionaries and noises of the table of methods."""
TRANSFORMS = ("dft", "dct", "rom", "data", "none", "matrix")
STRUCTURES = (
    "low rank", "random", "rank one", "duplicates", "constant", "zeros", "one entry", "outlier",
    "signs",
)  # fmt: skip
LAYOUTS = ("C", "F", "strided", "reversed", "read-only", "list")
EXPECTED = (
    "scale X", "scale dictionary", "dictionary is zero", "noise='exact'", "gives lam",
    "below what float32", "infinite value",
)  # fmt: skip
"""Words of refusals that a random problem may meet."""


@dataclass(frozen=True)
class Problem:
    """What determines a program: all of it small and printed when something fails."""

    shape: tuple[int, int, int]
    structure: str
    dictionary: str
    noise: str
    transform: str
    missing: float
    dtype: str
    layout: str
    exponent: int
    level: float
    tol: float
    seed: int

    def data(self) -> np.ndarray | list:
        """Return samples first, with NaN for holes."""
        rng = np.random.default_rng(self.seed)
        X = _structured(self.structure, self.shape, rng)
        X = X * 10.0**self.exponent if self.dtype[0] == "f" else np.round(20 * X)
        if self.missing:
            holes = rng.random(X.shape) < self.missing
            holes[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
            X = np.where(holes, np.nan, X)
        dtype = "f8" if self.missing and self.dtype[0] != "f" else self.dtype
        return _laid_out(X.astype(dtype), self.layout)

    def options(self) -> dict:
        """Return the arguments of `solve` besides lam."""
        rng = np.random.default_rng(self.seed + 1)
        _, n1, n3 = self.shape
        D = self.dictionary
        if D == "array":
            D = rng.normal(size=(1 + self.seed % 4, n1, n3)) * 10.0**self.exponent
        L = naive.random_orthogonal(n3, self.seed) if self.transform == "matrix" else self.transform
        return {"dictionary": D, "noise": self.noise, "transform": L, "tol": self.tol}


def _structured(kind: str, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    n, n1, n3 = shape
    X = rng.normal(size=shape)
    if kind == "low rank":
        X = np.einsum("ir,rjk->ijk", rng.normal(size=(n, 2)), rng.normal(size=(2, n1, n3)))
        X[0] += rng.normal(size=(n1, n3))
    elif kind == "rank one":
        X = np.einsum("i,j,k->ijk", *(rng.normal(size=k) for k in shape))
    elif kind == "duplicates":
        X = X[rng.integers(min(n, 2), size=n)]
    elif kind == "constant":
        X = np.full(shape, rng.normal())
    elif kind == "zeros":
        X = np.where(rng.random((n, 1, 1)) < 0.5, 0, X)
    elif kind == "one entry":
        X = np.zeros(shape)
        X[0, 0, 0] = 1
    elif kind == "outlier":
        X[0] *= 1e6
    elif kind == "signs":
        X = np.sign(X)
    return X


def _laid_out(X: np.ndarray, layout: str) -> np.ndarray | list:
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(X, 2, axis=-1)[..., ::2]
    if layout == "reversed":
        return np.ascontiguousarray(X[::-1])[::-1]
    if layout == "list":
        return X.tolist()
    if layout == "read-only":
        X.flags.writeable = False
    return X


def _of_row(row: tuple[str, str], **fields) -> Problem:
    return Problem(dictionary=row[0], noise=row[1], **fields)


problems = st.builds(
    _of_row,
    row=st.sampled_from(ROWS),
    shape=st.tuples(st.integers(2, 7), st.integers(1, 5), st.integers(1, 5)),
    structure=st.sampled_from(STRUCTURES),
    transform=st.sampled_from(TRANSFORMS),
    missing=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    dtype=st.sampled_from(["f8", "f8", "f4", "i8", "u1"]),
    layout=st.sampled_from(LAYOUTS),
    exponent=st.one_of(
        st.just(0), st.integers(-9, 9), st.integers(-38, 38), st.integers(-150, 150)
    ),
    level=st.floats(0.02, 0.98),
    tol=st.sampled_from([1e-2, 1e-4, 1e-6]),
    seed=st.integers(0, 2**31),
)


def check_solution(problem: Problem) -> str:
    """Solve a problem and check all that can be checked by other means.

    Returns "solved", "stopped" (at the limit of iterations) or "refused"; raises AssertionError.
    """
    with np.errstate(over="ignore"):
        try:
            X = problem.data()
        except (OverflowError, FloatingPointError):
            return "refused"
    options, lam = problem.options(), Lambda.relative(problem.level)
    before = np.array(X, copy=True)
    sol = _solved(X, lam, options, n_jobs=1)
    if isinstance(sol, str):
        assert any(words in sol for words in EXPECTED), sol
        return "refused"
    np.testing.assert_array_equal(np.array(X), before, err_msg="the input was modified")
    converged = sol.stop_reason.converged
    assert not converged or sol.certificate.gap <= problem.tol or sol.stop_reason.name == "TRIVIAL"
    if sol.stop_reason is not StopReason.TRIVIAL:
        _check_certificate(problem, X, options, sol)
    for n_jobs in (1, 2):  # repetition, and threads
        again = _solved(X, lam, options, n_jobs=n_jobs)
        for name in ("E", "L"):
            np.testing.assert_array_equal(getattr(again, name), getattr(sol, name), err_msg=name)
        assert again.certificate == sol.certificate
    if sol.stop_reason is not StopReason.TRIVIAL:
        _check_permuted(problem, X, options, sol)
    return "solved" if converged else "stopped"


def _solved(X, lam, options, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return tubal.solve(X, lam=lam, max_iter=600, **options, **more)
        except ValueError as error:
            return str(error)


def _rounding(problem: Problem) -> float:
    return 3e-3 if problem.dtype == "f4" and problem.layout != "list" else 1e-6


def _in_paper_layout(X, options, sol):
    X = np.asarray(X, dtype=float)
    observed = ~np.isnan(X)
    A = np.where(observed, X, 0)
    D = options["dictionary"]
    if not isinstance(D, str):
        D = to_paper(D)
    elif D == "data":
        D = to_paper(A)
    return to_paper(A), to_paper(observed), D, np.asarray(sol.Z.transform.matrix)


def objective(A, observed, D, L, noise, lam, Z) -> tuple[float, float]:
    """Return the primal value of Z in NumPy, and for an exact fit the largest misfit."""
    rest = np.where(observed, A - (Z if isinstance(D, str) else naive.tprod(D, Z, L)), 0)
    value = naive.nuclear_norm(Z, L)
    if noise == "exact":
        return value, float(np.abs(rest).max())
    norm = {"l21": naive.norm_l21, "l1": naive.norm_l1}[noise]
    return value + lam * norm(rest), 0.0


def dual_value(A, observed, D, L, noise, lam, Z) -> float:
    """Return the value of a feasible dual point that is made from Z alone."""
    DZ = Z if isinstance(D, str) else naive.tprod(D, Z, L)
    rest = np.where(observed, A - DZ, 0)
    if noise == "l21":
        sizes = naive.column_norms(rest)
        Y = lam * rest / np.where(sizes > 0, sizes, 1)[None, :, None]
    elif noise == "l1":
        Y = lam * np.sign(rest)
    else:
        Y = A
    DY = Y if isinstance(D, str) else naive.tprod(naive.transpose(D, L), Y, L)
    norm = naive.spectral_norm(DY, L)
    return naive.inner(A, Y) / max(1.0, norm)


def _check_certificate(problem: Problem, X, options, sol) -> None:
    """Compare with values of our own: at Z, at other feasible points, and a dual one from Z."""
    A, observed, D, L = _in_paper_layout(X, options, sol)
    Z = np.asarray(sol.Z.to_array(), dtype=float)
    for array in (sol.E, sol.L, Z):
        assert np.isfinite(array).all()
    slack, size = _rounding(problem), np.abs(A).max()
    value, misfit = objective(A, observed, D, L, problem.noise, sol.lam, Z)
    claim = sol.certificate
    if problem.noise == "exact":
        assert misfit <= max(10 * problem.tol, slack) * size
    else:
        eps = np.finfo(np.asarray(sol.L).dtype).eps  # of the misfit, which lam multiplies
        rounding = 100 * eps * sol.lam * naive.norm_l1(A) * max(1.0, np.abs(Z).max())
        assert abs(value - claim.primal) <= slack * abs(claim.primal) + rounding, (value, claim)
    assert claim.dual <= claim.primal * (1 + slack)
    rng = np.random.default_rng(problem.seed)
    others = [0 * Z, 0.9 * Z, Z + 0.01 * np.abs(Z).max() * rng.normal(size=Z.shape)]
    if problem.noise != "exact":
        for other in others:  # no feasible point is below a true dual value
            found, _ = objective(A, observed, D, L, problem.noise, sol.lam, other)
            assert claim.dual <= found * (1 + slack), (claim, found)
    own = dual_value(A, observed, D, L, problem.noise, sol.lam, Z)
    assert own <= value * (1 + slack) + slack * abs(claim.primal), (own, value)


def _check_permuted(problem: Problem, X, options, sol) -> None:
    """Samples in another order: the intervals of both certificates have a point in common."""
    X = np.asarray(X)
    order = np.random.default_rng(problem.seed).permutation(len(X))
    fixed = {**options, "transform": sol.Z.transform}
    if problem.noise == "exact" and not np.isnan(X).any():
        return
    other = _solved(X[order], sol.lam, fixed, n_jobs=1)
    assert not isinstance(other, str), other
    slack = _rounding(problem)
    assert other.certificate.dual <= sol.certificate.primal * (1 + slack)
    assert sol.certificate.dual <= other.certificate.primal * (1 + slack)
