"""What a terminal shows while something runs; nothing where there is none.

Needs rich (extra `cli`); without it commands are quiet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import log
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tubal.cli.show import short_duration

if TYPE_CHECKING:
    from tubal.solvers import Check

STAGES = {
    "read": "reading",
    "complete": "filling holes",
    "represent": "solving",
    "detect outliers": "finding outliers",
    "cluster": "cutting the graph",
    "write": "writing",
}


class Display:
    """Shows nothing; the base of what does."""

    def stage(self, name: str) -> None:
        """Begin a stage."""

    def share(self, done: int, total: int) -> None:
        """Show how many of some things are done."""

    def detail(self, text: str, share: float | None = None) -> None:
        """Show how far the stage is."""

    def row(self, text: str, done: int, total: int, left: float) -> None:
        """Show a line that stays, and how far all is."""


@contextmanager
def display() -> Iterator[Display]:
    """Give a display on the terminal, a silent one where there is none."""
    if not sys.stderr.isatty():
        yield Display()
        return
    try:
        import rich  # noqa: F401
    except ImportError:
        yield Display()
        return
    with _bars() as bars:
        yield RichDisplay(bars)


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


class RichDisplay(Display):
    """One line with a bar, replaced at each stage."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.task: Any = None
        self._shown = 0.0

    def stage(self, name: str) -> None:
        """Begin a stage."""
        if self.task is not None:
            self.bars.remove_task(self.task)
        self.task = self.bars.add_task(STAGES.get(name, name), total=None, detail="")

    def share(self, done: int, total: int) -> None:
        """Show how many of some things are done."""
        self.bars.update(self.task, completed=done, total=total, detail=f"{done} of {total}")

    def detail(self, text: str, share: float | None = None) -> None:
        """Show how far the stage is, at most ten times a second."""
        if perf_counter() - self._shown < 0.1:
            return
        self._shown = perf_counter()
        known = {} if share is None else {"completed": share, "total": 1.0}
        self.bars.update(self.task, detail=text, **known)

    def row(self, text: str, done: int, total: int, left: float) -> None:
        """Show a line that stays, and how far all is."""
        self.bars.console.print(text, markup=False, highlight=False)
        text = f"{done} of {total}, {short_duration(left)} left"
        self.bars.update(self.task, completed=done, total=total, detail=text)


class SolveProgress:
    """From iterations and checks to a line: iteration, gap falling, time left."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.begin("certified", 1e-4)

    def begin(self, solver: str, tol: float) -> None:
        """Start anew."""
        self.solver, self.tol = solver, tol
        self.points: list[tuple[float, float]] = []

    def iteration(self, n_iter: int) -> None:
        """Show an iteration."""
        if not self.points:
            self.display.detail(f"iteration {n_iter}")
            return
        word = "gap" if self.solver == "certified" else "residual"
        text = f"iteration {n_iter}, {word} {self.points[-1][1]:.1e} (until {self.tol:.0e})"
        left = seconds_left(self.points, self.tol)
        if left is not None:
            text += f", about {short_duration(left)} left"
        self.display.detail(text, share_done(self.points, self.tol))

    def check(self, check: Check) -> None:
        """Take note of a certificate."""
        value = check.gap if self.solver == "certified" else max(check.residuals)
        if value > 0:
            self.points.append((check.seconds, value))


def seconds_left(points: Sequence[tuple[float, float]], tol: float) -> float | None:
    """Return when a quantity that falls geometrically reaches `tol`; None when nobody knows.

    Parameters
    ----------
    points : sequence of (float, float)
        Seconds and values; the last five of them count.
    tol : float

    Examples
    --------
    >>> round(seconds_left([(1.0, 1e-1), (2.0, 1e-2)], 1e-4), 3)
    2.0
    """
    recent = points[-5:]
    if len(recent) < 2:
        return None
    (start, first), (end, last) = recent[0], recent[-1]
    if not (last < first and end > start):
        return None
    return max(0.0, log(last / tol) / log(first / last) * (end - start))


def share_done(points: Sequence[tuple[float, float]], tol: float) -> float:
    """Return which share of the way to `tol` is done, in the logarithm.

    >>> share_done([(1.0, 1.0), (2.0, 1e-2)], 1e-4)
    0.5
    """
    first, last = points[0][1], min(value for _, value in points)
    if first <= tol:
        return 1.0
    return min(1.0, max(0.0, log(first / last) / log(first / tol)))
