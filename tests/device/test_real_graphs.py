"""Graphs from the world: reached and levels as independent programs say (real_graphs.py)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from oracle import engine_on
from real_graphs import FACTS, real_graph_file

from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.search_graph import build_search_graph


@cache
def real(name: str):
    return io.read(real_graph_file(name))


@cache
def built(name: str):
    return build_search_graph(real(name))


@pytest.mark.parametrize("name", FACTS)
def test_size(name):
    facts = FACTS[name]
    graph = built(name)
    assert (graph.num_vertices, graph.num_input_edges) == (facts.vertices, facts.edge_lines)
    assert graph.graph.num_stored_edges == 2 * facts.edges
    assert graph.degree.max() == facts.greatest_degree


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FACTS)
def test_reached_and_levels(plain_place, name):
    """Fewer levels than the road network's 725 are searched by every strategy."""
    source, reached, levels = FACTS[name][-3:]
    edges = real(name)
    selectors = ["fixed:TC", "alpha-beta"]
    if plain_place is not None:
        selectors += ["daga"] + (["fixed:TG,BG,TC,BGC,TG,BC"] if levels < 100 else [])
    depths = []
    with engine_on(plain_place, built(name), selector="fixed:TC") as engine:
        for selector in selectors:
            engine.set_selector(selector)
            result = engine.bfs(source)
            outcome = validate(edges, source, result.parent, result.level)
            assert outcome.valid, f"{selector}: {outcome.message}"
            assert (result.reached, int(result.level.max())) == (reached, levels), selector
            assert outcome.nedge == result.nedge
            depths.append(result.level)
    for other in depths[1:]:
        np.testing.assert_array_equal(depths[0], other)
