"""Samples of a fit that are identical: they get one answer."""

from __future__ import annotations

import hashlib

import numpy as np

from tubal.input import Samples


def first_of_each(samples: Samples) -> np.ndarray:
    """Return for each sample the first one that has the same values and the same holes.

    >>> first_of_each(Samples(np.array([[1.0], [2.0], [1.0]]), None, True))
    array([0, 1, 0])
    """
    values = samples.values.reshape(samples.n_samples, -1)
    seen = None if samples.observed is None else samples.observed.reshape(values.shape)
    found: dict[bytes, int] = {}
    first = np.empty(len(values), dtype=np.intp)
    for i, row in enumerate(values):
        digest = hashlib.blake2b((row + 0.0).tobytes(), digest_size=16)  # -0 is 0
        if seen is not None:
            digest.update(seen[i].tobytes())
        first[i] = found.setdefault(digest.digest(), i)
    return first


def least(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Give identical samples the smallest of their scores.

    They differ by rounding, and where there are more of them than neighbours are asked for, by
    which of the others were asked.

    >>> least(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 0]))
    array([2., 1., 2.])
    """
    lowest = scores.copy()
    np.minimum.at(lowest, first, scores)
    return lowest[first]


def most_frequent(labels: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Give identical samples the label that most of them have, the rarest of equally many.

    A label that no samples would have is given to those of which most had it. Labels stay as they
    are where there are fewer different samples than labels.

    >>> most_frequent(np.array([1, 0, 1, 0, 2]), np.array([0, 0, 0, 3, 4]))
    array([1, 1, 1, 0, 2])
    """
    groups, inside = np.unique(first, return_inverse=True)
    kinds, places = np.unique(labels, return_inverse=True)
    if len(groups) == len(labels) or len(groups) < len(kinds):
        return labels
    counts = np.zeros((len(groups), len(kinds)))
    np.add.at(counts, (inside, places), 1)
    rare = 0.5 * (1 - counts.sum(axis=0) / len(labels))
    chosen = (counts + rare * (counts > 0)).argmax(axis=1)
    for kind in range(len(kinds)):
        if (chosen == kind).any():
            continue
        single = np.bincount(chosen, minlength=len(kinds))[chosen] == 1
        chosen[np.where(single, -1, counts[:, kind]).argmax()] = kind
    joined: np.ndarray = kinds[chosen][inside]
    return joined
