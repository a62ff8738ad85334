"""`tubal.solve`: the family of methods through one function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tubal import noise as noises
from tubal import transforms
from tubal._threads import effective_jobs
from tubal.input import Array, Samples, device_of, namespace, read, samples_first
from tubal.problem import Lambda, Problem, positive, resolve_lam
from tubal.reduction import reduce
from tubal.solvers.blocks import Penalties
from tubal.solvers.certified import Certified
from tubal.solvers.driver import Outcome, block_spans, made, problem_kind
from tubal.solvers.engines import Dask, Engine, Inline, Threads, engine_in_use
from tubal.solvers.published import Published
from tubal.solvers.solution import Certificate, Check, Factored, Solution, State, StopReason
from tubal.solvers.watching import Snapshot, watching

SOLVERS: dict[str, type[Certified] | type[Published]] = {
    "certified": Certified,
    "published": Published,
}


def solve(
    X: Any,
    *,
    dictionary: Any = "data",
    noise: Any = "l21",
    transform: Any = "dft",
    lam: Any,
    solver: Any = "certified",
    tol: float | None = None,
    max_iter: int | None = None,
    warm_start: Solution | None = None,
    callback: Callable[[Check], Any] | None = None,
    n_jobs: int | None = None,
    engine: Engine | None = None,
    dtype: Any = None,
) -> Solution:
    """Solve `min_Z ||Z||_* + lam g(X - D * Z)`, on the observed entries of X.

    Parameters
    ----------
    X : array-like of shape (n_samples, n1), (n_samples, n1, n3) or with more trailing axes
        Samples first; NaN marks a missing entry.
    dictionary : {"data", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by: the data itself (zero in missing entries), nothing
        (the low-rank part itself is sought), or given samples.
    noise : {"l21", "l1", "exact"} or Noise
        Whole samples, single entries, or none (completion, with the identity dictionary).
    transform : str, matrix or Transform
        "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`. The name "rom" alone
        stands for one fixed random matrix; `RandomOrthogonal(seed)` chooses another.
    lam : float or Lambda
        Weight of the noise: `Lambda.paper(alpha)`, `Lambda.relative(t)`,
        `Lambda.effective_rank(R)`. Noise "exact" has no use for it.
    solver : {"certified", "published"}, Certified or Published
    tol : float or None
        Certified: relative duality gap, default 1e-4. Published: largest residual, default 1e-8.
    max_iter : int or None
        Default 10000 (certified), 800 (published).
    warm_start : Solution or None
        Continue from the solution of a problem of the same shape, such as with another `lam`.
    callback : callable or None
        Called with a `Check` at every certificate; returning True stops the run.
    n_jobs : int or None
        Threads; None or -1: as many as BLAS may have. The result does not depend on it.
    engine : Engine or None
        Who runs the steps; None: threads for NumPy arrays, else the array's own library.
    dtype : {"float32", "float64"} or None
        Precision; None keeps that of X (float64 for integers).

    Returns
    -------
    Solution

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the iteration limit ends the run; the certificate tells the gap reached.

    Examples
    --------
    >>> import numpy as np
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(10, 4, 2, 1, 20, outliers=0.2, random_state=0)
    >>> sol = solve(data.X, lam=Lambda.relative(0.5))
    >>> flagged = np.linalg.norm(sol.E, axis=(1, 2)) > 0
    >>> bool(np.array_equal(flagged, data.outliers)), sol.certificate.gap <= 1e-4
    (True, True)
    """
    prepared = prepare(X, dictionary, noise, transform, dtype)
    runner = _Runner(prepared, solver, tol, max_iter, callback, n_jobs, engine)
    return runner.run(runner.lam(lam), _check_warm(warm_start, prepared))


def path(
    X: Any,
    *,
    lams: Any = 10,
    dictionary: Any = "data",
    noise: Any = "l21",
    transform: Any = "dft",
    solver: Any = "certified",
    tol: float | None = None,
    max_iter: int | None = None,
    callback: Callable[[Check], Any] | None = None,
    n_jobs: int | None = None,
    engine: Engine | None = None,
    dtype: Any = None,
) -> list[Solution]:
    """Solve along a sequence of `lam`, each started at the solution before it.

    Parameters
    ----------
    lams : int or sequence of float or Lambda
        A number asks for so many values, evenly spaced between `Lambda.relative(0.1)` and
        `Lambda.relative(0.9)` in the logarithm, rising.

    The other parameters are those of `solve`.

    Returns
    -------
    list of Solution
        In the order of `lams`. The t-SVD of the data is computed once.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(10, 4, 2, 1, 20, outliers=0.2, random_state=0)
    >>> sols = path(data.X, lams=3)
    >>> [bool(a.lam < b.lam) for a, b in zip(sols, sols[1:])]
    [True, True]
    """
    prepared = prepare(X, dictionary, noise, transform, dtype)
    runner = _Runner(prepared, solver, tol, max_iter, callback, n_jobs, engine)
    if isinstance(lams, (int, np.integer)) and not isinstance(lams, bool):
        if lams < 1:
            msg = f"lams must be a positive number of values or a sequence, got {lams!r}"
            raise ValueError(msg)
        lams = [Lambda.relative(t) for t in np.linspace(0.1, 0.9, int(lams))]
    if not isinstance(lams, Iterable) or isinstance(lams, str):
        msg = f"lams must be a positive number of values or a sequence, got {lams!r}"
        raise ValueError(msg)
    solutions: list[Solution] = []
    for lam in [runner.lam(value) for value in lams]:
        solutions.append(runner.run(lam, solutions[-1].state if solutions else None))
    return solutions


@dataclass(frozen=True)
class Prepared:
    """A problem in coordinates, and how to give results the user's layout.

    `swapped` problems have samples and rows exchanged: entry-wise noise and the nuclear norm do
    not tell them apart, and the Gram matrices are as small as the shorter side.
    """

    samples: Samples
    problem: Problem
    swapped: bool

    @property
    def is_zero(self) -> bool:
        """Whether the data is zero wherever it is observed."""
        return not bool(namespace(self.samples.values).any(self.samples.values != 0))


def prepare(X: Any, dictionary: Any, noise: Any, transform: Any, dtype: Any) -> Prepared:
    """Check all that describes the problem, and compute the t-SVD."""
    samples = read(X, dtype=dtype)
    noise = noises.resolve(noise)
    if noise.name == "exact" and samples.observed is None:
        msg = (
            "noise='exact' fits the observed entries and fills the missing ones, but X has no "
            "missing entry (NaN): use noise='l21' or 'l1'"
        )
        raise ValueError(msg)
    check_scale(samples)
    L = transforms.resolve(
        transform,
        samples.sizes,
        data=samples.values,
        observed=samples.observed,
        random_state=0,  # the name "rom" alone always means the same matrix
    )
    if not L.keeps_real:
        msg = f"transform {L!r} is complex: real data would get complex coefficients"
        raise ValueError(msg)
    D = _read_dictionary(dictionary, samples)
    if noise.name == "exact" and D != "identity":
        msg = "noise='exact' is completion and needs dictionary='identity'"
        raise ValueError(msg)
    swapped = D == "identity" and noise.name in ("l1", "exact") and samples.n1 > samples.n_samples
    data = _swap(samples) if swapped else samples
    return Prepared(samples, Problem(data, reduce(data, L, D), noise), swapped)


def check_options(
    *,
    lam: Any = None,
    solver: Any = "certified",
    tol: Any = None,
    max_iter: Any = None,
    callback: Any = None,
    n_jobs: Any = None,
) -> None:
    """Check what `solve` can check of its arguments without data."""
    _resolve_solver(solver)
    if lam is not None and not isinstance(lam, Lambda):
        positive("lam", lam)
    if tol is not None:
        positive("tol", tol)
    if max_iter is not None:
        _check_max_iter(max_iter)
    if callback is not None and not callable(callback):
        msg = f"callback must be callable or None, got {callback!r}"
        raise ValueError(msg)
    effective_jobs(n_jobs)


class _Runner:
    """One way of solving, applied to one problem for any number of `lam`."""

    def __init__(
        self,
        prepared: Prepared,
        solver: Any,
        tol: float | None,
        max_iter: int | None,
        callback: Any,
        n_jobs: int | None,
        engine: Engine | None,
    ) -> None:
        self.prepared, self.callback = prepared, callback
        self.solver = _resolve_solver(solver)
        self.tol = _check_tol(tol, self.solver.default_tol, prepared.problem)
        self.max_iter = _check_max_iter(
            self.solver.default_max_iter if max_iter is None else max_iter
        )
        check_options(callback=callback, n_jobs=n_jobs)
        self.engine = _resolve_engine(engine, n_jobs, prepared.problem)

    def lam(self, lam: Any) -> float:
        """Return the number that `lam` stands for."""
        problem = self.prepared.problem
        if problem.noise.name == "exact" or self.prepared.is_zero:
            return 1.0 if isinstance(lam, Lambda) or lam is None else resolve_lam(lam, problem)
        return resolve_lam(lam, problem)

    def run(self, lam: float, state: State | None) -> Solution:
        """Solve for one number."""
        problem = self.prepared.problem
        if self.prepared.is_zero:
            return _zero_solution(self.prepared, lam)
        watcher = watching()
        snapshot = watcher.begin(self.solver.name, self.tol, self.max_iter)
        n_iter = 0
        if snapshot is not None:
            state = _continued(snapshot, problem)
            n_iter = min(snapshot.n_iter, self.max_iter - 1)
        try:
            with self.engine as engine:
                outcome = self.solver.run(
                    problem, lam, engine,
                    tol=self.tol, max_iter=self.max_iter,
                    state=state, n_iter=n_iter, callback=self.callback,
                )  # fmt: skip
                solution = _solution(self.prepared, lam, outcome, engine)
        finally:
            watcher.end()
        if outcome.reason is StopReason.MAX_ITER:
            _warn(outcome, self.tol, self.solver)
        return solution


def _solution(prepared: Prepared, lam: float, outcome: Outcome, engine: Engine) -> Solution:
    problem, red = prepared.problem, prepared.problem.reduction
    whole = red.kind == "identity" and not problem.in_coordinates
    Z = Factored(None if whole else red, outcome.core, problem.transform)
    parts = block_spans(problem, engine)
    L = made(problem, parts, lambda j: _explained(problem, outcome.core[..., j]), engine)
    E = outcome.noise
    if red.offset is not None and problem.in_coordinates:
        E = E + _outside(problem)
    if prepared.swapped:
        Z, L, E = Z.transposed(), _swap_axes(L), _swap_axes(E)
    restore = prepared.samples.restore
    return Solution(
        E=restore(E),
        L=restore(L),
        Z=Z,
        certificate=outcome.certificate,
        n_iter=outcome.n_iter,
        history=outcome.history,
        stop_reason=outcome.reason,
        lam=lam,
        state=outcome.state,
    )


def _explained(problem: Problem, core: Array) -> Array:
    """Return `D * Z` for some samples, tubes first."""
    red = problem.reduction
    if red.kind != "identity":
        return red.lift(core * red.s[..., None])
    return red.lift(core) if problem.in_coordinates else problem.transform.inverse(core, axis=0)


def _outside(problem: Problem) -> Array:
    """Return the part of the data outside the range of the dictionary."""
    return problem.data.values - samples_first(problem.reduction.lift(problem.reduction.x))


def _swap_axes(A: Array) -> Array:
    return namespace(A).moveaxis(A, 0, 1)


def _swap(samples: Samples) -> Samples:
    observed = None if samples.observed is None else _swap_axes(samples.observed)
    return replace(samples, values=_swap_axes(samples.values), observed=observed)


def _zero_solution(prepared: Prepared, lam: float) -> Solution:
    values = prepared.samples.values
    xp = namespace(values)
    zero = prepared.samples.restore(xp.zeros_like(values))
    red = prepared.problem.reduction
    Z = Factored(red, 0 * red.x, prepared.problem.transform)
    Z = Z.transposed() if prepared.swapped else Z
    return Solution(
        zero, xp.asarray(zero, copy=True), Z, Certificate(0.0, 0.0), 0, (), StopReason.TRIVIAL, lam
    )


def check_scale(samples: Samples, *, small: bool = False, name: str = "X") -> None:
    """Refuse data whose powers leave the range of its type.

    Data may be as small as it likes with `small`: new samples do, beside those of a fit.
    """
    xp = namespace(samples.values)
    largest = float(xp.max(xp.abs(samples.values)))
    limit = 1e8 if samples.values.dtype == xp.float32 else 1e40
    too_small = not small and 0 < largest <= 1 / limit
    if too_small or largest >= limit:
        msg = (
            f"{name} has entries of size {largest:.1e}; {samples.values.dtype} needs them between "
            f"{1 / limit:g} and {limit:g}: scale {name}, for example {name} / {largest:.1e}"
        )
        raise ValueError(msg)


def _read_dictionary(dictionary: Any, samples: Samples) -> Samples | str:
    if isinstance(dictionary, str):
        if dictionary not in ("data", "identity"):
            msg = f"dictionary must be 'data', 'identity' or an array, got {dictionary!r}"
            raise ValueError(msg)
        return dictionary
    if dictionary is None or np.isscalar(dictionary):
        msg = f"dictionary must be 'data', 'identity' or an array, got {dictionary!r}"
        raise ValueError(msg)
    D = read(dictionary, name="dictionary", allow_missing=False, min_samples=1)
    if type(D.values) is not type(samples.values):
        here, there = type(D.values).__name__, type(samples.values).__name__
        msg = f"dictionary is an array of another library ({here}) than X ({there})"
        raise ValueError(msg)
    if D.values.shape[1:] != samples.values.shape[1:]:
        msg = (
            f"dictionary holds samples of shape {tuple(D.values.shape[1:])}, X of shape "
            f"{tuple(samples.values.shape[1:])}; they must be the same"
        )
        raise ValueError(msg)
    xp = namespace(samples.values)
    with np.errstate(over="ignore"):  # an infinite entry is too large by the check below
        values = xp.astype(D.values, samples.values.dtype, copy=False)
    if not bool(xp.any(values != 0)):
        msg = "dictionary is zero: it can represent nothing"
        raise ValueError(msg)
    D = replace(D, values=values)
    check_scale(D, name="dictionary")
    return D


def _resolve_solver(solver: Any) -> Certified | Published:
    if isinstance(solver, (Certified, Published)):
        return solver
    if not isinstance(solver, str) or solver not in SOLVERS:
        msg = f"solver must be one of {sorted(SOLVERS)}, Certified or Published, got {solver!r}"
        raise ValueError(msg)
    return SOLVERS[solver]()


def _resolve_engine(engine: Any, n_jobs: int | None, problem: Problem) -> Engine:
    numpy = isinstance(problem.data.values, np.ndarray)
    engine = engine_in_use() if engine is None else engine
    if engine is None:
        return Threads(n_jobs) if numpy else Inline()
    if not isinstance(engine, Engine):
        msg = f"engine must be an Engine or None, got {engine!r}"
        raise ValueError(msg)
    if isinstance(engine, Dask) and not numpy:
        msg = f"engine Dask takes NumPy arrays, got X of type {type(problem.data.values)}"
        raise ValueError(msg)
    return engine


def _check_tol(tol: Any, default: float, problem: Problem) -> float:
    xp = namespace(problem.data.values)
    dtype = problem.data.values.dtype
    reachable = 1e-5 if dtype == xp.float32 else 1e-11
    if tol is None:
        return max(default, reachable)
    number = positive("tol", tol)
    if number < reachable:
        remedy = "pass dtype='float64'" if dtype == xp.float32 else f"use tol >= {reachable:g}"
        msg = f"tol = {tol!r} is below what {dtype} can reach ({reachable:g}): {remedy}"
        raise ValueError(msg)
    return number


def _check_max_iter(max_iter: Any) -> int:
    if isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 1:
        msg = f"max_iter must be a positive integer, got {max_iter!r}"
        raise ValueError(msg)
    return int(max_iter)


def _check_warm(warm_start: Any, prepared: Prepared) -> State | None:
    if warm_start is None:
        return None
    if not isinstance(warm_start, Solution):
        msg = f"warm_start must be a Solution or None, got {warm_start!r}"
        raise ValueError(msg)
    state = warm_start.state
    if state is None or not _fits(state, prepared.problem):
        msg = "warm_start is a solution of another kind of problem or shape; leave it out"
        raise ValueError(msg)
    return state


def _continued(snapshot: Snapshot, problem: Problem) -> State:
    """Return the state of a snapshot, refusing that of another problem."""
    x = problem.reduction.x
    arrays = tuple(namespace(x).asarray(A, device=device_of(x)) for A in snapshot.arrays)
    penalties = Penalties(snapshot.b1, snapshot.b2, 1.0)
    state = State(arrays, penalties, snapshot.solver, problem_kind(problem))
    if not _fits(state, problem):
        msg = "the snapshot is of another problem: start anew"
        raise ValueError(msg)
    return state


def _fits(state: State, problem: Problem) -> bool:
    kind = problem_kind(problem)
    if state.problem[:2] != kind[:2] or not transforms.same_transform(state.problem[2], kind[2]):
        return False
    K, r, n2 = problem.reduction.shape
    coordinates = (K, r, n2)
    tensor = (*(problem.transform.sizes or ()), problem.data.n1, n2)
    field = coordinates if problem.in_coordinates else tensor
    shapes = [field] if problem.reduction.kind == "identity" else [coordinates, field]
    return [tuple(A.shape) for A in state.arrays] == shapes


def _warn(outcome: Outcome, tol: float, solver: Any) -> None:
    from sklearn.exceptions import ConvergenceWarning

    if isinstance(solver, Published):
        reached = f"the residuals are {max(outcome.history[-1].residuals):.1e}"
    else:
        reached = f"the duality gap is {outcome.certificate.gap:.1e}"
    msg = (
        f"stopped after {outcome.n_iter} iterations: {reached}, above tol = {tol:g}. Increase "
        "max_iter, accept a larger tol, or continue with warm_start=solution"
    )
    warnings.warn(msg, ConvergenceWarning, stacklevel=4)
