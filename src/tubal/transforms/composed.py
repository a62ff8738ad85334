"""Transforms along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tubal.input import Array, device_of, namespace
from tubal.transforms.base import Transform, check_same_size
from tubal.transforms.fast import Fourier


class Composed(Transform):
    """One transform for each of several trailing axes; its slices are flattened in C order.

    Of real data under one or more DFTs one slice of each conjugate pair is kept, provided the other
    transforms are real.

    >>> from tubal.transforms import Cosine
    >>> t = Composed([Fourier(4), Cosine(3)])
    >>> t.sizes, t.n_slices, t.scale
    ((4, 3), 9, 4.0)
    """

    def __init__(self, axes: Sequence[Transform]) -> None:
        self.axes = tuple(axes)
        self.sizes = tuple(axis.n3 for axis in self.axes)
        fourier = [i for i, axis in enumerate(self.axes) if isinstance(axis, Fourier)]
        halved = [i for i in fourier if self.axes[i].half]  # type: ignore[attr-defined]
        others_real = all(axis.is_real for axis in self.axes if not isinstance(axis, Fourier))
        self.is_real = not fourier and others_real
        self._fourier = fourier
        # The DFT of the last Fourier axis meets real data first and gives half a spectrum.
        self._half = halved[-1] if halved and len(halved) == len(fourier) and others_real else None
        self._steps = tuple(
            axis if i == self._half else axis.full() for i, axis in enumerate(self.axes)
        )

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform; `n3` must be the product of its sizes."""
        check_same_size(self, n3)
        return self

    def full(self) -> Transform:
        """Return the transform that keeps every slice."""
        return Composed([axis.full() for axis in self.axes])

    @property
    def keeps_real(self) -> bool:
        """Whether all axes do."""
        return all(axis.keeps_real for axis in self.axes)

    @property
    def reproducible(self) -> bool:
        """Whether all axes are."""
        return all(axis.reproducible for axis in self.axes)

    @property
    def scale(self) -> float:
        """The product of the scales of the axes."""
        return prod(axis.scale for axis in self.axes)

    @property
    def weights(self) -> np.ndarray:
        """How often each kept slice counts."""
        return np.bincount(self.expansion[0]).astype(float)

    @property
    def real_slices(self) -> np.ndarray:
        """Kept slices that are their own conjugate."""
        if self._half is None:
            return np.empty(0, dtype=np.intp)
        grid = np.arange(self.n3).reshape(self.sizes or ())
        own = grid[self._twin_index()] == grid
        return np.unique(self.expansion[0][own.ravel()])

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """For each of the n3 slices: the kept slice it comes from, and whether it is conjugated."""
        return self._tables[1], self._tables[2]

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform `A` along its last axes (or its first, `axis=0`); slices come flattened."""
        A, first, axis = self._open(A, axis, self.sizes or ())
        order = sorted(range(len(self._steps)), key=lambda i: i != self._half)
        for i in order:
            A = _on_axis(self._steps[i].forward, A, first + i)
        A = self._flatten(A, axis, first)
        keep = self._tables[0]
        return A if len(keep) == A.shape[axis] else _take(A, keep, axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""
        self._check_axis(A, axis, self.n_slices)
        xp = namespace(A)
        grid = self._grid
        index, conjugate = (table.reshape(self.sizes or ()) for table in self.expansion)
        part = tuple(slice(0, n) for n in grid)  # the half spectrum inside the full grid
        index, conjugate = index[part].ravel(), conjugate[part].ravel()
        if len(index) != A.shape[axis]:
            A = _take(A, index, axis)
            if conjugate.any():
                flags = xp.asarray(conjugate, device=device_of(A))
                A = xp.where(flags if axis == -1 else _tall(flags, A), xp.conj(A), A)
        shape = tuple(A.shape[:-1]) + grid if axis == -1 else grid + tuple(A.shape[1:])
        A = xp.reshape(A, shape)
        first = A.ndim - len(grid) if axis == -1 else 0
        for i in sorted(range(len(self._steps)), key=lambda i: i == self._half):
            A = _on_axis(self._steps[i].inverse, A, first + i)
        return A

    @property
    def _grid(self) -> tuple[int, ...]:
        """Number of slices along each axis before twins are dropped."""
        return tuple(step.n_slices for step in self._steps)

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions kept in the computed grid, and the expansion to all n3 slices."""
        sizes = self.sizes or ()
        own = np.arange(self.n3).reshape(sizes)
        if self._half is None:
            return own.ravel(), own.ravel(), np.zeros(self.n3, dtype=bool)
        twin = own[self._twin_index()]
        inside = np.zeros(sizes, dtype=bool)
        inside[tuple(slice(0, n) for n in self._grid)] = True
        # Of a pair keep the member inside the computed half; of two inside, the first.
        keep = inside & ((own <= twin) | ~inside.ravel()[twin])
        position = np.cumsum(keep.ravel()) - 1
        index = np.where(keep, position[own], position[twin])
        computed = np.flatnonzero(keep[tuple(slice(0, n) for n in self._grid)])
        return computed, index.ravel(), ~keep.ravel()

    def _twin_index(self) -> tuple[np.ndarray, ...]:
        axes = [
            (-np.arange(n)) % n if i in self._fourier else np.arange(n)
            for i, n in enumerate(self.sizes or ())
        ]
        return np.ix_(*axes)

    def _open(self, A: Array, axis: int, sizes: tuple[int, ...]) -> tuple[Array, int, int]:
        shape = tuple(A.shape)
        found = shape[len(shape) - len(sizes) :] if axis == -1 else shape[: len(sizes)]
        if axis not in (0, -1) or found != sizes:
            where = "last" if axis == -1 else "first"
            msg = f"{self!r} needs {where} axes of sizes {sizes}, got shape {shape}"
            raise ValueError(msg)
        return A, (len(shape) - len(sizes) if axis == -1 else 0), axis

    def _flatten(self, A: Array, axis: int, first: int) -> Array:
        shape, m = tuple(A.shape), len(self.axes)
        shape = (*shape[:first], -1) if axis == -1 else (prod(shape[:m]), *shape[m:])
        return namespace(A).reshape(A, shape)

    def __repr__(self) -> str:
        return f"Composed({list(self.axes)!r})"


def _on_axis(function: Any, A: Array, axis: int) -> Array:
    xp = namespace(A)
    return xp.moveaxis(function(xp.moveaxis(A, axis, -1)), -1, axis)


def _take(A: Array, index: np.ndarray, axis: int) -> Array:
    xp = namespace(A)
    return xp.take(A, xp.asarray(index, device=device_of(A)), axis=axis)


def _tall(flags: Array, A: Array) -> Array:
    return namespace(A).reshape(flags, (-1,) + (1,) * (A.ndim - 1))
