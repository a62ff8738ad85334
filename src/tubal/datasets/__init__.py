"""Data to try the package on."""

from tubal.datasets.demo import Demo, load_demo
from tubal.datasets.download import DownloadError
from tubal.datasets.fetching import available, describe, fetch
from tubal.datasets.store import ImageSet, cache_folder, find, load
from tubal.datasets.synthetic import TensorSubspaces, make_tensor_subspaces

__all__ = [
    "Demo",
    "DownloadError",
    "ImageSet",
    "TensorSubspaces",
    "available",
    "cache_folder",
    "describe",
    "fetch",
    "find",
    "load",
    "load_demo",
    "make_tensor_subspaces",
]
