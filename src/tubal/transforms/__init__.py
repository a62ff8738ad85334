"""Transforms: the `L` of the t-product, as objects.

A transform acts on the tubes of a tensor (its last axis, or its first: `axis=0`) and satisfies
`L L^H = tau I`. In the transform domain a tensor is a stack of matrices, the *slices*, and every
t-operation is a matrix operation on each of them. `tau` is `scale`. When real data makes slices
come in conjugate pairs (the DFT), one of each pair is kept and counts twice: `weights`. So, with
`omega = weights / scale`,

    <A, B> = sum_k omega_k Re <A_k, B_k>    and    ||A||_* = sum_k omega_k ||A_k||_*.

A transform made without a size is a *rule*; `bind` gives it one. Reference: E. Kernfeld,
M. Kilmer, S. Aeron, "Tensor-tensor products with invertible linear transforms", Linear Algebra
and its Applications 485 (2015).
"""

from __future__ import annotations

from tubal.transforms.base import Transform
from tubal.transforms.composed import Composed
from tubal.transforms.fast import Cosine, Fourier, Identity
from tubal.transforms.matrices import DataDriven, Orthogonal, RandomOrthogonal
from tubal.transforms.names import resolve, same_transform

__all__ = [
    "Composed",
    "Cosine",
    "DataDriven",
    "Fourier",
    "Identity",
    "Orthogonal",
    "RandomOrthogonal",
    "Transform",
    "resolve",
    "same_transform",
]
