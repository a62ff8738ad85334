"""
A hyperspectral-like cube with broken pixels
============================================

A spectral camera sees a scene in 32 bands. Some of its pixels are broken and give nonsense. First
`TensorOutlierDetector` finds these from their spectra; then they count as *missing*, and `ORTLRR`
maps the materials from small neighbourhoods.

The scene is synthetic: four made-up materials that mix where they meet, under uneven light.
"""

# %%
# The scene
# ---------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest

from tubal import ORTLRR, TensorOutlierDetector, metrics

rng = np.random.default_rng(0)
size, bands = 36, 32
band = np.linspace(0, 1, bands)
peaks = [
    [(0.20, 0.12, 0.5), (0.7, 0.2, -0.2)],
    [(0.35, 0.10, -0.2), (0.8, 0.1, 0.6)],
    [(0.50, 0.30, 0.4)],
    [(0.15, 0.10, 0.3), (0.5, 0.1, -0.2), (0.85, 0.1, 0.4)],
]
spectra = np.array(
    [0.3 + sum(h * np.exp(-(((band - c) / w) ** 2)) for c, w, h in p) for p in peaks]
)
y, x = np.mgrid[:size, :size]
fields = np.array(
    [
        np.sin(x / 7 + a) + np.cos(y / 6 + b) + 0.5 * np.sin((x + y) / 9 + c)
        for a, b, c in rng.uniform(0, 6, (4, 3))
    ]
)
material = fields.argmax(axis=0)
shares = np.exp(4 * fields) / np.exp(4 * fields).sum(axis=0)
cube = np.einsum("kij,kb->ijb", shares, spectra) * rng.uniform(0.6, 1.2, (size, size, 1))
cube += rng.normal(0, 0.03, cube.shape)
broken = rng.random((size, size)) < 0.05
cube[broken] = rng.uniform(0, 1, (broken.sum(), bands))
print(f"{size} x {size} pixels, {bands} bands, {broken.sum()} pixels are broken")

# %%
# Broken pixels
# -------------
# One sample is the spectrum of one pixel, folded into 8 groups of 4 neighbouring bands.

detector = TensorOutlierDetector().fit(cube.reshape(-1, 8, 4))
flagged = detector.outliers_.reshape(size, size)
print(
    f"{(flagged & broken).sum()} of {broken.sum()} found,"
    f" {(flagged & ~broken).sum()} others flagged"
)

unit = cube.reshape(-1, bands)
unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
forest = IsolationForest(random_state=0).fit(unit)
print(f"AUC {metrics.outlier_auc(broken.ravel(), detector.outlier_scores_):.4f}", end=", ")
print(f"isolation forest {metrics.outlier_auc(broken.ravel(), -forest.score_samples(unit)):.4f}")

# %%
# Uniform noise is easy to tell from a spectrum, so the isolation forest does it as well. What it
# does not give is a threshold from the data: `contamination` is a number that you have to know
# there.
#
# Materials
# ---------
# Now one sample is what surrounds a pixel: 32 bands of 3 x 3 pixels, the flagged ones missing.
# The transform runs along the nine pixels.

holes = np.pad(np.where(flagged[..., None], np.nan, cube), ((1, 1), (1, 1), (0, 0)), mode="reflect")
around = [holes[i : i + size, j : j + size] for i in range(3) for j in range(3)]
X = np.stack(around, axis=-1).reshape(-1, bands, 9)
est = ORTLRR(n_clusters=4, outliers=None, random_state=0).fit(X)

mean = np.nanmean(X, axis=2)
mean /= np.linalg.norm(mean, axis=1, keepdims=True)
simple = {
    "ORTLRR on neighbourhoods": est.labels_,
    "KMeans on neighbourhood means": KMeans(4, n_init=10, random_state=0).fit_predict(mean),
    "KMeans on pixels": KMeans(4, n_init=10, random_state=0).fit_predict(unit),
}
for name, labels in simple.items():
    print(f"{name:32} accuracy {metrics.clustering_accuracy(material.ravel(), labels):.3f}")

# %%
# All pixels get a material, the broken ones from their neighbours. Once the broken pixels are
# known, averaging neighbourhoods by hand and k-means do better here: four spectra far apart are no
# hard problem, and each of them is a point, not a subspace.

found = metrics.match_labels(material.ravel(), est.labels_).reshape(size, size)
fig, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
panels = {
    "band 9": cube[..., 8],
    "flagged": flagged,
    "material": material,
    "found": found,
}
for ax, (title, panel) in zip(axes, panels.items(), strict=True):
    ax.imshow(panel, cmap="viridis" if panel.dtype == float else "tab10")
    ax.set_title(title)
    ax.axis("off")
plt.show()
