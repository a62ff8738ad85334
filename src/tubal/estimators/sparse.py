"""Methods that represent each sample by the others, as estimators: SSC, SSC-OMP, EnSC and LSR."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tubal.estimators.base import on_cpu
from tubal.estimators.clusterer import SubspaceClusterer
from tubal.input import Samples, check_count, check_flag, check_positive
from tubal.representation import Moduli, Representation, SparseTable, Ties
from tubal.solvers import Check, check_scale
from tubal.sparse import RidgeRepresentation, SparseRepresentation, ensc, lsr, ssc, ssc_omp
from tubal.sparse.ensc import check_l1_ratio

Codes = SparseRepresentation | RidgeRepresentation


class SelfExpressive(SubspaceClusterer):
    """Represents each sample, as a vector, by the others."""

    @abstractmethod
    def _codes(self, X: np.ndarray, **queries: Any) -> Codes:
        """Represent samples by the other samples, or queries by samples."""

    def _represent(
        self, samples: Samples, sizes: np.ndarray, step: Callable[[Check], bool]
    ) -> Representation:
        """Find the coefficients of the samples of a fit."""
        samples = on_cpu(samples)
        self._check_complete(samples)
        check_scale(_in_double(samples))
        self.solution_ = self._codes(_vectors(samples))
        self.n_iter_ = max(1, self.solution_.n_iter)
        return _representation(samples, samples, self.solution_, np.arange(samples.n_samples))

    def _extend(self, samples: Samples, sizes: np.ndarray, twins: np.ndarray) -> Representation:
        """Represent further samples by those of the fit."""
        self._check_complete(samples)
        check_scale(_in_double(samples), small=True)
        fitted = self._fitted.samples
        codes = self._codes(_vectors(fitted), queries=_vectors(samples), twins=twins)
        return _representation(fitted, samples, codes, twins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    def _check_complete(self, samples: Samples) -> None:
        if samples.observed is not None:
            msg = (
                f"X has missing entries (NaN), which {type(self).__name__} cannot leave out: "
                "set completion='tnn' to fill those of a fit first, or use ORTLRR"
            )
            raise ValueError(msg)


def _in_double(samples: Samples) -> Samples:
    """Return samples in the precision in which they are represented."""
    return replace(samples, values=samples.values.astype(float, copy=False))


def _vectors(samples: Samples) -> np.ndarray:
    return samples.values.reshape(samples.n_samples, -1)


def _representation(
    fitted: Samples, samples: Samples, codes: Codes, twins: np.ndarray
) -> Representation:
    """Bring coefficients of samples on those of the fit to what the later rooms read."""
    shape = samples.values.shape
    if isinstance(codes, SparseRepresentation):
        explained = codes.coefficients @ _vectors(fitted)
        ties: list[Ties] = [SparseTable(codes.coefficients, unit) for unit in (False, True)]
    else:
        explained = _vectors(samples) - codes.E
        ties = [Moduli(codes, unit) for unit in (False, True)]
    return Representation(
        samples, explained.reshape(shape), codes.E.reshape(shape), ties[0], ties[1], twins
    )


class SSC(SelfExpressive):
    """Sparse subspace clustering (Elhamifar and Vidal), with its term for outlying entries.

    `min ||C||_1 + lam_e ||E||_1 + lam_z ||X - C X - E||_F^2 / 2` with an empty diagonal of C; see
    `tubal.sparse.ssc`.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    alpha : float
        `lam_z = alpha / mu_z`; larger fits closer.
    outlier_alpha : float or None
        `lam_e = outlier_alpha / mu_e`; None leaves the outlier term out.
    affine : bool
        Whether coefficients of a sample sum to one.
    normalize, completion, contamination, partition, random_state, n_jobs
        As in `ORTLRR`. Missing entries need `completion`.
    outliers : {"auto", "published"}, None or Detector
        As in `ORTLRR`; by default every sample is kept.
    graph : {"auto", "published", "scaled"} or Graph
        As in `ORTLRR`; "scaled" is that of the released code.
    tol : float
        Largest relative duality gap of a sample.
    max_iter : int
        Limit of Newton steps for a sample.

    Attributes
    ----------
    solution_ : SparseRepresentation
    labels_, outliers_, outlier_scores_, threshold_, offset_, X_clean_, n_clusters_,
    n_clusters_confidence_, affinity_, embedding_, eigenvalues_, n_iter_, n_features_in_,
    sample_shape_
        As in `ORTLRR`.

    References
    ----------
    E. Elhamifar, R. Vidal, "Sparse subspace clustering: algorithm, theory, and applications", IEEE
    TPAMI 35 (2013).

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(20, 1, 3, 2, 30, outliers=0, random_state=0)
    >>> est = SSC(n_clusters=3, random_state=0).fit(data.X)
    >>> [int(np.ptp(est.labels_[data.labels == k])) for k in range(3)]
    [0, 0, 0]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        alpha: float = 20.0,
        outlier_alpha: float | None = 20.0,
        affine: bool = False,
        normalize: bool = False,
        completion: Any = None,
        outliers: Any = None,
        contamination: float | str = "auto",
        graph: Any = "scaled",
        partition: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.outlier_alpha = outlier_alpha
        self.affine = affine
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

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        super()._check_model()
        check_positive("alpha", self.alpha)
        if self.outlier_alpha is not None:
            check_positive("outlier_alpha", self.outlier_alpha)
        check_flag("affine", self.affine)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)

    def _codes(self, X: np.ndarray, **queries: Any) -> SparseRepresentation:
        return ssc(
            X,
            **queries,
            alpha=self._frozen.alpha,
            outlier_alpha=self._frozen.outlier_alpha,
            affine=self._frozen.affine,
            tol=self._frozen.tol,
            max_iter=self._frozen.max_iter,
            n_jobs=self._frozen.n_jobs,
        )


