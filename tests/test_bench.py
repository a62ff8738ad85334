"""The tables of the paper: declared, run into rows, and read back."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import naive
import tubal
from tubal import cli, datasets
from tubal.bench import (
    EXPERIMENTS,
    Drawn,
    Experiment,
    Setting,
    Task,
    published,
    read_rows,
    run,
    runner,
    shared,
    summarise,
    tasks,
    to_csv,
    to_markdown,
)
from tubal.bench.experiments import (
    CERTIFIED,
    CERTIFIED_GAP,
    cluster,
    draw_images,
    draw_synthetic,
    estimator,
    recover,
    truncated,
    without_holes,
)
from tubal.cli.show import duration
from tubal.datasets import make_tensor_subspaces
from tubal.estimators import TensorCompleter, find
from tubal.problem import Lambda

# ---- experiments --------------------------------------------------------------------------------


def small_draw(outliers: float = 0.2) -> Drawn:
    data = datasets.make_tensor_subspaces(8, 5, 2, 1, 10, outliers=outliers, random_state=0)
    return Drawn(data.X, data.labels, data.clean, "dft")


@pytest.fixture(scope="module")
def metrics_of():
    """Return what the two ways to measure produce, on data with and without outliers."""
    setting = Setting("synthetic", "small", None, {"lam": Lambda.paper(4)})
    keep = Setting("synthetic", "small", None, {"outliers": None})
    method = "OR-TLRR-DFT"
    return {
        (recover, True): set(recover(method, setting, small_draw(), 0, 1)[1]),
        (cluster, True): set(
            cluster(method, Setting("synthetic", "small", None), small_draw(), 0, 1)[1]
        ),
        (cluster, False): set(cluster(method, keep, small_draw(0.0), 0, 1)[1]),
    }


def has_outliers(setting: Setting) -> bool:
    options = setting.draw.keywords
    return bool(options.get("outliers") or options.get("rho"))


def test_every_published_value_can_be_measured(metrics_of):
    assert len(published()) == 912
    for table, dataset, name, method, metric in published():
        experiment = EXPERIMENTS[table]
        (setting,) = (s for s in experiment.settings if (s.dataset, s.name) == (dataset, name))
        assert method in experiment.methods
        assert metric in metrics_of[experiment.measure, has_outliers(setting)]


def test_every_cell_has_a_published_value():
    keys = {key[:4] for key in published()}
    for experiment in EXPERIMENTS.values():
        cells = {
            (experiment.name, setting.dataset, setting.name, method)
            for setting in experiment.settings
            for method in experiment.methods
        }
        # No numbers are published for synthetic data with missing entries, and the other readings
        # are ours.
        unpublished = ("synthetic-missing", "readings", "readings-missing")
        expected = set() if experiment.name in unpublished else cells
        assert cells & keys == expected


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_an_experiment_is_well_formed(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.draws >= 1
    keys = [(setting.dataset, setting.name) for setting in experiment.settings]
    assert len(set(keys)) == len(keys)
    names = experiment.all_methods()
    assert len(set(names)) == len(names)
    assert names[: len(experiment.methods)] == experiment.methods
    assert not {"LSR", "EnSC"} & set(experiment.methods)  # not in the tables of the paper
    for method in experiment.methods:
        assert find(method).name == method
        assert (method + CERTIFIED in names) == (method not in ("SSC", "SSC-OMP"))


def test_the_certified_row_solves_the_same_program():
    X = small_draw().X
    theirs = estimator("OR-TLRR-DFT", 2, {}, 0, 1).fit(X)
    ours = estimator("OR-TLRR-DFT" + CERTIFIED, 2, {}, 0, 1).fit(X)
    assert ours.certificate_.gap <= CERTIFIED_GAP
    changed = {"solver", "tol"}
    for key, value in theirs.get_params(deep=False).items():
        assert key in changed or ours.get_params(deep=False)[key] == value


# ---- draws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["dft", "dct", "rom"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_synthetic_draw(transform, missing):
    def draw(seed):
        return draw_synthetic(seed, n1=20, rho=0.2, transform=transform, missing=missing)

    one, same, other = draw(1), draw(1), draw(2)
    assert one.X.tobytes() == same.X.tobytes()
    assert one.labels.tobytes() == same.labels.tobytes()
    assert one.X.tobytes() != other.X.tobytes()
    assert one.X.shape == (100, 20, 100)
    normal = one.labels >= 0
    np.testing.assert_array_equal(one.labels[normal], np.repeat(np.arange(5), 20)[normal])
    assert np.mean(~normal) == pytest.approx(0.2, abs=0.12)  # each sample is one by chance
    assert np.isnan(one.X).mean() == pytest.approx(missing, abs=0.005)
    assert (one.clean is None) == bool(missing)


def test_the_random_transform_belongs_to_the_draw():
    plans = [draw_synthetic(seed, n1=10, rho=0.2, transform="rom").transform for seed in (3, 4)]
    first, second = (repr(plan) for plan in plans)
    assert first != second


@pytest.mark.parametrize(
    "options",
    [
        {"name": "orl", "outliers": 100, "missing": 0.1},
        {"name": "umist", "noisy": 0.2, "variance": 0.1},
        {"name": "usps", "per_class": 10, "shift": 3, "noisy": 0.5, "variance": 0.2},
    ],
)
def test_the_seed_decides_about_the_pictures(data_dir, options):
    one, same, other = (draw_images(seed, **options) for seed in (5, 5, 6))
    assert one.X.tobytes() == same.X.tobytes()
    assert one.labels.tobytes() == same.labels.tobytes()
    assert one.X.tobytes() != other.X.tobytes()


@pytest.mark.parametrize(("name", "count"), [("orl", 100), ("coil20", 200)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_outliers_and_holes(data_dir, name, count, missing):
    data, junk = datasets.load(name), datasets.load("mirflickr")
    drawn = draw_images(0, name=name, outliers=count, missing=missing)
    n_samples = len(data.images)
    assert drawn.X.shape == (n_samples + count, 32, 32)
    np.testing.assert_array_equal(drawn.labels[:n_samples], data.labels)
    assert (drawn.labels[n_samples:] == -1).all()
    holes = np.isnan(drawn.X)
    assert holes.mean() == pytest.approx(missing, abs=5 * np.sqrt(0.25 / holes.size))
    assert (holes.mean(axis=(1, 2)) < 0.3).all()
    values = drawn.X[~holes]
    assert values.min() >= 0
    assert values.max() <= 1
    np.testing.assert_array_equal(values, np.where(holes, np.nan, complete(drawn, data))[~holes])
    if not missing:
        known = {picture.tobytes() for picture in junk.images / 255.0}
        added = {picture.tobytes() for picture in drawn.X[n_samples:]}
        assert len(added) == count
        assert added <= known


def complete(drawn: Drawn, data: datasets.ImageSet) -> np.ndarray:
    """Return the pictures of the set, followed by what stands in for the outliers."""
    n_samples = len(data.images)
    return np.concatenate([data.images / 255.0, drawn.X[n_samples:]])


@pytest.mark.parametrize("variance", [0.1, 0.4])
def test_noise_has_its_share_of_the_energy(data_dir, variance):
    clean = datasets.load("umist").images / 255.0
    drawn = draw_images(0, name="umist", noisy=0.2, variance=variance)
    added = np.sum((drawn.X - clean) ** 2, axis=(1, 2))
    noisy = added > 0
    assert noisy.sum() == round(0.2 * len(clean))
    share = added[noisy] / np.sum(clean[noisy] ** 2, axis=(1, 2))
    # A picture has 2576 pixels: the share of one is known up to 3 %, the mean of 115 up to 0.3 %.
    assert share.mean() == pytest.approx(variance, rel=0.015)
    np.testing.assert_allclose(share, variance, rtol=0.2)


def test_pictures_that_were_not_reconstructed(data_dir):
    data = datasets.load("umist")
    drawn = draw_images(0, name="umist", exact=True)
    np.testing.assert_array_equal(drawn.X, data.images[data.exact] / 255.0)
    np.testing.assert_array_equal(drawn.labels, data.labels[data.exact])
    assert len(drawn.X) == 412


@pytest.mark.parametrize("noisy", [0.0, 0.3])
def test_digits_move_sideways(data_dir, noisy):
    options = {"name": "usps", "per_class": 100}
    still = draw_images(0, **options)
    moved = draw_images(0, **options, shift=3, noisy=noisy, variance=0.2)
    assert Counter(still.labels.tolist()) == dict.fromkeys(range(10), 100)
    np.testing.assert_array_equal(moved.labels, still.labels)
    right = np.zeros_like(still.X)
    right[:, :, 3:] = still.X[:, :, :-3]
    left = np.zeros_like(still.X)
    left[:, :, :-3] = still.X[:, :, 3:]
    went_right = (moved.X == right).all(axis=(1, 2))
    went_left = (moved.X == left).all(axis=(1, 2))
    assert (went_right | went_left).sum() == round((1 - noisy) * 1000)
    assert min(went_right.sum(), went_left.sum()) > 250
    if not noisy:
        assert moved.X.min() >= 0
        assert moved.X.max() <= 1


def test_the_settings_draw_what_their_names_say(data_dir):
    for setting in EXPERIMENTS["orl-missing"].settings + EXPERIMENTS["usps-noisy"].settings:
        parts = dict(part.split("=") for part in setting.name.split())
        drawn = setting.draw(0)
        assert (drawn.labels == -1).sum() == int(parts.get("outliers", 0))
        assert np.isnan(drawn.X).mean() == pytest.approx(float(parts.get("missing", 0)), abs=0.005)
        if "sampling_rate" in parts:
            assert len(drawn.X) == 1000
            outside = (drawn.X < 0).any(axis=(1, 2))  # noise in the margin, where zeros were
            assert outside.sum() == 1000 * float(parts["sampling_rate"])


# ---- runner -------------------------------------------------------------------------------------

MEASURED: list[Task] = []
SETTINGS = ("a=1", "a=2", "a=3")
METHODS = ("TLRR-DFT", "SSC")


def draw_nothing(seed: int) -> Drawn:
    return Drawn(np.zeros((2, 2, 2)), np.zeros(2, dtype=int))


def measure_nothing(method, setting, drawn, seed, n_jobs):
    MEASURED.append(Task("fake", setting.dataset, setting.name, seed, method))
    return shared.Figures(2.0, 0.25, 7), {"ACC": 0.5 + seed / 10, "NMI": len(method) / 10}


def install(monkeypatch, measure=measure_nothing):
    settings = tuple(Setting("toys", name, draw_nothing) for name in SETTINGS)
    experiment = Experiment("fake", settings, METHODS, measure, 1)
    monkeypatch.setitem(EXPERIMENTS, "fake", experiment)


@pytest.fixture
def fake(monkeypatch):
    """An experiment of 3 settings and 3 methods (one of them certified) that costs nothing."""
    MEASURED.clear()
    install(monkeypatch)
    return tasks("fake", 1)


def rows_of(folder, name="fake"):
    text = (folder / f"{name}.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def assert_each_once(folder, wanted):
    assert sorted(Task.of(row) for row in rows_of(folder)) == sorted(wanted)


def test_tasks_go_draw_by_draw(fake):
    found = tasks("fake", 2)
    assert len(found) == len(set(found)) == 2 * 3 * 3
    assert [task.draw for task in found] == [0] * 9 + [1] * 9
    assert found[0] == Task("fake", "toys", "a=1", 0, "TLRR-DFT")
    assert [task.method for task in found[:3]] == ["TLRR-DFT", "SSC", "TLRR-DFT" + CERTIFIED]


def test_a_run_writes_each_row_once(fake, tmp_path):
    out = tmp_path / "new" / "folder"
    seen = []
    assert run(["fake"], out, on_row=lambda *args: seen.append(args)) == 9
    assert_each_once(out, fake)
    assert [(done, total) for _, done, total in seen] == [(i, 9) for i in range(1, 10)]
    assert [row for row, _, _ in seen] == rows_of(out)
    before = (out / "fake.jsonl").read_bytes()
    MEASURED.clear()
    assert run(["fake"], out) == 0
    assert (out / "fake.jsonl").read_bytes() == before
    assert MEASURED == []


def test_more_draws_add_to_those_that_are_there(fake, tmp_path):
    run(["fake"], tmp_path, methods=["SSC"])
    seen = []
    run(["fake"], tmp_path, draws=2, on_row=lambda row, done, total: seen.append((done, total)))
    assert seen == [(i, 18) for i in range(4, 19)]
    assert_each_once(tmp_path, tasks("fake", 2))
    assert {(row["draw"], row["seed"]) for row in rows_of(tmp_path)} == {(0, 0), (1, 1)}


def test_what_is_named_twice_is_measured_once(fake, tmp_path):
    assert run(["fake", "fake"], tmp_path, methods=["SSC", "SSC"]) == 3
    assert_each_once(tmp_path, tasks("fake", 1, ["SSC"]))


def test_a_row_tells_all(fake, tmp_path):
    run(["fake"], tmp_path, draws=2)
    for row in rows_of(tmp_path):
        assert row["experiment"] == "fake"
        assert row["dataset"] == "toys"
        assert row["setting"] in SETTINGS
        assert row["seed"] == row["draw"]
        assert row["error"] is None
        assert row["metrics"] == {
            "ACC": 0.5 + row["seed"] / 10,
            "NMI": len(row["method"]) / 10,
        }
        assert row["seconds"] >= 0
        assert row["peak_memory"] >= 0
        assert row["objective"] == 2.0
        assert row["gap"] == 0.25
        assert row["iterations"] == 7
        assert row["warnings"] == []
        assert row["versions"]["tubal"] == tubal.__version__
        assert row["versions"]["numpy"] == np.__version__
        assert {"python", "scipy", "scikit-learn"} <= set(row["versions"])


def test_rows_of_real_estimators(monkeypatch, tmp_path):
    settings = (Setting("toys", "a=1", lambda seed: small_draw()),)
    methods = ("OR-TLRR-DFT", "SSC", "SSC-OMP")
    monkeypatch.setitem(EXPERIMENTS, "fake", Experiment("fake", settings, methods, cluster, 1))
    run(["fake"], tmp_path)
    rows = {row["method"]: row for row in rows_of(tmp_path)}
    theirs, ours = rows["OR-TLRR-DFT"], rows["OR-TLRR-DFT" + CERTIFIED]
    assert ours["gap"] <= CERTIFIED_GAP
    assert ours["objective"] * (1 - ours["gap"]) <= theirs["objective"] * (1 + 1e-12)
    assert rows["SSC"]["gap"] is not None
    assert rows["SSC"]["objective"] is rows["SSC-OMP"]["gap"] is None
    assert all(row["iterations"] >= 1 for row in rows.values())
    assert all(row["error"] is None for row in rows.values())
    assert all(0 <= row["metrics"]["ACC"] <= 1 for row in rows.values())


def test_an_error_is_part_of_its_row(monkeypatch, fake, tmp_path):
    def measure(method, setting, drawn, seed, n_jobs):
        if method == "SSC":
            raise ValueError("no such thing")
        return measure_nothing(method, setting, drawn, seed, n_jobs)

    install(monkeypatch, measure)
    assert run(["fake"], tmp_path) == 9
    assert_each_once(tmp_path, fake)
    for row in rows_of(tmp_path):
        if row["method"] == "SSC":
            assert row["error"] == "ValueError: no such thing"
            assert row["metrics"] == {}
            assert row["objective"] is row["gap"] is row["iterations"] is None
            assert row["seconds"] >= 0
        else:
            assert row["error"] is None


def test_a_bug_ends_the_run_and_keeps_the_rows(monkeypatch, fake, tmp_path):
    install(monkeypatch, stop_at(4, TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        run(["fake"], tmp_path)
    assert_each_once(tmp_path, fake[:3])


def test_warnings_are_written_down(monkeypatch, fake, tmp_path):
    def measure(method, setting, drawn, seed, n_jobs):
        import warnings

        for text in ("late", "early", "late"):
            warnings.warn(text, RuntimeWarning, stacklevel=1)
        return None, {}

    install(monkeypatch, measure)
    run(["fake"], tmp_path, methods=["SSC"])
    assert all(row["warnings"] == ["early", "late"] for row in rows_of(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak cannot be reset")
def test_the_peak_of_memory_is_that_of_the_task(monkeypatch, fake, tmp_path):
    def measure(method, setting, drawn, seed, n_jobs):
        size = 1000 if setting.name == "a=2" else 64_000_000
        return None, {"size": float(np.ones(size, dtype=np.uint8).sum())}

    install(monkeypatch, measure)
    run(["fake"], tmp_path, methods=["SSC"])
    first, small, again = (row["peak_memory"] for row in rows_of(tmp_path))
    assert 55e6 < first < 100e6
    assert 55e6 < again < 100e6  # not hidden by the peak before it
    assert small < 20e6


def stop_at(count, error):
    """Return a way to measure that raises at its `count`-th task."""
    calls = []

    def measure(*args):
        calls.append(args)
        if len(calls) == count:
            raise error
        return measure_nothing(*args)

    return measure


def test_a_stopped_run_goes_on(monkeypatch, fake, tmp_path):
    install(monkeypatch, stop_at(3, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(["fake"], tmp_path)
    assert_each_once(tmp_path, fake[:2])
    install(monkeypatch)
    MEASURED.clear()
    assert run(["fake"], tmp_path) == 7
    assert fake[2:] == MEASURED
    assert_each_once(tmp_path, fake)


@pytest.mark.parametrize("rest", [1, 40, -1])
def test_a_torn_row_is_measured_again(fake, tmp_path, rest):
    run(["fake"], tmp_path)
    path = tmp_path / "fake.jsonl"
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:rest])
    assert len(read_rows(tmp_path)) == 8  # a table does without it
    MEASURED.clear()
    assert run(["fake"], tmp_path) == 1
    assert fake[-1:] == MEASURED
    assert_each_once(tmp_path, fake)
    assert path.read_bytes().startswith(b"".join(whole))
    assert [item.name for item in tmp_path.iterdir()] == ["fake.jsonl"]


def test_a_single_torn_row(fake, tmp_path):
    (tmp_path / "fake.jsonl").write_text('{"draw": 0, "exper', encoding="utf-8")
    assert run(["fake"], tmp_path) == 9
    assert_each_once(tmp_path, fake)


def test_methods_can_be_chosen(fake, tmp_path):
    assert run(["fake"], tmp_path, methods=["TLRR-DFT" + CERTIFIED]) == 3
    assert {row["method"] for row in rows_of(tmp_path)} == {"TLRR-DFT" + CERTIFIED}


def test_each_experiment_runs_the_methods_that_it_knows(monkeypatch, fake, tmp_path):
    settings = (Setting("toys", "a=1", draw_nothing),)
    other = Experiment("other", settings, ("LRR", "SSC"), measure_nothing, 1)
    third = Experiment("third", settings, ("R-PCA",), measure_nothing, 1)
    monkeypatch.setitem(EXPERIMENTS, "other", other)
    monkeypatch.setitem(EXPERIMENTS, "third", third)
    assert run(["fake", "other", "third"], tmp_path, methods=["SSC", "LRR"]) == 3 + 2
    assert {row["method"] for row in rows_of(tmp_path, "fake")} == {"SSC"}
    assert {row["method"] for row in rows_of(tmp_path, "other")} == {"SSC", "LRR"}
    assert not (tmp_path / "third.jsonl").exists()
    with pytest.raises(ValueError, match=r"methods of these experiments are .*; got PCA"):
        run(["fake", "other"], tmp_path, methods=["SSC", "PCA"])


def test_rows_with_errors_are_measured_again_when_asked(monkeypatch, fake, tmp_path):
    install(monkeypatch, stop_at(2, ValueError("no such thing")))
    run(["fake"], tmp_path)
    before = rows_of(tmp_path)
    assert [row["error"] for row in before].count("ValueError: no such thing") == 1
    install(monkeypatch)
    MEASURED.clear()
    assert run(["fake"], tmp_path) == 0
    assert run(["fake"], tmp_path, retry_errors=True) == 1
    assert fake[1:2] == MEASURED
    after = rows_of(tmp_path)
    assert [row["error"] for row in after] == [None] * 9
    assert [Task.of(row) for row in after] == [Task.of(row) for row in before]
    assert after[0] == before[0]
    assert run(["fake"], tmp_path, retry_errors=True) == 0


def test_a_task_that_fails_again_keeps_one_row(monkeypatch, fake, tmp_path):
    for _ in range(2):
        install(monkeypatch, stop_at(1, ValueError("never")))
        run(["fake"], tmp_path, methods=["SSC"], retry_errors=True)
    assert [row["error"] for row in rows_of(tmp_path)] == ["ValueError: never", None, None]


def test_nan_is_null_in_a_row_and_nan_in_a_table(monkeypatch, fake, tmp_path):
    row = {"experiment": "orl-coil20", "dataset": "orl", "setting": "outliers=100", "method": "LRR"}
    row |= {"draw": 0, "error": None, "metrics": {"ACC": float("nan"), "NMI": 0.5}}
    runner.append(tmp_path / "orl-coil20.jsonl", {**row, "gap": float("inf")})
    text = (tmp_path / "orl-coil20.jsonl").read_text(encoding="utf-8")
    assert '"ACC": null' in text
    assert '"gap": null' in text
    assert "NaN" not in text
    cells = {cell.metric: cell.mean for cell in summarise(read_rows(tmp_path))}
    assert np.isnan(cells["ACC"])
    assert cells["NMI"] == 0.5
    assert "gap" not in cells


def test_two_runs_into_one_folder_are_refused(monkeypatch, fake, tmp_path):
    def measure(*args):
        with pytest.raises(ValueError, match=f"process {os.getpid()} is running into"):
            run(["fake"], tmp_path)
        return measure_nothing(*args)

    install(monkeypatch, measure)
    assert run(["fake"], tmp_path, methods=["SSC"]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["fake.jsonl"]
    alive = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (tmp_path / runner.LOCK).write_text(str(alive.pid), encoding="ascii")
        with pytest.raises(ValueError, match=f"process {alive.pid} is running into"):
            run(["fake"], tmp_path)
    finally:
        alive.communicate()


@pytest.mark.skipif(os.name != "posix", reason="there the lock of a lost process stays")
@pytest.mark.parametrize("mine", [True, False])
def test_the_lock_of_a_process_that_is_gone_does_not_count(fake, tmp_path, mine):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.communicate()
    text = str(os.getpid() if mine else gone.pid)
    (tmp_path / runner.LOCK).write_text(text, encoding="ascii")
    assert run(["fake"], tmp_path) == 9
    (tmp_path / runner.LOCK).write_text("nonsense", encoding="ascii")
    assert run(["fake"], tmp_path) == 0
    assert not (tmp_path / runner.LOCK).exists()


def test_an_error_frees_the_folder(monkeypatch, fake, tmp_path):
    install(monkeypatch, stop_at(1, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(["fake"], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["bogus"], {}, "experiment must be one of synthetic-dft, .*; got 'bogus'"),
        (
            ["fake"],
            {"methods": ["SSC", "LRR", "PCA"]},
            "methods of fake are TLRR-DFT, SSC, TLRR-DFT, certified; got LRR, PCA",
        ),
        (["fake"], {"draws": 0}, "draws must be a positive integer, got 0"),
        (["fake"], {"draws": 1.5}, "draws must be a positive integer, got 1.5"),
        (["fake"], {"jobs": 0}, "jobs must be a positive integer, got 0"),
        (["fake"], {"jobs": True}, "jobs must be a positive integer, got True"),
    ],
)
def test_bad_arguments_leave_no_folder(fake, tmp_path, names, options, message):
    with pytest.raises(ValueError, match=message):
        run(names, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


class Threads(ThreadPoolExecutor):
    """Stands in for a pool of processes: what was patched here is seen there too."""

    def __init__(self, jobs, mp_context, initializer, initargs):
        super().__init__(jobs)


def test_several_jobs_write_each_row_once(monkeypatch, fake, tmp_path):
    monkeypatch.setattr(runner, "ProcessPoolExecutor", Threads)
    monkeypatch.setattr(runner, "measure", lambda task, n_jobs: {**vars(task), "threads": n_jobs})
    assert run(["fake"], tmp_path, methods=["SSC"], jobs=2) == 3
    assert run(["fake"], tmp_path, draws=2, jobs=2) == 15
    assert_each_once(tmp_path, tasks("fake", 2))
    assert {row["threads"] for row in rows_of(tmp_path)} == {1}


def test_a_process_that_is_lost_is_told(monkeypatch, fake, tmp_path):
    def measure(task, n_jobs):
        if task.setting == "a=3":
            time.sleep(0.2)
            raise BrokenProcessPool("a child was killed")
        return vars(task)

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Threads)
    monkeypatch.setattr(runner, "measure", measure)
    with pytest.raises(ChildProcessError, match="finished rows are kept, and fewer jobs need less"):
        run(["fake"], tmp_path, methods=["SSC"], jobs=2)
    assert_each_once(tmp_path, tasks("fake", 1, ["SSC"])[:2])


# New processes do not see what was patched here, but they do run the script again.
SCRIPT = """
import signal, sys, time
import numpy as np
from tubal import cli
from tubal.bench import EXPERIMENTS, Drawn, Experiment, Setting

