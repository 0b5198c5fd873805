"""Compare objectives: searches for least time, least energy, and least product of both.

    python benchmarks/energy.py --device NVIDIA --scales 20,22,24 --out benchmarks/results/NAME

writes energy.csv (a row for each graph, selector, objective and domain), energy-windows.csv (every
measurement) and energy.md (the table, watts and schedules, with machine and versions). If the
machine's model has no watts yet, they are measured first and the model with them is written
there too; `--watts` does so anyway.

Each selector searches under each objective in turn from the same keys, for as long as the meters
need, `--rounds` times over; the machine at rest is metered in every round. Joules are those of one
domain ("device", "cpu", "system"), never of several. Work that no meter sees is stated as a share
of the levels' seconds: joules of such rows lack it, and are not comparable with the others.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs import energy
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph500.protocol import meters_of
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.objective import Power, unmetered_share
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND
from hetero_bfs.scheduling.strategies import OBJECTIVES, STRATEGIES
from hetero_bfs.scheduling.trace import LevelTrace
from hetero_bfs.support.files import replacing
from hetero_bfs.training.metering import Metering, Window, batch_of
from hetero_bfs.training.strategy_watts import add_watts

Row = dict[str, Any]
SELECTORS = ("auto", "learned")


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    info = next(iter(choose_devices(options.device)), None)
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # raises for a bad log
    meters, missing = meters_of(info, options.power_log, [])
    for one in missing:
        print(f"unmeasured: {one.domain}: {one.name}: {one.reason}", file=sys.stderr)
    if not meters:
        raise energy.MeterError("nothing on this machine measures energy; give a --power-log FILE")
    power = model_with_watts(info, options)
    metering = Metering(meters)
    windows: list[Row] = []
    for scale in options.scales:
        edges = hb.KroneckerEdges(scale).materialise()
        graph = build_search_graph(edges)
        windows += measure(scale, edges, graph, info, metering, options)
        write_tables(pd.DataFrame(windows), power, metering, info, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name, or cpu; by default a GPU")
    parser.add_argument("--scales", type=numbers, default=[18], help="of Kronecker graphs: 20,22")
    parser.add_argument("--keys", type=positive, default=16, help="search keys (default 16)")
    parser.add_argument(
        "--rounds", type=positive, default=3, help="times all is measured (default 3)"
    )
    parser.add_argument("--watts", action="store_true", help="measure the model's watts anew")
    parser.add_argument("--power-log", type=Path, metavar="FILE", help="of an external meter")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def model_with_watts(info: DeviceInfo | None, options: argparse.Namespace) -> Power:
    """Return the watts of this machine's model; without any, measure and keep them in `--out`."""
    model = model_of(info)
    if model is None:
        raise HeteroBFSError(
            f"no speed model for this machine ({machine_slug(info)}); train with `{TRAIN_COMMAND}`"
        )
    if model.power is None or options.watts:
        os.environ[MODELS_VARIABLE] = str(options.out)  # selectors find the model there
        path = options.out / f"{model.name}.json"
        model = add_watts(model, info, False, options.power_log, path)
    assert model.power is not None, "they were measured"
    return model.power


def measure(
    scale: int,
    edges: Any,
    graph: SearchGraph,
    info: DeviceInfo | None,
    metering: Metering,
    options: argparse.Namespace,
) -> list[Row]:
    """Meter every selector under every objective in turn, and the machine at rest, in rounds."""
    keys = search_keys(graph.num_vertices, graph.is_isolated, options.keys)
    rows: list[Row] = []
    with hb.Engine(graph, **device_settings(info)) as engine:
        for selector in SELECTORS:
            for objective_name in OBJECTIVES:
                engine.set_selector(selector, objective_name)
                validate(engine, edges, keys[:2])
        for number in range(options.rounds):
            rest = metering.rest()
            idle = {domain: joules / rest.seconds for domain, joules in rest.joules.items()}
            for selector in SELECTORS:
                for objective_name in OBJECTIVES:
                    engine.set_selector(selector, objective_name)
                    window = metering.window(batch_of(engine, keys))
                    about = {
                        "scale": scale,
                        "selector": selector,
                        "objective": objective_name,
                        "round": number,
                    }
                    about |= describe_searches(engine, keys, metering)
                    rows += window_rows(about, window, idle)
        for note in engine.notes:
            print(f"note: {note}", file=sys.stderr)
    return rows


def validate(engine: hb.Engine, edges: Any, keys: list[int]) -> None:
    for key in keys:
        result = engine.bfs(key)
        outcome = hb.validate(edges, key, result.parent, result.level)
        assert outcome.valid, f"{engine.selector.name}, key {key}: {outcome.message}"


def describe_searches(engine: hb.Engine, keys: list[int], metering: Metering) -> Row:
    """Search once from each key; return seconds, schedules, and the unmetered share of time."""
    info = engine.device_info
    shared = info is not None and info.unified_memory
    seconds: list[float] = []
    schedules: Counter[str] = Counter()
    traces: list[LevelTrace] = []
    for key in keys:
        search = engine.search(key)
        seconds.append(search.seconds)
        schedules[" ".join(trace.strategy for trace in search.traces)] += 1
        traces += search.traces
    schedule, count = schedules.most_common(1)[0]
    return {
        "chosen_selector": engine.selector.name,
        "median_seconds": float(np.median(seconds)),
        "schedule": schedule,
        "schedule_keys": count,
        "keys": len(keys),
        "unmetered_share": unmetered_share(traces, metering.domains(), shared),
    }


