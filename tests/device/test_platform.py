"""Searches over several devices: made-up ones here, each a CPU executor with memory of its own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from graphs import nasty
from hypothesis import given, settings
from hypothesis import strategies as st

from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.bfs.device import DeviceExecutor
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import choose_level
from hetero_bfs.scheduling.selectors import FixedSelector
from hetero_bfs.scheduling.strategies import STRATEGIES

TC, BC, TG, BG = (STRATEGIES[name] for name in ("TC", "BC", "TG", "BG"))
OF_THE_HOST = (schema.FOUND_LISTED, schema.UNVISITED_LISTED)
"""Items of a state that speak of the host's own lists."""


class FakeDevice:
    """A device with memory of its own, which levels run in by the CPU's kernels."""

    place = 0  # until it is on a platform
    unified = False
    ended_at = None
    converted_seconds = 0.0
    num_parts = 1
    results = None

    def __init__(self, graph, host):
        self.device = SimpleNamespace(finish=lambda: None, host_array=np.empty)
        self.graph, self.host, self.own = graph, host, CPUExecutor(graph, 1)
        self.levels_run = 0
        self.received = None

    def begin(self, source, frontier):
        self.own.parent[:] = NO_VERTEX
        kept = frontier.state[list(OF_THE_HOST)]
        self.own.begin(source, frontier)
        frontier.state[list(OF_THE_HOST)] = kept

    def clear(self, frontier):
        self.own.parent[:] = NO_VERTEX

    def receive_policy(self, policy, interval):
        self.received = policy

    def start_early(self, *arguments):
        pass

    def run_levels(self, policy, interval, source, frontier, records, limit, forget=True):
        if source is not None:
            self.begin(source, frontier)
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        while True:
            record = records[frontier.row]
            strategy = TC if policy.top_down[frontier.chosen] else BC
            if strategy is TC and not frontier.has_queue:
                self.to_queue(frontier)
            kept = frontier.state[list(OF_THE_HOST)]
            frontier.state[list(OF_THE_HOST)] = -1
            frontier.place = schema.HOST
            found, seconds = self.own.run(strategy, frontier)
            self.levels_run += 1
            frontier.place = self.place
            frontier.state[list(OF_THE_HOST)] = kept
            frontier.state[schema.CHOSEN] = -1
            record[schema.FOUND_VERTICES], record[schema.SECONDS] = found.vertices, seconds
            if frontier.is_over or frontier.row >= min(limit, len(records)):
                return frontier.is_over
            choose_level(policy, interval, n, m, frontier.state, records)
            if policy.places[frontier.chosen] != self.place:
                frontier.state[schema.CHOSEN] = -1
                return False

    def to_queue(self, frontier):
        frontier.place = schema.HOST
        seconds = self.own.to_queue(frontier)
        frontier.place = self.place
        return seconds

    def acquire(self):
        pass

    def release(self):
        pass

    def receive(self, frontier, with_queue):
        self._copy(self.host, self.own, frontier, with_queue)
        self.own.note_foreign_queue(frontier, has_offsets=True)

    def send(self, frontier, with_queue):
        self._copy(self.own, self.host, frontier, with_queue)
        self.host.note_foreign_queue(frontier, has_offsets=True)

    @staticmethod
    def _copy(source, target, frontier, with_queue):
        visited, queue = frontier.visited_index, frontier.queue_index
        target.visited[visited][:] = source.visited[visited]
        if with_queue:
            target.queue[queue][:] = source.queue[queue]
            target.offsets[queue][:] = source.offsets[queue]

    add_host_finds = DeviceExecutor.add_host_finds

    def add_parents(self, pairs):
        self.own.parent[pairs[:, 0]] = pairs[:, 1]

    def merge_parents(self, parent, index):
        bits = np.unpackbits(self.own.visited[index].view(np.uint8), bitorder="little")
        lacks = bits[: parent.size].astype(bool) & (self.own.parent == NO_VERTEX)
        self.own.parent[lacks] = parent[lacks]

    def read_visited(self, visited, index):
        visited[:] = self.own.visited[index]

    def write_visited(self, visited, index):
        self.own.visited[index][:] = visited

    def read_parents(self, parent):
        parent[:] = self.own.parent


