"""What is left to the data: the transform, the axis, the level of `lam`, and the graph.

The program has a closed form for quadratic noise, which shows without a solve what a transform, an
axis and a level would give: similarities, a graph and a partition. Few directions make any graph
look clustered, so a partition counts by what it has beyond chance: the same singular values with
directions drawn at random are the null model, and everything else is done to it in the same way.

Two kinds of graph are compared. The nearest samples suit many or curved clusters, all pairs suit a
few independent subspaces. Their evidence does not compare, but their stability does: how well the
partition of a random part of the samples agrees with that of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from tubal import spectral
from tubal._threads import effective_jobs, threaded
from tubal.graph import AllPairs, Graph, Nearest
from tubal.outliers.decisions import false_alarm_threshold, lowest
from tubal.problem import MOST_OF_RANK
from tubal.representation import Whole
from tubal.similarity import GaussianKernel, Spectrum, View
from tubal.spectral.chance import Count, beyond_chance, count_beyond_chance


@dataclass(frozen=True)
class Defaults:
    """Every constant of the choice and of the graph that can move a label when k is given.

    The evidence behind each one is in `docs/quality.md`; those of the outlier score are the
    parameters of `tubal.outliers.Consensus`, those of the cut the parameters of
    `tubal.spectral.Best`.

    Attributes
    ----------
    levels : tuple of float
        Levels of shrinkage, as `Lambda.auto` takes them, for graphs of the nearest samples. The
        larger one is worth .01 on faces and .03 on palm prints.
    middle_level : float
        The level that is looked at first, and that of graphs of all pairs: 1.4 costs .12 on motion
        segmentation, 5.6 costs .06.
    n_neighbors : int
        4, 5 and 6 are level (.80, .79, .77 on 14 sets); 10 costs .05.
    plain : float
        Evidence that a graph of all pairs must have: more than half of what is beyond chance.
        Without it four sets lose .04 to .16 (coffee, power, textures, Indian Pines).
    same : float
        Adjusted Rand index from which on two partitions say the same; then the first one stays.
        Without it planted tensor subspaces are taken for subspaces of vectors, whose program does
        not see outliers (F1 .55 instead of .84 over 32 synthetic problems).
    fewest, most, per_cluster : int
        How many samples are looked at: so many a cluster, within these limits.
    parts, share : int and float
        Stability is the mean over so many random parts, each of this share of the samples.
    count_parts : int
        So many of these parts tell the stability of partitions into an unknown number of clusters.
    isolated : int
        Number of similar samples that a usual one has; others are not looked at. Without it planted
        outliers hide among vectors (F1 .64 instead of .84 over 32 synthetic problems); on motion
        segmentation it costs .04.
    most_pairs : int
        Number of samples beyond which a graph of all pairs would be too large.
    """

    levels: tuple[float, ...] = (2.8, 11.2)
    middle_level: float = 2.8
    n_neighbors: int = 5
    plain: float = 0.5
    same: float = 0.9
    fewest: int = 400
    most: int = 800
    per_cluster: int = 20
    parts: int = 6
    share: float = 0.8
    count_parts: int = 3
    isolated: int = 12
    most_pairs: int = 4000


DEFAULTS = Defaults()
NEAREST = Nearest(DEFAULTS.n_neighbors)

APART = 1.5
"""Effective ranks that are closer, as a ratio, are one."""

LEAST_ISOLATION = 0.3
"""Smaller differences of the log-odds of similarities are no sign of isolation."""

WORDS = ((0.9, "sure"), (0.7, "likely"), (0.0, "a guess"))
"""What to call a stability of at least so much."""

QUICK_CUT = spectral.Cut(spectral.Best((spectral.DiffusionWard(times=(12,)),)))
WHOLE_CUT = spectral.Cut()
"""How graphs of the nearest samples, and of all pairs, are cut to be compared."""


def open_views(shape: Sequence[int], table: bool, complete: bool = True) -> list[View]:
    """Return the views that "auto" chooses from, for samples of this shape `(n1, *sizes)`.

    DFT and DCT with either of the first two axes of a sample in the place of n1. Rows of tables are
    vectors or, where nothing is missing, points by a Gaussian kernel.

    >>> [str(view) for view in open_views((28, 28), table=False)]
    ['dft', 'dct', 'dft, axis 1 first', 'dct, axis 1 first']
    """
    n1, *sizes = shape
    if table or int(np.prod(sizes)) == 1:
        return (
            [View("none", None), GaussianKernel()] if table and complete else [View("none", None)]
        )
    axes = [0, 1] if n1 > 1 and sizes[0] > 1 else [0]
    return [View(name, axis) for axis in axes for name in ("dft", "dct")]


@dataclass(frozen=True)
class Candidate:
    """A view, a level and a graph, and what they gave on the samples that were looked at.

    Attributes
    ----------
    view : View
    level : float
        Of shrinkage, as in `Lambda.auto`.
    graph : Graph
    evidence : float
        What the partition has beyond chance, at most 1. For the nearest samples
        `(Q - Q0) / (1 - 1/k - Q0)` with the modularities Q of the partition and Q0 of that of the
        null model; for all pairs the same with 1 and the means of the k largest eigenvalues of the
        normalised squares of similarities. NaN where no null model was asked.
    stability : float
        Mean adjusted Rand index with the partitions of random parts; NaN where nobody looked.
    chance : float
        Modularity of the partition of the null model; NaN for all pairs.
    labels : int array
        The partition.
    """

    view: View
    level: float
    graph: Graph
    evidence: float = float("nan")
    stability: float = float("nan")
    chance: float = float("nan")
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, int), repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What the evidence of this candidate may be compared with."""
        if isinstance(self.graph, AllPairs):
            return "all pairs"
        if not self.view.is_linear:
            return "kernel"
        return "vectors" if self.view.axis is None else "transform"

    @property
    def is_trusted(self) -> bool:
        """Whether it is of the first axis and at the first level."""
        return self.view.axis in (0, None) and self.level == DEFAULTS.levels[0]

    @property
    def is_plain(self) -> bool:
        """Whether its evidence is large enough for it to be chosen."""
        return self.kind != "all pairs" or self.evidence > DEFAULTS.plain

    def __str__(self) -> str:
        graph = "all pairs" if isinstance(self.graph, AllPairs) else "nearest samples"
        known = [("evidence", self.evidence), ("stability", self.stability)]
        told = "".join(f", {name} {value:.2f}" for name, value in known if not np.isnan(value))
        return f"{self.view}, level {self.level:g}, {graph}{told}"


