"""The study's page: its sections, in one self-contained HTML file with embedded pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from hetero_bfs.study import figures, findings
from hetero_bfs.study.measurements import METERED
from hetero_bfs.study.searches import Row
from hetero_bfs.training.program_regret import COLUMNS as PROGRAM_COLUMNS
from hetero_bfs.training.regret import COLUMNS as REGRET_COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """One figure with its table.

    `name` is the stem of its SVG and CSV files, and `columns` are the CSV's, also without rows.
    `finding` returns a sentence that the small table does not show, or "". `draw` returns a figure
    or None, and `brief` a small table for the page, with a caption. Without rows there is
    none of the three.
    """

    name: str
    title: str
    reading: str
    columns: tuple[str, ...]
    finding: Callable[[pd.DataFrame], str] = lambda _: ""
    draw: Callable[[pd.DataFrame], Figure | None] = lambda _: None
    brief: Callable[[pd.DataFrame], findings.Brief] = findings.rows_brief


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def claim(what: str, paper: float | str, ours: float | None, unit: str = "x") -> Row:
    return {"claim": what, "unit": unit, "paper": paper, "ours": ours}


def claims_section(note: str, columns: Sequence[str] = ("paper", "ours")) -> Section:
    title, shown = "Figures of the paper, and ours", ("claim", "unit", *columns)
    return Section("claims", title, "", shown, lambda _: note, brief=findings.claims_brief)


GRAPH_COLUMNS = ("graph", "family", "scale")
LEVELS = Section(
    "levels",
    "Seconds of each strategy at each level (the paper's Table 5)",
    "Every strategy runs every level of the same search from the same state, without migration "
    "and conversion of the frontier. Lower is better. Where the lines cross, another strategy "
    "becomes the best one, and a selector gains. The figure has the first key of each "
    "graph, the table that of the last graph, the CSV file has all. Black lines reach from the "
    "first to the third quartile of the rounds.",
    (
        *GRAPH_COLUMNS,
        *names("key level strategy frontier_vertices frontier_edges unvisited_vertices"),
        *names("unvisited_edges seconds first_quartile_seconds third_quartile_seconds"),
        *("fastest", "rounds"),
    ),
    findings.levels_finding,
    figures.levels,
    findings.levels_brief,
)
THROUGHPUT = Section(
    "throughput",
    "GTEPS by strategy and selector (Figure 4)",
    "Whole searches, from the key to the complete parent array. More is better. Hatched bars "
    "are single strategies, the others selectors. A key's time is the median of its rounds. "
    "GTEPS is the harmonic mean over keys, as in Graph500. Black lines reach from the first to "
    "the third quartile of the keys.",
    (
        *GRAPH_COLUMNS,
        *names("vertices input_edges selector kind rule median_seconds harmonic_mean_gteps"),
        *names("first_quartile_gteps third_quartile_gteps keys rounds"),
    ),
    findings.throughput_finding,
    figures.throughput,
    findings.throughput_brief,
)
ENERGY = Section(
    "energy",
    "Energy efficiency by strategy and selector (Figure 5)",
    "Million traversed edges per joule. Higher is better. Energy of the CPU, of the OpenCL "
    "device and of the whole system is shown separately and never added up. &quot;Idle power "
    "apart&quot; subtracts the power of the resting machine, measured just before. A "
    "configuration has no such figure if it exceeds that power by less than twice the meter's "
    "error. It has no figure at all if it spends more than a tenth of its time where no meter "
    "measures.",
    (*GRAPH_COLUMNS, "selector", "kind", "domain", *METERED, "unmeasured_because"),
    findings.energy_finding,
    figures.energy,
    findings.energy_brief,
)
SECTIONS = (
    LEVELS,
    THROUGHPUT,
    ENERGY,
    Section(
        "relabelling",
        "Vertices that relabelling removes, and its effect on search times (Table 6, section 5.4)",
        "Relabelling drops vertices without edges and numbers the others anew. Every strategy and "
        "selector searches the graph with and without it. The second panel shows the median search "
        "time in the given order over the median after relabelling. At 2 the relabelled graph is "
        "searched in half the time; below 1 relabelling makes searches slower. Black lines reach "
        "from the first to the third quartile of the keys.",
        (
            *GRAPH_COLUMNS,
            *names("vertices removed_vertices removed_share order selector kind"),
            *names("relabelled_seconds as_given_seconds speedup"),
            *names("first_quartile_speedup third_quartile_speedup keys rounds"),
        ),
        draw=figures.relabelling,
        brief=findings.relabelling_brief,
    ),
    Section(
        "regret",
        "Regret: time over that of the best schedule known, by family of graphs",
        "The time of the schedule that a selector chose over the time of the best schedule "
        "known, minus 1; all schedules are replayed alternately in one run. Lower is better. 0 "
        "is the fastest replay, which need not be the oracle's own schedule. Models are not "
        "corrected. Cells are geometric means over the searches of a family; &quot;mean&quot; "
        "is the geometric mean over families, &quot;worst&quot; is the worst family. The CSV "
        "has every search. Schedules that would take more than eight times as long as the "
        "oracle's are estimated from their levels, and marked as such.",
        REGRET_COLUMNS,
        draw=figures.regret,
        brief=findings.regret_brief,
    ),
    Section(
        "programs",
        "Regret of vertex programs: time over that of the best schedule known",
        "A program for each kind of message runs as the scheduler chooses, after runs from another "
        "source. The time of the schedules that it chose over the time of the best schedule known, "
        "minus 1; all schedules, directions and places, are replayed alternately. Lower is better. "
        "Cells are single runs; the CSV has seconds, schedules, and the share of choosing.",
        (*GRAPH_COLUMNS, *PROGRAM_COLUMNS),
        findings.programs_finding,
        figures.programs,
        findings.no_brief,
    ),
)


@dataclass(frozen=True)
class Paper:
    """A paper's tables: `measure` fills them, from the study, the options and the device.

    `scales` are the scales of the paper's Kronecker graphs, the default. `claims` returns the rows
    of `claims_section` from all other tables.
    """

    name: str
    title: str
    scales: tuple[int, ...]
    measure: Callable[[Any, Any, Any], None]
    sections: tuple[Section, ...]
    claims: Callable[[Mapping[str, pd.DataFrame]], list[Row]] = lambda _: []


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
caption { text-align: left; color: #444; padding-bottom: .3rem;
  max-width: calc(100vw - 3rem); }
thead th { border-bottom: 2px solid #888; }
footer { border-top: 1px solid #ccc; margin-top: 3rem; padding-top: .8rem; }
nav a { margin-right: 1.2rem; white-space: nowrap; }
"""


