"""Downloads that can be interrupted, and that end with the right file or with none.

A file arrives as `name.part` and gets its name only when it is complete and its hash is right. What
is known about the server's copy (ETag or date) lies beside it in `name.part.json`, so that a later
run goes on where this one stopped, and starts again when the copy has changed meanwhile.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, BinaryIO

from tubal import __version__
from tubal._atomic import replacing

Progress = Callable[[int, int | None], None]

TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 5  # in a row that bring less than STRIDE
STRIDE = 1 << 20
PAUSE = 1.0  # before the second attempt; it doubles each time
LONGEST_PAUSE = 60.0
CHUNK = 1 << 16
WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(OSError):
    """A server does not give the file: it is out of reach, refuses, or stops too early."""


class _Interrupted(Exception):
    """One attempt failed as the next one may not; `pause` is what the server asks for."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


def download(
    url: str, path: Path, *, digest: str | None = None, progress: Progress | None = None
) -> str:
    """Download a file, or check the one that is there.

    Parameters
    ----------
    url : str
        http or https.
    path : Path
        Where the file goes. An existing file is checked against `digest` and never changed.
    digest : str, optional
        The expected hash, such as "sha256:..." or "md5:...".
    progress : callable, optional
        Called as `progress(done, total)` in bytes; total is None when the server does not say.

    Returns
    -------
    str
        SHA-256 of the file, in hexadecimal.

    Raises
    ------
    DownloadError
        The server does not give the file. What came is kept in `name.part` for the next run.
    ValueError
        The hash is another one. Only `name.part` is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(path.name + ".lock")):  # a second process waits, then finds the file
        if not path.exists():
            _receive(_Transfer(url, path, digest, progress or (lambda done, total: None)))
        sha256, actual = file_hashes(path, digest)
        if digest is not None and actual != digest.lower():
            raise _wrong_hash(path, digest, actual, "The file was left as it is.")
    return sha256


@dataclass(frozen=True)
class _Transfer:
    """What is downloaded from where to where."""

    url: str
    path: Path
    digest: str | None
    progress: Progress

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + ".part")

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".part.json")

    def forget(self) -> None:
        """Remove what came so far."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def resume_point(self) -> _Kept:
        """Return what can be kept of an earlier attempt."""
        note = read_json(self.note)
        if not self.part.exists() or note.get("url") != self.url:
            return _Kept()
        kept = _Kept(self.part.stat().st_size, note.get("total"), note.get("validator"))
        if kept.validator is None and self.digest is None and kept.size != kept.total:
            return _Kept()  # no way to find out that two versions were put together
        return kept


@dataclass(frozen=True)
class _Kept:
    """How much is there, of how much, and what tells the server's copy from a later one."""

    size: int = 0
    total: int | None = None
    validator: str | None = None


def _receive(transfer: _Transfer) -> None:
    """Download with retries, check the hash and give the file its name."""
    resumed = _all_attempts(transfer)
    if transfer.digest is not None:
        _, actual = file_hashes(transfer.part, transfer.digest)
        if actual != transfer.digest.lower() and resumed:
            # Parts of two versions may have been put together: once more from the beginning.
            transfer.forget()
            _all_attempts(transfer)
            _, actual = file_hashes(transfer.part, transfer.digest)
        if actual != transfer.digest.lower():
            transfer.forget()
            raise _wrong_hash(
                transfer.path, transfer.digest, actual, f"It came from {transfer.url}."
            )
    os.replace(transfer.part, transfer.path)
    transfer.note.unlink(missing_ok=True)


def _wrong_hash(path: Path, expected: str, actual: str, remark: str) -> ValueError:
    msg = f"{path} has the wrong hash: expected {expected}, got {actual}. {remark}"
    return ValueError(msg)


def _all_attempts(transfer: _Transfer) -> bool:
    """Try until the file is complete; return whether it was put together from several attempts."""
    best = failures = 0
    while True:
        try:
            return _attempt(transfer)
        except _Interrupted as error:
            kept = transfer.part.stat().st_size if transfer.part.exists() else 0
            failures = 0 if kept >= best + STRIDE else failures + 1
            best = max(best, kept)
            if failures >= ATTEMPTS:
                msg = f"{transfer.url}: {error}; gave up after {failures} attempts"
                raise DownloadError(msg) from error
            time.sleep(max(min(PAUSE * 2**failures / 2, LONGEST_PAUSE), error.pause))


