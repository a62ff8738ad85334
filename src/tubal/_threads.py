"""Threads over independent pieces of work, with BLAS held at one thread.

Two BLAS threads on the small matrices of one slice are slower than one (up to 13 times on complex
100 x 500 slices), so every parallel section of the package splits the slices or the samples
between Python threads and keeps BLAS itself serial. How many threads: as many as BLAS would have
used, so `OMP_NUM_THREADS` and `threadpoolctl.threadpool_limits` mean here what they mean for NumPy.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (loads SciPy's own BLAS, so that the controller below sees it)
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _Limiter:
    """Holds BLAS at one thread as long as anyone needs that.

    The limit of most libraries belongs to the process, while sections of several Python threads
    begin and end in any order. So they are counted: the first one to come saves what BLAS had and
    the last one to go restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._holders = self._serial = 0  # Python threads inside, and serial sections
        self._before: list[int | None] = []  # what BLAS had before the first of them came

    def threads(self) -> int:
        """Return the threads that there are to share out: one while any section is serial."""
        with self._lock:
            if self._serial:
                return 1
            counts = self._before if self._holders else _limits()
            return max((count for count in counts if count), default=1)

    @contextmanager
    def hold(self, *, serial: bool) -> Iterator[None]:
        """Hold BLAS inside the block; a serial one also leaves no threads to share out."""
        mine = self._mine.__dict__
        with self._lock:
            if not mine.get("depth"):
                mine.update(depth=0, before=_limits())
                self._before = self._before if self._holders else mine["before"]
                self._holders += 1
                _set_limits([1] * len(self._before))
            mine["depth"] += 1
            self._serial += serial
        try:
            yield
        finally:
            with self._lock:
                self._serial -= serial
                mine["depth"] -= 1
                if not mine["depth"]:
                    self._holders -= 1
                    self._leave(mine["before"])

    def _leave(self, before: list[int | None]) -> None:
        """Restore what BLAS had: all for the last thread, else what is known to be this thread's.

        Setting a limit makes a thread the only one that may (threadpoolctl 3.8), until it comes out
        of a `limit`; here of one that changes nothing.
        """
        own = [_per_thread(library) for library in _controller().lib_controllers]
        kept = [count if alone else None for count, alone in zip(before, own, strict=True)]
        _set_limits(kept if self._holders else self._before)
        with _controller().limit(limits=None):
            pass


def _limits() -> list[int | None]:
    return [library.num_threads for library in _controller().lib_controllers]


def _set_limits(limits: Sequence[int | None]) -> None:
    for library, count in zip(_controller().lib_controllers, limits, strict=True):
        if count:
            library.set_num_threads(count)


def _per_thread(library: Any) -> bool:
    """Whether the limit of a library belongs to one Python thread and not to the process."""
    return library.internal_api == "mkl" or library.info().get("threading_layer") == "openmp"


_LIMITER = _Limiter()


def blas_threads() -> int:
    """Return the number of threads that BLAS is allowed, or would be if it were not held.

    Inside of a section that runs several pieces of work at once it is one.
    """
    return _LIMITER.threads()


def calm_blas() -> AbstractContextManager[None]:
    """Hold BLAS at one thread for a long time, but let threads of our own be as many as before.

    After each call the threads of BLAS wait for the next one without sleeping, and take a core from
    ours for some milliseconds.
    """
    return _LIMITER.hold(serial=False)


def serial_blas() -> AbstractContextManager[None]:
    """Hold every BLAS library at one thread inside the block; restore on the way out.

    When others hold it too, in this or in another Python thread, the last one restores it.
    """
    return _LIMITER.hold(serial=True)


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
    """Return `[function(item) for item in items]`, computed by `threads` threads, BLAS serial.

    Inside of such a thread there are no further ones.
    """
    with serial_blas():
        if threads == 1 or len(items) < 2 or _POOL.inside:
            return [function(item) for item in items]
        return _POOL.run(function, items, min(threads, len(items)))


class _Pool(threading.local):
    """Threads that stay: to start one takes longer than most of the work that they are given.

    Every Python thread has its own, as many as it has asked for at most.
    """

    _pool: ThreadPoolExecutor | None
    _size: int

    def __init__(self) -> None:
        self.inside = False  # whether this thread belongs to a pool
        self.forget()

    def run(self, function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
        """Compute with so many threads; when one piece fails, those not yet begun are left."""
        if threads > self._size or self._pool is None:
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            self._pool = ThreadPoolExecutor(threads, "tubal", initializer=self._enter)
            self._size = threads
        left, results = deque(range(len(items))), dict[int, R]()

        def work() -> None:
            while True:
                try:
                    i = left.popleft()
                except IndexError:
                    return
                try:
                    results[i] = function(items[i])
                except BaseException:
                    left.clear()
                    raise

        begun: list[Future[None]] = []
        try:
            for _ in range(threads):
                begun.append(self._pool.submit(work))
            for future in begun:
                future.result()
        finally:
            left.clear()
            wait(begun)
        return [results[i] for i in range(len(items))]

    def _enter(self) -> None:
        self.inside = True

    def forget(self) -> None:
        """Leave the threads behind that a fork has not taken along."""
        self._pool, self._size = None, 0


_POOL = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget)
