"""Models as arrays and JSON: the same estimator comes back, and a file can run nothing."""

import io
import json
import pickle
import zipfile
from enum import Enum
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer

import tubal
from tubal import persistence
from tubal.datasets import make_tensor_subspaces

DATA = make_tensor_subspaces(20, 6, 3, 2, 12, outliers=0.1, random_state=0)
HOLES = make_tensor_subspaces(20, 6, 3, 2, 12, outliers=0, missing=0.15, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return tubal.ORTLRR(3, random_state=0).fit(DATA.X)


@pytest.fixture
def saved(fitted, tmp_path):
    tubal.save_model(fitted, tmp_path / "m.npz")
    return tmp_path / "m.npz"


def again(estimator, folder):
    tubal.save_model(estimator, folder / "again.npz")
    return tubal.load_model(folder / "again.npz")


def check_equal(one, two, where=""):
    """Compare everything that two objects hold."""
    assert type(one) is type(two), where
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype, where
        np.testing.assert_array_equal(one, two, err_msg=where)
    elif isinstance(one, csr_array):
        assert one.shape == two.shape, where
        for name in ("data", "indices", "indptr"):
            check_equal(getattr(one, name), getattr(two, name), f"{where}.{name}")
    elif isinstance(one, dict):
        assert list(one) == list(two), where
        for key, value in one.items():
            check_equal(value, two[key], f"{where}.{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), where
        for i, pair in enumerate(zip(one, two, strict=True)):
            check_equal(*pair, f"{where}[{i}]")
    elif hasattr(one, "__dict__") and not isinstance(one, (FunctionType, Enum)):
        check_equal(vars(one), vars(two), where)
    else:
        assert one == two or one != one, where


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", tubal.methods())
def test_every_method_comes_back(name, tmp_path):
    estimator = tubal.make(name).set_params(n_clusters=3).fit(DATA.X)
    loaded = again(estimator, tmp_path)
    check_equal(estimator, loaded, name)
    np.testing.assert_array_equal(loaded.predict(DATA.X), estimator.predict(DATA.X))


@pytest.mark.parametrize(
    "estimator",
    [
        tubal.ORTLRR(3, random_state=0),
        tubal.ORTLRR(3, transform="data", lam=tubal.Lambda.relative(0.5), random_state=0),
        tubal.ORTLRR(random_state=0),
        tubal.TensorOutlierDetector(),
        tubal.TensorCompleter(tol=1e-2),
    ],
    ids=str,
)
@pytest.mark.parametrize("X", [DATA.X, HOLES.X, DATA.X.reshape(len(DATA.X), -1)[:, :7]])
def test_every_estimator_comes_back(estimator, X, tmp_path):
    estimator.fit(X)
    check_equal(estimator, again(estimator, tmp_path))


def test_an_unfitted_one_comes_back(tmp_path):
    assert again(tubal.ORTLRR(4, tol=1e-2), tmp_path).get_params()["tol"] == 1e-2


def test_new_samples_are_labelled_alike(fitted, tmp_path):
    new = DATA.X[::2] + 0.01
    loaded = again(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.predict(new), fitted.predict(new))
    np.testing.assert_array_equal(loaded.score_samples(new), fitted.score_samples(new))
    np.testing.assert_array_equal(loaded.transform(new), fitted.transform(new))


def test_what_is_not_of_the_package_is_named(tmp_path):
    estimator = tubal.ORTLRR(3, completion=SimpleImputer())
    with pytest.raises(ValueError, match=r"ORTLRR\.completion is of sklearn.*joblib"):
        tubal.save_model(estimator, tmp_path / "m.npz")
    with pytest.raises(ValueError, match="random_state is of numpy"):
        tubal.save_model(tubal.ORTLRR(random_state=np.random.RandomState(0)), tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_every_class_of_the_list_is_one_of_the_package():
    for key, kind in persistence._classes().items():
        assert isinstance(kind, type)
        assert f"{kind.__module__}.{kind.__qualname__}" == f"tubal.{key}"


# ---- hostile files -------------------------------------------------------------------------------


def write(path, model, arrays=(), schema=1, kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("model.json", json.dumps({"schema": schema, "model": model}))
        for i, content in enumerate(arrays):
            archive.writestr(f"{i}.npy", content)
    return path


class Touches:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def pickled_array(path):
    out = io.BytesIO()
    np.save(out, np.array([Touches(path)], dtype=object), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "key",
    [
        "cli.outputs.os",
        "tubal.cli.outputs.os.system",
        "cli.outputs.os.system",
        "estimators.lowrank.ORTLRR.fit",
        "persistence.Path",
        "__class__",
        "solvers.Dask",
        "",
        None,
        3,
        ["graph.Nearest"],
    ],
)
def test_no_other_name_is_resolved(key, tmp_path):
    path = write(tmp_path / "m.npz", {"object": key, "state": {}})
    with pytest.raises(ValueError, match="is no model that this version can load"):
        tubal.load_model(path)


@pytest.mark.parametrize(
    "model",
    [
        {"method": "system"},
        {"value": 1},
        {"_at": 0},
        {"archive": 0},
        {"lam": "of", "parameter": 1},
        {"lam": "__init__", "parameter": 1},
        {"array": "../../x"},
        {"array": 7},
        {"array": True},
        {"csr": [0, 0, 0], "shape": [3, 3]},
        {},
        [1],
        {"object": "graph.Nearest"},
        {"dict": [[{"list": []}, 1]]},
    ],
)
def test_other_nodes_are_refused(model, tmp_path):
    path = write(tmp_path / "m.npz", model, [_npy(np.array([5, -1, 9]))])
    with pytest.raises(ValueError, match="is no model that this version can load"):
        tubal.load_model(path)


def _npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_pickled_arrays_are_refused(tmp_path):
    path = write(tmp_path / "m.npz", {"array": 0}, [pickled_array(tmp_path / "touched")])
    with pytest.raises(ValueError, match="is no model"):
        tubal.load_model(path)
    assert not (tmp_path / "touched").exists()


def test_pickles_are_refused(tmp_path):
    (tmp_path / "m.npz").write_bytes(pickle.dumps(Touches(tmp_path / "touched")))
    with pytest.raises(ValueError, match="is no model"):
        tubal.load_model(tmp_path / "m.npz")
    assert not (tmp_path / "touched").exists()


def test_bombs_are_refused(tmp_path):
    bomb = [_npy(np.zeros(10**6))]
    path = write(tmp_path / "m.npz", {"array": 0}, bomb, kind=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="it is compressed"):
        tubal.load_model(path)
    (tmp_path / "deep.npz").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "deep.npz", "w") as archive:
        deep = '{"list": [' * 50_000 + "]}" * 50_000
        archive.writestr("model.json", '{"schema": 1, "model": ' + deep + "}")
    with pytest.raises(ValueError, match="nested too deeply"):
        tubal.load_model(tmp_path / "deep.npz")


def test_another_schema_is_refused(tmp_path):
    with pytest.raises(ValueError, match="its schema is 2, this version reads 1"):
        tubal.load_model(write(tmp_path / "m.npz", None, schema=2))


def test_data_is_no_model(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.ones(3))
    with pytest.raises(ValueError, match=r"it holds no model\.json"):
        tubal.load_model(tmp_path / "d.npz")
    with pytest.raises(FileNotFoundError):
        tubal.load_model(tmp_path / "nothing.npz")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(place=st.floats(0, 1), change=st.integers(1, 255), cut=st.booleans())
def test_damaged_files_are_refused_or_load(saved, place, change, cut):
    """A checksum guards every member, so that only what it does not cover can pass."""
    content = bytearray(saved.read_bytes())
    at = min(int(place * len(content)), len(content) - 1)
    content[at] ^= change
    damaged = saved.with_name("damaged.npz")
    damaged.write_bytes(content[:at] if cut else content)
    try:
        tubal.load_model(damaged)
    except ValueError as error:
        assert "is no model that this version can load" in str(error)
