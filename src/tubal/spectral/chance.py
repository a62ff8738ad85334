"""The number of clusters, by what partitions show beyond chance.

Every graph has partitions of high modularity, and few clusters are found again more easily than
many. So both are compared with those of a null model, on which everything is done in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from tubal.spectral.affinity import modularity
from tubal.spectral.assignment import DiffusionWard

STEP = 1.1
"""Ratio of successive numbers of clusters that are tried. It sets the precision of the answer."""

FEWEST_SAMPLES = 5
"""Samples that a cluster must have on average."""

MOST_CANDIDATES, LEAST_CANDIDATES = 5, 3

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
Profile = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Count:
    """An estimated number of clusters.

    Attributes
    ----------
    n_clusters : int
    confidence : float
        Evidence times stability of the answer, from 0 to 1.
    candidates : dict of int to float
        Plausible numbers of clusters, the answer first, with their shares of the support.
    """

    n_clusters: int
    confidence: float
    candidates: dict[int, float]


def count_beyond_chance(
    tables: Sequence[tuple[np.ndarray, np.ndarray]],
    control: np.ndarray,
    graph: Callable[[np.ndarray], Any],
    parts: Sequence[np.ndarray],
    *,
    seed: int = 0,
    run: Run | None = None,
) -> Count:
    """Return the number of clusters whose partitions have the largest support.

    The support of k clusters is `(Q e)^2 s`. Q is the modularity of the partition, and the evidence
    e is what it has beyond the modularity of the null model, `(Q - Q0) / (1 - 1/k - Q0)`. The
    stability s is the mean adjusted Rand index with the partitions of parts of the samples, beyond
    that of the null model, `(A - A0) / (1 - A0)`. The support is averaged over several tables of
    similarities. The answer is one cluster when another draw of the null model has as much support
    as the first table.

    Parameters
    ----------
    tables : sequence of pairs of arrays of shape (n, n)
        Similarities of the samples, and similarities under the null model.
    control : array of shape (n, n)
        Similarities under another draw of the null model of the first table.
    graph : callable
        Returns the affinity for a table of similarities.
    parts : sequence of int arrays
        Samples of each part.
    seed : int
        Of the eigensolver.
    run : callable or None
        Maps a function over items, perhaps in threads; None does so in turn.

    Returns
    -------
    Count
    """
    n = len(control)
    numbers = numbers_of_clusters(n)
    if not numbers:
        return Count(1, 0.0, {1: 1.0})
    every = (np.arange(n), *parts)
    largest = 1 - 1 / np.array(numbers)

    def profile(table: np.ndarray) -> Profile:
        found = []
        for part in every:
            W = graph(table[np.ix_(part, part)])
            found.append((W, DiffusionWard((12,)).nested(W, numbers, seed)))
        (W, whole), *others = found
        agreement = [
            [adjusted_rand_score(one[part], two) for one, two in zip(whole, labels, strict=True)]
            for part, (_, labels) in zip(parts, others, strict=True)
        ]
        return np.array([modularity(W, labels) for labels in whole]), np.mean(agreement, axis=0)

    def support(observed: Profile, null: Profile) -> np.ndarray:
        """Return the support and the confidence of each number."""
        evidence = beyond_chance(observed[0], null[0], largest)
        stability = beyond_chance(observed[1], null[1], np.ones(len(numbers)))
        e, s = np.clip(evidence, 0, 1), np.clip(stability, 0, 1)
        return np.stack([(np.clip(observed[0], 0, 1) * e) ** 2 * s, e * s])

    wanted = [control, *(table for pair in tables for table in pair)]
    other, *profiles = run(profile, wanted) if run else [profile(table) for table in wanted]
    each = [support(*profiles[i : i + 2]) for i in range(0, len(profiles), 2)]
    if each[0][0].max() <= support(other, profiles[1])[0].max():
        return Count(1, 1 - float(each[0][1].max()), {1: 1.0})
    return _answer(numbers, *np.mean(each, axis=0))


def numbers_of_clusters(n: int) -> list[int]:
    """Return the numbers of clusters that are tried for n samples.

    >>> numbers_of_clusters(50), numbers_of_clusters(400)[-3:]
    ([2, 3, 4, 5, 6, 7, 8, 9, 10], [62, 68, 75])
    """
    numbers, k = [], 2
    while k <= n // FEWEST_SAMPLES:
        numbers.append(k)
        k = max(k + 1, round(STEP * k))
    return numbers


def beyond_chance(value: np.ndarray, chance: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return what values have beyond those of the null model, over what they could have.

    >>> beyond_chance(np.array([0.75]), np.array([0.5]), np.array([1.0]))
    array([0.5])
    """
    excess: np.ndarray = (value - chance) / np.maximum(largest - chance, 1e-9)
    return excess


def _answer(numbers: list[int], support: np.ndarray, confidence: np.ndarray) -> Count:
    """Return the number with the largest support; peaks of the support are candidates."""
    order = np.argsort(-support, kind="stable")
    padded = np.concatenate([[-1.0], support, [-1.0]])
    peaks = (support >= padded[:-2]) & (support > padded[2:])
    listed = [int(i) for i in order if peaks[i]][:MOST_CANDIDATES]
    listed += [int(i) for i in order if i not in listed][: max(0, LEAST_CANDIDATES - len(listed))]
    listed.sort(key=lambda i: -support[i])
    total = max(float(support[listed].sum()), 1e-9)
    shares = {numbers[i]: float(support[i]) / total for i in listed}
    return Count(numbers[order[0]], float(confidence[order[0]]), shares)
