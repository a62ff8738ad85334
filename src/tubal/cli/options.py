"""The arguments of the commands that fit, and how their text is read."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

TRANSFORMS = {
    "auto": None,
    "none": "none",
    "dft": "dft",
    "dct": "dct",
    "rom": "rom",
    "data": "data",
    "data-driven": "data",
}
ENGINES = ("threads", "dask", "torch")


def cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tubal cluster`."""
    _input(parser)
    model = parser.add_argument_group("model")
    model.add_argument(
        "-k", "--clusters", type=_clusters, metavar="N", help="number of clusters (default: auto)"
    )
    model.add_argument(
        "--method",
        default="auto",
        metavar="NAME",
        help="a method of the literature with its published parameters, such as TLRR-DCT, SSC or "
        "LSR (default: auto, OR-TLRR with a certificate)",
    )
    _convex(model)
    _contamination(model)
    _random(model)
    _run(parser)
    _fit_output(parser)


def outliers_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tubal outliers`."""
    _input(parser)
    model = parser.add_argument_group("model")
    _convex(model)
    _contamination(model)
    _run(parser)
    _fit_output(parser, "-outliers")


def complete_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tubal complete`."""
    _input(parser)
    model = parser.add_argument_group("model")
    _transform(model)
    _limits(model)
    _run(parser)
    _output(parser, "-filled")


def predict_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tubal predict`."""
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a folder that `tubal cluster` or `outliers` wrote, or its model file",
    )
    parser.add_argument("input", type=Path, metavar="INPUT", help="samples, as for `tubal cluster`")
    _array_options(parser.add_argument_group("input"))
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the table here (default: print it)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE when it exists")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load a .joblib model, which can run any code: only from people you trust",
    )


def _input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input",
        type=Path,
        metavar="INPUT",
        help="a folder of pictures, or a file: .npy .npz .mat .h5 .zarr .nc .csv .tsv .parquet; "
        "NaN marks missing entries",
    )
    group = parser.add_argument_group("input")
    _array_options(group)
    group.add_argument(
        "--shape", type=_shape, metavar="HxW", help="shape of a sample, for a row each"
    )
    group.add_argument("--size", type=_size, metavar="HxW", help="resize pictures to this")
    group.add_argument(
        "--grey", action="store_const", const=True, help="read pictures without colours"
    )


def _array_options(group: Any) -> None:
    group.add_argument("--key", metavar="NAME", help="which array, when the file has several")
    group.add_argument(
        "--sample-axis", type=int, metavar="N", help="axis of the samples (default: a guess, told)"
    )
    group.add_argument(
        "--mask", type=Path, metavar="FILE", help="array in the shape of the samples: 0 = missing"
    )
    group.add_argument(
        "--max-memory",
        type=_bytes,
        metavar="SIZE",
        help="read no samples that need more, such as 8GB (default: what the machine has left)",
    )


def _transform(group: Any) -> None:
    group.add_argument(
        "--transform",
        choices=tuple(TRANSFORMS),
        default="auto",
        help="transform of the t-product (default: auto, that of the method)",
    )


def _convex(group: Any) -> None:
    _transform(group)
    group.add_argument(
        "--lam",
        type=_lam,
        metavar="L",
        help="weight of the noise: a number, auto, or a rule with its parameter: paper:1, "
        "relative:0.5, rank:2 (default: that of the method)",
    )
    _limits(group)


def _limits(group: Any) -> None:
    group.add_argument("--tol", type=_positive, metavar="T", help="relative duality gap to stop at")
    group.add_argument("--max-iter", type=_count, metavar="N", help="limit of iterations")


def _contamination(group: Any) -> None:
    group.add_argument(
        "--contamination",
        type=_contamination_share,
        default="auto",
        metavar="C",
        help="share of outliers, 0 to 0.5 (default: auto)",
    )


def _random(group: Any) -> None:
    group.add_argument("--seed", type=_seed, default=0, metavar="S", help="(default: 0)")


def _run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run")
    group.add_argument(
        "--jobs",
        type=_count,
        metavar="N",
        help="threads, or new workers of dask (default: as many as there are cores)",
    )
    group.add_argument(
        "--engine",
        default="threads",
        metavar="|".join(ENGINES),
        help="who computes; dask spreads the samples over the workers of a cluster, torch uses the "
        "GPU when there is one (default: threads)",
    )
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster, such as tcp://host:8786 (default: new workers on this machine)",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with a fit that was interrupted"
    )


def _output(parser: argparse.ArgumentParser, suffix: str = "") -> Any:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder to write (default: tubal-INPUT{suffix})"
    )
    group.add_argument(
        "--force", action="store_true", help="replace DIR when it holds earlier results"
    )
    group.add_argument("--no-report", action="store_true", help="write no report.html")
    return group


def _fit_output(parser: argparse.ArgumentParser, suffix: str = "") -> None:
    group = _output(parser, suffix)
    group.add_argument(
        "--clean", action="store_true", help="write clean.npz too: data without noise and holes"
    )
    group.add_argument(
        "--model-format",
        choices=("npz", "joblib"),
        default="npz",
        help="npz holds data only; joblib can run code when it is loaded, and `tubal predict` asks "
        "for --trust (default: npz)",
    )


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)I?B?", text.strip().upper())
    if not found or not float(found[1]):
        msg = f"a size is needed, such as 500MB or 8GB, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(float(found[1]) * 1000 ** " KMGT".index(found[2] or " "))


def _clusters(text: str) -> int | None:
    return None if text == "auto" else _count(text)


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        msg = f"a positive whole number is needed, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _seed(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**32:
        msg = f"a whole number from 0 to 2**32 - 1 is needed, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        msg = f"a number above 0 is needed, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _contamination_share(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 0.5:
        msg = f"auto or a number from 0 to 0.5 is needed, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in text.lower().replace("*", "x").split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        msg = f"lengths with x between them are needed, such as 28x28, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return shape


def _size(text: str) -> tuple[int, int]:
    shape = _shape(text)
    if len(shape) != 2:
        msg = f"height x width is needed, such as 64x48, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return shape[0], shape[1]


def _lam(text: str) -> Any:
    """Read a number, "auto", or a rule of `Lambda` with its parameter."""
    from tubal.problem import Lambda

    rules = {
        "paper": Lambda.paper,
        "relative": Lambda.relative,
        "rank": Lambda.effective_rank,
        "entries": Lambda.entries,
        "samples": Lambda.samples,
    }
    name, colon, parameter = text.partition(":")
    try:
        if text == "auto":
            return text
        if colon and name in rules:
            return rules[name](float(parameter))
        return _positive(text)
    except (ValueError, argparse.ArgumentTypeError):
        msg = f"a number above 0, auto, or one of {', '.join(rules)} as in paper:1, got {text!r}"
        raise argparse.ArgumentTypeError(msg) from None
