"""Samples drawn small: arrays -> tiles of 8-bit values -> sheets of tiles as PNG or WebP.

A tile is a small array, not a picture yet: the page draws it as a picture, a heat map or lines, in
the colours of its theme. Transparent values are missing entries.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tubal._optional import optional

SHOW = ("auto", "picture", "heat", "lines")

LONGEST = {"picture": 96, "heat": 96, "lines": 160}  # values along the longer side of a tile
LOSSLESS = 12e6  # values in all tiles; compressed and as text this stays below 20 MB
LOSSY = 40e6
SMALLEST = 8
MANY = 5e6  # values
PART = 512  # samples at a time
SHEET = 16  # tiles along the side of a sheet


@dataclass(frozen=True, eq=False)
class Tiles:
    """Samples as small arrays of 8-bit values.

    Attributes
    ----------
    kind : {"picture", "heat", "lines"}
    values : uint8 array of shape (n, height, width, channels)
        Channels are 1 or 3.
    observed : bool array of shape (n, height, width) or None
        False where more than half of what a value stands for was missing.
    scale : Scale
    """

    kind: str
    values: np.ndarray
    observed: np.ndarray | None
    scale: Scale

    @property
    def lossy(self) -> bool:
        """Whether sheets may lose a little: pictures that would be too large otherwise."""
        return self.kind == "picture" and self.values.size > LOSSLESS / 2

    def sheets(self) -> list[str]:
        """Return the tiles as PNG or WebP, 256 on a sheet, in base64."""
        return [self._encode(sheet) for sheet in self._sheets()]

    @property
    def mime(self) -> str:
        """Type of the sheets."""
        return "image/webp" if self.lossy else "image/png"

    def _sheets(self) -> Iterator[np.ndarray]:
        n, height, width, _ = self.values.shape
        layers = self.values
        if self.observed is not None:
            alpha = np.where(self.observed, 255, 0).astype(np.uint8)[..., None]
            layers = np.concatenate([np.where(alpha > 0, layers, 0), alpha], axis=-1)
        for start in range(0, n, SHEET**2):
            part = layers[start : start + SHEET**2]
            rows = -(-len(part) // SHEET)
            grid = np.zeros((rows * SHEET, height, width, layers.shape[-1]), dtype=np.uint8)
            grid[: len(part)] = part
            grid = grid.reshape(rows, SHEET, height, width, -1).swapaxes(1, 2)
            yield grid.reshape(rows * height, SHEET * width, -1)

    def _encode(self, sheet: np.ndarray) -> str:
        image = pillow().fromarray(sheet[..., 0] if sheet.shape[-1] == 1 else sheet)
        file = io.BytesIO()
        if self.lossy:
            image.save(file, "WEBP", quality=88, method=3)
        else:
            image.save(file, "PNG", compress_level=7)
        return base64.b64encode(file.getvalue()).decode("ascii")


@dataclass(frozen=True)
class Scale:
    """What 0 and 255 stand for: numbers, or one number for each column or channel.

    Attributes
    ----------
    low, high : arrays that broadcast against samples
    diverging : bool
        Whether the middle stands for zero.
    """

    low: np.ndarray
    high: np.ndarray
    diverging: bool

    @classmethod
    def of(cls, values: np.ndarray, kind: str) -> Scale:
        """Find the range of samples (n, height, width), NaN left out.

        Of very many values, percentiles are those of samples at equal distances.
        """
        least, most = (float(f.reduce(values, axis=None)) for f in (np.fmin, np.fmax))
        values = values[:: max(1, int(values.size / MANY))]
        low, high = (float(x) for x in np.percentile(values[np.isfinite(values)], [0.25, 99.75]))
        if kind == "picture":
            return cls._flat(*_usual_range(least, most, low, high), False)
        if kind == "lines" and values.ndim == 3 and _uneven(values):
            return cls._by_column(values)
        if kind == "heat" and low < 0 < high:
            return cls._flat(-max(-low, high), max(-low, high), True)
        return cls._flat(low, high, False)

    @classmethod
    def _flat(cls, low: float, high: float, diverging: bool) -> Scale:
        high = high if high > low else low + 1
        return cls(np.array(low), np.array(high), diverging)

    @classmethod
    def _by_column(cls, values: np.ndarray) -> Scale:
        low, high = _percentiles(values, [0.25, 99.75], axis=(0,))
        if values.shape[1] > 1:  # channels: one range along the whole of each
            low, high = (x.mean(axis=1, keepdims=True) for x in (low, high))
        return cls(low, np.where(high > low, high, low + 1), False)

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Return 8-bit values; NaN becomes 0."""
        low, high = (x[..., None] if values.ndim == 4 and x.ndim else x for x in self._ends)
        share = (np.nan_to_num(values) - low) / (high - low)
        return np.round(255 * np.clip(share, 0, 1)).astype(np.uint8)

    @property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.low, self.high

    @property
    def by_column(self) -> bool:
        """Whether columns or channels have ranges of their own."""
        return self.low.ndim > 0


