"""Edges as pairs, and the bytes of a serialized graph."""

from __future__ import annotations

import struct

import numpy as np

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList

MTX = "%%MatrixMarket matrix coordinate"


def pairs(edges: EdgeList | CSRGraph) -> list[tuple[int, int]]:
    return [(int(u), int(v)) for src, dst in edges.chunks() for u, v in zip(src, dst, strict=True)]


def serialized(
    directed: bool,
    num_vertices: int,
    lists: list[list[int]],
    inverse: list[list[int]] | None = None,
) -> bytes:
    """Write GAP's .sg by the letter of its format."""
    raw = struct.pack("<?qq", directed, sum(map(len, lists)), num_vertices)
    for part in (lists, inverse) if inverse is not None else (lists,):
        offsets = np.cumsum([0, *map(len, part)])
        raw += struct.pack(f"<{len(offsets)}q", *offsets)
        flat = [v for neighbours in part for v in neighbours]
        raw += struct.pack(f"<{len(flat)}i", *flat)
    return raw
