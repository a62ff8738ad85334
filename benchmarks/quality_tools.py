"""The tools of `benchmarks/quality.py`: what clusters samples, scores outliers, or both.

A tool is a function of samples, number of clusters, whether there are outliers at all, and a seed;
it returns an `Outcome`. Tools of scikit-learn and of other packages see samples as rows, once as
they are and once with unit norm, and keep their defaults but for what is written here. HDBSCAN has
no parameter for the number of clusters; the names of its rows say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
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
        fitted.labels_, fitted.outlier_scores_, fitted.outliers_, str(fitted.selection_.chosen)
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


def density(rows: np.ndarray, **options: Any) -> Outcome:
    """Run HDBSCAN. What it calls noise has no cluster, as a sample that was removed."""
    labels = HDBSCAN(copy=True, **options).fit_predict(rows)
    return Outcome(labels, note=_found(labels))


def hdbscan(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    size = min(50, *rows.shape)
    return density(PCA(size, random_state=seed).fit_transform(rows))


def umap(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    """Run UMAP and HDBSCAN as "Using UMAP for clustering" of UMAP's documentation does.

    The smallest cluster there has 500 of 70,000 samples; here it has the same share.
    """
    from umap import UMAP

    model = UMAP(n_neighbors=min(30, len(rows) - 1), min_dist=0.0, random_state=seed)
    least = max(5, len(rows) // 140)
    return density(model.fit_transform(rows), min_samples=10, min_cluster_size=least)


def evoc(rows: np.ndarray, n_clusters: int, seed: int) -> Outcome:
    """Run EVoC; it is told the number of clusters, which it takes as a hint."""
    from evoc import EVoC

    model = EVoC(approx_n_clusters=n_clusters, random_state=seed)
    labels = np.asarray(model.fit_predict(np.ascontiguousarray(rows, dtype=np.float32)))
    return Outcome(labels, note=_found(labels))


def _found(labels: np.ndarray) -> str:
    return f"{labels.max() + 1} clusters, {(labels == -1).mean():.0%} noise"


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
    """Return a tool on samples as they are, and on those of unit norm."""
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
        _literature("EnSC", "EnSC"),
        *(_literature(f"LSR, {w:g}", "LSR", slow=False, weight=w) for w in (0.1, 0.01, 0.001)),
        *_both(SPECTRAL, spectral, clusters=True),
        *_both("Ward", ward, clusters=True),
        *_both("k-means", kmeans, clusters=True),
        *_both("HDBSCAN on PCA, k not told", hdbscan, clusters=True),
        *_both("UMAP + HDBSCAN, k not told", umap, clusters=True, needs="umap"),
        *_both("EVoC", evoc, clusters=True, needs="evoc"),
        *_both("isolation forest", forest, detects=True),
        *_both("kNN distance", distance, detects=True),
        *_both("LOF", lof, detects=True),
        *_both("PCA residual", pca, detects=True),
        *_both("ECOD", partial(pyod, name="ECOD"), detects=True, needs="pyod"),
        *_both("COPOD", partial(pyod, name="COPOD"), detects=True, needs="pyod"),
    )
}
