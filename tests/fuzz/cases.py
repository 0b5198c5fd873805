"""Cases of the campaign `searches`: a graph, how it is made ready, and runs over it; as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from hetero_bfs.graph.edge_list import EdgeList

Pairs = list[tuple[int, int]]
Step = dict[str, Any]
"""Settings of one run, by name."""

PLACES = ("cpu", "device", "apart")
"""Where a case runs: the host, an OpenCL device, or that device as if it had its own memory."""

ORDERS = ("auto", "degree", "locality", "compact", "given")
_SIZES = (1, 2, 3, 5, 9, 20, 20, 65, 200, 800)
_LARGE = 2500  # vertices; one case in forty
_WEIGHT_TYPES = ("int32", "float32", "float64")


@dataclass(frozen=True)
class Case:
    """One graph, opened once, and the runs over it.

    Parameters
    ----------
    place : str
        One of `PLACES`.
    num_vertices : int
    edges : list of pairs
        Loops and duplicates included.
    directed : bool
    weights : list of float, optional
        One for each pair; multiples of 1/4, so that all types add them exactly.
    weight_type : str
    settings : dict
        What the graph is opened with.
    steps : list of dict
        The runs, in turn.
    """

    place: str
    num_vertices: int
    edges: Pairs
    directed: bool = False
    weights: list[float] | None = None
    weight_type: str = "float32"
    settings: dict[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def edge_list(self) -> EdgeList:
        """Return the graph as the package takes it."""
        ends = np.array(self.edges, np.int64).reshape(-1, 2)
        weights = None if self.weights is None else np.array(self.weights, self.weight_type)
        return EdgeList.from_arrays(*ends.T, self.num_vertices, self.directed, weights)

    def text(self) -> str:
        """Return the case as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Case:
        """Read a case.

        Raises
        ------
        ValueError, TypeError
            It is no case.
        """
        case = cls(**json.loads(text))
        return replace(case, edges=[tuple(pair) for pair in case.edges])


def draw_graph(chance: Random, weighted: bool) -> Case:
    """Return a case without runs: the graph, whether directed, the weights and the place."""
    n = _LARGE if chance.random() < 1 / 40 else chance.choice(_SIZES)
    pairs = chance.choice(list(_SHAPES.values()))(n, chance)
    if chance.random() < 0.4:
        pairs = pairs + chance.choices(pairs, k=chance.choice((1, 5))) if pairs else pairs
        pairs += [(v, v) for v in (chance.randrange(n) for _ in range(chance.choice((1, 3))))]
    n += chance.choice((0, 0, 1, 7))  # vertices without edges
    names = list(range(n))
    if chance.random() < 0.5:
        chance.shuffle(names)
        chance.shuffle(pairs)
    pairs = [(names[u], names[v]) for u, v in pairs]
    weights, weight_type = None, chance.choice(_WEIGHT_TYPES)
    if weighted:
        weights = [_weight(chance, weight_type) for _ in pairs]
    place = chance.choice(PLACES)
    return Case(place, n, pairs, chance.random() < 0.4, weights, weight_type)


def _weight(chance: Random, weight_type: str) -> float:
    whole = chance.choice((0, 1, 1, 2, 7, 255, chance.randrange(1000)))
    if weight_type == "int32":
        return chance.choice((whole, whole, whole, 2**31 - 1 - whole))
    return whole / 4


def _random(n: int, chance: Random) -> Pairs:
    count = int(n * chance.choice((0, 0.3, 1, 1.1, 4, 12)))
    return [(chance.randrange(n), chance.randrange(n)) for _ in range(count)]


def _path(n: int, chance: Random) -> Pairs:
    return [(v, v + 1) for v in range(n - 1)]


def _star(n: int, chance: Random) -> Pairs:
    middle = chance.randrange(n)
    return [(middle, v) if chance.random() < 0.8 else (v, middle) for v in range(n) if v != middle]


def _two_hubs(n: int, chance: Random) -> Pairs:
    tail = [(v, v + 1) for v in range(n // 2, min(n - 1, n // 2 + 6))]
    return [(v % 2, v) for v in range(2, n)] + [(0, 1)] * (n > 1) + tail


def _components(n: int, chance: Random) -> Pairs:
    size = chance.choice((1, 2, 3, 5))
    return [(v, v + 1) for v in range(n - 1) if (v + 1) % size]


def _bipartite(n: int, chance: Random) -> Pairs:
    half = n // 2
    if not half:
        return []
    return [(chance.randrange(half), chance.randrange(half, n)) for _ in range(3 * n)]


def _grid(n: int, chance: Random) -> Pairs:
    columns = max(math.isqrt(n), 1)
    across = [(v, v + 1) for v in range(n - 1) if (v + 1) % columns]
    return across + [(v, v + columns) for v in range(n - columns)]


def _tails(n: int, chance: Random) -> Pairs:
    """Return a dense core with chains, which may end in a second core."""
    core = max(n // chance.choice((2, 3, 8)), 1)
    second = chance.choice((0, core // 2))
    end = n - min(second, n - core)
    length = max((end - core) // chance.choice((1, 2, 5, 40)), 1)
    pairs = [(chance.randrange(core), chance.randrange(core)) for _ in range(4 * core)]
    pairs += [(chance.randrange(end, n), chance.randrange(end, n)) for _ in range(4 * (n - end))]
    for v in range(core, end):
        at = (v - core) % length
        pairs.append((v - 1 if at else chance.randrange(core), v))
        if end < n and at == length - 1:
            pairs.append((v, chance.randrange(end, n)))
    return pairs


def _comb(n: int, chance: Random) -> Pairs:
    tooth = chance.choice((2, 3, 10, 100))
    return [(v - 1 if v % tooth else v - tooth, v) for v in range(1, n)]


def _downhill(n: int, chance: Random) -> Pairs:
    """Return edges to smaller vertices only, which have a sink if they are directed."""
    return [(v, chance.randrange(v)) for v in range(1, n) for _ in range(chance.choice((1, 2)))]


def _complete(n: int, chance: Random) -> Pairs:
    few = min(n, 45)
    return [(u, v) for u in range(few) for v in range(u)]


_SHAPES: dict[str, Callable[[int, Random], Pairs]] = {
    "random": _random, "path": _path, "star": _star, "two hubs": _two_hubs, "grid": _grid,
    "components": _components, "bipartite": _bipartite, "downhill": _downhill,
    "complete": _complete, "tails": _tails, "comb": _comb,
}  # fmt: skip
