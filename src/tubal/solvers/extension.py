"""New samples under a solved problem.

The nuclear norm of a solution `Z` is `min_W tr(Z^H W^-1 Z + W) / 2`, attained at
`W = (Z Z^H)^(1/2)` in every slice. With this W held fixed the program falls apart into one small
problem for each sample y, old or new:

    min_z  z^H W^-1 z / 2  +  lam g( mask( y - D * z ) )

At an optimal Z its solution for an old sample is the column of Z that belongs to it, so the answer
for new samples is that of the fit, continued. The dual problem has one simple constraint,

    max_u  <y, u> - <u, K u> / 2    subject to    g°(u) <= lam, u = 0 off the mask,

with `K = D W D^H`, and `D z = K u`, `E = y - K u`. Whole-sample noise on complete data leaves one
unknown number for each sample; otherwise it is solved by the alternating direction method of
multipliers, and for an exact fit by conjugate gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import Samples, samples_first, to_numpy, tubes_first
from tubal.noise import Noise
from tubal.reduction import Reduction
from tubal.solvers.solution import Solution
from tubal.transforms import Transform

BLOCK = 128  # samples at a time
RELAX = 1.6
ROUGH = 0.01  # a gap that the user should know of


@dataclass(frozen=True, eq=False)
class Extended:
    """New samples as the solution explains them.

    Attributes
    ----------
    core : array of shape (K, r, m) or None
        Coefficients in the coordinates of the solution's `Z`; None for the identity dictionary.
    L, E : arrays in the layout of the data, `(m, n1, *sizes)`
        What is explained (also where nothing was observed) and what is not (zero there).
    """

    core: np.ndarray | None
    L: np.ndarray
    E: np.ndarray


@dataclass(frozen=True, eq=False)
class Extension:
    """A solution, reduced to what explains further samples.

    Attributes
    ----------
    transform : Transform
    noise : Noise
    lam : float
    basis : array of shape (K, n1, q)
        Eigenvectors of `K = D W D^H` in each slice.
    size : array of shape (K, q)
        Eigenvalues.
    lift : array of shape (K, r, q) or None
        Takes `basis^H u` to the coordinates of `Z`; None for the identity dictionary.
    """

    transform: Transform
    noise: Noise
    lam: float
    basis: np.ndarray
    size: np.ndarray
    lift: np.ndarray | None

    @classmethod
    def of(cls, solution: Solution, noise: Noise) -> Extension:
        """Build the extension of a solution of a problem with this noise."""
        transform, reduction = solution.Z.transform, solution.Z.basis
        if isinstance(reduction, Reduction) and reduction.kind != "identity":
            basis, size, lift = _of_dictionary(reduction, to_numpy(solution.Z.core))
            return cls(transform, noise, solution.lam, basis, size, lift)
        return cls.of_samples(transform, to_numpy(solution.L), noise, solution.lam)

    @classmethod
    def of_samples(cls, transform: Transform, L: np.ndarray, noise: Noise, lam: float) -> Extension:
        """Build the extension of a low-rank tensor, samples first: the identity dictionary."""
        basis, size = _of_identity(transform, L)
        return cls(transform, noise, lam, basis, size, None)

    def apply(
        self,
        samples: Samples,
        *,
        tol: float = 1e-5,
        max_iter: int = 1000,
        n_jobs: int | None = None,
    ) -> Extended:
        """Explain samples of the same shape as those of the fit.

        Parameters
        ----------
        samples : Samples
        tol : float
            Relative duality gap (relative residual for an exact fit) of the iterative cases.
        max_iter : int
            Limit of their iterations; what is reached then is returned.
        n_jobs : int or None
        """
        parts = threaded(
            lambda part: self._block(samples, part, tol, max_iter),
            spans(samples.n_samples, -(-samples.n_samples // BLOCK)),
            effective_jobs(n_jobs),
        )
        cores = [core for core, _, _ in parts if core is not None]
        return Extended(
            np.concatenate(cores, axis=-1) if cores else None,
            np.concatenate([L for _, L, _ in parts]),
            np.concatenate([E for _, _, E in parts]),
        )

    def _block(
        self, samples: Samples, part: slice, tol: float, max_iter: int
    ) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Return core, L and E of some samples."""
        y = np.ascontiguousarray(tubes_first(to_numpy(samples.values)[part]))
        seen = None
        if samples.observed is not None:
            seen = np.ascontiguousarray(tubes_first(to_numpy(samples.observed)[part]))
        if self.noise.name == "l21" and (seen is None or bool(seen.all())):
            u = self._whole_samples(y)
        elif self.noise.name == "exact":
            u = _Dual(self, y, seen).least_squares(tol, max_iter)
        else:
            u = _Dual(self, y, seen).alternating(tol, max_iter)
        L = self._explained(u).astype(y.dtype, copy=False)
        E = y - L if seen is None else np.where(seen, y - L, 0)
        core = None if self.lift is None else self.lift @ u
        return core, samples_first(L), samples_first(E)

    def _project(self, A: np.ndarray) -> np.ndarray:
        """Return `basis^H A`, K x q x m."""
        return self.basis.conj().mT @ self.transform.forward(A, axis=0)

    def _explained(self, u: np.ndarray) -> np.ndarray:
        """Return `K u` from `basis^H u`."""
        return self.transform.inverse(self.basis @ (self.size[..., None] * u), axis=0)

    def _whole_samples(self, y: np.ndarray) -> np.ndarray:
        """Return `basis^H u` for whole-sample noise on complete data.

        `u = t e` with `t = lam / ||e||`, so `e = (1 + t K)^-1 y`, and t is the root of the rising
        function `t ||e(t)||`; where that stays below lam, the sample is explained exactly.
        """
        slices = self.transform.forward(y, axis=0)
        c = self.basis.conj().mT @ slices
        omega = (self.transform.weights / self.transform.scale)[:, None, None]
        energy = (omega * np.abs(c) ** 2).reshape(-1, c.shape[-1])
        outside = _columns(omega * np.abs(slices - self.basis @ c) ** 2)
        rounding = (100 * np.finfo(c.dtype).eps) ** 2
        outside[outside <= rounding * _columns(omega * np.abs(slices) ** 2)] = 0
        t = _root(self.lam, self.size.reshape(-1), energy, outside)
        resistance = 1 / t + self.size[..., None]
        explains = resistance > 0  # zero: t is infinite, and c is zero in a direction with m = 0
        return np.where(explains, c / np.where(explains, resistance, 1), 0)  # t c / (1 + t m)


