"""The study's page: one self-contained HTML file with embedded pictures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 72rem; margin: 0 auto; padding: 1rem 1.5rem 3rem; }
h1 { font-size: 1.7rem; margin: 1rem 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .4rem; border-top: 1px solid #ccc; padding-top: 1rem; }
p, li { max-width: 60rem; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; border: 1px solid #ddd; }
.finding { font-weight: 600; }
.files, footer, .machine { color: #444; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
caption { text-align: left; color: #444; padding-bottom: .3rem; }
thead th { border-bottom: 2px solid #888; }
footer { border-top: 1px solid #ccc; margin-top: 3rem; padding-top: .8rem; }
nav a { margin-right: 1.2rem; white-space: nowrap; }
"""


@dataclass(frozen=True)
class Part:
    """One section of the page; `reading` is HTML, `brief` is a table of text and may be empty.

    The picture is a PNG or an SVG. Without measurements there is no picture, and `finding` gives
    the reason.
    """

    name: str
    title: str
    reading: str
    finding: str
    caption: str
    brief: pd.DataFrame
    png: bytes | None = None
    svg: str | None = None


def page(title: str, machine: str, parts: Sequence[Part], notes: Sequence[str], foot: str) -> str:
    contents = "".join(f'<a href="#{part.name}">{escape(part.name)}</a> ' for part in parts)
    noted = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="machine">{escape(machine)}</p>\n'
        f"<nav>{contents}</nav>\n"
        + "\n".join(_section(part) for part in parts)
        + (f'\n<h2 id="notes">Notes</h2>\n<ul>{noted}</ul>' if noted else "")
        + f"\n<footer>{escape(foot)}</footer>\n</body></html>\n"
    )


def _section(part: Part) -> str:
    picture, kinds = "", ["csv"]
    if part.png is not None:
        image = base64.b64encode(part.png).decode("ascii")
        picture = (
            f'<img alt="{escape(part.title)}. {escape(part.finding)}" '
            f'src="data:image/png;base64,{image}">'
        )
        kinds.append("png")
    elif part.svg is not None:
        picture = part.svg
        kinds.append("svg")
    shown = f"<p>{part.reading}</p>\n<figure>{picture}</figure>\n" if picture else ""
    links = ", ".join(f'<a href="{part.name}.{kind}">{part.name}.{kind}</a>' for kind in kinds)
    return (
        f'<section id="{part.name}"><h2>{escape(part.title)}</h2>\n'
        f'<p class="finding">{escape(part.finding)}</p>\n{shown}'
        f"{_table(part.caption, part.brief)}"
        f'<p class="files">Beside this page: {links}</p></section>'
    )


def _table(caption: str, table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>\n"
        for row in table.fillna("").to_numpy()
    )
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )
