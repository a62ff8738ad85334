"""Transforms that have a fast algorithm, or need none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

from tubal._threads import blas_threads
from tubal.input import Array, namespace
from tubal.transforms import short
from tubal.transforms.base import Sized, Transform, rebind
from tubal.transforms.matrices import along


class Identity(Sized):
    """No transform: L = I, tau = 1. Every frontal slice stands alone.

    >>> Identity(3).scale
    1.0
    """

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Return `A`."""
        if self.sizes is not None:
            self._check_axis(A, axis, self.n3)
        return A

    inverse = forward


class Fourier(Sized):
    """The discrete Fourier transform, tau = n3: the t-product of Kilmer and Martin.

    Real tubes have a conjugate-symmetric spectrum, so `n3 // 2 + 1` slices are kept and those with
    a twin weigh 2. `full()` keeps all `n3`, which complex tubes need.

    >>> Fourier(5).weights, Fourier(4).weights, Fourier(4).scale
    (array([1., 2., 2.]), array([1., 2., 1.]), 4.0)
    """

    is_real = False
    keeps_real = True

    def __init__(self, n3: int | None = None, *, half: bool = True) -> None:
        super().__init__(n3)
        self.half = half

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform for tubes of length `n3` (the identity when `n3` is 1)."""
        bound = rebind(self, n3)
        return Identity(1) if n3 == 1 else bound

    def full(self) -> Transform:
        """Return the DFT that keeps all `n3` slices."""
        return type(self)(None if self.sizes is None else self.n3, half=False)

    @property
    def scale(self) -> float:
        """The tau of `L L^H = tau I`: n3."""
        return float(self.n3)

    @property
    def weights(self) -> np.ndarray:
        """How often each kept slice counts."""
        index, _ = self.expansion
        return np.bincount(index).astype(float)

    @property
    def real_slices(self) -> np.ndarray:
        """The mean and, for even n3, the Nyquist slice."""
        if not self.half:
            return np.empty(0, dtype=np.intp)
        return np.unique([0, self.n3 // 2]) if self.n3 % 2 == 0 else np.array([0])

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """Slice k > n3/2 is the conjugate of slice n3 - k."""
        k = np.arange(self.n3)
        twin = (2 * k > self.n3) & self.half
        return np.where(twin, self.n3 - k, k), twin

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform the tubes of `A` along `axis`."""
        if self.sizes is not None:
            self._check_axis(A, axis, self.n3)
        complex_input = namespace(A).isdtype(A.dtype, "complex floating")
        if self.half and complex_input:
            msg = "the half spectrum needs real data; use Fourier(...).full() for complex data"
            raise ValueError(msg)
        if self.half and _is_short(short.suits_fourier, A, A.shape[axis], axis):
            return short.rfft(A, axis)
        if self.half:
            return _fft("rfft", A, axis=axis)
        return _fft("fft", A if complex_input else A + 0j, axis=axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`; the half spectrum gives real tubes."""
        n3 = self.n3
        self._check_axis(A, axis, self.n_slices)
        if self.half and _is_short(short.suits_half_spectrum, A, n3, axis):
            return short.irfft(A, n3, axis)
        return _fft("irfft", A, axis=axis, n=n3) if self.half else _fft("ifft", A, axis=axis)


class Cosine(Sized):
    """The orthonormal discrete cosine transform (DCT-II), tau = 1.

    >>> Cosine(4).forward(np.ones(4))
    array([2., 0., 0., 0.])
    """

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform the tubes of `A` along `axis`."""
        return self._apply(A, axis, inverse=False)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""
        return self._apply(A, axis, inverse=True)

    def _apply(self, A: Array, axis: int, inverse: bool) -> Array:
        self._check_axis(A, axis, A.shape[axis] if self.sizes is None else self.n3)
        if _is_short(short.suits_cosine, A, A.shape[axis], axis):
            return short.cosine(A, axis, inverse)
        transform = scipy.fft.idct if inverse else scipy.fft.dct
        if isinstance(A, np.ndarray):
            return transform(A, norm="ortho", axis=axis, workers=blas_threads())
        unit = np.eye(A.shape[axis])
        return along(transform(unit, norm="ortho", axis=0), A, axis)


def _is_short(suits: Callable[[np.ndarray, int, int], bool], A: Array, n: int, axis: int) -> bool:
    return isinstance(A, np.ndarray) and suits(A, n, axis)


def _fft(name: str, A: Array, **options: Any) -> Array:
    if isinstance(A, np.ndarray):
        return getattr(scipy.fft, name)(A, workers=blas_threads(), **options)
    return getattr(namespace(A).fft, name)(A, **options)
