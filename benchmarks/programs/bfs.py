"""Breadth-first search beside cuGraph; benchmarks/cpu_peers.py has its peers on a CPU.

"hetero_bfs" is a search until parents are complete where it ran; "call" a whole call of ours, with
parents on the host in the caller's ids. Levels are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import hetero_bfs as hb
from benchmarks.programs.contest import Contest, call
from benchmarks.programs.cugraph import CuGraph
from benchmarks.programs.peers import add_peers
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part."""
    contest = Contest(True, np.array_equal)
    contest.least_bytes = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
    with hb.Engine(edges, device=options.device, threads=options.threads) as engine:
        contest.runs["hetero_bfs, call"] = partial(call, engine.bfs, "level")
        contest.runs["hetero_bfs"] = partial(_search, engine)
        add_peers(contest.runs, graph, options, lambda library: library.levels(), (CuGraph,))
        yield contest


def _search(engine: hb.Engine, source: int) -> tuple[float, Any]:
    return engine.search(source).seconds, None
