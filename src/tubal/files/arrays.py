"""Arrays in files: NumPy, MATLAB, HDF5, Zarr and NetCDF.

A reader is a context that gives the arrays of a file, unread, while the file is open: their names,
shapes and types come from headers. Nothing here runs code from a file: pickled arrays are refused,
and so are arrays whose numbers lie in other files.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.files import matlab
from tubal.files.heaps import check_heaps, check_references
from tubal.files.loaded import Stored, reading, refuse

EXTRA = "files"
MATLAB_HIDDEN = ("__header__", "__version__", "__globals__", "#refs#", "#subsystem#")
MATLAB_TYPES = {
    "double": "f8", "single": "f4", "logical": "?", "char": "U1",
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
}  # fmt: skip
"""What MATLAB calls the classes of arrays; the others (cells, structs, objects) are left out."""
SAFE_CODECS = frozenset(
    "adler32 astype bitround blosc bytes bytescodec bz2 crc32 crc32c delta fixedscaleoffset "
    "fletcher32 gzip lz4 lzma packbits quantize sharding shuffle transpose vlenbytes vlenutf8 "
    "zlib zstd".split()
)
"""How a Zarr store may be packed. Others are refused: one of them, pickle, runs code."""


@contextmanager
def npy(path: Path) -> Iterator[list[Stored]]:
    """Give the array of a .npy file, as a memory map."""
    _check_magic(path, ".npy")
    with reading(path, "a whole .npy file"):
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" in str(error) or "Python objects" in str(error):
                refuse(f"{path} holds Python objects, which are not read since that runs code")
            raise
    yield [Stored.of("", array)]


@contextmanager
def npz(path: Path) -> Iterator[list[Stored]]:
    """Give the arrays of a .npz file; those that would need unpickling are left out."""
    _check_magic(path, ".npz")
    with reading(path, "a whole .npz file"):
        archive = zipfile.ZipFile(path)
    with archive:
        with reading(path, "a whole .npz file"):
            stored = [_member(archive, info) for info in archive.infolist()]
        yield [array for array in stored if array is not None]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Stored | None:
    """Return an array of an archive by its header, None when it is of another kind."""
    if not info.filename.endswith(".npy"):
        return None
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:  # fields with names
            return None
        shape, _, dtype = HEADERS[version](file)
        size = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        return None
    if size != info.file_size:
        msg = f"{info.filename} should have {size} bytes, it has {info.file_size}"
        raise ValueError(msg)

    def read() -> np.ndarray:
        with archive.open(info) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    return Stored(info.filename.removesuffix(".npy"), shape, dtype, read)


HEADERS: dict[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
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
    with reading(path, "a .mat file"):
        version, order = matlab.version(path)
    if version == 7:  # 7.3 is HDF5
        with hdf5(path, from_matlab=True) as stored:
            yield stored
        return
    with reading(path, "a whole .mat file"):
        found = matlab.variables(path, order) if version == 5 else _mat_4(path)
    yield [array for array in found if array.name and array.name not in MATLAB_HIDDEN]


def _mat_4(path: Path) -> list[Stored]:
    """Return the arrays of a .mat file of version 4; SciPy reads these in Python."""
    from scipy.io import whosmat

    return [
        _variable(path, name, shape, kind)
        for name, shape, kind in whosmat(path)
        if kind in MATLAB_TYPES
    ]


def _variable(path: Path, name: str, shape: tuple[int, ...], kind: str) -> Stored:
    def read() -> np.ndarray:
        from scipy.io import loadmat

        array = loadmat(path, variable_names=[name])[name]
        if np.iscomplexobj(array):
            msg = f"'{name}' is complex; samples are real numbers"
            raise ValueError(msg)
        return np.asarray(array)

    return Stored(name, tuple(shape), np.dtype(MATLAB_TYPES[kind]), read)


@contextmanager
def hdf5(path: Path, from_matlab: bool = False) -> Iterator[list[Stored]]:
    """Give the arrays of an HDF5 file; MATLAB stores them with their axes reversed."""
    h5py = optional("h5py", "a .mat file of version 7.3" if from_matlab else "an HDF5 file", EXTRA)
    with reading(path, "an HDF5 file"):
        check_heaps(path)
        file = h5py.File(path, "r")
    with file:
        found: list[Stored] = []

        def visit(name: str, item: Any) -> None:
            hidden = name.split("/")[0] in MATLAB_HIDDEN
            text = item.attrs.get("MATLAB_class", b"") in (b"char", b"cell", b"struct")
            if isinstance(item, h5py.Dataset) and item.shape is not None and not hidden | text:
                _check_own(path, name, item)
                check_references(path, item)
                found.append(_dataset(name, item, from_matlab))

        with reading(path, "a whole HDF5 file"):
            file.visititems(visit)
        yield found


def _check_own(path: Path, name: str, item: Any) -> None:
    """Refuse an HDF5 array whose numbers lie in other files, which might be anybody's."""
    if item.external or item.is_virtual:
        refuse(f"'{name}' in {path} refers to other files, which are not read")


