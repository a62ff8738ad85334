"""How similar samples are, read off coefficients: those of a solution, or of its closed form.

Coefficients have one level of shrinkage. Samples that share most of their directions look alike at
a strong shrinkage, fine differences show at a weak one, and no single strength serves a whole data
set. So one coefficient tensor is read at several strengths, and the similarities are averaged
(`shrunken`). A view says how samples are arranged before that (`views`).
"""

from tubal.similarity.shrunken import STRENGTHS, Shrunken, Spectrum
from tubal.similarity.views import GaussianKernel, View

__all__ = ["STRENGTHS", "GaussianKernel", "Shrunken", "Spectrum", "View"]
