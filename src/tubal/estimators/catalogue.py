"""The methods of the paper's tables, and two more, by name, each with its published parameters.

Every entry says where its values come from: "the paper" is T. Wu, "Robust data clustering with
outliers via transformed tensor low-rank representation", AISTATS 2024, whose section 6.2 says of
the competing methods that their parameters were "either tuned or selected as suggested in the
respective papers". Where a paper gives none, the released code of its authors decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tubal.estimators.clusterer import SubspaceClusterer
from tubal.estimators.completer import TensorCompleter
from tubal.estimators.lowrank import ORTLRR, LowRankClusterer
from tubal.estimators.sparse import LSR, SSC, SSCOMP, EnSC
from tubal.problem import Lambda
from tubal.solvers import Published


@dataclass(frozen=True)
class Method:
    """A method of the literature.

    Attributes
    ----------
    name : str
    estimator : type
        The class of the estimator.
    settings : mapping
        Its parameters, where they differ from the defaults.
    sources : mapping
        Where each of them comes from.
    """

    name: str
    estimator: type[SubspaceClusterer]
    settings: Mapping[str, Any]
    sources: Mapping[str, str] = field(repr=False)

    def make(self, n_clusters: int | None = None, **overrides: Any) -> SubspaceClusterer:
        """Return the estimator with these settings."""
        return self.estimator(n_clusters, **{**self.settings, **overrides})


# The decision of the paper (its section 6.2): 2-means on ||E_j||^2, the found outliers removed,
# |Z| as affinity, Ncut; on the data as it is.
DECISION = {
    "outliers": "published",
    "graph": "published",
    "partition": "published",
    "normalize": False,
    "completion": None,
}
DECISION_SOURCE = {
    "outliers": "the paper, section 6.2, for all methods",
    "graph": "the paper, section 4 for OR-TLRR and 6.2 for TRPCA and OR-TPCA; taken for the others",
    "partition": "the paper, section 6.2: Ncut; which code it does not say",
    "normalize": "the paper says nothing of scaling",
    "completion": "the paper, section 5: holes are part of the program; TNN+ fills them first",
}

# One schedule for the whole family (start 1e-4, growth 1.1, at most 1e8, tol 1e-8, 800 iterations).
# The released codes of the other methods differ from it in the limits (TRPCA: 1e10, 500
# iterations) or are older ones.
SCHEDULE: dict[str, Any] = {"solver": "published", "tol": None}
SCHEDULE_SOURCE = {
    "solver": "released code of OR-TLRR, taken for the others; the paper says beta0 = 1e-5",
    "tol": "released code of OR-TLRR (1e-8), taken for the others; the paper says 1e-5",
}

ROWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "R-PCA": (
        {"dictionary": "identity", "noise": "l1", "vectorize": True, "lam": Lambda.entries()},
        {"lam": "Candes, Li, Ma, Wright, Journal of the ACM 58 (2011), Theorem 1.1"},
    ),
    "OR-PCA": (
        {"dictionary": "identity", "noise": "l21", "vectorize": True, "lam": Lambda.samples()},
        {"lam": "Zhang, Lin, Zhang, Chang, AAAI 2015 (1 / sqrt(log n))"},
    ),
    "LRR": (
        {"dictionary": "data", "noise": "l21", "vectorize": True, "lam": 0.18},
        {"lam": "released code of Liu et al., IEEE TPAMI 35 (2013), on faces"},
    ),
    "TRPCA": (
        {"dictionary": "identity", "noise": "l1", "lam": Lambda.entries()},
        {"lam": "Lu et al., IEEE TPAMI 42 (2020) for the DFT; Lu, ICCV 2021 for others"},
    ),
    "OR-TPCA": (
        {
            "dictionary": "identity",
            "noise": "l21",
            "lam": Lambda.samples(),
            "solver": Published(beta0=1e-6),
        },
        {
            "lam": "Zhou, Feng, CVPR 2017 (1 / sqrt(log n2))",
            "solver": "released code of Zhou, Feng, CVPR 2017 (beta0 = 1e-6)",
        },
    ),
    "TLRR": (
        {"dictionary": "data", "noise": "l1", "lam": Lambda.entries()},
        {
            "lam": "released code of Zhou et al., IEEE TPAMI 43 (2021) for the DFT; for others the "
            "same rule with its scale (Yang et al., TNNLS 2022, give values for recovery only)"
        },
    ),
}

# alpha of `Lambda.paper` for the method of the paper.
ALPHA = {"DFT": 1.0, "DCT": 100.0, "ROM": 40.0}
ALPHA_SOURCE = {
    "DFT": "the paper, section 6.2 (real data); its synthetic tables take 4, with missing 2",
    "DCT": "the paper, section 6.2 (real data); its synthetic tables take 40, with missing 30",
    "ROM": "the paper, Table 3 (synthetic data); with missing entries it takes 30",
}

# Methods that represent each sample by the others: class, settings and sources.
SCALED = "coefficients over the largest of a sample"
SELF_EXPRESSIVE: dict[str, tuple[type[SubspaceClusterer], dict[str, Any], dict[str, str]]] = {
    "SSC": (
        SSC,
        {"alpha": 20.0, "outlier_alpha": 20.0, "affine": False, "graph": "scaled"},
        {
            **dict.fromkeys(
                ("alpha", "outlier_alpha", "affine"),
                "released code of Elhamifar, Vidal, IEEE TPAMI 35 (2013), on faces",
            ),
            "graph": f"released code of SSC: {SCALED}",
        },
    ),
    "SSC-OMP": (
        SSCOMP,
        {"n_nonzero": 10, "tol": 1e-6, "graph": "scaled"},
        {
            **dict.fromkeys(
                ("n_nonzero", "tol"), "released code of You, Robinson, Vidal, CVPR 2016"
            ),
            "graph": f"released code of SSC-OMP: {SCALED}",
        },
    ),
    "EnSC": (
        EnSC,
        {"alpha": 50.0, "l1_ratio": 0.95, "normalize": True, "graph": "scaled"},
        {
            "alpha": "released toolbox of You, Li, Robinson, Vidal, CVPR 2016: gamma = 50",
            "l1_ratio": "between 1, the default of that toolbox (the lasso), and its .9 for MNIST",
            "normalize": "so that l1_ratio means the same for all data",
            "graph": f"as for SSC-OMP, by the same authors: {SCALED}; their toolbox in Python "
            "divides by the Euclidean norm",
        },
    ),
    "LSR": (
        LSR,
        {"weight": 1e-3, "exclude_self": True, "normalize": True},
        {
            "weight": "released functions LSR1 and LSR2 of Lu et al., ECCV 2012",
            "exclude_self": "function LSR1 of Lu et al.: diag(Z) = 0, as in the methods beside it",
            "normalize": "so that weight means the same for all data; a comment in LSR1 and LSR2",
            "graph": "Lu et al., ECCV 2012: (|Z| + |Z^T|) / 2",
        },
    ),
}

# The names of the tables. Other combinations of the same parts are understood too.
NAMES = (
    "R-PCA",
    "OR-PCA",
    "LRR",
    "SSC",
    "SSC-OMP",
    "TRPCA-DFT",
    "TRPCA-DCT",
    "OR-TPCA",
    "TLRR-DFT",
    "TLRR-DCT",
    "OR-TLRR-DFT",
    "OR-TLRR-DCT",
    "OR-TLRR-ROM",
    "TNN+TRPCA-DFT",
    "TNN+TRPCA-DCT",
    "TNN+OR-TPCA-DFT",
    "TNN+TLRR-DFT",
    "TNN+TLRR-DCT",
    "TNN+OR-TLRR-DFT",
    "TNN+OR-TLRR-DCT",
    "TLRR-EWZF-DFT",
    "TLRR-EWZF-DCT",
    "OR-TLRR-EWZF-DFT",
    "OR-TLRR-EWZF-DCT",
    "OR-TLRR-EWZF-ROM",
)
# Others, not in the tables of the paper.
OTHERS = ("LSR", "EnSC")
TRANSFORMS = {"DFT": "dft", "DCT": "dct", "ROM": "rom"}


def methods() -> list[str]:
    """Return the names of the methods that `make` knows: those of the paper's tables, LSR and EnSC.

    "TNN+" fills missing entries first, in a step of its own; "EWZF" leaves them out of the program.
    Methods with outlying samples or entries in a convex program accept missing entries anyway.

    All of them remove what 2-means calls outliers, which is always something. For data without
    outliers, as in the paper's tables of Umist, FRDUE and USPS, pass `outliers=None`.

    >>> methods()[:4]
    ['R-PCA', 'OR-PCA', 'LRR', 'SSC']
    """
    return [*NAMES, *OTHERS]


def make(name: str, n_clusters: int | None = None, **overrides: Any) -> SubspaceClusterer:
    """Return an estimator for a method of the literature, with its published parameters.

    Parameters
    ----------
    name : str
        One of `methods()`, or another combination of their parts, such as "TNN+LRR" or
        "OR-TPCA-DCT".
    n_clusters : int or None
    **overrides
        Parameters of the estimator that replace the published ones, such as
        `solver="certified"`.

    Returns
    -------
    ORTLRR, LowRankClusterer, SSC, SSCOMP, EnSC or LSR

    Examples
    --------
    >>> make("TRPCA-DCT", n_clusters=20).get_params()["lam"]
    Lambda.entries(1.0)
    >>> make("OR-TLRR-DFT", solver="certified")
    ORTLRR(graph='published', lam=Lambda.paper(1.0), normalize=False,
           outliers='published', partition='published', tol=None, transform='dft')
    """
    return find(name).make(n_clusters, **overrides)


def find(name: Any) -> Method:
    """Return the method of a name, with its settings and where they come from."""
    if not isinstance(name, str):
        msg = f"name must be one of tubal.methods(), got {name!r}"
        raise ValueError(msg)
    base, transform, completed = _parse(name)
    settings, sources = {**DECISION}, {**DECISION_SOURCE}
    if base in SELF_EXPRESSIVE:
        estimator, own_settings, own_sources = SELF_EXPRESSIVE[base]
        sources["completion"] = "holes are filled by TNN+ first, or refused"
    else:
        estimator, own_settings, own_sources = _convex(base, transform)
        settings |= SCHEDULE
        sources |= SCHEDULE_SOURCE
    settings |= own_settings
    sources |= own_sources
    if completed:
        settings["completion"] = TensorCompleter(
            transform=TRANSFORMS[transform or "DFT"], solver="published", tol=None
        )
        sources["completion"] = "the paper, section 6.2: the same transform in both steps"
    return Method(name, estimator, MappingProxyType(settings), MappingProxyType(sources))


def _convex(
    base: str, transform: str | None
) -> tuple[type[SubspaceClusterer], dict[str, Any], dict[str, str]]:
    """Return class, settings and sources of a method of the convex family."""
    if base == "OR-TLRR":
        plan = transform or "DFT"
        settings = {"lam": Lambda.paper(ALPHA[plan]), "transform": TRANSFORMS[plan]}
        return ORTLRR, settings, {"lam": ALPHA_SOURCE[plan]}
    settings, sources = ROWS[base]
    if not settings.get("vectorize"):
        settings = {**settings, "transform": TRANSFORMS[transform or "DFT"]}
    return LowRankClusterer, settings, sources


def _parse(name: str) -> tuple[str, str | None, bool]:
    """Split a name into method, transform and whether completion comes first."""
    completed = name.startswith("TNN+")
    base, transform = name.removeprefix("TNN+"), None
    for suffix in TRANSFORMS:
        if base.endswith(f"-{suffix}"):
            base, transform = base.removesuffix(f"-{suffix}"), suffix
            break
    if base.endswith("-EWZF") and not completed:
        base = base.removesuffix("-EWZF")
        known = base in ("TLRR", "OR-TLRR")
    else:
        known = base in ("OR-TLRR", *SELF_EXPRESSIVE, *ROWS)
    takes_transform = base in ("OR-TLRR", "TLRR", "TRPCA", "OR-TPCA")
    if not known or (transform is not None and not takes_transform):
        msg = f"name must be one of tubal.methods(): {', '.join(methods())}; got {name!r}"
        raise ValueError(msg)
    return base, transform, completed
