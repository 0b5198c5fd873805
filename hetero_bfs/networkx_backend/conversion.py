"""Conversions between NetworkX's graphs and the backend's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.components.serial import Numbered, number_components
from hetero_bfs.graph.lists import ListedEdges, Lists
from hetero_bfs.options import EngineOptions
from hetero_bfs.support.checks import MOST_EXACT


@dataclass(eq=False)
class ConvertedGraph:
    """A graph of the backend; node i is the i-th node of NetworkX's graph.

    `successors` and `predecessors` are the same object if the graph is undirected. Parallel edges
    are one entry. `weights` holds the edges' attribute `weight_name`; if all are Python integers
    (`integral`), distances are integers, too. `graph` has the graph's attributes.
    """

    nodes: list[Any]
    directed: bool
    multigraph: bool
    successors: Lists = field(repr=False)
    predecessors: Lists = field(repr=False)
    weights: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    integral: bool = True
    weight_name: Any = None
    graph: dict[Any, Any] = field(default_factory=dict)

    __networkx_backend__ = "hetero"

    @cached_property
    def objects(self) -> npt.NDArray[np.object_]:
        array = np.empty(len(self.nodes), object)
        array[:] = self.nodes
        return array

    @cached_property
    def _adj(self) -> dict[Any, int]:
        """Id by node; `networkx.Graph` looks for nodes in an attribute of this name."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def edges(self) -> ListedEdges:
        return ListedEdges(self.successors, self.directed, self.weights)

    @property
    def options(self) -> EngineOptions:
        """The options of this graph's engines."""
        return EngineOptions(device=nx.config.backends.hetero.device, correction=False)

    @cached_property
    def may_overflow(self) -> bool:
        """Whether a weighted distance may exceed float64; NetworkX then returns infinity."""
        largest = 0.0 if self.weights is None else float(self.weights.max(initial=0.0))
        return largest > float(np.finfo(np.float64).max) / max(len(self), 1)

    @cached_property
    def components(self) -> Numbered:
        return number_components(self.successors)

    def id_of(self, node: Any) -> int | None:
        """None if the node is not in the graph."""
        try:
            return self._adj.get(node)
        except TypeError:  # not hashable
            return None

    def id_of_hashable(self, node: Any) -> int | None:
        """As `id_of`, but raises TypeError for a node that cannot be hashed."""
        return self._adj.get(node)

    def objects_of(self, ids: npt.NDArray[Any]) -> list[Any]:
        return self.objects[ids].tolist()  # type: ignore[no-any-return]

    def is_directed(self) -> bool:
        return self.directed

    def is_multigraph(self) -> bool:
        return self.multigraph

    def reverse(self, copy: bool = True) -> ConvertedGraph:
        """Return the graph with its edges turned round, without their weights."""
        lists = self.predecessors, self.successors
        return ConvertedGraph(self.nodes, self.directed, self.multigraph, *lists)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        return self.id_of(node) is not None

    @property
    def num_entries(self) -> int:
        """Entries of `successors`: an undirected edge counts twice."""
        return int(self.successors.indices.size)


Rows = Collection[Mapping[Any, Any]]


def convert_from_nx(
    graph: Any,
    edge_attrs: dict[Any, Any] | None = None,
    node_attrs: dict[Any, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Convert a NetworkX graph, with at most one edge attribute."""
    if preserve_edge_attrs or node_attrs or preserve_node_attrs or len(edge_attrs or ()) > 1:
        raise NotImplementedError("a converted graph has one attribute of its edges at most")
    nodes = list(graph)
    number = None if nodes == list(range(len(nodes))) else {v: i for i, v in enumerate(nodes)}
    successors = predecessors = _lists(graph, graph._adj, nodes, number)
    if graph.is_directed():
        predecessors = _lists(graph, graph._pred, nodes, number)
    converted = ConvertedGraph(
        nodes, graph.is_directed(), graph.is_multigraph(), successors, predecessors
    )
    if preserve_graph_attrs:
        converted.graph.update(graph.graph)
    if edge_attrs:
        [(attribute, default)] = edge_attrs.items()
        if graph.is_multigraph():
            raise NotImplementedError("weights of parallel edges are not combined")
        converted.weights, converted.integral = _weights(
            _rows(graph._adj, nodes), attribute, default
        )
        converted.weight_name = attribute
    return converted


def _rows(adjacency: Mapping[Any, Mapping[Any, Any]], nodes: list[Any]) -> Rows:
    if list(adjacency) != nodes:
        return [adjacency[node] for node in nodes]
    return adjacency.values() if type(adjacency) is dict else list(adjacency.values())


def _lists(
    graph: Any,
    adjacency: Mapping[Any, Mapping[Any, Any]],
    nodes: list[Any],
    number: dict[Any, int] | None,
) -> Lists:
    """Return neighbours' ids; without `number` each node equals its id."""
    rows = _rows(adjacency, nodes)
    indptr = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(nodes)), out=indptr[1:])
    ids: Iterable[Any] = chain.from_iterable(rows)
    if number is not None:
        ids = map(number.__getitem__, ids)
    return Lists(indptr, np.fromiter(ids, np.uint32, int(indptr[-1])))


def _weights(rows: Rows, attribute: Any, default: Any) -> tuple[npt.NDArray[np.float64], bool]:
    """Return the weights in the order of `rows`, and whether all are integers."""
    values = [data.get(attribute, default) for row in rows for data in row.values()]
    kinds = set(map(type, values))
    if not kinds <= {int, float, bool}:
        raise NotImplementedError(f"weights of types {kinds}")
    try:
        weights = np.array(values, np.float64)
    except OverflowError as error:
        raise NotImplementedError("integer weights that float64 does not hold") from error
    if weights.size and not (weights.min() >= 0 and weights.max() < np.inf):
        raise NotImplementedError("weights that are not finite, or below 0")
    integral = float not in kinds
    if integral and weights.max(initial=0) * len(rows) >= MOST_EXACT:
        raise NotImplementedError("integer weights whose sums are not exact as float64")
    if kinds > {float} and max(v for v in values if isinstance(v, int)) > MOST_EXACT:
        raise NotImplementedError("integer weights that are not exact as float64")
    return weights, integral


def convert_to_nx(result: Any, **_: Any) -> Any:
    if not isinstance(result, ConvertedGraph):
        return result
    kind = {
        (False, False): nx.Graph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (True, True): nx.MultiDiGraph,
    }[result.directed, result.multigraph]
    graph = kind(**result.graph)
    graph.add_nodes_from(result.nodes)
    indptr, indices = result.successors
    ends = result.objects_of(indices)
    starts = result.objects_of(np.repeat(np.arange(len(result)), np.diff(indptr)))
    if result.multigraph and not result.directed:
        keep = np.repeat(np.arange(len(result)), np.diff(indptr)) <= indices
        starts = [v for v, kept in zip(starts, keep, strict=True) if kept]
        ends = [v for v, kept in zip(ends, keep, strict=True) if kept]
    graph.add_edges_from(zip(starts, ends, strict=True))
    if result.weights is not None:
        values = result.weights.astype(np.int64) if result.integral else result.weights
        for start, end, value in zip(starts, ends, values.tolist(), strict=True):
            graph[start][end][result.weight_name] = value
    return graph
