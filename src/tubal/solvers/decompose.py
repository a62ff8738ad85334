"""The iteration for the identity dictionary: `min ||Z||_* + lam g(X - Z)`.

The split `Z = J` is not needed there: Douglas-Rachford on the two terms, with penalty b,

    B = u + P(b (X - u)) / b,   Z = SVT_{1/b}(2 B - u),   u += a (Z - B),

where P projects onto the ball of the dual noise norm (and to zero off the mask).
"""

from __future__ import annotations

import numpy as np

from tubal.algebra import slice_gram
from tubal.input import Array
from tubal.solvers.blocks import Block, Candidate, Penalties, copy
from tubal.solvers.fields import Original, Reduced


class Decompose(Block):
    """Douglas-Rachford in either field; only the penalty b1 is used."""

    u: Array
    B: Array
    """The explained data."""
    q: Array
    """The multiplier over b."""

    def __init__(self, field: Reduced | Original, penalties: Penalties, u: Array) -> None:
        self.field, self.penalties = field, penalties
        self.load((u,))

    def advance(self, F: Array, product: Array | None = None) -> None:
        """Do one iteration."""
        self.move(self.field.push(F @ self.A if product is None else product))
        self._aim()

    def move(self, Z: Array) -> None:
        """Do the part of an iteration in the field: all but the next `A`, for given `Z`."""
        move = Z - self.B
        move *= self.penalties.relax
        self.u += move
        self._split()

    def _aim(self) -> None:
        self.A = self.field.pull(self.B + self.q)

    def _split(self) -> None:
        self.q = self._multiplier_over_b(self.u)
        self.B = self.u + self.q

    def _multiplier_over_b(self, u: Array) -> Array:
        b = self.penalties.b1
        return self.field.multiplier(self.field.residual(u) * b, b) / b

    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalty, keeping B and the multiplier.

        The multiplier is a subgradient at `X - B`, so another noise step would change neither.
        """
        self.q = self.q * (self.penalties.b1 / penalties.b1)
        self.u = self.B - self.q
        self.penalties = penalties
        self._aim()
        return slice_gram(self.A)

    def measure(self, F: Array) -> np.ndarray:
        """Return the balance of `Z = B`."""
        field, b = self.field, self.penalties.b1
        Z = F @ self.A
        B = field.pull(self.B)
        u = self.u + self.penalties.relax * (field.push(Z) - self.B)
        q = self._multiplier_over_b(u)
        new = field.pull(u + q)
        square = field.square
        row = [square(Z - new), max(square(Z), square(new))]
        row += [b**2 * square(new - B), b**2 * square(field.pull(q))]
        return np.array([row])

    def primal(self, F: Array) -> Array:
        """Return `F A`, made to fit the data where there is no noise."""
        Z, field = F @ self.A, self.field
        return field.pull(field.filled(field.push(Z))) if field.exact else Z

    def candidate(self, F: Array) -> Candidate:
        """Evaluate the primal point, and prepare the multiplier as dual point."""
        if not self.field.exact:
            return super().candidate(F)
        return Candidate(0.0, self._start_dual(), slice_gram(self.primal(F)))

    def multiplier(self) -> Array:
        """Return the multiplier."""
        return self.q * self.penalties.b1

    def noise(self) -> Array:
        """Return `E = X - B`, exactly zero where the multiplier is inside its ball."""
        b = self.penalties.b1
        G = self.field.residual(self.u) * b
        return (G - self.field.multiplier(copy(G), b)) / b

    def state(self) -> tuple[Array, ...]:
        """Return u."""
        return (self.u,)

    def surrender(self) -> Array:
        """Return u."""
        self.A = self.B = self.q = None
        return self.u

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from u."""
        (self.u,) = state
        self._split()
        self._aim()
        return slice_gram(self.A)
