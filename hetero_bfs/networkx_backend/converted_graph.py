"""A NetworkX graph as arrays: node objects with their ids, and neighbour lists in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.unsorted_lists import Lists


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
        Name of the attribute that has the weights.
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
        """The id of each node, in the attribute in which `networkx.Graph` looks for nodes."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def may_overflow(self) -> bool:
        """Whether a distance by weights may be beyond float64: NetworkX then returns infinity."""
        largest = 0.0 if self.weights is None else float(self.weights.max(initial=0.0))
        return largest > float(np.finfo(np.float64).max) / max(len(self), 1)

    @cached_property
    def components(self) -> tuple[VertexArray, int]:
        """Each node's component, numbered by first nodes, and the number of components."""
        from hetero_bfs.algorithms.components.kernels.numbered import number_components

        label = np.empty(len(self) + 1, np.uint32)
        count = int(number_components(*self.successors, label))
        return label[:-1], count

    def id_of(self, node: Any) -> int | None:
        """Return a node's id, None if it is not in the graph."""
        try:
            return self._adj.get(node)
        except TypeError:  # not hashable
            return None

    def id_of_hashable(self, node: Any) -> int | None:
        """Return what `id_of` does; raise TypeError for a node that cannot be hashed."""
        return self._adj.get(node)

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
