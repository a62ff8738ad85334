"""Clustering of multiway data that contains outliers and holes.

The modules are the rooms of one flow, and imports go one way along it::

    input -> transforms -> algebra -> reduction -> problem -> solvers
          -> outliers -> graph -> spectral -> estimators -> report / cli

``docs/architecture.md`` tells what happens in each room and which ones are built.

The public names are loaded when they are first used, so that ``import tubal`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what _HOME says, for type checkers and editors
    from tubal import algebra as algebra
    from tubal import input as input
    from tubal import transforms as transforms

__version__ = "0.1.0.dev0"

# Public name -> module that defines it. A module that is public itself is its own home.
_HOME = {
    "algebra": "algebra",
    "input": "input",
    "transforms": "transforms",
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
