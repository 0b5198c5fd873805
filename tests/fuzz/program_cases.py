"""Vertex programs in the campaign `searches`: the tests' own, by all directions, places, modes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.search_graph import build_search_graph
from tests.fuzz.cases import ORDERS, Case, Step, draw_graph

sys.path.append(str(Path(__file__).parents[1] / "support"))
from collected_programs import Cores, Countdown, Hubs, Nearest, Second
from plain_programs import Outcome, PlainRun
from sample_programs import (
    Communities,
    Distances,
    Extremes,
    Labels,
    MonotoneDistances,
    Parents,
    Ranks,
    Reached,
)

_MOST_ENTRIES = 3000  # plain Python takes long
_RUNS = 6  # of a program over one graph


class _Sample(NamedTuple):
    """A program, its parameters by the source, the weights' type, and what schedules it takes."""

    program: type[hb.Program]
    parameters: Callable[[int, int], dict[str, Any]]
    weight_type: str | None = None
    sweeps: bool = True  # it may run asynchronously
    layers: bool = True
    schedules: bool = True
    alone: bool = False  # a vertex without any edge keeps a run going


def _source(n: int, source: int) -> dict[str, Any]:
    return {"source": source}


def _mask(n: int, source: int) -> dict[str, Any]:
    drawn = np.random.default_rng(source)
    return {
        "mask": (drawn.random(n) < 0.2).astype(np.uint32) << drawn.integers(0, 32, n, np.uint32)
    }


def _collected(
    program: type[hb.Program],
    parameters: Callable[[int, int], dict[str, Any]] = lambda n, source: {},
    weight_type: str | None = None,
) -> _Sample:
    return _Sample(program, parameters, weight_type, False, False, False, True)


PROGRAMS = {
    "Parents": _Sample(Parents, _source),
    "Distances": _Sample(Distances, _source, "float32"),
    "MonotoneDistances": _Sample(MonotoneDistances, _source, "float32", schedules=False),
    "Labels": _Sample(Labels, lambda n, source: {}),
    "Reached": _Sample(Reached, _mask),
    "Ranks": _Sample(Ranks, lambda n, source: {"alpha": 0.85, "tol": 1e-9}, layers=False),
    "Extremes": _Sample(Extremes, lambda n, source: {}, sweeps=False, layers=False),
    "Cores": _collected(Cores),
    "Second": _collected(Second, lambda n, source: {"modulus": 1 + source % 4}, "int32"),
    "Nearest": _collected(Nearest, _source, "int32"),
    "Countdown": _collected(Countdown),
    "Hubs": _collected(Hubs, lambda n, source: {"rounds": source % 4}),
    "Communities": _Sample(Communities, lambda n, s: {"rounds": s % 4}, sweeps=False, layers=False),
}


def draw_program(name: str) -> Callable[[Random], Case]:
    """Return a function that draws cases of a program."""
    sample = PROGRAMS[name]

    def draw(chance: Random) -> Case:
        case = draw_graph(chance, sample.weight_type is not None)
        case = replace(case, weight_type=sample.weight_type or case.weight_type)
        if case.weights is not None:  # what was drawn for integers may be beyond float32
            case = replace(case, weights=[weight % 1024 for weight in case.weights])
        case = replace(case, edges=case.edges[:_MOST_ENTRIES],
                       weights=case.weights and case.weights[:_MOST_ENTRIES])  # fmt: skip
        settings = {"order": chance.choice(ORDERS), "threads": chance.randint(1, 2),
                    "program": name}  # fmt: skip
        steps = [_step(sample, case, chance) for _ in range(_RUNS)]
        return replace(case, settings=settings, steps=steps)

    return draw


def _step(sample: _Sample, case: Case, chance: Random) -> Step:
    """Return settings of one run that go together."""
    source = chance.randrange(case.num_vertices)
    modes = ["synchronous"] * 3 + ["asynchronous"] * sample.sweeps + ["layered"] * sample.layers
    mode = chance.choice(modes)
    step: Step = {"source": source, "mode": mode, "root": source if mode == "layered" else None}
    places = ["cpu"] + ["device"] * (2 * (case.place != "cpu"))
    if mode != "synchronous":
        return step | {"place": chance.choice(places)}
    if sample.schedules and chance.random() < 0.4:
        devices = ("", "device ") if case.place != "cpu" else ("",)
        names = [place + way for place in devices for way in ("push", "pull")]
        return step | {"schedule": [chance.choice(names) for _ in range(chance.randint(1, 8))]}
    directions = ("auto", "push", "pull")
    return step | {"place": chance.choice(places), "direction": chance.choice(directions)}


def program_problem(case: Case, device: DeviceInfo | None) -> Iterator[str | None]:
    """Yield what is wrong with each run of a case, None if nothing is."""
    sample = PROGRAMS[case.settings["program"]]
    edges = case.edge_list()
    graph, order = hb.CSRGraph.from_edge_source(edges), case.settings["order"]
    with ProgramRuns(build_search_graph(edges, order), case.settings["threads"], device) as runs:
        for step in case.steps:
            parameters = sample.parameters(case.num_vertices, step["source"])
            expected = PlainRun(
                sample.program(), graph, parameters, order == "given" or sample.alone
            ).run()
            options = {key: value for key, value in step.items() if key != "source"}
            if runs.device is None:
                options = _on_host(options)
            result = runs.run(sample.program(), parameters, hb.RunOptions(**options))
            if not result.converged:
                yield "not converged"
            else:
                yield difference(result.state, expected, step["mode"] == "synchronous")


def _on_host(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without a device, for machines that have none and graphs without edges."""
    if "schedule" in options:
        return options | {"schedule": [s.removeprefix("device ") for s in options["schedule"]]}
    return options | {"place": "cpu"}


def difference(
    found_state: dict[str, npt.NDArray[Any]], expected: Outcome, synchronous: bool
) -> str | None:
    """Compare states with plain Python's; which parent a vertex has is free."""
    for name, right in expected.state.items():
        found = found_state[name]
        if name == "parent":
            same = np.array_equal(found < 0, right < 0)
        elif name == "rank":
            same = float(np.abs(found - right).sum()) <= 2 * 1e-9 * 0.85 / (1 - 0.85)
        elif name == "changes" and not synchronous:
            continue
        else:
            same = np.array_equal(found, right)
        if not same:
            return f"{name} is {found.tolist()[:20]}, expected {right.tolist()[:20]}"
    return None
