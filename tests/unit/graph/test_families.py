"""Graph families: named, made from a seed, and of the shapes that they promise."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.generators.families import (
    NEIGHBOURS,
    REWIRED_SHARE,
    grid,
    named_graph,
    preferential,
    roads,
    small_world,
    study_graphs,
)

NAMES = [
    "kronecker9",
    "kronecker9-45-15-25",
    "uniform9",
    "grid30",
    "roads30",
    "small-world9",
    "preferential9",
]


def degrees(edges) -> np.ndarray:
    return np.bincount(np.concatenate((edges.src, edges.dst)), minlength=edges.num_vertices)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_name_makes_the_same_edges(name):
    first, second = named_graph(name).make(), named_graph(name).make()
    assert first.num_input_edges > 500
    assert max(first.src.max(), first.dst.max()) < first.num_vertices
    np.testing.assert_array_equal(first.src, second.src)
    np.testing.assert_array_equal(first.dst, second.dst)


def test_roads_are_a_part_of_a_grid():
    whole, kept = grid(40), roads(40)
    edges = set(zip(whole.src.tolist(), whole.dst.tolist(), strict=True))
    left = set(zip(kept.src.tolist(), kept.dst.tolist(), strict=True))
    assert left < edges
    assert len(left) == kept.src.size
    assert 0.6 < len(left) / len(edges) < 0.8


def test_a_grid_joins_neighbours_once():
    edges = grid(5)
    steps = (edges.dst - edges.src).tolist()
    assert sorted(steps) == [1] * 20 + [5] * 20
    assert all(s % 5 != 4 for s, step in zip(edges.src, steps, strict=True) if step == 1)


def test_a_small_world_is_a_ring_with_few_shortcuts():
    edges = small_world(14)
    n = edges.num_vertices
    around = (edges.dst.astype(int) - edges.src) % n
    assert (degrees(edges) >= NEIGHBOURS).all()
    shortcuts = np.mean((around == 0) | (around > NEIGHBOURS))
    assert shortcuts == pytest.approx(REWIRED_SHARE, rel=0.1)
    assert small_world(14, seed=7).dst.tolist() != edges.dst.tolist()


def test_preferential_attachment_joins_earlier_vertices_and_makes_hubs():
    edges = preferential(14)
    assert (edges.dst <= edges.src).all()
    assert np.bincount(edges.src).tolist() == [NEIGHBOURS] * edges.num_vertices
    # The expected degree of a vertex falls as the root of its age: (n / v)**0.5 * NEIGHBOURS.
    degree = degrees(edges)
    n = edges.num_vertices
    early, late = degree[n // 256 : n // 128].mean(), degree[n // 4 : n // 2].mean()
    assert early / late == pytest.approx(8.0, rel=0.2)


def test_a_larger_preferential_graph_begins_as_the_smaller_one():
    small, large = preferential(8), preferential(10)
    np.testing.assert_array_equal(large.dst[: small.dst.size], small.dst)


def test_files_are_a_family_of_their_own(tmp_path):
    path = tmp_path / "little.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n1 2\n"))
    graph = named_graph(str(path))
    assert (graph.family, graph.name) == ("file", "little")
    assert graph.make().num_input_edges == 2


@pytest.mark.parametrize("name", ["", "kron", "grid", "torus9", "grid9-1-2-3", "no/such/file"])
def test_what_is_neither_a_graph_nor_a_file_is_refused(name):
    with pytest.raises(GraphError, match="generated are"):
        named_graph(name)


@pytest.mark.parametrize(
    ("name", "limit"), [("uniform99", "1 to 31"), ("kronecker9-60-60-60", "add up to 1")]
)
def test_parameters_out_of_range_are_refused(name, limit):
    with pytest.raises(GraphError, match=limit):
        named_graph(name)


@pytest.mark.parametrize("gpu", [False, True])
def test_studies_have_every_family(gpu):
    quick, full = (study_graphs(size, gpu) for size in ("quick", "full"))
    families = {"kronecker", "uniform", "grid", "roads", "small-world", "preferential"}
    assert {graph.family for graph in quick} == {graph.family for graph in full} == families
    assert len({graph.name for graph in full}) == len(full) > len(quick)
    with pytest.raises(ValueError, match="quick"):
        study_graphs("small")
