"""Measure whole searches on an OpenCL device: speed by graph and configuration, and by level.

    python benchmarks/gpu.py --device NVIDIA --out benchmarks/results/NAME

writes gpu.csv (a row for each graph and way), gpu-levels.csv (the levels of one search of each
graph by the device's own clock) and gpu.md (both as tables, with machine and versions). Ways:

    auto        the default selector
    steps       the same, one step a launch instead of one launch a search
    parts       the same, with the edges in parts of at most --max-alloc bytes (Kronecker graphs)
    stream      the same, with at most --device-memory bytes on the device (the largest graph)
    cpu         the host alone, its default selector

All ways search from the same keys in turn. The results of the first --few-keys keys are validated
before. Graphs have their names in families.py, such as kronecker20, or are files.
`floor` is a lower bound of a search's time: the bytes of `floor_bytes` over the bandwidth of a copy
on the device, plus one launch with one read-back.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.check import Validator, group_size
from hetero_bfs.algorithms.bfs.device import OpenCLExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.cli.argument_groups import byte_count, positive
from hetero_bfs.devices.machine import DeviceInfo, Tuning, default_tuning
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph500.report import teps_statistics
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.trace import LevelTrace
from hetero_bfs.support.files import replacing
from hetero_bfs.support.messages import progress

Row = dict[str, Any]
_COPY_BYTES = 1 << 28
_WAYS = ("auto", "steps", "parts", "stream", "cpu")


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    levels: list[Row] = []
    info = choose_device(options.device)
    for name in options.graphs:
        edges = named_graph(name).make()
        graph = build_search_graph(edges)
        engines = open_engines(name, graph, options)
        more_rows, more_levels = measure(name, edges, graph, engines, options)
        rows += more_rows
        levels += more_levels
        for engine in engines.values():
            engine.close()
        del engines, engine
        write(pd.DataFrame(rows), pd.DataFrame(levels), info, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name; by default a GPU")
    parser.add_argument(
        "--graphs",
        type=lambda text: text.split(","),
        default=["kronecker20"],
        help="kronecker20, grid2048 and files, with commas (default kronecker20)",
    )
    parser.add_argument("--keys", type=positive, default=64, help="search keys (default 64)")
    parser.add_argument("--rounds", type=positive, default=3, help="times each key is searched")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["auto", "steps"])
    parser.add_argument("--max-alloc", type=byte_count, default=1 << 28, help="for `parts`")
    parser.add_argument("--device-memory", type=byte_count, default=1 << 30, help="for `stream`")
    parser.add_argument(
        "--few-keys", type=positive, default=8, help="keys validated, and of slow ways"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    options = parser.parse_args()
    unknown = set(options.ways) - set(_WAYS)
    if unknown:
        parser.error(f"--ways {sorted(unknown)[0]}: choose among {', '.join(_WAYS)}")
    return options


def open_engines(
    name: str, graph: SearchGraph, options: argparse.Namespace
) -> dict[str, hb.Engine]:
    probe = hb.Engine(graph, device=options.device)
    info = probe.device_info
    assert info is not None, probe.notes
    model = model_of(info)
    tuning: Tuning = (None if model is None else model.tuning) or default_tuning(info.type)
    largest = max(map(kronecker_scale, options.graphs))
    make: dict[str, Callable[[], hb.Engine]] = {
        "auto": lambda: probe,
        "steps": lambda: hb.Engine(graph, device=options.device, tuning=tuning.step_by_step()),
        "cpu": lambda: hb.Engine(graph, device="cpu"),
    }
    if kronecker_scale(name):
        make["parts"] = lambda: hb.Engine(
            graph, device=options.device, max_alloc_bytes=options.max_alloc
        )
    if kronecker_scale(name) == largest > 0:
        make["stream"] = lambda: hb.Engine(
            graph, device=options.device, device_memory_bytes=options.device_memory
        )
    return {way: make[way]() for way in ("auto", *options.ways) if way in make}


def kronecker_scale(name: str) -> int:
    """Return the scale of Graph500's graph of this name, 0 for another graph."""
    match = re.fullmatch(r"kronecker(\d+)", name)
    return int(match[1]) if match else 0