@dataclass(frozen=True)
class Selection:
    """What was chosen, from what, and how sure that is.

    Attributes
    ----------
    candidates : tuple of Candidate
        The first one was chosen; the others follow by stability and evidence.
    n_clusters : int
        Number of clusters, given or estimated.
    n_looked_at : int
        Number of samples that were looked at.
    lam : float or None
        Weight of the noise that follows from the level; None when it was given.
    count : Count or None
        How the number of clusters was estimated; None when it was given.
    """

    candidates: tuple[Candidate, ...]
    n_clusters: int
    n_looked_at: int
    lam: float | None = None
    count: Count | None = None

    @property
    def chosen(self) -> Candidate:
        """The candidate that was chosen."""
        return self.candidates[0]

    @property
    def view(self) -> View:
        """The transform and the axis that were chosen."""
        return self.chosen.view

    @property
    def level(self) -> float:
        """The level of shrinkage that was chosen."""
        return self.chosen.level

    @property
    def graph(self) -> Graph:
        """The graph that was chosen."""
        return self.chosen.graph

    @property
    def confidence(self) -> float:
        """Stability of the chosen partition, from 0 to 1; 1 when there was no choice."""
        value = self.chosen.stability
        return 1.0 if np.isnan(value) else float(max(0.0, value))

    def __str__(self) -> str:
        sure = (
            "sure" if self.confidence >= 0.9 else "likely" if self.confidence >= 0.7 else "a guess"
        )
        lines = [str(self.chosen)]
        lines += [f"  not {candidate}" for candidate in self.candidates[1:]]
        if len(self.candidates) > 1:
            lines.append(
                f"{sure}: partitions of {DEFAULTS.share:.0%} of the samples agree with it by "
                f"{self.confidence:.2f}"
            )
        if self.lam is not None:
            lines.append(f"lam {self.lam:.3g}")
        return "\n".join(lines)


