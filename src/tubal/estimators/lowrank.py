"""The convex family as estimators: rows of one table (see `docs/architecture.md`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tubal import noise as noises
from tubal import transforms
from tubal.estimators.base import joined, on_cpu
from tubal.estimators.clusterer import SubspaceClusterer
from tubal.estimators.model import TensorModel, check_contamination, is_auto, with_holes
from tubal.graph import MultiScale
from tubal.input import Samples, check_flag, device_of, namespace, read, to_numpy
from tubal.outliers import contamination_threshold
from tubal.problem import Lambda
from tubal.representation import (
    Representation,
    RowSpace,
    Ties,
    TubeKernel,
    TubeModuli,
    hat,
)
from tubal.solvers import Check, Extension, Solution, check_options, check_scale, solve

DICTIONARIES = ("data", "clean", "trpca", "identity")
"""Names of dictionaries."""


class LowRankModel(TensorModel):
    """Represents samples by `min_Z ||Z||_* + lam g(X - D * Z)`.

    Subclasses have the parameters `transform`, `lam`, `dictionary`, `noise`, `vectorize`, `solver`,
    `tol`, `max_iter` and `callback`, or fix them as class attributes.
    """

    noise: Any = "l21"
    vectorize: bool = False

    def _settings(self) -> dict[str, Any]:
        return {"noise": self.noise, "vectorize": self.vectorize, **super()._settings()}

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        super()._check_model()
        check_flag("vectorize", self.vectorize)
        noises.resolve(self.noise)
        _check_name(self._frozen.transform)
        _check_dictionary(self._frozen.dictionary)
        check_options(
            lam=_resolve_auto(self.lam),
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            n_jobs=self.n_jobs,
        )

    def _represent(self, samples: Samples, step: Callable[[Check], bool]) -> Representation:
        """Solve the convex program."""
        frozen = self._frozen
        noise = noises.resolve(frozen.noise)
        solution = solve(
            with_holes(replace(samples, table=False)),
            dictionary=self._atoms(samples),
            noise=noise,
            transform=self._plan(),
            lam=_resolve_auto(frozen.lam),
            solver=frozen.solver,
            tol=frozen.tol,
            max_iter=frozen.max_iter,
            callback=joined(frozen.callback, step),
            n_jobs=frozen.n_jobs,
        )
        # The state is as large as the data, and of use to warm starts only.
        self.solution_ = replace(solution, state=None)
        self.certificate_, self.lam_ = solution.certificate, solution.lam
        self.n_iter_ = solution.n_iter
        self._new = _NewSamples(self.solution_, noise)
        samples = on_cpu(samples)
        L, E = to_numpy(solution.L), to_numpy(solution.E)
        coefficients, kernel = self._ties(L)
        twins, transform = np.arange(samples.n_samples), solution.Z.transform
        return Representation(samples, L, E, coefficients, kernel, twins, transform)

    def _extend(self, samples: Samples, twins: np.ndarray) -> Representation:
        """Explain further samples by the solution."""
        check_scale(samples, small=True)
        new = self._new.extension.apply(samples, n_jobs=self._frozen.n_jobs)
        kernel, coefficients = self._fitted.similarity, self._fitted.coefficients
        if new.core is None:
            core = hat(self.solution_.Z.transform, new.L)
            ties = coefficients.extended(new.L)
        else:
            core = new.core
            ties = coefficients.extended(new.core)
        fitted = self._fitted
        similar = kernel.extended(core)
        return Representation(samples, new.L, new.E, ties, similar, twins, fitted.transform, fitted)

    def _ties(self, L: np.ndarray) -> tuple[Ties, Ties]:
        """Return moduli of coefficients and similarities of the samples of the fit.

        For a given dictionary, whose coefficients are not between samples, the symmetric version
        of the coefficients takes their place (see `TubeKernel`).
        """
        Z = self.solution_.Z
        if self._is_identity:  # coefficients are the recovered samples themselves
            return RowSpace.of(L), TubeKernel.of(Z.transform, hat(Z.transform, L))
        kernel = TubeKernel.of(Z.transform, to_numpy(Z.core))
        source = Z if self._of_the_samples else kernel
        return TubeModuli(source, to_numpy(Z.core), Z.transform, len(L)), kernel

    @property
    def _of_the_samples(self) -> bool:
        """Whether the samples of the fit themselves are the dictionary."""
        first = self._has_dictionary("clean") and "_clean" not in self.__dict__
        return first or self._has_dictionary("data") or self._has_dictionary("trpca")

    @property
    def _is_identity(self) -> bool:
        return self._has_dictionary("identity")

    def _arranged(self, samples: Samples) -> Samples:
        """Turn samples to vectors for the matrix methods."""
        if not self._frozen.vectorize:
            return samples
        xp, n = namespace(samples.values), samples.n_samples
        observed = samples.observed
        return Samples(
            xp.reshape(samples.values, (n, -1, 1)),
            None if observed is None else xp.reshape(observed, (n, -1, 1)),
            samples.table,
        )

    def _plan(self) -> Any:
        """Return the transform of the program."""
        if self._frozen.vectorize:
            return "none"
        return "dft" if is_auto(self._frozen.transform) else self._frozen.transform

    def _represents_again(self) -> bool:
        """Take the samples that are no outliers for the dictionary, when that was asked for."""
        if not self._has_dictionary("clean"):
            return False
        share = check_contamination(self._frozen.contamination)
        scores, level = self._detection.scores, self._detection.threshold
        kept = scores <= (level if share is None else contamination_threshold(scores, share))
        if kept.all() or not kept.any():
            return False
        self._clean = self._fitted.complete()[kept]
        return True

    def _has_dictionary(self, name: str) -> bool:
        dictionary = self._frozen.dictionary
        return isinstance(dictionary, str) and dictionary == name

    def _atoms(self, samples: Samples) -> Any:
        """Return the dictionary, a given one in the scale and shape of the samples."""
        dictionary = self._frozen.dictionary
        if self._has_dictionary("clean"):
            return self._clean_atoms(samples)
        if self._has_dictionary("trpca"):
            return self._trpca(samples)
        if isinstance(dictionary, str) or dictionary is None:
            return dictionary
        atoms = read(dictionary, name="dictionary", allow_missing=False, min_samples=1)
        shape = tuple(int(n) for n in atoms.restore(atoms.values).shape[1:])
        if shape != self.sample_shape_:  # as vectors they could have the same length
            msg = (
                f"dictionary holds samples of shape {shape}, X of shape {self.sample_shape_}; "
                "they must be the same"
            )
            raise ValueError(msg)
        return self._arranged(self._scale(atoms, "dictionary")[0]).values

    def _clean_atoms(self, samples: Samples) -> Any:
        """Return the samples that are no outliers, once they are known."""
        if "_clean" not in self.__dict__:
            return "data"
        like = samples.values
        return namespace(like).asarray(self._clean, dtype=like.dtype, device=device_of(like))

    def _trpca(self, samples: Samples) -> Any:
        """Return the samples without outlying entries, as tensor robust PCA sees them."""
        solution = solve(
            with_holes(replace(samples, table=False)),
            dictionary="identity",
            noise="l1",
            transform=self._plan(),
            lam=Lambda.entries(),
            tol=1e-3,
            callback=self._frozen.callback,
            n_jobs=self._frozen.n_jobs,
        )
        return solution.L


@dataclass(frozen=True, eq=False)
class _NewSamples:
    """What explains new samples, made when the first ones come."""

    solution: Solution
    noise: noises.Noise

    @cached_property
    def extension(self) -> Extension:
        return Extension.of(self.solution, self.noise)


def _check_dictionary(dictionary: Any) -> None:
    """Refuse unknown names before any work; arrays are read beside the samples."""
    if isinstance(dictionary, str) and dictionary not in DICTIONARIES:
        names = ", ".join(map(repr, DICTIONARIES))
        msg = f"dictionary must be {names} or an array, got {dictionary!r}"
        raise ValueError(msg)


def _check_name(transform: Any) -> None:
    """Refuse unknown names of transforms before any work; the rest needs the size of the data."""
    if not isinstance(transform, str) or is_auto(transform):
        return
    try:
        transforms.resolve(transform)
    except ValueError as error:
        msg = f"{error}; or 'auto'"
        raise ValueError(msg) from None


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
    dictionary : {"data", "clean", "trpca", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by; "identity" gives robust PCA. See `ORTLRR`.
    noise : {"l21", "l1"} or Noise
        Outlying samples, or outlying entries.
    vectorize : bool
        Whether samples become vectors first: the matrix methods (R-PCA, OR-PCA, LRR).
    transform, lam, solver, normalize, completion, outliers, contamination, graph, partition, \
    random_state, n_jobs, tol, max_iter, callback
        As in `ORTLRR`, which also tells the attributes.
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

    Solves `min_Z ||Z||_* + lam ||X - D * Z||_{2,1}` under the t-product, on the observed entries
    (OR-TLRR, and OR-TLRR-EWZF for missing ones), and proves how close to the optimum it came;
    scores outliers; and cuts the graph of the representation.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    transform : str, matrix or Transform
        Of the t-product: "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`. The
        name "rom" stands for one fixed random matrix; `RandomOrthogonal(seed)` chooses another.
        "auto" solves under the DFT, and chooses the transform under which the kept samples are then
        compared: DFT or DCT with either axis of a sample in the place of n1, one made from the
        data, or samples as vectors (for tables: vectors or distances); see `tubal.selection`. With
        another graph than `MultiScale`, or one that has a view, there is nothing to choose and
        "auto" is the DFT.
    lam : "auto", float or Lambda
        Weight of the noise. "auto" is `Lambda.auto()`.
    dictionary : {"data", "clean", "trpca", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by: each other; each other, and then once more by those that
        are no outliers; each other after tensor robust PCA took outlying entries away; nothing; or
        given samples. "clean" and "trpca" cost a second solve, and were no better on the sets of
        `docs/quality.md`.
    solver : {"certified", "published"}, Certified or Published
    outliers : {"auto", "published"}, None or Detector
        How outliers are scored and found; None keeps every sample. See `tubal.outliers`.
    contamination : "auto" or float in [0, 0.5]
        Share of samples to flag; "auto" leaves it to the detector.
    graph : {"auto", "multiscale", "nearest", "published", "scaled"} or Graph
        How samples are tied to each other; see `tubal.graph`. "auto" is "multiscale" here.
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
        Fills missing entries in a step of its own: "tnn" by tensor-nuclear-norm completion
        (`TensorCompleter`), a transformer in its own way. None leaves them to the program, which
        needs no such step.

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
    embedding_ : array of shape `(n_samples, n_clusters_)`
        Eigenvectors of the graph; NaN for outliers.
    eigenvalues_ : array
        Smallest eigenvalues of the normalised Laplacian.
    selection_ : Selection
        What `transform="auto"` or a graph with an open number of neighbours chose, the
        alternatives and how sure the choice is; only when there was a choice.
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

    _auto_graph = MultiScale()

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        transform: Any = "auto",
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
