"""The engine on a Dask cluster: the same answers as threads, and words when a worker is lost."""

from __future__ import annotations

import pickle
import threading
from functools import partial

import numpy as np
import pytest

import tubal
from tubal import Dask, Lambda, solve, use_engine
from tubal.datasets import make_tensor_subspaces
from tubal.solvers import Published, Threads, Watcher, watch
from tubal.solvers.blocks import Penalties
from tubal.solvers.engines.dask import Cargo, Shard
from tubal.solvers.entry import prepare
from tubal.solvers.parts import Part, zero_block

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow  # workers take seconds to start


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    return make_tensor_subspaces(12, 6, 4, 2, 60, outliers=0.1, random_state=3)


@pytest.fixture(scope="module")
def holes():
    return make_tensor_subspaces(12, 6, 4, 2, 60, outliers=0.1, missing=0.2, random_state=3)


ROWS = {
    "OR-TLRR": {},
    "TLRR": {"noise": "l1"},
    "OR-TPCA": {"dictionary": "identity"},
    "TRPCA": {"dictionary": "identity", "noise": "l1"},
    "DCT": {"transform": "dct"},
    "published": {"solver": "published"},
    "published TRPCA": {"solver": Published(), "dictionary": "identity", "noise": "l1"},
}


class Worker:
    """A block that tells who works on it."""

    def who(self):
        return threading.get_ident()


def test_a_worker_uses_its_threads():
    shard = Shard(Cargo([Worker] * 4), 2)
    assert len(set(shard.each("who", ()))) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("row", ROWS)
def test_same_solution_as_threads(client, data, holes, row, missing):
    X = (holes if missing else data).X
    options = {"lam": Lambda.relative(0.5), "max_iter": 40, **ROWS[row]}
    here = solve(X, engine=Threads(2), **options)
    there = solve(X, engine=Dask(client), **options)
    assert there.n_iter == here.n_iter
    scale = np.abs(here.L).max()
    np.testing.assert_allclose(there.L, here.L, atol=1e-7 * scale, rtol=0)
    np.testing.assert_allclose(there.E, here.E, atol=1e-7 * scale, rtol=0)
    np.testing.assert_allclose(there.certificate.primal, here.certificate.primal, rtol=1e-7)
    np.testing.assert_allclose(there.certificate.dual, here.certificate.dual, rtol=1e-7)


def test_dictionary_that_does_not_span_the_data(client, data):
    D = data.X[:5]
    here = solve(data.X, dictionary=D, lam=0.4)
    there = solve(data.X, dictionary=D, lam=0.4, engine=Dask(client))
    np.testing.assert_allclose(there.L, here.L, atol=1e-7)


def test_path_and_warm_starts(client, data):
    here = [s.certificate.primal for s in tubal.path(data.X, lams=[0.2, 0.4])]
    there = [s.certificate.primal for s in tubal.path(data.X, lams=[0.2, 0.4], engine=Dask(client))]
    np.testing.assert_allclose(there, here, rtol=1e-7)


def test_estimators_follow_the_context(client, data):
    seen = []

    class Spy(Dask):
        def place(self, makers):
            seen.append(len(makers))
            super().place(makers)

    expected = tubal.ORTLRR(n_clusters=4, random_state=0).fit(data.X)
    with use_engine(Spy(client)):
        found = tubal.ORTLRR(n_clusters=4, random_state=0).fit(data.X)
    assert seen
    assert max(seen) >= 4  # a block for every thread
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.outlier_scores_, expected.outlier_scores_, atol=1e-6)


