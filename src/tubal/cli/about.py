"""`tubal demo` and `tubal info`."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tubal import __version__
from tubal.cli.show import print_table

if TYPE_CHECKING:
    from tubal.estimators import SubspaceClusterer
    from tubal.input import Array

CORE_PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "array-api-compat")
OPTIONAL_PACKAGES = (
    "numba",
    "rich",
    "jinja2",
    "pillow",
    "h5py",
    "h5netcdf",
    "zarr",
    "xarray",
    "pyarrow",
    "dask",
    "distributed",
    "torch",
    "cupy",
    "matplotlib",
)
FOLDER_VARIABLES = ("TUBAL_DATA", "TUBAL_CACHE", "TUBAL_GOLDEN")


def demo(args: argparse.Namespace) -> None:
    """Cluster handwritten digits with scraps of photographs among them, and find the scraps.

    example:
      tubal demo
    """
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
    print_table([head, *_demo_rows(data.X, data.labels)])
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
    """Print versions, BLAS threads, GPU, optional packages and data folders, for a bug report.

    example:
      tubal info
    """
    core = ((name, installed(name)) for name in CORE_PACKAGES)
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print_table(
        [
            ("tubal", __version__),
            ("python", platform.python_version()),
            *core,
            ("system", system),
        ]
    )
    print("\nthread pools")
    print_table(_thread_pools(), indent=2)
    print("\nGPU")
    print_table(_gpus(), indent=2)
    print("\noptional packages")
    print_table(((name, installed(name)) for name in OPTIONAL_PACKAGES), indent=2)
    print("\nfolders")
    print_table(((name, _folder_state(name)) for name in FOLDER_VARIABLES), indent=2)
    print("\ndata sets")
    print_table(_data_sets(), indent=2)


def installed(package: str) -> str:
    """Return the version of a package, or that it is not there."""
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


def _gpus() -> list[tuple[str, str]]:
    """Return what the array libraries that are installed see of GPUs."""
    found = []
    if installed("torch") != "not installed":
        import torch

        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        found.append(("torch", ", ".join(names) or "sees none"))
    try:
        import cupy
    except ImportError:
        pass
    else:
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:
            count = 0
        found.append(("cupy", f"sees {count}" if count else "sees none"))
    return found or [("none", "neither torch nor cupy is installed")]


def _folder_state(variable: str) -> str:
    folder = os.environ.get(variable)
    if not folder:
        return "not set"
    return "set" if Path(folder).is_dir() else "set, but there is no such folder"


def _data_sets() -> list[tuple[str, str]]:
    """Return which data sets are here, not where: a bug report is public."""
    from tubal.datasets import available, find

    here = [name for name in available() if find(name) is not None]
    return [("here", ", ".join(here) or "none"), ("where", "tubal datasets list")]
