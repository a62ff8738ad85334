"""The iteration for a dictionary.

`Represent` solves `min ||Z||_* + lam g(X - D Z)` for a dictionary that is diagonal in the
coordinates of `tubal.reduction`, by over-relaxed ADMM on `Z = J, B = D J` (B is the explained
data). With the multiplier Y of the second constraint that of the first is `-D^H Y` after every
J-step, and with `y = D^H Y / b1`, `rho = b2 S^2 / b1` the updates collapse to

    Yn = P(b2 (X - D J) + Y)
    dJ = a / (1 + rho) ( (F - I)(J + y) + yn )
    J += dJ,   Y += a (Yn - Y) - b2 D dJ

where P projects onto the ball of the dual noise norm (and to zero off the mask), `F (J + y)` is the
singular value thresholding of `A = J + y` at 1/b1, and `a` is the relaxation. A and y are kept.

Reference: J. Eckstein, D. Bertsekas, "On the Douglas-Rachford splitting method and the proximal
point algorithm for maximal monotone operators", Mathematical Programming 55 (1992).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tubal.algebra import slice_gram
from tubal.input import Array, namespace
from tubal.noise import sample_norms
from tubal.reduction import reciprocal
from tubal.solvers.blocks import Block, Penalties, copy
from tubal.solvers.fields import Original, Reduced, slice_inner
from tubal.solvers.kernels import Passes, passes


class Represent(Block):
    """ADMM for a diagonal dictionary; subclasses know where the noise lives."""

    y: Array

    @property
    def J(self) -> Array:
        """The coefficients of the J-step."""
        return self.A - self.y

    def advance(self, F: Array, product: Array | None = None) -> None:
        """Do one iteration."""
        change = self._noise_step()
        D = F @ self.A if product is None else copy(product)
        D -= self.A
        D += change
        D *= self._tau
        change -= self.y
        change *= self.penalties.relax
        self._follow(D)
        self.A += D
        D *= self._rho
        change -= D
        self.A += change
        self.y += change

    def follow(self, F: Array, Z: Array, penalties: Penalties) -> float:
        """Do one iteration, `Z = F A`, and change the penalties, without relaxation.

        Returns the squared norm of `Z - J`.
        """
        self.advance(F, Z)
        square = self.field.square(Z - self.J)
        self._rescale(penalties)
        return square

    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalties; J and the multiplier stay what they are."""
        self._rescale(penalties)
        return slice_gram(self.A)

    def _rescale(self, penalties: Penalties) -> None:
        self.A -= self.y
        self.y *= self.penalties.b1 / penalties.b1
        self.A += self.y
        self._prepare(penalties)

    def measure(self, F: Array) -> np.ndarray:
        """Return the balance of `Z = J` and of `B = D J`."""
        field, b1, b2 = self.field, self.penalties.b1, self.penalties.b2
        square, s = field.square, field.s[..., None]
        back = reciprocal(field.s)[..., None] * b1  # from y to the multiplier's coordinates
        Z = F @ self.A
        change = field.pull(self.multiplier()) * (s / b1)
        D = self._tau * (Z - self.A + change)
        change -= self.y
        step = change * (back / b2)  # explained data - D J
        step -= s * D
        second = [square(step), 0.0, b2**2 * square(s * D), 0.0]
        J = self.A - self.y
        step = s * J + change * (back / b2)
        J += D
        second[1] = max(square(step), square(s * J))
        first = [0.0, max(square(Z), square(J)), b1**2 * square(D), 0.0]
        Z -= J
        first[0] = square(Z)
        change *= self.penalties.relax
        change -= self._rho * D
        change += self.y
        first[3], second[3] = b1**2 * square(change), square(change * back)
        return np.array([first, second])

    def _prepare(self, penalties: Penalties) -> None:
        self.penalties = penalties
        self._rho = penalties.b2 / penalties.b1 * self.field.s[..., None] ** 2
        self._tau = penalties.relax / (1 + self._rho)

    @abstractmethod
    def _noise_step(self) -> Array:
        """Return `D^H Yn / b1` as an array of its own."""

    def _follow(self, D: Array) -> None:
        """Follow the step `dJ = D` in the original domain."""


