"""Samples of a fit that come back: found by the values that they were given with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state

from tubal._threads import spans
from tubal.input import Samples

DIRECTIONS = 8
AT_ONCE = 2**22  # entries
SAME = 1e-6
"""Samples that differ by no more than this, over their norm, are the same."""


@dataclass(frozen=True, eq=False)
class Known:
    """The samples of a fit, each as its projections on a few random directions.

    A sample of the fit has helped to explain itself. When it comes back as a new one, its own row
    has to be left out, and it is best answered by what the fit said. It is to be found as it was
    given: completion may fill it in another way the second time, and at unit norm it could not be
    told from its multiples. The projections do for that, and the samples need not be kept a second
    time. Other samples have others; rounding, such as that of another precision or of a step
    before this one, hardly changes them.

    Attributes
    ----------
    places : array of shape (k, DIRECTIONS)
        Projections, each once.
    index : int array of shape (k,)
        The first sample of the fit at each place.
    exponent : int
        Places are divided by this power of two.
    """

    places: np.ndarray
    index: np.ndarray
    exponent: int

    @classmethod
    def of(cls, samples: Samples) -> Known:
        """Remember the samples of a fit, NumPy, as they were given."""
        places, exponents = _places(samples)
        top = int(exponents.max())
        places, index = np.unique(
            np.ldexp(places, exponents[:, None] - top), axis=0, return_index=True
        )
        return cls(places, index, top)

    def find(self, samples: Samples, observed: np.ndarray | None) -> np.ndarray:
        """Return for each sample the sample of the fit that is the same, else -1.

        `observed` tells the entries that the samples of the fit had, None for all.
        """
        places, exponents = _places(samples)
        above = np.minimum(exponents - self.exponent, 64)  # larger than all of the fit anyway
        places = np.ldexp(places, above[:, None])
        distance, nearest = KDTree(self.places).query(places)
        twins = self.index[nearest]
        same = distance <= SAME * np.linalg.norm(places, axis=1)
        same &= _same_entries(samples.observed, observed, twins)
        return np.where(same, twins, -1)


def _places(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return projections of samples and the powers of two that they were divided by before.

    Every sample has its own, since there is no norm to the largest numbers. What is missing counts
    as 1, which is larger than all that is there then.
    """
    n = samples.n_samples
    flat = samples.values.reshape(n, -1)
    seen = None if samples.observed is None else samples.observed.reshape(n, -1)
    directions = check_random_state(0).uniform(-1, 1, (flat.shape[1], DIRECTIONS))
    places, exponents = np.empty((n, DIRECTIONS)), np.empty(n, dtype=int)
    for part in spans(n, -(-flat.size // AT_ONCE)):
        x = flat[part].astype(float)
        exponents[part] = np.frexp(np.abs(x).max(axis=1))[1]
        x = np.ldexp(x, -exponents[part, None], out=x)
        if seen is not None:
            x[~seen[part]] = 1
        places[part] = x @ directions
    return places, exponents


def _same_entries(new: np.ndarray | None, old: np.ndarray | None, twins: np.ndarray) -> np.ndarray:
    """Return which samples have the entries that their twins have; None is a mask of all."""
    if new is None and old is None:
        return np.ones(len(twins), bool)
    mine = np.ones((1, 1), bool) if new is None else new.reshape(len(twins), -1)
    other = np.ones((1, 1), bool) if old is None else old.reshape(len(old), -1)[twins]
    same: np.ndarray = (mine == other).all(axis=1)
    return same
