"""From a fitted estimator to what a reader wants to see of it; no HTML here."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from tubal import __version__, spectral
from tubal.estimators import SubspaceClusterer, TensorCompleter, TensorOutlierDetector
from tubal.estimators.model import check_contamination
from tubal.estimators.summary import certificate_in_words, facts
from tubal.solvers import Check
from tubal.spectral.count import CONFIDENT

PACKAGES = ("numpy", "scipy", "scikit-learn")
LARGEST_MATRIX = 600  # pixels of the picture of the affinity


@dataclass(frozen=True, eq=False)
class Decision:
    """Which samples are outliers, and what became of the others.

    Attributes
    ----------
    scores : array of shape (n,)
        High for outliers.
    threshold : float
        Samples above it are outliers; infinite when none is looked for.
    clusters : int array of shape (n,)
        Cluster of each sample; for an outlier the one that it joins when it is taken back, -1 when
        that is none. Labels at a threshold t are `where(scores > t, -1, clusters)`, which is what
        `relabel(threshold=t, recut=False)` gives. For a detector all are 1.
    typicality : array of shape (n,)
        See `typicality`.
    """

    scores: np.ndarray
    threshold: float
    clusters: np.ndarray
    typicality: np.ndarray

    def labels(self, threshold: float | None = None) -> np.ndarray:
        """Return the labels at a threshold, by default at the present one."""
        level = self.threshold if threshold is None else threshold
        return np.where(self.scores > level, -1, self.clusters)


@dataclass(frozen=True, eq=False)
class Cut:
    """The graph that was cut into clusters.

    Attributes
    ----------
    n_clusters : int
    given : bool
        Whether the number was given, not estimated.
    confident : bool
        Whether an estimated number is more than a guess.
    matrix : array of shape (m, m)
        The affinity in [0, 1], ordered by cluster and typicality, m at most 600: each entry is the
        root of the mean of a block, relative to the strong ones.
    bounds : list of float
        Where clusters begin and end along the matrix, from 0 to 1.
    places : array of shape (n, 2)
        See `plane`; NaN for outliers of the cut.
    eigenvalues, gaps : arrays of shape (k + 1,) and (k,)
        See `spectrum`.
    """

    n_clusters: int
    given: bool
    confident: bool
    matrix: np.ndarray
    bounds: list[float]
    places: np.ndarray
    eigenvalues: np.ndarray
    gaps: np.ndarray


@dataclass(frozen=True, eq=False)
class Findings:
    """What there is to show of a fit.

    Attributes
    ----------
    method, title : str
        Name of the class, and the headline.
    names : list of str
        Of the samples.
    inputs, clean : arrays in the shape of X
        What was given, NaN where missing, and what was recovered.
    facts : list of pairs of str
        The findings in a few words.
    certificate : str
    decision : Decision or None
        None for a completer.
    cut : Cut or None
        None where there are no clusters.
    history : tuple of Check
        Empty where there is no iteration to show.
    parameters : dict
        All parameters of the fit, as text.
    code : str
        What fits the same model again.
    versions : dict
    """

    method: str
    title: str
    names: list[str]
    inputs: np.ndarray
    clean: np.ndarray
    facts: list[tuple[str, str]]
    certificate: str
    decision: Decision | None
    cut: Cut | None
    history: tuple[Check, ...]
    parameters: dict[str, str]
    code: str
    versions: dict[str, str]

    @property
    def missing(self) -> np.ndarray:
        """Number of missing entries of each sample."""
        return np.isnan(self.inputs).reshape(len(self.inputs), -1).sum(axis=1)


def examine(
    fitted: Any, *, names: Sequence[str] | None = None, title: str | None = None
) -> Findings:
    """Take from a fitted estimator what a report shows.

    Parameters
    ----------
    fitted : estimator
        A clusterer, `TensorOutlierDetector` or `TensorCompleter`, after a fit.
    names : sequence of str or None
        A name for each sample; numbers by default.
    title : str or None

    Returns
    -------
    Findings
    """
    kinds = (SubspaceClusterer, TensorOutlierDetector, TensorCompleter)
    if not isinstance(fitted, kinds):
        msg = f"estimator must be a fitted estimator of tubal, got {type(fitted).__name__}"
        raise ValueError(msg)
    check_is_fitted(fitted, "sample_shape_")
    inputs = fitted._inputs()
    clusterer = isinstance(fitted, SubspaceClusterer)
    method = type(fitted).__name__
    return Findings(
        method=method,
        title=_check_title(title, method),
        names=_check_names(names, len(inputs)),
        inputs=inputs,
        clean=fitted._completed if isinstance(fitted, TensorCompleter) else fitted.X_clean_,
        facts=facts(fitted),
        certificate=certificate_in_words(fitted),
        decision=None if isinstance(fitted, TensorCompleter) else _decision(fitted),
        cut=_cut(fitted) if clusterer else None,
        history=getattr(getattr(fitted, "solution_", None), "history", ()),
        parameters={name: _text(value) for name, value in vars(fitted._frozen).items()},
        code=code(fitted),
        versions=versions(),
    )


def typicality(fitted: SubspaceClusterer) -> np.ndarray:
    """Return how typical samples are of their clusters: the weight of their ties within it.

    The sum of `affinity_` over the other samples of the same cluster of the last cut. Outliers of
    the cut have no ties; they count as less typical the higher their score is, from -1 to 0.

    Parameters
    ----------
    fitted : SubspaceClusterer

    Returns
    -------
    array of shape (n_samples,)
    """
    cut, W = fitted._cut_labels, fitted.affinity_.tocoo()
    row, column = W.coords
    within = (cut[row] == cut[column]) & (cut[row] >= 0) & (row != column)
    weight = np.bincount(row[within], W.data[within], minlength=len(cut))
    rank = np.argsort(np.argsort(fitted.outlier_scores_, kind="stable"), kind="stable")
    return np.where(cut >= 0, weight, -rank / len(cut))


def plane(fitted: SubspaceClusterer) -> np.ndarray:
    """Return the spectral embedding seen from where its clusters lie apart, in two dimensions.

    Rows of `embedding_`, brought to unit norm as for the cut, are projected linearly, so that the
    means of the clusters come close to equally spaced points of a circle, neighbours in the graph
    beside each other (ridge regression: a direction in which the means hardly differ is not blown
    up). With two clusters the two eigenvectors themselves are shown, with one the eigenvector and
    the outlier score.

    Parameters
    ----------
    fitted : SubspaceClusterer

    Returns
    -------
    array of shape (n_samples, 2)
        NaN for outliers of the cut.
    """
    cut, k = fitted._cut_labels, fitted.n_clusters_
    places = np.full((len(cut), 2), np.nan)
    kept = cut >= 0
    if k == 1:
        places[kept] = np.stack([fitted.embedding_[kept, 0], fitted.outlier_scores_[kept]], axis=1)
        return places
    rows = fitted.embedding_[kept]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(norms > 0, norms, 1)
    if k == 2:
        places[kept] = rows
        return places
    members = _members(cut[kept], k)
    means = (members.T @ rows) / np.asarray(members.sum(axis=0)).reshape(-1, 1)
    angle = np.empty(k)
    angle[_tour(fitted)] = 2 * np.pi * np.arange(k) / k
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ridge = 0.05 * np.trace(means.T @ means) / k
    places[kept] = rows @ np.linalg.solve(means.T @ means + ridge * np.eye(k), means.T @ circle)
    return places


def spectrum(fitted: SubspaceClusterer) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of the Laplacian beyond the chosen number of clusters, and their gaps.

    A fit with a given number of clusters needs no more eigenvalues than that. Here there are about
    twice as many, so that one sees whether the number was a good one.

    Parameters
    ----------
    fitted : SubspaceClusterer

    Returns
    -------
    eigenvalues : array of shape (m + 1,)
        Ascending.
    gaps : array of shape (m,)
        `gaps[k - 1]` speaks for k clusters; see `tubal.spectral.relative_gaps`.
    """
    kept = fitted._cut_labels >= 0
    W = fitted.affinity_[kept][:, kept]
    n, k = W.shape[0], fitted.n_clusters_
    count = min(n, max(2 * k, k + 10) + 1)
    mu = fitted.eigenvalues_[:count]
    if len(mu) < count:
        mu = 1 - spectral.embed(W, count, random_state=fitted._seed).values
    components = int(connected_components(W, directed=False)[0])
    mu = mu if len(mu) > k else np.append(mu, 1.0)  # every sample a cluster: nothing comes after
    return mu, spectral.relative_gaps(mu, min(components, len(mu) - 1))


