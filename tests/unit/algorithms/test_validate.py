"""Each of the five checks passes on right trees and fails on wrong ones, with its number."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validated import PAIRS, PARENT, N, count_edges, graph, graphs, search

from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.bfs.check_report import CHECK_NAMES
from hetero_bfs.errors import GraphError, ValidationError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList


def validate_on_one_thread(*arguments):
    """Validate a tiny graph without barriers between threads: milliseconds on a busy machine."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        return validate(*arguments)
    finally:
        numba.set_num_threads(threads)


def depth_along(parent, source, v):
    """Steps from v to the source, None if the parents do not lead there."""
    for steps in range(len(parent) + 1):
        if v == source:
            return steps
        v = parent[v]
        if not 0 <= v < len(parent):
            return None
    return None


def first_failing_check(pairs, num_vertices, source, parent, level, directed):
    """Return the number of the first broken rule, None if all hold; slow and literal."""
    vertices = [v for v in range(num_vertices) if parent[v] != N]
    depth = {v: depth_along(parent, source, v) for v in vertices}
    if parent[source] != source or None in depth.values():
        return 1
    if level is not None and (
        level[source] != 0
        or any((level[v] == N) != (parent[v] == N) for v in range(num_vertices))
        or any(level[v] != level[parent[v]] + 1 for v in vertices if v != source)
    ):
        return 2
    arcs = list(pairs) if directed else [*pairs, *((v, u) for u, v in pairs)]
    if any(u in depth and v in depth and depth[v] > depth[u] + 1 for u, v in arcs):
        return 3
    if any(u in depth and v not in depth for u, v in arcs):
        return 4
    if any((parent[v], v) not in set(arcs) for v in vertices if v != source):
        return 5
    return None


# Right trees


@settings(deadline=None)
@given(graphs(), st.booleans(), st.booleans())
def test_a_right_tree_passes_and_its_edges_are_counted(case, both_directions, with_level):
    pairs, num_vertices, source, directed = case
    parent, level = search(pairs, num_vertices, source, directed)
    edges = graph(pairs, num_vertices, directed, both_directions and not directed)
    outcome = validate_on_one_thread(edges, source, parent, level if with_level else None)
    assert outcome.valid, outcome.message
    assert (outcome.check, outcome.check_name, outcome.vertex) == (None, None, None)
    assert outcome.nedge == count_edges(pairs, parent, directed)
    assert outcome.reached == (parent != N).sum()
    assert outcome.depth == level.max()
    lists = CSRGraph.from_edges(*np.reshape(pairs, (-1, 2)).T.astype(int), num_vertices, directed)
    assert validate_on_one_thread(lists, source, parent).nedge == outcome.nedge, (
        "without duplicates"
    )


@pytest.mark.parametrize("directed", [False, True])
def test_a_single_vertex(directed):
    parent, level = np.array([0]), np.array([0], dtype=np.int32)
    outcome = validate(graph([(0, 0)], 1, directed), 0, parent, level)
    assert (outcome.valid, outcome.nedge, outcome.reached, outcome.depth) == (True, 0, 1, 0)


def test_an_isolated_root_and_no_edges():
    outcome = validate(graph([], 3), 1, np.array([N, 1, N]))
    assert (outcome.valid, outcome.nedge, outcome.reached, outcome.depth) == (True, 0, 1, 0)
    assert outcome.message == "source 1: valid; 1 vertices reached, depth 0"


def test_duplicates_count_for_nedge_and_self_loops_do_not():
    pairs = [(0, 1), (1, 0), (0, 1), (1, 1), (2, 3), (3, 3)]
    for both_directions in (False, True):
        edges = graph(pairs, 4, both_directions=both_directions)
        assert validate(edges, 0, np.array([0, 0, N, N])).nedge == 3
    assert validate(graph(pairs, 4, directed=True), 1, np.array([1, 1, N, N])).nedge == 3


