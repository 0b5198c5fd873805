"""Vertex programs on the host: what plain Python gives, on every shape; and what is refused."""

from __future__ import annotations

import random
import signal
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import NAMES, edge_lists, nasty, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_programs import PlainRun
from sample_programs import (
    Communities,
    Distances,
    Extremes,
    Farthest,
    Labels,
    MonotoneDistances,
    Parity,
    Ranks,
    Reached,
    Votes,
)

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import host as host_run
from hetero_bfs.programs.kernels.loop import ITERATION

ORDERS = ("given", "degree", "auto")
DIRECTIONS = ("auto", "push", "pull")
WAYS = ("out", "in", "both")
MOST_EDGES = 10_000
"""Entries of lists up to which plain Python is quick enough."""


class WithoutPriority(Distances):
    """Shortest paths without buckets, in rounds of Bellman and Ford."""

    priority = None


class Walk(hb.Program):
    """Much at once: messages that cancel out, several fields, and all that methods can read."""

    state = {"count": np.int64, "half": np.float32, "seen": bool, "last": "int32"}  # noqa: RUF012
    combine = hb.plus
    message_type = np.int32
    totals = ("changes", "mass")

    def initial(self, vertex, degree, begin, scale, even, num_vertices):
        active = begin > 0 and (vertex % 2 == 0 or not even)
        return begin, vertex * scale, degree > num_vertices // 2, -1, active

    def receives(self, state, vertex, iteration):
        return not state.seen or (vertex + iteration) % 3 == 0

    def message(self, state, weight, degree, iteration, vertex):
        return (state.last + weight + degree + vertex) % 7 - 3 - iteration % 2

    def apply(self, state, combined, iteration, mass, even):
        count = (state.count * 3 + combined + int(mass) % 5) % 1009
        if combined < 0:
            half, last = state.half - 0.5, iteration
        elif combined > 8 and even:
            half = max(state.half, 4.0)
            last = state.last
        else:
            half, last = state.half, state.last + 2
        return count, half, True, last, count % 5 != 0

    def measure(self, state, previous, degree):
        return int(state.count != previous.count) * degree, state.count % 17

    def finished(self, iteration, num_active, changes, rounds):
        return iteration >= rounds or (num_active > 0 and changes == 0)


class Tides(hb.Program):
    """All vertices are active though all begin at the identity; who receives changes."""

    state = {"level": np.int64, "rest": np.uint32}  # noqa: RUF012
    combine = hb.plus
    all_active = True
    totals = ("sum",)

    def initial(self, vertex):
        return 0, vertex % 4

    def receives(self, state):
        return state.rest != 0

    def message(self, state, vertex, iteration):
        return state.level + vertex % 5 + iteration

    def apply(self, state, combined):
        return (state.level + combined) % 1000003, (state.rest + 1) % 4

    def measure(self, state):
        return state.level

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Gossip(hb.Program):
    """All messages of an iteration are the same, so it is known which one comes."""

    state = {"heard": np.int32, "times": np.int32}  # noqa: RUF012
    combine = hb.any_one

    def initial(self, vertex, every):
        return -1, 0, vertex % every == 0

    def message(self, iteration):
        return iteration

    def apply(self, state, combined):
        return combined, state.times + 1


def weighted(edges: EdgeList, dtype) -> EdgeList:
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(dtype)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def cases(n: int, source: int) -> dict:
    """Return programs with parameters, the weights' type, and the most iterations."""
    drawn = np.random.default_rng(source)
    begin = drawn.integers(-3, 9, n).astype(np.int32)
    mask = (drawn.random(n) < 0.1).astype(np.uint32) << drawn.integers(0, 32, n).astype(np.uint32)
    walk = {"begin": begin, "scale": 0.5, "even": source % 2 == 0, "rounds": 9}
    return {
        "distances": (Distances(), {"source": source}, np.float32, None),
        "monotone": (MonotoneDistances(), {"source": source}, np.float32, None),
        "without priority": (WithoutPriority(), {"source": source}, np.float32, None),
        "labels": (Labels(), {}, None, 12),
        "reached": (Reached(), {"mask": mask}, None, None),
        "walk": (Walk(), walk, np.int32, 20),
        "tides": (Tides(), {"rounds": 7}, None, None),
        "gossip": (Gossip(), {"every": 1 + source % 3}, None, 5),
        "communities": (Communities(), {"rounds": 3}, None, None),
        "votes": (Votes(), {"rounds": 4}, np.int32, None),
        "extremes": (Extremes(), {}, None, None),
        "farthest": (Farthest(), {}, None, None),
        "parity": (Parity(), {"rounds": 4}, np.int32, None),
    }


