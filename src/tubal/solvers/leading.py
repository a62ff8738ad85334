"""Working sets of directions: first solve with the leading ones of each slice.

Whole-sample noise on complete data, the data its own dictionary. In the solution few of the r
directions of a slice carry anything, those in which the closed-form solution for quadratic noise of
level theta does: `s^2 > theta`. Restricted to the first q directions of each slice the program is
one of the same kind, in which the rest of a sample is an offset of its norm,

    min ||Z||_* + lam sum_j ( ||x_j - S Z_j||^2 + o_j^2 )^(1/2)      over Z of q rows a slice.

Its solution is nearly that of the whole program: with zeros in the other rows it is feasible there
and has the same value, and so has its multiplier, continued by `Y_j = lam x_j / ||residual_j||`,
but for rows that are weakly tied to the first ones. A few iterations, mostly none, bring both
together. The certificate is that of the whole program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tubal.noise import sample_norms
from tubal.problem import Problem
from tubal.solvers.solution import State

Arrays = tuple[np.ndarray, ...]

SHARE = 0.1
"""Directions whose squared singular value is above this share of theta lead."""

MOST = 0.6
"""With more of the directions than this there is too little to save."""

LEAST = 16
"""Slices with fewer directions cost too little to bother."""


@dataclass(frozen=True, eq=False)
class Leading:
    """The leading directions of a problem.

    Attributes
    ----------
    whole : Problem
    count : int
        The first so many directions of each slice lead.
    problem : Problem
        Restricted to them.
    """

    whole: Problem
    count: int
    problem: Problem

    @classmethod
    def of(cls, problem: Problem, theta: float) -> Leading | None:
        """Find the leading directions for a level theta; None where it is not worth it."""
        red = problem.reduction
        r = red.shape[1]
        own = problem.in_coordinates and red.kind == "data" and isinstance(red.x, np.ndarray)
        if not own or r < LEAST:
            return None
        count = max(1, int((problem.curvature > SHARE * theta).sum(axis=1).max()))
        if count > MOST * r:
            return None
        weights = np.ones_like(red.s) * red.omega[:, None]
        rest = sample_norms(red.x[:, count:], weights[:, count:])
        few = replace(
            red,
            U=red.U[:, :, :count],
            s=red.s[:, :count],
            x=np.ascontiguousarray(red.x[:, :count]),
            offset=rest,
            values=red.values[:, :count],
        )
        return cls(problem, count, replace(problem, reduction=few))

    def holds(self, arrays: Arrays) -> bool:
        """Whether a state of the whole problem has coefficients in the leading directions only."""
        return not arrays[0][:, self.count :].any()

    def cut(self, state: State) -> State:
        """Return the leading part of a state of the whole problem."""
        arrays = tuple(np.ascontiguousarray(A[:, : self.count]) for A in state.arrays)
        return replace(state, arrays=arrays)

    def lifted(self, arrays: Arrays, lam: float) -> Arrays:
        """Continue coefficients and multiplier to all directions."""
        J, Y = arrays
        red, few = self.whole.reduction, self.problem.reduction
        weights = np.ones_like(few.s) * few.omega[:, None]
        inside = sample_norms(few.x - few.s[..., None] * J, weights)
        left = np.sqrt(inside**2 + few.offset**2)  # type: ignore[operator]
        factor = lam / np.where(left > 0, left, np.inf)
        shape = red.x.shape
        coefficients, multiplier = np.zeros(shape, J.dtype), np.empty(shape, Y.dtype)
        coefficients[:, : self.count] = J
        multiplier[:, : self.count] = Y
        multiplier[:, self.count :] = red.x[:, self.count :] * factor
        return coefficients, multiplier
