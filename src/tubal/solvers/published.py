"""Published: the authors' ADMM to the letter, for reproduction.

One penalty beta for both constraints, multiplied by `growth` after every iteration; no relaxation;
stop when the sup norms of all changes and residuals are at most tol (Algorithms 1 and 2 of the
paper). The growing penalty freezes the iterate, often far from the optimum: the certificate tells
how far.

The iteration is that of `tubal.solvers.blocks` with `b1 = b2 = beta`: for a dictionary the iterates
are those of Algorithm 1 and, with missing entries, of Algorithm 2 (there H is X on the mask and `D
J - Y/beta` off it, and E is zero off it). The identity dictionary has the two-block scheme of TRPCA
(C. Lu et al., IEEE PAMI 42, 2020) with the same schedule.

Departures, none visible in the result: sup norms, which need the original domain, are only taken
when the cheaper Frobenius norms allow the stop test to hold; the test is made in an order in which
it mostly fails soon, and what its last part compares with is only kept near the end; for the
identity dictionary the change of E is read off that of the explained data; and the factors of
conjugate slices are conjugate, so that coefficients are real there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tubal.algebra import slice_gram
from tubal.input import Array, namespace
from tubal.problem import Problem
from tubal.solvers.blocks import Block, Candidate, Penalties, copy
from tubal.solvers.decompose import Decompose
from tubal.solvers.driver import Driver, Outcome
from tubal.solvers.engines import Engine
from tubal.solvers.fields import Original
from tubal.solvers.parts import Part, load_block, zero_block
from tubal.solvers.represent import RepresentOriginal
from tubal.solvers.solution import Certificate, Check, State, StopReason
from tubal.solvers.watching import Snapshot, watching

NEAR = 4
"""How many tolerances are close to the end, for root mean squares; more if penalties grow fast.

