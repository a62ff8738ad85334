"""Words for people: tables, durations, numbers of things."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from tubal._printable import printable


def print_table(rows: Iterable[Sequence[str]], indent: int = 0) -> None:
    """Print rows in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print((" " * indent + "  ".join(cells)).rstrip())


def say(text: str) -> None:
    """Print a line that is no result, beside the results; names in it become `printable`."""
    print(printable(text), file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Write a long time.

    >>> duration(61), duration(7325)
    ('1 min 1 s', '2 h 2 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def short_duration(seconds: float) -> str:
    """Write a time that may be short.

    >>> short_duration(2.345), short_duration(61)
    ('2.3 s', '1 min 1 s')
    """
    return f"{seconds:.1f} s" if seconds < 59.95 else duration(seconds)


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things.

    >>> counted(1, "outlier"), counted(3, "outlier")
    ('1 outlier', '3 outliers')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def some(items: Sequence[str], limit: int = 5) -> str:
    """List the first ones.

    >>> some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")
