"""Workers of a Dask cluster, which may be other machines.

Every worker holds the blocks of some samples for the whole solve, in an actor, and runs them on its
threads. What travels in an iteration are the operators of the thresholding to every worker and one
sum of Gram matrices back from each, `K r^2` numbers a worker, however many samples there are.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import version
from itertools import chain
from operator import iadd
from types import TracebackType
from typing import Any, Self

from tubal._optional import optional
from tubal._threads import blas_threads, spans
from tubal.input import check_count
from tubal.solvers.engines.base import Engine
from tubal.solvers.engines.threads import MAX_BLOCK_BYTES, Threads, check_block_bytes

ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
KEEP_MEMORY = {f"MALLOC_{what}_THRESHOLD_": 2**30 for what in ("TRIM", "MMAP")} | {
    f"{what}_NUM_THREADS": 1 for what in ("OMP", "MKL", "OPENBLAS")
}
"""Environment of new workers. By default they give memory back to the system at once, and an
iteration, which needs the same memory again and again, takes three times as long."""


@dataclass(frozen=True)
class Cargo:
    """What one worker needs to make its blocks; arrays that they share are sent once."""

    makers: Sequence[Callable[[], Any]]


class Shard:
    """The blocks of one worker: lives there, as an actor."""

    def __init__(self, cargo: Cargo, threads: int) -> None:
        self._engine = Threads(threads, small=0)
        with ExitStack() as stack:
            stack.enter_context(self._engine)
            self._engine.place(cargo.makers)
            self._stack = stack.pop_all()

    def total(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Return the sum of the results of a method over the blocks of this worker."""
        return self._engine.total(method, *arguments)

    def each(self, method: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the results of a method."""
        return list(self._engine.each(method, *arguments))

    def close(self) -> None:
        """Let the blocks go."""
        self._stack.close()


class Dask(Engine):
    """Workers of a Dask cluster, blocks of samples resident on them.

    The client decomposes the sums of Gram matrices itself, with its own threads, so a cluster pays
    where there are many more samples than rows and columns of one. Sums are taken worker by worker:
    results agree with those of `Threads` to rounding, not to the bit.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, or the address of a scheduler. None takes the client of the moment if there is
        one, else the scheduler of Dask's configuration (`DASK_SCHEDULER_ADDRESS`), else new workers
        on this machine.
    n_workers : int or None
        How many workers when they are new, of one thread each; None: one for each core.
    max_block_bytes : int
        Size of one array of a block, as that of `Threads`.

    Examples
    --------
    >>> from tubal import Dask, ORTLRR, use_engine
    >>> engine = Dask("tcp://scheduler:8786")  # doctest: +SKIP
    >>> with use_engine(engine):  # doctest: +SKIP
    ...     ORTLRR(n_clusters=40).fit(X)
    """

    def __init__(
        self,
        client: Any = None,
        *,
        n_workers: int | None = None,
        max_block_bytes: int = MAX_BLOCK_BYTES,
    ) -> None:
        distributed = _distributed()
        if not (client is None or isinstance(client, (str, distributed.Client))):
            msg = f"client must be a distributed.Client, an address or None, got {client!r}"
            raise ValueError(msg)
        if n_workers is not None:
            n_workers = check_count("n_workers", n_workers)
        self.client, self.n_workers = client, n_workers
        self.max_block_bytes = check_block_bytes(max_block_bytes)
        self._connected: Any = None
        self._owned = ExitStack()
        self._local = Threads()
        self._shards: list[Any] = []

    @property
    def min_blocks(self) -> int:  # type: ignore[override]
        """One block for each thread of the workers, at least four."""
        return max(4, sum(self._threads().values()))

    def connect(self) -> int:
        """Reach the cluster, which the first solve does otherwise; return how many workers it has.

        Raises
        ------
        ValueError
            When there are no workers, or workers without this version of the package.
        """
        if self._connected is None:
            self._connected = self._connect()
        workers = len(self._threads())
        if not workers:
            msg = "the cluster of client has no workers: start some, or wait for them"
            raise ValueError(msg)
        return workers

    def __enter__(self) -> Self:
        self.connect()
        super().__enter__()
        self._local.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._release()
        finally:
            self._local.__exit__(kind, error, trace)
            super().__exit__(kind, error, trace)

    def close(self) -> None:
        """Close what this engine opened: a connection, or workers of its own."""
        self._connected = None
        self._owned.close()

    def place(self, makers: Sequence[Callable[[], Any]]) -> None:
        """Send every worker what it needs and let it make its blocks, neighbours together."""
        self._release()
        workers = list(self._threads().items())
        shares = spans(len(makers), len(workers)) if makers else []
        with self._telling():
            promised = []
            for (address, threads), span in zip(workers, shares, strict=False):
                (cargo,) = self._connected.scatter(
                    [Cargo(makers[span])], workers=[address], hash=False
                )
                options = {"actor": True, "workers": [address], "pure": False}
                promised.append(self._connected.submit(Shard, cargo, threads, **options))
                del cargo
            for shard in promised:
                self._shards.append(shard.result())

    def each(self, method: str, *arguments: Any) -> Iterator[Any]:
        """Call a method of every block."""
        return chain.from_iterable(self._ask("each", method, arguments))

    def total(self, method: str, *arguments: Any) -> Any:
        """Return the sum of the results of a method: of each worker first, then of all."""
        return reduce(iadd, self._ask("total", method, arguments))

    def expect(self, size: int) -> None:
        """Hear how many numbers the problem has whose blocks come next."""
        self._local.expect(size)

    def over(self, function: Callable[[slice], Any], n: int) -> list[Any]:
        """Spread the pieces of `range(n)` over threads of the client."""
        return self._local.over(function, n)

    def _ask(self, what: str, method: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
        """Let all workers begin, then yield what they answer, in their order."""
        with self._telling():
            answers = [getattr(shard, what)(method, arguments) for shard in self._shards]
        for answer in answers:
            with self._telling():
                found = answer.result()
            yield found

    def _release(self) -> None:
        """Let the workers drop their blocks; one that is lost has none."""
        shards, self._shards = self._shards, []
        for shard in shards:
            with suppress(ConnectionError), self._telling():
                shard.close().result()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Say in words that a worker was lost, and its samples with it."""
        distributed = _distributed()
        try:
            with self._connected.as_current():  # actors ask for the client of the moment
                yield
            return
        except (distributed.KilledWorker, OSError, CancelledError) as error:
            lost: Exception = error
        except RuntimeError as error:
            if "Actor was lost" not in str(error):
                raise
            lost = error
        msg = "a worker of the Dask cluster was lost, and the samples it held"
        raise ConnectionError(msg) from lost

    def _threads(self) -> dict[str, int]:
        return dict(sorted(self._connected.nthreads().items()))

    def _connect(self) -> Any:
        distributed = _distributed()
        client = self.client
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:  # there is none
                client = self._new_client(distributed)
        elif isinstance(client, str):
            client = self._open(distributed.Client(client, set_as_default=False))
        _check_workers(client)
        return client

    def _new_client(self, distributed: Any) -> Any:
        import dask

        options: dict[str, Any] = {"set_as_default": False}
        if dask.config.get("scheduler-address", None) is None:
            options |= {
                "n_workers": self.n_workers or blas_threads(),
                "threads_per_worker": 1,
                "dashboard_address": ":0",
            }
        with _deaf_to_ctrl_c(), dask.config.set({ENVIRONMENT: KEEP_MEMORY}):
            return self._open(distributed.Client(**options))

    def _open(self, client: Any) -> Any:
        return self._owned.enter_context(client)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Let processes that start inside the block ignore Ctrl-C, which a terminal sends to all.

    This process answers it; workers that died of it would take the state of the solve with them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_workers(client: Any) -> None:
    """Refuse workers that lack this version of the package."""
    mine = version("tubal")
    try:
        found = client.run(version, "tubal")
    except ImportError as error:
        msg = f"every worker of client needs tubal {mine} installed; one answered: {error}"
        raise ValueError(msg) from error
    other = {address: theirs for address, theirs in found.items() if theirs != mine}
    if other:
        msg = f"every worker of client needs tubal {mine} installed; found {other}"
        raise ValueError(msg)


def _distributed() -> Any:
    return optional("distributed", "the engine Dask", "dask")