def affinity_picture(
    fitted: SubspaceClusterer, size: int = LARGEST_MATRIX
) -> tuple[np.ndarray, list[float]]:
    """Return the affinity ordered by cluster, small enough to be looked at.

    Within clusters the typical samples come first. With more samples than `size`, blocks are
    averaged. Values are roots, relative to the 99th percentile of those that are not zero: a sparse
    graph would look empty otherwise.

    Parameters
    ----------
    fitted : SubspaceClusterer
    size : int
        Largest number of rows.

    Returns
    -------
    picture : array of shape (m, m)
        Between 0 and 1.
    bounds : list of float
        Where clusters begin and end, from 0 to 1.
    """
    cut = fitted._cut_labels
    order = np.lexsort((-typicality(fitted), cut))
    order = order[cut[order] >= 0]
    n, m = len(order), min(len(order), size)
    position = np.full(len(cut), -1)
    position[order] = np.arange(n) * m // n
    W = fitted.affinity_.tocoo()
    row, column = (position[index] for index in W.coords)
    inside = (row >= 0) & (column >= 0)
    total = np.bincount(row[inside] * m + column[inside], W.data[inside], minlength=m * m)
    sizes = np.bincount(position[order], minlength=m)
    mean = total.reshape(m, m) / np.outer(sizes, sizes)
    strong = np.percentile(mean[mean > 0], 99) if (mean > 0).any() else 1.0
    ends = np.cumsum(np.bincount(cut[order], minlength=fitted.n_clusters_))
    return np.sqrt(np.clip(mean / strong, 0, 1)), [0.0, *(float(e) / n for e in ends)]


