"""Completion as a transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin

from tubal.estimators.base import (
    TensorEstimator,
    fits,
    joined,
    on_cpu,
    with_transform_parameter,
)
from tubal.estimators.known import Known
from tubal.estimators.model import with_holes
from tubal.input import Samples, to_numpy
from tubal.noise import Exact
from tubal.solvers import Certificate, Check, Extension, Solution, check_options, solve
from tubal.transforms import resolve


@with_transform_parameter
class TensorCompleter(TransformerMixin, TensorEstimator):  # type: ignore[misc]
    """Fills missing entries by the tensor of the smallest nuclear norm (TNN completion).

    `min_L ||L||_*` such that L equals X on the observed entries.

    Parameters
    ----------
    transform : str, matrix or Transform
        Of the t-product: "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`.
    solver : {"certified", "published"}, Certified or Published
    tol : float or None
        Relative duality gap at which the solver stops; None takes the default of the solver.
    max_iter : int or None
        Limit of the solver; None takes its default.
    n_jobs : int or None
        Threads; None or -1: as many as BLAS may have.
    callback : callable or None
        Called with a `Check` now and then while solving; returning True stops the solver.

    Attributes
    ----------
    solution_ : Solution or None
        None when nothing was missing in the fit.
    certificate_ : Certificate or None
    n_iter_ : int
        Iterations of the solver, at least 1.
    n_features_in_ : int
    sample_shape_ : tuple of int

    References
    ----------
    C. Lu, J. Feng, Z. Lin, S. Yan, "Exact low tubal rank tensor recovery from Gaussian
    measurements", IJCAI 2018. C. Lu, X. Peng, Y. Wei, "Low-rank tensor completion with a new tensor
    nuclear norm induced by invertible linear transforms", CVPR 2019.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(30, 8, 1, 2, 40, outliers=0, missing=0.1, random_state=0)
    >>> filled = TensorCompleter().fit_transform(data.X)
    >>> bool(np.abs(filled - data.clean).max() < 1e-3)
    True
    """

    def __init__(
        self,
        *,
        transform: Any = "dft",
        solver: Any = "certified",
        tol: float | None = 1e-5,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Check], Any] | None = None,
    ) -> None:
        self.transform = transform  # type: ignore[method-assign]
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.callback = callback

    @fits
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the low-rank tensor behind the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n1), (n_samples, n1, n3) or with more trailing axes
            Samples first; NaN marks a missing entry.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._complete(self._read(X, reset=True))
        return self

    @fits
    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return X with its missing entries filled."""
        self._complete(self._read(X, reset=True))
        return self._completed.copy()

    def _complete(self, samples: Samples) -> None:
        """Fill the samples of a fit, and keep them."""
        L = self._fit(samples)
        samples = on_cpu(samples)
        self._known = Known.of(samples)
        self._observed, self._completed = samples.observed, _filled(samples, L)

    def _inputs(self) -> np.ndarray:
        """Return the samples of the fit, with NaN where an entry was missing."""
        if self._observed is None:
            return self._completed
        return np.where(self._observed.reshape(self._completed.shape), self._completed, np.nan)

    def transform(self, X: Any) -> np.ndarray:
        """Return samples with their missing entries filled; observed ones stay as they are.

        Samples of the fit are filled as they were there.

        Parameters
        ----------
        X : array-like of shape (m, ...)
            New samples or those of the fit.

        Returns
        -------
        array in the shape of X
        """
        self._check_fitted()
        samples = on_cpu(self._read(X, reset=False))
        twins = self._known.find(samples, self._observed)
        L = np.empty_like(samples.values)
        old, new = twins >= 0, twins < 0
        L[old] = self._completed[twins[old]].reshape(-1, *L.shape[1:])
        if new.any():
            L[new] = self._extension.apply(samples.part(new), tol=1e-6).L
        return _filled(samples, L)

    def _fit(self, samples: Samples) -> np.ndarray:
        """Solve, when there is something to fill; return the low-rank tensor."""
        check_options(
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            n_jobs=self.n_jobs,
        )
        with self._progress(stages=1) as progress, progress.stage("complete", steps=True) as step:
            if samples.observed is None:
                return self._fit_complete(on_cpu(samples))
            solution = solve(
                with_holes(replace(samples, table=False)),
                dictionary="identity",
                noise="exact",
                transform=self._frozen.transform,
                lam=None,
                solver=self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=joined(self.callback, step),
                n_jobs=self.n_jobs,
            )
        # The state is as large as the data, and of use to warm starts only.
        self.solution_: Solution | None = replace(solution, state=None)
        self.certificate_: Certificate | None = solution.certificate
        self.n_iter_ = max(1, solution.n_iter)
        L = to_numpy(solution.L)
        self._extension = Extension.of_samples(solution.Z.transform, L, Exact(), 1.0)
        return L

    def _fit_complete(self, samples: Samples) -> np.ndarray:
        """Keep complete samples as they are."""
        plan = resolve(self._frozen.transform, samples.sizes, data=samples.values, random_state=0)
        self.solution_, self.certificate_, self.n_iter_ = None, None, 1
        self._extension = Extension.of_samples(plan, samples.values, Exact(), 1.0)
        return samples.values


def _filled(samples: Samples, L: np.ndarray) -> np.ndarray:
    """Return samples with entries of L where they had none, in the layout of the user."""
    values = (
        samples.values
        if samples.observed is None
        else np.where(samples.observed, samples.values, L)
    )
    return np.array(samples.restore(values))
