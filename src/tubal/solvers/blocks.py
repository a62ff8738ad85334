"""One step on one block of samples.

Samples couple only through the Gram matrices of the singular value thresholding, slices only inside
a sample. So the whole iteration is a method of a block: it receives the operators that the driver
made from the sum of all Grams and returns its part of the next ones.

`Represent` solves `min ||Z||_* + lam g(X - D Z)` for a dictionary that is diagonal in the
coordinates of `tubal.reduction`, by over-relaxed ADMM on `Z = J, B = D J` (B is the explained
data). With the multiplier Y of the second constraint that of the first is `-D^H Y` after every
J-step, and with `y = D^H Y / b1`, `rho = b2 S^2 / b1` the updates collapse to

    Yn = P(b2 (X - D J) + Y)
    dJ = a / (1 + rho) ( (F - I)(J + y) + yn )
    J += dJ,   Y += a (Yn - Y) - b2 D dJ

where P projects onto the ball of the dual noise norm (and to zero off the mask), `F (J + y)` is the singular value thresholding of `J + y` at 1/b1 and `a` the relaxation.

`Decompose` is the identity dictionary, where the split Z = J is not needed: Douglas-Rachford,

    B = u + P(b (X - u)) / b,   Z = SVT_{1/b}(2 B - u),   u += a (Z - B).

Reference: J. Eckstein, D. Bertsekas, "On the Douglas-Rachford splitting method and the proximal
point algorithm for maximal monotone operators", Mathematical Programming 55 (1992).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tubal.algebra import slice_adjoint
from tubal.input import Array, namespace
from tubal.noise import sample_norms
from tubal.solvers.fields import Field, Original, Reduced, slice_inner
from tubal.solvers.kernels import passes


@dataclass(frozen=True)
class Penalties:
    """Penalty of `Z = J` (the only one of `Decompose`), penalty of `B = D J`, and relaxation."""

    b1: float
    b2: float
    relax: float


@dataclass(frozen=True)
class Candidate:
    """A block's part of a certificate: noise of a feasible primal point, Gram of `D^H Y`.

    `primal` is the Gram of the primal point where it is not the thresholded `A` itself.
    """

    noise: float
    dual: Array
    primal: Array | None = None


@dataclass(frozen=True)
class Bound:
    """A block's part of the dual value, and the Gram of `D^H Y` for its last scaling."""

    inner: Array
    offset: float
    gram: Array


class Block(ABC):
    """The state of some samples, and what an iteration does to it."""

    field: Field
    penalties: Penalties
    A: Array
    Z: Array | None = None
    best: Array | None = None
    _dual: Array = None
    _pulled: Array = None

    def gram(self) -> Array:
        """Return the Gram matrices of the input of the thresholding (lower triangles)."""
        return gram(self.A)

    @abstractmethod
    def step(self, F: Array) -> Array:
        """Do one iteration with the thresholding operators `F`; return the next Gram matrices."""

    @abstractmethod
    def measure(self, F: Array) -> np.ndarray:
        """Return squared norms that tell how the next step is balanced, one row a constraint.

        Columns: primal residual, larger side of the constraint, dual residual, multiplier.
        """

    @abstractmethod
    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalties; return the new Gram matrices."""

    @abstractmethod
    def candidate(self, F: Array) -> Candidate:
        """Take the thresholded `A` as primal point and the current multiplier as dual point."""

    @abstractmethod
    def noise(self) -> Array:
        """Return the noise `E` of the current iterate, in the field."""

    @abstractmethod
    def state(self) -> tuple[Array, ...]:
        """Return the arrays that determine the iteration."""

    @abstractmethod
    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from such arrays; return the Gram matrices."""

    def keep(self) -> None:
        """Remember the last candidate as the best one."""
        self.best = self.Z

    def take_best(self) -> Array:
        """Return the best candidate."""
        return self.best

    def anderson_reset(self) -> None:
        """Forget all samples; the current iterate is the first input."""
        self._outputs: list[tuple[Array, ...]] = []
        self._moves: list[tuple[Array, ...]] = []
        self.anderson_mark()

    def anderson_mark(self) -> None:
        """Take the current iterate as the next input."""
        self._input = tuple(_copy(A) for A in self.state())

    def anderson_push(self, memory: int) -> np.ndarray:
        """Record the current iterate as output; return inner products of all moves."""
        output = tuple(_copy(A) for A in self.state())
        move = tuple(a - b for a, b in zip(output, self._input, strict=True))
        self._outputs = [*self._outputs, output][-memory:]
        self._moves = [*self._moves, move][-memory:]
        return np.array([[self._product(f, g) for f in self._moves] for g in self._moves])

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
        return self.load(self._outputs[-2])

    def _product(self, f: tuple[Array, ...], g: tuple[Array, ...]) -> float:
        """Inner product of two moves, in a metric of the iteration (original domain)."""
        xp = namespace(f[-1])
        return float(xp.sum(f[-1] * g[-1]))

    def clip(self, C: Array) -> Bound:
        """Take the part of the dual point's spectrum above 1 away, go back to mask and ball."""
        field, W = self.field, self._pulled
        excess = (C @ W) * _reciprocal(field.s)[..., None]
        self._dual = field.ball(self._dual - field.push(excess))
        self._pulled = field.pull(self._dual) * field.s[..., None]
        inner = field.inner(self._dual)
        return Bound(inner, field.offset_value(self._dual), gram(self._pulled))

    def release(self) -> None:
        """Forget the last certificate's arrays."""
        self._dual = self._pulled = self.Z = None

    def _set_dual(self, Y: Array) -> Array:
        self._dual = Y
        self._pulled = self.field.pull(Y) * self.field.s[..., None]
        return gram(self._pulled)


