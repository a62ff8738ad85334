"""The program of one sample on a few atoms, by Newton's method on its pieces.

    min_c  ||c||_1 + F(x - Y^T c)   [ s.t. sum(c) = 1 ],   F(r) = sum_k f(r_k),

with atoms in the rows of Y and `f(r) = lam r^2 / 2`, continued linearly beyond `|r| = clip`: the
Huber function, which is what is left of a sparse outlier term once that is minimised out,
`f(r) = min_e outlier_lam |e| + lam (r - e)^2 / 2` with `clip = outlier_lam / lam`. The function is
quadratic on each piece (a sign of every coefficient, a side of every clipped residual), so a
Newton step that stays in its piece ends at the minimum of that piece. One step:

1. free atoms: those in use and those whose correlation `h = Y f'(r)` exceeds 1 in modulus;
2. target: minimum of the quadratic of this piece; an atom whose sign turns is fixed at zero and
   the rest is solved for again;
3. the best point on the ray to the target. The function is convex and piecewise quadratic on it
   too, so this is exact: sort the points where pieces meet and find where the slope turns.

The objective falls in every step and there are finitely many pieces. When the way to the target
leads uphill, smaller sets of free atoms are used for which it can not (as in feature-sign search,
H. Lee, A. Battle, R. Raina, A. Ng, "Efficient sparse coding algorithms", NIPS 2006). Coordinate
descent on the same problems needs hundreds to ten thousands of sweeps: samples of one subspace are
strongly correlated. For the Huber part: K. Madsen, H. B. Nielsen, "Finite algorithms for robust
linear regression", BIT 30 (1990).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

RIDGE = 1e-14
STEEP = 1e-6
EPSILON = float(np.finfo(np.float64).eps)


class Fit(ABC):
    """The smooth part F at one point c, with what a Newton step asks of it.

    Attributes
    ----------
    h : array of shape (n_atoms,)
        Correlations of the atoms with the derivative of F at the residual.
    """

    h: np.ndarray

    @abstractmethod
    def curvature(self, free: np.ndarray) -> np.ndarray:
        """Return the matrix of the quadratic model on the free atoms."""

    @abstractmethod
    def ray(self, d: np.ndarray) -> Ray:
        """Return how F changes on `c + t d`."""

    @abstractmethod
    def move(self, c: np.ndarray) -> None:
        """Go to the point c."""


@dataclass(frozen=True, eq=False)
class Ray:
    """Slope and curvature of F at t = 0, and where the curvature changes, and by how much."""

    slope: float
    curvature: float
    where: np.ndarray
    change: np.ndarray


NOWHERE = np.empty(0)


class Squares(Fit):
    """`F(r) = lam ||r||^2 / 2`: all that is needed are inner products.

    A ridge, `ridge ||c||^2 / 2` beside F, is the same with `ridge` added to the diagonal of K.

    Parameters
    ----------
    K : array of shape (n_atoms, n_atoms)
        `lam Y Y^T`.
    b : array of shape (n_atoms,)
        `lam Y x`.
    """

    def __init__(self, K: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        self.K, self.b = K, b
        self.move(c)

    def move(self, c: np.ndarray) -> None:
        """Go to the point c."""
        self.h = self.b - self.K @ c

    def curvature(self, free: np.ndarray) -> np.ndarray:
        """Return `lam Y Y^T` on the free atoms."""
        return self.K[free[:, None], free]

    def ray(self, d: np.ndarray) -> Ray:
        """Return how F changes on `c + t d`: one quadratic."""
        return Ray(-float(self.h @ d), float(d @ (self.K @ d)), NOWHERE, NOWHERE)


class Clipped(Fit):
    """The Huber function: `F' = lam r`, clipped to `lam clip` in modulus.

    Only residuals inside the clip carry curvature. Far from the solution that may be few, so the
    caller should start where they are many: with a high clip.
    """

    def __init__(
        self, Y: np.ndarray, x: np.ndarray, c: np.ndarray, lam: float, clip: float
    ) -> None:
        self.Y, self.x, self.lam, self.clip = Y, x, lam, clip
        self.move(c)

    def move(self, c: np.ndarray) -> None:
        """Go to the point c."""
        self.r = self.x - c @ self.Y
        self.h = self.lam * (self.Y @ np.clip(self.r, -self.clip, self.clip))

    def curvature(self, free: np.ndarray) -> np.ndarray:
        """Return `lam Y Y^T` on the free atoms, from the residuals inside the clip."""
        Y = self.Y[np.ix_(free, np.abs(self.r) <= self.clip)]
        return self.lam * (Y @ Y.T)

    def ray(self, d: np.ndarray) -> Ray:
        """Return how F changes on `c + t d`: each residual may pass the clipped middle once."""
        q = d @ self.Y
        weights = self.lam * q * q
        q = np.where(weights > 0, q, 1.0)  # a residual that stays where it is has no weight
        middle, half = self.r / q, self.clip / np.abs(q)
        ends = np.concatenate([middle - half, middle + half])
        curvature = float(weights @ ((middle - half <= 0) & (middle + half > 0)))
        change = np.concatenate([weights, -weights])
        ahead = (ends > 0) & (change != 0)
        return Ray(-float(self.h @ d), curvature, ends[ahead], change[ahead])


def minimise(
    fit: Fit, c: np.ndarray, affine: bool, tol: float, max_steps: int
) -> tuple[np.ndarray, int]:
    """Return the minimiser on the atoms of `fit`, started from c, and the number of steps.

    With `affine`, c must sum to one. The steps end when no correlation violates its condition by
    more than `tol`, or when the objective can not be lowered any more in this precision.
    """
    for step in range(max_steps):
        excess = violations(fit.h, c, affine)
        if np.abs(excess).max(initial=0.0) <= tol:
            return c, step
        moved = _step(fit, c, excess, affine, tol)
        if moved is None:
            return c, step
        c = moved
        fit.move(c)
    return c, max_steps


def multiplier(h: np.ndarray, c: np.ndarray) -> float:
    """Return the multiplier of `sum(c) = 1`: what correlations and signs differ by, on average."""
    used = c != 0
    return float((h[used] - np.sign(c[used])).mean())


def violations(h: np.ndarray, c: np.ndarray, affine: bool) -> np.ndarray:
    """Return by how much each correlation violates its condition, zero where it does not.

    Conditions: `h = sign(c)` where c is not zero, else `|h| <= 1`, with the multiplier of the
    constraint taken off h first.
    """
    h = h - multiplier(h, c) if affine else h
    return np.where(c != 0, h - np.sign(c), h - np.clip(h, -1, 1))


def _step(
    fit: Fit, c: np.ndarray, excess: np.ndarray, affine: bool, tol: float
) -> np.ndarray | None:
    """Return a better point, or None when there is none."""
    signs = np.where(c != 0, np.sign(c), np.sign(excess))
    used = np.flatnonzero(c)
    free = np.flatnonzero((c != 0) | (np.abs(excess) > tol))
    d = _towards_target(fit, c, signs, free, affine)
    moved = _search(fit.ray(d), c, d, STEEP * float(np.abs(excess).max()))
    if moved is None:  # descent for certain: first the best point on the atoms in use ...
        free = used
        if np.abs(excess[used]).max(initial=0.0) <= tol:  # ... and then one more atom
            free = np.append(used, np.abs(np.where(c == 0, excess, 0.0)).argmax())
        d = np.zeros_like(c)
        d[free] = _solve(fit.curvature(free), excess[free], 0.0 if affine else None)
        moved = _search(fit.ray(d), c, d)
    return moved


def _towards_target(
    fit: Fit, c: np.ndarray, signs: np.ndarray, free: np.ndarray, affine: bool
) -> np.ndarray:
    """Return the way to the minimum of the model on the free atoms that keeps all signs."""
    K = fit.curvature(free)
    right = fit.h[free] + K @ c[free] - signs[free]
    kept = np.arange(len(free))
    target = np.zeros_like(c)
    while len(kept):
        values = _solve(K[kept[:, None], kept], right[kept], 1.0 if affine else None)
        fine = values * signs[free[kept]] >= 0
        if fine.all():
            target[free[kept]] = values
            break
        kept = kept[fine]
    if affine and not len(kept):
        return np.zeros_like(c)  # nothing sums to one: no way at all
    return target - c


def _solve(K: np.ndarray, right: np.ndarray, total: float | None) -> np.ndarray:
    """Solve `K c = right`, or `K c + nu = right, sum(c) = total` for some number nu."""
    if total is None:
        return _positive_solve(K, right)
    # On the constraint, adding a multiple of the all-ones matrix only shifts nu, and it makes K
    # invertible when one atom is zero.
    both = _positive_solve(K + np.trace(K) / len(K), np.stack([right, np.ones(len(K))], axis=1))
    return both[:, 0] + (total - both[:, 0].sum()) / both[:, 1].sum() * both[:, 1]


def _positive_solve(K: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a system with a positive definite matrix; a semidefinite one gets a small ridge.

    Dependent atoms are no obstacle: with the ridge the step is still one of descent, and it runs
    along the dependence until an atom drops out.
    """
    _, solution, failed = dposv(K, right)
    ridge = RIDGE * (np.trace(K) / len(K) or 1.0) if failed else 0.0
    while failed:
        _, solution, failed = dposv(K + ridge * np.eye(len(K)), right)
        ridge *= 100
    return solution


