"""Graphs from the world: what is known of them, and where tests look for the files.

Import as `from real_graphs import ...`: pytest puts this folder on the path.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from checkout import TOP

_FOLDERS = (TOP / "tests" / "data", TOP.parent / "shared" / "data")


class Facts(NamedTuple):
    """Counted by programs that share nothing with ours; see data/README.md."""

    vertices: int
    edge_lines: int
    edges: int  # as an undirected simple graph, each once
    greatest_degree: int
    source: int
    reached: int
    levels: int  # the largest distance from the source


FACTS = {
    "moscow-centre": Facts(30_000, 32_987, 32_952, 6, 71, 30_000, 120),
    "debian-depends": Facts(63_436, 252_351, 247_618, 21_809, 16_807, 56_746, 8),
    "moscow-roads": Facts(411_992, 451_135, 450_919, 6, 1522, 404_060, 725),
    "dblp-2010": Facts(326_186, 1_615_400, 807_700, 238, 185_172, 226_413, 15),
    "cnr-2000": Facts(325_557, 3_216_152, 2_738_969, 18_236, 60_598, 325_557, 29),
    "soc-Slashdot0902": Facts(82_168, 948_464, 504_230, 2552, 2494, 82_168, 8),
    "email-Enron": Facts(36_692, 367_662, 183_831, 1383, 5038, 33_696, 8),
    "p2p-Gnutella31": Facts(62_586, 147_892, 147_892, 95, 5319, 62_561, 8),
}


def real_graph_file(name: str) -> Path:
    """Return the file of a graph; skip the test where there is none."""
    for folder in _FOLDERS:
        if (path := folder / f"{name}.txt.gz").is_file():
            return path
    pytest.skip(f"{name}.txt.gz is in neither of {', '.join(map(str, _FOLDERS))}")
