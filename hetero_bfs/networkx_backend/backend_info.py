"""The description that NetworkX reads at its own import; this module therefore imports nothing."""

from __future__ import annotations

from typing import Any

LEAST_EDGES = 30_000
"""Fewest edges that a call must read for a conversion to pay; NetworkX runs smaller calls itself.

An undirected edge counts twice. Both took the same time at 25,612
(benchmarks/results/pocl-2-cores/networkx_threshold.csv).
"""

_EXACT = "In NetworkX's order."
_SORTED = "In NetworkX's order; `sort_neighbors` is left to NetworkX."
_NEAREST_FIRST = "Nearest first, equal distances in the order of the graph's nodes."
_PATHS = "The paths that NetworkX finds; `weight` is left to NetworkX."
_MEASURES = "`weight`, `sp` and `e` are left to NetworkX."
_NUMBERS = "Weights are finite integers and floats of at least 0; multigraphs are left to NetworkX."
_SETS = "By each component's first node."

FUNCTIONS = {
    "all_pairs_shortest_path": _EXACT,
    "all_pairs_shortest_path_length": _NEAREST_FIRST,
    "bfs_edges": _SORTED,
    "bfs_layers": _EXACT,
    "bfs_predecessors": _SORTED,
    "bfs_successors": _SORTED,
    "bfs_tree": _SORTED,
    "bidirectional_shortest_path": "The path that NetworkX finds.",
    "connected_components": _SETS,
    "descendants_at_distance": "",
    "diameter": _MEASURES,
    "eccentricity": _MEASURES,
    "greedy_color": "Strategy largest_first on undirected graphs without loops: the same colours.",
    "has_path": "",
    "is_connected": "",
    "is_weakly_connected": "",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": "Within `tol`. `nstart`, `dangling`, self-loops are left to NetworkX. " + _NUMBERS,
    "shortest_path": _PATHS,
    "shortest_path_length": "`weight` is left to NetworkX. " + _NEAREST_FIRST,
    "single_source_dijkstra": "The paths that NetworkX finds. " + _NUMBERS,
    "single_source_dijkstra_path": "The paths that NetworkX finds. " + _NUMBERS,
    "single_source_dijkstra_path_length": _NEAREST_FIRST + " " + _NUMBERS,
    "single_source_shortest_path": _EXACT,
    "single_source_shortest_path_length": _NEAREST_FIRST,
    "single_target_shortest_path": _EXACT,
    "single_target_shortest_path_length": _NEAREST_FIRST,
    "weakly_connected_components": _SETS,
}
"""The functions, by NetworkX's names, each with its order and its restrictions."""


def get_info() -> dict[str, Any]:
    functions = {name: {"additional_docs": text} for name, text in FUNCTIONS.items()}
    return {
        "backend_name": "hetero",
        "project": "hetero_bfs",
        "package": "hetero_bfs",
        "short_summary": "Compiled and parallel searches by hetero_bfs.",
        "default_config": {"device": "cpu", "least_edges": LEAST_EDGES},
        "functions": functions,
    }
