"""Families of graphs for training and comparing selectors, each generated from a seed on demand.

Family and parameters, by name (scale: log2 of the vertices):

    kronecker18          Graph500's
    kronecker18-45-15-25 R-MAT with A, B, C in hundredths, D being the rest
    uniform18            16 edges a vertex between uniformly drawn ends
    grid512              square grid of 512 vertices a side
    roads512             the same with 3 of 10 edges removed, similar to road networks
    small-world18        ring where each vertex is joined to its 8 next ones, 1 edge in 50 rewired
                         (Watts and Strogatz 1998)
    preferential18       each vertex joins 8 earlier ones by their degree (Barabasi and Albert 1999;
                         copy model of Batagelj and Brandes 2005, in the form of Sanders and Schulz
                         2016, which makes every edge independently)
    anything else        a graph file (graph/io)

Vertices keep the ids of their generator. Only R-MAT scrambles them, since its ids reveal the
degrees. Searches relabel skewed graphs by degree and high-diameter ones by locality. So shuffling
would affect only the small worlds, and real small worlds (crawls, meshes with shortcuts) also have
an order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, check_scale
from hetero_bfs.graph.io.registry import read
from hetero_bfs.support.files import printable

REWIRED_SHARE = 0.02
KEPT_SHARE = 0.7
NEIGHBOURS = 8
"""Edges added with each vertex of a small world or a preferential graph."""

_SEED = 2018


@dataclass(frozen=True)
class StudyGraph:
    """A graph of a study: its family, its name, and a function that makes its edges.

    `scale` is log2 of its vertices, rounded; None for a file.
    """

    family: str
    name: str
    make: Callable[[], EdgeSource]
    scale: int | None = None


def study_graphs(size: str = "quick", gpu: bool = False) -> list[StudyGraph]:
    """Return a study's graphs: one or two of each family except files, at each scale.

    On two cores the graphs of size "quick" are measured in seconds, "full" in minutes. With `gpu`
    they are 4 to 16 times larger. Raises `ValueError` for another size.
    """
    if size not in ("quick", "full"):
        raise ValueError(f'size is {size!r}; it must be "quick" or "full"')
    scales = {("quick", False): (15,), ("quick", True): (18,), ("full", False): (16, 18)}
    return [graph for scale in scales.get((size, gpu), (18, 20, 22)) for graph in families(scale)]


def families(scale: int) -> list[StudyGraph]:
    """Return graphs of about 2**scale vertices: two R-MAT graphs, one of each other family."""
    names = [f"kronecker{scale}", f"kronecker{scale}-45-15-25", f"uniform{scale}"]
    names += [f"grid{1 << scale // 2}", f"roads{1 << scale // 2}"]
    names += [f"small-world{scale}", f"preferential{scale}"]
    return [named_graph(name) for name in names]


def named_graph(name: str) -> StudyGraph:
    """Return the graph of a name in the head of this file, or of a path.

    Raises `GraphError` if the name is neither.
    """
    match = re.fullmatch(r"([a-z-]+?)(\d+)((?:-\d+){3})?", name)
    family = match[1] if match else ""
    if match and match[3] and family == "kronecker":
        a, b, c = (int(share) / 100 for share in match[3][1:].split("-"))
        quadrants = (a, b, c, round(1.0 - a - b - c, 2))
        edges = RMATEdges(int(match[2]), *quadrants, seed=_SEED)  # refuses shares below 0
        return StudyGraph(family, name, edges.materialise, edges.scale)
    if match and not match[3] and family in _MAKERS:
        size = int(match[2])
        scale = round(2 * math.log2(max(size, 1))) if family in ("grid", "roads") else size
        check_scale(scale, NEIGHBOURS)
        return StudyGraph(family, name, partial(_MAKERS[family], size), scale)
    path = Path(name)
    if not path.is_file():
        raise GraphError(
            f"{name} is neither a file nor a generated graph; generated are "
            f"{', '.join(f'{family}N' for family in _MAKERS)} and kroneckerN-A-B-C"
        )
    return graph_of_file(path)


def graph_of_file(path: Path, directed: bool = False) -> StudyGraph:
    """Return a file's graph, named by the file name up to the first dot."""
    name = printable(path.name).partition(".")[0]
    return StudyGraph("file", name, partial(read, path, directed))


def grid(rows: int, columns: int | None = None) -> EdgeList:
    """Make a grid numbered row by row; without `columns` it is square."""
    columns = columns or rows
    ids = np.arange(rows * columns, dtype=np.uint32).reshape(rows, columns)
    src = np.concatenate((ids[:, :-1].ravel(), ids[:-1].ravel()))
    dst = np.concatenate((ids[:, 1:].ravel(), ids[1:].ravel()))
    return EdgeList(src, dst, rows * columns)


def roads(
    rows: int,
    seed: int = _SEED,
    kept_share: float = KEPT_SHARE,
    columns: int | None = None,
) -> EdgeList:
    """Make a grid that keeps each edge with probability `kept_share`.

    Above 1/2 a giant component remains (bond percolation).
    """
    whole = grid(rows, columns)
    kept = np.random.default_rng(seed).random(whole.src.size, np.float32) < kept_share
    return EdgeList(whole.src[kept], whole.dst[kept], whole.num_vertices)


def small_world(
    scale: int,
    seed: int = _SEED,
    neighbours: int = NEIGHBOURS,
    rewired_share: float = REWIRED_SHARE,
) -> EdgeList:
    """Make a ring of 2**scale vertices, each joined to its next `neighbours`, partly rewired."""
    n = 1 << scale
    random = np.random.default_rng(seed)
    src = np.repeat(np.arange(n, dtype=np.uint32), neighbours)
    dst = src + np.tile(np.arange(1, neighbours + 1, dtype=np.uint32), n)
    dst &= np.uint32(n - 1)
    rewired = np.flatnonzero(random.random(src.size, np.float32) < rewired_share)
    dst[rewired] = random.integers(0, n, rewired.size, np.uint32)
    return EdgeList(src, dst, n)


def preferential(scale: int, seed: int = _SEED, neighbours: int = NEIGHBOURS) -> EdgeList:
    """Make a graph of 2**scale vertices that join earlier ones in proportion to their degree."""
    from hetero_bfs.graph.generators.kronecker_kernels import preferential_edges

    src, dst = (np.empty(neighbours << scale, np.uint32) for _ in range(2))
    preferential_edges(neighbours, np.uint64(seed), src, dst)
    return EdgeList(src, dst, 1 << scale)


def uniform(scale: int, seed: int = _SEED, edgefactor: int = 16) -> EdgeList:
    """Make `edgefactor` edges per vertex between uniformly drawn ends of 2**scale vertices."""
    return RMATEdges(scale, 0.25, 0.25, 0.25, 0.25, edgefactor, seed).materialise()


def _graph500(scale: int) -> EdgeList:
    return KroneckerEdges(scale).materialise()


_MAKERS: dict[str, Callable[[int], EdgeSource]] = {
    "kronecker": _graph500,
    "uniform": uniform,
    "grid": grid,
    "roads": roads,
    "small-world": small_world,
    "preferential": preferential,
}
