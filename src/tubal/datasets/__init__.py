"""Data to try the package on."""

from tubal.datasets.synthetic import TensorSubspaces, make_tensor_subspaces

__all__ = ["TensorSubspaces", "make_tensor_subspaces"]
