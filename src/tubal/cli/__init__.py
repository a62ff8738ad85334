"""The command line: `tubal cluster`, `predict`, `outliers`, `complete` and others.

Exit codes: 0 when the command did its work, 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM.
Heavy imports happen inside the commands, so that ``tubal --version`` answers at once.
"""

from tubal.cli.app import main

__all__ = ["main"]
