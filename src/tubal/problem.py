"""The family of methods as one small immutable object.

    min_Z  ||Z||_*  +  lam g( mask( X - D * Z ) )

A method of the literature is a choice of dictionary D, noise g, transform and mask (the table in
`docs/architecture.md`). A `Problem` holds that choice, the data in coordinates, and what can be
said about `lam` before solving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from scipy.optimize import brentq

from tubal.algebra import slice_adjoint, slice_svd
from tubal.input import Samples, namespace, to_numpy, tubes_first
from tubal.noise import Noise, sample_norms
from tubal.reduction import Reduction, reciprocal
from tubal.transforms import Transform


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, dictionary, noise and transform; `lam` is chosen per solve.

    Attributes
    ----------
    data : Samples
        Zero where an entry is missing.
    reduction : Reduction
        Dictionary and data in coordinates.
    noise : Noise
    """

    data: Samples
    reduction: Reduction
    noise: Noise

    @property
    def transform(self) -> Transform:
        """The transform of the t-product."""
        return self.reduction.transform

    @property
    def in_coordinates(self) -> bool:
        """Whether the noise step can be done in coordinates: whole samples, nothing missing."""
        return self.noise.name == "l21" and self.data.observed is None

    def part(self, span: slice) -> Problem:
        """Return the problem with some of the samples, and the same dictionary."""
        return replace(self, data=self.data.part(span), reduction=self.reduction.part(span))

    @cached_property
    def curvature(self) -> np.ndarray:
        """Level of theta at which each direction starts to be explained, K x r.

        The program with quadratic noise `||X - D Z||^2 / (2 theta)` has the closed-form solution
        that multiplies direction i of slice k by `(1 - theta/d)_+`, with d the product of the
        singular value of the dictionary and the size of the data in that direction: the squared
        singular value when the data is its own dictionary, the singular value itself for the
        identity. For other dictionaries this is an estimate.
        """
        x, s = to_numpy(self.reduction.x), to_numpy(self.reduction.s)
        sizes = [np.linalg.norm(part, axis=1) for part in x]
        return np.asarray(s * np.array(sizes), dtype=float)

    def theta_of_rank(self, rank: float) -> float:
        """Return theta at which the closed form has this nuclear norm, averaged over slices."""
        return theta_of_rank(self.curvature, self.transform.weights, rank)

    def theta_of_lam(self, lam: float) -> float:
        """Return theta at which the closed form's typical residual over theta is `lam`."""
        typical = self.typical()
        return _zero_of(
            lambda theta: typical(theta) / theta - lam, *_positive_range(self.curvature)
        )

    def typical(self) -> Callable[[float], float]:
        """Return the typical residual of the closed form, of a sample or (l1) of an entry.

        It is a function of theta: the harmonic mean of the norms of the samples (samples without
        content left out, the others at least a hundredth of the median), or 0.8 times the root
        mean square entry.
        """
        d = self.curvature
        energies = self._energies()
        if self.noise.name == "l21":

            def of_samples(theta: float) -> float:
                factor = _share_left(theta, d) ** 2
                residuals = np.sqrt(factor.reshape(-1) @ energies + self._offset**2)
                residuals = residuals[residuals > 1e-9 * residuals.max(initial=0)]
                if not len(residuals):
                    return 0.0
                # A harmonic mean is as small as its smallest member lets it be.
                residuals = np.maximum(residuals, 0.01 * np.median(residuals))
                return float(len(residuals) / np.sum(1 / residuals))

            return of_samples
        seen = self.data.observed
        entries = np.prod(self.data.values.shape) if seen is None else np.sum(to_numpy(seen))
        per_row = energies.sum(axis=1).reshape(d.shape)

        def of_entries(theta: float) -> float:
            return 0.8 * float(np.sqrt(np.sum(_share_left(theta, d) ** 2 * per_row) / entries))

        return of_entries

    def _energies(self) -> np.ndarray:
        """Return weighted squared coordinates of the data, (K r) x n2."""
        x = to_numpy(self.reduction.x)
        omega = (self.transform.weights / self.transform.scale).astype(x.real.dtype)
        out = x.real**2
        for k in range(len(x)):
            if np.iscomplexobj(x):
                out[k] += x[k].imag ** 2
            out[k] *= omega[k]
        return out.reshape(-1, x.shape[-1])

    @property
    def _offset(self) -> np.ndarray:
        offset = self.reduction.offset
        return np.zeros(self.data.n_samples) if offset is None else to_numpy(offset)

    def lam_min(self) -> float:
        """Return the `lam` below which `Z = 0` is optimal: everything is noise.

        There the multiplier lies on the surface of the dual ball, `Y = lam sign(X)` (samples scaled
        to unit norm for l21), and `||D^H Y|| <= 1`.
        """
        return self._lam_min

    @cached_property
    def _lam_min(self) -> float:
        red = self.reduction
        xp = namespace(red.x)
        if self.noise.name == "l21":
            norms = sample_norms(red.x, xp.ones_like(red.s) * red.omega[:, None])
            if red.offset is not None:
                norms = xp.sqrt(norms**2 + red.offset**2)
            pulled = red.x / xp.where(norms > 0, norms, xp.ones_like(norms))
        else:
            pulled = self.transform.forward(xp.sign(tubes_first(self.data.values)), axis=0)
            pulled = pulled if red.kind == "identity" else slice_adjoint(red.U) @ pulled
        if red.kind != "identity":
            pulled = pulled * red.s[..., None]
        largest = float(xp.max(xp.linalg.svdvals(pulled)))
        return 1 / largest if largest > 0 else np.inf

    def lam_max(self) -> float:
        """Return a `lam` above which everything that D can explain is explained.

        `Y = U S^-1 P` with P the polar factor of the exact coefficients certifies it: the noise is
        zero as soon as the dual norm of this Y is at most lam. With missing entries, or a
        dictionary that cannot explain all of the data, there is no such proof, and the value is
        only a point of reference: that of the zero-filled data, or of what can be explained.
        """
        return self._lam_max

    @cached_property
    def _lam_max(self) -> float:
        red = self.reduction
        xp = namespace(red.x)
        if red.kind == "array":
            U, s, Vh = slice_svd(self.transform, red.x * reciprocal(red.s)[..., None])
            kept = xp.astype(s > 100 * max(s.shape) * xp.finfo(s.dtype).eps * xp.max(s), s.dtype)
            P = (U * kept[:, None, :]) @ Vh
        else:
            P = red.rows()
        Y = P * reciprocal(red.s)[..., None]
        if self.noise.name == "l21":
            weights = xp.ones_like(red.s) * red.omega[:, None]
            return float(xp.max(sample_norms(Y, weights)))
        return self.noise.dual_norm(self.transform.inverse(red.U @ Y, axis=0))

    def spectral_norm(self) -> float:
        """Return `||X||`, the largest singular value of all slices of the (zero-filled) data."""
        return self._spectral_norm

    @cached_property
    def _spectral_norm(self) -> float:
        xp = namespace(self.reduction.x)
        if self.reduction.kind == "array":
            return float(
                xp.max(
                    xp.linalg.svdvals(self.transform.forward(tubes_first(self.data.values), axis=0))
                )
            )
        return float(xp.max(self.reduction.values))


