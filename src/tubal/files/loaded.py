"""What a reader returns, and what readers share."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tubal._printable import printable


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


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a library says about a damaged file into one line with its name.

    The readers of other libraries raise what they happen to meet: there is no list of it. What
    they warn of is theirs to judge: the samples are checked in any case.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MemoryError as error:
        msg = f"{path}: {error}" if str(error) else str(path)
        raise MemoryError(msg) from None
    except Refused:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        msg = f"{path} is not {what}: {lines[0] if lines else type(error).__name__}"
        raise ValueError(msg) from None


class Refused(ValueError):
    """Says already what is wrong, and with which file."""


def refuse(message: str) -> NoReturn:
    """Refuse a file in words of our own."""
    raise Refused(message)


def check_memory(path: Path, needed: int, max_memory: int | None) -> None:
    """Refuse what would not fit into memory, before it is read."""
    limit = memory_left() if max_memory is None else max_memory
    if limit is not None and needed > limit:
        which = "--max-memory allows" if max_memory is not None else "there is room for"
        refuse(f"{path} needs {gigabytes(needed)} of memory, {which} {gigabytes(limit)}")


def memory_left() -> int | None:
    """Return how many bytes can still be had, None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return 1024 * int(text.partition("MemAvailable:")[2].split()[0])
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def gigabytes(size: int) -> str:
    """Write a number of bytes.

    >>> gigabytes(19_700_000_000), gigabytes(1500)
    ('19.7 GB', '1.5e-06 GB')
    """
    return f"{size / 1e9:.3g} GB"


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

    def load(self, path: Path, max_memory: int | None) -> np.ndarray:
        """Read the array, if it fits into memory as it is and as floats."""
        size = math.prod(self.shape)
        check_memory(path, size * (self.dtype.itemsize + 8 * self.is_numeric), max_memory)
        with reading(path, "whole"):
            return self.read()

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
