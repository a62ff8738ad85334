"""The command line: ``tubal demo``, ``tubal bench``, ``tubal datasets`` and ``tubal info``.

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
from typing import TYPE_CHECKING, Any, NoReturn

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
    "pillow",
)
FOLDER_VARIABLES = ("TUBAL_DATA", "TUBAL_CACHE", "TUBAL_GOLDEN")


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
        args.run(args)
    except KeyboardInterrupt:
        print("tubal: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        if args.debug:
            raise
        print(f"tubal: error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def demo(args: argparse.Namespace) -> None:
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


def info(args: argparse.Namespace) -> None:
    """Print versions, BLAS threads, optional packages and data folders, for a bug report."""
    core = ((name, _version(name)) for name in CORE_PACKAGES)
    _print_table([("tubal", __version__), ("python", platform.python_version()), *core])
    print("\nthread pools")
    _print_table(_thread_pools(), indent=2)
    print("\noptional packages")
    _print_table(((name, _version(name)) for name in OPTIONAL_PACKAGES), indent=2)
    print("\nfolders")
    _print_table(((name, _folder_state(name)) for name in FOLDER_VARIABLES), indent=2)


def bench_run(args: argparse.Namespace) -> None:
    """Run tables of the paper into rows; a run that was stopped goes on."""
    from tubal.bench import EXPERIMENTS, run

    names = list(EXPERIMENTS) if args.names == ["all"] else args.names
    progress = _Progress()
    try:
        added = run(
            names,
            args.out,
            draws=args.draws,
            methods=args.methods,
            jobs=args.jobs,
            on_row=progress.row,
        )
    except KeyboardInterrupt:
        print(f"\n{progress.rows} new rows are in {args.out}; the same command goes on from there")
        raise
    print(f"{added} new rows in {args.out}")


def bench_table(args: argparse.Namespace) -> None:
    """Set rows beside the published values, as Markdown; --csv writes all numbers to a file."""
    from tubal.bench import read_rows, summarise, to_csv, to_markdown

    cells = summarise(read_rows(args.folder))
    if args.csv is not None:
        args.csv.write_text(to_csv(cells), encoding="utf-8")
    print(to_markdown(cells))


def bench_list(args: argparse.Namespace) -> None:
    """List the tables that can be run."""
    from tubal.bench import EXPERIMENTS

    head = ("name", "settings", "methods", "draws in the paper")
    rows = (
        (e.name, str(len(e.settings)), str(len(e.all_methods())), str(e.draws))
        for e in EXPERIMENTS.values()
    )
    _print_table([head, *rows])


class _Progress:
    """Tells how far a run is, and how long it will still take."""

    def __init__(self) -> None:
        self.start, self.rows = perf_counter(), 0

    def row(self, row: dict[str, Any], done: int, total: int) -> None:
        self.rows += 1
        seconds = (perf_counter() - self.start) / self.rows * (total - done)
        what = f"{row['dataset']} {row['setting']} {row['method']}"
        print(
            f"[{done}/{total}, {_duration(seconds)} left] {what}: {row['error'] or ''}"
            + " ".join(f"{key}={value:.3g}" for key, value in row["metrics"].items())
            + f" ({row['seconds']:.1f} s)",
            flush=True,
        )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def datasets_list(args: argparse.Namespace) -> None:
    """List the data sets, and where those are that are here."""
    from tubal.datasets import available, find

    _print_table((name, str(find(name) or "-")) for name in available())


def datasets_info(args: argparse.Namespace) -> None:
    """Tell what a data set is and where it comes from."""
    from tubal.datasets import describe

    print(describe(args.name))


def datasets_fetch(args: argparse.Namespace) -> None:
    """Download data sets from their public sources, check and convert them."""
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


Add = Callable[[argparse.ArgumentParser], None]


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


def _bench_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="tables, or 'all'")
    parser.add_argument("--draws", type=int, default=1, metavar="N", help="draws (default 1)")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the rows")


def _bench_table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the rows")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all numbers here too")


def _datasets_fetch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--source", help="one of the sources that `info` lists")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where to put the result")


# Name -> function and arguments; a mapping instead stands for commands of a command.
Command = tuple[Callable[[argparse.Namespace], None], Add]
COMMANDS: dict[str, tuple[Any, Any]] = {
    "demo": (demo, _nothing),
    "bench": (
        "Reproduce the tables of the paper.",
        {
            "list": (bench_list, _nothing),
            "run": (bench_run, _bench_run_arguments),
            "table": (bench_table, _bench_table_arguments),
        },
    ),
    "datasets": (
        "Data sets of the paper.",
        {
            "list": (datasets_list, _nothing),
            "info": (datasets_info, lambda parser: _positional(parser, "name")),
            "fetch": (datasets_fetch, _datasets_fetch_arguments),
        },
    ),
    "info": (info, _nothing),
}


def _positional(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(name, metavar=name.upper())


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
    for name, command in COMMANDS.items():
        _add_command(commands, name, command, debug)
    return parser


def _add_command(commands: Any, name: str, command: Any, debug: _Parser) -> None:
    what, inside = command
    if isinstance(inside, dict):
        group = commands.add_parser(name, help=what, description=what, parents=[debug])
        inner = group.add_subparsers(metavar="command", required=True)
        for key, value in inside.items():
            _add_command(inner, key, value, debug)
        return
    summary = (what.__doc__ or "").strip()
    parser = commands.add_parser(name, help=summary, description=summary, parents=[debug])
    inside(parser)
    parser.set_defaults(run=what)


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
