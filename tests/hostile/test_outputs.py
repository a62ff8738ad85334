"""No fit is lost and no result is replaced, whatever happens to files, folders and the process."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tubal
from tubal import cli
from tubal.cli import outputs, resume, session
from tubal.datasets import make_tensor_subspaces

DATA = make_tensor_subspaces(20, 6, 3, 2, 20, outliers=0.15, random_state=0)
ARGV = ("cluster", "toys.npy", "-k", 3, "--tol", "1e-8", "--no-report")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tubal.__file__).parents[1])}
posix = pytest.mark.skipif(os.name != "posix", reason="signals and locks of POSIX")


@pytest.fixture(autouse=True)
def in_tmp_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("toys.npy", DATA.X)


@pytest.fixture
def no_fit(monkeypatch):
    def fit(self, X):
        pytest.fail("the fit was begun")

    monkeypatch.setattr(tubal.ORTLRR, "fit", fit)


def run(*argv):
    return cli.main([str(arg) for arg in argv])


def refused(capsys, *argv):
    """Return the line of a command that must end with 2 and leave nothing."""
    before = sorted(os.listdir())
    assert run(*argv) == 2
    told = capsys.readouterr().err
    assert told.startswith("tubal: error: ")
    assert told.count("\n") == 1
    assert sorted(os.listdir()) == before
    return told


def labels(folder):
    with open(f"{folder}/labels.csv", newline="", encoding="utf-8") as file:
        return [int(row["label"]) for row in csv.DictReader(file)]


# ---- what can be refused is refused before the fit -----------------------------------------------


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("/", "is the root of the disk"),
        ("//", "is the root of the disk"),
        ("toys.npy", "exists and holds no results of tubal"),
        ("toys.npy/out", "toys.npy"),
        ("x" * 300, "File name too long"),
        ("x" * 247, "File name too long"),
        ("/proc/out", "/proc"),
        (".", "exists and holds no results of tubal"),
        ("..", "exists and holds no results of tubal"),
    ],
)
@posix
def test_folders_that_cannot_be_are_refused_before_the_fit(no_fit, capsys, out, words):
    assert words in refused(capsys, *ARGV, "--out", out)
    assert words in refused(capsys, *ARGV, "--out", out, "--force")


@pytest.mark.parametrize("out", ["/", "nowhere/x.csv", ".", "toys.npy"])
def test_files_that_cannot_be_are_refused_before_a_prediction(monkeypatch, capsys, out):
    assert run(*ARGV, "--out", "m") == 0
    capsys.readouterr()
    monkeypatch.setattr(tubal.ORTLRR, "predict", lambda self, X: pytest.fail("predicted"))
    assert "--out" in refused(capsys, "predict", "m", "toys.npy", "--out", out)


@pytest.mark.parametrize("content", ["a,b,c\n", "a,b,c", "\ufeffa,b\n\n\n", "name\n", "", "\n\n"])
def test_tables_without_rows_are_refused(no_fit, capsys, content):
    Path("x.csv").write_text(content, encoding="utf-8")
    assert "x.csv" in refused(capsys, "cluster", "x.csv")


def test_folders_that_cannot_be_opened_are_counted(monkeypatch, capsys):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for i in range(30):
        path = Path("in", f"part{i % 3}", f"{i}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(rng.integers(0, 255, (6, 5), dtype=np.uint8)).save(path)
    scandir = os.scandir

    def closed(path="."):
        if Path(os.fsdecode(path)).name == "part1":
            raise PermissionError(13, "Permission denied", os.fsdecode(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    loaded = tubal.files.load("in")
    monkeypatch.setattr(os, "scandir", scandir)
    assert len(loaded.X) == 20
    assert loaded.skipped == (("part1/", "Permission denied"),)
    session.tell_input(loaded)
    assert "1 file not readable, left out: part1/ (Permission denied)" in capsys.readouterr().out


# ---- one writer ----------------------------------------------------------------------------------


@posix
def test_a_second_process_is_refused_at_the_start(no_fit, capsys):
    with outputs.reserved(Path("out")):
        assert "another process is writing to out: wait" in refused(capsys, *ARGV, "--out", "out")
        assert "another process" in refused(capsys, *ARGV, "--out", "out", "--force")
    assert not Path(".out.lock").exists()


@posix
def test_a_lock_of_a_dead_process_does_not_count():
    Path(".out.lock").write_bytes(b"")
    assert run(*ARGV, "--out", "out") == 0
    assert sorted(os.listdir()) == ["out", "toys.npy"]


@posix
@pytest.mark.slow  # starts processes
def test_of_two_processes_one_writes(tmp_path):
    code = "import sys; from tubal.cli import main; sys.exit(main())"
    argv = [sys.executable, "-c", code, *map(str, ARGV), "--out", "out"]
    started = [
        subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=300)[1].decode() for process in started]
    codes = sorted(process.returncode for process in started)
    assert codes == [0, 2]
    (line,) = [text for text in told if text]
    assert "another process is writing to out" in line or "holds earlier results" in line
    assert sorted(os.listdir()) == ["out", "toys.npy"]
    assert len(labels("out")) == len(DATA.X)


def test_what_killed_processes_left_is_removed():
    assert run(*ARGV, "--out", "out") == 0
    for name in (".out.123.tmp", ".out.99999.tmp", ".out.123.old"):
        Path(name).mkdir()
        Path(name, "labels.csv").touch()
    for name in (".out.x.tmp", ".other.1.tmp", ".out.1.tmpx"):  # not ours
        Path(name).mkdir()
    assert run(*ARGV, "--out", "out", "--force") == 0
    assert sorted(os.listdir()) == [".other.1.tmp", ".out.1.tmpx", ".out.x.tmp", "out", "toys.npy"]


def test_results_that_were_just_set_aside_come_back(capsys):
    """A process was killed between taking the old results away and putting the new ones there."""
    assert run(*ARGV, "--out", "out") == 0
    before = labels("out")
    os.rename("out", ".out.123.old")
    assert run(*ARGV, "--out", "out") == 2
    assert "--force replaces them" in capsys.readouterr().err
    assert labels("out") == before


def test_results_are_not_replaced_without_force(capsys):
    assert run(*ARGV, "--out", "out") == 0
    before = Path("out/labels.csv").read_bytes()
    assert "--force replaces them" in refused(capsys, *ARGV, "--out", "out")
    assert "--force replaces them" in refused(capsys, *ARGV, "--out", "out", "--resume")
    assert "--force replaces them" in refused(capsys, "outliers", "toys.npy", "--out", "out")
    assert Path("out/labels.csv").read_bytes() == before


# ---- signals -------------------------------------------------------------------------------------


def stopping(number, at):
    """Return a keeper that sends its own process a signal at an iteration."""

    class Stopping(resume.Keeper):
        def iteration(self, n_iter, snapshot):
            if n_iter == at:
                os.kill(os.getpid(), number)
                time.sleep(0.01)
            super().iteration(n_iter, snapshot)

    return Stopping


@posix
@pytest.mark.parametrize("at", [1, 12])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_state(monkeypatch, capsys, at, number, code):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with monkeypatch.context() as patch:
        patch.setattr(session, "Keeper", stopping(number, at))
        assert run(*ARGV) == code
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert f"iteration {at} is saved in tubal-toys.partial" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["toys.npy", "tubal-toys.partial"]
    assert run(*ARGV, "--resume") == 0
    record = json.loads(Path("tubal-toys/run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] == at
    assert record["certificate"]["gap"] <= 1e-8
    assert (
        labels("tubal-toys")
        == tubal.ORTLRR(3, tol=1e-8, random_state=0).fit(DATA.X).labels_.tolist()
    )


@posix
def test_sigterm_before_the_solve_ends_at_once(monkeypatch, capsys):
    def load(*args, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    monkeypatch.setattr(session.files, "load", load)
    assert run(*ARGV) == 143
    assert capsys.readouterr().err == "tubal: interrupted; nothing was saved\n"
    assert os.listdir() == ["toys.npy"]


@posix
@pytest.mark.slow  # starts processes
def test_a_real_sigterm(tmp_path):
    data = make_tensor_subspaces(60, 20, 4, 4, 60, outliers=0.1, missing=0.3, random_state=0)
    np.save("large.npy", data.X)
    code = "from tubal.cli import main, resume; resume.EVERY = 0.1; import sys; sys.exit(main())"
    argv = [sys.executable, "-c", code, "cluster", "large.npy", "-k", "4", "--tol", "1e-10"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not Path("tubal-large.partial/solve-0.npz").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    _, told = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "is saved in tubal-large.partial" in told
    assert sorted(os.listdir()) == ["large.npy", "toys.npy", "tubal-large.partial"]


# ---- disks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["labels.csv", "model.npz", "run.json"])
def test_a_full_disk_at_the_end_leaves_the_state(monkeypatch, capsys, what):
    """The fit took long: it can be written again without another one."""
    full = OSError(28, "No space left on device")

    def fail(*args, **options):
        raise full

    where = {"labels.csv": "table_text", "model.npz": "write_model", "run.json": "write_json"}
    monkeypatch.setattr(resume, "EVERY", 0.0)
    monkeypatch.setattr(resume, "SHARE", 1e9)
    with monkeypatch.context() as patch:
        patch.setattr(outputs, where[what], fail)
        assert run(*ARGV) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["toys.npy", "tubal-toys.partial"]
    assert run(*ARGV, "--resume") == 0
    record = json.loads(Path("tubal-toys/run.json").read_text(encoding="utf-8"))
    assert record["resumed_at_iteration"] > 0


def test_nothing_unfinished_is_left_beside_a_state(monkeypatch):
    monkeypatch.setattr(resume, "EVERY", 0.0)
    monkeypatch.setattr(resume, "SHARE", 1e9)
    with monkeypatch.context() as patch:
        patch.setattr(outputs, "write_model", lambda *a: (_ for _ in ()).throw(OSError("full")))
        assert run(*ARGV) == 2
    names = set(os.listdir("tubal-toys.partial"))
    assert "fit.json" in names
    assert all(name == "fit.json" or name.startswith("solve-") for name in names)
    shutil.rmtree("tubal-toys.partial")