def test_a_directed_edge_may_come_from_an_unreached_vertex_and_rise_any_number_of_levels():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 2)]
    parent = np.array([0, 0, 1, 2, N])
    outcome = validate(graph(pairs, 5, directed=True), 0, parent, np.array([0, 1, 2, 3, N]))
    assert outcome.valid, outcome.message
    assert outcome.nedge == 4
    assert validate(graph(pairs, 5), 0, parent).check == 3


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_a_path_of_a_million_vertices(order):
    size = 1_000_000
    path = {
        "ascending": np.arange(size),
        "descending": np.arange(size)[::-1],
        "shuffled": np.random.default_rng(1).permutation(size),
    }[order]
    parent, level = np.empty(size, np.int64), np.empty(size, np.int32)
    parent[path[1:]], parent[path[0]] = path[:-1], path[0]
    level[path] = np.arange(size)
    outcome = validate(EdgeList.from_arrays(path[:-1], path[1:]), int(path[0]), parent, level)
    assert outcome.valid, outcome.message
    assert (outcome.depth, outcome.nedge) == (size - 1, size - 1)


# Any parents at all, against the rules written out


@settings(deadline=None, max_examples=400)
@given(st.data(), graphs(most_vertices=7))
def test_the_verdict_on_any_parents_and_levels_is_that_of_the_rules(data, case):
    pairs, num_vertices, source, directed = case
    parent, level = search(pairs, num_vertices, source, directed)
    vertex = st.integers(0, num_vertices - 1)
    for v in data.draw(st.lists(vertex, max_size=3)):
        parent[v] = data.draw(st.integers(-2, num_vertices))
    for v in data.draw(st.lists(vertex, max_size=2)):
        level[v] = data.draw(st.integers(-2, num_vertices))
    level = data.draw(st.sampled_from([None, level]))
    expected = first_failing_check(pairs, num_vertices, source, parent, level, directed)
    edges = graph(pairs, num_vertices, directed)
    outcome = validate_on_one_thread(edges, source, parent, level)
    assert outcome.check == expected, outcome.message
    assert outcome.valid == (expected is None)


# Wrong trees, one by one. The graph:
#
#   0 - 1 - 2 - 3 - 4      7 - 8      9
#    \     / \
#     5 - 6   (2, 6), (5, 6); duplicates and a loop besides

LEVEL = [0, 1, 2, 3, 4, 1, 2, N, N, N]


def check_changed(parent=(), level=None, pairs=PAIRS, directed=False, source=0):
    """Validate the tree above with some entries of parent (and level, if not None) replaced."""
    new_parent, new_level = np.array(PARENT), np.array(LEVEL, dtype=np.int32)
    for v, value in dict(parent).items():
        new_parent[v] = value
    for v, value in dict(level or {}).items():
        new_level[v] = value
    edges = graph(pairs, len(PARENT), directed)
    return validate(edges, source, new_parent, None if level is None else new_level)


@pytest.mark.parametrize("directed", [False, True])
def test_the_unchanged_tree_passes(directed):
    assert check_changed(level={}, directed=directed).valid


@pytest.mark.parametrize(
    ("parent", "vertex", "detail"),
    [
        ({0: 1}, 0, "the source has parent 1 instead of itself"),
        ({0: N}, 0, "the source has parent -1 instead of itself"),
        ({4: 10}, 4, "its parent 10 is not -1 and not in 0..9"),
        ({4: -2}, 4, "its parent -2 is not -1 and not in 0..9"),
        ({4: 2**32 + 3}, 4, f"its parent {2**32 + 3} is not -1 and not in 0..9"),
        ({4: 7}, 4, "its parent 7 is unreached"),
        ({8: 8}, 8, "following the parents from vertex 8 leads back to it"),
        ({7: 8, 8: 7}, 7, "following the parents from vertex 7 leads back to it"),
        ({2: 6, 6: 2}, 2, "following the parents from vertex 2 leads back to it"),
        ({1: 4}, 1, "following the parents from vertex 1 leads back to it"),
    ],
)
def test_check_1_root_range_and_cycles(parent, vertex, detail):
    for level in (None, {}):
        outcome = check_changed(parent, level)
        assert (outcome.check, outcome.vertex) == (1, vertex)
        assert outcome.check_name == CHECK_NAMES[1] == "parents form a tree"
        assert outcome.message.endswith(
            f"check 1 (parents form a tree) fails at vertex {vertex}: " + detail
        )


