"""Transforms given by a matrix: any orthogonal one, a random one, one made from the data."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg

from tubal.input import Array, device_of, namespace, to_numpy
from tubal.transforms.base import Transform, check_same_size, check_size


class MatrixTransform(Transform):
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
        return along(self.matrix, A, axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Multiply every tube of `A` by `L^H / tau`."""
        self._check_axis(A, axis, len(self.matrix))
        return along(self.matrix.conj().T / self.scale, A, axis)

    def _with_matrix(self, matrix: np.ndarray, scale: float = 1.0) -> Self:
        bound = copy.copy(self)
        bound._matrix, bound._scale, bound.sizes = matrix, scale, (len(matrix),)
        bound.is_real = not np.iscomplexobj(matrix)
        return bound


class Orthogonal(MatrixTransform):
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
        with np.errstate(over="ignore", invalid="ignore"):
            gram = L @ L.conj().T
            tau = float(np.trace(gram).real / len(L))
        if not np.isfinite(tau):
            largest = np.abs(L).max()
            msg = (
                f"matrix has entries of size {largest:.1e}, whose squares are no float64: scale it"
            )
            raise ValueError(msg)
        deviation = np.abs(gram - tau * np.eye(len(L))).max() / tau if tau > 0 else np.inf
        if not deviation <= 1e-6:
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
        check_same_size(self, n3)
        return self

    def __repr__(self) -> str:
        n = len(self.matrix)
        return f"Orthogonal(<{n} x {n} matrix>)"


