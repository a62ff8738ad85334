"""What happened in a fit, for a reader: one HTML page.

`data` takes from a fitted estimator what is to be shown, `sprites` draws samples small, `page`
puts both into a template. The page carries its style and its program, and asks the network for
nothing.
"""

from tubal.report.data import Findings, examine
from tubal.report.page import write

__all__ = ["Findings", "examine", "write"]
