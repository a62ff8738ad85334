"""Fits that survive an interruption: states of the solver are kept beside the output folder.

`DIR.partial` holds what the fit was about (hashes of data and parameters) and the last state of
each of its solves. It appears when a fit takes longer than some seconds or is interrupted, and
goes when the fit has ended.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np

from tubal import __version__
from tubal._atomic import replacing, write_text
from tubal.cli.progress import Display, SolveProgress
from tubal.cli.show import say
from tubal.input import to_numpy
from tubal.solvers import Check, Snapshot, Watcher

EVERY = 10.0
"""Seconds between two states, at least."""
SHARE = 0.05
"""Largest share of the time that is spent on writing them."""
IGNORED = ("n_jobs", "callback")


def fingerprint(estimator: Any, X: np.ndarray) -> dict[str, str]:
    """Return what a fit depends on: data, estimator, version."""
    digest = hashlib.blake2b(f"{X.shape} {X.dtype}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(X).data)
    params = estimator.get_params(deep=True)
    text = {key: repr(value) for key, value in params.items() if key.split("__")[-1] not in IGNORED}
    made = json.dumps([type(estimator).__name__, text], sort_keys=True)
    return {
        "data": digest.hexdigest(),
        "parameters": hashlib.blake2b(made.encode(), digest_size=16).hexdigest(),
        "version": __version__,
    }


class Partial:
    """The folder with states of an unfinished fit."""

    def __init__(self, folder: Path, about: dict[str, str]) -> None:
        self.folder, self.about = folder, about

    def why_not(self) -> str | None:
        """Return why the fit cannot go on from here, None when it can."""
        if not self.folder.is_dir():
            return f"there is no {self.folder}"
        try:
            found = json.loads((self.folder / "fit.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            return f"{self.folder / 'fit.json'} is damaged"
        for state in sorted(self.folder.glob("solve-*.npz")):
            if _read(state) is None:
                return f"{state} is damaged"
        for what in self.about:
            if found.get(what) != self.about[what]:
                other = "other data" if what == "data" else f"another set of {what}"
                other = "another version of tubal" if what == "version" else other
                return f"{self.folder} is of {other}"
        return None

    def save(self, number: int, snapshot: Snapshot) -> None:
        """Keep the state of a solve; the one before stays until this one is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / "fit.json", json.dumps(self.about))
        numbers = np.array([snapshot.b1, snapshot.b2, snapshot.n_iter])
        arrays: dict[str, Any] = {f"array{i}": to_numpy(A) for i, A in enumerate(snapshot.arrays)}
        with replacing(self._path(number)) as file:
            np.savez(file, numbers=numbers, solver=np.array(snapshot.solver), **arrays)

    def load(self, number: int) -> Snapshot | None:
        """Return the state of a solve, None when there is none."""
        return _read(self._path(number))

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"solve-{number}.npz"


def _read(path: Path) -> Snapshot | None:
    """Return a state, None when the file is not there or not whole."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = tuple(file[f"array{i}"] for i in range(len(file.files) - 2))
            b1, b2, n_iter = map(float, file["numbers"])
            return Snapshot(arrays, b1, b2, str(file["solver"]), int(n_iter))
    except (OSError, EOFError, ValueError, KeyError, AttributeError, TypeError, OverflowError):
        return None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None


class Keeper(Watcher):
    """Shows how a fit goes, keeps its states, and ends it in good order after Ctrl-C."""

    def __init__(self, partial: Partial, display: Display, resume: bool) -> None:
        self.partial, self.display, self.resume = partial, display, resume
        self.progress = SolveProgress(display)
        self.number = -1
        self.solving = self.asked_to_stop = self.warned = False
        self.saved: int | None = None
        self.resumed: int | None = None
        self._last, self._pause = perf_counter(), EVERY

    def stage(self, name: str) -> None:
        """Show a stage."""
        self._stop_if_asked()
        self.display.stage(name)

    def begin(self, solver: str, tol: float, max_iter: int) -> Snapshot | None:
        """Return the state that was kept, if the fit shall go on from it."""
        self.number += 1
        self.solving, self._last = True, perf_counter()
        self.progress.begin(solver, tol)
        snapshot = self.partial.load(self.number) if self.resume else None
        if snapshot is not None:
            self.resumed = self.saved = snapshot.n_iter
        return snapshot

    def iteration(self, n_iter: int, snapshot: Callable[[], Snapshot]) -> None:
        """Show an iteration; keep its state when it is time, or when it is the last one."""
        if self.asked_to_stop or perf_counter() - self._last > self._pause:
            start = perf_counter()
            self._save(n_iter, snapshot())
            self._last = perf_counter()
            self._pause = max(EVERY, (self._last - start) / SHARE)
        self._stop_if_asked()
        self.progress.iteration(n_iter)

    def _save(self, n_iter: int, snapshot: Snapshot) -> None:
        """Keep a state; where it cannot be written (a full disk), the fit goes on without."""
        try:
            self.partial.save(self.number, snapshot)
            self.saved = n_iter
        except OSError as error:
            if not self.warned:
                say(
                    f"warning: the state of the fit cannot be saved, so it goes on without: {error}"
                )
            self.warned = True

    def check(self, check: Check) -> None:
        """Take note of a certificate."""
        self.progress.check(check)

    def end(self) -> None:
        """Hear that the solve ended."""
        self.solving = False

    def interrupt(self) -> None:
        """Answer Ctrl-C: at once, or after the iteration that is under way."""
        if self.asked_to_stop or not self.solving:
            raise KeyboardInterrupt
        self.asked_to_stop = True
        with suppress(RuntimeError):  # when a line was just being printed
            say("stopping after this iteration; Ctrl-C again stops at once")

    def _stop_if_asked(self) -> None:
        if self.asked_to_stop:
            raise KeyboardInterrupt

    def what_is_saved(self) -> str:
        """Return a sentence for the user whose fit was cut short."""
        if self.saved is None:
            return "nothing was saved"
        return (
            f"iteration {self.saved} is saved in {self.partial.folder}, and the same command with "
            "--resume goes on from there"
        )


@contextmanager
def answering_ctrl_c(keeper: Keeper) -> Iterator[None]:
    """Let Ctrl-C wait for a good moment inside the block; tell what was saved."""

    def handle(number: int, frame: FrameType | None) -> None:
        keeper.interrupt()

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, handle) if in_main else None
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(keeper.what_is_saved()) from None
    except ConnectionError as error:  # a worker was lost
        msg = f"{error}; {keeper.what_is_saved()}"
        raise ConnectionError(msg) from error
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
