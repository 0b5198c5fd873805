"""Graph500's kernel 3 end to end: report, JSON, trace, and what an invalid result does."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
import pytest
from test_graph500 import KEYS

from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.cli import main as cli
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.graph500.report import Graph500Report, format_report
from hetero_bfs.options import EngineOptions

QUICK = Graph500Options(kernel="sssp", scale=10, energy_seconds=0.01)
SMALL = ["graph500", "--kernel", "sssp", "--scale", "8", "--sources", "4", "--device", "cpu"]


def run(device, **changes) -> Graph500Report:
    """Run on a DeviceInfo, or on the CPU alone (None)."""
    engine = EngineOptions(device="cpu" if device is None else "all", threads=2)
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[device] if device else []):
        return run_graph500(replace(QUICK, engine=engine, **changes))


@cache
def full(device) -> Graph500Report:
    return run(device)


def test_all_searches_are_valid(plain_place):
    report = full(plain_place)
    assert report.failures == []
    assert report.device == plain_place
    assert [record.result.source for record in report.sources][:6] == [458, 214, 220, 966, 395, 9]
    for record in report.sources:
        assert record.validation.valid
        assert (record.result.nedge, record.reached) == (16239, 897)
        assert record.validation.nedge == record.result.nedge
        assert 0 < record.furthest < 10
        assert record.result.seconds > 0


# float32 distances from the first key, -1 where not reached, as run_sssp of the reference writes
# them (github.com/graph500/graph500, commit f89d643ce4aa, built with Open MPI, one process).
@pytest.mark.parametrize(
    ("scale", "key", "sha256"),
    [
        (10, 458, "6cd59003eaa35301295e31cd32903e8aa914b6b2b111151103c0b6d71e8bc120"),
        (14, 7337, "f7fe2d77856a5d6fb8d52c8e3d7df5df3db35eb2fd0696944de4a080f1469a74"),
    ],
)
def test_distances_are_the_references_bit_for_bit(plain_place, scale, key, sha256):
    graph = build_search_graph(KroneckerEdges(scale, weighted=True))
    with PathSearches(graph, 2, plain_place) as searches:
        result = searches.run(key, place="cpu" if plain_place is None else "device")
    distance = np.where(np.isinf(result.distance), -1, result.distance).astype(np.float32)
    assert hashlib.sha256(distance.tobytes()).hexdigest() == sha256


def test_the_references_lines_come_first(plain_place):
    report = full(plain_place)
    first = format_report(report).split("\n\n")[0].splitlines()
    assert first == report.lines()
    named = [key.replace("bfs  ", "sssp ") for key in KEYS]
    assert [re.match(r"(.*?):", line)[1] for line in first] == named
    assert all(line[31] == " " != line[32] for line in first)
    assert any(line.startswith("sssp harmonic_mean_TEPS:     !  ") for line in first)


def test_our_own_blocks_follow(plain_place):
    report = full(plain_place)
    text = format_report(report)
    assert "validation: all five checks passed for every key" in text
    assert "timed: from the key to distances and parents, both complete" in text
    assert "windows of the search of median time, source" in text
    assert "parents, rest" in text
    assert "selector" not in text
    on_device = sum(record.result.used_device for record in report.sources)
    assert f"places: {64 - on_device} searches on the CPU, {on_device} on the device" in text
    assert format_report(report, every_key=True).count("windows of source") == 64


def test_parents_are_in_the_time_of_a_search(monkeypatch):
    from hetero_bfs.algorithms.sssp.kernels import tree

    ticks, find = [0.0], tree.tree_parents

    def slow(*arguments):
        ticks[0] += 1000
        return find(*arguments)

    clock = PathSearches.run.__globals__["time"].perf_counter
    monkeypatch.setattr(tree, "tree_parents", slow)
    monkeypatch.setattr("time.perf_counter", lambda: clock() + ticks[0])
    for record in run(None, sources=3).sources:
        assert 1000 <= record.result.seconds < 1500
        assert record.result.gather_seconds < 500


def test_edges_generated_anew_give_the_same_results():
    report = run(None, regenerate=True)
    for one, other in zip(report.sources, full(None).sources, strict=True):
        assert (one.furthest, one.validation) == (other.furthest, other.validation)
    assert report.edge_passes == 2 + 4  # counting, edges with weights; groups of 16 searches
    assert report.generation_seconds > 0


def test_without_validation():
    report = run(None, validate=False, sources=4)
    assert report.to_dict()["roots"][0]["valid"] is None
    assert "sssp min_validate:              -1" in report.lines()


class Breaking:
    """One distance or parent of the second search comes back wrong."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.search = PathSearches.run_with_parents

    def patch(self):
        return mock.patch.object(PathSearches, "run_with_parents", self.make())

    def make(self):
        def search(searches, sources):
            results = self.search(searches, sources)
            for result in results:
                if result.source == 214:
                    array = getattr(result, self.what)
                    vertex = int(np.flatnonzero(result.distance > 0.5)[0])
                    array[vertex] = np.nextafter(array[vertex], 9) if self.what[0] == "d" else 214
            return results

        return search


