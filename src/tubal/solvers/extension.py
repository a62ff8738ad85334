"""New samples under a solved problem.

The nuclear norm of a solution `Z` is `min_W tr(Z^H W^-1 Z + W) / 2`, attained at
`W = (Z Z^H)^(1/2)` in every slice. With this W held fixed the program falls apart into one small
problem for each sample y, old or new:

    min_z  z^H W^-1 z / 2  +  lam g( mask( y - D * z ) )

At an optimal Z its solution for an old sample is the column of Z that belongs to it, so the answer
for new samples is that of the fit, continued. The dual problem has one simple constraint,

    max_u  <y, u> - <u, K u> / 2    subject to    g°(u) <= lam, u = 0 off the mask,

with `K = D W D^H`, and `D z = K u`, `E = y - K u`. Whole-sample noise on complete data leaves one
unknown number for each sample; otherwise it is solved by accelerated projected ascent (A. Beck,
M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", SIAM Journal on Imaging Sciences
2 (2009), with the restart of B. O'Donoghue, E. Candes, Foundations of Computational Mathematics 15
(2015)). An exact fit is the solution of least norm of a linear system, or of the least squares
problem when a sample can not be fitted: conjugate gradients on `K = H H^H`, `y = H v`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tubal._threads import effective_jobs, spans, threaded
from tubal.input import Samples, samples_first, to_numpy, tubes_first
from tubal.noise import Noise
from tubal.reduction import Reduction
from tubal.solvers.solution import Solution
from tubal.transforms import Transform

BLOCK = 128  # samples at a time


@dataclass(frozen=True, eq=False)
class Extended:
    """New samples as the solution explains them.

    Attributes
    ----------
    core : array of shape (K, r, m) or None
        Coefficients in the coordinates of the solution's `Z`; None for the identity dictionary.
    L, E : arrays in the layout of the data, (m, n1, *sizes)
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
        tol: float = 1e-4,
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
            u = self._project(_Dual(self, y, seen).accelerated(tol, max_iter))
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

    def kernel(self, u: np.ndarray) -> np.ndarray:
        """Return the observed part of `K u`."""
        return self.mask(self.extension._explained(self.extension._project(u)))

    def accelerated(self, tol: float, max_iter: int) -> np.ndarray:
        """Return u after projected ascent with momentum, restarted when it points downhill.

        Every sample stops by its own gap, so that it gets the same answer in every company.
        """
        noise, lam = self.extension.noise, self.extension.lam
        answer = np.zeros_like(self.y)
        largest = float(self.extension.size.max(initial=0))
        if largest == 0:  # nothing is ever explained, whatever u is
            return answer
        u = v = Ku = Kv = np.zeros_like(self.y)
        momentum, columns, part = np.ones(self.y.shape[-1]), np.arange(self.y.shape[-1]), self
        for n in range(1, max_iter + 1):
            new = part.mask(noise.project(v + (part.y - Kv) / largest, lam))
            K_new = part.kernel(new)
            uphill = _columns((new - v) * (new - u)) >= 0
            following = np.where(uphill, (1 + np.sqrt(1 + 4 * momentum**2)) / 2, 1.0)
            weight = np.where(uphill, (momentum - 1) / following, 0.0)
            v, Kv = new + weight * (new - u), K_new + weight * (K_new - Ku)
            u, Ku, momentum = new, K_new, following
            if n % 20 and n < max_iter:
                continue
            late = part.gaps(u, Ku) > tol
            answer[..., columns] = u
            if not late.any():
                break
            u, v, Ku, Kv = (A[..., late] for A in (u, v, Ku, Kv))
            momentum, columns, part = momentum[late], columns[late], part.only(late)
        return answer

    def only(self, chosen: np.ndarray) -> _Dual:
        """Return the problem of some of the samples."""
        seen = None if self.seen is None else self.seen[..., chosen]
        return _Dual(self.extension, self.y[..., chosen], seen)

    def gaps(self, u: np.ndarray, Ku: np.ndarray) -> np.ndarray:
        """Return the relative duality gap of each sample."""
        rest = self.y - Ku
        l1 = self.extension.noise.name == "l1"
        size = _columns(np.abs(rest)) if l1 else np.sqrt(_columns(rest**2))
        quadratic = _columns(u * Ku) / 2
        primal = quadratic + self.extension.lam * size
        return (primal - _columns(u * self.y) + quadratic) / np.maximum(primal, 1e-300)

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


def _columns(A: np.ndarray) -> np.ndarray:
    """Sum over all axes but the last."""
    return A.reshape(-1, A.shape[-1]).sum(axis=0)


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
    energy, m = energy[m > 0], m[m > 0]
    limit = np.sum(energy / m[:, None] ** 2, axis=0) if len(m) else np.zeros_like(outside)
    never = (outside <= 0) & (np.sqrt(limit) <= lam)

    def value(t: np.ndarray) -> np.ndarray:
        inner = (energy / (1 + t * m[:, None]) ** 2).sum(axis=0) if len(m) else 0.0
        return np.log(t) + 0.5 * np.log(np.maximum(outside + inner, 1e-300))

    total = np.maximum(outside + energy.sum(axis=0), 1e-300)
    low = np.log(lam / np.sqrt(total))  # t ||e|| <= t ||y||
    high = low + 1
    goal = np.log(lam)
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
