"""The measurements of Zhang et al. (2018), on this machine: `hetero-bfs study --paper zhang`.

Each graph is built twice, one order at a time: relabelled by degree for the paper's own searches
and for Yasui's, then as given for Daga's. Edges that do not fit besides the graph are generated
again for each pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import GraphError, ModelError
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.search_graph import LOCALITY, RELABELLING, build_search_graph
from hetero_bfs.graph500.process import check_memory, construct, generate
from hetero_bfs.scheduling.model_selectors import ZhangSelector
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import ZhangSpeeds
from hetero_bfs.scheduling.strategies import SELECTORS_ORDERS, STRATEGIES
from hetero_bfs.study import figures, findings, style
from hetero_bfs.study.measurements import efficiency, level_rows
from hetero_bfs.study.page import (
    ENERGY,
    GRAPH_COLUMNS,
    LEVELS,
    THROUGHPUT,
    Paper,
    Section,
    claims_section,
)
from hetero_bfs.study.searches import (
    Configuration,
    Planned,
    Row,
    StudyOptions,
    Subject,
    add_note,
    affordable,
    graphs_of,
    open_engine,
    throughput,
    validate_configs,
)
from hetero_bfs.support.messages import announce, progress
from hetero_bfs.training.collect import PAPER_PLAN, QUICK_PLAN, Plan, measure_graph
from hetero_bfs.training.fit import TRAINING_FAMILY, fit_zhang
from hetero_bfs.training.regret import sources_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hetero_bfs.study.run import Study

SCALES = (22, 23, 24, 25, 26)
DAGA, YASUI, ZHANG, AUTO = "daga", "yasui", "zhang", "auto"
BARS = (DAGA, YASUI, ZHANG, AUTO)
"""The three bars of Figures 4 and 5, and this program's default selector."""

# What the paper states, for its two machines: an AMD A10-7850K and a Ryzen 5 2400G.
A10, RYZEN = "paper: A10-7850K", "paper: Ryzen 5 2400G"
_GTEPS = {DAGA: (0.9, 0.6), YASUI: (1.9, 1.3), ZHANG: (2.1, 1.4)}
_SPEED_OVER = {DAGA: (2.3, 2.3), YASUI: (1.1, 1.1)}
_ENERGY_OVER = {DAGA: (2.3, 2.5), YASUI: (1.6, 1.3)}
_REMOVED_SHARE, _REMAPPING_SHARE = 0.48, 0.415
_TABLE_5 = {  # seconds at scale 26 on the A10-7850K, level by level
    "TC": (0.02, 0.02, 1.81, 9.76, 0.30, 0.03, 0.02, 0.02),
    "TG": (0.03, 0.05, 3.44, 17.35, 0.97, 0.08, 0.02, 0.02),
    "BC": (4.37, 4.34, 3.16, 2.66, 2.84, 2.82, 2.83, 0.03),
    "BG": (9.42, 8.53, 0.29, 0.08, 0.06, 0.05, 0.05, 0.05),
    "BGC": (9.44, 8.47, 0.27, 0.07, 0.06, 0.05, 0.05, 0.05),
}

_REMAPPING_STEPS = (RELABELLING, LOCALITY)
_ORDERS = "degree", "given"
_UPLOAD = "upload"


