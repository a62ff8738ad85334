"""Solves that are watched, stopped in the middle, and gone on with."""

import numpy as np
import pytest

from tubal import Lambda, make, solve
from tubal.datasets import make_tensor_subspaces
from tubal.solvers import Snapshot, Watcher, watch, watching


class Stop(Exception):
    pass


class Recorder(Watcher):
    """Keeps what it hears; stops a solve at an iteration and keeps the snapshot."""

    def __init__(self, stop_at=None, start=None):
        self.stop_at, self.start = stop_at, start
        self.kept, self.heard, self.iterations, self.checks = None, [], [], []

    def stage(self, name):
        self.heard.append(name)

    def begin(self, solver, tol, max_iter):
        self.heard.append((solver, tol, max_iter))
        return self.start

    def iteration(self, n_iter, snapshot):
        self.iterations.append(n_iter)
        if n_iter == self.stop_at:
            self.kept = snapshot()
            raise Stop

    def check(self, check):
        self.checks.append(check)

    def end(self):
        self.heard.append("end")


PROBLEMS = {
    "coordinates": {},
    "original": {"missing": 0.2},
    "entries": {"dictionary": "identity", "noise": "l1"},
    "completion": {"dictionary": "identity", "noise": "exact", "missing": 0.2},
}


def problem(name):
    options = dict(PROBLEMS[name])
    missing = options.pop("missing", 0)
    data = make_tensor_subspaces(20, 6, 3, 2, 20, outliers=0.15, missing=missing, random_state=0)
    lam = None if options.get("noise") == "exact" else Lambda.relative(0.5)
    return data.X, {"lam": lam, **options}


def stopped_and_continued(X, options):
    whole = solve(X, **options)
    recorder = Recorder(stop_at=whole.n_iter // 2)
    with pytest.raises(Stop), watch(recorder):
        solve(X, **options)
    second = Recorder(start=recorder.kept)
    with watch(second):
        return whole, recorder, second, solve(X, **options)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", ["certified", "published"])
def test_a_solve_goes_on_where_it_was_stopped(name, solver):
    X, options = problem(name)
    options["solver"] = solver
    whole, first, second, continued = stopped_and_continued(X, options)
    half = first.stop_at
    assert isinstance(first.kept, Snapshot)
    assert first.kept.n_iter == half
    assert second.iterations[0] == half + 1
    assert continued.n_iter == second.iterations[-1]
    if solver == "certified":
        assert continued.certificate.gap <= 1e-4
        assert continued.n_iter <= whole.n_iter + 20  # a certificate may come later
    else:
        assert abs(continued.n_iter - whole.n_iter) <= 1
        np.testing.assert_allclose(continued.L, whole.L, atol=1e-6)


@pytest.mark.slow
def test_a_snapshot_of_single_precision_goes_on_in_it():
    data = make_tensor_subspaces(60, 20, 6, 4, 60, outliers=0.15, random_state=0)
    assert data.X.size > 200_000  # else all is in double precision
    options = {"lam": Lambda.auto(1.0), "tol": 1e-6}
    _, first, _, continued = stopped_and_continued(data.X, options)
    assert first.kept.arrays[0].dtype == np.complex64
    assert continued.certificate.gap <= 1e-6
    assert continued.L.dtype == np.float64


def test_a_snapshot_is_a_copy():
    X, options = problem("coordinates")
    with pytest.raises(Stop), watch(first := Recorder(stop_at=12)):
        solve(X, **options)
    before = [A.copy() for A in first.kept.arrays]
    with watch(Recorder(start=first.kept)):
        solve(X, **options)
    for old, new in zip(before, first.kept.arrays, strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_snapshot_of_another_problem_is_refused():
    X, options = problem("coordinates")
    with pytest.raises(Stop), watch(first := Recorder(stop_at=3)):
        solve(X, **options)
    with (
        pytest.raises(ValueError, match="snapshot is of another problem"),
        watch(Recorder(start=first.kept)),
    ):
        solve(X[:-1], **options)


def test_the_watcher_hears_of_everything():
    X, _ = problem("original")
    recorder = Recorder()
    with watch(recorder):
        fitted = make("TNN+OR-TLRR-DFT", 3, random_state=0, solver="certified").fit(X)
    assert recorder.heard == [
        "complete",
        ("published", 1e-8, 800),
        "end",
        "represent",
        ("certified", 1e-4, 10_000),
        "end",
        "detect outliers",
        "cluster",
    ]
    assert recorder.checks[-len(fitted.solution_.history) :] == list(fitted.solution_.history)


def test_watching_ends_with_the_block_and_changes_nothing():
    X, options = problem("coordinates")
    alone = solve(X, **options)
    with pytest.raises(Stop), watch(Recorder(stop_at=1)):
        solve(X, **options)
    assert type(watching()) is Watcher
    with watch(Watcher()):
        watched = solve(X, **options)
    np.testing.assert_array_equal(alone.L, watched.L)
