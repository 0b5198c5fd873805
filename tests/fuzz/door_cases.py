"""Cases of the campaign `doors`: a list of edges, and what it means by plain Python."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import hetero_bfs as hb

Pairs = list[tuple[int, int]]
Weights = list[Any]
FORMS = ("plain", "read-only", "strided", "big-endian")
INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
_COMBINE = {"min": min, "max": max, "sum": lambda a, b: a + b}


@dataclass(frozen=True)
class DoorCase:
    """A list of edges, and how it is given and read.

    Parameters
    ----------
    num_vertices : int
    edges : list of pairs
        Loops and duplicates included.
    weights : list of int or float
        One for each pair, of `weight_type`.
    weight_type, id_type : str
        NumPy's types of the arrays.
    form : str
        One of `FORMS`, of the arrays.
    given_directed : bool
        Whether a graph that knows its direction is given as directed.
    directed, weighted : bool
        How it is read.
    rule : str
        How duplicates are combined.
    """

    num_vertices: int
    edges: Pairs
    weights: Weights
    weight_type: str = "int64"
    id_type: str = "int64"
    form: str = "plain"
    given_directed: bool = False
    directed: bool = False
    weighted: bool = True
    rule: str = "min"

    def text(self) -> str:
        """Return the case as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> DoorCase:
        """Read a case; ValueError or TypeError if it is not one."""
        case = cls(**json.loads(text))
        return replace(case, edges=[(u, v) for u, v in case.edges])

    def array(self, values: list[Any], dtype: str) -> np.ndarray:
        """Return values as an array of this type, in the form of the case."""
        array = np.array(values, dtype)
        if self.form == "big-endian":
            return array.astype(array.dtype.newbyteorder(">"))
        if self.form == "strided":
            return np.repeat(array, 3)[1::3]
        array.flags.writeable = self.form != "read-only"
        return array

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return source, target and weight arrays."""
        src, dst = ([pair[end] for pair in self.edges] for end in (0, 1))
        ends = (self.array(ids, self.id_type) for ids in (src, dst))
        return *ends, self.array(self.weights, self.weight_type)


@dataclass(frozen=True)
class Meaning:
    """The plain reference: edges that count, in their order, and the type of the weights."""

    case: DoorCase
    edges: Pairs
    weights: Weights
    weight_type: str
    num_vertices: int
    rule: str = "min"

    def both_ways(self) -> Meaning:
        """Return the edges of an undirected graph that is read as directed."""
        turned = [((v, u), w) for (u, v), w in zip(self.edges, self.weights, strict=True) if u != v]
        edges = self.edges + [pair for pair, _ in turned]
        return replace(self, edges=edges, weights=self.weights + [w for _, w in turned])

    def distinct(self, directed: bool, rule: str, loops: bool = True) -> Meaning:
        """Return each edge once."""
        found: dict[tuple[int, int], Any] = {}
        for (u, v), weight in zip(self.edges, self.weights, strict=True):
            pair = (u, v) if directed or u <= v else (v, u)
            if u != v or loops:
                found[pair] = _COMBINE[rule](found[pair], weight) if pair in found else weight
        return replace(self, edges=list(found), weights=list(found.values()))

    def without_zeros(self) -> Meaning:
        """Return the edges whose weight is not 0."""
        kept = [(e, w) for e, w in zip(self.edges, self.weights, strict=True) if w != 0]
        return replace(self, edges=[e for e, _ in kept], weights=[w for _, w in kept])

    def lists(self) -> list[dict[int, Any]]:
        """Return each vertex's neighbours with their weights."""
        found: list[dict[int, Any]] = [{} for _ in range(self.num_vertices)]
        for (u, v), weight in zip(self.edges, self.weights, strict=True):
            for a, b in [(u, v)] if self.case.directed else [(u, v), (v, u)]:
                if a != b:
                    combined = found[a].get(b)
                    combine = _COMBINE[self.rule]
                    found[a][b] = weight if combined is None else combine(combined, weight)
        return found

    def difference(self, graph: hb.CSRGraph) -> str | None:
        """Return what differs in a graph, None if nothing does."""
        lists = self.lists()
        degree = [0] * self.num_vertices
        for u, v in self.edges:
            if u != v:
                degree[u] += 1
                degree[v] += not self.case.directed
        right = {
            "directed": self.case.directed,
            "num_input_edges": len(self.edges),
            "num_self_loops": sum(u == v for u, v in self.edges),
            "indptr": [0, *np.cumsum([len(held) for held in lists]).tolist()],
            "indices": [v for held in lists for v in sorted(held)],
            "input_degree": degree,
        }
        if self.case.weighted:
            right["weights"] = [float(held[v]) for held in lists for v in sorted(held)]
            right["weight_dtype"] = np.dtype(self.weight_type)
        elif graph.weights is not None:
            return "there are weights"
        for name, wanted in right.items():
            value = getattr(graph, name)
            value = value.tolist() if isinstance(value, np.ndarray) else value
            if value != wanted:
                return f"{name} is {value}, expected {wanted}"
        return None


def held_type(weights: Weights, weight_type: str) -> str:
    """Return the type in which weights of a type are held."""
    if weight_type in FLOATS:
        return "float32" if weight_type == "float16" else weight_type
    return "int32" if all(-(2**31) <= w < 2**31 for w in weights) else "float64"


def plain(case: DoorCase) -> Meaning:
    """Return the edges as they are, with the case's rule."""
    held = held_type(case.weights, case.weight_type)
    return Meaning(case, case.edges, case.weights, held, case.num_vertices, case.rule)
