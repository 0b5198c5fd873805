"""Kernels read Python's objects only where Python has a lock."""

from __future__ import annotations

import sysconfig

import networkx as nx
import pytest

from hetero_bfs.networkx_backend import adjacency_kernels
from hetero_bfs.networkx_backend.conversion import convert_from_nx
from hetero_bfs.support.python_objects import are_readable


@pytest.mark.parametrize("free", [1, 0, None], ids=["without a lock", "with", "before 3.13"])
def test_free_threaded_python_reads_its_objects_itself(monkeypatch, free):
    calls = []
    read_ids = adjacency_kernels.read_ids
    monkeypatch.setattr(
        adjacency_kernels, "read_ids", lambda *args: calls.append(1) or read_ids(*args)
    )
    config = {"Py_GIL_DISABLED": free}
    monkeypatch.setattr(sysconfig, "get_config_var", config.get)
    found = [convert_from_nx(graph) for graph in (nx.path_graph(3), nx.Graph(["ab", "bc"]))]
    assert [graph.successors.indices.tolist() for graph in found] == [[1, 0, 2, 1]] * 2
    assert are_readable() == (not free)
    assert len(calls) == (0 if free else 2)
