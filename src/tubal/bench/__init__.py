"""The tables of the paper as experiments: declared as data, run into rows, read back as tables.

`experiments` says what is measured, `runner` measures it and appends one row for each draw, method
and setting, `tables` sets the rows beside the published values.
"""

from tubal.bench.experiments import EXPERIMENTS, Drawn, Experiment, Setting
from tubal.bench.published import published
from tubal.bench.runner import Task, run, tasks
from tubal.bench.tables import read_rows, summarise, to_csv, to_markdown

__all__ = [
    "EXPERIMENTS",
    "Drawn",
    "Experiment",
    "Setting",
    "Task",
    "published",
    "read_rows",
    "run",
    "summarise",
    "tasks",
    "to_csv",
    "to_markdown",
]
