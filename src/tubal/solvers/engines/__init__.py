"""Who runs the steps on the blocks: threads of this machine, one array library, or a cluster.

An engine is three methods: `place` puts the blocks where they live, `each` calls one method of
every block and returns the results in the order of the blocks, and `over` spreads work of the
driver itself.
"""

from tubal.solvers.engines.base import Engine, Inline, engine_in_use, use_engine
from tubal.solvers.engines.dask import Dask
from tubal.solvers.engines.threads import Threads

__all__ = ["Dask", "Engine", "Inline", "Threads", "engine_in_use", "use_engine"]
