"""Threads of this machine, BLAS held at one thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from tubal._threads import effective_jobs, serial_blas, spans
from tubal.solvers.engines.base import Engine

MAX_BLOCK_BYTES = 2**21
SMALL = 120_000
"""Below this many numbers a thread takes longer to be called than the work does."""


class Threads(Engine):
    """Threads over blocks of samples.

    A block stays with one thread, and so in the caches of one core: where threads took whichever
    block came next, an iteration on two cores was hardly faster than on one.

    How the samples are cut into blocks depends on their size only and results are summed in the
    order of the blocks, so the same input gives the same bits for any number of threads.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads; None or -1: as many as BLAS may have.
    max_block_bytes : int
        Size of one array of a block, small enough for the caches of a core. Blocks of large
        slices are larger: they have as many samples as slices have rows, unless there were fewer
        than eight of them.
    small : int
        Problems of fewer numbers are one block, and left to one thread.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        max_block_bytes: int = MAX_BLOCK_BYTES,
        *,
        small: int = SMALL,
    ) -> None:
        self.small = small
        effective_jobs(n_jobs)
        self.n_jobs = n_jobs
        self.max_block_bytes = check_block_bytes(max_block_bytes)

    def __enter__(self) -> Self:
        super().__enter__()
        self._threads = effective_jobs(self.n_jobs)
        with ExitStack() as stack:
            stack.enter_context(serial_blas())
            several = range(self._threads if self._threads > 1 else 0)
            self._pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in several]
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._stack.close()

    def place(self, makers: Sequence[Callable[[], Any]]) -> None:
        """Make the blocks, few at a time to save memory."""
        self._blocks = list(self._map(lambda maker: maker(), makers))

    def each(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Call a method of every block."""
        return self._map(lambda block: getattr(block, method)(*arguments), self._blocks)

    def over(self, function: Callable[[slice], Any], n: int) -> list[Any]:
        """Spread the pieces of `range(n)` over the threads."""
        return list(self._map(function, spans(n, self._threads if self._pays else 1)))

    @property
    def _pays(self) -> bool:
        """Whether the problem is large enough for threads."""
        return bool(self._pools) and self._size >= self.small

    def _map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in order."""
        if not self._pays or len(items) < 2:
            return (function(item) for item in items)
        # Few at work or waiting: each may be as large as its block.
        return self._in_flight(function, items, self._threads + 1)

    def _in_flight(
        self, function: Callable[[Any], Any], items: Iterable[Any], most: int
    ) -> Iterator[Any]:
        pending: deque[Future[Any]] = deque()
        for i, item in enumerate(items):
            if len(pending) >= most:
                yield pending.popleft().result()
            pending.append(self._pools[i % self._threads].submit(function, item))
        while pending:
            yield pending.popleft().result()


def check_block_bytes(value: Any) -> int:
    """Return the size of a block, or raise a ValueError."""
    if not isinstance(value, int) or value < 1:
        msg = f"max_block_bytes must be a positive integer, got {value!r}"
        raise ValueError(msg)
    return value
