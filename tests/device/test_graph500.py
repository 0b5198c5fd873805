"""The benchmark end to end at scale 10: report, JSON, trace, and what an invalid result does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache, cached_property
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from oracle import true_levels, true_nedge

from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.validate import Validator, group_bytes, group_size
from hetero_bfs.cli import main as cli
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph500 import protocol as graph500
from hetero_bfs.graph500.protocol import Graph500Options, run_graph500
from hetero_bfs.graph500.report import Graph500Report, format_report
from hetero_bfs.runtime import engine as engines
from hetero_bfs.runtime import results
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.runtime.results import make_result
from hetero_bfs.support import memory

ON_CPU = EngineOptions(selector="fixed:TC", devices="cpu")
QUICK = Graph500Options(scale=10, energy_seconds=0.01, engine=ON_CPU)
FIVE = ("min", "firstquartile", "median", "thirdquartile", "max", "mean", "stddev")
KEYS = [
    *["SCALE", "edgefactor", "NBFS", "graph_generation", "num_mpi_processes", "construction_time"],
    *[f"bfs  {name}_time" for name in FIVE],
    *[f"{name}_nedge" for name in FIVE],
    *[f"bfs  {name}_TEPS" for name in FIVE[:5]],
    *["bfs  harmonic_mean_TEPS", "bfs  harmonic_stddev_TEPS"],
    *[f"bfs  {name}_validate" for name in FIVE],
]


@cache
def edges():
    return KroneckerEdges(10).materialise()


def run(device, **changes) -> Graph500Report:
    """Run on a DeviceInfo, or on the CPU alone (None)."""
    engine = {name: changes.pop(name) for name in changes.keys() & vars(ON_CPU).keys()}
    if device is None:
        return run_graph500(replace(QUICK, engine=replace(ON_CPU, **engine), **changes))
    engine = replace(ON_CPU, devices="all", **engine)
    with mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=device):
        return run_graph500(replace(QUICK, engine=engine, **changes))


@cache
def full(device) -> Graph500Report:
    return run(device, selector="fixed:TC,BC" if device is None else "fixed:TG,BG,TC,BGC")


def test_all_searches_are_valid(place):
    report = full(place)
    assert report.valid
    assert report.failures == []
    assert len(report.sources) == 64
    assert all(record.validation.valid for record in report.sources)
    keys = [record.result.source for record in report.sources]
    assert keys[:6] == [458, 214, 220, 966, 395, 9]
    assert len(set(keys)) == 64
    assert report.device == place


def test_counts_are_those_of_brute_force(place):
    for record in full(place).sources:
        levels = true_levels(edges(), record.result.source)
        assert record.result.nedge == true_nedge(edges(), levels) == record.validation.nedge
        assert record.reached == np.count_nonzero(levels >= 0)
        assert record.levels == levels.max()
        assert record.result.seconds > 0
        assert record.result.teps == record.result.nedge / record.result.seconds


def test_levels_do_not_depend_on_validation():
    checked = [record.levels for record in full(None).sources]
    unchecked = [record.levels for record in run(None, validate=False).sources]
    assert checked == unchecked


def test_the_references_lines_come_first(place):
    report = full(place)
    text = format_report(report)
    first = text.split("\n\n")[0].splitlines()
    assert first == report.lines()
    assert [re.match(r"(.*?):", line)[1] for line in first] == KEYS
    values = {}
    for line, key in zip(first, KEYS, strict=True):
        head, value = line[:32], line[32:]
        mark = "     !" if key == "bfs  harmonic_mean_TEPS" else ""
        assert head.rstrip() == f"{key}:{mark}"
        values[key] = float(value)
        precision = ".11g" if key.endswith("_nedge") else "g"
        assert value == format(float(value), precision)
    assert (values["SCALE"], values["edgefactor"], values["NBFS"]) == (10, 16, 64)
    assert values["num_mpi_processes"] == 1
    seconds = [record.result.seconds for record in report.sources]
    nedges = [record.result.nedge for record in report.sources]
    assert values["bfs  min_time"] == pytest.approx(min(seconds), rel=1e-5)
    assert values["bfs  mean_time"] == pytest.approx(np.mean(seconds), rel=1e-5)
    assert values["max_nedge"] == max(nedges)
    harmonic = len(seconds) / sum(s / n for s, n in zip(seconds, nedges, strict=True))
    assert values["bfs  harmonic_mean_TEPS"] == pytest.approx(harmonic, rel=1e-5)
    assert values["bfs  min_validate"] > 0


def test_our_own_blocks_follow(place):
    text = format_report(full(place))
    assert "validation: all five checks passed for every key" in text
    assert "selector: fixed:" in text
    assert "edge array: 1 part\n" in text
    assert "vertices have no edges and left the searched range" in text
    assert "levels of the search of median time" in text
    assert "strategies over all searches" in text
    assert "unmeasured" in text or "joules" in text
    every = format_report(full(place), every_key=True)
    assert every.count("levels of source") == 64


def test_the_report_says_by_which_rules_the_timed_searches_went():
    """Not by the last rule: corrections may have changed the rule meanwhile."""
    report = run(None, selector="fixed:TC")
    assert report.rules() == {}
    rules = iter(["TC alone"] * 60 + ["TC and BC, alpha 8, never back"] * 4)
    for record in report.sources:
        object.__setattr__(record.result, "rule", next(rules))
    assert report.rules() == {"TC alone": 60, "TC and BC, alpha 8, never back": 4}
    assert (
        "\nselector: fixed:TC: TC alone (60 of 64); TC and BC, alpha 8, never back (4 of 64)\n"
        in format_report(report)
    )
    assert report.to_dict()["rules"] == report.rules()


def test_a_search_carries_the_rule_that_it_went_by(place, trained):
    trained(place)
    with mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=place):
        devices = "cpu" if place is None else "all"
        with Engine(edges(), "thresholds", devices=devices) as engine:
            first = engine.selector
            assert first.rule
            search = engine.search(458)
            engine.set_selector("fixed:TC")  # as a correction may between a search and its result
            assert engine.selector.rule != first.rule
            assert make_result(search, 458, np.zeros(0, np.int64), 0.0, 0).rule == first.rule


def test_json(place):
    report = full(place)
    data = json.loads(json.dumps(report.to_dict()))
    wanted = {
        *["scale", "edgefactor", "nbfs", "construction_time_seconds", "selector", "devices"],
        *["parts", "bfs", "roots", "energy", "machine", "version"],
    }
    assert wanted <= set(data)
    assert (data["scale"], data["edgefactor"], data["nbfs"], data["parts"]) == (10, 16, 64, 1)
    assert {"harmonic_mean_teps", "median_time_seconds"} <= set(data["bfs"])
    assert all(np.isfinite(value) for value in data["bfs"].values())
    assert data["valid"] is True
    assert len(data["devices"]) == (1 if place is None else 2)
    for source, record in zip(data["roots"], report.sources, strict=True):
        assert set(source) >= {
            *["root", "time_seconds", "gather_seconds", "nedge", "teps", "levels"],
            *["reached", "strategies", "valid"],
        }
        assert source["valid"] is True
        assert source["strategies"] == [trace.strategy for trace in record.result.traces]
        assert len(source["strategies"]) in (source["levels"], source["levels"] + 1)


def test_trace_rows(place):
    report = full(place)
    rows = report.trace_rows()
    assert len(rows) == sum(len(record.result.traces) for record in report.sources)
    assert [row["root"] for row in rows if row["level"] == 0] == [
        record.result.source for record in report.sources
    ]
    for row in rows:
        assert row["seconds"] >= 0
        assert row["num_vertices"] == report.searched_vertices
    for record in report.sources:
        source = record.result.source
        found = sum(row["found_vertices"] for row in rows if row["root"] == source)
        assert 1 + found == record.reached


def test_parts(opencl_device):
    report = run(opencl_device, selector="fixed:TG,BG,BGC", max_alloc_bytes=4096, sources=5)
    assert report.valid
    stored = 2 * np.unique(np.sort([edges().src, edges().dst], axis=0), axis=1).shape[1]
    assert 8 <= report.parts == -(-stored // 1024)
    assert f"edge array: {report.parts} parts" in format_report(report)
    assert report.to_dict()["parts"] == report.parts


def test_order_given(place):
    report = run(place, order="given", sources=8)
    assert report.valid
    assert report.searched_vertices == report.num_vertices == 1024
    assert full(place).searched_vertices < 1024
    assert [r.result.nedge for r in report.sources] == [
        r.result.nedge for r in full(place).sources[:8]
    ]


def test_other_seeds_and_edgefactor():
    report = run(None, seed1=5, seed2=6, edgefactor=3, sources=10)
    assert report.valid
    assert report.edgefactor == 3
    assert [r.result.source for r in report.sources] != [458, 214, 220, 966, 395, 9]


def test_without_validation():
    report = run(None, validate=False, sources=4)
    assert report.valid
    assert report.to_dict()["roots"][0]["valid"] is None
    validates = [line for line in report.lines() if "_validate" in line]
    assert len(validates) == 7
    assert validates[0].split() == ["bfs", "min_validate:", "-1"]
    assert "validation: not done" in format_report(report)


def test_a_single_root_still_is_json():
    """A deviation of one number is not defined; JSON has no NaN."""
    report = run(None, sources=1)

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    text = json.dumps(report.to_dict())
    assert json.loads(text, parse_constant=refuse)["nbfs"] == 1


@pytest.mark.parametrize("suffix", [".txt", ".hbg"])
def test_a_graph_file(tmp_path, place, suffix):
    """Duplicate edges count wherever they come from."""
    path, text = tmp_path / f"g{suffix}", tmp_path / "g.txt"
    text.write_text("# Nodes: 9\n0 1\n1 2\n2 2\n2 3\n1 2\n5 6\n")
    if path != text:
        io.write(io.read(text), path)
    report = run(place, graph=path)
    assert report.valid
    nedges = {0: 4, 1: 4, 2: 4, 3: 4, 5: 1, 6: 1}
    sources = [record.result.source for record in report.sources]
    assert len(sources) == len(set(sources)) >= 3  # the reference gives up after 2 x 9 draws
    assert [record.result.nedge for record in report.sources] == [
        nedges[source] for source in sources
    ]
    assert any(f"{len(sources)} search keys instead of 64" in note for note in report.notes)
    assert report.lines()[0] == "SCALE:".ljust(32) + f"{np.log2(9):g}"
    if path != text:
        io.write(io.read(text, directed=True), path)
    directed = run(place, graph=path, directed=True)
    assert directed.valid
    nedges = {0: 4, 1: 3, 2: 1, 3: 0, 5: 1, 6: 0}
    for record in directed.sources:
        assert record.result.nedge == nedges[record.result.source]


@pytest.mark.parametrize("text", ["0 0\n3 3\n", "# Nodes: 4 Edges: 0\n0 0\n"])
def test_a_graph_without_keys(tmp_path, text):
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.raises(GraphError, match="no search key"):
        run(None, graph=path)


def test_a_scale_that_does_not_fit_in_memory():
    words = r"a graph of scale 31 needs about .* GiB of memory, .* GiB are free; choose a smaller"
    with (
        mock.patch.object(KroneckerEdges, "range", side_effect=AssertionError("generated")),
        mock.patch("hetero_bfs.graph500.protocol._compile"),
        pytest.raises(GraphError, match=words),
    ):
        run(None, scale=31, edgefactor=64)


# Edges that are not held, and validation in groups.


def without_times(report: Graph500Report) -> list[tuple]:
    return [(r.result.source, r.result.nedge, r.levels, r.validation) for r in report.sources]


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

    clock = graph500.time.perf_counter
    monkeypatch.setattr(KroneckerEdges, "range", slow)
    monkeypatch.setattr(graph500.time, "perf_counter", lambda: clock() + ticks[0])
    report = run(None, sources=4, regenerate=True)
    assert 1000 <= report.generation_seconds < 1500
    assert 0 < report.construction_seconds < 500
    assert all(record.result.seconds < 500 for record in report.sources)
    assert all(250 <= record.validate_seconds < 500 for record in report.sources)


def test_edges_are_not_held_where_memory_is_short(monkeypatch):
    need = graph500._bytes_without_list(KroneckerEdges(10))
    held = need + 8 * 16 * 1024
    for free, passes in ((held, None), (held - 1, 3), (need, 3)):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        report = run(None, sources=4)
        assert report.valid
        assert report.edge_passes == passes
        said = [note for note in report.notes if "edges are generated anew for each pass" in note]
        assert len(said) == (passes is not None)
    monkeypatch.setattr(memory, "free_bytes", lambda: need - 1)
    for regenerate in (False, True):
        with pytest.raises(GraphError, match="a graph of scale 10 needs about"):
            run(None, sources=4, regenerate=regenerate)


@pytest.mark.parametrize(
    ("size", "passes", "back_to_back"),
    [(1, 64, 64), (10, 7, 7), (10, 7, 64), (63, 2, 1), (63, 2, 7), (64, 1, 64)],
)
def test_groups_of_any_size(monkeypatch, size, passes, back_to_back):
    monkeypatch.setattr(graph500, "group_size", lambda *_: size)
    monkeypatch.setattr(graph500, "_most_back_to_back", lambda *_: back_to_back)
    report = run(None, regenerate=True)
    assert without_times(report) == without_times(full(None))
    assert report.edge_passes == 2 + passes
    assert report.to_dict()["searches_in_a_row"] == min(size, back_to_back)


def test_how_many_searches_follow_each_other(monkeypatch):
    """At least one, and at most as many as a twentieth of the free memory holds results of."""
    alone = SimpleNamespace(accelerator=None)
    shared, apart = (
        SimpleNamespace(accelerator=SimpleNamespace(unified=unified)) for unified in (True, False)
    )
    for free, expected in ((0, 1), (20 * 12 * 1000 * 5, 5), (2**40, 2**40 // 20 // 12_000)):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        assert graph500._most_back_to_back(apart, 1000) == expected
        for engine in (alone, shared):
            assert graph500._most_back_to_back(engine, 1000) == min(expected, 2**28 // 12_000)


def test_searches_that_follow_each_other_come_before_all_else(monkeypatch):
    """No result is gathered or inspected while others of its group are searched."""
    events = []

    def note(event, owner, name):
        method = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a: events.append(event) or method(*a))

    monkeypatch.setattr(graph500, "_most_back_to_back", lambda *_: 3)
    note("search", Engine, "_run")
    note("restore", engines, "restored_parents")
    note("validate", Validator, "add")
    run(None, sources=5)
    first = events.index("search")
    assert events[first:] == [
        *("search", "restore"),  # to learn how high-diameter searches are
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


# What an invalid search does. Breaking the result of one source, 220, in the ways of the five
# checks; vertices are found by their true levels.


def pick(source: int, level: int, nth: int = 0) -> int:
    return int(np.flatnonzero(true_levels(edges(), source) == level)[nth])


def leaf(parent: np.ndarray) -> int:
    """Return a reached vertex that is nobody's parent."""
    inner = np.unique(parent[parent >= 0])
    return int(np.setdiff1d(np.flatnonzero(parent >= 0), inner)[0])


