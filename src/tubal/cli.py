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
    from tubal.datasets import TensorSubspaces
    from tubal.input import Array
    from tubal.transforms import Transform

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

DEMO_RANKS = (1, 2, 4)
DEMO_TRANSFORMS = ("none", "dft", "dct", "data")


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
    """Find outliers in a synthetic tensor, and show what transforms make of real digits."""
    _demo_outliers()
    _demo_transforms()
    print(
        "\nNot there yet: clustering, decisions about outliers on real data, and estimators for\n"
        "scikit-learn."
    )


def _demo_outliers() -> None:
    from tubal.datasets import make_tensor_subspaces

    data = make_tensor_subspaces(40, 20, 5, 4, 40, outliers=0.2, random_state=0)
    n_samples, n1, n3 = data.X.shape
    print(
        f"{n_samples} samples of {n1} x {n3} numbers from 5 tensor subspaces; "
        f"{int(data.outliers.sum())} of them are junk of the same size.\n"
        "Outlier-robust representation (OR-TLRR), solved with a certificate and as published:\n"
    )
    head = ("solver", "objective", "at most above optimum", "iterations", "seconds", "junk found")
    _print_table([head, *_solver_rows(data)])
    print(
        "\nA sample is junk when its residual is not zero. The certificate is a proof: no\n"
        "representation has a smaller objective by more than the percentage given.\n"
    )


def _solver_rows(data: TensorSubspaces) -> Iterator[tuple[str, ...]]:
    from numpy.linalg import norm

    from tubal.problem import Lambda
    from tubal.solvers import solve

    for solver in ("certified", "published"):
        start = perf_counter()
        sol = solve(data.X, lam=Lambda.paper(5), solver=solver)
        seconds = perf_counter() - start
        flagged = norm(sol.E, axis=(1, 2)) > 0
        right, wrong = (flagged & data.outliers).sum(), (flagged & ~data.outliers).sum()
        found = f"{right} of {data.outliers.sum()}, {wrong} wrong"
        certificate = sol.certificate
        yield (
            *(solver, f"{certificate.primal:.4f}", f"{certificate.gap:.3%}"),
            *(str(sol.n_iter), f"{seconds:.2f}", found),
        )


def _demo_transforms() -> None:
    from sklearn.datasets import load_digits

    X = load_digits().images
    n_samples, n1, n3 = X.shape
    print(
        f"{n_samples} handwritten digits of {n1} x {n3} pixels, as one tensor of size"
        f" {n1} x {n_samples} x {n3}.\n"
        "Share of its energy (squared norm) in the best approximation of tubal rank r,\n"
        "for the t-product under four transforms:\n"
    )
    _print_table([("transform", *(f"r = {r}" for r in DEMO_RANKS), "seconds"), *_demo_rows(X)])
    print(
        f"\nA higher share at the same r means that fewer t-linear directions (of {n1}) describe\n"
        "the data. This is what the low-rank methods build on."
    )


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


def _demo_rows(X: Array) -> Iterator[tuple[str, ...]]:
    from tubal import input, transforms

    A = input.to_paper(X)
    for name in DEMO_TRANSFORMS:
        start = perf_counter()
        shares = _energy_kept(A, transforms.resolve(name, sizes=X.shape[2:], data=X))
        yield name, *(f"{share:.1%}" for share in shares), f"{perf_counter() - start:.2f}"


def _energy_kept(A: Array, transform: Transform) -> list[float]:
    """Return the share of ||A||_F^2 that the truncated t-SVD keeps, for each of DEMO_RANKS."""
    from tubal.algebra import tprod, transpose, tsvd

    U, S, V = tsvd(A, transform=transform)
    shares = []
    for r in DEMO_RANKS:
        US = tprod(U[:, :r], S[:r, :r], transform=transform)
        residual = A - tprod(US, transpose(V[:, :r], transform=transform), transform=transform)
        shares.append(1.0 - float((residual**2).sum() / (A**2).sum()))
    return shares


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
