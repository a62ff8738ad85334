"""Each sample from the others, as vectors: SSC, SSC-OMP, EnSC and LSR.

These are the methods of the comparison that are not of the form of `tubal.problem`. All write a
sample as a combination of other samples, `X ~ coefficients @ X` for samples in rows; what a
combination of samples of the same subspace looks like is then left to the graph. `ssc` and `ensc`
solve a convex program for each sample and prove how close they came, `ssc_omp` chooses one sample
after the other, and `lsr` has a closed form in which all samples take part.
"""

from tubal.sparse.ensc import ensc
from tubal.sparse.lsr import RidgeRepresentation, lsr
from tubal.sparse.omp import ssc_omp
from tubal.sparse.representation import SparseRepresentation
from tubal.sparse.ssc import ssc

__all__ = ["RidgeRepresentation", "SparseRepresentation", "ensc", "lsr", "ssc", "ssc_omp"]
