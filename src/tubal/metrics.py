"""Scores of clusterings, detections and recovered tensors against the truth.

Labels follow one convention: -1 among the true labels marks an outlier, -1 among the predicted ones
a sample that was removed as one. Clusterings are judged on the normal samples alone, those whose
true label is not -1, and a normal sample that was removed counts against the method: "these samples
are given wrong labels" (T. Wu, "Robust Data Clustering with Outliers via Transformed Tensor
Low-Rank Representation", AISTATS 2024, section 6.2; "the paper" below). An outlier that was put in
a cluster does not count: that is for `outlier_auc` and `outlier_f1` to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from tubal.algebra import slice_adjoint, slice_svd
from tubal.input import Samples, read, to_numpy
from tubal.reduction import slices
from tubal.solvers import Factored
from tubal.transforms import Transform, resolve, same_transform

__all__ = [
    "clustering_accuracy",
    "match_labels",
    "nmi",
    "outlier_auc",
    "outlier_f1",
    "purity",
    "relative_error",
    "row_space_error",
    "support_distance",
]

_AVERAGES: dict[str, Callable[[float, float], float]] = {
    "min": min,
    "geometric": lambda a, b: (a * b) ** 0.5,
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
}


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Share of the normal samples whose cluster is the one matched with their class (ACC).

    Classes and clusters are matched one to one, so that as many samples as possible agree. A
    cluster beyond the number of classes is matched with none; removed samples are errors.

    Parameters
    ----------
    labels_true : integer array of shape (n_samples,)
        -1 marks an outlier, which is left out.
    labels_pred : integer array of shape (n_samples,)
        -1 marks a sample that was removed.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    Of four normal samples two are in the right cluster, one in the wrong one, one was removed:

    >>> clustering_accuracy([0, 0, 1, 1, -1], [7, 7, 7, -1, 3])
    0.5
    """
    truth, found = _normal(labels_true, labels_pred)
    clusters = _table(truth, found)[:, :-1]
    matched = linear_sum_assignment(clusters, maximize=True)
    return float(clusters[matched].sum() / len(truth))


def match_labels(labels_true: Any, labels_pred: Any) -> np.ndarray:
    """Give clusters the labels of the classes that `clustering_accuracy` matches them with.

    Clusters without a class get new labels, after the largest true one; -1 stays -1.

    >>> match_labels([0, 0, 1, 1, -1], [7, 7, 4, -1, 5])
    array([ 0,  0,  1, -1,  2])
    """
    truth, found = _normal(labels_true, labels_pred)
    pred = _labels(labels_pred, "labels_pred")
    classes, clusters = np.unique(truth), np.unique(found[found >= 0])
    rows, columns = linear_sum_assignment(_table(truth, found)[:, :-1], maximize=True)
    names = {-1: -1}
    names.update(zip(clusters[columns].tolist(), classes[rows].tolist(), strict=True))
    for label in np.unique(pred).tolist():
        names.setdefault(label, max(*names.values(), *classes.tolist()) + 1)
    return np.array([names[label] for label in pred.tolist()])


def purity(labels_true: Any, labels_pred: Any) -> float:
    """Share of the normal samples that belong to the commonest class of their cluster (PUR).

    Removed samples are in no cluster and never count as correct. Purity grows with the number of
    clusters: compare it only between clusterings with the same number.

    Parameters
    ----------
    labels_true, labels_pred : integer array of shape (n_samples,)
        As in `clustering_accuracy`.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> purity([0, 0, 0, 1, 1, 1], [0, 0, 2, 2, 2, -1])
    0.6666666666666666
    """
    truth, found = _normal(labels_true, labels_pred)
    clusters = _table(truth, found)[:, :-1]
    return float(clusters.max(axis=0).sum() / len(truth))


