"""Moves of single vertices that raise the modularity of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

ROUNDS = 20
LEAST_GAIN = 1e-9
"""Over the degree of a vertex: smaller gains are rounding."""


def raise_modularity(W: Any, labels: np.ndarray) -> np.ndarray:
    """Move vertices to clusters they are tied to, as long as the modularity rises.

    With `t_ic` the weight that ties vertex i to cluster c (loops do not count), `d` the degrees,
    `v` the volumes of the clusters and `w` the sum of all degrees, moving i from a to b changes
    the modularity by `2/w` times

        (t_ib - d_i v_b / w) - (t_ia - d_i (v_a - d_i) / w).

    Those that gain most move first, and what one move changes counts for the next. Clusters are
    never emptied, so their number stays. These are the local moves of Blondel, Guillaume, Lambiotte
    and Lefebvre, "Fast unfolding of communities in large networks", J. Stat. Mech. (2008), from a
    given partition.

    Parameters
    ----------
    W : sparse array of shape (n, n)
        A checked affinity.
    labels : int array of shape (n,)
        From 0 on.

    Examples
    --------
    >>> W = scipy.sparse.csr_array(np.kron(np.eye(2), np.ones((4, 4))) + 0.1)
    >>> raise_modularity(W, np.array([0, 0, 0, 1, 1, 1, 1, 1]))
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    partition = _Partition(W, labels)
    if partition.total > 0:
        for _ in range(ROUNDS):
            if not sum(partition.move(i) for i in partition.restless()):
                break
    return partition.labels


class _Partition:
    """A partition of a graph, with what a move of a vertex changes."""

    def __init__(self, W: Any, labels: np.ndarray) -> None:
        self.W, self.labels = W, labels.copy()
        self.degrees = W.sum(axis=1)
        self.total = float(self.degrees.sum())
        self.loops = W.diagonal()
        self.sizes = np.bincount(labels)
        self.volumes = np.bincount(labels, weights=self.degrees)

    def restless(self) -> np.ndarray:
        """Return the vertices that would gain by a move of their own, the largest gain first."""
        n, d = len(self.labels), self.degrees
        member = scipy.sparse.csr_array((np.ones(n), self.labels, np.arange(n + 1)))
        ties = scipy.sparse.csr_array(self.W @ member)
        rows, at = np.repeat(np.arange(n), np.diff(ties.indptr)), ties.indices
        own = at == self.labels[rows]
        value = ties.data - d[rows] * (self.volumes[at] - own * d[rows]) / self.total
        value -= own * self.loops[rows]
        here = -d * (self.volumes[self.labels] - d) / self.total  # where nothing ties it
        here[rows[own]] = value[own]
        best = np.full(n, -np.inf)
        np.maximum.at(best, rows, value)
        gain = best - here
        found = np.flatnonzero(gain > LEAST_GAIN * d)
        return found[np.argsort(-gain[found], kind="stable")]

    def move(self, i: int) -> bool:
        """Move a vertex to the best cluster that it is tied to, if that is another one."""
        old, d = self.labels[i], self.degrees[i]
        if self.sizes[old] == 1:
            return False
        span = slice(self.W.indptr[i], self.W.indptr[i + 1])
        near = self.labels[self.W.indices[span]]
        ties = np.bincount(near, weights=self.W.data[span], minlength=len(self.volumes))
        tied = ties > 0
        ties[old] -= self.loops[i]
        value = ties - d * self.volumes / self.total
        value[old] += d * d / self.total
        new = int(np.where(tied, value, -np.inf).argmax())
        if value[new] - value[old] <= LEAST_GAIN * d:
            return False
        self.labels[i] = new
        self.sizes[[old, new]] += -1, 1
        self.volumes[[old, new]] += -d, d
        return True
