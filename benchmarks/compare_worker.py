"""One side of compare.py: imports hetero_bfs from one checkout, and measures on request.

    python benchmarks/compare_worker.py CHECKOUT

Reads one JSON request a line and answers each with one line: {"value": ...} or {"error": TEXT}.
Between requests it blocks on its pipe. It uses only the public interface of hetero_bfs, since other
commits have other modules. `prepare` selects a case; the other requests apply to it.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_WARM_SECONDS = 0.02  # of untimed searches, until the cores' clocks and caches recover
_TURN_SECONDS = 0.05  # shorter work is repeated for this time, and the median is taken
_SETTLING_RUNS = 6  # of an algorithm, after which an engine knows which place is the faster one

ALGORITHMS: dict[str, Callable[[Any, int], Any]] = {
    "sssp": lambda engine, key: engine.sssp(key),
    "pagerank": lambda engine, _: engine.pagerank(),
    "components": lambda engine, _: engine.connected_components(),
    "colour": lambda engine, _: engine.colour(),
    "many": lambda engine, key: engine.bfs_many(range(key, key + 64)),
    "levels": lambda engine, key: engine.run(programs().Levels(), source=key),
    "walks": lambda engine, _: engine.run(programs().Walks()),
}
"""Runs of an engine whose results have `seconds`; `key` is a vertex with edges."""

_EXACT = {
    "sssp": "distance",
    "components": "component",
    "colour": "colour",
    "many": "level",
    "levels": "level",
    "walks": "walks",
}
"""Fields that are the same whatever computes them."""


def main() -> None:
    checkout = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # prints of other code must not be read as answers
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker(import_from(checkout))
            answer = {"value": getattr(worker, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def programs() -> Any:
    import compare_programs

    return compare_programs


def import_from(checkout: Path) -> Any:
    """Import hetero_bfs from a checkout instead of the installed one."""
    editable = [finder for finder in sys.meta_path if "__editable__" in repr(finder)]
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in editable]
    sys.path.insert(0, str(checkout))
    import hetero_bfs as hb

    hb.__path__.append(str(checkout))  # the checkout's models/ and training/, as when installed
    return hb


class Worker:
    """Holds the graph of one case, its engine, and the work of a turn."""

    def __init__(self, hb: Any) -> None:
        self.hb = hb
        self.engine: Any = None

    def versions(self) -> dict[str, str]:
        """Return the package's path and the versions."""
        import numba

        return {
            "package": str(Path(self.hb.__file__).resolve().parent.parent),
            "python": platform.python_version(),
            "numba": numba.__version__,
        }

    def prepare(self, graph: str, what: str) -> list[str]:
        """Make the graph and open an engine; return the engine's notes."""
        self.is_settled = False
        in_memory, weighted = what == "build", what == "sssp"
        self.what, self.edges = what, edges_of(self.hb, graph, in_memory, weighted)
        self.engine = self._open()
        if what in ("device", "auto") and self.engine.device_info is None:
            raise LookupError(f"no OpenCL device; {'; '.join(self.engine.notes)}")
        if what != "build":
            self.edges = None  # frees its memory
        return list(self.engine.notes)

    def _open(self) -> Any:
        if self.what == "device":
            return self.hb.Engine(self.edges, selector="fixed:TG,BG")
        anywhere = self.what == "auto" or self.what in ALGORITHMS
        # The older package may have a setting of its own for the CPU alone.
        known = inspect.signature(self.hb.Engine).parameters
        alone = {"devices" if "devices" in known else "device": "cpu"}
        return self.hb.Engine(self.edges, **({} if anywhere else alone))

    def keys(self, count: int) -> list[int]:
        """Draw vertices that have edges."""
        import numpy as np

        found = np.flatnonzero(self.engine.bfs(0).input_degree)
        rng = np.random.default_rng(2018)
        return [int(key) for key in rng.choice(found, min(count, found.size), replace=False)]

    def checksums(self, keys: Sequence[int]) -> list[int]:
        """Return a checksum of what is found for each key; two sides must agree on them."""
        field = _EXACT.get(self.what, "level")
        run = ALGORITHMS[self.what] if self.what in _EXACT else self._search
        found = (getattr(run(self.engine, key), field) for key in keys)
        return [zlib.crc32(array.astype("float64").tobytes()) for array in found]

    @staticmethod
    def _search(engine: Any, key: int) -> Any:
        return engine.bfs(key)

    def turn(self, keys: Sequence[int]) -> list[float]:
        """Return the seconds of the search from each key, or of one construction."""
        if self.what == "build":
            return repeated(self._construct)
        if self.what in ALGORITHMS:
            return self._run_algorithm(keys)
        warm_at = time.perf_counter() + _WARM_SECONDS
        while time.perf_counter() < warm_at:
            self.engine.bfs(keys[0])
        old_name = "bfs_in_a_row"  # in checkouts before 1ba8bbb
        search = getattr(self.engine, "bfs_back_to_back", None) or getattr(self.engine, old_name)
        return repeated(lambda: [found.seconds for found in search(keys)])

    def _run_algorithm(self, keys: Sequence[int]) -> list[float]:
        run, engine = ALGORITHMS[self.what], self.engine
        for _ in range(0 if self.is_settled else _SETTLING_RUNS):
            run(engine, keys[0])
        self.is_settled = True
        run(engine, keys[0])  # caches are cold after the other side's turn
        return repeated(lambda: [run(engine, key).seconds for key in keys])

    def _construct(self) -> list[float]:
        """Return the seconds of opening an engine, less those of all steps after construction."""
        started = time.perf_counter()
        with self._open() as engine:
            seconds = time.perf_counter() - started
            return [seconds - engine.upload_seconds - engine.compile_seconds]


