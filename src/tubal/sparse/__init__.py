"""Sparse subspace clustering and its greedy version: each sample from a few of the others.

These are the two methods of the comparison that are not of the form of `tubal.problem`. Both write
a sample as a combination of few other samples, `X ~ coefficients @ X` for samples in rows; what a
combination of samples of the same subspace looks like is then left to the graph. `ssc` solves a
convex program and proves how close it came, `ssc_omp` chooses one sample after the other.
"""

from tubal.sparse.omp import ssc_omp
from tubal.sparse.representation import SparseRepresentation
from tubal.sparse.ssc import ssc

__all__ = ["SparseRepresentation", "ssc", "ssc_omp"]
