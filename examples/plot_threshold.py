"""
Who is an outlier? Scores, thresholds and contamination
=======================================================

A fit gives every sample a score and chooses a threshold. Both can be looked at, and the threshold
can be changed afterwards, in a moment, without solving again.
"""

# %%
# Scores
# ------

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from tubal import ORTLRR, datasets, metrics

data = datasets.load_demo()
start = perf_counter()
est = ORTLRR(n_clusters=10, random_state=0).fit(data.X)
print(
    f"fit: {perf_counter() - start:.2f} s,"
    f" threshold {est.threshold_:.2f}, {est.outliers_.sum()} flagged"
)

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
bins = np.linspace(0, est.outlier_scores_.max(), 60)
ax.hist(est.outlier_scores_[~data.outliers], bins, label="digits")
ax.hist(est.outlier_scores_[data.outliers], bins, label="scraps of photographs")
ax.axvline(est.threshold_, color="k", ls="--", label="threshold")
ax.set(xlabel="outlier score", ylabel="pictures")
ax.legend()

# %%
# Changing one's mind
# -------------------
# `contamination` flags a given share; ``threshold=`` takes a score; "auto" returns to what the
# detector chose.

start = perf_counter()
for share in ("auto", 0.02, 0.1, 0.2):
    est.relabel(contamination=share)
    found = (est.outliers_ & data.outliers).sum()
    accuracy = metrics.clustering_accuracy(data.labels, est.labels_)
    print(
        f"contamination={share!s:5} {est.outliers_.sum():3} flagged,"
        f" {found} scraps, accuracy {accuracy:.3f}"
    )
print(f"four times: {perf_counter() - start:.2f} s")

# %%
# The oddest digits
# -----------------
# Below the scraps, the order of the scores is of use by itself: the digits that look least like
# the others.

est.relabel(contamination="auto")
digits = np.flatnonzero(~data.outliers)
odd = digits[np.argsort(-est.outlier_scores_[digits])][:12]
fig, axes = plt.subplots(1, 12, figsize=(8, 1), layout="constrained")
for ax, i in zip(axes, odd, strict=True):
    ax.imshow(data.X[i], cmap="gray")
    ax.set_title(f"{data.labels[i]}", fontsize=8)
    ax.axis("off")

# %%
# No outliers at all
# ------------------
# On data without outliers few samples should be flagged. ``outliers=None`` turns detection off.

clean = datasets.load_demo(450, outliers=0)
for choice in ("auto", "published", None):
    flagged = ORTLRR(10, outliers=choice, random_state=0).fit(clean.X).outliers_
    print(f"outliers={choice!r:12} {flagged.sum():3} of 450 digits flagged")
plt.show()
