"""Every format is read back as it was written, and every bad file is told in one sentence."""

import csv
import sys
import zipfile

import numpy as np
import pytest
import scipy.io

from tubal.files import load
from tubal.files.layout import hide
from tubal.files.loaded import by

RNG = np.random.default_rng(0)
CUBE = RNG.normal(size=(6, 4, 3))
LABELS = np.arange(6)
MASK = RNG.random(CUBE.shape) < 0.7
MASK[:, 0, 0] = True


@pytest.fixture
def cube():
    X = CUBE.copy()
    X[0, 1, 2] = np.nan
    return X


def refused(path, message, error=ValueError, **options):
    with pytest.raises(error, match=message) as caught:
        load(path, **options)
    assert "\n" not in str(caught.value)


# ---- NumPy ---------------------------------------------------------------------------------------


def test_npy(tmp_path, cube):
    np.save(tmp_path / "x.npy", cube)
    loaded = load(tmp_path / "x.npy")
    np.testing.assert_array_equal(loaded.X, cube)
    assert loaded.names == tuple("012345")
    assert loaded.notes == (
        "6 x 4 x 3: axis 0 holds the 6 samples, as is usual; --sample-axis says otherwise",
    )
    assert not loaded.pictures
    assert loaded.skipped == ()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_the_sample_axis_can_be_chosen(tmp_path, cube, axis):
    np.save(tmp_path / "x.npy", np.moveaxis(cube, 0, axis))
    loaded = load(str(tmp_path / "x.npy"), sample_axis=axis)
    np.testing.assert_array_equal(loaded.X, cube)
    assert loaded.X.flags.c_contiguous
    assert "as you said" in loaded.notes[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, ">f8"])
def test_numbers_become_floats(tmp_path, dtype):
    X = RNG.integers(0, 200, (4, 3)).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    found = load(tmp_path / "x.npy").X
    np.testing.assert_array_equal(found, X.astype(float))
    assert found.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_npz_takes_the_only_array_of_numbers(tmp_path, cube):
    names = np.array(list("abcdef"))
    np.savez(tmp_path / "x.npz", images=cube, labels=LABELS, names=names, seen=np.isnan(cube))
    loaded = load(tmp_path / "x.npz")
    np.testing.assert_array_equal(loaded.X, cube)
    assert loaded.names == tuple("abcdef")
    assert "since 'labels' has 6 entries" in loaded.notes[0]
    assert loaded.notes[1:] == ("not used: 'labels'",)


def test_labels_tell_the_axis(tmp_path, cube):
    np.savez(tmp_path / "x.npz", images=np.moveaxis(cube, 0, 1), y=LABELS)
    loaded = load(tmp_path / "x.npz")
    np.testing.assert_array_equal(loaded.X, cube)
    assert "axis 1 holds the 6 samples, since 'y' has 6 entries" in loaded.notes[0]


def test_a_key_chooses_among_several(tmp_path, cube):
    np.savez(tmp_path / "x.npz", a=cube, b=2 * cube)
    refused(tmp_path / "x.npz", r"choose one with --key: a \(6 x 4 x 3\), b \(6 x 4 x 3\)")
    refused(tmp_path / "x.npz", "--key c is not in .*, which holds a", key="c")
    np.testing.assert_array_equal(load(tmp_path / "x.npz", key="b").X, 2 * cube)


class Danger:
    def __reduce__(self):
        return (pytest.fail, ("code of a file was run",))


def test_pickles_are_not_opened(tmp_path):
    objects = np.array([[Danger(), 1], [2, 3]], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", objects=objects, allow_pickle=True)
    refused(tmp_path / "x.npy", "holds Python objects, which are not read")
    refused(tmp_path / "x.npz", "holds no array of numbers|samples are real numbers")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(5.0), r"float64 entries and 1 axes \(5\); samples are real numbers"),
        (np.ones((3, 2), dtype=complex), "complex128 entries"),
        (np.ones((3, 2), dtype=bool), "bool entries"),
        (np.array([["a", "b"]]), "<U1 entries"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "has 1 infinite values; NaN marks missing"),
        (np.ones((1, 4)), "at least 2 are needed"),
        (np.ones((0, 4)), "at least 2 are needed"),
        (np.ones((4, 0)), "at least 2 are needed"),
        (np.array([[np.nan, np.nan], [1, 2]]), r"1 samples have no observed entry \(0\)"),
    ],
)
def test_arrays_that_are_no_samples(tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    refused(tmp_path / "x.npy", message)


def test_one_sample_can_be_enough(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 4)))
    assert load(tmp_path / "x.npy", min_samples=1).X.shape == (1, 4)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.mat"])
