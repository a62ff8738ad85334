"""`tubal cluster` in processes that are killed, stopped, or not alone."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import tubal
from tubal.datasets import make_tensor_subspaces

CODE = (
    "import sys; from tubal.cli import main, resume; resume.EVERY, resume.SHARE = 0.0, 1e9; "
    "sys.exit(main())"
)
ARGV = ("cluster", "x.npy", "-k", "3", "--tol", "1e-9", "--no-report", "--jobs", "1")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tubal.__file__).parents[1])}
FILES = {"labels.csv", "model.npz", "run.json"}


def start(folder: Path, *more: str) -> subprocess.Popen:
    """Start a fit that keeps its state at every iteration."""
    argv = [sys.executable, "-c", CODE, *ARGV, *more]
    return subprocess.Popen(
        argv, cwd=folder, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def prepare(folder: Path) -> list[int]:
    """Write the data; return the labels of a fit that nobody disturbs."""
    data = make_tensor_subspaces(20, 6, 3, 2, 30, outliers=0.1, missing=0.1, random_state=0)
    np.save(folder / "x.npy", data.X)
    process = start(folder, "--out", "whole")
    told = process.communicate(timeout=300)[1]
    assert process.returncode == 0, told
    return labels(folder / "whole")


def labels(folder: Path) -> list[int]:
    """Return the labels in a folder of results, all of which must be whole."""
    assert set(os.listdir(folder)) == FILES
    json.loads((folder / "run.json").read_text(encoding="utf-8"))
    tubal.load_model(folder / "model.npz")
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        return [int(row["label"]) for row in csv.DictReader(file)]


@dataclass(frozen=True)
class Kill:
    """A signal after some seconds, so often, before the fit may end."""

    number: int
    seconds: tuple[float, ...]


kills = st.builds(
    Kill,
    st.sampled_from([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]),
    st.lists(st.floats(0.0, 2.5), min_size=1, max_size=2).map(tuple),
)


def check_kill(folder: Path, kill: Kill, wanted: list[int]) -> str:
    """Kill a fit at random moments, resume it, and compare with the fit nobody disturbed."""
    reached = "killed"
    for seconds in kill.seconds:
        process = start(folder, "--out", "out", "--resume")
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(kill.number)
            told = process.communicate(timeout=120)[1]
            codes = {signal.SIGTERM: {143, -15}, signal.SIGINT: {130, -2}}
            ended = process.returncode
            assert ended in codes.get(kill.number, {-9}) | {0}, (ended, told)
            assert ended <= 0 or "Traceback" not in told, told
        if (folder / "out").exists():
            assert labels(folder / "out") == wanted
            return "ended before"
        if (folder / "out.partial").exists():
            reached = "killed with a state"
    process = start(folder, "--out", "out", "--resume")
    told = process.communicate(timeout=300)[1]
    assert process.returncode == 0, told
    assert labels(folder / "out") == wanted
    assert sorted(os.listdir(folder)) == ["out", "whole", "x.npy"]
    return reached


def check_two(folder: Path, wanted: list[int]) -> str:
    """Start two processes with one folder of results; one writes, the other one is told so."""
    processes = [start(folder, "--out", "both") for _ in range(2)]
    told = [process.communicate(timeout=300)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2], told
    (line,) = [text for text in told if "error" in text]
    assert "another process is writing" in line or "holds earlier results" in line
    assert labels(folder / "both") == wanted
    return "one of two"
