"""Training for `--optimize energy|edp`: finds meters and measures watts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.energy import MeterError, PowerLog, Unmeasured
from hetero_bfs.graph500.protocol import meters_of
from hetero_bfs.scheduling.model_files import write_model
from hetero_bfs.scheduling.objective import METERS_REMEDY, Power
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.support.messages import progress
from hetero_bfs.training import strategy_watts as power
from hetero_bfs.training.metering import Metering


def add_watts(
    model: SpeedModel,
    info: DeviceInfo | None,
    quick: bool,
    power_log: Path | None,
    path: Path,
) -> SpeedModel:
    """Return a trained model of this machine with new watts, and write it to `path`.

    Raises `MeterError` if no watts can be metered.
    """
    metering, missing = open_meters(info, power_log)
    watts = None
    if metering is not None:
        watts = measure_watts(info, quick, model.tuning, metering, missing)
    if metering is None or watts is None:
        raise MeterError(f"no watts of any strategy could be measured; {METERS_REMEDY}")
    model = replace(model, power=watts)
    write_model(model, path)
    return model


def open_meters(
    info: DeviceInfo | None, power_log: Path | None
) -> tuple[Metering | None, list[Unmeasured]]:
    """Find the meters before any long work; without meters the first value is None.

    Raises `MeterError` if the power log cannot be read.
    """
    if power_log is not None:
        PowerLog(power_log).samples()  # raises for a bad log
    meters, missing = meters_of(info, power_log, [])
    if not meters:
        why = "; ".join(f"{m.name}: {m.reason}" for m in missing)
        print(f"note: no watts for --optimize energy or edp: {why}", file=sys.stderr)
        return None, missing
    return Metering(meters), missing


def seconds_to_meter(info: DeviceInfo | None, metering: Metering) -> float:
    """Return about how long `measure_watts` takes."""
    windows = power.ROUNDS * (1 + len(power.planned(info, metering)))
    return power.REST_SECONDS + windows * metering.window_seconds


def measure_watts(
    info: DeviceInfo | None,
    quick: bool,
    tuning: Tuning | None,
    metering: Metering,
    missing: Sequence[Unmeasured],
) -> Power | None:
    """Measure and print the strategies' watts; None if there are none."""
    total = power.ROUNDS * len(power.planned(info, metering)) + 1
    scale = power.scale_for(info, quick)
    steps = power.measure_power(info, scale, tuning, metering, missing)
    *_, measured = progress(steps, "measuring power", total, delay_seconds=0.0)
    assert measured is not None, "the last one"
    _report(measured, metering)
    return measured if measured.watts else None


def _report(measured: Power, metering: Metering) -> None:
    print("watts while strategies run, idle included:")
    for domain, watts in measured.idle_watts.items():
        period = 1e3 * measured.resolution_seconds[domain]
        name = measured.meters[domain]
        print(f"  {domain}: {name}, updated every {period:.3g} ms; idle {watts:.4g} W")
    for name, by_domain in measured.watts.items():
        errors = measured.error_watts[name]
        shown = ", ".join(f"{d} {w:.4g} +- {errors[d]:.2g} W" for d, w in by_domain.items())
        print(f"  {name:<4} {shown}")
    for name, why in [*measured.remarks.items(), *metering.failures.items()]:
        print(f"  {name:<4} {'rough' if name in measured.watts else 'unmeasured'}: {why}")
