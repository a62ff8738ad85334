"""
Missing pixels
==============

How much can be missing? Digits with scraps of photographs among them, and a growing share of
pixels taken away at random. `ORTLRR` leaves missing entries out of its program; the alternative
is to fill them first.
"""

# %%
# With holes, as they are
# -----------------------
# Outliers may leave the neighbour graph of `SpectralClustering` in pieces, about which it warns;
# hidden here.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.impute import KNNImputer

from tubal import ORTLRR, TensorCompleter, datasets, metrics

warnings.filterwarnings("ignore", message="Graph is not fully connected")
shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
rows = []
for share in shares:
    data = datasets.load_demo(missing=share)
    est = ORTLRR(n_clusters=10, random_state=0).fit(data.X)
    flat = data.X.reshape(len(data.X), -1)
    filled = KNNImputer().fit_transform(flat) if share else flat
    spectral = SpectralClustering(10, affinity="nearest_neighbors", random_state=0)
    rows.append(
        (
            metrics.clustering_accuracy(data.labels, est.labels_),
            metrics.outlier_auc(data.outliers, est.outlier_scores_),
            metrics.clustering_accuracy(data.labels, spectral.fit_predict(filled)),
        )
    )
print("missing  ORTLRR accuracy  AUC of the outliers  KNNImputer + spectral accuracy")
for share, row in zip(shares, rows, strict=True):
    print(f"{share:7.0%}  {row[0]:15.3f}  {row[1]:19.4f}  {row[2]:30.3f}")

# %%
# This is one draw, and a few per cent up or down mean little. The scraps are found at every
# share. The clusters are better than those of the imputed pictures at first, and the distance
# shrinks as more is missing.

accuracy, auc, other = np.array(rows).T
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(shares, accuracy, "o-", label="ORTLRR, accuracy")
ax.plot(shares, auc, "s--", label="ORTLRR, AUC of the outliers")
ax.plot(shares, other, "^-", label="KNNImputer + spectral, accuracy")
ax.set(xlabel="share of missing pixels", ylim=(0, 1.05))
ax.legend()

# %%
# What is filled in
# -----------------
# `X_clean_` is the explained part of the data, without holes. `TensorCompleter` fills holes only:
# the observed pixels stay as they are.

data = datasets.load_demo(missing=0.3)
est = ORTLRR(n_clusters=10, random_state=0).fit(data.X)
completed = TensorCompleter().fit_transform(data.X)
holes = np.isnan(data.X) & ~data.outliers[:, None, None]
size = np.linalg.norm(data.complete[holes])
mean = np.nanmean(data.X[~data.outliers], axis=0)
for name, values in (
    ("mean picture", np.broadcast_to(mean, data.X.shape)),
    ("KNNImputer", KNNImputer().fit_transform(data.X.reshape(500, -1)).reshape(data.X.shape)),
    ("TensorCompleter", completed),
    ("ORTLRR", est.X_clean_),
):
    error = np.linalg.norm((values - data.complete)[holes]) / size
    print(f"{name:16} relative error in the missing pixels {error:.3f}")

# %%
# For filling alone the imputer is the best of them here: among 450 pictures of 8 x 8 pixels every
# digit has close neighbours to copy from. See the sensor panels for data where it has not.

digits = np.flatnonzero(~data.outliers)[:10]
fig, axes = plt.subplots(4, 10, figsize=(8, 3.6), layout="constrained")
panels = {"given": data.X, "completed": completed, "ORTLRR": est.X_clean_, "truth": data.complete}
for row, (name, pictures) in zip(axes, panels.items(), strict=True):
    for ax, picture in zip(row, pictures[digits], strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_facecolor("#d95f02")
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()