def test_check_1_a_long_cycle_is_found_in_linear_time():
    size = 300_000  # a quadratic search would take 10**11 steps
    parent = np.roll(np.arange(size), 1)
    parent[0], parent[1] = 0, size - 1  # all but the source in one cycle
    path = np.arange(size)
    outcome = validate(EdgeList.from_arrays(path[:-1], path[1:]), 0, parent)
    assert (outcome.check, outcome.vertex, outcome.depth) == (1, 1, 0)


@pytest.mark.parametrize(
    ("parent", "level", "vertex", "detail"),
    [
        ({}, {4: 3}, 4, "it has level 3, but depth 4 along the parents; its parent 3 has level 3"),
        ({}, {0: 1}, 0, "it has level 1, but depth 0 along the parents"),
        ({}, {9: 0}, 9, "it has level 0 but no parent"),
        ({}, {6: N}, 6, "it has level -1, but depth 2 along the parents; its parent 5 has level 1"),
        ({4: N}, {}, 4, "it has level 4 but no parent"),
        ({4: 1}, {}, 4, "it has level 4, but depth 2 along the parents; its parent 1 has level 1"),
        ({6: 2}, {}, 6, "it has level 2, but depth 3 along the parents; its parent 2 has level 2"),
    ],
)
def test_check_2_levels(parent, level, vertex, detail):
    outcome = check_changed(parent, level)
    assert (outcome.check, outcome.vertex, outcome.nedge) == (2, vertex, 0)
    assert outcome.message == (
        f"source 0: check 2 (tree edges span one level) fails at vertex {vertex}: {detail}"
    )


def test_check_2_compares_wide_levels_without_wrapping():
    level = np.array(LEVEL, dtype=np.int64)
    level[4] += 2**32
    assert validate(graph(PAIRS, 10), 0, np.array(PARENT), level).check == 2


@pytest.mark.parametrize("level", [None, {1: 4, 2: 3}])
def test_check_3_a_detour_longer_than_an_edge(level):
    # 1 hangs under 2 instead of the source: depth 4 there, though (0, 1) is an edge
    outcome = check_changed({2: 6, 1: 2}, None if level is None else {**level, 3: 4, 4: 5})
    assert (outcome.check, outcome.vertex) == (3, 0)
    assert outcome.message == (
        "source 0: check 3 (edges span at most one level) fails at vertex 0: "
        "edge (0, 1) joins levels 0 and 4"
    )
    assert outcome.nedge == 8


def test_check_3_parent_two_levels_up_leaves_a_child_or_neighbour_behind():
    outcome = check_changed({3: 1})  # 3 at depth 2, 4 at depth 3: caught as no edge
    assert (outcome.check, outcome.vertex) == (5, 3)
    outcome = check_changed({3: 0}, pairs=[*PAIRS, (4, 6), (3, 0)])
    assert outcome.check is None
    outcome = check_changed({3: 0, 4: 6}, pairs=[*PAIRS, (4, 6)])
    assert (outcome.check, outcome.vertex) == (3, 3)
    assert outcome.message.endswith("edge (3, 4) joins levels 1 and 3")


def test_check_3_directed_only_downwards():
    pairs = [*PAIRS, (0, 4)]
    outcome = check_changed(pairs=pairs, directed=True)
    assert (outcome.check, outcome.vertex) == (3, 0)
    assert check_changed(pairs=[*PAIRS, (4, 0)], directed=True).valid
    assert check_changed(pairs=[*PAIRS, (4, 0)]).check == 3


@pytest.mark.parametrize("level", [None, {4: N}])
@pytest.mark.parametrize("directed", [False, True])
def test_check_4_an_unreached_vertex_with_a_reached_neighbour(directed, level):
    outcome = check_changed({4: N}, level, directed=directed)
    assert (outcome.check, outcome.vertex, outcome.reached) == (4, 4, 6)
    assert outcome.message == (
        "source 0: check 4 (tree covers the component) fails at vertex 4: "
        "edge (3, 4) joins it, unreached, to 3, reached"
    )


def test_check_4_a_vertex_of_another_component_whose_neighbour_is_not_reached():
    outcome = check_changed({8: 4})
    assert (outcome.check, outcome.vertex) == (4, 7)
    assert check_changed({8: 4}, directed=True).check == 5  # 7 -> 8 may start unreached
    assert check_changed({7: 4}, directed=True).check == 4


