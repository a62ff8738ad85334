"""Damaged files of every format are read or refused in one line, and nothing else happens."""

import shutil

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings

from hostile.formats import CUBE, FORMATS, Damage, Originals, check_read, damaged, damages
from tubal.files import load

pytest.importorskip("h5netcdf")
pytest.importorskip("zarr")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    return Originals(tmp_path_factory.mktemp("originals"))


@pytest.mark.parametrize("name", FORMATS)
def test_whole_files_are_read(originals, tmp_path, name):
    path = damaged(originals[name], Damage("insert", 0.0, 0), tmp_path, name)
    for relative, content in originals[name].items():
        (tmp_path / relative).write_bytes(content)
    assert check_read(path) == "read"
    if name not in ("pictures", "CSV", "Parquet"):
        found = load(path).X
        np.testing.assert_array_equal(found.reshape(CUBE.shape), CUBE)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages)
def test_damaged_files_are_read_or_refused(originals, tmp_path, name, damage):
    folder = tmp_path / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    check_read(damaged(originals[name], damage, folder, name))


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path, version, compressed):
    rng = np.random.default_rng(0)
    arrays = {
        "doubles": rng.normal(size=(3, 4)),
        "small": np.arange(12.0).reshape(3, 4),
        "bytes": rng.integers(0, 255, (5, 2), dtype=np.uint8),
    }
    if version == "5":
        arrays |= {"deep": rng.normal(size=(2, 3, 4)), "int64": np.array([[2**62, -(2**62)]])}
        arrays |= {"seen": arrays["doubles"] > 0, "single": rng.normal(size=(2, 2)).astype("f4")}
    scipy.io.savemat(tmp_path / "x.mat", arrays, format=version, do_compression=compressed)
    for key in sorted(set(arrays) - {"seen"}):
        wanted = np.moveaxis(arrays[key], -1, 0) if arrays[key].ndim == 3 else arrays[key]
        found = load(tmp_path / "x.mat", key=key, min_samples=1).X
        np.testing.assert_array_equal(found, wanted)
    if version == "5":
        hidden = load(tmp_path / "x.mat", key="doubles", mask=_mask(tmp_path, arrays["seen"])).X
        np.testing.assert_array_equal(np.isnan(hidden), ~arrays["seen"])


def _mask(folder, seen):
    scipy.io.savemat(folder / "mask.mat", {"seen": seen})
    return folder / "mask.mat"


@pytest.mark.parametrize("name", ["MATLAB 5", "MATLAB 5, compressed"])
def test_a_shape_that_the_numbers_do_not_fill_is_refused(originals, tmp_path, name):
    """The compiled reader of SciPy crashes on some of these."""
    (content,) = originals[name].values()
    if "compressed" in name:
        import zlib

        inside = bytearray(zlib.decompress(content[136:]))
        inside[32:36] = (2**30).to_bytes(4, "little")
        packed = zlib.compress(bytes(inside))
        content = content[:132] + len(packed).to_bytes(4, "little") + packed
    else:
        content = bytearray(content)
        content[160:164] = (2**30).to_bytes(4, "little")
    (tmp_path / "x.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.mat is not a whole \.mat file: 'images' should have"):
        load(tmp_path / "x.mat")


@pytest.mark.parametrize("place", [4112, 4176])
def test_objects_without_a_length_do_not_hang_hdf5(originals, tmp_path, place):
    content = bytearray(originals["NetCDF 4"]["x.nc"])
    assert content[4096:4100] == b"GCOL"
    content[place : place + 16] = bytes(16)
    (tmp_path / "x.nc").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.nc is not an HDF5 file: a collection .* has no end"):
        load(tmp_path / "x.nc")


def test_text_longer_than_its_file_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"], file["names"] = CUBE, list("abcdef")
        place = file["names"].id.get_offset()
    content = bytearray((tmp_path / "x.h5").read_bytes())
    content[place : place + 4] = (2**32 - 1).to_bytes(4, "little")
    (tmp_path / "x.h5").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.h5 is .*'/names' has entries longer than the file"):
        load(tmp_path / "x.h5")
