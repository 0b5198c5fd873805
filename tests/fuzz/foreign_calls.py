"""Programs and simulated ranks with foreign arrays; see foreign_doors.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

import hetero_bfs as hb
from hetero_bfs.engine.rank_engine import RankEngine
from tests.fuzz import foreign_arrays as foreign
from tests.fuzz import plain_answers as plain
from tests.fuzz.cases import Case
from tests.fuzz.foreign_doors import Unlike, outcome, same
from tests.fuzz.foreign_tables import Given, OwnSource, draw_edges, edge_arrays
from tests.support.simulated_ranks import run_ranks

_FIELD_TYPES = ("?", "i4", "i8", "u4", "u8", "f4", "f8")  # of arguments of programs
_N = 20
_ALPHA, _TOL = 0.85, 1e-7


class _Largest(hb.Program):
    """The largest value of all vertices that lead to each."""

    state = {"value": np.float64}  # noqa: RUF012
    combine = hb.maximum

    def initial(self, value):
        return value

    def message(self, state):
        return state.value

    def apply(self, state, combined):
        return max(state.value, combined)


def _largest(case: Case, values: Any) -> list[float]:
    found = [-np.inf] * case.num_vertices
    for source in range(case.num_vertices):
        for v, level in enumerate(plain.levels(case, {"sources": [source]})):
            if level >= 0:
                found[v] = max(found[v], float(values[source]))
    return found


@cache
def _engine(directed: bool) -> tuple[Any, Case]:
    chance = Random(6)
    edges = [(chance.randrange(_N), chance.randrange(_N)) for _ in range(25)]
    case = Case("cpu", _N, edges, directed=directed)
    return hb.Engine(case.edge_list(), device="cpu", correction=False), case


def _values(chance: Random, n: int) -> Given:
    kind = chance.choice(_FIELD_TYPES)
    return Given(chance, {"value": np.array([chance.randrange(2) for _ in range(n)], kind)})


def try_program(chance: Random) -> None:
    """Run a program with an array."""
    engine, case = _engine(chance.random() < 0.5)
    given = _values(chance, _N)
    values = _numbers_of(given.arrays["value"], _N)
    result = outcome(
        lambda: engine.run(_Largest(), value=given.arrays["value"]),
        given.sound,
        values is not None or np.ndim(given.arrays["value"]) == 0,
        "Engine.run",
    )
    if result is not None and values is not None:
        same(result.state["value"], _largest(case, values), "states")


def _numbers_of(array: Any, n: int) -> Any:
    """Return an array's numbers; None if it is damaged, or holds NaN."""
    values = foreign.numbers(array)
    return None if values is None or values.shape != (n,) or np.isnan(values).any() else values


# Ranks


def try_ranks(chance: Random) -> None:
    """Open simulated ranks with a source of edges, and call one of their methods."""
    n, edges = draw_edges(chance)
    given = Given(chance, edge_arrays(chance, edges))
    usual = given.sound and given.usual_weights()
    for name in ("src", "dst"):  # what a source must give
        if given.sound and chance.random() < 0.8:
            given.arrays[name] = np.asarray(given.arrays[name]).astype(np.uint32)
        usual = usual and given.arrays[name].dtype == np.uint32
    source = OwnSource(n, chance.random() < 0.5, given.arrays)
    expected = source.edges()
    method = chance.choice((_bfs, _sssp, _pagerank, _run))
    case = None
    if expected is not None:
        weights = None if source.weight_dtype is None else [w for _, _, w in expected]
        pairs = [(u, v) for u, v, _ in expected]
        case = Case("cpu", n, pairs, source.directed, weights, "float64")
    method(chance, source, case, usual)


def _by_ranks(chance: Random, source: Any, call: Callable[[RankEngine], Any]) -> Any:
    def work(communicator: Any) -> Any:
        return call(RankEngine(source if communicator.rank == 0 else None, communicator))

    return run_ranks(chance.choice((1, 2, 3)), work)[-1]


def _bfs(chance: Random, source: Any, case: Case | None, usual: bool) -> None:
    start = chance.choice((0, 0, np.uint64(0), np.array(0), -1, 10**6, 2**70, None, [0], "0"))
    right = not isinstance(start, str) and start in (0, [0])
    found = outcome(
        lambda: _by_ranks(chance, source, lambda engine: engine.bfs(start)),
        usual and right,
        case is not None and right,
        "RankEngine.bfs",
    )
    if found is not None and case is not None:
        same(found.level, plain.levels(case, {"sources": [0]}), "levels")


def _sssp(chance: Random, source: Any, case: Case | None, usual: bool) -> None:
    has = case is not None and case.weights is not None
    least = min(case.weights, default=0.0) if case is not None and case.weights else 0.0
    found = outcome(
        lambda: _by_ranks(chance, source, lambda engine: engine.sssp(0)),
        usual and has and least >= 0,
        has,
        "RankEngine.sssp",
    )
    if found is not None and case is not None and least >= 0:
        same(found.distance, plain.distances(case, 0), "distances")


def _pagerank(chance: Random, source: Any, case: Case | None, usual: bool) -> None:
    weighted = chance.random() < 0.5
    shares = [chance.choice((0.0, 1.0, 2.0)) for _ in range(source.num_vertices)]
    given = Given(chance, {"shares": np.array(shares)})
    asked = chance.choice((None, given.arrays["shares"]))
    restart = None if asked is None else _numbers_of(asked, source.num_vertices)
    fits = asked is None or (restart is not None and restart.min() >= 0 < restart.sum() < np.inf)
    if weighted and (case is None or case.weights is None):
        fits = False
    elif weighted:
        fits = fits and 0 <= min(case.weights, default=0) <= max(case.weights, default=0) < np.inf
    found = outcome(
        lambda: _by_ranks(
            chance,
            source,
            lambda engine: engine.pagerank(_ALPHA, _TOL, 10_000, weighted, asked),
        ),
        usual and given.sound and fits,
        case is not None and fits,
        f"RankEngine.pagerank, weighted={weighted}",
    )
    if found is None or case is None:
        return
    right = plain.ranks(case, _ALPHA, restart, weighted)
    wrong = float(np.abs(found.rank - right).sum())
    bound = case.num_vertices * _TOL / (1 - _ALPHA)
    if not wrong <= bound:
        raise Unlike(f"ranks are off by {wrong}, more than {bound}")


def _run(chance: Random, source: Any, case: Case | None, usual: bool) -> None:
    given = _values(chance, source.num_vertices)
    value = given.arrays["value"]
    values = _numbers_of(value, source.num_vertices)
    found = outcome(
        lambda: _by_ranks(
            chance, source, lambda engine: engine.run(_Largest(), value=value).gathered("value")
        ),
        usual and given.sound,
        case is not None and (values is not None or np.ndim(value) == 0),
        "RankEngine.run",
    )
    if found is not None and case is not None and values is not None:
        same(found, _largest(case, values), "states by ranks")
