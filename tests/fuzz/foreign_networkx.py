"""Graphs of NetworkX with odd attributes: `from_networkx`, and the backend beside NetworkX."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import networkx as nx
import numpy as np

import hetero_bfs as hb
from hetero_bfs.networkx_backend import backend_interface  # noqa: F401  NetworkX loads it
from tests.fuzz.foreign_doors import Unlike, outcome, same_graph

_USUAL = (0, 1, 2, 3, 0.0, 0.5, 2.5, 1)
_ODD = (
    True, np.int8(3), np.uint64(2**63), np.float32(0.5), np.float64(2.0), np.float16(1.5),
    np.bool_(1), np.longdouble(1), 2**31, 2**53 + 1, 2**70, 10**400, -1, -0.5, math.nan, math.inf,
    -math.inf, 1e308, 1e-320, None, "1", "", b"2", 1j, Decimal("1.5"), Fraction(1, 3), [1], (2,),
    np.array(2), np.array([2.0]), np.ma.masked, np.datetime64(3, "s"),
)  # fmt: skip
_NODES = (0, 1, 2, 3, "a", "b", ("t", 1), 1.5, frozenset({7}), -4, 2**70, Fraction(1, 3))
_CUTOFFS = (None, None, None, 0, 2.5, math.inf, math.nan, -1, "a", Fraction(5, 2), np.float32(2))
_KINDS = (nx.Graph, nx.DiGraph, nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


def try_networkx(chance: Random) -> None:
    """Call a function with a graph of NetworkX."""
    nodes = list(_NODES if chance.random() < 0.3 else range(len(_NODES)))
    nodes = nodes[: chance.choice((1, 2, 5, 12))]
    graph = chance.choice(_KINDS)()
    graph.add_nodes_from(nodes)
    values = (*_USUAL, chance.choice(_ODD)) if chance.random() < 0.6 else _USUAL
    for _ in range(chance.choice((0, 1, 5, 20))):
        u, v, value = chance.choice(nodes), chance.choice(nodes), chance.choice(values)
        if u == v and chance.random() < 0.8:
            continue
        attributes = {"weight": value} if chance.random() < 0.8 else {}
        graph.add_edge(u, v, **attributes)
    chance.choice((_from_networkx, _dijkstra, _pagerank, _search))(chance, graph)


def _plain_number(value: Any) -> float | None:
    """Return a weight that must be taken as a float; None for anything else."""
    if isinstance(value, np.longdouble) or not isinstance(
        value, int | float | np.integer | np.floating | np.bool_
    ):
        return None
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:
        return None


def _from_networkx(chance: Random, graph: Any) -> None:
    weight = chance.choice((None, "weight", "weight", "absent"))
    directed = chance.choice((None, True, False))
    number = {node: i for i, node in enumerate(graph.nodes)}
    given = (
        list(graph.edges(data=weight, default=1)) if weight else [(*e[:2], 1) for e in graph.edges]
    )
    values = [_plain_number(value) for _, _, value in given]
    sound = None not in values
    extended = any(isinstance(value, np.longdouble) for _, _, value in given)
    found = outcome(
        lambda: hb.CSRGraph.from_networkx(graph, directed, weight),
        sound,
        sound or extended,
        f"from_networkx, directed={directed}",
    )
    if found is None or not sound:
        return
    edges = [(number[u], number[v], w) for (u, v, _), w in zip(given, values, strict=True)]
    ways = graph.is_directed() if directed is None else directed
    if ways and not graph.is_directed():
        edges += [(v, u, w) for u, v, w in edges]
    same_graph(found, len(number), edges, ways, weight is not None)


# The backend


def _answer(function: Any, *arguments: Any, **options: Any) -> Any:
    """Return a call's result, or the type of its exception."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = function(*arguments, **options)
            return list(found) if hasattr(found, "__next__") else found
    except Exception as error:
        return type(error)


