"""Runs of everything over random graphs, compared with plain Python; failures become small."""

from __future__ import annotations

import faulthandler
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numba
import numpy as np

from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.driver import choose_device, list_devices
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import BudgetError, SplitError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.model_selectors import ZhangSelector
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.speed_model import ZhangSpeeds
from tests.fuzz import plain_answers as plain
from tests.fuzz.campaign import Attempt, Campaign
from tests.fuzz.cases import ORDERS, Case, Step, draw_graph
from tests.fuzz.program_cases import PROGRAMS, draw_program, program_problem

sys.path.append(str(Path(__file__).parents[1] / "support"))
from oracle import engine_on
from strategy_mixtures import selectors_of

_MOST_STEPS = 30  # opening an engine takes longer than all of them
_ANALYSES = 8  # of one graph
_RULES = ["auto", "zhang", "alpha-beta"]


def device_of(case: Case) -> DeviceInfo | None:
    """Return the OpenCL device that a case uses; None on the host, or where there is none."""
    if case.place == "cpu" or not any(info.problem is None for info in list_devices()):
        return None
    info = choose_device()
    return replace(info, unified_memory=False) if case.place == "apart" else info


def _threads(chance: Random) -> int:
    return chance.randint(1, numba.config.NUMBA_NUM_THREADS)


# Breadth-first search


