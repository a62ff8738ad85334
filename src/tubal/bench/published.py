"""The published values: 912 numbers of T. Wu, AISTATS 2024, with its supplement."""

from __future__ import annotations

import csv
import functools
from importlib import resources

Key = tuple[str, str, str, str, str]
"""Table, data set, setting, method and metric."""


@functools.cache
def published() -> dict[Key, float]:
    """Return every published value.

    >>> published()["orl-coil20", "orl", "outliers=100", "OR-TLRR-DFT", "ACC"]
    0.5915
    """
    text = resources.files("tubal.bench").joinpath("published.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["dataset"], row["setting"], row["method"], row["metric"]): float(
            row["published"]
        )
        for row in csv.DictReader(text.splitlines())
    }