def draw(seed):
    return Drawn(np.zeros((2, 2, 2)), np.zeros(2, dtype=int))

def measure(method, setting, drawn, seed, n_jobs):
    if setting.name != "a=1":
        time.sleep(60)  # the test waits for the first setting only
    return None, {"ACC": 1.0}

settings = tuple(Setting("toys", name, draw) for name in ("a=1", "a=2", "a=3"))
EXPERIMENTS["fake"] = Experiment("fake", settings, ("SSC",), measure, 1)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have turned it off
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("name", "jobs"), [("SIGKILL", "2"), ("SIGINT", "2")])
def test_a_killed_run_leaves_whole_rows_and_no_process(fake, tmp_path, name, jobs):
    number = getattr(signal, name)
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT, encoding="utf-8")
    argv = [sys.executable, str(script), "bench", "run", "fake", "--jobs", jobs, "--out", str(out)]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout.readline().startswith("[1/3, ")
        process.send_signal(number)
        # Ends when all have ended that could write: processes at work end too, before their time.
        said, _ = process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert said == (
            f"\n1 new rows are in {out}; the same command goes on from there\ntubal: interrupted\n"
        )
    wanted = tasks("fake", 1, ["SSC"])
    assert_each_once(out, wanted[:1])
    assert run(["fake"], out, methods=["SSC"]) == 2
    assert_each_once(out, wanted)


