"""Tiny levels in a row run as one and share a record; traces show each of them."""

import numpy as np
import pytest
from graphs import edge_lists
from hypothesis import given
from hypothesis import strategies as st
from oracle import check_search, engine_on

from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import available


def trees(branches: int, length: int, source: int = 0) -> EdgeList:
    """Return paths from one vertex, joined to a dense core at their other ends."""
    ends = 1 + np.arange(branches * length).reshape(branches, length)
    before = np.concatenate([np.full((branches, 1), source), ends[:, :-1]], axis=1)
    first = 1 + branches * length
    random = np.random.default_rng(3)
    core = first + random.integers(0, 500, (2, 6000))
    src = np.concatenate([before.ravel(), core[0], ends[:, -1]])
    dst = np.concatenate([ends.ravel(), core[1], first + np.arange(branches)])
    return EdgeList.from_arrays(src, dst, num_vertices=first + 500)


@given(edge_lists(max_vertices=60, max_edges=70), st.sampled_from(["alpha-beta", "auto"]))
def test_any_graph(edges, selector):
    with engine_on(None, edges, selector=selector, order="given") as engine:
        for source in range(0, edges.num_vertices, 7):
            check_search(engine, edges, source)


@pytest.mark.parametrize("selector", ["alpha-beta", "auto"])
def test_the_choices_are_those_of_each_level_by_itself(selector):
    edges = trees(5, 90)
    with engine_on(None, edges, selector=selector, correction=False) as engine:
        source = int(engine.graph.relabelling.new_of_old[0])
        merged, apart = (Search(engine.platform, source, engine.selector) for _ in range(2))
        merged.run()
        apart.run(max_levels=10**6)
        assert len(apart.recording().records) == apart.num_levels == merged.num_levels > 90
        assert len(merged.recording().records) < 30
        assert [trace.features for trace in merged.traces] == [t.features for t in apart.traces]
        assert [trace.strategy for trace in merged.traces] == [t.strategy for t in apart.traces]
        assert [trace.reason for trace in merged.traces] == [t.reason for t in apart.traces]


def test_their_seconds_are_divided_among_them():
    with engine_on(None, trees(3, 200), selector="alpha-beta") as engine:
        search = engine.search(0)
        recording = search.recording()
        whole = recording.records[:, schema.SECONDS]
        assert recording.records[:, schema.FURTHER_LEVELS].max() > 20
        assert sum(trace.seconds for trace in search.traces) == pytest.approx(whole.sum())


def test_with_intervals_each_level_has_its_record():
    with engine_on(None, trees(3, 50), decision_interval=3) as engine:
        recording = engine.search(0).recording()
        assert not recording.records[:, schema.FURTHER_LEVELS].any()


@pytest.mark.parametrize("change", [1, 20, 21, 39, 10**6])
def test_a_schedule_changes_the_strategy_where_it_says(change):
    """Levels before the change share a record, and so do those after it."""
    schedule = ["TC"] * min(change, 60) + ["BC", "TC"] * (change < 60)
    edges = trees(3, 50)
    with engine_on(None, edges, selector="fixed:" + ",".join(schedule)) as engine:
        source = int(engine.graph.relabelling.new_of_old[0])
        search = engine.search(source)
        wanted = [schedule[min(level, len(schedule) - 1)] for level in range(search.num_levels)]
        assert [trace.strategy for trace in search.traces] == wanted
        assert len(search.recording().records) < search.num_levels / 4
        check_search(engine, edges, 0)


def test_seconds_of_levels_are_those_of_the_traces():
    with engine_on(None, trees(3, 200), selector="fixed:TC") as engine:
        search = engine.search(0)
        seconds = search.recording().seconds()
        assert len(seconds) == search.num_levels > len(search.recording().records)
        shown = [(trace.seconds, trace.transfer_seconds) for trace in search.traces]
        np.testing.assert_allclose(seconds, shown)


def with_tails_on_the_host(candidates):
    """Return a selector that runs tiny levels on the host and all others on the device."""

    def linear(constant, edge):
        return Linear(("constant", "frontier_edges"), (constant, edge))

    learned = {
        s.name: linear(1e-8, 1e-5) if s.device_kind == "cpu" else linear(1e-3, 1e-12)
        for s in candidates
        if s.direction == "top-down"
    } | {s.name: linear(1.0, 0.0) for s in candidates if s.direction == "bottom-up"}
    free = {kind: Linear(("constant",), (1e-9,)) for kind in ("cpu", "device")}
    return model_selector("learned", SpeedModel("m", learned, free, free, free, {}), candidates)


@pytest.mark.parametrize("masked", [False, True])
def test_between_two_stays_on_a_device(opencl_device, masked):
    edges = trees(6, 40)
    with engine_on(opencl_device, edges, correction=False) as engine:
        engine.set_selector(with_tails_on_the_host(available(True)))
        for source in (0, 300):
            result = check_search(engine, edges, source)
            places = {trace.features.device_kind for trace in result.traces}
            assert places >= {"cpu", "device"}, places
        if masked:
            mask = np.zeros(edges.num_vertices, bool)
            mask[3::90] = True
            found = engine.bfs(0, mask=mask)
            with engine_on(None, edges, selector="fixed:TC") as plain:
                np.testing.assert_array_equal(found.level, plain.bfs(0, mask=mask).level)
