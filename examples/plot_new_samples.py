"""
New samples and pipelines
=========================

A fitted `ORTLRR` answers for samples it has not seen: a label, a score, a clean version. With
missing entries too, and inside scikit-learn's pipelines.
"""

# %%
# Fit on some, ask about others
# -----------------------------

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tubal import ORTLRR, datasets, metrics

data = datasets.load_demo(800, outliers=80)
old, new = np.arange(500), np.arange(500, 800)
est = ORTLRR(n_clusters=10, random_state=0).fit(data.X[old])

start = perf_counter()
labels = est.predict(data.X[new])
print(f"{len(new)} new pictures in {perf_counter() - start:.2f} s")
for name, part, found in (("fitted", old, est.labels_), ("new", new, labels)):
    truth = data.labels[part]
    accuracy = metrics.clustering_accuracy(truth, found)
    f1 = metrics.outlier_f1(truth == -1, found == -1)
    print(f"{name:7} accuracy {accuracy:.3f}, F1 of the outliers {f1:.3f}")

# %%
# The simple alternative: the label of the nearest fitted picture. It has no way to say "none of
# these".

kept = ~est.outliers_
nearest = KNeighborsClassifier(1).fit(data.X[old][kept].reshape(kept.sum(), -1), est.labels_[kept])
simple = nearest.predict(data.X[new].reshape(len(new), -1))
print(f"nearest neighbour: accuracy {metrics.clustering_accuracy(data.labels[new], simple):.3f}")

# %%
# Holes in new samples
# --------------------
# Nothing was missing in the fit; the new pictures lose a third of their pixels. `transform`
# returns them without holes.

rng = np.random.default_rng(0)
holes = data.X[new].copy()
holes[rng.random(holes.shape) < 1 / 3] = np.nan
accuracy = metrics.clustering_accuracy(data.labels[new], est.predict(holes))
print(f"with a third of the pixels missing: accuracy {accuracy:.3f}")

clean = est.transform(holes)
shown = np.flatnonzero(~data.outliers[new])[:10]
fig, axes = plt.subplots(3, 10, figsize=(8, 2.8), layout="constrained")
for row, pictures, name in zip(
    axes, (holes, clean, data.X[new]), ("given", "transform", "truth"), strict=True
):
    for ax, picture in zip(row, pictures[shown], strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_facecolor("#d95f02")
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# In a pipeline
# -------------
# Tables of pixels arrive as rows; the first step folds them into pictures.

fold = FunctionTransformer(lambda table: table.reshape(len(table), 8, 8))
pipeline = make_pipeline(fold, ORTLRR(n_clusters=10, random_state=0))
rows = data.X[old].reshape(len(old), -1)
same = np.array_equal(pipeline.fit_predict(rows), est.labels_)
print(f"the pipeline gives the same labels: {same}")
plt.show()