def lose_one(parent, source):
    parent[v := leaf(parent)] = -1
    return 4, v


def wrong_key(parent, source):
    parent[source] = pick(source, 1)
    return 1, source


def no_edge(parent, source):
    """A vertex of level 2 hangs from one of level 1 that is not its neighbour."""
    near = {*zip(edges().src.tolist(), edges().dst.tolist(), strict=True)}
    levels = true_levels(edges(), source)
    for v in np.flatnonzero(levels == 2).tolist():
        for u in np.flatnonzero(levels == 1).tolist():
            if (u, v) not in near and (v, u) not in near:
                parent[v] = u
                return 5, v
    raise AssertionError("every pair is joined")


def no_vertex(parent, source):
    parent[v := leaf(parent)] = 5000
    return 1, v


def cycle_of_two(parent, source):
    u, v = pick(source, 2, 0), pick(source, 2, 1)
    parent[u], parent[v] = v, u
    return 1, None


def own_parent(parent, source):
    v = pick(source, 2)
    parent[v] = v
    return 1, v


BREAKS = {
    f.__name__: f for f in (lose_one, wrong_key, no_edge, no_vertex, cycle_of_two, own_parent)
}
HARMLESS = ["lose_one", "no_edge"]


class Breaking:
    """Replaces what restores parents: those of searches from 220 come back broken."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.expected = None
        self.restore = results.restored_parents

    def __call__(self, search, source):
        parent = self.restore(search, source)
        if source == 220:
            self.expected = BREAKS[self.how](parent, source)
        return parent

    def patch(self):
        return mock.patch.object(engines, "restored_parents", self)


@pytest.mark.parametrize("how", HARMLESS)
def test_an_invalid_search_is_named(how):
    breaking = Breaking(how)
    with breaking.patch():
        report = run(None, sources=6)
    check, vertex = breaking.expected
    assert not report.valid
    assert report.lines() == []
    assert report.energy is None
    (message,) = report.failures
    assert message.startswith(f"source 220: check {check} (")
    assert f"fails at vertex {vertex}" in message
    assert [record.validation.valid for record in report.sources] == [True] * 2 + [False] + [
        True
    ] * 3
    text = format_report(report)
    assert text.startswith("INVALID: 1 of 6 searches failed")
    assert message in text
    assert "TEPS" not in text
    data = report.to_dict()
    assert data["valid"] is False
    assert data["failures"] == [message]
    assert [source["valid"] for source in data["roots"]].index(False) == 2


@pytest.mark.parametrize("how", HARMLESS)
def test_an_invalid_search_is_exit_status_1(how, capsys, tmp_path):
    breaking = Breaking(how)
    path = tmp_path / "report.json"
    command = ["graph500", "--scale", "10", "--sources", "6", "--selector", "fixed:TC"]
    with breaking.patch():
        status = cli.main([*command, "--devices", "cpu", "--json", str(path)])
    assert status == 1
    check, vertex = breaking.expected
    printed = capsys.readouterr().out
    assert "source 220" in printed
    assert f"check {check}" in printed
    assert f"vertex {vertex}" in printed
    assert json.loads(path.read_text())["valid"] is False


SCRIPT = """
import sys
sys.path[:0] = {path!r}
from test_graph500 import Breaking
from hetero_bfs.cli import main as cli
from hetero_bfs.graph500 import protocol as graph500
from hetero_bfs.support import memory
breaking = Breaking({how!r})
with breaking.patch():
    status = cli.main("graph500 --scale 10 --sources 6 --selector fixed:TC --devices cpu".split())
print("expected", breaking.expected)
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [how for how in BREAKS if how not in HARMLESS])
def test_parents_that_are_no_tree_are_reported_not_followed(how):
    """In a process of its own: following parents blindly would never end, or leave the array."""
    script = SCRIPT.format(path=[p for p in sys.path if "tests" in p], how=how)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    check, vertex = eval(done.stdout.splitlines()[-1].removeprefix("expected "))
    assert f"source 220: check {check} (" in done.stdout
    assert vertex is None or f"vertex {vertex}" in done.stdout


def test_a_miscounted_search_is_a_failure():
    count = BFSResult.nedge.func
    wrong = cached_property(lambda result: count(result) + 1)
    wrong.__set_name__(BFSResult, "nedge")
    with mock.patch.object(BFSResult, "nedge", wrong):
        report = run(None, sources=3)
    assert len(report.failures) == 3
    assert "source 458" in report.failures[0]
    assert "traversed edges" in report.failures[0]