# ---- tables -------------------------------------------------------------------------------------

ORL = {"experiment": "orl-coil20", "dataset": "orl", "setting": "outliers=100"}
OURS = "OR-TLRR-DFT"


def made_row(method=OURS, draw=0, place=ORL, **metrics):
    figures = {"seconds": 1.0 + draw, "gap": None, "objective": None, "iterations": 10}
    return {
        **place,
        "method": method,
        "draw": draw,
        "seed": draw,
        "error": None,
        "metrics": metrics,
        "peak_memory": 1000,
        **figures,
    }


def cell_of(cells, metric, method=OURS):
    (found,) = (cell for cell in cells if (cell.method, cell.metric) == (method, metric))
    return found


def test_means_and_spreads():
    values = np.array([0.55, 0.61, 0.7, 0.58])
    cells = summarise([made_row(draw=i, ACC=x, own=-x) for i, x in enumerate(values)])
    cell = cell_of(cells, "ACC")
    assert cell.mean == pytest.approx(values.mean())
    assert cell.spread == pytest.approx(np.sqrt(np.sum((values - values.mean()) ** 2) / 3))
    assert cell.draws == 4
    assert cell.published == published()[(*ORL.values(), OURS, "ACC")]
    assert cell.difference == pytest.approx(values.mean() - cell.published)
    assert cell.difference > 0
    assert cell_of(cells, "seconds").mean == 2.5
    own = cell_of(cells, "own")
    assert own.mean == pytest.approx(-values.mean())
    assert own.published is own.difference is None
    assert "gap" not in {cell.metric for cell in cells}  # None is no number