def select(
    values: np.ndarray,
    sizes: np.ndarray,
    views: Sequence[View],
    *,
    graph: Graph | None = None,
    levels: Sequence[float] = DEFAULTS.levels,
    false_alarms: float | None = None,
    n_clusters: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Choose view, level and graph by what their partitions show beyond chance.

    There are graphs of the nearest samples, under the views and levels given, and the graph of all
    pairs of samples as vectors (in the view itself when there is one only). The candidate with the
    largest evidence wins; the first axis and level keep their place unless another one leads by
    more than the standard error of the difference. The graph of all pairs wins when it has plain
    evidence and its partition is another one and at least as stable. Between vectors and a Gaussian
    kernel stability decides, too, by more than the standard error. Samples that no others express
    in the first view are not looked at.

    Parameters
    ----------
    values : array of shape (n, n1, ...)
        Complete samples of unit norm; of many a random choice is looked at.
    sizes : array of shape (n,)
        What samples were divided by.
    views : sequence of View
    graph : Graph or None
        None leaves it open.
    levels : sequence of float
        For graphs of the nearest samples.
    false_alarms : float or None
        Share of usual samples that may be left out as outliers; None leaves nothing out.
    n_clusters : int or None
        None estimates it from the graphs of all views and levels, see `tubal.spectral.chance`.
    random_state : int, RandomState or None
    n_jobs : int or None
    """
    rng = check_random_state(random_state)
    n = len(values)
    most = max(DEFAULTS.fewest, DEFAULTS.per_cluster * n_clusters) if n_clusters else n
    most = min(n, most, DEFAULTS.most)
    taken = np.sort(rng.permutation(n)[:most])
    look = _Look(int(rng.randint(2**31 - 1)), effective_jobs(n_jobs))
    first = Candidate(views[0], levels[0], graph or NEAREST)
    if most < 4 or n_clusters == 1 or not np.any(values[taken]):
        return Selection((first,), n_clusters or 1, most)
    shown = Spectrum.of(values[taken], sizes[taken], views[0])
    usual = _usual(shown, false_alarms, n_clusters or 1)
    taken, most = taken[usual], int(usual.sum())
    if most <= (n_clusters or 1):
        return Selection((first,), n_clusters or 1, most)
    spectra = look.map(lambda view: Spectrum.of(values[taken], sizes[taken], view), views)
    cells = _nearest_cells(look, views, spectra, levels, graph)
    count, k = None, n_clusters
    if k is None:
        count = look.count(cells)
        k = count.n_clusters
    k = min(k, most)
    if k == 1:
        return Selection((first,), 1, most, count=count)
    found = [] if isinstance(graph, AllPairs) else _nearest_candidates(look, cells, k)
    if isinstance(graph, AllPairs) or (graph is None and n <= DEFAULTS.most_pairs):
        pairs = View("none", None) if len(views) > 1 else views[0]
        spectrum = Spectrum.of(values[taken], sizes[taken], pairs)
        found.append(_all_pairs_candidate(look, pairs, spectrum, k, alone=not found))
    return Selection(_decided(look, found, k), k, len(taken), count=count)


def _usual(spectrum: Spectrum, false_alarms: float | None, k: int) -> np.ndarray:
    """Return which samples others express, by their similarities in the closed form.

    Of as many others as there are in a cluster, at most.
    """
    n = spectrum.V.shape[2]
    if false_alarms is None:
        return np.ones(n, bool)
    table = _similarities(
        spectrum, _ranks(spectrum, [DEFAULTS.middle_level])[DEFAULTS.middle_level]
    )
    np.fill_diagonal(table, 0)
    count = min(DEFAULTS.isolated, max(1, n // k - 1))
    similar = np.partition(table, n - count, axis=1)[:, n - count :].mean(axis=1)
    similar = np.clip(similar, 1e-6, 1 - 1e-6)
    isolation = np.log((1 - similar) / similar)
    isolation = np.clip(isolation - np.median(isolation), 0, None)
    threshold = false_alarm_threshold(isolation, lowest(isolation, 0.75), false_alarms)
    usual: np.ndarray = isolation <= max(threshold, LEAST_ISOLATION)
    return usual


@dataclass(frozen=True, eq=False)
class _Cell:
    """A view at a level: its spectrum, similarities and graph."""

    candidate: Candidate
    spectrum: Spectrum
    rank: float
    table: np.ndarray
    W: Any

    def graph_of(self, part: np.ndarray) -> Any:
        return _graph(self.candidate.graph, self.table[np.ix_(part, part)])


@dataclass(frozen=True)
class _Look:
    """How things are looked at: the seed of all that is random, and the number of threads."""

    seed: int
    jobs: int

    def map(self, function: Any, items: Sequence[Any]) -> list[Any]:
        return threaded(function, items, self.jobs)

    def cut(self, W: Any, k: int) -> np.ndarray:
        cut = WHOLE_CUT if isinstance(W, np.ndarray) else QUICK_CUT
        return cut(W, k, self.seed).labels

    def parts(self, n: int, least: int = 1) -> list[np.ndarray]:
        """Return random parts of n samples, sorted."""
        rng, size = np.random.default_rng(self.seed), max(least, int(DEFAULTS.share * n))
        return [np.sort(rng.permutation(n)[:size]) for _ in range(DEFAULTS.parts)]

    def count(self, cells: Sequence[_Cell]) -> Count:
        """Return the number of clusters that the views show at the first level."""
        first = cells[0]
        cells = [cell for cell in cells if cell.candidate.level == first.candidate.level]
        other = first.spectrum.at_random(np.random.default_rng([self.seed, 1]))
        null = self.map(lambda cell: _similarities(self.null(cell.spectrum), cell.rank), cells)
        return count_beyond_chance(
            [(cell.table, chance) for cell, chance in zip(cells, null, strict=True)],
            _similarities(other, first.rank),
            lambda table: _graph(first.candidate.graph, table),
            self.parts(len(first.table))[: DEFAULTS.count_parts],
            seed=self.seed,
            run=self.map,
        )

    def null(self, spectrum: Spectrum) -> Spectrum:
        return spectrum.at_random(np.random.default_rng(self.seed))


def _graph(graph: Graph, table: np.ndarray) -> Any:
    """Return the graph of a table of similarities."""
    if isinstance(graph, AllPairs):
        return graph.of_table(table)
    assert isinstance(graph, Nearest)
    return graph.of_table(table)


def _similarities(spectrum: Spectrum, rank: float, single: bool = False) -> np.ndarray:
    made = spectrum.similarity(rank, (1.0,)) if single else spectrum.similarity(rank)
    whole: Whole = made.whole(1)
    return whole.table


def _ranks(spectrum: Spectrum, levels: Sequence[float]) -> dict[float, float]:
    """Return the effective rank for each level, without those that the data is too small for."""
    most, ranks = MOST_OF_RANK * spectrum.largest_rank, dict[float, float]()
    for level in levels:
        rank = min(level * spectrum.rank, most)
        if not ranks or rank > APART * max(ranks.values()):
            ranks[level] = rank
    return ranks


def _nearest_cells(
    look: _Look,
    views: Sequence[View],
    spectra: Sequence[Spectrum],
    levels: Sequence[float],
    graph: Graph | None,
) -> list[_Cell]:
    """Return the graphs of the nearest samples, for every view and level."""
    wanted = [
        (Candidate(view, level, graph if isinstance(graph, Nearest) else NEAREST), spectrum, rank)
        for view, spectrum in zip(views, spectra, strict=True)
        for level, rank in _ranks(spectrum, levels).items()
    ]

    def build(each: tuple[Candidate, Spectrum, float]) -> _Cell:
        candidate, spectrum, rank = each
        table = _similarities(spectrum, rank)
        return _Cell(candidate, spectrum, rank, table, _graph(candidate.graph, table))

    return look.map(build, wanted)


def _nearest_candidates(
    look: _Look, cells: Sequence[_Cell], k: int
) -> list[tuple[Candidate, _Cell]]:
    """Return views with their evidence, best first: the most modular one of an axis and a level."""
    labels = look.map(lambda cell: look.cut(cell.W, k), cells)
    groups: dict[Any, list[tuple[float, _Cell, np.ndarray]]] = {}
    for cell, mine in zip(cells, labels, strict=True):
        rated = spectral.modularity(cell.W, mine), cell, mine
        each = cell.candidate
        groups.setdefault((each.level, each.kind, each.view.axis), []).append(rated)
    shortlist = [max(group, key=lambda rated: round(rated[0], 6)) for group in groups.values()]

    def weigh(rated: tuple[float, _Cell, np.ndarray]) -> tuple[Candidate, _Cell]:
        modularity, cell, mine = rated
        W = _graph(cell.candidate.graph, _similarities(look.null(cell.spectrum), cell.rank))
        chance = spectral.modularity(W, look.cut(W, k))
        evidence = _excess(modularity, chance, 1 - 1 / k)
        return replace(cell.candidate, evidence=evidence, chance=chance, labels=mine), cell

    return sorted(look.map(weigh, shortlist), key=lambda pair: -pair[0].evidence)


def _all_pairs_candidate(
    look: _Look, view: View, spectrum: Spectrum, k: int, alone: bool
) -> tuple[Candidate, _Cell]:
    """Return the graph of all pairs, with its evidence; cut it where it can be chosen."""
    level = DEFAULTS.middle_level
    graph, rank = AllPairs(), _ranks(spectrum, [level])[level]

    def leading_mean(some: Spectrum) -> tuple[float, np.ndarray]:
        table = _similarities(some, rank, single=True)
        return _leading_mean(np.sqrt(graph.of_table(table)), k), table

    (mean, table), (chance, _) = look.map(leading_mean, [spectrum, look.null(spectrum)])
    evidence = _excess(mean, chance, 1.0)
    candidate = Candidate(view, level, graph, evidence)
    if candidate.is_plain or alone:
        candidate = replace(candidate, labels=look.cut(graph.of_table(table), k))
    return candidate, _Cell(candidate, spectrum, rank, table, None)


def _excess(value: float, chance: float, largest: float) -> float:
    return float(beyond_chance(np.array(value), np.array(chance), np.array(largest)))


def _leading_mean(W: np.ndarray, k: int) -> float:
    """Return the mean of the k largest eigenvalues of a normalised dense graph."""
    degrees = W.sum(axis=1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    values = np.linalg.eigvalsh(root[:, None] * W * root)
    return float(values[-k:].mean())


def _decided(
    look: _Look, found: Sequence[tuple[Candidate, _Cell]], k: int
) -> tuple[Candidate, ...]:
    """Return the candidates, the chosen one first; the best ones of each kind meet each other."""
    n = max(len(candidate.labels) for candidate, _ in found)
    trial = _Trial(look, k, look.parts(n, k))
    kinds: dict[str, list[tuple[Candidate, _Cell]]] = {}
    for candidate, cell in found:
        if candidate.is_plain or len(found) == 1:
            kinds.setdefault(candidate.kind, []).append((candidate, cell))
    finalists = [trial.most_evident(several) for several in kinds.values()]
    best = finalists[0]
    for each in finalists[1:]:
        lead = each[1] - best[1]
        error = lead.std(ddof=1) / len(lead) ** 0.5
        needed = 0.0 if each[0].kind == "all pairs" else error
        same = adjusted_rand_score(best[0].labels, each[0].labels) >= DEFAULTS.same
        best = each if lead.mean() >= needed and not same else best
    judged = {
        (str(each.view), each.level, each.kind): replace(each, stability=float(own.mean()))
        for each, own in (best, *finalists)
    }
    for candidate, _ in found:
        judged.setdefault((str(candidate.view), candidate.level, candidate.kind), candidate)
    return tuple(judged.values())


@dataclass(frozen=True)
class _Trial:
    """Compares candidates on random parts of the samples."""

    look: _Look
    k: int
    parts: list[np.ndarray]

    def most_evident(
        self, several: Sequence[tuple[Candidate, _Cell]]
    ) -> tuple[Candidate, np.ndarray]:
        """Return the candidate of a kind with the largest evidence, and its agreement on the parts.

        The first axis at the first level is trusted: others must lead by more than the standard
        error, which follows from the parts (D. Politis, J. Romano, "Large sample confidence regions
        based on subsamples", Annals of Statistics 22, 1994).
        """
        top = several[0]
        trusted = [pair for pair in several if pair[0].is_trusted]
        agreement, evidence = self._measure(*top)
        if not trusted or trusted[0][0] is top[0]:
            return top[0], agreement
        first = trusted[0]
        of_first, evidence_of_first = self._measure(*first)
        lead = evidence - evidence_of_first
        scale = (DEFAULTS.share / (1 - DEFAULTS.share)) ** 0.5
        if top[0].evidence - first[0].evidence > scale * lead.std(ddof=1):
            return top[0], agreement
        return first[0], of_first

    def _measure(self, candidate: Candidate, cell: _Cell) -> tuple[np.ndarray, np.ndarray]:
        """Return agreement with the partition of all samples, and evidence, on every part."""

        def on(part: np.ndarray) -> tuple[float, float]:
            W = cell.graph_of(part)
            labels = self.look.cut(W, self.k)
            agreement = float(adjusted_rand_score(candidate.labels[part], labels))
            if candidate.kind == "all pairs":
                return agreement, candidate.evidence
            value = spectral.modularity(W, labels)
            return agreement, _excess(value, candidate.chance, 1 - 1 / self.k)

        agreement, evidence = zip(*self.look.map(on, self.parts), strict=True)
        return np.array(agreement), np.array(evidence)
