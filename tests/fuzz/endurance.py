"""Long use of one process: answers stay right; memory, objects, descriptors, threads stay flat.

An input is a block of work. The first blocks of each kind fill pools and caches. What the process
holds later is compared with what it held after them.
"""

from __future__ import annotations

import gc
import json
import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

import hetero_bfs as hb
from tests.fuzz.campaign import Attempt, Campaign

_SCALE = 8
_SEARCHES = 10_000  # of one block
_ENGINES = 10
_THREADS = 8
_RUNS_OF_A_THREAD = 200
_BLOCKS_BEFORE = 3  # of each kind, until pools are full
_BYTES_A_BLOCK = 96 * 2**10  # PoCL 3.1 keeps about 50 KiB of ten engines (benchmarks/notes/gpu.md)


class _Held(NamedTuple):
    """What a process holds. `objects` are those of Python that its collector knows."""

    num_bytes: int
    objects: int
    descriptors: int
    threads: int


_MORE = _Held(32 * 2**20, 10_000, 0, 0)
"""By how much that may grow: pools of malloc; first choices that an engine stores."""


def _held() -> _Held:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    values = dict(line.split(":", 1) for line in status.splitlines())
    num_bytes = 1024 * int(values["VmRSS"].split()[0])
    descriptors = len(os.listdir("/proc/self/fd"))
    return _Held(num_bytes, len(gc.get_objects()), descriptors, int(values["Threads"]))


@cache
def _graph() -> hb.CSRGraph:
    return hb.CSRGraph.from_edge_source(hb.KroneckerEdges(_SCALE, weighted=True))


@cache
def _right(weighted: bool) -> npt.NDArray[np.float64]:
    """Return all distances from all vertices, by SciPy."""
    graph = _graph()
    weights = graph.weights if weighted else np.ones(graph.indices.size)
    shape = (graph.num_vertices, graph.num_vertices)
    matrix = scipy.sparse.csr_array((weights, graph.indices, graph.indptr), shape)
    distances: npt.NDArray[np.float64] = dijkstra(matrix)
    return distances


@cache
def _shared_engine() -> hb.Engine:
    return hb.Engine(_graph())


def _search(engine: hb.Engine, source: int) -> str | None:
    right = _right(False)[source]
    same = np.array_equal(engine.bfs(source).level, np.where(np.isinf(right), -1, right))
    return None if same else f"levels from {source} are wrong"


def _paths(engine: hb.Engine, source: int) -> str | None:
    same = np.allclose(engine.sssp(source).distance, _right(True)[source])
    return None if same else f"distances from {source} are wrong"


def _components(engine: hb.Engine, source: int) -> str | None:
    check = hb.check_components(_graph(), engine.connected_components().component)
    return None if check.valid else check.message


def _ranks(engine: hb.Engine, source: int) -> str | None:
    check = hb.check_pagerank(_graph(), engine.pagerank().rank)
    return None if check.valid else check.message


_MIXED = (_search, _search, _search, _paths, _components, _ranks)


def _searches(chance: Random) -> Iterator[str | None]:
    for _ in range(_SEARCHES):
        yield _search(_shared_engine(), chance.randrange(2**_SCALE))


def _engines(chance: Random) -> Iterator[str | None]:
    for _ in range(_ENGINES):
        order = chance.choice(("auto", "degree", "locality", "given"))
        device = chance.choice(("auto", "cpu"))
        with hb.Engine(_graph(), order=order, device=device) as engine:
            for run in _MIXED:
                yield run(engine, chance.randrange(2**_SCALE))


def _thread(seed: int) -> list[str]:
    """Use the shared engine, and sometimes an own one; return what is wrong."""
    chance = Random(seed)
    wrong = []
    for _ in range(_RUNS_OF_A_THREAD):
        run, source = chance.choice(_MIXED), chance.randrange(2**_SCALE)
        if chance.random() < 1 / _RUNS_OF_A_THREAD:
            with hb.Engine(_graph(), device="cpu") as engine:
                wrong.append(run(engine, source))
        else:
            wrong.append(run(_shared_engine(), source))
    return [problem for problem in wrong if problem is not None]


def _threads(chance: Random) -> Iterator[str | None]:
    with ThreadPoolExecutor(_THREADS) as pool:
        seeds = [chance.randrange(2**32) for _ in range(_THREADS)]
        for wrong in pool.map(_thread, seeds):
            yield from wrong or [None]
            yield from [None] * (_RUNS_OF_A_THREAD - 1)


KINDS: dict[str, Callable[[Random], Iterator[str | None]]] = {
    "searches": _searches, "engines": _engines, "threads": _threads,
}  # fmt: skip
_blocks = dict.fromkeys(KINDS, 0)
_before: dict[str, _Held] = {}


def _grown(kind: str) -> str | None:
    """Compare what the process holds with what it held after the first blocks of all kinds."""
    _blocks[kind] += 1
    if min(_blocks.values()) < _BLOCKS_BEFORE:
        return None
    held = _held()
    before = _before.setdefault(kind, held)
    most = [was + more for was, more in zip(before, _MORE, strict=True)]
    most[0] += (_blocks[kind] - _BLOCKS_BEFORE) * _BYTES_A_BLOCK
    if any(now > allowed for now, allowed in zip(held, most, strict=True)):
        return f"after block {_blocks[kind]} it holds {held}, and {before} before"
    return None


def _trouble(kind: str, chance: Random) -> tuple[str | None, int]:
    """Do a block; return what went wrong, None if nothing did, and the number of runs."""
    runs = 0
    try:
        for wrong in KINDS[kind](chance):
            runs += 1
            if wrong is not None:
                return wrong, runs
    except Exception:
        return traceback.format_exc(), runs
    return _grown(kind), runs


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try one block; what is kept are the numbers that give it."""
    path = folder / f"{kind}-{seed}-{number}.json"
    path.write_text(json.dumps([seed, number]))
    wrong, runs = _trouble(kind, Random(f"{seed} {kind} {number}"))
    return Attempt(path, wrong, runs)


def replay(kind: str, path: Path) -> list[str] | None:
    """Do a kept block again, in a new process, which has held nothing before."""
    try:
        seed, number = json.loads(path.read_text())
    except (ValueError, TypeError):
        return None
    wrong, _ = _trouble(kind, Random(f"{seed} {kind} {number}"))
    return [] if wrong is None else [wrong]


CAMPAIGN = Campaign("endurance", KINDS, attempt, replay)