def test_below_the_published_value_the_difference_is_negative():
    cell = cell_of(summarise([made_row(ACC=0.0)]), "ACC")
    assert cell.difference == -cell.published


def test_one_draw_has_no_spread():
    cells = summarise([made_row(ACC=0.6)])
    assert np.isnan(cell_of(cells, "ACC").spread)
    text = to_markdown(cells)
    assert "Draws: 1." in text
    assert "(0" not in text
    lines = csv.DictReader(io.StringIO(to_csv(cells)))
    assert {line["spread"] for line in lines} == {""}


def test_a_failed_draw_has_no_part_in_the_mean():
    rows = [made_row(draw=0, ACC=0.6), {**made_row(draw=1), "error": "ValueError: no"}]
    cells = summarise(rows)
    assert (cell_of(cells, "ACC").mean, cell_of(cells, "ACC").draws) == (0.6, 1)
    assert "Draws: 1 to 2." in to_markdown(cells)


def test_rows_stand_in_the_order_of_the_paper():
    noisy = {"experiment": "umist-noisy", "dataset": "umist", "setting": "noise=0.1"}
    later = {**ORL, "dataset": "coil20", "setting": "outliers=200"}
    rows = [
        made_row("LRR", place=noisy, ACC=0.1),
        made_row("LRR", place=later, ACC=0.2),
        made_row("OR-TLRR-DCT", ACC=0.3),
        made_row(OURS + CERTIFIED, ACC=0.4),
        made_row("R-PCA", ACC=0.5),
        made_row(OURS, ACC=0.6),
    ]
    cells = [cell for cell in summarise(rows) if cell.metric == "ACC"]
    assert [cell.method for cell in cells] == [
        "R-PCA",
        OURS,
        OURS + CERTIFIED,
        "OR-TLRR-DCT",
        "LRR",
        "LRR",
    ]
    assert [cell.mean for cell in cells] == [0.5, 0.6, 0.4, 0.3, 0.2, 0.1]
    assert cell_of(cells, "ACC", OURS + CERTIFIED).published is None


