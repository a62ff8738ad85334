"""Synthetic tensors from the union-of-tensor-subspaces model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tubal.algebra import tprod
from tubal.input import from_paper
from tubal.transforms import resolve


@dataclass(frozen=True)
class TensorSubspaces:
    """Samples near a union of tensor subspaces, and the truth about them.

    Attributes
    ----------
    X : array of shape (n_samples, n1, n3)
        What a method sees: NaN where an entry is missing.
    clean : array of the same shape
        The samples without noise and holes; zero for outliers.
    labels : int array of shape (n_samples,)
        Index of the subspace; -1 for outliers.
    outliers : bool array of shape (n_samples,)
    """

    X: np.ndarray
    clean: np.ndarray
    labels: np.ndarray
    outliers: np.ndarray


def make_tensor_subspaces(
    n1: int = 60,
    n3: int = 100,
    n_subspaces: int = 5,
    rank: int = 6,
    samples_per_subspace: int = 60,
    outliers: float = 0.2,
    missing: float = 0.0,
    noise: float = 0.0,
    transform: Any = "dft",
    random_state: Any = None,
) -> TensorSubspaces:
    """Draw the synthetic problem of the paper (its section 6.1).

    Subspace l holds `A_l * B_l` with `A_l` of size n1 x rank x n3, `B_l` of size
    rank x samples_per_subspace x n3 and independent entries N(0, 1/n1). Each sample is an outlier
    with probability `outliers`; outliers have independent Gaussian entries of variance
    `zeta / (n1 n3)`, where zeta is the average squared norm of a sample, so that norms do not give
    them away. Samples keep the order of their subspaces.

    Parameters
    ----------
    n1, n3 : int
        Size of a sample.
    n_subspaces, rank, samples_per_subspace : int
    outliers : float in [0, 1)
        Probability that a sample is an outlier.
    missing : float in [0, 1)
        Probability that an entry is missing (one entry a sample is always observed).
    noise : float
        Standard deviation of Gaussian noise, relative to the root mean square entry.
    transform : str, matrix or Transform
        Under which the subspaces are tensor subspaces.
    random_state : None, int or Generator

    Examples
    --------
    >>> data = make_tensor_subspaces(10, 4, 2, 1, 8, outliers=0.25, random_state=0)
    >>> data.X.shape, int(data.outliers.sum())
    ((16, 10, 4), 4)
    """
    sizes = {"n1": n1, "n3": n3, "n_subspaces": n_subspaces, "rank": rank}
    sizes["samples_per_subspace"] = samples_per_subspace
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            msg = f"{name} must be a positive integer, got {value!r}"
            raise ValueError(msg)
    for name, share in {"outliers": outliers, "missing": missing}.items():
        if not (_is_number(share) and 0 <= share < 1):
            msg = f"{name} must lie in [0, 1), got {share!r}"
            raise ValueError(msg)
    if not (_is_number(noise) and np.isfinite(noise) and noise >= 0):
        msg = f"noise must be zero or positive, got {noise!r}"
        raise ValueError(msg)
    rng = np.random.default_rng(random_state)
    L = resolve(transform, n3, random_state=rng)
    if not L.keeps_real:
        msg = f"transform {L!r} is complex: the samples would not be real"
        raise ValueError(msg)
    spread = n1**-0.5
    parts = [
        tprod(
            spread * rng.standard_normal((n1, rank, n3)),
            spread * rng.standard_normal((rank, samples_per_subspace, n3)),
            L,
        )
        for _ in range(n_subspaces)
    ]
    clean = np.ascontiguousarray(from_paper(np.concatenate(parts, axis=1)))
    labels = np.repeat(np.arange(n_subspaces), samples_per_subspace)
    zeta = np.mean(np.sum(clean**2, axis=(1, 2)))
    is_outlier = rng.random(len(clean)) < outliers
    clean[is_outlier] = 0
    X = clean.copy()
    X[is_outlier] = rng.normal(0, (zeta / (n1 * n3)) ** 0.5, (is_outlier.sum(), n1, n3))
    if noise:
        X += rng.normal(0, noise * np.sqrt(zeta / (n1 * n3)), X.shape)
    if missing:
        X[_holes(rng, X.shape, missing)] = np.nan
    return TensorSubspaces(X, clean, np.where(is_outlier, -1, labels), is_outlier)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _holes(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> np.ndarray:
    holes = rng.random(shape) < share
    flat = holes.reshape(len(holes), -1)
    flat[np.arange(len(holes)), rng.integers(flat.shape[1], size=len(holes))] = False
    return holes
