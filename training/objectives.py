"""Finds the selectors of least energy and of least energy-delay product over whole searches.

contest.py compares selectors by the clock, this module by the meters. It runs searches by the model
selectors under each objective, and by Beamer's rule with several thresholds. Each is repeated for a
window that the meters resolve. The best one becomes "auto" under that objective. Only selectors
whose strategies have watts take part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.named_selectors import make_objective_selector
from hetero_bfs.scheduling.objective import POWER_OBJECTIVES, Objective
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import MODEL_SELECTORS, STRATEGIES
from hetero_bfs.training.contest import KEYS, beamers_rules, compared_graphs
from hetero_bfs.training.metering import Metering, batch_of

_Contest = dict[str, tuple[Selector, dict[str, Any], tuple[str, ...]]]
"""By name: the selector, its entry in a model file, and the objectives for which it competes."""


KINDS = ("shallow", "deep")


def compare_objectives(
    info: DeviceInfo | None, quick: bool, metering: Metering
) -> Iterator[dict[str, Any] | None]:
    """Search by the installed model, which has watts; yield None after each window, then a dict.

    For each kind of graph the largest graph is searched; of several largest ones the first.

    Yields
    ------
    dict
        "auto": by objective and kind of graph, the best selector in a model file's terms.
        "searches": by kind of graph and selector, "seconds" and "joules" of a search. "domains":
        the domains of the joules.
    """
    auto: dict[str, dict[str, Any]] = {objective_name: {} for objective_name in POWER_OBJECTIVES}
    searches: dict[str, dict[str, dict[str, float]]] = {}
    domains: tuple[Any, ...] = ()
    for kind, graphs in compared_graphs(info, quick).items():
        graph = build_search_graph(max(graphs, key=lambda graph: graph.scale or 0).make())
        keys = search_keys(graph.num_vertices, graph.is_isolated, KEYS[kind])
        with Engine(graph, selector="learned", **device_settings(info)) as engine:
            objective, contest = _contest(engine)
            domains = objective.domains
            figures: dict[str, dict[str, float]] = {}
            for name, (selector, _, _) in contest.items():
                engine.set_selector(selector)
                window = metering.window(batch_of(engine, keys))
                yield None
                if set(domains) <= set(window.joules):
                    figures[name] = {
                        "seconds": window.seconds_of,
                        "joules": window.joules_of(domains),
                    }
        searches[kind] = figures
        for objective_name in POWER_OBJECTIVES:
            able = [name for name in figures if objective_name in contest[name][2]]
            if able:
                best = min(able, key=lambda name: _score(objective_name, figures[name]))
                auto[objective_name][kind] = contest[best][1]
    complete = {
        objective_name: of_kind
        for objective_name, of_kind in auto.items()
        if set(of_kind) == set(KINDS)
    }
    yield {"auto": complete, "searches": searches, "domains": list(domains)}


def _contest(engine: Engine) -> tuple[Objective, _Contest]:
    info, candidates = engine.device_info, engine.candidates
    found: _Contest = {}
    for objective_name in POWER_OBJECTIVES:
        for name in MODEL_SELECTORS:
            selector, _ = make_objective_selector(name, info, candidates, False, objective_name)
            found[f"{name}, {objective_name}"] = selector, {"selector": name}, (objective_name,)
    objective = selector.objective
    assert objective is not None, "made for an objective"
    fit = {STRATEGIES[name] for name in objective.watts}
    for name, (rule, about) in beamers_rules(info, candidates).items():
        if set(rule.candidates) <= fit:
            found[name] = rule, about, POWER_OBJECTIVES
    return objective, found


def _score(objective_name: str, figures: dict[str, float]) -> float:
    return figures["joules"] * (figures["seconds"] if objective_name == "edp" else 1.0)
