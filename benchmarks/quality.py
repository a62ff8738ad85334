"""How good the defaults are: every set, every tool, several draws.

Clusterers are told the number of clusters. Accuracy and NMI are those of the normal samples, and a
normal sample that was removed counts as an error. Tools of scikit-learn remove nothing, so they
lose nothing by it; outliers in their clusters do not count either.

run      measures into DIR/quality.jsonl, one line a set, draw and tool; goes on where it stopped
table    prints the tables as Markdown
bars     prints what was promised and whether it holds; ends with 1 when something does not
figure   draws accuracy and AUC of every tool on every set
page     puts the tables into the places of a page, <!-- table: NAME --> ... <!-- end -->

Sets and tools whose files (TUBAL_DATA) or packages (scikit-image, aeon, pyod) are not there are
left out with a word.

Run: python benchmarks/quality.py run --out DIR [--draws 5] [--sets NAME ...] [--tools NAME ...]
     python benchmarks/quality.py table DIR [NAME ...]
     python benchmarks/quality.py bars DIR
     python benchmarks/quality.py figure DIR FILE.svg
     python benchmarks/quality.py page DIR docs/quality.md
     python benchmarks/quality.py page DIR docs/quality-sets.md
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import quality_tables as tables
from quality_sets import SETS, DataSet
from quality_tools import TOOLS, Outcome, Tool

from tubal import __version__, metrics
from tubal.bench.experiments import Drawn
from tubal.bench.runner import alone, append, peak_memory, reset_peak_memory, whole_rows
from tubal.datasets import make_tensor_subspaces

FILE = "quality.jsonl"
Row = dict[str, Any]


def run(out: Path, draws: int, sets: Sequence[DataSet], tools: Sequence[Tool]) -> None:
    """Measure what is not in the file yet, draw by draw; what failed is tried again."""
    out.mkdir(parents=True, exist_ok=True)
    with alone(out):
        rows_there = [row for row in whole_rows(out / FILE) if row["error"] is None]
        done = {(row["set"], row["draw"], row["tool"]) for row in rows_there}
        warm_up(tools)
        for draw in range(draws):
            for data in sets:
                for row in rows(data, draw, tools, done):
                    append(out / FILE, row)
                    print(tables.line(row), flush=True)


def rows(
    data: DataSet, draw: int, tools: Sequence[Tool], done: set[tuple[str, int, str]]
) -> Iterator[Row]:
    """Measure one draw of a set by the tools that have something to do there."""
    wanted = [
        tool
        for tool in tools
        if (data.name, draw, tool.name) not in done and draw < most_draws(data, tool)
    ]
    if not wanted:
        return
    drawn = data.draw(draw)
    n_clusters, outliers = truth(drawn)
    for tool in wanted:
        if tool.serves(n_clusters, outliers):
            yield {"set": data.name, "draw": draw, "tool": tool.name} | measure(tool, drawn, draw)


def most_draws(data: DataSet, tool: Tool) -> float:
    """Return how many draws a tool gets at most."""
    return (1 if data.large else 2) if tool.slow else np.inf


def truth(drawn: Drawn) -> tuple[int, bool]:
    """Return the number of classes, and whether there are outliers."""
    return len(np.unique(drawn.labels[drawn.labels >= 0])), bool((drawn.labels == -1).any())


def measure(tool: Tool, drawn: Drawn, seed: int) -> Row:
    """Run a tool on a draw. An error becomes part of the row, so that the run goes on."""
    settle()
    before, start = peak_memory(), time.perf_counter()
    row: Row = {"error": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = tool.run(drawn.X, *truth(drawn), seed)
        except (ValueError, ArithmeticError, MemoryError) as error:
            found, row["error"] = Outcome(), f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
    return row | {
        "metrics": scores(drawn.labels, found),
        "seconds": seconds,
        "peak_memory": max(0, peak_memory() - before),
        "shape": list(drawn.X.shape),
        "note": found.note,
        "warnings": sorted({str(item.message) for item in caught}),
        "versions": versions(),
    }


def scores(labels: np.ndarray, found: Outcome) -> dict[str, float]:
    """Compare with the truth, as far as there is something to compare."""
    outliers = labels == -1
    result: dict[str, float] = {}
    if found.labels is not None and len(np.unique(labels[~outliers])) > 1:
        result["ACC"] = metrics.clustering_accuracy(labels, found.labels)
        result["NMI"] = metrics.nmi(labels, found.labels)
    if found.flags is not None:
        result["flagged"] = float(found.flags.mean())
    if outliers.any() and found.scores is not None:
        result["AUC"] = metrics.outlier_auc(outliers, found.scores)
        result["F1_best"] = best_f1(outliers, found.scores)
        if found.flags is not None:
            result["F1"] = metrics.outlier_f1(outliers, found.flags)
    return result


def best_f1(outliers: np.ndarray, scores: np.ndarray) -> float:
    """Return the largest F1 that any threshold on the scores gives."""
    order = np.argsort(-scores, kind="stable")
    hits, counts = np.cumsum(outliers[order]), np.arange(1, len(scores) + 1)
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # equal scores stay together
    return float(np.max((2 * hits / (counts + outliers.sum()))[last]))


def settle() -> None:
    """Give freed memory back, so that the peak of the next tool is its own, where that works."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass  # not glibc: reused memory is not counted then
    reset_peak_memory()