def platform_of(edges, devices):
    graph = build_search_graph(edges)
    host = CPUExecutor(graph, 1)
    return Platform(graph, host, [FakeDevice(graph, host) for _ in range(devices)])


def check(platform, edges, source, schedule):
    """Search from a vertex by a schedule and validate parents; return the search."""
    graph = platform.graph
    search = Search(platform, int(graph.relabelling.new_of_old[source]), FixedSelector(*schedule))
    search.run()
    search.gather()
    validate(edges, source, platform.host.restore_parents()).raise_if_invalid()
    return search


EVERYWHERE = [TC, BC, TG, BG, TG.on(2), BG.on(2), TG.on(3), BG.on(3)]


@settings(max_examples=30)
@given(
    schedule=st.lists(st.sampled_from(EVERYWHERE), min_size=1, max_size=8),
    name=st.sampled_from(["Kronecker 10", "grid", "star", "long path"]),
)
def test_any_schedule_over_three_devices(schedule, name):
    edges = nasty(name)
    platform = platform_of(edges, 3)
    source = int(edges.src[0])
    for _ in range(2):  # the second search finds what the first one left
        search = check(platform, edges, source, schedule)
    names = [trace.strategy for trace in search.traces]
    wanted = [s.name for s in schedule] + [schedule[-1].name] * len(names)
    assert names == wanted[: len(names)]


def test_each_device_runs_its_own_levels():
    edges = nasty("Kronecker 10")
    platform = platform_of(edges, 2)
    search = check(platform, edges, 458, [TG, TG.on(2), BG, TC])
    assert [trace.strategy for trace in search.traces][:4] == ["TG", "TG@2", "BG", "TC"]
    assert [device.levels_run for device in platform.devices] == [2, 1]
    assert [trace.features.device_kind for trace in search.traces][1:4] == ["device"] * 3


def test_places_are_numbered():
    platform = platform_of(nasty("star"), 2)
    assert [device.place for device in platform.devices] == [1, 2]
    assert platform.executor(0) is platform.host
    assert platform.executor(2) is platform.devices[1]
    assert platform.accelerator is platform.devices[0]
    assert (TG.on(2).name, TG.on(2).place, TG.on(2).on(1), TC.place) == ("TG@2", 2, TG, 0)


@pytest.mark.parametrize("place", [1, 2])
def test_a_search_on_one_device_alone(place):
    edges = nasty("Kronecker 10")
    platform = platform_of(edges, 2)
    search = check(platform, edges, 458, [TG.on(place), BG.on(place)])
    assert search._complete_at == place
    kept = np.empty(platform.graph.num_searched, np.uint32)
    search.save_parents(kept)
    np.testing.assert_array_equal(kept, platform.devices[place - 1].own.parent)


@pytest.mark.parametrize("name", ["Kronecker 10", "long path"])
@pytest.mark.parametrize("last", [TC, TG])
def test_a_search_of_host_and_device_is_complete_on_the_device(name, last):
    """The host finds more vertices than it lists in the first schedule, few in the second."""
    edges = nasty(name)
    platform = platform_of(edges, 1)
    for schedule in ([TC, TC, TC, BG, last], [TG, TG, TG, TC, last], [BC, TG, last]):
        for source in edges.src[:3]:
            search = check(platform, edges, int(source), schedule)
            assert search._complete_at == 1
            assert platform.devices[0].levels_run > 0


def test_an_expected_selector_sends_its_policy_to_the_device_that_it_chooses_first():
    platform = platform_of(nasty("Kronecker 10"), 2)
    first, second = platform.devices
    before, selector = FixedSelector(TC, TG), FixedSelector(TG.on(2), TG)
    platform.expect(selector, 1, before)
    assert second.received is None, "no search has begun from any source"
    search = Search(platform, 1, before)
    search.run()
    platform.expect(before, 1, before)
    assert first.received is None
    assert second.received is None
    platform.expect(selector, 1, before)
    assert first.received is None
    assert second.received is selector.policy