class _Dual:
    """The dual problem of some samples, tubes first, when it needs iterations."""

    def __init__(self, extension: Extension, y: np.ndarray, seen: np.ndarray | None) -> None:
        self.extension, self.y, self.seen = extension, y, seen

    def mask(self, A: np.ndarray) -> np.ndarray:
        return A if self.seen is None else np.where(self.seen, A, 0)

    def alternating(self, tol: float, max_iter: int) -> np.ndarray:
        """Return `basis^H u` after over-relaxed ADMM for `v + e = y`, v explained and e noise.

        With p the multiplier, which every step leaves inside the ball of the noise, and a penalty
        b for each sample:

            v = b K (1 + b K)^-1 (y - e + p/b);  g = y - v + p/b;  p = P(b g);  e = g - p/b

        Where nothing is observed, v takes the place of `y - e + p/b`. Every sample has its own
        penalty, balanced at every check, and stops by its own gap, so that it gets the same answer
        in every company.
        """
        extension, part = self.extension, self
        columns = np.arange(self.y.shape[-1])
        answer = np.zeros((*extension.size.shape, len(columns)), extension.basis.dtype)
        size = extension.size[..., None]
        state = _Iterate.start(part)
        for n in range(1, max_iter + 1):
            state = state.step(part, size)
            if n % 10 and n < max_iter:
                continue
            gaps = part.gaps(state)
            late = gaps > tol
            answer[..., columns] = state.u
            if not late.any():
                break
            if n == max_iter and gaps.max() > max(tol, ROUGH):
                _warn(int(np.sum(gaps > max(tol, ROUGH))), float(gaps.max()), max_iter)
            state, part, columns = state.balanced(n).only(late), part.only(late), columns[late]
        return answer

    def only(self, chosen: np.ndarray) -> _Dual:
        """Return the problem of some of the samples."""
        seen = None if self.seen is None else self.seen[..., chosen]
        return _Dual(self.extension, self.y[..., chosen], seen)

    def gaps(self, state: _Iterate) -> np.ndarray:
        """Return the relative duality gap of each sample, of v and p."""
        extension = self.extension
        omega = (extension.transform.weights / extension.transform.scale)[:, None, None]
        size = extension.size[..., None]
        noise = self._noise(self.mask(self.y - state.v))
        primal = _columns(omega * size * np.abs(state.u) ** 2) / 2 + extension.lam * noise
        along = extension._project(state.p)
        dual = _columns(state.p * self.y) - _columns(omega * size * np.abs(along) ** 2) / 2
        return (primal - dual) / _above_zero(primal)

    def _noise(self, rest: np.ndarray) -> np.ndarray:
        """Return g of each sample."""
        noise = self.extension.noise
        if noise.name == "l1":
            return _columns(np.abs(rest))
        if noise.name == "l21":
            return np.sqrt(_columns(rest**2))
        return np.array([noise.value(rest[..., [j]]) for j in range(rest.shape[-1])])

    def least_squares(self, tol: float, max_iter: int) -> np.ndarray:
        """Return `basis^H u` with `K u = y` on the mask, or as close to it as possible.

        Conjugate gradients for `min ||mask(y - H v)||`, `H = basis size^(1/2)` (CGLS): they start
        at zero and so end at the v of least norm. A sample is done when its residual is small, or
        as orthogonal to the range of H as that.
        """
        extension = self.extension
        root = np.sqrt(extension.size)[..., None]
        omega = (extension.transform.weights / extension.transform.scale)[:, None, None]
        residual = self.mask(self.y)
        goal = tol**2 * _columns(residual**2)
        direction = root * extension._project(residual)
        v = np.zeros_like(direction)
        energy = _columns(omega * np.abs(direction) ** 2)
        norm = float(root.max(initial=0)) ** 2
        for _ in range(max_iter):
            size = _columns(residual**2)
            step = self.mask(extension.transform.inverse(extension.basis @ (root * direction), 0))
            curvature = _columns(step**2)
            active = (size > goal) & (energy > tol**2 * norm * size) & (curvature > 0)
            if not active.any():
                break
            length = np.where(active, energy / np.where(active, curvature, 1), 0)
            v = v + length * direction
            residual = residual - length * step
            slope = root * extension._project(residual)
            new = _columns(omega * np.abs(slope) ** 2)
            weight = np.where(active, new / np.where(active, energy, 1), 0)
            direction, energy = slope + weight * direction, np.where(active, new, energy)
        return np.where(root > 0, v / np.where(root > 0, root, 1), 0)


