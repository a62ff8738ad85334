"""How often the number of clusters is estimated right, when it is not given.

Every clustering set of `quality_sets`: the true number, the estimate, its confidence, and the other
candidates; then how many estimates are within 10 %. Some classes are no clusters (the writing of a
digit in two ways), so not every difference is an error.

Run: [TUBAL_DATA=...] python benchmarks/counts.py [--draw 0] [--most 3000]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from quality_sets import SETS

from tubal import ORTLRR, metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--most", type=int, default=10_000, help="largest number of samples")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    right, listed, errors = [], [], []
    print("| set | classes | estimate | confidence | other candidates | NMI |")
    print("|---|---|---|---|---|---|")
    for name, data in SETS.items():
        if data.missing():
            continue
        drawn = data.draw(args.draw)
        k = len(np.unique(drawn.labels[drawn.labels >= 0]))
        if k < 2 or len(drawn.X) > args.most:
            continue
        fitted = ORTLRR(random_state=args.draw).fit(drawn.X)
        found, *others = fitted.n_clusters_candidates_
        right.append(close(found, k))
        listed.append(any(close(number, k) for number in (found, *others)))
        errors.append(abs(np.log(found / k)))
        nmi = metrics.nmi(drawn.labels, fitted.labels_)
        other = ", ".join(map(str, others))
        sure = f"{fitted.n_clusters_confidence_:.2f}"
        print(f"| {name} | {k} | {found} | {sure} | {other} | {nmi:.3f} |", flush=True)
    print(f"\nwithin 10 %: {sum(right)} of {len(right)}, among the candidates: {sum(listed)}")
    print(f"median ratio: {np.exp(np.median(errors)):.2f}")


def close(number: int, k: int) -> bool:
    return abs(number - k) <= 0.1 * k + 1e-9


if __name__ == "__main__":
    main()
