"""Mode "asynchronous": each sweep equals turns of one vertex after the other, in plain Python.

The programs' results depend on the order of the turns. With neighbours that change at the same
time, a program such as `Chosen` alternates for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_programs import PlainSweeps

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.opencl import streamed_lists
from hetero_bfs.devices.opencl.streamed_lists import Layout
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device_sweeps
from hetero_bfs.programs import host as host_run
from hetero_bfs.programs.device import DeviceProgram

_MOST_SWEEPS = 4


class Chosen(hb.Program):
    """A maximal independent set: a vertex is chosen if no neighbour is."""

    state = {"chosen": np.int32}  # noqa: RUF012
    combine = hb.maximum
    all_active = True

    def initial(self):
        return 0

    def message(self, state):
        return state.chosen

    def apply(self, combined, blocked):
        return 1 if combined <= 0 and not blocked else 0


class Remainders(hb.Program):
    """Sums modulo 7: each vertex's number depends on all turns before it."""

    state = {"number": np.int64}  # noqa: RUF012
    combine = hb.plus
    all_active = True

    def initial(self, vertex):
        return vertex % 7

    def message(self, state):
        return state.number

    def apply(self, state, combined, blocked):
        return (3 * state.number + combined + blocked) % 7


class Frequencies(hb.Program):
    """The first of four frequencies that no neighbour has; only who changed sends."""

    state = {"frequency": np.int32}  # noqa: RUF012
    combine = hb.bitwise_or

    def initial(self, blocked):
        return 0, not blocked

    def message(self, state):
        return 1 << state.frequency

    def apply(self, state, combined):
        free = 3
        if not combined & 4:
            free = 2
        if not combined & 2:
            free = 1
        if not combined & 1:
            free = 0
        return free, free != state.frequency


PROGRAMS = [Chosen(), Remainders(), Frequencies()]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Work-groups of 8, lists of over 6 entries are long ones."""
    monkeypatch.setattr(DeviceProgram, "GROUP", 8)
    monkeypatch.setattr(device_sweeps, "_HEAVY_EDGES_OF_CPU", 6)
    monkeypatch.setattr(device_sweeps, "_HEAVY_EDGES", 6)
    monkeypatch.setattr(host_run, "_POOL_EDGES", 1)


@st.composite
def cases(draw) -> tuple[EdgeList, hb.Program, np.ndarray, int | None]:
    """A graph, a program, its blocked vertices, and the number of classes.

    The graph has random edges, sets of mutually connected vertices, and isolated vertices.
    """
    n = draw(st.integers(2, 40))
    vertex = st.integers(0, n - 1)
    pairs = [(0, 1), *draw(st.lists(st.tuples(vertex, vertex), max_size=60))]
    for _ in range(draw(st.integers(0, 2))):
        first = draw(vertex)
        pairs += combinations(range(first, min(first + draw(st.integers(2, 20)), n)), 2)
    blocked = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    edges = edge_list(pairs, n, draw(st.booleans()))
    classes = draw(st.sampled_from([None, 1, 2, 5]))
    return edges, draw(st.sampled_from(PROGRAMS)), np.array(blocked, np.int32), classes


def edge_list(pairs: list[tuple[int, int]], n: int, directed: bool = False) -> EdgeList:
    src, dst = np.array(pairs, np.uint32).reshape(-1, 2).T
    return EdgeList(src.copy(), dst.copy(), n, directed)


@contextmanager
def runs_on(edges: EdgeList, device, threads: int, streams: bool) -> Iterator[ProgramRuns]:
    """Prepare a graph; if `streams`, the device holds two blocks of neighbour lists."""

    def two_blocks(info, what, ways, *sizes) -> Layout:
        return Layout(2, 10**4, max(int(way.sizes.max()) for way in ways), 4)

    if streams:
        device = replace(device, unified_memory=False)
    full = mock.patch.object(DeviceProgram, "_make_room", side_effect=BudgetError("it is full"))
    few = mock.patch.object(streamed_lists, "lay_out", two_blocks)
    with ProgramRuns(build_search_graph(edges), threads, device) as runs:
        with full if streams else nullcontext(), few:
            yield runs
        assert not runs.notes, runs.notes


def check(case, device, threads: int = 1, streams: bool = False) -> None:
    """Compare the states after each of some sweeps."""
    edges, program, blocked, classes = case
    graph, parameters = hb.CSRGraph.from_edge_source(edges), {"blocked": blocked}
    colour = hb.colour(edges).colour
    with runs_on(edges, device, threads, streams) as runs:
        for sweeps in range(1, _MOST_SWEEPS + 1):
            expected = PlainSweeps(program, graph, colour, parameters).run(sweeps)
            place = "cpu" if device is None else "device"
            options = hb.RunOptions(sweeps, mode="asynchronous", place=place, num_classes=classes)
            found = runs.run(program, parameters, options)
            for name, state in expected.state.items():
                np.testing.assert_array_equal(found.state[name], state, f"after {sweeps} sweeps")
            assert found.iterations == expected.iterations


@settings(max_examples=100)
@given(cases(), st.sampled_from([1, 2]))
def test_sweeps_equal_turns_on_the_host(case, threads):
    check(case, None, threads)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("streams", [False, True])
@settings(max_examples=40)
@given(case=cases())
def test_sweeps_equal_turns_on_a_device(opencl_device, streams, case):
    check(case, opencl_device, streams=streams)


@pytest.mark.parametrize("streams", [False, True])
def test_one_of_mutually_connected_vertices_is_chosen(opencl_device, streams):
    """Of 40, with 16 that are blocked; the choice stays."""
    edges, blocked = edge_list(list(combinations(range(40), 2)), 40), np.arange(40) < 16
    with runs_on(edges, opencl_device, 2, streams) as runs:
        for place in ("cpu", "device"):
            for sweeps in (1, 2, 3):
                options = hb.RunOptions(sweeps, mode="asynchronous", place=place)
                found = runs.run(Chosen(), {"blocked": blocked.astype(np.int32)}, options)
                assert found.chosen.sum() == 1
                assert bool(found.streamed_bytes) == (streams and place == "device")


def test_turns_in_the_order_of_a_given_colouring(apart):
    """Saved, and extended after edges were added. An engine keeps the colouring of the last run."""
    pairs = [(v, v + 1) for v in range(30)] + [(0, 9), (3, 7), (2, 20)]
    before, edges = edge_list(pairs[:-2], 31), edge_list(pairs, 31)
    own = hb.colour(edges).colour
    colour = hb.colour(edges, start=hb.colour(before).colour).colour
    given = [None, 5 * (own.max() - own), colour, colour.tolist(), None]
    graph, parameters = hb.CSRGraph.from_edge_source(edges), {"blocked": np.zeros(31, np.int32)}
    with runs_on(edges, apart, 1, False) as runs:
        for one in given:
            order = own if one is None else np.array(one)
            expected = PlainSweeps(Remainders(), graph, order, parameters).run(2)
            for place in ("cpu", "device"):
                options = hb.RunOptions(2, mode="asynchronous", place=place, colour=one)
                found = runs.run(Remainders(), parameters, options)
                np.testing.assert_array_equal(found.number, expected.state["number"])
        for wrong in (np.zeros(31, int), own[:9], own - 1):
            options = hb.RunOptions(2, mode="asynchronous", colour=wrong)
            with pytest.raises(hb.ArgumentError, match=r"colour (is not a colouring|has shape)"):
                runs.run(Remainders(), parameters, options)
