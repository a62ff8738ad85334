"""Runs experiments into rows, one JSON line each, and goes on where it was stopped.

A row is written whole, in one piece, when its task has ended; a line that a kill cut short is
removed before the run goes on. Rows are known by experiment, data set, setting, method and draw, so
none is measured twice. A lock keeps a second run out of the folder.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from math import isfinite
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from time import perf_counter, process_time
from typing import Any

from tubal import __version__
from tubal._atomic import write_text
from tubal.bench.experiments import EXPERIMENTS, Setting
from tubal.bench.shared import Figures, share_in
from tubal.input import check_count

Row = dict[str, Any]
LOCK = ".lock"
SHARED = ".shared"
"""Folder of what several rows begin with; gone when the run ends."""
_HELD: set[Path] = set()
"""Locks of this process: one with its number but not in here is of a process that is gone."""


@dataclass(frozen=True, order=True)
class Task:
    """What one row measures."""

    experiment: str
    dataset: str
    setting: str
    draw: int
    method: str

    @classmethod
    def of(cls, row: Row) -> Task:
        """Return the task of a row."""
        return cls(*(row[key] for key in ("experiment", "dataset", "setting", "draw", "method")))


def tasks(experiment: str, draws: int, methods: Sequence[str] | None = None) -> list[Task]:
    """Return the tasks of an experiment, draw by draw.

    Parameters
    ----------
    experiment : str
    draws : int
    methods : sequence of str or None
        Some of its methods; a name stands for itself, not for its certified row.
    """
    found = _find(experiment)
    known = found.all_methods()
    chosen = known if methods is None else tuple(dict.fromkeys(methods))
    wrong = [name for name in chosen if name not in known]
    if wrong:
        msg = f"methods of {experiment} are {', '.join(known)}; got {', '.join(wrong)}"
        raise ValueError(msg)
    return [
        Task(experiment, setting.dataset, setting.name, draw, method)
        for draw in range(check_count("draws", draws))
        for setting in found.settings
        for method in chosen
    ]


def run(
    names: Iterable[str],
    out: Path,
    *,
    draws: int = 1,
    methods: Sequence[str] | None = None,
    jobs: int = 1,
    retry_errors: bool = False,
    on_row: Callable[[Row, int, int], None] | None = None,
) -> int:
    """Run experiments into `out/NAME.jsonl`, leaving out rows that are there already.

    Parameters
    ----------
    names : iterable of str
        Experiments.
    out : Path
        Folder, made when it does not exist.
    draws : int
        Draws of each setting, with seeds 0, 1, ...
    methods : sequence of str or None
        Of several experiments each runs those that it knows; one must know each of them.
    jobs : int
        Processes. With one, a task may use all cores; with more, each uses one thread.
    retry_errors : bool
        Whether tasks whose row holds an error are done again; the new row replaces the old one.
    on_row : callable or None
        Called with each new row, how many are done and how many there are in all.

    Returns
    -------
    int
        How many rows were added.
    """
    names = list(dict.fromkeys(names))
    wanted = _wanted(names, draws, methods)
    jobs = check_count("jobs", jobs)
    out.mkdir(parents=True, exist_ok=True)
    with alone(out), _sharing(out / SHARED):
        rows = [row for name in names for row in whole_rows(out / f"{name}.jsonl")]
        failed = {Task.of(row) for row in rows if retry_errors and row.get("error") is not None}
        done = {Task.of(row) for row in rows} - failed
        open_tasks = [task for task in wanted if task not in done]
        finished = len(wanted) - len(open_tasks)
        for added, row in enumerate(_rows(open_tasks, jobs, out / SHARED), 1):
            path = out / f"{row['experiment']}.jsonl"
            (replace_row if Task.of(row) in failed else append)(path, row)
            if on_row is not None:
                on_row(row, finished + added, len(wanted))
    return len(open_tasks)


def _wanted(names: list[str], draws: int, methods: Sequence[str] | None) -> list[Task]:
    """Return the tasks of several experiments, each with those of the methods that it knows."""
    if methods is None or len(names) == 1:
        return [task for name in names for task in tasks(name, draws, methods)]
    known = {name: _find(name).all_methods() for name in names}
    wrong = [method for method in methods if not any(method in every for every in known.values())]
    if wrong:
        every = dict.fromkeys(method for some in known.values() for method in some)
        msg = f"methods of these experiments are {', '.join(every)}; got {', '.join(wrong)}"
        raise ValueError(msg)
    chosen = {name: [m for m in methods if m in every] for name, every in known.items()}
    return [task for name in names if chosen[name] for task in tasks(name, draws, chosen[name])]


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the lock of a process that is gone does not count."""
    path = out / LOCK
    holder = _holder(path)
    if holder is not None:
        msg = f"process {holder} is running into {out} already; remove {path} if it is not"
        raise ValueError(msg)
    mine = path.with_name(f"{LOCK}.{os.getpid()}")
    mine.write_text(str(os.getpid()), encoding="ascii")
    try:
        path.unlink(missing_ok=True)
        os.link(mine, path)  # fails when another run was faster
    except FileExistsError:
        msg = f"process {_holder(path)} has just begun to run into {out}"
        raise ValueError(msg) from None
    except OSError:  # a file system without links
        mine.replace(path)
    finally:
        mine.unlink(missing_ok=True)
    _HELD.add(path.absolute())
    try:
        yield
    finally:
        _HELD.discard(path.absolute())
        path.unlink(missing_ok=True)


