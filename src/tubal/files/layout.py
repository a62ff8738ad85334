"""From the arrays of a file to samples: which array, which axis, which shape, which mask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tubal.files.loaded import Loaded, Stored, by

LABELS = frozenset(
    "class classes gnd gt gtruth ground_truth label labels target targets truth y".split()
)
NAMES = frozenset("file filename filenames files id ids name names".split())
SAMPLE_AXES = ("sample", "samples", "observation", "observations", "obs", "record", "time")


@dataclass(frozen=True)
class Layout:
    """How the user says that samples lie in a file; None is guessed.

    Attributes
    ----------
    key : str or None
        Name of the array.
    sample_axis : int or None
    shape : tuple of int or None
        Shape of a sample, for rows of a table.
    max_memory : int or None
        Bytes that may be needed; None is what there is.
    """

    key: str | None = None
    sample_axis: int | None = None
    shape: tuple[int, ...] | None = None
    max_memory: int | None = None


def arrange(path: Path, arrays: Sequence[Stored], layout: Layout) -> tuple[Loaded, int]:
    """Choose an array, bring its samples first; return the axis where they were too."""
    stored = choose(path, arrays, layout.key)
    others = [other for other in arrays if other is not stored]
    axis, why = _sample_axis(path, stored, others, layout.sample_axis)
    values = as_floats(stored.load(path, layout.max_memory))
    X = np.ascontiguousarray(np.moveaxis(values, axis, 0))
    what = f"'{stored.name}' ({by(stored.shape)})" if stored.name else by(stored.shape)
    notes = [f"{what}: axis {axis} holds the {len(X)} samples, {why}"]
    unused = [other.name for other in others if _is_labels(other)]
    if unused:
        notes.append(f"not used: {', '.join(map(repr, unused))}")
    names = _names(path, stored, others, axis, len(X), layout.max_memory)
    return Loaded(X, names, notes=tuple(notes)), axis


def choose(path: Path, arrays: Sequence[Stored], key: str | None) -> Stored:
    """Return the array that is asked for, or the only one that can be samples."""
    listing = ", ".join(f"{a.name} ({by(a.shape)})" for a in arrays if a.name) or "one array"
    if key is not None:
        found = [array for array in arrays if array.name == key]
        if not found:
            msg = f"--key {key} is not in {path}, which holds {listing}"
            raise ValueError(msg)
        return _check_samples(path, found[0])
    usable = [array for array in arrays if array.is_numeric and array.axes >= 2]
    if len(usable) == 1:
        return usable[0]
    if len(arrays) == 1:
        return _check_samples(path, arrays[0])
    if not usable:
        what = f"only {listing}" if arrays else "no array"
        msg = f"{path} holds no array of numbers with 2 or more axes, {what}"
        raise ValueError(msg)
    names = ", ".join(f"{array.name} ({by(array.shape)})" for array in usable)
    msg = f"{path} holds several arrays, choose one with --key: {names}"
    raise ValueError(msg)


def _check_samples(path: Path, array: Stored) -> Stored:
    """Refuse what cannot be samples."""
    if not array.is_numeric or len(array.shape) < 2:
        what = f"'{array.name}' in {path}" if array.name else str(path)
        msg = (
            f"{what} has {array.dtype} entries and {len(array.shape)} axes ({by(array.shape)}); "
            "samples are real numbers with 2 or more axes"
        )
        raise ValueError(msg)
    return array


def _sample_axis(
    path: Path, stored: Stored, others: Sequence[Stored], given: int | None
) -> tuple[int, str]:
    """Return the axis of the samples and why it is this one."""
    shape = stored.shape
    if given is not None:
        if not -len(shape) <= given < len(shape):
            msg = f"--sample-axis {given} does not exist: the array is {by(shape)}"
            raise ValueError(msg)
        return given % len(shape), "as you said"
    hint = "; --sample-axis says otherwise"
    for other in others:
        length = max(other.shape, default=0)
        if _is_labels(other) and shape.count(length) == 1:
            return shape.index(length), f"since '{other.name}' has {length} entries{hint}"
    for name in SAMPLE_AXES:
        if name in stored.dims:
            return stored.dims.index(name), f"since its name is '{name}'{hint}"
    if path.suffix.lower() == ".mat" and stored.axes >= 3:
        return len(shape) - 1, f"a guess, as is usual in MATLAB{hint}"
    return 0, f"as is usual{hint}"


def _is_labels(stored: Stored) -> bool:
    return stored.name.split("/")[-1].lower() in LABELS and stored.axes <= 1


def _names(
    path: Path,
    stored: Stored,
    others: Sequence[Stored],
    axis: int,
    n: int,
    max_memory: int | None,
) -> tuple[str, ...]:
    """Return the names that a file gives its samples, else their numbers."""
    if stored.dims and stored.dims[axis] in stored.labels:
        return tuple(_plain(value) for value in stored.labels[stored.dims[axis]])
    for other in others:
        if other.name.lower() in NAMES and other.shape == (n,) and other.dtype.kind in "USOT":
            return tuple(map(_plain, other.load(path, max_memory)))
    return numbered(n)


def _plain(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else str(value)


def numbered(n: int) -> tuple[str, ...]:
    """Return names for samples that have none."""
    return tuple(map(str, range(n)))


def as_floats(array: np.ndarray) -> np.ndarray:
    """Return numbers as floats in the byte order of this machine."""
    values = np.asarray(array)
    if values.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        values = values.astype(float)
    return values


def reshape(X: np.ndarray, shape: tuple[int, ...] | None, *, matlab: bool) -> np.ndarray:
    """Give samples the shape that the user wants; MATLAB writes columns one after the other."""
    if shape is None:
        return X
    size = int(np.prod(X.shape[1:]))
    if size != int(np.prod(shape)):
        msg = f"--shape {'x'.join(map(str, shape))} does not fit samples of {size} entries"
        raise ValueError(msg)
    if matlab and X.ndim == 2:
        reverse = X.reshape(len(X), *shape[::-1])
        return np.ascontiguousarray(reverse.transpose(0, *range(len(shape), 0, -1)))
    return X.reshape(len(X), *shape)


def hide(X: np.ndarray, mask: np.ndarray, axis: int, path: Path) -> np.ndarray:
    """Return samples with NaN wherever the mask is zero.

    The mask lies as the samples do in their file or here, or is one for all samples; that of
    pictures may do without the axis of colours.
    """
    observed = mask != 0
    if mask.dtype.kind == "f":
        observed &= ~np.isnan(mask)
    moved = np.moveaxis(observed, axis, 0) if axis < observed.ndim else observed
    for trial in (moved, observed):
        if _longer(trial.shape) == _longer(X.shape):
            return np.where(trial.reshape(X.shape), X, np.nan)
    if observed.shape == X.shape[1:]:
        return np.where(observed, X, np.nan)
    if X.ndim == 4 and observed.shape in (X.shape[:-1], X.shape[1:-1]):
        return np.where(observed[..., None], X, np.nan)
    msg = (
        f"--mask {path} is {by(mask.shape)}, the samples are {by(X.shape)}: it must have the shape "
        "of the samples, or of one of them"
    )
    raise ValueError(msg)


def _longer(shape: tuple[int, ...]) -> list[int]:
    return [length for length in shape if length != 1]