class Represent(Block):
    """ADMM for a diagonal dictionary; subclasses know where the noise lives."""

    J: Array
    y: Array

    def step(self, F: Array) -> Array:
        """Do one iteration."""
        a, rho, tau = self.penalties.relax, self._rho, self._tau
        yn = self._noise_step()
        D = (tau * (F - _eye(F))) @ self.A
        D += tau * yn
        self.J += D
        yn -= self.y
        yn *= a
        self.y += yn
        self._advance(D)
        D *= rho
        self.y -= D
        self.A = _sum(self.J, self.y, self.A)
        return gram(self.A)

    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalties; the multiplier stays what it is."""
        self.y *= self.penalties.b1 / penalties.b1
        self._prepare(penalties)
        self.A = self.J + self.y
        return gram(self.A)

    def candidate(self, F: Array) -> Candidate:
        """Take `Z = F A` and the multiplier in the ball."""
        field = self.field
        self.Z = F @ self.A
        noise = field.misfit(field.push(self.Z * field.s[..., None]))
        return Candidate(noise, self._set_dual(self._ball_multiplier()))

    def measure(self, F: Array) -> np.ndarray:
        """Return the balance of `Z = J` and of `B = D J`."""
        field, (b1, b2, a) = self.field, _fields(self.penalties)
        s = field.s[..., None]
        Z = F @ self.A
        yn = field.pull(self._ball_multiplier()) * s / b1
        D = self._tau * (Z - self.A + yn)
        J = self.J + D
        back = _reciprocal(field.s)[..., None] * b1  # from y to the multiplier's coordinates
        explained = s * self.J + (yn - self.y) * back / b2
        y = self.y + a * (yn - self.y) - self._rho * D
        square = field.square
        first = [square(Z - J), max(square(Z), square(J)), b1**2 * square(D), b1**2 * square(y)]
        second = [
            square(explained - s * J),
            max(square(explained), square(s * J)),
            b2**2 * square(s * D),
            square(y * back),
        ]
        return np.array([first, second])

    def _prepare(self, penalties: Penalties) -> None:
        s = self.field.s[..., None]
        self.penalties = penalties
        self._rho = penalties.b2 / penalties.b1 * s**2
        self._tau = penalties.relax / (1 + self._rho)

    @abstractmethod
    def _noise_step(self) -> Array:
        """Return `D^H Yn / b1` as an array of its own."""

    @abstractmethod
    def _ball_multiplier(self) -> Array:
        """Return `Yn` in the field."""

    def _advance(self, D: Array) -> None:
        """Follow the step `dJ = D` in the original domain."""


class RepresentReduced(Represent):
    """Noise in coordinates: everything is elementwise, and y alone stands for the multiplier."""

    field: Reduced

    def __init__(self, field: Reduced, penalties: Penalties, J: Array, Y: Array) -> None:
        self.field, self.J = field, J
        self.y = field.s[..., None] / penalties.b1 * Y
        self._prepare(penalties)
        self.A = self.J + self.y

    def _prepare(self, penalties: Penalties) -> None:
        super()._prepare(penalties)
        field = self.field
        b1, b2, _ = _fields(penalties)
        self._x = (b2 / b1 * field.s)[..., None] * field.x
        self._weights = field.weights * (b1 * _reciprocal(field.s)) ** 2

    def _noise_step(self) -> Array:
        g = self._rho * self.J
        g -= self._x
        g *= -1
        g += self.y
        g *= self._factor(g)
        return g

    def _factor(self, g: Array) -> Array:
        field = self.field
        offset = None if field.offset is None else field.offset * self.penalties.b2
        return field.noise.factor(sample_norms(g, self._weights), field.lam, offset)

    def _ball_multiplier(self) -> Array:
        return self._noise_step() * (self.penalties.b1 * _reciprocal(self.field.s))[..., None]

    def noise(self) -> Array:
        """Return `E`, zero in samples that the dictionary explains."""
        g = self._x - self._rho * self.J + self.y
        back = self.penalties.b1 / self.penalties.b2 * _reciprocal(self.field.s)
        return g * (1 - self._factor(g)) * back[..., None]

    def state(self) -> tuple[Array, ...]:
        """Return J and Y."""
        return self.J, self.y * (self.penalties.b1 * _reciprocal(self.field.s))[..., None]

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from J and Y."""
        self.J = state[0]
        self.y = self.field.s[..., None] / self.penalties.b1 * state[1]
        self.A = self.J + self.y
        return gram(self.A)


