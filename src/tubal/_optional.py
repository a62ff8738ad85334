"""Packages that are not installed with the package itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(package: str, what: str, extra: str) -> Any:
    """Import a package of an extra, or say how to get it.

    >>> optional("math", "a circle", "round").pi > 3
    True
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0].replace("PIL", "pillow")
        msg = f"{what} needs the package {name}: pip install 'tubal[{extra}]'"
        raise ImportError(msg) from error
