"""Names of strangers, from the folder to the terminal, the table and the report."""

import csv
import json
import os
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tubal
from tubal import cli
from tubal._printable import MARKS, printable
from tubal.cli.outputs import table_text

ODD = {
    b"caf\xe9.png": r"caf\xe9.png",
    b"\xff\xfe.png": r"\xff\xfe.png",
    b"two\nlines.png": r"two\nlines.png",
    b"\x1b[2J\x1b[31mred.png": r"\x1b[2J\x1b[31mred.png",
    b"\rover.png": r"\rover.png",
    b"\x07bell\x7f.png": r"\x07bell\x7f.png",
    "evil\u202egnp.exe.png".encode(): r"evil\u202egnp.exe.png",
    "\u2066hidden\u2069.png".encode(): r"\u2066hidden\u2069.png",
    "line\u2028end\x85.png".encode(): r"line\u2028end\x85.png",
    b"=cmd|' -C calc'!A0.png": "=cmd|' -C calc'!A0.png",
    b"+1+1.png": "+1+1.png",
    b"-2+3.png": "-2+3.png",
    b"@SUM(1).png": "@SUM(1).png",
    b'"quoted", with comma.png': '"quoted", with comma.png',
    b"<script>alert(1)<!--.png": "<script>alert(1)<!--.png",
    "日本語 é.png".encode(): "日本語 é.png",
    b"[red]markup[!red].png": "[red]markup[!red].png",
    b" leading.png": " leading.png",
}
FORMULA = ("=", "+", "-", "@")
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|[" + "".join(MARKS) + "]")


def run(*argv):
    return cli.main([str(arg) for arg in argv])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of pictures with odd names, two of them broken, in a folder of an odd name."""
    image = pytest.importorskip("PIL.Image")
    if sys.platform != "linux":
        pytest.skip("file names are bytes on Linux only")
    monkeypatch.chdir(tmp_path)
    top = os.fsencode(tmp_path) + b"/in"
    os.mkdir(top)
    rng = np.random.default_rng(0)
    patterns = rng.random((2, 12, 10))
    for i, name in enumerate(sorted(ODD)):
        values = np.uint8(255 * patterns[i % 2] * rng.uniform(0.5, 1))
        with open(os.path.join(top, name), "wb") as file:
            image.fromarray(values).save(file, format="PNG")
    for name in (b"broken\n\x1b[2J\xe9.png", b"=broken.png"):
        with open(os.path.join(top, name), "wb") as file:
            file.write(b"nonsense")
    return tmp_path / "in"


def test_odd_names_reach_table_terminal_and_report(folder, tmp_path, capsys):
    assert run("cluster", folder, "-k", 2, "--out", "out", "--clean") == 0
    told = capsys.readouterr()
    with open("out/labels.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = {f"'{name}" if name.startswith(FORMULA) else name for name in ODD.values()}
    assert {row["name"] for row in rows} == wanted
    assert all(int(row["label"]) in (-1, 0, 1) for row in rows)
    for text in (told.out, told.err, *_texts(tmp_path / "out")):
        assert not BAD.search(text)
    assert r"broken\n\x1b[2J\xe9.png (not a picture)" in told.out
    with np.load("out/clean.npz") as clean:
        assert set(clean["names"]) == set(ODD.values())


def _texts(folder):
    for path in sorted(folder.iterdir()):
        if path.suffix in (".csv", ".json", ".html"):
            yield path.read_text(encoding="utf-8")


def test_names_are_no_markup_in_the_report(folder):
    pytest.importorskip("jinja2")
    assert run("cluster", folder, "-k", 2, "--out", "out") == 0
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<!--" not in page.partition("<body")[2]


def test_run_json_tells_what_was_left_out(folder):
    assert run("cluster", folder, "-k", 2, "--out", "out") == 0
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert {entry["file"] for entry in record["input"]["skipped"]} == {
        r"broken\n\x1b[2J\xe9.png",
        "=broken.png",
    }


@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines", b"\x1b[2J", "\u202ex".encode()])
def test_folders_of_odd_names_are_read_and_written(folder, capsys, name):
    odd = os.fsdecode(name)
    os.rename("in", odd)
    assert run("cluster", odd, "-k", 2) == 0
    told = capsys.readouterr()
    assert f"written to tubal-{printable(odd)}: " in told.out
    assert not BAD.search(told.out + told.err)
    assert os.path.exists(f"tubal-{odd}/labels.csv")
    record = json.loads(Path(f"tubal-{odd}/run.json").read_text(encoding="utf-8"))
    assert record["results"]["clusters"] == 2
    assert run("predict", f"tubal-{odd}", odd, "--out", f"{odd}.csv") == 0
    assert not BAD.search("".join(capsys.readouterr()))


@pytest.mark.parametrize("argv", ["cluster {}", "predict {} x", "outliers {}.npy"])
def test_odd_names_in_errors(tmp_path, monkeypatch, capsys, argv):
    monkeypatch.chdir(tmp_path)
    odd = "no\n\x1b[2J\u202e\udce9"
    assert run(*(arg.format(odd) for arg in argv.split())) == 2
    told = capsys.readouterr().err
    assert told.startswith("tubal: error: ")
    assert told.count("\n") == 1
    assert not BAD.search(told)


def test_names_of_arrays_are_shown_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.ones((3, 2))
    np.savez("x.npz", **{"a\nb\x1b[2J": X, "\u202ec": X})
    assert run("cluster", "x.npz") == 2
    told = capsys.readouterr().err
    assert r"a\nb\x1b[2J (3 x 2)" in told or r"a b\x1b[2J (3 x 2)" in told
    assert not BAD.search(told)
    assert told.count("\n") == 1


@pytest.mark.parametrize("first", ["=1+1", "+1+1", "-1-1", "@A1", "\t=1", "\r=1", " =1"])
def test_names_in_tables_are_no_formulas(tmp_path, monkeypatch, first):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = np.array([first, *(f"s{i}" for i in range(19))])
    np.savez("x.npz", X=rng.normal(size=(20, 4)), names=names)
    assert run("outliers", "x.npz", "--no-report") == 0
    with open("tubal-x-outliers/outliers.csv", newline="", encoding="utf-8") as file:
        found = next(csv.DictReader(file))["name"]
    assert not found.startswith(FORMULA)
    assert not BAD.search(found)


def test_numbers_stay_numbers():
    """Names that are numbers, and negative scores, are written as they are."""
    text = table_text({"name": ["-1", "+2.5", "1e3", "-x"], "score": [-0.5, 1.0, 2.0, 3.0]})
    assert text == "name,score\n-1,-0.5\n+2.5,1\n1e3,2\n'-x,3\n"


@given(st.text(st.characters(), max_size=30))
def test_printable_text_is_printable(text):
    shown = printable(text)
    assert not BAD.search(shown)
    assert "\n" not in shown
    assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE") for c in shown)
    shown.encode()
    if text.isprintable():
        assert shown == text


@given(st.binary(max_size=30))
def test_names_of_bytes_are_printable(name):
    shown = printable(os.fsdecode(name))
    assert not BAD.search(shown)
    shown.encode()


def test_samples_are_named_the_same_in_python(folder):
    loaded = tubal.files.load(folder)
    assert set(loaded.names) == set(ODD.values())
