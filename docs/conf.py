"""Settings of the documentation: `python -m sphinx -W -b html docs docs/_build/html`."""

import os
import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

from tubal import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))
os.environ["COLUMNS"] = "72"  # width of the help texts of the command line
os.environ["NO_COLOR"] = "1"

project = "tubal"
author = "The tubal developers"
copyright = author
version = release = __version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "command_help",
    "mathml",
    "own_members",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "_ext", "figures", "auto_examples/**.ipynb"]
templates_path = ["_templates"]
rst_prolog = ".. py:currentmodule:: tubal"
default_role = "py:obj"  # a name in backticks becomes a link where the reference has it

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what is accepted, in words
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_xref_param_type = False

# Warnings in an example or a figure are errors of that example.
warnings.filterwarnings("error", module=r"tubal\..*")
plot_formats = [("png", 150)]
plot_html_show_source_link = False
plot_html_show_formats = False
plot_rcparams = {"figure.constrained_layout.use": True, "font.size": 9}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": ExplicitOrder(
        [
            "plot_faces.py",
            "plot_hyperspectral.py",
            "plot_sensors.py",
            "plot_colour.py",
            "plot_missing.py",
            "plot_n_clusters.py",
            "plot_lambda_path.py",
            "plot_comparison.py",
            "plot_transforms.py",
            "plot_new_samples.py",
            "plot_threshold.py",
            "*",
        ]
    ),
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "nested_sections": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "tubal"
html_static_path = ["_static"]
html_css_files = ["tubal.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Code of up to 100 columns needs the room; the gallery has an index of its own.
html_sidebars = {page: [] for page in ("index", "quickstart", "how-it-works", "auto_examples/*")}
