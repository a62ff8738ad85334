"""The directive `command-help`: what `--help` of each command prints, asked at build time."""

import argparse
from unittest.mock import patch

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tubal.cli import main


class Found(BaseException):
    """Carries the parser out of the program."""


def command_parser():
    """Return the parser that the command line uses, wherever it is made."""

    def stop(parser, *args, **kwargs):
        raise Found(parser)

    with patch.object(argparse.ArgumentParser, "parse_args", stop):
        try:
            main([])
        except Found as found:
            return found.args[0]
    msg = "tubal.cli.main does not parse its arguments with argparse"
    raise RuntimeError(msg)


def commands(parser):
    """Yield a parser and then those of its commands, depth first."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from commands(inner)


class CommandHelp(SphinxDirective):
    def run(self):
        sections = []
        for parser in commands(command_parser()):
            section = nodes.section(ids=[nodes.make_id(parser.prog)])
            section += nodes.title("", "", nodes.literal("", parser.prog))
            text = parser.format_help()
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def setup(app):
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
