"""What every solver's driver does between the steps of the blocks.

The driver never sees samples: it sums Gram matrices, decomposes them, and sends operators back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tubal._threads import spans
from tubal.input import Array, namespace, samples_first
from tubal.problem import Problem
from tubal.solvers.blocks import Penalties
from tubal.solvers.engines import Engine
from tubal.solvers.operators import Operators, decompose, join
from tubal.solvers.parts import Part
from tubal.solvers.solution import Certificate, Check, State, StopReason
from tubal.transforms import Transform

MIN_BLOCK = 48
"""Fewer samples than this in a block make its matrix products inefficient."""
MANY = 8
"""So many blocks are made of large slices too, that several threads have something to do."""


@dataclass(frozen=True)
class Spectrum:
    """What shrinking leaves of singular values (rising), and the operators that shrink."""

    left: Array
    shrink: Array | Operators
    """Applied to the matrices it shrinks their singular values by the threshold."""


@dataclass(frozen=True)
class Outcome:
    """What a solver hands over: coordinates of Z, the noise samples-first, and the record."""

    core: Array
    noise: Array
    certificate: Certificate
    n_iter: int
    history: tuple[Check, ...]
    reason: StopReason
    state: State


class Driver:
    """Blocks of one problem in an engine, and the operations on all of them."""

    def __init__(self, problem: Problem, lam: float, engine: Engine) -> None:
        self.problem, self.lam, self.engine = problem, lam, engine
        engine.expect(numbers(problem))
        self.omega = problem.reduction.omega
        self.spans = block_spans(problem, engine)

    def place(self, make: Callable[[Part], Any], state: tuple[Array, ...] = ()) -> Array:
        """Make the blocks, from a state or from nothing; return the sum of their Gram matrices.

        An engine may call `make` on another machine: it has to be a function that can be pickled.
        """
        parts = (Part.of(self.problem, self.lam, span, state) for span in self.spans)
        self.engine.place([partial(make, part) for part in parts])
        return self.engine.total("gram")

    def spectrum(self, G: Array, threshold: float) -> Spectrum:
        """Decompose Gram matrices (lower triangles), slices spread over the engine."""
        parts = self.engine.over(lambda k: decompose(G[k, ...], threshold), G.shape[0])
        left, operators = zip(*parts, strict=True)
        return Spectrum(namespace(G).concat(list(left)), join(operators))

    def squares(self, G: Array) -> Array:
        """Return the squared singular values (rising) behind Gram matrices."""
        xp = namespace(G)
        parts = self.engine.over(lambda k: xp.linalg.eigvalsh(G[k, ...]), G.shape[0])
        return xp.clip(xp.concat(parts), 0.0, None)

    def nuclear(self, values: Array) -> float:
        """Return the nuclear norm for singular values of all slices."""
        xp = namespace(values)
        return float(xp.sum(self.omega[:, None] * values))

    def certificate(self, spectrum: Spectrum) -> Certificate:
        """Return the values of a feasible primal and a feasible dual point at this iterate."""
        xp = namespace(spectrum.left)
        candidate = self.engine.total("candidate", spectrum.shrink)
        if candidate.primal is None:
            values = spectrum.left
        else:
            values = xp.sqrt(self.squares(candidate.primal))
        primal = self.nuclear(values) + (self.lam * candidate.noise if candidate.noise else 0.0)
        gram = candidate.dual
        del candidate, values
        dual = self._dual(gram)
        self.engine.total("release")
        return Certificate(primal, dual)

    def _dual(self, gram: Array) -> float:
        """Make the multiplier feasible and return the best dual value on the way.

        Clip the spectrum of `D^H Y` at 1, return to mask and ball, and divide by what is left of
        the violation: slice by slice where the ball allows it (smaller slices stay in it), else
        all.
        """
        xp = namespace(gram)
        best = -np.inf
        for _ in range(1 if self.problem.in_coordinates else 2):
            clip = self.spectrum(gram, 1.0).shrink
            del gram
            bound = self.engine.total("clip", clip)
            gram = bound.gram
            largest = xp.sqrt(xp.clip(self.squares(gram)[:, -1], 1.0, None))
            if self.problem.in_coordinates:
                value = float(xp.sum(self.omega * bound.inner / largest))
            else:
                value = float(bound.inner[0] / xp.max(largest))
            best = max(best, value + bound.offset)
        return best

    def finish(
        self,
        penalties: Penalties,
        certificate: Certificate,
        n_iter: int,
        history: list[Check],
        reason: StopReason,
        solver: str,
        F: Array | None = None,
    ) -> Outcome:
        """Gather what the blocks hold, one thing after the other to save memory.

        With `F` the primal point is made now; else the blocks have kept one.
        """
        noise = self.original(self.engine.each("noise"))
        if F is not None:
            self.engine.total("keep", F)
        states = self._joined(self.engine.each("surrender"))
        core = self._joined(self.engine.each("take_best"))
        represents = self.problem.reduction.kind != "identity"
        arrays = (core, states) if represents else (states,)
        state = State(arrays, penalties, solver, self.kind)
        return Outcome(core, noise, certificate, n_iter, tuple(history), reason, state)

    @property
    def kind(self) -> tuple[str, bool, Transform]:
        """What a state must share with a problem to continue there."""
        return problem_kind(self.problem)

    def states(self) -> tuple[Array, ...]:
        """Return the arrays that determine the iteration, of all samples."""
        parts = list(self.engine.each("state"))
        return tuple(self._joined(arrays) for arrays in zip(*parts, strict=True))

    def _joined(self, parts: Iterable[Array]) -> Array:
        """Join the blocks' arrays along the samples, their last axis."""
        arrays = list(parts)
        if len(arrays) == 1:
            return arrays[0]
        if not isinstance(arrays[0], np.ndarray):
            return namespace(arrays[0]).concat(arrays, axis=-1)
        shape = (*arrays[0].shape[:-1], sum(A.shape[-1] for A in arrays))
        out = np.empty(shape, arrays[0].dtype)

        def write(k: slice) -> None:  # in threads: fresh memory takes its time
            np.concatenate([A[k] for A in arrays], axis=-1, out=out[k])

        self.engine.over(write, len(out))
        return out

    def original(self, parts: Iterable[Array]) -> Array:
        """Turn the blocks' arrays of the field to one array, samples first."""
        lift = self.problem.in_coordinates
        return assemble(
            self.problem,
            self.spans,
            (self.problem.reduction.lift(part) if lift else part for part in parts),
        )


