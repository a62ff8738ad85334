"""Shifted copies of a few pictures: many dimensions for vectors, few for the t-product."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tubal.algebra import tsvd
from tubal.input import to_paper

rng = np.random.default_rng(0)
wide = np.pad(load_digits().images[[0, 1, 2]] / 16, ((0, 0), (0, 0), (0, 8)))
X = np.array([np.roll(wide[i % 3], rng.integers(16), axis=1) for i in range(90)])
vectors = np.linalg.svd(X.reshape(90, -1), compute_uv=False)
S = np.fft.fft(tsvd(to_paper(X)).S, axis=2)
slices = np.sort(np.abs(np.einsum("iik->ik", S)), axis=0)[::-1]
tubal = np.sqrt((slices**2).mean(axis=1))  # size of each tube of singular values

fig, axes = plt.subplots(1, 2, figsize=(9, 2.8), width_ratios=[1.1, 1])
rows = np.pad(X[:12], ((0, 0), (0, 1), (0, 1)), constant_values=1)
axes[0].imshow(rows.reshape(4, 3, 9, 17).swapaxes(1, 2).reshape(36, 51), cmap="gray")
axes[0].axis("off")
axes[0].set_title("three pictures, shifted by any amount", fontsize=9)
n_vectors = int((vectors > 1e-10 * vectors[0]).sum())
n_tubal = int((tubal > 1e-10 * tubal[0]).sum())
axes[1].semilogy(vectors[:60] / vectors[0], "o-", ms=3, label=f"as vectors: rank {n_vectors}")
axes[1].semilogy(tubal / tubal[0], "s-", ms=4, label=f"t-SVD: tubal rank {n_tubal}")
axes[1].set(ylim=(1e-4, 2), xlabel="number", title="singular values, relative")
axes[1].title.set_size(9)
axes[1].legend()
