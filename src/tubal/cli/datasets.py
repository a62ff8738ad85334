"""`tubal datasets`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tubal.cli.show import print_table


def list_(args: argparse.Namespace) -> None:
    """List the data sets, and where those are that are here."""
    from tubal.datasets import available, find

    print_table((name, str(find(name) or "-")) for name in available())


def info(args: argparse.Namespace) -> None:
    """Tell what a data set is and where it comes from.

    example:
      tubal datasets info coil20
    """
    from tubal.datasets import describe

    print(describe(args.name))


def fetch(args: argparse.Namespace) -> None:
    """Download data sets from their public sources, check and convert them.

    example:
      tubal datasets fetch coil20 usps
    """
    from tubal.datasets import describe, fetch

    for name in args.names:
        path = fetch(name, folder=args.folder, source=args.source, progress=_bytes_progress())
        print(f"\r{path}")
        print(describe(name, folder=args.folder))


def _bytes_progress() -> Callable[[int, int | None], None] | None:
    if not sys.stderr.isatty():
        return None

    def progress(done: int, total: int | None) -> None:
        share = "" if not total else f" of {total / 1e6:.1f}"
        print(f"\r{done / 1e6:.1f}{share} MB", end="", file=sys.stderr, flush=True)

    return progress


def info_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `info`."""
    parser.add_argument("name", metavar="NAME", help="one that `tubal datasets list` shows")


def fetch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fetch`."""
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--source", help="one of the sources that `info` lists")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where to put the result")
