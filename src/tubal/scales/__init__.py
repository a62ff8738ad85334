"""Similarity of samples in a view: as combinations at several ranks at once, or by distance.

How many directions of each slice count is the one choice that matters most for a graph, and no
single answer serves a whole data set. So several are asked, and their similarities averaged
(`combinations`). What holds the classes of a table together may also be a place instead of a
subspace: then samples are compared by their distance (`distances`). A view says which (`views`).
"""

from tubal.scales.combinations import FACTORS, ScaleKernel, in_range
from tubal.scales.comparison import Comparison
from tubal.scales.distances import DistanceKernel
from tubal.scales.views import Distance, View

__all__ = [
    "FACTORS",
    "Comparison",
    "Distance",
    "DistanceKernel",
    "ScaleKernel",
    "View",
    "in_range",
]