def _dataset(name: str, item: Any, from_matlab: bool) -> Stored:
    logical = from_matlab and item.attrs.get("MATLAB_class", b"") == b"logical"
    dtype = np.dtype(bool) if logical else item.dtype

    def read() -> np.ndarray:
        array = item.asstr()[()] if item.dtype.kind == "O" else item[()]
        return np.asarray(array.T if from_matlab else array).astype(
            dtype if dtype.kind != "O" else str, copy=False
        )

    return Stored(name, tuple(item.shape[::-1] if from_matlab else item.shape), dtype, read)


@contextmanager
def zarr(path: Path) -> Iterator[list[Stored]]:
    """Give the arrays of a Zarr store, a folder or a zip file."""
    package = optional("zarr", "a Zarr store", EXTRA)
    store = None
    with reading(path, "a Zarr store"):
        store = package.storage.ZipStore(path, mode="r") if path.is_file() else None
        opened = package.open(path if store is None else store, mode="r")
        single = isinstance(opened, package.Array)
        arrays = [("", opened)] if single else list(_zarr_arrays(opened))
        for name, array in arrays:
            _check_codecs(path, name, array)
        found = [_chunked(name, array) for name, array in arrays]
    try:
        yield found
    finally:
        if store is not None:
            store.close()


def _zarr_arrays(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, array in sorted(group.arrays()):
        yield prefix + name, array
    for name, inner in sorted(group.groups()):
        yield from _zarr_arrays(inner, f"{prefix}{name}/")


def _check_codecs(path: Path, name: str, array: Any) -> None:
    metadata = array.metadata
    codecs = [
        *(getattr(metadata, "codecs", None) or ()),
        *(getattr(metadata, "filters", None) or ()),
        getattr(metadata, "compressor", None),
    ]
    for codec in filter(None, codecs):
        kind = str(getattr(codec, "codec_id", None) or type(codec).__name__)
        plain = kind.lower().rpartition(".")[2].replace("_", "").replace("-", "")
        if plain not in SAFE_CODECS and plain.removesuffix("codec") not in SAFE_CODECS:
            refuse(f"'{name}' in {path} is packed with {kind}, which is not read")


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
    engine, options = "scipy", {}  # NetCDF 3
    with path.open("rb") as file:
        if file.read(4) == b"\x89HDF":
            optional("h5netcdf", "a NetCDF 4 file", EXTRA)
            with hdf5(path):  # which refuses arrays that lie elsewhere
                # Axes without a name get one, as newer versions of xarray do by themselves.
                engine, options = "h5netcdf", {"phony_dims": "access"}
    with reading(path, "a NetCDF file"):
        dataset = xarray.open_dataset(path, engine=engine, decode_times=False, **options)
    with dataset:
        with reading(path, "a whole NetCDF file"):
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
