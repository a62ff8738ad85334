"""Ward's clustering by rounds of mutual neighbours.

Ward's method merges the two clusters whose union adds least to the sum of squares,
`||c_a - c_b||^2 / (1 / n_a + 1 / n_b)` for means c and sizes n. A merge never brings two clusters
closer to a third (the cost is reducible), so any two that are each other's nearest will be merged,
whatever happens elsewhere: all such pairs can be merged at once. After some thirty rounds the whole
tree is known, from about `2 n^2` costs; no table of all of them is kept.

Reference: F. Murtagh, "A survey of recent advances in hierarchical clustering algorithms", The
Computer Journal 26 (1983).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components

from tubal._threads import serial_blas

ROWS = 128
"""Costs of so many clusters with all others are computed at a time."""

SMALL = 500
"""Up to so many points SciPy's chains of neighbours are faster, and their table is small."""

ALIKE = 9
"""Rows that are equal to so many decimals are one point from the start."""


def ward(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the clusters of rows of a norm about one, numbered from 0 on.

    >>> ward(np.array([[0.0], [0.9], [0.1], [1.0]]), 2)
    array([0, 1, 0, 1])
    """
    return nested_ward(X, [n_clusters])[0]


def nested_ward(X: np.ndarray, numbers: Sequence[int]) -> list[np.ndarray]:
    """Return the clusters of one tree for several numbers of clusters."""
    points = np.round(X, ALIKE)
    if 2 <= len(X) <= SMALL:
        a, b, costs, _ = linkage(points, "ward").T
        distinct = 1 + int(np.count_nonzero(costs))
        merged, point = (a.astype(int), b.astype(int), costs), np.arange(len(X))
    else:
        _, first, point, count = np.unique(
            points, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        with serial_blas():
            merged = _tree(X[first], count.astype(float))
        distinct, point = len(first), point.reshape(-1)
    n = len(merged[0]) + 1
    cuts = (_cut(merged, n, min(number, distinct))[point] for number in numbers)
    return [np.unique(found, return_inverse=True)[1] for found in cuts]


def _tree(centre: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which two clusters each merge joined, and its cost; merge i makes cluster n + i."""
    n = len(centre)
    centre, name, height = centre.astype(float), np.arange(n), np.zeros(n)
    near, cost = _nearest(centre, size, name)
    merges = [np.zeros((3, 0))]
    made = n
    while len(centre) > 1:
        own = np.arange(len(centre))
        pair = np.flatnonzero((near[near] == own) & (own < near))
        if not len(pair):  # equal costs can close a circle
            pair = np.array([cost.argmin()])
        other = near[pair]
        # No less than the merges before it: rounding must not change their order.
        height[pair] = np.max([cost[pair], height[pair], height[other]], axis=0)
        merges.append(np.stack([name[pair], name[other], height[pair]]))
        total = size[pair] + size[other]
        centre[pair] += (size[other] / total)[:, None] * (centre[other] - centre[pair])
        size[pair], name[pair] = total, made + np.arange(len(pair))
        made += len(pair)
        changed = np.zeros(len(centre), bool)
        changed[pair] = changed[other] = True
        left = np.delete(own, other)
        stale = np.flatnonzero((changed | changed[near])[left])
        near, cost = np.searchsorted(left, near[left]), cost[left]
        centre, size, name, height = centre[left], size[left], name[left], height[left]
        near[stale], cost[stale] = _nearest(centre, size, stale)
    a, b, costs = np.concatenate(merges, axis=1)
    return a.astype(int), b.astype(int), costs


def _nearest(
    centre: np.ndarray, size: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for some clusters the one that is cheapest to merge with, and the cost."""
    squares, ones, share = np.sum(centre**2, axis=1), np.ones(len(centre)), 1 / size
    mine = np.column_stack([-2 * centre, squares, ones])
    theirs = np.column_stack([centre, ones, squares]).T.copy()
    near, cost = np.zeros(len(rows), int), np.zeros(len(rows))
    if len(centre) < 2:
        return near, cost
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        costs = mine[part] @ theirs
        costs /= share + share[part, None]
        every = np.arange(len(part))
        costs[every, part] = np.inf
        best = costs.argmin(axis=1)
        near[start : start + ROWS], cost[start : start + ROWS] = best, costs[every, best]
    return near, cost


def _cut(merged: tuple[np.ndarray, np.ndarray, np.ndarray], n: int, n_clusters: int) -> np.ndarray:
    """Return the components after the cheapest merges, until `n_clusters` are left."""
    a, b, costs = merged
    done = np.argsort(costs, kind="stable")[: max(0, n - n_clusters)]
    made, ends = np.tile(n + done, 2), np.concatenate([a[done], b[done]])
    edges = scipy.sparse.coo_array((np.ones(len(made)), (ends, made)), shape=(2 * n, 2 * n))
    return connected_components(edges, directed=False)[1][:n]