def nmi(labels_true: Any, labels_pred: Any, *, average_method: str = "geometric") -> float:
    """Normalised mutual information of classes and clusters, on the normal samples (NMI).

    `I(classes, clusters) / mean(H(classes), H(clusters))`. Removed samples count as one more
    cluster in the entropy, but this cluster tells nothing: its share of the mutual information,
    `p KL(classes among the removed || classes)`, is left out. Two readings of the paper's "wrong
    labels" were turned down because removing samples would pay: as one ordinary cluster, removing
    exactly one class would be perfect, and as a cluster each, removing everything would score high.
    The value is at most that of the first reading, which is scikit-learn's on the same labels, and
    equal to it when nothing was removed.

    Parameters
    ----------
    labels_true, labels_pred : integer array of shape (n_samples,)
        As in `clustering_accuracy`.
    average_method : {"min", "geometric", "arithmetic", "max"}
        The mean of the two entropies. The paper cites Vinh, Epps and Bailey (JMLR 11, 2010), who
        list all four, and does not say which; the default is their NMI_sqrt. scikit-learn's default
        is "arithmetic". The four differ little when classes and clusters have similar sizes.

    Returns
    -------
    float in [0, 1]
        1 for one class in one cluster.

    Examples
    --------
    >>> round(nmi([0, 0, 1, 1], [5, 5, 3, 3]), 12), nmi([0, 0, 1, 1], [5, 3, 5, 3])
    (1.0, 0.0)
    >>> round(nmi([0, 0, 1, 1], [5, 5, -1, -1]), 12)
    0.5
    """
    if average_method not in _AVERAGES:
        msg = f"average_method must be one of {list(_AVERAGES)}, got {average_method!r}"
        raise ValueError(msg)
    truth, found = _normal(labels_true, labels_pred)
    joint = _table(truth, found) / len(truth)
    classes, clusters = joint.sum(axis=1), joint.sum(axis=0)
    entropies = _entropy(classes), _entropy(clusters)
    if max(entropies) == 0:
        return float(clusters[-1] == 0)
    mean = _AVERAGES[average_method](*entropies)
    told = joint[:, :-1]
    ratios = told / np.where(told > 0, np.outer(classes, clusters[:-1]), 1)
    information = np.sum(told * np.log(np.where(told > 0, ratios, 1)))
    return float(np.clip(information / mean, 0, 1)) if mean > 0 else 0.0


def outlier_auc(outliers_true: Any, scores: Any) -> float:
    """Area under the ROC curve: how often an outlier has a higher score than a normal sample.

    Ties count one half, so a decision (bool scores) is worth the mean of its two rates of success.

    Parameters
    ----------
    outliers_true : bool array, or integer labels with -1 for outliers, of shape (n_samples,)
    scores : array of shape (n_samples,)
        Higher means more of an outlier.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> outlier_auc([True, False, True, False], [0.9, 0.1, 0.4, 0.4])
    0.875
    """
    truth = _flags(outliers_true, "outliers_true")
    values = _scores(scores)
    _check_lengths(outliers_true=truth, scores=values)
    m, n = int(truth.sum()), len(truth)
    if m in (0, n):
        msg = f"outliers_true must hold outliers and normal samples, got {m} outliers of {n}"
        raise ValueError(msg)
    ranks = rankdata(values)
    return float((ranks[truth].sum() - m * (m + 1) / 2) / (m * (n - m)))


def outlier_f1(outliers_true: Any, outliers_pred: Any) -> float:
    """Harmonic mean of precision and recall of a decision, with outliers as the positives.

    1 when there are no outliers and none were found.

    Parameters
    ----------
    outliers_true, outliers_pred : bool array, or integer labels with -1 for outliers

    Examples
    --------
    >>> outlier_f1([True, True, False, False], [True, False, True, False])
    0.5
    """
    truth, found = _two_flags(outliers_true, outliers_pred)
    counted = int(truth.sum() + found.sum())
    return 2 * int((truth & found).sum()) / counted if counted else 1.0


def support_distance(outliers_true: Any, outliers_pred: Any) -> int:
    """Hamming distance of two sets of outliers: the number of samples in only one of them.

    The last column of the paper's Tables 1-3, `dist(Theta_0, Theta)`.

    Parameters
    ----------
    outliers_true, outliers_pred : bool array, or integer labels with -1 for outliers

    Examples
    --------
    >>> support_distance([True, True, False, False], [0, -1, -1, 3])
    2
    """
    truth, found = _two_flags(outliers_true, outliers_pred)
    return int((truth ^ found).sum())


