"""The experiments of the paper, as data.

An experiment is a table: settings (a data set and how a draw of it is made), methods, and what is
measured. Everything random in a draw comes from its seed. What the paper leaves open is decided
here and said beside the decision; `docs/reproduction.md` tells what other readings give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tubal import datasets, metrics
from tubal.algebra import project_columns, tsvd, tubal_rank
from tubal.bench.shared import Figures, Shared, fit_once
from tubal.estimators import SubspaceClusterer, TensorOutlierDetector, find
from tubal.estimators.catalogue import NAMES
from tubal.estimators.model import seed_from
from tubal.input import from_paper, to_paper
from tubal.problem import Lambda
from tubal.solvers import Published
from tubal.spectral import Assignment, KMeansRows, embed, partition, resolve_cut
from tubal.transforms import RandomOrthogonal, resolve

CERTIFIED = ", certified"
"""Ends the name of a method whose program is solved to the optimum."""
CERTIFIED_GAP = 1e-3
"""Relative duality gap of certified rows of pictures; the one reached stands in the row."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """One draw of a data set.

    Attributes
    ----------
    X : array, samples first, NaN where missing
    labels : int array
        -1 for outliers.
    clean : array or None
        What is known of the truth: synthetic data without outliers, pictures without holes.
    transform : object or None
        The transform under which synthetic data was made.
    """

    X: np.ndarray
    labels: np.ndarray
    clean: np.ndarray | None = None
    transform: Any = None


@dataclass(frozen=True)
class Setting:
    """A column of a table: a data set, drawn in one way.

    Attributes
    ----------
    dataset, name : str
        As in the published values.
    draw : callable
        Returns a `Drawn` for a seed.
    overrides : mapping
        Parameters of the estimators that belong to the setting.
    fixed : bool
        Whether all draws have the same data, so that only the cut is random.
    dictionary : callable or None
        Returns the dictionary for a draw and the transform of a method; None: that of the method.
    """

    dataset: str
    name: str
    draw: Callable[[int], Drawn]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    fixed: bool = False
    dictionary: Callable[[Drawn, Any], np.ndarray | None] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table of the paper.

    Attributes
    ----------
    name : str
    settings : tuple of Setting
    methods : tuple of str
    measure : callable
        Fits a method to a draw; returns the figures of the solver and the metrics.
    draws : int
        How many the paper took, where it says so.
    """

    name: str
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    measure: Callable[[str, Setting, Drawn, int, int | None], tuple[Figures, dict[str, float]]]
    draws: int

    def all_methods(self) -> tuple[str, ...]:
        """Return the methods, each convex one also with the certified solver."""
        convex = [name for name in self.methods if not name.removeprefix("TNN+").startswith("SSC")]
        return (*self.methods, *(name + CERTIFIED for name in convex))


def estimator(
    method: str, n_clusters: int | None, overrides: Mapping[str, Any], seed: int, n_jobs: int | None
) -> SubspaceClusterer:
    """Return the estimator of a row: published parameters, or the certified solver."""
    options: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, **overrides}
    if method.endswith(CERTIFIED):
        options |= {"solver": "certified", "tol": CERTIFIED_GAP}
    named = find(method.removesuffix(CERTIFIED))
    if named.settings["completion"] is not None:
        filler = clone(named.settings["completion"]).set_params(n_jobs=n_jobs)
        if method.endswith(CERTIFIED):
            filler.set_params(solver="certified", tol=CERTIFIED_GAP)
        options["completion"] = Shared(filler)
    return named.make(n_clusters, **options)


def cluster(
    method: str, setting: Setting, drawn: Drawn, seed: int, n_jobs: int | None
) -> tuple[Figures, dict[str, float]]:
    """Fit, and score clusters (and outliers, when there are any) against the truth.

    The paper does not say which Ncut code it runs. The labels are those of the discretisation; what
    k-means on the same eigenvectors gives stands beside it ("ACC_kmeans" and so on).
    """
    n_clusters = len(np.unique(drawn.labels[drawn.labels >= 0]))
    est = estimator(method, n_clusters, setting.overrides, seed, n_jobs)
    if setting.dictionary is not None:
        est.set_params(dictionary=setting.dictionary(drawn, est.get_params()["transform"]))
    cut = resolve_cut(est.partition)
    fit = fit_once(est, drawn.X, setting.fixed)
    kept = ~fit.outliers
    W = fit.affinity[kept][:, kept]
    embedding = embed(W, n_clusters, offset=cut.offset, random_state=seed)

    def scored(assign: Assignment, random_state: int) -> dict[str, float]:
        labels = np.full(len(kept), -1)
        labels[kept] = partition(embedding, n_clusters, W, assign=assign, random_state=random_state)
        return _agreement(drawn.labels, labels)

    found = scored(cut.assign, seed_from(seed))
    found |= {f"{name}_kmeans": value for name, value in scored(KMeansRows(), seed).items()}
    found["removed"] = float(fit.outliers.sum())
    outliers = drawn.labels == -1
    if outliers.any():
        # From the scores; from the decision, which has only two values, beside it.
        found["AUC"] = metrics.outlier_auc(outliers, fit.scores)
        found["AUC_decision"] = metrics.outlier_auc(outliers, fit.outliers.astype(float))
        found["F1"] = metrics.outlier_f1(outliers, fit.outliers)
    return fit.figures, found


