"""How samples are looked at when they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tubal.input import check_flag
from tubal.scales.combinations import FACTORS, ScaleKernel
from tubal.scales.comparison import Comparison
from tubal.scales.distances import DistanceKernel
from tubal.transforms import Transform, resolve


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

    def is_same(self, other: View) -> bool:
        """Whether axis and transform are the same, names by value and all else as one object."""
        if type(self) is not type(other):
            return False
        mine, its = self.transform, other.transform
        named = isinstance(mine, str) and isinstance(its, str)
        return self.axis == other.axis and (mine == its if named else mine is its)

    def arrange(self, values: np.ndarray) -> np.ndarray:
        """Return samples `(n, n1, *sizes)` in this arrangement."""
        if self.axis is None:
            return values.reshape(len(values), -1, 1)
        return np.moveaxis(values, 1 + self.axis, 1)

    def plan(self, arranged: np.ndarray) -> Transform:
        """Return the transform for arranged samples."""
        return resolve(self.transform, arranged.shape[2:], data=arranged, random_state=0)

    def compare(
        self, values: np.ndarray, sizes: np.ndarray, factors: Sequence[float] = FACTORS
    ) -> Comparison:
        """Return the similarities of complete samples `(n, n1, *sizes)`.

        `sizes` is what the samples were divided by; `factors` as for `MultiScale`.
        """
        return ScaleKernel.of(values, self, factors)


@dataclass(frozen=True)
class Distance(View):
    """Samples as points: those are similar that are near, not those that depend on each other.

    Attributes
    ----------
    sized : bool
        Whether samples have the size that they were given with, or unit norm, as in the fit.
    """

    transform: Any = field(default="none", init=False)
    axis: int | None = field(default=None, init=False)
    sized: bool = False

    def __post_init__(self) -> None:
        check_flag("sized", self.sized)

    def __str__(self) -> str:
        return "distance" if self.sized else "distance at unit norm"

    def is_same(self, other: View) -> bool:
        """Whether the other one measures the same distances."""
        return self == other

    def compare(
        self, values: np.ndarray, sizes: np.ndarray, factors: Sequence[float] = FACTORS
    ) -> Comparison:
        """Return the similarities; there are no ranks, so `factors` mean nothing here."""
        return DistanceKernel.of(values, sizes if self.sized else None)