class RandomOrthogonal(MatrixTransform):
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
            self._draw(check_size(n3))

    def _draw(self, n3: int) -> None:
        rng = self.random_state
        rng = rng if isinstance(rng, np.random.RandomState) else np.random.default_rng(rng)
        Q, R = np.linalg.qr(rng.standard_normal((n3, n3)))
        # The signs of R's diagonal make Q uniform (Mezzadri, Notices AMS 54, 2007).
        self._matrix, self.sizes = Q * np.sign(np.diag(R)), (n3,)

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Draw the matrix for tubes of length `n3`."""
        if self.sizes is not None:
            check_same_size(self, n3)
            return self
        return type(self)(self.random_state, n3)

    @property
    def reproducible(self) -> bool:
        """Whether the matrix is determined by an integer seed."""
        return isinstance(self.random_state, (int, np.integer))

    def __repr__(self) -> str:
        size = "" if self.sizes is None else f", n3={self.sizes[0]}"
        return f"RandomOrthogonal({self.random_state!r}{size})"


class DataDriven(MatrixTransform):
    """The left singular vectors of the mode-3 unfolding of the data, as rows of L; tau = 1.

    They are the eigenvectors of the n3 x n3 second moments of the tubes. With missing entries each
    moment is the mean over the pairs where both entries are observed (zero when there is none).
    Rows are sorted by falling moment and signed so that their largest entry is positive.

    Tubes that are long, more than `LARGE` entries, and at least twice as many as there are tubes
    need no n3 x n3 matrix: the singular vectors of the tubes come first, any orthonormal vectors
    may follow, and L is kept as a product of reflections. Missing entries count as zero then.

    >>> X = np.outer([1.0, -2.0, 3.0], [3.0, 4.0])  # every tube is a multiple of (3, 4)
    >>> DataDriven().bind(2, X).matrix.round(3)
    array([[ 0.6,  0.8],
           [ 0.8, -0.6]])
    """

    _reflections: Reflections | None = None
    _signs: np.ndarray

    def bind(self, n3: int, data: Array | None = None, observed: Array | None = None) -> Transform:
        """Fit the transform to the tubes of `data` (last axis), on its observed entries."""
        if self.sizes is not None:
            check_same_size(self, n3)
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
        if n3 > LARGE and 2 * int(np.prod(data.shape[:-1])) <= n3:
            return self._with_reflections(_singular_vectors(data, observed))
        # In double precision: certificates rely on exact orthogonality.
        moments = _second_moments(data, observed).astype(np.float64, copy=False)
        eigenvectors = np.linalg.eigh(moments)[1][:, ::-1].T
        largest = np.abs(eigenvectors).argmax(axis=1)
        signs = np.sign(eigenvectors[np.arange(n3), largest])
        return self._with_matrix(np.ascontiguousarray(eigenvectors * signs[:, None]))

    @property
    def matrix(self) -> np.ndarray:
        """The n3 x n3 matrix L."""
        if self._reflections is None:
            return super().matrix
        return np.ascontiguousarray(self.forward(np.eye(self.n3)).T)

    def forward(self, A: Array, axis: int = -1) -> Array:
        """Multiply every tube of `A` by L."""
        if self._reflections is None:
            return super().forward(A, axis)
        self._check_axis(A, axis, self.n3)
        return _signed(self._signs, self._reflections.apply(A, axis, transposed=True), axis)

    def inverse(self, A: Array, axis: int = -1) -> Array:
        """Multiply every tube of `A` by `L^H`."""
        if self._reflections is None:
            return super().inverse(A, axis)
        self._check_axis(A, axis, self.n3)
        return self._reflections.apply(_signed(self._signs, A, axis), axis, transposed=False)

    def _with_reflections(self, rows: np.ndarray) -> Self:
        """Return the transform whose first rows are these orthonormal ones."""
        bound = copy.copy(self)
        bound._reflections, diagonal = Reflections.of(rows.T)
        bound._signs = np.concatenate([np.sign(diagonal), np.ones(rows.shape[1] - len(rows))])
        bound.sizes = (rows.shape[1],)
        return bound

    def same_as(self, other: DataDriven) -> bool:
        """Whether another fitted transform is the same."""
        one, two = self._reflections, other._reflections
        if one is None or two is None:
            return one is two and np.array_equal(self.matrix, other.matrix)
        same = np.array_equal(one.Y, two.Y) and np.array_equal(one.T, two.T)
        return same and np.array_equal(self._signs, other._signs)

    def __repr__(self) -> str:
        return f"DataDriven(<{self.sizes[0]} fitted>)" if self.sizes else "DataDriven()"


LARGE = 1024
"""Length of tubes up to which an n3 x n3 matrix costs nothing."""


@dataclass(frozen=True, eq=False)
class Reflections:
    """A product of q reflections of n entries, `H = I - Y T Y^T`: orthogonal, and kept as n x q.

    Attributes
    ----------
    Y : array of shape (n, q)
    T : upper triangular array of shape (q, q)

    References
    ----------
    R. Schreiber, C. Van Loan, SIAM J. Sci. Stat. Comput. 10 (1989).
    """

    Y: np.ndarray
    T: np.ndarray

    @classmethod
    def of(cls, basis: np.ndarray) -> tuple[Reflections, np.ndarray]:
        """Return H whose first columns are those of `basis` up to signs, and these signs."""
        q = basis.shape[1]
        (raw, tau), R = scipy.linalg.qr(basis, mode="raw")
        Y = np.tril(raw[:, :q], -1)
        Y[np.arange(q), np.arange(q)] = 1
        products, T = Y.T @ Y, np.zeros((q, q))
        for i in range(q):
            T[:i, i] = -tau[i] * (T[:i, :i] @ products[:i, i])
            T[i, i] = tau[i]
        return cls(np.ascontiguousarray(Y), T), np.diag(R)

    def apply(self, A: Array, axis: int, *, transposed: bool) -> Array:
        """Multiply the tubes of `A` along `axis` (0 or -1) by H or its transpose."""
        xp, shape = namespace(A), tuple(A.shape)
        Y, T = _matching(self.Y, A), _matching(self.T.T if transposed else self.T, A)
        if axis == -1:
            flat = xp.reshape(A, (-1, shape[-1]))
            return xp.reshape(flat - ((flat @ Y) @ T.T) @ Y.T, shape)
        flat = xp.reshape(A, (shape[0], -1))
        return xp.reshape(flat - Y @ (T @ (Y.T @ flat)), shape)


def _signed(signs: np.ndarray, A: Array, axis: int) -> Array:
    S = namespace(A).asarray(signs, dtype=A.dtype, device=device_of(A))
    return A * S if axis == -1 else A * namespace(A).reshape(S, (-1,) + (1,) * (A.ndim - 1))


def _singular_vectors(data: Array, observed: Array | None) -> np.ndarray:
    """Return orthonormal rows that span the tubes, those of the largest singular values first."""
    T = to_numpy(data if observed is None else data * namespace(data).astype(observed, data.dtype))
    T = _squarable(T.reshape(-1, T.shape[-1]).astype(np.float64))
    rows = np.linalg.svd(T, full_matrices=False)[2]
    largest = np.abs(rows).argmax(axis=1)
    signed: np.ndarray = rows * np.sign(rows[np.arange(len(rows)), largest])[:, None]
    return signed


def _second_moments(data: Array, observed: Array | None) -> np.ndarray:
    """Return the second moments of tubes, up to a power of four."""
    n3 = data.shape[-1]
    xp = namespace(data)
    T = xp.reshape(data, (-1, n3))
    if observed is None:
        T = _squarable(T)
        return to_numpy(T.T @ T) / T.shape[0]
    W = xp.astype(xp.reshape(observed, (-1, n3)), T.dtype)
    T = _squarable(xp.where(W > 0, T, xp.zeros_like(T)))
    return to_numpy(T.T @ T) / np.maximum(to_numpy(W.T @ W), 1)


def _squarable(T: Array) -> Array:
    """Return data over a power of two where its squares would leave the range of its type."""
    xp = namespace(T)
    exponent = int(np.frexp(float(xp.max(xp.abs(T))))[1])  # 0 for zeros
    if abs(exponent) <= 30:
        return T
    most = 120 if T.dtype == xp.float32 else 1000  # powers that the type has
    return T * 2.0 ** -min(max(exponent, -most), most)


def along(M: np.ndarray, A: Array, axis: int) -> Array:
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
