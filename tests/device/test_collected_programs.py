"""Programs that collect messages: what plain Python gives, on the host and on every device."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from collected_programs import (
    Common,
    Countdown,
    Nearest,
    Second,
    Summary,
    collected_cases,
    edge_cases,
    with_arrays,
)
from graphs import edge_lists, nasty
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_programs import PlainRun
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError, ArgumentError, DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph

DIRECTIONS = ("auto", "push", "pull")
SHAPES = ("isolated vertices", "loops only", "duplicates", "star", "two hubs", "grid")


def weighted(edges: EdgeList, dtype) -> EdgeList:
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(dtype)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def confirm(edges, case, device, order, way, direction, threads=2) -> None:
    """Run a program on the host and on a device, twice each, and compare all with plain Python."""
    program, parameters, dtype, limit = case
    edges = edges if dtype is None else weighted(edges, dtype)
    way = "out" if way == "both" and hasattr(program, "apply_edge") else way
    program.along, graph = way, hb.CSRGraph.from_edge_source(edges)
    parameters = with_arrays(parameters, graph)
    plain = PlainRun(program, graph, parameters, True, threads)
    expected = plain.run(*([] if limit is None else [limit]))
    with ProgramRuns(build_search_graph(edges, order), threads, device) as runs:
        places = ["cpu"] * 2 + ["device"] * 2 * (runs.device is not None)
        if program.totals and not (device and device.has_double):
            places = ["cpu"] * 2
        for place in places:
            result = runs.run(program, parameters, hb.RunOptions(limit, direction, place=place))
            for name, array in expected.state.items():
                assert result.state[name].dtype == array.dtype
                np.testing.assert_array_equal(result.state[name], array, name)
            assert result.edges.keys() == expected.edges.keys()
            for name, array in expected.edges.items():
                assert result.edges[name].dtype == array.dtype
                np.testing.assert_array_equal(result.edges[name], array, name)
            assert result.totals == expected.totals
            assert (result.iterations, result.converged) == (expected.iterations, True)
            if direction != "auto":
                taken = "pull" if program.all_active else direction
                taken = taken if place == "cpu" else f"device {taken}"
                assert {trace.strategy for trace in result.traces} <= {taken}
        assert len(places) == 2 or not runs.notes, runs.notes


@pytest.mark.sampled(48)
@pytest.mark.parametrize("case", collected_cases(0))
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape(plain_device, name, directed, case):
    draw = random.Random(f"{name} {directed} {case}")
    drawn = collected_cases(draw.randrange(20))[case]
    order, way = draw.choice(("given", "degree", "auto")), draw.choice(("out", "in", "both"))
    confirm(nasty(name, directed), drawn, plain_device, order, way, draw.choice(DIRECTIONS))


@settings(max_examples=8, deadline=None)
@given(edge_lists(), st.data())
def test_any_graph(plain_device, edges, data):
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    case = data.draw(st.sampled_from([*collected_cases(source).values()]))
    order, way = (data.draw(st.sampled_from(x)) for x in (("given", "auto"), ("out", "in", "both")))
    direction, threads = data.draw(st.sampled_from(DIRECTIONS)), data.draw(st.integers(1, 3))
    confirm(edges, case, plain_device, order, way, direction, threads)


def test_a_push_reads_the_lists_of_touched_receivers_only(plain_device):
    edges = weighted(nasty("grid"), np.int32)
    with ProgramRuns(build_search_graph(edges), 2, plain_device) as runs:
        for place in ("cpu", "device"):
            scanned = {
                direction: [
                    trace.edges_scanned
                    for trace in runs.run(
                        Nearest(), {"source": 3}, hb.RunOptions(None, direction, place=place)
                    ).traces
                ]
                for direction in DIRECTIONS
            }
            assert set(scanned["pull"]) == {2 * edges.src.size}
            assert sum(scanned["push"]) < sum(scanned["pull"]) / 2
            assert sum(scanned["auto"]) <= sum(scanned["pull"])


def test_the_order_of_messages_is_that_of_the_list(plain_device):
    """Floats are added in the same order on every place, so that all digits are the same.

    GPUs divide floats of 32 bits less exactly, so nothing is divided.
    """

    class Sum(hb.Program):
        state = {"sum": np.float32}  # noqa: RUF012
        all_active = True

        def initial(self, vertex):
            return vertex * 0.37

        def message(self, state):
            return state.sum

        def apply(self, messages):
            total = np.float32(0)
            for message in messages:
                total += message
            return total * 0.02

    edges = nasty("Kronecker 10")
    with ProgramRuns(build_search_graph(edges), 2, plain_device) as runs:
        host, device = (
            runs.run(Sum(), {}, hb.RunOptions(5, place=place)).sum for place in ("cpu", "device")
        )
    np.testing.assert_array_equal(host, device)


def test_where_such_programs_do_not_run(plain_device):
    edges = nasty("grid")
    small = replace(plain_device, memory_bytes=1 << 14, max_alloc_bytes=1 << 14)
    with ProgramRuns(build_search_graph(edges), 1, plain_device) as runs:
        for options, message in (
            ({"mode": "asynchronous"}, "has the receiver's state in `message`, which mode 'async"),
            ({"place": "both"}, "such runs stay on one place and take no schedule"),
            ({"schedule": ["pull", "push"]}, "such runs stay on one place and take no schedule"),
        ):
            with pytest.raises(ArgumentError, match=message):
                runs.run(Common(), {}, hb.RunOptions(**options))
        assert runs.run(Common(), {}, hb.RunOptions(mode="auto")).mode == "synchronous"
        for attributes, message in (
            ({"combine": hb.most_frequent, "all_active": True}, "which most_frequent rules out"),
            ({"combine": hb.any_one, "all_active": True}, "any_one has no identity, which all_act"),
        ):
            with pytest.raises(hb.ProgramError, match=message):
                runs.run(type("Wrong", (Common,), attributes)(), {}, hb.RunOptions())
    with ProgramRuns(build_search_graph(edges), 1, small) as runs:
        with pytest.raises(DeviceError, match="Common: no OpenCL device is in use"):
            runs.run(Common(), {}, hb.RunOptions(place="device"))
        assert len(runs.notes) == 1
        runs.run(Common(), {}, hb.RunOptions())
    with pytest.raises(AgreedError, match="must run Common, which has the receiver's"):
        run_ranks(1, lambda c: RankEngine(edges, c).run(Common()))


class Many(Second):
    """It reads messages as what they are not."""

    def apply(self, state, messages):
        return len(messages), 1


class Twice(Second):
    """Two loops, one in the other, have the same variable."""

    def apply(self, state, messages):
        for message in messages:
            for message in messages:
                if message > 0:
                    return 2, 1
        return 1, 1


class Changed(Second):
    """It changes a message."""

    def apply(self, state, messages):
        for message in messages:
            message += 1
        return 1, 1


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Many, "`messages` as a value cannot be translated; write for message in messages:"),
        (Twice, "'message' as a message and as something else cannot be translated"),
        (Changed, "an assignment to message 'message' cannot be translated; use another name"),
    ],
)
def test_what_loops_cannot_do(program, message):
    graph = build_search_graph(weighted(nasty("grid"), np.int32))
    with (
        ProgramRuns(graph, 1) as runs,
        pytest.raises(hb.ProgramError, match=rf"^{program.__name__}.apply, line \d+: {message}"),
    ):
        runs.run(program(), {"modulus": 1}, hb.RunOptions())


def test_what_does_not_fit_together_is_refused():
    def one_monoid(program, **attributes):
        return type("Wrong", (program,), attributes)()

    pair = {"distance": np.int64, "parent": np.int64}
    graph = build_search_graph(weighted(nasty("grid"), np.int32))
    wrong = [
        (one_monoid(Second, combine=hb.plus), "goes through `messages`, and there is `combine`"),
        (one_monoid(Summary, combine=hb.plus), "is one monoid for messages of several fields"),
        (one_monoid(Summary, combine={"least": hb.plus}), "give both the same names"),
        (one_monoid(Common, message_type=pair, combine=lambda self, first, second: first),
         "identity is None; .* a tuple of 2 numbers"),
        (one_monoid(Countdown, all_active=True), "all_active includes active_apply"),
        (one_monoid(Countdown, combine=hb.any_one), "any_one has no identity, which active_apply"),
    ]  # fmt: skip
    with ProgramRuns(graph, 1) as runs:
        for program, message in wrong:
            with pytest.raises(hb.ProgramError, match=message):
                runs.run(program, {}, hb.RunOptions())


@settings(max_examples=15, deadline=None)
@given(edge_lists(), st.data())
def test_fields_of_edges_are_written(plain_device, edges, data):
    case = data.draw(st.sampled_from([*edge_cases().values()]))
    order, way = (data.draw(st.sampled_from(x)) for x in (("given", "auto"), ("out", "in")))
    direction, threads = data.draw(st.sampled_from(DIRECTIONS)), data.draw(st.integers(1, 3))
    confirm(edges, case, plain_device, order, way, direction, threads)
