"""What a fit leaves on the disk: a folder that is there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tubal import __version__
from tubal._atomic import sync
from tubal.cli.about import CORE_PACKAGES, installed
from tubal.persistence import load_model, save_model

if sys.platform != "win32":
    import fcntl

MARK = "run.json"
"""The file by which a folder is known as one of ours."""
LARGE = 10_000
"""Arrays with more entries than this are only named in run.json."""


def check_target(target: Path, force: bool) -> None:
    """Refuse a folder that must not be replaced, before any work."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir() or not (target / MARK).is_file():
        msg = f"{target} exists and holds no results of tubal: choose another --out"
        raise ValueError(msg)
    if not force:
        msg = f"{target} holds earlier results: --force replaces them, --out chooses another folder"
        raise ValueError(msg)


@contextmanager
def reserved(target: Path) -> Iterator[None]:
    """Keep a folder of results for this process; refuse when another one has it.

    What processes that were killed have left beside it is removed. Folders that had to be made for
    it go again when nothing was put there.
    """
    shown, target = target, target.resolve()
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _lock(target, shown):
            _clear_leftovers(target)
            yield
    finally:
        for folder in missing:
            with suppress(OSError):  # not empty
                folder.rmdir()


@contextmanager
def _lock(target: Path, shown: Path) -> Iterator[None]:
    """Hold a lock that the system takes back from a process that dies."""
    path = target.with_name(f".{target.name}.lock")
    while True:
        file = path.open("a+")
        try:
            _lock_file(file)
        except BlockingIOError:
            file.close()
            msg = f"another process is writing to {shown}: wait for it, or choose another --out"
            raise ValueError(msg) from None
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()  # its last owner has just removed it
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        file.close()


def _lock_file(file: Any) -> None:
    """Lock an open file without waiting; Windows and file systems without locks go without."""
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            return


def _clear_leftovers(target: Path) -> None:
    """Remove unfinished folders; earlier results that had just been set aside come back."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.\d+\.(tmp|old)")
    for path in sorted(target.parent.iterdir()):
        found = pattern.fullmatch(path.name)
        if found is None:
            continue
        if found[1] == "old" and not target.exists():
            path.rename(target)
        else:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a folder to write into, which gets its name when all is written.

    What stood there before is removed only then. After an error nothing of the new one is left.
    """
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    temporary.mkdir()
    try:
        yield temporary
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        _put_in_place(temporary, target, old)
        sync(target.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def beside(target: Path, suffix: str) -> Path:
    """Return a path beside a folder; also for one that is called "." or ".."."""
    named = target if target.name and target.name != ".." else target.resolve()
    if not named.name:
        msg = f"--out {target} is the root of the disk: choose a folder"
        raise ValueError(msg)
    return named.with_name(named.name + suffix)


def table_text(columns: dict[str, Sequence[Any]]) -> str:
    """Return columns as CSV; NaN becomes an empty field, True and False 1 and 0.

    Text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-` or `@` and is no
    number) gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(map(_field, column) for column in columns.values()), strict=True))
    return out.getvalue()


def _field(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.9g}"
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_file(path: Path, force: bool) -> None:
    """Refuse a file that must not or cannot be written, before any work."""
    if path.exists() and not (force and path.is_file()):
        msg = f"--out {path} exists" + (": --force replaces it" if path.is_file() else "")
        raise ValueError(msg)
    if not path.parent.is_dir():
        msg = f"--out {path}: there is no folder {path.parent}"
        raise ValueError(msg)
    if not os.access(path.parent, os.W_OK):
        msg = f"--out {path}: the folder {path.parent} cannot be written to"
        raise ValueError(msg)


def write_model(folder: Path, estimator: Any, kind: str) -> str:
    """Write the fitted estimator; return the name of the file."""
    name = f"model.{kind}"
    estimator._made_with = versions()
    if kind == "npz":
        save_model(estimator, folder / name)
    else:
        import joblib

        joblib.dump(estimator, folder / name)
    return name


def read_model(path: Path, trust: bool = False) -> Any:
    """Load an estimator that `write_model` wrote, from its file or its folder.

    A file of data is preferred to one that can run code, which is loaded with `trust` only.
    """
    if path.is_dir():
        found = [path / name for name in ("model.npz", "model.joblib") if (path / name).exists()]
        if not found:
            msg = f"{path} holds no model.npz or model.joblib"
            raise ValueError(msg)
        path = found[0]
    if not path.is_file():
        msg = f"MODEL {path} does not exist"
        raise ValueError(msg)
    if path.suffix != ".joblib":
        return load_model(path)
    if not trust:
        msg = (
            f"{path} can run any code when it is loaded: give --trust if you know who made it. "
            "Models are written without code unless --model-format joblib is given"
        )
        raise ValueError(msg)
    return _load_joblib(path)


def _load_joblib(path: Path) -> Any:
    # For the name of its error only; joblib unpickles, and the user has given --trust.
    import pickle  # nosec B403

    import joblib

    try:
        return joblib.load(path)
    except (
        pickle.UnpicklingError, EOFError, KeyError, IndexError, AttributeError, ValueError,
        ImportError,
    ) as error:  # fmt: skip
        msg = f"{path} is no model that this version can load ({type(error).__name__}: {error})"
        raise ValueError(msg) from None


def check_versions(estimator: Any) -> list[str]:
    """Return a warning for each package that has another version than the model was made with."""
    made, now = getattr(estimator, "_made_with", {}), versions()
    return [
        f"the model was made with {name} {made[name]}, this is {now[name]}"
        for name in ("tubal", "scikit-learn", "numpy")
        if name in made and made[name] != now[name]
    ]


def versions() -> dict[str, str]:
    """Return the versions of all that computes."""
    found = {name: installed(name) for name in (*CORE_PACKAGES, "numba", "torch")}
    found = {name: number for name, number in found.items() if number != "not installed"}
    return {"tubal": __version__, "python": platform.python_version(), **found}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write plain values as JSON; numbers that JSON has no word for become null."""
    text = json.dumps(plain(content), indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Return values as JSON knows them; what it has no word for as text.

    >>> plain({"a": float("nan"), "b": (1, None), "c": 1j})
    {'a': None, 'b': [1, None], 'c': '1j'}
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.size > LARGE:
        return f"array of shape {value.shape}"
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else repr(value)
