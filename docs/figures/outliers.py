"""Squares let outliers steer the subspace; norms of whole samples do not."""

import matplotlib.pyplot as plt
import numpy as np

from tubal import Lambda, datasets, solve
from tubal.algebra import project_columns, tsvd
from tubal.input import from_paper, to_paper

data = datasets.make_tensor_subspaces(30, 12, 3, 2, 40, outliers=0.25, random_state=0)
X = np.where(data.outliers[:, None, None], 4, 1) * data.X  # outliers are four times as large
solution = solve(X, lam=Lambda.relative(0.3), tol=1e-6)
# The competitor: the best approximation of the same rank in squares (tensor PCA).
A = to_paper(X)
pca = from_paper(project_columns(A, tsvd(A).U[:, :6]))
noise = {
    "squares: tensor PCA of the true rank": X - pca,
    "sum of sample norms: OR-TLRR": solution.E,
}
fig, axes = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True)
axes[0].set_ylim(0, 1)
for ax, (title, E) in zip(axes, noise.items(), strict=True):
    size = np.linalg.norm(E, axis=(1, 2)) / np.linalg.norm(X, axis=(1, 2))
    for which, colour, name in (
        (~data.outliers, "C0", "samples"),
        (data.outliers, "C3", "outliers"),
    ):
        ax.plot(np.flatnonzero(which), size[which], "o", ms=3, color=colour, label=name)
    ax.set(xlabel="sample j", title=title)
    ax.title.set_size(9)
axes[0].set_ylabel("share left unexplained")
axes[0].legend()