def arrange(values: np.ndarray, show: str = "auto") -> tuple[np.ndarray, str]:
    """Return samples as height x width (x 3), and how they are drawn.

    A table becomes lines. Samples of two axes become pictures when no value is negative and both
    sides have 8 or more values, lines when there are up to 12 rows at least three times as long as
    their number, else heat maps. A third axis of size 3 is colour; others, and further axes, are
    averaged.

    Parameters
    ----------
    values : array of shape (n, ...)
        NaN where missing.
    show : {"auto", "picture", "heat", "lines"}
    """
    if values.ndim == 2:
        return values[:, None, :], "lines" if show == "auto" else show
    colour = values.ndim == 4 and values.shape[-1] == 3 and show in ("auto", "picture")
    if colour:
        return values, "picture"
    if values.ndim > 3:
        values = _mean(values.reshape(*values.shape[:3], -1), axis=3)
    _, height, width = values.shape
    if show != "auto":
        return values, show
    if height <= 12 and width >= 3 * height:
        return values, "lines"
    dark = np.nanmin(values) >= 0 and min(height, width) >= 8
    return values, "picture" if dark else "heat"


def draw(values: np.ndarray, kind: str, *, scale: Scale | None = None, sheets: int = 2) -> Tiles:
    """Make tiles from arranged samples.

    Parameters
    ----------
    values : array of shape (n, height, width) or (n, height, width, 3)
        NaN where missing.
    kind : {"picture", "heat", "lines"}
    scale : Scale or None
        Range of values; found from the samples by default.
    sheets : int
        How many sets of tiles share the page: the more, the smaller they are.
    """
    scale = Scale.of(values, kind) if scale is None else scale
    side = _side(values, kind, sheets)
    parts = [
        _small(np.asarray(values[start : start + PART], dtype=float), kind, scale, side)
        for start in range(0, len(values), PART)
    ]
    tiles, seen = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
    tiles = tiles if tiles.ndim == 4 else tiles[..., None]
    return Tiles(kind, tiles, None if seen.all() else seen, scale)


