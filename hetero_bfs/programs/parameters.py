"""A run's arguments, and the places of edges' fields in a graph's lists.

The caller gives each field of edges a value for each entry of the neighbour lists of its graph, in
the order of the CSR arrays. Runs read lists of renumbered vertices, in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.programs.codegen.method_source import FIELD_TYPES, Digits, Source, of_argument
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.support.checks import refuse_masked
from hetero_bfs.support.messages import shown

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


def _keys(lists: CSRGraph, ids: Keys, flipped: Any) -> Keys:
    """Return a number for each entry, which orders them as the caller's CSR arrays do."""
    owner, other = np.repeat(ids[: lists.num_vertices], lists.degree()), ids[lists.indices]
    first, second = np.where(flipped, other, owner), np.where(flipped, owner, other)
    keys: Keys = first * np.uint64(ids.size) + second
    return keys


@dataclass(frozen=True)
class Parameters:
    """A run's arguments: numbers, and arrays with a value or a vector per vertex (caller's ids)."""

    integers: Mapping[str, int]
    fractions: Mapping[str, float]
    arrays: Mapping[str, npt.NDArray[Any]]
    edges: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    """A value for each entry of the caller's CSR arrays; `checked_edges` returns them."""

    @classmethod
    def of(cls, values: Mapping[str, Any], num_vertices: int, edges: Any = ()) -> Parameters:
        """Sort parameters by kind, without those that `edges` names.

        Raises `ArgumentError` if one is neither a number nor an array with one number per vertex,
        and `GraphError` if entries of an array are masked.
        """
        integers: dict[str, int] = {}
        fractions: dict[str, float] = {}
        left_out = edges if isinstance(edges, Mapping) else ()
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in sorted(values.items()):  # compiled code is cached by their order
            if name in left_out:
                continue
            if isinstance(value, RunOptions):
                raise ArgumentError(
                    f"{name} holds options, which are not a parameter; give them without a name: "
                    "engine.run(program, hb.RunOptions(...))"
                )
            refuse_masked(f"parameter {name}", value)
            if isinstance(value, np.ndarray) and value.ndim:
                arrays[name] = _checked_array(name, value, num_vertices)
                continue
            number = value
            if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf":
                number = value.item()
            if isinstance(number, int) and -(2**63) <= number < 2**63:
                integers[name] = number
            elif isinstance(number, float):
                fractions[name] = number
            else:
                raise ArgumentError(
                    f"parameter {name} is {shown(value)}; give a number of 64 bits, or a "
                    f"NumPy array of {num_vertices} of them"
                )
        return cls(integers, fractions, arrays)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Values that methods can read, by name. Python's numbers have weak types."""
        kinds = {n: "bool" if isinstance(v, bool) else "int64" for n, v in self.integers.items()}
        numbers = {n: Source("", n, kind, kind != "bool") for n, kind in kinds.items()}
        numbers |= {name: Source("", name, "float64", True) for name in self.fractions}
        for name, array in self.arrays.items():
            length = f"({array.shape[1]},)" if array.ndim > 1 else ""
            numbers[name] = Source("", name, f"{length}{array.dtype.name}", False)
        return numbers

    def fields(self, num_vertices: int) -> dict[str, npt.NDArray[Any]]:
        """Return memory on the host for the arguments of runs, by name."""
        return {
            "integers": np.zeros(len(self.integers) + 1, np.int64),
            "fractions": np.zeros(len(self.fractions) + 1),
            **{
                f"parameter_{name}": np.empty((num_vertices, *array.shape[1:]), array.dtype)
                for name, array in self.arrays.items()
            },
        }

    def write(self, fields: Mapping[str, npt.NDArray[Any]], names: VertexArray) -> None:
        """Write a run's arguments to `fields`; `names` are the caller's ids of its vertices."""
        fields["integers"][: len(self.integers)] = list(self.integers.values())
        fields["fractions"][: len(self.fractions)] = list(self.fractions.values())
        for name, array in self.arrays.items():
            fields[f"parameter_{name}"][:] = array[names]

    @cached_property
    def digits(self) -> dict[str, Digits]:
        values: dict[str, Any] = {**self.integers, **self.fractions, **self.arrays}
        return {name: of_argument(value) for name, value in values.items()}


def _checked_array(name: str, array: npt.NDArray[Any], num_vertices: int) -> npt.NDArray[Any]:
    fits = array.shape[:1] == (num_vertices,) and array.ndim < 3 and array[:1].size
    if not (fits or array.shape == (0,) == (num_vertices,)) or array.dtype.name not in FIELD_TYPES:
        raise ArgumentError(
            f"parameter {name} is an array of shape {array.shape} and type {array.dtype}; give one "
            f"value a vertex, shape ({num_vertices},), or a vector a vertex, such as shape "
            f"({num_vertices}, 8), of {', '.join(FIELD_TYPES)}"
        )
    native = array.dtype.name  # in the machine's byte order
    return np.asarray(array).astype(native, copy=False)
