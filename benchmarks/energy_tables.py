"""Tables of energy.py: means over rounds, and the page that explains them."""

from __future__ import annotations

import argparse
from statistics import stdev

import pandas as pd
from tables import markdown, provenance

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.scheduling.objective import Power
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.support.files import replacing
from hetero_bfs.training.metering import Metering


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


def write(
    windows: pd.DataFrame,
    power: Power,
    metering: Metering,
    info: DeviceInfo | None,
    options: argparse.Namespace,
) -> None:
    table = summarise(windows)
    for name, frame in (("energy-windows.csv", windows), ("energy.csv", table)):
        with replacing(options.out / name) as stream:
            frame.to_csv(stream, index=False, float_format="%.9g")
    text = describe(table, power, metering, info, options)
    with replacing(options.out / "energy.md") as stream:
        stream.write(text)
    if options.scales[-1] == table["scale"].iloc[-1]:
        print(text)


def describe(
    table: pd.DataFrame,
    power: Power,
    metering: Metering,
    info: DeviceInfo | None,
    options: argparse.Namespace,
) -> str:
    scales = ",".join(str(scale) for scale in options.scales)
    given = f" --device {options.device}" if options.device else ""
    given += " --watts" if options.watts else ""
    given += " --power-log ..." if options.power_log else ""
    periods = metering.periods()
    meters = "; ".join(
        f"{domain}: {name}, updated every {1e3 * periods[domain]:.3g} ms"
        for domain, name in metering.names().items()
    )
    return "\n".join(
        [
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
            "",
        ]
    )


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as readable text."""
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