class RepresentReduced(Represent):
    """Noise in coordinates: everything is elementwise, and y alone stands for the multiplier."""

    field: Reduced

    def __init__(self, field: Reduced, penalties: Penalties, J: Array, Y: Array) -> None:
        self.field = field
        self._prepare(penalties)
        self.load((J, Y))

    def _prepare(self, penalties: Penalties) -> None:
        super()._prepare(penalties)
        field, b1, b2 = self.field, penalties.b1, penalties.b2
        self._scale = (b2 / b1 * field.s)[..., None]
        self._weights = field.weights * (b1 * reciprocal(field.s)) ** 2
        self._offset = None if field.offset is None else field.offset * b2

    def _scaled(self) -> Array:
        """Return `D^H (b2 (X - D J) + Y) / b1`."""
        g = self.field.x * self._scale
        g -= self._rho * self.J
        g += self.y
        return g

    def _factor(self, norms: Array) -> Array:
        return self.field.noise.factor(norms, self.field.lam, self._offset)

    def _noise_step(self) -> Array:
        g = self._scaled()
        g *= self._factor(sample_norms(g, self._weights))
        return g

    def multiplier(self) -> Array:
        """Return `Yn`."""
        g = self._noise_step()
        g *= (self.penalties.b1 * reciprocal(self.field.s))[..., None]
        return g

    def noise(self) -> Array:
        """Return `E`, zero in samples that the dictionary explains."""
        g = self._scaled()
        g *= 1 - self._factor(sample_norms(g, self._weights))
        g *= (self.penalties.b1 / self.penalties.b2 * reciprocal(self.field.s))[..., None]
        return g

    def state(self) -> tuple[Array, ...]:
        """Return J and Y."""
        return self.J, self.y * (self.penalties.b1 * reciprocal(self.field.s))[..., None]

    def surrender(self) -> Array:
        """Return Y; the best Z stands for J."""
        Y, self.y, self.A = self.y, None, None
        Y *= (self.penalties.b1 * reciprocal(self.field.s))[..., None]
        return Y

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from J and Y."""
        J, Y = state
        self.y = self.field.s[..., None] / self.penalties.b1 * Y
        self.A = J + self.y
        return slice_gram(self.A)


class RepresentOriginal(Represent):
    """Noise in the original domain: Y and `G = b2 (X - D J) + Y` are kept there."""

    field: Original
    Y: Array
    G: Array

    def __init__(self, field: Original, penalties: Penalties, J: Array, Y: Array) -> None:
        self.field = field
        self._prepare(penalties)
        self.load((J, Y))

    def _noise_step(self) -> Array:
        self._Yn = self.multiplier()
        return self.field.pull(self._Yn) * (self.field.s / self.penalties.b1)[..., None]

    def _follow(self, D: Array) -> None:
        change = self._Yn - self.Y
        change *= self.penalties.relax
        moved = self.field.push(D * (self.penalties.b2 * self.field.s)[..., None])
        change -= moved
        self.Y += change
        change -= moved
        self.G += change

    def _rescale(self, penalties: Penalties) -> None:
        self.G -= self.Y
        self.G *= penalties.b2 / self.penalties.b2
        self.G += self.Y
        super()._rescale(penalties)

    def multiplier(self) -> Array:
        """Return `Yn`."""
        return self.field.ball(self.G)

    def noise(self) -> Array:
        """Return `E` on the mask."""
        G = self.field.seen(self.G)
        return (G - self.field.ball(G)) / self.penalties.b2

    def product(self, f: tuple[Array, ...], g: tuple[Array, ...]) -> float:
        """Return the inner product of two moves of (J, Y)."""
        xp = namespace(f[0])
        coefficients = float(xp.sum(slice_inner(f[0], g[0]) * self.field.omega))
        return self.penalties.b1 * coefficients + super().product(f, g) / self.penalties.b2

    def state(self) -> tuple[Array, ...]:
        """Return J and Y."""
        return self.J, self.Y

    def surrender(self) -> Array:
        """Return Y; the best Z stands for J."""
        Y, self.Y, self.G, self.A = self.Y, None, None, None
        return Y

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from J and Y."""
        field, b1, b2 = self.field, self.penalties.b1, self.penalties.b2
        J, self.Y = state
        self.y = field.pull(self.Y) * (field.s / b1)[..., None]
        self.G = (field.X - field.push(J * field.s[..., None])) * b2 + self.Y
        self.A = J + self.y
        return slice_gram(self.A)


