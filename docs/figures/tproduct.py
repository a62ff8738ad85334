"""What a coefficient can do to a picture: a number scales it, a tube filters it."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tubal.algebra import tprod

picture = np.zeros((8, 16))
picture[:, 2:10] = load_digits().images[12] / 16
tubes = {
    "a number:\nscales": [0.5] + 15 * [0],
    "one tap:\nshifts": 5 * [0] + [1] + 10 * [0],
    "two taps:\nadds a ghost": [0.7] + 7 * [0] + [0.5] + 7 * [0],
    "neighbouring taps:\nblur": [0.3, 0.25, 0.1] + 11 * [0] + [0.1, 0.25],
}
fig, axes = plt.subplots(2, 5, figsize=(10, 3.2), height_ratios=[1, 1.4])
axes[0, 0].axis("off")
axes[1, 0].imshow(picture, cmap="gray", vmin=0, vmax=1)
axes[1, 0].set_title("a picture A", fontsize=9)
for column, (name, tube) in zip(axes.T[1:], tubes.items(), strict=True):
    tube = np.array(tube, dtype=float)
    column[0].stem(tube, basefmt=" ", markerfmt="C3o", linefmt="C3-")
    column[0].set(ylim=(0, 1.1), xticks=[], yticks=[])
    column[0].set_title(name, fontsize=9)
    # n1 x 1 x n3 times 1 x 1 x n3: every row of the picture is convolved with the tube.
    product = tprod(picture[:, None, :], tube[None, None, :])[:, 0, :]
    column[1].imshow(product, cmap="gray", vmin=0, vmax=1)
    column[1].set_title("A * z", fontsize=9)
axes[0, 1].set_ylabel("tube z")
for ax in axes[1]:
    ax.axis("off")
