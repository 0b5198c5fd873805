"""Programs, schedules and checks for tests of runs that migrate."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sample_programs import needs_doubles

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.result import ProgramResult

SCHEDULES = {
    "to the device": ("push", "device push"),
    "to the CPU": ("device pull", "pull"),
    "each time": ("push", "device push") * 60,
    "all four": ("device pull", "push", "device push", "device push", "pull") * 40,
}


class Steps(hb.Program):
    """Breadth-first levels, in fields of 1, 4 and 8 bytes; a vertex without a change is active."""

    state = {"level": np.int64, "seen": bool, "share": np.float32}  # noqa: RUF012
    combine = hb.minimum
    totals = ("sum", "reached")

    def initial(self, vertex, every):
        begins = vertex % every == 0
        return (0 if begins else 1 << 40), begins, 0.5, begins

    def message(self, state, iteration, vertex):
        return state.level + 1 + (vertex + iteration) % 2

    def apply(self, state, combined, sum):
        share = state.share + 0.25
        return min(state.level, combined), True, share, combined < state.level or share < 1.5

    def measure(self, state, previous):
        return state.share - previous.share, 1 if state.seen and not previous.seen else 0


class Quiet(hb.Program):
    """States change without making the vertex active."""

    state = {"count": np.uint32, "heat": np.int32}  # noqa: RUF012
    combine = hb.plus

    def initial(self, vertex):
        return 0, vertex % 5, vertex % 5 == 1

    def message(self, state):
        return 1

    def apply(self, state, combined, iteration):
        heat = state.heat - 1
        return state.count + combined, heat, heat > 0 and iteration < 12


def weighted(edges: EdgeList, dtype=np.float32) -> EdgeList:
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(dtype)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def runs_of(edges, device, order: str = "auto") -> ProgramRuns:
    return ProgramRuns(build_search_graph(edges, order), 2, device)


def migrations(result: ProgramResult, began_on_cpu: bool = False) -> list[bool]:
    """Tell for each iteration whether the one before, or the beginning, was on another place."""
    on_device = [trace.strategy.startswith("device ") for trace in result.traces]
    first = False if began_on_cpu else on_device[:1] == [True]
    return [before != after for before, after in pairwise([first, *on_device])]


def check_same(
    result: ProgramResult, alone: ProgramResult, exact: bool = True, began_on_cpu: bool = False
) -> None:
    """Check a run that migrated against one that did not."""
    assert (result.iterations, result.converged) == (alone.iterations, alone.converged)
    for name, state in alone.state.items():
        if exact:
            np.testing.assert_array_equal(result.state[name], state)
        else:
            np.testing.assert_allclose(result.state[name], state, rtol=1e-9)
    assert result.totals == pytest.approx(alone.totals, rel=1e-9)
    check_traces(result, began_on_cpu)
    assert [trace.vertices for trace in result.traces] == [trace.vertices for trace in alone.traces]


def check_traces(result: ProgramResult, began_on_cpu: bool = False) -> None:
    """Check that the trace has migrations where the place changes, and all of their bytes."""
    took = [trace.migration_seconds > 0 for trace in result.traces]
    assert took == migrations(result, began_on_cpu)
    assert sum(trace.migrated_bytes for trace in result.traces) == result.migrated_bytes


def check_all(runs: ProgramRuns, program: hb.Program, exact: bool = True, **parameters) -> None:
    """Run by every schedule, unless the device lacks the program's types."""
    if needs_doubles(program) and not runs.device.info.has_double:
        return
    alone = runs.run(program, parameters, hb.RunOptions(200, place="cpu"))
    for schedule in SCHEDULES.values():
        result = runs.run(program, parameters, hb.RunOptions(200, schedule=schedule))
        assert not runs.notes, runs.notes
        check_same(result, alone, exact)
        wanted = (*schedule, *[schedule[-1]] * 200)[: len(result.traces)]
        if program.all_active:  # which pull whatever they are told
            wanted = tuple(name.replace("push", "pull") for name in wanted)
        assert tuple(trace.strategy for trace in result.traces) == wanted