def measure(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    study.add("strategies", strategy_rows(info))
    for order in _ORDERS:  # so that compiling counts for no step
        construct(KroneckerEdges(5), order)
    speeds = _speeds(options, info, study.notes)
    for number, graph in enumerate(graphs := graphs_of(options, info), 1):
        announce(f"{graph.name}, graph {number} of {len(graphs)}")
        _measure_graph(study, graph, options, speeds)


def strategy_rows(info: DeviceInfo | None) -> list[Row]:
    device = "no OpenCL device" if info is None else info.name
    return [
        {
            "strategy": s.name,
            "direction": s.direction,
            "runs_on": "host" if s.device_kind == "cpu" else device,
            "description": s.description,
        }
        for s in STRATEGIES.values()
    ]


def _speeds(options: StudyOptions, info: DeviceInfo | None, notes: list[str]) -> ZhangSpeeds:
    """Return the paper's model of this machine: from its training, or measured now."""
    try:
        model = model_of(info)
    except ModelError as error:
        model = None
        add_note(notes, str(error))
    if model is not None and model.zhang is not None:
        found, whence = model.zhang, f"from the speed model {model.name}"
    else:
        plan = QUICK_PLAN if options.quick else PAPER_PLAN
        found = measure_speeds(plan, options)
        scales = ", ".join(map(str, plan.scales))
        whence = f"measured for this study at scales {scales}"
    text = ", ".join(f"{n} {v:.3g} edges/s" for n, v in found.edges_per_second.items())
    notes.append(
        f"zhang's speeds are {whence}, the mean over {found.levels} levels of {found.graphs} "
        f"Kronecker graphs: {text}; alpha {found.alpha:.3g}"
    )
    return found


def measure_speeds(plan: Plan, options: StudyOptions) -> ZhangSpeeds:
    graphs = [graph for graph in plan.graphs() if graph.family == TRAINING_FAMILY]
    rows: list[Row] = []
    for number, graph in enumerate(progress(graphs, "measuring the paper's training set")):
        with open_engine(build_search_graph(graph.make()), options) as engine:
            rows += measure_graph(engine, number, graph)
    speeds: ZhangSpeeds | None = fit_zhang(pd.DataFrame(rows))
    assert speeds is not None, "the plan has Kronecker graphs"
    return speeds


def _measure_graph(
    study: Study, graph: Planned, options: StudyOptions, speeds: ZhangSpeeds
) -> None:
    assert graph.scale is not None
    generator = KroneckerEdges(graph.scale)
    check_memory(generator)
    edges = generate(generator, options.regenerate, study.notes)
    for order in _ORDERS:
        _measure_order(study, graph, options, speeds, edges, order)


def _measure_order(
    study: Study,
    graph: Planned,
    options: StudyOptions,
    speeds: ZhangSpeeds,
    edges: EdgeSource,
    order: str,
) -> None:
    """Build and measure a graph in one order; nothing of it is in memory afterwards."""
    about = graph.row()
    built, seconds = construct(edges, order)
    with open_engine(built, options) as engine:
        seconds[_UPLOAD] = engine.upload_seconds
        study.add("preprocessing", _step_rows(about, order, seconds))
        if order == "degree":
            n, left = built.num_vertices, built.num_searched
            row = {"vertices": n, "vertices_left": left, "removed_share": 1 - left / n}
            study.add("relabelling", [about | row])
        keys = search_keys(built.num_vertices, built.is_isolated, options.keys)
        if not keys:
            raise GraphError(f"{graph.name} has no edge between two vertices")
        configs = _configs(engine, order, speeds, study.notes)
        if not configs:
            return
        name = f"{graph.name}, {order} order"
        keys = affordable(name, engine, configs, keys, options.rounds, study.notes)
        sources = sources_of(engine, 1) if order == "degree" else []
        wanted = list(dict.fromkeys([*keys, *sources]))
        nedge = validate_configs(name, engine, edges, wanted, configs)
        subject = Subject(graph, edges, engine, keys, sources, nedge, configs)
        study.add("throughput", throughput(subject, options.rounds))
        study.add("energy", efficiency(subject, options, study.notes))
        if order == "degree":
            study.add("levels", level_rows(subject, options.rounds, study.notes))


def _configs(
    engine: Engine, order: str, speeds: ZhangSpeeds, notes: list[str]
) -> list[Configuration]:
    found = []
    for name in BARS:
        if SELECTORS_ORDERS.get(name, "degree") != order:
            continue
        try:
            zhang = ZhangSelector(speeds, engine.candidates) if name == ZHANG else None
            engine.set_selector(zhang or name)
            found.append(Configuration(name, "selector", engine.selector))
        except ModelError as error:
            add_note(notes, f"{name} is left out: {error}")
    for note in engine.notes:
        add_note(notes, note)
    return found


def _step_rows(about: Row, order: str, seconds: Mapping[str, float]) -> list[Row]:
    total = sum(seconds.values())
    return [
        {
            **about,
            "order": order,
            "step": step,
            "seconds": value,
            "share": value / total,
            "remaps": step in _REMAPPING_STEPS,
        }
        for step, value in seconds.items()
    ]


# The claims.


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    """Return every figure that the paper states, with ours from the study's tables.

    `ours` has the paper's model (selector zhang), `ours_auto` the default selector where there is
    such a figure. They are empty where nothing could be measured.
    """
    gteps = _means(tables.get("throughput"), "harmonic_mean_gteps")
    energy = _energy_means(tables.get("energy"))
    rows = [
        _row(f"GTEPS of {name}, mean over graphs", paper, gteps.get(name), unit="GTEPS")
        for name, paper in _GTEPS.items()
    ]
    rows[-1]["ours_auto"] = gteps.get(AUTO)
    for title, paper, means in (
        ("speed", _SPEED_OVER, gteps),
        ("energy efficiency", _ENERGY_OVER, energy),
    ):
        for other, values in paper.items():
            row = _row(f"{title} of zhang over {other}", values, _over(means, ZHANG, other), "x")
            row["ours_auto"] = _over(means, AUTO, other)
            rows.append(row)
    removed, steps = tables["relabelling"], tables["preprocessing"]
    relabelled = steps[steps["order"] == "degree"]
    remapping = relabelled[relabelled["remaps"]].groupby("graph")["share"].sum().mean()
    removed_share = removed["removed_share"].mean()
    rows += [
        _row("vertices that remapping removes", _REMOVED_SHARE, removed_share),
        _row("remapping, of preprocessing (here: choosing ids)", _REMAPPING_SHARE, remapping),
    ]
    mix = _row(
        "best single strategy over the best of each level (from Table 5, no migrations)",
        *((_mix(pd.DataFrame(_TABLE_5)), None), None, "x"),
    )
    if len(tables.get("levels", ())):
        levels = tables["levels"]
        levels = levels[levels["graph"] == levels["graph"].iloc[-1]]
        mix["ours"] = _mix(levels.pivot_table("seconds", "level", "strategy"))
    return [*rows, mix]


def _row(what: str, paper: Any, ours: float | None, unit: str = "share") -> Row:
    a10, ryzen = paper if isinstance(paper, tuple) else (paper, paper)
    return {"claim": what, "unit": unit, A10: a10, RYZEN: ryzen, "ours": ours, "ours_auto": None}


def _means(table: pd.DataFrame | None, column: str) -> dict[str, float]:
    if table is None or table.empty:
        return {}
    means: dict[str, float] = table.groupby("selector")[column].mean().to_dict()
    return means


def _energy_means(table: pd.DataFrame | None) -> dict[str, float]:
    """Return mean MTEPS/W by selector in the widest domain that Daga was measured in."""
    if table is None or table.empty:
        return {}
    measured = table[table["mteps_per_watt"].notna()]
    for domain in ("system", "device", "cpu"):
        means = _means(measured[measured["domain"] == domain], "mteps_per_watt")
        if DAGA in means:
            return means
    return {}


def _over(means: Mapping[str, float], mine: str, other: str) -> float | None:
    return means[mine] / means[other] if mine in means and other in means else None


def _mix(seconds: pd.DataFrame) -> float:
    """Seconds of the best single strategy over the seconds of the best strategy at each level."""
    return float(seconds.sum().min() / seconds.min(axis=1).sum())


# Figures.


def _draw_steps(table: pd.DataFrame) -> Figure:
    rows = table[table["order"] == "degree"]
    return style.stacked(figures.cells(rows, "share", "step"), "share of preprocessing (%)")


ZHANG_PAPER = Paper(
    "zhang",
    "Zhang et al. 2018, an adaptive BFS on integrated architectures: its tables on this machine",
    SCALES,
    measure,
    (
        Section(
            "strategies",
            "The strategies (Table 2)",
            "",
            ("strategy", "direction", "runs_on", "description"),
        ),
        replace(
            THROUGHPUT,
            reading="Whole searches; more is better. <code>daga</code> searches the graph as "
            "given, with fixed thresholds, top-down on the CPU and bottom-up on the device. "
            "<code>yasui</code> searches the relabelled graph on the CPU alone. <code>zhang</code> "
            "is the paper's own model, equations 1 to 4, and <code>auto</code> this program's "
            "default selector, without correction. daga ran after the others, since only one "
            "order of the graph is in memory at a time.",
        ),
        ENERGY,
        replace(
            LEVELS,
            reading=f"{LEVELS.reading} In the paper TC is the fastest at the first and last "
            "levels, BGC between them.",
        ),
        Section(
            "relabelling",
            "Vertices before and after remapping (Table 6)",
            "",
            (*GRAPH_COLUMNS, "vertices", "vertices_left", "removed_share"),
        ),
        Section(
            "preprocessing",
            "Preprocessing by step (section 5.4)",
            "Shares of the time from edges in memory to a graph that can be searched. Only "
            "choosing new ids (relabelling, locality) belongs to remapping alone: they are written "
            "while edges are placed, and sorting by them sorts by degree.",
            (*GRAPH_COLUMNS, "order", "step", "seconds", "share", "remaps"),
            draw=_draw_steps,
            brief=findings.wide_brief("", ["graph", "step"], "order", "seconds"),
        ),
        claims_section(
            "Ours are from selector zhang, and from auto. The paper's machines have a CPU and a "
            "GPU on one chip; figures of another kind of machine do not confirm or refute them.",
            (A10, RYZEN, "ours", "ours_auto"),
        ),
    ),
    claim_rows,
)
