"""The interface of an engine, and the simplest one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import iadd
from types import TracebackType
from typing import Any, Self


class Engine(ABC):
    """Runs methods of blocks. Used as a context: blocks live between enter and exit."""

    max_block_bytes: int | None = None
    """Largest size of one array of a block; None puts all samples into one block."""

    _blocks: list[Any]
    _busy = False

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

    @abstractmethod
    def place(self, makers: Sequence[Callable[[], Any]]) -> None:
        """Make one block with each of these functions, where it shall live."""

    @abstractmethod
    def each(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Call a method of every block; yield the results in the order of the blocks."""

    def one_by_one(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Do the same for methods that are rare and need much memory: few blocks at a time."""
        return self.each(method, *arguments)

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
