"""Messages of another type than the first field's: the same numbers wherever a program runs."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from graphs import nasty
from oracle import engine_on
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.device import DeviceProgram

SOURCE = 3


class Shares(hb.Program):
    """Each level shares out half of what it has: fractions travel, and the level comes first."""

    state = {"level": np.int32, "share": np.float64}  # noqa: RUF012
    combine = hb.plus

    def initial(self, vertex, source):
        return (0, 1.0, True) if vertex == source else (-1, 0.0, False)

    def receives(self, state):
        return state.level < 0

    def message(self, state):
        return state.share / 2

    def apply(self, combined, iteration):
        return iteration + 1, combined


class Heaviest(hb.Program):
    """The largest of all values that reach a vertex; the first field only tells that one did."""

    state = {"seen": bool, "value": np.float64}  # noqa: RUF012
    combine = hb.maximum

    def initial(self, value):
        return True, value, True

    def message(self, state):
        return state.value

    def apply(self, state, combined):
        return True, max(state.value, combined)


GRAPH = nasty("Kronecker 10", False)
VALUES = np.random.default_rng(1).random(GRAPH.num_vertices) * 67.5


def shares() -> tuple[np.ndarray, np.ndarray]:
    """Return levels and shares by plain Python."""
    graph = build_search_graph(GRAPH, "given").graph
    level, share = np.full(GRAPH.num_vertices, -1), np.zeros(GRAPH.num_vertices)
    level[SOURCE], share[SOURCE], now = 0, 1.0, [SOURCE]
    while now:
        comes: dict[int, float] = {}
        for u in now:
            for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist():
                if level[v] < 0:
                    comes[v] = comes.get(v, 0.0) + share[u] / 2
        for v, value in comes.items():
            level[v], share[v] = level[now[0]] + 1, value
        now = list(comes)
    return level, share


def heaviest() -> np.ndarray:
    """Return the largest value of each vertex's component by plain Python."""
    values, graph = VALUES.copy(), build_search_graph(GRAPH, "given").graph
    tails = np.repeat(np.arange(GRAPH.num_vertices), np.diff(graph.indptr))
    while True:
        before = values.copy()
        np.maximum.at(values, graph.indices, before[tails])
        if (values == before).all():
            return values


def check(run) -> None:
    """Check both programs, run by a function of a program and its parameters."""
    level, share = shares()
    found = run(Shares(), source=SOURCE)
    np.testing.assert_array_equal(found["level"], level)
    np.testing.assert_allclose(found["share"], share, rtol=1e-12)
    assert np.count_nonzero(share % 1) > 0
    np.testing.assert_array_equal(run(Heaviest(), value=VALUES)["value"], heaviest())


WAYS = {
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
    "schedule": {"schedule": ["push", "pull"]},
}


@pytest.mark.parametrize("way", WAYS)
def test_on_the_host(way):
    with hb.Engine(GRAPH, device="cpu") as engine:
        check(
            lambda program, **given: engine.run(program, hb.RunOptions(**WAYS[way]), **given).state
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("streams", [False, True])
def test_on_a_device(apart, streams):
    if not apart.has_double:
        pytest.skip(f"{apart.name} has no doubles, which some states need")
    full = mock.patch.object(DeviceProgram, "_make_room", side_effect=BudgetError("it is full"))
    options = hb.RunOptions(place="device")
    with engine_on(apart, GRAPH) as engine:
        if streams:
            with full:
                check(lambda program, **given: engine.run(program, options, **given).state)
        else:
            check(lambda program, **given: engine.run(program, options, **given).state)


def test_in_another_mode():
    options = hb.RunOptions(mode="asynchronous")
    with hb.Engine(GRAPH, device="cpu") as engine:
        found = engine.run(Heaviest(), options, value=VALUES)
        np.testing.assert_array_equal(found.value, heaviest())


@pytest.mark.parametrize("ranks", [1, 3])
def test_by_ranks(ranks):
    def work(communicator):
        engine = RankEngine(GRAPH if communicator.rank == 0 else None, communicator)

        def run(program, **given):
            result = engine.run(program, **given)
            return {name: result.gathered(name) for name in program.state}

        if communicator.rank:
            for program, given in ((Shares(), {"source": SOURCE}), (Heaviest(), {"value": VALUES})):
                run(program, **given)
        else:
            check(run)

    run_ranks(ranks, work)


@pytest.mark.skipif(not list_devices(), reason="no OpenCL device")
def test_refusals_are_the_same_on_both_places():
    class Cut(Shares):
        state = {"level": np.int32, "share": np.int32}  # noqa: RUF012

        def message(self, state):
            return state.share / 2

    with hb.Engine(GRAPH) as engine:
        for place in ("cpu", "device"):
            with pytest.raises(hb.ProgramError, match=r"Cut\.initial.*0.0 for|Cut\.\w+, line"):
                engine.run(Cut(), hb.RunOptions(place=place), source=SOURCE)