@dataclass(frozen=True, eq=False)
class _Iterate:
    """Where the iteration of some samples stands: the letters of `_Dual.alternating`.

    `u` are the coordinates of v, `K u = v`; `residuals` the primal and the dual one.
    """

    v: np.ndarray
    e: np.ndarray
    p: np.ndarray
    u: np.ndarray
    b: np.ndarray
    residuals: tuple[np.ndarray, np.ndarray]

    @classmethod
    def start(cls, problem: _Dual) -> _Iterate:
        """Begin at zero, with the penalty at which a third of a sample is noise."""
        y = problem.y
        count = _columns(np.ones_like(y) if problem.seen is None else problem.seen)
        norm = np.sqrt(_columns(y**2))
        l1 = problem.extension.noise.name == "l1"
        typical = norm / np.sqrt(np.maximum(count, 1)) if l1 else norm
        b = 3 * problem.extension.lam / np.where(typical > 0, typical, 1)
        zero = np.zeros_like(y)
        none = np.zeros(y.shape[-1])
        return cls(zero, zero, zero, zero, b, (none, none))

    def step(self, problem: _Dual, size: np.ndarray) -> _Iterate:
        """Return the next iterate."""
        y, b, extension = problem.y, self.b, problem.extension
        target = y - self.e + self.p / b
        if problem.seen is not None:
            target = np.where(problem.seen, target, self.v)
        u = b / (1 + b * size) * extension._project(target)
        v = extension._explained(u)
        relaxed = RELAX * v + (1 - RELAX) * problem.mask(y - self.e)
        g = problem.mask(y - relaxed + self.p / b)
        p = extension.noise.project(b * g, extension.lam)
        e = g - p / b
        primal = np.sqrt(_columns(problem.mask(v + e - y) ** 2))
        moved = e - self.e
        if problem.seen is not None:  # where nothing is observed, v stands on its former self
            moved = np.where(problem.seen, moved, v - self.v)
        dual = b * np.sqrt(_columns(moved**2))
        return _Iterate(v, e, p, u, b, (primal, dual))

    def balanced(self, n: int) -> _Iterate:
        """Change penalties that are badly out of balance, less and less often."""
        if n % (20 if n <= 300 else 100):
            return self
        primal, dual = self.residuals
        scale = _above_zero(np.sqrt(_columns(self.p**2)))
        size = _above_zero(np.sqrt(_columns(self.v**2)) + np.sqrt(_columns(self.e**2)))
        ratio = (primal / size + 1e-12) / (dual / scale + 1e-12)  # equal when both have vanished
        factor = np.clip(np.sqrt(ratio), 0.25, 4)
        factor = np.where((ratio > 3) | (ratio < 1 / 3), factor, 1)
        return replace(self, b=self.b * factor)

    def only(self, chosen: np.ndarray) -> _Iterate:
        """Return the iterate of some of the samples."""
        v, e, p, u = (A[..., chosen] for A in (self.v, self.e, self.p, self.u))
        primal, dual = (r[chosen] for r in self.residuals)
        return _Iterate(v, e, p, u, self.b[chosen], (primal, dual))


