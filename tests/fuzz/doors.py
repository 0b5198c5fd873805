"""One graph by many doors: every constructor, file format and interface must give one answer.

The kind `lists` compares the arrays of a graph by every constructor and format with plain lists; a
case is a graph by one door. The other kinds run the algorithms by one interface each, over a graph
by a random door; a case is a run.
"""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import networkx
import numpy as np
import scipy.sparse.csgraph as scipy_csgraph

import hetero_bfs as hb
from tests.fuzz import plain_answers
from tests.fuzz.campaign import Attempt, Campaign
from tests.fuzz.cases import Case
from tests.fuzz.door_cases import FLOATS, FORMS, INTEGERS, DoorCase, Meaning
from tests.fuzz.door_graphs import (
    DOORS,
    has_matrix,
    networkx_graph,
    path_of,
    scipy_matrix,
    scipy_meaning,
)

Problems = Iterator[str | None]
_ALPHA, _TOLERANCE = 0.85, 1e-10
_EVERY = {"engine": 8, "commands": 16}
"""Kinds that run for one number in so many, since they take longest."""


def draw(chance: Random) -> DoorCase:
    """Return a small graph, and how it is given and read."""
    n = chance.choice((1, 2, 3, 5, 5, 9, 14, 40))
    count = chance.choice((0, 1, n, n, 2 * n, 3 * n))
    edges = [(chance.randrange(n), chance.randrange(n)) for _ in range(count)]
    if chance.random() < 0.5:
        edges = [(u, v) for u, v in edges if u != v]
    if edges and chance.random() < 0.5:
        edges += chance.choices(edges, k=chance.choice((1, 3)))
    else:
        edges = list({frozenset(pair): pair for pair in edges}.values())
    kind = chance.choice(INTEGERS + FLOATS)
    case = DoorCase(
        n + chance.choice((0, 0, 1, 3)),
        edges,
        [_weight(chance, kind) for _ in edges],
        kind,
        chance.choice(("uint32", "int64", "int32", "uint8", "uint64", "int16")),
        chance.choice(FORMS),
    )
    flags = {name: chance.random() < 0.5 for name in ("given_directed", "directed", "weighted")}
    return replace(case, **flags, rule=chance.choice(("min", "min", "max", "sum")))


def _weight(chance: Random, kind: str) -> Any:
    if kind == "bool":
        return chance.random() < 0.8
    whole = chance.choice((0, 1, 1, 2, 3, 7))
    if kind in FLOATS:
        return whole / 4
    if kind.endswith("64") and chance.random() < 0.05:
        return whole + (1 << 40)
    return whole


def _list_problems(case: DoorCase, folder: Path) -> Problems:
    for name, door in DOORS.items():
        try:
            made = door(case, folder)
        except Exception:
            yield f"{name}: {traceback.format_exc()}"
            continue
        if made is not None:
            wrong = made[1].difference(made[0])
            yield None if wrong is None else f"{name}: {wrong}"


# Algorithms by several interfaces, all compared with plain answers.


def _plain_case(meaning: Meaning) -> Case:
    """Return the edges of a meaning as the plain algorithms take them."""
    lists = meaning.lists()
    edges = [(u, v) for u, held in enumerate(lists) for v in held]
    weights = [float(weight) for held in lists for weight in held.values()]
    return Case("cpu", meaning.num_vertices, edges, True, weights)


def _graph_by_some_door(case: DoorCase, folder: Path) -> tuple[hb.CSRGraph, Meaning, Random]:
    """Return a graph by a door that has such graphs; the case alone decides."""
    chance = Random(case.text())
    names = chance.sample(list(DOORS), len(DOORS))
    for name in names:
        made = DOORS[name](case, folder)
        if made is not None:
            return *made, chance
    raise AssertionError("from_edges has all graphs")


def _source(case: Case, chance: Random) -> int:
    return chance.randrange(case.num_vertices)


def _level_problem(case: Case, source: int, level: Any) -> str | None:
    right = plain_answers.levels(case, {"sources": [source]})
    return None if list(level) == right else f"levels {list(level)}, expected {right}"


