"""From a graph between the samples to the number of clusters and to labels.

With W the affinity, D its degrees and `P = D^-1/2 W D^-1/2`, the normalised cut relaxes to the
largest eigenvectors of P, that is the smallest of the normalised Laplacian I - P. `embed` computes
them, `estimate_n_clusters` reads the number of clusters from the eigenvalues, and an `Assignment`
turns the eigenvectors into labels. `count_beyond_chance` compares partitions with those of a null
model instead. `ncut` does the first and the last in one call.

An affinity is a symmetric, non-negative, finite n x n array, dense or of `scipy.sparse`.

References: J. Shi, J. Malik, "Normalized cuts and image segmentation", IEEE TPAMI 22 (2000).
S. X. Yu, J. Shi, "Multiclass spectral clustering", ICCV (2003). A. Ng, M. Jordan, Y. Weiss, "On
spectral clustering", NIPS (2001). U. von Luxburg, "A tutorial on spectral clustering", Statistics
and Computing 17 (2007). R. Coifman, S. Lafon, "Diffusion maps", Applied and Computational Harmonic
Analysis 21 (2006). M. Newman, "Analysis of weighted networks", Physical Review E 70 (2004).
"""

from tubal.spectral.affinity import check_affinity, modularity
from tubal.spectral.assignment import (
    Assignment,
    Best,
    DiffusionWard,
    Discretise,
    KMeansRows,
    ModularityKMeans,
    resolve,
)
from tubal.spectral.chance import Count, count_beyond_chance
from tubal.spectral.count import ClusterCount, estimate_n_clusters, relative_gaps
from tubal.spectral.cut import Clusters, Cut, ncut, partition, resolve_cut
from tubal.spectral.embedding import Embedding, embed

__all__ = [
    "Assignment",
    "Best",
    "ClusterCount",
    "Clusters",
    "Count",
    "Cut",
    "DiffusionWard",
    "Discretise",
    "Embedding",
    "KMeansRows",
    "ModularityKMeans",
    "check_affinity",
    "count_beyond_chance",
    "embed",
    "estimate_n_clusters",
    "modularity",
    "ncut",
    "partition",
    "relative_gaps",
    "resolve",
    "resolve_cut",
]