@dataclass(frozen=True)
class Lambda:
    """A rule that finds `lam` from the data, without labels.

    Use one of `Lambda.paper`, `Lambda.relative`, `Lambda.effective_rank`, `Lambda.entries`,
    `Lambda.samples`, `Lambda.auto`.
    """

    name: str
    parameter: float
    rule: Callable[[Problem, float], float]

    @classmethod
    def paper(cls, alpha: float) -> Lambda:
        """`alpha / (sqrt(log max(n1, n2)) ||X||)`, the paper's choice (its Theorem 2)."""
        return cls("paper", positive("alpha", alpha), _paper)

    @classmethod
    def relative(cls, t: float) -> Lambda:
        """`lam_min^(1-t) lam_max^t`: from all noise (t = 0) to no noise (t = 1).

        The position between these ends means the same under every transform and scale. With
        missing entries the ends are those of the zero-filled data (see `Problem.lam_max`).
        """
        return cls("relative", _finite("t", t), _relative)

    @classmethod
    def effective_rank(cls, rank: float) -> Lambda:
        """Choose `lam` for which about `rank` directions of each slice are explained.

        theta gives the closed-form shrinkage `(1 - theta/s^2)_+` an average nuclear norm of `rank`;
        with its typical sample residual e, `lam = e / theta`.
        """
        return cls("effective_rank", positive("rank", rank), _effective_rank)

    @classmethod
    def entries(cls, alpha: float = 1.0) -> Lambda:
        """`alpha / sqrt(tau max(n1, n2))`, the choice of robust PCA for outlying entries.

        tau is the scale of the transform: n3 for the DFT, 1 for orthonormal transforms and
        matrices. References: E. Candes, X. Li, Y. Ma, J. Wright, Journal of the ACM 58 (2011),
        Theorem 1.1 (matrices); C. Lu et al., IEEE TPAMI 42 (2020) (DFT); C. Lu, ICCV 2021.
        """
        return cls("entries", positive("alpha", alpha), _entries)

    @classmethod
    def samples(cls, alpha: float = 1.0) -> Lambda:
        """`alpha / sqrt(log n2)`, the choice of outlier pursuit for outlying samples.

        References: H. Zhang, Z. Lin, C. Zhang, E. Chang, AAAI 2015 (matrices); P. Zhou, J. Feng,
        CVPR 2017 (tensors).
        """
        return cls("samples", positive("alpha", alpha), _samples)

    @classmethod
    def auto(cls, level: float = 2.8) -> Lambda:
        """`effective_rank` of `level` times what the spectrum suggests.

        The suggestion is the stable rank `sum s^2 / max s^2` of a slice, averaged over slices by
        their energy, but at least 2: about 2 for pictures, where a few directions hold most of the
        energy, and far more where many directions are alike. A single slice has to hold everything:
        there it is `(sum s)^2 / sum s^2`. At most half the rank of the data is suggested, and at
        most nine tenths are taken. `tubal.selection` looks for the level that suits the data.
        """
        return cls("auto", positive("level", level), _auto)

    def of(self, problem: Problem) -> float:
        """Return the number for this problem."""
        return self.rule(problem, self.parameter)

    def __repr__(self) -> str:
        return f"Lambda.{self.name}({self.parameter!r})"


