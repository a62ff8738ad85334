"""Folders of pictures."""

from __future__ import annotations

import os
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.files.loaded import Loaded, Refused, by, check_memory

SUFFIXES = frozenset(
    ".bmp .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()  # pgm: faces of old
)
FORMATS = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Of these suffixes. Pillow goes by content, and would hand PostScript to Ghostscript."""
GREY_MODES = ("1", "L", "LA", "La", "I", "F")  # and I;16 in its variants
# What Pillow raises for files that are cut short, damaged or no pictures at all.
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, TypeError)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture, upright, at its own size: (height, width) or (height, width, 3) in [0, 1]."""

    values: np.ndarray
    transparent: bool
    pages: int

    @property
    def is_grey(self) -> bool:
        """Whether it has no colours."""
        return self.values.ndim == 2


def find(folder: Path) -> tuple[list[Path], int, list[tuple[str, str]]]:
    """Return the pictures below a folder, sorted, how many other files, and what is closed to us.

    Hidden files and folders are passed over, links to folders are not followed.
    """
    files: list[Path] = []
    closed: list[OSError] = []
    for top, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(top, name) for name in names if not name.startswith(".")]
    files = sorted(path for path in files if path.is_file())
    pictures = [path for path in files if path.suffix.lower() in SUFFIXES]
    unread = [
        (Path(error.filename).relative_to(folder).as_posix() + "/", error.strerror or "unreadable")
        for error in closed
    ]
    return pictures, len(files) - len(pictures), sorted(unread)


def read_folder(
    folder: Path,
    *,
    size: tuple[int, int] | None = None,
    grey: bool | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Read every picture below a folder.

    Parameters
    ----------
    folder : Path
    size : (height, width) or None
        Resize all pictures to it; without it they must have one size.
    grey : bool or None
        True takes colours away, False makes all pictures colour; None keeps colours if there are
        any.
    max_memory : int or None
        Bytes that the pictures may need; None is what there is.
    progress : callable or None
        Called with how many files are read and how many there are.
    """
    optional("PIL.Image", "reading pictures", "cli")
    paths, others, closed = find(folder)
    if not paths:
        kinds = ", ".join(sorted(suffix[1:] for suffix in SUFFIXES))
        unread = f"; {closed[0][0]} cannot be read: {closed[0][1]}" if closed else ""
        msg = f"{folder} holds no pictures ({kinds}){unread}"
        raise ValueError(msg)
    read, names, skipped = [], [], closed
    for done, path in enumerate(paths, 1):
        name = path.relative_to(folder).as_posix()
        try:
            read.append(_read(path, size, grey))
            names.append(name)
            if len(read) == 1:  # the others are as large; all of them are kept twice for a moment
                check_memory(folder, 2 * len(paths) * read[0].values.nbytes, max_memory)
        except Refused:
            raise
        except UNREADABLE as error:
            skipped.append((name, _reason(error)))
        if progress is not None:
            progress(done, len(paths))
    if not read:
        msg = f"none of the {len(paths)} pictures in {folder} can be read: {skipped[0][1]}"
        raise ValueError(msg)
    _check_one_size(read, size)
    notes = _notes(read, others, grey)
    return Loaded(_stack(read, grey), tuple(names), True, notes, tuple(skipped))


def _reason(error: BaseException) -> str:
    text = str(error).splitlines()
    if type(error).__name__ == "UnidentifiedImageError":
        return "not a picture"
    return text[0] if text else type(error).__name__


def _read(path: Path, size: tuple[int, int] | None, grey: bool | None) -> Picture:
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oddities in metadata are no business of ours
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(path, formats=FORMATS) as image:
                pages = int(getattr(image, "n_frames", 1))
                image.seek(0)
                upright = ImageOps.exif_transpose(image)
                upright.load()
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            msg = f"too large: {error}"
            raise ValueError(msg) from None
    transparent = upright.mode in ("LA", "La", "PA", "RGBA", "RGBa") or (
        "transparency" in upright.info
    )
    return Picture(_pixels(upright, size, grey), transparent, pages)


def _pixels(image: Any, size: tuple[int, int] | None, grey: bool | None) -> np.ndarray:
    """Return pixels in [0, 1] at the wanted size; float pictures keep their values."""
    from PIL import Image

    deep = image.mode == "F" or image.mode.startswith("I")
    if deep:  # 16 and 32 bits, which Pillow resizes only as floats
        values = np.asarray(image, dtype=np.float32)
        image = Image.fromarray(values if image.mode == "F" else values / 65535)
    elif grey or image.mode in GREY_MODES:
        image = image.convert("L")
    else:
        image = image.convert("RGB")
    if size is not None and image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.asarray(image, dtype=float) / (1 if deep else 255)


def _check_one_size(read: list[Picture], size: tuple[int, int] | None) -> None:
    sizes = Counter(picture.values.shape[:2] for picture in read)
    if size is None and len(sizes) > 1:
        (common, count), *_ = sizes.most_common()
        msg = (
            f"the pictures have {len(sizes)} different sizes (most often {by(common)}, {count} of "
            f"{len(read)}): resize them with --size, for example --size {common[0]}x{common[1]}"
        )
        raise ValueError(msg)


def _stack(read: list[Picture], grey: bool | None) -> np.ndarray:
    if all(picture.is_grey for picture in read) and grey is not False:
        return np.stack([picture.values for picture in read])
    return np.stack(
        [
            np.repeat(picture.values[..., None], 3, axis=-1) if picture.is_grey else picture.values
            for picture in read
        ]
    )


def _notes(read: list[Picture], others: int, grey: bool | None) -> tuple[str, ...]:
    notes = []
    colour = [picture for picture in read if not picture.is_grey]
    if colour and len(colour) < len(read):
        notes.append(
            f"{len(colour)} of {len(read)} pictures have colours, so all are read in colour; "
            "--grey takes the colours away"
        )
    elif colour and grey is None and all(_colourless(picture.values) for picture in colour):
        notes.append("the pictures are stored in colour but are grey; --grey is faster")
    for what, count in (
        ("transparency is ignored in", sum(picture.transparent for picture in read)),
        ("only the first page is read of", sum(picture.pages > 1 for picture in read)),
    ):
        if count:
            notes.append(f"{what} {count} {'picture' if count == 1 else 'pictures'}")
    if others:
        notes.append(f"{others} {'file' if others == 1 else 'files'} of other kinds left out")
    return tuple(notes)


def _colourless(values: np.ndarray) -> bool:
    return bool((values[..., :1] == values[..., 1:]).all())