def _draw_bfs(chance: Random) -> Case:
    case = draw_graph(chance, False)
    stored = 4 * 2 * max(len(case.edges), 1)
    settings: dict[str, Any] = {
        "order": chance.choice(ORDERS),
        "threads": _threads(chance),
        "correction": chance.random() < 0.1,
        "decision_interval": chance.choice((1, 1, 2, 5)),
    }
    if case.place != "cpu" and chance.random() < 0.3:
        settings["max_alloc_bytes"] = max(stored // chance.choice((2, 3, 7)), 64)
    if case.place == "apart" and chance.random() < 0.4:
        settings["device_memory_bytes"] = 7000 + 60 * case.num_vertices
    device = device_of(case)
    selectors = selectors_of(device) + _RULES + ["daga"] * (device is not None)
    steps = [
        {"selector": chance.choice(selectors), **draw_query(case.num_vertices, chance)}
        for _ in range(chance.randint(1, _MOST_STEPS))
    ]
    return replace(case, settings=settings, steps=steps)


def draw_query(n: int, chance: Random) -> Step:
    """Return what one search is asked for; half of them have a source alone."""
    query: Step = {"sources": [chance.randrange(n)]}
    if chance.random() < 0.5:
        return query
    if chance.random() < 0.3:
        query["sources"] = [chance.randrange(n) for _ in range(chance.choice((2, 3, 40)))]
    if chance.random() < 0.3:
        query["depth_limit"] = chance.choice((0, 1, 2, 3, 10))
    if chance.random() < 0.3:
        query["target"] = chance.randrange(n)
    if chance.random() < 0.3:
        share = chance.choice((0.0, 0.1, 0.5, 1.0))
        sources = query["sources"]
        query["mask"] = [v for v in range(n) if chance.random() < share and v not in sources]
    if chance.random() < 0.3:
        query["reverse"] = True
    if chance.random() < 0.2:
        query["want"] = "levels"
    elif chance.random() < 0.4:
        query["dtype"] = "int32"
    return query


def _selector_of(name: str, engine: Engine) -> str | Selector:
    """Return a selector; shipped models have no speeds for the paper's, so it gets made-up ones."""
    if name != "zhang":
        return name
    speeds = {s.name: 1e8 * (1 + i) for i, s in enumerate(engine.candidates)}
    return ZhangSelector(ZhangSpeeds(0.5, speeds, 1, 1), engine.candidates)


def _bfs_problems(case: Case) -> Iterator[str | None]:
    with engine_on(device_of(case), case.edge_list(), **case.settings) as engine:
        for step in case.steps:
            engine.set_selector(_selector_of(step["selector"], engine))
            yield search_problem(case, step, search_asked(engine, step))


def search_asked(engine: Engine | RankEngine, step: Step) -> BFSResult:
    names = ("depth_limit", "target", "mask", "reverse", "want", "dtype")
    query = {name: step[name] for name in names if name in step}
    sources = step["sources"]
    return engine.bfs(sources if len(sources) > 1 else sources[0], **query)


def search_problem(case: Case, step: Step, result: BFSResult) -> str | None:
    level = plain.levels(case, step)
    if result.level.tolist() != level:
        return f"levels {result.level.tolist()[:20]}, expected {level[:20]}"
    if result.reached != sum(depth >= 0 for depth in level):
        return f"{result.reached} reached"
    if step.get("want") == "levels":
        return None
    return plain.tree_problem(case, step, level, result.parent.tolist())


# The other algorithms


def _draw_analysis(chance: Random, weighted: bool = False) -> Case:
    case = draw_graph(chance, weighted)
    settings = {"order": chance.choice(ORDERS), "threads": _threads(chance)}
    if case.place == "apart" and chance.random() < 0.4:
        lists = 8 * len(case.edges)
        beside = chance.choice((20, 30, 40, 60)) * case.num_vertices
        settings["device_memory_bytes"] = beside + int(chance.random() * lists) + 64
    places = ["cpu"] + ["device"] * (2 * (case.place != "cpu"))
    steps: list[Step] = [{"place": chance.choice(places)} for _ in range(_ANALYSES)]
    return replace(case, settings=settings, steps=steps)


def _opened(kind: Any, case: Case) -> tuple[Any, list[Step]]:
    """Return the runs of a kind, and the steps; on the host if there is no device."""
    graph = build_search_graph(case.edge_list(), case.settings["order"])
    device = device_of(case)
    memory = case.settings.get("device_memory_bytes")
    if device is not None and memory is not None:
        device = replace(device, memory_bytes=memory, max_alloc_bytes=memory)
    runs = kind(graph, case.settings["threads"], device)
    if runs.device is not None:
        return runs, case.steps
    return runs, [{**step, "place": "cpu"} for step in case.steps]


def _draw_sssp(chance: Random) -> Case:
    case = _draw_analysis(chance, True)
    steps = [{**step, "source": chance.randrange(case.num_vertices)} for step in case.steps]
    return replace(case, steps=steps)


def _sssp_problems(case: Case) -> Iterator[str | None]:
    runs, steps = _opened(PathSearches, case)
    with runs:
        for step in steps:
            result = runs.run(step["source"], place=step["place"])
            right = plain.distances(case, step["source"])
            if result.distance.tolist() != right:
                yield f"distances {result.distance.tolist()[:20]}, expected {right[:20]}"
            else:
                yield plain.path_problem(case, step["source"], right, result.parent.tolist())


def _components_problems(case: Case) -> Iterator[str | None]:
    right = plain.components(case)
    runs, steps = _opened(ComponentRuns, case)
    with runs:
        for step in steps:
            result = runs.run(place=step["place"])
            same = result.component.tolist() == right
            counted = result.num_components == len(set(right))
            yield None if same and counted else f"components {result.component.tolist()[:20]}"


def _colour_problems(case: Case) -> Iterator[str | None]:
    lists = plain.neighbours(case, either_way=True)
    most = max(map(len, lists), default=0) + 1
    runs, steps = _opened(Colourings, case)
    with runs:
        for step in steps:
            colour = runs.run(place=step["place"]).colour.tolist()
            clash = [(u, v) for u, near in enumerate(lists) for v in near if colour[u] == colour[v]]
            if clash or (colour and not 0 <= min(colour) <= max(colour) < most):
                yield f"colours {colour[:20]}, edges of one colour {clash[:5]}"
            else:
                yield None


def _draw_pagerank(chance: Random) -> Case:
    case = _draw_analysis(chance)
    steps = [
        {**step, "alpha": chance.choice((0.5, 0.85)), "tol": chance.choice((1e-3, 1e-6, 1e-9))}
        for step in case.steps
    ]
    return replace(case, steps=steps)


def _pagerank_problems(case: Case) -> Iterator[str | None]:
    runs, steps = _opened(PageRanks, case)
    with runs:
        for step in steps:
            alpha, tol = step["alpha"], step["tol"]
            settings = check_settings(case.num_vertices, alpha, tol, 10_000)
            rank = runs.run(settings, place=step["place"]).rank
            wrong = float(np.abs(rank - plain.ranks(case, alpha)).sum())
            bound = case.num_vertices * tol / (1 - alpha)
            yield None if wrong <= bound else f"ranks are off by {wrong}, more than {bound}"


def _program_problems(case: Case) -> Iterator[str | None]:
    return program_problem(case, device_of(case))


KINDS: dict[str, tuple[Callable[[Random], Case], Callable[[Case], Iterator[str | None]]]] = {
    "bfs": (_draw_bfs, _bfs_problems),
    "sssp": (_draw_sssp, _sssp_problems),
    "components": (_draw_analysis, _components_problems),
    "colour": (_draw_analysis, _colour_problems),
    "pagerank": (_draw_pagerank, _pagerank_problems),
    **{name: (draw_program(name), _program_problems) for name in PROGRAMS},
}
"""How a case of each kind is drawn, and what is wrong with each of its runs."""


def trouble(kind: str, case: Case) -> str | None:
    """Run a case; return what went wrong, None if nothing did.

    A limit of memory that is too low for a graph may be refused, in one line.
    """
    try:
        for number, problem in enumerate(KINDS[kind][1](case)):
            if problem is not None:
                return f"run {number}: {problem}"
    except (BudgetError, SplitError) as error:
        limited = {"max_alloc_bytes", "device_memory_bytes"} & set(case.settings)
        return None if limited and "\n" not in str(error) else traceback.format_exc()
    except Exception:
        return traceback.format_exc()
    return None


def shrunken(kind: str, case: Case, most_tries: int = 400) -> Case:
    """Return a smaller case that fails, too: without steps, settings, edges that it can spare."""
    tries = 0

    def fails(smaller: Case) -> bool:
        nonlocal tries
        tries += 1
        return tries <= most_tries and trouble(kind, smaller) is not None

    for step in list(case.steps):
        fewer = [one for one in case.steps if one is not step]
        if fewer and fails(replace(case, steps=fewer)):
            case = replace(case, steps=fewer)
    for name in list(case.settings):
        others = {key: value for key, value in case.settings.items() if key != name}
        if name not in ("order", "threads") and fails(replace(case, settings=others)):
            case = replace(case, settings=others)
    return _with_fewer_edges(case, fails)


def _with_fewer_edges(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Leave out runs of edges, long ones first, as long as the case fails."""
    length = max(len(case.edges) // 2, 1)
    while length:
        start = 0
        while start < len(case.edges):
            edges = case.edges[:start] + case.edges[start + length :]
            weights = case.weights and case.weights[:start] + case.weights[start + length :]
            smaller = replace(case, edges=edges, weights=weights)
            if fails(smaller):
                case = smaller
            else:
                start += length
        length //= 2
    return case


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try one case, kept as JSON."""
    case = KINDS[kind][0](Random(f"{seed} {kind} {number}"))
    path = folder / f"{kind}-{seed}-{number}.json"
    path.write_text(case.text())
    wrong = trouble(kind, case)
    if wrong is not None:
        faulthandler.cancel_dump_traceback_later()  # to make it smaller takes longer
        smaller = shrunken(kind, case)
        path.write_text(smaller.text())
        wrong = trouble(kind, smaller) or f"not every time: {wrong}"
    return Attempt(path, wrong, len(case.steps))


def replay(kind: str, path: Path) -> list[str] | None:
    """Try a kept case."""
    try:
        case = Case.of(path.read_text())
    except (ValueError, TypeError):
        return None
    wrong = trouble(kind, case)
    return [] if wrong is None else [wrong]


CAMPAIGN = Campaign("searches", KINDS, attempt, replay)