def edges_of(hb: Any, name: str, in_memory: bool, weighted: bool = False) -> Any:
    match = re.fullmatch(r"(kronecker|uniform|grid)(\d+)", name)
    if match is None:
        graph = hb.load(name)
        return with_random_weights(hb, *ends_of(graph), graph.num_vertices) if weighted else graph
    size = int(match[2])
    if match[1] == "grid":
        return grid(hb, size, weighted)
    if match[1] == "uniform":
        return uniform(hb, size)
    if weighted:
        return hb.kronecker(size, weighted=True)
    edges = hb.KroneckerEdges(size)
    return edges.materialise() if in_memory else edges


def ends_of(graph: Any) -> tuple[Any, Any]:
    import numpy as np

    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)), graph.indices


def with_random_weights(hb: Any, src: Any, dst: Any, num_vertices: int) -> Any:
    """Return an undirected graph with float32 weights between 0 and 1."""
    import numpy as np

    weights = np.random.default_rng(2018).random(src.size, np.float32)
    return hb.CSRGraph.from_edges(src, dst, num_vertices, weights=weights)


def uniform(hb: Any, scale: int) -> Any:
    """Return a graph of 2**scale vertices and 16 times that number of random edges."""
    import numpy as np

    ids = np.random.default_rng(2018).integers(0, 1 << scale, (2, 16 << scale), np.uint32)
    return hb.CSRGraph.from_edges(ids[0], ids[1], 1 << scale)


def grid(hb: Any, side: int, weighted: bool = False) -> Any:
    import numpy as np

    ids = np.arange(side * side, dtype=np.uint32).reshape(side, side)
    src = np.concatenate((ids[:, :-1].ravel(), ids[:-1].ravel()))
    dst = np.concatenate((ids[:, 1:].ravel(), ids[1:].ravel()))
    if weighted:
        return with_random_weights(hb, src, dst, side * side)
    return hb.CSRGraph.from_edges(src, dst, side * side)


def repeated(measure: Callable[[], list[float]]) -> list[float]:
    """Measure until a turn's time has passed; return the median of each item."""
    end = time.perf_counter() + _TURN_SECONDS
    rows = [measure()]
    while time.perf_counter() < end:
        rows.append(measure())
    return [statistics.median(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main()