def problem_kind(problem: Problem) -> tuple[str, bool, Transform]:
    """Return dictionary, domain of the noise and transform of a problem."""
    return problem.reduction.kind, problem.in_coordinates, problem.transform


def assemble(problem: Problem, spans: list[slice], parts: Iterable[Array]) -> Array:
    """Join tensors (*sizes, n1, b) of the blocks along the samples, samples first."""
    values = problem.data.values
    if not isinstance(values, np.ndarray):
        return namespace(values).concat([samples_first(part) for part in parts])
    out = np.empty_like(values, order="C")
    for span, part in zip(spans, parts, strict=True):
        out[span] = samples_first(part)
    return out


def made(
    problem: Problem, spans: list[slice], make: Callable[[slice], Array], engine: Engine
) -> Array:
    """Join tensors that are made for each block, by the threads of the engine."""
    if not isinstance(problem.data.values, np.ndarray):
        return assemble(problem, spans, map(make, spans))
    out = np.empty_like(problem.data.values, order="C")

    def write(some: slice) -> None:
        for span in spans[some]:
            out[span] = samples_first(make(span))

    engine.over(write, len(spans))
    return out


def numbers(problem: Problem) -> int:
    """Return how many numbers the coordinates of all samples are."""
    K, r, n2 = problem.reduction.shape
    return K * r * n2


def block_spans(problem: Problem, engine: Engine) -> list[slice]:
    """Cut the samples into blocks; depends on the size of the problem, not on the threads."""
    K, r, n2 = problem.reduction.shape
    if engine.max_block_bytes is None or numbers(problem) < engine.small:
        return [slice(0, n2)]
    size = K * r * n2 * problem.reduction.x.dtype.itemsize
    wanted = max(engine.min_blocks, -(-size // engine.max_block_bytes))
    # Blocks shall not be smaller than the Gram matrices that they return, if there are MANY.
    fewest = max(MIN_BLOCK, min(r, n2 // MANY))
    return spans(n2, max(1, min(wanted, n2 // fewest)))