def _small(values: np.ndarray, kind: str, scale: Scale, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples as 8-bit values, and which of these were observed."""
    rows = kind == "lines"
    holes = np.isnan(values[..., 0] if values.ndim == 4 else values)
    seen = shrink((~holes).astype(float), side, fixed_rows=rows) >= 0.5
    if not scale.by_column:
        return scale.apply(shrink(values, side, fixed_rows=rows)), seen
    # Columns of several scales are scaled before they are put together.
    values = np.where(np.isnan(values), np.nan, scale.apply(values).astype(float))
    return np.round(np.nan_to_num(shrink(values, side, fixed_rows=rows))).astype(np.uint8), seen


def shrink(values: np.ndarray, side: int, *, fixed_rows: bool = False) -> np.ndarray:
    """Average samples down to `side` values along each axis, NaN left out; small ones stay.

    >>> shrink(np.array([[[1.0, 3.0, 5.0, 7.0]]]), 2)
    array([[[2., 6.]]])
    """
    height, width = values.shape[1:3]
    factor = max(1.0, (width if fixed_rows else max(height, width)) / side)
    if factor == 1:
        return values
    rows = height if fixed_rows else max(1, round(height / factor))
    down, across = _boxes(height, rows), _boxes(width, max(1, round(width / factor)))
    weight = _resample(np.isfinite(values).astype(float), down, across)
    total = _resample(np.nan_to_num(values), down, across)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1), np.nan)


def pillow() -> Any:
    """Return `PIL.Image`, or say how to get it."""
    return optional("PIL.Image", "a report", "report")


def read_pictures(images: Any, n: int) -> np.ndarray:
    """Return pictures given by the user as one array (n, height, width) or (n, height, width, 3).

    Pictures of several sizes are put in the middle of the largest size, smaller ones of them
    surrounded by nothing.
    """
    try:
        count = len(images)
    except TypeError:
        msg = f"images must hold one picture for each of the {n} samples, got {images!r}"
        raise ValueError(msg) from None
    if count != n:
        msg = f"images must hold one picture for each of the {n} samples, got {count}"
        raise ValueError(msg)
    if isinstance(images, np.ndarray) and images.dtype.kind in "buif" and 2 < images.ndim < 5:
        return _check_pictures(images)
    pictures = [_check_pictures(_picture(p, i)[None], i)[0] for i, p in enumerate(images)]
    if any(p.ndim == 3 for p in pictures):
        pictures = [p if p.ndim == 3 else np.repeat(p[..., None], 3, axis=2) for p in pictures]
    height, width = (max(p.shape[axis] for p in pictures) for axis in (0, 1))
    if all(p.shape[:2] == (height, width) for p in pictures):
        return np.stack(pictures)
    return np.stack([_centred(p, height, width) for p in pictures])


def _picture(picture: Any, i: int) -> np.ndarray:
    try:
        return np.asarray(picture, dtype=float)
    except (TypeError, ValueError):
        msg = f"images must hold arrays of numbers, got {type(picture).__name__} for sample {i}"
        raise ValueError(msg) from None


def _check_pictures(pictures: np.ndarray, i: int | None = None) -> np.ndarray:
    """Return pictures (m, height, width) or (m, height, width, 3), without a layer of opacity."""
    shape = pictures.shape[1:]
    if len(shape) == 3 and shape[2] in (1, 4):
        pictures = pictures[..., 0] if shape[2] == 1 else pictures[..., :3]
    grey, colour = pictures.ndim == 3, pictures.ndim == 4 and pictures.shape[3] == 3
    if not (grey or colour) or not pictures.size or not np.isfinite(pictures).any():
        msg = (
            "images must be arrays of height x width or height x width x 3 finite numbers, "
            f"got shape {shape}" + ("" if i is None else f" for sample {i}")
        )
        raise ValueError(msg)
    return pictures


def _centred(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    whole = np.full((height, width, *picture.shape[2:]), np.nan)
    top, left = (height - picture.shape[0]) // 2, (width - picture.shape[1]) // 2
    whole[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return whole


def _usual_range(least: float, most: float, low: float, high: float) -> tuple[float, float]:
    """Return the range of pictures: that of a usual format where the values fit one."""
    if least >= 0 and 0.5 < most <= 1:
        return 0.0, 1.0
    if least >= 0 and 128 < most <= 255:
        return 0.0, 255.0
    return low, high


def _uneven(values: np.ndarray) -> bool:
    """Return whether columns (or channels) differ so much that one range would hide most."""
    axis = (0,) if values.shape[1] == 1 else (0, 2)
    low, high = _percentiles(values, [5, 95], axis)
    spread, middle = high - low, (high + low) / 2
    typical = np.median(spread)
    apart = float(np.ptp(middle))
    return bool(typical > 0 and (spread.max() > 10 * typical or apart > 20 * spread.max()))


def _percentiles(values: np.ndarray, levels: list[float], axis: tuple[int, ...]) -> np.ndarray:
    """Return percentiles of what is not NaN, zero where nothing is left."""
    empty = np.isnan(values).all(axis=axis, keepdims=True)
    return np.nanpercentile(np.where(empty, 0.0, values), levels, axis=axis)


def _side(values: np.ndarray, kind: str, sheets: int) -> int:
    """Return how long the longer side of a tile may be."""
    n, height, width = values.shape[:3]
    colour = values.ndim == 4
    budget = (LOSSY if kind == "picture" else LOSSLESS) / (n * sheets * (3 if colour else 1))
    if kind == "picture" and not colour:
        budget = max(LOSSLESS / (n * sheets), min(budget, 40**2))
    if kind == "lines":
        return int(np.clip(budget / height, SMALLEST, LONGEST[kind]))
    ratio = max(height, width) / min(height, width)
    return int(np.clip(np.sqrt(budget * ratio), SMALLEST, LONGEST[kind]))


def _boxes(size: int, count: int) -> np.ndarray:
    """Return the table (count, size) that averages `size` values to `count`."""
    edges = np.linspace(0, size, count + 1)
    left, right = np.maximum(edges[:-1, None], np.arange(size)), edges[1:, None]
    overlap = np.clip(np.minimum(right, np.arange(size) + 1) - left, 0, None)
    return overlap / overlap.sum(axis=1, keepdims=True)


def _resample(values: np.ndarray, down: np.ndarray, across: np.ndarray) -> np.ndarray:
    if values.ndim == 4:
        layers = [_resample(values[..., c], down, across) for c in range(values.shape[3])]
        return np.stack(layers, axis=-1)
    return down @ values @ across.T


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of the values that are not NaN; NaN where all are."""
    seen = np.isfinite(values)
    count = seen.sum(axis=axis)
    total = np.where(seen, values, 0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
