"""Files of every format, whole and damaged."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from hypothesis import strategies as st

from tubal.files import Loaded, load

CUBE = np.random.default_rng(0).normal(size=(6, 4, 3))


def _npy(path):
    np.save(path, CUBE)


def _npz(path):
    np.savez(path, images=CUBE, labels=np.arange(6), names=np.array(list("abcdef")))


def _npz_compressed(path):
    np.savez_compressed(path, images=CUBE)


def _mat_4(path):
    scipy.io.savemat(path, {"images": CUBE.reshape(6, 12)}, format="4")


def _mat_5(path):
    scipy.io.savemat(path, {"images": np.moveaxis(CUBE, 0, -1), "gnd": np.arange(6.0)})


def _mat_5_compressed(path):
    scipy.io.savemat(path, {"images": np.moveaxis(CUBE, 0, -1)}, do_compression=True)


def _mat_73(path):
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        file["images"] = np.moveaxis(CUBE, 0, -1).T
        file["images"].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + (0x0200).to_bytes(2, "little") + b"IM")


def _hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("group/images", data=CUBE, chunks=(2, 4, 3), compression="gzip")
        file["names"] = list("abcdef")


def _netcdf_3(path):
    _dataset().to_netcdf(path, engine="scipy")


def _netcdf_4(path):
    _dataset().to_netcdf(path, engine="h5netcdf")


def _dataset():
    import xarray

    return xarray.Dataset(
        {"images": (("sample", "y", "x"), CUBE)}, coords={"sample": list("abcdef")}
    )


def _zarr_3(path):
    import zarr

    _add_images(zarr.open_group(path, mode="w"))


def _zarr_2(path):
    import zarr

    _add_images(zarr.open_group(path, mode="w", zarr_format=2))


def _add_images(group):
    array = group.create_array("images", shape=CUBE.shape, chunks=(2, 4, 3), dtype=CUBE.dtype)
    array[...] = CUBE


def _zarr_zip(path):
    import zarr

    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, data=CUBE, chunks=(2, 4, 3))


def _csv(path):
    lines = ["name,a,b,c", *(f"s{i},{i},{i * i},{-i / 3}" for i in range(6))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _parquet(path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"name": list("abcdef"), "a": CUBE[:, 0, 0], "b": CUBE[:, 1, 1]}
    parquet.write_table(pa.table(columns), path)


def _pictures(path):
    from PIL import Image

    path.mkdir()
    for i, suffix in enumerate(("png", "jpg", "tif", "bmp", "webp", "pgm")):
        values = np.uint8(255 * np.random.default_rng(i).random((9, 7)))
        Image.fromarray(values).save(path / f"{i}.{suffix}")


FORMATS = {
    "npy": ("x.npy", _npy),
    "npz": ("x.npz", _npz),
    "npz, compressed": ("x.npz", _npz_compressed),
    "MATLAB 4": ("x.mat", _mat_4),
    "MATLAB 5": ("x.mat", _mat_5),
    "MATLAB 5, compressed": ("x.mat", _mat_5_compressed),
    "MATLAB 7.3": ("x.mat", _mat_73),
    "HDF5": ("x.h5", _hdf5),
    "NetCDF 3": ("x.nc", _netcdf_3),
    "NetCDF 4": ("x.nc", _netcdf_4),
    "Zarr 3": ("x.zarr", _zarr_3),
    "Zarr 2": ("y.zarr", _zarr_2),
    "Zarr, zip": ("x.zarr.zip", _zarr_zip),
    "CSV": ("x.csv", _csv),
    "Parquet": ("x.parquet", _parquet),
    "pictures": ("pictures", _pictures),
}


@dataclass(frozen=True)
class Damage:
    """What happens to the bytes of a file: where, as a share of its length, and what."""

    kind: str
    place: float
    seed: int

    def __call__(self, content: bytes) -> bytes:
        """Return the bytes after it."""
        rng = np.random.default_rng(self.seed)
        at = int(self.place * len(content))
        length = 1 + int(rng.integers(1, 64))
        noise = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        if self.kind == "cut":
            return content[:at]
        if self.kind == "flip" and content:
            at = min(at, len(content) - 1)
            return content[:at] + bytes([content[at] ^ (1 << self.seed % 8)]) + content[at + 1 :]
        if self.kind == "insert":
            return content[:at] + noise + content[at:]
        if self.kind == "zeros":
            return content[:at] + bytes(length) + content[at + length :]
        if self.kind == "swap":
            half = len(content) // 2
            return content[half:] + content[:half]
        if self.kind == "twice":
            return content + content
        if self.kind == "numbers":  # sizes and offsets that are not so
            large = rng.choice([2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 0]).item()
            return content[:at] + int(large).to_bytes(8, "little") + content[at + 8 :]
        return content[:at] + noise + content[at + length :]


KINDS = ("cut", "flip", "insert", "zeros", "swap", "twice", "numbers", "noise")
damages = st.builds(Damage, st.sampled_from(KINDS), st.floats(0, 1), st.integers(0, 2**32 - 1))
formats = st.sampled_from(sorted(FORMATS))


class Originals:
    """One whole file of each format, written when it is first asked for, as names and bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, {}

    def __getitem__(self, name: str) -> dict[str, bytes]:
        """Return relative path -> content, one entry unless the format is a folder."""
        if name not in self.known:
            file, write = FORMATS[name]
            path = self.folder / file
            write(path)
            files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
            self.known[name] = {str(p.relative_to(self.folder)): p.read_bytes() for p in files}
            for p in files:
                p.unlink()
        return self.known[name]


def damaged(original: dict[str, bytes], damage: Damage, folder: Path, name: str) -> Path:
    """Write a file, or folder of files, of which one is damaged; return its path."""
    victim = sorted(original)[damage.seed % len(original)]
    for relative, content in original.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damage(content) if relative == victim else content)
    return folder / FORMATS[name][0]


def check_read(path: Path) -> str:
    """Read a file; return "read" or "refused", or raise where it is neither.

    What is refused is refused in one line that names the file.
    """
    try:
        loaded = load(path)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = str(error)
        if path.name not in text or "\n" in text.strip():
            msg = (
                f"{type(error).__name__} without the name of {path.name}, or of many lines: {text}"
            )
            raise AssertionError(msg) from error
        return "refused"
    assert isinstance(loaded, Loaded)
    assert loaded.X.dtype.kind == "f"
    assert loaded.X.ndim >= 2
    assert len(loaded.names) == len(loaded.X)
    return "read"


def zip_of(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()
