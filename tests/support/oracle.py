"""What the right answer is, by code that shares nothing with the package; and engines to check."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from hetero_bfs import Engine, validate
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import SearchGraph


def matrix_of(edges: EdgeList) -> scipy.sparse.csr_array:
    """Return the adjacency matrix, all ones, without loops; symmetric if undirected."""
    src, dst = edges.src.astype(np.int64), edges.dst.astype(np.int64)
    if not edges.directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    keep = src != dst
    shape = (edges.num_vertices, edges.num_vertices)
    ones = np.ones(int(keep.sum()))
    matrix = scipy.sparse.coo_array((ones, (src[keep], dst[keep])), shape).tocsr()
    matrix.sum_duplicates()
    matrix.sort_indices()
    matrix.data[:] = 1
    return matrix


_levels: dict[tuple[int, int], np.ndarray] = {}
_kept: list[EdgeList] = []  # so that no id is used twice


def true_levels(edges: EdgeList, source: int) -> np.ndarray:
    """Return distances from the source, int64, -1 unreached (SciPy's Dijkstra, unweighted)."""
    key = (id(edges), source)
    if key not in _levels:
        _kept.append(edges)
        distance = dijkstra(matrix_of(edges), directed=True, indices=source, unweighted=True)
        _levels[key] = np.where(np.isinf(distance), -1, distance).astype(np.int64)
    return _levels[key]


def true_nedge(edges: EdgeList, levels: np.ndarray) -> int:
    """Count input edges of the searched component: duplicates yes, loops no."""
    return int(np.count_nonzero((edges.src != edges.dst) & (levels[edges.src] >= 0)))


def engine_on(device, graph, **options) -> Engine:
    """Open an engine on a DeviceInfo (which may be a made-up one), or on the CPU alone (None)."""
    if device is None:
        return Engine(graph, device="cpu", **options)
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[device]):
        engine = Engine(graph, **options)
    assert engine.device_info == device or engine.graph.num_searched == 0, engine.notes
    return engine


def with_less_memory(device, least: int, lists: int) -> list:
    """Return the device with room for no list (`least` bytes), half of them, or all, in parts."""
    sizes = (
        (least, 2**30), (least + lists // 2, 2**30), (least + lists // 2, 41_000),
        (least + lists + 2**20, 41_000),
    )  # fmt: skip
    return [replace(device, memory_bytes=memory, max_alloc_bytes=piece) for memory, piece in sizes]


def check_search(engine: Engine, edges: EdgeList, source: int):
    """Search and compare with both oracles; return the result."""
    return check_result(engine, edges, source, engine.bfs(source))


def check_result(engine: Engine, edges: EdgeList, source: int, result: BFSResult) -> BFSResult:
    """Compare the result of a search with both oracles; return it."""
    context = f"source {source}, selector {engine.selector.name}, parts {engine.num_parts}"
    outcome = validate(edges, source, result.parent, result.level)
    assert outcome.valid, f"{context}: {outcome.message}"
    levels = true_levels(edges, source)
    np.testing.assert_array_equal(result.level, levels, err_msg=context)
    assert result.nedge == outcome.nedge == true_nedge(edges, levels), context
    assert result.reached == outcome.reached == np.count_nonzero(levels >= 0), context
    assert (result.parent.dtype, result.level.dtype) == (np.int64, np.int32)
    assert result.source == source
    check_traces(engine, result, levels)
    return result


def check_leaving(engine: Engine, edges: EdgeList, elsewhere: int, levels: int) -> None:
    """Search from a source in another component, then from 0: on the host after so many levels."""
    schedule = ",".join(["TG"] * levels + ["TC"])
    for _ in range(2):
        engine.set_selector("fixed:TG")
        check_search(engine, edges, elsewhere)
        engine.set_selector(f"fixed:{schedule}")
        check_search(engine, edges, 0)


def edges_of_levels(graph: SearchGraph, levels: np.ndarray) -> np.ndarray:
    """Stored edges that leave the vertices of each level; `levels` is by the caller's ids."""
    level = levels[graph.relabelling.old_of_new]
    reached = level >= 0
    return np.bincount(level[reached], graph.degree[reached]).astype(np.int64)


def check_traces(engine: Engine, result, levels: np.ndarray) -> None:
    """The records of the levels agree with the levels."""
    counts = np.bincount(levels[levels >= 0])
    directed = engine.graph.graph.directed
    graph = engine.graph
    edges = edges_of_levels(graph, levels)
    visited = 0
    for number, trace in enumerate(result.traces):
        assert trace.features.level == number
        assert trace.features.num_vertices == engine.graph.num_searched
        assert min(trace.seconds, trace.transfer_seconds, trace.select_seconds) >= 0
        if not directed:  # else levels that leave a queue leave out vertices without edges
            visited += int(counts[number])
            assert trace.features.frontier_vertices == counts[number]
            assert trace.features.unvisited_vertices == graph.num_searched - visited
            assert trace.features.frontier_edges == edges[number]
            left = graph.graph.num_stored_edges - edges[: number + 1].sum()
            assert trace.features.unvisited_edges == left
            found = counts[number + 1] if number + 1 < counts.size else 0
            assert trace.found_vertices == found
    assert len(result.traces) in (counts.size - 1, counts.size)
