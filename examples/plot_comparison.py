"""
Beside scikit-learn's tools
===========================

Is a convex program worth it? The demo data - handwritten digits, one picture in ten a scrap of a
photograph - through `ORTLRR` and through what one would reach for first in scikit-learn, on five
draws. Nothing is tuned: `ORTLRR` as it comes, the others with the settings shown.
"""

# %%
# The candidates
# --------------
# All are told that there are ten clusters, and have one thread. The detectors of scikit-learn are
# also told the true share of outliers, 10 %, which `ORTLRR` is not.

import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from threadpoolctl import threadpool_limits

from tubal import ORTLRR, datasets, metrics

one_thread = threadpool_limits(1)
warnings.filterwarnings("ignore", message="Graph is not fully connected")
clusterers = {
    "ORTLRR": lambda seed: ORTLRR(n_clusters=10, random_state=seed),
    "KMeans": lambda seed: KMeans(10, n_init=10, random_state=seed),
    "SpectralClustering, neighbours": lambda seed: SpectralClustering(
        10, affinity="nearest_neighbors", random_state=seed
    ),
    "AgglomerativeClustering": lambda seed: AgglomerativeClustering(10),
    "HDBSCAN": lambda seed: HDBSCAN(min_cluster_size=10, copy=True),
}
detectors = {
    "IsolationForest": lambda seed: IsolationForest(contamination=0.1, random_state=seed),
    "LocalOutlierFactor": lambda seed: LocalOutlierFactor(contamination=0.1),
}
results: dict[str, list[tuple[float, ...]]] = {}
for seed in range(5):
    data = datasets.load_demo(random_state=seed)
    flat = data.X.reshape(len(data.X), -1)
    for name, make in clusterers.items():
        start = perf_counter()
        model = make(seed).fit(data.X if name == "ORTLRR" else flat)
        seconds = perf_counter() - start
        labels, auc, f1 = model.labels_, np.nan, np.nan
        if name == "ORTLRR":
            auc = metrics.outlier_auc(data.outliers, model.outlier_scores_)
        if name in ("ORTLRR", "HDBSCAN"):  # both set samples aside
            f1 = metrics.outlier_f1(data.outliers, labels == -1)
        scores = metrics.clustering_accuracy(data.labels, labels), metrics.nmi(data.labels, labels)
        results.setdefault(name, []).append((*scores, auc, f1, seconds))
    for name, make in detectors.items():
        start = perf_counter()
        model = make(seed)
        flags = model.fit_predict(flat) == -1
        seconds = perf_counter() - start
        local = name == "LocalOutlierFactor"
        scores = -model.negative_outlier_factor_ if local else -model.score_samples(flat)
        auc, f1 = (
            metrics.outlier_auc(data.outliers, scores),
            metrics.outlier_f1(data.outliers, flags),
        )
        results.setdefault(name, []).append((np.nan, np.nan, auc, f1, seconds))
one_thread.restore_original_limits()

# %%
# Means over the five draws
# -------------------------
# Accuracy and NMI count the digits only; one that was set aside counts as wrong. AUC and F1 are
# about the scraps.

print(f"{'':31} accuracy   NMI    AUC     F1   seconds")
for name, rows in results.items():
    cells = ["     -" if np.isnan(value) else f"{value:6.3f}" for value in np.mean(rows, axis=0)]
    print(f"{name:31}   {'  '.join(cells)}")

# %%
# What is seen
# ------------
# The scraps are no challenge: an isolation forest that is told their number finds nearly all of
# them. `ORTLRR` finds them without being told. Its clusters are better than those of the others
# on this data, and it takes about ten times as long as the other clusterers. A nearest-neighbour
# graph alone comes next; where time matters more than outliers, it is a good choice. HDBSCAN,
# which also sets samples aside, finds no dense groups among raw pixels.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
names = list(clusterers)
values = [[row[0] for row in results[name]] for name in names]
for i, value in enumerate(values):
    ax.plot(value, np.full(len(value), len(names) - i), "o", alpha=0.6)
ax.set(
    xlabel="accuracy, one dot a draw",
    yticks=range(len(names), 0, -1),
    yticklabels=names,
    xlim=(0, 1),
)
ax.grid(axis="x", alpha=0.3)
plt.show()