def _agreement(truth: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        "ACC": metrics.clustering_accuracy(truth, labels),
        "NMI": metrics.nmi(truth, labels),
        "PUR": metrics.purity(truth, labels),
    }


def recover(
    method: str, setting: Setting, drawn: Drawn, seed: int, n_jobs: int | None
) -> tuple[Figures, dict[str, float]]:
    """Solve, and measure what the tables of synthetic data show.

    As the released code computes it: ranks and row spaces of what is left when the found outliers
    are removed, and the mean over normal samples of the squared relative error. The relative error
    as the heading of the table defines it stands beside it.
    """
    settings = find(method.removesuffix(CERTIFIED)).settings
    certified = method.endswith(CERTIFIED)
    est = TensorOutlierDetector(
        transform=drawn.transform,
        lam=setting.overrides["lam"],
        solver="certified" if certified else settings["solver"],
        tol=1e-5 if certified else None,
        outliers="published",
        normalize=False,
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(drawn.X)
    outliers = drawn.labels == -1
    found = {"hamming": float(metrics.support_distance(outliers, est.outliers_))}
    if drawn.clean is not None:
        found |= _recovery(est, drawn, drawn.clean, ~outliers)
    return Figures.of(est), found


def _recovery(
    est: TensorOutlierDetector, drawn: Drawn, clean: np.ndarray, normal: np.ndarray
) -> dict[str, float]:
    L = est.X_clean_
    plan = resolve(drawn.transform, clean.shape[2])
    rank = tubal_rank(to_paper(clean), plan)
    Z = est.solution_.Z
    ratios = np.linalg.norm((L - clean)[normal], axis=(1, 2)) / np.linalg.norm(
        clean[normal], axis=(1, 2)
    )
    return {
        "tubal_rank": float(tubal_rank(to_paper(drawn.X[~est.outliers_]), plan)),
        "row_space_error": metrics.row_space_error(clean, Z, plan, keep=normal, rank=rank),
        "relative_error": float(np.mean(ratios**2)),
        "relative_error_norm": metrics.relative_error(clean, L, normal),
    }


def draw_synthetic(
    seed: int, *, n1: int, rho: float, transform: str, missing: float = 0.0
) -> Drawn:
    """Draw the paper's synthetic problem: 5 subspaces of rank 0.1 n1, n1 samples each, n3 = 100."""
    plan = RandomOrthogonal(seed) if transform == "rom" else transform
    data = datasets.make_tensor_subspaces(
        n1,
        100,
        5,
        n1 // 10,
        n1,
        outliers=rho,
        missing=missing,
        transform=plan,
        random_state=seed,
    )
    clean = None if missing else data.clean
    return Drawn(data.X, data.labels, clean, plan)


def draw_images(
    seed: int,
    *,
    name: str,
    outliers: int = 0,
    missing: float = 0.0,
    noisy: float = 0.0,
    variance: float = 0.0,
    shift: int = 0,
    per_class: int | None = None,
    turned: bool = False,
    largest: float = 1.0,
    exact: bool = False,
) -> Drawn:
    """Draw from an image set, pixels in [0, 1], rows of a picture as n1.

    Parameters
    ----------
    outliers : int
        Pictures of MIRFLICKR to add.
    missing : float
        Share of missing pixels.
    noisy, variance : float
        Share of noisy pictures, and the energy of the noise relative to that of its picture: the
        paper's "variance sigma^2 ||X_j||^2", read as that of the whole picture.
    shift : int
        Pictures move to the left or to the right by so many pixels; zeros come in.
    per_class : int or None
        How many pictures of each class are drawn.
    turned : bool
        Whether columns of a picture become n1.
    largest : float
        White.
    exact : bool
        Whether pictures that were reconstructed are left out.
    """
    rng = np.random.default_rng(seed)
    data = datasets.load(name)
    X, labels = data.images / 255.0, np.asarray(data.labels, dtype=int)
    if exact:
        X, labels = X[data.exact], labels[data.exact]
    if per_class is not None:
        chosen = [rng.permutation(np.flatnonzero(labels == k))[:per_class] for k in range(10)]
        X, labels = X[np.concatenate(chosen)], labels[np.concatenate(chosen)]
    if shift:
        X = shifted(X, shift * rng.choice([-1, 1], len(X)))
    if noisy:
        X = with_noise(X, rng.permutation(len(X))[: round(noisy * len(X))], variance, rng)
    if outliers:
        junk = datasets.load("mirflickr").images
        X = np.concatenate([X, junk[rng.choice(len(junk), outliers, replace=False)] / 255.0])
        labels = np.concatenate([labels, np.full(outliers, -1)])
    clean = None
    if missing:
        clean = largest * (np.swapaxes(X, 1, 2) if turned else X)
        X = np.where(rng.random(X.shape) < missing, np.nan, X)
    X = np.swapaxes(X, 1, 2) if turned else X
    return Drawn(largest * X, labels, clean)


def without_holes(drawn: Drawn, transform: Any) -> np.ndarray | None:
    """Return the data as it is where entries are missing, which nobody has."""
    return drawn.clean


def truncated(drawn: Drawn, transform: Any, *, share: float) -> np.ndarray:
    """Return the data cut down to the tubal rank that it has above this share of its norm."""
    A = to_paper(drawn.X)
    return np.asarray(from_paper(project_columns(A, tsvd(A, transform, rtol=share).U, transform)))


def shifted(X: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Move each picture sideways by its own number of pixels; zeros come in.

    >>> shifted(np.array([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]]), np.array([1, -1]))[:, 0]
    array([[0., 1., 2.],
           [2., 3., 0.]])
    """
    out = np.zeros_like(X)
    for i, step in enumerate(steps):
        if step >= 0:
            out[i, :, step:] = X[i, :, : X.shape[2] - step]
        else:
            out[i, :, :step] = X[i, :, -step:]
    return out


def with_noise(
    X: np.ndarray, chosen: np.ndarray, variance: float, rng: np.random.Generator
) -> np.ndarray:
    """Add white noise to some pictures, with this share of the energy of each one."""
    X = X.copy()
    energy = np.sum(X[chosen] ** 2, axis=(1, 2), keepdims=True)
    size = np.sqrt(variance * energy / (X.shape[1] * X.shape[2]))
    X[chosen] += size * rng.standard_normal(X[chosen].shape)
    return X


def _synthetic(plan: str, alpha: float) -> Experiment:
    settings = tuple(
        Setting(
            "synthetic",
            f"n1={n1} rho={rho} alpha={alpha:g}",
            partial(draw_synthetic, n1=n1, rho=rho, transform=plan),
            {"lam": Lambda.paper(alpha)},
        )
        for rho in (0.2, 0.4)
        for n1 in (60, 100, 150)
    )
    return Experiment(f"synthetic-{plan}", settings, (f"OR-TLRR-{plan.upper()}",), recover, 20)


def _synthetic_missing() -> Experiment:
    alphas = {"dft": 2, "dct": 30, "rom": 30}
    settings = tuple(
        Setting(
            "synthetic",
            f"{plan} n1=60 rho={rho} missing={missing} alpha={alpha}",
            partial(draw_synthetic, n1=60, rho=rho, transform=plan, missing=missing),
            {"lam": Lambda.paper(alpha)},
        )
        for plan, alpha in alphas.items()
        for rho in (0.2, 0.4)
        for missing in (0.1, 0.2)
    )
    # One name for all: the transform is that of the data.
    return Experiment("synthetic-missing", settings, ("OR-TLRR-EWZF-DFT",), recover, 20)


def _images(name: str, **options: Any) -> Callable[[int], Drawn]:
    return partial(draw_images, name=name, **options)


# The columns of the tables; random transforms are for synthetic data.
PICTURES = tuple(name for name in NAMES if not name.endswith("ROM"))
MISSING = tuple(name for name in PICTURES if "TNN+" in name or "EWZF" in name)
COMPLETE = tuple(name for name in PICTURES if name not in MISSING)
CONVEX = tuple(name for name in COMPLETE if not name.startswith("SSC"))
KEEP = {"outliers": None}  # without outliers in the data, nothing is removed

ORL_COIL20 = Experiment(
    "orl-coil20",
    tuple(
        Setting(name, f"outliers={count}", _images(name, outliers=count))
        for name, count in (("orl", 100), ("coil20", 100), ("coil20", 200))
    ),
    CONVEX,
    cluster,
    20,
)


def _with_missing(name: str, counts: tuple[int, ...]) -> Experiment:
    settings = tuple(
        Setting(
            name,
            f"outliers={count} missing={share}",
            _images(name, outliers=count, missing=share),
        )
        for count in counts
        for share in (0.1, 0.2)
    )
    return Experiment(f"{name}-missing", settings, MISSING, cluster, 20)


UMIST_FRDUE = Experiment(
    "umist-frdue",
    tuple(
        Setting(name, "complete", _images(name), KEEP, fixed=True) for name in ("umist", "frdue")
    ),
    COMPLETE,
    cluster,
    1,
)
UMIST_FRDUE_MISSING = Experiment(
    "umist-frdue-missing",
    tuple(
        Setting(name, f"missing={share}", _images(name, missing=share), KEEP)
        for name in ("umist", "frdue")
        for share in (0.1, 0.2)
    ),
    MISSING,
    cluster,
    1,
)
UMIST_NOISY = Experiment(
    "umist-noisy",
    tuple(
        Setting("umist", f"noise={level}", _images("umist", noisy=0.2, variance=level), KEEP)
        for level in (0.1, 0.2, 0.3, 0.4)
    ),
    COMPLETE,
    cluster,
    10,
)
USPS_NOISY = Experiment(
    "usps-noisy",
    tuple(
        Setting(
            "usps",
            f"sampling_rate={rate} noise=0.2",
            _images("usps", per_class=100, shift=3, noisy=rate, variance=0.2),
            KEEP,
        )
        for rate in (0.3, 0.5, 0.7)
    ),
    COMPLETE,
    cluster,
    1,
)

# What the paper leaves open, read in other ways: for its own method, on one set with outliers and
# on one without.
READINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "beta0=1e-5 tol=1e-5 (as printed)": ({}, {"solver": Published(beta0=1e-5), "tol": 1e-5}),
    "columns as n1": ({"turned": True}, {}),
    "samples of unit norm": ({}, {"normalize": True}),
    "pixels from 0 to 255": ({"largest": 255.0}, {}),
    "nothing removed": ({}, KEEP),
}


SMALL_VALUES = 0.02
"""Singular values up to this share of the largest do not count for a truncated dictionary."""


def _readings() -> Experiment:
    bases: tuple[tuple[str, str, dict[str, int], Mapping[str, Any]], ...] = (
        ("orl", "outliers=100", {"outliers": 100}, {}),
        ("umist", "complete", {}, KEEP),
    )
    settings = [
        Setting(name, f"{what}: {reading}", _images(name, **options, **drawn), {**base, **changed})
        for name, what, options, base in bases
        for reading, (drawn, changed) in READINGS.items()
        if not (base and changed is KEEP)
    ]
    settings += [
        Setting(
            name,
            f"{what}: dictionary of its tubal rank above {SMALL_VALUES:.0%}",
            _images(name, **options),
            base,
            dictionary=partial(truncated, share=SMALL_VALUES),
        )
        for name, what, options, base in bases
    ]
    # 163 pictures of Umist are reconstructed from smaller ones: none of these are.
    settings += [
        Setting("umist", "complete: the 412 exact pictures", _images("umist", exact=True), KEEP),
        *(
            Setting(f"umist_{size}", "complete: none reconstructed", _images(f"umist_{size}"), KEEP)
            for size in ("28x23", "32x32")
        ),
    ]
    return Experiment("readings", tuple(settings), ("OR-TLRR-DFT", "OR-TLRR-DCT"), cluster, 1)


def _whole_dictionaries() -> Experiment:
    """With holes, and the dictionary of the data without them, which nobody has."""
    sets: tuple[tuple[str, dict[str, int], Mapping[str, Any]], ...] = (
        ("orl", {"outliers": 100}, {}),
        ("coil20", {"outliers": 100}, {}),
        ("umist", {}, KEEP),
        ("frdue", {}, KEEP),
    )
    settings = tuple(
        Setting(
            name,
            " ".join([*(f"{key}={value}" for key, value in drawn.items()), f"missing={share}"])
            + ": dictionary without holes",
            _images(name, missing=share, **drawn),
            base,
            dictionary=without_holes,
        )
        for name, drawn, base in sets
        for share in (0.1, 0.2)
    )
    methods = ("OR-TLRR-EWZF-DFT", "OR-TLRR-EWZF-DCT")
    return Experiment("readings-missing", settings, methods, cluster, 1)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        _synthetic("dft", 4),
        _synthetic("dct", 40),
        _synthetic("rom", 40),
        _synthetic_missing(),
        ORL_COIL20,
        _with_missing("orl", (100,)),
        _with_missing("coil20", (100, 200)),
        UMIST_FRDUE,
        UMIST_FRDUE_MISSING,
        UMIST_NOISY,
        USPS_NOISY,
        _readings(),
        _whole_dictionaries(),
    )
}
