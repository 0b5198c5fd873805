"""Compare the NetworkX backend with NetworkX and with other backends, in turn in one run.

    python benchmarks/networkx_backend.py --graphs kronecker18,FILE --out DIR
    python benchmarks/networkx_backend.py --threshold --out DIR

The first writes networkx_backend.csv (a row for each graph, function and contestant, in seconds)
and .md (a table), anew after every graph. Results are compared before they are timed. "First call"
converts the graph; "converted" has a conversion in NetworkX's cache. Medians; what takes seconds is
called once. Times of the process's CPU are there, too, as other work on the machine lengthens the
wall's. "hetero, engine" is hetero after its engine opened, where the function has one.
graphblas-algorithms takes part if it is installed. nx-parallel has no function from one source.

The second writes networkx_threshold.csv: CPU seconds of a search by NetworkX and of a first call of
the backend, for graphs of rising size, where least_edges is read off.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from libraries import edges_once
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs.engine import kept
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.networkx_backend.traversal import levels_from

_LONG_SECONDS = 1.0  # what takes longer is called once
_ROUNDS = 5
_CASES: dict[str, Callable[..., Any]] = {
    "single_source_shortest_path_length": lambda G, s, **to: nx.single_source_shortest_path_length(
        G, s, **to
    ),
    "bfs_edges": lambda G, s, **to: list(nx.bfs_edges(G, s, **to)),
    "bfs_layers": lambda G, s, **to: list(nx.bfs_layers(G, s, **to)),
    "eccentricity": lambda G, s, **to: nx.eccentricity(G, s, **to),
    "connected_components": lambda G, s, **to: list(nx.connected_components(G, **to)),
    "is_connected": lambda G, s, **to: nx.is_connected(G, **to),
    "single_source_dijkstra_path_length": lambda G, s, **to: nx.single_source_dijkstra_path_length(
        G, s, **to
    ),
    "pagerank": lambda G, s, **to: nx.pagerank(G, **to),
}
_WITH_ENGINE = {"single_source_shortest_path_length", "eccentricity"}
"""Functions that search without an engine first and with one later."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="kronecker18", help="default: %(default)s")
    parser.add_argument("--functions", default=",".join(_CASES), help="default: all")
    parser.add_argument("--threshold", action="store_true", help="look for least_edges instead")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    options = parser.parse_args()
    unknown = set(options.functions.split(",")) - _CASES.keys()
    if unknown:
        parser.error(f"--functions: known are {', '.join(_CASES)}")
    nx.config.warnings_to_ignore.add("cache")
    compile_all()
    if options.threshold:
        thresholds(options.out)
        return
    rows: list[dict[str, Any]] = []
    for name in options.graphs.split(","):
        study = named_graph(name)
        graph, source = networkx_graph(hb.CSRGraph.from_edge_source(study.make()))
        for function in options.functions.split(","):
            rows += compare(study.name, function, graph, source)
            print(pd.DataFrame(rows).tail(6).to_string(), flush=True)
            write(rows, options)


def networkx_graph(csr: hb.CSRGraph) -> tuple[nx.Graph, int]:
    """Return the largest component as a NetworkX graph with nodes 0 to n - 1, and its hub."""
    labels = hb.connected_components(csr).component
    largest = np.bincount(labels).argmax()
    new = np.cumsum(labels == largest) - 1
    edges = edges_once(csr)
    kept = labels[edges.src] == largest
    graph = nx.Graph()
    graph.add_nodes_from(range(int(new[-1]) + 1))
    graph.add_edges_from(np.column_stack([new[edges.src[kept]], new[edges.dst[kept]]]).tolist())
    return graph, int(np.argmax([len(row) for row in graph._adj.values()]))


def compile_all() -> None:
    small = nx.path_graph(50)
    for function in _CASES.values():
        function(small, 0, backend="hetero")
    open_engine(small)


def open_engine(graph: nx.Graph) -> None:
    for converted in graph.__networkx_cache__["backends"]["hetero"].values():
        levels_from(converted, 0, coming=10**12)


