"""From the files of a public source to upright grey images.

Every converter takes the paths of one source's files, in the order of the registry, and returns
arrays: `images` (uint8, samples first, upright), `labels` (int16, from 0) and what else there is.
Archives are read member by member in memory and never unpacked, so that no name inside one can lead
out of a folder.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tubal._optional import optional

Arrays = dict[str, np.ndarray]
Convert = Callable[[Sequence[Path]], Arrays]

LARGEST_PICTURE = 1 << 26  # bytes of one member of an archive
PICTURES = ("BMP", "JPEG", "PNG", "PPM", "TIFF")  # of archives; nothing else is opened
FEATURES = ("fea", "X", "data")
LABELS = ("gnd", "Y", "y", "labels", "label")


# ---- tables of grey levels ----------------------------------------------------------------------


def upright(rows: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return images (n, height, width) from rows that list their pixels column by column.

    >>> upright(np.arange(6)[None], (2, 3)).tolist()
    [[[0, 2, 4], [1, 3, 5]]]
    """
    height, width = size
    return np.ascontiguousarray(rows.reshape(-1, width, height).transpose(0, 2, 1))


def grey_levels(values: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Return `scale * values` as uint8, halves upwards, after a look at the range.

    >>> grey_levels(np.array([0, 0.5, 1]), 255).tolist()
    [0, 128, 255]
    """
    levels = np.floor(np.asarray(values, dtype=np.float64) * scale + 0.5)
    if not ((levels >= 0) & (levels <= 255)).all():  # NaN too
        low, high = np.min(values), np.max(values)
        msg = f"values from {low} to {high}, times {scale:g}, are not grey levels from 0 to 255"
        raise ValueError(msg)
    return levels.astype(np.uint8)


def from_mat(
    paths: Sequence[Path], *, size: tuple[int, int], scale: float = 1.0, labels: bool = True
) -> Arrays:
    """Read a MATLAB file with one image a row (or a column), pixels column by column."""
    content = _load_mat(paths[0])
    rows = _by_name(content, FEATURES, paths[0])
    if rows.ndim != 2 or size[0] * size[1] not in rows.shape:
        msg = f"{paths[0]} has a table of shape {rows.shape}, not of images {size[0]} x {size[1]}"
        raise ValueError(msg)
    if rows.shape[1] != size[0] * size[1]:
        rows = rows.T
    arrays = {"images": grey_levels(upright(rows, size), scale)}
    if labels:
        arrays["labels"] = _from_zero(_by_name(content, LABELS, paths[0]).ravel())
    return arrays


def from_olivetti(paths: Sequence[Path]) -> Arrays:
    """Read olivettifaces.mat: 64 x 64 pixels a column, ten columns a person."""
    faces = _by_name(_load_mat(paths[0]), ("faces",), paths[0])
    people = np.repeat(np.arange(faces.shape[1] // 10), 10)
    return {"images": grey_levels(upright(faces.T, (64, 64))), "labels": _from_zero(people)}


def from_cells(paths: Sequence[Path], *, size: tuple[int, int]) -> Arrays:
    """Read umist_cropped.mat: for each person an upright stack, height x width x images."""
    people = [np.moveaxis(stack, 2, 0) for stack in _cells(paths[0])]
    images = [_resize(_pillow().fromarray(face), size) for stack in people for face in stack]
    labels = np.repeat(np.arange(len(people)), [len(stack) for stack in people])
    return {
        "images": np.stack(images),
        "labels": _from_zero(labels),
        "exact": np.ones(len(images), dtype=bool),
    }


def _cells(path: Path) -> list[np.ndarray]:
    stacks = _by_name(_load_mat(path), ("facedat",), path).ravel()
    if stacks.dtype != object or any(s.ndim != 3 or s.dtype != np.uint8 for s in stacks):
        msg = f"facedat in {path} is not a list of stacks of 8-bit images"
        raise ValueError(msg)
    return list(stacks)


def _load_mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        return dict(loadmat(path))
    except (MatReadError, NotImplementedError, ValueError, TypeError, OSError) as error:
        msg = f"{path} cannot be read as a MATLAB file: {error}"
        raise ValueError(msg) from error


def _by_name(content: dict[str, Any], names: Sequence[str], path: Path) -> np.ndarray:
    for name in names:
        if isinstance(content.get(name), np.ndarray):
            return content[name]
    there = ", ".join(name for name in content if not name.startswith("__")) or "nothing"
    msg = f"{path} has {there}, but none of {', '.join(names)}"
    raise ValueError(msg)


def _from_zero(labels: np.ndarray) -> np.ndarray:
    """Return classes that are counted from 0 or from 1 as int16 from 0."""
    return (labels.astype(np.int64) - int(labels.min())).astype(np.int16)


# ---- USPS ---------------------------------------------------------------------------------------


def from_zip_code_text(paths: Sequence[Path]) -> Arrays:
    """Read zip.train and zip.test of "The Elements of Statistical Learning", gzipped or not.

    A line is the digit and 256 values in [-1, 1], row by row.
    """
    tables = [_number_table(path, None) for path in paths]
    return _digits(np.concatenate(tables), first_label=0)


def from_libsvm(paths: Sequence[Path]) -> Arrays:
    """Read the LIBSVM copy, usps and usps.t: the digit + 1, then `index:value` pairs."""
    from sklearn.datasets import load_svmlight_file

    tables = []
    for path in paths:
        try:
            X, y = load_svmlight_file(str(path), n_features=256, zero_based=False)
        except (ValueError, OSError) as error:
            msg = f"{path} cannot be read as a LIBSVM file: {error}"
            raise ValueError(msg) from error
        tables.append(np.column_stack([y, X.toarray()]))
    return _digits(np.concatenate(tables), first_label=1)


def from_arff(paths: Sequence[Path]) -> Arrays:
    """Read the OpenML copy: the digit + 1 and 256 values, with commas, after the line `@data`."""
    return _digits(_number_table(paths[0], ","), first_label=1)


def _number_table(path: Path, delimiter: str | None) -> np.ndarray:
    """Read numbers from a text file; what stands in an ARFF header is no number and left out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is found out later
            return np.loadtxt(path, delimiter=delimiter, comments=("%", "@"), ndmin=2)
    except (ValueError, OSError) as error:
        msg = f"{path} cannot be read as a table of numbers: {error}"
        raise ValueError(msg) from error


def _digits(table: np.ndarray, first_label: int) -> Arrays:
    if table.shape[1] != 257 or not len(table):
        msg = f"a table of shape {table.shape} has no lines with a digit and 16 x 16 values"
        raise ValueError(msg)
    # The order of these operations decides about halves: -0.8 becomes 25 and -0.4 becomes 77, as
    # in the reference arrays.
    images = grey_levels((table[:, 1:] + 1) / 2, 255).reshape(-1, 16, 16)
    return {"images": images, "labels": (table[:, 0] - first_label).astype(np.int16)}


# ---- pictures -----------------------------------------------------------------------------------


def from_pictures(
    paths: Sequence[Path],
    *,
    pattern: str,
    size: tuple[int, int],
    skip: Sequence[str] = (),
    keep_names: bool = False,
) -> Arrays:
    """Read a zip archive of pictures whose names tell the class and a number.

    Parameters
    ----------
    paths : one path
    pattern : str
        Regular expression with the groups `label` and `number`, found at the end of a member's
        name. Classes are sorted (as numbers if they are), pictures by number within a class.
    size : (height, width)
        Colour becomes grey by ITU-R 601, then the size is reduced by an antialiased bicubic
        filter, as `rgb2gray` and `imresize` do.
    skip : sequence of str
        Classes to leave out.
    keep_names : bool
        Add `names`, the class as it is written.
    """
    with _archive(paths[0]) as archive:
        found = {
            (match["label"], int(match["number"])): name
            for name, match in _members(archive, pattern)
            if match["label"] not in skip
        }
        classes = sorted({label for label, _ in found}, key=_natural)
        index = {label: position for position, label in enumerate(classes)}
        order = sorted(found, key=lambda key: (index[key[0]], key[1]))
        images = [_picture(archive, found[key], size) for key in order]
    if not images:
        msg = f"{paths[0]} has no pictures of the form {pattern}"
        raise ValueError(msg)
    labels = np.array([index[label] for label, _ in order], dtype=np.int16)
    arrays = {"images": np.stack(images), "labels": labels}
    return {**arrays, "names": np.array(classes)} if keep_names else arrays


def from_numbered_pictures(
    paths: Sequence[Path], *, pattern: str, size: tuple[int, int], first: int, last: int, count: int
) -> Arrays:
    """Read `count` of the pictures `first` to `last`, drawn with seed 0, in order; no labels."""
    drawn = np.random.default_rng(0).choice(last - first + 1, count, replace=False)
    ids = first + np.sort(drawn).astype(np.int32)
    with _archive(paths[0]) as archive:
        found = {int(match["number"]): name for name, match in _members(archive, pattern)}
        missing = [number for number in ids.tolist() if number not in found]
        if missing:
            msg = f"{paths[0]} lacks {len(missing)} of {count} pictures, the first is {missing[0]}"
            raise ValueError(msg)
        images = [_picture(archive, found[number], size) for number in ids.tolist()]
    return {"images": np.stack(images), "ids": ids}


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        msg = f"{path} cannot be read as a zip archive: {error}"
        raise ValueError(msg) from error


def _members(archive: zipfile.ZipFile, pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the members that a pattern describes, but not what macOS puts beside them."""
    expression = re.compile(rf"(?:^|/){pattern}$", re.IGNORECASE)
    for name in archive.namelist():
        match = expression.search(name)
        if match and not name.startswith("__MACOSX/"):
            yield name, match


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdigit() else (0, text)


def _picture(archive: zipfile.ZipFile, name: str, size: tuple[int, int]) -> np.ndarray:
    Image = _pillow()
    try:
        if archive.getinfo(name).file_size > LARGEST_PICTURE:
            msg = f"more than {LARGEST_PICTURE} bytes"
            raise ValueError(msg)
        with Image.open(io.BytesIO(archive.read(name)), formats=PICTURES) as picture:
            return _resize(picture, size)
    except (OSError, ValueError, zipfile.BadZipFile, Image.DecompressionBombError) as error:
        msg = f"{archive.filename}: {name} cannot be read as a picture: {error}"
        raise ValueError(msg) from error


def _resize(picture: Any, size: tuple[int, int]) -> np.ndarray:
    if picture.mode not in ("L", "RGB", "RGBA", "P", "1", "CMYK", "YCbCr"):
        msg = f"pictures of mode {picture.mode} have no 8-bit grey levels"
        raise ValueError(msg)
    grey = picture.convert("L")  # ITU-R 601
    height, width = size
    if grey.size != (width, height):
        grey = grey.resize((width, height), _pillow().Resampling.BICUBIC)
    return np.asarray(grey, dtype=np.uint8)


def need_pillow() -> None:
    """Fail early, and say what to install, where pictures cannot be read."""
    _pillow()


def _pillow() -> Any:
    return optional("PIL.Image", "reading and resizing pictures", "images")
