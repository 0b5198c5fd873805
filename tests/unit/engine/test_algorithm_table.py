"""The table of algorithms: one folder and one row give an algorithm to every door.

toy_algorithm/ is the folder. The row is here, and nothing else knows of it.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import pydoc
import sys
from functools import cache

import numpy as np
import pytest
import toy_algorithm
from checkout import TOP
from cli_runs import one_line, run
from graphs import nasty, random_graph
from simulated_ranks import run_ranks
from toy_algorithm import check
from toy_algorithm.algorithm import BusyRuns

import hetero_bfs as hb
from hetero_bfs.algorithms.base import Runs, open_analysis
from hetero_bfs.algorithms.table import Algorithms, ResultOption, Row, rows
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError, ArgumentError
from hetero_bfs.graph.io.registry import write
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions

sys.path.append(str(TOP / "docs"))
from reference_rows import sections

ROW = Row(
    toy_algorithm.busy_neighbours,
    command="busy",
    title="Busy neighbours",
    help="count the neighbours that have many edges",
    description="Count the neighbours of each vertex that have many edges.",
    options={"least": "edges of a busy vertex (default %(default)s)"},
    outputs={"out": ResultOption("count", "write counts (NumPy .npy, int32)")},
    on_ranks=True,
)
LEAST = 3


@cache
def large():
    """A graph whose lists take more than a vertex program's arrays do."""
    return random_graph(2000, 300_000, 3)


@cache
def too_little() -> int:
    """Bytes of a device's memory in which the large graph does not fit."""
    graph = build_search_graph(large())
    return 3 * graph.graph.num_stored_edges + 16 * graph.num_searched


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setattr(Algorithms, "busy_neighbours", ROW, raising=False)
    yield
    vars(hb).pop("busy_neighbours", None)


def confirm(edges, result, least: int = LEAST) -> None:
    check.check_busy(edges, result.count, least).raise_if_invalid()


@pytest.mark.parametrize("directed", [False, True])
def test_a_call(directed):
    edges = nasty("R-MAT", directed)
    confirm(edges, hb.busy_neighbours(edges, LEAST))
    result = hb.busy_neighbours(graph=edges, least=5, threads=1)
    confirm(edges, result, 5)
    assert [trace.strategy for trace in result.traces] == ["count"]
    assert not hb.busy_neighbours(hb.CSRGraph.from_edges([], [], num_vertices=3)).count.any()


def test_a_call_on_a_device(opencl_device):
    edges = nasty("R-MAT", True)
    result = hb.busy_neighbours(edges, LEAST, device=str(opencl_device.index))
    confirm(edges, result)
    assert result.used_device


def test_an_engine_tries_both_places(opencl_device):
    edges = nasty("grid")
    with hb.Engine(edges, "fixed:TC", str(opencl_device.index)) as engine:
        tried = [engine.busy_neighbours(LEAST) for _ in range(4)]
    for result in tried:
        confirm(edges, result)
    assert {result.used_device for result in tried} == {False, True}
    with pytest.raises(hb.EngineClosedError):
        engine.busy_neighbours()


def test_lists_that_stream(opencl_device):
    options = EngineOptions(device=str(opencl_device.index), device_memory_bytes=too_little())
    with open_analysis(BusyRuns, large(), options) as runs:
        assert "lists stream" in runs.notes[0]
        result = runs.run(LEAST, place="device")
    confirm(large(), result)
    assert result.streamed_bytes


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks(ranks):
    edges = nasty("R-MAT", True)

    def work(communicator):
        mine = edges if communicator.rank == 0 else None
        return RankEngine(mine, communicator).busy_neighbours(least=LEAST)

    for result in run_ranks(ranks, work):
        confirm(edges, result)


def test_a_command(tmp_path, capsys):
    edges = nasty("grid")
    graph, out, trace, report = (tmp_path / n for n in ("g.hbg", "c.npy", "t.csv", "r.json"))
    write(hb.CSRGraph.from_edge_source(edges), graph)
    options = ["--least", LEAST, "--out", out, "--trace", trace, "--json", report, "-v"]
    assert run("busy", graph, *options) == 0
    text = capsys.readouterr().out
    count, data = np.load(out), json.loads(report.read_text())
    assert f"at most {count.max()} busy neighbours\ncounted in " in text
    assert " ms, valid\ndevice none\n" in text
    check.check_busy(edges, count, LEAST).raise_if_invalid()
    known = {"least": LEAST, "num_vertices": edges.num_vertices, "most": count.max()}
    assert known.items() <= data.items()
    assert (data["valid"], data["iterations"], data["device"]) == (True, 1, None)
    with trace.open() as lines:
        assert [row["strategy"] for row in csv.DictReader(lines)] == ["count"]