class Fast(Represent):
    """Steps on NumPy arrays, with the elementwise part of a step in few passes."""

    _passes: Passes
    _keep_step = False
    """Whether `_settle` wants the step."""

    def advance(self, F: Array, product: Array | None = None) -> None:
        """Do one iteration."""
        g, f = self._noise_views()
        views = _real_views(F @ self.A if product is None else product, self.A, self.y)
        relax = self.penalties.relax
        self._passes.update(g, f, *views, self._rho, self._tau, relax, self._keep_step)
        self._settle(g, relax, 1.0)

    def follow(self, F: Array, Z: Array, penalties: Penalties) -> float:
        """Do one iteration, `Z = F A`, and change the penalties, without relaxation."""
        g, f = self._noise_views()
        views, q = _real_views(Z, self.A, self.y), self.penalties.b1 / penalties.b1
        rho, tau, omega = self._rho, self._tau, self.field.omega
        square = self._passes.follow(g, f, *views, rho, tau, q, omega, self._keep_step)
        self._settle(g, 1.0, penalties.b2 / self.penalties.b2)
        self._prepare(penalties)
        return float(square)

    @abstractmethod
    def _noise_views(self) -> tuple[np.ndarray, np.ndarray]:
        """Return g and one factor f a real number: `f g` is `D^H Yn / b1`, seen as real."""

    def _settle(self, g: np.ndarray, relax: float, q: float) -> None:
        """Do what else is to be done; q is the factor by which b2 grows."""


class RepresentReducedFast(Fast, RepresentReduced):
    """The same for NumPy arrays."""

    def __init__(
        self, field: Reduced, penalties: Penalties, J: Array, Y: Array, size: int = 0
    ) -> None:
        super().__init__(field, penalties, J, Y)
        self._passes = passes(size)

    def noise(self) -> Array:
        """Return `E`, zero in samples that the dictionary explains."""
        g, f = self._noise_views()
        g *= 1 - f
        E = g.view(self.A.dtype)
        E *= (self.penalties.b1 / self.penalties.b2 * reciprocal(self.field.s))[..., None]
        return E

    def _noise_views(self) -> tuple[np.ndarray, np.ndarray]:
        x, A, y = _real_views(self.field.x, self.A, self.y)
        g = np.empty_like(A)
        sums = self._passes.noise(x, self._scale, A, y, self._rho, self._weights, g)
        pairs = A.shape[-1] // self.A.shape[-1]
        norms = np.sqrt(sums.reshape(-1, pairs).sum(axis=1))
        return g, np.repeat(self._factor(norms), pairs)


class RepresentOriginalFast(Fast, RepresentOriginal):
    """The same for NumPy arrays."""

    _keep_step = True

    def __init__(
        self, field: Original, penalties: Penalties, J: Array, Y: Array, size: int = 0
    ) -> None:
        super().__init__(field, penalties, J, Y)
        self._passes = passes(size)

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from J and Y."""
        J, Y = state
        result = super().load((J, np.ascontiguousarray(Y)))
        self.G = np.ascontiguousarray(self.G)  # so that both can be seen as flat
        return result

    def _noise_views(self) -> tuple[np.ndarray, np.ndarray]:
        self._Yn = self.multiplier().astype(self.Y.dtype, copy=False)  # noise may be a user's own
        g = self.field.pull(self._Yn) * (self.field.s / self.penalties.b1)[..., None]
        (view,) = _real_views(g)
        return view, np.ones(view.shape[-1], view.dtype)

    def _settle(self, g: np.ndarray, relax: float, q: float) -> None:
        """Follow the step, which is in g by now; `G - Y` grows by q."""
        g *= (self.penalties.b2 * self.field.s)[..., None]
        moved = self.field.push(g.view(self.A.dtype))
        Yn, Y, moved, G = (A.reshape(-1) for A in (self._Yn, self.Y, moved, self.G))
        self._passes.settle(Yn, Y, moved, G, relax, q)


def _real_views(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return arrays themselves, or complex ones as real with twice as many columns."""
    return tuple(A.view(A.real.dtype) for A in arrays)
