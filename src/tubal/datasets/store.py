"""Image sets on this machine: where they lie, what they must look like, and `load`."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tubal.datasets.convert import Arrays
from tubal.datasets.download import atomic, read_json, write_json
from tubal.datasets.registry import Dataset, find_dataset

SPOT_STEP = 1_000_003  # a prime, so that the spots are spread over images, rows and columns
SPOT_TOLERANCE = 2  # grey levels: what decoders of pictures and roundings differ by


@dataclass(frozen=True)
class ImageSet:
    """Grey images of one size, and what is known about them.

    Attributes
    ----------
    name : str
    images : uint8 array of shape (n_samples, height, width)
        Upright, as stored.
    labels : int array of shape (n_samples,) or None
        Classes from 0; None for images without classes.
    names : str array of shape (n_classes,) or None
        What the source calls the classes.
    exact : bool array of shape (n_samples,) or None
        Where some images were reconstructed: which ones were not.
    ids : int array of shape (n_samples,) or None
        The source's numbers of the images, where only some were taken.
    reference : bool
        Whether the arrays equal, bit for bit, those behind the tables of this package.
    source : str
        Where the images come from, for a report.
    X : array of shape (n_samples, height, width)
        The images as float64 in [0, 1], a new array each time.
    """

    name: str
    images: np.ndarray = field(repr=False)
    labels: np.ndarray | None = field(repr=False)
    names: np.ndarray | None = field(repr=False)
    exact: np.ndarray | None = field(repr=False)
    ids: np.ndarray | None = field(repr=False)
    reference: bool
    source: str

    @property
    def X(self) -> np.ndarray:
        """Return what an estimator takes: grey levels in [0, 1]."""
        return self.images / 255


def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> ImageSet:
    """Load an image set that is on this machine.

    It is the file `<name>.npz` in the first of these folders that has one: `folder`, the one that
    the environment variable TUBAL_DATA names, and the cache directory, where `fetch` puts it
    (TUBAL_CACHE, or `tubal` in the user's cache directory).

    Parameters
    ----------
    name : str
        "orl", "coil20", "umist", "frdue", "usps", "mirflickr" or a variant; see `available`.
    folder : path, optional

    Returns
    -------
    ImageSet

    Raises
    ------
    FileNotFoundError
        It is in none of the folders. The message tells how to get it.
    ValueError
        The name is unknown, or the file is not this set.
    """
    dataset = find_dataset(name)
    path = find(name, folder=folder)
    if path is None:
        looked = "; ".join(f"{place} ({origin})" for place, origin in _folders(folder))
        msg = f"no {name}.npz. Looked in: {looked}. {how_to_get(dataset)}"
        raise FileNotFoundError(msg)
    return read(dataset, path)


def find(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file that `load` would read, or None."""
    find_dataset(name)
    paths = (place / f"{name}.npz" for place, _ in _folders(folder))
    return next((path for path in paths if path.is_file()), None)


def how_to_get(dataset: Dataset) -> str:
    """Return the sentence that tells how to come by a data set."""
    if dataset.sources:
        return (
            f"Get it with the command `tubal datasets fetch {dataset.name}`, or let TUBAL_DATA "
            "name a folder that has it."
        )
    instead = " or ".join(f"`tubal datasets fetch {other}`" for other in dataset.instead)
    return f"It cannot be downloaded: {dataset.note} Let TUBAL_DATA name a folder that has it" + (
        f", or take a variant with {instead}." if instead else "."
    )


# ---- folders ------------------------------------------------------------------------------------


def _folders(folder: str | os.PathLike[str] | None) -> Iterator[tuple[Path, str]]:
    """Yield the folders to look in, and why."""
    if folder is not None:
        yield Path(folder), "folder"
    if data := os.environ.get("TUBAL_DATA"):
        yield Path(data), "TUBAL_DATA"
    yield cache_folder(), "cache"


def cache_folder() -> Path:
    """Return the folder for what was downloaded; it need not exist."""
    return _cache_folder(os.environ, sys.platform)


def _cache_folder(environ: Mapping[str, str], platform: str) -> Path:
    """Follow the customs of a platform.

    >>> _cache_folder({"XDG_CACHE_HOME": "/c"}, "linux").as_posix()
    '/c/tubal'
    """
    if chosen := environ.get("TUBAL_CACHE"):
        return Path(chosen)
    if platform == "win32":
        base, custom = environ.get("LOCALAPPDATA"), Path("AppData", "Local")
    elif platform == "darwin":
        base, custom = None, Path("Library", "Caches")
    else:
        base, custom = environ.get("XDG_CACHE_HOME"), Path(".cache")
    return (Path(base) if base else Path.home() / custom) / "tubal"


# ---- files --------------------------------------------------------------------------------------


def read(dataset: Dataset, path: Path) -> ImageSet:
    """Read and check one file."""
    arrays = _read_arrays(path)
    try:
        check(dataset, arrays)
    except ValueError as error:
        msg = f"{path} is not the data set {dataset.name}: {error}"
        raise ValueError(msg) from error
    content, record = content_hash(arrays), read_record(path)
    known = {dataset.content, record.get("content", "")} - {""}
    if known and content not in known:
        msg = (
            f"{path} is not the data set {dataset.name}: the SHA-256 of its arrays should be "
            f"{' or '.join(sorted(known))} and is {content}. {how_to_get(dataset)}"
        )
        raise ValueError(msg)
    labels = arrays.get("labels")
    return ImageSet(
        name=dataset.name,
        images=arrays["images"],
        labels=None if labels is None else labels.astype(np.int64),
        names=arrays.get("names"),
        exact=arrays.get("exact"),
        ids=arrays.get("ids"),
        reference=content == dataset.content,
        source=_source_text(dataset, record),
    )


def save(path: Path, arrays: Arrays, record: dict[str, Any]) -> None:
    """Write the arrays, and beside them where they come from, each completely or not at all."""
    content = content_hash(arrays)
    write_json(_record_path(path), {**record, "content": content})
    with atomic(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_record(path: Path) -> dict[str, Any]:
    """Return what `fetch` wrote down about a file; empty for a file that came by another way."""
    record = read_json(_record_path(path))
    return record if {"content", "files"} <= set(record) else {}


def _record_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _source_text(dataset: Dataset, record: dict[str, Any]) -> str:
    files = [f"{file['url']} (sha256 {file['sha256']})" for file in record.get("files", [])]
    came = f"Fetched from {', '.join(files)}. " if files else ""
    return f"{dataset.title}. {came}{dataset.note}".strip()


def _read_arrays(path: Path) -> Arrays:
    try:
        with path.open("rb") as raw:  # np.load leaves a damaged archive open
            loaded = np.load(raw, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                msg = "one array and not an archive"
                raise ValueError(msg)
            arrays = {name: np.ascontiguousarray(loaded[name]) for name in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        msg = f"{path} cannot be read as an npz file: {error}"
        raise ValueError(msg) from error
    if "course_ids" in arrays:  # the name in the files that were made by hand
        arrays["ids"] = arrays.pop("course_ids")
    return arrays


# ---- content ------------------------------------------------------------------------------------


def check(dataset: Dataset, arrays: Arrays) -> None:
    """Check names, shapes, types and classes; the messages say what is wrong."""
    images = arrays.get("images")
    if images is None:
        msg = f"it has {', '.join(arrays) or 'nothing'}, but no images"
        raise ValueError(msg)
    if images.dtype != np.uint8 or images.shape != dataset.shape:
        msg = (
            f"images are {images.dtype} of shape {images.shape}, not uint8 of shape {dataset.shape}"
        )
        raise ValueError(msg)
    n_samples = len(images)
    _check_array(arrays, "labels", "iu", (n_samples,), dataset.classes is not None)
    _check_array(arrays, "exact", "b", (n_samples,), False)
    _check_array(arrays, "ids", "iu", (n_samples,), False)
    _check_array(arrays, "names", "U", (dataset.classes or 0,), False)
    if "labels" in arrays:
        classes = np.unique(arrays["labels"])
        if not np.array_equal(classes, np.arange(dataset.classes or 0)):
            msg = f"labels are {classes.tolist()}, not all of 0 to {(dataset.classes or 0) - 1}"
            raise ValueError(msg)


def _check_array(
    arrays: Arrays, name: str, kinds: str, shape: tuple[int, ...], needed: bool
) -> None:
    array = arrays.get(name)
    if array is None:
        if needed:
            msg = f"it has no {name}"
            raise ValueError(msg)
    elif array.dtype.kind not in kinds or array.shape != shape:
        msg = f"{name} are {array.dtype} of shape {array.shape}; the shape should be {shape}"
        raise ValueError(msg)


def content_hash(arrays: Arrays) -> str:
    """Return the SHA-256 of the arrays, the same for every way to store them.

    >>> images = np.zeros((1, 2, 2), dtype=np.uint8)
    >>> content_hash({"images": images}) == content_hash({"images": np.asfortranarray(images)})
    True
    """
    types = {"images": "u1", "labels": "<i8", "exact": "u1", "ids": "<i8"}
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name}{array.shape}".encode("ascii"))
        if name == "names":
            total.update("\n".join(array.tolist()).encode())
        else:
            total.update(array.astype(types[name]).tobytes(order="C"))
    return total.hexdigest()


def spots(images: np.ndarray, count: int = 32) -> bytes:
    """Return the grey levels at places all over the set, to recognise it by."""
    return images.reshape(-1)[np.arange(1, count + 1) * SPOT_STEP % images.size].tobytes()


def check_resemblance(dataset: Dataset, arrays: Arrays) -> None:
    """Check that labels are those of the reference, and images up to rounding."""
    if "labels" in arrays and content_hash({"labels": arrays["labels"]}) != dataset.truth:
        msg = "the labels, or their order, are not those of the reference"
        raise ValueError(msg)
    expected = np.frombuffer(bytes.fromhex(dataset.spots), dtype=np.uint8).astype(int)
    actual = np.frombuffer(spots(arrays["images"], len(expected)), dtype=np.uint8).astype(int)
    wrong = np.abs(expected - actual) > SPOT_TOLERANCE
    if wrong.any():
        msg = (
            f"{wrong.sum()} of {len(expected)} pixels that were looked at are more than "
            f"{SPOT_TOLERANCE} grey levels off the reference: other images, or another "
            "orientation, order or scale"
        )
        raise ValueError(msg)
