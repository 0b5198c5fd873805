"""Comparisons: their graphs by name, who takes part, and our own entries."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hetero_bfs.algorithms.base import Prepared, open_analysis
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read, write
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions

Run = Callable[[int], tuple[float, Any]]
"""Runs a contestant from a source; returns seconds, and an answer to compare or None."""


@dataclass
class Contest:
    """The contestants of one algorithm on one graph.

    Parameters
    ----------
    has_source : bool
        Whether a run starts from a vertex.
    agree : callable
        Tells whether two answers are the same.
    runs : dict of Run
        By name.
    least_bytes : int
        That cross memory if every list is read once, and the answer is written.
    """

    has_source: bool
    agree: Callable[[Any, Any], bool]
    runs: dict[str, Run] = field(default_factory=dict)
    least_bytes: int = 0


class Gap:
    """A program of GAP on a graph file; each run is a process."""

    def __init__(self, folder: Path, program: str, graph: CSRGraph, threads: int) -> None:
        self.program, self.threads = folder / program, threads
        ending = "sg" if graph.weights is None else "wsg"
        self.file = Path(tempfile.mkdtemp()) / f"graph.{ending}"
        write(graph, self.file)

    def seconds(self, *arguments: object, trials: int = 1) -> float:
        command = [self.program, "-f", self.file, "-n", trials, *arguments]
        done = subprocess.run(
            [str(word) for word in command],
            env={"OMP_NUM_THREADS": str(self.threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        times = re.findall(r"Trial Time:\s*([\d.]+)", done.stdout)
        return statistics.median(map(float, times))


A = TypeVar("A", bound=Prepared)


@contextmanager
def opened(kind: type[A], edges: EdgeSource, options: argparse.Namespace) -> Iterator[A]:
    settings = EngineOptions(device=options.device, threads=options.threads)
    with open_analysis(kind, build_search_graph(edges), settings) as analysis:
        yield analysis


_LARGEST_WEIGHT = 255


def make_graph(
    name: str, weighted: bool, draws: bool, weight_type: str = "int32"
) -> EdgeList | CSRGraph:
    generated = re.fullmatch(r"(kronecker|grid)(\d+)", name)
    if generated is None and not (weighted and draws):
        return read(name, weighted=weighted)
    if generated is None:
        edges = read(name)
    elif generated[1] == "kronecker":
        edges = KroneckerEdges(int(generated[2])).materialise()
    else:
        edges = _grid(int(generated[2]))
    if not weighted:
        return edges
    drawn = np.random.default_rng(27491095).integers(1, _LARGEST_WEIGHT + 1, edges.src.size)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, weights=drawn.astype(weight_type))


def _grid(size: int) -> EdgeList:
    ids = np.arange(size * size, dtype=np.uint32).reshape(size, size)
    src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return EdgeList(src, dst, size * size)


def draw_sources(graph: CSRGraph, count: int) -> list[int]:
    able = np.flatnonzero(np.diff(graph.indptr))
    return np.random.default_rng(1).choice(able, count, replace=False).tolist()
