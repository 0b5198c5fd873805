"""Graph families: named, made from a seed, and of the shapes that they promise."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.families import (
    NEIGHBOURS,
    REWIRED_SHARE,
    TAILS,
    comb,
    grid,
    named_graph,
    preferential,
    roads,
    small_world,
    study_graphs,
    tails,
    uniform,
)
from hetero_bfs.graph.list_checks import MAX_VERTICES

NAMES = [
    "kronecker9",
    "kronecker9-45-15-25",
    "uniform9",
    "grid30",
    "roads30",
    "small-world9",
    "preferential9",
    "tails9-3x40",
    "tails-small-world9-3x40-second7",
    "comb30x20",
    "kronecker8+30+grid12",
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


@pytest.mark.parametrize(("chains", "length"), [(1, 1), (1, 300), (7, 20), (3000, 2)])
@pytest.mark.parametrize("second", [None, grid(6)])
def test_tails_are_chains_between_cores(chains, length, second):
    core = uniform(9)
    edges = tails(core, chains, length, second)
    begin, end = core.num_vertices, core.num_vertices + chains * length
    added = second or EdgeList(*np.empty((2, 0), np.uint32), 0)
    links = chains * (length if second is None else length + 1)
    assert edges.num_vertices == end + added.num_vertices
    assert edges.num_input_edges == core.num_input_edges + links + added.num_input_edges
    pairs = np.column_stack((edges.src, edges.dst)).astype(int)
    inside = (pairs < begin).all(axis=1)
    assert pairs[inside].tolist() == np.column_stack((core.src, core.dst)).tolist()
    beyond = (pairs >= end).all(axis=1)
    assert (pairs[beyond] - end).tolist() == np.column_stack((added.src, added.dst)).tolist()
    degree = degrees(edges)[begin:end].reshape(chains, length)
    assert (degree[:, :-1] == 2).all()
    assert (degree[:, -1] == (1 if second is None else 2)).all()
    starts = pairs[(pairs[:, 0] < begin) & (pairs[:, 1] >= begin), 0]
    assert starts.size == chains
    assert np.unique(starts).size == chains or chains > begin
    assert degrees(core)[starts].min() >= 3


@pytest.mark.parametrize("name", ["tails9-5x70", "tails-small-world9-5x70-second6", "comb5x70"])
def test_a_search_of_tails_has_a_level_for_each_vertex_of_a_chain(name):
    edges = named_graph(name).make()
    result = hb.bfs(hb.CSRGraph.from_edges(edges.src, edges.dst), 2, device="cpu")
    assert result.level.max() >= 70
    assert np.bincount(result.level[result.level >= 0]).min() >= 1


def test_other_seeds_draw_other_ends_of_chains():
    core = grid(20)
    assert tails(core, 5, 9).src.tolist() == tails(core, 5, 9).src.tolist()
    assert tails(core, 5, 9).src.tolist() != tails(core, 5, 9, seed=7).src.tolist()


def test_chains_start_where_they_can():
    path = EdgeList.from_arrays([0, 1, 2], [1, 2, 3])
    assert set(tails(path, 2, 1).src[3:].tolist()) == {1, 2}, "vertices with the most edges"
    alone = EdgeList(*np.empty((2, 0), np.uint32), 1)
    assert tails(alone, 2, 1).src.tolist() == [0, 0]
    with pytest.raises(GraphError, match="without vertices"):
        tails(EdgeList(*np.empty((2, 0), np.uint32), 0), 1, 1)


@pytest.mark.parametrize(("spine", "tooth"), [(1, 1), (1, 5), (6, 1), (9, 40)])
def test_a_comb_is_a_tree_of_a_spine_and_teeth(spine, tooth):
    edges = comb(spine, tooth)
    assert edges.num_vertices == spine * (tooth + 1) == edges.num_input_edges + 1
    graph = hb.CSRGraph.from_edges(edges.src, edges.dst)
    level = hb.bfs(graph, 0, device="cpu").level.reshape(spine, tooth + 1)
    assert level.tolist() == np.add.outer(np.arange(spine), np.arange(tooth + 1)).tolist()


def test_joined_graphs_may_be_files(tmp_path):
    path = tmp_path / "square.txt"
    path.write_text("0 1\n1 2\n2 3\n3 0\n")
    graph = named_graph(f"grid5+10+{path}+2+kronecker6")
    edges = graph.make()
    assert (graph.family, graph.name, graph.scale) == (TAILS, "grid5+10+square+2+kronecker6", None)
    assert edges.num_vertices == 25 + 10 + 4 + 2 + 64
    assert edges.num_input_edges == 40 + 11 + 4 + 3 + (16 << 6)
    level = hb.bfs(hb.CSRGraph.from_edges(edges.src, edges.dst), 0, device="cpu").level
    assert level[29] - level[25] == 4, "inside the chain of 10"


def test_a_file_whose_name_has_a_plus_is_that_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid2+1+grid2").write_text("0 1\n")
    assert named_graph("grid2+1+grid2").family == "file"


def test_scales_of_tails_are_those_of_all_vertices():
    names = ["tails9-1x1", "tails9-512x1", "tails9-1x1-second9", "comb32x31", "grid16+5+grid16"]
    assert [named_graph(name).scale for name in names] == [9, 10, 10, 10, 9]


def test_files_are_a_family_of_their_own(tmp_path):
    path = tmp_path / "little.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n1 2\n"))
    graph = named_graph(str(path))
    assert (graph.family, graph.name) == ("file", "little")
    assert graph.make().num_input_edges == 2


OTHERS = ["tails9", "tails-comb9-1x1", "tails9-1", "comb9", "grid9+grid9", "grid9+1+", "a+1+grid9"]


@pytest.mark.parametrize(
    "name", ["", "kron", "grid", "torus9", "grid9-1-2-3", "no/such/file", *OTHERS]
)
def test_what_is_neither_a_graph_nor_a_file_is_refused(name):
    with pytest.raises(GraphError, match="generated are"):
        named_graph(name)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("uniform99", "1 to 31"),
        ("kronecker9-60-60-60", "add up to 1"),
        ("tails99-1x1", "1 to 31"),
        ("tails9-1x1-second0", "1 to 31"),
        ("tails9-0x9", "0 chains"),
        ("grid9+0+grid9", "0 vertices of a chain"),
        ("comb9x0", "0 vertices of a chain"),
        ("tails9-4096x10000000", "fewer or shorter chains"),
        (f"comb{MAX_VERTICES}x1", "fewer or shorter chains"),
    ],
)
def test_parameters_out_of_range_are_refused(name, limit):
    with pytest.raises(GraphError, match=limit):
        named_graph(name)


def test_tails_need_whole_numbers():
    with pytest.raises(ArgumentError, match="chains"):
        tails(grid(3), 1.5, 9)


@pytest.mark.parametrize("gpu", [False, True])
def test_studies_have_every_family(gpu):
    quick, full = (study_graphs(size, gpu) for size in ("quick", "full"))
    families = {"kronecker", "uniform", "grid", "roads", "small-world", "preferential", TAILS}
    assert {graph.family for graph in quick} == {graph.family for graph in full} == families
    assert len({graph.name for graph in full}) == len(full) > len(quick)
    with pytest.raises(ValueError, match="quick"):
        study_graphs("small")