def row_space_error(
    clean: Any,
    recovered: Any,
    transform: Any = "dft",
    *,
    keep: Any = None,
    rank: int | None = None,
    rtol: float | None = None,
) -> float:
    """Relative distance of two row spaces, `||P_V0 - P_V||_F / ||P_V0||_F`.

    The second column of errors in the paper's Tables 1-3. `P_V = V * V^H` projects onto the row
    space of a tensor `U * S * V^H`: what its samples, as columns, have in common. V0 belongs to
    `clean`; V to `recovered`, either a tensor of samples or the coefficients `Z` of a solution,
    whose column space it then is (Theorem 2 of the paper says that these agree). In slices of lower
    rank than others only directions with singular values above the tolerance count, where the
    skinny t-SVD would fill up with arbitrary ones. No n2 x n2 x n3 array is formed.

    Parameters
    ----------
    clean : array of shape (n_samples, n1, n3)
        Zero for outliers. Missing entries are not accepted, here and in `recovered`.
    recovered : array of shape (n_samples, m1, n3), or Factored
        `solution.L` or `solution.Z`. With `solution.Z` the data must have been its own dictionary.
    transform : str, matrix or Transform
        One that is drawn or fitted must be resolved once and passed as an object.
    keep : bool array of shape (n_samples,) or None
        Samples to compare; the others are set to zero in both, and so are their rows and columns of
        `Z`. None: all. The released code of the paper keeps the samples not taken for outliers, and
        as many directions as `clean` has (`rank`).
    rank : int or None
        Keep at most so many directions in each slice, those of the largest singular values. None:
        all above the tolerance.
    rtol : float or None
        Singular values count above `rtol` times the largest of all slices. None: the rank rule of
        `tubal.algebra`, right for exact data; a solution found to a tolerance needs a larger one.

    Returns
    -------
    float
        0 for equal spaces, sqrt(2) for orthogonal ones of equal rank.

    Examples
    --------
    >>> clean = np.array([[[1.0, 0.0]], [[2.0, 0.0]], [[0.0, 0.0]]])
    >>> round(row_space_error(clean, -3 * clean), 12)
    0.0
    >>> round(row_space_error(clean, clean[::-1]), 3)  # two lines with cosine 4/5
    0.849
    """
    data = read(clean, name="clean", allow_missing=False, min_samples=1)
    plan = _plan(transform, data.sizes)
    kept = _keep(keep, data.n_samples)
    V0 = _basis(_sample_rows(data, plan) * kept, plan, rank, rtol)
    size = _energy(V0, plan)
    if size == 0:
        msg = "clean is zero in the samples compared, so it has no row space"
        raise ValueError(msg)
    if isinstance(recovered, Factored):
        rows = _coefficient_rows(recovered, plan, kept)
    else:
        rows = _sample_rows(_matching(recovered, data), plan)
    V = _basis(rows * kept, plan, rank, rtol)
    # ||P - Q||^2 = ||(I - Q) V0||^2 + ||(I - P) V||^2, without the cancellation of r + r - 2 <P, Q>
    return float(np.sqrt((_outside(V0, V, plan) + _outside(V, V0, plan)) / size))


