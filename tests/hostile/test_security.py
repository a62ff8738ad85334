"""Nothing that is read starts a process, runs code, follows a path elsewhere, or fills memory."""

import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tubal
from hostile.formats import CUBE, zip_of
from tubal import cli
from tubal.files import load
from tubal.files.loading import ARRAYS, TABLES

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 7\n(touched) run showpage\n%%EOF\n"
PICTURES = (".png", ".jpg", ".tif", ".bmp", ".webp", ".pgm")


def run(*argv):
    return cli.main([str(arg) for arg in argv])


class Touches:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


# ---- processes -----------------------------------------------------------------------------------


@pytest.fixture
def spies(tmp_path, monkeypatch):
    """Programs on PATH that leave a trace when they are started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("gs", "gswin64c", "convert", "ffmpeg", "djpeg", "ppmquant", "xdg-open"):
        (folder / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "started"


@pytest.mark.skipif(os.name != "posix", reason="scripts as programs")
def test_postscript_with_the_name_of_a_picture_starts_nothing(tmp_path, spies, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    started = []
    monkeypatch.setattr(subprocess.Popen, "__init__", lambda self, *a, **k: started.append(a))
    monkeypatch.setattr(os, "system", started.append)
    (tmp_path / "in").mkdir()
    for i in range(2):
        image.fromarray(np.full((7, 9), 40 * i, np.uint8)).save(tmp_path / "in" / f"{i}.png")
    for suffix in PICTURES:
        (tmp_path / "in" / f"postscript{suffix}").write_bytes(EPS)
    loaded = load(tmp_path / "in")
    assert loaded.names == ("0.png", "1.png")
    assert {name for name, _ in loaded.skipped} == {f"postscript{s}" for s in PICTURES}
    assert {why for _, why in loaded.skipped} == {"not a picture"}
    assert not started
    assert not spies.exists()


def test_pillow_would_have_started_it(tmp_path, spies):
    """The test above would see a process."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "x.png").write_bytes(EPS)
    with pytest.raises(Exception), image.open(tmp_path / "x.png") as picture:  # noqa: B017
        picture.load()
    assert spies.exists()


# ---- code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", sorted({*ARRAYS, *TABLES}))
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_no_data_under_any_name(tmp_path, suffix, protocol):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(pickle.dumps([Touches(tmp_path / "touched")] * 3, protocol))
    with pytest.raises(ValueError, match=f"x{suffix}"):
        load(path)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_pickle_is_no_picture(tmp_path, suffix):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"x{suffix}").write_bytes(pickle.dumps(Touches(tmp_path / "touched")))
    with pytest.raises(ValueError, match="none of the 1 pictures"):
        load(tmp_path / "in")
    assert not (tmp_path / "touched").exists()


def objects(path):
    """Return a .npy file of Python objects."""
    out = io.BytesIO()
    np.save(out, np.array([[Touches(path)] * 2] * 2, dtype=object), allow_pickle=True)
    return out.getvalue()


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    (tmp_path / "x.npy").write_bytes(objects(tmp_path / "touched"))
    names = zip_of({"X.npy": _npy(CUBE), "names.npy": objects(tmp_path / "touched")})
    (tmp_path / "x.npz").write_bytes(names)
    with pytest.raises(ValueError, match=r"x\.npy holds Python objects"):
        load(tmp_path / "x.npy")
    assert load(tmp_path / "x.npz").names == tuple("012345")
    with pytest.raises(ValueError, match="--key names is not in"):
        load(tmp_path / "x.npz", key="names")
    assert not (tmp_path / "touched").exists()


def _npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def zarr_2(folder, **metadata):
    """Write a Zarr store of version 2 whose only chunk is a pickle."""
    folder.mkdir()
    about = {
        "zarr_format": 2, "shape": [4, 3], "chunks": [4, 3], "dtype": "|O", "order": "C",
        "fill_value": None, "compressor": None, "filters": [{"id": "pickle", "protocol": 5}],
    }  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(about | metadata), encoding="utf-8")
    (folder / "0.0").write_bytes(pickle.dumps([Touches(folder.parent / "touched")]))
    return folder


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"dtype": "<f8"},
        {"dtype": "<f8", "filters": None, "compressor": {"id": "pickle"}},
        {"filters": [{"id": "json2"}]},
        {"filters": [{"id": "msgpack2"}]},
    ],
)
def test_codecs_of_zarr_that_run_code_are_refused(tmp_path, metadata):
    pytest.importorskip("zarr")
    with pytest.raises(ValueError, match=r"x\.zarr"):
        load(zarr_2(tmp_path / "x.zarr", **metadata))
    assert not (tmp_path / "touched").exists()


# ---- other files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".h5", ".mat", ".nc"])
@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_arrays_in_other_files_are_refused(tmp_path, suffix, kind):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(CUBE.tobytes())
    path = tmp_path / f"x{suffix}"
    block = 512 if suffix == ".mat" else 0
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["X"] = CUBE
    with h5py.File(path, "w", userblock_size=block) as file:
        if kind == "external":
            where = [(tmp_path / "secret", 0, CUBE.nbytes)]
            file.create_dataset("X", CUBE.shape, "f8", external=where)
        else:
            layout = h5py.VirtualLayout(CUBE.shape, "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", CUBE.shape)
            file.create_virtual_dataset("X", layout)
    if block:
        with path.open("r+b") as opened:
            opened.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(ValueError, match=f"'X' in .*x{suffix} refers to other files"):
        load(path)


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
def test_links_to_other_files_are_not_followed(tmp_path, suffix):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["X"] = CUBE
    with h5py.File(tmp_path / f"x{suffix}", "w") as file:
        file["link"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "X")
        file["nowhere"] = h5py.SoftLink("/not/there")
    with pytest.raises(ValueError, match=f"x{suffix}"):
        load(tmp_path / f"x{suffix}")
    with pytest.raises(ValueError, match=f"x{suffix}"):
        load(tmp_path / f"x{suffix}", key="link")


