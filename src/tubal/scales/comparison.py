"""What all similarities in a view can do."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np

from tubal._threads import effective_jobs, spans, threaded
from tubal.representation import TILE, Rows, Ties, Whole


class Comparison(Ties):
    """Similarities of samples in a view; both sides can be read in parts.

    Attributes
    ----------
    rank : float
        Effective rank that the spectrum suggests, NaN where there is none.
    """

    rank: float
    columns: Any
    rows: Any

    @abstractmethod
    def tile(self, rows: Rows, columns: Rows = slice(None)) -> np.ndarray:
        """Return similarities, a row a sample in question, in single precision."""

    @abstractmethod
    def extended(self, new: np.ndarray, sizes: np.ndarray | None = None) -> Self:
        """Return the similarities of new complete samples, which were divided by `sizes`."""

    def whole(self, n_jobs: int | None = None) -> Whole:
        """Return the similarities of the samples of the fit as a table, each pair computed once."""
        n = self.shape[1]
        table = np.empty((n, n), np.float32)

        own: Any = replace(self, rows=self.columns)  # type: ignore[type-var]

        def fill(rows: slice) -> None:
            table[rows, rows.start :] = own.tile(rows, slice(rows.start, None))
            table[rows.stop :, rows] = table[rows, rows.stop :].T
            corner = table[rows, rows]  # a product of a matrix with itself, but to rounding
            table[rows, rows] = np.maximum(corner, corner.T)

        threaded(fill, spans(n, -(-n // TILE)), effective_jobs(n_jobs))
        return Whole(table)
