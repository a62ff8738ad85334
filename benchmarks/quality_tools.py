"""The tools of `benchmarks/quality.py`: what clusters samples, scores outliers, or both.

A tool is a function of samples, number of clusters, whether there are outliers at all, and a seed;
it returns an `Outcome`. Tools of scikit-learn see samples as rows, once as they are and once with
unit norm, and keep their defaults but for what is written here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from tubal import ORTLRR, make

OURS = "tubal"
SPECTRAL = "kNN spectral"
UNIT = ", unit norm"


@dataclass(frozen=True)
class Outcome:
    """What a tool found.

    Attributes
    ----------
    labels : int array or None
        Clusters, -1 for removed samples.
    scores : array or None
        High for outliers.
    flags : bool array or None
        Samples called outliers.
    note : str
        What it chose by itself.
    """

    labels: np.ndarray | None = None
    scores: np.ndarray | None = None
    flags: np.ndarray | None = None
    note: str = ""


@dataclass(frozen=True)
class Tool:
    """A row of the tables.

    Attributes
    ----------
    name : str
    run : callable
        Of samples, number of clusters, whether there are outliers, and seed.
    clusters, detects : bool
        What it is for.
    needs : str or None
        Package.
    slow : bool
        Whether it gets one draw of large sets and two of others.
    """

    name: str
    run: Callable[[np.ndarray, int, bool, int], Outcome]
    clusters: bool = False
    detects: bool = False
    needs: str | None = None
    slow: bool = False

    @property
    def is_there(self) -> bool:
        """Whether its package is installed."""
        return self.needs is None or find_spec(self.needs) is not None

    def serves(self, n_clusters: int, outliers: bool) -> bool:
        """Return whether there is something for it to do."""
        return (self.clusters and n_clusters > 1) or (self.detects and outliers)


def ours(X: np.ndarray, n_clusters: int, outliers: bool, seed: int) -> Outcome:
    """Run the defaults; whether there are outliers is not told."""
    fitted = ORTLRR(n_clusters, random_state=seed).fit(X)
    return Outcome(
        fitted.labels_, fitted.outlier_scores_, fitted.outliers_, str(fitted.selection_.view)
    )


def literature(
    X: np.ndarray, n_clusters: int, outliers: bool, seed: int, *, method: str, **options: Any
) -> Outcome:
    """Run a method with its published parameters; without outliers nothing is removed."""
    if not outliers:
        options["outliers"] = None
    if X.ndim > 3:  # published for matrices as samples
        X = X.reshape(*X.shape[:2], -1)
    fitted = make(method, n_clusters, random_state=seed, **options).fit(X)
    return Outcome(fitted.labels_, fitted.outlier_scores_, fitted.outliers_)


def rows_of(X: np.ndarray, unit: bool) -> np.ndarray:
    """Return samples as rows, of unit norm if asked."""
    rows = X.reshape(len(X), -1)
    if not unit:
        return rows
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(size > 0, size, 1)


def _simple(
    X: np.ndarray, n_clusters: int, outliers: bool, seed: int, *, unit: bool, method: Any
) -> Outcome:
    return method(rows_of(X, unit), n_clusters, seed)


def spectral(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    model = SpectralClustering(
        n_clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    )
    return Outcome(model.fit_predict(rows))


def ward(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    return Outcome(AgglomerativeClustering(n_clusters).fit_predict(rows))


def kmeans(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    return Outcome(KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(rows))


def forest(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    model = IsolationForest(random_state=seed).fit(rows)
    scores = -model.score_samples(rows)
    return Outcome(scores=scores, flags=scores > -model.offset_)


def distance(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    far, _ = NearestNeighbors(n_neighbors=5).fit(rows).kneighbors()  # of others, not of itself
    return Outcome(scores=far.mean(axis=1))


def lof(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    model = LocalOutlierFactor(n_neighbors=min(20, len(rows) - 1)).fit(rows)
    scores = -model.negative_outlier_factor_
    return Outcome(scores=scores, flags=scores > -model.offset_)


def pca(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    model = PCA(0.95, svd_solver="full").fit(rows)
    left = rows - model.inverse_transform(model.transform(rows))
    return Outcome(scores=np.linalg.norm(left, axis=1))


def pyod(rows: np.ndarray, n_clusters: int, seed: int, *, name: str) -> Outcome:
    from importlib import import_module

    model = getattr(import_module(f"pyod.models.{name.lower()}"), name)()
    varying = rows[:, rows.std(axis=0) > 0]
    return Outcome(scores=np.asarray(model.fit(varying).decision_scores_))


def _both(name: str, method: Any, **what: Any) -> list[Tool]:
    """Return a tool of scikit-learn on samples as they are, and on those of unit norm."""
    return [
        Tool(name + (UNIT if unit else ""), partial(_simple, unit=unit, method=method), **what)
        for unit in (False, True)
    ]


def _literature(name: str, method: str, slow: bool = True, **options: Any) -> Tool:
    run = partial(literature, method=method, **options)
    return Tool(name, run, clusters=True, detects=True, slow=slow)


PUBLISHED = "OR-TLRR-DFT, published parameters"
RPCA = "R-PCA"
DETECTORS = ("isolation forest", "kNN distance", "LOF", "PCA residual")
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(OURS, ours, clusters=True, detects=True),
        _literature(PUBLISHED, "OR-TLRR-DFT"),
        _literature(RPCA, "R-PCA", solver="certified", tol=1e-2),
        _literature("SSC", "SSC"),
        _literature("SSC-OMP", "SSC-OMP", slow=False),
        *_both(SPECTRAL, spectral, clusters=True),
        *_both("Ward", ward, clusters=True),
        *_both("k-means", kmeans, clusters=True),
        *_both("isolation forest", forest, detects=True),
        *_both("kNN distance", distance, detects=True),
        *_both("LOF", lof, detects=True),
        *_both("PCA residual", pca, detects=True),
        *_both("ECOD", partial(pyod, name="ECOD"), detects=True, needs="pyod"),
        *_both("COPOD", partial(pyod, name="COPOD"), detects=True, needs="pyod"),
    )
}