class RepresentFast(RepresentReduced):
    """The same for NumPy arrays, with the elementwise half of a step in two passes."""

    def __init__(
        self, field: Reduced, penalties: Penalties, J: Array, Y: Array, size: int = 0
    ) -> None:
        super().__init__(field, penalties, np.ascontiguousarray(J), Y)
        self._noise_pass, self._update_pass = passes(size)

    def step(self, F: Array) -> Array:
        """Do one iteration."""
        real, field = _real_view, self.field
        rho, tau = self._rho, self._tau
        x, J, y = real(self._x), real(self.J), real(self.y)
        g = np.empty_like(J)
        sums = self._noise_pass(x, J, y, rho, self._weights, g)
        pairs = g.shape[-1] // self.J.shape[-1]
        norms = np.sqrt(sums.reshape(-1, pairs).sum(axis=1))
        offset = None if field.offset is None else field.offset * self.penalties.b2
        f = np.repeat(field.noise.factor(norms, field.lam, offset), pairs)
        D = (tau * (F - _eye(F))) @ self.A
        A = real(self.A)
        self._update_pass(g, f, real(D), J, y, A, rho, tau, self.penalties.relax)
        return gram(self.A)


class RepresentOriginal(Represent):
    """Noise in the original domain: Y and `G = b2 (X - D J) + Y` are kept there."""

    field: Original

    def __init__(self, field: Original, penalties: Penalties, J: Array, Y: Array) -> None:
        self.field = field
        self._prepare(penalties)
        self.load((J, Y))

    def _noise_step(self) -> Array:
        self._Yn = self.field.multiplier(self.G, self.penalties.b2)
        return self.field.pull(self._Yn) * (self.field.s / self.penalties.b1)[..., None]

    def _advance(self, D: Array) -> None:
        change = self._Yn
        change = change - self.Y
        change *= self.penalties.relax
        moved = self.field.push(D * (self.penalties.b2 * self.field.s)[..., None])
        change -= moved
        self.Y += change
        change -= moved
        self.G += change

    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalties."""
        self.G -= self.Y
        self.G *= penalties.b2 / self.penalties.b2
        self.G += self.Y
        return super().set_penalties(penalties)

    def _ball_multiplier(self) -> Array:
        return self.field.multiplier(self.G, self.penalties.b2)

    def noise(self) -> Array:
        """Return `E` on the mask."""
        E = (self.G - self._ball_multiplier()) / self.penalties.b2
        return self.field._seen(E)

    def _product(self, f: tuple[Array, ...], g: tuple[Array, ...]) -> float:
        b1, b2, _ = _fields(self.penalties)
        xp = namespace(f[0])
        coefficients = float(xp.sum(slice_inner(f[0], g[0]) * self.field.omega))
        return b1 * coefficients + super()._product(f, g) / b2

    def state(self) -> tuple[Array, ...]:
        """Return J and Y."""
        return self.J, self.Y

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from J and Y."""
        field, (b1, b2, _) = self.field, _fields(self.penalties)
        self.J, self.Y = state
        self.y = field.pull(self.Y) * (field.s / b1)[..., None]
        self.G = (field.X - field.push(self.J * field.s[..., None])) * b2 + self.Y
        self.A = self.J + self.y
        return gram(self.A)


