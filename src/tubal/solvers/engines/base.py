"""The interface of an engine, and the simplest one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from operator import iadd
from types import TracebackType
from typing import Any, Self


class Engine(ABC):
    """Runs methods of blocks. Used as a context: blocks live between enter and exit."""

    max_block_bytes: int | None = None
    """Largest size of one array of a block; None puts all samples into one block."""

    min_blocks: int = 4
    """Smallest number of blocks, for as long as they do not become too small."""

    small: int = 0
    """Problems of fewer numbers than this are one block."""

    _blocks: list[Any]
    _busy = False
    _size = 0

    def __enter__(self) -> Self:
        if self._busy:
            msg = "this engine is in use by another solve: give each its own"
            raise RuntimeError(msg)
        self._busy, self._blocks = True, []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._busy, self._blocks = False, []

    def expect(self, size: int) -> None:
        """Hear how many numbers the problem has whose blocks come next."""
        self._size = size

    @abstractmethod
    def place(self, makers: Sequence[Callable[[], Any]]) -> None:
        """Make one block with each of these functions, where it shall live."""

    @abstractmethod
    def each(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Call a method of every block; yield the results in the order of the blocks."""

    def total(self, method: str, *arguments: Any) -> Any:
        """Return the sum of the results of a method over the blocks, added in their order.

        The first result is overwritten, so methods return arrays of their own.
        """
        return reduce(iadd, self.each(method, *arguments))

    @abstractmethod
    def over(self, function: Callable[[slice], Any], n: int) -> list[Any]:
        """Cut `range(n)` into pieces and return the results of the function on them, in order."""


class Inline(Engine):
    """One block, no threads: for arrays whose library is parallel by itself, such as on a GPU."""

    def place(self, makers: Sequence[Callable[[], Any]]) -> None:
        """Make the blocks."""
        self._blocks = [maker() for maker in makers]

    def each(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Call a method of every block."""
        return (getattr(block, method)(*arguments) for block in self._blocks)

    def over(self, function: Callable[[slice], Any], n: int) -> list[Any]:
        """Call the function once."""
        return [function(slice(0, n))]


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def use_engine(engine: Any) -> Iterator[None]:
    """Let this engine run every solve inside the block, those of estimators too.

    What is solved with an engine of its own keeps it.

    Examples
    --------
    >>> import tubal
    >>> from tubal.solvers import Threads
    >>> X = tubal.datasets.make_tensor_subspaces(8, 4, 2, 1, 30, random_state=0).X
    >>> with tubal.use_engine(Threads(1)):
    ...     solution = tubal.solve(X, lam=0.5)
    """
    if not isinstance(engine, Engine):
        msg = f"engine must be an Engine, got {engine!r}"
        raise ValueError(msg)
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def engine_in_use() -> Engine | None:
    """Return the engine of the innermost `use_engine`."""
    return _engine.get()
