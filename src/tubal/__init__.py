"""Clustering of multiway data that contains outliers and holes.

The modules are the rooms of one flow, and imports go one way along it::

    input -> transforms -> algebra -> noise -> reduction -> problem -> solvers / sparse
          -> representation -> similarity -> outliers -> graph -> spectral -> selection
          -> estimators -> persistence -> files -> bench -> report -> plot / cli

``docs/architecture.md`` tells what happens in each room and which ones are built.

The public names are loaded when they are first used, so that ``import tubal`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what _HOME says, for type checkers and editors
    from tubal import algebra as algebra
    from tubal import datasets as datasets
    from tubal import files as files
    from tubal import graph as graph
    from tubal import input as input
    from tubal import metrics as metrics
    from tubal import noise as noise
    from tubal import outliers as outliers
    from tubal import plot as plot
    from tubal import report as report
    from tubal import sparse as sparse
    from tubal import spectral as spectral
    from tubal import transforms as transforms
    from tubal.estimators import LSR as LSR
    from tubal.estimators import ORTLRR as ORTLRR
    from tubal.estimators import SSC as SSC
    from tubal.estimators import SSCOMP as SSCOMP
    from tubal.estimators import EnSC as EnSC
    from tubal.estimators import LowRankClusterer as LowRankClusterer
    from tubal.estimators import TensorCompleter as TensorCompleter
    from tubal.estimators import TensorOutlierDetector as TensorOutlierDetector
    from tubal.estimators import make as make
    from tubal.estimators import methods as methods
    from tubal.persistence import load_model as load_model
    from tubal.persistence import save_model as save_model
    from tubal.problem import Lambda as Lambda
    from tubal.solvers import Certificate as Certificate
    from tubal.solvers import Certified as Certified
    from tubal.solvers import Dask as Dask
    from tubal.solvers import Published as Published
    from tubal.solvers import Solution as Solution
    from tubal.solvers import StopReason as StopReason
    from tubal.solvers import path as path
    from tubal.solvers import solve as solve
    from tubal.solvers import use_engine as use_engine

__version__ = "0.1.0.dev0"

# Public name -> module that defines it. A module that is public itself is its own home.
_HOME = {
    "Certificate": "solvers",
    "Certified": "solvers",
    "Dask": "solvers",
    "EnSC": "estimators",
    "LSR": "estimators",
    "Lambda": "problem",
    "LowRankClusterer": "estimators",
    "ORTLRR": "estimators",
    "Published": "solvers",
    "SSC": "estimators",
    "SSCOMP": "estimators",
    "Solution": "solvers",
    "StopReason": "solvers",
    "TensorCompleter": "estimators",
    "TensorOutlierDetector": "estimators",
    "algebra": "algebra",
    "datasets": "datasets",
    "files": "files",
    "graph": "graph",
    "input": "input",
    "load_model": "persistence",
    "make": "estimators",
    "methods": "estimators",
    "metrics": "metrics",
    "noise": "noise",
    "outliers": "outliers",
    "path": "solvers",
    "plot": "plot",
    "report": "report",
    "save_model": "persistence",
    "solve": "solvers",
    "sparse": "sparse",
    "spectral": "spectral",
    "transforms": "transforms",
    "use_engine": "solvers",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    home = import_module(f"{__name__}.{_HOME[name]}")
    value = home if name == _HOME[name] else getattr(home, name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
