"""Who computes: threads of this process, an array library, or a Dask cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.cli.options import ENGINES
from tubal.cli.show import counted, say
from tubal.solvers import Dask, use_engine

PACKAGES = {"torch": "torch", "dask": "distributed"}


def check_engine(args: argparse.Namespace) -> None:
    """Refuse an engine that does not exist, or whose package is missing."""
    if args.engine not in ENGINES:
        msg = f"--engine must be one of {', '.join(ENGINES)}, got {args.engine!r}"
        raise ValueError(msg)
    if args.scheduler is not None and args.engine != "dask":
        msg = f"--scheduler is for --engine dask, got --engine {args.engine}"
        raise ValueError(msg)
    if args.engine in PACKAGES:
        optional(PACKAGES[args.engine], f"--engine {args.engine}", args.engine)


@contextmanager
def on_engine(args: argparse.Namespace, X: np.ndarray) -> Iterator[Any]:
    """Give the samples as the engine takes them; solves inside the block run on it."""
    if args.engine == "torch":
        yield _on_torch(X)
    elif args.engine == "dask":
        with closing(Dask(args.scheduler, n_workers=args.jobs)) as engine, use_engine(engine):
            say(f"dask computes on {counted(engine.connect(), 'worker')}")
            yield X
    else:
        yield X


def _on_torch(X: np.ndarray) -> Any:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    say(f"torch computes on {device}")
    return torch.from_numpy(np.array(X)).to(device)
