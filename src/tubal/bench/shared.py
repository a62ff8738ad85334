"""What several rows of a table begin with, computed once.

All TNN+X methods under one transform fill the holes of a draw in the same way, and where nothing in
the data is random, the draws of a method differ in the cut alone. What the first row finds is kept
in a folder of the run, for every process of it; the time it took counts for each row, CPU time and
memory for the first one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from tubal.spectral import Clusters, Cut

_folder: Path | None = None


def share_in(folder: Path | None) -> None:
    """Keep what is found in this folder from now on, in this process; None keeps nothing."""
    global _folder
    _folder = folder


class Shared(BaseEstimator):  # type: ignore[misc]
    """A completion that looks first whether it was computed before.

    Attributes
    ----------
    saved_seconds_ : float
        What it took when it was computed, zero when that was just now.
    """

    def __init__(self, completer: Any) -> None:
        self.completer = completer

    def fit_transform(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        """Return X with its missing entries filled."""
        found, self.saved_seconds_ = _once(
            _key(self.completer, X, {"n_jobs"}),
            lambda: {"filled": np.asarray(self.completer.fit_transform(X))},
        )
        return np.asarray(found["filled"])


@dataclass(frozen=True)
class Figures:
    """What the solver of a row says, and the time of what others had computed for it."""

    objective: float | None
    gap: float | None
    iterations: int | None
    saved_seconds: float = 0.0

    @classmethod
    def of(cls, est: Any) -> Figures:
        """Return those of a fitted estimator."""
        solution = getattr(est, "solution_", None)
        certificate = getattr(solution, "certificate", None)
        return cls(
            None if certificate is None else certificate.primal,
            getattr(solution, "gap", None) if certificate is None else certificate.gap,
            getattr(solution, "n_iter", None),
            getattr(getattr(est, "completion_", None), "saved_seconds_", 0.0),
        )


@dataclass(frozen=True)
class Fit:
    """What a cut begins with: the graph, scores and decisions, and the figures of the solver."""

    affinity: Any
    scores: np.ndarray
    outliers: np.ndarray
    figures: Figures


@dataclass(frozen=True)
class Uncut(Cut):
    """Leaves the graph whole, for those who cut it themselves, in several ways."""

    def __call__(
        self, affinity: Any, n_clusters: int | None = None, random_state: Any = None
    ) -> Clusters:
        """Return one cluster."""
        n = affinity.shape[0]
        return Clusters(np.zeros(n, int), 1, 1.0, np.zeros(0), np.zeros((n, 0)))


def fit_once(est: Any, X: np.ndarray, fixed: bool) -> Fit:
    """Fit an estimator, but for the cut; for `fixed` data look first whether that was done before.

    Draws of fixed data differ in `random_state` alone, which decides about nothing but the cut.
    """
    est.set_params(partition=Uncut())
    if not fixed:
        est.fit(X)
        return Fit(est.affinity_, est.outlier_scores_, est.outliers_, Figures.of(est))

    def fit() -> dict[str, Any]:
        est.fit(X)
        W = csr_array(est.affinity_)
        figures = {k: np.nan if v is None else v for k, v in asdict(Figures.of(est)).items()}
        parts = {"data": W.data, "indices": W.indices, "indptr": W.indptr}
        return {**parts, "scores": est.outlier_scores_, "outliers": est.outliers_, **figures}

    found, seconds = _once(_key(est, X, {"n_jobs", "random_state"}), fit)
    n = len(found["scores"])
    W = csr_array((found["data"], found["indices"], found["indptr"]), shape=(n, n))
    objective, gap, iterations = (
        None if np.isnan(found[name]) else found[name].item()
        for name in ("objective", "gap", "iterations")
    )
    saved = float(found["saved_seconds"]) + seconds
    figures = Figures(objective, gap, iterations, saved)
    return Fit(W, found["scores"], found["outliers"], figures)


def _once(key: str, compute: Callable[[], Mapping[str, Any]]) -> tuple[dict[str, Any], float]:
    """Return arrays from the folder, or compute and keep them; and the seconds that this saved."""
    path = None if _folder is None else _folder / f"{key}.npz"
    if path is not None and path.exists():
        with np.load(path) as file:
            found = dict(file)
        return found, float(found.pop("seconds"))
    start = perf_counter()
    found = {name: np.asarray(value) for name, value in compute().items()}
    if path is not None:
        own = path.with_name(f"{path.stem}-{os.getpid()}.part.npz")
        np.savez(own, **found, seconds=perf_counter() - start)
        own.replace(path)
    return found, 0.0


def _key(est: Any, X: np.ndarray, without: set[str]) -> str:
    """Name what an estimator makes of data, whatever its parameters `without` are."""
    digest = hashlib.blake2b(type(est).__name__.encode(), digest_size=16)
    for name, value in [*sorted(est.get_params().items()), ("X", X)]:
        if name.split("__")[-1] in without:
            continue
        if isinstance(value, np.ndarray):  # whose text leaves most of it out
            digest.update(f"{name} {value.shape} {value.dtype}".encode())
            digest.update(np.ascontiguousarray(value).data)
        else:
            digest.update(f"{name} {value!r} ".encode())
    return digest.hexdigest()
