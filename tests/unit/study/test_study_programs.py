"""The tables of GPregel, GraphMat and WolfPath: `hetero-bfs study --paper NAME`."""

from __future__ import annotations

import json
import re

import networkx as nx
import numpy as np
import pytest
from checkout import TOP
from study_runs import study, table

from hetero_bfs.options import EngineOptions
from hetero_bfs.study import paper_named
from hetero_bfs.study import paper_programs as common
from hetero_bfs.study.program_papers import nonzero_rows
from hetero_bfs.study.searches import StudyOptions

PAPERS = "gpregel", "graphmat", "wolfpath"


@pytest.fixture(scope="module")
def options():
    return StudyOptions(scales=(8,), rounds=1, engine=EngineOptions(threads=2))


@pytest.mark.parametrize("paper", PAPERS)
def test_on_the_cpu_alone(paper, tmp_path):
    """There is nothing to compare the CPU with, and the page says so."""
    arguments = ["--paper", paper, "--scale", 8, "--rounds", 1, "--device", "cpu"]
    assert study(tmp_path / "out", *arguments) == 0
    for section in paper_named(paper).sections:
        assert list(table(tmp_path / "out", section.name).columns) == list(section.columns)
    claims = table(tmp_path / "out", "claims").set_index("claim")["ours"]
    unmeasured = claims[claims.isna()].index
    assert len(unmeasured) < len(claims)
    assert all("over the CPU" in claim or "flag" in claim for claim in unmeasured)
    assert "unmeasured" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("paper", PAPERS)
def test_on_a_device(paper, opencl_device, tmp_path):
    arguments = ["--paper", paper, "--scale", 8, "--rounds", 1, "--device", opencl_device.index]
    assert study(tmp_path / "out", *arguments) == 0
    assert table(tmp_path / "out", "claims")["ours"].notna().all()
    summary = json.loads((tmp_path / "out" / "study.json").read_text())
    assert all(summary["tables"].values())


def test_lines_are_those_of_the_example_programs():
    index = (TOP / "docs" / "programs" / "index.md").read_text()
    for name, page in (("BFS", "bfs-levels"), ("SSSP", "shortest-paths")):
        listed = re.search(rf"\({page}\.md\) \| (\d+) \|", index)
        assert common.lines_of(name) == int(listed[1])


def test_programs_are_right(options):
    for subject in common.subjects(options, None):
        peer = nx.Graph()
        peer.add_nodes_from(range(subject.graph.num_vertices))
        for src, dst in subject.graph.chunks():
            peer.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
        level = nx.single_source_shortest_path_length(peer, subject.source)
        found = subject.run("BFS", place="cpu").level
        assert found.tolist() == [level.get(v, common.FAR) for v in range(len(peer))]
        rows = nonzero_rows(subject, subject.run("BFS", place="cpu"))
        for row in rows:
            senders = [v for v, one in level.items() if one == row["iteration"]]
            assert row["x"] == len(senders)
            assert row["y"] == len(set().union(*(peer[v] for v in senders)))
        assert [row["x"] for row in rows] == [
            trace.vertices for trace in subject.run("BFS", place="cpu", direction="push").traces
        ][: len(rows)]
        ranks = subject.run("PageRank", place="cpu")
        assert (ranks.iterations, ranks.rank.dtype) == (20, np.float32)


def test_bytes_of_migrations(plain_device, options):
    """A run that alternates between two places has the result of one that does not."""
    for subject in common.subjects(options, plain_device):
        if subject.runs.device is None:
            pytest.skip(f"{plain_device.name} cannot run it")
        schedule = ["push", "device push"] * 40
        moved = subject.run("BFS", schedule=schedule)
        assert moved.level.tolist() == subject.run("BFS", place="cpu").level.tolist()
        assert moved.migrated_bytes > 0
