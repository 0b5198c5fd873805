"""Calls with foreign arrays: each must be refused in a line, or answered as plain Python does."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import hetero_bfs as hb
from tests.fuzz import foreign_arrays as foreign
from tests.fuzz.foreign_arrays import Entry

_PARENT = -9999


class Unlike(Exception):
    """An outcome that is wrong."""


def outcome(call: Callable[[], Any], sound: bool, answers: bool, what: str) -> Any:
    """Return a call's answer, None if it was refused.

    With `sound` it must answer; without `answers` it must refuse.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call()
    except hb.HeteroBFSError as error:
        if "\n" in str(error) or len(str(error)) < 20:
            raise Unlike(f"{what} was refused by {str(error)!r}") from error
        if sound and answers:
            raise Unlike(f"{what} refused sound arrays: {error}") from error
        return None
    if not answers:
        raise Unlike(f"{what} took damaged arrays and answered {found!r}")
    return found


def same(found: Any, expected: Any, what: str) -> None:
    """Raise `Unlike` unless arrays or numbers are equal."""
    if not np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=True):
        raise Unlike(f"{what}: {np.asarray(found).tolist()}, expected {expected}")


# Matrices


def try_matrix(chance: Random) -> None:
    """Call a function with a matrix."""
    n = chance.choice((0, 1, 2, 3, 4, 6, 6, 8, 12))
    odd, twice = chance.random() < 0.2, chance.random() < 0.25
    form = chance.choice((*foreign.FORMATS, "csr", "csr", "dense"))
    drawn = foreign.draw_entries(chance, n, twice, odd)
    if form == "dense":
        matrix, sound, entries = _dense(chance, n, drawn)
        turned = entries
    else:
        matrix = foreign.make_matrix(chance, form, n, drawn)
        harms = [
            not foreign.damage_matrix(chance, matrix) for _ in range(chance.choice((0, 1, 1, 1, 2)))
        ]
        sound = not any(harms)
        entries = foreign.read_matrix(matrix)
        turned = foreign.read_matrix(matrix, transposed=True) if form == "csc" else entries
    directed = chance.random() < 0.5
    door = chance.choice((_order, _components, _distances, _distances, _graph))
    if door is _graph and form == "dense":
        door = _order
    door(chance, matrix, entries if directed else turned, sound, directed)


