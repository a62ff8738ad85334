"""Which transform, along which axis, and how many neighbours: chosen from the data, without labels.

A `View` says which axis of a sample takes the place of n1 and which transform runs along the
others; rows of tables may also be compared by their distance. Each view gives a graph of the
samples (`tubal.graph.MultiScale`), and each graph a partition; the view whose partition has the
largest modularity on its own graph is chosen. No program is solved for it. Outliers disturb the
choice, so it is made among the samples kept.

Modularities of graphs with more and with fewer edges do not compare. Of several numbers of
neighbours that one is chosen whose partition agrees best with those of the others (`tie`); that
takes all samples, since a sample of the set has other neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from tubal import spectral
from tubal._threads import effective_jobs, threaded
from tubal.graph import Graph, MultiScale
from tubal.input import Samples
from tubal.representation import Representation
from tubal.scales import Distance, View, in_range

MOST_SAMPLES = 2000
ENOUGH_SAMPLES = 800
PER_CLUSTER = 20
"""From larger sets PER_CLUSTER samples a cluster are drawn for the choice, within these limits.

Half of them are looked at first, and all of them in views that are CLOSE to the best one, if that
is MORE by half.
"""

CLOSE = 0.015
MORE = 1.5

COMPARED = (0.5, 1.0)
"""Effective ranks at which views are compared, as multiples of the suggested one."""

CLEARLY = 0.0075
"""Views with a handicap have to be better by this much, more than chance makes of a sample.

Those are vectors, which forget the shape of the samples, and a transform made from the very samples
that it is judged on.
"""

UNIT_NORM = 0.07
"""Over the number of columns: what rows of a table have to be better by at unit norm.

