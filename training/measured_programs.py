"""Vertex programs as they are measured: what their iterations cost, and the regret of the choice.

One program for each kind of message (selection/program_costs.py) runs over a few graphs, pushed,
pulled, and as the scheduler chooses, on the host and on the device. Active vertices are the same in
each of these runs, iteration by iteration. So the best schedule on the host takes, in each
iteration, the direction that was faster there. A device reports no seconds of an iteration: its
best schedule is the faster direction of the whole run.

`regret` is the seconds of the run as the scheduler chose it over those of the best schedule of all
places, minus 1. Seconds are medians of several runs, in turn. Choosing the place is not part of it:
the run as chosen is that of the place which was faster, as the scheduler's own trials find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hetero_bfs.algorithms.iterations import IterationTrace
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.families import StudyGraph, families
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.monoids import any_one, minimum
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.run_options import DIRECTIONS, RunOptions
from hetero_bfs.runtime.places import Place
from hetero_bfs.runtime.program_runs import ProgramRuns
from hetero_bfs.selection.program_costs import CostTable, ProgramCosts
from hetero_bfs.support.progress import progress
from hetero_bfs.training.fit import fit_linear

REGRET_COLUMNS = ("program", "place", "seconds", "best_seconds", "regret")
"""Columns of `regret_of_programs`."""

ROUNDS = 5
_LARGER_ON_A_GPU = 3  # scales
_HEAVIEST = 255
_LEAST_SECONDS = 20e-6
"""Iterations that are shorter have no influence on the costs: what they choose hardly matters."""


class Parents(Program):
    """Breadth-first search: any message will do."""

    state = {"parent": np.int32}  # noqa: RUF012
    combine = any_one

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        """The source is its own parent."""
        return (source, True) if vertex == source else (-1, False)

    def receives(self, state):  # type: ignore[no-untyped-def]
        """A vertex takes one message."""
        return state.parent < 0

    def message(self, vertex):  # type: ignore[no-untyped-def]
        """The sender is the parent."""
        return vertex

    def apply(self, combined):  # type: ignore[no-untyped-def]
        """The message is the new state."""
        return combined


class Labels(Program):
    """Components by the smallest number: messages without weights."""

    state = {"label": np.int32}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex):  # type: ignore[no-untyped-def]
        """Each vertex is a component."""
        return vertex

    def message(self, state):  # type: ignore[no-untyped-def]
        """The label goes along."""
        return state.label

    def apply(self, state, combined):  # type: ignore[no-untyped-def]
        """The smaller label stays."""
        return min(state.label, combined)


class Distances(Program):
    """Shortest paths by rounds of Bellman and Ford: messages with weights."""

    state = {"distance": np.float32}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        """Nothing but the source is reached."""
        return 0.0 if vertex == source else np.inf

    def receives(self, state, message):  # type: ignore[no-untyped-def]
        """Only a shorter path is of use."""
        return message < state.distance

    def message(self, state, weight):  # type: ignore[no-untyped-def]
        """The path goes on along the edge."""
        return state.distance + weight

    def apply(self, state, combined):  # type: ignore[no-untyped-def]
        """The shorter path stays."""
        return min(state.distance, combined)


MEASURED: dict[str, type[Program]] = {
    "any_one": Parents, "unweighted": Labels, "weighted": Distances
}  # fmt: skip
"""The program of each kind of message."""


def graphs_for(info: DeviceInfo | None, scales: Sequence[int]) -> list[StudyGraph]:
    """List the graphs on which programs are measured in training; a GPU gets larger ones."""
    more = _LARGER_ON_A_GPU if info is not None and info.type == "GPU" else 0
    return [graph for scale in scales for graph in families(scale + more)]


class _Measured:
    """Runs of all programs on one graph: medians, by program, place and direction."""

    def __init__(self, edges: EdgeSource, info: DeviceInfo | None, threads: int) -> None:
        placed = build_search_graph(_weighted(edges))
        self.searched = placed.num_searched
        self.stored_edges = placed.graph.num_stored_edges
        self.source = int(placed.relabelling.old_of_new[0])
        self.runs = ProgramRuns(placed, threads, info)
        self.places: list[Place] = list(self.runs.places)

    def measure(self, kind: str, rounds: int) -> dict[tuple[Place, str], list[IterationTrace]]:
        """Run a kind's program in every place and direction, in turn; return median traces."""
        program = MEASURED[kind]()
        parameters = {} if kind == "unweighted" else {"source": self.source}
        found: dict[tuple[Place, str], list[list[IterationTrace]]] = {
            (place, direction): [] for place in self.places for direction in DIRECTIONS
        }
        order = list(found)
        for turn in range(rounds + 1):
            first = turn % len(order)  # who runs after another place finds its caches cold
            for place, direction in order[first:] + order[:first]:
                options = RunOptions(direction=direction, place=place)  # type: ignore[arg-type]
                traces = self.runs.run(program, parameters, options).traces
                if turn:  # the first one warms up
                    found[place, direction].append(traces)
        return {key: _median(runs) for key, runs in found.items()}


