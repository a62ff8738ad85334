"""What detectors are and return, and the ones that look at the residual alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tubal.outliers.decisions import two_means
from tubal.representation import Representation


class Scorer(Protocol):
    """What scores further samples, all in the scale of the fit."""

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        """Return a score for each sample."""


@dataclass(frozen=True, eq=False)
class Detection:
    """Scores of the samples of a fit and the decision about them.

    Attributes
    ----------
    scores : array of shape (n,)
        High for outliers.
    threshold : float
        Samples with a score above it are flagged.
    scorer : Scorer
        Scores further samples.
    damaged : bool array of shape (n,) or None
        Samples that are covered by noise but at home among the others; None: nobody looked.
    """

    scores: np.ndarray
    threshold: float
    scorer: Scorer
    damaged: np.ndarray | None = None

    def is_damaged(self, outliers: np.ndarray) -> np.ndarray:
        """Return which samples are damaged, given those that count as outliers."""
        return np.zeros(len(outliers), bool) if self.damaged is None else self.damaged & ~outliers


class Detector(ABC):
    """A way of scoring the samples of a fit and of deciding which are outliers."""

    @abstractmethod
    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""


@dataclass(frozen=True)
class Residual(Detector):
    """The paper's rule: 2-means on the squared norms of what was not explained.

    The optimum of 2-means on a line is found exactly by trying every cut of the sorted values, so
    there is no random start. The upper group are the outliers; equal values are one group, and
    then nothing is flagged.

    Reference: T. Wu, "Robust data clustering with outliers via transformed tensor low-rank
    representation", AISTATS 2024, section 6.2.
    """

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit and choose a threshold."""
        scores = ResidualScorer()(fitted)
        return Detection(scores, two_means(scores), ResidualScorer())


@dataclass(frozen=True)
class Nothing(Detector):
    """No detection: every sample is kept; scores are those of `Residual`."""

    def detect(self, fitted: Representation, n_jobs: int | None = None) -> Detection:
        """Score the samples of a fit; the threshold is infinite."""
        return Detection(ResidualScorer()(fitted), np.inf, ResidualScorer())


@dataclass(frozen=True)
class ResidualScorer:
    """Scores samples by the squared norm of what was not explained."""

    def __call__(self, new: Representation, n_jobs: int | None = None) -> np.ndarray:
        """Return a score for each sample."""
        energy: np.ndarray = new.residuals() ** 2
        return energy
