"""Graphs for tests: nasty shapes by name, and Hypothesis strategies of random ones.

Import as `from graphs import ...`: tests/conftest.py puts this folder on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import strategies as st

from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges

HUB_LEAVES = 5000


class SmallChunks(EdgeList):
    """An edge list that comes seven edges at a time."""

    def chunks(self, size=7):
        return super().chunks(min(size, 7))


def edge_list(pairs: Iterable, num_vertices: int, directed: bool = False) -> EdgeList:
    """Make an edge list of (u, v) pairs."""
    array = np.array(list(pairs) if not isinstance(pairs, np.ndarray) else pairs, np.uint32)
    array = array.reshape(-1, 2)
    return EdgeList(array[:, 0].copy(), array[:, 1].copy(), num_vertices, directed)


def two_paths(first: int, second: int, directed: bool = False) -> EdgeList:
    """Two paths of so many vertices each; the second begins at vertex `first`."""
    n = first + second
    pairs = [(v, v + 1) for v in range(n - 1) if v != first - 1]
    return replace(edge_list(pairs, n), directed=directed)


def path(length: int) -> EdgeList:
    """Vertices back to back, numbered along it."""
    return edge_list([(i, i + 1) for i in range(length - 1)], length)


def star(leaves: int) -> EdgeList:
    """Vertex 0 in the middle."""
    return edge_list([(0, i) for i in range(1, leaves + 1)], leaves + 1)


def late_hub(leaves: int) -> EdgeList:
    """Vertex 0 is a hub whose last neighbour alone leads to the last vertex.

    Searched bottom-up from the last vertex, the hub looks through its whole list, and its other
    leaves follow a level later.
    """
    return edge_list([(0, i) for i in range(1, leaves + 1)] + [(leaves, leaves + 1)], leaves + 2)


def clique_with_door(size: int, door: int) -> EdgeList:
    """A clique of which the second half knows vertex `door`, the last vertex's only neighbour."""
    inside = [v for v in range(size) if v != door]
    pairs = [(u, v) for i, u in enumerate(inside) for v in inside[:i]]
    pairs += [(door, v) for v in inside if v >= size // 2]
    return edge_list([*pairs, (door, size)], size + 1)


def hubs_beside_core(leaves: int, hubs: int = 3) -> EdgeList:
    """Hubs with that many leaves each, beside a Kronecker core that the last leaf of each leads to.

    Searched bottom-up from the core, a hub finds a parent at the end of its list, as the given
    numbers have it.
    """
    core = KroneckerEdges(9).materialise()
    first = np.arange(hubs) * (leaves + 1)
    pairs = [(hub, hub + leaf) for hub in first.tolist() for leaf in range(1, leaves + 1)]
    pairs += [(hub + leaves, hubs * (leaves + 1) + int(core.src[0])) for hub in first.tolist()]
    both = np.column_stack([core.src, core.dst]) + hubs * (leaves + 1)
    n = hubs * (leaves + 1) + core.num_vertices
    return edge_list(np.concatenate([np.array(pairs), both]), n)


def two_hubs(leaves: int) -> EdgeList:
    """Two joined hubs and a tail, so that hub lists begin and end within parts of the edges."""
    first = [(0, 2 + i) for i in range(leaves)]
    second = [(1, 2 + leaves + i) for i in range(leaves)]
    tail = [(2 + 2 * leaves + i, 1 + 2 * leaves + i) for i in range(5)]
    return edge_list([*first, (0, 1), *second, *tail], 2 + 2 * leaves + 5)


def grid(rows: int, columns: int) -> EdgeList:
    """Return a rectangular mesh."""
    ids = np.arange(rows * columns).reshape(rows, columns)
    across = np.column_stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()])
    down = np.column_stack([ids[:-1].ravel(), ids[1:].ravel()])
    return edge_list(np.concatenate([across, down]), rows * columns)