def relative_error(clean: Any, recovered: Any, keep: Any = None) -> float:
    """Relative distance `||clean - recovered||_F / ||clean||_F` over some of the samples.

    The third column of the paper's Tables 1-3 by its heading. Their values are something else: the
    released code (example_synthetic_complete.m) takes the squared ratio of each sample, and the
    mean of these.

    Parameters
    ----------
    clean, recovered : array of shape (n_samples, n1, n3)
        Or any other shape of samples, without missing entries.
    keep : bool array of shape (n_samples,) or None
        Samples to compare, such as `~data.outliers`. None: all.

    Examples
    --------
    >>> relative_error([[3.0, 4.0], [0.0, 0.0]], [[3.0, 3.0], [9.0, 9.0]], keep=[True, False])
    0.2
    """
    truth, found = (
        read(X, name=name, allow_missing=False, min_samples=1)
        for name, X in (("clean", clean), ("recovered", recovered))
    )
    if truth.values.shape != found.values.shape:
        shapes = tuple(truth.values.shape), tuple(found.values.shape)
        msg = f"clean and recovered must have one shape, got {shapes[0]} and {shapes[1]}"
        raise ValueError(msg)
    kept = _keep(keep, truth.n_samples)
    A, B = to_numpy(truth.values)[kept], to_numpy(found.values)[kept]
    size = np.linalg.norm(A)
    if size == 0:
        msg = "clean is zero in the samples compared, so no error is relative to it"
        raise ValueError(msg)
    return float(np.linalg.norm(A - B) / size)


# ---- labels and flags ---------------------------------------------------------------------------


def _vector(values: Any, name: str) -> np.ndarray:
    vector = to_numpy(values)
    if vector.ndim != 1 or len(vector) == 0:
        msg = f"{name} must have one value for each sample, got shape {vector.shape}"
        raise ValueError(msg)
    return vector


def _labels(values: Any, name: str) -> np.ndarray:
    labels = _vector(values, name)
    whole = labels.dtype.kind in "biu"
    if labels.dtype.kind == "f":
        whole = bool(np.all(np.isfinite(labels)) and np.all(labels == np.round(labels)))
    if not whole:
        msg = (
            f"{name} must be whole numbers, got dtype {labels.dtype} with {labels[0]!r} first; "
            f"np.unique({name}, return_inverse=True)[1] numbers the classes of other labels"
        )
        raise ValueError(msg)
    labels = labels.astype(np.int64)
    if labels.min() < -1:
        msg = f"{name} must be -1 (outlier) or not negative, got {int(labels.min())}"
        raise ValueError(msg)
    return labels


def _flags(values: Any, name: str) -> np.ndarray:
    flags = _vector(values, name)
    if flags.dtype == bool:
        return flags
    labels = _labels(flags, name)
    if labels.max() == 1 and labels.min() == 0:
        msg = (
            f"{name} holds the numbers 0 and 1, which may be flags or labels of two clusters: "
            f"pass {name}.astype(bool) or {name} == -1"
        )
        raise ValueError(msg)
    return labels == -1