def test_links_out_of_a_folder_of_pictures_are_not_followed(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for folder in ("in", "private"):
        (tmp_path / folder).mkdir()
        for i in range(2):
            path = tmp_path / folder / f"{folder}{i}.png"
            image.fromarray(np.full((3, 4), i, np.uint8)).save(path)
    (tmp_path / "in" / "link").symlink_to(tmp_path / "private", target_is_directory=True)
    assert load(tmp_path / "in").names == ("in0.png", "in1.png")


@pytest.mark.parametrize("name", ["../x.npy", "/x.npy", "a/../../x.npy", "C:\\x.npy"])
def test_members_of_an_archive_are_never_written(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.npz").write_bytes(zip_of({name: _npy(CUBE)}))
    np.testing.assert_array_equal(load(tmp_path / "in" / "x.npz").X, CUBE)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["in", "x.npz"]


# ---- memory --------------------------------------------------------------------------------------


def bomb(path, shape, *, stored=None, others=()):
    """Write an .npz of zeros that are `shape` large, unpacked, or only say that they are."""
    out = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, about)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(out.getvalue())
            for _ in range(int(np.prod(shape)) // 2**17 if stored is None else stored):
                file.write(bytes(2**20))
        for name, array in others:
            archive.writestr(f"{name}.npy", _npy(array))
    return path


@pytest.fixture
def peak():
    """Return a function that tells the largest amount of memory taken so far, in bytes."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_a_bomb_is_refused_by_its_header(tmp_path, peak):
    path = bomb(tmp_path / "x.npz", (2**10, 2**14), others=[("a", CUBE)])  # 134 MB
    assert path.stat().st_size < 2**20
    words = r"x\.npz needs 0\.268 GB of memory, --max-memory allows 0\.1 GB"
    with pytest.raises(ValueError, match=words):
        load(path, key="X", max_memory=100_000_000)
    with pytest.raises(ValueError, match="--key B is not in"):
        load(path, key="B")
    with pytest.raises(ValueError, match="choose one with --key"):
        load(path)
    np.testing.assert_array_equal(load(path, key="a", max_memory=10**6).X, CUBE)
    assert peak() < 5e6


def test_a_header_that_lies_is_refused(tmp_path, peak):
    with pytest.raises(ValueError, match=r"X\.npy should have 8589934720 bytes, it has"):
        load(bomb(tmp_path / "x.npz", (2**20, 2**10), stored=1))
    assert peak() < 5e6


def test_more_than_the_machine_has_is_refused_without_a_limit(tmp_path, peak):
    """A .npy file with a hole, which takes no room on the disk."""
    shape = (2**20, 2**17)
    with (tmp_path / "x.npy").open("wb") as file:
        about = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        try:
            file.truncate(file.tell() + 8 * 2**37)
        except OSError:
            pytest.skip("the file system has no files of that size")
    with pytest.raises(ValueError, match=r"x\.npy needs 2\.2e\+03 GB of memory, there is room"):
        load(tmp_path / "x.npy")
    assert peak() < 5e6


@pytest.mark.parametrize("name", ["x.h5", "x.nc", "x.zarr"])
def test_arrays_that_were_never_written_are_refused_by_their_header(tmp_path, peak, name):
    """Chunks that are not there take no room in a file and are zeros when they are read."""
    shape, path = (2**14, 2**14), tmp_path / name
    if name == "x.zarr":
        zarr = pytest.importorskip("zarr")
        zarr.create_array(path, shape=shape, chunks=(2**10, 2**10), dtype="f8")
    else:
        h5py = pytest.importorskip("h5py")
        pytest.importorskip("h5netcdf")
        with h5py.File(path, "w") as file:
            file.create_dataset("X", shape, "f8", chunks=(2**10, 2**10))
    with pytest.raises(ValueError, match=rf"{name} needs 4\.29 GB of memory, --max-memory allows"):
        load(path, max_memory=10**9)
    assert peak() < 20e6


def test_names_are_read_within_the_limit(tmp_path, peak):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = CUBE
        file.create_dataset("names", (6,), "S100000000", chunks=(1,))
    with pytest.raises(ValueError, match=r"x\.h5 needs 0\.6 GB of memory"):
        load(tmp_path / "x.h5", max_memory=10**8)
    assert peak() < 5e6


def test_the_command_line_knows_the_limit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bomb(tmp_path / "x.npz", (2**10, 2**14))
    assert run("cluster", "x.npz", "--max-memory", "0.1GB") == 2
    told = capsys.readouterr().err
    assert told == ("tubal: error: x.npz needs 0.268 GB of memory, --max-memory allows 0.1 GB\n")
    assert os.listdir() == ["x.npz"]


# ---- what is imported ----------------------------------------------------------------------------


def test_reading_data_imports_no_pickle_of_strangers(tmp_path):
    """Nothing in the folder of the data is imported, whatever its name."""
    np.save(tmp_path / "x.npy", CUBE)
    for name in ("numpy", "sitecustomize", "tubal", "json", "h5py", "zarr", "rich"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    code = "import sys; from tubal.cli import main; sys.exit(main(sys.argv[1:]))"
    # -P as the installed command has it: without the working folder on the path.
    argv = [sys.executable, "-P", "-c", code, "outliers", "x.npy", "--no-report"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tubal.__file__).parents[1])}
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
