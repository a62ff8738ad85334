"""`tubal cluster`, `predict`, `outliers` and `complete` from end to end, on small data."""

import csv
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import pytest

import tubal
from tubal import cli, metrics
from tubal.cli import outputs, progress, resume, session
from tubal.cli.options import _lam
from tubal.datasets import make_tensor_subspaces
from tubal.solvers import Check, watch

DATA = make_tensor_subspaces(20, 6, 3, 2, 20, outliers=0.15, random_state=0)
HOLES = make_tensor_subspaces(20, 6, 3, 2, 20, outliers=0, missing=0.15, random_state=0)


@pytest.fixture(autouse=True)
def in_tmp_path(monkeypatch, tmp_path):
    """Let every command run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    np.savez("toys.npz", X=DATA.X, labels=DATA.labels)
    np.save("holes.npy", HOLES.X)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tubal.__file__).parents[1])}


def run(*argv):
    return cli.main([str(arg) for arg in argv])


def refused(capsys, words, *argv):
    """Run a command that must end with 2, one line, and nothing written."""
    before = sorted(os.listdir())
    assert run(*argv) == 2
    err = capsys.readouterr().err
    last = err.splitlines()[-1]
    assert last.startswith("tubal: error: ")
    assert words in last
    assert sorted(os.listdir()) == before


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name, kind=float):
    return np.array([kind(row[name]) if row[name] else np.nan for row in rows])


# ---- cluster -------------------------------------------------------------------------------------


def test_cluster_writes_what_the_estimator_says(capsys, tmp_path):
    assert run("cluster", "toys.npz", "-k", 3, "--seed", 5, "--clean") == 0
    folder = tmp_path / "tubal-toys"
    names = {"labels.csv", "model.npz", "run.json", "clean.npz", "report.html"}
    assert set(os.listdir(folder)) <= names
    assert set(os.listdir(folder)) >= names - {"report.html"}
    est = tubal.ORTLRR(3, random_state=5).fit(DATA.X)
    rows = table(folder / "labels.csv")
    assert list(rows[0]) == ["name", "label", "outlier_score", "outlier", "margin"]
    assert [row["name"] for row in rows] == [str(i) for i in range(len(DATA.X))]
    np.testing.assert_array_equal(column(rows, "label", int), est.labels_)
    np.testing.assert_array_equal(column(rows, "outlier", int), est.outliers_)
    np.testing.assert_allclose(column(rows, "outlier_score"), est.outlier_scores_, rtol=1e-8)
    np.testing.assert_allclose(column(rows, "margin"), est.margins(), rtol=1e-8)
    with np.load(folder / "clean.npz") as clean:
        np.testing.assert_array_equal(clean["X"], est.X_clean_)
    model = tubal.load_model(folder / "model.npz")
    np.testing.assert_array_equal(model.labels_, est.labels_)
    out = capsys.readouterr().out
    assert f"{len(DATA.X)} samples of 20 x 6\n" in out
    assert "not used: 'labels'" in out
    assert f"; {est.outliers_.sum()} outliers\n" in out
    assert "% of the optimum" in out
    assert "written to tubal-toys: " in out
    assert metrics.clustering_accuracy(DATA.labels, est.labels_) > 0.9


def test_run_json_tells_all(tmp_path):
    assert run("cluster", "toys.npz", "-k", 3, "--lam", "relative:0.5", "--jobs", 1) == 0
    text = (tmp_path / "tubal-toys" / "run.json").read_text(encoding="utf-8")
    record = json.loads(text, parse_constant=pytest.fail)
    model = tubal.load_model(tmp_path / "tubal-toys" / "model.npz")
    assert record["command"] == "cluster"
    assert record["options"]["input"] == "toys.npz"
    assert record["estimator"] == "ORTLRR"
    assert record["parameters"]["lam"] == "Lambda.relative(0.5)"
    assert record["parameters"]["n_jobs"] == 1
    assert record["input"]["samples"] == len(DATA.X)
    assert record["input"]["shape"] == [20, 6]
    assert record["results"]["clusters"] == 3
    assert sum(record["results"]["cluster_sizes"]) == (model.labels_ >= 0).sum()
    assert record["certificate"]["gap"] == model.certificate_.gap <= 1e-4
    assert record["iterations"] == model.n_iter_
    assert record["lam"] == model.lam_
    assert record["stop_reason"] == "the duality gap is below tol"
    assert record["versions"]["tubal"] == tubal.__version__
    assert record["versions"]["numpy"] == np.__version__
    assert set(record["seconds"]) == {"read", "fit", "write"}
    assert record["peak_memory_bytes"] > 10e6
    assert record["resumed_at_iteration"] is None
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (["--method", "TRPCA-DCT", "--max-iter", "50"], {"transform": "dct", "max_iter": 50}),
        (["--method", "SSC"], {"alpha": 20.0}),
        (["--method", "LRR", "--lam", "0.3"], {"lam": 0.3, "vectorize": True}),
        (["--transform", "data-driven", "--tol", "1e-3"], {"transform": "data", "tol": 1e-3}),
        (["--contamination", "0.1"], {"contamination": 0.1}),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_options_reach_the_estimator(tmp_path, options, params):
    assert run("cluster", "toys.npz", "-k", 3, "--out", "out", *options) == 0
    found = tubal.load_model(tmp_path / "out" / "model.npz").get_params()
    assert {name: found[name] for name in params} == params


def test_the_number_of_clusters_can_be_found(capsys):
    assert run("cluster", "toys.npz", "-k", "auto") == 0
    assert "confidence 0." in capsys.readouterr().out


def test_warnings_become_lines(capsys):
    assert run("cluster", "toys.npz", "-k", 3, "--max-iter", 1, "--tol", 1e-9) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: stopped after 1 iteration")
    assert err.endswith("Raise --max-iter, or accept it with a larger --tol\n")


def test_a_report_is_asked_for_with_names_and_samples(monkeypatch, tmp_path, capsys):
    calls = []

    def report(self, path, *, names, images):
        calls.append((names[0], None if images is None else images.shape))
        path.write_text("a page", encoding="utf-8")

    monkeypatch.setattr(tubal.ORTLRR, "report", report, raising=False)
    assert run("cluster", "toys.npz", "-k", 3) == 0
    assert calls == [("0", None)]  # no pictures: the report knows how to show them
    assert (tmp_path / "tubal-toys" / "report.html").read_text(encoding="utf-8") == "a page"
    assert run("cluster", "toys.npz", "-k", 3, "--no-report", "--force") == 0
    assert not (tmp_path / "tubal-toys" / "report.html").exists()

    def lacking(self, path, *, names, images):
        raise ImportError("jinja2 is not there")

    monkeypatch.setattr(tubal.ORTLRR, "report", lacking)
    assert run("cluster", "toys.npz", "-k", 3, "--force") == 0
    assert "report.html is left out: jinja2 is not there" in capsys.readouterr().err


@pytest.mark.slow  # torch takes long to load
def test_torch_gives_the_same_labels(tmp_path):
    pytest.importorskip("torch")
    assert run("cluster", "toys.npz", "-k", 3, "--engine", "torch") == 0
    est = tubal.ORTLRR(3, random_state=0).fit(DATA.X)
    rows = table(tmp_path / "tubal-toys" / "labels.csv")
    np.testing.assert_array_equal(column(rows, "label", int), est.labels_)


@pytest.mark.slow  # starts workers
def test_dask_gives_the_same_labels(tmp_path, capsys):
    pytest.importorskip("distributed")
    assert run("cluster", "toys.npz", "-k", 3, "--engine", "dask", "--jobs", 2) == 0
    assert "dask computes on 2 workers" in capsys.readouterr().err
    est = tubal.ORTLRR(3, random_state=0).fit(DATA.X)
    rows = table(tmp_path / "tubal-toys" / "labels.csv")
    np.testing.assert_array_equal(column(rows, "label", int), est.labels_)


@pytest.mark.slow  # starts workers
def test_lost_worker_leaves_what_was_saved(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("tubal.cli.resume.EVERY", 0.0)
    answers = iter(range(8))
    ask = tubal.Dask.total

    def lose(self, method, *arguments):
        if method == "step" and next(answers, None) is None:
            raise ConnectionError("a worker of the Dask cluster was lost, and the samples it held")
        return ask(self, method, *arguments)

    command = ["cluster", "toys.npz", "-k", "3", "--engine", "dask", "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(tubal.Dask, "total", lose)
        assert run(*command) == 2
    told = capsys.readouterr().err
    assert "was lost, and the samples it held; iteration" in told
    assert "--resume goes on from there" in told
    assert run(*command, "--resume") == 0
    est = tubal.ORTLRR(3, random_state=0).fit(DATA.X)
    rows = table(tmp_path / "tubal-toys" / "labels.csv")
    np.testing.assert_array_equal(column(rows, "label", int), est.labels_)


# ---- pictures ------------------------------------------------------------------------------------


BASES = np.random.default_rng(3).random((2, 2, 12, 10))


def picture(kind, seed):
    """Return a picture of 12 x 10: a mixture of two patterns of its kind, or noise."""
    rng = np.random.default_rng(seed)
    if kind == "noise":
        return rng.integers(0, 256, (12, 10), dtype=np.uint8)
    patterns = BASES[("apples", "pears").index(kind)]
    share = rng.random()
    return np.uint8(255 * (share * patterns[0] + (1 - share) * patterns[1]))


@pytest.fixture
def pictures(tmp_path):
    """A folder: two kinds of pictures, noise, a broken file, and one that lies on its side."""
    image = pytest.importorskip("PIL.Image")
    for i in range(36):
        kind = "noise" if i % 12 == 11 else ("apples", "pears")[i % 2]
        path = tmp_path / "pictures" / f"{kind}{i % 3}" / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(picture(kind, i)).save(path)
    exif = image.Exif()
    exif[0x0112] = 6  # to be turned clockwise
    turned = image.fromarray(np.rot90(picture("apples", 99)))
    turned.save(tmp_path / "pictures" / "turned.jpg", exif=exif, quality=95)
    (tmp_path / "pictures" / "broken.png").write_bytes(b"nonsense")
    return tmp_path / "pictures"


def test_a_folder_of_pictures(capsys, pictures, tmp_path):
    assert run("cluster", "pictures", "-k", 2) == 0
    out = capsys.readouterr().out
    assert "37 pictures of 12 x 10\n" in out
    assert "1 file not readable, left out: broken.png (not a picture)" in out
    rows = {row["name"]: row for row in table(tmp_path / "tubal-pictures" / "labels.csv")}
    assert len(rows) == 37
    kinds = {name: name.split("/")[0].rstrip("012") for name in rows}
    for kind in ("apples", "pears"):
        labels = {rows[name]["label"] for name in rows if kinds[name] == kind}
        assert len(labels - {"-1"}) == 1
    assert rows["turned.jpg"]["label"] == rows["apples0/00.png"]["label"] != "-1"
    record = json.loads((tmp_path / "tubal-pictures" / "run.json").read_text(encoding="utf-8"))
    assert record["input"]["skipped"] == [{"file": "broken.png", "reason": "not a picture"}]


def test_predict_resizes_pictures_as_the_model_needs_them(capsys, pictures, tmp_path):
    image = pytest.importorskip("PIL.Image")
    assert run("cluster", "pictures", "-k", 2) == 0
    rows = table("tubal-pictures/labels.csv")
    usual = {
        kind: Counter(row["label"] for row in rows if row["name"].startswith(kind)).most_common(1)
        for kind in ("apples", "pears")
    }
    (tmp_path / "more").mkdir()
    for kind in ("apples", "pears"):
        large = image.fromarray(picture(kind, 77)).resize((30, 36), image.Resampling.NEAREST)
        large.convert("RGB").save(tmp_path / "more" / f"{kind}.png")
    capsys.readouterr()
    assert run("predict", "tubal-pictures", "more") == 0
    out, err = capsys.readouterr()
    found = {row["name"]: row["label"] for row in csv.DictReader(out.splitlines())}
    assert found["apples.png"] == usual["apples"][0][0]
    assert found["pears.png"] == usual["pears"][0][0]
    assert err.startswith("2 pictures of 12 x 10\n")


# ---- predict, outliers, complete -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npz", "joblib"])
def test_predict(capsys, tmp_path, kind):
    trust = ["--trust"] if kind == "joblib" else []
    np.save("old.npy", DATA.X[::2])
    np.save("new.npy", DATA.X[1::2])
    assert run("cluster", "old.npy", "-k", 3, "--out", "m", "--model-format", kind) == 0
    est = tubal.ORTLRR(3, random_state=0).fit(DATA.X[::2])
    capsys.readouterr()
    assert run("predict", "m", "new.npy", *trust) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    np.testing.assert_array_equal(column(rows, "label", int), est.predict(DATA.X[1::2]))
    np.testing.assert_allclose(column(rows, "margin"), est.margins(DATA.X[1::2]), rtol=1e-8)
    scores = -est.score_samples(DATA.X[1::2])
    np.testing.assert_allclose(column(rows, "outlier_score"), scores, rtol=1e-8)
    np.testing.assert_array_equal(column(rows, "outlier", int) == 1, est.predict(DATA.X[1::2]) < 0)
    assert run("predict", f"m/model.{kind}", "new.npy", "--out", "new.csv", *trust) == 0
    assert table("new.csv") == rows
    refused(capsys, "--force replaces it", "predict", "m", "new.npy", "--out", "new.csv", *trust)
    assert run("predict", "m", "new.npy", "--out", "new.csv", "--force", *trust) == 0


def test_predict_takes_rows_and_a_single_sample(capsys):
    np.savetxt("rows.csv", DATA.X.reshape(len(DATA.X), -1), delimiter=",")
    np.savetxt("one.csv", DATA.X[:1].reshape(1, -1), delimiter=",")
    assert run("cluster", "rows.csv", "-k", 3, "--shape", "20x6") == 0
    capsys.readouterr()
    assert run("predict", "tubal-rows", "one.csv") == 0
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert row["label"] == table("tubal-rows/labels.csv")[0]["label"]


def test_pictures_are_shown_as_such(monkeypatch, pictures):
    shown = []
    monkeypatch.setattr(tubal.ORTLRR, "report", lambda self, path, **how: shown.append(how))
    assert run("cluster", "pictures", "-k", 2) == 0
    assert shown[0]["images"].shape == (37, 12, 10)


@pytest.mark.parametrize("shape", [(120,), (5, 4, 3, 2)])
def test_samples_that_are_no_pictures(shape):
    """Rows of tables and samples of many axes have a report as well."""
    np.save("other.npy", DATA.X.reshape(len(DATA.X), *shape))
    assert run("cluster", "other.npy", "-k", 3) == 0
    assert len(table("tubal-other/labels.csv")) == len(DATA.X)
    assert Path("tubal-other/report.html").stat().st_size > 10_000


def test_predict_compares_versions(capsys, monkeypatch):
    assert run("cluster", "toys.npz", "-k", 3) == 0
    monkeypatch.setattr(outputs, "__version__", "99.0")
    capsys.readouterr()
    assert run("predict", "tubal-toys", "toys.npz") == 0
    assert (
        f"warning: the model was made with tubal {tubal.__version__}, this is 99.0"
        in capsys.readouterr().err
    )


def test_predict_refuses(capsys, tmp_path):
    assert run("cluster", "toys.npz", "-k", 3) == 0
    np.save("other.npy", np.ones((4, 6, 20)))
    joblib.dump({"a": 1}, "dict.joblib")
    (tmp_path / "broken.joblib").write_bytes(b"nonsense")
    (tmp_path / "broken.npz").write_bytes(b"nonsense")
    (tmp_path / "empty").mkdir()
    refused(capsys, "does not exist", "predict", "nothing", "toys.npz")
    refused(capsys, "holds no model.npz or model.joblib", "predict", "empty", "toys.npz")
    refused(capsys, "holds a dict, not a model", "predict", "dict.joblib", "toys.npz", "--trust")
    refused(capsys, "is no model that this", "predict", "broken.joblib", "toys.npz", "--trust")
    refused(capsys, "the model needs 20 x 6", "predict", "tubal-toys", "other.npy")
    refused(capsys, "is no model that this", "predict", "broken.npz", "toys.npz")
    refused(capsys, "give --trust", "predict", "dict.joblib", "toys.npz")


@pytest.mark.parametrize("name", ["m.npz", "m.joblib", "m.pkl", "m.skops", "m.npy", "m", "m.zip"])
def test_no_pickle_is_loaded_under_any_name(capsys, tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Touches(tmp_path / "touched")))
    refused(capsys, "", "predict", name, "toys.npz")
    assert not (tmp_path / "touched").exists()


def test_a_model_without_code_is_preferred(tmp_path):
    assert run("cluster", "toys.npz", "-k", 3, "--out", "m") == 0
    (tmp_path / "m" / "model.joblib").write_bytes(pickle.dumps(Touches(tmp_path / "touched")))
    assert run("predict", "m", "toys.npz", "--trust") == 0
    assert not (tmp_path / "touched").exists()


class Touches:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_outliers(capsys, tmp_path):
    assert run("outliers", "toys.npz", "--contamination", "0.15") == 0
    est = tubal.TensorOutlierDetector(contamination=0.15).fit(DATA.X)
    rows = table(tmp_path / "tubal-toys-outliers" / "outliers.csv")
    assert list(rows[0]) == ["name", "outlier_score", "outlier"]
    np.testing.assert_array_equal(column(rows, "outlier", int) == 1, est.outliers_)
    assert metrics.outlier_auc(DATA.outliers, column(rows, "outlier_score")) > 0.95
    out = capsys.readouterr().out
    assert f"{est.outliers_.sum()} outliers among {len(DATA.X)} samples\n" in out
    assert run("predict", "tubal-toys-outliers", "toys.npz") == 0
    predicted = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert predicted == rows


def test_complete(capsys, tmp_path):
    assert run("complete", "holes.npy", "--tol", "1e-6") == 0
    with np.load(tmp_path / "tubal-holes-filled" / "filled.npz") as filled:
        X, observed = filled["X"], filled["observed"]
    np.testing.assert_array_equal(observed, ~np.isnan(HOLES.X))
    np.testing.assert_array_equal(X[observed], HOLES.X[observed])
    wanted = tubal.TensorCompleter(tol=1e-6).fit_transform(HOLES.X)
    np.testing.assert_array_equal(X, wanted)
    missing = int((~observed).sum())
    assert f"{missing} entries filled\n" in capsys.readouterr().out
    record = json.loads((tmp_path / "tubal-holes-filled" / "run.json").read_text(encoding="utf-8"))
    assert record["results"] == {"filled": missing}


def test_a_mask_makes_holes(capsys):
    seen = ~np.isnan(HOLES.X)
    np.save("full.npy", np.where(seen, HOLES.X, 0))
    np.save("seen.npy", seen)
    refused(capsys, "nothing is missing in full.npy", "complete", "full.npy")
    assert run("complete", "full.npy", "--mask", "seen.npy", "--out", "a") == 0
    assert run("complete", "holes.npy", "--out", "b") == 0
    with np.load("a/filled.npz") as a, np.load("b/filled.npz") as b:
        np.testing.assert_array_equal(a["X"], b["X"])


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        ("nothing.npz does not exist", ["nothing.npz"]),
        ("a positive whole number is needed, got '0'", ["toys.npz", "-k", "0"]),
        ("-k 400 is more than there are samples", ["toys.npz", "-k", "400"]),
        ("--method must be auto or one of R-PCA", ["toys.npz", "--method", "PCA"]),
        ("--transform means nothing to --method LRR", ["toys.npz", "--method=LRR"]),
        ("--lam means nothing to --method SSC", ["toys.npz", "--method=SSC", "--lam", "1"]),
        ("TNN+SSC fills them first", ["holes.npy", "--method", "SSC"]),
        ("TNN+LSR fills them first", ["holes.npy", "--method", "LSR"]),
        ("invalid choice: 'fft'", ["toys.npz", "--transform", "fft"]),
        ("a number above 0, auto, or one of", ["toys.npz", "--lam", "-1"]),
        ("a number above 0, auto, or one of", ["toys.npz", "--lam", "paper:x"]),
        ("auto or a number from 0 to 0.5", ["toys.npz", "--contamination", "0.7"]),
        ("a whole number from 0 to 2**32 - 1", ["toys.npz", "--seed", "-1"]),
        ("such as 28x28, got 'big'", ["toys.npz", "--shape", "big"]),
        ("height x width is needed", ["toys.npz", "--size", "4x4x4"]),
        ("a number above 0 is needed, got 'nan'", ["toys.npz", "--tol", "nan"]),
        ("--engine must be one of threads, dask, torch", ["toys.npz", "--engine", "abacus"]),
        ("--scheduler is for --engine dask", ["toys.npz", "--scheduler", "tcp://a:1"]),
        ("holds no results of tubal", ["toys.npz", "--out", "."]),
        ("holds no results of tubal", ["toys.npz", "--out", "toys.npz", "--force"]),
        ("--key c is not in toys.npz", ["toys.npz", "--key", "c"]),
    ],
)
def test_bad_input_gives_one_line_and_nothing_is_written(capsys, words, argv):
    if argv[-1] == "--method=LRR":
        argv = [*argv, "--transform", "dct"]
    refused(capsys, words, "cluster", *argv)


def test_rules_for_lam():
    assert repr(_lam("paper:2")) == "Lambda.paper(2.0)"
    assert repr(_lam("rank:3")) == "Lambda.effective_rank(3.0)"
    assert (_lam("auto"), _lam("0.5")) == ("auto", 0.5)


@pytest.mark.parametrize("command", ["cluster", "predict", "outliers", "complete", "demo", "info"])
def test_every_command_helps_with_an_example(capsys, command):
    with pytest.raises(SystemExit) as stop:
        run(command, "--help")
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"example:\n  tubal {command}" in out
    assert max(map(len, out.splitlines())) <= 105


# ---- the folder is there whole or not at all -----------------------------------------------------


def test_an_existing_folder_is_not_overwritten(capsys, tmp_path):
    assert run("cluster", "toys.npz", "-k", 3) == 0
    before = (tmp_path / "tubal-toys" / "labels.csv").read_bytes()
    refused(capsys, "--force replaces them", "cluster", "toys.npz", "-k", 2)
    assert (tmp_path / "tubal-toys" / "labels.csv").read_bytes() == before
    assert run("cluster", "toys.npz", "-k", 2, "--force") == 0
    assert len({row["label"] for row in table("tubal-toys/labels.csv")} - {"-1"}) == 2


def test_a_failure_leaves_what_was_there(capsys, monkeypatch, tmp_path):
    def fail(*args):
        raise OSError("the disk is full")

    assert run("cluster", "toys.npz", "-k", 3) == 0
    before = sorted(os.listdir())
    labels = (tmp_path / "tubal-toys" / "labels.csv").read_bytes()
    monkeypatch.setattr(outputs, "write_model", fail)
    refused(capsys, "the disk is full", "cluster", "toys.npz", "-k", 2, "--force")
    refused(capsys, "the disk is full", "cluster", "toys.npz", "--out", "new/folder")
    assert sorted(os.listdir()) == before
    assert (tmp_path / "tubal-toys" / "labels.csv").read_bytes() == labels


def test_a_folder_of_somebody_else_stays(capsys, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").touch()
    refused(capsys, "holds no results", "cluster", "toys.npz", "--out", "thesis", "--force")
    assert (tmp_path / "thesis" / "chapter1.tex").exists()
    (tmp_path / "empty").mkdir()
    assert run("cluster", "toys.npz", "-k", 3, "--out", "empty") == 0


# ---- Ctrl-C and --resume -------------------------------------------------------------------------


class Interrupting(resume.Keeper):
    """Presses Ctrl-C at an iteration."""

    at = 12

    def iteration(self, n_iter, snapshot):
        if n_iter == self.at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        super().iteration(n_iter, snapshot)


posix = pytest.mark.skipif(os.name != "posix", reason="signals")
ARGV = ("cluster", "toys.npz", "-k", 3, "--tol", "1e-8")


@pytest.fixture
def interrupted(monkeypatch, capsys):
    """A fit that Ctrl-C ended after 12 iterations."""
    monkeypatch.setattr(session, "Keeper", Interrupting)
    handler = signal.getsignal(signal.SIGINT)
    assert run(*ARGV) == 130
    assert signal.getsignal(signal.SIGINT) is handler
    monkeypatch.undo()
    return capsys.readouterr().err


@posix
def test_ctrl_c_saves_and_resume_goes_on(monkeypatch, tmp_path, interrupted, capsys):
    monkeypatch.chdir(tmp_path)
    assert interrupted == (
        "stopping after this iteration; Ctrl-C again stops at once\n"
        "tubal: interrupted; iteration 12 is saved in tubal-toys.partial, and the same command "
        "with --resume goes on from there\n"
    )
    assert sorted(os.listdir()) == ["holes.npy", "toys.npz", "tubal-toys.partial"]
    refused(capsys, "--resume goes on with it, --force starts anew", *ARGV)
    assert run(*ARGV, "--resume") == 0
    record = json.loads((tmp_path / "tubal-toys" / "run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] == 12
    assert record["iterations"] > 12
    assert record["certificate"]["gap"] <= 1e-8
    est = tubal.ORTLRR(3, random_state=0, tol=1e-8).fit(DATA.X)
    rows = table("tubal-toys/labels.csv")
    np.testing.assert_array_equal(column(rows, "label", int), est.labels_)
    np.testing.assert_allclose(column(rows, "outlier_score"), est.outlier_scores_, rtol=1e-2)
    assert sorted(os.listdir()) == ["holes.npy", "toys.npz", "tubal-toys"]


def spoiled(monkeypatch, folder, change):
    """Make an interrupted fit one that cannot go on; return options of the next run."""
    partial = folder / "tubal-toys.partial"
    if change == "data":
        np.savez("toys.npz", X=2 * DATA.X)
    elif change == "version":
        monkeypatch.setattr(resume, "__version__", "99.0")
    elif change == "no JSON":
        (partial / "fit.json").write_text("{", encoding="utf-8")
    elif change == "other JSON":
        (partial / "fit.json").write_text("[1]", encoding="utf-8")
    elif change == "state":
        (state,) = partial.glob("solve-*.npz")
        state.write_bytes(state.read_bytes()[:-200])
    return ["--contamination", "0.1"] if change == "parameters" else []


@posix
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("data", "since tubal-toys.partial is of other data"),
        ("parameters", "since tubal-toys.partial is of another set of parameters"),
        ("version", "since tubal-toys.partial is of another version of tubal"),
        ("no JSON", "since tubal-toys.partial/fit.json is damaged"),
        ("other JSON", "since tubal-toys.partial/fit.json is damaged"),
        ("state", "is damaged; --resume --force starts anew"),
    ],
)
def test_resume_refuses_a_foreign_state_and_force_starts_anew(
    monkeypatch, tmp_path, interrupted, capsys, change, words
):
    monkeypatch.chdir(tmp_path)
    options = spoiled(monkeypatch, tmp_path, change)
    refused(capsys, words, *ARGV, *options, "--resume")
    assert (tmp_path / "tubal-toys.partial").exists()
    assert run(*ARGV, *options, "--resume", "--force") == 0
    assert words.partition(";")[0] in capsys.readouterr().err
    record = json.loads((tmp_path / "tubal-toys" / "run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] is None
    assert not (tmp_path / "tubal-toys.partial").exists()


@posix
def test_resume_without_a_state_starts_anew(monkeypatch, tmp_path, interrupted, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.rmtree("tubal-toys.partial")
    assert run(*ARGV, "--resume") == 0
    assert "starting anew, since there is no tubal-toys.partial" in capsys.readouterr().err


@posix
def test_a_state_that_cannot_be_saved_does_not_end_the_fit(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(resume, "EVERY", 0.0)
    monkeypatch.setattr(resume, "SHARE", 1e9)

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(resume, "replacing", full)
    assert run(*ARGV) == 0
    assert capsys.readouterr().err.count("cannot be saved, so it goes on without") == 1
    assert not [name for name in os.listdir() if name.endswith((".tmp", ".partial", ".lock"))]


@posix
def test_the_number_of_threads_may_change(monkeypatch, tmp_path, interrupted):
    monkeypatch.chdir(tmp_path)
    assert run(*ARGV, "--jobs", 1, "--resume") == 0
    record = json.loads((tmp_path / "tubal-toys" / "run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] == 12


@posix
def test_ctrl_c_outside_of_a_solve_saves_nothing(monkeypatch, capsys):
    def load(*args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    monkeypatch.setattr(session.files, "load", load)
    before = sorted(os.listdir())
    assert run(*ARGV) == 130
    assert capsys.readouterr().err == "tubal: interrupted; nothing was saved\n"
    assert sorted(os.listdir()) == before


def test_states_are_kept_now_and_then(monkeypatch, tmp_path):
    monkeypatch.setattr(resume, "EVERY", 0.0)
    monkeypatch.setattr(resume, "SHARE", 1e9)
    saved = []

    class Counting(resume.Partial):
        def save(self, number, snapshot):
            saved.append((number, snapshot.n_iter))
            super().save(number, snapshot)

    partial = Counting(tmp_path / "p.partial", {"data": "x"})
    keeper = resume.Keeper(partial, progress.Display(), resume=False)
    est = tubal.ORTLRR(3, completion="tnn", random_state=0)
    with watch(keeper):
        est.fit(HOLES.X)
    assert {number for number, _ in saved} == {0, 1}
    assert partial.why_not() is None
    for number in (0, 1):
        last = max(n for k, n in saved if k == number)
        assert partial.load(number).n_iter == last
    assert partial.load(2) is None
    (tmp_path / "p.partial" / "solve-0.npz").write_bytes(b"PK nonsense")
    assert partial.load(0) is None


@pytest.mark.slow
def test_the_process_ends_with_the_exit_code(tmp_path):
    code = "import sys; from tubal.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, "cluster", "nothing"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 2
    assert (done.stdout, done.stderr) == ("", "tubal: error: nothing does not exist\n")


@posix
@pytest.mark.slow
def test_a_real_ctrl_c(tmp_path):
    data = make_tensor_subspaces(60, 20, 4, 4, 60, outliers=0.1, missing=0.3, random_state=0)
    np.save("large.npy", data.X)
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from tubal.cli import main, resume; resume.EVERY = 0.1; sys.exit(main())"
    )
    argv = [sys.executable, "-c", code, "cluster", "large.npy", "-k", "4", "--tol", "1e-10"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not (tmp_path / "tubal-large.partial" / "solve-0.npz").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "is saved in tubal-large.partial" in err
    assert not (tmp_path / "tubal-large").exists()
    done = subprocess.run(
        [*argv, "--resume"], capture_output=True, text=True, timeout=300, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "tubal-large" / "run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] > 0
    assert record["certificate"]["gap"] <= 1e-10


# ---- progress ------------------------------------------------------------------------------------


def test_the_time_left_is_that_of_a_geometric_fall():
    points = [(float(i), 10.0**-i) for i in range(4)]
    assert progress.seconds_left(points, 1e-5) == pytest.approx(2)
    assert progress.seconds_left(points[:1], 1e-5) is None
    assert progress.seconds_left([(0.0, 1.0), (1.0, 2.0)], 1e-5) is None
    assert progress.seconds_left(points, 1.0) == 0
    assert progress.share_done(points, 1e-6) == pytest.approx(0.5)
    assert progress.share_done([(0.0, 1e-9)], 1e-6) == 1


class Recording(progress.Display):
    def __init__(self):
        self.lines = []

    def detail(self, text, share=None):
        self.lines.append((text, share))


def test_progress_tells_iteration_gap_and_time_left():
    shown = Recording()
    solving = progress.SolveProgress(shown)
    solving.begin("certified", 1e-4)
    solving.iteration(1)
    solving.check(Check(10, 1.0, 0.9, (0.0,), (1.0, 1.0), 1.0))
    solving.check(Check(20, 1.0, 0.99, (0.0,), (1.0, 1.0), 2.0))
    solving.iteration(21)
    assert shown.lines[0] == ("iteration 1", None)
    text, share = shown.lines[1]
    assert text == "iteration 21, gap 1.0e-02 (until 1e-04), about 2.0 s left"
    assert share == pytest.approx(1 / 3)


def test_a_terminal_shows_a_bar(monkeypatch):
    pytest.importorskip("rich")
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.display() as shown:
        assert isinstance(shown, progress.RichDisplay)
        shown.stage("read")
        shown.share(3, 10)
        shown.stage("represent")
        shown.detail("iteration 7, gap 1.0e-01 (until 1e-04)", 0.25)
        shown.row("a row that stays", 1, 2, 90.0)
        shown.bars.refresh()
    text = terminal.getvalue()
    for words in ("solving", "1 of 2, 1 min 30 s left", "a row that stays"):
        assert words in text


def test_no_terminal_no_bar(capsys):
    assert run("cluster", "toys.npz", "-k", 3) == 0
    assert capsys.readouterr().err == ""
