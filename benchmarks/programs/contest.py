"""Who takes part in a comparison, and our own entries in it."""

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

from benchmarks.libraries import timed
from hetero_bfs.algorithms.base import Prepared, open_analysis
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.io.registry import write
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
        """Return the median trial's seconds."""
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


def call(run: Callable[..., Any], answer: str, *arguments: Any) -> tuple[float, Any]:
    """Return a whole call's seconds and its answer, an attribute of its result."""
    seconds, result = timed(run, *arguments)
    return seconds, getattr(result, answer)


A = TypeVar("A", bound=Prepared)


@contextmanager
def opened(kind: type[A], edges: EdgeSource, options: argparse.Namespace) -> Iterator[A]:
    """Make the graph ready for one of our algorithms, with the script's options."""
    settings = EngineOptions(device=options.device, threads=options.threads)
    with open_analysis(kind, build_search_graph(edges), settings) as analysis:
        yield analysis
