"""
Colour pictures
===============

Colour is one axis more. Eight places in two photographs are seen 25 times each, by a shaking hand
and with another exposure and white balance every time; thirty other pictures show places that are
seen only once. Samples have the shape 24 x 24 x 3, and `ORTLRR` takes them as they are.

The photographs are the two that come with scikit-learn.
"""

# %%
# The pictures
# ------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_sample_images
from sklearn.ensemble import IsolationForest

from tubal import ORTLRR, metrics

rng = np.random.default_rng(0)
photos = [photo[::2, ::2] / 255 for photo in load_sample_images().images]
side, step = 24, 30
height, width, _ = photos[0].shape
places = [
    (photo, i, j)
    for photo in photos
    for i in range(6, height - step, step)
    for j in range(6, width - step, step)
]


def shoot(photo, i, j):
    """Take a picture: shifted by up to two pixels, with its own light and colour cast."""
    i, j = np.array([i, j]) + rng.integers(-2, 3, 2)
    light = rng.uniform(0.5, 1.3) * rng.uniform(0.85, 1.15, 3)
    picture = photo[i : i + side, j : j + side] * light
    return np.clip(picture + rng.normal(0, 0.03, picture.shape), 0, 1)


chosen = [places[k] for k in rng.permutation(len(places))]
X = np.array([shoot(*p) for p in chosen[:8] for _ in range(25)] + [shoot(*p) for p in chosen[8:38]])
truth = np.append(np.repeat(np.arange(8), 25), np.full(30, -1))
order = rng.permutation(len(X))
X, truth = X[order], truth[order]
print(f"X.shape = {X.shape}")

# %%
# A transform for each axis
# -------------------------
# The transform runs along every axis after the first of a sample: here along the width and along
# the colours. By default, "auto", the program has the DFT on both, and how pictures are compared
# for the graph is chosen from the data. A shift along the width is natural, a "shift" from red to
# green is not, so ``["dft", "none"]`` treats the three colours as three separate slices. Grey
# pictures, for comparison, lose colour altogether, and with it what holds the pictures of a place
# together: far more than 30 are flagged.


def report(name, data, **options):
    est = ORTLRR(n_clusters=8, random_state=0, **options).fit(data)
    print(
        f"{name:20} accuracy {metrics.clustering_accuracy(truth, est.labels_):.3f}"
        f"  NMI {metrics.nmi(truth, est.labels_):.3f}"
        f"  AUC of the outliers {metrics.outlier_auc(truth == -1, est.outlier_scores_):.3f}"
        f"  flagged {est.outliers_.sum()}"
    )
    return est


report("colour, auto", X)
est = report("colour, dft and none", X, transform=["dft", "none"])
report("grey", X.mean(axis=3))

# %%
# scikit-learn's tools on the same pixels, each picture scaled to unit norm as `ORTLRR` does by
# itself:

unit = X.reshape(len(X), -1)
unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
for model in (
    KMeans(8, n_init=10, random_state=0),
    SpectralClustering(8, affinity="nearest_neighbors", random_state=0),
):
    labels = model.fit_predict(unit)
    print(
        f"{type(model).__name__:20} accuracy {metrics.clustering_accuracy(truth, labels):.3f}"
        f"  NMI {metrics.nmi(truth, labels):.3f}"
    )
scores = -IsolationForest(random_state=0).fit(unit).score_samples(unit)
print(f"{'IsolationForest':20} AUC of the outliers {metrics.outlier_auc(truth == -1, scores):.3f}")

# %%
# The outliers are hard here, for all: a place that is seen once looks like any other place, and
# two plain pieces of sky look like one place. What `ORTLRR` found, one cluster a row, and some of
# what it set aside in the last row:

groups = [X[est.labels_ == k][:10] for k in range(8)] + [X[est.outliers_][:10]]
fig, axes = plt.subplots(len(groups), 10, figsize=(6, 5.6), layout="constrained")
for row, group in zip(axes, groups, strict=True):
    for ax in row:
        ax.axis("off")
    for ax, picture in zip(row, group, strict=False):
        ax.imshow(picture)
plt.show()
