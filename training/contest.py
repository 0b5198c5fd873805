"""Finds the selector that is the fastest over whole searches on this machine; it becomes "auto".

A model that predicts each level well may still choose badly, since its features do not contain the
later levels. Training therefore ends with timed whole searches, which alternate between selectors:
the trained model, the thresholds that it finds for a graph, the paper's average speeds, and
Beamer's rule with several thresholds. The graphs come from every family, since thresholds that suit
Kronecker graphs double the time on others. High-diameter graphs with hundreds of levels (a
grid, roads, a core with tails) are compared separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import StudyGraph, named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.named_selectors import make_selector
from hetero_bfs.scheduling.selectors import ALPHA, BETA, Selector, alpha_beta
from hetero_bfs.scheduling.strategies import MODEL_SELECTORS, DeviceKind, Strategy
from hetero_bfs.training.measure import seconds_back_to_back

KEYS = {"shallow": 8, "deep": 4}
CLEARLY_FASTER = 0.95
"""Another selector replaces a preferred one only if it takes less than this share of its time."""

_ROUNDS = 20
_FIRST_ROUNDS = 3  # rounds of all selectors; later rounds leave out slow ones
_HOPELESS = 1.5  # a selector is left out beyond this factor of the fastest one's seconds
THRESHOLDS = ((ALPHA, BETA), (ALPHA, 256), (8, 256), (1, BETA))
"""Beamer's alpha and beta. The last pair stays top-down on high-diameter graphs."""


def compare_selectors(info: DeviceInfo | None, quick: bool) -> dict[str, Any]:
    """Search with each selector by the installed model.

    Returns
    -------
    dict
        "auto": the fastest on low-diameter and on high-diameter graphs, in a model file's terms.
        "graphs": their names. "seconds": medians by kind of graph and selector, one for each graph.
    """
    seconds: dict[str, dict[str, list[float]]] = {}
    auto = {}
    compared = compared_graphs(info, quick)
    for kind, graphs in compared.items():
        named: dict[str, dict[str, Any]] = {}
        times: dict[str, list[float]] = {}
        for graph in (build_search_graph(graph.make()) for graph in graphs):
            for name, value, description in _medians(info, graph, KEYS[kind]):
                times.setdefault(name, []).append(value)
                named[name] = description
        seconds[kind] = times
        complete = [name for name, values in times.items() if len(values) == len(graphs)]
        auto[kind] = named[fastest({name: times[name] for name in complete})]
    names = {kind: [graph.name for graph in graphs] for kind, graphs in compared.items()}
    return {"auto": auto, "graphs": names, "seconds": seconds}


def fastest(times: dict[str, list[float]]) -> str:
    """Return the name of the fastest selector by the geometric mean over graphs.

    "learned" is preferred unless another one is clearly faster, and after it "thresholds" likewise.
    "learned" adapts to each level, "thresholds" to the graph. The other rules only suit these few
    graphs, and noise makes one of many look a little faster.
    """
    means = {name: float(np.exp(np.mean(np.log(values)))) for name, values in times.items()}
    best = min(means, key=means.__getitem__)
    for name in ("learned", "thresholds"):
        if name in means and means[best] >= CLEARLY_FASTER * means[name]:
            return name
    return best


def compared_graphs(info: DeviceInfo | None, quick: bool) -> dict[str, list[StudyGraph]]:
    fast = info is not None and info.type == "GPU"
    scales = (14, 16) if quick else (18, 20, 22) if fast else (16, 18)
    side = 256 if quick else 1024 if fast else 512
    others = [f"{family}{scales[1]}" for family in ("uniform", "small-world", "preferential")]
    names = {
        "shallow": [f"kronecker{s}" for s in scales] + others,
        "deep": [f"grid{side}", f"roads{side}", f"tails{scales[1]}-8x{side}"],
    }
    return {kind: [named_graph(name) for name in names[kind]] for kind in names}


def _selectors(engine: Engine) -> dict[str, tuple[Selector, dict[str, Any]]]:
    info, candidates = engine.device_info, engine.candidates
    found: dict[str, tuple[Selector, dict[str, Any]]] = {}
    for name in MODEL_SELECTORS:
        found[name] = make_selector(name, info, candidates)[0], {"selector": name}
    return found | beamers_rules(info, candidates)


def beamers_rules(
    info: DeviceInfo | None, candidates: Sequence[Strategy]
) -> dict[str, tuple[Selector, dict[str, Any]]]:
    found: dict[str, tuple[Selector, dict[str, Any]]] = {}
    kinds: tuple[DeviceKind, ...] = ("cpu",) if info is None else ("device", "cpu")
    for kind in kinds:
        for alpha, beta in THRESHOLDS:
            made = alpha_beta(info, candidates, alpha, beta, kind)
            about = {"selector": "alpha-beta", "where": kind, "alpha": alpha, "beta": beta}
            found[f"alpha-beta({alpha},{beta},{kind})"] = made, about
    return found


def _medians(
    info: DeviceInfo | None, graph: SearchGraph, count: int
) -> list[tuple[str, float, dict[str, Any]]]:
    """Return name, median seconds of a search, and description of each selector."""
    keys = search_keys(graph.num_vertices, graph.is_isolated, count)
    with Engine(graph, selector="learned", **device_settings(info)) as engine:
        selectors = _selectors(engine)
        times: dict[str, list[float]] = {name: [] for name in selectors}
        left = list(selectors)
        for turn in range(_ROUNDS):
            # Each round has a new order, since a search affects the caches and threads of the next.
            for name in np.random.default_rng(turn).permutation(left).tolist():
                engine.set_selector(selectors[name][0])
                times[name] += seconds_back_to_back(engine, keys)
            if turn + 1 == _FIRST_ROUNDS:
                middle = {name: median(times[name]) for name in left}
                left = [name for name in left if middle[name] <= _HOPELESS * min(middle.values())]
    return [(name, median(times[name]), about) for name, (_, about) in selectors.items()]