class Contestant:
    """A way to call a function: each time with the cache that belongs to it."""

    def __init__(self, backend: str, kind: str, engine: bool = False) -> None:
        self.name = f"{backend}, engine" if engine else backend
        self.backend, self.kind, self.engine = backend, kind, engine
        self.cache: dict[str, Any] = {}
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []

    def prepare(self, call: Callable[..., Any], graph: nx.Graph, source: int) -> Any:
        """Fill the cache, unless calls are to convert; return the result."""
        graph.__networkx_cache__.clear()
        result = call(graph, source, backend=self.backend)
        if self.engine:
            open_engine(graph)
            result = call(graph, source, backend=self.backend)
        if self.kind == "converted":
            self.cache = dict(graph.__networkx_cache__)
        return result

    def take_turn(self, call: Callable[..., Any], graph: nx.Graph, source: int) -> None:
        """Time a call; leave out further ones that take seconds."""
        if self.seconds and self.seconds[0] > _LONG_SECONDS:
            return
        graph.__networkx_cache__.clear()
        graph.__networkx_cache__.update(self.cache)
        if not self.engine:
            for one in kept._KEPT.values():
                one.chooser.spent.clear()  # else an engine opens in one of the rounds
        cpu_before, before = time.process_time(), time.perf_counter()
        call(graph, source, backend=self.backend)
        self.seconds.append(time.perf_counter() - before)
        self.cpu_seconds.append(time.process_time() - cpu_before)

    def row(self) -> dict[str, Any]:
        return {
            "backend": self.name,
            "kind": self.kind,
            "calls": len(self.seconds),
            "seconds": statistics.median(self.seconds),
            "cpu_seconds": statistics.median(self.cpu_seconds),
        }


def compare(name: str, function: str, graph: nx.Graph, source: int) -> list[dict[str, Any]]:
    call = _CASES[function]
    contestants = [Contestant("networkx", "converted")]
    graphblas = nx.utils.backends.backend_info.get("graphblas", {})
    for backend in (
        "hetero",
        *(["graphblas"] if function in graphblas.get("functions", ()) else []),
    ):
        contestants += [Contestant(backend, kind) for kind in ("first call", "converted")]
    if function in _WITH_ENGINE:
        contestants.append(Contestant("hetero", "converted", engine=True))
    expected = call(graph, source, backend="networkx")
    for contestant in contestants[1:]:
        found = contestant.prepare(call, graph, source)
        if function == "bfs_layers" and contestant.backend == "graphblas":  # in another order
            found, expected = list(map(set, found)), list(map(set, expected))
        check(function, expected, found)
    for _ in range(_ROUNDS):
        for contestant in contestants:
            contestant.take_turn(call, graph, source)
    rows = [contestant.row() for contestant in contestants]
    about = {"graph": name, "nodes": len(graph), "edges": graph.number_of_edges()}
    ratios = {"seconds": "over_networkx", "cpu_seconds": "cpu_over_networkx"}
    return [
        {**about, "function": function, **row}
        | {ratio: rows[0][unit] / row[unit] for unit, ratio in ratios.items()}
        for row in rows
    ]


def check(function: str, expected: Any, found: Any) -> None:
    if function == "pagerank":
        bound = len(expected) * 1e-6 * 0.85 / 0.15  # of each one's error, by the default tol
        assert sum(abs(expected[v] - found[v]) for v in expected) < 2 * bound
    else:
        assert found == expected, function


def write(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    table = pd.DataFrame(rows)
    shown = table[["graph", "function", "backend", "kind"]].copy()
    for column in ("seconds", "cpu_seconds"):
        shown[column.replace("seconds", "ms")] = table[column].map(lambda s: f"{1e3 * s:.3g}")
    for column in ("over_networkx", "cpu_over_networkx"):
        shown[column] = table[column].map(lambda ratio: f"{ratio:.3g}x")
    command = f"python benchmarks/networkx_backend.py --graphs {options.graphs} --out DIR"
    peers = [
        "networkx",
        *(["graphblas-algorithms"] if "graphblas" in set(table["backend"]) else []),
    ]
    packages = [f"{name} {version(name)}" for name in peers]
    lines = [*provenance(None, command), f"- packages: {', '.join(packages)}"]
    text = ["# The NetworkX backend", "", *lines, "", markdown(shown)]
    save(options.out, "networkx_backend", table, text)


def thresholds(out: Path) -> None:
    rows = []
    for scale in range(6, 15):
        graph, source = networkx_graph(hb.kronecker(scale, edgefactor=8))
        contestants = [Contestant("networkx", "converted"), Contestant("hetero", "first call")]
        for _ in range(3 * _ROUNDS):
            for contestant in contestants:
                contestant.take_turn(_CASES["single_source_shortest_path_length"], graph, source)
        medians = {each.backend: each.row()["cpu_seconds"] for each in contestants}
        rows.append({"entries": 2 * graph.number_of_edges(), "nodes": len(graph), **medians})
        print(rows[-1], flush=True)
    out.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(out / "networkx_threshold.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    run_script(main)