@pytest.mark.parametrize(
    ("parent", "level", "vertex"),
    [
        ({9: 0}, {9: 1}, 9),  # isolated
        ({7: 4, 8: 7}, {7: 5, 8: 6}, 7),  # a whole component
        ({3: 6}, {}, 3),  # right level, but no neighbour
    ],
)
@pytest.mark.parametrize("directed", [False, True])
def test_check_5_a_tree_edge_that_is_no_input_edge(parent, level, vertex, directed):
    for given_level in (None, level):
        outcome = check_changed(parent, given_level, directed=directed)
        assert (outcome.check, outcome.vertex) == (5, vertex)
        edge = f"({parent[vertex]}, {vertex})"
        assert outcome.message == (
            f"source 0: check 5 (tree edges are input edges) fails at vertex {vertex}: "
            f"its tree edge {edge} is not an input edge"
        )


def test_check_5_a_directed_edge_used_backwards():
    parent = np.array([0, 0])
    assert validate(graph([(1, 0)], 2), 0, parent).valid
    assert validate(graph([(1, 0)], 2, directed=True), 0, parent).check == 5


def test_the_first_failing_edge_is_reported_whatever_the_threads_do():
    size = 400_000
    path = np.arange(size)
    edges = EdgeList.from_arrays(path[:-1], path[1:])
    parent = np.maximum(path - 1, 0)
    parent[1000:] = N
    messages = {validate(edges, 0, parent).message for _ in range(5)}
    assert len(messages) == 1
    assert "edge (999, 1000)" in messages.pop()


# Usage


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signed_dtypes_and_strided_arrays(dtype):
    parent = np.repeat(np.array(PARENT, dtype=dtype), 2)[::2]
    level = np.array(LEVEL, dtype=dtype)
    level.flags.writeable = False
    assert validate(graph(PAIRS, 10), np.uint32(0), parent, level).valid
    assert level.tolist() == LEVEL
    assert parent.tolist() == PARENT


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, np.zeros(2)), "parent holds float64; give signed integers, -1 for unreached"),
        ((0, np.zeros(2, np.uint64)), "parent holds uint64"),
        ((0, np.zeros(3, np.int64)), r"parent has shape \(3,\); give shape \(2,\)"),
        ((0, np.zeros((2, 1), np.int64)), r"parent has shape \(2, 1\)"),
        ((0, np.zeros(2, np.int64), np.zeros(1, np.int32)), r"level has shape \(1,\)"),
        ((0, np.ones(2, np.int64), np.zeros(2, np.bool_)), "level holds bool"),
        ((2, np.zeros(2, np.int64)), "vertex 2 is not in the graph; its ids are 0 to 1"),
        ((-1, np.zeros(2, np.int64)), "vertex -1 is not in the graph"),
    ],
)
def test_unusable_arguments(arguments, message):
    with pytest.raises(GraphError, match=message):
        validate(graph([(0, 1)], 2), *arguments)


def test_a_graph_without_vertices_has_no_root():
    with pytest.raises(GraphError, match="vertex 0 is not in the graph, which has no vertices"):
        validate(graph([], 0), 0, np.empty(0, np.int64))


def test_an_edge_source_with_ends_out_of_range():
    with pytest.raises(GraphError, match=r"edge \(1, 5\) in a graph of only 2 vertices"):
        validate(EdgeList.trusted(*np.array([[0, 1], [1, 5]], np.uint32), 2), 0, np.array([0, 0]))


def test_raise_if_invalid():
    assert check_changed().raise_if_invalid() is None
    with pytest.raises(ValidationError, match=r"^source 0: check 4 .* fails at vertex 4: edge"):
        check_changed({4: N}).raise_if_invalid()


def test_several_sources_have_trees_of_their_own():
    edges = graph([(v, v + 1) for v in range(5)], 6)
    parent, level = np.array([0, 0, 1, 4, 5, 5]), np.array([0, 1, 2, 2, 1, 0])
    outcome = validate(edges, [0, 5, 0], parent, level)
    assert outcome.message == "2 sources: valid; 6 vertices reached, depth 2"
    assert (outcome.nedge, outcome.depth) == (5, 2)
    for vertex, wrong in ((5, 4), (2, 2)):
        broken = parent.copy()
        broken[vertex] = wrong
        outcome = validate(edges, [0, 5], broken)
        assert (outcome.check, outcome.vertex) == (1, vertex)
