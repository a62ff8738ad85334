"""What each term of the outlier score is worth: AUC and F1 with the term left out.

Every set of `quality_sets` with outliers; one fit a draw, whose samples are scored again without
each term. F1 is that of the decision; beside it stands the best that any threshold could have.

Run: [TUBAL_DATA=...] python benchmarks/outlier_terms.py [--draws 5] [--most 2000]
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from typing import Any
from unittest.mock import patch

import numpy as np
from quality import best_f1
from quality_sets import SETS

from tubal import ORTLRR, metrics
from tubal.outliers import Consensus
from tubal.outliers.consensus import Scale

TERMS = ("global", "local", "isolation", "residual", "size")


def without(term: int | None, fitted: Any) -> Any:
    """Return what the detector finds in a fit without a term of its score."""
    plain = Scale.deviations

    def deviations(self: Scale, values: np.ndarray) -> np.ndarray:
        z = plain(self, values)
        if term is not None:
            z[term] = -1e9
        return z

    with patch.object(Scale, "deviations", deviations):
        return Consensus().detect(fitted._fitted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--most", type=int, default=2000, help="largest number of samples")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = {"all terms": None, **{f"no {name}": i for i, name in enumerate(TERMS)}}
    print("| set | " + " | ".join(cases) + " |\n|---|" + "---|" * len(cases))
    means: dict[str, list[np.ndarray]] = defaultdict(list)
    for name, data in SETS.items():
        if data.missing():
            continue
        scores: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for draw in range(args.draws):
            drawn = data.draw(draw)
            truth = drawn.labels == -1
            if not truth.any() or len(truth) > args.most:
                break
            k = max(1, len(np.unique(drawn.labels[~truth])))
            fitted = ORTLRR(k, random_state=draw).fit(drawn.X)
            for case, term in cases.items():
                found = without(term, fitted)
                flags = found.scores > found.threshold
                auc = metrics.outlier_auc(truth, found.scores)
                f1 = metrics.outlier_f1(truth, flags)
                scores[case].append((auc, f1, best_f1(truth, found.scores)))
            fitted._fitted.release()
        if scores:
            row = {case: np.mean(each, axis=0) for case, each in scores.items()}
            write(name, row)
            for case, mean in row.items():
                means[case].append(mean)
    write("mean", {case: np.mean(each, axis=0) for case, each in means.items()})


def write(name: str, row: dict[str, np.ndarray]) -> None:
    cells = " | ".join(f"{auc:.3f}, {f1:.2f} / {best:.2f}" for auc, f1, best in row.values())
    print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
