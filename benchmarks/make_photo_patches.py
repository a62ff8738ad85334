"""Make `src/tubal/datasets/photo_patches.csv`, the outliers of `tubal.datasets.load_demo`.

Windows of 64 x 64 pixels of scikit-learn's two sample photographs, at random places that differ by
half a window or more, in grey and averaged to 8 x 8. Windows with little contrast (sky, background)
are left out. All sums are of integers, so the same pixels give the same file. Needs Pillow.

Run: python benchmarks/make_photo_patches.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "tubal" / "datasets" / "photo_patches.csv"
PHOTOS = ("china.jpg", "flower.jpg")
PER_PHOTO = 50
WINDOW, SIDE = 64, 8
LEAST_CONTRAST = 20  # standard deviation of a patch, in grey levels of 0..255
GREY = np.array([299, 587, 114])  # ITU-R 601, in thousandths
HEADER = """Grey 8 x 8 patches of two photographs; authors and licence in photo_patches.txt
photo (0: china.jpg, 1: flower.jpg), row and column of the window, 64 grey levels 0..255 by rows"""


def patch(photo: np.ndarray, row: int, column: int) -> np.ndarray:
    """Average one window of an RGB photo to SIDE x SIDE grey levels, rounded."""
    window = photo[row : row + WINDOW, column : column + WINDOW].astype(np.int64) @ GREY
    cell = WINDOW // SIDE
    sums = window.reshape(SIDE, cell, SIDE, cell).sum(axis=(1, 3))
    total = 1000 * cell**2
    return (sums + total // 2) // total


def patches(photo: np.ndarray, rng: np.random.Generator) -> list[tuple[int, int, np.ndarray]]:
    """Draw places until enough windows with contrast are found, none near another."""
    found: list[tuple[int, int, np.ndarray]] = []
    while len(found) < PER_PHOTO:
        row, column = (int(rng.integers(n - WINDOW + 1)) for n in photo.shape[:2])
        if any(max(abs(row - r), abs(column - c)) < WINDOW // 2 for r, c, _ in found):
            continue
        values = patch(photo, row, column)
        if values.std() >= LEAST_CONTRAST:
            found.append((row, column, values))
    return found


def table() -> np.ndarray:
    """Return the rows of the file."""
    from sklearn.datasets import load_sample_image  # needs Pillow

    rng = np.random.default_rng(0)
    return np.array(
        [
            [index, row, column, *values.ravel()]
            for index, name in enumerate(PHOTOS)
            for row, column, values in patches(load_sample_image(name), rng)
        ]
    )


if __name__ == "__main__":
    np.savetxt(TARGET, table(), fmt="%d", delimiter=",", header=HEADER)