def test_csv_reads_back():
    rows = [made_row(draw=i, ACC=x, AUC=0.123456789) for i, x in enumerate((0.5, 0.6, 0.8))]
    cells = summarise([*rows, made_row(OURS + CERTIFIED, ACC=0.6)])
    lines = list(csv.DictReader(io.StringIO(to_csv(cells))))
    assert len(lines) == len(cells)
    for line, cell in zip(lines, cells, strict=True):
        for name in ("table", "dataset", "setting", "method", "metric"):
            assert line[name] == getattr(cell, name)
        assert int(line["draws"]) == cell.draws
        for name in ("mean", "spread", "published", "difference"):
            value = getattr(cell, name)
            if value is None or np.isnan(value):
                assert line[name] == ""
            else:
                assert float(line[name]) == pytest.approx(value, rel=1e-5)


def table_lines(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_markdown_has_a_column_for_each_metric():
    rows = [made_row(draw=i, ACC=0.5 + i / 10, AUC=1.0, F1=1.0) for i in range(3)]
    rows.append({**made_row(OURS + CERTIFIED, ACC=0.1, NMI=0.2), "gap": 3e-5})
    text = to_markdown(summarise(rows))
    assert text.startswith("### orl-coil20: orl, outliers=100\n")
    assert "Draws: 1 to 3." in text
    head, rule, ours, certified = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table_lines(text)
    )
    assert head[0] == "method"
    assert sorted(head[1:]) == sorted(["AUC", "ACC", "NMI", "seconds", "gap"])
    assert len(head) == len(rule) == len(ours) == len(certified) == 6
    assert set(rule) == {"---"}
    ours, certified = (dict(zip(head, row, strict=True)) for row in (ours, certified))
    known = published()[(*ORL.values(), OURS, "ACC")]
    assert ours["method"] == OURS
    assert ours["ACC"] == f"0.600 (0.100) / {known:.3f} / +{0.6 - known:.3f}"
    assert ours["seconds"] == "2.000 (1.000)"
    assert ours["gap"] == ours["NMI"] == ""
    assert certified["method"] == OURS + CERTIFIED
    assert certified["ACC"] == "0.100"
    assert certified["gap"] == "3.0e-05"


