"""Engines that stream, for tests."""

from __future__ import annotations

import re
from unittest import mock

import pytest
from oracle import engine_on

from hetero_bfs.algorithms.bfs.heads import plan_stream
from hetero_bfs.errors import BudgetError

SELECTORS = [
    "fixed:TG",
    "fixed:BG",
    "fixed:BGC",
    "fixed:TG,BG,TG",
    "fixed:TC,BG,TG,BC,BGC,TC",
    "fixed:BG,TC,TG,BC,TG",
    "alpha-beta",
    "daga",
]


def least_budget(device, graph) -> int:
    """Return the bytes that searching with streamed edges takes at least."""
    with pytest.raises(BudgetError) as caught:
        plan_stream(device, graph, 0, 2**30)
    return int(re.search(r"need (\d+) bytes", str(caught.value))[1])


def streaming(device, graph, share: float, columns: int = 48, **options):
    """Open an engine with room for about this share of the edges, and for so many heads of lists.

    With one column alone, most lists are in pages.
    """
    edge_bytes = graph.graph.indices.nbytes * (2 if graph.graph.directed else 1)
    budget = least_budget(device, graph) + int(share * edge_bytes)
    options = {"selector": "fixed:TG", "device_memory_bytes": budget} | options
    with mock.patch("hetero_bfs.algorithms.bfs.heads._MOST_COLUMNS", columns):
        engine = engine_on(device, graph, **options)
    assert engine.streaming is not None
    assert engine.streaming.budget_bytes == budget
    assert engine.streaming.resident_neighbours <= columns
    return engine
