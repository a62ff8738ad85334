"""The flow of a fit, on the demo data: data, explained part, scores, graph, clusters."""

import matplotlib.pyplot as plt
import numpy as np

from tubal import ORTLRR, datasets

data = datasets.load_demo(300, outliers=30)
est = ORTLRR(n_clusters=10, random_state=0).fit(data.X)


def grid(pictures, side):
    """Lay out side x side pictures, with a white line between them."""
    framed = np.ones((side * side, 9, 9))
    framed[: len(pictures), :8, :8] = pictures
    return framed.reshape(side, side, 9, 9).swapaxes(1, 2).reshape(9 * side, 9 * side)


junk, digits = (np.flatnonzero(data.outliers == kind) for kind in (True, False))
shown = np.random.default_rng(3).permutation(np.append(junk[:3], digits[:13]))
largest = np.argsort(-np.bincount(est.labels_[est.labels_ >= 0]))[:5]
rows = np.concatenate([data.X[est.labels_ == k][:5] for k in largest])
order = np.argsort(est.labels_, kind="stable")
order = order[est.labels_[order] >= 0]

_, axes = plt.subplots(1, 5, figsize=(10, 2.5))
axes[0].set_title("1  the data X")
axes[0].imshow(grid(data.X[shown], 4), cmap="gray", vmin=0, vmax=1)
axes[1].set_title("2  explained: D * Z")
axes[1].imshow(grid(est.X_clean_[shown], 4), cmap="gray", vmin=0, vmax=1)
axes[2].set_title("3  who is an outlier")
bins = np.linspace(0, np.percentile(est.outlier_scores_, 99), 30)
axes[2].hist(est.outlier_scores_[~est.outliers_], bins, color="C0")
axes[2].hist(est.outlier_scores_[est.outliers_], bins, color="C3")
axes[2].set(yticks=[], xlabel="score")
axes[3].set_title("4  graph of the others")
axes[3].spy(est.affinity_[order][:, order].toarray(), markersize=0.4, color="C0")
axes[3].set(xticks=[], yticks=[])
axes[4].set_title("5  clusters, one a row")
axes[4].imshow(grid(rows, 5), cmap="gray", vmin=0, vmax=1)
for ax in axes[[0, 1, 4]]:
    ax.axis("off")
for ax in axes:
    ax.title.set_size(9)
