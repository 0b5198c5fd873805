"""Nothing timed compiles."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from graphs import nasty

from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io import registry as io

GRAPH500 = """
import gc, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from pathlib import Path
from hetero_bfs.graph500.process import OneProcess
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph.search_graph import (build_search_graph,)
from hetero_bfs.algorithms.bfs.check import validate

def compiled():
    functions = [f for f in gc.get_objects() if isinstance(f, Dispatcher)]
    return {(f.py_func.__qualname__, s) for f in functions for s in f.signatures}

options = Graph500Options(graph=Path(sys.argv[1]), directed=sys.argv[2] == "directed")
process = OneProcess(options)
process.read()
process.compile()
edges = process.edges
before = compiled()
print(build_search_graph(edges).relabelling.order)
validate(edges, 0, np.where(np.arange(edges.num_vertices), -1, 0))
print(*sorted(name for name, _ in compiled() - before))
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "suffix", "way", "order"),
    [
        ("grid", ".txt", "undirected", "locality"),
        ("grid", ".hbg", "undirected", "locality"),
        ("Kronecker 10", ".hbg", "directed", "degree"),
        ("Kronecker 10", ".sg", "directed", "degree"),
    ],
)
def test_nothing_timed_compiles(tmp_path, name, suffix, way, order):
    """Graph500 builds and validates a tiny graph first: in a process that has compiled nothing."""
    path = tmp_path / f"graph{suffix}"
    io.write(nasty(name), path)
    done = subprocess.run(
        [sys.executable, "-c", GRAPH500, path, way], check=True, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[:2] == [order, ""]


SSSP = """
import gc, sys
from contextlib import closing
from numba.core.dispatcher import Dispatcher
from pathlib import Path
from hetero_bfs.graph500.process import OneProcess
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.options import EngineOptions

def compiled():
    functions = [f for f in gc.get_objects() if isinstance(f, Dispatcher)]
    return {(f.py_func.__qualname__, s) for f in functions for s in f.signatures}

engine = EngineOptions(device="cpu")
options = Graph500Options(
    "sssp", graph=Path(sys.argv[1]), directed=sys.argv[2] == "directed", engine=engine
)
process = OneProcess(options)
process.read()
process.compile()
before = compiled()
process.construct()
with closing(process.open()) as kernel:
    validator = kernel.make_validator(16)
    for key in (0, 1, 2):
        kernel.record(key, *kernel.search([key]), validator)
    print(*(outcome.valid for outcome in validator.finish()))
of_workers = {"run_worker", "shut_down", "await_phase"}  # they start before a clock does
print(*sorted({name for name, _ in compiled() - before} - of_workers))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("suffix", "way"), [(".txt", "undirected"), (".hbg", "directed"), (".wsg", "undirected")]
)
def test_nothing_timed_compiles_for_shortest_paths(tmp_path, suffix, way):
    edges = KroneckerEdges(10, weighted=True).materialise()
    path = tmp_path / f"graph{suffix}"
    if suffix == ".wsg":
        edges = replace(edges, weights=(edges.weights * 99).astype(np.int32))
    io.write(edges, path)
    for _ in range(2):  # while code is compiled anew, threads that start may compile parts of it
        done = subprocess.run(
            [sys.executable, "-c", SSSP, path, way], check=True, capture_output=True, text=True
        )
    assert done.stdout.split("\n")[:2] == ["True True True", ""]
