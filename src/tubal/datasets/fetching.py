"""`fetch`: from public sources to a file that `load` reads."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tubal.datasets import convert, store
from tubal.datasets.convert import Arrays
from tubal.datasets.download import DownloadError, Progress, download, locked, read_json, write_json
from tubal.datasets.registry import DATASETS, Dataset, Remote, Source, find_dataset


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    source: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download an image set from a public source and convert it.

    Downloads are kept in `downloads` beside the result; an interrupted one goes on in the next
    call, and a file that was put there by hand is used. A file without a published hash is believed
    the first time, when it turns out to be the images in question; its hash is written down, and
    another file under the same address is refused from then on.

    Parameters
    ----------
    name : str
        See `available`.
    folder : path, optional
        Where the result goes; the cache directory by default, where `load` finds it.
    source : str, optional
        One of the sources that `describe` lists. By default they are tried in order.
    progress : callable, optional
        Called as `progress(done, total)`, in bytes of one file; total may be None.

    Returns
    -------
    Path
        The file. If there was one already, it was checked and nothing was downloaded.

    Raises
    ------
    OSError
        No source gives the files.
    ValueError
        A name is unknown, a hash is wrong, or a file is not what it should be.
    ImportError
        Pictures must be read and Pillow is missing.
    """
    dataset = find_dataset(name)
    home = store.cache_folder() if folder is None else Path(folder)
    path = home / f"{name}.npz"
    sources = _choose(dataset, source)
    with locked(home / f"{name}.lock"):  # a second process waits, then finds the result
        if path.exists():
            store.read(dataset, path)
        else:
            _fetch_first(dataset, sources, path, progress)
    return path


def available() -> list[str]:
    """Return the names of all image sets: those of the paper, and variants.

    >>> available()[:2]
    ['orl', 'orl_olivetti']
    """
    return list(DATASETS)


def describe(name: str, *, folder: str | os.PathLike[str] | None = None) -> str:
    """Return a text about an image set: what it is, its sources, terms, and where it is.

    >>> print(describe("usps").splitlines()[0])
    usps: USPS digits, 16 x 16, 7291 for training and then 2007 for testing
    """
    dataset = find_dataset(name)
    samples, height, width = dataset.shape
    classes = "no labels" if dataset.classes is None else f"{dataset.classes} classes"
    lines = [
        f"{name}: {dataset.title}",
        f"  images    {samples} of {height} x {width}, {classes}",
        f"  note      {dataset.note}",
        f"  terms     {dataset.terms}",
        f"  cite      {dataset.citation}",
    ]
    for source in dataset.sources:
        pillow = " Needs Pillow." if source.pillow else ""
        lines.append(f"  source    {source.name}: {source.note}{pillow}".rstrip(": "))
        for remote in source.files:
            digest = remote.digest or "no published hash"
            lines.append(f"            {remote.url} ({digest})")
    if not dataset.sources:
        lines.append(f"  source    {store.how_to_get(dataset)}")
    path = store.find(name, folder=folder)
    lines.append(f"  file      {path or 'not on this machine'}")
    if path is not None:
        for file in store.read_record(path).get("files", []):
            lines.append(f"            from {file['url']} (sha256:{file['sha256']})")
    return "\n".join(lines)


def _choose(dataset: Dataset, name: str | None) -> tuple[Source, ...]:
    if not dataset.sources:
        msg = f"{dataset.name}: {store.how_to_get(dataset)}"
        raise ValueError(msg)
    chosen = tuple(source for source in dataset.sources if name in (None, source.name))
    if not chosen:
        names = ", ".join(source.name for source in dataset.sources)
        msg = f"unknown source {name!r} of {dataset.name}; there are {names}"
        raise ValueError(msg)
    return chosen


def _fetch_first(
    dataset: Dataset, sources: tuple[Source, ...], path: Path, progress: Progress | None
) -> None:
    """Fetch from the first source that answers. One that answers wrongly is not passed over."""
    failures = []
    for source in sources:
        try:
            return _fetch_from(dataset, source, path, progress)
        except DownloadError as error:
            failures.append(f"{source.name}: {error}")
    places = ", ".join(str(_target(path, source, file)) for file in sources[0].files)
    msg = (
        f"no source of {dataset.name} could be reached: {'; '.join(failures)}. Files that you have "
        f"from elsewhere can be put here by hand: {places}"
    )
    raise DownloadError(msg)


def _fetch_from(dataset: Dataset, source: Source, path: Path, progress: Progress | None) -> None:
    if source.pillow:
        convert.need_pillow()  # before a large download
    files = []
    for remote in source.files:
        target = _target(path, source, remote)
        sha256 = _download(remote, target, progress)
        files.append({"url": remote.url, "file": str(target), "sha256": sha256})
    arrays = _convert(dataset, source, [Path(file["file"]) for file in files])
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for file in files:  # only now it is known that the file is what it should be
        _remember(Path(file["file"]), file, now)
    store.save(path, arrays, _record(dataset, source, files, now))


def _download(remote: Remote, target: Path, progress: Progress | None) -> str:
    digest = remote.digest or read_json(_memory(target)).get("digest")
    try:
        return download(remote.url, target, digest=digest, progress=progress)
    except ValueError as error:
        if remote.digest is not None:
            raise
        msg = f"{error} The expected hash is that of an earlier download; {_memory(target)} has it."
        raise ValueError(msg) from error


def _convert(dataset: Dataset, source: Source, paths: list[Path]) -> Arrays:
    try:
        arrays = source.convert(paths)
        store.check(dataset, arrays)
        if dataset.content and store.content_hash(arrays) != dataset.content:
            store.check_resemblance(dataset, arrays)
    except ValueError as error:
        names = ", ".join(map(str, paths))
        msg = (
            f"what {source.name} has is not {dataset.name}: {error}. The files were left as they "
            f"are; remove them to download them again: {names}"
        )
        raise ValueError(msg) from error
    return arrays


def _record(
    dataset: Dataset, source: Source, files: list[dict[str, str]], now: str
) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "source": source.name,
        "fetched": now,
        "files": [{key: file[key] for key in ("url", "sha256")} for file in files],
    }


def _target(path: Path, source: Source, remote: Remote) -> Path:
    return path.parent / "downloads" / path.stem / source.name / remote.file


def _memory(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def _remember(target: Path, file: dict[str, str], now: str) -> None:
    if not _memory(target).exists():
        content = {"url": file["url"], "digest": f"sha256:{file['sha256']}", "first seen": now}
        write_json(_memory(target), content)