def test_markdown_shows_the_chosen_metrics_in_every_table():
    other = {**ORL, "dataset": "coil20"}
    cells = summarise([made_row(ACC=0.5, F1=1.0), made_row(place=other, ACC=0.0)])
    text = to_markdown(cells, metrics=iter(["F1", "ACC"]))
    heads = [line for line in table_lines(text) if line.startswith("| method")]
    assert heads == ["| method | F1 | ACC |"] * 2
    assert "/ -0." in text


def test_a_folder_without_rows(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=r"holds no rows \(\*\.jsonl\); write some with"):
            read_rows(folder)


def test_files_that_are_something_else(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"a": 1}\nnothing\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.jsonl, line 2 is not a row"):
        read_rows(tmp_path)


@pytest.mark.parametrize("change", [{"experiment": "x"}, {"setting": "x"}, {"dataset": "x"}])
def test_rows_of_no_experiment(change):
    with pytest.raises(ValueError, match=r"no experiment has this row: .*, OR-TLRR-DFT"):
        summarise([{**made_row(ACC=0.5), **change}])


# ---- command line -------------------------------------------------------------------------------


def test_bench_list(capsys):
    assert cli.main(["bench", "list"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "settings", "methods", "draws", "in", "the", "paper"]
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert "orl-coil20 3 20 20" in [" ".join(line.split()) for line in lines]


def test_bench_run_and_table(fake, tmp_path, capsys):
    out, target = tmp_path / "rows", tmp_path / "table.csv"
    argv = ["bench", "run", "fake", "--draws", "1", "--methods", "SSC", "--out", str(out)]
    assert cli.main(argv) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["[1/3", "[2/3", "[3/3"]
    assert "toys a=1 SSC: ACC=0.5 NMI=0.3" in lines[0]
    assert last == f"3 new rows in {out}"
    assert_each_once(out, tasks("fake", 1, ["SSC"]))
    assert cli.main(argv) == 0
    assert capsys.readouterr().out == f"0 new rows in {out}\n"
    assert cli.main(["bench", "table", str(out), "--csv", str(target)]) == 0
    assert len(table_lines(capsys.readouterr().out)) == 3 * 3
    cells = summarise(read_rows(out))
    assert target.read_text(encoding="utf-8") == to_csv(cells)


def test_bench_run_tells_about_errors(monkeypatch, fake, tmp_path, capsys):
    install(monkeypatch, stop_at(2, ValueError("no such thing")))
    assert cli.main(["bench", "run", "fake", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "ValueError: no such thing" in out[1]
    assert len(out) == 10
    install(monkeypatch)
    assert cli.main(["bench", "run", "fake", "--out", str(tmp_path), "--retry-errors"]) == 0
    line, last = capsys.readouterr().out.splitlines()
    assert line.startswith("[9/9, 0 min 0 s left] toys a=1 SSC: ACC=0.5")
    assert last == f"1 new rows in {tmp_path}"


def test_bench_run_shows_metrics_that_are_nan(monkeypatch, fake, tmp_path, capsys):
    install(monkeypatch, lambda *args: (None, {"ACC": float("nan"), "NMI": None}))
    assert cli.main(["bench", "run", "fake", "--methods", "SSC", "--out", str(tmp_path)]) == 0
    assert "ACC=nan NMI=- (" in capsys.readouterr().out
    assert all(row["metrics"] == {"ACC": None, "NMI": None} for row in rows_of(tmp_path))


def test_bench_run_on_a_terminal(monkeypatch, fake, tmp_path, capsys):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    assert cli.main(["bench", "run", "fake", "--methods", "SSC", "--out", str(tmp_path)]) == 0
    text = terminal.getvalue()
    assert "[3/3] toys a=3 SSC: ACC=0.5 NMI=0.3" in text
    assert "3 of 3, 0.0 s left" in text


def test_bench_run_all(monkeypatch, tmp_path, capsys):
    for name in list(EXPERIMENTS)[1:]:
        monkeypatch.delitem(EXPERIMENTS, name)
    settings = (Setting("toys", "a=1", draw_nothing),)
    name = next(iter(EXPERIMENTS))
    monkeypatch.setitem(EXPERIMENTS, name, Experiment(name, settings, METHODS, measure_nothing, 1))
    assert cli.main(["bench", "run", "all", "--out", str(tmp_path)]) == 0
    assert len(rows_of(tmp_path, name)) == 3


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bench"], "command"),
        (["bench", "bogus"], "bogus"),
        (["bench", "run", "--out", "{}"], "NAME"),
        (["bench", "run", "fake"], "--out"),
        (["bench", "run", "bogus", "--out", "{}"], "experiment must be one of"),
        (["bench", "run", "fake", "--methods", "bogus", "--out", "{}"], "methods of fake are"),
        (["bench", "run", "fake", "--draws", "0", "--out", "{}"], "draws must be"),
        (["bench", "run", "fake", "--draws", "some", "--out", "{}"], "some"),
        (["bench", "run", "fake", "--jobs", "-1", "--out", "{}"], "jobs must be"),
        (["bench", "table", "{}"], "holds no rows"),
        (["bench", "table", "{}", "--bogus"], "--bogus"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(fake, tmp_path, capsys, argv, words):
    assert cli.main([arg.format(tmp_path / "out") for arg in argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tubal: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert MEASURED == []


def test_a_missing_data_set_is_told_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path))
    monkeypatch.setenv("TUBAL_CACHE", str(tmp_path))
    assert cli.main(["bench", "run", "orl-coil20", "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "tubal datasets fetch orl" in err


def test_ctrl_c_tells_what_was_saved(monkeypatch, fake, tmp_path, capsys):
    install(monkeypatch, stop_at(3, KeyboardInterrupt()))
    assert cli.main(["bench", "run", "fake", "--out", str(tmp_path)]) == 130
    out, err = capsys.readouterr()
    assert out.endswith(f"\n2 new rows are in {tmp_path}; the same command goes on from there\n")
    assert err == "tubal: interrupted\n"
    assert_each_once(tmp_path, fake[:2])


def test_durations():
    assert [duration(seconds) for seconds in (0.4, 59.6, 61, 3600, 7325)] == [
        "0 min 0 s",
        "1 min 0 s",
        "1 min 1 s",
        "1 h 0 min",
        "2 h 2 min",
    ]


def test_draws_that_failed_are_counted_and_left_out():
    row = {"experiment": "orl-coil20", "dataset": "orl", "setting": "outliers=100", "method": "LRR"}
    rows = [
        {**row, "draw": 0, "metrics": {"ACC": 0.5}, "seconds": 2.0, "error": None},
        {**row, "draw": 1, "metrics": {}, "seconds": 100.0, "error": "MemoryError: too large"},
    ]
    cells = {cell.metric: cell for cell in summarise(rows)}
    assert (cells["ACC"].mean, cells["ACC"].draws) == (0.5, 1)
    assert cells["seconds"].mean == 2
    assert cells["failed"].mean == 0.5
    assert "| failed |" in to_markdown(cells.values())
    assert "failed" not in to_markdown(summarise(rows[:1]))


class TestSharedCompletions:
    @pytest.fixture(autouse=True)
    def _leave_nothing(self):
        yield
        shared.share_in(None)

    def test_the_second_method_takes_what_the_first_one_found(self, tmp_path):
        X = make_tensor_subspaces(8, 4, 2, 1, 15, missing=0.2, random_state=0).X
        expected = TensorCompleter().fit_transform(X)
        shared.share_in(tmp_path)
        first = shared.Shared(TensorCompleter())
        np.testing.assert_array_equal(first.fit_transform(X), expected)
        assert first.saved_seconds_ == 0

        class Refusing(TensorCompleter):
            def fit_transform(self, X, y=None):
                raise AssertionError

        Refusing.__name__ = "TensorCompleter"
        second = shared.Shared(Refusing())
        np.testing.assert_array_equal(second.fit_transform(X), expected)
        assert second.saved_seconds_ > 0
        for other in (Refusing(transform="dct"), Refusing(tol=1e-3)):
            with pytest.raises(AssertionError):
                shared.Shared(other).fit_transform(X)
        with pytest.raises(AssertionError):
            shared.Shared(Refusing()).fit_transform(2 * X)

    def test_without_a_folder_nothing_is_kept(self, tmp_path):
        X = make_tensor_subspaces(8, 4, 2, 1, 15, missing=0.2, random_state=0).X
        shared.Shared(TensorCompleter()).fit_transform(X)
        assert shared.Shared(TensorCompleter()).fit_transform(X).shape == X.shape
        assert not list(tmp_path.iterdir())

    def test_draws_of_fixed_data_differ_in_the_cut_alone(self, tmp_path, monkeypatch):
        data = make_tensor_subspaces(8, 4, 3, 2, 10, random_state=0)
        drawn = Drawn(
            data.X + 0.3 * np.random.default_rng(0).standard_normal(data.X.shape), data.labels
        )
        free = Setting("toy", "free", lambda seed: drawn, {"outliers": None})
        fixed = replace(free, fixed=True)
        method, counts = "OR-TLRR-DFT, certified", []
        expected = [cluster(method, free, drawn, seed, 1) for seed in range(3)]
        shared.share_in(tmp_path)
        kind = type(find("OR-TLRR-DFT").make(3))
        fit = kind.fit
        monkeypatch.setattr(kind, "fit", lambda *args: counts.append(1) or fit(*args))
        for seed, (figures, metrics) in enumerate(expected):
            found = cluster(method, fixed, drawn, seed, 1)
            assert found[1] == metrics
            assert replace(found[0], saved_seconds=0.0) == figures
            assert (found[0].saved_seconds > 0) == (seed > 0)
        assert len(counts) == 1
        cluster("OR-TLRR-DCT", fixed, drawn, 0, 1)
        cluster(method, fixed, Drawn(2 * drawn.X, drawn.labels), 0, 1)
        assert len(counts) == 3


def test_a_dictionary_without_holes():
    """The setting hands it over; nothing of it is missing."""
    drawn = small_draw()
    holes = np.random.default_rng(0).random(drawn.X.shape) < 0.2
    X = np.where(holes, np.nan, drawn.X)
    setting = Setting("synthetic", "small", None, {"outliers": None}, dictionary=without_holes)
    found, _ = cluster("OR-TLRR-DFT", setting, Drawn(X, drawn.labels, drawn.X), 0, 1)
    expected = estimator("OR-TLRR-DFT", 2, {"outliers": None, "dictionary": drawn.X}, 0, 1).fit(X)
    assert found.objective == pytest.approx(expected.certificate_.primal)
    plain, _ = cluster(
        "OR-TLRR-DFT", replace(setting, dictionary=None), Drawn(X, drawn.labels), 0, 1
    )
    assert plain.objective != pytest.approx(found.objective, rel=1e-3)


@pytest.mark.parametrize("transform", ["dft", "dct"])
def test_a_truncated_dictionary(transform):
    """As many singular values of each slice stay as are large in any of them."""
    drawn = small_draw()
    share = 0.3
    D = truncated(drawn, transform, share=share)
    n3 = D.shape[2]
    L = naive.dft_matrix(n3) if transform == "dft" else naive.dct_matrix(n3)
    before, after = (
        np.linalg.svd(np.einsum("kt,nit->kin", L, A), compute_uv=False) for A in (drawn.X, D)
    )
    rank = (before > share * before.max()).sum(axis=1).max()
    assert 0 < rank < (before > 1e-6).sum(axis=1).max()
    before[:, rank:] = 0
    np.testing.assert_allclose(after, before, atol=1e-8)
    setting = Setting(
        "synthetic", "small", None, {"outliers": None}, dictionary=partial(truncated, share=share)
    )
    method = f"OR-TLRR-{transform.upper()}"
    found, _ = cluster(method, setting, drawn, 0, 1)
    expected = estimator(method, 2, {"outliers": None, "dictionary": D}, 0, 1).fit(drawn.X)
    assert found.objective == pytest.approx(expected.certificate_.primal)
