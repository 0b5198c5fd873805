"""Connected components beside GAP, SciPy, NetworKit, python-graphblas and cuGraph.

GAP's labels and ours are in the numbering that each program searches in. "call" is a whole call of
ours, with the least vertex of each component in the caller's ids. Our labels are checked once for
each graph, and compared with those of the other libraries where the graph is small enough for that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

import hetero_bfs as hb
from benchmarks.libraries import timed
from benchmarks.programs.contest import Contest, Gap, call, opened
from benchmarks.programs.peers import add_peers, least_members
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource

_SCIPY_EDGES = 1 << 26  # stored edges up to which SciPy takes part


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part."""
    contest = Contest(False, np.array_equal)
    contest.least_bytes = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
    with opened(ComponentRuns, edges, options) as runs:
        for place in runs.places:
            hb.check_components(edges, runs.run(place=place).component).raise_if_invalid()
            contest.runs[f"hetero_bfs {place}"] = partial(_ours, runs, place)
            contest.runs[f"hetero_bfs {place}, call"] = partial(_our_call, runs, place)
        if options.gap is not None:
            gap = Gap(options.gap, "cc", graph, options.threads)
            contest.runs["GAP"] = lambda _: (gap.seconds(trials=5), None)
        if graph.num_stored_edges <= _SCIPY_EDGES:
            ones = np.ones(graph.num_stored_edges, np.int8)
            lists = ones, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
            matrix = scipy.sparse.csr_array(lists, (graph.num_vertices,) * 2)
            contest.runs["SciPy connected_components"] = partial(_scipy, matrix)
        add_peers(contest.runs, graph, options, lambda library: library.components())
        yield contest


def _ours(runs: ComponentRuns, place: Any, _: int) -> tuple[float, Any]:
    result = runs.run(place=place)
    return result.seconds, result.component


def _our_call(runs: ComponentRuns, place: Any, _: int) -> tuple[float, Any]:
    return call(partial(runs.run, place=place), "component")


def _scipy(matrix: Any, _: int) -> tuple[float, Any]:
    search = partial(scipy.sparse.csgraph.connected_components, directed=False)
    seconds, (_, label) = timed(search, matrix)
    return seconds, least_members(label)