class SSCOMP(SelfExpressive):
    """Sparse subspace clustering by orthogonal matching pursuit (You, Robinson and Vidal).

    See `tubal.sparse.ssc_omp`.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    n_nonzero : int
        Largest number of samples that represent one.
    tol : float
        A sample is represented when the squared residual, relative to the sample, is below it.
    normalize, completion, contamination, partition, random_state, n_jobs
        As in `ORTLRR`. Missing entries need `completion`.
    outliers : {"auto", "published"}, None or Detector
        As in `ORTLRR`; by default every sample is kept.
    graph : {"auto", "published", "scaled"} or Graph
        As in `ORTLRR`; "scaled" is that of the released code.

    Attributes
    ----------
    solution_ : SparseRepresentation
    labels_, outliers_, outlier_scores_, threshold_, offset_, X_clean_, n_clusters_,
    n_clusters_confidence_, affinity_, embedding_, eigenvalues_, n_iter_, n_features_in_,
    sample_shape_
        As in `ORTLRR`.

    References
    ----------
    C. You, D. Robinson, R. Vidal, "Scalable sparse subspace clustering by orthogonal matching
    pursuit", CVPR 2016.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(40, 1, 3, 5, 60, outliers=0, random_state=0)
    >>> est = SSCOMP(n_clusters=3, random_state=0).fit(data.X)
    >>> [int(np.ptp(est.labels_[data.labels == k])) for k in range(3)]
    [0, 0, 0]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_nonzero: int = 10,
        tol: float = 1e-6,
        normalize: bool = False,
        completion: Any = None,
        outliers: Any = None,
        contamination: float | str = "auto",
        graph: Any = "scaled",
        partition: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_nonzero = n_nonzero
        self.tol = tol
        self.normalize = normalize
        self.completion = completion
        self.outliers = outliers
        self.contamination = contamination
        self.graph = graph
        self.partition = partition
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _codes(self, X: np.ndarray, **queries: Any) -> SparseRepresentation:
        return ssc_omp(
            X,
            **queries,
            n_nonzero=self._frozen.n_nonzero,
            tol=self._frozen.tol,
            n_jobs=self._frozen.n_jobs,
        )


class EnSC(SelfExpressive):
    """Elastic net subspace clustering (You, Li, Robinson and Vidal).

    `min l1_ratio ||c||_1 + (1 - l1_ratio) / 2 ||c||^2 + gamma_j / 2 ||x_j - X^T c||^2` for each
    sample x_j, without itself; see `tubal.sparse.ensc`.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    alpha : float
        `gamma_j` is `alpha` times the largest value for which sample j has no coefficients; larger
        fits closer.
    l1_ratio : float
        Share of the first term, above 0 and at most 1. Less gives more coefficients to each sample.
    normalize, completion, contamination, partition, random_state, n_jobs
        As in `ORTLRR`. Missing entries need `completion`.
    outliers : {"auto", "published"}, None or Detector
        As in `ORTLRR`; by default every sample is kept.
    graph : {"auto", "published", "scaled"} or Graph
        As in `ORTLRR`; "scaled" divides the coefficients of a sample by the largest one.
    tol : float
        Largest relative duality gap of a sample.
    max_iter : int
        Limit of Newton steps for a sample.

    Attributes
    ----------
    solution_ : SparseRepresentation
    labels_, outliers_, outlier_scores_, threshold_, offset_, X_clean_, n_clusters_,
    n_clusters_confidence_, affinity_, embedding_, eigenvalues_, n_iter_, n_features_in_,
    sample_shape_
        As in `ORTLRR`.

    References
    ----------
    C. You, C.-G. Li, D. Robinson, R. Vidal, "Oracle based active set algorithm for scalable elastic
    net subspace clustering", CVPR 2016.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(20, 1, 3, 2, 30, outliers=0, random_state=0)
    >>> est = EnSC(n_clusters=3, random_state=0).fit(data.X)
    >>> [int(np.ptp(est.labels_[data.labels == k])) for k in range(3)]
    [0, 0, 0]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        alpha: float = 50.0,
        l1_ratio: float = 0.95,
        normalize: bool = True,
        completion: Any = None,
        outliers: Any = None,
        contamination: float | str = "auto",
        graph: Any = "scaled",
        partition: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.l1_ratio = l1_ratio
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

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        super()._check_model()
        check_positive("alpha", self.alpha)
        check_l1_ratio(self.l1_ratio)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)

    def _codes(self, X: np.ndarray, **queries: Any) -> SparseRepresentation:
        return ensc(
            X,
            **queries,
            alpha=self._frozen.alpha,
            l1_ratio=self._frozen.l1_ratio,
            normalize=False,  # done by the model, where it was asked for
            tol=self._frozen.tol,
            max_iter=self._frozen.max_iter,
            n_jobs=self._frozen.n_jobs,
        )