@dataclass(frozen=True)
class SectionResult:
    """A section with its results; `finding` and `brief`, a table of text, may be empty.

    Without measurements there is no picture, and `finding` gives the reason.
    """

    section: Section
    finding: str
    caption: str
    brief: pd.DataFrame
    svg: str | None = None


def page(
    title: str, machine: str, parts: Sequence[SectionResult], notes: Sequence[str], foot: str
) -> str:
    contents = "".join(
        f'<a href="#{part.section.name}">{escape(part.section.name)}</a> ' for part in parts
    )
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


def _section(part: SectionResult) -> str:
    picture, kinds = "", ["csv"]
    if part.svg is not None:
        kinds.append("svg")
        image = base64.b64encode(part.svg.encode()).decode("ascii")
        picture = (
            f'<img alt="{escape(f"{part.section.title}. {part.finding}".rstrip())}" '
            f'src="data:image/svg+xml;base64,{image}">'
        )
    shown = f"<figure>{picture}</figure>\n" if picture else ""
    if part.section.reading and (picture or not part.brief.empty):
        shown = f"<p>{part.section.reading}</p>\n{shown}"
    finding = f'<p class="finding">{escape(part.finding)}</p>\n' if part.finding else ""
    links = ", ".join(
        f'<a href="{part.section.name}.{kind}">{part.section.name}.{kind}</a>' for kind in kinds
    )
    return (
        f'<section id="{part.section.name}"><h2>{escape(part.section.title)}</h2>\n'
        f"{finding}{shown}{_table(part.caption, part.brief)}"
        f'<p class="files">In the folder of this page: {links}</p></section>'
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