The stop test begins once `Z - J` is close: before that it cannot hold. Its last part compares the
noise with that of the iteration before, which is kept once the change of Z is close, too.
"""


@dataclass(frozen=True)
class Published:
    """The schedule of the released code: `beta0 = 1e-4`; the paper prints 1e-5.

    Parameters
    ----------
    beta0, growth, beta_max : float
        First penalty, factor an iteration, largest penalty.
    """

    beta0: float = 1e-4
    growth: float = 1.1
    beta_max: float = 1e8
    name = "published"
    default_tol = 1e-8
    default_max_iter = 800

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not (0 < self.beta0 <= self.beta_max and self.growth >= 1):
            msg = f"beta0 must be positive and at most beta_max, growth at least 1, got {self!r}"
            raise ValueError(msg)

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
        """Run the schedule for one `lam`.

        With `n_iter` the state is one that an interrupted run left after so many iterations.
        """
        begin = time.perf_counter()
        driver = Driver(problem, lam, engine)
        penalties = Penalties(self.beta0, self.beta0, 1.0)
        make, arrays = zero_block, ()
        if state is not None:
            if state.solver == "published":  # else its penalties are of another kind
                penalties = Penalties(state.penalties.b1, state.penalties.b1, 1.0)
            make, arrays = load_block, state.arrays
        G = driver.place(partial(_following, make, penalties), arrays)
        history: list[Check] = []
        reason, apart, watcher = StopReason.MAX_ITER, np.inf, watching()
        close = max(float(NEAR), self.growth**5) * tol
        always = problem.reduction.kind == "identity"  # there the whole test costs little
        while n_iter < max_iter and reason is StopReason.MAX_ITER:
            spectrum = driver.spectrum(G, 1 / penalties.b1)
            beta = min(self.beta_max, self.growth * penalties.b1)
            n_iter += 1
            due = n_iter % 50 == 0 or n_iter == max_iter
            goal = Goal(tol, close, due or always or apart <= close, due)
            step = engine.total("follow", spectrum.shrink, Penalties(beta, beta, 1.0), goal)
            G, residuals, apart = step.gram, step.residuals, step.apart
            if goal.near and residuals.max() <= tol:
                reason = StopReason.RESIDUALS
            if due or reason is StopReason.RESIDUALS:
                values = driver.certificate(spectrum)
                pair, seconds = (penalties.b1, penalties.b2), time.perf_counter() - begin
                numbers = tuple(float(value) for value in residuals)
                check = Check(n_iter, values.primal, values.dual, numbers, pair, seconds)
                history.append(check)
                watcher.check(check)
                asked = callback is not None and bool(callback(check))
                if asked and reason is StopReason.MAX_ITER and n_iter < max_iter:
                    reason = StopReason.CALLBACK
            penalties = Penalties(beta, beta, 1.0)
            watcher.iteration(n_iter, partial(_snapshot, driver, beta, n_iter))
        best = Certificate(history[-1].primal, history[-1].dual)
        return driver.finish(penalties, best, n_iter, history, reason, "published")


def _snapshot(driver: Driver, beta: float, n_iter: int) -> Snapshot:
    arrays = tuple(copy(A) for A in driver.states())
    return Snapshot(arrays, beta, beta, "published", n_iter)


@dataclass(frozen=True)
class Goal:
    """What the stop test asks for, and how much of it is made in an iteration.

    Attributes
    ----------
    tol : float
    close : float
        Once the change of Z is no more than this, the noise is kept for the next iteration.
    near : bool
        Whether the test is made, for as long as it does not fail.
    whole : bool
        Whether all of its quantities are wanted in any case.
    """

    tol: float
    close: float
    near: bool
    whole: bool


@dataclass(frozen=True)
class Step:
    """Gram matrices for the next iteration, and the quantities of the stop test.

    When the test was made and fails, one of them is above the tolerance, others may be missing.
    `apart` is the root mean square of `Z - J`.
    """

    gram: Array
    residuals: np.ndarray
    apart: float = 0.0

    def __iadd__(self, other: Step) -> Step:
        gram = self.gram
        gram += other.gram
        residuals = np.maximum(self.residuals, other.residuals)
        return Step(gram, residuals, max(self.apart, other.apart))


class Follower:
    """A block together with the last output, which the stop test compares with."""

    def __init__(self, block: Block, problem: Problem) -> None:
        self.block, self.problem = block, problem
        self.Z: Array = 0 * block.A
        self.E: Array = 0 * block.noise()
        self._filled: Array | None = None
        self._B: Array | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)

    def follow(self, F: Array, following: Penalties, goal: Goal) -> Step:
        """Do one iteration and change to the next penalty."""
        block: Any = self.block
        Z = F @ block.A
        if isinstance(block, Decompose):
            residuals = self._decompose(block, Z, goal.tol, goal.whole)
            return Step(block.set_penalties(following), residuals)
        change, mean = self._change(Z, goal) if goal.near else (np.inf, np.inf)
        if goal.whole or change <= goal.tol:
            coefficients, fits = self._represent(F, Z)
            residuals = self._sizes(coefficients, fits, goal.tol)
            apart = self._mean_size(coefficients[-1], True)
            return Step(block.set_penalties(following), residuals, apart)
        if mean <= goal.close:
            self._keep()
        apart = self._mean(block.follow(F, Z, following), Z)
        self.Z = Z
        return Step(block.gram(), np.array([change]), apart)

    def _change(self, Z: Array, goal: Goal) -> tuple[float, float]:
        """Return the largest change of Z, or less than it but above `tol`; and its mean square."""
        change = Z - self.Z
        mean = self._mean_size(change, True)
        return (mean if mean > goal.tol else self._largest(change, True)), mean

    def _keep(self) -> tuple[Array, Array | None]:
        """Keep the noise, and the data as it is filled, if it is; return those from before."""
        before = self.E, self._filled
        block: Any = self.block
        self.E = block.noise()
        if isinstance(block, RepresentOriginal) and block.field.observed is not None:
            field, beta = block.field, block.penalties.b2
            self._filled = field.filled(field.X - block.G / beta)  # off the mask: D J - Y / beta
        return before

    def _represent(self, F: Array, Z: Array) -> tuple[list[Array], list[Array]]:
        block = self.block
        J, Y = (copy(A) for A in block.state())
        E, filled = self._keep()
        fits = [self.E - E]
        if self._filled is not None:
            fits.append(self._filled if filled is None else self._filled - filled)
        block.advance(F, Z)
        new_J, new_Y = block.state()
        coefficients = [Z - self.Z, new_J - J, Z - new_J]
        fits.append((new_Y - Y) / block.penalties.b2)
        self.Z = Z
        return coefficients, fits

    def _decompose(self, block: Decompose, Z: Array, tol: float, keep: bool) -> np.ndarray:
        """Do one iteration for the identity dictionary; `keep` the noise in any case.

        `E = X - B` changes as much as `B` where there is data, so it is only made at the end.
        """
        field = block.field
        explained = field.push(Z)
        block.move(explained)  # the next A follows from the next penalty
        residuals = self._sizes([], [explained - block.B], tol)
        if residuals.max() <= tol:
            before = field.residual(block.B) if self._B is None else block.B - self._B
            seen = field.seen(before) if isinstance(field, Original) else before
            moved = explained if self._filled is None else explained - self._filled
            residuals = np.append(residuals, self._sizes([], [seen, moved], tol))
        if keep or residuals.max() <= tol:
            self.E = block.noise()
        self.Z, self._filled, self._B = Z, explained, block.B
        return residuals

    def _sizes(self, coefficients: list[Array], fits: list[Array], tol: float) -> np.ndarray:
        """Return sup norms in the original domain, or lower bounds when one exceeds `tol`."""
        slices = not isinstance(self.block.field, Original)
        kinds = [True] * len(coefficients) + [slices] * len(fits)
        tensors = [*coefficients, *fits]
        bounds = [self._mean_size(A, kind) for A, kind in zip(tensors, kinds, strict=True)]
        if max(bounds) > tol:
            return np.array(bounds)
        for i, A in enumerate(tensors):
            bounds[i] = self._largest(A, kinds[i], lift=i >= len(coefficients))
            if bounds[i] > tol:
                break
        return np.array(bounds)

    def _mean_size(self, A: Array, slices: bool) -> float:
        """Root mean square entry in the original domain: at most the largest entry."""
        if not slices:
            return float(namespace(A).sum(A * A) / np.prod(A.shape)) ** 0.5
        return self._mean(self.block.field.square(A), A)

    def _mean(self, square: float, A: Array) -> float:
        """Root mean square entry of the tensor with slices A and this squared norm."""
        # Coordinates may stand for tensors with n1 rows; counting those keeps it a lower bound.
        rows = max(self.problem.data.n1, A.shape[1])
        return (square / (rows * A.shape[-1] * self.problem.transform.n3)) ** 0.5

    def _largest(self, A: Array, slices: bool, lift: bool = False) -> float:
        """Return the largest entry in the original domain; coordinates of data are lifted."""
        if slices:
            U = self.problem.reduction.U
            A = self.problem.transform.inverse(U @ A if lift else A, axis=0)
        return float(namespace(A).max(namespace(A).abs(A)))

    def take_best(self) -> Array:
        """Hand over the last output, made to fit the data where there is no noise."""
        Z, self.Z = self._feasible(), None
        return Z

    def _feasible(self) -> Array:
        field = self.block.field
        return field.pull(field.filled(field.push(self.Z))) if field.exact else self.Z

    def noise(self) -> Array:
        """Return the last noise."""
        return self.E

    def candidate(self, F: Array) -> Candidate:
        """Take the output as primal point and the current multiplier as dual point."""
        field, Z = self.block.field, self._feasible()
        dual = self.block.candidate(F).dual
        noise = 0.0 if field.exact else field.misfit(field.push(Z * field.s[..., None]))
        return Candidate(noise, dual, slice_gram(Z))


def _following(make: Callable[[Penalties, Part], Block], penalties: Penalties, part: Part) -> Any:
    return Follower(make(penalties, part), part.problem)
