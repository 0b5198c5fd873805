"""Connected components beside GAP and SciPy.

GAP's labels and ours are in the numbering that each program searches in. "call" is a whole call of
ours, with the least vertex of each component in the caller's ids. Our labels are checked once for
each graph, and compared with SciPy's where the graph is small enough for that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

import hetero_bfs as hb
from benchmarks.programs.contest import Contest, Gap, opened
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.runtime.component_runs import ComponentRuns

_SCIPY_EDGES = 1 << 26  # stored edges up to which SciPy takes part


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part."""
    contest = Contest(False, np.array_equal)
    with opened(ComponentRuns, edges, options) as runs:
        for place in runs.places:
            hb.check_components(edges, runs.find(place).component).raise_if_invalid()
            contest.fast[f"hetero_bfs {place}"] = partial(_ours, runs, place)
            contest.fast[f"hetero_bfs {place}, call"] = partial(_our_call, runs, place)
        if options.gap is not None:
            gap = Gap(options.gap, "cc", graph, options.threads)
            contest.fast["GAP"] = lambda _: (gap.seconds(trials=5), None)
        if graph.num_stored_edges <= _SCIPY_EDGES:
            ones = np.ones(graph.num_stored_edges, np.int8)
            lists = ones, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
            matrix = scipy.sparse.csr_array(lists, (graph.num_vertices,) * 2)
            contest.slow["SciPy connected_components"] = partial(_scipy, matrix)
        yield contest


def _ours(runs: ComponentRuns, place: Any, _: int) -> tuple[float, Any]:
    result = runs.find(place)
    return result.seconds, result.component


def _our_call(runs: ComponentRuns, place: Any, _: int) -> tuple[float, Any]:
    started = time.perf_counter()
    result = runs.find(place)
    return time.perf_counter() - started, result.component


def _scipy(matrix: Any, _: int) -> tuple[float, Any]:
    started = time.perf_counter()
    count, label = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    seconds = time.perf_counter() - started
    least = np.full(count, label.size)
    np.minimum.at(least, label, np.arange(label.size))
    return seconds, least[label]
