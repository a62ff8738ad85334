"""Blocks: the state of some samples, and what an iteration does to it.

Samples couple only through the Gram matrices of the singular value thresholding, slices only inside
a sample. So the whole iteration is a method of a block: it receives the operators that the driver
made from the sum of all Grams and returns its part of the next ones. `represent` and `decompose`
hold the two iterations; here is what they share: certificates and Anderson extrapolation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tubal.algebra import slice_gram
from tubal.input import Array, namespace
from tubal.reduction import reciprocal
from tubal.solvers.fields import Field, Original


@dataclass(frozen=True)
class Penalties:
    """Penalty of `Z = J` (the only one of `Decompose`), penalty of `B = D J`, and relaxation."""

    b1: float
    b2: float
    relax: float


@dataclass(frozen=True)
class Candidate:
    """A part of a certificate: noise of a feasible primal point, Gram of `D^H Y`.

    `primal` is the Gram of the primal point where it is not the thresholded `A` itself.
    """

    noise: float
    dual: Array
    primal: Array | None = None

    def __add__(self, other: Candidate) -> Candidate:
        primal = None if self.primal is None else self.primal + other.primal
        return Candidate(self.noise + other.noise, self.dual + other.dual, primal)


@dataclass(frozen=True)
class Bound:
    """A part of the dual value, and the Gram of `D^H Y` for its last scaling."""

    inner: Array
    offset: float
    gram: Array

    def __add__(self, other: Bound) -> Bound:
        inner, gram = self.inner + other.inner, self.gram + other.gram
        return Bound(inner, self.offset + other.offset, gram)


class Block(ABC):
    """The state of some samples, and what an iteration does to it."""

    field: Field
    penalties: Penalties
    A: Array
    """Input of the singular value thresholding."""
    best: Array | None = None
    _dual: Array | None = None

    def gram(self) -> Array:
        """Return the Gram matrices of `A` (lower triangles)."""
        return slice_gram(self.A)

    def step(self, F: Array) -> Array:
        """Do one iteration with the thresholding operators `F`; return the next Gram matrices."""
        self.advance(F)
        return slice_gram(self.A)

    @abstractmethod
    def advance(self, F: Array, product: Array | None = None) -> None:
        """Do one iteration with the thresholding operators `F`; `product` is `F A`, if known."""

    @abstractmethod
    def measure(self, F: Array) -> np.ndarray:
        """Return squared norms that tell how the next step is balanced, one row a constraint.

        Columns: primal residual, larger side of the constraint, dual residual, multiplier.
        """

    @abstractmethod
    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalties; return the new Gram matrices."""

    @abstractmethod
    def multiplier(self) -> Array:
        """Return the multiplier of the current iterate, inside the dual ball, in the field."""

    @abstractmethod
    def noise(self) -> Array:
        """Return the noise `E` of the current iterate, in the field, exactly zero where it is."""

    @abstractmethod
    def state(self) -> tuple[Array, ...]:
        """Return the arrays that determine the iteration, penalties aside."""

    @abstractmethod
    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from such arrays; return the Gram matrices."""

    @abstractmethod
    def surrender(self) -> Array:
        """Give up the state; return the part of it that the primal point does not replace."""

    # ---- certificates ---------------------------------------------------------------------------

    def primal(self, F: Array) -> Array:
        """Return the primal point `F A`, in coordinates."""
        return F @ self.A

    def candidate(self, F: Array) -> Candidate:
        """Evaluate the primal point, and prepare the multiplier as dual point."""
        field = self.field
        explained = self.primal(F)
        explained *= field.s[..., None]
        return Candidate(field.misfit(field.push(explained)), self._start_dual())

    def clip(self, C: Array) -> Bound:
        """Take the part of the dual point's spectrum above 1 away, go back to mask and ball."""
        field = self.field
        Y = self.multiplier() if self._dual is None else self._dual
        excess = C @ (field.pull(Y) * field.s[..., None])
        excess *= -reciprocal(field.s)[..., None]
        clipped = field.push(excess)
        clipped += Y
        del Y, excess
        clipped = field.ball(clipped)
        inner, offset = field.inner(clipped), field.offset_value(clipped)
        pulled = field.pull(clipped)
        if self._dual is not None:
            self._dual = clipped
        pulled *= field.s[..., None]  # in coordinates this is the clipped point itself
        return Bound(inner, offset, slice_gram(pulled))

    def keep(self, F: Array) -> int:
        """Remember the primal point as the best one."""
        self.best = self.primal(F)
        return 0

    def release(self) -> int:
        """Forget the dual point of the last certificate."""
        self._dual = None
        return 0

    def take_best(self) -> Array:
        """Hand over the best primal point."""
        best, self.best = self.best, None
        return best

    def _start_dual(self) -> Array:
        Y = self.multiplier()
        if isinstance(self.field, Original):  # several rounds of clipping follow
            self._dual = Y
        pulled = self.field.pull(Y)
        pulled *= self.field.s[..., None]
        return slice_gram(pulled)

    # ---- Anderson extrapolation -----------------------------------------------------------------

    def anderson_reset(self) -> int:
        """Forget all samples; the current iterate is the first input."""
        self._outputs: list[tuple[Array, ...]] = []
        self._moves: list[tuple[Array, ...]] = []
        return self.anderson_mark()

    def anderson_mark(self) -> int:
        """Take the current iterate as the next input."""
        self._input = tuple(copy(A) for A in self.state())
        return 0

    def anderson_push(self, memory: int) -> np.ndarray:
        """Record the current iterate as output; return inner products of all moves."""
        output = tuple(copy(A) for A in self.state())
        move = tuple(a - b for a, b in zip(output, self._input, strict=True))
        self._outputs = [*self._outputs, output][-memory:]
        self._moves = [*self._moves, move][-memory:]
        return np.array([[self.product(f, g) for f in self._moves] for g in self._moves])

    def anderson_mix(self, weights: np.ndarray) -> Array:
        """Go to the weighted mean of the outputs; return the Gram matrices."""
        mixed = [
            sum(float(w) * A for w, A in zip(weights, arrays, strict=True))
            for arrays in zip(*self._outputs, strict=True)
        ]
        G = self.load(tuple(mixed))
        self.anderson_mark()
        return G

    def anderson_undo(self) -> Array:
        """Return to the last output before the mix; the one just pushed is dropped."""
        return self.load(tuple(copy(A) for A in self._outputs[-2]))

    def product(self, f: tuple[Array, ...], g: tuple[Array, ...]) -> float:
        """Return the inner product of two moves, in a metric of the iteration."""
        return float(namespace(f[-1]).sum(f[-1] * g[-1]))


def copy(A: Array) -> Array:
    """Return a copy."""
    return namespace(A).asarray(A, copy=True)
