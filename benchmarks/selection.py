"""What choosing costs, over the solve of the program that was chosen.

    [TUBAL_DATA=...] python benchmarks/selection.py

The goal is a ratio of at most 3. Times are those of the process, the better of two.
"""

from __future__ import annotations

import os
from time import process_time

import numpy as np
from sklearn.datasets import load_digits

from tubal import ORTLRR
from tubal.bench.experiments import draw_images
from tubal.estimators import lowrank

GOAL = 3.0


def seconds(X: np.ndarray, count: int) -> dict[str, float]:
    """Return the time that a fit spends in choosing and in solving."""
    spent: dict[str, float] = {}

    def timed(name: str) -> None:
        function = getattr(lowrank, name)

        def wrapper(*args: object, **options: object) -> object:
            start = process_time()
            found = function(*args, **options)
            spent[name] = spent.get(name, 0.0) + process_time() - start
            return found

        setattr(lowrank, name, wrapper)

    before = lowrank.select, lowrank.solve
    timed("select")
    timed("solve")
    try:
        ORTLRR(count, random_state=0).fit(X)
    finally:
        lowrank.select, lowrank.solve = before
    return spent


def main() -> None:
    sets: dict[str, tuple[np.ndarray, int]] = {"digits": (load_digits().images / 16.0, 10)}
    if os.environ.get("TUBAL_DATA"):
        for name, count in (("orl", 40), ("umist", 20), ("coil20", 20)):
            sets[name] = draw_images(0, name=name, outliers=100 if name != "umist" else 0).X, count
    for name, (X, count) in sets.items():
        runs = [seconds(X, count) for _ in range(2)]
        choice, solve = (min(run[name] for run in runs) for name in ("select", "solve"))
        word = "holds" if choice <= GOAL * solve else "FAILS"
        print(
            f"{name:8} choice {choice:6.2f} s, solve {solve:6.2f} s: {choice / solve:.2f} ({word})"
        )


if __name__ == "__main__":
    main()
