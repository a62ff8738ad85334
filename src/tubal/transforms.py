"""Transforms: the `L` of the t-product, as objects.

A transform acts on the tubes of a tensor (its last axis, or its first: `axis=0`) and satisfies
`L L^H = tau I`. In the transform domain a tensor is a stack of matrices, the *slices*, and every
t-operation is a matrix operation on each of them. `tau` is `scale`. When real data makes slices
come in conjugate pairs (the DFT), one of each pair is kept and counts twice: `weights`. So, with
`omega = weights / scale`,

    <A, B> = sum_k omega_k Re <A_k, B_k>    and    ||A||_* = sum_k omega_k ||A_k||_*.

A transform made without a size is a *rule*; `bind` gives it one. Reference: E. Kernfeld,
M. Kilmer, S. Aeron, "Tensor-tensor products with invertible linear transforms", Linear Algebra
and its Applications 485 (2015).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any, Self

import numpy as np
import scipy.fft

from tubal._threads import blas_threads
from tubal.input import Array, device_of, namespace, to_numpy

__all__ = [
    "Composed",
    "Cosine",
    "DataDriven",
    "Fourier",
    "Identity",
    "Orthogonal",
    "RandomOrthogonal",
    "Transform",
    "resolve",
    "same_transform",
]


class Transform(ABC):
    """One orthogonal transform along one or more axes.

    Attributes
    ----------
    sizes : tuple of int or None
        Lengths of the axes it runs along; None while it is a rule without a size.
    """

    sizes: tuple[int, ...] | None = None
    is_real: bool = True
    """Whether real input has real slices."""

    @abstractmethod
    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform for tubes of length `n3`.

        `data`, with tubes along the last axis, and `observed` (bool, same shape) are read by
        transforms that are fitted; the others pass them by.
        """

    @abstractmethod
    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform the tubes of `A`, which lie along `axis` (-1 or 0)."""

    @abstractmethod
    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""

    def full(self) -> Transform:
        """Return the transform that keeps every slice, as complex data needs."""
        return self

    @property
    def reproducible(self) -> bool:
        """Whether binding the same rule again gives the same transform."""
        return True

    @property
    def n3(self) -> int:
        """Number of entries of a tube (the product of `sizes`)."""
        if self.sizes is None:
            msg = f"{self!r} has no size yet: bind it first, for example {self!r}.bind(8)"
            raise ValueError(msg)
        return prod(self.sizes)

    @property
    def scale(self) -> float:
        """The tau of `L L^H = tau I`."""
        return 1.0

    @property
    def weights(self) -> np.ndarray:
        """How often each kept slice counts: 2 for one that stands for a conjugate pair."""
        return np.ones(self.n3)

    @property
    def n_slices(self) -> int:
        """Number of slices kept."""
        return len(self.weights)

    @property
    def keeps_real(self) -> bool:
        """Whether the t-product of real tensors is real: a real L, or the DFT."""
        return self.is_real

    @property
    def real_slices(self) -> np.ndarray:
        """Indices of the complex-typed slices that are real when the data is."""
        return np.empty(0, dtype=np.intp)

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """For each of the n3 slices: the kept slice it comes from, and whether it is conjugated."""
        return np.arange(self.n3), np.zeros(self.n3, dtype=bool)

    @property
    def matrix(self) -> np.ndarray:
        """The n3 x n3 matrix L, tubes flattened in C order."""
        unit = np.eye(self.n3).reshape(self.n3, *(self.sizes or ()))
        full = self.full()
        return np.ascontiguousarray(full.forward(unit if full.is_real else unit + 0j).T)

    def _check_axis(self, A: Array, axis: int, length: int) -> None:
        if axis not in (0, -1):
            msg = f"axis must be 0 or -1, got {axis!r}"
            raise ValueError(msg)
        if A.shape[axis] != length:
            msg = f"{self!r} needs {length} entries along axis {axis}, got shape {tuple(A.shape)}"
            raise ValueError(msg)


class _Sized(Transform):
    """A transform along one axis whose length is all it needs to know."""

    def __init__(self, n3: int | None = None) -> None:
        self.sizes = None if n3 is None else (_check_size(n3),)

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform for tubes of length `n3`."""
        return _rebind(self, n3)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.sizes is None else self.sizes[0]})"


