"""Figures of a fit for notebooks, with matplotlib (`pip install tubal[plot]`).

Each function takes a fitted estimator, draws into the axes given as `ax` or into new ones, and
returns the axes. `gallery` fills a figure of its own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.estimators import SubspaceClusterer
from tubal.report.data import affinity_picture, plane, spectrum, typicality
from tubal.report.sprites import Scale, arrange, read_pictures

KEPT, ODD, FAINT = "#1d6b74", "#b8472a", "#c9c7c1"


def scores(fitted: Any, *, bins: int = 60, ax: Any = None) -> Any:
    """Draw a histogram of the outlier scores, with the threshold.

    Parameters
    ----------
    fitted : estimator
        A clusterer or `TensorOutlierDetector`, after a fit.
    bins : int
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    _check(fitted, "outlier_scores_", "outlier scores")
    ax = _axes(ax)
    edges = np.histogram_bin_edges(fitted.outlier_scores_, bins)
    for flag, colour, word in ((False, KEPT, "kept"), (True, ODD, "outliers")):
        part = fitted.outlier_scores_[fitted.outliers_ == flag]
        ax.hist(part, edges, color=colour, label=f"{len(part)} {word}")
    if np.isfinite(fitted.threshold_):
        ax.axvline(fitted.threshold_, color="black", linewidth=1)
    ax.set(xlabel="outlier score", ylabel="samples", yscale="symlog")
    ax.legend(frameon=False)
    return ax


def affinity(fitted: Any, *, ax: Any = None) -> Any:
    """Draw the affinity, ordered by cluster, with frames around the clusters.

    Parameters
    ----------
    fitted : clusterer
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    _check_clusterer(fitted)
    ax = _axes(ax)
    picture, bounds = affinity_picture(fitted)
    n = len(picture)
    ax.imshow(picture, cmap="Greys", vmin=0, vmax=1, interpolation="nearest", extent=(0, n, n, 0))
    for k, (low, high) in enumerate(pairwise(bounds)):
        x, y = n * np.array([low, high, high, low, low]), n * np.array([low, low, high, high, low])
        ax.plot(x, y, color=_colour(k), linewidth=1)
    ax.set(xticks=[], yticks=[], title="affinity by cluster")
    return ax


def embedding(fitted: Any, *, ax: Any = None) -> Any:
    """Draw the spectral embedding in the plane (see `tubal.report.data.plane`).

    Parameters
    ----------
    fitted : clusterer
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    _check_clusterer(fitted)
    ax = _axes(ax)
    places = plane(fitted)
    for k in range(fitted.n_clusters_):
        x, y = places[fitted.labels_ == k].T
        ax.scatter(x, y, s=12, color=_colour(k), linewidth=0, label=str(k))
    x, y = places[fitted.outliers_ & np.isfinite(places[:, 0])].T
    ax.scatter(x, y, s=14, facecolors="none", edgecolors=ODD, linewidth=0.8)
    ax.set(xticks=[], yticks=[], title="spectral embedding")
    if fitted.n_clusters_ > 1:
        ax.set_aspect("equal")
    return ax


def eigenvalues(fitted: Any, *, ax: Any = None) -> Any:
    """Draw the eigenvalues of the graph and how much the gap after each speaks for that number.

    Parameters
    ----------
    fitted : clusterer
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
        Of the gaps; the eigenvalues have an axis at its right.
    """
    _check_clusterer(fitted)
    ax = _axes(ax)
    mu, gaps = spectrum(fitted)
    k = np.arange(1, len(gaps) + 1)
    ax.bar(k, gaps, color=[ODD if i == fitted.n_clusters_ else FAINT for i in k])
    ax.set(xlabel="number of clusters", ylabel="gap")
    right = ax.twinx()
    right.plot(k, mu[: len(k)], "o", color=KEPT, markersize=4)
    right.set(ylabel="eigenvalue", ylim=(0, None))
    return ax


