"""A look at solves from outside: progress to show, states to keep, a state to go on from.

Estimators solve inside their fits, some of them twice (completion first). A watcher sees all of it
without being a parameter of anything::

    with watch(watcher):
        estimator.fit(X)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tubal.input import Array
from tubal.solvers.solution import Check


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a solve stands after some iterations; enough to go on from there.

    Attributes
    ----------
    arrays : tuple of array
        As in `State`.
    b1, b2 : float
        Penalties.
    solver : str
    n_iter : int
    """

    arrays: tuple[Array, ...]
    b1: float
    b2: float
    solver: str
    n_iter: int


class Watcher:
    """Sees fits and solves; the methods of this class do nothing. Derive from it."""

    def stage(self, name: str) -> None:
        """Hear that an estimator begins a stage of its fit."""

    def begin(self, solver: str, tol: float, max_iter: int) -> Snapshot | None:
        """Hear that a solve begins; return where it shall go on, None for its own start.

        `solver` is "certified", which stops when the gap is at most `tol`, or "published", which
        stops when the residuals are. A snapshot must be of the same solve: same data, same
        parameters.
        """
        return None

    def iteration(self, n_iter: int, snapshot: Callable[[], Snapshot]) -> None:
        """Look after an iteration; calling the function costs a copy of the arrays.

        An error raised here ends the solve.
        """

    def check(self, check: Check) -> None:
        """Look at a certificate."""

    def end(self) -> None:
        """Hear that a solve ended, in whatever way."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_NOBODY = Watcher()


@contextmanager
def watch(watcher: Watcher) -> Iterator[None]:
    """Let a watcher see what is fitted and solved inside the block, in this thread."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watching() -> Watcher:
    """Return who watches; somebody always does, if only nobody."""
    return _watcher.get() or _NOBODY
