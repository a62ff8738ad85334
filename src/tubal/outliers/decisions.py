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


def tail_cut(scores: np.ndarray, level: float, false_alarms: float) -> float:
    """Move a cut up until the tail of the scores below it hardly explains what is above it.

    The scores between u, the 80th percentile of those up to the cut, and the cut are taken as the
    visible part of an exponential tail. It goes on above the cut: above t there should be `E(t)`
    scores, and there are `F(t)`. The new cut is the lowest one among `level` and the scores above
    it with `E(t) <= false_alarms F(t)`, t the lowest score above the cut. A cut that has moved
    shows more of the tail: once again then.

    >>> clean = -np.log(np.linspace(0.001, 1, 1000))
    >>> bool(tail_cut(clean, 4.0, 0.3) == clean.max())  # the end of a tail, nothing else
    True
    >>> bool(tail_cut(np.append(clean, [20.0] * 9), 4.0, 0.3) < 20)
    True
    """
    while True:
        kept, above = scores[scores <= level], np.sort(scores[scores > level])
        start = float(np.percentile(kept, 80))
        visible = kept[kept > start] - start
        if not len(above) or not len(visible):
            return level
        decay = _truncated_mean(float(visible.mean()), level - start)
        total = len(visible) / -np.expm1(-(level - start) / decay)
        lowest = np.unique(above)  # of the flagged, cut by cut
        expected = total * np.exp(-(lowest - start) / decay)
        flagged = len(above) - np.searchsorted(above, lowest)
        cuts = np.append(level, lowest)
        cut = float(cuts[np.append(expected <= false_alarms * flagged, True).argmax()])
        if cut == level:
            return cut
        level = cut


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


def _truncated_mean(mean: float, end: float) -> float:
    """Return the mean of an exponential law that has this mean when it is cut off at `end`.

    It solves `b - end / (exp(end / b) - 1) = mean`. A mean of almost half the end is that of a law
    that hardly falls; then b is ten times the end.
    """
    low, high = mean, 10 * end
    for _ in range(60):
        b = (low + high) / 2
        if b - end / np.expm1(min(end / b, 700)) < mean:
            low = b
        else:
            high = b
    return (low + high) / 2


def _ratios(ladder: np.ndarray, width: int) -> np.ndarray:
    """Return each number over the one `width` places before."""
    low, high = ladder[:-width], ladder[width:]
    return np.divide(high, low, out=np.full(len(high), np.inf), where=low > 0)
