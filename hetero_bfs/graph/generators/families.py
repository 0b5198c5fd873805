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
    tails18-8x500        kronecker18 with 8 chains of 500 vertices, a core with long thin tails
    tails-uniform18-8x500    the same with another core: uniform, small-world, preferential, grid...
    tails18-8x500-second14   the same with chains that end in a second core, here kronecker14
    comb300x200          path of 300 vertices, each with a tooth of 200 vertices
    A+500+B              two graphs of this list, joined by a chain of 500 vertices
    anything else        a graph file (graph/io)

A chain starts and ends at drawn vertices of at least 3 edges. Tails, combs and joined graphs are
one family: a search of them has many small levels, before or after large ones.

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
from hetero_bfs.graph.edge_list import EdgeList, listed
from hetero_bfs.graph.edge_source import EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, check_scale
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.list_checks import MAX_VERTICES
from hetero_bfs.support.checks import check_integer
from hetero_bfs.support.files import printable

REWIRED_SHARE = 0.02
KEPT_SHARE = 0.7
NEIGHBOURS = 8
"""Edges added with each vertex of a small world or a preferential graph."""

TAILS = "tails"
"""The family of cores with tails, combs and joined graphs."""

_SEED = 2018
SEEDS = {"seed1": KroneckerEdges.seed1, "seed2": KroneckerEdges.seed2, "families": _SEED}
"""All seeds of generated graphs and of their search keys, for records of runs."""

_LEVEL_SECONDS = {"grid": 2.0, "roads": 2.0, TAILS: 5.0}  # of families with many levels
_FILE_SCALE = 18  # about that of the real graphs that we know

_LEAST_DEGREE = 3  # of the vertices where chains start and end, if there are such vertices


@dataclass(frozen=True)
class StudyGraph:
    """A graph of a study: its family, its name, and a function that makes its edges.

    `scale` is log2 of its vertices, rounded; None for a file.
    """

    family: str
    name: str
    make: Callable[[], EdgeSource]
    scale: int | None = None

    @property
    def cost(self) -> float:
        """About the seconds of measuring all strategies on this graph, or a multiple of them.

        Processor seconds of 21 graphs of scales 14 to 18 on an AMD EPYC with PoCL, 2026-11-27.
        """
        size = _FILE_SCALE if self.scale is None else self.scale
        return _LEVEL_SECONDS.get(self.family, 0.3) + 1.3e-5 * float(1 << size)


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
    """Return graphs of about 2**scale vertices of each family: two of R-MAT, three of tails."""
    side = 1 << scale // 2
    names = [f"kronecker{scale}", f"kronecker{scale}-45-15-25", f"uniform{scale}"]
    names += [f"grid{side}", f"roads{side}"]
    names += [f"small-world{scale}", f"preferential{scale}"]
    names += [f"tails{scale}-8x{side}", f"tails-uniform{scale}-4x{side}-second{max(scale - 2, 1)}"]
    names += [f"comb{side}x{side}"]
    return [named_graph(name) for name in names]


def named_graph(name: str) -> StudyGraph:
    """Return the graph of a name in the head of this file, or of a path."""
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
    if Path(name).is_file():
        return graph_of_file(Path(name))
    found = _named_tails(name) or _named_comb(name) or _named_joined(name)
    if found is None:
        raise GraphError(
            f"{name} is neither a file nor a generated graph; generated are "
            f"{', '.join(f'{family}N' for family in _MAKERS)}, kroneckerN-A-B-C, "
            "tailsN-CHAINSxLENGTH, combNxLENGTH and A+LENGTH+B"
        )
    return found


def _named_tails(name: str) -> StudyGraph | None:
    match = re.fullmatch(r"tails(?:-([a-z-]+))??(\d+)-(\d+)x(\d+)(?:-second(\d+))?", name)
    family = (match[1] or "kronecker") if match else ""
    if match is None or family not in _MAKERS:
        return None
    core = named_graph(f"{family}{match[2]}")
    second = named_graph(f"{family}{match[5]}") if match[5] else None
    return with_tails(name, core, int(match[3]), int(match[4]), second)


def _named_comb(name: str) -> StudyGraph | None:
    match = re.fullmatch(r"comb(\d+)x(\d+)", name)
    if match is None:
        return None
    spine, tooth = int(match[1]), int(match[2])
    num_vertices = _check_chains(spine, tooth, spine)
    return StudyGraph(TAILS, name, partial(comb, spine, tooth), round(math.log2(num_vertices)))


def _named_joined(name: str) -> StudyGraph | None:
    match = re.fullmatch(r"(.+?)\+(\d+)\+(.+)", name)
    if match is None:
        return None
    first, second = named_graph(match[1]), named_graph(match[3])
    name = f"{first.name}+{match[2]}+{second.name}"
    return with_tails(name, first, 1, int(match[2]), second)


def with_tails(
    name: str,
    core: StudyGraph,
    chains: int,
    length: int,
    second: StudyGraph | None = None,
    seed: int = _SEED,
) -> StudyGraph:
    """Return a graph's `tails`: the graph `name`, made from the graphs of `core` and `second`."""
    scale, ends = None, [core] if second is None else [core, second]
    sizes = [1 << graph.scale for graph in ends if graph.scale is not None]
    num_vertices = _check_chains(chains, length, sum(sizes))
    if len(sizes) == len(ends):
        scale = round(math.log2(num_vertices))

    def make() -> EdgeList:
        return tails(core.make(), chains, length, None if second is None else second.make(), seed)

    return StudyGraph(TAILS, name, make, scale)


def graph_of_file(path: Path, directed: bool = False) -> StudyGraph:
    name = printable(path.name).partition(".")[0]
    return StudyGraph("file", name, partial(read, path, directed))


