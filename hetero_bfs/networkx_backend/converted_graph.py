"""A NetworkX graph as arrays: node objects, and neighbour lists in NetworkX's order."""

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
    """A graph of the backend; node i is the i-th node of NetworkX's graph.

    Parameters
    ----------
    successors, predecessors : Lists
        The same object if the graph is undirected. Parallel edges are one entry.
    weights : float64 array, shape (successors.indptr[-1],), optional
    integral : bool
        Whether all weights are Python integers; distances then are integers, too.
    weight_name : optional
        Name of the edge attribute that `weights` holds.
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
        array = np.empty(len(self.nodes), object)
        array[:] = self.nodes
        return array

    @cached_property
    def _adj(self) -> dict[Any, int]:
        """Id by node; `networkx.Graph` looks for nodes in an attribute of this name."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def may_overflow(self) -> bool:
        """Whether a weighted distance may exceed float64; NetworkX then returns infinity."""
        largest = 0.0 if self.weights is None else float(self.weights.max(initial=0.0))
        return largest > float(np.finfo(np.float64).max) / max(len(self), 1)

    @cached_property
    def components(self) -> tuple[VertexArray, int]:
        """Each node's component, numbered by first nodes, and their number."""
        from hetero_bfs.algorithms.components.kernels.numbered import number_components

        label = np.empty(len(self) + 1, np.uint32)
        count = int(number_components(*self.successors, label))
        return label[:-1], count

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
