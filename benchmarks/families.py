"""What each constant of the default is worth, also for families that it was not chosen on.

Every constant gets other values, one constant at a time. `run` writes the accuracy of each set and
draw; `table` prints, for each constant, the mean accuracy of every value, and what a family reaches
when the value is chosen on the other families.

Run: [TUBAL_DATA=...] python benchmarks/families.py run FILE.jsonl [--draws 2] [--most 1100]
     python benchmarks/families.py table FILE.jsonl
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from quality_sets import FAMILIES, SETS

from tubal import ORTLRR, metrics, selection
from tubal.estimators import lowrank
from tubal.graph import Nearest
from tubal.similarity import Shrunken, Spectrum

CONSTANTS: dict[str, tuple[Any, ...]] = {  # the value in use comes first
    "levels": ((2.8, 11.2), (2.8,), (1.4, 5.6), (5.6,)),
    "middle_level": (2.8, 1.4, 5.6),
    "n_neighbors": (5, 4, 6, 8),
    "strengths": ((0.125, 0.25, 1.0), (0.25, 1.0), (1.0,)),
    "plain": (0.5, 0.3, 0.7),
    "same": (0.9, 0.8, 1.1),
    "most": (800, 400),
    "parts": (6, 3, 12),
    "share": (0.8, 0.7, 0.9),
    "isolated": (12, 6, 24),
}


@contextmanager
def set_to(constant: str, value: Any) -> Iterator[None]:
    """Give a constant of the default another value."""
    with ExitStack() as stack:
        if constant == "strengths":
            for function in (Shrunken.of_coefficients.__func__, Spectrum.similarity):
                stack.enter_context(patch.object(function, "__defaults__", (value,)))
        else:
            other = replace(selection.DEFAULTS, **{constant: value})
            for module in (selection, lowrank):
                stack.enter_context(patch.object(module, "DEFAULTS", other))
            nearest = Nearest(other.n_neighbors)
            stack.enter_context(patch.object(selection, "NEAREST", nearest))
        yield


def run(path: Path, draws: int, most: int) -> None:
    """Write a line for each set, draw, constant and value; what is there already stays."""
    done = {tuple(row[:4]) for row in rows_of(path)}
    for draw in range(draws):
        for name, data in SETS.items():
            if data.missing():
                continue
            drawn = data.draw(draw)
            k = len(np.unique(drawn.labels[drawn.labels >= 0]))
            if k < 2 or len(drawn.X) > most:
                continue
            for constant, values in CONSTANTS.items():
                for i, value in enumerate(values):
                    key = ("", 0) if i == 0 else (constant, i)
                    if (name, draw, *key) in done:
                        continue
                    with set_to(constant, value):
                        fitted = ORTLRR(k, random_state=draw, n_jobs=1).fit(drawn.X)
                    accuracy = metrics.clustering_accuracy(drawn.labels, fitted.labels_)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([name, draw, *key, accuracy]) + "\n")
                    done.add((name, draw, *key))
            print(name, draw, flush=True)


def rows_of(path: Path) -> list[list[Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> None:
    """Print both tables as Markdown."""
    found: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, _, constant, i, accuracy in rows_of(path):
        found[constant, i][name].append(accuracy)
    mean = {
        key: {name: np.mean(each) for name, each in sets.items()} for key, sets in found.items()
    }
    families = {
        family: [name for name in names if name in mean["", 0]]
        for family, names in FAMILIES.items()
    }
    families = {family: names for family, names in families.items() if names}
    every = [name for names in families.values() for name in names]
    print(f"| constant | value | all | {' | '.join(families)} |\n|{'---|' * (3 + len(families))}")
    for constant, values in CONSTANTS.items():
        for i, value in enumerate(values):
            row = mean["", 0] if i == 0 else mean[constant, i]
            cells = [np.mean([row[name] for name in names]) for names in families.values()]
            written = " | ".join(f"{cell:.3f}" for cell in cells)
            overall = np.mean([row[name] for name in every])
            print(f"| {constant if i == 0 else ''} | {value} | {overall:.3f} | {written} |")
    print("\nChosen on the other families:\n")
    print(f"| constant | all | {' | '.join(families)} |\n|{'---|' * (2 + len(families))}")
    for constant, values in CONSTANTS.items():
        rows = [mean["", 0], *(mean[constant, i] for i in range(1, len(values)))]
        cells, scores = [], {}
        for names in families.values():
            others = [[row[n] for n in every if n not in names] for row in rows]
            best = int(np.argmax([np.mean(values_) for values_ in others]))
            scores |= {name: rows[best][name] for name in names}
            mark = "" if best == 0 else f" ({values[best]})"
            cells.append(f"{np.mean([scores[name] for name in names]):.3f}{mark}")
        print(f"| {constant} | {np.mean(list(scores.values())):.3f} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--most", type=int, default=1100, help="largest number of samples")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "run":
        run(args.file, args.draws, args.most)
    else:
        table(args.file)


if __name__ == "__main__":
    main()
