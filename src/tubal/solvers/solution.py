"""What a solve returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from tubal.input import Array, namespace
from tubal.reduction import Reduction
from tubal.transforms import Transform


class StopReason(Enum):
    """Why a solver stopped; the value is a sentence for the user."""

    GAP = "the duality gap is below tol"
    RESIDUALS = "the residuals of the published stop test are below tol"
    MAX_ITER = "the iteration limit was reached"
    CALLBACK = "the callback asked to stop"
    TRIVIAL = "the data is zero"

    @property
    def converged(self) -> bool:
        """Whether the solver reached what it was asked for."""
        return self in (StopReason.GAP, StopReason.RESIDUALS, StopReason.TRIVIAL)


@dataclass(frozen=True)
class Certificate:
    """A feasible primal value, a feasible dual value, and so: how far from the optimum at most.

    The optimal value lies between `dual` and `primal`.
    """

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """`(primal - dual) / max(1e-12, |primal|)`."""
        return (self.primal - self.dual) / max(1e-12, abs(self.primal))


@dataclass(frozen=True)
class Check:
    """One line of the history: the state at a check.

    `residuals` are relative for the certified solver: primal ones, then dual ones, one for each
    constraint, of the last iteration at which penalties were reviewed; empty before the first one.
    For the published solver they are the quantities of its stop test. `penalties` are b1 and b2.
    While a run is in single precision, so are the values; while it is restricted to leading
    directions, they are those of the restricted problem.
    """

    n_iter: int
    primal: float
    dual: float
    residuals: tuple[float, ...]
    penalties: tuple[float, ...]
    seconds: float

    @property
    def gap(self) -> float:
        """Relative duality gap of the best points found so far."""
        return Certificate(self.primal, self.dual).gap


@dataclass(frozen=True, eq=False)
class Factored:
    """The coefficient tensor `Z`, kept as a product of two factors in the transform domain.

    `Z` is p x n2 x n3 in the paper's layout (p = n2 when the data is its own dictionary).

    Attributes
    ----------
    basis : Reduction, array of shape (K, p, r) or None
        What coordinates stand for; None for the identity.
    core : array of shape (K, r, n2)
        Coordinates of Z.
    transform : Transform
    """

    basis: Reduction | Array | None
    core: Array
    transform: Transform

    @cached_property
    def left(self) -> Array | None:
        """The left factor (K, p, r), made when it is first needed; None for the identity."""
        return self.basis.left() if isinstance(self.basis, Reduction) else self.basis

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor: p, n2 and the sizes of the tubes."""
        p = self.core.shape[1] if self.left is None else self.left.shape[1]
        return (int(p), int(self.core.shape[2]), *(self.transform.sizes or ()))

    def to_array(self) -> Array:
        """Return Z as an array, p x n2 x n3: the size of the square of the number of samples."""
        return self.tile(slice(None), slice(None))

    def rows(self, i: Any) -> Array:
        """Return `Z[i]` for an index, a slice or an array of indices of dictionary samples."""
        return self.tile(i, slice(None))

    def tile(self, i: Any, j: Any) -> Array:
        """Return `Z[i][:, j]`, the coefficients of samples `j` on dictionary samples `i`.

        An index takes its axis away, as in NumPy; slices and arrays of indices keep it.
        """
        hat = self.slices(i, j)
        tile = self.transform.inverse(namespace(self.core).moveaxis(hat, 0, -1))
        if _is_index(j):
            tile = tile[:, 0, ...]
        return tile[0, ...] if _is_index(i) else tile

    def slices(self, i: Any = slice(None), j: Any = slice(None)) -> Array:
        """Return the same tile in the transform domain, K x len(i) x len(j)."""
        i, j = ([int(k)] if _is_index(k) else k for k in (i, j))
        core = self.core[:, :, j]
        return core[:, i, :] if self.left is None else self.left[:, i, :] @ core

    def transposed(self) -> Factored:
        """Return the tensor with its first two axes swapped (for a transposed problem)."""
        if self.left is None:
            return Factored(None, self.core.mT, self.transform)
        return Factored(self.core.mT, self.left.mT, self.transform)


@dataclass(frozen=True, eq=False)
class State:
    """Where an iteration stands, for warm starts.

    Attributes
    ----------
    arrays : tuple of array
        Arrays of all samples that determine the iteration.
    penalties : Penalties
    solver : str
        Name of the solver that chose them.
    problem : tuple
        Kind of the problem: dictionary, domain of the noise, and transform.
    """

    arrays: tuple[Array, ...]
    penalties: Any
    solver: str
    problem: tuple[str, bool, Transform]


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of `tubal.solve`.

    Attributes
    ----------
    E : array in the shape of X
        The noise: exactly zero in samples (entries, for l1) that the dictionary explains, and
        where nothing was observed.
    L : array in the shape of X
        The explained data `D * Z`, also where X was missing.
    Z : Factored
        The coefficients. `X = D * Z + E` holds at the optimum, and to about `tol` here: E is
        thresholded and L is not.
    certificate : Certificate
        Bounds on the optimal value from a feasible pair: Z together with all of `X - D * Z` as
        noise (not the thresholded E), and a multiplier.
    n_iter : int
    history : tuple of Check
    stop_reason : StopReason
    lam : float
    """

    E: Array
    L: Array
    Z: Factored
    certificate: Certificate
    n_iter: int
    history: tuple[Check, ...]
    stop_reason: StopReason
    lam: float
    state: State | None = field(repr=False, compare=False, default=None)

    def __getstate__(self) -> dict[str, Any]:
        # An enum by its name, which model files can hold.
        return {**self.__dict__, "stop_reason": self.stop_reason.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "stop_reason": StopReason[state["stop_reason"]]})


def _is_index(i: Any) -> bool:
    return isinstance(i, (int, np.integer)) and not isinstance(i, bool)
