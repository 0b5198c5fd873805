"""The contestants of cpu_peers.py behind one interface; pip installs all but GAP and ours.

A contestant prepares a case, searches from a key, and is checked. Parents are not unique but levels
are. So every contestant's levels must equal those of our search, which check.py has checked.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from libraries import (
    ENVIRONMENT,
    edges_once,
    graphblas_matrix,
    load_graphblas,
    load_networkit,
    networkit_graph,
    timed,
)

import hetero_bfs as hb

UNTIMED_SECONDS = 0.02
"""Seconds of searches before the timed one; the cores' clocks rise in this time after a pause."""


@dataclass(frozen=True, eq=False)
class Case:
    """One graph, its .sg file, and the search keys; all contestants use the same."""

    name: str
    path: Path
    graph: hb.CSRGraph
    keys: list[int]

    @cached_property
    def edges(self) -> hb.EdgeList:
        return edges_once(self.graph)

    @cached_property
    def engine(self) -> hb.Engine:
        """Our engine, shared by the two contestants that time it."""
        return hb.Engine(self.graph, device="cpu")


class Contestant:
    """Prepares a graph, then searches it; the class attributes are for the tables."""

    name = ""
    gives = ""  # description of the timed work
    package = ""  # of pip
    needs = ""  # another package to install
    parallel = False
    what = "call"  # the one of our two times to compare with
    warms_itself = False

    @property
    def title(self) -> str:
        """Name of this contestant for the head of a column."""
        return f"{self.name} {self.what}"

    def prepare(self, case: Case) -> None:
        """Convert the graph to this contestant's format, untimed."""
        raise NotImplementedError

    def search(self, key: int) -> tuple[float, Any]:
        """Search once; return the seconds and the result in the contestant's own format."""
        raise NotImplementedError

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        """Convert a result to parents: the source its own, -1 where not reached."""
        raise NotImplementedError

    def version(self) -> str:
        return f"{self.package} {version(self.package)}"

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        """Search once and stop the program unless the levels are as expected; return seconds."""
        seconds, found = self.search(key)
        parents = self.parents(found, key)
        result = hb.BFSResult(key, parents, seconds, 0.0, case.graph.input_degree, False, list)
        outcome = hb.validate(case.edges, key, result.parent, result.level)
        if not outcome.valid:
            sys.exit(f"{self.name} on {case.name}: {outcome.message}")
        self.compare(case, key, result.level, expected)
        return seconds

    def compare(
        self, case: Case, key: int, level: npt.NDArray[np.int32], expected: npt.NDArray[np.int32]
    ) -> None:
        """Stop the program at a vertex whose level is not the expected one."""
        if not np.array_equal(level, expected):
            at = int((level != expected).argmax())
            sys.exit(
                f"{self.name} on {case.name} from {key}: vertex {at} is at level {level[at]}, "
                f"hetero_bfs has {expected[at]} (-1: not reached)"
            )


class OurCall(Contestant):
    name = "hetero_bfs"
    gives = "`engine.bfs(key)`: parents in the caller's ids"
    package = "hetero_bfs"
    parallel = True

    def prepare(self, case: Case) -> None:
        self.engine = case.engine

    def version(self) -> str:
        return f"{super().version()} (selector {self.engine.selector.name})"

    def search(self, key: int) -> tuple[float, Any]:
        return timed(self.engine.bfs, key)

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        return found.parent


class OurSearch(OurCall):
    """The search alone, as Graph500 times it."""

    gives = "`engine.search(key).seconds`: parents complete in the engine's memory, relabelled"
    what = "search"

    def search(self, key: int) -> tuple[float, Any]:
        return self.engine.search(key).seconds, None

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        return self.search(key)[0]  # the result is the same as the call's, which is checked


_PULL_SHARE = 50  # GraphBLAS pulls while the frontier has over 1 / 50 of the vertices


