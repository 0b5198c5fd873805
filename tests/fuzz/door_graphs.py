"""Graphs of the campaign `doors`: one list of edges, by every constructor and file format."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas
import pyarrow
import scipy.sparse

import hetero_bfs as hb
from hetero_bfs.graph.io import registry as io
from tests.fuzz.door_cases import FLOATS, DoorCase, Meaning, held_type, plain

Door = Callable[[DoorCase, Path], "tuple[hb.CSRGraph, Meaning] | None"]
"""Returns a graph and what it must be; None if the door has no such graphs."""


def _from_edges(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning]:
    src, dst, weights = case.columns()
    given = weights if case.weighted else None
    how = case.num_vertices, case.directed, given, case.rule
    return hb.CSRGraph.from_edges(src, dst, *how), plain(case)


def _edge_list(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning]:
    src, dst, weights = case.columns()
    given = weights if case.weighted else None
    edges = hb.EdgeList(src, dst, case.num_vertices, case.directed, given, case.rule)
    return hb.CSRGraph.from_edge_source(edges), plain(case)


def _own_arrays(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning]:
    meaning = plain(case).distinct(case.directed, "min", loops=False)
    lists = meaning.lists()
    indptr = [0, *np.cumsum([len(held) for held in lists]).tolist()]
    indices = [v for held in lists for v in sorted(held)]
    weights = [held[v] for held in lists for v in sorted(held)]
    given = case.array(weights, case.weight_type) if case.weighted else None
    meaning = replace(meaning, weight_type=held_type(weights, case.weight_type))
    arrays = case.array(indptr, "int64"), case.array(indices, case.id_type)
    degree = np.diff(indptr)
    graph = hb.CSRGraph(*arrays, case.directed, len(meaning.edges), degree, given)
    return graph, meaning


def scipy_matrix(case: DoorCase, kind: str) -> Any:
    """Return the edges as a matrix of SciPy's; CSR and CSC keep duplicates."""
    src, dst, weights = case.columns()
    shape = case.num_vertices, case.num_vertices
    if kind not in ("csr", "csc"):
        return scipy.sparse.coo_array((weights, (src, dst)), shape).asformat(kind)
    first, second = (src, dst) if kind == "csr" else (dst, src)
    order = np.argsort(first, kind="stable")
    counts = np.bincount(first.astype(np.int64), minlength=case.num_vertices)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    make = scipy.sparse.csr_array if kind == "csr" else scipy.sparse.csc_array
    return make((weights[order], second[order].astype(np.int32), indptr), shape)


def has_matrix(case: DoorCase, kind: str) -> bool:
    """Tell whether SciPy has such matrices."""
    swapped = case.form == "big-endian" and case.weight_type not in ("bool", "int8", "uint8")
    return case.weight_type != "float16" and not (swapped and kind not in ("csr", "csc"))


def scipy_meaning(case: DoorCase, kind: str, duplicates: str | None) -> Meaning:
    """Return what a matrix means: duplicates are summed where `tocsr` sums them."""
    meaning = replace(plain(case), rule="min")
    if kind not in ("csr", "csc") and (duplicates is None or kind != "coo"):
        meaning = meaning.distinct(True, "max" if case.weight_type == "bool" else "sum")
    if not case.weighted or kind in ("bsr", "dia"):
        meaning = meaning.without_zeros()
    held = held_type(meaning.weights, case.weight_type)
    return replace(meaning, weight_type=held, rule=duplicates or "min")


def _scipy(kind: str, explicit: bool) -> Door:
    def door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
        if not has_matrix(case, kind):
            return None
        duplicates = case.rule if explicit else None
        graph = hb.CSRGraph.from_scipy(
            scipy_matrix(case, kind), case.directed, case.weighted, duplicates
        )
        return graph, scipy_meaning(case, kind, duplicates)

    return door


def networkx_graph(case: DoorCase, kind: type[Any]) -> Any:
    """Return the edges as a NetworkX graph; None if it cannot have their duplicates."""
    graph = kind()
    graph.add_nodes_from(range(case.num_vertices))
    graph.add_weighted_edges_from(
        (u, v, weight) for (u, v), weight in zip(case.edges, case.weights, strict=True)
    )
    return graph if graph.number_of_edges() == len(case.edges) else None


def _networkx(directed: type[Any], undirected: type[Any]) -> Door:
    def door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
        given = networkx_graph(case, directed if case.given_directed else undirected)
        if given is None:
            return None
        weight = "weight" if case.weighted else None
        graph = hb.CSRGraph.from_networkx(given, case.directed, weight, case.rule)
        meaning = plain(case)
        if case.directed and not case.given_directed:
            meaning = meaning.both_ways()
        floats = case.weight_type in FLOATS or not case.weights
        return graph, replace(meaning, weight_type="float64") if floats else _integers(meaning)

    return door


def _integers(meaning: Meaning) -> Meaning:
    """Return the meaning with the type of Python's integers."""
    return replace(meaning, weight_type=held_type(meaning.weights, "int64"))


def _pandas(nullable: bool) -> Door:
    def door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
        arrays = case.columns()
        if nullable:
            if case.form == "big-endian" or case.weight_type == "float16":
                return None
            arrays = tuple(pandas.array(a, _nullable(a.dtype.name)) for a in arrays)
        frame = pandas.DataFrame(dict(zip(("a", "b", "w"), arrays, strict=True)))
        names = ("a", "b", "w" if case.weighted else None)
        how = case.num_vertices, case.directed, case.rule
        return hb.CSRGraph.from_pandas(frame, *names, *how), plain(case)

    return door


