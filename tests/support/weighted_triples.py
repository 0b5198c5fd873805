"""Weighted edges as triples, and errors of weighted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io


def triples(edges: EdgeList | CSRGraph) -> list[tuple[int, int, float]]:
    chunks = list(edges.weighted_chunks())
    return [(int(u), int(v), w.item()) for part in chunks for u, v, w in zip(*part, strict=True)]


def combined(edges: list[tuple[int, int, float]], directed: bool) -> list[tuple[int, int, float]]:
    """The lists of the graph of these edges, in plain Python."""
    least: dict[tuple[int, int], float] = {}
    for u, v, w in edges:
        for pair in [(u, v)] if directed else [(u, v), (v, u)]:
            if u != v:
                least[pair] = min(w, least.get(pair, w))
    return [(u, v, w) for (u, v), w in sorted(least.items())]


def error_of(path: Path, *parts: str, directed: bool = False) -> None:
    """Read with weights, and expect an error of one line that has every part."""
    with pytest.raises(GraphFileError) as caught:
        io.read(path, directed, weighted=True)
    message = str(caught.value)
    assert "\n" not in message
    for part in (str(path), *parts):
        assert part in message