def _paper(problem: Problem, alpha: float) -> float:
    longest = max(problem.data.n1, problem.data.n_samples)
    if longest < 2:
        msg = "Lambda.paper needs max(n1, n2) of at least 2: its logarithm is zero"
        raise ValueError(msg)
    return alpha / (log(longest) ** 0.5 * problem.spectral_norm())


def _entries(problem: Problem, alpha: float) -> float:
    longest = max(problem.data.n1, problem.data.n_samples)
    return alpha / (problem.transform.scale * longest) ** 0.5


def _samples(problem: Problem, alpha: float) -> float:
    return alpha / log(max(problem.data.n_samples, 2)) ** 0.5


def _relative(problem: Problem, t: float) -> float:
    try:
        return problem.lam_min() ** (1 - t) * problem.lam_max() ** t
    except OverflowError:
        return np.inf


MOST_OF_RANK = 0.9
"""Share of the rank of the data that an effective rank may have."""


def _auto(problem: Problem, level: float) -> float:
    values, weights = to_numpy(problem.reduction.values), problem.transform.weights
    most = MOST_OF_RANK * _average_rank(problem)
    return _effective_rank(problem, min(level * suggested_rank(values, weights), most))


def suggested_rank(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the effective rank that the spectrum suggests, as `Lambda.auto` explains.

    `values` are the singular values of the data, K x r.
    """
    squares = values.astype(float) ** 2
    if len(weights) > 1:
        rank = _stable_rank(squares, weights)
    else:
        rank = float(values.sum() ** 2 / squares.sum()) if squares.any() else 1.0
    return min(max(2.0, rank), float(weights @ (values > 0).sum(1) / weights.sum()) / 2)


def theta_of_rank(d: np.ndarray, weights: np.ndarray, rank: float) -> float:
    """Return theta at which `sum (1 - theta/d)_+`, averaged over slices, is `rank`."""
    target = rank * weights.sum()

    def excess(theta: float) -> float:
        return float(weights @ (1 - _share_left(theta, d)).sum(1) - target)

    return _zero_of(excess, *_positive_range(d))


def _share_left(theta: float, d: np.ndarray) -> np.ndarray:
    """Return `min(1, theta/d)`, the share of each direction that is not explained."""
    share: np.ndarray = theta / np.maximum(d, theta)  # no quotient is above 1, however small d is
    return share


def _stable_rank(squares: np.ndarray, weights: np.ndarray) -> float:
    """Return the stable rank for squared singular values, averaged over slices by their energy."""
    largest = squares.max(axis=1)
    energy = weights * squares.sum(axis=1)
    ranks = squares.sum(axis=1) / np.where(largest > 0, largest, 1)
    return float(energy @ ranks / energy.sum()) if energy.sum() > 0 else 1.0


def _average_rank(problem: Problem) -> float:
    """Return the rank of the data, averaged over slices."""
    weights = problem.transform.weights
    return float(weights @ (problem.curvature > 0).sum(1) / weights.sum())


def _effective_rank(problem: Problem, rank: float) -> float:
    largest = _average_rank(problem)
    if rank >= largest:
        msg = (
            f"Lambda.effective_rank needs a rank below that of the data, {largest:g} on the "
            f"average over slices, got {rank!r}"
        )
        raise ValueError(msg)
    theta = problem.theta_of_rank(rank)
    return problem.typical()(theta) / theta


def resolve_lam(lam: Any, problem: Problem) -> float:
    """Turn what a user may pass as `lam` into a positive number."""
    value = lam.of(problem) if isinstance(lam, Lambda) else positive("lam", lam)
    if not (np.isfinite(value) and value > 0):
        msg = f"{lam!r} gives lam = {value!r} for this data; pass a positive number"
        raise ValueError(msg)
    return float(value)


def _zero_of(decreasing: Callable[[float], float], low: float, high: float) -> float:
    """Find the zero of a decreasing function of theta in [low, high], in log scale; ends clip."""
    ends = float(np.log(low)), float(np.log(high))

    def at(t: float) -> float:
        return decreasing(float(np.exp(t)))

    if at(ends[0]) <= 0:
        return low
    if at(ends[1]) >= 0:
        return high
    return float(np.exp(brentq(at, *ends, xtol=1e-12)))


def _positive_range(d: np.ndarray) -> tuple[float, float]:
    positive = d[d > 0]
    if not len(positive):
        return 1.0, 1.0
    return float(1e-3 * max(positive.min(), 1e-14 * positive.max())), float(positive.max())


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if isinstance(value, (bool, np.bool_, str, bytes)) or not np.isfinite(number):
        msg = f"{name} must be a finite number, got {value!r}"
        raise ValueError(msg)
    return number


def positive(name: str, value: Any) -> float:
    """Return a positive number, or raise a ValueError that names it."""
    number = _finite(name, value)
    if number <= 0:
        msg = f"{name} must be positive, got {value!r}"
        raise ValueError(msg)
    return number