def _warn(count: int, gap: float, max_iter: int) -> None:
    msg = (
        f"{count} new samples are not explained to the end after {max_iter} iterations: the "
        f"duality gap is {gap:.1e}. Their scores and labels are rough"
    )
    warnings.warn(msg, ConvergenceWarning, stacklevel=2)


def _columns(A: np.ndarray) -> np.ndarray:
    """Sum over all axes but the last."""
    return A.reshape(-1, A.shape[-1]).sum(axis=0)


def _above_zero(A: np.ndarray) -> np.ndarray:
    """Return numbers, none of them below the smallest normal one of their type."""
    return np.maximum(A, np.finfo(A.dtype).tiny)


def _of_dictionary(
    reduction: Reduction, core: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return basis, size and lift for `D = U S` and `W = (core core^H)^(1/2)`.

    With `W = Q w Q^H` and the SVD `S Q w^(1/2) = P m^(1/2) R^H`: `K = (U P) m (U P)^H` and the
    coordinates of z are `W S U^H u = Q w^(1/2) R m^(1/2) (U P)^H u`.
    """
    U, s = to_numpy(reduction.U), to_numpy(reduction.s)
    core = core.astype(np.result_type(core.dtype, np.float64), copy=False)  # a Gram matrix follows
    squares, Q = np.linalg.eigh(core @ core.conj().mT)
    root = np.clip(squares, 0, None) ** 0.25
    half = Q * root[:, None, :]
    P, size, Rh = np.linalg.svd(s[..., None] * half)
    size = np.where(size > _kept(size), size, 0)
    lift = half @ (Rh.conj().mT * size[:, None, :])
    return U @ P, size**2, lift


def _of_identity(transform: Transform, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return basis and size for `K = W = (L L^H)^(1/2)`."""
    L = L if L.ndim > 2 else L[..., None]
    slices = transform.forward(tubes_first(L), axis=0)
    P, size, _ = np.linalg.svd(slices, full_matrices=False)
    return P, np.where(size > _kept(size), size, 0)


def _kept(size: np.ndarray) -> Any:
    """Return the level below which a singular value is rounding."""
    return 10 * size.shape[-1] * np.finfo(size.dtype).eps * size.max(initial=0)


def _root(lam: float, m: np.ndarray, energy: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Solve `t sqrt(outside + sum energy / (1 + t m)^2) = lam` for each sample; inf if never.

    Directions with m = 0 are not explained at all: they belong to the outside.
    """
    outside = outside + energy[m == 0].sum(axis=0)
    size, m = np.sqrt(energy[m > 0]), m[m > 0][:, None]

    def value(t: np.ndarray) -> np.ndarray:
        inner = ((size / (1 + t * m)) ** 2).sum(axis=0)
        return np.log(t) + 0.5 * np.log(_above_zero(outside + inner))

    total = _above_zero(outside + (size**2).sum(axis=0))
    low = np.log(lam / np.sqrt(total))  # t ||e|| <= t ||y||
    high = low + 1
    goal = np.log(lam)
    with np.errstate(over="ignore"):  # what leaves the floating range has its limit, 0 or infinity
        never = (outside <= 0) & (np.sqrt(((size / m) ** 2).sum(axis=0)) <= lam)
        for _ in range(60):  # the root may lie far above the first guess
            below = (value(np.exp(high)) < goal) & ~never
            if not below.any():
                break
            high = np.where(below, high + (high - low), high)
        t = _bisect(lambda x: value(np.exp(x)) - goal, low, high)
    return np.where(never, np.inf, np.exp(t))


def _bisect(
    rising: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    for _ in range(60):
        middle = (low + high) / 2
        below = rising(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
