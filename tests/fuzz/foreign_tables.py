"""Constructors and engines with foreign arrays; see foreign_doors.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pandas as pd

import hetero_bfs as hb
from tests.fuzz import foreign_arrays as foreign
from tests.fuzz import plain_answers as plain
from tests.fuzz.cases import Case
from tests.fuzz.foreign_doors import Unlike, outcome, same, same_graph

_ID_TYPES = (np.uint32, np.uint32, np.int32, np.int64, np.uint64, np.int16, ">i4", ">u8")


class Given:
    """Arrays of a call by name, some of them damaged."""

    def __init__(self, chance: Random, arrays: dict[str, Any]) -> None:
        self.arrays = arrays
        self.sound = True
        for _ in range(chance.choice((0, 1, 1, 2))):
            name = chance.choice(list(arrays))
            if not isinstance(arrays[name], np.ndarray):
                continue
            if chance.random() < 0.4:
                arrays[name] = foreign.other_layout(chance, arrays[name])
            else:
                arrays[name] = foreign.damaged_array(chance, arrays[name])
                self.sound = False

    def usual_weights(self) -> bool:
        """Whether weights are of a type that all constructors take."""
        weights = self.arrays.get("weights")
        return weights is None or np.asarray(weights).dtype in (np.float64, np.float32, np.int32)


def draw_edges(chance: Random) -> tuple[int, list[tuple[int, int, float]]]:
    """Return a number of vertices and edges with weights."""
    n = chance.choice((1, 2, 3, 5, 8, 12))
    return n, foreign.draw_entries(chance, n, chance.random() < 0.3, False)


def edge_arrays(chance: Random, edges: list[tuple[int, int, float]]) -> dict[str, Any]:
    """Return edges as arrays by name, often with weights."""
    kind = chance.choice(_ID_TYPES)
    arrays = {
        "src": np.array([u for u, _, _ in edges], kind),
        "dst": np.array([v for _, v, _ in edges], kind),
    }
    if chance.random() < 0.5:
        weights = [weight for _, _, weight in edges]
        arrays["weights"] = np.array(weights, chance.choice((np.float64, np.float32)))
    return arrays


def read_edges(arrays: dict[str, Any], n: int) -> list[tuple[int, int, float]] | None:
    """Return edges of arrays; None if they are damaged."""
    src, dst = foreign.integers(arrays["src"]), foreign.integers(arrays["dst"])
    if src is None or dst is None or len(src) != len(dst):
        return None
    if not all(0 <= v < n for v in (*src, *dst)):
        return None
    weights = arrays.get("weights")
    values = np.ones(len(src)) if weights is None else foreign.numbers(weights)
    if values is None or len(values) != len(src) or np.isnan(values).any():
        return None
    return list(zip(src, dst, values.tolist(), strict=True))


def try_arrays(chance: Random) -> None:
    """Make a graph of arrays, or of a table."""
    chance.choice((_lists, _from_edges, _own_source, _from_pandas, _from_arrow))(chance)


def _from_edges(chance: Random) -> None:
    n, edges = draw_edges(chance)
    directed = chance.random() < 0.5
    given = Given(chance, edge_arrays(chance, edges))
    expected = read_edges(given.arrays, n)
    made = chance.choice((hb.CSRGraph.from_edges, _from_edge_list))
    graph = outcome(
        lambda: made(**given.arrays, num_vertices=n, directed=directed),
        given.sound and given.usual_weights(),
        expected is not None,
        "from_edges",
    )
    if graph is not None and expected is not None:
        same_graph(graph, n, expected, directed, given.arrays.get("weights") is not None)


def _from_edge_list(**arguments: Any) -> Any:
    return hb.CSRGraph.from_edge_source(hb.EdgeList(**arguments))


class OwnSource:
    """A user's own source of edges."""

    def __init__(self, n: int, directed: bool, arrays: dict[str, Any]) -> None:
        self.num_vertices, self.directed, self.arrays = n, directed, arrays
        self.both_directions = False
        self.num_input_edges = int(np.size(arrays["src"]))
        self.weight_dtype = getattr(arrays.get("weights"), "dtype", None)

    def edges(self) -> list[tuple[int, int, float]] | None:
        """Return the edges; None if they are damaged. Without a dtype there are no weights."""
        names = ("src", "dst") if self.weight_dtype is None else ("src", "dst", "weights")
        return read_edges({name: self.arrays[name] for name in names}, self.num_vertices)

    def chunks(self, size: int = 0) -> Iterator[tuple[Any, Any]]:
        """Yield all edges."""
        yield self.arrays["src"], self.arrays["dst"]

    def weighted_chunks(self, size: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all edges with their weights."""
        yield self.arrays["src"], self.arrays["dst"], self.arrays["weights"]


def _own_source(chance: Random) -> None:
    n, edges = draw_edges(chance)
    arrays = edge_arrays(chance, edges)
    arrays |= {name: arrays[name].astype(np.uint32) for name in ("src", "dst")}
    given = Given(chance, arrays)
    source = OwnSource(n, chance.random() < 0.5, given.arrays)
    expected = source.edges()
    lies = chance.random() < 0.1
    if lies:
        lie = chance.choice(("num_vertices", "num_input_edges", "weight_dtype", "both_directions"))
        given.sound = False
        number = chance.choice((0, 1, n, -1, None, 2**40, "a", True, np.float32))
        setattr(source, lie, number)
    usual = all(given.arrays[name].dtype == np.uint32 for name in ("src", "dst") if given.sound)
    graph = outcome(
        lambda: hb.CSRGraph.from_edge_source(source),
        given.sound and usual and given.usual_weights(),
        expected is not None or lies,
        "from_edge_source",
    )
    if graph is None or not given.sound:
        if graph is not None and not (graph.indices < graph.num_vertices).all():
            raise Unlike("from_edge_source took ids that are not vertices")
        return
    if expected is not None:
        same_graph(graph, n, expected, source.directed, source.weight_dtype is not None)


def _lists(chance: Random) -> None:
    n, edges = draw_edges(chance)
    directed = chance.random() < 0.5
    sound = hb.CSRGraph.from_edges(
        [u for u, _, _ in edges] or np.zeros(0, np.uint32),
        [v for _, v, _ in edges] or np.zeros(0, np.uint32),
        n, directed, np.array([weight for _, _, weight in edges]),
    )  # fmt: skip
    kind = chance.choice(_ID_TYPES)
    arrays = {
        "indptr": sound.indptr.astype(kind),
        "indices": sound.indices.astype(kind),
        "input_degree": sound.input_degree.astype(kind),
        "weights": sound.weights.copy() if chance.random() < 0.5 else None,
    }
    given = Given(chance, arrays)
    lists = foreign.read_lists(arrays["indptr"], arrays["indices"], _count(arrays["indptr"]), 2**32)
    graph = outcome(
        lambda: hb.CSRGraph(**arrays, directed=directed, num_input_edges=sound.num_input_edges),
        given.sound and given.usual_weights(),
        lists is not None,
        "CSRGraph",
    )
    if graph is not None:
        same(graph.indptr, foreign.integers(arrays["indptr"]), "indptr")
        same(graph.indices, foreign.integers(arrays["indices"]), "indices")
        if graph.indices.size and graph.indices.max() >= graph.num_vertices:
            raise Unlike("CSRGraph took ids that are not vertices")


def _count(indptr: Any) -> int:
    return max(int(np.size(indptr)) - 1, 0)


def _from_pandas(chance: Random) -> None:
    n, edges = draw_edges(chance)
    given = Given(chance, edge_arrays(chance, edges))
    names = {"src": "source", "dst": "target", "weights": "weight"}
    try:
        frame = pd.DataFrame({names[name]: array for name, array in given.arrays.items()})
        kinds = (
            "Int64",
            "UInt32",
            "float64",
            "category",
            "object",
            "str",
            "boolean",
            "datetime64[s]",
        )
        if chance.random() < 0.3:
            given.sound = False
            name = chance.choice(list(frame.columns))
            frame[name] = frame[name].astype(chance.choice(kinds))
        if chance.random() < 0.1 and len(frame):
            given.sound = False
            frame.loc[chance.randrange(len(frame)), chance.choice(list(frame.columns))] = None
        frame.isna()
    except Exception:
        return  # not a frame
    _table_is_right(chance, hb.CSRGraph.from_pandas, frame, given, n)


def _table_is_right(chance: Random, made: Any, table: Any, given: Given, n: int) -> None:
    directed = chance.random() < 0.5
    weight = "weight" if "weights" in given.arrays else None
    expected = read_edges(given.arrays, n) if given.sound else None
    graph = outcome(
        lambda: made(table, weight=weight, num_vertices=n, directed=directed),
        given.sound and given.usual_weights(),
        expected is not None or not given.sound,
        made.__name__,
    )
    if graph is None:
        return
    if expected is not None:
        same_graph(graph, n, expected, directed, weight is not None)
    elif graph.indices.size and graph.indices.max() >= n:
        raise Unlike(f"{made.__name__} took ids that are not vertices")


def _from_arrow(chance: Random) -> None:
    import pyarrow as pa

    n, edges = draw_edges(chance)
    given = Given(chance, edge_arrays(chance, edges))
    names = {"src": "source", "dst": "target", "weights": "weight"}
    try:
        columns = {}
        for name, array in given.arrays.items():
            column = pa.array(array)
            if chance.random() < 0.2:
                given.sound = False
                kinds = (
                    pa.int8(),
                    pa.uint64(),
                    pa.float64(),
                    pa.string(),
                    pa.bool_(),
                    pa.float16(),
                )
                column = column.cast(chance.choice(kinds))
            if chance.random() < 0.1:
                given.sound = False
                column = pa.concat_arrays([column[:-1], pa.nulls(1, column.type)])
            columns[names[name]] = pa.chunked_array([column[:2], column[2:]])
        table = pa.table(columns)
    except Exception:
        return  # not a table
    _table_is_right(chance, hb.CSRGraph.from_arrow, table, given, n)


# Engines


@cache
def _engine(directed: bool) -> tuple[Any, Case]:
    chance = Random(5)
    n = 20
    edges = [(chance.randrange(n), chance.randrange(n)) for _ in range(30)]
    src, dst = np.array(edges).T
    graph = hb.CSRGraph.from_edges(src, dst, n, directed)
    return hb.Engine(graph, device="cpu", correction=False), Case(
        "cpu", n, edges, directed=directed
    )


def try_engine(chance: Random) -> None:
    """Give an engine arrays of vertices."""
    engine, case = _engine(chance.random() < 0.5)
    chance.choice((_masked, _masked, _many, _ranks))(chance, engine, case)


def _ids(chance: Random, n: int, count: int) -> Given:
    ids = [chance.randrange(n) for _ in range(count)]
    return Given(chance, {"ids": np.array(ids, chance.choice(_ID_TYPES))})


def _vertices(array: Any, n: int) -> list[int] | None:
    ids = foreign.integers(array)
    return ids if ids is not None and all(0 <= v < n for v in ids) else None


def _masked(chance: Random, engine: Any, case: Case) -> None:
    n = case.num_vertices
    sources, given = _ids(chance, n, chance.choice((1, 2, 5))), _ids(chance, n, 4)
    mask: Any = given.arrays["ids"]
    passed = _vertices(mask, n)
    flags = chance.random() < 0.5
    if flags and passed is not None:
        mask = np.zeros(n, np.bool_)
        mask[passed] = True
        given = Given(chance, {"ids": mask})
        mask = given.arrays["ids"]
        if not given.sound:
            passed = None
    starts = _vertices(sources.arrays["ids"], n)
    sound = sources.sound and given.sound and starts is not None and passed is not None
    free = sound and not set(starts or ()) & set(passed or ())
    result = outcome(
        lambda: engine.bfs(sources.arrays["ids"], mask=mask), free, not sound or free, "Engine.bfs"
    )
    if result is not None and free:
        step = {"sources": list(dict.fromkeys(starts or ())), "mask": passed}
        same(result.level, plain.levels(case, step), "levels")


def _many(chance: Random, engine: Any, case: Case) -> None:
    given = _ids(chance, case.num_vertices, chance.choice((1, 3, 70)))
    starts = _vertices(given.arrays["ids"], case.num_vertices)
    result = outcome(
        lambda: engine.bfs_many(given.arrays["ids"]),
        given.sound,
        starts is not None or not given.sound,
        "Engine.bfs_many",
    )
    if result is not None and starts is not None:
        expected = [plain.levels(case, {"sources": [source]}) for source in starts]
        same(list(result.level), expected, "levels of several searches")


def _ranks(chance: Random, engine: Any, case: Case) -> None:
    shares = np.array([chance.choice((0.0, 1.0, 2.0)) for _ in range(case.num_vertices)])
    given = Given(chance, {"ids": shares})
    personalization = given.arrays["ids"]
    result = outcome(
        lambda: engine.pagerank(personalization=personalization),
        given.sound and shares.sum() > 0,
        True,
        "Engine.pagerank",
    )
    if result is not None and not (np.isfinite(result.rank).all() and (result.rank >= 0).all()):
        raise Unlike(f"ranks {result.rank.tolist()} of {personalization!r}")
