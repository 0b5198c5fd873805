"""Many searches validated in one pass."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validated import PAIRS, PARENT, N, SmallChunks, count_edges, graph, graphs, search

from hetero_bfs.algorithms.bfs.check import Validator, validate
from hetero_bfs.graph.edge_list import EdgeList


class CountingEdges(SmallChunks):
    """Counts how often the edges are read through."""

    passes = 0

    def chunks(self, size=3):
        CountingEdges.passes += 1
        return super().chunks(size)


@pytest.fixture
def counted(monkeypatch):
    """Return the graph of PAIRS, edges that count their passes."""
    monkeypatch.setattr(CountingEdges, "passes", 0)
    plain = graph(PAIRS, len(PARENT))
    return CountingEdges(plain.src, plain.dst, plain.num_vertices)


def test_every_root_in_one_pass(counted):
    validator = Validator(counted)
    searches = [search(PAIRS, 10, source) for source in range(10)]
    for source, (parent, level) in enumerate(searches):
        validator.add(source, parent, level)
    assert (len(validator), CountingEdges.passes) == (10, 0)
    outcomes = validator.finish()
    assert (len(validator), CountingEdges.passes) == (0, 1)
    for source, (outcome, (parent, level)) in enumerate(zip(outcomes, searches, strict=True)):
        assert outcome == validate(counted, source, parent, level)
        assert outcome.valid, outcome.message
        assert outcome.nedge == count_edges(PAIRS, parent, directed=False)


BROKEN = [{4: 10}, {2: 6, 6: 2}, {2: 6, 1: 2}, {4: N}, {9: 0}, {3: 6}]  # checks 1 1 3 4 5 5


@pytest.mark.parametrize("parent", BROKEN)
@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_wrong_search_is_named_and_does_not_fail_the_others(counted, parent, place):
    validator = Validator(counted)
    for position in range(8):
        source = 0 if position == place else position
        right, _ = search(PAIRS, 10, source)
        if position == place:
            for v, value in parent.items():
                right[v] = value
            alone = validate(counted, source, right)
        validator.add(source, right)
    outcomes = validator.finish()
    assert outcomes[place] == alone
    assert not alone.valid
    assert [outcome.valid for outcome in outcomes] == [position != place for position in range(8)]


@settings(deadline=None, max_examples=200)
@given(st.data(), graphs(most_vertices=7))
def test_a_group_gets_the_verdicts_that_each_search_gets_alone(data, case):
    pairs, num_vertices, _, directed = case
    edges = graph(pairs, num_vertices, directed)
    validator = Validator(edges, 6)
    alone = []
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        for _ in range(data.draw(st.integers(1, 6))):
            source = data.draw(st.integers(0, num_vertices - 1))
            parent, level = search(pairs, num_vertices, source, directed)
            for v in data.draw(st.lists(st.integers(0, num_vertices - 1), max_size=2)):
                parent[v] = data.draw(st.integers(-1, num_vertices - 1))
            level = data.draw(st.sampled_from([None, level]))
            alone.append(validate(edges, source, parent, level))
            validator.add(source, parent, level)
        assert validator.finish() == alone
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("size", [250, 254, 255, 256, 260, 65_532, 65_536, 65_540])
def test_depths_at_the_ends_of_a_dtype(size):
    """From one end of a path, after the middle; then with the far end cut off."""
    path = np.arange(size)
    edges = EdgeList.from_arrays(path[:-1], path[1:])
    middle = np.where(path < size // 2, path + 1, path - 1)
    middle[size // 2] = size // 2
    end = np.maximum(path - 1, 0)
    cut = np.where(path < size - 1, end, N)
    wrong = end.copy()
    wrong[1], wrong[2] = 2, 1  # a cycle: no column
    validator = Validator(edges)
    for source, parent in (
        (size // 2, middle),
        (0, end),
        (0, cut),
        (0, wrong),
        (size // 2, middle),
    ):
        validator.add(source, parent)
    outcomes = validator.finish()
    assert [outcome.check for outcome in outcomes] == [None, None, 4, 1, None]
    assert [outcome.depth for outcome in outcomes] == [size // 2, size - 1, size - 2, 0, size // 2]
    assert outcomes[2].vertex == size - 1


def test_no_pass_for_searches_that_are_no_trees(counted):
    validator = Validator(counted)
    assert validator.finish() == []
    validator.add(0, np.full(10, N))
    assert [outcome.check for outcome in validator.finish()] == [1]
    assert CountingEdges.passes == 0


def test_a_full_group_says_so(counted):
    validator = Validator(counted, 1)
    validator.add(0, np.array(PARENT))
    with pytest.raises(ValueError, match="the group has its 1 searches; finish it first"):
        validator.add(0, np.array(PARENT))
    assert validator.finish()[0].valid
    validator.add(0, np.array(PARENT))
    assert validator.finish()[0].valid
    for capacity in (0, 65):
        with pytest.raises(ValueError, match=f"capacity is {capacity}; it must be 1 to 64"):
            Validator(counted, capacity)


@pytest.mark.parametrize("directed", [False, True])
def test_a_full_group_on_a_larger_graph(directed):
    """64 searches with a search of each kind wrong, on edges that fill batches and blocks."""
    rng = np.random.default_rng(5)
    pairs = [(int(u), int(v)) for u, v in rng.integers(0, 300, (2000, 2))]
    edges = graph(pairs, 320, directed)
    chunks = EdgeList(edges.src, edges.dst, 320, directed)
    validator = Validator(chunks, 64)
    alone = []
    for source in range(64):
        parent, level = search(pairs, 320, source, directed)
        if source % 8 == 3:
            reached = np.flatnonzero(level == level.max())
            parent[reached[0]] = N if source % 16 == 3 else source
        alone.append(validate(chunks, source, parent))
        validator.add(source, parent)
        assert alone[-1].valid == (source % 8 != 3)
        assert alone[-1].check in (None, 3, 4, 5)
    assert validator.finish() == alone
