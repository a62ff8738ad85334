"""From what a user passes to a transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tubal.input import Array, namespace
from tubal.transforms.base import Transform, check_size
from tubal.transforms.composed import Composed
from tubal.transforms.fast import Cosine, Fourier, Identity
from tubal.transforms.matrices import DataDriven, MatrixTransform, Orthogonal, RandomOrthogonal


def same_transform(a: Transform, b: Transform) -> bool:
    """Whether two bound transforms are the same, and keep the same slices.

    >>> same_transform(Cosine(3), Cosine(3)), same_transform(Cosine(3), Identity(3))
    (True, False)
    >>> same_transform(Fourier(4), Fourier(4).full())
    False
    """
    if a is b:
        return True
    if type(a) is not type(b) or a.sizes != b.sizes or a.n_slices != b.n_slices:
        return False
    if isinstance(a, Composed) and isinstance(b, Composed):
        return all(same_transform(x, y) for x, y in zip(a.axes, b.axes, strict=True))
    if isinstance(a, DataDriven) and isinstance(b, DataDriven):
        return a.same_as(b)
    return not isinstance(a, MatrixTransform) or np.array_equal(a.matrix, b.matrix)


NAMES = {
    "dft": Fourier,
    "dct": Cosine,
    "rom": RandomOrthogonal,
    "data": DataDriven,
    "none": Identity,
}


def resolve(
    transform: Any,
    sizes: int | Sequence[int] | None = None,
    *,
    data: Array | None = None,
    observed: Array | None = None,
    random_state: Any = None,
) -> Transform:
    """Turn what a user may pass as `transform` into an object; the only place that reads names.

    Parameters
    ----------
    transform : Transform, str, array-like of shape (n3, n3), or a sequence of these, one an axis
        Names: "dft", "dct", "rom" (random orthogonal matrix), "data" (data-driven), "none".
    sizes : int, sequence of int or None
        Lengths of the axes the transform runs along. None leaves a name without a size.
    data, observed : array of shape `(..., *sizes)`, optional
        What data-driven transforms are fitted to.
    random_state : None, int or Generator
        Used for the name "rom".

    Examples
    --------
    >>> resolve("dct", 8)
    Cosine(8)
    >>> resolve(["dft", "none"], (4, 3))
    Composed([Fourier(4), Identity(3)])
    """
    if sizes is None:
        return _to_rule(transform, random_state)
    sizes = (check_size(sizes),) if isinstance(sizes, (int, np.integer)) else tuple(sizes)
    if isinstance(transform, Transform) and transform.sizes is not None:
        if transform.sizes != sizes:
            msg = f"transform {transform!r} is for sizes {transform.sizes}, the data has {sizes}"
            raise ValueError(msg)
        return transform
    rules = [_to_rule(t, random_state) for t in _one_for_each_axis(transform, sizes)]
    bound = []
    for i, (rule, n) in enumerate(zip(rules, sizes, strict=True)):
        axis = i - len(sizes)
        tubes = None if data is None else namespace(data).moveaxis(data, axis, -1)
        seen = None if observed is None else namespace(observed).moveaxis(observed, axis, -1)
        bound.append(rule.bind(n, tubes, seen))
    return bound[0] if len(bound) == 1 else Composed(bound)


def _one_for_each_axis(transform: Any, sizes: tuple[int, ...]) -> list[Any]:
    listed = isinstance(transform, (list, tuple)) and any(
        isinstance(t, (str, Transform)) or np.ndim(t) == 2 for t in transform
    )
    if not listed:
        return [transform] * len(sizes)
    if len(transform) != len(sizes):
        msg = f"transform lists {len(transform)} transforms for {len(sizes)} axes (sizes {sizes})"
        raise ValueError(msg)
    return list(transform)


def _to_rule(transform: Any, random_state: Any) -> Transform:
    if isinstance(transform, Transform):
        return transform
    if isinstance(transform, str) and transform in NAMES:
        return RandomOrthogonal(random_state) if transform == "rom" else NAMES[transform]()
    if isinstance(transform, str) or np.ndim(transform) != 2:
        msg = (
            f"transform must be one of {sorted(NAMES)}, a square matrix or a Transform, "
            f"got {transform!r}"
        )
        raise ValueError(msg)
    return Orthogonal(transform)
