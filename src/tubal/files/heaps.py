"""Checks of HDF5 files that HDF5 does not make.

Text and references of an HDF5 file lie in collections of objects, one after the other. Where a
damaged file gives an object no length, the library of HDF5 (2.0.0 at least) reads it for ever;
where a reference has a length of gigabytes, it takes them.

Reference: HDF5 File Format Specification, version 3, III.E, "Disk Format: Level 1E - Global Heap".
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

SIGNATURE = b"GCOL\x01\x00\x00\x00"
HEADER = 16
"""Bytes of the header of a collection, and of that of an object in it."""


def check_heaps(path: Path) -> None:
    """Refuse a file with a collection that has no end; other damage is left to HDF5."""
    if path.stat().st_size < HEADER:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = content.find(SIGNATURE)
        while place >= 0:
            _check_collection(content, place)
            place = content.find(SIGNATURE, place + 1)


def _check_collection(content: mmap.mmap, start: int) -> None:
    end = start + _number(content, start + 8, 8)
    place = start + HEADER
    while place + HEADER <= min(end, len(content)):
        index, size = _number(content, place, 2), _number(content, place + 8, 8)
        if index == 0 and size < HEADER:
            msg = "a collection of objects has no end"
            raise ValueError(msg)
        # The length of free space, which has no index, includes its header.
        place += HEADER + size + -size % 8 if index else size


def _number(content: mmap.mmap, place: int, length: int) -> int:
    return int.from_bytes(content[place : place + length], "little")


REFERENCE = 16
"""Bytes of a reference to an object: its length, the place of its collection, its number."""


def check_references(path: Path, dataset: Any) -> None:
    """Refuse text and other entries of no fixed length that are longer than their whole file.

    HDF5 would take memory for them first. References that are compressed are not looked at.
    """
    if dataset.dtype.kind != "O" or dataset.id.get_create_plist().get_nfilters():
        return
    size = path.stat().st_size
    with path.open("rb") as file:
        for place, length in _pieces(dataset):
            file.seek(place)
            references = np.frombuffer(file.read(length)[: length - length % REFERENCE], "<u4")
            if (references[::4] > size).any():
                msg = f"'{dataset.name}' has entries longer than the file"
                raise ValueError(msg)


def _pieces(dataset: Any) -> list[tuple[int, int]]:
    """Return where in its file the entries of a dataset are: places and lengths."""
    if dataset.chunks is None:
        place = dataset.id.get_offset()
        return [] if place is None else [(place, dataset.size * REFERENCE)]
    if dataset.file.userblock_size:  # versions of HDF5 count from different places then
        return []
    chunks = map(dataset.id.get_chunk_info, range(dataset.id.get_num_chunks()))
    return [(chunk.byte_offset, chunk.size) for chunk in chunks]
