"""Graphs from the world, where ../shared/data has them: reached and levels as its README says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracle import engine_on

from hetero_bfs.algorithms.bfs.validate import validate
from hetero_bfs.graph.build import build_search_graph
from hetero_bfs.graph.io import registry as io

DATA = Path(__file__).parents[3] / "shared" / "data"

# name: vertices, edge lines, stored edges (undirected simple), greatest degree, from, reached,
# levels
FACTS = {
    "moscow-roads": (411_992, 451_135, 450_919, 6, 1522, 404_060, 725),
    "dblp-2010": (326_186, 1_615_400, 807_700, 238, 185_172, 226_413, 15),
    "cnr-2000": (325_557, 3_216_152, 2_738_969, 18_236, 60_598, 325_557, 29),
    "soc-Slashdot0902": (82_168, 948_464, 504_230, 2552, 2494, 82_168, 8),
    "email-Enron": (36_692, 367_662, 183_831, 1383, 5038, 33_696, 8),
    "p2p-Gnutella31": (62_586, 147_892, 147_892, 95, 5319, 62_561, 8),
}


@cache
def real(name: str):
    path = DATA / f"{name}.txt.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return io.read(path)


@cache
def built(name: str):
    return build_search_graph(real(name))


@pytest.mark.parametrize("name", FACTS)
def test_size(name):
    vertices, lines, stored, greatest, *_ = FACTS[name]
    graph = built(name)
    assert (graph.num_vertices, graph.num_input_edges) == (vertices, lines)
    assert graph.graph.num_stored_edges == 2 * stored
    assert graph.degree.max() == greatest


@pytest.mark.parametrize("name", FACTS)
def test_reached_and_levels(place, name):
    """Fewer levels than the road network's 725 are searched by every strategy."""
    *_, root, reached, levels = FACTS[name]
    edges = real(name)
    selectors = ["fixed:TC", "alpha-beta"]
    if place is not None:
        selectors += ["daga"] + (["fixed:TG,BG,TC,BGC,TG,BC"] if levels < 100 else [])
    depths = []
    with engine_on(place, built(name), selector="fixed:TC") as engine:
        for selector in selectors:
            engine.set_selector(selector)
            result = engine.bfs(root)
            outcome = validate(edges, root, result.parent, result.level)
            assert outcome.valid, f"{selector}: {outcome.message}"
            assert (result.reached, int(result.level.max())) == (reached, levels), selector
            assert outcome.nedge == result.nedge
            depths.append(result.level)
    for other in depths[1:]:
        np.testing.assert_array_equal(depths[0], other)
