"""Programs that end while daemon threads use the package.

`python tests/support/endings.py KIND RUNS [THREADS [END]]`. Each run is a process, forked after the
imports, that starts daemon threads, waits a moment, and ends as END says. The last line counts the
exit statuses. A run before those compiles what is not yet compiled.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from types import SimpleNamespace

import numba
import numpy as np
import pyopencl  # noqa: F401
from oracle import engine_on
from sample_programs import Labels

import hetero_bfs as hb
from hetero_bfs.devices.opencl import driver
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice

MOST_SECONDS = 120

Work = Callable[[], object]


def _engine(**options) -> hb.Engine:
    weights = np.random.default_rng(1).integers(1, 9, 40_000).astype(np.int32)
    ends = np.random.default_rng(2).integers(0, 4_000, (2, 40_000)).astype(np.uint32)
    graph = hb.CSRGraph.from_edges(*ends, 4_000, weights=weights)
    return hb.Engine(graph, **options)


def _on_engine(call: Callable[[hb.Engine], object], **options) -> Callable[[], Work]:
    def prepare() -> Work:
        engine = _engine(**options)
        return lambda: call(engine)

    return prepare


def _streamed() -> Work:
    graph = hb.kronecker(16)
    device = replace(choose_device(), unified_memory=False)
    engine = engine_on(device, graph, selector="fixed:TG", device_memory_bytes=2**20)
    return lambda: engine.bfs(1)


def _ranks() -> Work:
    engine = hb.RankEngine(hb.kronecker(10))
    return lambda: engine.bfs(1)


def _opens() -> Work:
    return lambda: _engine(selector="fixed:TG").close()


def _compiles() -> Work:
    """Compile for the CPU and for the device: neither finds what an earlier process has kept."""
    folder = tempfile.mkdtemp()
    os.environ |= {"POCL_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
    numba.config.reload_config()
    return lambda: _engine().bfs(1)


def _once(call: Callable[..., object], **options) -> Callable[[], Work]:
    def prepare() -> Work:
        graph = hb.kronecker(12)
        return lambda: call(graph, **options)

    return prepare


KINDS: dict[str, Callable[[], Work]] = {
    "bfs": _once(hb.bfs, source=1),
    "engine": _on_engine(lambda engine: engine.bfs(1), selector="fixed:TG"),
    "bfs_many": _on_engine(lambda engine: engine.bfs_many(range(64))),
    "sssp": _on_engine(lambda engine: engine.sssp(1)),
    "pagerank": _on_engine(lambda engine: engine.pagerank()),
    "components": _on_engine(lambda engine: engine.connected_components()),
    "colour": _on_engine(lambda engine: engine.colour()),
    "program": _on_engine(lambda engine: engine.run(Labels(), hb.RunOptions(place="device"))),
    "ranks": _ranks,
    "streamed": _streamed,
    "opens": _opens,
    "compiles": _compiles,
    "cpu": _on_engine(lambda engine: engine.bfs(1), device="cpu"),
    "cpu compiles": lambda: lambda: _engine(device="cpu").bfs(1),
}


def _for_ever(work: Work) -> None:
    while True:
        work()


def _raise() -> None:
    raise ValueError("of the program's own")


def _search_at_exit() -> None:
    engine = _engine()
    atexit.unregister(driver.end)
    atexit.register(lambda: print("reached", np.count_nonzero(engine.bfs(1).level >= 0) > 0))
    atexit.register(driver.end)  # before the search: the last to come is the first to run


def _pool() -> None:
    engine = _engine()
    with ThreadPoolExecutor(3) as pool:
        print("reached", len(list(pool.map(engine.bfs, range(9)))) == 9)


def _not_daemon() -> None:
    """Leave a thread that goes on to its own end, as the main thread has ended."""
    engine = _engine()

    def search() -> None:
        time.sleep(0.1)
        print("reached", all(engine.bfs(source).level[source] == 0 for source in range(9)))

    threading.Thread(target=search).start()


def _spawned() -> None:
    process = get_context("spawn").Process(target=_run, args=("engine", 1, 1))
    process.start()
    process.join()
    print("reached", process.exitcode == 0)


def _hang() -> None:
    """Leave a thread in a call that does not return."""
    driver.MOST_SECONDS = 1.0

    def sleep(*_: object, **__: object) -> None:
        time.sleep(1e6)

    hanging = SimpleNamespace(_cl=SimpleNamespace(enqueue_copy=sleep), queue=None, queues=[])
    arguments = hanging, np.zeros(1), None
    threading.Thread(target=OpenCLDevice.read, args=arguments, daemon=True).start()


ENDS: dict[str, Callable[[], object]] = {
    "return": lambda: None,
    "exit 3": lambda: sys.exit(3),
    "raise": _raise,
    "search at exit": _search_at_exit,
    "pool": _pool,
    "not daemon": _not_daemon,
    "spawn": _spawned,
    "hang": _hang,
}


def _run(kind: str, threads: int, seed: int, end: str = "return") -> None:
    """Start the threads and return in their middle."""
    work = KINDS[kind]()
    if not kind.endswith(("opens", "compiles")):
        work()
    for _ in range(threads):
        threading.Thread(target=_for_ever, args=(work,), daemon=True).start()
    time.sleep(random.Random(seed).uniform(0.0, 0.3))
    ENDS[end]()


def main(kind: str, runs: str, threads: str = "1", end: str = "return") -> None:
    """Run a kind and print how the processes ended."""
    statuses: Counter[int] = Counter()
    for seed in range(int(runs) + 1):
        child = os.fork()
        if child == 0:
            if seed:
                faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)  # if it hangs
            _run(kind, int(threads), seed, end)
            return
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if seed:
            statuses[status] += 1
    print(kind, threads, end, dict(statuses))


if __name__ == "__main__":
    main(*sys.argv[1:])
