"""Certified: rebalanced penalties, stopped by the duality gap.

The iteration is that of `tubal.solvers.blocks`. What is particular here:

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
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np

from tubal.input import Array
from tubal.problem import Problem
from tubal.solvers.blocks import Penalties
from tubal.solvers.driver import Driver, Outcome, load_block, start_block
from tubal.solvers.engines import Engine
from tubal.solvers.solution import Certificate, Check, State, StopReason

REBALANCE = frozenset(
    {20, 30, 40, 50, 60, 70, 80, 90, 100, 130, 160, 200, 250, 300, 370, 450, 550, 700, 850, 1000}
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
    """

    relax: float = 1.7
    first_check: int = 10
    memory: int = 5
    default_tol = 1e-4
    default_max_iter = 5000

    def run(
        self,
        problem: Problem,
        lam: float,
        engine: Engine,
        *,
        tol: float,
        max_iter: int,
        state: State | None = None,
        callback: Callable[[Check], Any] | None = None,
    ) -> Outcome:
        """Solve the problem for one `lam`."""
        begin = time.perf_counter()
        driver = Driver(problem, lam, engine)
        G: Array
        if state is None:
            penalties, theta = self._start(problem, lam)
            G = driver.place(partial(start_block, problem, lam, penalties, theta))
        else:
            penalties = state.penalties
            G = driver.place(partial(load_block, problem, lam, penalties, state.arrays))
        anderson = Anderson(driver, 0 if problem.in_coordinates else self.memory)
        history: list[Check] = []
        best = Certificate(np.inf, -np.inf)
        residuals: tuple[float, ...] = ()
        n_iter, next_check = 0, min(self.first_check, max_iter)
        reason = StopReason.MAX_ITER
        while True:
            spectrum = driver.spectrum(G)
            G = None  # certificates need the memory
            F = spectrum.apply(spectrum.above(1 / penalties.b1))
            if n_iter >= next_check:
                values = driver.certificate(spectrum, F, 1 / penalties.b1)
                # The best primal point costs an array; where its value hardly ever rises again
                # (whole-sample noise on complete data), the current one is as good.
                if problem.in_coordinates or values.primal < best.primal:
                    best = Certificate(values.primal, best.dual)
                    if not problem.in_coordinates:
                        engine.total("keep", F)
                best = Certificate(best.primal, max(values.dual, best.dual))
                seconds = time.perf_counter() - begin
                pair = (penalties.b1, penalties.b2)
                check = Check(n_iter, best.primal, best.dual, residuals, pair, seconds)
                history.append(check)
                asked = callback is not None and callback(check) is True
                if best.gap <= tol:
                    reason = StopReason.GAP
                elif asked:
                    reason = StopReason.CALLBACK
                if reason is not StopReason.MAX_ITER or n_iter >= max_iter:
                    break
                next_check = min(max_iter, n_iter + steps_to_check(history, tol))
            if n_iter in REBALANCE:
                penalties, residuals, changed = _rebalance(driver, F, penalties)
                if changed:
                    anderson.reset()
                    G = driver.engine.total("set_penalties", penalties)
                    spectrum = driver.spectrum(G)
                    F = spectrum.apply(spectrum.above(1 / penalties.b1))
            G = driver.engine.total("step", F)
            n_iter += 1
            G = anderson.after(n_iter, G)
        del spectrum
        last = F if problem.in_coordinates else None
        return driver.finish(penalties, best, n_iter, history, reason, last)

    def _start(self, problem: Problem, lam: float) -> tuple[Penalties, float]:
        rank = 0.4 * problem.reduction.shape[1]
        theta = max(problem.theta_of_lam(lam), problem.theta_of_rank(rank))
        b1 = 1 / theta if problem.reduction.kind == "identity" else 1.0
        return Penalties(b1, 1 / theta, self.relax), theta


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
        weights = np.linalg.solve(R + 1e-10 * np.trace(R) * np.eye(len(R)), np.ones(len(R)))
        self._mixed = True
        return self.driver.engine.total("anderson_mix", weights / weights.sum())


def steps_to_check(history: list[Check], tol: float) -> int:
    """Return after how many iterations the next certificate is worth its price.

    The gap falls about geometrically; a certificate costs about two iterations.
    """
    last = history[-1]
    if len(history) < 2 or not last.gap > 0:
        return 5
    before = history[-2]
    rate = log(max(before.gap, 1e-300) / last.gap) / (last.n_iter - before.n_iter)
    expected = log(last.gap / tol) / rate if rate > 0 else np.inf
    return int(min(max(0.8 * expected, 5), 25 if last.n_iter < 200 else 100))


def _rebalance(
    driver: Driver, F: Array, penalties: Penalties
) -> tuple[Penalties, tuple[float, ...], bool]:
    """Return penalties that bring primal and dual residuals together, and these residuals."""
    squares = np.maximum(driver.engine.total("measure", F), 1e-300)
    primal = np.sqrt(squares[:, 0] / squares[:, 1])
    dual = np.sqrt(squares[:, 2] / squares[:, 3])
    band = (1 / 30, 3.0) if driver.problem.in_coordinates else (1 / 60, 0.25)
    factors = [_balance_factor(q, *band) for q in primal / dual]
    new = Penalties(penalties.b1 * factors[0], penalties.b2 * factors[-1], penalties.relax)
    return new, (*map(float, primal), *map(float, dual)), any(f != 1 for f in factors)


def _balance_factor(q: float, low: float, high: float) -> float:
    """Return by what to multiply a penalty whose relative residuals have the ratio q."""
    if q > high:
        return min(2.0, max(1.2, sqrt(1.5 * q / high)))
    if q < low:
        return max(0.5, sqrt(q / low))
    return 1.0
