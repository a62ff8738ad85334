"""t-product algebra on `n1 x n2 x n3` tensors, under any orthogonal transform.

Definitions follow T. Wu, "Robust Data Clustering with Outliers via Transformed Tensor Low-Rank
Representation" (AISTATS 2024), "the paper" below: section 3 and supplement A. `L(A)` is the tensor
`A` with every tube transformed, `L(A)_k` its k-th frontal slice, `tau` the scale of the transform.
Each function takes the transform as a name, a matrix or an object (`tubal.transforms.resolve`);
more trailing axes than one are allowed everywhere. Real input gives real output for every real
transform and for the DFT. Transforms that are drawn or fitted ("rom" without a seed, "data") must
be resolved once and passed as objects, so that all calls of one computation share them.

Ranks count singular values above `rtol * sigma_max`, where `sigma_max` is the largest singular
value of all slices and `rtol` defaults to `max(n1, n2, n3) * eps`: NumPy's `matrix_rank` rule
(largest side times eps), with one threshold for all slices because the rounding errors of the
transform are relative to the whole tensor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tubal._threads import blas_threads, spans, threaded
from tubal.input import Array, namespace
from tubal.transforms import Transform, resolve

__all__ = [
    "TSVD",
    "bdiag",
    "column_ambiguity",
    "column_basis",
    "column_incoherence",
    "identity",
    "inner",
    "inverse",
    "ivec",
    "multirank",
    "norm_l1",
    "norm_l2inf",
    "norm_l21",
    "nuclear_norm",
    "pinv",
    "project_columns",
    "project_rows",
    "restrict_columns",
    "row_basis",
    "spectral_norm",
    "tensor_coefficients",
    "tprod",
    "transpose",
    "tsvd",
    "tubal_rank",
    "tube_basis",
    "vec",
]


class TSVD(NamedTuple):
    """The factors of `A = U * S * V^H`."""

    U: Array
    S: Array
    V: Array


def tprod(A: Array, B: Array, transform: Any = "dft") -> Array:
    """t-product `C = A * B`: the tensor with `L(C)_k = L(A)_k L(B)_k` (the paper's Definition 1).

    Parameters
    ----------
    A : array of shape (n1, n2, n3)
    B : array of shape (n2, n4, n3)
    transform : str, matrix or Transform

    Returns
    -------
    array of shape (n1, n4, n3)

    Examples
    --------
    Under the DFT a tube times a tube is a circular convolution:

    >>> tprod(np.array([[[1.0, 2.0, 0.0]]]), np.array([[[0.0, 1.0, 0.0]]])).round(12)
    array([[[0., 1., 2.]]])
    """
    if A.ndim < 3 or B.ndim < 3 or A.shape[1] != B.shape[0] or A.shape[2:] != B.shape[2:]:
        msg = (
            "A and B must be n1 x n2 x n3 and n2 x n4 x n3, "
            f"got shapes {tuple(A.shape)} and {tuple(B.shape)}"
        )
        raise ValueError(msg)
    plan = _plan(transform, A, B)
    return _lift(plan, _matmul(_slices(plan, A), _slices(plan, B)))


def transpose(A: Array, transform: Any = "dft") -> Array:
    """Conjugate transpose `A^H`: the tensor with `L(A^H)_k = (L(A)_k)^H`.

    >>> transpose(np.array([[[1.0, 2.0, 3.0]]]))  # a tube is read backwards
    array([[[1., 3., 2.]]])
    >>> transpose(np.array([[[1.0, 2.0, 3.0]]]), "dct")
    array([[[1., 2., 3.]]])
    """
    plan = _plan(transform, A)
    if plan.is_real and not _is_complex(A):
        return namespace(A).moveaxis(A, 0, 1)
    return _lift(plan, slice_adjoint(_slices(plan, A)))


def identity(
    n: int, sizes: int | tuple[int, ...], transform: Any = "dft", dtype: Any = None
) -> np.ndarray:
    """Identity tensor: the `n x n x n3` tensor whose slices `L(I)_k` are all the identity matrix.

    It is float64, or complex128 under a complex matrix, unless `dtype` says otherwise.

    >>> identity(1, 3), identity(1, 3, "none")
    (array([[[1., 0., 0.]]]), array([[[1., 1., 1.]]]))
    """
    plan = resolve(transform, sizes)
    eye = np.broadcast_to(np.eye(n), (plan.n_slices, n, n))
    eye = _lift(plan, eye if plan.is_real else eye + 0j)
    return eye if dtype is None else eye.astype(dtype, copy=False)


def inverse(A: Array, transform: Any = "dft") -> Array:
    """Inverse tensor: `A * inverse(A) = inverse(A) * A = I`, for an `n x n x n3` tensor.

    Raises
    ------
    ValueError
        If a slice is singular to working precision (1-norm condition number above 1/eps).

    Examples
    --------
    >>> A = np.array([[[2.0, 1.0]]])
    >>> bool(np.allclose(tprod(A, inverse(A)), identity(1, 2)))
    True
    """
    if A.ndim < 3 or A.shape[0] != A.shape[1]:
        msg = f"A must be n x n x n3 to have an inverse, got shape {tuple(A.shape)}"
        raise ValueError(msg)
    plan = _plan(transform, A)
    xp, hat = namespace(A), _slices(plan, A)
    condition = xp.linalg.matrix_norm(hat, ord=1)
    try:
        inv = xp.linalg.inv(hat)
        condition = condition * xp.linalg.matrix_norm(inv, ord=1)
        worst = float(xp.max(condition))
    except np.linalg.LinAlgError:
        worst = np.inf
    if not worst < 1 / xp.finfo(A.dtype).eps:
        msg = f"A has no inverse: a slice has condition number {worst:.3g}; pinv(A) always exists"
        raise ValueError(msg)
    return _lift(plan, inv)


def pinv(A: Array, transform: Any = "dft", *, rtol: float | None = None) -> Array:
    """Pseudo-inverse: the tensor that satisfies the four Penrose conditions (supplement A).

    Singular values at or below the rank tolerance of this module count as zero.

    >>> pinv(np.array([[[2.0, 0.0]], [[0.0, 0.0]]]))
    array([[[0.5, 0. ],
            [0. , 0. ]]])
    """
    plan = _plan(transform, A)
    xp = namespace(A)
    U, s, Vh = slice_svd(plan, _slices(plan, A))
    kept = s > _threshold(A, s, rtol)
    inverted = xp.where(kept, 1 / xp.where(kept, s, xp.ones_like(s)), xp.zeros_like(s))
    return _lift(plan, _matmul(slice_adjoint(Vh) * _as(inverted, Vh)[:, None, :], slice_adjoint(U)))


def tsvd(
    A: Array, transform: Any = "dft", *, mode: str = "skinny", rtol: float | None = None
) -> TSVD:
    """t-SVD `A = U * S * V^H` with orthogonal U, V and f-diagonal S (the paper's Definition 2).

    Parameters
    ----------
    A : array of shape (n1, n2, n3)
    transform : str, matrix or Transform
    mode : {"skinny", "economy", "full"}
        U, S, V are n1 x q x n3, q x q x n3, n2 x q x n3, with q the tubal rank ("skinny") or
        min(n1, n2) ("economy"); "full" gives n1 x n1 x n3, n1 x n2 x n3, n2 x n2 x n3.
    rtol : float or None
        Rank tolerance of the skinny mode.

    Returns
    -------
    TSVD
        Named tuple (U, S, V). `U^H * U = I` and `V^H * V = I` in every mode.

    Examples
    --------
    >>> A = np.arange(12.0).reshape(2, 3, 2)
    >>> U, S, V = tsvd(A)
    >>> bool(np.allclose(tprod(tprod(U, S), transpose(V)), A))
    True
    """
    if mode not in ("skinny", "economy", "full"):
        msg = f"mode must be 'skinny', 'economy' or 'full', got {mode!r}"
        raise ValueError(msg)
    plan = _plan(transform, A)
    xp = namespace(A)
    U, s, Vh = slice_svd(plan, _slices(plan, A), full=mode == "full")
    if mode == "skinny":
        q = int(xp.max(_count(s, _threshold(A, s, rtol))))
        U, s, Vh = U[..., :q], s[..., :q], Vh[..., :q, :]
    S = xp.zeros((s.shape[0], U.shape[-1], Vh.shape[-2]), dtype=U.dtype, device=U.device)
    diagonal = np.arange(s.shape[-1])
    S[:, diagonal, diagonal] = _as(s, U)
    return TSVD(_lift(plan, U), _lift(plan, S), _lift(plan, slice_adjoint(Vh)))


def multirank(A: Array, transform: Any = "dft", *, rtol: float | None = None) -> np.ndarray:
    """Ranks of all n3 slices of `L(A)`, as an integer vector (twin slices included).

    >>> A = np.ones((2, 2, 3))  # only the mean slice of the DFT is not zero
    >>> multirank(A), multirank(A, "none")
    (array([1, 0, 0]), array([1, 1, 1]))
    """
    plan = _plan(transform, A)
    s = _singular_values(plan, A)
    ranks = np.asarray(_count(s, _threshold(A, s, rtol)))
    return ranks[plan.expansion[0]]


def tubal_rank(A: Array, transform: Any = "dft", *, rtol: float | None = None) -> int:
    """Tubal rank: the number of nonzero singular tubes (Definition 3), the largest slice rank.

    >>> tubal_rank(np.ones((2, 2, 3)))
    1
    """
    return int(multirank(A, transform, rtol=rtol).max())


def nuclear_norm(A: Array, transform: Any = "dft") -> float:
    """Tensor nuclear norm `||A||_* = (1/tau) sum_k ||L(A)_k||_*` (Definition 4).

    >>> (
    ...     round(nuclear_norm(np.ones((2, 2, 3))), 12),
    ...     round(nuclear_norm(np.ones((2, 2, 3)), "dct"), 3),
    ... )
    (2.0, 3.464)
    """
    plan = _plan(transform, A)
    per_slice = np.asarray(namespace(A).sum(_singular_values(plan, A), axis=-1))
    return float(plan.weights @ per_slice / plan.scale)


def spectral_norm(A: Array, transform: Any = "dft") -> float:
    """Tensor spectral norm `||A|| = max_k ||L(A)_k||`, the norm of `bdiag(A)`.

    >>> round(spectral_norm(np.ones((2, 2, 3))), 12)
    6.0
    """
    return float(namespace(A).max(_singular_values(_plan(transform, A), A)))


def norm_l21(A: Array) -> float:
    """`||A||_{2,1} = sum_j ||A(:,j,:)||_F`, the sum of the norms of the samples.

    >>> norm_l21(np.array([[[3.0, 4.0], [0.0, 1.0]]]))  # 1 x 2 x 2
    6.0
    """
    return float(namespace(A).sum(_column_norms(A)))


def norm_l2inf(A: Array) -> float:
    """`||A||_{2,inf} = max_j ||A(:,j,:)||_F`, the dual of `norm_l21`.

    >>> norm_l2inf(np.array([[[3.0, 4.0], [0.0, 1.0]]]))
    5.0
    """
    return float(namespace(A).max(_column_norms(A)))


def norm_l1(A: Array) -> float:
    """`||A||_1`, the sum of the moduli of the entries.

    >>> norm_l1(np.array([[[3.0, -4.0]]]))
    7.0
    """
    xp = namespace(A)
    return float(xp.sum(xp.abs(A)))


def inner(A: Array, B: Array) -> float | complex:
    """Inner product `<A, B> = sum_k tr(A_k^H B_k)` over the frontal slices.

    >>> inner(np.array([[[1.0, 2.0]]]), np.array([[[3.0, 4.0]]]))
    11.0
    """
    if A.shape != B.shape:
        msg = f"A and B must have one shape, got {tuple(A.shape)} and {tuple(B.shape)}"
        raise ValueError(msg)
    xp = namespace(A, B)
    total = xp.sum((xp.conj(A) if _is_complex(A) else A) * B)
    return complex(total) if _is_complex(total) else float(total)


def bdiag(A: Array, transform: Any = "dft") -> Array:
    """Block-diagonal matrix `bdiag(L(A))` of all n3 slices, `n1 n3 x n2 n3`.

    >>> bdiag(np.array([[[1.0, 2.0]]]))
    array([[ 3.+0.j,  0.+0.j],
           [ 0.+0.j, -1.+0.j]])
    """
    plan = _plan(transform, A).full()
    xp, hat = namespace(A), _slices(plan, A)
    K, n1, n2 = hat.shape
    out = xp.zeros((K * n1, K * n2), dtype=hat.dtype, device=hat.device)
    for k in range(K):
        out[k * n1 : (k + 1) * n1, k * n2 : (k + 1) * n2] = hat[k]
    return out


def column_basis(
    n: int, i: int, sizes: int | tuple[int, ...], transform: Any = "dft"
) -> np.ndarray:
    """Column basis: the `n x 1 x n3` tensor whose (i, 1) tube of `L` is all ones, the rest zero.

    `A * column_basis(n2, j, n3)` is the sample `A(:, j, :)` (supplement A).

    >>> column_basis(2, 1, 3)[:, 0]
    array([[0., 0., 0.],
           [1., 0., 0.]])
    """
    return identity(n, sizes, transform)[:, [_index("i", i, n)]]


def row_basis(n: int, j: int, sizes: int | tuple[int, ...], transform: Any = "dft") -> np.ndarray:
    """Row basis: the `1 x n x n3` tensor whose (1, j) tube of `L` is all ones, the rest zero.

    >>> row_basis(2, 0, 3)[0]
    array([[1., 0., 0.],
           [0., 0., 0.]])
    """
    return identity(n, sizes, transform)[[_index("j", j, n)]]


def tube_basis(k: int, sizes: int | tuple[int, ...], transform: Any = "dft") -> np.ndarray:
    """Tube basis: the `1 x 1 x n3` tensor whose transform is one in slice k and zero elsewhere.

    It is complex under the DFT.

    >>> tube_basis(1, 2, "dct").round(3)
    array([[[ 0.707, -0.707]]])
    """
    plan = resolve(transform, sizes).full()
    hat = np.zeros((plan.n3, 1, 1), dtype=float if plan.is_real else complex)
    hat[_index("k", k, plan.n3)] = 1
    return _lift(plan, hat)


def project_columns(A: Array, U: Array, transform: Any = "dft") -> Array:
    """Projection `P_U(A) = U * U^H * A` onto the column space spanned by `U` (`U^H * U = I`).

    >>> A = np.arange(12.0).reshape(2, 3, 2)
    >>> bool(np.allclose(project_columns(A, tsvd(A).U), A))
    True
    """
    return tprod(U, tprod(transpose(U, transform), A, transform), transform)


def project_rows(A: Array, V: Array, transform: Any = "dft") -> Array:
    """Projection `P_V(A) = A * V * V^H` onto the row space spanned by `V` (`V^H * V = I`).

    >>> A = np.arange(12.0).reshape(2, 3, 2)
    >>> bool(np.allclose(project_rows(A, tsvd(A).V), A))
    True
    """
    return tprod(tprod(A, V, transform), transpose(V, transform), transform)


def restrict_columns(A: Array, support: Any) -> Array:
    """`P_Theta(A)`: keep the samples in `support` (indices or bool), set the others to zero.

    >>> restrict_columns(np.ones((1, 3, 1)), [0, 2])[0, :, 0]
    array([1., 0., 1.])
    """
    xp = namespace(A)
    keep = np.zeros(A.shape[1], dtype=bool)
    keep[np.asarray(support)] = True
    keep = xp.reshape(xp.asarray(keep, device=A.device), (1, -1) + (1,) * (A.ndim - 2))
    return xp.where(keep, A, xp.zeros_like(A))


def column_incoherence(A: Array, transform: Any = "dft", *, rtol: float | None = None) -> float:
    """Smallest mu of the paper's column-incoherence condition (its equation 9).

    `mu = (n2 tau / r) max_j ||V^H * e_j||_F^2` with the skinny t-SVD `A = U * S * V^H`, tubal rank
    r and column basis e_j. Small when every sample carries its share of the row space, n2 n3 / r
    when one sample carries a direction of every slice alone. In slices of lower rank than r the
    singular vectors of zero singular values are arbitrary; they are left out.

    >>> column_incoherence(np.ones((2, 4, 1)), "none")
    1.0
    """
    plan = _plan(transform, A)
    xp = namespace(A)
    _, s, Vh = slice_svd(plan, _slices(plan, A))
    kept = s > _threshold(A, s, rtol)
    r = int(xp.max(xp.sum(xp.astype(kept, xp.int64), axis=-1)))
    if r == 0:
        msg = "A is zero, so it has no row space and no incoherence"
        raise ValueError(msg)
    energy = xp.sum(xp.where(kept[..., None], xp.abs(Vh) ** 2, 0.0), axis=1)
    per_column = plan.weights @ np.asarray(energy)  # tau ||V^H * e_j||_F^2
    return float(A.shape[1] / r * per_column.max())


def column_ambiguity(E: Array, transform: Any = "dft") -> float:
    """`||B(E)||`: spectral norm of E with every nonzero sample scaled to unit norm (equation 10).

    >>> round(column_ambiguity(np.ones((2, 4, 1)), "none"), 12)  # four equal directions
    2.0
    """
    xp = namespace(E)
    norms = _column_norms(E)
    scale = xp.where(norms > 0, 1 / xp.where(norms > 0, norms, xp.ones_like(norms)), norms)
    return spectral_norm(E * xp.reshape(scale, (1, -1) + (1,) * (E.ndim - 2)), transform)


def vec(A: Array) -> Array:
    """Write each sample as a column of length n1 n3: its frontal columns one under the other.

    >>> vec(np.array([[[1, 2]], [[3, 4]]])).ravel()  # the sample [[1, 2], [3, 4]]
    array([1, 3, 2, 4])
    """
    xp = namespace(A)
    return xp.reshape(xp.permute_dims(A, (*range(2, A.ndim), 0, 1)), (-1, A.shape[1]))


def ivec(M: Array, n1: int, sizes: int | tuple[int, ...] | None = None) -> Array:
    """Undo `vec`: read the columns of an (n1 n3) x n2 matrix as samples of an n1 x n2 x n3 tensor.

    >>> ivec(np.array([[1], [3], [2], [4]]), n1=2)[:, 0]
    array([[1, 2],
           [3, 4]])
    """
    xp = namespace(M)
    if M.ndim != 2 or M.shape[0] % n1:
        msg = f"M must have a multiple of n1 = {n1} rows, got shape {tuple(M.shape)}"
        raise ValueError(msg)
    sizes = M.shape[0] // n1 if sizes is None else sizes
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    T = xp.reshape(M, (*sizes, n1, M.shape[1]))
    return xp.permute_dims(T, (len(sizes), len(sizes) + 1, *range(len(sizes))))


def tensor_coefficients(
    Z: Array, sizes: int | tuple[int, ...], transform: Any = "dft"
) -> np.ndarray:
    """Tensor coefficients of a vector representation (the paper's Theorem 1).

    If `vec(X) = vec(A) Z` then `X = A * tensor_coefficients(Z, n3)`: the tensor whose slices in the
    transform domain are all Z. The converse fails: the t-product reaches more.

    >>> tensor_coefficients(np.array([[2.0]]), 3)
    array([[[2., 0., 0.]]])
    """
    Z = np.asarray(Z)
    plan = resolve(transform, sizes)
    plan = plan.full() if np.iscomplexobj(Z) else plan
    hat = np.broadcast_to(Z, (plan.n_slices, *Z.shape))
    return _lift(plan, hat if plan.is_real else hat + 0j)


def _plan(transform: Any, *tensors: Array) -> Transform:
    """Bind the transform to the tensors' tubes, keeping every slice if one of them is complex."""
    A = tensors[0]
    if A.ndim < 3:
        msg = f"a tensor must have 3 or more axes (n1, n2, n3), got shape {tuple(A.shape)}"
        raise ValueError(msg)
    plan = resolve(transform, tuple(int(n) for n in A.shape[2:]))
    if plan is not transform and not plan.reproducible:
        msg = (
            f"transform {transform!r} would be drawn anew in every call: resolve it once, "
            "L = tubal.transforms.resolve('rom', n3), and pass transform=L"
        )
        raise ValueError(msg)
    return plan.full() if any(_is_complex(T) for T in tensors) else plan


def _slices(plan: Transform, A: Array) -> Array:
    """Return the slices of `A` in the transform domain, one after the other: K x n1 x n2."""
    xp = namespace(A)
    tubes = tuple(range(2, A.ndim))
    return plan.forward(xp.permute_dims(_inexact(A), (*tubes, 0, 1)), axis=0)


def _lift(plan: Transform, hat: Array) -> Array:
    """Return the n1 x n2 x n3 tensor whose slices are `hat`."""
    return plan.inverse(namespace(hat).moveaxis(hat, 0, -1))


def _matmul(A: Array, B: Array) -> Array:
    """Multiply slice by slice, in threads over slices."""
    if not isinstance(A, np.ndarray):
        return A @ B
    out = np.empty((A.shape[0], A.shape[1], B.shape[2]), dtype=np.result_type(A, B))
    threads = blas_threads()
    threaded(lambda s: np.matmul(A[s], B[s], out=out[s]), spans(len(A), threads), threads)
    return out


def slice_svd(plan: Transform, hat: Array, full: bool = False) -> tuple[Array, Array, Array]:
    """SVD of every slice `hat[k] = U[k] diag(s[k]) Vh[k]`, in threads over slices.

    Slices that are real up to their type are decomposed as real matrices: a complex SVD may turn
    their vectors by any phase, and the tensor would no longer be real.

    >>> slice_svd(resolve("none", 2), np.array([[[3.0]], [[-2.0]]]))[1]
    array([[3.],
           [2.]])
    """
    if not isinstance(hat, np.ndarray):
        return tuple(namespace(hat).linalg.svd(hat, full_matrices=full))
    threads = blas_threads()
    parts = threaded(
        lambda s: np.linalg.svd(hat[s], full_matrices=full), spans(len(hat), threads), threads
    )
    U, s, Vh = (
        parts[0] if len(parts) == 1 else (np.concatenate(p) for p in zip(*parts, strict=True))
    )
    real = plan.real_slices
    if len(real) and np.iscomplexobj(hat):
        U[real], s[real], Vh[real] = np.linalg.svd(hat[real].real, full_matrices=full)
    return U, s, Vh


def _singular_values(plan: Transform, A: Array) -> Array:
    hat = _slices(plan, A)
    if not isinstance(hat, np.ndarray):
        return namespace(hat).linalg.svdvals(hat)
    threads = blas_threads()
    parts = threaded(
        lambda s: np.linalg.svd(hat[s], compute_uv=False), spans(len(hat), threads), threads
    )
    return np.concatenate(parts)


def _threshold(A: Array, s: Array, rtol: float | None) -> float:
    xp = namespace(s)
    rtol = max(A.shape) * xp.finfo(s.dtype).eps if rtol is None else rtol
    return float(rtol * xp.max(s))


def _count(s: Array, threshold: float) -> Array:
    xp = namespace(s)
    return xp.sum(xp.astype(s > threshold, xp.int64), axis=-1)


def _column_norms(A: Array) -> Array:
    xp = namespace(A)
    flat = xp.reshape(xp.moveaxis(A, 1, 0), (A.shape[1], -1))
    return xp.linalg.vector_norm(flat, axis=-1)


def slice_adjoint(hat: Array) -> Array:
    """Conjugate transpose of every slice.

    >>> slice_adjoint(np.array([[[1.0 + 2.0j, 3.0]]])).shape
    (1, 2, 1)
    """
    T = hat.mT
    return namespace(hat).conj(T) if _is_complex(hat) else T


def slice_gram(A: Array) -> Array:
    """Return the lower triangles of `A_k A_k^H`.

    NumPy makes real ones from one triangle by itself; of complex ones the upper right quarter is
    left zero, which saves a quarter of the products.

    >>> slice_gram(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]))
    array([[[ 5.]],
    <BLANKLINE>
           [[25.]]])
    """
    Ah = slice_adjoint(A)
    K, r = A.shape[:2]
    if not isinstance(A, np.ndarray) or A.dtype.kind != "c" or r < 16:
        return A @ Ah
    G = np.zeros((K, r, r), A.dtype)
    h = r // 2
    np.matmul(A[:, :h], Ah[:, :, :h], out=G[:, :h, :h])
    np.matmul(A[:, h:], Ah, out=G[:, h:])
    return G


def _as(s: Array, like: Array) -> Array:
    return namespace(s).astype(s, like.dtype)


def _is_complex(A: Array) -> bool:
    return bool(namespace(A).isdtype(A.dtype, "complex floating"))


def _inexact(A: Array) -> Array:
    xp = namespace(A)
    floating = xp.isdtype(A.dtype, ("real floating", "complex floating"))
    return A if floating else xp.astype(A, xp.float64)


def _index(name: str, i: int, n: int) -> int:
    if not 0 <= i < n:
        msg = f"{name} must lie in 0..{n - 1}, got {i!r}"
        raise ValueError(msg)
    return int(i)