def _distance_problem(case: Case, source: int, distance: Any) -> str | None:
    right = plain_answers.distances(case, source)
    return None if list(distance) == right else f"distances {list(distance)}, expected {right}"


def _component_problem(case: Case, label: Any) -> str | None:
    """Compare the partition, whatever the labels are."""
    right = plain_answers.components(case)
    pairs = set(zip(right, list(label), strict=True))
    same = len(pairs) == len(set(right)) == len({label for _, label in pairs})
    return None if same else f"components {list(label)}, expected {right}"


def _rank_problem(case: Case, rank: Any) -> str | None:
    right = plain_answers.ranks(case, _ALPHA)
    close = np.allclose(rank, right, rtol=0, atol=1e-8)
    return None if close else f"ranks {list(rank)}, expected {right.tolist()}"


def _colour_problem(case: Case, colour: Any) -> str | None:
    wrong = [(u, v) for u, v in case.edges if colour[u] == colour[v]]
    return f"edge {wrong[0]} has one colour" if wrong else None


def _engine_problems(case: DoorCase, folder: Path) -> Problems:
    """Run everything by one engine, or by the functions that open one for each call."""
    graph, meaning, chance = _graph_by_some_door(case, folder)
    right = _plain_case(meaning)
    source = _source(right, chance)
    with contextlib.ExitStack() as stack:
        if chance.random() < 0.25:
            runs: Any = hb
            given: tuple[Any, ...] = (graph,)
        else:
            runs, given = stack.enter_context(hb.Engine(graph, device="cpu", correction=False)), ()
        yield _level_problem(right, source, runs.bfs(*given, source).level.tolist())
        if case.weighted:
            found = runs.sssp(*given, source).distance
            yield _distance_problem(right, source, found.tolist())
        yield _component_problem(right, runs.connected_components(*given).component.tolist())
        ranks = runs.pagerank(*given, alpha=_ALPHA, tol=_TOLERANCE).rank
        yield _rank_problem(right, ranks)
        yield _colour_problem(right, runs.colour(*given).colour)


_KINDS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def _csgraph_problems(case: DoorCase, folder: Path) -> Problems:
    """Compare `hb.csgraph`, with the same matrix in `from_scipy`, and with SciPy."""
    chance = Random(case.text())
    kind = chance.choice(_KINDS)
    if not has_matrix(case, kind):
        return
    form = "plain" if case.form == "big-endian" else case.form  # SciPy does not convert such
    given = replace(case, weighted=True, form=form)
    matrix = scipy_matrix(given, kind)
    meaning = scipy_meaning(given, kind, None)
    right = _plain_case(meaning)
    source = _source(right, chance)
    wrong = meaning.difference(hb.CSRGraph.from_scipy(matrix, case.directed, True))
    yield None if wrong is None else f"from_scipy of {kind}: {wrong}"
    found = hb.csgraph.dijkstra(matrix, case.directed, source)
    yield _distance_problem(right, source, found.tolist())
    # SciPy takes the zeros inside blocks for edges, and sums what is stored twice in some types.
    parallel = kind in ("csr", "csc") and len(set(case.edges)) < len(case.edges)
    if kind != "bsr" and not (parallel and case.weight_type != "float64"):
        its = scipy_csgraph.dijkstra(matrix, case.directed, source)
        yield None if np.array_equal(its, found) else f"{kind}: SciPy has {its}, we {found}"
    found = hb.csgraph.dijkstra(matrix, case.directed, source, unweighted=True)
    level = np.where(np.isinf(found), -1, found).astype(int)
    yield _level_problem(right, source, level.tolist())
    order = hb.csgraph.breadth_first_order(matrix, source, case.directed, False)
    reached = sorted(order.tolist()) == np.flatnonzero(level >= 0).tolist()
    yield None if reached else f"order {order}, levels {level}"
    _, label = hb.csgraph.connected_components(matrix, case.directed)
    yield _component_problem(right, label.tolist())