class Decompose(Block):
    """Douglas-Rachford for the identity dictionary, in either field."""

    u: Array
    B: Array
    q: Array

    def __init__(self, field: Reduced | Original, penalties: Penalties, u: Array) -> None:
        self.field, self.penalties = field, penalties
        self.load((u,))

    def step(self, F: Array) -> Array:
        """Do one iteration."""
        move = self.field.push(F @ self.A)
        move = move - self.B
        move *= self.penalties.relax
        self.u += move
        return self._noise_step()

    def _noise_step(self) -> Array:
        b = self.penalties.b1
        self.q = self.field.multiplier(self.field.residual(self.u) * b, b) / b
        self.B = self.u + self.q
        self.A = self.field.pull(self.B + self.q)
        return gram(self.A)

    def set_penalties(self, penalties: Penalties) -> Array:
        """Change the penalty, keeping B and the multiplier."""
        self.u = self.B - self.q * (self.penalties.b1 / penalties.b1)
        self.penalties = penalties
        return self._noise_step()

    def measure(self, F: Array) -> np.ndarray:
        """Return the balance of `Z = B`."""
        field, (b, _, a) = self.field, _fields(self.penalties)
        Z = F @ self.A
        B = field.pull(self.B)
        u = self.u + a * field.push(Z - B)
        q = field.multiplier(field.residual(u) * b, b) / b
        Bn = field.pull(u + q)
        square = field.square
        row = [
            square(Z - Bn),
            max(square(Z), square(Bn)),
            b**2 * square(Bn - B),
            b**2 * square(field.pull(q)),
        ]
        return np.array([row])

    def candidate(self, F: Array) -> Candidate:
        """Take `Z = F A`, made to fit the data where the noise is none."""
        field = self.field
        self.Z, primal = F @ self.A, None
        T = field.push(self.Z)
        if isinstance(field, Original) and field.noise.name == "exact":
            T = field.filled(T)
            self.Z = field.pull(T)
            primal = gram(self.Z)
        dual = self._set_dual(self.q * self.penalties.b1)
        return Candidate(field.misfit(T), dual, primal)

    def noise(self) -> Array:
        """Return `E = X - B`, exactly zero where the multiplier is inside its ball."""
        b = self.penalties.b1
        G = self.field.residual(self.u) * b
        return (G - self.field.multiplier(G, b)) / b

    def state(self) -> tuple[Array, ...]:
        """Return u."""
        return (self.u,)

    def load(self, state: tuple[Array, ...]) -> Array:
        """Continue from u."""
        (self.u,) = state
        return self._noise_step()


def gram(A: Array) -> Array:
    """Return the lower triangles of `A_k A_k^H`.

    With NumPy the upper right quarter is left zero, which saves a quarter of the products.
    """
    Ah = slice_adjoint(A)
    K, r = A.shape[:2]
    if not isinstance(A, np.ndarray) or r < 16:
        return A @ Ah
    G = np.zeros((K, r, r), A.dtype)
    h = r // 2
    np.matmul(A[:, :h], Ah[:, :, :h], out=G[:, :h, :h])
    np.matmul(A[:, h:], Ah, out=G[:, h:])
    return G


def _copy(A: Array) -> Array:
    return namespace(A).asarray(A, copy=True)


def _real_view(A: np.ndarray) -> np.ndarray:
    """Return the array itself, or a complex one as real with twice as many columns."""
    return A.view(A.real.dtype)


def _eye(F: Array) -> Array:
    return namespace(F).eye(F.shape[-1], dtype=F.dtype, device=F.device)


def _sum(A: Array, B: Array, out: Array) -> Array:
    return np.add(A, B, out=out) if isinstance(out, np.ndarray) else A + B


def _reciprocal(s: Array) -> Array:
    """Return 1/s, zero where s is."""
    xp = namespace(s)
    safe = xp.where(s > 0, s, xp.ones_like(s))
    return xp.where(s > 0, 1 / safe, xp.zeros_like(s))


def _fields(penalties: Penalties) -> tuple[float, float, float]:
    return penalties.b1, penalties.b2, penalties.relax
