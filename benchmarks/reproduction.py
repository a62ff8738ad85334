"""Fills the tables of docs/reproduction.md from rows of `tubal bench run`.

tubal bench run all --draws 1 --jobs 2 --out benchmarks/results/paper
python benchmarks/reproduction.py benchmarks/results/paper docs/reproduction.md
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tubal.bench import EXPERIMENTS, published, read_rows, summarise, to_csv, to_markdown
from tubal.bench.experiments import CERTIFIED
from tubal.bench.tables import Cell

PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
CLOSE = 0.03


def experiment_table(cells: list[Cell], name: str) -> str:
    chosen = [cell for cell in cells if cell.table == name]
    if not chosen:
        return "Not measured yet.\n"
    wanted = list(dict.fromkeys(key[-1] for key in published() if key[0] == name))
    present = {cell.metric for cell in chosen}
    extra = ["ACC_kmeans", "AUC_decision", "removed", "objective", "gap", "seconds"]
    if not wanted:
        wanted = ["AUC", "ACC", "NMI", "PUR"]
    metrics = [metric for metric in (*wanted, *extra) if metric in present]
    return to_markdown(chosen, metrics)


def agreement(cells: list[Cell]) -> str:
    """Accuracies of the paper's own method, both readings of Ncut, beside the published ones."""
    found: dict[tuple[str, str, str, str], dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        own = cell.method.startswith("OR-TLRR") and not cell.method.endswith(CERTIFIED)
        if own and cell.metric in ("ACC", "ACC_kmeans", "AUC"):
            found[cell.table, cell.dataset, cell.setting, cell.method][cell.metric] = cell
    lines = [
        "| table | data | method | draws | discretised | k-means | published | within .03 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    counts: Counter[str] = Counter()
    for (table, dataset, setting, method), row in found.items():
        if "ACC" not in row or row["ACC"].published is None:
            continue
        first, second, paper = row["ACC"].mean, row["ACC_kmeans"].mean, row["ACC"].published
        close = [abs(value - paper) <= CLOSE for value in (first, second)]
        between = min(first, second) <= paper <= max(first, second)
        word = (
            "both" if all(close)
            else "discretised" if close[0]
            else "k-means" if close[1]
            else "between the two" if between
            else "ours is better" if min(first, second) > paper
            else "ours is worse"
        )  # fmt: skip
        counts[word] += 1
        lines.append(
            f"| {table} | {dataset}, {setting} | {method} | {row['ACC'].draws} "
            f"| {first:.3f} | {second:.3f} | {paper:.3f} | {word} |"
        )
    total = ", ".join(f"{word}: {count}" for word, count in counts.most_common())
    return "\n".join(lines) + f"\n\nOf {sum(counts.values())} rows, {total}.\n"


def methods(cells: list[Cell]) -> str:
    """How far every method is from its published accuracies, over all of its tables."""
    found: dict[str, dict[tuple[str, str, str], dict[str, Cell]]] = defaultdict(dict)
    for cell in cells:
        if cell.metric in ("ACC", "ACC_kmeans") and not cell.method.endswith(CERTIFIED):
            place = (cell.table, cell.dataset, cell.setting)
            found[cell.method].setdefault(place, {})[cell.metric] = cell
    lines = [
        "| method | columns | mean difference, discretised | k-means | within .03 in either |",
        "|---|---|---|---|---|",
    ]
    for method, columns in found.items():
        pairs = [
            [row[name].mean - row["ACC"].published for name in ("ACC", "ACC_kmeans")]
            for row in columns.values()
            if row["ACC"].published is not None
        ]
        if pairs:
            first, second = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
            close = sum(min(map(abs, pair)) <= CLOSE for pair in pairs)
            lines.append(f"| {method} | {len(pairs)} | {first:+.3f} | {second:+.3f} | {close} |")
    return "\n".join(lines) + "\n"


def times(rows: list[dict[str, Any]], passed: dict[str, float]) -> str:
    """How long draw 0 of each experiment takes.

    `passed` are the seconds that passed in `tubal bench run NAME --draws 1 --jobs 2`, where that
    was measured. Rows that do not tell their CPU time count with the time that passed.
    """
    first: dict[str, list[tuple[float, str]]] = defaultdict(list)
    measured: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        what = f"{row['method']} on {row['dataset']}, {row['setting']}"
        measured[row["experiment"]][what] += 1
        if row["draw"] == 0:
            spent = row.get("cpu_seconds", row["seconds"])
            first[row["experiment"]].append((spent, what))
    lines = [
        "| experiment | draws | rows a draw | minutes, two cores | CPU minutes | slowest row, s |",
        "|---|---|---|---|---|---|",
    ]
    for name in EXPERIMENTS:
        if not first[name]:
            lines.append(f"| {name} | 0 | 0 | - | - | - |")
            continue
        least, most = min(measured[name].values()), max(measured[name].values())
        draws = f"{least}" if least == most else f"{least} to {most}"
        clock = f"{passed[name] / 60:.1f}" if name in passed else "-"
        spent, what = max(first[name])
        minutes = sum(spent for spent, _ in first[name]) / 60
        lines.append(
            f"| {name} | {draws} | {len(first[name])} | {clock} | {minutes:.1f} "
            f"| {spent:.0f}: {what} |"
        )
    minutes = sum(spent for name in passed for spent, _ in first[name]) / 60
    count = sum(len(first[name]) for name in passed)
    lines.append(
        f"| tables of the paper | | {count} | {sum(passed.values()) / 60:.1f} | {minutes:.1f} | |"
    )
    return "\n".join(lines) + "\n"


def read_times(folder: Path) -> dict[str, float]:
    """Read the seconds of `times.csv`, if there are any."""
    path = folder / "times.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["experiment"]: float(row["seconds"]) for row in csv.DictReader(file)}


def objectives(cells: list[Cell]) -> str:
    """Objective and gap of the published schedule beside the certified solution."""
    found: dict[tuple[str, str, str, str], dict[tuple[bool, str], Cell]] = defaultdict(dict)
    for cell in cells:
        if cell.metric in ("objective", "gap", "seconds", "AUC"):
            key = (cell.table, cell.dataset, cell.setting, cell.method.removesuffix(CERTIFIED))
            found[key][cell.method.endswith(CERTIFIED), cell.metric] = cell
    lines = [
        "| data | method | published schedule | certified | gap of the first | gap of the second |",
        "|---|---|---|---|---|---|",
    ]
    for (_, dataset, setting, method), row in found.items():
        if (False, "objective") in row and (True, "objective") in row:
            values = [row[flag, "objective"].mean for flag in (False, True)]
            gaps = [row[flag, "gap"].mean for flag in (False, True)]
            lines.append(
                f"| {dataset}, {setting} | {method} | {values[0]:.4g} | {values[1]:.4g} "
                f"| {gaps[0]:.2g} | {gaps[1]:.1g} |"
            )
    return "\n".join(lines) + "\n"


def main(folder: Path, page: Path) -> None:
    rows = read_rows(folder)
    cells = summarise(rows)

    def fill(match: re.Match[str]) -> str:
        name = match[2]
        if name in EXPERIMENTS:
            text = experiment_table(cells, name)
        else:
            makers = {"agreement": agreement, "methods": methods, "objectives": objectives}
            text = times(rows, read_times(folder)) if name == "times" else makers[name](cells)
        return match[1] + "\n" + text + "\n" + match[3]

    page.write_text(PLACE.sub(fill, page.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "tables.csv").write_text(to_csv(cells), encoding="utf-8")
    (folder / "tables.md").write_text(to_markdown(cells), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
