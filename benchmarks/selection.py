"""What choosing costs: a fit that chooses view and neighbourhood, over one with both given.

    [TUBAL_DATA=...] python benchmarks/selection.py

The goal is a ratio below 4. Times are those of the process, the better of two.
"""

from __future__ import annotations

import os
from time import process_time

import numpy as np
from sklearn.datasets import load_digits

from tubal import ORTLRR
from tubal.bench.experiments import draw_images
from tubal.graph import MultiScale

GOAL = 4.0


def seconds(estimator: ORTLRR, X: np.ndarray) -> float:
    times = []
    for _ in range(2):
        start = process_time()
        estimator.fit(X)
        times.append(process_time() - start)
    return min(times)


def main() -> None:
    sets: dict[str, tuple[np.ndarray, int]] = {"digits": (load_digits().images / 16.0, 10)}
    if os.environ.get("TUBAL_DATA"):
        for name, count in (("orl", 40), ("umist", 20), ("coil20", 20)):
            sets[name] = draw_images(0, name=name, outliers=100 if name != "umist" else 0).X, count
    for name, (X, count) in sets.items():
        found = ORTLRR(count, random_state=0).fit(X)
        graph = MultiScale(found.selection_.n_neighbors, view=found.selection_.view)
        auto = seconds(ORTLRR(count, random_state=0), X)
        fixed = seconds(ORTLRR(count, transform="dft", graph=graph, random_state=0), X)
        word = "holds" if auto <= GOAL * fixed else "FAILS"
        print(f"{name:8} auto {auto:6.2f} s, given {fixed:6.2f} s: {auto / fixed:.2f} ({word})")


if __name__ == "__main__":
    main()