def _dense(chance: Random, n: int, drawn: list[Entry]) -> tuple[Any, bool, list[Entry] | None]:
    matrix = np.zeros((n, n))
    for u, v, weight in drawn:
        matrix[u, v] = weight
    sound = True
    if chance.random() < 0.5:
        matrix = foreign.other_layout(chance, matrix)
    elif chance.random() < 0.5:
        matrix, sound = foreign.damaged_array(chance, matrix), False
    elif chance.random() < 0.3:
        matrix = np.ma.masked_less(matrix, 0.5)
    array = np.asarray(matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "biuf":
        return matrix, False, None
    cells = array.astype(np.float64)
    present = (np.abs(cells) > 1e-8) & np.isfinite(cells)  # as in SciPy
    if np.ma.isMaskedArray(matrix):
        present = ~np.ma.getmaskarray(matrix)  # zeros are edges, too
    edges = np.argwhere(present).tolist()
    return matrix, sound, [(u, v, float(cells[u, v])) for u, v in edges]


def _size(matrix: Any) -> int:
    return int(np.shape(matrix)[0]) if len(np.shape(matrix)) else 0


def _lists(n: int, entries: list[Entry], directed: bool) -> list[list[tuple[int, float]]]:
    lists: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for u, v, weight in entries:
        lists[u].append((v, weight))
    if not directed:
        for u, v, weight in entries:
            lists[v].append((u, weight))
    return lists


def _order(
    chance: Random, matrix: Any, entries: list[Entry] | None, sound: bool, directed: bool
) -> None:
    n = _size(matrix)
    start = chance.choice((0, max(n - 1, 0), -1, n)) if chance.random() < 0.3 else 0
    answers = entries is not None and 0 <= start < n
    call = outcome(
        lambda: hb.csgraph.breadth_first_order(matrix, start, directed),
        sound,
        answers,
        "breadth_first_order",
    )
    if call is None or entries is None:
        return
    lists, order, parents = _lists(n, entries, directed), [start], [_PARENT] * n
    for u in order:
        for v, _ in lists[u]:
            if v not in order:
                order.append(v)
                parents[v] = u
    same(call[0], order, "breadth_first_order")
    same(call[1], parents, "predecessors")


def _reached(lists: list[list[tuple[int, float]]], source: int) -> list[int]:
    found = [source]
    for u in found:
        found += dict.fromkeys(v for v, _ in lists[u] if v not in found)
    return found


def _components(
    chance: Random, matrix: Any, entries: list[Entry] | None, sound: bool, directed: bool
) -> None:
    n, strong = _size(matrix), chance.random() < 0.3
    kind = "strong" if strong else "weak"
    found = outcome(
        lambda: hb.csgraph.connected_components(matrix, directed, kind),
        sound,
        entries is not None,
        f"connected_components, {kind}",
    )
    if found is None or entries is None:
        return
    reached = [set(_reached(_lists(n, entries, directed and strong), v)) for v in range(n)]
    groups = [frozenset(v for v in reached[u] if u in reached[v]) for u in range(n)]
    if found[0] != len(set(groups)):
        raise Unlike(f"{found[0]} components, expected {len(set(groups))}")
    if not (directed and strong):
        numbers = {group: i for i, group in enumerate(dict.fromkeys(groups))}
        same(found[1], [numbers[group] for group in groups], "labels")


def _distances(
    chance: Random, matrix: Any, entries: list[Entry] | None, sound: bool, directed: bool
) -> None:
    n, unweighted = _size(matrix), chance.random() < 0.4
    source = chance.randrange(n) if n else 0
    indices = chance.choice((source, [source], np.array([source], ">i8"), None))
    limit = chance.choice((math.inf, math.inf, 0.0, 2.0))
    method = chance.choice(("dijkstra", "dijkstra", "auto", "auto", "BF", "J", "FW"))
    if method == "dijkstra":
        nearest = chance.random() < 0.3
        name, arguments = "dijkstra", {"limit": limit, "min_only": nearest}
    else:
        name, arguments, limit, nearest = "shortest_path", {"method": method}, math.inf, False
    if nearest and indices is None:
        indices = [source]
    if method == "FW":
        indices = None  # SciPy's condition
    common = {"directed": directed, "unweighted": unweighted, "indices": indices}
    theirs = method in ("BF", "J", "FW")
    negative = entries is not None and any(w < 0 for _, _, w in entries) and not unweighted
    if negative and not theirs:
        return  # left to SciPy's search, which may not end then
    try:
        found = outcome(
            lambda: getattr(hb.csgraph, name)(matrix, **common, **arguments),
            sound and not theirs,
            entries is not None and (n > 0 or indices is None),
            f"{name}, {common}, {arguments}",
        )
    except Exception as error:
        if type(error).__name__ == "NegativeCycleError" and negative and theirs:
            return
        if theirs and n == 0 and isinstance(error, ValueError):
            return
        raise
    if found is None or entries is None or negative or theirs or n == 0:
        return
    lists = _lists(n, entries, directed)
    sources = range(n) if indices is None else [source]
    expected = [_plain_distances(lists, s, unweighted, limit) for s in sources]
    same(found, expected if np.ndim(found) == 2 else expected[0], f"{name}, {common}, {arguments}")


def _plain_distances(
    lists: list[list[tuple[int, float]]], source: int, unweighted: bool, limit: float
) -> list[float]:
    found = [math.inf] * len(lists)
    found[source] = 0.0
    waiting = deque([source])
    while waiting:
        u = waiting.popleft()
        for v, weight in lists[u]:
            new = found[u] + (1 if unweighted else weight)
            if new < found[v]:
                found[v] = new
                waiting.append(v)
    return [d if d <= limit else math.inf for d in found]


def _graph(
    chance: Random, matrix: Any, entries: list[Entry] | None, sound: bool, directed: bool
) -> None:
    weighted = chance.random() < 0.5
    values = _values(matrix)
    if np.asarray(values).dtype.kind == "c" or (weighted and not _usual(values)):
        sound = False  # such weights may be refused
        entries = [] if entries is None and not weighted else entries
        check = False
    else:
        check = True
    found = outcome(
        lambda: hb.CSRGraph.from_scipy(matrix, directed, weighted),
        sound,
        entries is not None or not check,
        f"from_scipy, directed={directed}, weighted={weighted}",
    )
    if found is None or entries is None or not check:
        return
    if matrix.format == "csc" and not directed:
        entries = [(v, u, weight) for u, v, weight in entries]
    zeros_are_edges = weighted and matrix.format not in ("bsr", "dia")
    kept = [entry for entry in entries if entry[2] != 0 or zeros_are_edges]
    same_graph(found, _size(matrix), kept, directed, weighted)


def _values(matrix: Any) -> Any:
    if matrix.format == "dok":
        return np.array(list(matrix.values()))
    return matrix.data


def _usual(values: Any) -> bool:
    array = np.asarray(values)
    return array.dtype in (np.float64, np.float32, np.int32) and not np.isnan(array).any()


def same_graph(
    graph: Any, n: int, entries: list[Entry], directed: bool, weighted: bool = False
) -> None:
    """Raise `Unlike` unless a graph has these edges; weights of one edge count if they are one."""
    least: list[dict[int, set[float]]] = [{} for _ in range(n)]
    for u, v, weight in entries:
        for a, b in ((u, v),) if directed else ((u, v), (v, u)):
            if a != b:
                least[a].setdefault(b, set()).add(weight)
    lists = [sorted(one) for one in least]
    same(graph.indptr, np.cumsum([0, *map(len, lists)]), "indptr")
    same(graph.indices, [v for one in lists for v in one], "indices")
    if weighted:
        weights = graph.weights.tolist()
        wanted = [least[u][v] for u in range(n) for v in lists[u]]
        for weight, given in zip(weights, wanted, strict=True):
            if len(given) == 1 and weight not in given:
                raise Unlike(f"weight {weight}, expected {given}")
