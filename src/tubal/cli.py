"""The command line: ``tubal demo`` and ``tubal info``.

Exit codes: 0 when the command did its work, 2 for bad input, 130 after Ctrl-C.
Heavy imports happen inside the commands, so that ``tubal --version`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn

from tubal import __version__

if TYPE_CHECKING:
    from tubal.estimators import SubspaceClusterer
    from tubal.input import Array

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

CORE_PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "array-api-compat")
OPTIONAL_PACKAGES = (
    "numba",
    "rich",
    "jinja2",
    "dask",
    "distributed",
    "torch",
    "cupy",
    "matplotlib",
)
FOLDER_VARIABLES = ("TUBAL_DATA", "TUBAL_GOLDEN")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program name; those of the process by default.

    Returns
    -------
    int
        0 on success, 2 for bad input, 130 after Ctrl-C.
    """
    args = argparse.Namespace(debug=False)
    try:
        _parser().parse_args(argv, namespace=args)
        args.run()
    except KeyboardInterrupt:
        print("tubal: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError) as error:
        if args.debug:
            raise
        print(f"tubal: error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def demo() -> None:
    """Cluster handwritten digits with scraps of photographs among them, and find the scraps."""
    from tubal.datasets import load_demo

    data = load_demo()
    n_samples, height, width = data.X.shape
    n_outliers = int(data.outliers.sum())
    print(
        f"{n_samples} pictures of {height} x {width} pixels: {n_samples - n_outliers} handwritten "
        f"digits and {n_outliers} scraps of two photographs.\n"
        "ORTLRR(n_clusters=10) is told only that there are 10 clusters:\n"
    )
    head = ("", "accuracy", "NMI", "AUC", "scraps found", "from optimum", "seconds")
    _print_table([head, *_demo_rows(data.X, data.labels)])
    print(
        "\naccuracy, NMI   of the digits; one that was taken for a scrap counts as wrong\n"
        "AUC             of the outlier scores: 1 when every scrap scores above every digit\n"
        "from optimum    what the certificate proves: no representation has an objective that\n"
        "                is smaller by more than this"
    )


def _demo_rows(X: Array, labels: Array) -> Iterator[tuple[str, ...]]:
    """Fit the pictures, complete and with holes, and describe what came out."""
    from tubal.datasets import load_demo
    from tubal.estimators import ORTLRR

    for name, data in (("complete", X), ("20 % of the pixels missing", load_demo(missing=0.2).X)):
        start = perf_counter()
        fitted = ORTLRR(n_clusters=10, random_state=0).fit(data)
        yield name, *_figures(labels, fitted), f"{perf_counter() - start:.2f}"


def _figures(labels: Array, fitted: SubspaceClusterer) -> Iterator[str]:
    from tubal import metrics

    outliers = labels == -1
    right = int((fitted.outliers_ & outliers).sum())
    wrong = int((fitted.outliers_ & ~outliers).sum())
    yield f"{metrics.clustering_accuracy(labels, fitted.labels_):.3f}"
    yield f"{metrics.nmi(labels, fitted.labels_):.3f}"
    yield f"{metrics.outlier_auc(outliers, fitted.outlier_scores_):.4f}"
    yield f"{right} of {outliers.sum()}, {wrong} wrong"
    yield f"{fitted.certificate_.gap:.3%}"


def info() -> None:
    """Print versions, BLAS threads, optional packages and data folders, for a bug report."""
    core = ((name, _version(name)) for name in CORE_PACKAGES)
    _print_table([("tubal", __version__), ("python", platform.python_version()), *core])
    print("\nthread pools")
    _print_table(_thread_pools(), indent=2)
    print("\noptional packages")
    _print_table(((name, _version(name)) for name in OPTIONAL_PACKAGES), indent=2)
    print("\nfolders")
    _print_table(((name, _folder_state(name)) for name in FOLDER_VARIABLES), indent=2)


COMMANDS: dict[str, Callable[[], None]] = {"demo": demo, "info": info}


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints take one line and the same way out as any bad input."""

    def error(self, message: str) -> NoReturn:
        msg = f"{message} (try '{self.prog} --help')"
        raise ValueError(msg)


def _parser() -> _Parser:
    debug = _Parser(add_help=False)
    debug.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,  # a subcommand must not undo `tubal --debug demo`
        help="show the full traceback of an error",
    )
    parser = _Parser(
        prog="tubal",
        description="Clustering of multiway data that contains outliers and holes.",
        parents=[debug],
    )
    parser.add_argument("--version", action="version", version=f"tubal {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, run in COMMANDS.items():
        summary = (run.__doc__ or "").strip()
        command = commands.add_parser(name, help=summary, description=summary, parents=[debug])
        command.set_defaults(run=run)
    return parser


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _thread_pools() -> list[tuple[str, ...]]:
    # A pool is only seen once its library is loaded.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [
        (
            pool["user_api"],
            f"{pool['internal_api']} {pool['version']}",
            f"{pool['num_threads']} threads",
        )
        for pool in threadpool_info()
    ]


def _folder_state(variable: str) -> str:
    folder = os.environ.get(variable)
    if not folder:
        return "not set"
    return "set" if Path(folder).is_dir() else "set, but there is no such folder"


def _print_table(rows: Iterable[Sequence[str]], indent: int = 0) -> None:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print((" " * indent + "  ".join(cells)).rstrip())
