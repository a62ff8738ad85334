"""Data to try the package on."""

from tubal.datasets.demo import Demo, load_demo
from tubal.datasets.synthetic import TensorSubspaces, make_tensor_subspaces

__all__ = ["Demo", "TensorSubspaces", "load_demo", "make_tensor_subspaces"]