def window_rows(about: Row, window: Window, idle: dict[Any, float]) -> list[Row]:
    rows = []
    for domain in window.joules:
        joules, seconds = window.joules_of([domain]), window.seconds_of
        rows.append(
            about
            | {
                "domain": domain,
                "searches": window.searches,
                "window_seconds": window.seconds,
                "seconds": seconds,
                "joules": joules,
                "idle_watts": idle[domain],
                "net_joules": joules - idle[domain] * seconds,
                "joule_seconds": joules * seconds,
                "sampling_error_joules": joules * window.error_seconds[domain] / window.seconds,
            }
        )
    return rows


def summarise(windows: pd.DataFrame) -> pd.DataFrame:
    """Return means over the rounds; errors come from their scatter, and at least from sampling."""
    rows = []
    groups = windows.groupby(["scale", "selector", "objective", "domain"], sort=False)
    for (scale, selector, objective_name, domain), rounds in groups:
        joules = rounds["joules"].to_numpy()
        sampling = float(rounds["sampling_error_joules"].mean())
        scatter = stdev(joules) if len(joules) > 1 else 0.0
        first = rounds.iloc[0]
        rows.append(
            {
                "scale": scale,
                "selector": selector,
                "objective": objective_name,
                "chosen_selector": first["chosen_selector"],
                "domain": domain,
                "median_seconds": float(rounds["median_seconds"].median()),
                "seconds": float(rounds["seconds"].mean()),
                "joules": float(joules.mean()),
                "error_joules": max(scatter, sampling) / len(joules) ** 0.5,
                "net_joules": float(rounds["net_joules"].mean()),
                "joule_seconds": float(rounds["joule_seconds"].mean()),
                "watts": float(joules.mean() / rounds["seconds"].mean()),
                "idle_watts": float(rounds["idle_watts"].mean()),
                "unmetered_share": float(rounds["unmetered_share"].mean()),
                "schedule": first["schedule"],
                "schedule_keys": first["schedule_keys"],
                "keys": first["keys"],
                "searches": int(rounds["searches"].sum()),
            }
        )
    return pd.DataFrame(rows)


def write_tables(
    windows: pd.DataFrame,
    power: Power,
    metering: Metering,
    info: DeviceInfo | None,
    options: argparse.Namespace,
) -> None:
    table = summarise(windows)
    with replacing(options.out / "energy-windows.csv") as stream:
        windows.to_csv(stream, index=False, float_format="%.9g")
    lines = describe(table, power, metering, info, options)
    save(options.out, "energy", table, lines)
    if options.scales[-1] == table["scale"].iloc[-1]:
        print("\n".join(lines))


def describe(
    table: pd.DataFrame,
    power: Power,
    metering: Metering,
    info: DeviceInfo | None,
    options: argparse.Namespace,
) -> list[str]:
    scales = ",".join(str(scale) for scale in options.scales)
    given = f" --device {options.device}" if options.device else ""
    given += " --watts" if options.watts else ""
    given += " --power-log ..." if options.power_log else ""
    periods = metering.periods()
    meters = "; ".join(
        f"{domain}: {name}, updated every {1e3 * periods[domain]:.3g} ms"
        for domain, name in metering.names().items()
    )
    return [
        "# Searches by objective",
        "",
        *provenance(
            info,
            f"python benchmarks/energy.py{given} --scales {scales} "
            f"--keys {options.keys} --rounds {options.rounds} --out ...",
        ),
        f"- meters: {meters}; windows of {metering.window_seconds:.3g} s, {options.rounds} "
        "rounds, everything in turn; +- is the standard error over the rounds, at least that "
        "of sampling",
        "",
        "Whole searches, one after another. `ms` is the median from the key to the complete "
        "parents; joules are those of a search with what the host does between two of them, "
        "`net` above the machine at rest; `mJ x ms` is joules times seconds of the window. "
        "`unmetered` is the share of the levels' time that ran where no meter looks:",
        "",
        markdown(shown(table)),
        "",
        "Watts of each strategy by the speed model, idle included "
        f"({', '.join(f'{d} {w:g} W idle' for d, w in power.idle_watts.items())}): "
        f"{power.method}. What is remarked on is not of the difference, and its +- what lies "
        "above idle:",
        "",
        markdown(watts_table(power)),
    ]


def shown(table: pd.DataFrame) -> pd.DataFrame:
    errors = table["error_joules"]
    return pd.DataFrame(
        {
            "scale": table["scale"],
            "selector": table["selector"],
            "objective": table["objective"],
            "chosen": table["chosen_selector"],
            "domain": table["domain"],
            "ms": [f"{1e3 * s:.3f}" for s in table["median_seconds"]],
            "mJ": [
                f"{1e3 * j:.4g} +- {1e3 * e:.2g}"
                for j, e in zip(table["joules"], errors, strict=True)
            ],
            "net mJ": [f"{1e3 * j:.4g}" for j in table["net_joules"]],
            "mJ x ms": [f"{1e6 * p:.4g}" for p in table["joule_seconds"]],
            "W": [f"{w:.4g}" for w in table["watts"]],
            "unmetered": [f"{100 * s:.0f} %" for s in table["unmetered_share"]],
            "schedule": [
                f"{s} ({c} of {k} keys)"
                for s, c, k in zip(
                    table["schedule"], table["schedule_keys"], table["keys"], strict=True
                )
            ],
        }
    )


def watts_table(power: Power) -> pd.DataFrame:
    rows = []
    for name in STRATEGIES:
        row = {"strategy": name}
        for domain, idle in power.idle_watts.items():
            watts = power.watts.get(name, {}).get(domain)
            row[f"{domain} W"] = "unmeasured"
            row[f"{domain} W above idle"] = ""
            if watts is not None:
                row[f"{domain} W"] = f"{watts:.4g} +- {power.error_watts[name][domain]:.2g}"
                row[f"{domain} W above idle"] = f"{watts - idle:.4g}"
        row["remark"] = power.remarks.get(name, "")
        rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    run_script(main)
