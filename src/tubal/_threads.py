"""Threads over independent pieces of work, with BLAS held at one thread.

Two BLAS threads on the small matrices of one slice are slower than one (up to 13 times on complex
100 x 500 slices), so every parallel section of the package splits the slices or the samples
between Python threads and keeps BLAS itself serial. How many threads: as many as BLAS would have
used, so `OMP_NUM_THREADS` and `threadpoolctl.threadpool_limits` mean here what they mean for NumPy.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (loads SciPy's own BLAS, so that the controller below sees it)
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """Return the number of threads that BLAS is allowed, or would be if it were not held.

    Inside of a section that runs several pieces of work at once it is one.
    """
    if _allowed is not None:
        return 1 if _HELD.locked() else _allowed
    return max((library["num_threads"] for library in _controller().info()), default=1)


_HELD, _CALM = threading.Lock(), threading.Lock()
_allowed: int | None = None
"""Threads that BLAS had before `calm_blas`."""


@contextmanager
def calm_blas() -> Iterator[None]:
    """Hold BLAS at one thread for a long time, but let threads of our own be as many as before.

    After each call the threads of BLAS wait for the next one without sleeping, and take a core from
    ours for some milliseconds.
    """
    global _allowed
    if not _CALM.acquire(blocking=False):  # of another fit at the same time
        yield
        return
    try:
        allowed = blas_threads()
        with _controller().limit(limits=1):
            _allowed = allowed
            try:
                yield
            finally:
                _allowed = None
    finally:
        _CALM.release()


@contextmanager
def serial_blas() -> Iterator[None]:
    """Hold every BLAS library at one thread inside the block; restore on the way out.

    The limit belongs to the process. When several Python threads are here at once, the first one
    sets it and restores it; were the others to do so too, the last one would restore the limit of
    the first.
    """
    if not _HELD.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1):
            yield
    finally:
        _HELD.release()


def effective_jobs(n_jobs: int | None) -> int:
    """Translate `n_jobs` to a number of threads.

    `None` follows BLAS (its limits and environment variables), a positive number is taken as it
    is, and -1 means as many as BLAS may have.
    """
    if n_jobs is None or n_jobs == -1:
        return blas_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        msg = f"n_jobs must be None, -1 or a positive integer, got {n_jobs!r}"
        raise ValueError(msg)
    return int(n_jobs)


def spans(n: int, parts: int) -> list[slice]:
    """Cut `range(n)` into at most `parts` contiguous pieces of nearly equal length.

    >>> spans(5, 2)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    parts = max(1, min(parts, n))
    edges = [-(-n * i // parts) for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def threaded(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Return `[function(item) for item in items]`, computed by `threads` threads, BLAS serial."""
    with serial_blas():
        if threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(min(threads, len(items))) as pool:
            return list(pool.map(function, items))
