"""Corrupted pictures: the certified solution beside its closed form, at the same choice.

A fifth of the pictures is under noise of .2, .3 or .4 of their energy, or has a quarter of its area
covered by a black square; or a fifth of all entries is missing. Accuracy, means over draws.

Run: python benchmarks/robust.py [--draws 3]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from ablations import ClosedForm

from tubal import ORTLRR, metrics
from tubal.bench.experiments import Drawn, draw_images

NAMES = {"umist": 20, "orl": 40, "coil20": 20}


def noisy(name: str, seed: int, variance: float) -> Drawn:
    return draw_images(seed, name=name, noisy=0.2, variance=variance)


def clean(name: str, seed: int) -> Drawn:
    return draw_images(seed, name=name)


def covered(name: str, seed: int) -> Drawn:
    """Cover a quarter of the area of a fifth of the pictures."""
    rng, drawn = np.random.default_rng(seed), draw_images(seed, name=name)
    X = np.array(drawn.X)
    n, height, width = X.shape
    for j in rng.choice(n, n // 5, replace=False):
        i, k = rng.integers(0, height // 2 + 1), rng.integers(0, width // 2 + 1)
        X[j, i : i + height // 2, k : k + width // 2] = 0
    return Drawn(X, drawn.labels)


def missing(name: str, seed: int) -> Drawn:
    drawn = draw_images(seed, name=name)
    X = np.array(drawn.X)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    return Drawn(X, drawn.labels)


CASES: dict[str, Callable[[str, int], Drawn]] = {
    "clean": clean,
    "noise .2": lambda name, seed: noisy(name, seed, 0.2),
    "noise .3": lambda name, seed: noisy(name, seed, 0.3),
    "noise .4": lambda name, seed: noisy(name, seed, 0.4),
    "covered": covered,
    "20 % missing": missing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    for name, k in NAMES.items():
        for case, draw in CASES.items():
            found: dict[str, list[float]] = {"certified": [], "closed form": [], "flagged": []}
            for seed in range(draws):
                drawn = draw(name, seed)
                for label, kind in (("certified", ORTLRR), ("closed form", ClosedForm)):
                    fitted = kind(k, random_state=seed).fit(drawn.X)
                    found[label].append(metrics.clustering_accuracy(drawn.labels, fitted.labels_))
                    if kind is ORTLRR:
                        found["flagged"].append(float(fitted.outliers_.mean()))
            means = " | ".join(f"{np.mean(values):.3f}" for values in found.values())
            print(f"| {name} | {case} | {means} |", flush=True)


if __name__ == "__main__":
    main()
