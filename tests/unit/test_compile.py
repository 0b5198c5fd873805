"""The cache of compiled kernels: fresh only while all kernel files are as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from graphs import nasty

import hetero_bfs
from hetero_bfs.graph.io import registry as io
from hetero_bfs.support.compiling import kernel, sources_digest

PROGRAM = """
import numpy as np
from hetero_bfs.selection.policy import choose, expectations
expectations(np.ones(12))
stats = expectations.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder: Path) -> tuple[int, int]:
    """Compile one kernel of a copy of the package; return hits and misses of the cache."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    hits, misses = output.split()
    return int(hits), int(misses)


def test_a_change_in_another_kernel_file_counts(tmp_path):
    package = Path(hetero_bfs.__file__).parent
    shutil.copytree(package, tmp_path / "hetero_bfs", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(tmp_path) == (0, 1)
    assert run(tmp_path) == (1, 0)
    other = tmp_path / "hetero_bfs" / "kernels" / "team.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert run(tmp_path) == (0, 1)


def test_kernels_carry_the_digest_of_all_sources():
    @kernel
    def twice(x):
        return 2 * x

    assert twice(21) == 42
    assert sources_digest() in twice._cache._cache_file._source_stamp


GRAPH500 = """
import gc, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from hetero_bfs.graph500 import protocol as graph500
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.build import build_search_graph
from hetero_bfs.algorithms.bfs.validate import validate

def compiled():
    functions = [f for f in gc.get_objects() if isinstance(f, Dispatcher)]
    return {(f.py_func.__qualname__, s) for f in functions for s in f.signatures}

edges = io.read(sys.argv[1], sys.argv[2] == "directed")
graph500._compile(graph500._tiny(edges), "auto")
before = compiled()
print(build_search_graph(edges).relabelling.order)
validate(edges, 0, np.where(np.arange(edges.num_vertices), -1, 0))
print(*sorted(name for name, _ in compiled() - before))
"""


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