def code(fitted: Any) -> str:
    """Return Python code that fits the same model again, with what differs from the defaults."""
    name = type(fitted).__name__
    defaults = inspect.signature(type(fitted)).parameters
    given = {
        key: value
        for key, value in vars(fitted._frozen).items()
        if key in defaults and not _same(value, defaults[key].default)
    }
    homes = {(type(v).__module__, type(v).__name__) for v in given.values()}
    lines = [f"from {m} import {c}" for m, c in sorted(homes) if m.split(".")[0] == "tubal"]
    arguments = [f"{key}={_text(value)}" for key, value in given.items()]
    call = f"est = {name}({', '.join(arguments)})"
    if len(call) > 88:
        call = "\n".join([f"est = {name}(", *(f"    {part}," for part in arguments), ")"])
    shape = fitted._inputs().shape
    lines = [f"from tubal import {name}", *lines, "", call]
    lines.append(f"est.fit(X)  # X: array of shape {shape}{_holes(fitted)}")
    return "\n".join([*lines, *_later_decisions(fitted)])


def versions() -> dict[str, str]:
    """Return the versions that a result may depend on."""
    found = {"tubal": __version__, "Python": platform.python_version()}
    return {**found, **{name: version(name) for name in PACKAGES}}


def _decision(fitted: Any) -> Decision:
    scores = fitted.outlier_scores_
    if isinstance(fitted, SubspaceClusterer):
        clusters, typical = fitted._standing(), typicality(fitted)
    else:
        clusters, typical = np.ones(len(scores), dtype=int), -scores
    return Decision(scores, float(fitted.threshold_), clusters, typical)


def _cut(fitted: SubspaceClusterer) -> Cut:
    picture, bounds = affinity_picture(fitted)
    given = fitted._n_clusters_given is not None
    confident = fitted.n_clusters_confidence_ >= CONFIDENT
    return Cut(
        fitted.n_clusters_, given, confident, picture, bounds, plane(fitted), *spectrum(fitted)
    )


def _members(labels: np.ndarray, k: int) -> scipy.sparse.csr_array:
    n = len(labels)
    return scipy.sparse.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))


def _tour(fitted: SubspaceClusterer) -> np.ndarray:
    """Return an order of the clusters in which neighbours in the graph follow each other."""
    kept = fitted._cut_labels >= 0
    members = _members(fitted._cut_labels[kept], fitted.n_clusters_)
    between = (members.T @ fitted.affinity_[kept][:, kept] @ members).toarray()
    left, tour = set(range(1, len(between))), [0]
    while left:
        tour.append(max(left, key=lambda other: (between[tour[-1], other], -other)))
        left.remove(tour[-1])
    return np.array(tour)


def _later_decisions(fitted: Any) -> list[str]:
    """Return the calls of `relabel` that lead from the fit to what the estimator says now."""
    if isinstance(fitted, TensorCompleter):
        return []
    share = check_contamination(fitted._frozen.contamination)
    if isinstance(fitted, TensorOutlierDetector):
        moved = fitted.threshold_ != fitted._threshold(share)
        return [f"est.relabel(threshold={fitted.threshold_!r})"] if moved else []
    first = fitted._threshold(share, fitted._frozen.n_clusters)
    calls, count = [], fitted._n_clusters_given
    if fitted._cut_threshold != first or count != fitted._frozen.n_clusters:
        number = "" if count == fitted._frozen.n_clusters else f", n_clusters={count or 'auto'!r}"
        calls.append(f"est.relabel(threshold={_number(fitted._cut_threshold)}{number})")
    if fitted.threshold_ != fitted._cut_threshold:
        calls.append(f"est.relabel(threshold={_number(fitted.threshold_)}, recut=False)")
    return calls


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f"float('{value}')"


def _holes(fitted: Any) -> str:
    if fitted._observed is None:
        return ""
    return f", {int((~fitted._observed).sum())} entries NaN"


def _text(value: Any) -> str:
    """Return a parameter as it is written in code; an array by its shape."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"<{value.__qualname__}>"
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"<array of shape {tuple(shape)}>"


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return (
        isinstance(value, type(default))
        and isinstance(value, (str, int, float))
        and value == default
    )


def _check_title(title: Any, method: str) -> str:
    if title is None:
        return f"{method} report"
    if not isinstance(title, str) or not title.strip():
        msg = f"title must be a string or None, got {title!r}"
        raise ValueError(msg)
    return title


def _check_names(names: Any, n: int) -> list[str]:
    if names is None:
        return [str(i) for i in range(n)]
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
        msg = f"names must be a sequence of {n} strings or None, got {names!r}"
        raise ValueError(msg)
    if len(names) != n:
        msg = f"names must hold one name for each of the {n} samples, got {len(names)}"
        raise ValueError(msg)
    return [str(name) for name in names]
