"""Formulas as MathML, made when the pages are built: they need no script and no network."""

from html import escape

from docutils import nodes
from latex2mathml.converter import convert


def inline(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(self, node):
    self.body.append('<div class="formula">')
    self.body.append(convert(node.astext(), display="block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({escape(str(node["number"]))})</span>')
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
