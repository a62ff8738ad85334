"""
Faces with junk pictures among them
===================================

A folder of portraits into which other pictures have slipped: `ORTLRR` sorts the portraits by
person and sets the others aside.

Face databases cannot be shipped with the package, so the faces here are *drawn*: twelve people
with their own proportions, each seen twenty times under another light, with another mouth and not
quite in the middle. The junk is cut from the two photographs that come with scikit-learn. For
figures on real faces see the reproduction of the paper.
"""

# %%
# The data
# --------
# Samples come first: 280 pictures of 32 x 32 pixels.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_sample_images
from sklearn.ensemble import IsolationForest

from tubal import ORTLRR, metrics

rng = np.random.default_rng(0)
y, x = np.mgrid[-1:1:32j, -1:1:32j]


def draw_person():
    """Draw the proportions of a face."""
    low = [0.45, 0.55, 0.75, 0.1, 0.2, 0.22, 0.10, 0.0, 0.10, 0.15]
    high = [0.80, 0.85, 0.95, 0.6, 0.5, 0.42, 0.18, 0.4, 0.25, 0.40]
    return rng.uniform(low, high)


def draw_face(person):
    """Draw one picture of a person: light, mouth and position differ from time to time."""
    skin, width, height, hair, fringe, eye, lid, brow, nose, mouth = person
    dx, dy = rng.uniform(-0.08, 0.08, 2)

    def blob(cx, cy, w, h):
        return 1 / (1 + np.exp(12 * (np.hypot((x - dx - cx) / w, (y - dy - cy) / h) - 1)))

    face = 0.15 + skin * blob(0, 0, width, height)
    face -= hair * blob(0, 0.05 - height, 1.1 * width, fringe)
    for side in (-eye, eye):
        face -= 0.45 * blob(side, -0.15, lid, 0.08) + brow * blob(side, -0.33, 0.2, 0.05)
    face -= 0.2 * blob(0, 0.12, 0.07, nose)
    face -= 0.35 * blob(0, 0.48 + rng.uniform(-0.04, 0.04), mouth, rng.uniform(0.04, 0.12))
    light = 1 + rng.uniform(-0.6, 0.6) * x + rng.uniform(-0.3, 0.3) * y
    return np.clip(face * light, 0, 1) + rng.normal(0, 0.03, x.shape)


photos = [photo.mean(axis=2) / 255 for photo in load_sample_images().images]


def cut_junk():
    """Cut a square from one of the photographs and shrink it."""
    photo = photos[rng.integers(2)]
    i, j = (rng.integers(0, size - 128) for size in photo.shape)
    return photo[i : i + 128, j : j + 128].reshape(32, 4, 32, 4).mean(axis=(1, 3))


people = [draw_person() for _ in range(12)]
X = np.array([draw_face(p) for p in people for _ in range(20)] + [cut_junk() for _ in range(40)])
truth = np.append(np.repeat(np.arange(12), 20), np.full(40, -1))
order = rng.permutation(len(X))
X, truth = X[order], truth[order]


def show(pictures, columns, title):
    rows = -(-len(pictures) // columns)
    fig, axes = plt.subplots(
        rows, columns, figsize=(8, 0.4 + 8 / columns * rows), layout="constrained", squeeze=False
    )
    for ax in axes.flat:
        ax.axis("off")
    for ax, picture in zip(axes.flat, pictures, strict=False):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    fig.suptitle(title)
    return fig


show(X[:36], 12, "The first 36 pictures")

# %%
# One call
# --------

est = ORTLRR(n_clusters=12, random_state=0).fit(X)
found, wrong = (est.outliers_ & (truth == -1)).sum(), (est.outliers_ & (truth != -1)).sum()
print(f"{found} of 40 junk pictures found, {wrong} portraits taken for junk")
print(f"{metrics.clustering_accuracy(truth, est.labels_):.0%} of the portraits with their person")
print(f"proved to be within {est.certificate_.gap:.1e} of the optimum")

# %%
# A row for each of the first clusters, and what was set aside:

rows = [X[est.labels_ == k][:12] for k in range(5)]
show(np.concatenate([r for r in rows if len(r) == 12]), 12, "One cluster a row")

# %%
show(X[est.outliers_][:24], 12, "Set aside")

# %%
# Beside scikit-learn's tools
# ---------------------------
# Neither k-means nor spectral clustering on pixels knows about outliers; their accuracy, too, is
# counted on the portraits alone. An isolation forest finds the junk about as well, but it does
# not cluster.

flat = X.reshape(len(X), -1)
labels = {
    "ORTLRR": est.labels_,
    "KMeans": KMeans(12, n_init=10, random_state=0).fit_predict(flat),
    "SpectralClustering": SpectralClustering(
        12, affinity="nearest_neighbors", random_state=0
    ).fit_predict(flat),
}
for name, found in labels.items():
    print(f"{name:20} accuracy {metrics.clustering_accuracy(truth, found):.3f}")
forest = IsolationForest(random_state=0).fit(flat)
for name, scores in (
    ("ORTLRR", est.outlier_scores_),
    ("IsolationForest", -forest.score_samples(flat)),
):
    print(f"{name:20} AUC of the outlier scores {metrics.outlier_auc(truth == -1, scores):.4f}")
plt.show()
