"""From a representation to an outlier score for each sample, and from scores to a decision.

A detector is a small object: `detect` looks at a fit and returns a `Detection`, which holds the
scores, the threshold that the detector chose, and what is needed to score further samples. A high
score means an outlier; a sample is flagged when its score is above the threshold.
"""

from __future__ import annotations

from typing import Any

from tubal.input import check_choice
from tubal.outliers.consensus import Consensus
from tubal.outliers.decisions import contamination_threshold, tail_quantile, two_means
from tubal.outliers.detection import Detection, Detector, Nothing, Residual, Scorer

__all__ = [
    "Consensus",
    "Detection",
    "Detector",
    "Nothing",
    "Residual",
    "Scorer",
    "contamination_threshold",
    "resolve",
    "tail_quantile",
    "two_means",
]


def resolve(outliers: Any, false_alarms: float = 0.01) -> Detector:
    """Turn a name, None or an object into a Detector; the only place that reads these names.

    `false_alarms` is that of the detector called "auto".

    >>> resolve("published")
    Residual()
    """
    names: dict[str, Detector] = {"auto": Consensus(false_alarms), "published": Residual()}
    if outliers is None:
        return Nothing()
    return check_choice("outliers", outliers, names, Detector, ", None")
