"""A NetworkX graph as arrays: node objects with their ids, and neighbour lists in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import CHUNK_EDGES, NO_VERTEX, OffsetArray, VertexArray


class Lists(NamedTuple):
    """Neighbour lists in NetworkX's order, with self-loops.

    Parameters
    ----------
    indptr : int64 array, shape (num_nodes + 1,)
    indices : uint32 array, shape (indptr[-1],)
    """

    indptr: OffsetArray
    indices: VertexArray


@dataclass(eq=False)
class ConvertedGraph:
    """A graph of the backend; node i is the i-th of NetworkX's graph.

    Parameters
    ----------
    nodes : list
        The node objects.
    directed, multigraph : bool
    successors, predecessors : Lists
        The same lists if the graph is undirected. Parallel edges are one entry.
    weights : float64 array, shape (successors.indptr[-1],), optional
    integral : bool
        Whether all weights are Python's integers, so that distances are, too.
    weight_name : optional
        The attribute that the weights are.
    graph : dict
        The graph's attributes.
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
        """The node objects, shape (num_nodes,)."""
        array = np.empty(len(self.nodes), object)
        array[:] = self.nodes
        return array

    @cached_property
    def _adj(self) -> dict[Any, int]:
        """The id of each node, under the name by which `networkx.Graph` looks for nodes."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def components(self) -> tuple[VertexArray, int]:
        """The number of each node's component, by first nodes, and how many there are."""
        from hetero_bfs.algorithms.bfs.kernels.queue_order import label_components

        label = np.full(len(self), NO_VERTEX, np.uint32)
        queue = np.empty(len(self), np.uint32)
        count = label_components(self.successors, self.predecessors, self.directed, queue, label)
        return label, int(count)

    def id_of(self, node: Any) -> int | None:
        """Return a node's id, None if it is not in the graph."""
        try:
            return self._adj.get(node)
        except TypeError:  # not hashable
            return None

    def objects_of(self, ids: npt.NDArray[Any]) -> list[Any]:
        """Return the node objects of these ids."""
        return self.objects[ids].tolist()  # type: ignore[no-any-return]

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether the graph may have parallel edges."""
        return self.multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        return self.id_of(node) is not None

    @property
    def num_entries(self) -> int:
        """Entries of the successors' lists: an undirected edge counts twice."""
        return int(self.successors.indices.size)


@dataclass(frozen=True)
class ListedEdges:
    """The edges of a converted graph, a source for `Engine`; see `EdgeSource`."""

    converted: ConvertedGraph

    @property
    def num_vertices(self) -> int:
        """Number of nodes."""
        return len(self.converted)

    @property
    def num_input_edges(self) -> int:
        """Number of edges; an undirected one counts once, parallel ones as one."""
        entries = self.converted.num_entries
        return entries if self.directed else -(-entries // 2)

    @property
    def directed(self) -> bool:
        """As the graph."""
        return self.converted.directed

    @property
    def both_directions(self) -> bool:
        """True for an undirected graph."""
        return not self.converted.directed

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Type of the weights, None without weights."""
        weights = self.converted.weights
        return None if weights is None else weights.dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield every entry as (src, dst)."""
        for _, src, dst in self._cut(size):
            yield src, dst

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, npt.NDArray[np.float64]]]:
        """Yield every entry as (src, dst, weights)."""
        weights = self.converted.weights
        assert weights is not None
        for where, src, dst in self._cut(size):
            yield src, dst, weights[where]

    def _cut(self, size: int) -> Iterable[tuple[slice, VertexArray, VertexArray]]:
        indptr, indices = self.converted.successors
        for start in range(0, indices.size, size):
            where = slice(start, min(start + size, indices.size))
            first, last = np.searchsorted(indptr, (start, where.stop - 1), side="right") - 1
            cut = np.clip(indptr[first : last + 2], start, where.stop)
            src = np.repeat(np.arange(first, last + 1, dtype=np.uint32), np.diff(cut))
            yield where, src, indices[where]
