"""Real images to try the package on, without a download: digits, and photo patches as outliers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from tubal.datasets.synthetic import _holes, _is_number

PHOTOS = ("china.jpg", "flower.jpg")


@dataclass(frozen=True)
class Demo:
    """Images of ten digits with outliers among them, and the truth about them.

    Attributes
    ----------
    X : array of shape (n_samples, 8, 8)
        What a method sees: grey levels in [0, 1], NaN where a pixel is missing.
    complete : array of the same shape
        The images without holes.
    labels : int array of shape (n_samples,)
        The digit; -1 for outliers.
    outliers : bool array of shape (n_samples,)
    source : str array of shape (n_samples,)
        "digits", "china.jpg" or "flower.jpg".
    """

    X: np.ndarray
    complete: np.ndarray
    labels: np.ndarray
    outliers: np.ndarray
    source: np.ndarray


def load_demo(
    n_samples: int = 500, outliers: int = 50, missing: float = 0.0, random_state: Any = 0
) -> Demo:
    """Load handwritten digits, with patches of photographs as outliers.

    The digits are those of `sklearn.datasets.load_digits` (1797 images of 8 x 8 pixels, ten
    classes of about the same size). The outliers are 8 x 8 grey patches of the two photographs that
    come with scikit-learn, a Chinese temple and a flower: texture and edges with the brightness of
    the digits but none of their shapes. They are part of this package, so nothing is downloaded.
    Both kinds are drawn without repetition, scaled to [0, 1] and shuffled.

    Photographs: china.jpg by danielbuechele and flower.jpg by vultilion (flickr.com), both under
    CC BY 2.0; the file photo_patches.txt beside this module tells what was changed.

    Parameters
    ----------
    n_samples : int
        Number of images, outliers included; at most 1797 more than `outliers`.
    outliers : int
        How many of them are photo patches, from 0 to 100.
    missing : float in [0, 1)
        Probability that a pixel is missing (one pixel an image is always observed).
    random_state : None, int or Generator
        Which images are drawn, their order and their holes.

    Returns
    -------
    Demo

    Examples
    --------
    >>> data = load_demo(100, outliers=10)
    >>> data.X.shape, int(data.outliers.sum()), sorted(set(data.labels.tolist()))
    ((100, 8, 8), 10, [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    from sklearn.datasets import load_digits  # slow to import

    digits, (patches, photo) = load_digits(), _photo_patches()
    _check_counts(n_samples, outliers, len(digits.images), len(patches))
    if not (_is_number(missing) and 0 <= missing < 1):
        msg = f"missing must lie in [0, 1), got {missing!r}"
        raise ValueError(msg)
    rng = np.random.default_rng(random_state)
    drawn = rng.permutation(len(digits.images))[: n_samples - outliers]
    odd = rng.permutation(len(patches))[:outliers]
    order = rng.permutation(n_samples)
    complete = np.concatenate([digits.images[drawn] / 16, patches[odd] / 255])[order]
    labels = np.append(digits.target[drawn], np.full(outliers, -1))[order]
    source = np.append(np.full(len(drawn), "digits"), np.array(PHOTOS)[photo[odd]])[order]
    X = complete.copy()
    if missing:
        X[_holes(rng, X.shape, missing)] = np.nan
    return Demo(X, complete, labels, labels == -1, source)


def _photo_patches() -> tuple[np.ndarray, np.ndarray]:
    """Return the patches (100, 8, 8) in grey levels 0..255, and the photo of each as an index."""
    with (files("tubal.datasets") / "photo_patches.csv").open(encoding="ascii") as file:
        rows = np.loadtxt(file, dtype=np.int64, delimiter=",")
    return rows[:, 3:].reshape(-1, 8, 8), rows[:, 0]


def _check_counts(n_samples: Any, outliers: Any, digits: int, patches: int) -> None:
    for name, value in {"n_samples": n_samples, "outliers": outliers}.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            msg = f"{name} must be an integer, got {value!r}"
            raise ValueError(msg)
    if not 0 <= outliers <= patches:
        msg = f"outliers must lie in 0..{patches}, the number of photo patches, got {outliers}"
        raise ValueError(msg)
    if not outliers < n_samples <= outliers + digits:
        msg = (
            f"n_samples must lie in {outliers + 1}..{outliers + digits} ({outliers} outliers and 1 "
            f"to {digits} digits), got {n_samples}"
        )
        raise ValueError(msg)
