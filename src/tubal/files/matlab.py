"""MATLAB files of version 5 (also called 6 and 7), in Python.

The reader of SciPy for them is compiled, and a damaged file can make it crash. Here every size is
checked before it is used. Arrays of numbers, of truth values and of characters are found; cells,
structs and objects are passed over.

Reference: MathWorks, MAT-File Format, chapter 1.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tubal.files.loaded import Stored

HEADER = 128
MATRIX, COMPRESSED = 14, 15
TYPES = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
"""How numbers are stored; often in fewer bytes than their class has."""
CLASSES = {
    4: "U1", 6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8",
    15: "u8",
}  # fmt: skip
CHARACTERS = 4
COMPLEX, LOGICAL = 8, 2
BEGINNING = 4096
"""Bytes of a variable in which its shape and name must be; names have at most 63."""


def version(path: Path) -> tuple[int, str]:
    """Return the version of a MATLAB file (4, 5 or 7.3 as 7) and its byte order."""
    with path.open("rb") as file:
        begin = file.read(HEADER)
    if len(begin) < 4:
        msg = "it is too short"
        raise ValueError(msg)
    if 0 in begin[:4]:  # the text of later versions has no zeros there
        return 4, ""
    order = {b"IM": "<", b"MI": ">"}.get(begin[126:128])
    major = None if order is None else struct.unpack(f"{order}H", begin[124:126])[0] >> 8
    if order is None or major not in (1, 2):
        msg = "its header is of no known version"
        raise ValueError(msg)
    return {1: 5, 2: 7}[major], order


def variables(path: Path, order: str) -> list[Stored]:
    """Return the arrays of a file of version 5, unread."""
    with path.open("rb") as file:
        elements = list(_elements(file, path.stat().st_size, order))
    return [_stored(path, element) for element in elements if element is not None]


@dataclass(frozen=True)
class _Variable:
    """A variable: what its header says, and where its numbers are."""

    name: str
    shape: tuple[int, ...]
    kind: int
    flags: int
    stored_as: np.dtype[np.generic]
    place: int
    """Of its element in the file."""
    offset: int
    """Of its numbers in the element."""
    size: int
    """Of its numbers, in bytes."""
    compressed: int | None
    """Size of the compressed element, None when it is not compressed."""


def _elements(file: BinaryIO, end: int, order: str) -> Iterator[_Variable | None]:
    """Read the headers of all variables."""
    place = HEADER
    while place + 8 <= end:
        file.seek(place)
        kind, size = struct.unpack(f"{order}II", file.read(8))
        if place + 8 + size > end:
            msg = "it ends within a variable"
            raise ValueError(msg)
        if kind == COMPRESSED:
            begin = zlib.decompressobj().decompress(file.read(min(size, BEGINNING)), BEGINNING)
            yield _variable(begin, order, place + 8, size)
        elif kind == MATRIX:
            begin = struct.pack(f"{order}II", kind, size) + file.read(min(size, BEGINNING))
            yield _variable(begin, order, place, None)
        place += 8 + size


def _variable(begin: bytes, order: str, place: int, compressed: int | None) -> _Variable | None:
    """Read the header of a variable; return None when it is of another kind."""
    kind, _, at, _ = _tag(begin, 0, order)
    if kind != MATRIX:
        msg = "a variable does not begin as one"
        raise ValueError(msg)
    if len(begin) == at:  # an empty place
        return None
    _, _, data, at = _tag(begin, at, order)
    (word,) = struct.unpack_from(f"{order}I", begin, data)
    if word & 0xFF not in CLASSES:
        return None
    _, size, data, at = _tag(begin, at, order)
    shape = struct.unpack_from(f"{order}{size // 4}i", begin, data)
    if len(shape) < 2 or len(shape) > 32 or min(shape) < 0:
        msg = f"a variable has the shape {shape[:32]}"
        raise ValueError(msg)
    _, size, data, at = _tag(begin, at, order)
    name = begin[data : data + size].decode("ascii", "backslashreplace")
    stored, size, data, _ = _tag(begin, at, order)
    numbers = word & 0xFF != CHARACTERS
    if numbers and stored not in TYPES:
        msg = f"'{name}' is stored as type {stored}, which is none of numbers"
        raise ValueError(msg)
    dtype = np.dtype(order + TYPES.get(stored, "u1"))
    if numbers and size != math.prod(shape) * dtype.itemsize:
        msg = f"'{name}' should have {math.prod(shape)} numbers of {dtype}, it has {size} bytes"
        raise ValueError(msg)
    return _Variable(
        name, shape, word & 0xFF, word >> 8 & 0xFF, dtype, place, data, size, compressed
    )


def _tag(content: bytes, at: int, order: str) -> tuple[int, int, int, int]:
    """Return type and size of an element, where its data begins, and where the next one does."""
    (word,) = struct.unpack_from(f"{order}I", content, at)
    if word >> 16:  # a small one: type and size in one word, data in the next
        return word & 0xFFFF, word >> 16, at + 4, at + 8
    (size,) = struct.unpack_from(f"{order}I", content, at + 4)
    return word, size, at + 8, at + 8 + size + -size % 8


def _stored(path: Path, variable: _Variable) -> Stored:
    logical = bool(variable.flags & LOGICAL)
    dtype = np.dtype("?" if logical else CLASSES[variable.kind])

    def read() -> np.ndarray:
        if variable.flags & COMPLEX:
            msg = f"'{variable.name}' is complex; samples are real numbers"
            raise ValueError(msg)
        with path.open("rb") as file:
            content = _numbers(file, variable)
        flat = np.frombuffer(content, variable.stored_as)
        return flat.astype(dtype).reshape(variable.shape, order="F")

    return Stored(variable.name, variable.shape, dtype, read)


def _numbers(file: BinaryIO, variable: _Variable) -> bytes:
    """Return the bytes of the numbers of a variable."""
    file.seek(variable.place)
    end = variable.offset + variable.size
    if variable.compressed is None:
        content = file.read(end)
    else:
        stream = zlib.decompressobj()
        content = stream.decompress(file.read(variable.compressed), end)
        stream.decompress(stream.unconsumed_tail, 64)  # padding; then the checksum is compared
        if not stream.eof:
            content = b""
    if len(content) < end:
        msg = f"'{variable.name}' does not end where it should"
        raise ValueError(msg)
    return content[variable.offset : end]
