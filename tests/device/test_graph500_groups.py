"""Graph500 runs whose edges are not held, and validation in groups."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from graph500_runs import Breaking, edges, full, run

from hetero_bfs.algorithms.bfs import algorithm
from hetero_bfs.algorithms.bfs.check import Validator, group_bytes, group_size
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500 import bfs_kernel
from hetero_bfs.graph500 import protocol as graph500
from hetero_bfs.graph500.process import OneProcess, bytes_without_list
from hetero_bfs.graph500.report import Graph500Report, format_report
from hetero_bfs.support import memory


def without_times(report: Graph500Report) -> list[tuple]:
    return [(r.result.source, r.result.nedge, r.furthest, r.validation) for r in report.sources]


def test_edges_generated_anew_give_the_same_results(place):
    selector = full(place).selector
    report = run(place, selector=selector, regenerate=True)
    assert without_times(report) == without_times(full(place))
    assert report.edge_passes == 3  # counting, placing, validating all keys
    assert report.to_dict()["edge_passes"] == 3
    assert report.generation_seconds > 0
    assert report.construction_seconds > 0
    assert "generated anew for each of 3 passes" in format_report(report)
    assert not any("generated anew" in note for note in report.notes)
    assert full(place).edge_passes is None
    assert "edges: held in memory" in format_report(full(place))


def test_a_wrong_search_is_found_without_a_list_of_edges():
    breaking = Breaking("no_edge")
    with breaking.patch():
        report = run(None, sources=6, regenerate=True)
    (message,) = report.failures
    assert message.startswith("source 220: check 5 (")
    assert f"fails at vertex {breaking.expected[1]}" in message


def test_generating_is_apart_from_building(monkeypatch):
    """A generator that takes a second per pass makes neither construction nor a search slow."""
    ticks = [0.0]
    generate = KroneckerEdges.range

    def slow(generator, start, stop):
        ticks[0] += 1000
        return generate(generator, start, stop)

    clock = time.perf_counter
    monkeypatch.setattr(KroneckerEdges, "range", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + ticks[0])
    report = run(None, sources=4, regenerate=True)
    assert 1000 <= report.generation_seconds < 1500
    assert 0 < report.construction_seconds < 500
    assert all(record.result.seconds < 500 for record in report.sources)
    assert all(250 <= record.validate_seconds < 500 for record in report.sources)


def test_edges_are_not_held_where_memory_is_short(monkeypatch):
    need = bytes_without_list(KroneckerEdges(10))
    held = need + 8 * 16 * 1024
    for free, passes in ((held, None), (held - 1, 3), (need, 3)):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        report = run(None, sources=4)
        assert report.valid
        assert report.edge_passes == passes
        said = [note for note in report.notes if "edges are generated anew for each pass" in note]
        assert len(said) == (passes is not None)
    monkeypatch.setattr(memory, "free_bytes", lambda: need - 1)
    monkeypatch.setattr(OneProcess, "compile", lambda _: pytest.fail("it compiles first"))
    for regenerate in (False, True):
        with pytest.raises(GraphError, match="a graph of scale 10 needs about"):
            run(None, sources=4, regenerate=regenerate)


@pytest.mark.parametrize(
    ("size", "passes", "back_to_back"),
    [(1, 64, 64), (10, 7, 7), (10, 7, 64), (63, 2, 1), (63, 2, 7), (64, 1, 64)],
)
def test_groups_of_any_size(monkeypatch, size, passes, back_to_back):
    monkeypatch.setattr(bfs_kernel, "group_size", lambda *_: size)
    monkeypatch.setattr(graph500, "_most_back_to_back", lambda *_: back_to_back)
    report = run(None, regenerate=True)
    assert without_times(report) == without_times(full(None))
    assert report.edge_passes == 2 + passes
    assert report.to_dict()["searches_in_a_row"] == min(size, back_to_back)


def test_how_many_searches_follow_each_other(monkeypatch):
    """At least one, and at most as many as a twentieth of the free memory holds results of."""
    shared, apart = (
        SimpleNamespace(uses_host_memory=uses, held_bytes=12_000) for uses in (True, False)
    )
    for free, expected in ((0, 1), (20 * 12 * 1000 * 5, 5), (2**40, 2**40 // 20 // 12_000)):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        assert graph500._most_back_to_back(apart, 1) == expected
        assert graph500._most_back_to_back(shared, 1) == min(expected, 2**28 // 12_000)


def test_searches_that_follow_each_other_come_before_all_else(monkeypatch):
    """No result is gathered or inspected while others of its group are searched."""
    events = []

    def note(event, owner, name):
        method = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a: events.append(event) or method(*a))

    monkeypatch.setattr(graph500, "_most_back_to_back", lambda *_: 3)
    note("search", algorithm.Searches, "_searched")
    note("restore", algorithm, "restored")
    note("validate", Validator, "add")
    run(None, sources=5)
    first = events.index("search")
    assert events[first:] == [
        *("search", "restore"),  # the reference search
        *["search"] * 3,  # untimed
        *["restore"] * 3,
        *["search"] * 3,
        *["restore"] * 3,
        *["validate"] * 3,
        *["search"] * 2,
        *["restore"] * 2,
        *["validate"] * 2,
    ]


def test_a_search_from_another_key_is_not_valid(monkeypatch):
    bfs_back_to_back = Engine.bfs_back_to_back

    def answer_for_the_first(engine, keys):
        return bfs_back_to_back(engine, keys[:1] * len(keys))

    monkeypatch.setattr(Engine, "bfs_back_to_back", answer_for_the_first)
    report = run(None, sources=4)
    assert not report.valid
    assert len(report.failures) == 3


def test_a_group_ends_where_memory_does(monkeypatch):
    validator = Validator(edges(), 3)
    free = [0]
    monkeypatch.setattr(memory, "free_bytes", lambda: free[0])
    parent = np.full(1024, -1)
    parent[5] = 5
    assert not validator.is_full()  # one search there must be
    validator.add(5, parent)
    assert validator.is_full()
    free[0] = validator.bytes_to_add() + 20 * 1024
    assert not validator.is_full()
    validator.add(5, parent)
    validator.add(5, parent)
    free[0] = 2**40
    assert validator.is_full()


@pytest.mark.parametrize("deepest", [10, 1000])
def test_the_size_of_groups(monkeypatch, deepest):
    """As few groups as fit, and those of equal size."""
    n = 1 << 20
    for fits, keys, expected in ((64, 64, 64), (63, 64, 32), (20, 64, 16), (1, 64, 1), (64, 5, 5)):
        usable = group_bytes(n, fits, deepest) + 20 * n
        monkeypatch.setattr(memory, "free_bytes", lambda usable=usable: usable / 0.9 + 1)
        assert group_size(n, keys, deepest) == expected
    monkeypatch.setattr(memory, "free_bytes", lambda: 2**50)
    assert group_size(n, 200, deepest) == 50
    monkeypatch.setattr(memory, "free_bytes", lambda: 0)
    assert group_size(n, 64, deepest) == 1
