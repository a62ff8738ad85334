"""Which transform, along which axis of a sample: chosen from the data, without labels.

A `View` says which axis of a sample takes the place of n1 and which transform runs along the
others. Each view gives a graph of the samples (`tubal.scales`), and each graph a partition; the
view whose partition has the largest modularity on its own graph is chosen. No program is solved
for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from tubal import spectral, transforms
from tubal.graph import MultiScale
from tubal.input import Samples, namespace
from tubal.representation import Representation, Ties

MOST_SAMPLES = 2000
"""From larger sets so many samples are drawn for the choice."""


@dataclass(frozen=True)
class View:
    """An arrangement of the samples and a transform.

    Attributes
    ----------
    transform : Any
        What `tubal.transforms.resolve` understands.
    axis : int or None
        Which axis of a sample takes the place of n1, the others follow in their order; None makes
        vectors of the samples.
    """

    transform: Any
    axis: int | None = 0

    def __str__(self) -> str:
        if self.axis is None:
            return "none (samples as vectors)"
        what = self.transform if isinstance(self.transform, str) else repr(self.transform)
        return what if self.axis == 0 else f"{what}, axis {self.axis} first"

    def arrange(self, samples: Samples) -> Samples:
        """Return the samples in this arrangement."""
        if self.axis == 0:
            return samples
        seen = samples.observed
        return Samples(
            self._arranged(samples.values),
            None if seen is None else self._arranged(seen),
            samples.table,
        )

    def _arranged(self, values: Any) -> Any:
        xp = namespace(values)
        if self.axis is None:
            return xp.reshape(values, (values.shape[0], -1, 1))
        return xp.moveaxis(values, 1 + self.axis, 1)

    def restore(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return arranged values (n, ...) as samples of the shape that they had."""
        if self.axis:
            values = np.moveaxis(values, 1, 1 + self.axis)
        return values.reshape(len(values), *shape)


def views(samples: Samples) -> list[View]:
    """Return the views that "auto" chooses from.

    For tables there is only one. Else DFT and DCT with either of the first two axes of a sample in
    the place of n1, a transform made from the data, and samples as vectors.
    """
    _, n1, *sizes = samples.values.shape
    if int(np.prod(sizes)) == 1:
        return [View("none", None)]
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
        Effective rank that the spectrum suggests.
    labels : int array
        Its partition of the samples that were looked at.
    """

    view: View
    modularity: float
    rank: float
    labels: np.ndarray = field(repr=False, compare=False)


@dataclass(frozen=True)
class Selection:
    """What was chosen, from what, and how sure that is.

    Attributes
    ----------
    candidates : tuple of Candidate
        Best first; the first one was chosen.
    n_clusters : int
        Number of clusters that the partitions had.
    """

    candidates: tuple[Candidate, ...]
    n_clusters: int

    @property
    def chosen(self) -> Candidate:
        """The best candidate."""
        return self.candidates[0]

    @property
    def view(self) -> View:
        """The view of the best candidate."""
        return self.chosen.view

    @property
    def confidence(self) -> float:
        """How far the partitions of the two best views agree (adjusted Rand index, 0 to 1).

        Near 1 the choice hardly matters; 1 when there was none.
        """
        if len(self.candidates) < 2:
            return 1.0
        first, second = self.candidates[:2]
        return float(max(0.0, adjusted_rand_score(first.labels, second.labels)))

    def __str__(self) -> str:
        lines = [
            f"transform {self.view}: modularity {self.chosen.modularity:.3f} "
            f"with {self.n_clusters} clusters, effective rank {self.chosen.rank:.3g}"
        ]
        lines += [f"  not {c.view}: {c.modularity:.3f}" for c in self.candidates[1:]]
        lines.append(f"agreement of the two best: {self.confidence:.2f}")
        return "\n".join(lines)


def select(
    samples: Samples,
    candidates: Sequence[View],
    *,
    n_clusters: int | None = None,
    graph: MultiScale | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Choose the view whose partition is the most modular.

    Parameters
    ----------
    samples : Samples
        NumPy. Missing entries are filled by the mean of the others, for the choice alone.
    candidates : sequence of View
        Of equally good ones the first is taken.
    n_clusters : int or None
        None estimates it: the surest estimate of all views, the same for all.
    graph : MultiScale or None
    random_state : int, RandomState or None
        Which samples are looked at when there are more than MOST_SAMPLES.
    n_jobs : int or None
    """
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    if samples.n_samples > MOST_SAMPLES:
        rows = np.sort(rng.permutation(samples.n_samples)[:MOST_SAMPLES])
        seen = samples.observed
        samples = Samples(samples.values[rows], None if seen is None else seen[rows], samples.table)
    if n_clusters is not None:
        n_clusters = min(n_clusters, samples.n_samples)
    complete = Samples(_mean_filled(samples), None, samples.table)
    found = list(_judged(complete, candidates, n_clusters, graph or MultiScale(), seed, n_jobs))
    # What differs by rounding is equal: then the first one, not chance, is taken.
    ordered = sorted(found, key=lambda candidate: -round(candidate.modularity, 6))
    return Selection(tuple(ordered), len(np.unique(ordered[0].labels)))


def _judged(
    samples: Samples,
    candidates: Sequence[View],
    n_clusters: int | None,
    graph: MultiScale,
    seed: int,
    n_jobs: int | None,
) -> Iterator[Candidate]:
    made = [(view, *_graph_of(view, samples, graph, n_jobs)) for view in candidates]
    if n_clusters is None:
        n_clusters = _number([W for _, W, _ in made], seed)
    cut = spectral.Cut(spectral.DiffusionWard())
    for view, W, rank in made:
        labels = cut(W, n_clusters, seed).labels
        yield Candidate(view, spectral.modularity(W, labels), rank, labels)


def _graph_of(
    view: View, samples: Samples, graph: MultiScale, n_jobs: int | None
) -> tuple[Any, float]:
    """Return the graph of the samples in a view, and the effective rank behind it."""
    arranged = view.arrange(samples)
    values, everyone = arranged.values, np.ones(samples.n_samples, bool)
    plan = transforms.resolve(view.transform, arranged.sizes, data=values, random_state=0)
    rows = Representation(
        arranged, values, values, _NONE, _NONE, np.arange(len(values)), transform=plan
    )
    return graph.build(rows, everyone, n_jobs), graph.rank(rows, everyone)


def _number(graphs: Sequence[Any], seed: int) -> int:
    """Return one number of clusters for all graphs: the surest estimate above one, if any.

    A view that sees no clusters finds one, and then all partitions would be alike.
    """
    found = [spectral.estimate_n_clusters(W, random_state=seed) for W in graphs]
    several = [count for count in found if count.n_clusters > 1]
    return max(several, key=lambda count: count.confidence).n_clusters if several else 1


class _NoTies(Ties):
    """Stands where similarities come from the samples themselves."""

    shape = (0, 0)

    def tile(self, rows: Any) -> np.ndarray:
        raise NotImplementedError


_NONE = _NoTies()


def _mean_filled(samples: Samples) -> np.ndarray:
    """Return the values, missing ones replaced by the mean of that entry over the samples."""
    if samples.observed is None:
        return samples.values
    seen = samples.observed
    mean = np.where(seen, samples.values, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, samples.values, mean)
