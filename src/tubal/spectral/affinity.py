"""What comes in: an affinity, checked once; and the modularity of a partition of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def check_affinity(affinity: Any) -> Any:
    """Return a checked affinity as a CSR array of doubles, exactly symmetric, no stored zeros.

    >>> check_affinity([[0, 1], [2, 0]])
    Traceback (most recent call last):
    ValueError: affinity must be symmetric, differs from its transpose by 1
    """
    W = affinity if scipy.sparse.issparse(affinity) else np.asarray(affinity)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] == 0:
        msg = f"affinity must be a square n x n array, n >= 1, got shape {W.shape}"
        raise ValueError(msg)
    if W.dtype.kind not in "fiub":
        msg = f"affinity must hold real numbers, got {W.dtype}"
        raise ValueError(msg)
    # Rounding of the type it came in; exact for integers.
    precision = float(np.finfo(W.dtype).eps) ** (2 / 3) if W.dtype.kind == "f" else 0.0
    W = scipy.sparse.csr_array(W, dtype=float, copy=True)
    W.sum_duplicates()
    _check_weights(W.data)
    return _symmetric(W, precision)


def _check_weights(weights: np.ndarray) -> None:
    if not np.isfinite(weights.sum()):
        msg = "affinity must be finite, and its sum too: it has NaN, infinite or too large entries"
        raise ValueError(msg)
    if weights.min(initial=0.0) < 0:
        msg = f"affinity must be non-negative, smallest entry is {weights.min():.3g}"
        raise ValueError(msg)


def _symmetric(W: Any, precision: float) -> Any:
    skew = abs(W - W.T).max()
    if skew > precision * W.max():
        msg = f"affinity must be symmetric, differs from its transpose by {skew:.3g}"
        raise ValueError(msg)
    W = scipy.sparse.csr_array((W + W.T) / 2 if skew > 0 else W)
    W.eliminate_zeros()
    return W


def check_count(name: str, count: Any, n: int) -> int:
    """Return an integer from 1 to n."""
    integer = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if not integer or not 1 <= count <= n:
        msg = f"{name} must be an integer from 1 to {n}, the number of vertices, got {count!r}"
        raise ValueError(msg)
    return int(count)


SPARSE = 0.25


def is_sparse(W: Any) -> bool:
    """Whether vertices are tied to few others: at most a quarter of all possible edges.

    Else every vertex is tied to every cluster, and there are no dense places.
    """
    return bool(W.nnz <= SPARSE * W.shape[0] ** 2)


def modularity(affinity: Any, labels: Any) -> float:
    """Return Newman's modularity of a partition of a weighted graph.

    `Q = sum_ij (W_ij - d_i d_j / w) [labels i and j agree] / w`, with `w = sum_ij W_ij`; zero for a
    graph without edges.

    >>> modularity(np.kron(np.eye(2), np.ones((3, 3))), [0, 0, 0, 1, 1, 1])
    0.5
    """
    W = check_affinity(affinity)
    labels = np.asarray(labels)
    if labels.shape != (W.shape[0],):
        msg = f"labels must be one for each of {W.shape[0]} vertices, got shape {labels.shape}"
        raise ValueError(msg)
    return modularity_of(W, np.unique(labels, return_inverse=True)[1])


def modularity_of(W: Any, labels: np.ndarray) -> float:
    """Return the modularity for a checked affinity and labels from 0 on."""
    degrees = W.sum(axis=1)
    total = degrees.sum()
    if total == 0:
        return 0.0
    edges = W.tocoo()
    within = edges.data[labels[edges.row] == labels[edges.col]].sum()
    volumes = np.bincount(labels, weights=degrees) / total
    return float(within / total - volumes @ volumes)
