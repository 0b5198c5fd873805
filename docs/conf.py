"""Settings of the documentation's site; `./start docs` builds it."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

from hetero_bfs import __version__

project = "hetero_bfs"
author = "the hetero_bfs authors"
copyright = "the hetero_bfs authors, MIT licence"  # Sphinx asks for this name
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"hetero_bfs {version}"

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say dtype and shape, which annotations cannot
napoleon_google_docstring = False
napoleon_use_param = False  # its types are prose such as "shape (num_vertices,)", not links


def link_to_results(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Make links to Markdown files of the checkout, which are no pages here, links to files."""
    source[0] = re.sub(r"\]\(((?:\.\./)+benchmarks/[^)]*\.md)\)", r"](path:\1)", source[0])


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("source-read", link_to_results)
