"""Findings and tiles put into one page that stands for itself."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tubal._optional import optional
from tubal.report.data import Cut, Findings, examine
from tubal.report.sprites import SHEET, SHOW, Tiles, arrange, draw, pillow, read_pictures


def write(
    fitted: Any,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    images: Any = None,
    title: str | None = None,
    show: str = "auto",
) -> Path:
    """Write a page about a fit: one HTML file, no network.

    The file is written whole or not at all. Pictures are made smaller when there are many: 5,000
    take less than 25 MB.

    Parameters
    ----------
    fitted : estimator
        A clusterer, `TensorOutlierDetector` or `TensorCompleter`, after a fit.
    path : str or Path
        The file; one that exists is replaced.
    names : sequence of str or None
        A name for each sample of the fit; numbers by default.
    images : array-like of shape (n, height, width) or (n, height, width, 3), sequence of such \
    arrays, or None
        Pictures to show for the samples; by default the samples themselves are drawn.
    title : str or None
    show : {"auto", "picture", "heat", "lines"}
        How samples are drawn; see `tubal.report.sprites.arrange`.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> from tubal import ORTLRR, datasets
    >>> data = datasets.load_demo(100, outliers=10)
    >>> est = ORTLRR(10, random_state=0).fit(data.X)
    >>> write(est, "report.html").name  # doctest: +SKIP
    'report.html'
    """
    if show not in SHOW:
        msg = f"show must be one of {SHOW}, got {show!r}"
        raise ValueError(msg)
    target = Path(path)
    if target.is_dir() or not target.absolute().parent.is_dir():
        msg = f"path must name a file in a folder that exists, got {str(path)!r}"
        raise ValueError(msg)
    for package in (_jinja, pillow):
        package()  # before any work
    findings = examine(fitted, names=names, title=title)
    pictures = None if images is None else read_pictures(images, len(findings.inputs))
    _replace(target, render(findings, tiles(findings, pictures, show)))
    return target


def tiles(findings: Findings, pictures: np.ndarray | None, show: str) -> dict[str, Tiles]:
    """Return what is drawn of the samples: as given, as recovered, and pictures of the user."""
    own = None if pictures is None else _unless_same(pictures, findings.inputs)
    if pictures is not None and own is None and show == "auto":
        show = "picture"
    given, kind = arrange(findings.inputs, show)
    clean, _ = arrange(findings.clean, kind)
    count = 2 if own is None else 3
    drawn = {"input": draw(given, kind, sheets=count)}
    drawn["clean"] = draw(clean, kind, scale=drawn["input"].scale, sheets=count)
    if own is not None:
        drawn["picture"] = draw(own, "picture", sheets=count)
    return drawn


def render(findings: Findings, drawn: dict[str, Tiles]) -> str:
    """Return the page as text."""
    assets = files("tubal.report") / "assets"
    style, script = (
        (assets / name).read_text(encoding="utf-8") for name in ("style.css", "report.js")
    )
    environment = _jinja().Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((assets / "template.html").read_text(encoding="utf-8"))
    return template.render(
        found=findings,
        n=len(findings.names),
        outliers=None if findings.decision is None else int((findings.decision.labels() < 0).sum()),
        missing=int(findings.missing.sum()),
        tiles=drawn,
        gain=gain(findings, drawn),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_safe(payload(findings, drawn)),
        sheets={
            f"sheet-{name}-{i}": sheet
            for name, part in drawn.items()
            for i, sheet in enumerate(part.sheets())
        },
    )


def payload(findings: Findings, drawn: dict[str, Tiles]) -> dict[str, Any]:
    """Return what the program of the page works with; numbers are those of the estimator."""
    decision, cut, missing = findings.decision, findings.cut, findings.missing
    numbered = findings.names == [str(i) for i in range(len(findings.names))]
    return {
        "n": len(findings.names),
        "names": None if numbered else findings.names,
        "clusterer": cut is not None,
        "tiles": {name: _layout(part) for name, part in drawn.items()},
        "decision": None
        if decision is None
        else {
            "scores": _numbers(decision.scores),
            "threshold": _number(decision.threshold),
            "clusters": decision.clusters.tolist(),
            "typicality": _numbers(decision.typicality, 6),
        },
        "cut": None if cut is None else _graph(cut),
        "history": [
            {
                "iteration": c.n_iter,
                "primal": c.primal,
                "dual": _number(c.dual),
                "gap": _number(c.gap),
            }
            for c in findings.history
            if np.isfinite(c.primal)
        ],
        "missing": missing.tolist() if missing.any() else None,
        "gain": gain(findings, drawn),
        "entries": int(np.prod(findings.inputs.shape[1:])),
    }


def gain(findings: Findings, drawn: dict[str, Tiles]) -> float:
    """Return by how much differences are enlarged, so that the usual ones can be seen.

    The 99th percentile of those of the outliers, or of all samples where there are none, becomes a
    third of the whole range; between 1 and 8 times, in steps of two digits.
    """
    decision = findings.decision
    rows = np.ones(len(findings.names), bool) if decision is None else decision.labels() < 0
    rows = rows if rows.any() else ~rows
    given, clean = (drawn[name].values[rows].astype(float) for name in ("input", "clean"))
    apart = np.abs(given - clean)
    if drawn["input"].observed is not None:
        apart = apart[drawn["input"].observed[rows]]
    usual = float(np.percentile(apart, 99)) if apart.size else 0.0
    return float(f"{np.clip(85 / max(usual, 1.0), 1, 8):.2g}")


def _graph(cut: Cut) -> dict[str, Any]:
    picture = np.round(255 * cut.matrix).astype(np.uint8)
    file = io.BytesIO()
    pillow().fromarray(picture).save(file, "PNG", optimize=True)
    return {
        "n_clusters": cut.n_clusters,
        "matrix": base64.b64encode(file.getvalue()).decode("ascii"),
        "bounds": cut.bounds,
        "places": [_numbers(axis, 5) for axis in cut.places.T],
        "eigenvalues": _numbers(cut.eigenvalues, 6),
        "gaps": _numbers(cut.gaps, 6),
    }


def _layout(part: Tiles) -> dict[str, Any]:
    _, height, width, channels = part.values.shape
    return {
        "kind": part.kind,
        "height": height,
        "width": width,
        "colour": channels == 3,
        "holes": part.observed is not None,
        "diverging": part.scale.diverging,
        "columns": SHEET,
        "mime": part.mime,
    }


def _unless_same(pictures: np.ndarray, inputs: np.ndarray) -> np.ndarray | None:
    """Return pictures, but None when they are the samples themselves."""
    same = pictures.shape == inputs.shape and np.allclose(
        pictures, inputs, rtol=1e-6, atol=1e-6, equal_nan=True
    )
    return None if same else pictures


def _number(value: float) -> float | None:
    """Return a number that JSON can hold; None stands for infinity."""
    return float(value) if np.isfinite(value) else None


def _numbers(values: np.ndarray, digits: int | None = None) -> list[float | None]:
    """Return numbers for JSON: exact, or with a few digits where they are only looked at."""
    if digits is None:
        return [_number(value) for value in values.tolist()]
    return [
        float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()
    ]


def _safe(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the element of the page that it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _jinja() -> Any:
    return optional("jinja2", "a report", "report")


def _replace(target: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=".report-", suffix=".html")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # as any new file; temporary ones are private
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
