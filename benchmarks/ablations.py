"""What each stage of the default is worth: accuracy with the stage replaced by a simple one.

Every clustering set of `quality_sets`, one draw. Run: python benchmarks/ablations.py [--most 2000]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from quality_sets import FAMILIES, SETS

from tubal import ORTLRR, metrics, selection
from tubal.estimators import lowrank
from tubal.outliers import consensus
from tubal.similarity import Spectrum


class ClosedForm(ORTLRR):
    """Similarities of the closed form at the chosen level instead of those of the solution."""

    def _represent(self, samples: Any, sizes: Any, step: Any) -> Any:
        rows = super()._represent(samples, sizes, step)
        spectrum = Spectrum.of(rows.complete(), sizes, self._view)
        most = selection.MOST_OF_RANK * spectrum.largest_rank
        rank = min(self.selection_.level * spectrum.rank, most)
        return replace(rows, similarity=spectrum.similarity(rank))


@contextmanager
def patched(module: Any, **values: Any) -> Iterator[None]:
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@contextmanager
def one_level() -> Iterator[None]:
    one = replace(selection.DEFAULTS, levels=(2.8,))
    with patched(selection, DEFAULTS=one), patched(lowrank, DEFAULTS=one):
        yield


def plain_modularity() -> Any:
    return patched(selection, beyond_chance=lambda value, chance, most: value)


def no_damage() -> Any:
    return patched(consensus, MOST_NOISE=0.0)


@contextmanager
def nothing() -> Iterator[None]:
    yield


CASES: dict[str, tuple[type, dict[str, Any], Callable[[], Any]]] = {
    "the default": (ORTLRR, {}, nothing),
    "closed form for the solve": (ClosedForm, {}, nothing),
    "one level": (ORTLRR, {}, one_level),
    "always the DFT": (ORTLRR, {"transform": "dft"}, nothing),
    "plain modularity": (ORTLRR, {}, plain_modularity),
    "never all pairs": (ORTLRR, {"graph": "nearest"}, nothing),
    "no damage": (ORTLRR, {}, no_damage),
    "no outliers": (ORTLRR, {"outliers": None}, nothing),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=2000, help="largest number of samples")
    most = parser.parse_args().most
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, float]] = {case: {} for case in CASES}
    for name, data in SETS.items():
        if data.missing():
            continue
        drawn = data.draw(0)
        k = len(np.unique(drawn.labels[drawn.labels >= 0]))
        if k < 2 or len(drawn.X) > most:
            continue
        for case, (kind, options, setting) in CASES.items():
            with setting():
                fitted = kind(k, random_state=0, **options).fit(drawn.X)
            found[case][name] = metrics.clustering_accuracy(drawn.labels, fitted.labels_)
        print(name, *(f"{found[case][name]:.3f}" for case in CASES), flush=True)
    for case, values in found.items():
        means = [
            np.mean([values[n] for n in names if n in values]) if set(names) & set(values) else 0
            for names in FAMILIES.values()
        ]
        row = [f"{np.mean(list(values.values())):.3f}", *(f"{mean:.3f}" for mean in means)]
        print(f"| {case} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
