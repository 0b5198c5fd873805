"""Compare hetero_bfs.csgraph with scipy.sparse.csgraph, in turn in one run.

    python benchmarks/csgraph.py --graphs kronecker18,FILE --out DIR

writes csgraph.csv (a row for each graph and call, in seconds) and .md (a table), anew after every
call. Results are compared before they are timed. Weights are drawn from 1 to 255. Medians.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
import scipy.sparse
import scipy.sparse.csgraph
from libraries import timed
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs.graph.generators.families import named_graph

_ROUNDS = 3
_SOURCES = 16
_CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "breadth_first_order": lambda of, A, s: of.breadth_first_order(A, s[0]),
    "connected_components": lambda of, A, s: of.connected_components(A),
    "shortest_path, unweighted": lambda of, A, s: of.shortest_path(
        A, unweighted=True, indices=s[0]
    ),
    "dijkstra": lambda of, A, s: of.dijkstra(A, indices=s[0]),
    f"shortest_path, unweighted, {_SOURCES} sources": lambda of, A, s: of.shortest_path(
        A, unweighted=True, indices=s
    ),
    f"dijkstra, {_SOURCES} sources": lambda of, A, s: of.dijkstra(A, indices=s),
    f"dijkstra, nearest of {_SOURCES}": lambda of, A, s: of.dijkstra(A, indices=s, min_only=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="kronecker18", help="default: %(default)s")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.graphs.split(","):
        study = named_graph(name)
        matrix, sources = weighted_matrix(hb.CSRGraph.from_edge_source(study.make()))
        for call, function in _CASES.items():
            rows.append({"graph": study.name, "entries": matrix.nnz, "call": call})
            rows[-1] |= compare(function, matrix, sources)
            print(rows[-1], flush=True)
            write(rows, options)


def weighted_matrix(graph: hb.CSRGraph) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return a symmetric matrix of weights, and sources of at least one edge."""
    random = np.random.default_rng(1)
    n = graph.num_vertices
    weights = random.integers(1, 256, graph.num_stored_edges).astype(np.float64)
    matrix = scipy.sparse.csr_array(
        (weights, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)), shape=(n, n)
    )
    matrix = matrix.minimum(matrix.T).tocsr()
    return matrix, random.choice(np.flatnonzero(graph.degree()), _SOURCES, replace=False)


def compare(
    function: Callable[[Any, Any, Any], Any], matrix: Any, sources: Any
) -> dict[str, float]:
    sides = {"scipy": scipy.sparse.csgraph, "hetero_bfs": hb.csgraph}
    results = [function(side, matrix, sources) for side in sides.values()]
    np.testing.assert_array_equal(*(r[1] if isinstance(r, tuple) else r for r in results))
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(_ROUNDS):
        for side, module in sides.items():
            seconds[side].append(timed(function, module, matrix, sources)[0])
    medians = {side: statistics.median(all_seconds) for side, all_seconds in seconds.items()}
    return medians | {"over_scipy": medians["scipy"] / medians["hetero_bfs"]}


def write(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    table = pd.DataFrame(rows)
    shown = pd.DataFrame(
        {
            "graph": table["graph"],
            "call": table["call"],
            "SciPy, ms": table["scipy"].map(lambda s: f"{1e3 * s:.3g}"),
            "hetero_bfs, ms": table["hetero_bfs"].map(lambda s: f"{1e3 * s:.3g}"),
            "over SciPy": table["over_scipy"].map(lambda ratio: f"{ratio:.3g}x"),
        }
    )
    command = f"python benchmarks/csgraph.py --graphs {options.graphs} --out DIR"
    lines = [*provenance(None, command), f"- packages: scipy {scipy.__version__}"]
    title = "# hetero_bfs.csgraph beside SciPy"
    save(options.out, "csgraph", table, [title, "", *lines, "", markdown(shown)])


if __name__ == "__main__":
    run_script(main)