def _weighted(source: EdgeSource) -> EdgeList:
    """Return edges with drawn weights of 1 to 255, if they have none."""
    edges = source if isinstance(source, EdgeList) else _listed(source)
    if edges.weights is not None:
        return edges
    drawn = np.random.default_rng(1).integers(1, _HEAVIEST, edges.src.size, endpoint=True)
    return replace(edges, weights=drawn.astype(np.float32))


def _listed(source: EdgeSource) -> EdgeList:
    chunks = [np.stack(chunk) for chunk in source.chunks()]
    src, dst = np.concatenate([np.empty((2, 0), np.uint32), *chunks], axis=1)
    return EdgeList.from_arrays(src, dst, source.num_vertices, directed=source.directed)


def _median(runs: Sequence[Sequence[IterationTrace]]) -> list[IterationTrace]:
    """Return the first run's traces with the median seconds of all."""
    seconds = np.median([[trace.seconds for trace in run] for run in runs], axis=0)
    return [
        trace._replace(seconds=float(value)) for trace, value in zip(runs[0], seconds, strict=True)
    ]


def measure_programs(
    graphs: Iterable[StudyGraph], info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Measure iterations of pushes and pulls.

    Returns
    -------
    DataFrame
        A row for each graph, kind of message, place and direction; on the host for each of its
        iterations, on a device for the sum of them: iterations, vertices, edges, misses
        (selection/program_costs.py), seconds.
    """
    rows: list[dict[str, Any]] = []
    for graph in progress(list(graphs), "measuring programs", delay_seconds=0.0):
        measured = _Measured(graph.make(), info, threads)
        with measured.runs:
            for kind in MEASURED:
                runs = measured.measure(kind, rounds)
                for (place, direction), traces in runs.items():
                    if direction == "auto":
                        continue
                    iterations = [
                        _sample(trace, pushed, measured)
                        for trace, pushed in zip(traces, runs[place, "push"], strict=True)
                    ]
                    groups = [iterations] if place == "device" else [[one] for one in iterations]
                    what = {"family": graph.family, "kind": kind, "place": place}
                    rows += [
                        {**what, "direction": direction, **pd.DataFrame(group).sum().to_dict()}
                        for group in groups
                    ]
    return pd.DataFrame(rows)


def _sample(trace: IterationTrace, pushed: IterationTrace, measured: _Measured) -> dict[str, float]:
    """Return what an iteration cost, and what its cost is thought to be made of.

    A push scans the edges of the active vertices, who are the same in all directions.
    """
    share = min(pushed.edges_scanned / max(measured.stored_edges, 1), 1.0)
    return {
        "iterations": 1.0,
        "vertices": float(measured.searched),
        "edges": float(trace.edges_scanned),
        "misses": trace.edges_scanned * share * (1.0 - share),
        "seconds": trace.seconds,
    }


def fit_programs(samples: pd.DataFrame) -> CostTable:
    """Fit the costs of each place and kind of message to `measure_programs`."""
    table: dict[Any, dict[str, ProgramCosts]] = {}
    long = samples[samples["seconds"] > _LEAST_SECONDS]
    for (place, kind), rows in long.groupby(["place", "kind"]):
        push = fit_linear(rows[rows["direction"] == "push"], ("iterations", "edges"))
        of_pulls = ("iterations", "vertices", "edges", "misses")
        pull = fit_linear(rows[rows["direction"] == "pull"], of_pulls)
        table.setdefault(place, {})[kind] = ProgramCosts(
            push.coefficients[1], *pull.coefficients[1:]
        )
    return table


def regret_of_programs(
    edges: EdgeSource, info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> Iterator[dict[str, Any]]:
    """Measure the regret of the scheduler's choice on one graph; yield a row for each program."""
    measured = _Measured(edges, info, threads)
    with measured.runs:
        for kind, program in MEASURED.items():
            traces = measured.measure(kind, rounds)
            best = min(
                _best_seconds(place, traces[place, "push"], traces[place, "pull"])
                for place in measured.places
            )
            chosen = {place: _total(traces[place, "auto"]) for place in measured.places}
            place = min(chosen, key=lambda one: chosen[one])
            best = min(best, chosen[place])
            row = program.__name__, place, chosen[place], best, chosen[place] / best - 1.0
            yield dict(zip(REGRET_COLUMNS, row, strict=True))


def _best_seconds(
    place: Place, pushed: Sequence[IterationTrace], pulled: Sequence[IterationTrace]
) -> float:
    """Return the seconds of the best schedule of a place."""
    if place == "device":
        return min(_total(pushed), _total(pulled))
    pairs: npt.NDArray[np.float64] = np.array(
        [[a.seconds, b.seconds] for a, b in zip(pushed, pulled, strict=True)]
    )
    return float(pairs.min(axis=1).sum())


def _total(traces: Sequence[IterationTrace]) -> float:
    return sum(trace.seconds for trace in traces)
