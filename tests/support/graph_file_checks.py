"""What tests of graph files share: making files, and comparing what is read.

Import as `from graph_file_checks import ...`: pytest puts this folder on the path.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.io import registry as io

MASK = 2**64 - 1


def put(path: Path, content: str | bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % 64)


def checksum(raw: bytes) -> int:
    """The checksum of a section of .hbg by the letter of digests.py, in plain Python."""
    total, words = 0, struct.unpack(f"<{len(padded(raw)) // 8}Q", padded(raw))
    for position, word in enumerate(words, 1):
        z = (word + position * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        total += z ^ (z >> 31)
    return total & MASK


def assert_same_lists(actual: CSRGraph, expected: CSRGraph) -> None:
    np.testing.assert_array_equal(actual.indptr, expected.indptr)
    np.testing.assert_array_equal(actual.indices, expected.indices)
    assert actual.directed == expected.directed
    assert (actual.indptr.dtype, actual.indices.dtype) == (np.int64, np.uint32)


def assert_same(actual: CSRGraph, expected: CSRGraph) -> None:
    assert_same_lists(actual, expected)
    np.testing.assert_array_equal(actual.input_degree, expected.input_degree)
    assert actual.num_input_edges == expected.num_input_edges


def error_of(path: Path, *parts: str, directed: bool = False) -> None:
    """Read and expect an error of one line that names the file and contains every part."""
    with pytest.raises(GraphFileError) as caught:
        io.read(path, directed)
    message = str(caught.value)
    assert "\n" not in message
    for part in (str(path), *parts):
        assert part in message


def small_graph(directed: bool = False) -> CSRGraph:
    """Seven vertices; a loop, duplicates and isolated vertices among them."""
    return CSRGraph.from_edges([0, 1, 3, 3, 3, 2], [1, 3, 0, 0, 3, 5], 7, directed)
