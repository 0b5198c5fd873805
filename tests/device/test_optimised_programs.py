"""Vertex programs with kernels built as users build them: with the compiler's optimisation."""

from __future__ import annotations

import pytest
from graphs import nasty
from sample_programs import Labels

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.graph.search_graph import build_search_graph

pytestmark = pytest.mark.optimised


def test_counts_are_those_of_the_host(plain_device):
    """PoCL once counted each active vertex as often as a work-group has work-items."""
    with ProgramRuns(build_search_graph(nasty("Kronecker 10")), 2, plain_device) as runs:
        host, device = (
            runs.run(Labels(), {}, hb.RunOptions(place=place, direction="push"))
            for place in ("cpu", "device")
        )
        assert not runs.notes, runs.notes
        assert [(t.vertices, t.edges_scanned) for t in device.traces] == [
            (t.vertices, t.edges_scanned) for t in host.traces
        ]