def _holder(path: Path) -> int | None:
    """Return the process that holds a lock, None when there is none or it is gone."""
    try:
        pid = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    alive = path.absolute() in _HELD if pid == os.getpid() else _is_alive(pid)
    return pid if alive else None


def _is_alive(pid: int) -> bool:
    if os.name != "posix":  # there a signal would end the process; rather one refusal too many
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def append(path: Path, row: Row) -> None:
    """Add one row, and see to it that it reaches the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(row))
        file.flush()
        os.fsync(file.fileno())


def replace_row(path: Path, row: Row) -> None:
    """Put a row in the place of the one of the same task; the file is whole at any time."""
    lines = [_line(row) if Task.of(old) == Task.of(row) else _line(old) for old in whole_rows(path)]
    write_text(path, "".join(lines))


def _line(row: Row) -> str:
    """Return a row as JSON, which has no word for NaN: null."""
    return json.dumps(_without_nan(row), sort_keys=True, allow_nan=False) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def measure(task: Task, n_jobs: int | None = None) -> Row:
    """Do one task. An error becomes part of the row, so that the run goes on."""
    experiment = _find(task.experiment)
    setting = _setting(task)
    drawn = setting.draw(task.draw)
    reset_peak_memory()
    before, start, worked = peak_memory(), perf_counter(), process_time()
    row: Row = {**vars(task), "seed": task.draw, "error": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            figures, found = experiment.measure(task.method, setting, drawn, task.draw, n_jobs)
        except (ValueError, ArithmeticError, MemoryError) as error:
            figures, found = None, {}
            row["error"] = f"{type(error).__name__}: {error}"
    figures = figures or Figures(None, None, None)
    row |= {
        "metrics": found,
        "seconds": perf_counter() - start + figures.saved_seconds,
        "cpu_seconds": process_time() - worked,  # spent here, also on a busy machine
        "peak_memory": max(0, peak_memory() - before),
        "warnings": sorted({str(item.message) for item in caught}),
        "versions": _versions(),
        "objective": figures.objective,
        "gap": figures.gap,
        "iterations": figures.iterations,
    }
    return row


@contextmanager
def _sharing(folder: Path) -> Iterator[None]:
    """Let rows of this process share completions; what a killed run left is removed too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    share_in(folder)
    try:
        yield
    finally:
        share_in(None)
        shutil.rmtree(folder, ignore_errors=True)


def _rows(open_tasks: list[Task], jobs: int, shared: Path) -> Iterator[Row]:
    """Yield rows as they end."""
    if jobs == 1:
        yield from (measure(task) for task in open_tasks)
        return
    # A new interpreter each: forking a process with BLAS threads in it is not safe.
    context = get_context("spawn")
    hears, speaks = context.Pipe(duplex=False)
    with (
        hears,
        speaks,
        ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin_process, initargs=(hears, shared)
        ) as pool,
    ):
        try:
            waiting = {pool.submit(measure, task, 1) for task in open_tasks}
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        except BrokenProcessPool as error:
            msg = (
                "a process of the run was ended from outside, perhaps for want of memory; "
                "finished rows are kept, and fewer jobs need less"
            )
            raise ChildProcessError(msg) from error
        except BaseException:  # Ctrl-C, an error, or nobody wants the rest
            speaks.close()
            raise


def _begin_process(hears: Connection, shared: Path) -> None:
    share_in(shared)
    _end_with_the_run(hears)


def _end_with_the_run(hears: Connection) -> None:
    """Let this process end when the run does, however that ended: by Ctrl-C or by a kill too.

    The other end of the pipe closes with the run. By itself a process of a pool would work off its
    queue first, and stay forever when the run was killed.
    """
    signal(SIGINT, SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the run answers it

    def end() -> None:
        hears.poll(None)
        os._exit(1)

    Thread(target=end, daemon=True).start()


def whole_rows(path: Path) -> list[Row]:
    """Read the rows of a file; remove what a kill left of the last one."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        write_text(path, "".join(lines))
    return [json.loads(line) for line in lines]


def _find(name: str) -> Any:
    if name not in EXPERIMENTS:
        msg = f"experiment must be one of {', '.join(EXPERIMENTS)}; got {name!r}"
        raise ValueError(msg)
    return EXPERIMENTS[name]


def _setting(task: Task) -> Setting:
    (found,) = (
        setting
        for setting in _find(task.experiment).settings
        if (setting.dataset, setting.name) == (task.dataset, task.setting)
    )
    return found


def _versions() -> dict[str, str]:
    names = ("numpy", "scipy", "scikit-learn")
    return {"tubal": __version__, "python": platform.python_version()} | {
        name: version(name) for name in names
    }


def reset_peak_memory() -> None:
    """Let the peak of memory start again from what is used now, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        pass  # then the peak is that of the whole process so far


def peak_memory() -> int:
    """Return the largest resident size so far, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:  # Windows
            return 0
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else 1024 * size