def confirm(edges, program, parameters, limit, order, threads, direction, width=None) -> None:
    """Run a program, and compare all that it gives with plain Python."""
    runs_in_buckets = getattr(program, "priority", None) is not None
    graph = hb.CSRGraph.from_edge_source(edges)
    plain = PlainRun(program, graph, parameters, order == "given", threads)
    expected = plain.run() if limit is None else plain.run(limit)
    options = hb.RunOptions(limit, direction, width)
    with (
        mock.patch.object(host_run, "_POOL_EDGES", 1),
        mock.patch.object(host_run, "_FIRST_PORTION", 1),
        ProgramRuns(build_search_graph(edges, order), threads) as runs,
    ):
        for _ in range(2):  # the second one finds what the first one left
            result = runs.run(program, parameters, options)
            assert list(result.state) == list(expected.state)
            for name, array in expected.state.items():
                assert result.state[name].dtype == array.dtype
                np.testing.assert_array_equal(result.state[name], array, name)
            assert result.totals == expected.totals
            assert result.converged == expected.converged
            assert len(result.traces) == result.iterations
            if not runs_in_buckets:
                assert result.iterations == expected.iterations
            if direction != "auto" and not program.all_active:
                assert {trace.strategy for trace in result.traces} <= {direction}


# Directions

PLANNED = [("push", "pull", "pull", "push"), ("pull", "push"), ["pull"]]


@pytest.mark.parametrize("directions", PLANNED)
def test_directions_of_each_iteration(directions):
    edges = replace(random_graph(300, 900, 1), weights=np.ones(900, np.float32))
    for clocked in (False, True):
        with ProgramRuns(build_search_graph(edges), 2) as runs:
            runs.clocked = clocked
            expected = runs.run(WithoutPriority(), {"source": 0}, hb.RunOptions())
            options = hb.RunOptions(schedule=directions)
            result = runs.run(WithoutPriority(), {"source": 0}, options)
        np.testing.assert_array_equal(result.distance, expected.distance)
        last = [directions[-1]] * result.iterations
        taken = [trace.strategy for trace in result.traces]
        assert taken == [*directions, *last][: result.iterations]


def test_a_monotone_program_takes_no_schedule():
    edges = hb.EdgeList.from_arrays([0], [1], weights=np.ones(1, np.float32))
    with (
        ProgramRuns(build_search_graph(edges), 1) as runs,
        pytest.raises(ArgumentError, match="MonotoneDistances is monotone"),
    ):
        runs.run(MonotoneDistances(), {"source": 0}, hb.RunOptions(schedule=["push", "pull"]))


# Results


@pytest.mark.sampled(8)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_shape(name, directed):
    edges = nasty(name, directed)
    if hb.CSRGraph.from_edge_source(edges).num_stored_edges > MOST_EDGES:
        pytest.skip("too large for plain Python")
    n = edges.num_vertices
    draw = random.Random(f"{name} {directed}")
    source = int(edges.src[0]) if edges.src.size else 0
    for program, parameters, dtype, limit in cases(n, source).values():
        graph = edges if dtype is None else weighted(edges, dtype)
        order, direction = draw.choice(ORDERS), draw.choice(DIRECTIONS)
        program.along = "out" if program.monotone else draw.choice(WAYS)
        width = draw.choice([None, 0.5, 3.0, np.inf])
        confirm(graph, program, parameters, limit, order, draw.choice([1, 2]), direction, width)


@settings(max_examples=25)
@given(edge_lists(), st.data())
def test_any_graph(edges, data):
    n = edges.num_vertices
    source = data.draw(st.integers(0, n - 1))
    drawn = data.draw(st.sampled_from(list(cases(n, source).values())))
    program, parameters, dtype, limit = drawn
    graph = edges if dtype is None else weighted(edges, dtype)
    order, direction = data.draw(st.sampled_from(ORDERS)), data.draw(st.sampled_from(DIRECTIONS))
    program.along = data.draw(st.sampled_from(("out",) if program.monotone else WAYS))
    confirm(graph, program, parameters, limit, order, data.draw(st.integers(1, 3)), direction,
            data.draw(st.sampled_from([None, 1e-9, 2.0, np.inf])))  # fmt: skip


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_a_run_without_end_can_be_interrupted(mode):
    """Whatever interrupts it: Ctrl-C, or an alarm as here. The next run is right."""

    def stop(*_):
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, stop)
    graph = build_search_graph(random_graph(300, 900, 1))
    with ProgramRuns(graph, 1) as runs:
        once = hb.RunOptions(40, mode=mode)
        expected = runs.run(Ranks(), {"alpha": 0.85, "tol": 0.0}, once)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                runs.run(Ranks(), {"alpha": 0.85, "tol": 0.0}, hb.RunOptions(10**7, mode=mode))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, earlier)
        [compiled] = [*runs._modes.values()][-1].programs.values()
        assert 40 < compiled.host.fields["loop"][ITERATION] < 10**7
        result = runs.run(Ranks(), {"alpha": 0.85, "tol": 0.0}, once)
    np.testing.assert_array_equal(result.rank, expected.rank)
    assert result.iterations == expected.iterations == 40


# What is refused


def test_what_cannot_be_counted_or_sent_is_refused():
    graph = build_search_graph(weighted(nasty("grid"), np.int32))
    wrong = {
        "Communities: most_frequent counts the messages of all neighbours; set all_active = True":
            {"all_active": False},
        "Communities: most_frequent does not combine float32; set message_type to an integer type":
            {"message_type": np.float32},
        "Communities: most_frequent does not combine bool; set message_type to an integer type":
            {"message_type": bool},
        "Communities.along is 'back'; use out, in, both": {"along": "back"},
    }  # fmt: skip
    with ProgramRuns(graph, 1) as runs:
        for message, attributes in wrong.items():
            program = Communities()
            vars(program).update(attributes)
            with pytest.raises(hb.ProgramError, match=f"^{message}$"):
                runs.run(program, {"rounds": 1}, hb.RunOptions())


