"""Measures the first model of a machine, in a fraction of a second.

scheduling/first_model.py calls this when an engine first opens on a machine that has no model.
Levels of a few small graphs are measured, and the model is fitted to them as in a training.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import cycle
from typing import Any

import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.selectors import FixedSelector
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import host_only, plain
from hetero_bfs.training.collect import measure_graph
from hetero_bfs.training.fit import fit
from hetero_bfs.training.train import about_model

GRAPHS = ("kronecker12", "kronecker16", "uniform16", "grid64", "roads256", "tails16-8x64")
"""The first one is the smallest: on a slow device it may be the only one."""

BUDGET_SECONDS = 0.3
"""Seconds of measurements. If some are left after all graphs, they are measured again, from other
sources."""

MOST_SECONDS = 1.0
"""After this no other graph is measured."""

SLOWEST_SEARCH = 0.1
"""Most seconds of a search of the first graph. A slower device, such as a simulator, is left
alone: measuring it would take a hundred times as long."""

_MOST_SEARCHES = 4 * len(GRAPHS)

_MIGRATION_COLUMNS = "constant", "frontier_vertices"
"""Graphs of these sizes do not show the share of a graph's vertices in a migration's seconds. If
noise added a lot, no search of a large graph would migrate, so nothing would correct it."""


def measure_first_model(info: DeviceInfo | None) -> SpeedModel | None:
    """Measure and fit a model of this host and a device; without the paper's model and costs.

    None if the device is too slow. Raises `DeviceError` as `Engine` does.
    """
    rows = list(_samples(info))
    if not rows:
        return None
    samples = pd.DataFrame(rows)
    about = about_model(info, "a first measurement", samples) | {
        "is_first": True,
        "graphs": samples["name"].value_counts().to_dict(),
    }
    model = fit(samples, machine_slug(info), about, migration_columns=_MIGRATION_COLUMNS)
    return replace(model, zhang=None)


def _samples(info: DeviceInfo | None) -> Iterator[dict[str, Any]]:
    spent = 0.0
    with ExitStack() as stack:
        engines: dict[str, Engine] = {}
        for number, name in zip(range(_MOST_SEARCHES), cycle(GRAPHS), strict=False):
            graph = named_graph(name)
            if name not in engines:
                lists = build_search_graph(graph.make())
                engine = Engine(lists, host_only(), **device_settings(info))
                engines[name] = stack.enter_context(engine)
                if name == GRAPHS[0] and info is not None and _is_slow(engine):
                    return
            began = time.perf_counter()
            yield from measure_graph(
                engines[name], number, graph, 1, most_levels=6, repeats=1, whole_searches=1
            )
            spent += time.perf_counter() - began
            if spent > (BUDGET_SECONDS if number + 1 >= len(GRAPHS) else MOST_SECONDS):
                return


def _is_slow(engine: Engine) -> bool:
    engine.set_selector(FixedSelector(plain("top-down", "device")))
    hub = int(engine.graph.relabelling.old_of_new[engine.graph.degree.argmax()])
    return engine.search(hub).seconds > SLOWEST_SEARCH
