"""Tables: a row a sample. CSV needs no package, Parquet needs pyarrow."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from tubal._optional import optional
from tubal.files.layout import LABELS, NAMES, numbered
from tubal.files.loaded import Loaded, check_memory, reading

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-"))
INDEX = NAMES | {"", "index", "sample", "__index_level_0__"}
TABLE_LABELS = LABELS - {"y", "gt"}  # a column of that name may well be a measurement


def read_csv(path: Path, max_memory: int | None = None) -> Loaded:
    """Read text with a row for each sample; header and names are found by what is no number."""
    check_memory(path, path.stat().st_size, max_memory)
    rows = _rows(path)
    if not rows:
        msg = f"{path} has no rows"
        raise ValueError(msg)
    if len(rows) == 1 and all(_number(cell) is None for cell in rows[0]):
        msg = f"{path} has a header and no rows below it"
        raise ValueError(msg)
    header = _header(rows)
    if header is not None:
        rows = rows[1:]
    width = len(header if header is not None else rows[0]) if rows or header else 0
    first = 1 if header is None else 2
    for number, row in enumerate(rows, first):
        if len(row) != width:
            msg = f"{path}, row {number}: {len(row)} fields, the first row has {width}"
            raise ValueError(msg)
    columns = header if header is not None else [f"column {i + 1}" for i in range(width)]
    named = bool(rows) and (
        (header is not None and header[0].lower() in INDEX)
        or any(_number(row[0]) is None for row in rows)
    )
    labels = [i for i in range(int(named), width) if columns[i].lower() in TABLE_LABELS]
    kept = [i for i in range(int(named), width) if i not in labels]
    X = np.empty((len(rows), len(kept)))
    for i, row in enumerate(rows):
        cells = [row[column] for column in kept]
        try:
            X[i] = cells  # NumPy reads numbers faster than we do
        except ValueError:
            X[i] = _numbers(cells, [columns[column] for column in kept], f"{path}, row {i + first}")
    names = tuple(row[0] for row in rows) if named else numbered(len(rows))
    notes = _notes(header is not None, columns[0] if named else None, [columns[i] for i in labels])
    return _checked(path, X, names, notes)


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            sample = "".join(islice(file, 5))
            file.seek(0)
            rows = csv.reader(file, delimiter=_delimiter(sample))
            return [[cell.strip() for cell in row] for row in rows if any(row)]
        except (UnicodeDecodeError, csv.Error) as error:
            msg = f"{path} is not a text table in UTF-8: {error}"
            raise ValueError(msg) from None


def _delimiter(sample: str) -> str:
    """Return what separates fields: the candidate that occurs most, spaces when none does."""
    found = max(",;\t", key=sample.count)
    return found if sample.count(found) else " "


def _header(rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the first row if it holds a word where the second one holds a number."""
    first = rows[0]
    if len(rows) == 1:
        return None
    words = [
        _number(a) is None and _number(b) is not None for a, b in zip(first, rows[1], strict=False)
    ]
    return list(first) if any(words) else None


def _number(text: str) -> float | None:
    """Return a field as a number, NaN when it is missing, None when it is something else."""
    try:
        return float(text)
    except ValueError:
        return math.nan if text.lower() in MISSING else None


def _numbers(cells: Sequence[str], columns: Sequence[str], where: str) -> list[float]:
    """Return the fields of a row as numbers; the first one that is none is told."""
    numbers = []
    for cell, column in zip(cells, columns, strict=True):
        number = _number(cell)
        if number is None:
            msg = (
                f"{where}, {column!r}: {cell!r} is no number; an empty field, NA or NaN is missing"
            )
            raise ValueError(msg)
        numbers.append(number)
    return numbers


def read_parquet(path: Path, max_memory: int | None = None) -> Loaded:
    """Read a Parquet table; null is missing, a column of text holds names."""
    parquet = optional("pyarrow.parquet", "a Parquet file", "files")
    import pyarrow as pa

    with reading(path, "a Parquet file"), parquet.ParquetFile(path) as file:
        rows, columns_ = file.metadata.num_rows, file.metadata.num_columns
        check_memory(path, 16 * rows * columns_, max_memory)
        table = file.read()
    names, named, labels, columns = None, None, [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if (text or name.lower() in INDEX) and names is None:
            names, named = tuple(map(str, column.to_pylist())), name
        elif name.lower() in TABLE_LABELS:
            labels.append(name)
        elif number:
            columns.append(column.cast(pa.float64()).to_numpy())
        else:
            msg = f"{path}, column {name!r}: {column.type} is no number"
            raise ValueError(msg)
    if not columns:
        msg = f"{path} has no column of numbers"
        raise ValueError(msg)
    X = np.column_stack(columns)
    return _checked(path, X, names or numbered(len(X)), _notes(False, named, labels))


def _notes(header: bool, named: str | None, labels: Sequence[str]) -> tuple[str, ...]:
    notes = ["the first row is a header"] if header else []
    if named is not None:
        notes.append(f"{named or 'the first column'!r} holds the names of the samples")
    notes += [f"column {name!r} is not used" for name in labels]
    return tuple(notes)


def _checked(path: Path, X: np.ndarray, names: tuple[str, ...], notes: tuple[str, ...]) -> Loaded:
    if X.size == 0:
        msg = f"{path} has no numbers: {X.shape[0]} rows, {X.shape[1]} columns"
        raise ValueError(msg)
    return Loaded(X, names, notes=notes)
