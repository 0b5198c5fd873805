"""Which selector is the fastest at whole searches of this machine: it becomes "auto".

A model that predicts each level well may still choose badly, as the levels after it are not in
its features. So the last word after training has the clock: searches by the trained model, by the
paper's average speeds, and by Beamer's rule with several thresholds, all in turn.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from hetero_bfs.build import build_search_graph
from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.engine import Engine
from hetero_bfs.kronecker import KroneckerEdges, search_keys
from hetero_bfs.selector import ALPHA, BETA, Selector, alpha_beta, make_selector

_KEYS = 16
_ROUNDS = 3
_BETAS = (BETA, 64, 256)


def compare_selectors(info: DeviceInfo | None, quick: bool) -> dict[str, Any]:
    """Search with each selector by the model that is installed; for the model's `auto` and `about`.

    Returns
    -------
    dict
        "auto": the fastest, as a model file names it. "seconds": medians by selector and scale.
    """
    scales = (14, 16) if quick else (16, 18) if info is None or info.type != "GPU" else (18, 20, 22)
    seconds: dict[str, dict[str, float]] = {}
    products: dict[str, float] = {}
    for scale in scales:
        for name, value in _medians(info, scale).items():
            seconds.setdefault(name, {})[f"scale {scale}"] = value
            products[name] = products.get(name, 1.0) * value
    fastest = min(products, key=lambda name: products[name])
    selector, _, beta = fastest.partition(" ")
    auto: dict[str, Any] = {"selector": selector}
    if beta:
        auto |= {"alpha": ALPHA, "beta": int(beta)}
    return {"auto": auto, "seconds": seconds}


def _medians(info: DeviceInfo | None, scale: int) -> dict[str, float]:
    """Return the median seconds of a search by each selector, by name."""
    graph = build_search_graph(KroneckerEdges(scale).materialise())
    keys = search_keys(graph.num_vertices, graph.is_isolated, _KEYS)
    device, devices = (None, "cpu") if info is None else (str(info.index), "all")
    with Engine(graph, selector="learned", device=device, devices=devices) as engine:
        selectors: dict[str, Selector] = {
            name: make_selector(name, engine.device_info, engine.candidates)[0]
            for name in ("learned", "average")
        }
        for beta in _BETAS:
            made = alpha_beta(engine.device_info, engine.candidates, ALPHA, beta)
            selectors[f"alpha-beta {beta}"] = made
        times: dict[str, list[float]] = {name: [] for name in selectors}
        for name, selector in selectors.items():
            engine.set_selector(selector)
            for key in keys[:2]:
                engine.search(key)
            for _ in range(_ROUNDS):
                times[name] += [engine.search(key).seconds for key in keys]
    return {name: median(values) for name, values in times.items()}
