"""Threads of our own, and those of BLAS while they work."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tubal import ORTLRR
from tubal._threads import blas_threads, calm_blas, effective_jobs, serial_blas, threaded
from tubal.datasets import make_tensor_subspaces
from tubal.selection import open_views, select
from tubal.solvers import Threads

BLAS: set[str] = set()


@pytest.fixture(autouse=True)
def libraries():
    """Find those that can have two threads: solvers of the oracles bring one that never has."""
    with threadpool_limits(2, user_api="blas"):
        BLAS.update(path for path, count in blas().items() if count == 2)


def blas():
    every = threadpool_info()
    return {one["filepath"]: one["num_threads"] for one in every if one["user_api"] == "blas"}


def real_limits():
    return {count for path, count in blas().items() if path in BLAS}


def test_calm_blas_keeps_our_threads():
    with threadpool_limits(2, user_api="blas"):
        with calm_blas():
            assert real_limits() == {1}
            assert blas_threads() == effective_jobs(None) == 2
            with serial_blas():
                assert blas_threads() == 1
            assert threaded(lambda _: blas_threads(), [0, 1], 2) == [1, 1]
            with calm_blas():
                assert blas_threads() == 2
            assert real_limits() == {1}
        assert real_limits() == {2}
        assert blas_threads() == 2


def test_calm_blas_ends_with_an_error():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), calm_blas():
            raise ZeroDivisionError
        assert real_limits() == {2}
        assert blas_threads() == 2


@pytest.mark.parametrize("first", [serial_blas, calm_blas])
@pytest.mark.parametrize("second", [serial_blas, calm_blas])
def test_sections_may_end_in_any_order(first, second):
    """As those of several Python threads do."""
    with threadpool_limits(2, user_api="blas"):
        one, other = first(), second()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert real_limits() == {1}
        assert blas_threads() == (1 if second is serial_blas else 2)
        other.__exit__(None, None, None)
        assert real_limits() == {2}
        assert blas_threads() == 2


@contextmanager
def two_blas_threads():
    """Let BLAS have two threads, without this thread being the one that limits it."""
    before = threadpool_limits(2, user_api="blas")
    with threadpool_limits():  # threadpoolctl 3.8: on the way out others may set limits, too
        pass
    try:
        yield
    finally:
        with before:
            pass


def test_the_last_of_several_threads_restores():
    """Not the first one, which the others would be without a limit behind."""
    come, go = threading.Event(), threading.Event()

    def other():
        with serial_blas():
            come.set()
            go.wait(10)
            seen.append((real_limits(), blas_threads()))

    seen = []
    with two_blas_threads():
        thread = threading.Thread(target=other)
        with calm_blas():
            thread.start()
            assert come.wait(10)
        go.set()
        thread.join()
        assert seen == [({1}, 1)]
        assert real_limits() == {2}
        assert blas_threads() == 2
        with calm_blas():
            assert real_limits() == {1}


def test_sections_of_many_threads():
    seen = []

    def work(i):
        for n in range(50):
            with (calm_blas, serial_blas)[(i + n) % 2]():
                seen.append((real_limits(), blas_threads()))

    with two_blas_threads():
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert real_limits() == {2}
        assert blas_threads() == 2
    assert all(limits == {1} and count in (1, 2) for limits, count in seen)


def test_other_threads_may_set_limits_after_ours():
    with two_blas_threads():
        with calm_blas():
            pass
        limited = []
        thread = threading.Thread(
            target=lambda: limited.append((threadpool_limits(1, user_api="blas"), real_limits()))
        )
        thread.start()
        thread.join()
        assert limited[0][1] == {1}


def test_a_limit_from_outside_holds():
    with threadpool_limits(1, user_api="blas"), calm_blas():
        assert effective_jobs(None) == 1


def test_blas_is_calm_in_a_fit(monkeypatch):
    X = make_tensor_subspaces(8, 4, 2, 1, 20, outliers=0, random_state=0).X
    seen = []
    label = ORTLRR._label
    monkeypatch.setattr(
        ORTLRR, "_label", lambda *args: seen.append((real_limits(), blas_threads())) or label(*args)
    )
    with threadpool_limits(2, user_api="blas"):
        ORTLRR(2).fit(X)
        assert real_limits() == {2}
    assert seen == [({1}, 2)]


class Block:
    """One that remembers who worked on it."""

    def __init__(self):
        self.threads = {threading.get_ident()}

    def work(self):
        self.threads.add(threading.get_ident())
        return np.ones(1)


@pytest.mark.parametrize("n_blocks", [2, 5, 9])
def test_a_block_stays_with_its_thread(n_blocks):
    with Threads(3) as engine:
        engine.expect(engine.small)
        engine.place([Block] * n_blocks)
        for _ in range(4):
            assert engine.total("work") == n_blocks
        owners = [block.threads for block in engine._blocks]
    assert all(len(owner) == 1 for owner in owners)
    assert len(set.union(*owners)) == min(3, n_blocks)


def test_a_small_problem_is_left_to_one_thread():
    with Threads(3) as engine:
        engine.expect(engine.small - 1)
        engine.place([Block] * 5)
        assert engine.total("work") == 5
        owners = set.union(*(block.threads for block in engine._blocks))
        assert engine.over(lambda some: some, 7) == [slice(0, 7)]
    assert owners == {threading.get_ident()}


def test_threads_stay_and_have_none_inside():
    def who(_):
        inner = threaded(lambda _: threading.get_ident(), range(3), 3)
        return threading.get_ident(), set(inner)

    def work():
        seen = set()
        for _ in range(20):
            for own, inner in threaded(who, range(4), 2):
                assert inner == {own}
                seen.add(own)
        return seen, threading.get_ident()

    with ThreadPoolExecutor(1) as fresh:  # a Python thread that has no others yet
        seen, caller = fresh.submit(work).result()
    assert 1 <= len(seen) <= 2
    assert caller not in seen


def test_an_error_in_a_thread_leaves_the_others_alone():
    done = []

    def work(i):
        if i == 0:
            raise KeyError(i)
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(KeyError):
        threaded(work, range(50), 2)
    finished = len(done)
    time.sleep(0.05)
    assert len(done) == finished < 49  # nothing goes on behind the back of the caller
    assert threaded(lambda i: 2 * i, range(4), 2) == [0, 2, 4, 6]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_threads_after_a_fork():
    threaded(lambda i: i, range(4), 2)
    child = os.fork()
    if child == 0:
        os._exit(int(threaded(lambda i: i, range(4), 2) != [0, 1, 2, 3]))
    assert os.waitpid(child, 0)[1] == 0


def test_views_are_judged_the_same_by_any_number_of_threads():
    X = make_tensor_subspaces(12, 10, 3, 2, 20, outliers=0, noise=0.3, random_state=0).X
    views = open_views(X.shape[1:], table=False)
    one, four = (
        select(X, np.ones(len(X)), views, n_clusters=3, random_state=0, n_jobs=jobs)
        for jobs in (1, 4)
    )
    assert one == four
    for a, b in zip(one.candidates, four.candidates, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
