"""Obvious slow versions, straight from the definitions; the fast ones must equal them.

Paper layout: a tensor is ``n1 x n2 x n3`` and its samples are the lateral slices ``A[:, j, :]``.
A transform is an explicit ``n3 x n3`` matrix ``L`` with ``L L^H = tau I``; every slice of the
spectrum is kept. Nothing here may import the library: this is its independent reference.

Reference: T. Wu, "Robust Data Clustering with Outliers via Transformed Tensor Low-Rank
Representation", AISTATS 2024: section 3 (definitions), Algorithms 1 and 2 (supplement).
"""

import numpy as np

# ---- transforms ---------------------------------------------------------------------------------


def dft_matrix(n):
    """Unnormalised DFT: ``L[k, l] = exp(-2 pi i k l / n)``, tau = n."""
    k = np.arange(n)
    # k l mod n keeps the angles small, and conjugate rows conjugate to the last digits.
    return np.exp(-2j * np.pi * (np.outer(k, k) % n) / n)


def dct_matrix(n):
    """Orthonormal DCT-II: ``L[k, l] = c_k cos(pi k (2 l + 1) / (2 n))``, tau = 1."""
    k = np.arange(n)
    L = np.sqrt(2 / n) * np.cos(np.pi * np.outer(k, 2 * k + 1) / (2 * n))
    L[0] /= np.sqrt(2)
    return L


