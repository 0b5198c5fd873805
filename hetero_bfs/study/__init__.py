"""Tables and figures of the papers for this machine. Runs as `hetero-bfs study`.

`searches` selects the graphs. It makes the tables with `measurements` and `run`. `figures` draws
them in the style of `style`, and `findings` summarises them in sentences. `page` makes one HTML
page, and `run` writes all files at once.

`hetero-bfs study --paper NAME` makes a paper's own tables and figures. A paper is a name here and a
`Paper` (page.py) in its module, with a function that measures and with its sections. A section is a
table, with functions for its figure, its result in a sentence and its small table.
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
    module = name if name in ("zhang", "frog") else "program_papers"
    return cast("Paper", getattr(import_module(f"{__name__}.{module}"), f"{name.upper()}_PAPER"))