def test_samples_travel_once(data):
    problem = prepare(data.X, "data", "l21", "dft", None).problem
    make = partial(zero_block, Penalties(1.0, 1.0, 1.0))
    half = slice(0, len(data.X) // 2)

    def cargo(*spans):
        return len(pickle.dumps(Cargo([partial(make, Part.of(problem, 0.5, s)) for s in spans])))

    samples = problem.data.values.nbytes + problem.reduction.x.nbytes
    shared = problem.reduction.U.nbytes
    assert cargo(half) < 0.5 * samples + shared + 20_000
    # Two blocks on one worker share the dictionary.
    quarter = slice(0, len(data.X) // 4), slice(len(data.X) // 4, len(data.X) // 2)
    assert cargo(*quarter) < cargo(half) + 0.5 * shared


def test_lost_worker_is_told_and_the_engine_goes_on(data):
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as few,
        distributed.Client(few, set_as_default=False) as client,
    ):
        engine = Dask(client)

        class Killer(Watcher):
            def iteration(self, n_iter, snapshot):
                if n_iter == 3:
                    few.scale(1)
                    few.sync(few._correct_state)

        with (
            watch(Killer()),
            pytest.raises(ConnectionError, match="a worker of the Dask cluster was lost"),
        ):
            solve(data.X, lam=0.5, engine=engine)
        client.wait_for_workers(1)
        there = solve(data.X, lam=0.5, engine=engine)
        here = solve(data.X, lam=0.5)
        np.testing.assert_allclose(there.certificate.primal, here.certificate.primal, rtol=1e-7)


def test_an_error_on_a_worker_reaches_the_user(client):
    with Dask(client) as engine:
        engine.place([partial(float, 1.5)])
        with pytest.raises(AttributeError, match="nothing_of_this_name"):
            list(engine.each("nothing_of_this_name"))
        assert list(engine.each("is_integer")) == [False]


def test_own_workers(data):
    engine = Dask(n_workers=1)
    try:
        there = solve(data.X, lam=0.5, engine=engine)
    finally:
        engine.close()
    np.testing.assert_allclose(
        there.certificate.primal, solve(data.X, lam=0.5).certificate.primal, rtol=1e-7
    )


def test_address(client, data):
    engine = Dask(client.scheduler.address)
    try:
        there = solve(data.X, lam=0.5, engine=engine)
    finally:
        engine.close()
    assert there.certificate.gap <= 1e-4
    assert client.nthreads()  # the cluster of somebody else stays


class TestRefused:
    @pytest.mark.parametrize("client", [3, object()])
    def test_client(self, client):
        with pytest.raises(ValueError, match=r"client must be a distributed\.Client, an address"):
            Dask(client)

    @pytest.mark.parametrize("n_workers", [0, 1.5, "two"])
    def test_n_workers(self, n_workers):
        with pytest.raises(ValueError, match="n_workers must be a positive integer"):
            Dask(n_workers=n_workers)

    def test_block_bytes(self, client):
        with pytest.raises(ValueError, match="max_block_bytes must be a positive integer"):
            Dask(client, max_block_bytes=0)

    def test_no_workers(self, data):
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=":0") as none,
            distributed.Client(none, set_as_default=False) as client,
            pytest.raises(ValueError, match="has no workers"),
        ):
            solve(data.X, lam=0.5, engine=Dask(client))

    def test_arrays_of_other_libraries(self, client, data):
        strict = pytest.importorskip("array_api_strict")
        with pytest.raises(ValueError, match="engine Dask takes NumPy arrays"):
            solve(strict.asarray(data.X), lam=0.5, engine=Dask(client))

    def test_other_version(self, client, data, monkeypatch):
        monkeypatch.setattr("tubal.solvers.engines.dask.version", lambda name: "9.9")
        monkeypatch.setattr(type(client), "run", lambda self, f, name: {"tcp://a:1": "9.8"})
        with pytest.raises(ValueError, match=r"needs tubal 9\.9 installed; found .*9\.8"):
            solve(data.X, lam=0.5, engine=Dask(client))

    def test_engine_of_the_context(self):
        with (
            pytest.raises(ValueError, match="engine must be an Engine, got 'dask'"),
            use_engine("dask"),
        ):
            pass
