"""Parts of a problem, and the blocks made from them.

A part is what a block needs to know of the problem: its own samples, the dictionary, `lam`. It can
be sent to another machine, and the block is made there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tubal.input import Array, namespace, tubes_first
from tubal.problem import Problem
from tubal.reduction import Reduction, reciprocal
from tubal.solvers.blocks import Block, Penalties, copy
from tubal.solvers.decompose import Decompose
from tubal.solvers.fields import Original, Reduced
from tubal.solvers.represent import (
    RepresentOriginal,
    RepresentOriginalFast,
    RepresentReduced,
    RepresentReducedFast,
)


@dataclass(frozen=True, eq=False)
class Part:
    """Some samples of a problem.

    Attributes
    ----------
    problem : Problem
        With these samples alone.
    lam : float
    size : int
        How many numbers the coordinates of all samples are.
    state : tuple of array
        Of an earlier run, these samples alone; empty without one.
    """

    problem: Problem
    lam: float
    size: int
    state: tuple[Array, ...] = ()

    @classmethod
    def of(cls, problem: Problem, lam: float, span: slice, state: tuple[Array, ...] = ()) -> Self:
        """Return the part with the samples of a span."""
        K, r, n2 = problem.reduction.shape
        return cls(problem.part(span), lam, K * r * n2, tuple(A[..., span] for A in state))

    def field(self) -> Reduced | Original:
        """Return the data, in the domain where the noise step is done."""
        problem, red = self.problem, self.problem.reduction
        if problem.in_coordinates:
            return Reduced(red.s, red.omega, self.lam, red.x, red.offset)
        xp = namespace(red.x)
        X = _own(tubes_first(problem.data.values))
        observed = problem.data.observed
        observed = None if observed is None else _own(tubes_first(observed))
        s, U = red.s, red.U
        if red.kind == "identity":
            s = xp.ones((red.shape[0], X.shape[-2]), dtype=red.s.dtype, device=red.s.device)
            U = None
        return Original(s, red.omega, self.lam, X, observed, U, problem.transform, problem.noise)

    def represent(
        self, field: Reduced | Original, penalties: Penalties, J: Array, Y: Array
    ) -> Block:
        """Return the block for a dictionary: the fast one for NumPy."""
        if isinstance(field, Original):
            if isinstance(J, np.ndarray):
                return RepresentOriginalFast(field, penalties, J, Y, self.size)
            return RepresentOriginal(field, penalties, J, Y)
        if isinstance(J, np.ndarray):
            return RepresentReducedFast(field, penalties, J, Y, self.size)
        return RepresentReduced(field, penalties, J, Y)


def zero_block(penalties: Penalties, part: Part) -> Block:
    """Return a block with all variables zero (explained data = data for the identity)."""
    field, red = part.field(), part.problem.reduction
    if red.kind == "identity":
        return Decompose(
            field, penalties, copy(field.X if isinstance(field, Original) else field.x)
        )
    J = 0 * red.x
    return part.represent(field, penalties, J, 0 * (field.X if isinstance(field, Original) else J))


def left_over(problem: Problem, theta: float) -> Array:
    """Return the share `min(1, theta/d)` of every direction that the closed form leaves."""
    s = problem.reduction.s
    xp = namespace(s)
    d = xp.asarray(problem.curvature, dtype=s.dtype, device=s.device)
    return xp.where(d > theta, theta / xp.where(d > theta, d, xp.ones_like(d)), xp.ones_like(d))


def start_block(penalties: Penalties, theta: float, rest: Array, part: Part) -> Block:
    """Return a block at the closed-form solution for quadratic noise `||X - D Z||^2 / (2 theta)`.

    Its coefficients are `J = (1 - theta/d)_+ x / s` and its multiplier is `Y = (X - D J) / theta`;
    `rest` is `left_over(problem, theta)`, which depends on all samples.
    """
    field, problem, red = part.field(), part.problem, part.problem.reduction
    explained = (1 - rest)[..., None] * red.x
    if red.kind == "identity":
        if isinstance(field, Original):
            T = problem.transform.inverse(red.U @ explained, axis=0)
            return Decompose(field, penalties, T - field.ball(field.residual(T) / theta) * theta)
        return Decompose(field, penalties, explained - rest[..., None] * red.x)
    J = explained * reciprocal(red.s)[..., None]
    if isinstance(field, Original):
        T = field.push(explained)
        return part.represent(field, penalties, J, field.ball(field.residual(T) / theta))
    return part.represent(field, penalties, J, (rest / theta)[..., None] * red.x)


def load_block(penalties: Penalties, part: Part) -> Block:
    """Return a block that continues from the state of the part."""
    field = part.field()
    state = tuple(_own(_like(A, part.problem.reduction)) for A in part.state)
    if part.problem.reduction.kind == "identity":
        return Decompose(field, penalties, *state)
    return part.represent(field, penalties, *state)


def _like(A: Array, reduction: Reduction) -> Array:
    """Return `A` in the precision of the problem."""
    xp = namespace(A)
    coordinates = xp.isdtype(A.dtype, "complex floating")
    return xp.astype(A, (reduction.x if coordinates else reduction.s).dtype, copy=False)


def _own(A: Array) -> Array:
    """Return a contiguous copy, so that a block may write to it."""
    return np.array(A, order="C") if isinstance(A, np.ndarray) else copy(A)
