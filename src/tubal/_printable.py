"""Names of strangers, made fit for terminals, tables and pages."""

from __future__ import annotations

import unicodedata

MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of writing, and can make a name look like another one."""


def printable(text: str) -> str:
    r"""Return text with escapes for what cannot be printed, or should not be.

    Bytes of file names that are no UTF-8 become ``\xe9``; control characters, ends of lines and
    marks of direction become ``\n``, ``\x1b``, ``\u202e`` as in Python.

    >>> print(printable("caf\udce9 \x1b[2J"))
    caf\xe9 \x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte, by surrogateescape
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in MARKS or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape").decode()
    return character
