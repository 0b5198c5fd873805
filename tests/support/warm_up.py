"""Compiles what every worker of the suite needs, once, before the workers start."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

_SMALL = ["--scale", "5", "--sources", "1", "--device", "cpu"]
_LANES = (
    [["hetero_bfs", "graph500", *_SMALL]],
    [
        ["hetero_bfs.engine.compile_beside"],
        ["hetero_bfs", "graph500", "--kernel", "sssp", *_SMALL],
    ],
)


def warm_up() -> None:
    """Fill the cache of compiled code by two processes at a time.

    Errors are left to the tests. Compiled code that is already there is only loaded.
    """
    with ThreadPoolExecutor(len(_LANES)) as pool:
        list(pool.map(_run, _LANES))


def _run(lane: list[list[str]]) -> None:
    for module, *arguments in lane:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,  # compile_beside runs until it closes
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            process.wait()
