"""Reads rows back as tables: ours (mean and standard deviation) beside the published values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from tubal.bench.experiments import CERTIFIED, EXPERIMENTS
from tubal.bench.published import published

FIGURES = ("seconds", "gap", "objective", "iterations", "peak_memory")


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Attributes
    ----------
    table, dataset, setting, method, metric : str
    mean, spread : float
        Of the draws; the spread is the standard deviation (of n - 1), NaN for one draw.
    draws : int
    published : float or None
    """

    table: str
    dataset: str
    setting: str
    method: str
    metric: str
    mean: float
    spread: float
    draws: int
    published: float | None

    @property
    def difference(self) -> float | None:
        """Ours minus the published value."""
        return None if self.published is None else self.mean - self.published


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all experiments in a folder, whole ones only."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        msg = f"{folder} holds no rows (*.jsonl); write some with `tubal bench run NAME --out DIR`"
        raise ValueError(msg)
    rows = []
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            if line.endswith("\n"):
                rows.append(_row(line, f"{path}, line {number}"))
    return rows


def _row(line: str, place: str) -> dict[str, Any]:
    try:
        return json.loads(line)
    except ValueError as error:
        msg = f"{place} is not a row: {error}"
        raise ValueError(msg) from error


def summarise(rows: Iterable[dict[str, Any]]) -> list[Cell]:
    """Return mean and spread over draws, in the order of the experiments.

    Draws that ended with an error count in the metric "failed" only, whose mean is their share.
    """
    groups: dict[tuple[str, str, str, str, str], list[float]] = {}
    for row in rows:
        key = (row["experiment"], row["dataset"], row["setting"], row["method"])
        failed = row.get("error") is not None
        figures = {name: row[name] for name in FIGURES if row.get(name) is not None and not failed}
        figures["failed"] = float(failed)
        for metric, value in {**row["metrics"], **figures}.items():
            number = float("nan") if value is None else float(value)  # JSON has no NaN
            groups.setdefault((*key, metric), []).append(number)
    known = published()
    cells = [
        Cell(*key, float(np.mean(values)), _spread(values), len(values), known.get(key))
        for key, values in groups.items()
    ]
    return sorted(cells, key=_order)


def to_csv(cells: Iterable[Cell]) -> str:
    """Return all cells, one a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("table", "dataset", "setting", "method", "metric")
    writer.writerow([*names, "mean", "spread", "draws", "published", "difference"])
    for cell in cells:
        numbers = (cell.mean, cell.spread, cell.draws, cell.published, cell.difference)
        writer.writerow(
            [*(getattr(cell, name) for name in names), *(_plain(value) for value in numbers)]
        )
    return out.getvalue()


def to_markdown(cells: Iterable[Cell], metrics: Iterable[str] | None = None) -> str:
    """Return a table for each setting: a row a method, ours, published and the difference.

    Parameters
    ----------
    cells : iterable of Cell
    metrics : iterable of str or None
        Which ones; those with published values, and seconds and gap, by default.
    """
    chosen = None if metrics is None else list(metrics)
    groups: dict[tuple[str, str, str], dict[str, dict[str, Cell]]] = {}
    for cell in cells:
        methods = groups.setdefault((cell.table, cell.dataset, cell.setting), {})
        methods.setdefault(cell.method, {})[cell.metric] = cell
    return "\n".join(_one_table(key, methods, chosen) for key, methods in groups.items())


def _one_table(
    key: tuple[str, str, str], methods: dict[str, dict[str, Cell]], metrics: list[str] | None
) -> str:
    present = [metric for row in methods.values() for metric in row]
    chosen = metrics if metrics is not None else _default_metrics(key[0], present)
    if any(row["failed"].mean > 0 for row in methods.values() if "failed" in row):
        chosen = [*chosen, "failed"]
    draws = {cell.draws for row in methods.values() for cell in row.values()}
    count = f"{min(draws)}" if len(draws) == 1 else f"{min(draws)} to {max(draws)}"
    lines = [
        f"### {key[0]}: {key[1]}, {key[2]}",
        "",
        f"Draws: {count}. Each cell: ours (spread) / published / difference.",
        "",
        "| method | " + " | ".join(chosen) + " |",
        "|---" * (len(chosen) + 1) + "|",
    ]
    for method, row in methods.items():
        cells = [_text(row.get(metric)) for metric in chosen]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _default_metrics(table: str, present: list[str]) -> list[str]:
    wanted = dict.fromkeys(metric for (name, *_, metric) in published() if name == table)
    wanted |= dict.fromkeys(("hamming", "seconds", "gap"))
    return [metric for metric in wanted if metric in present]


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean = _number(cell.mean)
    text = mean if isnan(cell.spread) else f"{mean} ({_number(cell.spread)})"
    if cell.published is None or cell.difference is None:
        return text
    sign = "+" if cell.difference >= 0 else "-"
    return f"{text} / {_number(cell.published)} / {sign}{_number(abs(cell.difference))}"


def _number(value: float) -> str:
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1000:
        return f"{value:.3f}" if size < 10 else f"{value:.1f}"
    return f"{value:.1e}"


def _plain(value: float | None) -> str:
    return "" if value is None or (isinstance(value, float) and isnan(value)) else f"{value:.6g}"


def _spread(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def _order(cell: Cell) -> tuple[int, int, int, bool]:
    """Sort as the experiments are declared, certified rows below their methods."""
    names = list(EXPERIMENTS)
    try:
        experiment = EXPERIMENTS[cell.table]
        settings = [(setting.dataset, setting.name) for setting in experiment.settings]
        return (
            names.index(cell.table),
            settings.index((cell.dataset, cell.setting)),
            experiment.methods.index(cell.method.removesuffix(CERTIFIED)),
            cell.method.endswith(CERTIFIED),
        )
    except (KeyError, ValueError) as error:
        what = ", ".join((cell.table, cell.dataset, cell.setting, cell.method))
        msg = f"no experiment has this row: {what}"
        raise ValueError(msg) from error