def roads(rows: int, columns: int) -> EdgeList:
    """Return a mesh with gaps and a hub: of high diameter, with unusual degrees."""
    whole, leaves = grid(rows, columns), 600
    random = np.random.default_rng(5)
    keep = random.random(whole.src.size) < 0.85
    hub = np.full(leaves, rows * columns // 2, np.uint32)
    others = rows * columns + np.arange(leaves, dtype=np.uint32)
    src = np.concatenate([whole.src[keep], hub])
    dst = np.concatenate([whole.dst[keep], others])
    return EdgeList(src, dst, rows * columns + leaves)


def complete(n: int) -> EdgeList:
    """Return every pair once."""
    return edge_list([(u, v) for u in range(n) for v in range(u)], n)


def random_graph(num_vertices: int, num_edges: int, seed: int) -> EdgeList:
    """Uniform edges, loops and duplicates included."""
    rng = np.random.default_rng(seed)
    return edge_list(rng.integers(0, num_vertices, (num_edges, 2)), num_vertices)


def _duplicates() -> EdgeList:
    pairs = [(0, 1), (1, 0), (0, 1), (2, 2), (1, 2), (2, 1), (3, 3), (3, 3), (2, 5), (2, 5)]
    return edge_list(pairs * 40, 7)


def _isolated() -> EdgeList:
    """Every third vertex only has neighbours, among them the first and last that have none."""
    base = random_graph(130, 260, 5)
    return EdgeList(base.src * 3 + 1, base.dst * 3 + 1, 400)


MAKERS: dict[str, Callable[[], EdgeList]] = {
    "no vertices": lambda: edge_list([], 0),
    "no edges": lambda: edge_list([], 5),
    "one vertex": lambda: edge_list([], 1),
    "one loop": lambda: edge_list([(0, 0)], 1),
    "loops only": lambda: edge_list([(v, v) for v in range(6)], 6),
    "one edge": lambda: edge_list([(1, 0)], 2),
    "duplicates": _duplicates,
    "isolated vertices": _isolated,
    "star": lambda: star(HUB_LEAVES),
    "late hub": lambda: late_hub(1500),
    "two hubs": lambda: two_hubs(747),
    "long path": lambda: path(1100),
    "cycle": lambda: edge_list([(i, (i + 1) % 97) for i in range(97)], 97),
    "complete": lambda: complete(70),
    "two components": lambda: edge_list([(0, 1), (1, 2), (4, 5), (5, 6), (6, 4), (4, 4)], 8),
    "grid": lambda: grid(40, 53),
    "tree": lambda: edge_list([(i, (i - 1) // 2) for i in range(1, 1000)], 1000),
    "sparse random": lambda: random_graph(2000, 2200, 1),
    "dense random": lambda: random_graph(300, 9000, 2),
    "Kronecker 10": lambda: KroneckerEdges(10).materialise(),
    "Kronecker 12": lambda: KroneckerEdges(12).materialise(),
    "R-MAT": lambda: RMATEdges(10, 0.45, 0.15, 0.3, 0.1, 8, seed=7).materialise(),
}
"""Every shape that has broken a breadth-first search, undirected."""

NAMES = list(MAKERS)
SEARCHABLE_NAMES = [name for name in NAMES if name != "no vertices"]


@cache
def nasty(name: str, directed: bool = False) -> EdgeList:
    """Return a graph by name; `directed` takes the same pairs as one-way edges."""
    return replace(MAKERS[name](), directed=directed)


def sources_of(edges: EdgeList, count: int = 3) -> list[int]:
    """First and last vertex, the busiest one, and some between: at most count + 2."""
    n = edges.num_vertices
    busiest = np.bincount(np.concatenate([edges.src, edges.dst]), minlength=n).argmax()
    between = np.linspace(0, n - 1, count, dtype=int)
    return sorted({0, n - 1, int(busiest), *between.tolist()})


@st.composite
def edge_lists(draw, max_vertices: int = 40, max_edges: int = 120, min_vertices: int = 1):
    """Any edges: loops, duplicates, isolated vertices; directed or not."""
    n = draw(st.integers(min_vertices, max_vertices))
    limit = max_edges if n else 0
    vertex = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=limit))
    return edge_list(pairs, n, draw(st.booleans()))


def core_with_tails(directed: bool = False) -> EdgeList:
    """A core, a vertex beside it with 200 neighbours there, paths that begin at those, and another
    component.
    """
    random = np.random.default_rng(5)
    core = random.integers(0, 20_000, (2, 120_000))
    hub = np.stack([np.full(200, 20_000 + 7 * 200), np.arange(200)])
    tails = np.arange(20_000, 20_000 + 7 * 200).reshape(200, 7)
    tails = np.concatenate([np.arange(200)[:, None], tails], axis=1)
    steps = np.concatenate([tails[:, :-1].ravel(), [22_000, 22_001]])
    after = np.concatenate([tails[:, 1:].ravel(), [22_001, 22_002]])
    ends = np.concatenate([core, hub, [steps, after]], axis=1)
    return EdgeList.from_arrays(*ends, num_vertices=22_003, directed=directed)
