"""Measure the seconds until a caller has parents and levels of searches of Kronecker graphs.

    python -m benchmarks gather --scales 20,22,24 --device NVIDIA

Each row has medians in milliseconds, from the same keys in turn: the search; then from its end to
the caller's parents as int64 and as int32, and to the levels (`gather_seconds`). `call` is a whole
call with int64. `sent` restores on the device and copies, and the host converts nothing (empty
without a device that restores). `by host` gathers the parents and restores them on the host.
`fresh` is int64 with all earlier results kept, so that its memory is new.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from tables import run_script

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import source_commit
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.generators.kronecker import search_keys

_WARM_UP, _KEPT = 2, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--scales", type=lambda text: text.split(","), default=["20"], help="such as 20,22,24"
    )
    parser.add_argument("--device", help='as of an Engine; "cpu" for the host alone')
    parser.add_argument("--selector", default="auto", help="such as fixed:TG,BG (default auto)")
    parser.add_argument("--keys", type=positive, default=16, help="search keys (default 16)")
    parser.add_argument("--rounds", type=positive, default=3, help="times each key is searched")
    options = parser.parse_args()
    rows = []
    for scale in options.scales:
        edges = named_graph(f"kronecker{scale}").make()
        with hb.Engine(edges, options.selector, options.device) as engine:
            keys = search_keys(engine.graph.num_vertices, engine.graph.is_isolated, options.keys)
            check(edges, engine, keys[0])
            rows.append({"scale": int(scale), **measure(engine, keys, options.rounds)})
            where = engine.device_info.name if engine.device_info else "no device"
            notes = engine.notes
        print(f"scale {scale}: {where}, {engine.threads or 'all'} threads {notes}", flush=True)
    print(f"commit {source_commit()}, ms\n{pd.DataFrame(rows).to_string(index=False)}")


def check(edges: Any, engine: hb.Engine, key: int) -> None:
    for dtype in ("int64", "int32"):
        result = engine.bfs(key, dtype=dtype)
        outcome = hb.validate(edges, key, result.parent, engine.bfs(key, want="levels").level)
        assert outcome.valid, outcome.message


def measure(engine: hb.Engine, keys: list[int], rounds: int) -> dict[str, float]:
    forms = {"int64": {}, "int32": {"dtype": "int32"}, "levels": {"want": "levels"}}
    seconds: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        seconds.setdefault(name, []).append(value)

    for number in range(rounds + 1):
        if number == 1:
            seconds.clear()  # the first round warms up
        for name, asked in forms.items():
            for key in keys:
                started = time.perf_counter()
                result = engine.bfs(key, **asked)
                called = time.perf_counter() - started
                note("search", result.seconds)
                note(name, result.gather_seconds)
                if name == "int64":
                    note("call", called)
        del result
        for key in keys:
            search = engine.search(key)
            results = search.device_results
            if results is not None:
                note("sent", timed(lambda one=results: one.send_parents(lambda *_: None)))
            note("by host", timed(lambda one=search: restore_by_host(engine, one)))
    kept = [engine.bfs(key) for key in keys[: _WARM_UP + _KEPT]]
    for result in kept[_WARM_UP:]:
        note("fresh", result.gather_seconds)
    return {name: round(1e3 * float(np.median(values)), 3) for name, values in seconds.items()}


def restore_by_host(engine: hb.Engine, search: Any) -> None:
    search.gather()
    engine.platform.host.restore_parents()


def timed(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


if __name__ == "__main__":
    run_script(main)