def convergence(fitted: Any, *, ax: Any = None) -> Any:
    """Draw the relative duality gap at each check of the solver.

    Parameters
    ----------
    fitted : estimator
        With a certified or published solver.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes
    """
    history = getattr(getattr(fitted, "solution_", None), "history", ())
    if not history:
        msg = f"{type(fitted).__name__} has no history of a solver to draw"
        raise ValueError(msg)
    ax = _axes(ax)
    ax.plot([c.n_iter for c in history], [c.gap for c in history], "o-", color=KEPT, markersize=4)
    ax.set(xlabel="iteration", ylabel="relative duality gap")
    if min(c.gap for c in history) > 0:
        ax.set_yscale("log")
    return ax


def gallery(
    fitted: Any, images: Any = None, *, columns: int = 12, show: str = "auto", figure: Any = None
) -> Any:
    """Draw the most typical samples of each cluster, a row a cluster; outliers, oddest first, last.

    Parameters
    ----------
    fitted : clusterer
    images : array-like or None
        Pictures of the samples; by default the samples are drawn.
    columns : int
        Samples a cluster.
    show : {"auto", "picture", "heat", "lines"}
        How samples are drawn; see `tubal.report.sprites.arrange`.
    figure : matplotlib Figure or None
        A new one by default.

    Returns
    -------
    matplotlib Figure
    """
    _check_clusterer(fitted)
    values = fitted._inputs() if images is None else read_pictures(images, len(fitted.labels_))
    values, kind = arrange(values, show if images is None else "picture")
    order = np.lexsort((-typicality(fitted), fitted.labels_))
    rows = [order[fitted.labels_[order] == k][:columns] for k in range(fitted.n_clusters_)]
    odd = np.argsort(-fitted.outlier_scores_, kind="stable")
    rows.append(odd[fitted.outliers_[odd]][:columns])
    figure = (
        _pyplot().figure(figsize=(columns * 0.7, len(rows) * 0.75)) if figure is None else figure
    )
    grid = figure.subplots(len(rows), columns, squeeze=False)
    scale = Scale.of(values, kind)
    for k, (axes, row) in enumerate(zip(grid, rows, strict=True)):
        for ax in axes:
            ax.set_axis_off()
        for ax, i in zip(axes, row, strict=False):
            _draw(ax, values[i], kind, scale, _colour(k) if k < fitted.n_clusters_ else ODD)
        word = str(k) if k < fitted.n_clusters_ else "outliers"
        axes[0].text(-0.15, 0.5, word, transform=axes[0].transAxes, ha="right", va="center")
    return figure


def _draw(ax: Any, sample: np.ndarray, kind: str, scale: Scale, colour: str) -> None:
    if kind == "lines":
        ax.plot(sample.T, color=colour, linewidth=0.8)
        return
    low, high = float(scale.low), float(scale.high)
    if sample.ndim == 3:
        ax.imshow(np.clip((np.nan_to_num(sample) - low) / (high - low), 0, 1))
        return
    cmap = "RdBu_r" if scale.diverging else ("gray" if kind == "picture" else "viridis")
    ax.imshow(sample, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")


def _pyplot() -> Any:
    return optional("matplotlib.pyplot", "a figure", "plot")


def _axes(ax: Any) -> Any:
    return _pyplot().subplots()[1] if ax is None else ax


def _colour(k: int) -> Any:
    return _pyplot().get_cmap("tab20")(k % 20)


def _check(fitted: Any, attribute: str, what: str) -> None:
    if not hasattr(fitted, attribute):
        msg = f"estimator must be fitted and have {what}, got {type(fitted).__name__}"
        raise ValueError(msg)


def _check_clusterer(fitted: Any) -> None:
    if not isinstance(fitted, SubspaceClusterer):
        msg = f"estimator must be a clusterer of tubal, got {type(fitted).__name__}"
        raise ValueError(msg)
    _check(fitted, "labels_", "clusters")
