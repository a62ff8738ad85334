"""From scores to a threshold; nothing but the scores is known here."""

from __future__ import annotations

import numpy as np


def two_means(scores: np.ndarray) -> float:
    """Return the threshold of the best split of numbers into a lower and an upper group.

    It lies halfway between the groups; infinite when all numbers are equal.

    >>> two_means(np.array([1.0, 1.2, 5.0, 0.9]))
    3.1
    """
    x = np.sort(np.asarray(scores, dtype=float))
    n = len(x)
    if n < 2 or x[-1] - x[0] <= 1e-12 * abs(x[-1]):
        return float(np.inf)
    below = np.arange(1, n)
    sums = np.cumsum(x - x.mean())[:-1]  # centred: the means of the groups follow from it
    between = sums**2 * (1 / below + 1 / (n - below))
    between[x[1:] == x[:-1]] = -1  # equal numbers stay together
    cut = int(between.argmax())
    return float((x[cut] + x[cut + 1]) / 2)


def flagged_by_share(n_samples: int, share: float) -> int:
    """Return how many samples a share of outliers flags, when no scores are equal.

    So many lie above the quantile `1 - share`, as in scikit-learn: `share (n - 1)`, rounded up.
    What exceeds a whole number by rounding is no reason to flag one more.

    >>> flagged_by_share(4, 0.25), flagged_by_share(91, 0.3)
    (1, 27)
    """
    return int(np.ceil(round(share * (n_samples - 1), 9)))


def contamination_threshold(scores: np.ndarray, share: float) -> float:
    """Return the threshold that flags this share of the scores (ties are never flagged).

    >>> scores = np.array([1.0, 2.0, 3.0, 4.0])
    >>> contamination_threshold(scores, 0.25), contamination_threshold(scores, 0)
    (3.25, 4.0)
    """
    last = len(scores) - 1 - flagged_by_share(len(scores), share)  # of those that are kept
    quantile = float(np.percentile(scores, 100 * (1 - share)))
    return max(quantile, float(np.sort(scores)[last]))


def tail_quantile(scores: np.ndarray, share: float) -> float:
    """Return the number that a share of further scores exceeds, if their tail is exponential.

    An exponential law that has its 95 % quantile at q has the `1 - share` quantile at
    `q log(share) / log(.05)`. The 95 % quantile itself is there to be seen, even when outliers
    hide the end of the tail.

    >>> scores = -np.log(np.linspace(1e-6, 1, 10**6))
    >>> float(round(tail_quantile(scores, 0.01) / -np.log(0.01), 3))
    1.0
    """
    return float(np.percentile(scores, 95) * np.log(share) / np.log(0.05))


RARE = 0.01
"""Share of inliers that may be left out where their tail is estimated."""


def false_alarm_threshold(scores: np.ndarray, inliers: np.ndarray, false_alarms: float) -> float:
    """Return a threshold that inliers exceed rarely; at least half of the scores are below it.

    A score is flagged when the tail of the inliers (`tail_quantile`) exceeds it with a probability
    p of at most `false_alarms`, and when of the scores from it on at most half are expected to be
    inliers: for the i-th largest of n scores, `n p <= i / 2` (the step-up rule of Y. Benjamini, Y.
    Hochberg, "Controlling the false discovery rate", JRSS B 57, 1995). Inliers are then those that
    are not flagged, or would not be at a rate of 1 %, at least half of all, until they stay the
    same.

    Parameters
    ----------
    scores : array of shape (n,)
    inliers : bool array of shape (n,)
        To begin with.
    false_alarms : float
    """
    n = len(scores)
    order = np.sort(scores)[::-1]
    level = float(order[0])
    for _ in range(30):
        unit = tail_quantile(scores[inliers], np.exp(-1))
        with np.errstate(over="ignore"):  # a score over a subnormal unit: p is 0
            p = np.exp(-order / unit) if unit > 0 else (order <= 0).astype(float)
        few = np.flatnonzero(n * p <= np.arange(1, n + 1) / 2)
        level = float(order[0])  # nothing is flagged
        if len(few):
            level = max(unit * -np.log(false_alarms), float(np.nextafter(order[few[-1]], -np.inf)))
        new = scores <= max(level, unit * -np.log(RARE))
        new = new if 2 * new.sum() >= n else lowest(scores, 0.5)
        if np.array_equal(new, inliers):
            break
        inliers = new
    return max(level, float(scores[lowest(scores, 0.5)].max()))


def clear_gap(scores: np.ndarray, level: float) -> float:
    """Move the cut up to a clear gap, or a sparse place, between the scores above it."""
    above = np.sort(scores[scores > level])
    if len(above) < 8:
        return level
    ladder = np.append(level, above)
    steps = _ratios(ladder, 1)
    for share, clear, width in ((1 / 3, 1.5, 1), (0.75, 1.15, max(1, round(len(above) / 20)))):
        most = len(above) - int(np.ceil(share * len(above)))  # how many flagged may fall below it
        ratios = _ratios(ladder, width)[: most + 1]
        place = int(ratios.argmax())
        step = place + int(steps[place : place + width].argmax())
        if step > 0 and ratios[place] >= clear:
            return float((ladder[step] + ladder[step + 1]) / 2)
    return level


def centred(scores: np.ndarray, cut: float) -> float:
    """Move a cut up to the middle (of logarithms) of the room around it, by at most one half."""
    below, above = scores[scores <= cut], scores[scores > cut]
    if not (len(below) and len(above)):
        return cut
    middle = float(np.sqrt(below.max() * above.min()))
    return max(cut, min(middle, 1.5 * cut))


def lowest(scores: np.ndarray, share: float) -> np.ndarray:
    """Return the lowest scores: this share of them, at least one."""
    count = max(1, int(np.ceil(share * len(scores))))
    lowest = np.zeros(len(scores), bool)
    lowest[np.argsort(scores, kind="stable")[:count]] = True
    return lowest


def _ratios(ladder: np.ndarray, width: int) -> np.ndarray:
    """Return each number over the one `width` places before."""
    low, high = ladder[:-width], ladder[width:]
    return np.divide(high, low, out=np.full(len(high), np.inf), where=low > 0)
