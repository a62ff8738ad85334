"""Arrays in files: NumPy, MATLAB, HDF5, Zarr and NetCDF.

A reader is a context that gives the arrays of a file, unread, while the file is open. Nothing here
runs code from a file: pickled arrays are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.files.loaded import Stored

EXTRA = "files"
MATLAB_HIDDEN = ("__header__", "__version__", "__globals__", "#refs#", "#subsystem#")


@contextmanager
def npy(path: Path) -> Iterator[list[Stored]]:
    """Give the array of a .npy file, as a memory map."""
    _check_magic(path, ".npy")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error):
            msg = f"{path} holds Python objects, which are not read since that runs code"
            raise ValueError(msg) from None
        raise _broken(path, "a whole .npy file", error) from None
    yield [Stored.of("", array)]


@contextmanager
def npz(path: Path) -> Iterator[list[Stored]]:
    """Give the arrays of a .npz file; those that would need unpickling are left out."""
    _check_magic(path, ".npz")
    with path.open("rb") as file, ExitStack() as stack:
        stored = []
        try:
            archive = stack.enter_context(np.load(file, allow_pickle=False))
            for name in archive.files:
                try:
                    array = archive[name]
                except ValueError:  # objects
                    continue
                if isinstance(array, np.ndarray):  # else a file of another kind
                    stored.append(Stored.of(name, array))
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            raise _broken(path, "a whole .npz file", error) from None
        yield stored


MAGIC = {".npy": b"\x93NUMPY", ".npz": b"PK"}


def _check_magic(path: Path, suffix: str) -> None:
    """Refuse a file that is not what its name says; NumPy would take it for a pickle."""
    with path.open("rb") as file:
        begin = file.read(8)
    for other, magic in MAGIC.items():
        if begin.startswith(magic) and other != suffix:
            msg = f"{path} is a {other} file with the name of a {suffix} file: rename it"
            raise ValueError(msg)
    if not begin.startswith(MAGIC[suffix]):
        msg = f"{path} is not a {suffix} file"
        raise ValueError(msg)


@contextmanager
def mat(path: Path) -> Iterator[list[Stored]]:
    """Give the arrays of a .mat file of any version, with their axes as MATLAB shows them."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        variables = loadmat(path)
    except NotImplementedError:  # version 7.3 is HDF5
        with hdf5(path, matlab=True) as stored:
            yield stored
        return
    except (ValueError, TypeError, MatReadError) as error:
        raise _broken(path, "a .mat file", error) from None
    yield [
        Stored.of(name, value)
        for name, value in variables.items()
        if isinstance(value, np.ndarray) and name not in MATLAB_HIDDEN
    ]


@contextmanager
def hdf5(path: Path, matlab: bool = False) -> Iterator[list[Stored]]:
    """Give the arrays of an HDF5 file; MATLAB stores them with their axes reversed."""
    h5py = optional("h5py", "a .mat file of version 7.3" if matlab else "an HDF5 file", EXTRA)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise _broken(path, "an HDF5 file", error) from None
    with file:
        found: list[Stored] = []

        def visit(name: str, item: Any) -> None:
            hidden = name.split("/")[0] in MATLAB_HIDDEN
            text = item.attrs.get("MATLAB_class", b"") in (b"char", b"cell", b"struct")
            if isinstance(item, h5py.Dataset) and item.shape is not None and not hidden | text:
                found.append(_dataset(name, item, matlab))

        file.visititems(visit)
        yield found


def _dataset(name: str, item: Any, matlab: bool) -> Stored:
    logical = matlab and item.attrs.get("MATLAB_class", b"") == b"logical"
    dtype = np.dtype(bool) if logical else item.dtype

    def read() -> np.ndarray:
        array = item.asstr()[()] if item.dtype.kind == "O" else item[()]
        return np.asarray(array.T if matlab else array).astype(
            dtype if dtype.kind != "O" else str, copy=False
        )

    return Stored(name, tuple(item.shape[::-1] if matlab else item.shape), dtype, read)


@contextmanager
def zarr(path: Path) -> Iterator[list[Stored]]:
    """Give the arrays of a Zarr store, a folder or a zip file."""
    package = optional("zarr", "a Zarr store", EXTRA)
    with ExitStack() as stack:
        try:
            where: Any = path
            if path.is_file():
                where = stack.enter_context(package.storage.ZipStore(path, mode="r"))
            opened = package.open(where, mode="r")
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            raise _broken(path, "a Zarr store", error) from None
        if isinstance(opened, package.Array):
            yield [_chunked("", opened)]
        else:
            yield [_chunked(name, array) for name, array in _zarr_arrays(opened)]


def _zarr_arrays(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, array in sorted(group.arrays()):
        yield prefix + name, array
    for name, inner in sorted(group.groups()):
        yield from _zarr_arrays(inner, f"{prefix}{name}/")


def _chunked(name: str, array: Any) -> Stored:
    dtype = np.dtype(array.dtype)
    dims = tuple(array.attrs.get("_ARRAY_DIMENSIONS", ())) or _dimension_names(array)
    return Stored(name, tuple(array.shape), dtype, lambda: np.asarray(array[...]), dims)


def _dimension_names(array: Any) -> tuple[str, ...]:
    names = getattr(array.metadata, "dimension_names", None) or ()
    return tuple(map(str, names)) if None not in names else ()


@contextmanager
def netcdf(path: Path) -> Iterator[list[Stored]]:
    """Give the variables of a NetCDF file, fill values as NaN, with the names of their axes."""
    xarray = optional("xarray", "a NetCDF file", EXTRA)
    engine = "scipy"  # NetCDF 3
    with path.open("rb") as file:
        if file.read(4) == b"\x89HDF":
            optional("h5netcdf", "a NetCDF 4 file", EXTRA)
            engine = "h5netcdf"
    try:
        dataset = xarray.open_dataset(path, engine=engine, decode_times=False)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise _broken(path, "a NetCDF file", error) from None
    with dataset:
        labels = {
            str(name): np.asarray(values)
            for name, values in dataset.coords.items()
            if values.dims == (name,)
        }
        yield [
            Stored(str(name), v.shape, v.dtype, _reader(v), tuple(map(str, v.dims)), labels)
            for name, v in dataset.data_vars.items()
        ]


def _reader(variable: Any) -> Any:
    return lambda: np.asarray(variable.values)


def _broken(path: Path, what: str, error: Exception) -> ValueError:
    reason = str(error).strip().splitlines()
    return ValueError(f"{path} is not {what}: {reason[0] if reason else type(error).__name__}")
