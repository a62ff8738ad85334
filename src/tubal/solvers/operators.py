"""Operators that shrink singular values, each slice held as cheaply as it allows.

Far from the solution few directions of a slice are above the threshold, often none: then two thin
products, or no product at all, do the work of a full one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tubal.algebra import slice_adjoint
from tubal.input import Array, namespace

THIN = 0.45
"""Up to this share of the directions, two thin products are faster than a full one."""
SMALL = 24
"""Slices with fewer rows are multiplied all at once: that costs less than choosing."""

Piece = np.ndarray | tuple[np.ndarray, np.ndarray] | None
"""The operator of a slice: a matrix, the factors of one, or None for zero."""


class Operators:
    """One operator a slice, applied by `@` to arrays of shape (K, r, b)."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)

    def __matmul__(self, A: np.ndarray) -> np.ndarray:
        out = np.empty_like(A)
        for piece, a, result in zip(self.pieces, A, out, strict=True):
            if piece is None:
                result[...] = 0.0
            elif isinstance(piece, tuple):
                np.matmul(piece[0], piece[1] @ a, out=result)
            else:
                np.matmul(piece, a, out=result)
        return out


def decompose(G: Array, threshold: float) -> tuple[Array, Array | list[Piece]]:
    """Decompose Gram matrices (lower triangles).

    Returns what shrinking leaves of the singular values behind them (rising), and the operators
    `Q diag((1 - threshold / sigma)_+) Q^H` that shrink: arrays, or with NumPy pieces.
    """
    xp = namespace(G)
    if not isinstance(G, np.ndarray) or G.shape[-1] < SMALL:
        values, vectors = xp.linalg.eigh(G)
        factor, left = _shrunk(values, threshold)
        scaled = vectors * xp.astype(factor, vectors.dtype)[:, None, :]
        return left, scaled @ slice_adjoint(vectors)
    # Slice by slice: the shape of a product, and so its rounding, must not depend on which other
    # slices the same thread works on.
    left = np.zeros(G.shape[:2], G.real.dtype)
    pieces: list[Piece] = [None] * len(G)
    for k, matrix in enumerate(G):
        # Twice the squares of the lower triangle bound those of the whole matrix.
        if 2 * float(np.vdot(matrix, matrix).real) <= threshold**4:
            continue
        values, vectors = np.linalg.eigh(matrix)
        factor, left[k] = _shrunk(values, threshold)
        first = len(factor) - np.count_nonzero(factor)
        Q, Qh = vectors[:, first:] * factor[first:], vectors[:, first:].conj().T
        thin = Q.shape[1] <= THIN * len(Q)
        pieces[k] = (Q, Qh) if thin else Q @ Qh
    return left, pieces


def join(parts: Sequence[Array | list[Piece]]) -> Array | Operators:
    """Join the operators of consecutive slices."""
    if isinstance(parts[0], list):
        return Operators([piece for part in parts for piece in part])
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(list(parts))


def _shrunk(squares: Array, threshold: float) -> tuple[Array, Array]:
    """Return what is left of singular values given by their squares: its share, and itself."""
    xp = namespace(squares)
    values = xp.sqrt(xp.clip(squares, 0.0, None))
    big = values > threshold
    left = xp.where(big, values - threshold, 0.0 * values)
    return left / xp.where(big, values, 1.0 + 0.0 * values), left
