"""The sections of the reference about the algorithms of the table."""

from __future__ import annotations

import hetero_bfs as hb
from hetero_bfs.algorithms.table import Row, rows

MARK = "<!-- the algorithms of the table -->\n"
"""In reference.md, which the sections replace."""


def sections() -> str:
    """Return a section for each row."""
    return "\n".join(_section(row) for row in rows().values())


def _section(row: Row) -> str:
    lines = [f".. autofunction:: hetero_bfs.{row.name}"]
    for name in row.names:
        made = getattr(hb, name)
        if not isinstance(made, type):
            lines.append(f".. autofunction:: hetero_bfs.{name}")
            continue
        fields = getattr(made, "_fields", ())  # of a named tuple, which its docstring describes
        more = f"   :exclude-members: {', '.join(fields)}" if fields else "   :inherited-members:"
        lines += [f".. autoclass:: hetero_bfs.{name}", "   :members:", more]
    return "\n".join([f"## {row.title}", "", "```{eval-rst}", *lines, "```", ""])