def test_a_command_on_a_device(tmp_path, opencl_device, capsys):
    graph, out = tmp_path / "g.hbg", tmp_path / "c.npy"
    write(hb.CSRGraph.from_edge_source(large()), graph)
    device = "--device", opencl_device.index, "--device-memory", too_little()
    assert run("busy", graph, *device, "--out", out) == 0
    check.check_busy(large(), np.load(out), 2).raise_if_invalid()
    text = capsys.readouterr().out
    assert f"device {opencl_device.name}, " in text
    assert " of lists sent" in text


def test_a_wrong_result_is_a_failure(graph, monkeypatch, capsys):
    wrong = check.CheckOutcome(False, "vertex 3 is wrong")
    monkeypatch.setattr(check, "check_busy", lambda *_: wrong)
    assert run("busy", graph) == 1
    assert "vertex 3 is wrong" in one_line(capsys)


def test_all_doors_refuse_alike(graph, capsys):
    edges = hb.load(graph)
    words = "least is -1; give an integer from 0 to"
    with hb.Engine(edges, "fixed:TC", "cpu") as engine:
        for use in (lambda: hb.busy_neighbours(edges, -1), lambda: engine.busy_neighbours(-1)):
            with pytest.raises(ArgumentError, match=words):
                use()
    with pytest.raises(AgreedError, match=words):
        run_ranks(2, lambda c: RankEngine(None if c.rank else edges, c).busy_neighbours(-1))
    assert run("busy", graph, "--least", -1) == 1
    assert f"--{words}" in one_line(capsys)
    assert run("busy", graph, "--least", "x") == 2
    with pytest.raises(TypeError, match="most"):
        hb.busy_neighbours(edges, most=3)


def test_help_and_reference(capsys):
    for shown in (hb.busy_neighbours, hb.Engine.busy_neighbours, RankEngine.busy_neighbours):
        text = pydoc.render_doc(shown, renderer=pydoc.plaintext)
        assert "least: 'int' = 2" in text
        assert "Count the neighbours of each vertex" in text
    assert "busy_neighbours" in pydoc.render_doc(hb.Engine, renderer=pydoc.plaintext)
    assert run("busy", "--help") == 0
    assert "edges of a busy vertex (default 2)" in capsys.readouterr().out
    assert run("completion", "bash") == 0
    assert "busy" in capsys.readouterr().out
    assert "## Busy neighbours" in sections()
    assert ".. autofunction:: hetero_bfs.busy_neighbours" in sections()


# The rows of the package.


@pytest.mark.parametrize("name", [*rows()])
def test_a_row_fits_its_folder(name):
    row = rows()[name]
    assert row.name == name
    assert row.options.keys() <= row.parameters.keys()
    for public, module in row.names.items():
        made = getattr(importlib.import_module(f"{row.ask.__module__}.{module}"), public)
        assert getattr(hb, public) is made
    assert {name, *row.names} <= set(hb.__all__)
    needed = {"source": 0, "sources": [0, 1]}
    request = row.ask(5, **{name: needed[name] for name in needed if name in row.parameters})
    assert row.on_ranks == (request.kind.by_ranks.__func__ is not Runs.by_ranks.__func__)
    inspect.signature(request.kind.run).bind(None, *request.query)


def test_ranks_refuse_what_they_cannot_run():
    edges = nasty("star")
    with pytest.raises(
        AgreedError, match="a single process must run colouring; start without mpirun"
    ):
        run_ranks(2, lambda c: RankEngine(None if c.rank else edges, c).colour())


@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_on_ranks_has_all_arguments(directed):
    edges = nasty("R-MAT", directed)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 9, edges.src.size).astype(np.float64)
    graph = hb.EdgeList.from_arrays(edges.src, edges.dst, weights=weights, directed=directed)
    given = {"weighted": True, "personalization": rng.random(graph.num_vertices), "tol": 1e-9}
    expected = hb.pagerank(graph, **given)
    assert expected.converged
    found = run_ranks(3, lambda c: RankEngine(None if c.rank else graph, c).pagerank(**given))[1]
    np.testing.assert_allclose(found.rank, expected.rank, atol=1e-7)
    hb.check_pagerank(graph, found.rank, **given).raise_if_invalid()
