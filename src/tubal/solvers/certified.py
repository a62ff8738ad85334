"""Certified: rebalanced penalties, stopped by the duality gap.

The iteration is that of `tubal.solvers.blocks`. What is particular here:

directions  where few directions of the data matter, the program is first solved in these alone
            (`tubal.solvers.leading`).
precision   large problems iterate in single precision until the gap is 1e-4.
start       at the closed-form solution for quadratic noise of level theta, with `b1 = 1` and
            `b2 = 1/theta`. theta is the larger of two estimates, from lam and from the spectrum.
penalties   change only at a few iterations, and only when primal and dual residuals are badly out
            of balance.
Anderson    extrapolation of every tenth iterate, with a safeguard, where the noise step lives in
            the original domain; whole-sample noise on complete data does not need it.
stop        the relative duality gap of a feasible primal and the best dual point found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np

from tubal.input import Array
from tubal.problem import Problem
from tubal.solvers.blocks import Penalties, copy
from tubal.solvers.driver import Driver, Outcome
from tubal.solvers.engines import Engine
from tubal.solvers.leading import Leading
from tubal.solvers.parts import Part, left_over, load_block, start_block
from tubal.solvers.solution import Certificate, Check, State, StopReason
from tubal.solvers.watching import Snapshot, watching

LEADING_TOL = 5e-5
"""The leading directions are solved no further: the others matter by about as much."""
SINGLE_TOL = 1e-4
FIRST_ITERATIONS = 150
"""Neither goes on for longer: single precision may never reach its goal."""
SINGLE_SIZE = 50_000
SOON = 10
"""The gap after so few iterations is foreseen well enough."""
REBALANCE = frozenset(
    {*range(20, 101, 10), 130, 160, 200, 250, 300, 400, 500, 700, *range(1000, 9000, 1000)}
)


@dataclass(frozen=True)
class Certified:
    """The default solver: runs until the duality gap proves the answer.

    Parameters
    ----------
    relax : float in (0, 2)
        Over-relaxation.
    first_check : int
        Iteration of the first certificate; later ones are placed where the gap is expected to
        reach `tol`.
    memory : int
        Number of iterates of the Anderson extrapolation; 0 switches it off.
    single_first : bool
        Whether large problems in double precision are first solved in single precision, to a gap
        of 1e-4. The certificate of the solution is always computed in the precision of the data.
    leading_first : bool
        Whether problems in which few directions matter are first solved in these alone, see
        `tubal.solvers.leading`. The certificate of the solution is always that of the whole
        problem.
    """

    relax: float = 1.7
    first_check: int = 10
    memory: int = 5
    single_first: bool = True
    leading_first: bool = True
    name = "certified"
    default_tol = 1e-4
    default_max_iter = 10_000

    def run(
        self,
        problem: Problem,
        lam: float,
        engine: Engine,
        *,
        tol: float,
        max_iter: int,
        state: State | None = None,
        n_iter: int = 0,
        callback: Callable[[Check], Any] | None = None,
    ) -> Outcome:
        """Solve the problem for one `lam`.

        With `n_iter` the state is one that an interrupted run left after so many iterations.
        """
        run = Run(self, lam, engine, max_iter, callback, n_iter)
        penalties, theta, level = self._start(problem, lam)
        single = self.single_first and single_is_worth_it(problem)
        leading = Leading.of(problem, level) if self.leading_first else None
        if state is not None:
            state = self._adopt(state, penalties)
            interrupted = n_iter > 0
            single = single and interrupted and is_single(state)
            if leading is not None and not (interrupted and leading.holds(state.arrays)):
                leading = None
        if leading is not None:
            run.leading = leading
            first = in_single(leading.problem) if single else leading.problem
            run.enter(first, state and leading.cut(state), penalties, theta)
            enough = max(tol / 2, SINGLE_TOL if single else LEADING_TOL)
            run.iterate(enough, min(max_iter, FIRST_ITERATIONS))
            state = run.suspend(tol, max_iter)
            single = False
        if single:
            run.enter(in_single(problem), state, penalties, theta)
            run.iterate(
                max(tol, SINGLE_TOL), min(max_iter, FIRST_ITERATIONS), trust=tol >= SINGLE_TOL
            )
            state = run.suspend(tol, max_iter)
        run.enter(problem, state, penalties, theta)
        run.iterate(tol, max_iter)
        return run.finish()

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 < self.relax < 2:
            msg = f"relax must lie between 0 and 2, got {self.relax!r}"
            raise ValueError(msg)
        for name, smallest in (("first_check", 1), ("memory", 0)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < smallest:
                msg = f"{name} must be an integer of at least {smallest}, got {value!r}"
                raise ValueError(msg)

    def _adopt(self, state: State, penalties: Penalties) -> State:
        """Return the state with penalties of this solver: those of another one do not fit."""
        own = state.penalties if state.solver == "certified" else penalties
        return replace(state, penalties=replace(own, relax=self.relax))

    def _start(self, problem: Problem, lam: float) -> tuple[Penalties, float, float]:
        """Return penalties, the level theta to start at, and the one that lam alone suggests."""
        level = problem.theta_of_lam(lam)
        theta = max(level, problem.theta_of_rank(0.4 * problem.reduction.shape[1]))
        b1 = 1 / theta if problem.reduction.kind == "identity" else 1.0
        return Penalties(b1, 1 / theta, self.relax), theta, level


class Run:
    """The iteration as it goes on: place blocks, iterate, perhaps move, iterate again, finish."""

    def __init__(
        self,
        solver: Certified,
        lam: float,
        engine: Engine,
        max_iter: int,
        callback: Callable[[Check], Any] | None,
        n_iter: int = 0,
    ) -> None:
        self.solver, self.lam, self.engine, self.callback = solver, lam, engine, callback
        self.watcher = watching()
        self.history: list[Check] = []
        self.n_iter, self.next_check = n_iter, min(n_iter + solver.first_check, max_iter)
        self.residuals: tuple[float, ...] = ()
        self.reason = StopReason.MAX_ITER
        self.spectrum: Any = None
        self.leading: Leading | None = None
        self.sure = False  # whether the next certificate is expected to be good enough
        self.clock = time.perf_counter()

    def enter(
        self, problem: Problem, state: State | None, penalties: Penalties, theta: float
    ) -> None:
        """Begin a part of the run, from a state if there is one."""
        if state is None:
            self.begin(problem, penalties, theta)
        else:
            self.resume(problem, state)

    def begin(self, problem: Problem, penalties: Penalties, theta: float) -> None:
        """Start at the closed-form solution."""
        rest = left_over(problem, theta)
        self._place(problem, penalties, partial(start_block, penalties, theta, rest))

    def resume(self, problem: Problem, state: State) -> None:
        """Start where another run stopped."""
        penalties = state.penalties
        self._place(problem, penalties, partial(load_block, penalties), state.arrays)

    def _place(
        self,
        problem: Problem,
        penalties: Penalties,
        make: Callable[[Part], Any],
        state: tuple[Array, ...] = (),
    ) -> None:
        self.problem, self.penalties = problem, penalties
        self.driver = Driver(problem, self.lam, self.engine)
        self.anderson = Anderson(self.driver, 0 if problem.in_coordinates else self.solver.memory)
        self.best = Certificate(np.inf, -np.inf)
        self.G: Array = self.driver.place(make, state)

    def iterate(self, tol: float, max_iter: int, *, trust: bool = False) -> None:
        """Iterate until the gap is at most `tol`, the callback says so, or `max_iter` is reached.

        A run that the callback has stopped only takes a last certificate. With `trust` it also ends
        where the gap is expected to be reached soon after a certificate: the next part of the run
        takes one anyway.
        """
        stopped = self.reason is StopReason.CALLBACK
        self.reason = StopReason.CALLBACK if stopped else StopReason.MAX_ITER
        while True:
            self._decompose()
            if self.n_iter >= self.next_check:
                if trust and self.sure:
                    break
                self._certify(tol, stopped)
                if self.reason is not StopReason.MAX_ITER or self.n_iter >= max_iter:
                    break
                steps = steps_to_check(self.history, tol)
                self.sure = self.problem.in_coordinates and steps <= SOON
                self.next_check = min(max_iter, self.n_iter + steps)
            if self.n_iter in REBALANCE:
                self._rebalance()
            self.G = self.engine.total("step", self.spectrum.shrink)
            self.n_iter += 1
            self.G = self.anderson.after(self.n_iter, self.G)
            self.watcher.iteration(self.n_iter, self._snapshot)

    def _snapshot(self) -> Snapshot:
        arrays = self._states() if self.leading else tuple(copy(A) for A in self.driver.states())
        return Snapshot(arrays, self.penalties.b1, self.penalties.b2, "certified", self.n_iter)

    def _decompose(self) -> None:
        self.spectrum = self.driver.spectrum(self.G, 1 / self.penalties.b1)
        self.G = None  # certificates need the memory

    def _certify(self, tol: float, stopped: bool) -> None:
        """Take a certificate and decide whether to stop."""
        penalties, in_coordinates = self.penalties, self.problem.in_coordinates
        self.sure = False
        values = self.driver.certificate(self.spectrum)
        # The best primal point costs an array; where its value hardly ever rises again
        # (whole-sample noise on complete data), the current one is as good.
        if in_coordinates or values.primal < self.best.primal:
            self.best = Certificate(values.primal, self.best.dual)
            if not in_coordinates:
                self.engine.total("keep", self.spectrum.shrink)
        self.best = Certificate(self.best.primal, max(values.dual, self.best.dual))
        seconds = time.perf_counter() - self.clock
        pair = (penalties.b1, penalties.b2)
        primal, dual = self.best.primal, self.best.dual
        check = Check(self.n_iter, primal, dual, self.residuals, pair, seconds)
        self.history.append(check)
        self.watcher.check(check)
        asked = self.callback is not None and not stopped and bool(self.callback(check))
        if primal - dual <= tol * abs(
            primal
        ):  # also for values so small that `gap` is not relative
            self.reason = StopReason.GAP
        elif asked:
            self.reason = StopReason.CALLBACK

    def _rebalance(self) -> None:
        """Bring primal and dual residuals together where they are badly out of balance."""
        squares = np.maximum(self.engine.total("measure", self.spectrum.shrink), 1e-300)
        primal = np.sqrt(squares[:, 0] / squares[:, 1])
        dual = np.sqrt(squares[:, 2] / squares[:, 3])
        self.residuals = (*map(float, primal), *map(float, dual))
        band = (1 / 30, 3.0) if self.problem.in_coordinates else (1 / 60, 0.25)
        factors = [_balance_factor(q, *band) for q in primal / dual]
        if any(factor != 1 for factor in factors):
            b1, b2 = self.penalties.b1 * factors[0], self.penalties.b2 * factors[-1]
            self.penalties = Penalties(b1, b2, self.penalties.relax)
            self.anderson.reset()
            self.G = self.engine.total("set_penalties", self.penalties)
            self._decompose()

    def suspend(self, tol: float, max_iter: int) -> State:
        """Return the state, and let the blocks go; the run goes on with another `tol`."""
        self.spectrum = None
        state = State(self._states(), self.penalties, "certified", self.driver.kind)
        self.leading = None
        self.engine.place([])
        reached = _relative_gap(self.history[-1]) <= tol or self.reason is StopReason.CALLBACK
        later = 0 if reached or self.sure else steps_to_check(self.history, tol)
        self.next_check = min(max_iter, self.n_iter + later)
        return state

    def _states(self) -> tuple[Array, ...]:
        """Return the state in all directions."""
        arrays = self.driver.states()
        return arrays if self.leading is None else self.leading.lifted(arrays, self.lam)

    def finish(self) -> Outcome:
        """Gather the result."""
        F = self.spectrum.shrink if self.problem.in_coordinates else None
        self.spectrum = None
        return self.driver.finish(
            self.penalties, self.best, self.n_iter, self.history, self.reason, "certified", F
        )


def single_is_worth_it(problem: Problem) -> bool:
    """Whether to iterate in single precision first: large double arrays of an ordinary scale."""
    x = problem.reduction.x
    if not isinstance(x, np.ndarray) or x.real.dtype != np.float64 or x.size < SINGLE_SIZE:
        return False
    largest = [float(problem.reduction.s.max()), float(problem.reduction.values.max())]
    return all(1e-5 < value < 1e5 for value in largest)


def is_single(state: State) -> bool:
    """Whether a state comes from the part of a run in single precision."""
    return all(A.dtype in (np.float32, np.complex64) for A in state.arrays)


def in_single(problem: Problem) -> Problem:
    """Return the problem with single-precision arrays."""
    red, data = problem.reduction, problem.data
    if not problem.in_coordinates:
        data = replace(data, values=_single(data.values))
    red = replace(
        red,
        U=_single(red.U),
        s=_single(red.s),
        x=_single(red.x),
        V=_single(red.V),
        offset=_single(red.offset),
        values=_single(red.values),
    )
    return replace(problem, data=data, reduction=red)


def _single(A: np.ndarray | None) -> Any:
    if A is None:
        return None
    return A.astype(np.complex64 if np.iscomplexobj(A) else np.float32)


class Anderson:
    """Type-II Anderson extrapolation of every tenth iterate, on all blocks at once.

    Reference: A. Zhang, B. O'Donoghue, S. Boyd, "Globally convergent type-I Anderson acceleration
    for nonsmooth fixed-point iterations", SIAM J. Optim. 30 (2020), for safeguards of this kind.
    """

    period = 10

    def __init__(self, driver: Driver, memory: int) -> None:
        self.driver, self.memory = driver, memory
        self.reset()

    def reset(self) -> None:
        """Forget all iterates; the next sample is the first."""
        self._last = np.inf
        self._mixed = False
        self._fresh = True

    def after(self, n_iter: int, G: Array) -> Array:
        """Look at the iterate after `n_iter` steps; return the Gram matrices to go on with."""
        if not self.memory or n_iter % self.period:
            return G
        engine = self.driver.engine
        if self._fresh:
            engine.total("anderson_reset")
            self._fresh = False
            return G
        R = self.driver.engine.total("anderson_push", self.memory)
        size = sqrt(max(R[-1, -1], 0.0))
        if self._mixed and size > 2 * self._last:
            G = self.driver.engine.total("anderson_undo")
            self.reset()
            return G
        self._last = size
        if len(R) < 2:
            engine.total("anderson_mark")
            return G
        if not np.trace(R) > 0:  # nothing moves any more
            return G
        weights = np.linalg.solve(R + 1e-10 * np.trace(R) * np.eye(len(R)), np.ones(len(R)))
        self._mixed = True
        return self.driver.engine.total("anderson_mix", weights / weights.sum())


def steps_to_check(history: list[Check], tol: float) -> int:
    """Return after how many iterations the next certificate is worth its price.

    The gap falls about geometrically; a certificate costs about two iterations.
    """
    last = history[-1]
    earlier = [check for check in history if check.n_iter < last.n_iter]
    gap = _relative_gap(last)
    if not earlier or not gap > 0:
        return 5 if gap < 300 * tol else 10
    before = earlier[-1]
    rate = log(max(_relative_gap(before), 1e-300) / gap) / (last.n_iter - before.n_iter)
    expected = log(gap / tol) / rate if rate > 0 else np.inf
    return int(min(max(1.1 * expected, 5), 25 if last.n_iter < 200 else 100))


def _relative_gap(check: Check) -> float:
    """Return the gap relative to the primal value, however small (`gap` is not, below 1e-12)."""
    return (check.primal - check.dual) / abs(check.primal) if check.primal else 0.0


def _balance_factor(q: float, low: float, high: float) -> float:
    """Return by what to multiply a penalty whose relative residuals have the ratio q."""
    if q > high:
        return min(2.0, max(1.2, sqrt(1.5 * q / high)))
    if q < low:
        return max(0.5, sqrt(q / low))
    return 1.0
