"""Working sets of directions: the restricted program, and the way back to the whole one."""

import numpy as np
import pytest

from tubal import solve
from tubal.datasets import make_tensor_subspaces
from tubal.problem import Lambda
from tubal.solvers import Certified, certified, leading, watch
from tubal.solvers.entry import prepare
from tubal.solvers.leading import Leading
from tubal.solvers.watching import Watcher

WHOLE = Certified(leading_first=False)


def fading(n=60, n1=40, n3=1, seed=0, outliers=6):
    """Samples in few directions with a long tail behind them, and some samples of noise."""
    rng = np.random.default_rng(seed)
    fall = 0.6 ** np.arange(n1)
    X = np.einsum("ij,jnk->nik", rng.standard_normal((n1, n1)), rng.standard_normal((n1, n, n3))
                  * fall[:, None, None])  # fmt: skip
    X[:outliers] += rng.standard_normal((outliers, n1, n3)) * X.std()
    return X / np.linalg.norm(X, axis=(1, 2), keepdims=True)


def problem_of(X, transform="dft"):
    return prepare(X, "data", "l21", transform, None).problem


def lead(X, transform="dft", rank=3.0):
    problem = problem_of(X, transform)
    lam = Lambda.effective_rank(rank).of(problem)
    return Leading.of(problem, problem.theta_of_lam(lam)), lam


@pytest.fixture(params=[False, True], ids=["double", "single first"])
def single(request, monkeypatch):
    """Small problems in double precision, or first in single precision as large ones are."""
    if request.param:
        monkeypatch.setattr(certified, "SINGLE_SIZE", 1)
    return request.param


@pytest.mark.parametrize("n3", [1, 4])
@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-8])
def test_the_same_optimum(n3, tol, single):
    X = fading(n3=n3)
    found, lam = lead(X)
    assert 1 <= found.count < 0.6 * 40
    few, whole = (solve(X, lam=lam, tol=tol, solver=s) for s in (Certified(), WHOLE))
    for solution in (few, whole):
        assert solution.certificate.gap <= tol
        assert solution.certificate.dual <= min(few.certificate.primal, whole.certificate.primal)
    np.testing.assert_allclose(few.certificate.primal, whole.certificate.primal, rtol=2 * tol)
    np.testing.assert_allclose(few.L + few.E, X, atol=30 * tol**0.5)


def test_the_value_is_that_of_the_whole_program():
    """The certificate is checked by the definition: norms of Z and of what it leaves."""
    X = fading(n3=3)
    _, lam = lead(X)
    solution = solve(X, lam=lam, tol=1e-6)
    Z = solution.Z.to_array()
    hat = np.fft.fft(Z, axis=2)
    nuclear = sum(np.linalg.svd(hat[:, :, k], compute_uv=False).sum() for k in range(3)) / 3
    left = np.linalg.norm(X - solution.L, axis=(1, 2)).sum()
    assert nuclear + lam * left == pytest.approx(solution.certificate.primal, rel=1e-9)