def warm_up(tools: Sequence[Tool]) -> None:
    """Import and compile what the tools need, outside of the time that is measured."""
    X = make_tensor_subspaces(8, 4, 2, 1, 20, outliers=0.1, random_state=0).X
    for tool in tools:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tool.run(X, 2, True, 0)


def versions() -> dict[str, str]:
    names = ("numpy", "scipy", "scikit-learn")
    return {
        "tubal": __version__,
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
    } | {name: version(name) for name in names}


def chosen_sets(names: Sequence[str] | None) -> list[DataSet]:
    """Return the sets that were asked for and are there."""
    sets = [SETS[name] for name in _known("sets", names, SETS)]
    for data in sets:
        if data.missing():
            print(f"{data.name}: left out, needs {', '.join(data.missing())}", file=sys.stderr)
    return [data for data in sets if not data.missing()]


def chosen_tools(names: Sequence[str] | None) -> list[Tool]:
    """Return the tools that were asked for and are there."""
    tools = [TOOLS[name] for name in _known("tools", names, TOOLS)]
    for tool in tools:
        if not tool.is_there:
            print(f"{tool.name}: left out, needs {tool.needs}", file=sys.stderr)
    return [tool for tool in tools if tool.is_there]


def _known(what: str, names: Sequence[str] | None, known: dict[str, Any]) -> Sequence[str]:
    wrong = [name for name in names or () if name not in known]
    if wrong:
        raise ValueError(f"{what} are {'; '.join(known)}; got {'; '.join(wrong)}")
    return list(known) if names is None else names


def results(folder: Path) -> list[Row]:
    """Return the rows of a folder."""
    if not (folder / FILE).exists():
        raise ValueError(f"{folder} has no {FILE}; make one with `quality.py run --out {folder}`")
    return whole_rows(folder / FILE)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="measure into a folder")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--draws", type=int, default=5)
    one.add_argument("--sets", nargs="+", metavar="NAME", help=f"of: {'; '.join(SETS)}")
    one.add_argument("--tools", nargs="+", metavar="NAME", help=f"of: {'; '.join(TOOLS)}")
    for name in ("table", "bars", "figure", "page"):
        other = commands.add_parser(name)
        other.add_argument("folder", type=Path)
        if name == "table":
            other.add_argument("names", nargs="*", metavar="NAME", help="; ".join(tables.TABLES))
        elif name != "bars":
            other.add_argument("file", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse(arguments)
    try:
        return command(given)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def command(given: argparse.Namespace) -> int:
    if given.command == "run":
        if given.draws < 1:
            raise ValueError(f"draws must be 1 or more, got {given.draws}")
        run(given.out, given.draws, chosen_sets(given.sets), chosen_tools(given.tools))
        return 0
    found = results(given.folder)
    if given.command == "table":
        names = _known("tables", given.names or None, tables.TABLES)
        print("\n\n".join(f"### {name}\n\n{tables.TABLES[name](found)}" for name in names))
    elif given.command == "figure":
        tables.figure(found, given.file)
    elif given.command == "page":
        text = given.file.read_text(encoding="utf-8")
        given.file.write_text(tables.filled(text, found), encoding="utf-8")
    else:
        checked = tables.bars(found)
        print(tables.bars_table(found))
        return int(any(bar.holds is False for bar in checked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
