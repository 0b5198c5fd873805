"""Compare the first and later calls of `hb.bfs` and others with SciPy's and NetworkX's functions.

    python benchmarks/first_contact.py --out DIR
    python benchmarks/first_contact.py --cold --out DIR

The first writes first_contact.csv: a row for each graph and function, in seconds, medians, in turn
in one run with compiled code. "first" is a call on a graph that no call had before, "later" one
20 calls after its engine opened (or after --patience seconds of calls), "engine" a call of an open
`Engine`. NetworkX's calls that take seconds are made once. `limit` is the better of SciPy's time
plus 1 ms and of an engine's, `first_over` and `later_over` are seconds over SciPy's plus 1 ms, and
over `limit`. Without a function of SciPy's the engine's time alone counts.

The second writes first_contact_cold.csv: seconds of a process with empty caches, from its start to
the answer, on the karate club. The six real graphs are read from --data.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse
import scipy.sparse.csgraph as scipy_graphs
from libraries import timed
from tables import provenance, run_script

import hetero_bfs as hb
from hetero_bfs.engine.kept import kept_of
from hetero_bfs.graph.csr import replace_weights

_ROUNDS = 9
_SETTLING = 20  # calls after an engine opened: 8 of its answers are compared with one thread
_LONG_SECONDS = 1.0  # what takes longer is called once
_MANY = 16
_REAL = (
    "email-Enron",
    "p2p-Gnutella31",
    "soc-Slashdot0902",
    "dblp-2010",
    "moscow-roads",
    "cnr-2000",
)
_MADE: dict[str, Callable[[], nx.Graph]] = {
    "karate-club": nx.karate_club_graph,
    "path": lambda: nx.path_graph(10_000),
    "star": lambda: nx.star_graph(10_000),
    "cycle": lambda: nx.cycle_graph(10_000),
    "comb": lambda: caterpillar(100, 100),
    "caterpillar": lambda: caterpillar(5000, 1),
}

Call = Callable[[Any, int], Any]
OURS: dict[str, Call] = {
    "bfs": lambda of, s: of.bfs(s),
    "bfs_many": lambda of, s: of.bfs_many([s] * _MANY),
    "sssp": lambda of, s: of.sssp(s),
    "connected_components": lambda of, s: of.connected_components(),
    "pagerank": lambda of, s: of.pagerank(),
    "colour": lambda of, s: of.colour(),
}
SCIPYS: dict[str, Call] = {
    "bfs": scipy_graphs.breadth_first_order,
    "bfs_many": lambda A, s: scipy_graphs.shortest_path(A, unweighted=True, indices=[s] * _MANY),
    "sssp": lambda A, s: scipy_graphs.dijkstra(A, indices=s, return_predecessors=True),
    "connected_components": lambda A, s: scipy_graphs.connected_components(A, directed=False),
}
NETWORKXS: dict[str, Call] = {
    "bfs": nx.single_source_shortest_path_length,
    "sssp": nx.single_source_dijkstra_path_length,
    "connected_components": lambda G, s: list(nx.connected_components(G)),
    "pagerank": lambda G, s: nx.pagerank(G),
    "colour": lambda G, s: nx.greedy_color(G),
}


class OneLiners:
    """The functions of `hetero_bfs` on a graph, as methods."""

    def __init__(self, graph: hb.CSRGraph) -> None:
        self.graph = graph

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: getattr(hb, name)(self.graph, *given)


def caterpillar(spine: int, tooth: int) -> nx.Graph:
    """Return a path with a path of `tooth` further vertices at each of its `spine` vertices."""
    graph = nx.path_graph(spine)
    for v in range(spine):
        first = spine + v * tooth
        nx.add_path(graph, [v, *range(first, first + tooth)])
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default=",".join([*_MADE, *_REAL]), help="default: all")
    parser.add_argument("--functions", default=",".join(OURS), help="default: all")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="DIR")
    parser.add_argument("--patience", type=float, default=20.0, help="default: %(default)s")
    parser.add_argument("--cold", action="store_true", help="from empty caches instead")
    parser.add_argument("--answer", help=argparse.SUPPRESS)  # in a process with empty caches
    parser.add_argument("--out", type=Path, metavar="DIR", help="for the results")
    options = parser.parse_args()
    if options.answer:
        OURS[options.answer](
            OneLiners(weighted(hb.CSRGraph.from_networkx(_MADE["karate-club"]()))), 0
        )
        return
    if options.out is None:
        parser.error("--out is needed")
    rows = []
    for row in (cold if options.cold else warm)(options):
        rows.append(row)
        print(row, flush=True)
        options.out.mkdir(parents=True, exist_ok=True)
        name = "first_contact_cold.csv" if options.cold else "first_contact.csv"
        pd.DataFrame(rows).to_csv(options.out / name, index=False, float_format="%.4g")
    print("\n".join(provenance(None, " ".join(["python", *sys.argv]))))


def warm(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in options.graphs.split(","):
        if name in _MADE:
            graph = hb.CSRGraph.from_networkx(_MADE[name]())
        else:
            graph = hb.CSRGraph.from_edge_source(hb.load(options.data / f"{name}.txt.gz"))
        graph = weighted(graph)
        about = {"graph": name, "vertices": graph.num_vertices, "entries": graph.num_stored_edges}
        source = int(graph.degree().argmax())
        theirs = (matrix_of(graph), networkx_of(graph))
        for function in options.functions.split(","):
            yield about | {"function": function} | compare(function, graph, source, theirs, options)


def weighted(graph: hb.CSRGraph) -> hb.CSRGraph:
    return replace_weights(graph, np.ones(graph.num_stored_edges))


def matrix_of(graph: hb.CSRGraph) -> scipy.sparse.csr_array:
    lists = graph.weights, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    return scipy.sparse.csr_array(lists, shape=(graph.num_vertices,) * 2)


def networkx_of(graph: hb.CSRGraph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(graph.num_vertices))
    for src, dst in graph.chunks():
        made.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True), weight=1.0)
    return made


def compare(
    function: str, graph: hb.CSRGraph, source: int, theirs: Any, options: argparse.Namespace
) -> dict[str, float]:
    """Return the median seconds of each contestant, in turn, and the ratios."""
    call, (matrix, made) = OURS[function], theirs
    used = replace_weights(graph, graph.weights)
    began = time.perf_counter()
    while time.perf_counter() - began < options.patience and not kept_of(used).is_open:
        call(OneLiners(used), source)
    for _ in range(_SETTLING):
        call(OneLiners(used), source)
    with hb.Engine(graph, device="cpu") as engine:
        contestants: dict[str, Callable[[], Any]] = {
            "first": lambda: call(OneLiners(replace_weights(graph, graph.weights)), source),
            "later": lambda: call(OneLiners(used), source),
            "engine": lambda: call(engine, source),
        }
        if function in SCIPYS:
            contestants["scipy"] = lambda: SCIPYS[function](matrix, source)
        if function in NETWORKXS:
            contestants["networkx"] = lambda: NETWORKXS[function](made, source)
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(_ROUNDS + 1):
            for name, one in contestants.items():
                if not seconds[name] or seconds[name][0] < _LONG_SECONDS:
                    seconds[name].append(timed(one)[0])
    found = {name: statistics.median(all_[1:] or all_) for name, all_ in seconds.items()}
    found["is_open"] = kept_of(used).is_open
    of_scipy = found["scipy"] + 1e-3 if "scipy" in found else float("inf")
    found["limit"] = min(of_scipy, found["engine"])
    found["first_over"] = found["first"] / of_scipy
    found["later_over"] = found["later"] / found["limit"]
    return found


def cold(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for function in options.functions.split(","):
        row: dict[str, Any] = {"function": function}
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": folder}
            for when in ("empty caches", "afterwards"):
                command = [sys.executable, str(Path(__file__)), "--answer", function]
                row[when] = timed(lambda: subprocess.run(command, env=environment, check=True))[0]  # noqa: B023
        yield row


if __name__ == "__main__":
    run_script(main)
