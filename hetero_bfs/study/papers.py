"""The papers whose tables and figures a study can make: `hetero-bfs study --paper NAME`.

A paper is a name here and a `Paper` (page.py) in the module of that name, with a function that
measures and with its sections. A section is a table, with functions for its figure, its result in a
sentence and its small table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hetero_bfs.study.page import Paper

TAKES = {
    "zhang": ("keys", "regenerate", "power_log"),
    "frog": ("graph", "directed"),
    "gpregel": (),
    "graphmat": (),
    "wolfpath": (),
}
"""The papers, and the options that only some studies read."""

PAPERS = tuple(TAKES)


def paper_named(name: str) -> Paper:
    """Return a paper of `PAPERS`."""
    return cast("Paper", import_module(f"hetero_bfs.study.{name}").PAPER)
