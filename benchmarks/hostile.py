"""Random problems, damaged files and killed fits, counted: the figures of docs/trust.md.

    python benchmarks/hostile.py --problems 20000 --files 20000 --kills 100 --seed 0

The generators and checks are those of tests/hostile. A violation is printed with what reproduces
it and does not end the run. The exit code is 1 when there was one.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import hypothesis
import numpy as np
import scipy
import sklearn
from hypothesis import HealthCheck, Phase, given, settings

# First, before this folder: it has a module of the same name.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import tubal
from hostile import formats, kills, problems


class Counts:
    """What happened, by kind, and what must not have happened."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.found: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []
        self.end = np.inf

    def run(self, kind: str, number: int, strategy: Any, check: Callable[[Any], str]) -> None:
        """Check so many draws of a strategy, or fewer when the time is over."""
        start = perf_counter()
        if not number:
            return

        @settings(
            max_examples=number,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.seed(self.seed)
        @given(case=strategy)
        def draw(case: Any) -> None:
            if perf_counter() > self.end:
                return
            try:
                self.found[kind, check(case)] += 1
            except Exception as error:
                self.found[kind, "VIOLATION"] += 1
                self.violations.append(f"{case}: {type(error).__name__}: {error}")

        draw()
        print(f"{kind}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Run what was asked for and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--files", type=int, default=1000, help="of each format")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=1, help="of processes with one folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=np.inf, help="for each kind, at most")
    args = parser.parse_args()
    counts = Counts(args.seed)
    start = perf_counter()

    def limited() -> Counts:
        counts.end = perf_counter() + args.seconds
        return counts

    limited().run("problems", args.problems, problems.problems, problems.check_solution)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "whole").mkdir()
        originals = formats.Originals(folder / "whole")
        limited()
        for kind in formats.FORMATS:

            def read(damage: formats.Damage, kind: str = kind) -> str:
                shutil.rmtree(folder / "damaged", ignore_errors=True)
                path = formats.damaged(originals[kind], damage, folder / "damaged", kind)
                return formats.check_read(path)

            counts.run(f"files, {kind}", args.files, formats.damages, read)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = kills.prepare(folder) if args.kills or args.pairs else []

        def kill(case: kills.Kill) -> str:
            for left in ("out", "out.partial"):
                shutil.rmtree(folder / left, ignore_errors=True)
            return kills.check_kill(folder, case, wanted)

        limited().run("kills", args.kills, kills.kills, kill)
        for left in ("out", "out.partial"):
            shutil.rmtree(folder / left, ignore_errors=True)
        for _ in range(args.pairs):
            counts.found["pairs of processes", kills.check_two(folder, wanted)] += 1
            shutil.rmtree(folder / "both")
    show(counts, perf_counter() - start)
    return 1 if counts.violations else 0


def show(counts: Counts, seconds: float) -> None:
    """Print the counts as a table of Markdown."""
    print("| kind | cases | what happened | violations |\n|---|---|---|---|")
    kinds = dict.fromkeys(kind for kind, _ in counts.found)
    for kind in kinds:
        of_kind = {what: n for (k, what), n in counts.found.items() if k == kind}
        bad = of_kind.pop("VIOLATION", 0)
        told = ", ".join(f"{n} {what}" for what, n in sorted(of_kind.items()))
        print(f"| {kind} | {sum(of_kind.values()) + bad} | {told} | {bad} |")
    versions = {
        "tubal": tubal.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "hypothesis": hypothesis.__version__,
    }
    print(f"\n{seconds:.0f} s; " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    for violation in counts.violations:
        print(f"VIOLATION {violation}")


if __name__ == "__main__":
    sys.exit(main())