def measure(
    name: str,
    edges: Any,
    graph: SearchGraph,
    engines: dict[str, hb.Engine],
    options: argparse.Namespace,
) -> tuple[list[Row], list[Row]]:
    """Validate the first keys on every engine, then time all in turn."""
    count = options.keys if kronecker_scale(name) else min(options.keys, options.few_keys)
    keys = search_keys(graph.num_vertices, graph.is_isolated, count)
    nedge = validate(edges, keys, engines, min(options.few_keys, len(keys)))
    times: dict[str, list[float]] = {way: [] for way in engines}
    before = {way: engine.bytes_streamed for way, engine in engines.items()}
    for _ in range(options.rounds):
        for way, engine in engines.items():  # all keys of one way, as a device's clock rises slowly
            slow = way in ("stream", "cpu")
            times[way] += [
                engine.search(k).seconds for k in keys[: options.few_keys if slow else None]
            ]
    streamed = {way: engine.bytes_streamed - before[way] for way, engine in engines.items()}
    search = engines["auto"].search(keys[0])
    bandwidth, launch = copy_bandwidth(engines["auto"]), launch_seconds(engines["auto"])
    floor = floor_bytes(search.traces, graph.num_searched) / bandwidth + launch
    rows = []
    for way, engine in engines.items():
        counts = [nedge[k] for k in keys[: len(times[way]) // options.rounds]] * options.rounds
        rows.append(
            {
                "graph": Path(name).name,
                "way": way,
                "selector": engine.selector.name,
                "launches": launching(engine),
                "median_seconds": float(np.median(times[way])),
                "harmonic_mean_gteps": teps_statistics(times[way], counts)["harmonic_mean_TEPS"]
                / 1e9,
                "floor_seconds": floor,
                "parts": engine.num_parts if engine.streaming is None else 0,
                "streamed_bytes": streamed[way] // len(times[way]),
                "searches": len(times[way]),
            }
        )
    return rows, [{"graph": Path(name).name} | trace.row() for trace in search.traces[:16]]


def validate(
    edges: Any, keys: list[int], engines: dict[str, hb.Engine], few: int
) -> dict[int, int]:
    """Validate a few keys by every way; count the traversed edges of all keys."""
    deepest = 2 * int(engines["auto"].bfs(keys[0]).level.max())
    size = group_size(edges.num_vertices, few, deepest)
    nedge: dict[int, int] = {}
    for way, engine in engines.items():
        for start in range(0, few, size):
            nedge |= validate_group(edges, keys[start : min(start + size, few)], way, engine)
    return nedge | {key: engines["auto"].bfs(key).nedge for key in keys[few:]}


def validate_group(edges: Any, keys: list[int], way: str, engine: hb.Engine) -> dict[int, int]:
    """Validate searches from these keys in one pass over the edges; count their edges."""
    validator = Validator(edges, len(keys))
    counted: dict[int, int] = {}
    for key in progress(keys, f"searching, {way}"):
        result = engine.bfs(key)
        validator.add(key, result.parent, result.level)
        result.drop_parents()
        counted[key] = result.nedge
    for key, outcome in zip(keys, validator.finish(), strict=True):
        assert outcome.valid, f"{way}: {outcome.message}"
        assert outcome.nedge == counted[key], f"{way}: key {key}: {counted[key]} edges counted"
    return counted


def launching(engine: hb.Engine) -> str:
    accelerator = engine.accelerator
    if accelerator is None:
        return "-"
    in_one = isinstance(accelerator, OpenCLExecutor) and accelerator.program.one_launch
    return f"one of {accelerator.groups} groups" if in_one else "one a step"


def copy_bandwidth(engine: hb.Engine) -> float:
    """Return the bytes read and written per second by a copy within the device's memory."""
    assert engine.accelerator is not None
    device = engine.accelerator.device
    source, target = (device.buffer(_COPY_BYTES, np.uint8) for _ in range(2))
    seconds = []
    for _ in range(5):
        device.finish()
        started = time.perf_counter()
        device.copy(target, source)
        device.finish()
        seconds.append(time.perf_counter() - started)
    return 2 * _COPY_BYTES / min(seconds)


def launch_seconds(engine: hb.Engine) -> float:
    """Return the median seconds of an empty launch with its read-back."""
    assert engine.accelerator is not None
    seconds = []
    for _ in range(50):
        started = time.perf_counter()
        engine.accelerator.launch_nothing(Frontier(1, 2, 2))
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def floor_bytes(traces: list[LevelTrace], n: int) -> float:
    """Return a lower bound of the bytes that these levels read and write.

    Bottom-up reads and writes the bitmap, reads the first neighbour of each unvisited vertex, and
    writes the parent of each vertex it finds. Top-down reads a vertex and an offset for each
    frontier vertex, and each edge's end. It writes parent, vertex and offset of each one it finds.
    """
    total = 0.0
    for trace in traces:
        f = trace.features
        if trace.strategy.startswith("B"):
            total += n / 4 + 4 * f.unvisited_vertices + 4 * trace.found_vertices
        else:
            total += 8 * f.frontier_vertices + 4 * f.frontier_edges + 12 * trace.found_vertices
    return total


def write(
    rows: pd.DataFrame, levels: pd.DataFrame, info: DeviceInfo, options: argparse.Namespace
) -> None:
    with replacing(options.out / "gpu-levels.csv") as stream:
        levels.to_csv(stream, index=False, float_format="%.9g")
    save(options.out, "gpu", rows, describe(rows, levels, info, options))
    print(rows.to_string(index=False), flush=True)


def describe(
    rows: pd.DataFrame, levels: pd.DataFrame, info: DeviceInfo, options: argparse.Namespace
) -> list[str]:
    names = ",".join(Path(name).name for name in options.graphs)
    validated = min(options.few_keys, options.keys)
    shown = rows.copy()
    for column in ("median_seconds", "floor_seconds"):
        shown[column] = [f"{1e3 * s:.3f} ms" for s in shown[column]]
    shown["harmonic_mean_gteps"] = [f"{g:.2f}" for g in shown["harmonic_mean_gteps"]]
    steps = levels[["graph", "level", "frontier_vertices", "frontier_edges", "unvisited_vertices"]]
    steps = steps.assign(strategy=levels["strategy"])
    steps["us"] = [f"{1e6 * s:.1f}" for s in levels["seconds"]]
    steps["migr us"] = [f"{1e6 * s:.1f}" for s in levels["transfer_seconds"]]
    return [
        f"# Whole searches on {info.name}",
        "",
        *provenance(
            info,
            f"python benchmarks/gpu.py --graphs {names} "
            f"--keys {options.keys} --rounds {options.rounds} --few-keys {options.few_keys} "
            f"--ways {','.join(options.ways)} --max-alloc {options.max_alloc} "
            f"--device-memory {options.device_memory} --out ...",
        ),
        "",
        "From the key to the complete parent array in the device's memory (`cpu`: the host's), "
        f"initialisation included; the first {validated} keys of each way validated:",
        "",
        markdown(shown),
        "",
        "The first levels of one search by the default way. `us` is the level by the device's "
        "clock, `migr` converting a bitmap to a queue, and at the first level start, end, "
        "launch, read-back and the host's part:",
        "",
        markdown(steps),
    ]


if __name__ == "__main__":
    run_script(main)