@pytest.mark.parametrize(("what", "check"), [("distance", "check [34]"), ("parent", "check 4")])
def test_an_invalid_search_is_named(what, check, capsys, tmp_path):
    path = tmp_path / "r.json"
    command = ["graph500", "--kernel", "sssp", "--scale", "10", "--sources", "4"]
    with Breaking(what).patch():
        assert cli.main([*command, "--device", "cpu", "--json", str(path)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("INVALID: 1 of 4 searches failed")
    assert re.search(f"source 214: {check} ", printed)
    assert "TEPS" not in printed
    assert json.loads(path.read_text())["valid"] is False


def test_json_and_trace(tmp_path, capsys):
    report, trace = tmp_path / "r.json", tmp_path / "t.csv"
    assert cli.main([*SMALL, "--json", str(report), "--trace", str(trace), "-v"]) == 0
    assert capsys.readouterr().out.count("windows of source") == 4
    data = json.loads(report.read_text())
    assert (data["kernel"], data["nbfs"], data["weights"]) == ("sssp", 4, "float32")
    assert (data["valid"], data["device_searches"]) == (True, 0)
    assert data["sssp"]["harmonic_mean_teps"] > 0
    with trace.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for root in data["roots"]:
        own = [row for row in rows if row["root"] == str(root["root"])]
        assert len(own) == root["windows"]
        assert sum(int(row["edges_scanned"]) for row in own) == root["edges_scanned"]


@pytest.mark.parametrize("suffix", [".wel", ".hbg", ".wsg"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_file(tmp_path, plain_place, suffix, directed):
    """Duplicate edges count wherever they come from, but in formats without them."""
    text = tmp_path / "g.wel"
    text.write_text("# Nodes: 9\n0 1 4\n1 2 1\n2 2 1\n2 3 9\n1 2 3\n5 6 0\n")
    path = tmp_path / f"g{suffix}"
    if path != text:
        io.write(io.read(text, directed, weighted=True), path)
    report = run(plain_place, graph=path, directed=directed)
    assert report.failures == []
    double = suffix != ".wsg"
    nedges = {0: 3 + double, 1: 2 + double, 2: 1, 3: 0, 5: 1, 6: 0} if directed else {}
    for record in report.sources:
        source = record.result.source
        assert record.result.nedge == nedges.get(source, 1 if source > 4 else 3 + double)
    assert any("search keys instead of 64" in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1\n1 2\n", "g.txt:1: only two columns"),
        ("0 1 4\n1 2 -3\n", "edge (1, 2) has weight -3; shortest paths need weights of at least 0"),
        ("0 0 1\n", "no search key"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, capsys, text, said):
    path = tmp_path / "g.txt"
    path.write_text(text)
    assert cli.main(["graph500", "--kernel", "sssp", "--graph", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(
    "option",
    ["--selector=fixed:TC", "--decision-interval=2", "--no-correction"],
)
def test_options_of_selectors_are_refused(capsys, option):
    assert cli.main([*SMALL, option]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{option.split('=')[0]} goes with --kernel bfs; shortest paths have no selector" in said
