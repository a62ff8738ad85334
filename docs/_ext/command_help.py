"""The directive `command-help`: what `--help` of each command prints, asked at build time."""

import argparse

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tubal import cli


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
        for parser in commands(cli._parser()):
            section = nodes.section(ids=[nodes.make_id(parser.prog)])
            section += nodes.title("", "", nodes.literal("", parser.prog))
            text = parser.format_help()
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def setup(app):
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