def random_orthogonal(n, seed):
    """Haar orthogonal matrix: QR of a Gaussian matrix, signs fixed by the diagonal of R."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    return Q * np.sign(np.diag(R))


def scale(L):
    """``tau`` of ``L L^H = tau I``; refuses any other matrix."""
    G = L @ L.conj().T
    tau = G[0, 0].real
    np.testing.assert_allclose(G, tau * np.eye(len(L)), atol=1e-10 * tau)
    return tau


def mode3(A, M):
    """Mode-3 product ``A x_3 M``: ``C[i, j, k] = sum_l M[k, l] A[i, j, l]``."""
    return np.einsum("kl,ijl->ijk", M, A, optimize=True)


def forward(A, L):
    """``L(A) = A x_3 L``."""
    return mode3(A, L)


def inverse(A, L):
    """``L^-1(A) = A x_3 L^H / tau``; an imaginary part at the level of rounding is dropped."""
    C = mode3(A, L.conj().T / scale(L))
    if np.iscomplexobj(C) and np.abs(C.imag).max() <= 1e-10 * np.abs(C).max():
        return C.real.copy()
    return C


# ---- algebra ------------------------------------------------------------------------------------


def slicewise(function, *hats):
    """Apply a matrix function to the frontal slices of transform-domain tensors, one by one."""
    n3 = hats[0].shape[2]
    return np.stack([function(*(hat[:, :, k] for hat in hats)) for k in range(n3)], axis=2)


def tprod(A, B, L):
    """t-product ``A *_L B``: ``L(A *_L B)_k = L(A)_k L(B)_k``."""
    return inverse(slicewise(np.matmul, forward(A, L), forward(B, L)), L)


def tprod_circulant(A, B):
    """t-product under the DFT, without any transform: ``fold(bcirc(A) unfold(B))``.

    Block (i, j) of ``bcirc(A)`` is the frontal slice ``(i - j) mod n3`` of A.
    """
    n1, n3 = A.shape[0], A.shape[2]
    bcirc = np.block([[A[:, :, (i - j) % n3] for j in range(n3)] for i in range(n3)])
    unfold = np.concatenate([B[:, :, k] for k in range(n3)], axis=0)
    C = bcirc @ unfold
    return np.stack([C[k * n1 : (k + 1) * n1] for k in range(n3)], axis=2)


def transpose(A, L):
    """Conjugate transpose: ``L(A^H)_k = (L(A)_k)^H``."""
    return inverse(slicewise(lambda a: a.conj().T, forward(A, L)), L)


def identity(n, n3, L):
    """Identity tensor: every frontal slice of ``L(I)`` is the identity matrix."""
    return inverse(np.stack([np.eye(n)] * n3, axis=2), L)


def pinv(A, L):
    """Moore-Penrose inverse: ``L(A^+)_k = (L(A)_k)^+``."""
    return inverse(slicewise(np.linalg.pinv, forward(A, L)), L)


def bdiag(A, L):
    """Block diagonal matrix ``(n1 n3) x (n2 n3)`` of the frontal slices of ``L(A)``."""
    hat = forward(A, L)
    n1, n2, n3 = hat.shape
    M = np.zeros((n1 * n3, n2 * n3), dtype=hat.dtype)
    for k in range(n3):
        M[k * n1 : (k + 1) * n1, k * n2 : (k + 1) * n2] = hat[:, :, k]
    return M


# ---- norms --------------------------------------------------------------------------------------


def nuclear_norm(A, L):
    """``||A||_* = (1/tau) ||bdiag(L(A))||_*``."""
    return np.linalg.svd(bdiag(A, L), compute_uv=False).sum() / scale(L)


def spectral_norm(A, L):
    """``||A|| = ||bdiag(L(A))||``, the dual norm of ``||.||_*`` (no factor tau)."""
    return np.linalg.svd(bdiag(A, L), compute_uv=False).max()


def column_norms(A):
    """``||A[:, j, :]||_F`` for every sample j."""
    return np.sqrt((np.abs(A) ** 2).sum(axis=(0, 2)))


def norm_l21(A):
    """``||A||_21 = sum_j ||A[:, j, :]||_F``."""
    return column_norms(A).sum()


def norm_l1(A):
    """``||A||_1``, the sum of all absolute values."""
    return np.abs(A).sum()


def norm_inf(A):
    """``||A||_inf``, the largest absolute value."""
    return np.abs(A).max()


def norm_fro(A):
    """Frobenius norm."""
    return np.sqrt((np.abs(A) ** 2).sum())


def inner(A, B):
    """``<A, B> = Re sum conj(A) B = (1/tau) Re <L(A), L(B)>``."""
    return (A.conj() * B).sum().real


# ---- t-SVD --------------------------------------------------------------------------------------


def multirank(A, L):
    """Numerical rank of every slice: singular values above ``max(n1, n2) eps ||L(A)_k||``."""
    hat = forward(A, L)
    return np.array([np.linalg.matrix_rank(hat[:, :, k]) for k in range(hat.shape[2])])


def tubal_rank(A, L):
    """Number of nonzero singular tubes: the largest of the slice ranks."""
    return multirank(A, L).max()


def tsvd_skinny(X, L):
    """Skinny t-SVD ``X = U *_L S *_L V^H`` with r = tubal rank, so one r for all slices.

    A slice of lower rank keeps orthonormal columns in U and V beside (almost) zero singular
    values. For real X the slices of conjugate rows of L get conjugate factors: U, S, V are real.
    """
    hat, r = forward(X, L), tubal_rank(X, L)
    U, S, V = [], [], []
    for k in range(hat.shape[2]):
        twin = next((m for m in range(k) if np.allclose(L[m], L[k].conj())), None)
        if twin is not None and np.isrealobj(X):
            u, s, v = U[twin].conj(), S[twin], V[twin].conj()
        else:
            u, s, vh = np.linalg.svd(hat[:, :, k], full_matrices=False)
            u, s, v = u[:, :r], np.diag(s[:r]), vh[:r].conj().T
        U.append(u)
        S.append(s)
        V.append(v)
    return tuple(inverse(np.stack(factor, axis=2), L) for factor in (U, S, V))


# ---- proximal operators -------------------------------------------------------------------------


def svt_matrix(B, t):
    """Singular value thresholding of one matrix: ``U diag(max(s - t, 0)) V^H``."""
    u, s, vh = np.linalg.svd(B, full_matrices=False)
    return (u * np.maximum(s - t, 0)) @ vh


def svt(B, t, L):
    """``argmin_Z t ||Z||_* + 1/2 ||Z - B||_F^2``, slice by slice in the transform domain."""
    return inverse(slicewise(lambda b: svt_matrix(b, t), forward(B, L)), L)


def shrink_samples(B, t):
    """``argmin_E t ||E||_21 + 1/2 ||E - B||_F^2``, sample by sample."""
    E = np.zeros_like(B)
    for j in range(B.shape[1]):
        size = np.linalg.norm(B[:, j, :])
        if size > t:
            E[:, j, :] = (size - t) / size * B[:, j, :]
    return E


def shrink_entries(B, t):
    """``argmin_E t ||E||_1 + 1/2 ||E - B||_F^2``, entry by entry."""
    return np.sign(B) * np.maximum(np.abs(B) - t, 0)


# ---- the paper's algorithms ---------------------------------------------------------------------


def ortlrr_algorithm1(X, L, lam, beta0=1e-4, growth=1.1, beta_max=1e8, tol=1e-8, max_iter=800):
    """OR-TLRR, Algorithm 1 of the paper to the letter, on tensors in the original domain.

    ``min ||Z||_* + lam ||E||_21  s.t.  X = X *_L Z + E``, solved for Z' with D = U S, Z = V Z'.
    Defaults beta0 and tol are those of the released code (the paper prints 1e-5 for both).
    """
    U, S, V = tsvd_skinny(X, L)
    D = tprod(U, S, L)
    DH = transpose(D, L)
    r, (_, n2, n3) = D.shape[1], X.shape
    Q = inverse(slicewise(np.linalg.inv, forward(tprod(DH, D, L) + identity(r, n3, L), L)), L)
    Z = J = Y1 = np.zeros((r, n2, n3))
    E = Y2 = np.zeros(X.shape)
    beta, n_iter = beta0, 0
    while n_iter < max_iter:
        n_iter += 1
        Z_old, E_old, J_old = Z, E, J
        Z = svt(J - Y1 / beta, 1 / beta, L)
        E = shrink_samples(X - tprod(D, J, L) + Y2 / beta, lam / beta)
        J = tprod(Q, Z + Y1 / beta + tprod(DH, X - E + Y2 / beta, L), L)
        R1, R2 = Z - J, X - tprod(D, J, L) - E
        Y1, Y2 = Y1 + beta * R1, Y2 + beta * R2
        beta = min(beta_max, growth * beta)
        if max(map(norm_inf, (Z - Z_old, J - J_old, E - E_old, R1, R2))) <= tol:
            break
    return {"Z": tprod(V, Z, L), "E": E, "n_iter": n_iter}


def ortlrr_algorithm2(
    X_missing, observed, L, lam, beta0=1e-4, growth=1.1, beta_max=1e8, tol=1e-8, max_iter=800
):
    """OR-TLRR-EWZF, Algorithm 2 of the paper to the letter, on tensors in the original domain.

    ``min ||Z||_* + lam ||P(E)||_21  s.t.  H = X_0 *_L Z + E, P(H) = P(X_missing)`` where P keeps
    the observed entries and X_0 is X_missing with zeros in the holes (whatever they hold there).
    """
    X = np.where(observed, X_missing, 0.0)
    U, S, V = tsvd_skinny(X, L)
    D = tprod(U, S, L)
    DH = transpose(D, L)
    r, (_, n2, n3) = D.shape[1], X.shape
    Q = inverse(slicewise(np.linalg.inv, forward(tprod(DH, D, L) + identity(r, n3, L), L)), L)
    Z = J = Y1 = np.zeros((r, n2, n3))
    E = H = Y2 = np.zeros(X.shape)
    beta, n_iter = beta0, 0
    while n_iter < max_iter:
        n_iter += 1
        Z_old, E_old, J_old, H_old = Z, E, J, H
        H = np.where(observed, X, tprod(D, J, L) + E - Y2 / beta)
        Z = svt(J - Y1 / beta, 1 / beta, L)
        B = H - tprod(D, J, L) + Y2 / beta
        E = np.where(observed, shrink_samples(observed * B, lam / beta), B)
        J = tprod(Q, Z + Y1 / beta + tprod(DH, H - E + Y2 / beta, L), L)
        R1, R2 = Z - J, H - tprod(D, J, L) - E
        Y1, Y2 = Y1 + beta * R1, Y2 + beta * R2
        beta = min(beta_max, growth * beta)
        steps = (Z - Z_old, J - J_old, E - E_old, H - H_old)
        if max(map(norm_inf, (*steps, R1, R2))) <= tol:
            break
    return {"Z": tprod(V, Z, L), "E": E, "H": H, "n_iter": n_iter}


# ---- similarities at several ranks --------------------------------------------------------------


def closed_form(X, L, rank):
    """Slices of ``argmin_Z ||Z||_* + ||X - X *_L Z||_F^2 / (2 theta)`` with this effective rank.

    ``Z_k = V_k diag(max(1 - theta / s^2, 0)) V_k^H``; theta is found by halving until the trace,
    averaged over slices, is ``rank``. The whole rank has no theta but zero; a thousandth of the
    least ``s^2`` stands for it.
    """
    hat = forward(X, L)
    parts = [np.linalg.svd(hat[:, :, k], full_matrices=False)[1:] for k in range(hat.shape[2])]
    largest = max(s.max() for s, _ in parts)

    def kept(s, theta):
        squares = np.where(s > 1e-6 * largest, s, 0) ** 2
        return np.maximum(1 - theta / np.where(squares > 0, squares, theta), 0)

    least = min(s[s > 1e-6 * largest].min(initial=largest) for s, _ in parts)
    low, high = 1e-3 * least**2, largest**2
    for _ in range(60):
        theta = (low + high) / 2
        enough = np.mean([kept(s, theta).sum() for s, _ in parts]) > rank
        low, high = (theta, high) if enough else (low, theta)
    return [(vh.conj().T * kept(s, theta)) @ vh for s, vh in parts]


def suggested_rank(X, L):
    """Stable rank averaged by energy; of one slice (sum s)^2 / sum s^2; from 2 to half the rank."""
    hat = forward(X, L)
    spectra = [np.linalg.svd(hat[:, :, k], compute_uv=False) for k in range(hat.shape[2])]
    largest = max(s.max() for s in spectra)
    if largest == 0:
        return 0.0
    rank = np.mean([(s > 1e-6 * largest).sum() for s in spectra])
    if len(spectra) == 1:
        found = spectra[0].sum() ** 2 / (spectra[0] ** 2).sum()
    else:
        energies = np.array([(s**2).sum() for s in spectra])
        stable = [(s**2).sum() / max(s.max() ** 2, 1e-300) for s in spectra]
        found = energies @ stable / energies.sum()
    return min(max(2.0, found), rank / 2)


def scale_similarity(X, L, factors):
    """Mean over ranks of ``||Z_ij|| / sqrt(||Z_ii|| ||Z_jj||)``, the norms those of tubes."""
    n, tau, rank = X.shape[1], scale(L), suggested_rank(X, L)
    total = np.zeros((n, n))
    if rank == 0:
        return total
    for factor in factors:
        slices = closed_form(X, L, factor * rank)
        size = np.sqrt(sum(np.abs(Z) ** 2 for Z in slices) / tau)
        for i in range(n):
            for j in range(n):
                if size[i, i] > 0 and size[j, j] > 0:
                    total[i, j] += size[i, j] / np.sqrt(size[i, i] * size[j, j])
    return total / len(factors)