def _compare(name: str, exact: bool, *arguments: Any, **options: Any) -> None:
    function = getattr(nx, name)
    found = _answer(function, *arguments, backend="hetero", **options)
    if found is NotImplementedError:
        return  # left to NetworkX
    expected = _answer(function, *arguments, backend="networkx", **options)
    if name.endswith("_length"):  # equal distances are in the order of the nodes
        alike = found == expected
    elif exact and _has_fractions(arguments[0]):
        alike = _ordered(found) == _ordered(expected)  # integers may be floats
    elif exact:
        alike = repr(found) == repr(expected)  # types and order count
    elif expected is nx.PowerIterationFailedConvergence and isinstance(found, dict):
        return  # the backend needs fewer iterations
    elif isinstance(expected, dict) and isinstance(found, dict):
        wrong = np.abs(np.subtract(list(found.values()), list(expected.values()))).sum()
        alpha = float(options.get("alpha", 0.85))  # both are right within this bound
        bound = 2 * len(found) * float(options["tol"]) * alpha / (1 - alpha) + 1e-9
        alike = list(found) == list(expected) and wrong <= bound
    else:
        alike = found == expected
    if not alike:
        raise Unlike(f"{name}, {options}: {found!r}, in NetworkX {expected!r}")


def _weight_of(data: Any) -> float:
    weight = data.get("weight", 1.0) if isinstance(data, dict) else 1.0
    return _plain_number(weight) or 0.0


def _has_fractions(graph: Any) -> bool:
    """Tell whether a weight is no integer; then all lengths are floats, also those of integers."""
    weights = (data.get("weight", 1) for *_, data in graph.edges(data=True))
    return not all(isinstance(weight, int | np.integer | np.bool_) for weight in weights)


def _ordered(answer: Any) -> Any:
    """Return an answer with lists of items instead of dicts, whose order then counts."""
    if isinstance(answer, tuple):
        return [_ordered(part) for part in answer]
    return list(answer.items()) if isinstance(answer, dict) else answer


def _dijkstra(chance: Random, graph: Any) -> None:
    name = chance.choice(("single_source_dijkstra", "single_source_dijkstra_path"))
    options = {"cutoff": chance.choice(_CUTOFFS), "weight": chance.choice(("weight", None, 3))}
    source = chance.choice((*graph.nodes, "absent", None, [1], math.nan))
    if name == "single_source_dijkstra":
        options["target"] = chance.choice((None, None, *graph.nodes, "absent"))
    with nx.config(warnings_to_ignore={"cache"}):
        _compare(name, True, graph, source, **options)


def _search(chance: Random, graph: Any) -> None:
    functions = {
        "bfs_edges": "depth_limit", "bfs_predecessors": "depth_limit",
        "descendants_at_distance": "distance", "single_source_shortest_path": "cutoff",
        "single_source_shortest_path_length": "cutoff",
    }  # fmt: skip
    name = chance.choice(list(functions))
    source = chance.choice((*graph.nodes, "absent", None, [1], math.nan))
    with nx.config(warnings_to_ignore={"cache"}):
        _compare(name, True, graph, source, **{functions[name]: chance.choice(_CUTOFFS)})


def _pagerank(chance: Random, graph: Any) -> None:
    with np.errstate(all="ignore"):
        sums = [sum(map(_weight_of, row.values())) for row in graph._adj.values()]
    if any(map(math.isinf, sums)):
        return  # NetworkX loses the node's mass, the backend scales its weights
    shares: Any = None
    if chance.random() < 0.6:
        values = (*_USUAL, chance.choice(_ODD))
        shares = {node: chance.choice(values) for node in graph.nodes if chance.random() < 0.7}
    options: dict[str, Any] = {
        "personalization": shares,
        "weight": chance.choice(("weight", "weight", None)),
        "tol": 1e-9,
        "max_iter": 1000,
    }
    if chance.random() < 0.2:
        options[chance.choice(("alpha", "tol", "max_iter"))] = chance.choice((*_ODD, 0.5, 3, 0))
    with nx.config(warnings_to_ignore={"cache"}):
        _compare("pagerank", False, graph, **options)