class LSR(SelfExpressive):
    """Subspace segmentation by least squares regression (Lu and others).

    `min ||X - Z X||_F^2 + weight ||Z||_F^2` with an empty diagonal of Z, in closed form; see
    `tubal.sparse.lsr`.

    Parameters
    ----------
    n_clusters : int or None
        Number of clusters; None estimates it from the spectrum of the graph.
    weight : float
        Weight of the squared coefficients; smaller fits closer.
    exclude_self : bool
        Whether a sample may not represent itself (LSR1 of the paper). Otherwise it may (LSR2), and
        the diagonal is left out afterwards.
    normalize, completion, contamination, partition, random_state, n_jobs
        As in `ORTLRR`. Missing entries need `completion`.
    outliers : {"auto", "published"}, None or Detector
        As in `ORTLRR`; by default every sample is kept.
    graph : {"auto", "published", "scaled"} or Graph
        As in `ORTLRR`; "published" is `(|Z| + |Z|^T) / 2`, as in the paper.

    Attributes
    ----------
    solution_ : RidgeRepresentation
    labels_, outliers_, outlier_scores_, threshold_, offset_, X_clean_, n_clusters_,
    n_clusters_confidence_, affinity_, embedding_, eigenvalues_, n_iter_, n_features_in_,
    sample_shape_
        As in `ORTLRR`.

    References
    ----------
    C.-Y. Lu, H. Min, Z.-Q. Zhao, L. Zhu, D.-S. Huang, S. Yan, "Robust and efficient subspace
    segmentation via least squares regression", ECCV 2012.

    Examples
    --------
    >>> from tubal.datasets import make_tensor_subspaces
    >>> data = make_tensor_subspaces(20, 1, 3, 2, 30, outliers=0, random_state=0)
    >>> est = LSR(n_clusters=3, random_state=0).fit(data.X)
    >>> [int(np.ptp(est.labels_[data.labels == k])) for k in range(3)]
    [0, 0, 0]
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weight: float = 1e-3,
        exclude_self: bool = True,
        normalize: bool = True,
        completion: Any = None,
        outliers: Any = None,
        contamination: float | str = "auto",
        graph: Any = "published",
        partition: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weight = weight
        self.exclude_self = exclude_self
        self.normalize = normalize
        self.completion = completion
        self.outliers = outliers
        self.contamination = contamination
        self.graph = graph
        self.partition = partition
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_model(self) -> None:
        """Check what does not depend on the data."""
        super()._check_model()
        check_positive("weight", self.weight)
        check_flag("exclude_self", self.exclude_self)

    def _codes(self, X: np.ndarray, **queries: Any) -> RidgeRepresentation:
        return lsr(
            X,
            **queries,
            weight=self._frozen.weight,
            exclude_self=self._frozen.exclude_self,
            normalize=False,  # done by the model, where it was asked for
            n_jobs=self._frozen.n_jobs,
        )
