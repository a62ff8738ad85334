"""`tubal bench`."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

from tubal.cli.progress import Display, RichDisplay, display
from tubal.cli.show import duration, print_table


def run(args: argparse.Namespace) -> None:
    """Run tables of the paper into rows; a run that was stopped goes on.

    example:
      tubal bench run orl-coil20 --methods SSC OR-TLRR-DFT --draws 2 --out rows
      tubal bench table rows
    """
    from tubal.bench import EXPERIMENTS
    from tubal.bench import run as run_experiments

    names = list(EXPERIMENTS) if args.names == ["all"] else args.names
    with display() as shown:
        progress = _Progress(shown)
        try:
            added = run_experiments(
                names,
                args.out,
                draws=args.draws,
                methods=args.methods,
                jobs=args.jobs,
                retry_errors=args.retry_errors,
                on_row=progress.row,
            )
        except KeyboardInterrupt:
            print(
                f"\n{progress.rows} new rows are in {args.out}; the same command goes on from there"
            )
            raise
    print(f"{added} new rows in {args.out}")


def table(args: argparse.Namespace) -> None:
    """Set rows beside the published values, as Markdown; --csv writes all numbers to a file.

    example:
      tubal bench table rows --csv rows.csv
    """
    from tubal.bench import read_rows, summarise, to_csv, to_markdown

    cells = summarise(read_rows(args.folder))
    if args.csv is not None:
        args.csv.write_text(to_csv(cells), encoding="utf-8")
    print(to_markdown(cells))


def list_(args: argparse.Namespace) -> None:
    """List the tables that can be run."""
    from tubal.bench import EXPERIMENTS

    head = ("name", "settings", "methods", "draws in the paper")
    rows = (
        (e.name, str(len(e.settings)), str(len(e.all_methods())), str(e.draws))
        for e in EXPERIMENTS.values()
    )
    print_table([head, *rows])


class _Progress:
    """Tells how far a run is, and how long it will still take."""

    def __init__(self, shown: Display) -> None:
        self.display, self.start, self.rows = shown, perf_counter(), 0
        shown.stage("running")

    def row(self, row: dict[str, Any], done: int, total: int) -> None:
        self.rows += 1
        seconds = (perf_counter() - self.start) / self.rows * (total - done)
        what = f"{row['dataset']} {row['setting']} {row['method']}: {row['error'] or ''}"
        what += " ".join(f"{key}={_number(value)}" for key, value in row["metrics"].items())
        what += f" ({row['seconds']:.1f} s)"
        if isinstance(self.display, RichDisplay):
            self.display.row(f"[{done}/{total}] {what}", done, total, seconds)
        else:
            print(f"[{done}/{total}, {duration(seconds)} left] {what}", flush=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="tables, or 'all'")
    parser.add_argument("--draws", type=int, default=1, metavar="N", help="draws (default 1)")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the rows")
    parser.add_argument(
        "--retry-errors", action="store_true", help="measure rows again that ended with an error"
    )


def table_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `table`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the rows")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all numbers here too")