@pytest.mark.parametrize("content", [b"", b"nonsense, nothing but nonsense" * 10])
def test_files_that_are_something_else(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, f"{name} is not a .*\\.{name[2:]} file")


def test_files_that_are_cut_short(tmp_path, cube):
    np.save(tmp_path / "x.npy", cube)
    np.savez(tmp_path / "x.npz", cube=cube)
    for name in ("x.npy", "x.npz"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:300])
        refused(path, "x.np")


def test_names_that_lie(tmp_path, cube):
    np.save(tmp_path / "x.npy", cube)
    np.savez(tmp_path / "y.npz", cube=cube)
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    (tmp_path / "y.npz").rename(tmp_path / "y.npy")
    refused(tmp_path / "x.npz", "is a .npy file with the name of a .npz file")
    refused(tmp_path / "y.npy", "is a .npz file with the name of a .npy file")


# ---- MATLAB, HDF5, Zarr, NetCDF ------------------------------------------------------------------


def write_mat_73(path, **variables):
    """Write as MATLAB does: HDF5 behind a header, axes reversed."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            text = isinstance(value, str)
            data = np.array([[ord(c)] for c in value], np.uint16) if text else np.asarray(value).T
            kind = b"char" if text else b"logical" if data.dtype == bool else b"double"
            item = file.create_dataset(name, data=data.astype(np.uint8) if kind[0] == 108 else data)
            item.attrs["MATLAB_class"] = kind
        file.create_group("#refs#").create_dataset("a", data=np.ones((3, 3)))
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    with path.open("r+b") as file:
        file.write(header)


def write_mat_5(path, **variables):
    scipy.io.savemat(path, variables)


@pytest.mark.parametrize("write", [write_mat_5, write_mat_73])
def test_mat(tmp_path, cube, write):
    path = tmp_path / "x.mat"
    write(path, images=np.moveaxis(cube, 0, -1), note="from a friend")
    loaded = load(path)
    np.testing.assert_array_equal(loaded.X, cube)
    assert "axis 2 holds the 6 samples, a guess, as is usual in MATLAB" in loaded.notes[0]
    write(path, fea=cube.reshape(6, -1), gnd=LABELS[:, None])
    loaded = load(path)
    np.testing.assert_array_equal(loaded.X, cube.reshape(6, -1))
    assert "since 'gnd' has 6 entries" in loaded.notes[0]
    write(path, X=np.moveaxis(cube, 0, 1), labels=LABELS[None])  # lateral slices, as in the paper
    np.testing.assert_array_equal(load(path).X, cube)
    write(path, X=np.moveaxis(cube, 0, 1))
    np.testing.assert_array_equal(load(path, sample_axis=1).X, cube)
    write(path, X=cube, Y=cube)
    refused(path, "choose one with --key: X")
    write(path, X=np.arange(5.0)[None], Y=np.arange(4.0)[None])
    refused(path, "holds no array of numbers with 2 or more axes")


def test_rows_of_matlab_hold_columns(tmp_path):
    rows = np.stack([sample.reshape(-1, order="F") for sample in CUBE])
    seen = np.stack([sample.reshape(-1, order="F") for sample in MASK])
    write_mat_5(tmp_path / "x.mat", fea=rows)
    write_mat_5(tmp_path / "m.mat", seen=seen)
    loaded = load(tmp_path / "x.mat", shape=(4, 3), mask=tmp_path / "m.mat")
    np.testing.assert_array_equal(loaded.X, np.where(MASK, CUBE, np.nan))


def test_a_table_of_matlab_has_samples_in_rows(tmp_path):
    write_mat_5(tmp_path / "x.mat", X=CUBE.reshape(6, 12))
    np.testing.assert_array_equal(load(tmp_path / "x.mat").X, CUBE.reshape(6, 12))


def test_hdf5(tmp_path, cube):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["deep/cube"] = cube
        file["names"] = list("abcdef")
    loaded = load(tmp_path / "x.h5")
    np.testing.assert_array_equal(loaded.X, cube)
    assert loaded.names == tuple("abcdef")
    (tmp_path / "y.h5").write_bytes(b"nonsense")
    refused(tmp_path / "y.h5", "y.h5 is not an HDF5 file")


def test_zarr(tmp_path, cube):
    zarr = pytest.importorskip("zarr")
    one = zarr.open(str(tmp_path / "one.zarr"), mode="w", shape=cube.shape, dtype=float)
    one[...] = cube
    np.testing.assert_array_equal(load(tmp_path / "one.zarr").X, cube)
    (tmp_path / "one.zarr").rename(tmp_path / "plain")
    np.testing.assert_array_equal(load(tmp_path / "plain").X, cube)
    group = zarr.open_group(str(tmp_path / "many.zarr"), mode="w")
    for name, values in {"labels": LABELS, "cube": np.moveaxis(cube, 0, 2)}.items():
        array = group.create_array(name, shape=values.shape, dtype=values.dtype)
        array[...] = values
    loaded = load(tmp_path / "many.zarr")
    np.testing.assert_array_equal(loaded.X, cube)
    assert "'cube' (4 x 3 x 6): axis 2 holds the 6 samples" in loaded.notes[0]


def test_zarr_in_a_zip(tmp_path, cube):
    zarr = pytest.importorskip("zarr", minversion="3")
    with zarr.storage.ZipStore(tmp_path / "x.zarr.zip", mode="w") as store:
        zarr.create_array(store, data=cube)
    np.testing.assert_array_equal(load(tmp_path / "x.zarr.zip").X, cube)
    (tmp_path / "y.zarr").mkdir()
    refused(tmp_path / "y.zarr", "y.zarr is not a Zarr store")


@pytest.mark.parametrize("engine", ["scipy", "h5netcdf"])
def test_netcdf(tmp_path, cube, engine):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip(engine)
    data = xarray.Dataset(
        {"heat": (("row", "sample", "column"), np.moveaxis(cube, 0, 1))},
        coords={"sample": [10, 20, 30, 40, 50, 60]},
    )
    encoding = {"heat": {"_FillValue": -99.0}}
    data.to_netcdf(tmp_path / "x.nc", engine=engine, encoding=encoding)
    loaded = load(tmp_path / "x.nc")
    np.testing.assert_array_equal(loaded.X, cube)
    assert loaded.names == ("10", "20", "30", "40", "50", "60")
    assert "axis 1 holds the 6 samples, since its name is 'sample'" in loaded.notes[0]
    (tmp_path / "y.nc").write_bytes(b"nonsense")
    refused(tmp_path / "y.nc", "y.nc is not a NetCDF file")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("x.h5", "h5py"),
        ("x.zarr", "zarr"),
        ("x.nc", "xarray"),
        ("x.parquet", "pyarrow"),
    ],
)
def test_a_package_that_is_not_there_is_named(monkeypatch, tmp_path, name, package):
    (tmp_path / name).touch()
    for module in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs the package {package}: pip install 'tubal\[files\]'"
    refused(tmp_path / name, message, ImportError)


# ---- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3\n4,,6\n7,8,9\n",
        "1;2;3\n4;NA;6\n7;8;9",
        "1\t2\t3\n4\tnan\t6\n7\t8\t9\n\n",
        "1 2 3\n4 NaN 6\n7 8 9\n",
        "\ufeff1, 2, 3\r\n4, ?, 6\r\n7, 8, 9\r\n",
        "a,b,c\n1,2,3\n4,null,6\n7,8,9\n",
        '"a","b","c"\n"1","2","3"\n"4","N/A","6"\n"7","8","9"\n',
        "a,b,label,c\n1,2,0,3\n4,-,1,6\n7,8,1,9\n",
        "id,a,b,c\n1,1,2,3\n2,4,,6\n3,7,8,9\n",
        ",a,b,c\n0,1,2,3\n1,4,,6\n2,7,8,9\n",
        "p,1,2,3\nq,4,,6\nr,7,8,9\n",
    ],
)
def test_csv(tmp_path, text):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    loaded = load(tmp_path / "x.csv")
    np.testing.assert_array_equal(loaded.X, [[1, 2, 3], [4, np.nan, 6], [7, 8, 9]])
    assert len(loaded.names) == 3


def test_csv_tells_what_it_took_for_what(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("name,a,b,class\nx.png,1,2,0\ny.png,3,4,1\n", encoding="utf-8")
    loaded = load(path)
    np.testing.assert_array_equal(loaded.X, [[1, 2], [3, 4]])
    assert loaded.names == ("x.png", "y.png")
    assert loaded.notes == (
        "the first row is a header",
        "'name' holds the names of the samples",
        "column 'class' is not used",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        ("a,b\n", "a header and no rows below it"),
        ("1,2\n3,4,5\n", "row 2: 3 fields, the first row has 2"),
        ("a,b\n1,2\n3,x\n", "row 3, 'b': 'x' is no number; an empty field"),
        ("1,2\n3,inf\n", "infinite"),
        ("p\nq\n", "no numbers|is no number"),
    ],
)
def test_csv_that_is_no_table_of_numbers(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    refused(tmp_path / "x.csv", message)


def test_csv_of_another_encoding(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe1\x00,\x002\x00")
    refused(tmp_path / "x.csv", "is not a text table in UTF-8")


def test_rows_get_a_shape(tmp_path):
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows(CUBE.reshape(6, 12))
    np.testing.assert_allclose(load(tmp_path / "x.csv", shape=(4, 3)).X, CUBE)
    refused(tmp_path / "x.csv", "--shape 5x3 does not fit samples of 12 entries", shape=(5, 3))


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "who": ["x", "y", "z"],
        "a": [1, 2, 3],
        "b": pa.array([1.5, None, 2.5]),
        "label": [0, 1, 0],
    }
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    loaded = load(tmp_path / "x.parquet")
    np.testing.assert_array_equal(loaded.X, [[1, 1.5], [2, np.nan], [3, 2.5]])
    assert loaded.names == ("x", "y", "z")
    assert loaded.notes == ("'who' holds the names of the samples", "column 'label' is not used")
    parquet.write_table(pa.table({"a": ["x"], "b": ["y"]}), tmp_path / "y.parquet")
    refused(tmp_path / "y.parquet", "column 'b': string is no number")
    parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "y.parquet")
    refused(tmp_path / "y.parquet", "has no column of numbers")
    (tmp_path / "z.parquet").write_bytes(b"nonsense")
    refused(tmp_path / "z.parquet", "is not a Parquet file")


# ---- pictures ------------------------------------------------------------------------------------


@pytest.fixture
def image():
    return pytest.importorskip("PIL.Image")


def noise(*shape):
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "TIFF", "webp", "pgm"])
@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3)])
def test_pictures_of_every_kind(tmp_path, image, suffix, shape):
    if suffix == "pgm" and len(shape) == 3:
        suffix = "ppm"
    if suffix == "webp" and len(shape) == 2:
        pytest.skip("WebP is always in colour")
    pictures = noise(3, *shape)
    for i, pixels in enumerate(pictures):
        options = {"lossless": True, "exact": True} if suffix == "webp" else {}
        image.fromarray(pixels).save(tmp_path / f"{i}.{suffix}", **options)
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.X, pictures / 255)
    assert loaded.names == tuple(f"{i}.{suffix}" for i in range(3))
    assert loaded.pictures


def test_nested_folders_hidden_files_and_strangers(tmp_path, image):
    for name in ("b/c/2.png", "a/1.png", ".hidden/x.png", "a/._1.png", "0.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(noise(4, 4)).save(path)
    (tmp_path / "a" / "notes.txt").touch()
    loaded = load(tmp_path)
    assert loaded.names == ("0.png", "a/1.png", "b/c/2.png")
    assert loaded.notes == ("1 file of other kinds left out",)


def test_exif_orientation(tmp_path, image):
    pixels = np.zeros((8, 16), np.uint8)
    pixels[:, 8:] = 255  # the right half is white
    exif = image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees, clockwise
    for name in "ab":
        image.fromarray(pixels).save(tmp_path / f"{name}.jpg", exif=exif, quality=95)
    X = load(tmp_path).X
    assert X.shape == (2, 16, 8)
    assert X[:, :7].max() < 0.1
    assert X[:, 9:].min() > 0.9


def test_unequal_sizes_need_a_size(tmp_path, image):
    for i, shape in enumerate([(8, 6), (8, 6), (16, 12)]):
        image.fromarray(np.full(shape, 51, np.uint8)).save(tmp_path / f"{i}.png")
    refused(tmp_path, r"2 different sizes \(most often 8 x 6, 2 of 3\).*--size 8x6")
    X = load(tmp_path, size=(4, 3)).X
    assert X.shape == (3, 4, 3)
    np.testing.assert_allclose(X, 0.2)


def test_colours_are_kept_unless_grey_is_asked_for(tmp_path, image):
    image.fromarray(np.tile(np.uint8([255, 0, 0]), (4, 4, 1))).save(tmp_path / "red.png")
    image.fromarray(np.full((4, 4), 51, np.uint8)).save(tmp_path / "grey.png")
    loaded = load(tmp_path)
    assert loaded.X.shape == (2, 4, 4, 3)
    np.testing.assert_allclose(loaded.X[0], 0.2)
    np.testing.assert_allclose(loaded.X[1, 0, 0], [1, 0, 0])
    assert "1 of 2 pictures have colours, so all are read in colour" in loaded.notes[0]
    grey = load(tmp_path, grey=True).X
    assert grey.shape == (2, 4, 4)
    np.testing.assert_allclose(grey[1], 0.299, atol=0.003)
    assert load(tmp_path, grey=False, size=(2, 2)).X.shape == (2, 2, 2, 3)


def test_grey_pictures_in_colour_are_told(tmp_path, image):
    for name in "ab":
        grey = np.repeat(noise(4, 4)[..., None], 3, axis=-1)
        image.fromarray(grey).save(tmp_path / f"{name}.png")
    assert load(tmp_path).notes == (
        "the pictures are stored in colour but are grey; --grey is faster",
    )


def test_deep_pictures(tmp_path, image):
    deep = np.array([[0, 65535], [32768, 1]], np.uint16)
    for name in "ab":
        image.fromarray(deep).save(tmp_path / f"{name}.png")
    np.testing.assert_allclose(load(tmp_path).X[0], deep / 65535, rtol=1e-6)
    assert load(tmp_path, size=(4, 4)).X.shape == (2, 4, 4)


def test_palettes_transparency_and_pages(tmp_path, image):
    red = np.tile(np.uint8([255, 0, 0]), (4, 4, 1))
    image.fromarray(red).convert("P").save(tmp_path / "a.png")
    image.fromarray(np.dstack([red, np.full((4, 4), 7, np.uint8)])).save(tmp_path / "b.png")
    pages = [image.fromarray(red), image.fromarray(0 * red)]
    pages[0].save(tmp_path / "c.tif", save_all=True, append_images=pages[1:])
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.X, np.tile([1.0, 0, 0], (3, 4, 4, 1)))
    assert loaded.notes == (
        "transparency is ignored in 1 picture",
        "only the first page is read of 1 picture",
    )


def test_broken_pictures_are_listed_and_left_out(tmp_path, image):
    for name in "abc":
        image.fromarray(noise(40, 40)).save(tmp_path / f"{name}.png")
    (tmp_path / "broken.png").write_bytes(b"nonsense")
    (tmp_path / "empty.jpg").touch()
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[:400])
    calls = []
    loaded = load(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert loaded.names == ("a.png", "b.png", "c.png")
    assert [name for name, _ in loaded.skipped] == ["broken.png", "cut.png", "empty.jpg"]
    assert dict(loaded.skipped)["broken.png"] == "not a picture"
    assert all("\n" not in why for _, why in loaded.skipped)
    assert calls == [(i, 6) for i in range(1, 7)]


def test_folders_without_a_single_picture(tmp_path, image):
    refused(tmp_path, r"holds no pictures \(bmp, jpeg, jpg")
    (tmp_path / "a.png").write_bytes(b"nonsense")
    (tmp_path / "b.png").write_bytes(b"nonsense")
    refused(tmp_path, "none of the 2 pictures in .* can be read: not a picture")


def test_enormous_pictures_are_left_out(tmp_path, image, monkeypatch):
    for name in "ab":
        image.fromarray(noise(4, 4)).save(tmp_path / f"{name}.png")
    image.fromarray(noise(40, 40)).save(tmp_path / "c.png")
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 100)
    loaded = load(tmp_path)
    assert loaded.names == ("a.png", "b.png")
    assert loaded.skipped[0][1].startswith("too large")


def test_pictures_need_pillow(monkeypatch, tmp_path):
    (tmp_path / "a.png").touch()
    for module in [m for m in sys.modules if m.split(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused(tmp_path, r"needs the package pillow: pip install 'tubal\[cli\]'", ImportError)


# ---- masks and options ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bool", "int", "float"])
@pytest.mark.parametrize("axis", [0, 2])
def test_a_mask_hides_entries(tmp_path, kind, axis):
    np.save(tmp_path / "x.npy", np.moveaxis(CUBE, 0, axis))
    mask = {"bool": MASK, "int": MASK.astype(int), "float": np.where(MASK, 1.0, np.nan)}[kind]
    wanted = np.where(MASK, CUBE, np.nan)
    for written in (np.moveaxis(mask, 0, axis), mask):  # as in the file, or samples first
        np.save(tmp_path / "m.npy", written)
        found = load(tmp_path / "x.npy", sample_axis=axis, mask=tmp_path / "m.npy").X
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("flat", [True, False])
def test_a_mask_of_rows_that_get_a_shape(tmp_path, flat):
    np.save(tmp_path / "x.npy", CUBE.reshape(6, 12))
    np.save(tmp_path / "m.npy", MASK.reshape(6, 12) if flat else MASK)
    found = load(tmp_path / "x.npy", shape=(4, 3), mask=tmp_path / "m.npy").X
    np.testing.assert_array_equal(found, np.where(MASK, CUBE, np.nan))


def test_masks_of_one_sample_and_of_colours():
    one = MASK[0]
    np.testing.assert_array_equal(hide(CUBE, one, 0, "m"), np.where(one, CUBE, np.nan))
    colour = np.ones((6, 4, 3, 3))
    wanted = np.where(MASK[..., None], colour, np.nan)
    np.testing.assert_array_equal(hide(colour, MASK, 0, "m"), wanted)


@pytest.mark.parametrize("shape", [(6, 3, 4), (5, 4, 3), (3, 4), (6,), (72,)])
def test_masks_that_do_not_fit(tmp_path, shape):
    np.save(tmp_path / "x.npy", CUBE)
    np.save(tmp_path / "m.npy", np.ones(shape))
    message = f"m.npy is {by(shape)}, the samples are 6 x 4 x 3: it must have the shape"
    refused(tmp_path / "x.npy", message, mask=tmp_path / "m.npy")


def test_masks_of_other_formats(tmp_path):
    np.save(tmp_path / "x.npy", CUBE)
    np.savez(tmp_path / "m.npz", seen=MASK)
    np.savetxt(tmp_path / "m.csv", MASK.reshape(6, 12), delimiter=",")
    np.save(tmp_path / "rows.npy", CUBE.reshape(6, 12))
    for name, options in (("m.npz", {}), ("m.csv", {"shape": (4, 3)})):
        path = tmp_path / ("rows.npy" if options else "x.npy")
        found = load(path, mask=tmp_path / name, **options).X
        np.testing.assert_array_equal(np.isnan(found), ~MASK)
    refused(tmp_path / "x.npy", "is a folder", mask=tmp_path)
    refused(tmp_path / "x.npy", "does not exist", mask=tmp_path / "nothing.npy")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.npy", {"key": "X"}, "--key is for files with several arrays"),
        ("x.npy", {"size": (2, 2)}, "--size is for folders of pictures"),
        ("x.npy", {"grey": True}, "--grey is for folders of pictures"),
        ("x.npy", {"sample_axis": 3}, "--sample-axis 3 does not exist: the array is 6 x 4 x 3"),
        ("x.npy", {"sample_axis": -4}, "--sample-axis -4 does not exist"),
        ("x.npy", {"shape": (5,)}, "--shape 5 does not fit samples of 12 entries"),
        ("x.csv", {"sample_axis": 0}, "--sample-axis is for arrays"),
        ("pictures", {"shape": (2, 2)}, "--shape is for arrays and tables"),
        ("nothing.npy", {}, "nothing.npy does not exist"),
        ("x.docx", {}, "is of no known kind: give a folder of pictures, .npy, .npz"),
        ("x.png", {}, "is one picture, that is one sample: give a folder of pictures"),
    ],
)
def test_options_and_paths_that_make_no_sense(tmp_path, name, options, message):
    np.save(tmp_path / "x.npy", CUBE)
    (tmp_path / "pictures").mkdir()
    for other in ("x.csv", "x.docx", "x.png"):
        (tmp_path / other).touch()
    refused(tmp_path / name, message, **options)


def test_a_zip_is_no_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    refused(tmp_path / "x.npz", "holds no array|is not")
