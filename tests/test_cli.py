import re
import subprocess
import sys

import numpy as np
import pytest

import tubal
from tubal import cli
from tubal.cli import about, app


def fail_with(error):
    """Return commands of which one raises."""

    def run(args):
        raise error

    return {"demo": (run, lambda parser: None)}


def test_demo_finds_the_scraps_with_a_certificate(capsys):
    assert cli.main(["demo"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("500 pictures of 8 x 8 pixels: 450 handwritten digits and 50 scraps")
    rows = re.findall(
        r"^(.*?) +([01]\.\d+)  +([01]\.\d+)  +([01]\.\d+)  (\d+) of 50, (\d+) wrong +([\d.]+)%",
        out,
        re.M,
    )
    assert [row[0].strip() for row in rows] == [
        "complete",
        "20 % of the pixels missing",
    ]
    for _, accuracy, nmi, auc, found, wrong, gap in rows:
        assert float(accuracy) > 0.8
        assert float(nmi) > 0.75
        assert float(auc) > 0.995
        assert int(found) >= 49
        assert int(wrong) <= 9
        assert float(gap) <= 0.01


def test_info_names_versions_threads_and_folders(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path))
    monkeypatch.setenv("TUBAL_GOLDEN", str(tmp_path / "nowhere"))
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^tubal +{re.escape(tubal.__version__)}$", out, re.M)
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", out, re.M)
    assert re.search(r"^  blas +\S+ \S+ +\d+ threads$", out, re.M)
    assert re.search(r"^  TUBAL_DATA +set$", out, re.M)
    assert re.search(r"^  TUBAL_GOLDEN +set, but there is no such folder$", out, re.M)
    assert str(tmp_path) not in out


def test_info_tells_what_is_absent(capsys, monkeypatch):
    monkeypatch.delenv("TUBAL_DATA", raising=False)
    monkeypatch.setattr(about, "OPTIONAL_PACKAGES", ("a-package-that-nobody-wrote",))
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  a-package-that-nobody-wrote +not installed$", out, re.M)
    assert re.search(r"^  TUBAL_DATA +not set$", out, re.M)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "command"),
        (["bogus"], "bogus"),
        (["demo", "--bogus"], "--bogus"),
        (["--bogus"], "--help"),
    ],
)
def test_bad_arguments_give_one_line_and_exit_code_2(capsys, argv, words):
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("tubal: error: ")
    assert words in err


@pytest.mark.parametrize("error", [ValueError("X is empty"), FileNotFoundError("no such file")])
def test_bad_input_gives_one_line_and_exit_code_2(capsys, monkeypatch, error):
    monkeypatch.setattr(app, "COMMANDS", fail_with(error))
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == f"tubal: error: {error}\n"


@pytest.mark.parametrize("argv", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback(monkeypatch, argv):
    monkeypatch.setattr(app, "COMMANDS", fail_with(ValueError("X is empty")))
    with pytest.raises(ValueError, match="X is empty"):
        cli.main(argv)


def test_a_bug_is_not_taken_for_bad_input(monkeypatch):
    monkeypatch.setattr(app, "COMMANDS", fail_with(TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        cli.main(["demo"])


def test_interrupt_gives_exit_code_130(capsys, monkeypatch):
    monkeypatch.setattr(app, "COMMANDS", fail_with(KeyboardInterrupt()))
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "tubal: interrupted\n"


def test_the_process_ends_with_the_exit_code():
    code = "import sys; from tubal.cli import main; sys.exit(main())"
    for argv, status in ((["--version"], 0), (["bogus"], 2)):
        run = subprocess.run(
            [sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=120
        )
        assert run.returncode == status
    assert run.stdout == ""


def test_runs_as_a_module():
    """The command may not be on the path; then `python -m tubal` is it."""
    command = [sys.executable, "-m", "tubal"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"tubal {tubal.__version__}\n")
    bad = subprocess.run([*command, "bogus"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "bogus" in bad.stderr


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tubal {tubal.__version__}\n"


def test_datasets_list_tells_where_they_are(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path))
    monkeypatch.setenv("TUBAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "orl.npz").touch()
    assert cli.main(["datasets", "list"]) == 0
    places = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert {"orl", "coil20", "umist", "frdue", "usps", "mirflickr"} <= set(places)
    assert places.pop("orl") == str(tmp_path / "orl.npz")
    assert set(places.values()) == {"-"}


def test_datasets_info(capsys):
    assert cli.main(["datasets", "info", "orl"]) == 0
    assert "400" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["datasets"], "command"),
        (["datasets", "info"], "NAME"),
        (["datasets", "info", "bogus"], "bogus"),
        (["datasets", "fetch", "bogus"], "bogus"),
        (["datasets", "fetch", "orl", "--source", "bogus"], "bogus"),
    ],
)
def test_data_sets_that_nobody_knows(capsys, monkeypatch, tmp_path, argv, words):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path))
    monkeypatch.setenv("TUBAL_CACHE", str(tmp_path))
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tubal: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_datasets_fetch_says_where_the_result_is(capsys, monkeypatch, tmp_path):
    calls = []

    def fetch(name, **options):
        calls.append((name, options["folder"], options["source"]))
        return tmp_path / f"{name}.npz"

    monkeypatch.setattr(tubal.datasets, "fetch", fetch)
    argv = ["datasets", "fetch", "orl", "usps", "--folder", str(tmp_path), "--source", "here"]
    assert cli.main(argv) == 0
    assert calls == [("orl", tmp_path, "here"), ("usps", tmp_path, "here")]
    out = capsys.readouterr().out
    assert str(tmp_path / "orl.npz") in out
    assert str(tmp_path / "usps.npz") in out


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end in another way there")
def test_a_reader_that_leaves_early():
    """`tubal info | true`: no error line, no traceback at the end."""
    code = "import sys; from tubal.cli import main; sys.exit(main(['info']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait() == app.UNREAD
    assert err == b""


@pytest.mark.skipif(sys.platform == "win32", reason="shells close files in another way there")
def test_no_output_at_all():
    """`tubal info >&-`: Python has no `sys.stdout` then."""
    command = ["sh", "-c", 'exec "$0" -m tubal info >&-', sys.executable]
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_broken_pipe_without_output_is_told(capsys, monkeypatch):
    monkeypatch.setattr(app, "COMMANDS", fail_with(BrokenPipeError("a worker is gone")))
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "tubal: error: a worker is gone\n"


def test_another_broken_pipe_is_told(capsys, monkeypatch):
    monkeypatch.setattr(app, "COMMANDS", fail_with(BrokenPipeError("a worker is gone")))
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "tubal: error: a worker is gone\n"
