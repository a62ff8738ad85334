"""The scikit-learn face: clusterers, an outlier detector, a completer, and methods by name."""

from tubal.estimators.catalogue import Method, find, make, methods
from tubal.estimators.clusterer import SubspaceClusterer
from tubal.estimators.completer import TensorCompleter
from tubal.estimators.detector import TensorOutlierDetector
from tubal.estimators.lowrank import ORTLRR, LowRankClusterer
from tubal.estimators.sparse import LSR, SSC, SSCOMP, EnSC

__all__ = [
    "LSR",
    "ORTLRR",
    "SSC",
    "SSCOMP",
    "EnSC",
    "LowRankClusterer",
    "Method",
    "SubspaceClusterer",
    "TensorCompleter",
    "TensorOutlierDetector",
    "find",
    "make",
    "methods",
]
