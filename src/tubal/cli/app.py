"""The parser, the table of commands, and the way out: exit codes and error lines."""

from __future__ import annotations

import argparse
import inspect
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tubal import __version__
from tubal._printable import printable
from tubal.cli import about, bench, datasets, fitting, options

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
TERMINATED = 143  # 128 + SIGTERM
UNREAD = 141  # 128 + SIGPIPE

Add = Callable[[argparse.ArgumentParser], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program name; those of the process by default.

    Returns
    -------
    int
        0 on success, 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM, 141 when nobody reads
        the output any more.
    """
    args = argparse.Namespace(debug=False)
    if hasattr(sys.stdout, "reconfigure"):  # file names need not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    signals: list[int] = []
    try:
        _parser().parse_args(argv, namespace=args)
        with _answering_sigterm(signals):
            args.run(args)
        if sys.stdout is not None:  # closed by the shell (>&-)
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        what = f"; {printable(str(stop))}" if str(stop) else ""
        print(f"tubal: interrupted{what}", file=sys.stderr)
        return TERMINATED if signals else INTERRUPTED
    except (ValueError, OSError, ImportError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) and _reader_left():
            return UNREAD
        if args.debug:
            raise
        print(f"tubal: error: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    return 0


@contextmanager
def _answering_sigterm(signals: list[int]) -> Iterator[None]:
    """Let SIGTERM do inside the block what Ctrl-C does; take note of it in `signals`."""

    def handle(number: int, frame: Any) -> None:
        signals.append(number)
        ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(ctrl_c):
            raise KeyboardInterrupt
        ctrl_c(number, frame)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _reader_left() -> bool:
    """Whether the reader of our output is gone, as `head` is when it has its lines."""
    if sys.stdout is None:  # there was none
        return False
    try:
        ours = sys.stdout.fileno()
    except OSError:  # not a file
        return False
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(ours, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), ours)  # Python flushes once more at its end
    return True


def _one_line(error: Exception) -> str:
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return f"not enough memory: {text}" if isinstance(error, MemoryError) else text


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


# Name -> function and arguments; a mapping instead stands for commands of a command. What --help
# says is the docstring of the function: a line, and an example below it.
COMMANDS: dict[str, tuple[Any, Any]] = {
    "cluster": (fitting.cluster, options.cluster_arguments),
    "predict": (fitting.predict, options.predict_arguments),
    "outliers": (fitting.outliers, options.outliers_arguments),
    "complete": (fitting.complete, options.complete_arguments),
    "demo": (about.demo, _nothing),
    "bench": (
        "Reproduce the tables of the paper.",
        {
            "list": (bench.list_, _nothing),
            "run": (bench.run, bench.run_arguments),
            "table": (bench.table, bench.table_arguments),
        },
    ),
    "datasets": (
        "Data sets of the paper.",
        {
            "list": (datasets.list_, _nothing),
            "info": (datasets.info, datasets.info_arguments),
            "fetch": (datasets.fetch, datasets.fetch_arguments),
        },
    ),
    "info": (about.info, _nothing),
}
EXAMPLE = """\
example:
  tubal cluster pictures/ -k 10
  tubal predict tubal-pictures more-pictures/
"""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints take one line and the same way out as any bad input."""

    def error(self, message: str) -> NoReturn:
        msg = f"{message} (try '{self.prog} --help')"
        raise ValueError(msg)


def _parser() -> _Parser:
    debug = _Parser(add_help=False)
    debug.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,  # a subcommand must not undo `tubal --debug demo`
        help="show the full traceback of an error",
    )
    parser = _Parser(
        prog="tubal",
        description="Clustering of multiway data that contains outliers and holes.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[debug],
    )
    parser.add_argument("--version", action="version", version=f"tubal {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, command in COMMANDS.items():
        _add_command(commands, name, command, debug)
    return parser


def _add_command(commands: Any, name: str, command: Any, debug: _Parser) -> None:
    what, inside = command
    if isinstance(inside, dict):
        group = commands.add_parser(name, help=what, description=what, parents=[debug])
        inner = group.add_subparsers(metavar="command", required=True)
        for key, value in inside.items():
            _add_command(inner, key, value, debug)
        return
    summary, _, rest = (inspect.getdoc(what) or "").partition("\n")
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=rest.strip() or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[debug],
    )
    inside(parser)
    parser.set_defaults(run=what)
