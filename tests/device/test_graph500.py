"""The benchmark end to end at scale 10: report, JSON, trace, and what an invalid result does."""

from __future__ import annotations

import json
import re
from unittest import mock

import numpy as np
import pytest
from graph500_runs import edges, full, run
from oracle import true_levels, true_nedge

from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.search import make_result
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph500.report import format_report

FIVE = ("min", "firstquartile", "median", "thirdquartile", "max", "mean", "stddev")
KEYS = [
    *["SCALE", "edgefactor", "NBFS", "graph_generation", "num_mpi_processes", "construction_time"],
    *[f"bfs  {name}_time" for name in FIVE],
    *[f"{name}_nedge" for name in FIVE],
    *[f"bfs  {name}_TEPS" for name in FIVE[:5]],
    *["bfs  harmonic_mean_TEPS", "bfs  harmonic_stddev_TEPS"],
    *[f"bfs  {name}_validate" for name in FIVE],
]


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
        assert record.furthest == levels.max()
        assert record.result.seconds > 0
        assert record.result.teps == record.result.nedge / record.result.seconds


def test_levels_do_not_depend_on_validation():
    checked = [record.furthest for record in full(None).sources]
    unchecked = [record.furthest for record in run(None, validate=False).sources]
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
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[place] if place else []):
        device = "cpu" if place is None else "auto"
        with Engine(edges(), "thresholds", device=device) as engine:
            first = engine.selector
            assert first.rule
            search = engine.search(458)
            engine.set_selector("fixed:TC")  # as a correction may between a search and its result
            assert engine.selector.rule != first.rule
            assert (
                make_result(search, Query((458,)), np.zeros(0, np.int64), 0.0, 0).rule == first.rule
            )


def test_json(place):
    report = full(place)
    data = json.loads(json.dumps(report.to_dict()))
    wanted = {
        *["scale", "edgefactor", "nbfs", "construction_time_seconds", "selector", "devices"],
        *["parts", "bfs", "roots", "energy"],
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
        mock.patch("hetero_bfs.graph500.process.OneProcess.compile"),
        pytest.raises(GraphError, match=words),
    ):
        run(None, scale=31, edgefactor=64)