def test_zeros_are_exact(monkeypatch):
    """Samples that are explained have no noise at all, however few directions come first."""
    data = make_tensor_subspaces(30, 6, 3, 2, 30, outliers=0.1, random_state=0)
    problem = problem_of(data.X)
    lam = Lambda.relative(0.5).of(problem)
    theta, r = problem.theta_of_lam(lam), problem.reduction.shape[1]
    monkeypatch.setattr(leading, "LEAST", 1)
    monkeypatch.setattr(leading, "SHARE", np.sort(problem.curvature.max(axis=0))[r // 2] / theta)
    assert 1 < Leading.of(problem, theta).count <= r // 2 + 1
    few, whole = (solve(data.X, lam=lam, tol=1e-6, solver=s) for s in (Certified(), WHOLE))
    odd = np.linalg.norm(few.E, axis=(1, 2)) > 0
    assert 0 < odd.sum() < len(data.X)
    np.testing.assert_array_equal(odd, np.linalg.norm(whole.E, axis=(1, 2)) > 0)


class TestRestriction:
    def test_offsets_hold_the_rest(self):
        X = fading(n3=4)
        found, _ = lead(X)
        whole, few = found.whole.reduction, found.problem.reduction
        assert few.x.shape == (3, found.count, 60)
        weights = whole.omega[:, None, None]
        every = np.sqrt((weights * np.abs(whole.x) ** 2).sum(axis=(0, 1)))
        inside = np.sqrt((weights * np.abs(few.x) ** 2).sum(axis=(0, 1)))
        np.testing.assert_allclose(np.hypot(inside, few.offset), every)
        np.testing.assert_allclose(every, 1)

    def test_which_directions_lead(self, monkeypatch):
        monkeypatch.setattr(leading, "MOST", 1.0)
        problem = problem_of(fading(n3=4))
        for theta in (1e-6, 1e-3, 0.1):
            found = Leading.of(problem, theta)
            expected = max((row > 0.1 * theta).sum() for row in problem.curvature)
            assert found.count == max(1, expected)
        assert Leading.of(problem, 1e9).count == 1

    def test_not_where_it_does_not_pay(self):
        X = fading()
        problem = problem_of(X)
        assert Leading.of(problem, 1e-30) is None  # all directions
        assert Leading.of(problem_of(X[:, :15]), 0.1) is None  # few of them
        for dictionary, noise in (("data", "l1"), ("identity", "l21"), (X[:9], "l21")):
            other = prepare(X, dictionary, noise, "dft", None).problem
            assert Leading.of(other, 0.1) is None
        holes = X.copy()
        holes[0, 0] = np.nan
        assert Leading.of(problem_of(holes), 0.1) is None

    def test_continued_states(self):
        X = fading(n3=4)
        found, lam = lead(X)
        rng = np.random.default_rng(0)
        J, Y = (rng.standard_normal(found.problem.reduction.x.shape) + 0j for _ in range(2))
        whole = found.whole.reduction
        coefficients, multiplier = found.lifted((J, Y), lam)
        np.testing.assert_array_equal(coefficients[:, : found.count], J)
        np.testing.assert_array_equal(multiplier[:, : found.count], Y)
        assert not coefficients[:, found.count :].any()
        residual = whole.x - whole.s[..., None] * coefficients
        size = np.sqrt((whole.omega[:, None, None] * np.abs(residual) ** 2).sum(axis=(0, 1)))
        expected = lam * residual / size
        np.testing.assert_allclose(
            multiplier[:, found.count :], expected[:, found.count :], atol=1e-12
        )
        assert found.holds((coefficients, multiplier))
        coefficients[0, -1, 0] = 1
        assert not found.holds((coefficients, multiplier))

    def test_samples_without_content(self):
        X = fading()
        X[3] = 0
        _, lam = lead(X)
        solution = solve(X, lam=lam)
        assert np.isfinite(solution.L).all()
        assert not solution.E[3].any()


class Stopper(Watcher):
    """Stops a run after some iterations, or goes on from there."""

    def __init__(self, after=None, snapshot=None):
        self.after, self.given, self.taken = after, snapshot, None

    def begin(self, solver, tol, max_iter):
        return self.given

    def iteration(self, n_iter, snapshot):
        if n_iter == self.after:
            self.taken = snapshot()
            raise InterruptedError


@pytest.mark.parametrize("after", [3, 40])
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(after, single):
    X = fading(n3=4)
    found, lam = lead(X)
    options = {"lam": lam, "tol": 1e-9}
    straight = solve(X, **options)
    assert straight.n_iter > after
    stopper = Stopper(after)
    with pytest.raises(InterruptedError), watch(stopper):
        solve(X, **options)
    assert stopper.taken.arrays[0].shape == straight.Z.core.shape
    assert found.holds(stopper.taken.arrays) == (after == 3)
    with watch(Stopper(snapshot=stopper.taken)):
        again = solve(X, **options)
    assert abs(again.n_iter - straight.n_iter) <= 10  # certificates come at other iterations
    np.testing.assert_allclose(again.L, straight.L, atol=1e-6)


def test_single_precision_is_left_where_it_leads_nowhere(single):
    """Samples that differ from their mean by a hundred thousandth of it."""
    rng = np.random.default_rng(0)
    low = rng.standard_normal((120, 4)) @ rng.standard_normal((4, 40))
    X = (1 + 1e-5 * low + 1e-7 * rng.standard_normal((120, 40)))[..., None]
    X /= np.linalg.norm(X, axis=(1, 2), keepdims=True)
    _, lam = lead(X)
    solution = solve(X, lam=lam)
    assert solution.certificate.gap <= 1e-4
    assert solution.n_iter < 400


def test_a_warm_start_is_taken_as_it_is():
    X = fading(n3=4)
    _, lam = lead(X)
    first = solve(X, lam=lam, tol=1e-6)
    again = solve(X, lam=lam, tol=1e-6, warm_start=first)
    assert again.n_iter <= first.n_iter
    assert again.certificate.gap <= 1e-6


def test_a_limit_of_iterations_ends_it():
    X = fading(n3=4)
    _, lam = lead(X)
    with pytest.warns(match="stopped after 4 iterations"):
        solution = solve(X, lam=lam, tol=1e-9, max_iter=4)
    assert solution.n_iter == 4
    assert np.isfinite(solution.certificate.gap)
