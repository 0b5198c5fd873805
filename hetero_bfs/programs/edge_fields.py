"""Fields of edges: the caller's arrays, and their places in a graph's lists.

The caller gives each field a value for each entry of the neighbour lists of its graph, in the order
of the CSR arrays. Runs read lists of renumbered vertices, in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.support.checks import refuse_masked

Entries = npt.NDArray[np.intp]
Keys = npt.NDArray[np.uint64]


def checked_edges(
    values: Mapping[str, Any], kinds: Mapping[str, str], num_entries: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of edges' fields, in the fields' types.

    Raises `ArgumentError` if one is missing, has not one value an entry, or has a wider type.
    """
    arrays = {}
    for name, kind in kinds.items():
        refuse_masked(f"edge field {name}", values.get(name))
        array = np.asarray(values.get(name))
        if array.shape != (num_entries,) or not np.can_cast(array.dtype, kind, "same_kind"):
            given = (
                f"of shape {array.shape} and type {array.dtype}" if name in values else "missing"
            )
            raise ArgumentError(
                f"the edges' field {name} is {given}; give engine.run(..., {name}=array) a {kind} "
                f"for each entry of the graph's neighbour lists, shape ({num_entries},), in the "
                "order of CSRGraph.indices"
            )
        arrays[name] = array.astype(kind, copy=False)
    return arrays


def caller_entries(
    graph: CSRGraph, names: VertexArray, along: str, forward: CSRGraph, backward: CSRGraph
) -> dict[str, Entries]:
    """Return the entry of the caller's CSR arrays for each entry of `forward`, by the name "", and
    of `backward`, by "backward_".

    `graph` has the renumbered vertices, `names` their numbers in the caller's graph. `forward` and
    `backward` have the receivers and the senders of messages sent `along` its edges.
    """
    ids = names.astype(np.uint64)
    known = np.sort(_keys(graph, ids, np.False_))

    def found(lists: CSRGraph, flipped: Any) -> Entries:
        return np.searchsorted(known, _keys(lists, ids, flipped))

    if along != "both":
        against = np.bool_(along == "in")
        return {"": found(forward, against), "backward_": found(backward, ~against)}
    own = np.zeros(forward.num_vertices, np.int64)  # its entries come before the transposed ones
    own[: graph.num_vertices] = graph.degree()
    degree = forward.degree()
    place = np.arange(forward.num_stored_edges) - np.repeat(forward.indptr[:-1], degree)
    both = found(forward, place >= np.repeat(own, degree))
    return {"": both, "backward_": both}


def in_caller_order(written: npt.NDArray[Any], entries: Entries) -> npt.NDArray[Any]:
    """Return a field that the program has written, given its entries' places by `entries`."""
    field = np.empty_like(written)
    field[entries] = written
    return field


def _keys(lists: CSRGraph, ids: Keys, flipped: Any) -> Keys:
    """Return a number for each entry, which orders them as the caller's CSR arrays do."""
    owner, other = np.repeat(ids[: lists.num_vertices], lists.degree()), ids[lists.indices]
    first, second = np.where(flipped, other, owner), np.where(flipped, owner, other)
    keys: Keys = first * np.uint64(ids.size) + second
    return keys
