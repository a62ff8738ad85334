"""Similarity of samples at several effective ranks at once.

How many directions of each slice count is the one choice that matters most for a graph, and no
single answer serves a whole data set. So several are asked, and their similarities averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tubal import noise as noises
from tubal.input import Samples
from tubal.problem import Problem, suggested_rank
from tubal.reduction import reciprocal, reduce, slices
from tubal.representation import Rows, Ties
from tubal.transforms import Transform

FACTORS = (0.5, 0.75, 1.0, 1.5)
"""Effective ranks, as multiples of the suggested one."""

Slices = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class ScaleKernel(Ties):
    """Mean over several ranks of the similarities of the closed-form representation.

    With noise `||X - X * Z||_F^2 / (2 theta)` the program has the solution
    `Z = V (1 - theta / S^2)_+ V^H`, slice by slice; theta sets how many directions are left on the
    average, the effective rank. Each rank gives the similarities of `TubeKernel`; their mean is
    that of the samples. Single precision is enough for it.

    Attributes
    ----------
    transform : Transform
    rank : float
        The suggested effective rank.
    back : array of shape (K, r, n1)
        `S^-1 U^H`, which turns slices of samples to rows of V^H.
    roots : arrays of shape (K, r)
        `(1 - theta / S^2)_+^(1/2)`, one for each rank.
    columns, rows : tuples of arrays of shape (r_k, n) and (r_k, m)
        `roots V^H` of the samples of the fit and of those in question, for each rank the slices.
    own, new : arrays of shape (n_ranks, n) and (n_ranks, m)
        Norms of the tubes of samples with themselves.
    """

    transform: Transform
    rank: float
    back: np.ndarray
    roots: tuple[np.ndarray, ...]
    columns: tuple[Slices, ...]
    rows: tuple[Slices, ...]
    own: np.ndarray
    new: np.ndarray

    @classmethod
    def of(
        cls, values: np.ndarray, transform: Transform, factors: Sequence[float] = FACTORS
    ) -> ScaleKernel:
        """Build it for complete samples (n, n1, *sizes)."""
        data = Samples(_in_range(values, None), None, False)
        problem = Problem(data, reduce(data, transform, "data"), noises.resolve("l21"))
        rank, curvature = suggested_rank(problem), np.maximum(problem.curvature, 1e-300)
        roots = tuple(
            np.sqrt(np.clip(1 - problem.theta_of_rank(rank * f) / curvature, 0, None)).astype("f4")
            for f in factors
        )
        reduction = problem.reduction
        back = reciprocal(reduction.s)[..., None] * reduction.U.conj().mT
        columns = tuple(_coded(reduction.rows(), root) for root in roots)
        own = _tube_norms(columns, transform)
        return cls(transform, rank, back, roots, columns, columns, own, own)

    def extended(self, new: np.ndarray) -> ScaleKernel:
        """Return the similarities of new complete samples (m, n1, *sizes); sizes do not matter."""
        each = tuple(range(1, new.ndim))
        V = self.back @ slices(self.transform, _in_range(new, each))
        rows = tuple(_coded(V, root) for root in self.roots)
        return replace(self, rows=rows, new=_tube_norms(rows, self.transform))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and of columns."""
        return self.new.shape[1], self.own.shape[1]

    def tile(self, rows: Rows) -> np.ndarray:
        """Return similarities, a row a sample in question."""
        mean: Any = 0.0
        for scale, columns in enumerate(self.columns):
            total: Any = 0.0
            for k, omega in enumerate(_omega(self.transform)):
                part = self.rows[scale][k][:, rows].conj().T @ columns[k]
                total = total + omega * (part.real**2 + part.imag**2)
            size = self.new[scale, rows][:, None] * self.own[scale]
            mean = mean + np.sqrt(np.divide(total, size, out=np.zeros_like(size), where=size > 0))
        return np.minimum(mean / len(self.columns), 1).astype(float)


def _in_range(values: np.ndarray, axis: tuple[int, ...] | None) -> np.ndarray:
    """Return values in single precision, over the power of two that brings the largest to 1.

    Squares of very large or small numbers would leave the range of the type; a power of two
    changes no digit.
    """
    _, exponent = np.frexp(np.max(np.abs(values), axis=axis, keepdims=True, initial=0))
    return np.ldexp(values, -exponent).astype(np.float32)


def _coded(V: np.ndarray, root: np.ndarray) -> Slices:
    """Return `root V` of each slice, without the directions that are zero."""
    return tuple(
        np.ascontiguousarray((r[:, None] * v)[r > 0]) for v, r in zip(V, root, strict=True)
    )


def _tube_norms(coded: tuple[Slices, ...], transform: Transform) -> np.ndarray:
    """Return the norms of the tubes of samples with themselves, a row a rank."""
    omega = _omega(transform)

    def of_rank(parts: Slices) -> np.ndarray:
        tubes = np.stack([np.sum(part.real**2 + part.imag**2, axis=0) for part in parts])
        return np.sqrt(omega @ tubes**2)

    return np.stack([of_rank(parts) for parts in coded])


def _omega(transform: Transform) -> np.ndarray:
    return (transform.weights / transform.scale).astype(np.float32)
