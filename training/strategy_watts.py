"""Finds meters and measures the watts of each strategy at the levels that suit it (objective.py).

Searches are cut off after a few levels. They are top-down until Beamer's rule changes to bottom-up,
then bottom-up until it changes back. A cut search and a shorter one differ by the levels between
their ends. The difference of their joules over the difference of their seconds is therefore the
watts of one strategy at its usual levels, launched as in real searches: on a GPU each is one
launch.

    first       level 0 top-down
    top-down    `first`, then this strategy until the rule changes to bottom-up
    bottom-up   plain top-down until that change, then this strategy until the rule changes back

`top-down` is compared with `first`, and `bottom-up` with the plain `top-down`.

Every search is repeated for a window that the meters resolve. Some rounds alternate between all
kinds. The error comes from the rounds' scatter, and is at least the sampling error. It is too large
if the levels are too small a part of the search. Then the watts of the whole cut search are taken,
which include its start. They are rough, but better than leaving a strategy out.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean, median, stdev

from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.energy import Domain, MeterError, PowerLog, Unmeasured
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph500.protocol import meters_of
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.model_files import write_model
from hetero_bfs.scheduling.objective import METERS_REMEDY, Power, is_metered
from hetero_bfs.scheduling.selectors import FixedSelector, alpha_beta
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import (
    STRATEGIES,
    DeviceKind,
    Strategy,
    available,
    host_only,
    plain,
)
from hetero_bfs.support.messages import progress
from hetero_bfs.training.metering import Batch, Metering, Window

ROUNDS = 3
REST_SECONDS = 2.0
"""Rest before idle power is read."""

MOST_ERROR = 0.25
"""Largest relative standard error of the watts of a difference; less exact ones are not used."""

IDLE = "idle"
_KEYS = 4
_CANDIDATE_KEYS = 64


def scale_for(info: DeviceInfo | None, quick: bool) -> int:
    """Return the scale of a Kronecker graph whose levels outweigh launches."""
    if info is not None and info.type == "GPU":
        return 22 if quick else 24
    return 16 if quick else 18


def planned(info: DeviceInfo | None, metering: Metering) -> list[str]:
    names = [IDLE]
    for kind in _seen(info, metering):
        strategies = [s.name for s in available(True) if s.device_kind == kind]
        names += [f"first {kind}", *strategies]
    return names


def measure_power(
    info: DeviceInfo | None,
    scale: int,
    tuning: Tuning | None,
    metering: Metering,
    missing: Sequence[Unmeasured],
) -> Iterator[Power | None]:
    """Measure on a Kronecker graph; yield None after each window, at the end the watts.

    Without a device `info` and `tuning` are None. `missing` lists the missing meters, which are the
    reasons why strategies have no watts.
    """
    graph = build_search_graph(KroneckerEdges(scale).materialise())
    seen = _seen(info, metering)
    windows: dict[str, list[Window]] = {IDLE: []}
    with Engine(graph, host_only(), **device_settings(info), tuning=tuning) as engine:
        time.sleep(REST_SECONDS)
        for _ in range(ROUNDS):
            windows[IDLE].append(metering.rest())
            yield None
        batches = {name: batch for kind in seen for name, batch in _batches(engine, kind).items()}
        for _ in range(ROUNDS):
            for name, batch in batches.items():
                windows.setdefault(name, []).append(metering.window(batch))
                yield None
        reasons = {
            s.name: f"where it works there is no meter: {_reasons(s.device_kind, missing)}"
            for s in engine.candidates
            if s.device_kind not in seen
        }
    never = "no search of the graph turns bottom-up after two levels or more"
    reasons |= {
        s.name: never
        for s in available(info is not None)
        if s.name not in windows and s.name not in reasons
    }
    method = (
        f"searches of Kronecker scale {scale} cut off before and after a strategy's levels, in "
        f"turn, {ROUNDS} windows of {metering.window_seconds:.3g} s each: joules over seconds of "
        f"the difference; idle: {ROUNDS} such windows without searches"
    )
    yield evaluate_windows(windows, metering, method, reasons)


def evaluate_windows(
    windows: Mapping[str, Sequence[Window]],
    metering: Metering,
    method: str,
    remarks: Mapping[str, str],
) -> Power:
    """Return the watts of all strategies that have windows, by the names of `planned`."""
    domains, periods, names = metering.domains(), metering.periods(), metering.names()
    idle = {d: _mean_watts(windows[IDLE], d) for d in domains}
    watts: dict[str, dict[Domain, float]] = {}
    errors: dict[str, dict[Domain, float]] = {}
    remarks = dict(remarks)
    for name in [s.name for s in STRATEGIES.values() if s.name in windows] if domains else []:
        base = windows[_base_of(STRATEGIES[name])]
        found = {d: slope(windows[name], base, d) for d in domains}
        for domain, (mean, error) in found.items():
            if not error <= MOST_ERROR * mean:
                whole = _mean_watts(windows[name], domain)
                found[domain] = whole, max(whole - idle[domain], MOST_ERROR * whole)
                shown = f"{mean:.3g} +- {error:.2g} W" if math.isfinite(error) else "no watts"
                remarks[name] = (
                    f"{domain}: {shown} by the difference, its levels being too small a part of "
                    "the search; these are the watts of the whole cut search"
                )
        watts[name] = {d: _round(mean) for d, (mean, _) in found.items()}
        errors[name] = {d: _round(error) for d, (_, error) in found.items()}
    return Power(
        watts,
        errors,
        {d: _round(idle[d]) for d in domains},
        {d: _round(periods[d]) for d in domains},
        {d: names[d] for d in domains},
        method,
        remarks,
    )


def _mean_watts(windows: Sequence[Window], domain: Domain) -> float:
    return fmean(window.joules[domain] / window.seconds for window in windows)


def slope(
    longer: Sequence[Window], shorter: Sequence[Window], domain: Domain
) -> tuple[float, float]:
    """Return the watts of the difference between longer and shorter searches, and their error.

    The error is infinite if the longer ones do not take more time.
    """
    pairs = list(zip(longer, shorter, strict=True))
    joules = [a.joules_of([domain]) - b.joules_of([domain]) for a, b in pairs]
    seconds = [a.seconds_of - b.seconds_of for a, b in pairs]
    more = fmean(seconds)
    if more <= 0:
        return math.nan, math.inf
    watts = fmean(joules) / more
    residuals = [j - watts * s for j, s in zip(joules, seconds, strict=True)]
    scatter = stdev(residuals) if len(pairs) > 1 else 0.0
    ends = [
        fmean(w.joules[domain] / w.seconds * w.error_seconds[domain] / w.searches for w in windows)
        for windows in (longer, shorter)
    ]
    return watts, max(scatter, math.hypot(*ends)) / math.sqrt(len(pairs)) / more


def _seen(info: DeviceInfo | None, metering: Metering) -> list[DeviceKind]:
    shared = info is not None and info.unified_memory
    kinds = dict.fromkeys(s.device_kind for s in available(info is not None))
    return [kind for kind in kinds if is_metered(kind, metering.domains(), shared)]


def _base_of(strategy: Strategy) -> str:
    kind = strategy.device_kind
    if strategy.direction == "top-down":
        return f"first {kind}"
    return plain("top-down", kind).name


def _batches(engine: Engine, kind: DeviceKind) -> dict[str, Batch]:
    keys = _usual_keys(engine, kind)
    if not keys:  # the graph is too small to become bottom-up
        return {}
    down = plain("top-down", kind)
    schedules = {f"first {kind}": {key: [down] for key in keys}}
    here = (s for s in engine.candidates if s.device_kind == kind)
    for s in sorted(here, key=lambda s: s.direction != "top-down"):
        schedules[s.name] = {
            key: [down] + [s] * (first - 1)
            if s.direction == "top-down"
            else [down] * first + [s] * then
            for key, (first, then) in keys.items()
        }
    return {name: _batch(engine, of_key) for name, of_key in schedules.items()}


def _batch(engine: Engine, schedules: Mapping[int, Sequence[Strategy]]) -> Batch:
    """Return a function that searches once from each key, for the levels of its schedule."""
    new_ids = engine.graph.relabelling.new_of_old
    searches = [(int(new_ids[k]), FixedSelector(*s), len(s)) for k, s in schedules.items()]

    def run() -> int:
        for source, selector, levels in searches:
            Search(engine.platform, source, selector).run(max_levels=levels)
        return len(searches)

    return run


def _usual_keys(engine: Engine, kind: DeviceKind) -> dict[int, tuple[int, int]]:
    """Return keys, with their numbers of top-down and then bottom-up levels by Beamer's rule.

    Only keys with a top-down level after the first are taken, those with the most usual numbers.
    """
    graph = engine.graph
    rule = alpha_beta(engine.device_info, engine.candidates, where=kind)
    found: dict[int, tuple[int, int]] = {}
    for key in search_keys(graph.num_vertices, graph.is_isolated, _CANDIDATE_KEYS):
        search = Search(engine.platform, int(graph.relabelling.new_of_old[key]), rule)
        search.run()
        runs = groupby(STRATEGIES[trace.strategy].direction for trace in search.traces)
        lengths = [(direction, len(list(levels))) for direction, levels in runs]
        if [d for d, _ in lengths[:2]] == ["top-down", "bottom-up"] and lengths[0][1] >= 2:
            found[key] = lengths[0][1], lengths[1][1]
    usual = median(first for first, _ in found.values()) if found else 0
    by_usual = sorted(found, key=lambda key: abs(found[key][0] - usual))
    return {key: found[key] for key in by_usual[:_KEYS]}


def _reasons(kind: DeviceKind, missing: Sequence[Unmeasured]) -> str:
    wanted = [f"{m.name}: {m.reason}" for m in missing if m.domain in (kind, "system")]
    return "; ".join(wanted) or "none was found"


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def add_watts(
    model: SpeedModel,
    info: DeviceInfo | None,
    quick: bool,
    power_log: Path | None,
    path: Path,
) -> SpeedModel:
    """Return a trained model of this machine with new watts, and write it to `path`."""
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
    """Find the meters before any long work; without meters the first value is None."""
    if power_log is not None:
        PowerLog(power_log).samples()  # raises for a bad log
    meters, missing = meters_of(info, power_log, [])
    if not meters:
        why = "; ".join(f"{m.name}: {m.reason}" for m in missing)
        print(f"note: no watts for --optimize energy or edp: {why}", file=sys.stderr)
        return None, missing
    return Metering(meters), missing


def seconds_to_meter(info: DeviceInfo | None, metering: Metering) -> float:
    windows = ROUNDS * (1 + len(planned(info, metering)))
    return REST_SECONDS + windows * metering.window_seconds


def measure_watts(
    info: DeviceInfo | None,
    quick: bool,
    tuning: Tuning | None,
    metering: Metering,
    missing: Sequence[Unmeasured],
) -> Power | None:
    total = ROUNDS * len(planned(info, metering)) + 1
    scale = scale_for(info, quick)
    steps = measure_power(info, scale, tuning, metering, missing)
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
