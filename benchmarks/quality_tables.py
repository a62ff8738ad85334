"""Reads the rows of `benchmarks/quality.py` back: tables, bars, figure and page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from quality_sets import FAMILIES, SETS
from quality_tools import DETECTORS, OURS, RPCA, SPECTRAL, TOOLS, UNIT

from tubal.bench.published import published

Row = dict[str, Any]
FIGURE = "OR-TLRR-DFT, published figure"
TEN = (
    "ORL+100",
    "COIL20+100",
    "COIL20+200",
    "Umist",
    "Umist noisy",
    "FRDUE",
    "USPS SR=0.3",
    "USPS SR=0.5",
    "USPS SR=0.7",
    "digits",
)
"""The sets that "first on 8 of 10" speaks of."""
LEAST_ACC = {
    "ORL+100": 0.82,
    "COIL20+100": 0.95,
    "COIL20+200": 0.95,
    "Umist": 0.84,
    "FRDUE": 0.975,
    "USPS": 0.86,
    "digits": 0.93,
    "MNIST": 0.70,
    "pie68": 0.99,
    "palm": 0.94,
}
GROUPS = ("page", "development")
RIVALS = (*(name + end for name in DETECTORS for end in ("", UNIT)), RPCA)
"""The detectors whose AUC must be reached."""
PRINTED = 5e-4
"""Half of the last digit printed: what looks equal counts as equal."""


def line(row: Row) -> str:
    """Return a row as a line for the terminal."""
    found = " ".join(f"{name} {value:.3f}" for name, value in row["metrics"].items())
    what = f"failed, {row['error']}" if row["error"] else found
    return f"{row['set']}, draw {row['draw']}, {row['tool']}: {what} ({row['seconds']:.1f} s)"


# ---- means over draws ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Mean:
    """A number over several draws; the spread is the standard deviation (of n - 1)."""

    value: float
    spread: float
    draws: int

    def text(self, draws: int) -> str:
        """Return it for a table in which most numbers come from so many draws."""
        value = f"{self.value:.3f}" + (f" ± {self.spread:.3f}" if self.draws > 1 else "")
        if self.draws in (0, draws):  # 0: not ours
            return value
        return f"{value} ({self.draws} draw{'s' if self.draws > 1 else ''})"


def means(rows: Iterable[Row], name: str) -> dict[tuple[str, str], Mean]:
    """Return the mean of a metric, or of another number of the rows, by set and tool."""
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        value = row["metrics"].get(name, row.get(name))
        if row["error"] is None and value is not None:
            groups.setdefault((row["set"], row["tool"]), []).append(float(value))
    return {key: _mean(values) for key, values in groups.items()}


def _mean(values: Sequence[float]) -> Mean:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Mean(float(np.mean(values)), spread, len(values))


def with_published(found: dict[tuple[str, str], Mean], metric: str) -> dict[tuple[str, str], Mean]:
    """Add what the paper prints for its own method."""
    known = published()
    for name in {key[0] for key in found}:
        where = SETS[name].published
        value = None if where is None else known.get((*where, "OR-TLRR-DFT", metric))
        if value is not None:
            found[name, FIGURE] = Mean(value, float("nan"), 0)
    return found


def _seen(order: Iterable[str], names: Iterable[str]) -> list[str]:
    there = set(names)
    return [name for name in order if name in there]


def _columns(found: dict[tuple[str, str], Mean]) -> list[str]:
    first, second, *rest = TOOLS
    return _seen([first, second, FIGURE, *rest], (tool for _, tool in found))


def _set_rows(found: Iterable[tuple[str, str]]) -> list[str]:
    return _seen(SETS, (name for name, _ in found))


# ---- tables -------------------------------------------------------------------------------------


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def metric_table(rows: list[Row], metric: str) -> str:
    """Return a metric, a row a set and a column a tool, the best of each row in bold."""
    found = with_published(means(rows, metric), metric)
    tools, draws = _columns(found), max((mean.draws for mean in found.values()), default=0)
    body = []
    for name in _set_rows(found):
        best = max(mean.value for (of, _), mean in found.items() if of == name)
        cells = [_cell(found.get((name, tool)), best, draws) for tool in tools]
        body.append([_label(name), *cells])
    return markdown(["set", *tools], body)


def _label(name: str) -> str:
    return f"{name} ({SETS[name].group})"


def _cell(mean: Mean | None, best: float, draws: int) -> str:
    if mean is None:
        return ""
    text = mean.text(draws)
    return f"**{text}**" if mean.value >= best - PRINTED else text


def sets_table(rows: list[Row]) -> str:
    """Return what the sets are and what they were used for."""
    shapes = {row["set"]: " x ".join(map(str, row["shape"])) for row in rows}
    body = [[name, SETS[name].group, shapes[name], SETS[name].what] for name in _seen(SETS, shapes)]
    return markdown(["set", "group", "shape", "what it is"], body)


def families_table(rows: list[Row]) -> str:
    """Return the mean accuracy of each family, beside the best simple tool of each set."""
    found = means(rows, "ACC")
    simple = [t for t in TOOLS if t.split(",")[0] in SIMPLE]
    body, every = [], []
    for family, names in FAMILIES.items():
        those = [name for name in names if (name, OURS) in found]
        pairs = [
            (found[n, OURS].value, max(found[n, t].value for t in simple if (n, t) in found))
            for n in those
            if any((n, t) in found for t in simple)
        ]
        every += pairs
        if pairs:
            body.append([family, *_compared(pairs)])
    return markdown(FAMILY_HEADS, [*body, *([["**all**", *_compared(every)]] if every else [])])


FAMILY_HEADS = ["family", "sets", OURS, "best simple tool of each set", "within .02 of it", "first"]
SIMPLE = (SPECTRAL, "Ward", "k-means", "LSR", "EnSC", "SSC", "SSC-OMP")


def _compared(pairs: Sequence[tuple[float, float]]) -> list[str]:
    ours, best = np.array(pairs).T
    near, first = (int(np.sum(ours >= best - gap)) for gap in (0.02, PRINTED))
    return [f"{len(pairs)}", f"{ours.mean():.3f}", f"{best.mean():.3f}", f"{near}", f"{first}"]


def f1_table(rows: list[Row]) -> str:
    """Return F1 of the decisions, with that of the best threshold on the same scores."""
    made, best = means(rows, "F1"), means(rows, "F1_best")
    tools = _seen(TOOLS, (tool for _, tool in best))
    body = []
    for name in _set_rows(best):
        cells = [(made.get((name, tool)), best.get((name, tool))) for tool in tools]
        body.append([_label(name), *(_two(*cell) for cell in cells)])
    return markdown(["set", *tools], body)


def _two(made: Mean | None, best: Mean | None) -> str:
    if best is None:
        return ""
    return f"{'-' if made is None else f'{made.value:.3f}'} / {best.value:.3f}"


def flagged_table(rows: list[Row]) -> str:
    """Return the share of samples flagged where there are no outliers."""
    found = means(rows, "flagged")
    names = [name for name in _set_rows(found) if SETS[name].clean and (name, OURS) in found]
    return markdown(
        ["set", f"{OURS}: flagged"],
        [[_label(name), f"{found[name, OURS].value:.2%}"] for name in names],
    )


def seconds_table(rows: list[Row]) -> str:
    """Return seconds a fit."""
    return _plain_table(rows, "seconds", lambda value: f"{value:.2f}")


def memory_table(rows: list[Row]) -> str:
    """Return by how much the resident memory grew during a fit, in MB."""
    return _plain_table(rows, "peak_memory", lambda value: f"{value / 1e6:.0f}")


def _plain_table(rows: list[Row], name: str, text: Callable[[float], str]) -> str:
    found = means(rows, name)
    tools = _columns(found)
    body = [
        [one, *(text(found[one, tool].value) if (one, tool) in found else "" for tool in tools)]
        for one in _set_rows(found)
    ]
    return markdown(["set", *tools], body)


def ratios(rows: list[Row]) -> dict[str, float]:
    """Return our seconds over those of spectral clustering of a kNN graph, by set."""
    found = means(rows, "seconds")
    return {
        name: found[name, OURS].value / found[name, SPECTRAL].value
        for name in _set_rows(found)
        if (name, OURS) in found and (name, SPECTRAL) in found
    }


def ratio_table(rows: list[Row]) -> str:
    """Return the ratio of times, with both times."""
    found = means(rows, "seconds")
    body = [
        [
            _label(name),
            f"{found[name, OURS].value:.2f}",
            f"{found[name, SPECTRAL].value:.2f}",
            f"{ratio:.1f}",
        ]
        for name, ratio in ratios(rows).items()
    ]
    return markdown(["set", f"{OURS}, s", f"{SPECTRAL}, s", "ratio"], body)


def ranks(found: dict[tuple[str, str], Mean], names: Sequence[str]) -> dict[str, list[float]]:
    """Return the rank of each tool on each of the sets, ties in the middle; first is 1."""
    result: dict[str, list[float]] = {}
    for name in names:
        values = {tool: mean.value for (of, tool), mean in found.items() if of == name}
        for tool, value in values.items():
            above = sum(other > value + PRINTED for other in values.values())
            level = sum(abs(other - value) <= PRINTED for other in values.values())
            result.setdefault(tool, []).append(above + (level + 1) / 2)
    return result


def ranks_table(rows: list[Row]) -> str:
    """Return mean ranks, how often a tool is first, and how far behind the first at worst."""
    body = []
    for metric in ("ACC", "NMI", "AUC"):
        found = means(rows, metric)
        for group, names in _groups(found).items():
            for tool, places in _ordered(ranks(found, names)):
                gaps = [gap for name in names if (gap := _behind(found, name, tool)) is not None]
                first = sum(gap <= PRINTED for gap in gaps)
                body.append(
                    [
                        metric,
                        group,
                        tool,
                        f"{np.mean(places):.1f}",
                        f"{first} of {len(places)}",
                        f"{max(gaps):.3f}",
                    ]
                )
    return markdown(["metric", "sets", "tool", "mean rank", "first", "at worst behind by"], body)


def _groups(found: dict[tuple[str, str], Mean]) -> dict[str, list[str]]:
    names = _set_rows(found)
    parts = {group: [n for n in names if SETS[n].group == group] for group in GROUPS}
    return {group: some for group, some in parts.items() if some}


def _ordered(places: dict[str, list[float]]) -> list[tuple[str, list[float]]]:
    return sorted(places.items(), key=lambda item: float(np.mean(item[1])))


def _behind(found: dict[tuple[str, str], Mean], name: str, tool: str) -> float | None:
    """Return how far a tool is behind the best one of a set."""
    values = {other: mean.value for (of, other), mean in found.items() if of == name}
    return max(values.values()) - values[tool] if tool in values else None


# ---- bars ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """What is promised, and what was measured.

    Attributes
    ----------
    name, where : str
        Of what, and on which set or sets.
    asked, measured : str
    holds : bool or None
        None when it was not measured.
    draws : int
        The smallest number of draws behind it.
    """

    name: str
    where: str
    asked: str
    measured: str
    holds: bool | None
    draws: int


def bars(rows: list[Row]) -> list[Bar]:
    """Check all promises."""
    new = [name for name, data in SETS.items() if data.group == "development"]
    return [
        *_accuracy_bars(rows),
        *(bar for metric in ("ACC", "NMI") for bar in _first_bars(rows, metric, TEN, "ten sets")),
        *(bar for metric in ("ACC", "NMI") for bar in _first_bars(rows, metric, new, "others")),
        *_outlier_bars(rows),
        *_flag_bars(rows),
        *_time_bars(rows),
    ]


def _accuracy_bars(rows: list[Row]) -> list[Bar]:
    found = means(rows, "ACC")
    return [
        _at_least("accuracy", name, limit, found.get((name, OURS)))
        for name, limit in LEAST_ACC.items()
    ]


def _at_least(name: str, where: str, limit: float, mean: Mean | None) -> Bar:
    if mean is None:
        return Bar(name, where, f">= {limit:g}", "not measured", None, 0)
    holds = mean.value >= limit - PRINTED
    return Bar(name, where, f">= {limit:g}", f"{mean.value:.3f}", holds, mean.draws)


def _first_bars(rows: list[Row], metric: str, names: Sequence[str], where: str) -> list[Bar]:
    """Be first on four of five sets, and nowhere far behind; where all others were run.

    Those that need a further package count when they were run, too, but they need not be.
    """
    found = means(rows, metric)
    others = [tool.name for tool in TOOLS.values() if tool.clusters and tool.needs is None]
    whole = [name for name in names if not _not_run(rows, name, others)]
    gaps = {name: gap for name in whole if (gap := _behind(found, name, OURS)) is not None}
    asked = round(0.8 * len(names) if names is TEN else 0.8 * len(gaps))
    if not gaps or (names is TEN and len(gaps) < len(TEN)):
        text = f"measured on {len(gaps)} of {len(names)}"
        return [Bar(f"first in {metric}", where, f"on {asked}", text, None, 0)]
    draws = min(found[name, OURS].draws for name in gaps)
    first = sum(gap <= PRINTED for gap in gaps.values())
    last = max(gaps, key=lambda name: gaps[name])
    return [
        Bar(
            f"first in {metric}", where, f"on {asked}", f"on {first} of {len(gaps)}",
            first >= asked, draws,
        ),
        Bar(
            f"behind the first in {metric}", where, "<= 0.02", f"{gaps[last]:.3f} ({last})",
            gaps[last] <= 0.02 + PRINTED, draws,
        ),
    ]  # fmt: skip


def _outlier_bars(rows: list[Row]) -> list[Bar]:
    auc, made, best = (means(rows, name) for name in ("AUC", "F1", "F1_best"))
    result = []
    for name in _set_rows(auc):
        if (name, OURS) not in auc:
            continue
        mine, draws = auc[name, OURS].value, auc[name, OURS].draws
        rivals = {tool: auc[name, tool].value for tool in RIVALS if (name, tool) in auc}
        if rivals:
            winner = max(rivals, key=lambda tool: rivals[tool])
            text, limit = f"{mine:.3f}", rivals[winner]
            asked, reached = f">= {limit:.3f} ({winner})", mine >= limit - PRINTED
            holds = None if reached and _not_run(rows, name, RIVALS) else reached
            result.append(Bar("AUC", _label(name), asked, text, holds, draws))
        got, top = made[name, OURS].value, best[name, OURS].value
        asked, near = f">= {top - 0.03:.3f}", got >= top - 0.03 - PRINTED
        result.append(Bar("F1 of the decision", _label(name), asked, f"{got:.3f}", near, draws))
    return result


def _not_run(rows: list[Row], name: str, tools: Iterable[str]) -> set[str]:
    """Return which of the tools have no row for a set, not even a failed one."""
    return set(tools) - {row["tool"] for row in rows if row["set"] == name}


def _flag_bars(rows: list[Row]) -> list[Bar]:
    found = means(rows, "flagged")
    return [
        Bar(
            "flagged without outliers",
            _label(name),
            "<= 2 %",
            f"{found[name, OURS].value:.2%}",
            found[name, OURS].value <= 0.02,
            found[name, OURS].draws,
        )
        for name in _set_rows(found)
        if SETS[name].clean and (name, OURS) in found
    ]


def _time_bars(rows: list[Row]) -> list[Bar]:
    draws = means(rows, "seconds")
    return [
        Bar(
            f"time over {SPECTRAL}",
            _label(name),
            "<= 10",
            f"{ratio:.1f}",
            ratio <= 10,
            draws[name, OURS].draws,
        )
        for name, ratio in ratios(rows).items()
    ]


def bars_table(rows: list[Row]) -> str:
    """Return the bars, and whether they hold."""
    words = {True: "yes", False: "**no**", None: "?"}
    body = [
        [bar.name, bar.where, bar.asked, bar.measured, str(bar.draws), words[bar.holds]]
        for bar in bars(rows)
    ]
    return markdown(["bar", "where", "asked", "measured", "draws", "holds"], body)


def about_table(rows: list[Row]) -> str:
    """Return with what the rows were measured."""
    rows_of: dict[str, int] = {}
    for row in rows:
        what = ", ".join(f"{name} {number}" for name, number in sorted(row["versions"].items()))
        rows_of[what] = rows_of.get(what, 0) + 1
    measured = {(row["set"], row["draw"], row["tool"]) for row in rows if row["error"] is None}
    tried = {(row["set"], row["draw"], row["tool"]) for row in rows}
    failed = sorted({f"{tool} on {name}" for name, _, tool in tried - measured})
    body = [[str(count), what] for what, count in rows_of.items()]
    text = markdown(["rows", "measured with"], body)
    return text + (f"\n\nFailed: {'; '.join(failed)}." if failed else "\n\nNothing failed.")


TABLES: dict[str, Callable[[list[Row]], str]] = {
    "sets": sets_table,
    "bars": bars_table,
    "families": families_table,
    "accuracy": lambda rows: metric_table(rows, "ACC"),
    "nmi": lambda rows: metric_table(rows, "NMI"),
    "auc": lambda rows: metric_table(rows, "AUC"),
    "f1": f1_table,
    "flagged": flagged_table,
    "ranks": ranks_table,
    "ratio": ratio_table,
    "seconds": seconds_table,
    "memory": memory_table,
    "about": about_table,
}


# ---- page and figure ----------------------------------------------------------------------------

PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, rows: list[Row]) -> str:
    """Put the tables into their places in a page.

    >>> rows = [{"set": "a", "draw": 0, "tool": "b", "versions": {"tubal": "1"}, "error": None}]
    >>> print(filled("<!-- table: about -->\\nold\\n<!-- end -->", rows))
    <!-- table: about -->
    | rows | measured with |
    | --- | --- |
    | 1 | tubal 1 |
    <BLANKLINE>
    Nothing failed.
    <!-- end -->
    """
    opened = len(re.findall(r"<!-- table: ", page))
    names = [match[2] for match in PLACE.finditer(page)]
    wrong = [name for name in names if name not in TABLES]
    if wrong:
        raise ValueError(f"tables are {', '.join(TABLES)}; the page asks for {', '.join(wrong)}")
    if opened != len(names) or not names:
        raise ValueError(f"the page opens {opened} tables and closes {len(names)} of them")
    return PLACE.sub(lambda match: f"{match[1]}{TABLES[match[2]](rows)}\n{match[3]}", page)


def figure(rows: list[Row], file: Path) -> None:
    """Draw accuracy and AUC, a line a set: ours, the other tools, and the best of them."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError("figure needs matplotlib: pip install matplotlib") from error
    panels = {"clustering accuracy": means(rows, "ACC"), "outliers: AUC": means(rows, "AUC")}
    heights = [max(1, len(_set_rows(found))) for found in panels.values()]
    canvas = Figure(figsize=(8, 1.6 + 0.28 * sum(heights)), layout="constrained")
    axes = canvas.subplots(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    for axis, (title, found) in zip(axes, panels.items(), strict=True):
        _panel(axis, title, found)
    handles, names = axes[0].get_legend_handles_labels()
    canvas.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    canvas.savefig(file, dpi=150)


def _panel(axis: Any, title: str, found: dict[tuple[str, str], Mean]) -> None:
    names = _set_rows(found)
    for y, name in enumerate(names):
        others = [mean.value for (of, tool), mean in found.items() if of == name and tool != OURS]
        axis.plot(others, [y] * len(others), "|", color="0.6", label="" if y else "other tools")
        if others:
            axis.plot(
                max(others), y, "o", mfc="none", color="C1", label="" if y else "best of them"
            )
        mine = found.get((name, OURS))
        if mine is not None:
            axis.errorbar(
                mine.value, y, xerr=mine.spread, fmt="o", color="C0", label="" if y else OURS
            )
    axis.set_yticks(range(len(names)), [_label(name) for name in names])
    axis.set_title(title, loc="left", fontsize=10)
    axis.invert_yaxis()
    axis.set_xlim(right=1.02)
    axis.grid(axis="x", color="0.9")
    axis.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
