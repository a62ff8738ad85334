"""What a reader returns, and what readers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Loaded:
    """Samples from a file or a folder.

    Attributes
    ----------
    X : float array of shape (n_samples, ...)
        Samples first; NaN marks a missing entry.
    names : tuple of str
        One for each sample: file names, or what the file calls them, or 0, 1, ...
    pictures : bool
        Whether the samples are pictures: (height, width) or (height, width, 3).
    notes : tuple of str
        Sentences for the user: what was guessed or left out.
    skipped : tuple of (str, str)
        Files that could not be read, each with the reason.
    """

    X: np.ndarray
    names: tuple[str, ...]
    pictures: bool = False
    notes: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Stored:
    """An array in a file, not read yet.

    Attributes
    ----------
    name : str
        Empty when the file has only this one.
    shape : tuple of int
    dtype : numpy.dtype
    read : callable
        Returns the array.
    dims : tuple of str
        Names of the axes, where the format has them.
    labels : mapping
        Axis name -> names of its entries, where the format has them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], np.ndarray]
    dims: tuple[str, ...] = ()
    labels: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, array: np.ndarray) -> Stored:
        """Return an array that is read already."""
        return cls(name, array.shape, array.dtype, lambda: array)

    @property
    def axes(self) -> int:
        """Number of axes longer than 1."""
        return sum(length > 1 for length in self.shape)

    @property
    def is_numeric(self) -> bool:
        """Whether it holds real numbers; True and False are no samples but masks."""
        return self.dtype.kind in "iuf"


def by(shape: tuple[int, ...]) -> str:
    """Write a shape as people do.

    >>> by((112, 92))
    '112 x 92'
    """
    return " x ".join(map(str, shape))
