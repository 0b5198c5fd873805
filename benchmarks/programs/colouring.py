"""Colouring beside NetworkX's `greedy_color(strategy="largest_first")`.

The colours must be the same, vertex by vertex. The number of colours is in our names. NetworkX
takes part up to Kronecker 20: its graph takes gigabytes. Its time is that of `greedy_color` alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

import hetero_bfs as hb
from benchmarks.programs.contest import Contest, opened
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource

_NETWORKX_EDGES = 1 << 25  # stored edges up to which it takes part


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part."""
    contest = Contest(False, np.array_equal)
    with opened(Colourings, edges, options) as colourings:
        for place in colourings.places:
            result = colourings.run(place=place)
            hb.check_colouring(edges, result.colour).raise_if_invalid()
            name = f"hetero_bfs {place}, {result.num_colours} colours"
            contest.runs[name] = partial(_ours, colourings, place)
        if graph.num_stored_edges <= _NETWORKX_EDGES:
            contest.runs["NetworkX largest_first"] = partial(_networkx, _to_networkx(graph))
        yield contest


def _ours(colourings: Colourings, place: Any, _: int) -> tuple[float, Any]:
    result = colourings.run(place=place)
    return result.seconds, result.colour


def _to_networkx(graph: CSRGraph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(graph.num_vertices))
    for src, dst in graph.chunks():
        once = src < dst
        made.add_edges_from(zip(src[once].tolist(), dst[once].tolist(), strict=True))
    return made


def _networkx(graph: nx.Graph, _: int) -> tuple[float, npt.NDArray[np.int32]]:
    started = time.perf_counter()
    colours = nx.greedy_color(graph, "largest_first")
    seconds = time.perf_counter() - started
    return seconds, np.fromiter((colours[v] for v in range(len(colours))), np.int32)