def _networkx_problems(case: DoorCase, folder: Path) -> Problems:
    """Compare the backend with NetworkX and with plain answers, if it takes the graph."""
    kind = networkx.DiGraph if case.given_directed else networkx.Graph
    graph = networkx_graph(case, kind)
    if graph is None:
        return
    read = replace(case, directed=case.given_directed, weighted=True)
    right = _plain_case(Meaning(read, case.edges, case.weights, "", case.num_vertices))
    chance = Random(case.text())
    source = _source(right, chance)
    lengths = networkx.single_source_shortest_path_length(graph, source, backend="hetero")
    level = [lengths.get(v, -1) for v in range(case.num_vertices)]
    yield _level_problem(right, source, level)
    with contextlib.suppress(NotImplementedError):
        lengths = networkx.single_source_dijkstra_path_length(graph, source, backend="hetero")
        distance = [lengths.get(v, np.inf) for v in range(case.num_vertices)]
        yield _distance_problem(right, source, distance)
    if not case.given_directed:
        groups = list(networkx.connected_components(graph, backend="hetero"))
        label = {v: number for number, group in enumerate(groups) for v in group}
        yield _component_problem(right, [label[v] for v in range(case.num_vertices)])
    with contextlib.suppress(NotImplementedError):  # loops; NetworkX then answers itself
        arguments: dict[str, Any] = {"tol": _TOLERANCE, "max_iter": 1000, "weight": None}
        ranks = networkx.pagerank(graph, _ALPHA, backend="hetero", **arguments)
        yield _rank_problem(right, [ranks[v] for v in range(case.num_vertices)])


_FILES = {"el": ".el", "tsv of KONECT": ".tsv", "gr": ".gr", "mtx": ".mtx", "hbg": ".hbg"}


def _command_problems(case: DoorCase, folder: Path) -> Problems:
    """Run commands in this process over a file."""
    from hetero_bfs.cli.main import main

    chance = Random(case.text())
    name, suffix = chance.choice(list(_FILES.items()))
    made = DOORS[name](replace(case, weighted=True), folder)
    if made is None:
        return
    path, meaning = path_of(folder, suffix), made[1]
    right = _plain_case(meaning)
    source = _source(right, chance)
    for command, problem in (
        (["sssp", "--source", source], lambda found: _distance_problem(right, source, found)),
        (["components"], lambda found: _component_problem(right, found)),
        (["pagerank", "--tol", _TOLERANCE], lambda found: _rank_problem(right, found)),
    ):
        out = folder / "doors.npy"
        flags = ["--directed"] * case.directed + ["--device", "cpu", "--out", out]
        words = [str(word) for word in (command[0], path, *command[1:], *flags)]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main(words)
        yield f"{words}: {said.getvalue()}" if status else problem(np.load(out).tolist())
        out.unlink(missing_ok=True)


KINDS: dict[str, Callable[[DoorCase, Path], Problems]] = {
    "lists": _list_problems,
    "engine": _engine_problems,
    "csgraph": _csgraph_problems,
    "networkx": _networkx_problems,
    "commands": _command_problems,
}


def trouble(kind: str, case: DoorCase, folder: Path) -> tuple[str | None, int]:
    """Try a case; return what is wrong, if anything, and how many comparisons were made."""
    tried = 0
    try:
        with networkx.config(warnings_to_ignore={"cache"}):
            for tried, wrong in enumerate(KINDS[kind](case, folder), 1):
                if wrong is not None:
                    return wrong, tried
    except Exception:
        return traceback.format_exc(), tried + 1
    return None, tried


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try one graph, kept as a file; slow kinds try one in several."""
    path = folder / f"{kind}-{seed}-{number}.json"
    case = draw(Random(f"{seed} {kind} {number}"))
    path.write_text(case.text())
    if number % _EVERY.get(kind, 1):
        return Attempt(path, None, 0)
    return Attempt(path, *trouble(kind, case, folder))


def replay(kind: str, path: Path) -> list[str] | None:
    """Try a kept graph."""
    try:
        case = DoorCase.of(path.read_text())
    except (ValueError, TypeError):
        return None
    wrong, _ = trouble(kind, case, path.parent)
    return [] if wrong is None else [wrong]


CAMPAIGN = Campaign("doors", KINDS, attempt, replay)
