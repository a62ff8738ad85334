"""What a fit found, in words: for the page of a notebook and for the report."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np

from tubal.solvers import StopReason
from tubal.sparse import RidgeRepresentation

Fact = tuple[str, str]


def facts(fitted: Any) -> list[Fact]:
    """Return what a fitted estimator found, as names and values.

    Parameters
    ----------
    fitted : estimator
        A clusterer, the detector or the completer, after a fit.
    """
    found = [("samples", samples_in_words(fitted))]
    if hasattr(fitted, "labels_"):
        found.append(("clusters", clusters_in_words(fitted)))
    if hasattr(fitted, "outliers_"):
        found.append(("outliers", outliers_in_words(fitted)))
    missing = missing_in_words(fitted)
    if missing:
        found.append(("missing entries", missing))
    return [*found, ("certificate", certificate_in_words(fitted))]


def samples_in_words(fitted: Any) -> str:
    """Return the number of samples and their shape."""
    shape = " x ".join(map(str, fitted.sample_shape_))
    return f"{n_samples(fitted):,} of {shape}" + (
        " values" if len(fitted.sample_shape_) < 2 else ""
    )


def n_samples(fitted: Any) -> int:
    """Return the number of samples of a fit."""
    return len(fitted.outlier_scores_ if hasattr(fitted, "outlier_scores_") else fitted._completed)


def clusters_in_words(fitted: Any) -> str:
    """Return the number of clusters, and how sure it is when it was estimated."""
    if fitted._n_clusters_given is not None:
        return str(fitted.n_clusters_)
    return f"{fitted.n_clusters_}, estimated (confidence {fitted.n_clusters_confidence_:.2f})"


def outliers_in_words(fitted: Any) -> str:
    """Return the number of outliers and the threshold."""
    count, n = int(fitted.outliers_.sum()), len(fitted.outliers_)
    if np.isinf(fitted.threshold_):
        return f"{count}, no threshold"
    return f"{count} ({count / n:.1%}), score above {fitted.threshold_:.4g}"


def missing_in_words(fitted: Any) -> str:
    """Return the number of missing entries; nothing when there are none."""
    if fitted._observed is None:
        return ""
    holes = int((~fitted._observed).sum())
    return f"{holes:,} ({holes / fitted._observed.size:.1%}), recovered"


def certificate_in_words(fitted: Any) -> str:
    """Return how far from the optimum a fit is at most, in a sentence without its stop.

    Bounds are rounded up, so that they hold as they are written.
    """
    solution = getattr(fitted, "solution_", None)
    if solution is None:
        return "nothing was missing, so nothing was solved"
    certificate = getattr(fitted, "certificate_", None)
    if certificate is None:
        if isinstance(solution, RidgeRepresentation):
            return "not needed: the solution has a closed form"
        if solution.gap is None:
            return "none: the method is greedy and minimises nothing"
        return f"every sample solved to {within(solution.gap)}"
    reason = solution.stop_reason
    if reason in (StopReason.GAP, StopReason.TRIVIAL):
        return within(certificate.gap)
    how = {
        StopReason.RESIDUALS: "the published schedule ended",
        StopReason.MAX_ITER: "stopped at the iteration limit",
        StopReason.CALLBACK: "stopped by the callback",
    }[reason]
    if not certificate.gap < 1:
        return f"{how}, without a bound on the distance to the optimum"
    return f"{how} at most {percent(excess(certificate.gap))} above the optimum"


def within(gap: float) -> str:
    """Return the bound as words.

    >>> within(8.93e-5)
    'within 0.009 % of the optimum'
    """
    return f"within {percent(excess(gap))} of the optimum"


def excess(gap: float) -> float:
    """Return how far above the optimal value the value is at most, as a share of the optimal one.

    A gap is a share of the value that was reached.
    """
    return gap / (1 - gap) if gap < 1 else float("inf")


def percent(share: float) -> str:
    """Return a share as per cent with two digits, rounded up, no less than a millionth.

    >>> percent(0.4139), percent(0.0001), percent(0)
    ('42 %', '0.01 %', '0.0001 %')
    """
    value = max(100 * share, 1e-4)
    digits = 1 - floor(log10(value))
    text = f"{ceil(round(value * 10**digits, 6)) / 10**digits:.{max(0, digits)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def with_facts(html: str, fitted: Any) -> str:
    """Put the facts of a fit above the diagram that scikit-learn draws of an estimator."""
    rows = "".join(
        f'<tr><th style="text-align:left;padding:2px 12px 2px 0">{escape(name)}</th>'
        f'<td style="text-align:left;padding:2px 0">{escape(value)}</td></tr>'
        for name, value in facts(fitted)
    )
    table = f'<table class="tubal-facts" style="margin:4px 0 8px">{rows}</table>'
    return f"<div>{table}{html}</div>"