def _two_flags(outliers_true: Any, outliers_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    truth = _flags(outliers_true, "outliers_true")
    found = _flags(outliers_pred, "outliers_pred")
    _check_lengths(outliers_true=truth, outliers_pred=found)
    return truth, found


def _scores(values: Any) -> np.ndarray:
    scores = _vector(values, "scores")
    if scores.dtype.kind not in "biuf":
        msg = f"scores must be real numbers, got dtype {scores.dtype}"
        raise ValueError(msg)
    missing = np.isnan(scores)
    if missing.any():
        first = int(missing.argmax())
        msg = f"scores holds {int(missing.sum())} NaN, the first at index {first}"
        raise ValueError(msg)
    return scores


def _check_lengths(**vectors: np.ndarray) -> None:
    (a, first), (b, second) = vectors.items()
    if len(first) != len(second):
        msg = f"{a} and {b} must have one length, got {len(first)} and {len(second)}"
        raise ValueError(msg)


def _normal(labels_true: Any, labels_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both labels of the samples that are no true outliers."""
    truth, found = _labels(labels_true, "labels_true"), _labels(labels_pred, "labels_pred")
    _check_lengths(labels_true=truth, labels_pred=found)
    normal = truth >= 0
    if not normal.any():
        msg = f"labels_true holds no normal sample: all {len(truth)} are -1"
        raise ValueError(msg)
    return truth[normal], found[normal]


def _table(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Count samples by class and cluster; the last column counts the removed ones."""
    classes, i = np.unique(truth, return_inverse=True)
    clusters = np.unique(found[found >= 0])
    j = np.where(found >= 0, np.searchsorted(clusters, found), len(clusters))
    shape = len(classes), len(clusters) + 1
    return np.bincount(i * shape[1] + j, minlength=shape[0] * shape[1]).reshape(shape)


def _entropy(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(abs(np.sum(p * np.log(p))))


# ---- row spaces ---------------------------------------------------------------------------------


def _plan(transform: Any, sizes: tuple[int, ...]) -> Transform:
    plan = resolve(transform, sizes)
    if plan is not transform and not plan.reproducible:
        msg = (
            f"transform {transform!r} would be drawn anew: pass the object that the tensors were "
            "made with, such as solution.Z.transform"
        )
        raise ValueError(msg)
    return plan


def _matching(recovered: Any, clean: Samples) -> Samples:
    data = read(recovered, name="recovered", allow_missing=False, min_samples=1)
    if (data.n_samples, data.sizes) != (clean.n_samples, clean.sizes):
        msg = (
            "recovered must agree with clean in all axes but the second, got shapes "
            f"{tuple(data.values.shape)} and {tuple(clean.values.shape)}"
        )
        raise ValueError(msg)
    return data


def _sample_rows(data: Samples, plan: Transform) -> np.ndarray:
    """Return slices (K, n1, n2) whose rows span the row space."""
    return to_numpy(slices(plan, data.values))


def _coefficient_rows(Z: Factored, plan: Transform, kept: np.ndarray) -> np.ndarray:
    """Return slices (K, r, n2) whose rows span the space of the kept columns of Z, as `Z^H` does.

    Smaller than `Z^H`, and with its singular values.
    """
    n = len(kept)
    if not same_transform(Z.transform, plan):
        msg = f"transform is {plan!r}, but recovered was found under {Z.transform!r}"
        raise ValueError(msg)
    if Z.left is None or Z.shape[0] != n:
        msg = (
            f"recovered holds coefficients on another dictionary than the {n} samples (shape "
            f"{Z.shape}): pass solution.L instead of solution.Z"
        )
        raise ValueError(msg)
    left, core = to_numpy(Z.left), to_numpy(Z.core)[:, :, kept]
    # Z = left core = left R^H Q^H has the column space of left R^H, for core^H = Q R.
    R = np.linalg.qr(slice_adjoint(core), mode="r")
    return slice_adjoint(left @ slice_adjoint(R))


def _basis(rows: np.ndarray, plan: Transform, rank: int | None, rtol: float | None) -> np.ndarray:
    """Return orthonormal bases (K, n2, q) of the row spaces; unused columns are zero."""
    _check_rank(rank, rtol)
    _, s, Vh = slice_svd(plan, rows)
    rtol = max(rows.shape) * np.finfo(s.dtype).eps if rtol is None else rtol
    counts = (s > rtol * s.max()) & (np.arange(s.shape[1]) < (rank or s.shape[1]))
    return slice_adjoint(Vh * counts[..., None])


def _check_rank(rank: Any, rtol: Any) -> None:
    whole = isinstance(rank, (int, np.integer)) and not isinstance(rank, bool)
    if rank is not None and not (whole and rank > 0):
        msg = f"rank must be a positive integer or None, got {rank!r}"
        raise ValueError(msg)
    if rtol is not None and not 0 <= rtol < 1:
        msg = f"rtol must lie in [0, 1) or be None, got {rtol!r}"
        raise ValueError(msg)


def _outside(V: np.ndarray, W: np.ndarray, plan: Transform) -> float:
    """Energy of V outside the space of W."""
    return _energy(V - W @ (slice_adjoint(W) @ V), plan)


def _energy(A: np.ndarray, plan: Transform) -> float:
    return float(plan.weights @ np.sum(np.abs(A) ** 2, axis=(1, 2)))


def _keep(keep: Any, n: int) -> np.ndarray:
    if keep is None:
        return np.ones(n, dtype=bool)
    kept = to_numpy(keep)
    if kept.dtype != bool or kept.shape != (n,):
        msg = (
            f"keep must be a bool array of shape ({n},), one flag for each sample, "
            f"got dtype {kept.dtype} and shape {kept.shape}"
        )
        raise ValueError(msg)
    return kept
