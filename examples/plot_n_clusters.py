"""
How many clusters?
==================

With ``n_clusters=None`` the number is estimated: partitions into 2, 3, ... clusters are compared
with those of a null model. A confidence and other candidates come with it, and `relabel` tries
other numbers without solving again.
"""

# %%
# Clear groups
# ------------

from time import perf_counter

import matplotlib.pyplot as plt

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
# The candidates and their shares of the support. For the subspaces one number has most of it.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
for ax, est, title in zip(axes, (clear, digits), ("6 subspaces", "10 digits"), strict=True):
    numbers = sorted(est.n_clusters_candidates_)
    shares = [est.n_clusters_candidates_[k] for k in numbers]
    colors = ["C3" if k == est.n_clusters_ else "C0" for k in numbers]
    ax.bar([str(k) for k in numbers], shares, color=colors)
    ax.set(title=title, xlabel="number of clusters")
axes[0].set_ylabel("share of the support")

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
