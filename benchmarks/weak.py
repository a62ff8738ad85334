"""Where the defaults are weak: few, partial and weak outliers, and missing entries.

    TUBAL_DATA=... python benchmarks/weak.py run --out results/weak.jsonl [--draws 3]
    python benchmarks/weak.py page results/weak.jsonl docs/quality.md

Goes on where it was stopped. Missing entries are compared with complete data, left out
(`completion=None`) and filled first (`completion="tnn"`).
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from tubal import ORTLRR, metrics
from tubal.bench.experiments import Drawn, draw_images, with_noise

SHARES = (0.0, 0.1, 0.2, 0.5)


def few(seed: int, count: int) -> Drawn:
    return draw_images(seed, name="orl", outliers=count)


def occluded(seed: int, count: int = 40, block: int = 16) -> Drawn:
    """Put a black square on some faces; these are the outliers."""
    drawn = draw_images(seed, name="orl")
    rng = np.random.default_rng(seed)
    X, labels = drawn.X.copy(), drawn.labels.copy()
    for j in rng.permutation(len(X))[:count]:
        top, left = rng.integers(0, np.array(X.shape[1:]) - block + 1)
        X[j, top : top + block, left : left + block] = 0
        labels[j] = -1
    return Drawn(X, labels)


def weak_noise(seed: int, variance: float) -> Drawn:
    """Add noise to a tenth of COIL20; these are the outliers."""
    drawn = draw_images(seed, name="coil20")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(drawn.X))[: len(drawn.X) // 10]
    labels = drawn.labels.copy()
    labels[chosen] = -1
    return Drawn(with_noise(drawn.X, chosen, variance, rng), labels)


CASES: dict[str, tuple[Callable[[int], Drawn], dict[str, object]]] = {
    "ORL, 5 photographs": (lambda seed: few(seed, 5), {}),
    "ORL, 15 photographs": (lambda seed: few(seed, 15), {}),
    "ORL, 40 faces a quarter hidden": (occluded, {}),
    "COIL20, noise of .1 on a tenth": (lambda seed: weak_noise(seed, 0.1), {}),
    "COIL20, noise of .4 on a tenth": (lambda seed: weak_noise(seed, 0.4), {}),
}
for _name, _outliers in (("orl", 100), ("umist", 0)):
    for _share in SHARES:
        _what = f"{_name.upper()}{f'+{_outliers}' if _outliers else ''}, {_share:.0%} missing"
        _draw = lambda seed, n=_name, o=_outliers, m=_share: draw_images(  # noqa: E731
            seed, name=n, outliers=o, missing=m
        )
        CASES[_what] = (_draw, {"completion": None})
        if _share:
            CASES[_what + ", filled first"] = (_draw, {"completion": "tnn"})


def measure(case: str, draw: int) -> dict[str, object]:
    make, options = CASES[case]
    drawn = make(draw)
    n_clusters = len(np.unique(drawn.labels[drawn.labels >= 0]))
    start = perf_counter()
    est = ORTLRR(n_clusters, random_state=draw, **options).fit(drawn.X)
    odd, scores = drawn.labels == -1, est.outlier_scores_
    row: dict[str, object] = {
        "case": case,
        "draw": draw,
        "seconds": perf_counter() - start,
        "ACC": metrics.clustering_accuracy(drawn.labels, est.labels_),
        "flagged": float(est.outliers_[~odd].mean()),
    }
    if odd.any():
        row["AUC"] = metrics.outlier_auc(odd, scores)
        row["F1"] = metrics.outlier_f1(odd, est.outliers_)
        row["F1_best"] = max(metrics.outlier_f1(odd, scores > t) for t in np.sort(scores)[:-1])
    return row


def table(rows: list[dict[str, object]]) -> str:
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        groups[str(row["case"])].append(row)
    names = ("ACC", "AUC", "F1", "F1_best", "flagged", "seconds")
    lines = [
        "| case | draws | ACC | AUC | F1 | best F1 possible | flagged by mistake | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        if case in groups:
            some = groups[case]
            cells = [
                f"{np.mean([float(r[n]) for r in some]):.{1 if n == 'seconds' else 3}f}"
                if n in some[0]
                else "-"
                for n in names
            ]
            lines.append(f"| {case} | {len(some)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    return [
        json.loads(line) for line in path.read_text().splitlines(keepends=True) if line[-1:] == "\n"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--out", type=Path, required=True)
    run.add_argument("--draws", type=int, default=3)
    page = commands.add_parser("page")
    page.add_argument("rows", type=Path)
    page.add_argument("page", type=Path)
    given = parser.parse_args()
    if given.command == "page":
        text = given.page.read_text(encoding="utf-8")
        place = re.compile(r"(<!-- weak cases -->\n).*?(<!-- end of weak cases -->)", re.DOTALL)
        filled = place.sub(lambda m: f"{m[1]}\n{table(read(given.rows))}\n{m[2]}", text)
        given.page.write_text(filled, encoding="utf-8")
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["case"], row["draw"]) for row in read(given.out)}
    for draw in range(given.draws):
        for case in CASES:
            if (case, draw) not in done:
                row = measure(case, draw)
                with given.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


if __name__ == "__main__":
    main()