def _nullable(name: str) -> str:
    if name == "bool":
        return "boolean"
    return name.replace("u", "U").replace("int", "Int").replace("float", "Float")


def _arrow(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
    if case.form == "big-endian":
        return None
    columns = dict(zip(("a", "b", "w"), case.columns(), strict=True))
    whole = pyarrow.table(columns)
    table = pyarrow.Table.from_batches(whole.to_batches(max_chunksize=3), whole.schema)
    names = ("a", "b", "w" if case.weighted else None)
    how = case.num_vertices, case.directed, case.rule
    return hb.CSRGraph.from_arrow(table, *names, *how), plain(case)


# Files. Duplicates always count by the smallest weight.


def path_of(folder: Path, suffix: str) -> Path:
    """Return the file of a format, which the next case overwrites."""
    return folder / f"doors{suffix}"


def _rows(case: DoorCase, start: int = 0, mark: str = "") -> str:
    rows = zip(case.edges, case.weights, strict=True)
    if not case.weighted:
        return "".join(f"{mark}{u + start} {v + start}\n" for (u, v), _ in rows)
    return "".join(f"{mark}{u + start} {v + start} {_number(case, w)}\n" for (u, v), w in rows)


def _number(case: DoorCase, weight: Any) -> str:
    return repr(float(weight)) if case.weight_type in FLOATS else str(int(weight))


def _text(suffix: str, head: str, start: int = 0, mark: str = "") -> Door:
    """Return the door of a text format; `head` is filled in with V and E."""

    def door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
        if suffix == ".wel" and not case.weighted:
            return None
        text = head.format(V=case.num_vertices, E=len(case.edges)) + _rows(case, start, mark)
        floats = case.weight_type in FLOATS and case.weights
        return _read(case, folder, suffix, text, "float64" if floats else None)

    return door


def _read(
    case: DoorCase, folder: Path, suffix: str, text: str, weight_type: str | None
) -> tuple[hb.CSRGraph, Meaning]:
    path = path_of(folder, suffix)
    raw = text.encode()
    path.write_bytes(gzip.compress(raw, 1) if suffix.endswith(".gz") else raw)
    graph = hb.load(path, case.directed, case.weighted)
    meaning = replace(_integers(plain(case)), rule="min")
    return graph, meaning if weight_type is None else replace(meaning, weight_type=weight_type)


def _matrix_market(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning]:
    kind = "general" if case.given_directed else "symmetric"
    real = case.weight_type in FLOATS
    field = "pattern" if not case.weighted else "real" if real else "integer"
    n, edges = case.num_vertices, case.edges
    if not case.given_directed:
        edges = [(max(pair), min(pair)) for pair in edges]
    head = f"%%MatrixMarket matrix coordinate {field} {kind}\n{n} {n} {len(edges)}\n"
    text = head + _rows(replace(case, edges=edges), 1)
    graph, meaning = _read(case, folder, ".mtx", text, "float64" if real else None)
    if case.directed and not case.given_directed:
        meaning = meaning.both_ways()
    return graph, meaning


def _binary(suffix: str) -> Door:
    def door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning] | None:
        given = replace(case, directed=case.given_directed, rule="min")
        graph, meaning = _from_edges(given, folder)
        if (suffix != ".hbg" and graph.weights is not None) and graph.weights.dtype != np.int32:
            return None
        if suffix != ".hbg" and case.weighted != (suffix == ".wsg"):
            return None
        path = path_of(folder, suffix)
        io.write(graph, path)
        graph = hb.load(path, case.directed, case.weighted)
        if suffix != ".hbg" or (case.given_directed and not case.directed):
            meaning = meaning.distinct(case.given_directed, "min", loops=False)
        if case.directed and not case.given_directed:
            meaning = meaning.both_ways()
        return graph, replace(meaning, case=replace(case, rule="min"))

    return door


_SNAP = "# Nodes: {V} Edges: {E}\n"
DOORS: dict[str, Door] = {
    "from_edges": _from_edges,
    "EdgeList": _edge_list,
    "CSRGraph": _own_arrays,
    **{kind: _scipy(kind, False) for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")},
    **{f"{kind} by rule": _scipy(kind, True) for kind in ("csr", "csc", "coo", "bsr")},
    "Graph": _networkx(networkx.DiGraph, networkx.Graph),
    "MultiGraph": _networkx(networkx.MultiDiGraph, networkx.MultiGraph),
    "pandas": _pandas(False),
    "nullable": _pandas(True),
    "arrow": _arrow,
    "el": _text(".el", _SNAP),
    "txt.gz": _text(".txt.gz", _SNAP),
    "tsv of KONECT": _text(".tsv", "% sym weighted\n% {E} {V} {V}\n", 1),
    "wel": _text(".wel", _SNAP),
    "gr": _text(".gr", "c\np sp {V} {E}\n", 1, "a "),
    "col.gz": _text(".col.gz", "p edge {V} {E}\n", 1, "e "),
    "mtx": _matrix_market,
    "sg": _binary(".sg"),
    "wsg": _binary(".wsg"),
    "hbg": _binary(".hbg"),
}
"""Every constructor and file format, by name."""
