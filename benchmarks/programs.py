"""Shortest paths of hetero_bfs beside GAP and SciPy: same graphs, same sources, in turn in one run.

    python -m benchmarks.programs --graph kronecker18 grid1024 --gap FOLDER --out FOLDER

GRAPH is kroneckerN, gridN (N x N vertices) or a file. Generated graphs, and with --draw files too,
get random integer weights from 1 to 255. --gap names the folder of GAP's built `sssp`. It runs with
that delta of --deltas that is the fastest from the first source. Our distances are checked once for
each graph, and compared with SciPy's from every source where the graph is small enough for that.

Writes programs.csv (a row for each graph and contestant: median, least and greatest milliseconds)
and programs.md, with the machine, the versions, the command and the commit.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import scipy.sparse.csgraph

import hetero_bfs as hb
from benchmarks.tables import markdown, provenance, run_script
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read, write
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.path_searches import PathSearches, open_paths

_LARGEST_WEIGHT = 255
_SCIPY_EDGES = 1 << 25  # stored edges up to which SciPy takes part


def weighted_graph(name: str, draws: bool) -> hb.EdgeList | hb.CSRGraph:
    """Return a graph by name, with weights."""
    generated = re.fullmatch(r"(kronecker|grid)(\d+)", name)
    if generated is None and not draws:
        return read(name, weighted=True)
    size = 0 if generated is None else int(generated[2])
    if generated is None:
        edges = read(name)
        src, dst, n = edges.src, edges.dst, edges.num_vertices
    elif generated[1] == "kronecker":
        edges = KroneckerEdges(size).materialise()
        src, dst, n = edges.src, edges.dst, edges.num_vertices
    else:
        ids = np.arange(size * size, dtype=np.uint32).reshape(size, size)
        src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
        dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
        n = size * size
    weights = np.random.default_rng(27491095).integers(1, _LARGEST_WEIGHT + 1, src.size)
    return EdgeList(src, dst, n, weights=weights.astype(np.int32))


def draw_sources(graph: hb.CSRGraph, count: int) -> list[int]:
    """Draw vertices that have edges."""
    able = np.flatnonzero(np.diff(graph.indptr))
    return np.random.default_rng(1).choice(able, count, replace=False).tolist()


class Gap:
    """GAP's `sssp` on a .wsg file; each call is a process that runs it some times."""

    def __init__(self, folder: Path, graph: hb.CSRGraph, threads: int, deltas: list[int]) -> None:
        self.program, self.threads, self.deltas = folder / "sssp", threads, deltas
        self.file = Path(tempfile.mkdtemp()) / "graph.wsg"
        write(graph, self.file)

    def choose_delta(self, source: int) -> int:
        """Return the fastest delta from a source."""
        return min(self.deltas, key=lambda delta: self.seconds(source, delta, 3))

    def seconds(self, source: int, delta: int, trials: int) -> float:
        """Return the median trial's seconds."""
        command = [self.program, "-f", self.file, "-r", source, "-n", trials, "-d", delta]
        done = subprocess.run(
            [str(word) for word in command],
            env={"OMP_NUM_THREADS": str(self.threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        times = re.findall(r"Trial Time:\s*([\d.]+)", done.stdout)
        return statistics.median(map(float, times))


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one graph."""
    edges = weighted_graph(name, options.draw)
    graph = hb.CSRGraph.from_edge_source(edges) if isinstance(edges, EdgeList) else edges
    sources = draw_sources(graph, options.sources)
    times: dict[str, list[float]] = defaultdict(list)
    gap = None
    if options.gap is not None:
        gap = Gap(options.gap, graph, options.threads, options.deltas)
    delta = None if gap is None else gap.choose_delta(sources[0])
    searched = build_search_graph(edges)
    device = None if options.devices == "cpu" else open_paths(searched).device
    info = None if device is None else device.device.info
    with PathSearches(searched, options.threads, info) as searches:
        for place in searches.places:
            result = searches.search(sources[0], place)
            check = hb.check_paths(edges, sources[0], result.distance, result.parent)
            check.raise_if_invalid()
        for source in sources:
            _measure_source(source, graph, searches, (gap, delta), options.rounds, times)
    rows = []
    for contestant, seconds in times.items():
        row = {
            "graph": Path(name).name.partition(".")[0],
            "contestant": contestant,
            "median_ms": 1e3 * statistics.median(seconds),
            "least_ms": 1e3 * min(seconds),
            "greatest_ms": 1e3 * max(seconds),
            "searches": len(seconds),
        }
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


def _measure_source(
    source: int,
    graph: hb.CSRGraph,
    searches: PathSearches,
    peer: tuple[Gap | None, int | None],
    rounds: int,
    times: dict[str, list[float]],
) -> None:
    """Run every contestant in turn from one source, some rounds."""
    distances = None
    gap, delta = peer
    for place in searches.places:
        searches.search(source, place)
    for _ in range(rounds):
        for place in searches.places:
            result = searches.search(source, place)
            times[f"hetero_bfs {place}"].append(result.seconds)
            if distances is not None and not np.array_equal(result.distance, distances):
                sys.exit(f"{place} finds other distances from {source}")
            distances = result.distance
        if gap is not None and delta is not None:
            times[f"GAP, delta {delta}"].append(gap.seconds(source, delta, 1))
    if graph.num_stored_edges <= _SCIPY_EDGES:
        lists = graph.weights.astype(np.float64), graph.indices.astype(np.int32), graph.indptr
        matrix = scipy.sparse.csr_array(lists, (graph.num_vertices,) * 2)
        started = time.perf_counter()
        expected = scipy.sparse.csgraph.dijkstra(matrix, indices=source)
        times["SciPy dijkstra"].append(time.perf_counter() - started)
        if not np.allclose(expected, distances, rtol=1e-6):
            sys.exit(f"SciPy finds other distances from {source}")


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--graph", nargs="+", default=["kronecker16", "grid512"], metavar="GRAPH")
    add("--draw", action="store_true", help="draw weights for the edges of files")
    add("--gap", type=Path, metavar="FOLDER", help="folder of GAP's built programs")
    add("--deltas", type=int, nargs="+", default=[1, 2, 16, 64, 256], help="GAP's, to try")
    add("--threads", type=int, default=2)
    add("--devices", choices=("all", "cpu"), default="all")
    add("--sources", type=int, default=8)
    add("--rounds", type=int, default=5)
    add("--out", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    rows = [row for name in options.graph for row in measure(name, options)]
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(options.out / "programs.csv", index=False)
        words = " ".join(["python -m benchmarks.programs", *sys.argv[1:]])
        info = None if options.devices == "cpu" else choose_device(None)
        text = [*provenance(info, words), "", markdown(pd.DataFrame(rows).round(3))]
        (options.out / "programs.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    run_script(main)
