"""Settings of the documentation's site; `./start docs` builds it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

from hetero_bfs import __version__

sys.path.insert(0, str(Path(__file__).parent))
from reference_rows import MARK, sections
from run_notebook import as_markdown

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


def add_algorithms(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the algorithms of the table to the reference."""
    if page == "reference":
        source[0] = source[0].replace(MARK, sections())


def link_to_reference(app: Sphinx, document: nodes.document, page: str) -> None:
    """Link names in code type, such as `hb.bfs` or `Engine.bfs`, to the reference."""
    objects = app.env.domains.python_domain.objects
    for literal in list(document.findall(nodes.literal)):
        found = _NAME.match(literal.astext())
        name = found and f"hetero_bfs.{found[1]}"
        if name not in objects or isinstance(literal.parent, nodes.reference | nodes.title):
            continue
        target = objects[name]
        if target.docname != page:
            link = make_refnode(
                app.builder, page, target.docname, target.node_id, literal.deepcopy(), name
            )
            literal.replace_self(link)


_NAME = re.compile(r"(?:hb\.|(?=[A-Z]))([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?$")
"""Names of the package: those after `hb.`, and those that begin with a class."""


class NotebookParser(MystParser):  # type: ignore[misc]
    """Reads a notebook as the Markdown that its cells and their outputs are."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse a notebook's JSON into a document."""
        super().parse(as_markdown(json.loads(inputstring)), document)


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", link_to_results)
    app.connect("source-read", add_algorithms)
    app.connect("doctree-resolved", link_to_reference)
