"""What a reader returns, and what readers share."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of writing, and can make a name look like another one."""


def printable(text: str) -> str:
    r"""Return text with escapes for what cannot be printed, or should not be.

    Bytes of file names that are no UTF-8 become ``\xe9``; control characters, ends of lines and
    marks of direction become ``\n``, ``\x1b``, ``\u202e`` as in Python.

    >>> print(printable("caf\udce9 \x1b[2J"))
    caf\xe9 \x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte, by surrogateescape
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in MARKS or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape").decode()
    return character


@dataclass(frozen=True, eq=False)
class Loaded:
    """Samples from a file or a folder.

    Attributes
    ----------
    X : float array of shape (n_samples, ...)
        Samples first; NaN marks a missing entry.
    names : tuple of str
        One for each sample: file names, or what the file calls them, or 0, 1, ... `printable`.
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

    def __post_init__(self) -> None:
        for name in ("names", "notes"):
            object.__setattr__(self, name, tuple(map(printable, getattr(self, name))))
        skipped = tuple((printable(name), printable(reason)) for name, reason in self.skipped)
        object.__setattr__(self, "skipped", skipped)


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