def _attempt(transfer: _Transfer) -> bool:
    """Ask for what is missing and write it; return whether an earlier part was kept."""
    kept = transfer.resume_point()
    if kept.size and kept.size == kept.total:
        return True  # complete but for its name
    with _open(transfer, kept) as response:
        if response.status == http.client.PARTIAL_CONTENT:
            done = kept.size
            total = _check_range(transfer, response.headers, kept)
        else:  # the first attempt, another copy than before, or a server that knows no ranges
            done, total = 0, _length(response.headers)
            transfer.forget()
            validator = _validator(response.headers)
            write_json(transfer.note, {"url": transfer.url, "total": total, "validator": validator})
        appended = done > 0
        with transfer.part.open("ab") as file:
            for chunk in _chunks(response):
                file.write(chunk)
                done += len(chunk)
                transfer.progress(done, total)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and done != total:
        msg = f"the connection ended after {done} of {total} bytes"
        raise _Interrupted(msg)
    return appended


def _open(transfer: _Transfer, kept: _Kept) -> http.client.HTTPResponse:
    headers = {"User-Agent": f"tubal/{__version__}", "Accept-Encoding": "identity"}
    if kept.size:
        headers["Range"] = f"bytes={kept.size}-"
        if kept.validator is not None:
            headers["If-Range"] = kept.validator  # the whole file if it is another one now
    try:
        return _opener().open(urllib.request.Request(transfer.url, headers=headers), None, TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and kept.size:
                transfer.forget()  # the server's copy has become shorter
                raise _Interrupted(str(error)) from error
            if error.code in WORTH_ANOTHER_TRY:
                raise _Interrupted(str(error), _retry_after(error.headers)) from error
            msg = f"{transfer.url}: the server answers {error.code} {error.reason}"
            raise DownloadError(msg) from error
    except (OSError, http.client.HTTPException) as error:  # no connection, timeout, no HTTP
        reason = getattr(error, "reason", error)
        if isinstance(reason, (str, ssl.SSLCertVerificationError)):  # not a matter of patience
            msg = f"{transfer.url}: {reason}"
            raise DownloadError(msg) from error
        msg = f"no answer ({reason})"
        raise _Interrupted(msg) from error


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that knows only http and https, so that no redirect leads to a file."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the body. A connection that breaks is told apart from a disk that is full."""
    while True:
        try:
            chunk = response.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            msg = f"the connection broke ({error})"
            raise _Interrupted(msg) from error
        if not chunk:
            return
        yield chunk


def _check_range(transfer: _Transfer, headers: Message, kept: _Kept) -> int | None:
    """Return the total length if the answer continues what is there."""
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", headers.get("Content-Range", "").strip())
    # A server may overlook If-Range.
    changed = kept.validator is not None and _validator(headers) not in (None, kept.validator)
    if match is None or int(match[1]) != kept.size or changed:
        transfer.forget()
        msg = "the server's copy has changed" if changed else "the server sent another range"
        raise _Interrupted(msg)
    return int(match[2]) + 1 if match[3] == "*" else int(match[3])


def _length(headers: Message) -> int | None:
    value = headers.get("Content-Length", "")
    return int(value) if value.isdigit() else None


def _validator(headers: Message) -> str | None:
    """Return what tells this copy from a later one. A weak ETag may not be used for ranges."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _retry_after(headers: Message) -> float:
    value = headers.get("Retry-After", "")
    return min(float(value), LONGEST_PAUSE) if value.isdigit() else 0.0


# ---- files --------------------------------------------------------------------------------------


def file_hashes(path: Path, digest: str | None = None) -> tuple[str, str]:
    """Return the SHA-256 of a file, and its hash of the same kind as `digest` with that prefix.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "empty"
    ...     path.touch()
    ...     file_hashes(path, "md5:?")[1]
    'md5:d41d8cd98f00b204e9800998ecf8427e'
    """
    kind = "sha256" if digest is None else digest.partition(":")[0]
    sha256, other = hashlib.sha256(), hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sha256.update(chunk)
            other.update(chunk)
    return sha256.hexdigest(), f"{kind}:{other.hexdigest()}"


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name when it is complete, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        yield file


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a small record, completely or not at all."""
    with atomic(path) as file:
        file.write(json.dumps(content, indent=2).encode("ascii") + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a small record; what is missing or damaged counts as empty."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


if sys.platform == "win32":
    import msvcrt

    def _acquire(file: BinaryIO) -> None:
        while True:
            try:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # tries for ten seconds
            except OSError as error:
                if error.errno not in (errno.EDEADLK, errno.EACCES):
                    raise
            else:
                return

    def _release(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _release(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one at a time in, of all threads and processes. The end of a process opens its locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        _acquire(file)
        try:
            yield
        finally:
            _release(file)