class Identity(_Sized):
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


class Fourier(_Sized):
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
        bound = _rebind(self, n3)
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
        if self.half:
            return _fft("rfft", A, axis=axis)
        return _fft("fft", A if complex_input else A + 0j, axis=axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`; the half spectrum gives real tubes."""
        n3 = self.n3
        self._check_axis(A, axis, self.n_slices)
        return _fft("irfft", A, axis=axis, n=n3) if self.half else _fft("ifft", A, axis=axis)


class _Matrix(Transform):
    """A transform given by its matrix."""

    _matrix: np.ndarray | None = None
    _scale: float = 1.0

    @property
    def scale(self) -> float:
        """The tau of `L L^H = tau I`."""
        return self._scale

    @property
    def matrix(self) -> np.ndarray:
        """The n3 x n3 matrix L."""
        if self._matrix is None:
            msg = f"{self!r} has no size yet: bind it first, for example {self!r}.bind(8)"
            raise ValueError(msg)
        return self._matrix

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Multiply every tube of `A` by L."""
        self._check_axis(A, axis, len(self.matrix))
        return _along(self.matrix, A, axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Multiply every tube of `A` by `L^H / tau`."""
        self._check_axis(A, axis, len(self.matrix))
        return _along(self.matrix.conj().T / self.scale, A, axis)

    def _with_matrix(self, matrix: np.ndarray, scale: float = 1.0) -> Self:
        bound = copy.copy(self)
        bound._matrix, bound._scale, bound.sizes = matrix, scale, (len(matrix),)
        bound.is_real = not np.iscomplexobj(matrix)
        return bound


class Cosine(_Sized):
    """The orthonormal discrete cosine transform (DCT-II), tau = 1.

    >>> Cosine(4).forward(np.ones(4))
    array([2., 0., 0., 0.])
    """

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform the tubes of `A` along `axis`."""
        return self._apply(A, axis, scipy.fft.dct)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""
        return self._apply(A, axis, scipy.fft.idct)

    def _apply(self, A: Array, axis: int, transform: Any) -> Array:
        self._check_axis(A, axis, A.shape[axis] if self.sizes is None else self.n3)
        if isinstance(A, np.ndarray):
            return transform(A, norm="ortho", axis=axis, workers=blas_threads())
        unit = np.eye(A.shape[axis])
        return _along(transform(unit, norm="ortho", axis=0), A, axis)


class Orthogonal(_Matrix):
    """Any matrix L with `L L^H = tau I`.

    A deviation of up to 1e-6 is taken for rounding (of a float32 matrix, say) and removed: the
    nearest matrix that satisfies it exactly is used.

    >>> Orthogonal([[1.0, 1.0], [1.0, -1.0]]).scale
    2.0
    """

    def __init__(self, matrix: Any) -> None:
        L = np.asarray(matrix)
        if L.ndim != 2 or L.shape[0] != L.shape[1] or L.shape[0] == 0:
            msg = f"matrix must be square, got shape {L.shape}"
            raise ValueError(msg)
        if L.dtype.kind not in "biufc" or not np.all(np.isfinite(L)):
            msg = f"matrix must hold finite numbers, got dtype {L.dtype}"
            raise ValueError(msg)
        L = L.astype(np.result_type(L.dtype, np.float64))
        gram = L @ L.conj().T
        tau = float(np.trace(gram).real / len(L))
        deviation = np.abs(gram - tau * np.eye(len(L))).max() / tau if tau > 0 else np.inf
        if deviation > 1e-6:
            msg = (
                f"matrix is not orthogonal: L L^H differs from tau I (tau = {tau:.6g}) by "
                f"{deviation:.3g} tau; np.linalg.qr(matrix)[0] would be"
            )
            raise ValueError(msg)
        if deviation > 1e-13:  # inverses and certificates rely on exact orthogonality
            U, _, Vh = np.linalg.svd(L)
            L = tau**0.5 * (U @ Vh)
        self._matrix, self._scale, self.sizes = L, tau, (len(L),)
        self.is_real = not np.iscomplexobj(L)

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform; `n3` must be the size of its matrix."""
        _check_same_size(self, n3)
        return self

    def __repr__(self) -> str:
        n = len(self.matrix)
        return f"Orthogonal(<{n} x {n} matrix>)"


class RandomOrthogonal(_Matrix):
    """A random orthogonal matrix, uniform over the orthogonal group (Haar), tau = 1.

    The matrix is drawn when the transform gets its size; the same integer `random_state` and size
    give the same matrix.

    >>> A = RandomOrthogonal(0).bind(3).matrix
    >>> bool(np.allclose(A @ A.T, np.eye(3)))
    True
    """

    def __init__(self, random_state: Any = None, n3: int | None = None) -> None:
        self.random_state = random_state
        if n3 is not None:
            self._draw(_check_size(n3))

    def _draw(self, n3: int) -> None:
        rng = self.random_state
        rng = rng if isinstance(rng, np.random.RandomState) else np.random.default_rng(rng)
        Q, R = np.linalg.qr(rng.standard_normal((n3, n3)))
        # The signs of R's diagonal make Q uniform (Mezzadri, Notices AMS 54, 2007).
        self._matrix, self.sizes = Q * np.sign(np.diag(R)), (n3,)

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Draw the matrix for tubes of length `n3`."""
        if self.sizes is not None:
            _check_same_size(self, n3)
            return self
        return type(self)(self.random_state, n3)

    @property
    def reproducible(self) -> bool:
        """Whether the matrix is determined by an integer seed."""
        return isinstance(self.random_state, (int, np.integer))

    def __repr__(self) -> str:
        size = "" if self.sizes is None else f", n3={self.sizes[0]}"
        return f"RandomOrthogonal({self.random_state!r}{size})"


class DataDriven(_Matrix):
    """The left singular vectors of the mode-3 unfolding of the data, as rows of L; tau = 1.

    They are the eigenvectors of the n3 x n3 second moments of the tubes. With missing entries each
    moment is the mean over the pairs where both entries are observed (zero when there is none).
    Rows are sorted by falling moment and signed so that their largest entry is positive.

    >>> X = np.outer([1.0, -2.0, 3.0], [3.0, 4.0])  # every tube is a multiple of (3, 4)
    >>> DataDriven().bind(2, X).matrix.round(3)
    array([[ 0.6,  0.8],
           [ 0.8, -0.6]])
    """

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Fit the transform to the tubes of `data` (last axis), on its observed entries."""
        if self.sizes is not None:
            _check_same_size(self, n3)
            return self
        if data is None:
            msg = (
                "the data-driven transform is fitted to data and none was given: fit it once, "
                "L = tubal.transforms.resolve('data', n3, data=X), and pass transform=L"
            )
            raise ValueError(msg)
        if data.shape[-1] != n3:
            msg = f"data has tubes of length {data.shape[-1]}, not {n3}"
            raise ValueError(msg)
        moments = _second_moments(data, observed)
        eigenvectors = np.linalg.eigh(moments)[1][:, ::-1].T
        largest = np.abs(eigenvectors).argmax(axis=1)
        signs = np.sign(eigenvectors[np.arange(n3), largest])
        return self._with_matrix(np.ascontiguousarray(eigenvectors * signs[:, None]))

    def __repr__(self) -> str:
        return f"DataDriven(<{self.sizes[0]} fitted>)" if self.sizes else "DataDriven()"


class Composed(Transform):
    """One transform for each of several trailing axes; its slices are flattened in C order.

    Of real data under one or more DFTs one slice of each conjugate pair is kept, provided the other
    transforms are real.

    >>> t = Composed([Fourier(4), Cosine(3)])
    >>> t.sizes, t.n_slices, t.scale
    ((4, 3), 9, 4.0)
    """

    def __init__(self, axes: Sequence[Transform]) -> None:
        self.axes = tuple(axes)
        self.sizes = tuple(axis.n3 for axis in self.axes)
        fourier = [i for i, axis in enumerate(self.axes) if isinstance(axis, Fourier)]
        halved = [i for i in fourier if self.axes[i].half]  # type: ignore[attr-defined]
        others_real = all(axis.is_real for axis in self.axes if not isinstance(axis, Fourier))
        self.is_real = not fourier and others_real
        self._fourier = fourier
        # The DFT of the last Fourier axis meets real data first and gives half a spectrum.
        self._half = halved[-1] if halved and len(halved) == len(fourier) and others_real else None
        self._steps = tuple(
            axis if i == self._half else axis.full() for i, axis in enumerate(self.axes)
        )

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Return this transform; `n3` must be the product of its sizes."""
        _check_same_size(self, n3)
        return self

    def full(self) -> Transform:
        """Return the transform that keeps every slice."""
        return Composed([axis.full() for axis in self.axes])

    @property
    def keeps_real(self) -> bool:
        """Whether all axes do."""
        return all(axis.keeps_real for axis in self.axes)

    @property
    def reproducible(self) -> bool:
        """Whether all axes are."""
        return all(axis.reproducible for axis in self.axes)

    @property
    def scale(self) -> float:
        """The product of the scales of the axes."""
        return prod(axis.scale for axis in self.axes)

    @property
    def weights(self) -> np.ndarray:
        """How often each kept slice counts."""
        return np.bincount(self.expansion[0]).astype(float)

    @property
    def real_slices(self) -> np.ndarray:
        """Kept slices that are their own conjugate."""
        if self._half is None:
            return np.empty(0, dtype=np.intp)
        grid = np.arange(self.n3).reshape(self.sizes or ())
        own = grid[self._twin_index()] == grid
        return np.unique(self.expansion[0][own.ravel()])

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """For each of the n3 slices: the kept slice it comes from, and whether it is conjugated."""
        return self._tables[1], self._tables[2]

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Transform `A` along its last axes (or its first, `axis=0`); slices come flattened."""
        A, first, axis = self._open(A, axis, self.sizes or ())
        order = sorted(range(len(self._steps)), key=lambda i: i != self._half)
        for i in order:
            A = _on_axis(self._steps[i].forward, A, first + i)
        A = self._flatten(A, axis, first)
        keep = self._tables[0]
        return A if len(keep) == A.shape[axis] else _take(A, keep, axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Undo `forward`."""
        self._check_axis(A, axis, self.n_slices)
        xp = namespace(A)
        grid = self._grid
        index, conjugate = (table.reshape(self.sizes or ()) for table in self.expansion)
        part = tuple(slice(0, n) for n in grid)  # the half spectrum inside the full grid
        index, conjugate = index[part].ravel(), conjugate[part].ravel()
        if len(index) != A.shape[axis]:
            A = _take(A, index, axis)
            if conjugate.any():
                flags = xp.asarray(conjugate, device=device_of(A))
                A = xp.where(flags if axis == -1 else _tall(flags, A), xp.conj(A), A)
        shape = tuple(A.shape[:-1]) + grid if axis == -1 else grid + tuple(A.shape[1:])
        A = xp.reshape(A, shape)
        first = A.ndim - len(grid) if axis == -1 else 0
        for i in sorted(range(len(self._steps)), key=lambda i: i == self._half):
            A = _on_axis(self._steps[i].inverse, A, first + i)
        return A

    @property
    def _grid(self) -> tuple[int, ...]:
        """Number of slices along each axis before twins are dropped."""
        return tuple(step.n_slices for step in self._steps)

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions kept in the computed grid, and the expansion to all n3 slices."""
        sizes = self.sizes or ()
        own = np.arange(self.n3).reshape(sizes)
        if self._half is None:
            return own.ravel(), own.ravel(), np.zeros(self.n3, dtype=bool)
        twin = own[self._twin_index()]
        inside = np.zeros(sizes, dtype=bool)
        inside[tuple(slice(0, n) for n in self._grid)] = True
        # Of a pair keep the member inside the computed half; of two inside, the first.
        keep = inside & ((own <= twin) | ~inside.ravel()[twin])
        position = np.cumsum(keep.ravel()) - 1
        index = np.where(keep, position[own], position[twin])
        computed = np.flatnonzero(keep[tuple(slice(0, n) for n in self._grid)])
        return computed, index.ravel(), ~keep.ravel()

    def _twin_index(self) -> tuple[np.ndarray, ...]:
        axes = [
            (-np.arange(n)) % n if i in self._fourier else np.arange(n)
            for i, n in enumerate(self.sizes or ())
        ]
        return np.ix_(*axes)

    def _open(self, A: Array, axis: int, sizes: tuple[int, ...]) -> tuple[Array, int, int]:
        shape = tuple(A.shape)
        found = shape[len(shape) - len(sizes) :] if axis == -1 else shape[: len(sizes)]
        if axis not in (0, -1) or found != sizes:
            where = "last" if axis == -1 else "first"
            msg = f"{self!r} needs {where} axes of sizes {sizes}, got shape {shape}"
            raise ValueError(msg)
        return A, (len(shape) - len(sizes) if axis == -1 else 0), axis

    def _flatten(self, A: Array, axis: int, first: int) -> Array:
        shape, m = tuple(A.shape), len(self.axes)
        shape = (*shape[:first], -1) if axis == -1 else (prod(shape[:m]), *shape[m:])
        return namespace(A).reshape(A, shape)

    def __repr__(self) -> str:
        return f"Composed({list(self.axes)!r})"


def same_transform(a: Transform, b: Transform) -> bool:
    """Whether two bound transforms are the same.

    >>> same_transform(Cosine(3), Cosine(3)), same_transform(Cosine(3), Identity(3))
    (True, False)
    """
    if a is b:
        return True
    if type(a) is not type(b) or a.sizes != b.sizes:
        return False
    if isinstance(a, Composed) and isinstance(b, Composed):
        return all(same_transform(x, y) for x, y in zip(a.axes, b.axes, strict=True))
    return not isinstance(a, _Matrix) or np.array_equal(a.matrix, b.matrix)


NAMES = {
    "dft": Fourier,
    "dct": Cosine,
    "rom": RandomOrthogonal,
    "data": DataDriven,
    "none": Identity,
}


def resolve(
    transform: Any,
    sizes: int | Sequence[int] | None = None,
    *,
    data: Array | None = None,
    observed: Array | None = None,
    random_state: Any = None,
) -> Transform:
    """Turn what a user may pass as `transform` into an object; the only place that reads names.

    Parameters
    ----------
    transform : Transform, str, array-like of shape (n3, n3), or a sequence of these, one an axis
        Names: "dft", "dct", "rom" (random orthogonal matrix), "data" (data-driven), "none".
    sizes : int, sequence of int or None
        Lengths of the axes the transform runs along. None leaves a name without a size.
    data, observed : array of shape `(..., *sizes)`, optional
        What data-driven transforms are fitted to.
    random_state : None, int or Generator
        Used for the name "rom".

    Examples
    --------
    >>> resolve("dct", 8)
    Cosine(8)
    >>> resolve(["dft", "none"], (4, 3))
    Composed([Fourier(4), Identity(3)])
    """
    if sizes is None:
        return _to_rule(transform, random_state)
    sizes = (_check_size(sizes),) if isinstance(sizes, (int, np.integer)) else tuple(sizes)
    if isinstance(transform, Transform) and transform.sizes is not None:
        if transform.sizes != sizes:
            msg = f"transform {transform!r} is for sizes {transform.sizes}, the data has {sizes}"
            raise ValueError(msg)
        return transform
    rules = [_to_rule(t, random_state) for t in _one_for_each_axis(transform, sizes)]
    bound = []
    for i, (rule, n) in enumerate(zip(rules, sizes, strict=True)):
        axis = i - len(sizes)
        tubes = None if data is None else namespace(data).moveaxis(data, axis, -1)
        seen = None if observed is None else namespace(observed).moveaxis(observed, axis, -1)
        bound.append(rule.bind(n, tubes, seen))
    return bound[0] if len(bound) == 1 else Composed(bound)


def _one_for_each_axis(transform: Any, sizes: tuple[int, ...]) -> list[Any]:
    listed = isinstance(transform, (list, tuple)) and any(
        isinstance(t, (str, Transform)) or np.ndim(t) == 2 for t in transform
    )
    if not listed:
        return [transform] * len(sizes)
    if len(transform) != len(sizes):
        msg = f"transform lists {len(transform)} transforms for {len(sizes)} axes (sizes {sizes})"
        raise ValueError(msg)
    return list(transform)


def _to_rule(transform: Any, random_state: Any) -> Transform:
    if isinstance(transform, Transform):
        return transform
    if isinstance(transform, str) and transform in NAMES:
        return RandomOrthogonal(random_state) if transform == "rom" else NAMES[transform]()
    if isinstance(transform, str) or np.ndim(transform) != 2:
        msg = (
            f"transform must be one of {sorted(NAMES)}, a square matrix or a Transform, "
            f"got {transform!r}"
        )
        raise ValueError(msg)
    return Orthogonal(transform)


def _check_size(n3: Any) -> int:
    if isinstance(n3, bool) or not isinstance(n3, (int, np.integer)) or n3 < 1:
        msg = f"the size of a transform must be a positive integer, got {n3!r}"
        raise ValueError(msg)
    return int(n3)


def _check_same_size(transform: Transform, n3: int) -> None:
    if transform.n3 != n3:
        msg = f"transform {transform!r} is for tubes of length {transform.n3}, the data has {n3}"
        raise ValueError(msg)


def _rebind(transform: _Sized, n3: int) -> _Sized:
    if transform.sizes is not None:
        _check_same_size(transform, n3)
    bound = copy.copy(transform)
    bound.sizes = (_check_size(n3),)
    return bound


def _second_moments(data: Array, observed: Array | None) -> np.ndarray:
    n3 = data.shape[-1]
    xp = namespace(data)
    T = xp.reshape(data, (-1, n3))
    if observed is None:
        return to_numpy(T.T @ T) / T.shape[0]
    W = xp.astype(xp.reshape(observed, (-1, n3)), T.dtype)
    T = xp.where(W > 0, T, xp.zeros_like(T))
    return to_numpy(T.T @ T) / np.maximum(to_numpy(W.T @ W), 1)


def _along(M: np.ndarray, A: Array, axis: int) -> Array:
    """Multiply the tubes of `A` along `axis` (0 or -1) by `M`."""
    xp = namespace(A)
    M = _matching(M, A)
    if M.dtype != A.dtype and xp.isdtype(M.dtype, "complex floating"):
        A = xp.astype(A, M.dtype)
    shape = tuple(A.shape)
    if axis == -1:
        return xp.reshape(xp.reshape(A, (-1, shape[-1])) @ M.T, (*shape[:-1], M.shape[0]))
    return xp.reshape(M @ xp.reshape(A, (shape[0], -1)), (M.shape[0], *shape[1:]))


def _matching(M: np.ndarray, A: Array) -> Array:
    """Return `M` as an array of A's library, device and precision."""
    single = namespace(A).finfo(A.dtype).bits == 32
    complex_kind = np.iscomplexobj(M) or namespace(A).isdtype(A.dtype, "complex floating")
    dtype = {(True, True): "complex64", (True, False): "float32"}.get(
        (single, complex_kind), "complex128" if complex_kind else "float64"
    )
    return namespace(A).asarray(M.astype(dtype), device=device_of(A))


def _fft(name: str, A: Array, **options: Any) -> Array:
    if isinstance(A, np.ndarray):
        return getattr(scipy.fft, name)(A, workers=blas_threads(), **options)
    return getattr(namespace(A).fft, name)(A, **options)


def _on_axis(function: Any, A: Array, axis: int) -> Array:
    xp = namespace(A)
    return xp.moveaxis(function(xp.moveaxis(A, axis, -1)), -1, axis)


def _take(A: Array, index: np.ndarray, axis: int) -> Array:
    xp = namespace(A)
    return xp.take(A, xp.asarray(index, device=device_of(A)), axis=axis)


def _tall(flags: Array, A: Array) -> Array:
    return namespace(A).reshape(flags, (-1,) + (1,) * (A.ndim - 1))
