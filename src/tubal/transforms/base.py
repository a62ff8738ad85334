"""What every transform is."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from math import prod
from typing import Any

import numpy as np

from tubal.input import Array


class Transform(ABC):
    """One orthogonal transform along one or more axes.

    Attributes
    ----------
    sizes : tuple of int or None
        Lengths of the axes it runs along; None while it is a rule without a size.
    """

    sizes: tuple[int, ...] | None = None
    is_real: bool = True
    """Whether real input has real slices."""

    @abstractmethod
    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform for tubes of length `n3`.

        `data`, with tubes along the last axis, and `observed` (bool, same shape) are read by
        transforms that are fitted; the others pass them by.
        """

    @abstractmethod
    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform the tubes of `A`, which lie along `axis` (-1 or 0)."""

    @abstractmethod
    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""

    def full(self) -> Transform:
        """Return the transform that keeps every slice, as complex data needs."""
        return self

    @property
    def reproducible(self) -> bool:
        """Whether binding the same rule again gives the same transform."""
        return True

    @property
    def n3(self) -> int:
        """Number of entries of a tube (the product of `sizes`)."""
        if self.sizes is None:
            msg = f"{self!r} has no size yet: bind it first, for example {self!r}.bind(8)"
            raise ValueError(msg)
        return prod(self.sizes)

    @property
    def scale(self) -> float:
        """The tau of `L L^H = tau I`."""
        return 1.0

    @property
    def weights(self) -> np.ndarray:
        """How often each kept slice counts: 2 for one that stands for a conjugate pair."""
        return np.ones(self.n3)

    @property
    def n_slices(self) -> int:
        """Number of slices kept."""
        return len(self.weights)

    @property
    def keeps_real(self) -> bool:
        """Whether the t-product of real tensors is real: a real L, or the DFT."""
        return self.is_real

    @property
    def real_slices(self) -> np.ndarray:
        """Indices of the complex-typed slices that are real when the data is."""
        return np.empty(0, dtype=np.intp)

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """For each of the n3 slices: the kept slice it comes from, and whether it is conjugated."""
        return np.arange(self.n3), np.zeros(self.n3, dtype=bool)

    @property
    def matrix(self) -> np.ndarray:
        """The n3 x n3 matrix L, tubes flattened in C order."""
        unit = np.eye(self.n3).reshape(self.n3, *(self.sizes or ()))
        full = self.full()
        return np.ascontiguousarray(full.forward(unit if full.is_real else unit + 0j).T)

    def _check_axis(self, A: Array, axis: int, length: int) -> None:
        if axis not in (0, -1):
            msg = f"axis must be 0 or -1, got {axis!r}"
            raise ValueError(msg)
        if A.shape[axis] != length:
            msg = f"{self!r} needs {length} entries along axis {axis}, got shape {tuple(A.shape)}"
            raise ValueError(msg)


class Sized(Transform):
    """A transform along one axis whose length is all it needs to know."""

    def __init__(self, n3: int | None = None) -> None:
        self.sizes = None if n3 is None else (check_size(n3),)

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform for tubes of length `n3`."""
        return rebind(self, n3)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.sizes is None else self.sizes[0]})"


def check_size(n3: Any) -> int:
    """Return a size, or raise a ValueError."""
    if isinstance(n3, bool) or not isinstance(n3, (int, np.integer)) or n3 < 1:
        msg = f"the size of a transform must be a positive integer, got {n3!r}"
        raise ValueError(msg)
    return int(n3)


def check_same_size(transform: Transform, n3: int) -> None:
    """Raise a ValueError unless the transform has this size."""
    if transform.n3 != n3:
        msg = f"transform {transform!r} is for tubes of length {transform.n3}, the data has {n3}"
        raise ValueError(msg)


def rebind(transform: Sized, n3: int) -> Sized:
    """Return the transform for tubes of length `n3`."""
    if transform.sizes is not None:
        check_same_size(transform, n3)
    bound = copy.copy(transform)
    bound.sizes = (check_size(n3),)
    return bound
