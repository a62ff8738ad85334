"""
Sensor panels with dead channels
================================

Twelve sensors watch a machine that runs in four regimes. One sample is a window of 40 time steps
of all channels. In each window some channels are dead (missing), and in a few windows the
recording itself is broken: the signals drift.

Windows are cut anywhere, so the same regime comes with any phase. That is what the t-product is
made for: under the DFT a coefficient is a filter along time, and a shift is one.
"""

# %%
# The recordings
# --------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.impute import KNNImputer, SimpleImputer

from tubal import ORTLRR, metrics

rng = np.random.default_rng(0)
channels, length, windows = 12, 40, 50
time = np.arange(length) / length


def record(mixing, frequencies):
    """Record one window: three oscillations of any phase, mixed into the channels."""
    phase = rng.uniform(0, 2 * np.pi, 3)
    size = rng.normal(1, 0.3, 3)
    sources = size[:, None] * np.sin(2 * np.pi * frequencies[:, None] * time + phase[:, None])
    return mixing @ sources + rng.normal(0, 0.3, (channels, length))


regimes = [(rng.normal(size=(channels, 3)), rng.uniform(1, 4, 3).round()) for _ in range(4)]
good = [record(*regime) for regime in regimes for _ in range(windows)]
drifting = [np.cumsum(rng.normal(0, 0.6, (channels, length)), axis=1) for _ in range(15)]
complete = np.array(good + drifting)
truth = np.append(np.repeat(np.arange(4), windows), np.full(15, -1))
order = rng.permutation(len(truth))
complete, truth = complete[order], truth[order]

dead = rng.random((len(truth), channels)) < 0.15
X = complete.copy()
X[dead] = np.nan
print(f"{len(X)} windows of {channels} x {length}, {dead.mean():.0%} of the channels dead")

# %%
# Regimes, broken recordings and what dead channels would have shown
# ------------------------------------------------------------------

est = ORTLRR(n_clusters=4, random_state=0).fit(X)
found, wrong = (est.outliers_ & (truth == -1)).sum(), (est.outliers_ & (truth != -1)).sum()
print(f"{found} of 15 broken recordings found, {wrong} good ones flagged")
print(f"{metrics.clustering_accuracy(truth, est.labels_):.1%} of the windows in their regime")

lost = dead & (truth >= 0)[:, None]


def error(filled):
    return np.linalg.norm((filled - complete)[lost]) / np.linalg.norm(complete[lost])


print(f"dead channels: relative error {error(est.X_clean_):.2f}")

# %%
# The same with imputation first
# ------------------------------
# scikit-learn's imputers see each window as a vector. Filling with the mean says nothing about a
# channel that oscillates around zero; the nearest windows help, where there are some with about
# the same phase.

flat = X.reshape(len(X), -1)
for imputer in (SimpleImputer(), KNNImputer()):
    filled = imputer.fit_transform(flat)
    print(f"{imputer}: relative error {error(filled.reshape(X.shape)):.2f}")
    for model in (
        KMeans(4, n_init=10, random_state=0),
        SpectralClustering(4, affinity="nearest_neighbors", random_state=0),
    ):
        accuracy = metrics.clustering_accuracy(truth, model.fit_predict(filled))
        print(f"    {type(model).__name__:20} {accuracy:.1%} in their regime")

# %%
# A window with a dead channel: what was recorded and lost, and what the fit says.

window, channel = np.argwhere(lost)[0]
fig, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
axes[0].plot(time, X[window].T, lw=1)
axes[0].set(title="a window, as recorded", xlabel="time")
axes[1].plot(time, complete[window, channel], "k", lw=1, label="lost")
axes[1].plot(time, est.X_clean_[window, channel], "C3", label="recovered")
axes[1].set(title=f"its dead channel {channel}", xlabel="time")
axes[1].legend()
plt.show()