def test_what_cannot_combine_is_refused():
    def of_state(self, state):
        return state.label

    wrong = {
        "identity is None; a class with a method": {"identity": None},
        "identity is nan; a class with a method": {"identity": np.nan},
        "identity is 0.5, which is not of type int32": {"identity": 0.5},
        "combine is none of hb.minimum.*write it as a method": {"combine": max},
        "a monotone program has `priority` and hb.minimum": {"monotone": True},
        "parameter 'state' is not given to the run; known here: first": {"combine": of_state},
    }
    with ProgramRuns(build_search_graph(random_graph(9, 20, 1)), 1) as runs:
        for words, attributes in wrong.items():
            with pytest.raises(hb.ProgramError, match=words):
                runs.run(type("Wrong", (Farthest,), attributes)(), {}, hb.RunOptions())
        with pytest.raises(ArgumentError, match="has totals by maximum, which mode 'asynchronous'"):
            runs.run(Extremes(), {}, hb.RunOptions(mode="asynchronous"))
        program = type("Wrong", (Extremes,), {"totals": {"most": hb.bitwise_or}})()
        with pytest.raises(hb.ProgramError, match="totals: 'most' has 'bitwise_or'; use hb"):
            runs.run(program, {}, hb.RunOptions())
        with pytest.raises(ArgumentError, match="combines by a method; mode 'asynchronous'"):
            runs.run(Farthest(), {}, hb.RunOptions(mode="asynchronous"))


def test_names_that_are_nearly_right_are_refused():
    class Own(Labels):
        total = 3  # read below, so it is the user's
        _prioriti = 4

        def apply(self, state, combined):
            return min(state.label, combined + self.total - 3), state.changes

    wrong = {
        "recieves": ("receives", lambda self, state: False),
        "all_activ": ("all_active", True),
        "aply": ("apply", Labels.apply),
        "total": ("totals", ()),
    }
    with ProgramRuns(build_search_graph(random_graph(9, 20, 1)), 1) as runs:
        runs.run(Labels(), {}, hb.RunOptions())  # its code is that of some of the wrong ones
        for name, (right, value) in wrong.items():
            program = type("Wrong", (Labels,), {name: value})()
            message = f"^Wrong.{name}: programs have {right}, and no {name}; correct"
            with pytest.raises(hb.ProgramError, match=message):
                runs.run(program, {}, hb.RunOptions())
        assert runs.run(Own(), {}, hb.RunOptions()).converged


def test_options_and_results_are_told_from_parameters_and_fields():
    program = type("Named", (Labels,), {"state": {"label": np.int64, "seconds": np.uint32}})()
    with ProgramRuns(build_search_graph(random_graph(9, 20, 1)), 1) as runs:
        with pytest.raises(ArgumentError, match="max_iterations is an option, no parameter of"):
            runs.run(Labels(), {"max_iterations": 3}, hb.RunOptions())
        with pytest.raises(ArgumentError, match="options holds options, which are not a parameter"):
            runs.run(Labels(), {"options": hb.RunOptions()}, hb.RunOptions())
        with pytest.raises(hb.ProgramError, match="'seconds' is a name that results use"):
            runs.run(program, {}, hb.RunOptions())


def test_both_ways_an_edge_to_and_fro_counts_twice():
    graph = hb.CSRGraph.from_edges([0, 1, 2, 3], [1, 0, 1, 1], directed=True)
    with hb.Engine(graph, device="cpu") as engine:
        first, second = (engine.run(Communities(), rounds=n).label.tolist() for n in (1, 2))
    assert first == [1, 0, 1, 1]  # 1 gets 0 twice, and 2 and 3 once each
    assert second == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": []}, "schedule is empty; give one or more of push, pull, device push"),
        ({"schedule": ["push", "fly"]}, "schedule has 'fly'; give one or more of push"),
        ({"schedule": ["push", "auto"]}, "schedule has 'auto'; give one or more of push"),
        ({"schedule": "push"}, "schedule is 'push'; give a list"),
        ({"schedule": 3}, "schedule is 3; give a list"),
        ({"direction": ["push"]}, "direction is \\['push'\\]; give one of"),
        ({"schedule": ["push"], "place": "cpu"}, "place is 'cpu', and a schedule decides on it"),
        ({"schedule": ["push"], "direction": "pull"}, "direction is 'pull', and a schedule"),
        ({"schedule": ["push"], "mode": "asynchronous"}, "schedule is .* which mode 'asynchronous"),
        ({"place": "both", "mode": "auto"}, "place is 'both', which mode 'auto' has no use for"),
    ],
)
def test_schedules_are_checked(options, message):
    with pytest.raises(ArgumentError, match=message):
        hb.RunOptions(**options)