One direction of so many is lost there, and what has fewer directions is more modular by itself.
"""

MANY = 1000
"""With fewer samples threads that cut graphs mostly wait for each other."""

AGREES = 0.01
"""So much better than that of the first number of neighbours has the agreement of another to be."""

QUICK_CUT = spectral.Cut(spectral.Best((spectral.DiffusionWard(times=(12,)),)))
"""How graphs are cut that are compared with each other."""


def views(shape: Sequence[int], scaled: bool = True) -> list[View]:
    """Return the views that "auto" chooses from, for samples of this shape `(n1, *sizes)`.

    `scaled` tells whether samples were brought to unit norm, so that they have two sizes.
    Rows of tables are compared as vectors that depend on each other, or by their distance. Else
    there are DFT and DCT with either of the first two axes of a sample in the place of n1, a
    transform made from the data, and samples as vectors.

    >>> [str(view) for view in views((28, 28))][:3]
    ['dft', 'dct', 'dft, axis 1 first']
    """
    n1, *sizes = shape
    if int(np.prod(sizes)) == 1:
        points = [Distance(), Distance(sized=True)] if scaled else [Distance(sized=True)]
        return [View("none", None), *points]
    axes = [0, 1] if n1 > 1 and sizes[0] > 1 else [0]
    named = [View(name, axis) for axis in axes for name in ("dft", "dct")]
    return [*named, View("data"), View("none", None)]


@dataclass(frozen=True)
class Candidate:
    """A view and what it gave.

    Attributes
    ----------
    view : View
    modularity : float
        Of its partition on its graph.
    rank : float
        Effective rank that the spectrum suggests, NaN for distances.
    labels : int array
        Its partition of the samples that were looked at; of the best ones these are the same.
    handicap : float
        What its modularity has to be larger by, to count as equal.
    """

    view: View
    modularity: float
    rank: float
    labels: np.ndarray = field(repr=False, compare=False)
    handicap: float = 0.0

    @property
    def rating(self) -> float:
        """What candidates are sorted by; what differs by rounding is equal."""
        return round(self.modularity - self.handicap, 6)

    def __str__(self) -> str:
        counted = f", counts as {self.rating:.3f}" if self.handicap else ""
        return f"{self.view}: {self.modularity:.3f}{counted}"


@dataclass(frozen=True)
class Neighbourhood:
    """A number of neighbours, and what it gave.

    Attributes
    ----------
    count : int
    agreement : float
        Mean adjusted Rand index of its partition with those of the other numbers.
    """

    count: int
    agreement: float


@dataclass(frozen=True)
class Selection:
    """What was chosen, from what, and how sure that is.

    Attributes
    ----------
    candidates : tuple of Candidate
        Best first; the first one was chosen. Those that were close to the best on the first look
        come before the others, and were judged on more samples. Empty when the view was not open.
    n_clusters : int
        Number of clusters that the partitions had.
    neighbourhoods : tuple of Neighbourhood
        The first one was chosen, the others follow by agreement. Empty when the number was not
        open.
    lam : float or None
        Weight of the noise that `lam="auto"` chose; None when it was given or there is none.
    """

    candidates: tuple[Candidate, ...]
    n_clusters: int
    neighbourhoods: tuple[Neighbourhood, ...] = ()
    lam: float | None = None

    @property
    def chosen(self) -> Candidate | None:
        """The best candidate, None when the view was not open."""
        return self.candidates[0] if self.candidates else None

    @property
    def view(self) -> View | None:
        """The view of the best candidate."""
        return None if self.chosen is None else self.chosen.view

    @property
    def confidence(self) -> float:
        """How far the partitions of the two best views agree (adjusted Rand index, 0 to 1).

        Near 1 the choice hardly matters; 1 when there was none.
        """
        if len(self.candidates) < 2:
            return 1.0
        first, second = self.candidates[:2]
        return float(max(0.0, adjusted_rand_score(first.labels, second.labels)))

    @property
    def n_neighbors(self) -> int | None:
        """The number of neighbours that was chosen, None when it was not open."""
        return self.neighbourhoods[0].count if self.neighbourhoods else None

    def __str__(self) -> str:
        lines = []
        if self.chosen is not None:
            rank = self.chosen.rank
            lines.append(
                f"transform {self.view}: modularity {self.chosen.modularity:.3f} "
                f"with {self.n_clusters} clusters"
                + ("" if isnan(rank) else f", effective rank {rank:.3g}")
            )
        lines += [f"  not {candidate}" for candidate in self.candidates[1:]]
        if len(self.candidates) > 1:
            lines.append(f"agreement of the two best: {self.confidence:.2f}")
        if self.neighbourhoods:
            first, *others = self.neighbourhoods
            lines.append(f"{first.count} neighbours: agreement {first.agreement:.2f}")
            lines += [f"  not {other.count}: {other.agreement:.2f}" for other in others]
        if self.lam is not None:
            lines.append(f"lam {self.lam:.3g}")
        return "\n".join(lines)


def select(
    rows: Representation,
    kept: np.ndarray,
    candidates: Sequence[View] | None = None,
    *,
    n_clusters: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Choose the view whose partition is the most modular.

    Parameters
    ----------
    rows : Representation
        The samples of a fit; missing entries are filled by what it explains.
    kept : bool array
        Which samples take part; of many a random choice does.
    candidates : sequence of View or None
        None: `views` of the samples. Of equally good ones the first is taken.
    n_clusters : int or None
        None estimates it: the surest estimate of all views, the same for all.
    random_state : int, RandomState or None
    n_jobs : int or None
    """
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    if candidates is None:
        candidates = views(rows.samples.values.shape[1:], scaled=bool(np.ptp(rows.divisors())))
    most = MOST_SAMPLES
    if n_clusters is not None:
        most = min(max(ENOUGH_SAMPLES, PER_CLUSTER * n_clusters), most)
    order = rng.permutation(np.flatnonzero(kept))[:most]

    least = min(_handicap(view, rows) for view in candidates)  # where all have one, none has

    def look(count: int, some: Sequence[View], k: int | None) -> list[Candidate]:
        taken = np.isin(np.arange(len(kept)), order[:count])
        found = list(_judged(_alone(rows, taken, some), some, k, seed, n_jobs))
        found = [replace(each, handicap=each.handicap - least) for each in found]
        return sorted(found, key=lambda candidate: candidate.rating, reverse=True)

    first = most // 2
    found = look(first, candidates, n_clusters)
    close = [each for each in found if each.rating >= found[0].rating - CLOSE]
    if len(order) >= MORE * first and len(close) > 1:
        count = len(np.unique(found[0].labels)) if n_clusters is None else n_clusters
        again = [view for view in candidates if any(view is each.view for each in close)]
        found = look(most, again, count) + found[len(close) :]
    return Selection(tuple(found), len(np.unique(found[0].labels)))


@dataclass(frozen=True, eq=False)
class Tied:
    """A graph of the kept samples, its clusters, and which other graphs there were.

    Attributes
    ----------
    affinity : sparse array of shape (n_samples, n_samples)
    clusters : Clusters
        Of the kept samples.
    neighbourhoods : tuple of Neighbourhood
        The first one is that of the graph, the others follow by agreement. Empty when the number
        of neighbours was not open.
    """

    affinity: Any
    clusters: spectral.Clusters
    neighbourhoods: tuple[Neighbourhood, ...] = ()


