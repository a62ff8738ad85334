"""
How many clusters?
==================

With ``n_clusters=None`` the number comes from the spectrum of the graph, together with a
confidence. When the groups are clear it is right; when they are not, the confidence says so, and
`relabel` tries other numbers without solving again.
"""

# %%
# Clear groups
# ------------

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from tubal import ORTLRR, datasets, metrics

data = datasets.make_tensor_subspaces(
    30, 10, n_subspaces=6, rank=2, samples_per_subspace=40, random_state=0
)
clear = ORTLRR(random_state=0).fit(data.X)
print(f"6 subspaces: found {clear.n_clusters_}, confidence {clear.n_clusters_confidence_:.2f}")

# %%
# Handwritten digits
# ------------------
# Ten digits are not ten groups: there are two ways of writing a 1, and some of the 8 look like it.

demo = datasets.load_demo()
digits = ORTLRR(random_state=0).fit(demo.X)
print(f"10 digits: found {digits.n_clusters_}, confidence {digits.n_clusters_confidence_:.2f}")

# %%
# The eigenvalues of the graph's Laplacian tell why. A large gap after the k-th one means k
# groups. `eigenvalues_` of the subspaces have one; those of the digits rise evenly.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for ax, est, title in zip(axes, (clear, digits), ("6 subspaces", "10 digits"), strict=True):
    values = est.eigenvalues_[:20]
    ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=4)
    ax.axvline(est.n_clusters_ + 0.5, color="C3", ls="--", label=f"found: {est.n_clusters_}")
    ax.set(title=title, xlabel="number", xticks=range(0, 21, 5))
    ax.legend(loc="lower right")
axes[0].set_ylabel("eigenvalue")

# %%
# Trying other numbers
# --------------------
# `relabel` cuts the same graph again. The purity of the clusters, which needs the truth, is shown
# to judge the result.

start = perf_counter()
for k in (5, 8, 10, 12, 15, 20):
    digits.relabel(n_clusters=k)
    print(f"{k:2} clusters: purity {metrics.purity(demo.labels, digits.labels_):.3f}")
print(f"all of them: {perf_counter() - start:.1f} s")
plt.show()