class GAP(Contestant):
    """GAP's bfs: a process for every turn; reading the file is not counted."""

    name = "GAP"
    gives = "its Trial Time: parents"
    parallel = True
    what = "search"
    warms_itself = True

    def __init__(self, folder: Path | None) -> None:
        if folder is None:
            raise ImportError("run make in a clone of sbeamer/gapbs, then give --gap DIR")
        self.folder = folder
        self.trials = 2

    def prepare(self, case: Case) -> None:
        self.path = case.path

    def search(self, key: int) -> tuple[float, Any]:
        text = self._run(key, "-n", self.trials)
        return gap_seconds(text, "Trial Time"), text

    def version(self) -> str:
        within = os.environ | {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        command = ["git", "-C", str(self.folder), "describe", "--always", "--dirty"]
        done = subprocess.run(command, env=within, capture_output=True, text=True)
        return f"GAP {done.stdout.strip() or 'of unknown commit'}"

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        text = self._run(key, "-n", 1, "-a", "-l", "-v")
        sizes = np.bincount(expected[expected >= 0]).tolist()
        if gap_findings(text) != (sum(sizes), sizes, True):
            sys.exit(
                f"GAP on {case.name} from {key}: reached, level sizes, verified: "
                f"{gap_findings(text)}; hetero_bfs has {sum(sizes)}, {sizes}"
            )
        seconds = gap_seconds(text, "Trial Time")
        # It prints multiples of 10 us, and 0 for a small graph: at most 200 searches for that.
        self.trials = 2 + int(UNTIMED_SECONDS / max(seconds, UNTIMED_SECONDS / 200))
        return seconds

    def _run(self, key: int, *arguments: object) -> str:
        return run_gap(self.folder / "bfs", "-f", self.path, "-r", key, *arguments)


def run_gap(*command: object) -> str:
    """Run one of GAP's programs and return what it printed."""
    arguments = [str(word) for word in command]
    done = subprocess.run(arguments, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def gap_seconds(text: str, label: str) -> float:
    """Return the last time that GAP printed under a label."""
    times = re.findall(rf"^{label}:\s+([\d.]+)$", text, re.MULTILINE)
    if not times:
        sys.exit(f"GAP printed no {label}, but: {text.strip()!r}")
    return float(times[-1])


def gap_findings(text: str) -> tuple[int, list[int], bool]:
    """Return vertices reached, vertices per level, and whether GAP's own check passed.

    Reads what `bfs -n 1 -a -l -v` prints; its steps td and bu name the vertices they found.
    """
    tree = re.search(r"^BFS Tree has (\d+) nodes", text, re.MULTILINE)
    steps = re.findall(r"^\s*(?:td|bu)\s+(\d+)\s", text, re.MULTILINE)
    sizes = [1, *(int(found) for found in steps if found != "0")]
    passed = re.search(r"^Verification:\s+PASS$", text, re.MULTILINE)
    return int(tree[1]) if tree else 0, sizes, passed is not None


class SciPy(Contestant):
    """scipy.sparse.csgraph, on the dtypes to which it would convert others at every call."""

    name = "SciPy"
    gives = "`breadth_first_order`: order and parents"
    package = "scipy"

    def __init__(self, folder: Path | None) -> None:
        self.csgraph = importlib.import_module("scipy.sparse.csgraph")

    def prepare(self, case: Case) -> None:
        from scipy.sparse import csr_array

        graph = case.graph
        indices, indptr = graph.indices.view(np.int32), graph.indptr.astype(np.int32)
        ones = np.ones(indices.size, np.float64)
        self.matrix = csr_array((ones, indices, indptr), (graph.num_vertices, graph.num_vertices))

    def search(self, key: int) -> tuple[float, Any]:
        return timed(self.csgraph.breadth_first_order, self.matrix, key)

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        parent = np.maximum(found[1], -1).astype(np.int64)
        parent[key] = key
        return parent


class NetworKit(Contestant):
    """NetworKit's BFS with all its results."""

    name = "NetworKit"
    gives = "`BFS` with storePaths: levels, all predecessors, numbers of paths"
    package = "networkit"
    store_paths = True

    def __init__(self, folder: Path | None) -> None:
        self.networkit = load_networkit()

    def prepare(self, case: Case) -> None:
        self.graph = networkit_graph(self.networkit, case.edges)

    def search(self, key: int) -> tuple[float, Any]:
        return timed(lambda: self.networkit.distance.BFS(self.graph, key, self.store_paths).run())

    def check(self, case: Case, key: int, expected: npt.NDArray[np.int32]) -> float:
        seconds, search = self.search(key)
        distance = np.array(search.getDistances())
        reached = distance < case.graph.num_vertices  # the rest have the largest float
        self.compare(case, key, np.where(reached, distance, -1).astype(np.int32), expected)
        return seconds


class NetworKitLevels(NetworKit):
    """NetworKit's BFS with levels only, since storing all predecessors is expensive."""

    name = "NetworKit levels"
    gives = "`BFS` without storePaths: levels only"
    store_paths = False


class GraphBLAS(Contestant):
    """A level-synchronous parent search in python-graphblas."""

    name = "GraphBLAS"
    gives = "a loop over levels, any_secondi: parents; pulls while the frontier is large"
    package = "python-graphblas"
    needs = "suitesparse-graphblas"
    parallel = True

    def __init__(self, folder: Path | None) -> None:
        self.graphblas = load_graphblas()

    def version(self) -> str:
        return f"{super().version()} (suitesparse-graphblas {version('suitesparse-graphblas')})"

    def prepare(self, case: Case) -> None:
        self.matrix = graphblas_matrix(self.graphblas, case.graph, True)

    def search(self, key: int) -> tuple[float, Any]:
        return timed(self._search, key)

    def _search(self, key: int) -> Any:
        n, matrix, parent_of = (
            self.matrix.nrows,
            self.matrix,
            self.graphblas.semiring.ss.any_secondi,
        )
        parent, frontier = (self.graphblas.Vector(np.int64, n) for _ in range(2))
        parent[key] = frontier[key] = key
        while size := frontier.nvals:
            pull = size * _PULL_SHARE > n  # the matrix is symmetric, so either side will do
            frontier(~parent.S, replace=True) << parent_of(
                matrix @ frontier if pull else frontier @ matrix
            )
            parent(frontier.S) << frontier
        return parent

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        return found.to_dense(fill_value=-1)


class IGraph(Contestant):
    """igraph's Python interface."""

    name = "igraph"
    gives = "`Graph.bfs`: order, layers and parents, as lists"
    package = "igraph"

    def __init__(self, folder: Path | None) -> None:
        self.igraph = importlib.import_module("igraph")

    def prepare(self, case: Case) -> None:
        edges = np.stack([case.edges.src, case.edges.dst], axis=1)
        self.graph = self.igraph.Graph(n=case.graph.num_vertices, edges=edges)

    def search(self, key: int) -> tuple[float, Any]:
        return timed(self.graph.bfs, key)

    def parents(self, found: Any, key: int) -> npt.NDArray[np.int64]:
        order, given = np.array(found[0]), np.array(found[2])
        parent = np.full(given.size, -1, np.int64)
        parent[order] = given[order]
        parent[key] = key
        return parent


PEERS: dict[str, Callable[[Path | None], Contestant]] = {
    "gap": GAP,
    "scipy": SciPy,
    "networkit": NetworKit,
    "networkit-levels": NetworKitLevels,
    "graphblas": GraphBLAS,
    "igraph": IGraph,
}
"""By the names of --peers; each is given the folder of GAP."""
