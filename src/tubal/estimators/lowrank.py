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
from tubal.estimators.model import TensorModel, is_auto, with_holes
from tubal.graph import AllPairs, Nearest
from tubal.graph import resolve as resolve_graph
from tubal.input import Samples, check_flag, read, to_numpy
from tubal.problem import Lambda
from tubal.representation import (
    Representation,
    RowSpace,
    Ties,
    TubeKernel,
    TubeModuli,
    hat,
)
from tubal.selection import DEFAULTS, Selection, open_views, select
from tubal.similarity import Shrunken, View
from tubal.solvers import (
    Check,
    Extension,
    Solution,
    Watcher,
    check_options,
    check_scale,
    solve,
    watch,
)

DICTIONARIES = ("data", "identity")
"""Names of dictionaries."""


class LowRankModel(TensorModel):
    """Represents samples by `min_Z ||Z||_* + lam g(X - D * Z)`.

    Subclasses have the parameters `transform`, `lam`, `dictionary`, `noise`, `vectorize`, `solver`,
    `tol`, `max_iter` and `callback`, or fix them as class attributes.
    """

    noise: Any = "l21"
    vectorize: bool = False
    selection_: Selection
    _view: View
    _lam: Any

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
            lam=Lambda.auto() if is_auto(self.lam) else self.lam,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
            n_jobs=self.n_jobs,
        )

    def _represent(
        self, samples: Samples, sizes: np.ndarray, step: Callable[[Check], bool]
    ) -> Representation:
        """Solve the convex program."""
        frozen = self._frozen
        noise = noises.resolve(frozen.noise)
        if not self._view.is_linear:
            samples = on_cpu(samples)
            self._view = self._view.fit(samples.values, sizes)
        solution = solve(
            with_holes(replace(self._arranged(samples, sizes), table=False)),
            dictionary=self._atoms(),
            noise=noise,
            transform=self._view.transform,
            lam=self._lam,
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
        if "selection_" in self.__dict__ and is_auto(frozen.lam):
            self.selection_ = replace(self.selection_, lam=solution.lam)
        self._new = _NewSamples(self.solution_, noise)
        samples = on_cpu(samples)
        L, E = to_numpy(solution.L), to_numpy(solution.E)
        coefficients, similarity = self._ties(L)
        L, E = self._restored(samples, samples, L, E, to_numpy(solution.Z.core))
        twins, transform = np.arange(samples.n_samples), solution.Z.transform
        return Representation(samples, L, E, coefficients, similarity, twins, transform)

    def _extend(self, samples: Samples, sizes: np.ndarray, twins: np.ndarray) -> Representation:
        """Explain further samples by the solution."""
        check_scale(samples, small=True)
        new = self._new.extension.apply(self._arranged(samples, sizes), n_jobs=self._frozen.n_jobs)
        fitted, identity = self._fitted, new.core is None
        core = hat(self.solution_.Z.transform, new.L) if new.core is None else new.core
        ties = fitted.coefficients.extended(new.L if identity else core)
        L, E = self._restored(fitted.samples, samples, new.L, new.E, core)
        similar = fitted.similarity.extended(core)
        return Representation(samples, L, E, ties, similar, twins, fitted.transform, fitted)

    def _restored(
        self, fitted: Samples, samples: Samples, L: np.ndarray, E: np.ndarray, core: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return explained part and noise in the layout of the samples.

        Features of a kernel have none. There samples are combined as their features are.
        """
        shape = samples.values.shape[1:]
        if self._view.is_linear:
            return self._view.restore(L, shape), self._view.restore(E, shape)
        left = to_numpy(self.solution_.Z.left)[0]
        combined = core[0].T @ (left.T @ fitted.values.reshape(len(left), -1))
        L = combined.reshape(samples.values.shape)
        return L, samples.values - L

    def _ties(self, L: np.ndarray) -> tuple[Ties, Ties]:
        """Return moduli of coefficients and similarities of the samples of the fit.

        For a given dictionary, whose coefficients are not between samples, the symmetric version
        of the coefficients takes their place (see `TubeKernel`).
        """
        Z = self.solution_.Z
        if self._is_identity:  # coefficients are the recovered samples themselves
            return RowSpace.of(L), TubeKernel.of(Z.transform, hat(Z.transform, L))
        core = to_numpy(Z.core)
        if self._has_dictionary("data"):
            similarity = Shrunken.of_coefficients(Z.transform, core)
            return TubeModuli(Z, core, Z.transform, len(L)), similarity
        kernel = TubeKernel.of(Z.transform, core)
        return TubeModuli(kernel, core, Z.transform, len(L)), kernel

    @property
    def _is_identity(self) -> bool:
        return self._has_dictionary("identity")

    def _choose(self, samples: Samples, sizes: np.ndarray, n_clusters: int | None) -> None:
        """Take the transform and the weight of the noise as they were given."""
        frozen = self._frozen
        name = "dft" if is_auto(frozen.transform) else frozen.transform
        self._view = View("none", None) if frozen.vectorize else View(name)
        self._lam = Lambda.auto() if is_auto(frozen.lam) else frozen.lam

    def _arranged(self, samples: Samples, sizes: np.ndarray) -> Samples:
        """Return samples in the arrangement that the program sees."""
        observed = samples.observed
        if observed is not None and not self._view.is_linear:
            return self._usual_where_missing(samples, sizes)
        return Samples(
            self._view.arrange(samples.values, sizes),
            None if observed is None else self._view.arrange(observed, sizes),
            samples.table,
        )

    def _usual_where_missing(self, samples: Samples, sizes: np.ndarray) -> Samples:
        """Return features of new rows of a table; the median of the fit stands for what is missing.

        A Gaussian kernel is chosen for complete tables only.
        """
        fitted = self._fitted.samples.values * self._sizes[:, None, None]
        given = samples.values * sizes[:, None, None]
        seen = np.asarray(samples.observed)
        whole = np.where(seen, given, np.median(fitted, axis=0))
        return Samples(self._view.arrange(whole, np.ones(len(whole))), None, samples.table)

    def _has_dictionary(self, name: str) -> bool:
        dictionary = self._frozen.dictionary
        return isinstance(dictionary, str) and dictionary == name

    def _atoms(self) -> Any:
        """Return the dictionary, a given one in the scale and shape of the samples."""
        dictionary = self._frozen.dictionary
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
        return self._arranged(*self._scale(atoms, "dictionary")).values


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


class LowRankClusterer(LowRankModel, SubspaceClusterer):
    """Clustering by any program of the family `min_Z ||Z||_* + lam g(X - D * Z)`.

    Every convex method of the literature that the paper compares is a setting of this class; see
    `tubal.make`, which knows their published parameters.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    dictionary : {"data", "identity"} or array-like of shape (p, n1, n3)
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

    Chooses transform, axis, level of `lam` and graph from the data, where they are "auto"; solves
    `min_Z ||Z||_* + lam ||X - D * Z||_{2,1}` under the t-product, on the observed entries (OR-TLRR,
    and OR-TLRR-EWZF for missing ones), with a certificate of the distance to the optimum; scores
    outliers by its solution; and cuts the graph of its coefficients. All attributes belong to the
    choice that `selection_` names.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it, see `tubal.spectral.count_beyond_chance`. Where
        nothing is chosen from the data, it is estimated from the spectrum of the graph.
    transform : str, matrix or Transform
        Of the t-product: "dft", "dct", "rom", "data", "none"; see `tubal.transforms.resolve`. The
        name "rom" stands for one fixed random matrix; `RandomOrthogonal(seed)` chooses another.
        "auto" chooses between DFT and DCT with either of the first two axes of a sample in the
        place of n1, and samples as vectors (with a graph of all pairs). Rows of tables are vectors
        or, where nothing is missing, features of a Gaussian kernel. See `tubal.selection`. With
        another dictionary than "data", or a graph other than "auto", `Nearest` and `AllPairs`,
        nothing is chosen: "auto" is the DFT.
    lam : "auto", float or Lambda
        Weight of the noise. "auto" is `Lambda.auto(level)` with a level chosen from the data;
        where nothing is chosen, `Lambda.auto()`.
    dictionary : {"data", "identity"} or array-like of shape (p, n1, n3)
        What samples are represented by: each other; nothing, which is robust PCA; or given samples.
    solver : {"certified", "published"}, Certified or Published
    outliers : {"auto", "published"}, None or Detector
        How outliers are scored and found; None keeps every sample. See `tubal.outliers`.
    contamination : "auto" or float in [0, 0.5]
        Share of samples to flag; "auto" leaves it to the detector.
    false_alarms : float
        Share of the inliers that may be flagged when `contamination` and `outliers` are "auto".
    graph : {"auto", "nearest", "all pairs", "published", "scaled"} or Graph
        How the affinity is built from the coefficients; see `tubal.graph`. "auto" chooses between
        "nearest" and "all pairs".
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
        Clusters 0, 1, ...; -1 marks outliers, samples that belong to none.
    nearest_cluster_ : int array of shape (n_samples,)
        As `labels_`; for outliers the cluster that they would belong to.
    membership_ : array of shape (n_samples,)
        How well each sample fits its `nearest_cluster_`, from 0 to 1: the share of its graph weight
        that leads there, reduced for samples of little weight.
    outliers_ : bool array of shape (n_samples,)
    damaged_ : bool array of shape (n_samples,)
        Samples with an unusually large residual whose explained part is like that of inliers. They
        are not outliers and keep their label.
    outlier_scores_ : array of shape (n_samples,)
        High for outliers.
    threshold_, offset_ : float
        Samples with an outlier score above `threshold_` are outliers; `offset_` is its negative.
    X_clean_ : array in the shape of X
        The part of the data that the model explains, also where entries were missing.
    residuals_ : array in the shape of X
        `X - X_clean_`; NaN where entries are missing.
    n_clusters_ : int
    n_clusters_confidence_ : float
        1 for a given number; else between 0 and 1, see `tubal.spectral.count_beyond_chance`.
    n_clusters_candidates_ : dict of int to float
        Plausible numbers of clusters, the answer first, and their shares of the support.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The graph; rows of outliers are empty.
    embedding_ : array of shape `(n_samples, n_clusters_)`
        Eigenvectors of the graph; NaN for outliers.
    eigenvalues_ : array
        Smallest eigenvalues of the normalised Laplacian.
    selection_ : Selection
        The choice of transform, axis, level and graph, the alternatives, and the stability of the
        clusters (`confidence`); only when something was left open.
    solution_ : Solution
        Of the convex program, in the scale and the arrangement of the samples that were chosen.
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

    def _choose(self, samples: Samples, sizes: np.ndarray, n_clusters: int | None) -> None:
        """Choose transform, axis, level and graph, where they are open, by `tubal.selection`."""
        super()._choose(samples, sizes, n_clusters)
        frozen = self._frozen
        asked = resolve_graph(frozen.graph)
        open_graph = is_auto(frozen.graph)
        readable = open_graph or isinstance(asked, (Nearest, AllPairs))
        open_view, open_lam = is_auto(frozen.transform), is_auto(frozen.lam)
        if not (
            readable and self._has_dictionary("data") and (open_view or open_lam or open_graph)
        ):
            return
        samples = on_cpu(samples)
        views = [self._view]
        if open_view:
            shape = samples.values.shape[1:]
            views = open_views(shape, samples.table, samples.observed is None)
        self.selection_ = select(
            self._filled(samples, sizes),
            sizes,
            views,
            graph=None if open_graph else asked,
            levels=DEFAULTS.levels if open_lam else (DEFAULTS.middle_level,),
            false_alarms=None if frozen.outliers is None else frozen.false_alarms,
            n_clusters=n_clusters,
            random_state=self._seed,
            n_jobs=frozen.n_jobs,
        )
        self._view = self.selection_.view
        self._lam = Lambda.auto(self.selection_.level) if open_lam else frozen.lam

    def _filled(self, samples: Samples, sizes: np.ndarray) -> np.ndarray:
        """Return complete samples to look at: missing entries as a first solve explains them."""
        if samples.observed is None:
            return samples.values
        arranged = replace(self._arranged(samples, sizes), table=False)
        with watch(Watcher()):
            first = solve(
                with_holes(arranged),
                transform=self._view.transform,
                lam=Lambda.auto(),
                tol=1e-2,
                n_jobs=self._frozen.n_jobs,
            )
        explained = self._view.restore(to_numpy(first.L), samples.values.shape[1:])
        return np.where(samples.observed, samples.values, explained)

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
        false_alarms: float = 0.01,
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
        self.false_alarms = false_alarms
        self.graph = graph
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.partition = partition
        self.normalize = normalize
        self.completion = completion