def tie(
    graph: Graph,
    rows: Representation,
    kept: np.ndarray,
    cut: spectral.Cut,
    *,
    n_clusters: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Tied:
    """Build the graph of the kept samples and cut it; choose how many neighbours tie a sample.

    Where a `MultiScale` leaves that number open, the graphs of all numbers are cut, and clusters
    count that are there whatever the number is: of those that one graph cannot tell apart
    (`Cut.proposals`) the ones are taken that agree best with the clusters of the other graphs. The
    first number is taken unless the clusters of another one agree better, by more than `AGREES`.

    Parameters
    ----------
    graph : Graph
    rows : Representation
        The samples of a fit.
    kept : bool array
        Which samples take part.
    cut : Cut
    n_clusters : int or None
        None estimates it in the graph with the first number of neighbours.
    random_state : int or None
        Every graph is cut with the same one.
    n_jobs : int or None
    """
    if not isinstance(graph, MultiScale) or len(graph.choices) == 1:
        W = graph.build(rows, kept, n_jobs)
        return Tied(W, cut(_among(W, kept), n_clusters, random_state))
    graphs = graph.builds(rows, kept, n_jobs)
    begun = []
    if n_clusters is None:
        begun = [cut.proposals(_among(graphs[0], kept), None, random_state)]
        n_clusters = begun[0][0].n_clusters
    rest = [_among(W, kept) for W in graphs[len(begun) :]]
    jobs = effective_jobs(n_jobs) if kept.sum() >= MANY else 1
    found = begun + threaded(lambda W: cut.proposals(W, n_clusters, random_state), rest, jobs)
    taken = [_most_agreed(found, i) for i in range(len(found))]
    rated = [round(agreement, 6) for agreement, _ in taken]
    lead = [value - (AGREES if i else 0) for i, value in enumerate(rated)]
    best = int(np.argmax(lead))
    order = [best, *(i for i in np.argsort(-np.array(rated), kind="stable") if i != best)]
    clusters = replace(taken[best][1], confidence=found[0][0].confidence)
    if begun and best:  # as many eigenvalues as the estimate has looked at
        more = len(begun[0][0].eigenvalues)
        values = spectral.embed(_among(graphs[best], kept), more, random_state=random_state).values
        clusters = replace(clusters, eigenvalues=1 - values)
    return Tied(
        graphs[best], clusters, tuple(Neighbourhood(graph.choices[i], rated[i]) for i in order)
    )


def _most_agreed(
    found: Sequence[Sequence[spectral.Clusters]], i: int
) -> tuple[float, spectral.Clusters]:
    """Return the proposal of graph i that agrees best with what other graphs say, and how far."""
    others = [proposals[0].labels for j, proposals in enumerate(found) if j != i]
    rated = [
        (float(np.mean([adjusted_rand_score(mine.labels, labels) for labels in others])), mine)
        for mine in found[i]
    ]
    return max(rated, key=lambda pair: round(pair[0], 6))


def _among(W: Any, kept: np.ndarray) -> Any:
    return W if kept.all() else W[kept][:, kept]


def _alone(rows: Representation, kept: np.ndarray, candidates: Sequence[View]) -> Representation:
    """Return the samples that take part, complete, in the precision in which they are compared."""
    values = rows.complete()[kept]
    if not any(isinstance(view, Distance) for view in candidates):
        values = in_range(values)  # once for all of them
    samples = Samples(values, None, rows.samples.table)
    alone = np.arange(samples.n_samples)
    return replace(rows, samples=samples, twins=alone, scale=rows.divisors()[kept])


def _judged(
    rows: Representation,
    candidates: Sequence[View],
    n_clusters: int | None,
    seed: int,
    n_jobs: int | None,
) -> Iterator[Candidate]:
    """Judge all views, several at a time."""
    jobs = effective_jobs(n_jobs)
    within = 1 if len(candidates) > 1 else jobs  # as a number: BLAS is held inside of `threaded`
    made = threaded(lambda view: _graph_of(view, rows, within), candidates, jobs)
    graphs = [W for W, _ in made]
    if n_clusters is None:
        n_clusters = _number(graphs, seed)
    k = min(n_clusters, rows.samples.n_samples)
    cuts = threaded(lambda W: QUICK_CUT(W, k, seed).labels, graphs, jobs)
    for view, (W, rank), labels in zip(candidates, made, cuts, strict=True):
        modularity = spectral.modularity(W, labels)
        yield Candidate(view, modularity, rank, labels, _handicap(view, rows))


def _handicap(view: View, rows: Representation) -> float:
    """Return what a view of these samples has to be better by."""
    if rows.samples.table:
        sized = isinstance(view, Distance) and view.sized
        return 0.0 if sized else UNIT_NORM / rows.samples.values[0].size
    made = isinstance(view.transform, str) and view.transform == "data"
    return CLEARLY * (view.axis is None or made)


def _graph_of(view: View, rows: Representation, n_jobs: int | None) -> tuple[Any, float]:
    """Return the graph of the samples in a view, and the effective rank behind it."""
    graph = MultiScale(factors=COMPARED, view=view)
    everyone = np.ones(rows.samples.n_samples, bool)
    rows = replace(rows)  # one that remembers the similarities of this view
    return graph.build(rows, everyone, n_jobs), graph.rank(rows, everyone)


def _number(graphs: Sequence[Any], seed: int) -> int:
    """Return one number of clusters for all graphs: the surest estimate above one, if any.

    A view that sees no clusters finds one, and then all partitions would be alike.
    """
    found = [spectral.estimate_n_clusters(W, random_state=seed) for W in graphs]
    several = [count for count in found if count.n_clusters > 1]
    return max(several, key=lambda count: count.confidence).n_clusters if several else 1
