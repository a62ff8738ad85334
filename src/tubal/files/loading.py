"""`load`: one door for all formats, with every check that can be made before any work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tubal.files import arrays, pictures, tables
from tubal.files.layout import Layout, arrange, choose, hide, reshape
from tubal.files.loaded import Loaded, Stored, by

Reader = Callable[[Path], AbstractContextManager[list[Stored]]]
ARRAYS: dict[str, Reader] = {
    ".npy": arrays.npy,
    ".npz": arrays.npz,
    ".mat": arrays.mat,
    ".h5": arrays.hdf5,
    ".hdf5": arrays.hdf5,
    ".zarr": arrays.zarr,
    ".nc": arrays.netcdf,
    ".nc4": arrays.netcdf,
}
TABLES = {
    ".csv": tables.read_csv,
    ".tsv": tables.read_csv,
    ".txt": tables.read_csv,
    ".parquet": tables.read_parquet,
}
FORMATS = ("a folder of pictures", *ARRAYS, *TABLES)
ZARR_FILES = (".zarray", ".zgroup", "zarr.json")


def load(
    path: str | Path,
    *,
    key: str | None = None,
    sample_axis: int | None = None,
    shape: tuple[int, ...] | None = None,
    size: tuple[int, int] | None = None,
    grey: bool | None = None,
    mask: str | Path | None = None,
    min_samples: int = 2,
    max_memory: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Loaded:
    """Read samples from a file or a folder of pictures.

    Messages name the options of the command line: `--sample-axis` is `sample_axis`.

    Parameters
    ----------
    path : str or Path
        A folder of pictures (PNG, JPEG, TIFF, BMP, WebP, PNM; also in folders of it), or a file:
        .npy, .npz, .mat (all versions), .h5, .zarr, .nc, .csv, .tsv, .txt or .parquet.
    key : str or None
        Name of the array, when a file holds several.
    sample_axis : int or None
        Axis of the samples; None guesses it, and a note tells what was guessed.
    shape : tuple of int or None
        Shape of a sample, for files with a row for each; those of MATLAB hold its columns one
        after the other.
    size : (height, width) or None
        Resize pictures to it.
    grey : bool or None
        True reads pictures without colours, False with three of them; None keeps what there is.
    mask : str, Path or None
        File of an array: zero (or False) marks missing entries.
    min_samples : int
        The smallest number of samples accepted.
    max_memory : int or None
        Refuse to read what needs more bytes; None takes what the machine has left.
    progress : callable or None
        Called with how many pictures are read and how many there are.

    Returns
    -------
    Loaded

    Raises
    ------
    ValueError
        For a file that cannot be read as samples, and for options that do not fit it.
    ImportError
        When a format needs a package that is not there; it names the extra.
    """
    path = Path(path)
    kind = _kind(path)
    options = {"key": key, "sample_axis": sample_axis, "shape": shape, "size": size, "grey": grey}
    _check_options(path, kind, options)
    axis = 0
    if kind == "pictures":
        loaded = pictures.read_folder(
            path, size=size, grey=grey, max_memory=max_memory, progress=progress
        )
    elif kind in TABLES:
        loaded = TABLES[kind](path, max_memory)
    else:
        with ARRAYS[kind](path) as stored:
            loaded, axis = arrange(path, stored, Layout(key, sample_axis, shape, max_memory))
    X = loaded.X
    seen = None if mask is None else _mask(Path(mask), max_memory)
    if seen is not None and seen.size == X.size and seen.ndim == X.ndim:
        X, seen = hide(X, seen, axis, Path(str(mask))), None  # it lies as the samples in the file
    X = reshape(X, shape, matlab=kind == ".mat")
    if seen is not None:
        X = hide(X, seen, axis, Path(str(mask)))
    _check_samples(path, X, min_samples)
    return replace(loaded, X=X)


def is_pictures(path: str | Path) -> bool:
    """Whether a path would be read as a folder of pictures."""
    return _kind(Path(path)) == "pictures"


def _kind(path: Path) -> str:
    """Return the suffix of a reader, or "pictures"."""
    if not path.exists():
        msg = f"{path} does not exist"
        raise ValueError(msg)
    name = path.name.lower()
    if name.endswith(".zarr.zip"):
        return ".zarr"
    if path.is_dir():
        is_zarr = name.endswith(".zarr") or any((path / file).is_file() for file in ZARR_FILES)
        return ".zarr" if is_zarr else "pictures"
    if not path.is_file():
        msg = f"{path} is neither a file nor a folder"
        raise ValueError(msg)
    suffix = path.suffix.lower()
    if suffix in pictures.SUFFIXES:
        msg = f"{path} is one picture, that is one sample: give a folder of pictures"
        raise ValueError(msg)
    if suffix not in ARRAYS and suffix not in TABLES:
        msg = f"{path} is of no known kind: give {', '.join(FORMATS)}"
        raise ValueError(msg)
    return suffix


ONLY_FOR = {
    "key": ("files with several arrays", frozenset(ARRAYS) - {".npy"}),
    "sample_axis": ("arrays", frozenset(ARRAYS)),
    "shape": ("arrays and tables", frozenset(ARRAYS) | frozenset(TABLES)),
    "size": ("folders of pictures", frozenset({"pictures"})),
    "grey": ("folders of pictures", frozenset({"pictures"})),
}


def _check_options(path: Path, kind: str, options: dict[str, Any]) -> None:
    """Refuse options that a format has no use for."""
    for name, value in options.items():
        what, kinds = ONLY_FOR[name]
        if value is not None and kind not in kinds:
            msg = f"--{name.replace('_', '-')} is for {what}, {path} is not one of them"
            raise ValueError(msg)


def _mask(path: Path, max_memory: int | None) -> np.ndarray:
    """Read an array of any type of numbers."""
    kind = _kind(path)
    if kind in TABLES:
        return TABLES[kind](path, max_memory).X
    if kind == "pictures":
        msg = f"--mask {path} is a folder; give a file of one array"
        raise ValueError(msg)
    with ARRAYS[kind](path) as stored:
        usable = [array for array in stored if array.dtype.kind in "biuf"]
        chosen = usable[0] if len(usable) == 1 else choose(path, stored, None)
        return chosen.load(path, max_memory)


def _check_samples(path: Path, X: np.ndarray, least: int) -> None:
    """Refuse what no estimator can use, in words about the file."""
    if len(X) < least or X.size == 0:
        msg = f"{path} holds {by(X.shape)} numbers, samples first; at least {least} are needed"
        raise ValueError(msg)
    infinite = int(np.isinf(X).sum())
    if infinite:
        msg = f"{path} has {infinite} infinite values; NaN marks missing entries"
        raise ValueError(msg)
    empty = np.flatnonzero(np.isnan(X).reshape(len(X), -1).all(axis=1))
    if empty.size:
        few = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
        msg = f"{path}: {empty.size} samples have no observed entry ({few}); leave them out"
        raise ValueError(msg)
