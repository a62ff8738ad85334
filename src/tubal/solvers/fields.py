"""Where the noise lives: the two domains in which a block takes its noise step.

For whole-sample noise on complete data norms are the same in the coordinates of `tubal.reduction`,
so nothing of size n1 and no transform is needed (`Reduced`). Entry-wise noise and missing entries
need the tensor itself (`Original`): coordinates are pushed there and multipliers pulled back. In
both the samples are the last axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tubal.algebra import slice_adjoint
from tubal.input import Array, namespace
from tubal.noise import L21, Noise, sample_norms
from tubal.transforms import Transform


class Field(ABC):
    """The data of one block and its noise.

    Attributes
    ----------
    s : array of shape (K, r)
        What the dictionary does in coordinates.
    omega : array of shape (K,)
        Slice weights over tau.
    lam : float
        Weight of the noise.
    """

    s: Array
    omega: Array
    lam: float
    exact: bool = False
    """Whether there is no noise."""

    @abstractmethod
    def pull(self, Y: Array) -> Array:
        """Return `U^H L(Y)`: the coordinates of a tensor of the field."""

    @abstractmethod
    def push(self, W: Array) -> Array:
        """Return `L^-1(U W)`: the tensor of the field with these coordinates."""

    @abstractmethod
    def residual(self, T: Array) -> Array:
        """Return `X - T`, zero where nothing is observed."""

    @abstractmethod
    def misfit(self, T: Array) -> float:
        """Return `g(X - T)` on what is observed; may overwrite `T`."""

    @abstractmethod
    def multiplier(self, G: Array, b: float) -> Array:
        """Return `G - b prox_{lam/b g}(G / b)`: zero off the mask, inside the dual ball.

        May overwrite `G`.
        """

    @abstractmethod
    def ball(self, Y: Array) -> Array:
        """Project onto the mask and the ball of the dual norm; may overwrite `Y`."""

    @abstractmethod
    def inner(self, Y: Array) -> Array:
        """Return `<X, Y>`: slice by slice without weights, or as one number (an array of one)."""

    def offset_value(self, Y: Array) -> float:
        """Return the dual value of what lies outside the range of the dictionary."""
        return 0.0

    def filled(self, T: Array) -> Array:
        """Return `T` with the observed entries set to the data."""
        raise NotImplementedError

    def square(self, W: Array) -> float:
        """Return the squared norm of a tensor given by its slices."""
        return float(namespace(W).sum(self.omega * slice_inner(W, W)))


class Reduced(Field):
    """Whole-sample noise on complete data, in coordinates."""

    def __init__(
        self, s: Array, omega: Array, lam: float, x: Array, offset: Array | None = None
    ) -> None:
        self.s, self.omega, self.lam, self.x, self.offset = s, omega, lam, x, offset
        self.noise = L21()
        self.weights = namespace(x).ones_like(s) * omega[:, None]

    def pull(self, Y: Array) -> Array:
        """Return `Y`."""
        return Y

    def push(self, W: Array) -> Array:
        """Return `W`."""
        return W

    def residual(self, T: Array) -> Array:
        """Return `x - T`."""
        return self.x - T

    def misfit(self, T: Array) -> float:
        """Return the sum of the norms of the samples of `x - T`, offsets included."""
        T -= self.x
        return self.noise.value(T, self.weights, self.offset)

    def multiplier(self, G: Array, b: float) -> Array:
        """Scale every sample of `G` into the ball."""
        offset = None if self.offset is None else self.offset * b
        G *= self.noise.factor(sample_norms(G, self.weights), self.lam, offset)
        return G

    def ball(self, Y: Array) -> Array:
        """Scale every sample of `Y` that is outside the ball onto its surface."""
        Y *= self.noise.factor(sample_norms(Y, self.weights), self.lam)
        return Y

    def inner(self, Y: Array) -> Array:
        """Return `Re <x_k, Y_k>` for every slice."""
        return slice_inner(self.x, Y)

    def offset_value(self, Y: Array) -> float:
        """Return `sum_j offset_j sqrt(lam^2 - ||Y_j||^2)`."""
        if self.offset is None:
            return 0.0
        xp = namespace(Y)
        left = self.lam**2 - sample_norms(Y, self.weights) ** 2
        return float(xp.sum(self.offset * xp.sqrt(xp.clip(left, 0.0, None))))


class Original(Field):
    """Entry-wise noise or missing entries, on tensors of shape (*sizes, n1, b)."""

    def __init__(
        self,
        s: Array,
        omega: Array,
        lam: float,
        X: Array,
        observed: Array | None,
        U: Array | None,
        transform: Transform,
        noise: Noise,
    ) -> None:
        self.s, self.omega, self.lam, self.X, self.observed = s, omega, lam, X, observed
        self.U, self.transform, self.noise = U, transform, noise
        self.Uh = None if U is None else slice_adjoint(U)
        self.exact = noise.name == "exact"

    def pull(self, Y: Array) -> Array:
        """Transform and turn to coordinates."""
        hat = self.transform.forward(Y, axis=0)
        return hat if self.Uh is None else self.Uh @ hat

    def push(self, W: Array) -> Array:
        """Turn from coordinates and transform back."""
        return self.transform.inverse(W if self.U is None else self.U @ W, axis=0)

    def residual(self, T: Array) -> Array:
        """Return `X - T` on the mask."""
        return self.seen(self.X - T)

    def misfit(self, T: Array) -> float:
        """Return `g(X - T)` on the mask."""
        return self.noise.value(self.residual(T))

    def multiplier(self, G: Array, b: float) -> Array:
        """Project onto mask and ball."""
        return self.ball(G)

    def ball(self, Y: Array) -> Array:
        """Project onto mask and ball."""
        return self.noise.project(self.seen(Y), self.lam)

    def inner(self, Y: Array) -> Array:
        """Return `<X, Y>` as an array of one number."""
        xp = namespace(Y)
        return xp.reshape(xp.sum(self.X * Y), (1,))

    def filled(self, T: Array) -> Array:
        """Return `T` with the observed entries set to the data."""
        xp = namespace(T)
        return self.X if self.observed is None else xp.where(self.observed, self.X, T)

    def seen(self, A: Array) -> Array:
        """Set the entries that are not observed to zero."""
        if self.observed is None:
            return A
        xp = namespace(A)
        return xp.where(self.observed, A, xp.zeros_like(A))


LARGE = 4096
"""Slices of more numbers than this are worth a call of BLAS each."""


def slice_inner(A: Array, B: Array) -> Array:
    """Return `Re <A_k, B_k>` for every slice."""
    if isinstance(A, np.ndarray) and A.flags.c_contiguous and B.flags.c_contiguous:
        if A[0].size > LARGE:
            return np.array([np.vdot(a, b).real for a, b in zip(A, B, strict=True)])
        real = A.real.dtype
        flat = (C.reshape(len(C), -1).view(real) for C in (A, B))
        return np.einsum("ki,ki->k", *flat)
    xp = namespace(A)
    if xp.isdtype(A.dtype, "complex floating"):
        return xp.sum(xp.real(A) * xp.real(B) + xp.imag(A) * xp.imag(B), axis=(1, 2))
    return xp.sum(A * B, axis=(1, 2))