def _search(ray: Ray, c: np.ndarray, d: np.ndarray, steep: float = 0.0) -> np.ndarray | None:
    """Return the minimiser of `||c + t d||_1 + F` over t > 0.

    None when the slope along d is not below `-steep ||d||_1`, or can not be told from zero.
    """
    moving = (d != 0) & (c != 0)
    zero_at = np.full(len(c), -1.0)
    zero_at[moving] = -c[moving] / d[moving]
    slope = ray.slope + float(np.where(c != 0, np.sign(c) * d, np.abs(d)).sum())
    size = float(np.abs(d).sum())
    if not slope < -max(4 * EPSILON * (abs(ray.slope) + size), steep * size):
        return None
    turning = np.flatnonzero(zero_at > 0)
    t = _first_rise(
        slope,
        ray.curvature,
        np.concatenate([zero_at[turning], ray.where]),
        np.concatenate([2 * np.abs(d[turning]), np.zeros(len(ray.where))]),
        np.concatenate([np.zeros(len(turning)), ray.change]),
    )
    moved = c + t * d if t < np.inf else c
    moved[zero_at == t] = 0
    return moved if 0 < t < np.inf else None


def _first_rise(
    slope: float, curvature: float, where: np.ndarray, jump: np.ndarray, change: np.ndarray
) -> float:
    """Return where an increasing, piecewise linear function first reaches zero.

    It starts at `slope` < 0 with the derivative `curvature`; at each point of `where` it jumps up
    by `jump` and its derivative changes by `change`.

    >>> none = np.zeros(0)
    >>> _first_rise(-1.0, 2.0, none, none, none)
    0.5
    >>> _first_rise(-1.0, 2.0, np.array([0.25]), np.array([0.0]), np.array([6.0]))
    0.3125
    >>> _first_rise(-1.0, 2.0, np.array([0.25]), np.array([3.0]), np.array([0.0]))
    0.25
    """
    order = np.argsort(where, kind="stable")
    where, jump = where[order], jump[order]
    derivatives = np.maximum(curvature + np.concatenate([[0.0], change[order].cumsum()]), 0.0)
    gained = (derivatives[:-1] * np.diff(where, prepend=0.0)).cumsum() + jump.cumsum()
    after = slope + gained  # the value just behind each point
    i = int(np.argmax(after >= 0)) if (after >= 0).any() else len(where)
    start = 0.0 if i == 0 else where[i - 1]
    value = slope if i == 0 else after[i - 1]
    end = where[i] if i < len(where) else np.inf
    return float(min(start - value / derivatives[i], end) if derivatives[i] > 0 else end)