def grid(rows: int, columns: int | None = None) -> EdgeList:
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


def tails(
    core: EdgeSource,
    chains: int,
    length: int,
    second: EdgeSource | None = None,
    seed: int = _SEED,
) -> EdgeList:
    """Add chains of `length` vertices to a graph; with `second` each of them ends in that graph.

    Chains start and end at drawn vertices of at least 3 edges, at different ones if there are
    enough. The ids are the core's, then each chain's from its start, one chain after the other,
    then the second graph's. All edges are undirected and have no weights.
    """
    core, random = listed(core), np.random.default_rng(seed)
    begin = core.num_vertices
    end = num_vertices = _check_chains(chains, length, begin)
    inner = np.arange(begin, end, dtype=np.uint32).reshape(chains, length)
    columns = [_chain_ends(core, chains, random), inner]
    src, dst = [core.src], [core.dst]
    if second is not None:
        second = listed(second)
        num_vertices = _check_chains(chains, length, begin + second.num_vertices)
        columns.append(_chain_ends(second, chains, random) + end)
        src.append(second.src + end)
        dst.append(second.dst + end)
    whole = np.column_stack(columns)
    src, dst = [*src, whole[:, :-1].ravel()], [*dst, whole[:, 1:].ravel()]
    return EdgeList(np.concatenate(src), np.concatenate(dst), num_vertices)


def comb(spine: int, tooth: int) -> EdgeList:
    """Make a path of `spine` vertices, each the start of another path of `tooth` vertices.

    The ids go from tooth to tooth, in each from the spine on.
    """
    _check_chains(spine, tooth, spine)
    ids = np.arange(spine * (tooth + 1), dtype=np.uint32).reshape(spine, tooth + 1)
    src = np.concatenate((ids[:, :-1].ravel(), ids[:-1, 0]))
    dst = np.concatenate((ids[:, 1:].ravel(), ids[1:, 0]))
    return EdgeList(src, dst, ids.size)


def bipartite(left: int, right: int, degree: int = 16, seed: int = _SEED) -> EdgeList:
    """Make `degree` edges from each of `left` vertices to drawn ones of `right` others.

    The left vertices' ids come first, then the right vertices'. Raises `GraphError` for
    too many vertices, or none on a side.
    """
    if min(left, right, degree) < 1 or left + right > MAX_VERTICES:
        raise GraphError(
            f"{left} left and {right} right vertices of degree {degree}; each must be at least 1, "
            f"and all vertices at most {MAX_VERTICES}"
        )
    src = np.repeat(np.arange(left, dtype=np.uint32), degree)
    dst = np.random.default_rng(seed).integers(left, left + right, src.size, np.uint32)
    return EdgeList(src, dst, left + right)


def generated(
    family: str,
    scale: int = 16,
    degree: int | None = None,
    seed: int | None = None,
    *,
    right_scale: int | None = None,
    rows: int = 256,
    columns: int | None = None,
    rewired: float = REWIRED_SHARE,
    chains: int = 8,
    length: int = 500,
    weighted: bool = False,
    directed: bool = False,
    **quadrants: float,
) -> EdgeList:
    """Make a graph of the command `generate`; a family takes only some of the options."""
    edgefactor = degree or (NEIGHBOURS if family == "smallworld" else 16)
    check_scale(scale, edgefactor)
    drawn = _SEED if seed is None else seed
    if family in ("kronecker", "tails"):
        seed1 = 2 if seed is None else seed
        core = KroneckerEdges(scale, edgefactor, seed1, 3, directed, weighted).materialise()
        return core if family == "kronecker" else tails(core, chains, length, seed=drawn)
    if family in ("rmat", "uniform"):
        shares = dict.fromkeys("abcd", 0.25) if family == "uniform" else quadrants
        seed = drawn if family == "uniform" else (1 if seed is None else seed)
        source = RMATEdges(scale, **shares, edgefactor=edgefactor, seed=seed, directed=directed)
        return source.materialise()
    if family == "bipartite":
        return bipartite(1 << scale, 1 << (right_scale or scale), edgefactor, drawn)
    if family == "grid":
        if rows * (columns or rows) > MAX_VERTICES:
            raise GraphError(f"{rows} x {columns or rows} vertices; at most {MAX_VERTICES}")
        return grid(rows, columns)
    if not 0 <= rewired <= 1:
        raise GraphError(f"a share of {rewired} rewired edges; give 0 to 1")
    if edgefactor >= 1 << scale:
        raise GraphError(f"degree {edgefactor} of {1 << scale} vertices; give a smaller one")
    return small_world(scale, drawn, edgefactor, rewired)


def _check_chains(chains: int, length: int, others: int = 0) -> int:
    """Return the vertices of chains and `others` together; raise `GraphError`, see `tails`."""
    for what, count in (("chains", chains), ("vertices of a chain", length)):
        if check_integer(what, count) < 1:
            raise GraphError(f"{count} {what}; there must be at least one")
    total = chains * length + others
    if total > MAX_VERTICES:
        raise GraphError(
            f"{total} vertices with all chains; a graph has at most {MAX_VERTICES}: give fewer or "
            "shorter chains"
        )
    return total


def _chain_ends(graph: EdgeList, chains: int, random: np.random.Generator) -> VertexArray:
    """Draw a vertex for each chain, with `_LEAST_DEGREE` edges or the most that there are."""
    if graph.num_vertices == 0:
        raise GraphError("a chain cannot start or end in a graph without vertices")
    degree = np.bincount(graph.src, minlength=graph.num_vertices)
    degree += np.bincount(graph.dst, minlength=graph.num_vertices)
    suited = np.flatnonzero(degree >= min(_LEAST_DEGREE, degree.max()))
    return random.choice(suited, chains, replace=chains > suited.size).astype(np.uint32)


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
