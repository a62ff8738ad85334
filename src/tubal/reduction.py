"""Coordinates in which the dictionary is diagonal.

Per slice `D_k = U_k S_k V_k^H` (skinny SVD). With `Z = V Z'` the program only sees `D Z = U S Z'`,
so the unknown is `Z'` (r x n2) and the dictionary is the diagonal `S`. Frobenius norms are the same
in the coordinates of U, so for whole-sample noise on complete data the loop needs neither U, nor
the transform, nor any array of size n1: the data is `x = U^H X`. What X holds outside the range of
the dictionary can not be explained; its norm, sample by sample, is the `offset`.

Slices of lower rank than the largest keep rows of zeros: they stay zero in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tubal.algebra import slice_adjoint, slice_svd
from tubal.input import Array, Samples, device_of, namespace, tubes_first
from tubal.noise import sample_norms
from tubal.transforms import Transform


@dataclass(frozen=True, eq=False)
class Reduction:
    """A dictionary and the data in its coordinates.

    Attributes
    ----------
    transform : Transform
    U : array of shape (K, n1, r)
        Orthonormal columns per slice (zero columns pad slices of lower rank).
    s : array of shape (K, r)
        What the dictionary does in these coordinates: its singular values, ones for the identity.
    x : array of shape (K, r, n2)
        The data, `U^H X`.
    V : array of shape (K, p, r) or None
        Right singular vectors of the dictionary; None for the data itself (they are `(x / s)^H`)
        and for the identity (there `Z = U Z'`).
    kind : {"data", "identity", "array"}
    offset : array of shape (n2,) or None
        Norms of the parts of the samples outside the range of the dictionary.
    values : array of shape (K, r)
        Singular values of the data itself, or of the dictionary when it is an array.
    """

    transform: Transform
    U: Array
    s: Array
    x: Array
    V: Array | None
    kind: str
    offset: Array | None
    values: Array

    @property
    def omega(self) -> Array:
        """Slice weights over tau, as an array of the data's library."""
        xp = namespace(self.x)
        omega = self.transform.weights / self.transform.scale
        return xp.asarray(omega, dtype=self.s.dtype, device=device_of(self.x))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of slices, rank and number of samples."""
        K, r, n2 = self.x.shape
        return int(K), int(r), int(n2)

    def part(self, span: slice) -> Reduction:
        """Return the coordinates of some of the samples; without V, which only Z itself needs."""
        offset = None if self.offset is None else self.offset[span]
        return replace(self, x=self.x[:, :, span], offset=offset, V=None)

    def lift(self, coordinates: Array) -> Array:
        """Return the tensor (*sizes, n1, b) with these coordinates."""
        return self.transform.inverse(self.U @ coordinates, axis=0)

    def left(self) -> Array:
        """Return the factor that lifts coordinates to coefficients, `Z_k = left_k Z'_k`."""
        if self.kind == "identity":
            return self.U
        return self.V if self.V is not None else slice_adjoint(self.rows())

    def rows(self) -> Array:
        """Return `V^H` of the data's own t-SVD: x over its singular values, zero where they are."""
        return self.x * reciprocal(self.values)[..., None]


def reduce(data: Samples, transform: Transform, dictionary: Samples | str) -> Reduction:
    """Bring data and dictionary ("data", "identity" or samples) to coordinates."""
    X = slices(transform, data.values)
    if isinstance(dictionary, str):
        U, s, x = skinny_svd(transform, X)
        x *= s[..., None]
        ones = namespace(s).ones_like(s)
        singular = s if dictionary == "data" else ones
        return Reduction(transform, U, singular, x, None, dictionary, None, s)
    D = slices(transform, dictionary.values)
    U, s, Vh = skinny_svd(transform, D)
    x = slice_adjoint(U) @ X
    outside = sample_norms(X - U @ x, _column(namespace(X), transform, X))
    scale = float(namespace(outside).max(sample_norms(X, _column(namespace(X), transform, X))))
    rounding = 10 * max(X.shape) * namespace(outside).finfo(outside.dtype).eps * scale
    significant = bool(namespace(outside).any(outside > rounding))
    return Reduction(
        transform, U, s, x, slice_adjoint(Vh), "array", outside if significant else None, s
    )


def slices(transform: Transform, values: Array) -> Array:
    """Return the slices (K, n1, n2) of samples-first values (n2, n1, *sizes)."""
    return transform.forward(tubes_first(values), axis=0)


def reciprocal(s: Array) -> Array:
    """Return 1/s, zero where s is."""
    xp = namespace(s)
    safe = xp.where(s > 0, s, xp.ones_like(s))
    return xp.where(s > 0, 1 / safe, xp.zeros_like(s))


def skinny_svd(transform: Transform, X: Array) -> tuple[Array, Array, Array]:
    """SVD of every slice, cut at the largest numerical rank; singular values below count as zero.

    The rank rule is that of `tubal.algebra`: `max(n1, n2, K) * eps` times the largest singular
    value of all slices.
    """
    U, s, Vh = slice_svd(transform, X)
    xp = namespace(s)
    kept = s > max(X.shape) * xp.finfo(s.dtype).eps * xp.max(s)
    r = max(1, int(xp.max(xp.sum(xp.astype(kept, xp.int64), axis=-1))))
    kept = xp.astype(kept[:, :r], s.dtype)
    U, s, Vh = U[:, :, :r], s[:, :r] * kept, Vh[:, :r, :]
    U = U * kept[:, None, :]
    Vh *= kept[..., None]
    return U, s, Vh


def _column(xp: Any, transform: Transform, X: Array) -> Array:
    omega = transform.weights / transform.scale
    rows = np.repeat(omega[:, None], X.shape[1], axis=1)
    real = xp.float32 if X.dtype in (xp.complex64, xp.float32) else xp.float64
    return xp.asarray(rows, dtype=real, device=device_of(X))
