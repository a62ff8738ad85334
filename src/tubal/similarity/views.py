"""How samples are arranged before a program is solved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from tubal.input import Array, namespace
from tubal.transforms import Transform, resolve

NEIGHBOR, WIDTH = 5, 20
"""The squared width of a Gaussian kernel, as a multiple of the usual distance to a neighbour."""

FAINT = 1e-6
"""Features that have less than this part of the energy of the first one are left out."""

LANDMARKS = 500
"""Largest number of samples that the features of a Gaussian kernel are made from."""


@dataclass(frozen=True)
class View:
    """An arrangement of the samples and a transform.

    Attributes
    ----------
    transform : Any
        What `tubal.transforms.resolve` understands.
    axis : int or None
        Which axis of a sample takes the place of n1, the others follow in their order; None makes
        vectors of the samples.
    """

    transform: Any
    axis: int | None = 0

    def __post_init__(self) -> None:
        if isinstance(self.transform, str):
            resolve(self.transform)
        if self.axis is not None and (type(self.axis) is not int or self.axis < 0):
            msg = f"axis must be None or an integer from 0 on, got {self.axis!r}"
            raise ValueError(msg)

    def __str__(self) -> str:
        if self.axis is None:
            return "none (samples as vectors)"
        what = self.transform if isinstance(self.transform, str) else repr(self.transform)
        return what if self.axis == 0 else f"{what}, axis {self.axis} first"

    def fit(self, values: np.ndarray, sizes: np.ndarray) -> Self:
        """Return the view for samples `(n, n1, *sizes)`, which were divided by `sizes`."""
        return self

    def arrange(self, values: Array, sizes: np.ndarray) -> Array:
        """Return samples `(n, n1, *sizes)`, which were divided by `sizes`, in this arrangement."""
        xp = namespace(values)
        if self.axis is None:
            return xp.reshape(values, (values.shape[0], -1, 1))
        others = [i for i in range(1, values.ndim) if i != 1 + self.axis]
        return xp.permute_dims(values, (0, 1 + self.axis, *others)) if self.axis else values

    def restore(self, arranged: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return arranged samples in the shape `(n1, *sizes)` that they had before."""
        if self.axis is None:
            return arranged.reshape(len(arranged), *shape)
        return np.moveaxis(arranged, 1, 1 + self.axis)

    @property
    def is_linear(self) -> bool:
        """Whether an arranged sample holds the entries of the sample."""
        return True

    def plan(self, arranged: np.ndarray) -> Transform:
        """Return the transform for arranged samples."""
        return resolve(self.transform, arranged.shape[2:], data=arranged, random_state=0)


@dataclass(frozen=True)
class GaussianKernel(View):
    """Rows of a table as points: features whose inner products are a Gaussian kernel.

    The kernel is `exp(-||x - y||^2 / h^2)` of the rows as they were given; `h^2` is 20 times the
    median squared distance to the fifth nearest row. Its features have unit norm, and points in
    different places have different directions: a program on them looks for clusters that are places
    instead of subspaces. The features are those of Nystroem's method on up to 500 rows, and exact
    up to that number.

    Reference: C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines",
    NIPS 2000.
    """

    transform: Any = field(default="none", init=False)
    axis: int | None = field(default=None, init=False)
    landmarks: np.ndarray | None = field(default=None, repr=False, compare=False)
    back: np.ndarray | None = field(default=None, repr=False, compare=False)
    centre: np.ndarray | None = field(default=None, repr=False, compare=False)
    unit: float = field(default=1.0, repr=False, compare=False)
    width: float = field(default=1.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        pass

    def __str__(self) -> str:
        return "Gaussian kernel"

    @property
    def is_linear(self) -> bool:
        """Whether an arranged sample holds the entries of the sample."""
        return False

    def fit(self, values: np.ndarray, sizes: np.ndarray) -> Self:
        """Choose landmarks among the samples, and the width of the kernel."""
        unit = float(np.median(sizes))
        points = _points(values, sizes, unit)
        centre = np.median(points, axis=0)  # the mean of points may lie far from all of them
        chosen = np.random.default_rng(0).permutation(len(points))[:LANDMARKS]
        landmarks = points[np.sort(chosen)] - centre
        squares = _squared_distances(landmarks, landmarks)
        width = WIDTH * _reach(squares)
        energy, Q = np.linalg.eigh(np.exp(-squares / width))
        large = energy > FAINT * energy.max()
        back = Q[:, large] / np.sqrt(energy[large])
        return replace(self, landmarks=landmarks, back=back, centre=centre, unit=unit, width=width)

    def arrange(self, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the features of samples, of unit norm."""
        if self.landmarks is None or self.back is None:
            return self.fit(values, sizes).arrange(values, sizes)
        points = _points(values, sizes, self.unit) - self.centre
        features = np.exp(-_squared_distances(points, self.landmarks) / self.width) @ self.back
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        return (features / np.where(norms > 0, norms, 1)).astype(values.dtype)[..., None]


FAR = 1e12
"""Over the usual size of a row: nothing is farther away than this."""


def _points(values: np.ndarray, sizes: np.ndarray, unit: float) -> np.ndarray:
    """Return rows of unit norm as they were given, over the usual size of a row."""
    with np.errstate(over="ignore"):
        relative = np.minimum(sizes / unit, FAR)
    points: np.ndarray = values.reshape(len(values), -1).astype(float) * relative[:, None]
    return points


def _reach(squares: np.ndarray) -> float:
    """Return the median squared distance to the NEIGHBOR-th nearest point at another place."""
    apart = np.sort(np.where(squares > 0, squares, np.inf), axis=1)
    there = np.isfinite(apart).sum(axis=1)
    some = there > 0
    if not some.any():
        return 1.0
    last = np.minimum(NEIGHBOR, there[some]) - 1  # or the farthest of fewer
    return float(np.median(apart[some, last]))


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return squared distances, zero where they are rounding."""
    sums = np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1)
    squares = sums - 2 * x @ y.T
    return np.where(squares > 1e-12 * sums, squares, 0)
