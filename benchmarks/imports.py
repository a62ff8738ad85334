"""How long imports take, as a ratio to scikit-learn's: `python benchmarks/imports.py`.

Each statement runs in new interpreters, in turn with the yardstick, so that a busy machine slows
both alike; the fastest run of each counts. The limit is 1.5 times `import sklearn.cluster`, which
the estimators need anyway.
"""

import argparse
import subprocess
import sys
from time import perf_counter

YARDSTICK = "import sklearn.cluster"
STATEMENTS = ("import tubal", "import tubal.algebra", "from tubal import ORTLRR")
LIMIT = 1.5


def seconds(statement: str) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="default 7")
    repeats = parser.parse_args().repeats
    statements = ("pass", YARDSTICK, *STATEMENTS)
    for statement in statements:  # once for the disk and for compiled files
        seconds(statement)
    runs = [[seconds(statement) for statement in statements] for _ in range(repeats)]
    nothing, yardstick, *times = (min(column) for column in zip(*runs, strict=True))
    print(f"{YARDSTICK:28} {yardstick - nothing:6.3f} s")
    worst = 0.0
    for statement, time in zip(STATEMENTS, times, strict=True):
        ratio = (time - nothing) / (yardstick - nothing)
        worst = max(worst, ratio)
        print(f"{statement:28} {time - nothing:6.3f} s  ratio {ratio:.2f}")
    print(f"limit {LIMIT}: {'kept' if worst <= LIMIT else 'broken'}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
