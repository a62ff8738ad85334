"""The convex family as estimators: rows of one table (see `docs/architecture.md`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tubal import noise as noises
from tubal.estimators.base import joined, on_cpu
from tubal.estimators.clusterer import SubspaceClusterer
from tubal.estimators.model import TensorModel, with_holes
from tubal.input import Samples, namespace, read, to_numpy
from tubal.problem import Lambda
from tubal.representation import (
    Representation,
    RowSpace,
    Ties,
    TubeKernel,
    TubeModuli,
    hat,
)
from tubal.solvers import Check, Extension, Solution, solve


class LowRankModel(TensorModel):
    """Represents samples by `min_Z ||Z||_* + lam g(X - D * Z)`.

    Subclasses have the parameters `transform`, `lam`, `dictionary`, `noise`, `vectorize`, `solver`,
    `tol`, `max_iter` and `callback`, or fix them as class attributes.
    """

    noise: Any = "l21"
    vectorize: bool = False

    def _represent(self, samples: Samples, step: Callable[[Check], bool]) -> Representation:
        """Solve the convex program."""
        samples = self._arranged(samples)
        noise = noises.resolve(self.noise)
        self.solution_ = replace(
            solve(
                with_holes(replace(samples, table=False)),
                dictionary=self._atoms(),
                noise=noise,
                transform="none" if self.vectorize else self._plan,
                lam=_resolve_auto(self.lam),
                solver=self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=joined(self.callback, step),
                n_jobs=self.n_jobs,
            ),
            state=None,  # as large as the data, and of use to warm starts only
        )
        self.certificate_, self.lam_ = self.solution_.certificate, self.solution_.lam
        self.n_iter_ = self.solution_.n_iter
        self._new = _NewSamples(self.solution_, noise)
        samples = on_cpu(samples)
        L, E = to_numpy(self.solution_.L), to_numpy(self.solution_.E)
        core = None if self._is_identity else to_numpy(self.solution_.Z.core)
        return self._representation(samples, L, E, core, np.arange(samples.n_samples))

    def _extend(self, samples: Samples, twins: np.ndarray) -> Representation:
        """Explain further samples by the solution."""
        samples = self._arranged(samples)
        new = self._new.extension.apply(samples)
        return self._representation(samples, new.L, new.E, new.core, twins, new=True)

    def _representation(
        self,
        samples: Samples,
        L: np.ndarray,
        E: np.ndarray,
        core: np.ndarray | None,
        twins: np.ndarray,
        new: bool = False,
    ) -> Representation:
        transform = self.solution_.Z.transform
        coefficients: Ties
        if core is None:  # the identity: coefficients are the recovered samples themselves
            fitted = to_numpy(self.solution_.L)
            kernel = TubeKernel.of(
                transform, hat(transform, fitted), hat(transform, L) if new else None
            )
            coefficients = RowSpace.of(fitted, L if new else None)
        else:
            kernel = TubeKernel.of(
                transform, to_numpy(self.solution_.Z.core), core if new else None
            )
            own = isinstance(self.dictionary, str)
            left = to_numpy(self.solution_.Z.left) if own else kernel.left
            coefficients = TubeModuli(left, core, transform)
        return Representation(samples, L, E, coefficients, kernel, twins)

    @property
    def _is_identity(self) -> bool:
        return isinstance(self.dictionary, str) and self.dictionary == "identity"

    def _arranged(self, samples: Samples) -> Samples:
        """Turn samples to vectors for the matrix methods."""
        if not self.vectorize:
            return samples
        xp, n = namespace(samples.values), samples.n_samples
        observed = samples.observed
        return Samples(
            xp.reshape(samples.values, (n, -1, 1)),
            None if observed is None else xp.reshape(observed, (n, -1, 1)),
            samples.table,
        )

    def _atoms(self) -> Any:
        """Return the dictionary, a given one in the scale and shape of the samples."""
        if isinstance(self.dictionary, str) or self.dictionary is None:
            return self.dictionary
        atoms = read(self.dictionary, name="dictionary", allow_missing=False, min_samples=1)
        return self._arranged(self._scale(atoms)[0]).values


@dataclass(frozen=True, eq=False)
class _NewSamples:
    """What explains new samples, made when the first ones come."""

    solution: Solution
    noise: noises.Noise

    @cached_property
    def extension(self) -> Extension:
        return Extension.of(self.solution, self.noise)


def _resolve_auto(lam: Any) -> Any:
    return Lambda.auto() if isinstance(lam, str) and lam == "auto" else lam


class LowRankClusterer(LowRankModel, SubspaceClusterer):
    """Clustering by any program of the family `min_Z ||Z||_* + lam g(X - D * Z)`.

    Every convex method of the literature that the paper compares is a setting of this class; see
    `tubal.make`, which knows their published parameters.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    dictionary : {"data", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by: each other, nothing (robust PCA), or given samples.
    noise : {"l21", "l1"} or Noise
        Outlying samples, or outlying entries.
    vectorize : bool
        Whether samples become vectors first: the matrix methods (R-PCA, OR-PCA, LRR).
    transform : str, matrix or Transform
        Of the t-product: "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`.
    lam : "auto", float or Lambda
        Weight of the noise.
    solver : {"certified", "published"}, Certified or Published
    normalize : bool
        Whether samples are brought to unit norm first. Recovered samples have their own norm again.
    completion : None, "tnn" or a transformer
        Fills missing entries in a step of its own; None leaves them to the program, which needs no
        such step.
    outliers : {"auto", "published"}, None or Detector
        How outliers are scored and found; None keeps every sample. See `tubal.outliers`.
    contamination : "auto" or float in [0, 0.5]
        Share of samples to flag; "auto" leaves it to the detector.
    graph : {"auto", "published"} or Graph
        How samples are tied to each other; see `tubal.graph`.
    partition : {"auto", "published"} or Cut
        How the graph is cut; see `tubal.spectral`.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None or -1: as many as BLAS may have.
    tol : float or None
        Of the solver: relative duality gap (certified), largest residual (published); None takes
        the default of the solver.
    max_iter : int or None
        Limit of the solver; None takes its default.
    callback : callable or None
        Called with a `Check` now and then while solving; returning True stops the solver.

    Attributes
    ----------
    labels_ : int array of shape (n_samples,)
        Clusters 0, 1, ...; -1 marks outliers.
    outliers_ : bool array of shape (n_samples,)
    outlier_scores_ : array of shape (n_samples,)
        High for outliers.
    threshold_, offset_ : float
        Samples with an outlier score above `threshold_` are outliers; `offset_` is its negative.
    X_clean_ : array in the shape of X
        The part of the data that the model explains, also where entries were missing.
    n_clusters_ : int
    n_clusters_confidence_ : float
        1 for a given number; else between 0 and 1, see `tubal.spectral.estimate_n_clusters`.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The graph; rows of outliers are empty.
    embedding_ : array of shape (n_samples, n_clusters_)
        Eigenvectors of the graph; NaN for outliers.
    eigenvalues_ : array
        Smallest eigenvalues of the normalised Laplacian.
    solution_ : Solution
        Of the convex program, in the scale of the normalised samples.
    certificate_ : Certificate
        Bounds on the optimal value.
    lam_ : float
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Size of the second axis of X.
    sample_shape_ : tuple of int
        Shape of one sample.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        dictionary: Any = "data",
        noise: Any = "l21",
        vectorize: bool = False,
        transform: Any = "dft",
        lam: Any = "auto",
        solver: Any = "certified",
        normalize: bool = True,
        completion: Any = None,
        outliers: Any = "auto",
        contamination: float | str = "auto",
        graph: Any = "auto",
        partition: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float | None = 1e-4,
        max_iter: int | None = None,
        callback: Callable[[Check], Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.dictionary = dictionary
        self.noise = noise
        self.vectorize = vectorize
        self.transform = transform  # type: ignore[method-assign]
        self.lam = lam
        self.solver = solver
        self.normalize = normalize
        self.completion = completion
        self.outliers = outliers
        self.contamination = contamination
        self.graph = graph
        self.partition = partition
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback


class ORTLRR(LowRankModel, SubspaceClusterer):
    """Outlier-robust tensor low-rank representation: clusters, outliers and clean data at once.

    Solves `min_Z ||Z||_* + lam ||X - D * Z||_{2,1}` under the t-product with a proof of optimality,
    on the observed entries (OR-TLRR, and OR-TLRR-EWZF for missing ones), scores outliers, and cuts
    the graph of the representation.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    transform : str, matrix or Transform
        Of the t-product: "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`.
    lam : "auto", float or Lambda
        Weight of the noise. "auto" is `Lambda.auto()`.
    dictionary : {"data", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by: each other, nothing, or given samples.
    solver : {"certified", "published"}, Certified or Published
    outliers : {"auto", "published"}, None or Detector
        How outliers are scored and found; None keeps every sample. See `tubal.outliers`.
    contamination : "auto" or float in [0, 0.5]
        Share of samples to flag; "auto" leaves it to the detector.
    graph : {"auto", "published"} or Graph
        How samples are tied to each other; see `tubal.graph`.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None or -1: as many as BLAS may have.
    tol : float or None
        Relative duality gap at which the solver stops; None takes the default of the solver.
    max_iter : int or None
        Limit of the solver; None takes its default.
    callback : callable or None
        Called with a `Check` now and then while solving; returning True stops the solver.
    partition : {"auto", "published"} or Cut
        How the graph is cut; see `tubal.spectral`.
    normalize : bool
        Whether samples are brought to unit norm first. Recovered samples have their own norm again.
    completion : None, "tnn" or a transformer
        Fills missing entries in a step of its own; None leaves them to the program, which needs no
        such step.

    Attributes
    ----------
    labels_ : int array of shape (n_samples,)
        Clusters 0, 1, ...; -1 marks outliers.
    outliers_ : bool array of shape (n_samples,)
    outlier_scores_ : array of shape (n_samples,)
        High for outliers.
    threshold_, offset_ : float
        Samples with an outlier score above `threshold_` are outliers; `offset_` is its negative.
    X_clean_ : array in the shape of X
        The part of the data that the model explains, also where entries were missing.
    n_clusters_ : int
    n_clusters_confidence_ : float
        1 for a given number; else between 0 and 1, see `tubal.spectral.estimate_n_clusters`.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The graph; rows of outliers are empty.
    embedding_ : array of shape (n_samples, n_clusters_)
        Eigenvectors of the graph; NaN for outliers.
    eigenvalues_ : array
        Smallest eigenvalues of the normalised Laplacian.
    solution_ : Solution
        Of the convex program, in the scale of the normalised samples.
    certificate_ : Certificate
        Bounds on the optimal value.
    lam_ : float
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Size of the second axis of X.
    sample_shape_ : tuple of int
        Shape of one sample.

    References
    ----------
    T. Wu, "Robust data clustering with outliers via transformed tensor low-rank representation",
    AISTATS 2024.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(30, 10, 4, 3, 40, outliers=0.15, random_state=0)
    >>> est = ORTLRR(n_clusters=4, random_state=0).fit(data.X)
    >>> bool(np.array_equal(est.outliers_, data.outliers)), est.certificate_.gap <= 1e-4
    (True, True)
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        transform: Any = "dft",
        lam: Any = "auto",
        dictionary: Any = "data",
        solver: Any = "certified",
        outliers: Any = "auto",
        contamination: float | str = "auto",
        graph: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float | None = 1e-4,
        max_iter: int | None = None,
        callback: Callable[[Check], Any] | None = None,
        partition: Any = "auto",
        normalize: bool = True,
        completion: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.transform = transform  # type: ignore[method-assign]
        self.lam = lam
        self.dictionary = dictionary
        self.solver = solver
        self.outliers = outliers
        self.contamination = contamination
        self.graph = graph
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.partition = partition
        self.normalize = normalize
        self.completion = completion
