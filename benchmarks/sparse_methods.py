"""What sparse representations cost, beside the obvious loop over samples.

ssc       COIL-20 (1440 x 1024, when TUBAL_DATA names the folder of the data sets, otherwise
          synthetic samples of that size), gap at most 1e-6: seconds for several alpha, with the
          outlier term and with the affine constraint, and the gap that was reached
ssc_omp   10,000 synthetic samples of 256 features, 10 nonzeros
ensc      10,000 synthetic samples of 256 features, and USPS (9298 x 256) when TUBAL_DATA is set,
          gap at most 1e-6: seconds of the representation, and of a fit with graph and cut
lsr       3000 synthetic samples of 256 features, and of 4000: the same
lasso     scikit-learn's Lasso, one fit a sample, on --subset samples, scaled up to all of them;
          its tol is 1e-6 as well, relative to the squared norm of the sample, which asks for less
net       scikit-learn's ElasticNet, in the same way as lasso
omp       scikit-learn's OrthogonalMatchingPursuit, one fit a sample, scaled up in the same way

Only ratios of one run are of interest: the loop and what it is compared with run on one thread.

Run: python benchmarks/sparse_methods.py [--only ssc ssc_omp ensc lsr] [--subset N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, OrthogonalMatchingPursuit
from threadpoolctl import threadpool_limits

from tubal import make, metrics
from tubal.sparse import ensc, lsr, ssc, ssc_omp


def subspace_samples(n: int, n_features: int, clusters: int, dimension: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    bases = rng.standard_normal((clusters, dimension, n_features))
    X = np.concatenate([rng.standard_normal((n // clusters, dimension)) @ B for B in bases])
    return X + 0.05 * np.sqrt(dimension) * rng.standard_normal(X.shape)


def images() -> tuple[str, np.ndarray]:
    folder = os.environ.get("TUBAL_DATA")
    if not folder:
        return "synthetic", subspace_samples(1440, 1024, 20, 9)
    with np.load(Path(folder) / "coil20.npz") as data:
        return "COIL-20", data["images"].reshape(len(data["images"]), -1) / 255.0


def seconds(function: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def loop(X: np.ndarray, subset: int, model: Callable[[], object]) -> float:
    """Return the seconds that one fit a sample would take for all samples."""
    chosen = np.linspace(0, len(X) - 1, subset).astype(int)
    start = time.perf_counter()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for j in chosen:
            model().fit(np.delete(X, j, axis=0).T, X[j])
    return (time.perf_counter() - start) / subset * len(X)


def report_ssc(arguments: argparse.Namespace) -> None:
    name, X = images()
    cases: dict[str, dict] = {
        "alpha 20": {},
        "alpha 20, affine": {"affine": True},
        "alpha 20, outliers 20": {"outlier_alpha": 20.0},
    }
    if not arguments.quick:
        cases["alpha 800"] = {"alpha": 800.0}
        cases["alpha 800, outliers 20"] = {"alpha": 800.0, "outlier_alpha": 20.0}
    for label, options in cases.items():
        row: dict[str, object] = {"ssc": f"{name} {X.shape}", "case": label}
        one, result = seconds(lambda options=options: ssc(X, n_jobs=1, **options))
        row["seconds, 1 thread"] = round(one, 2)
        row["seconds, all threads"] = round(seconds(lambda o=options: ssc(X, **o))[0], 2)
        row["gap"] = float(f"{result.gap:.1e}")
        row["Newton steps"] = result.n_iter
        row["nonzeros a sample"] = round(result.coefficients.nnz / len(X), 1)
        if set(options) <= {"alpha"}:
            penalty = 1 / (result.lam * X.shape[1])
            lasso = loop(
                X,
                arguments.subset,
                lambda p=penalty: Lasso(p, fit_intercept=False, tol=1e-6, max_iter=10**5),
            )
            row["lasso loop, seconds"] = round(lasso, 1)
            row["lasso loop / ssc"] = round(lasso / one, 1)
        print(json.dumps(row), flush=True)


def report_omp(arguments: argparse.Namespace) -> None:
    X = subspace_samples(10_000, 256, 50, 8)
    one, result = seconds(lambda: ssc_omp(X, n_jobs=1))
    slow = loop(
        X,
        arguments.subset,
        lambda: OrthogonalMatchingPursuit(n_nonzero_coefs=10, fit_intercept=False),
    )
    row = {
        "ssc_omp": f"synthetic {X.shape}",
        "seconds, 1 thread": round(one, 2),
        "seconds, all threads": round(seconds(lambda: ssc_omp(X))[0], 2),
        "nonzeros a sample": round(result.coefficients.nnz / len(X), 1),
        "omp loop, seconds": round(slow, 1),
        "omp loop / ssc_omp": round(slow / one, 1),
    }
    print(json.dumps(row), flush=True)


def fit_row(method: str, X: np.ndarray, labels: np.ndarray) -> dict[str, object]:
    """Return seconds and accuracy of a whole fit: representation, graph and cut."""
    model = make(method, int(labels.max()) + 1, outliers=None, random_state=0)
    taken, _ = seconds(lambda: model.fit(X))
    accuracy = metrics.clustering_accuracy(labels, model.labels_)
    return {"fit, seconds": round(taken, 2), "ACC": round(accuracy, 3)}


def report_ensc(arguments: argparse.Namespace) -> None:
    cases = {"synthetic": (subspace_samples(10_000, 256, 50, 8), np.repeat(np.arange(50), 200))}
    folder = os.environ.get("TUBAL_DATA")
    if folder and not arguments.quick:
        with np.load(Path(folder) / "usps.npz") as data:
            images, labels = data["images"], data["labels"]
        cases["USPS"] = images.reshape(len(images), -1) / 255.0, np.unique(labels, False, True)[1]
    for name, (X, labels) in cases.items():
        one, result = seconds(lambda X=X: ensc(X, n_jobs=1))
        row: dict[str, object] = {"ensc": f"{name} {X.shape}", "seconds, 1 thread": round(one, 2)}
        row["seconds, all threads"] = round(seconds(lambda X=X: ensc(X))[0], 2)
        row["gap"] = float(f"{result.gap:.1e}")
        row["Newton steps"] = result.n_iter
        row["nonzeros a sample"] = round(result.coefficients.nnz / len(X), 1)
        units = X / np.linalg.norm(X, axis=1, keepdims=True)
        penalty = 1 / (float(np.median(result.lam)) * 0.95 * X.shape[1])
        net = loop(
            units,
            arguments.subset,
            lambda p=penalty: ElasticNet(
                p, l1_ratio=0.95, fit_intercept=False, tol=1e-6, max_iter=10**5
            ),
        )
        row["net loop, seconds"] = round(net, 1)
        row["net loop / ensc"] = round(net / one, 1)
        print(json.dumps(row | fit_row("EnSC", X, labels)), flush=True)


def report_lsr(arguments: argparse.Namespace) -> None:
    for n_features in (256,) if arguments.quick else (256, 4000):
        X, labels = subspace_samples(3000, n_features, 20, 6), np.repeat(np.arange(20), 150)
        row: dict[str, object] = {"lsr": f"synthetic {X.shape}"}
        row["seconds, 1 thread"] = round(seconds(lambda X=X: lsr(X, n_jobs=1))[0], 2)
        row["seconds, all threads"] = round(seconds(lambda X=X: lsr(X))[0], 2)
        print(json.dumps(row | fit_row("LSR", X, labels)), flush=True)


REPORTS = {"ssc_omp": report_omp, "ensc": report_ensc, "lsr": report_lsr, "ssc": report_ssc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subset", type=int, default=10, help="samples of the loops")
    parser.add_argument("--quick", action="store_true", help="leave the longest cases out")
    parser.add_argument("--only", nargs="+", choices=REPORTS, default=list(REPORTS))
    arguments = parser.parse_args()
    for name in arguments.only:
        REPORTS[name](arguments)


if __name__ == "__main__":
    main()
