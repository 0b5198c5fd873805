"""Measure the watts of each strategy where it is used (objective.py says what for).

Searches are cut off after a few levels: all of them top-down before Beamer's rule would turn, then
bottom-up as long as it would stay. What a cut search and a shorter one draw and take differs by the
levels between, so joules over seconds of that difference are the watts of one strategy at levels
that it is used for, launched as in real searches: on a GPU both are one launch each.

    first       level 0 top-down
    top-down    that strategy after it until the rule turns: more than `first` by those levels
    bottom-up   top-down until the rule turns, then that strategy until it turns back: more than the
                plain top-down one by those levels

Every search is repeated for a window of time that the meters resolve, all kinds in turn, some
rounds over. The error is that of the rounds' scatter, at least that of sampling. Where it is too
large, since the levels are too small a part of the search, the watts of the whole cut search stand
in, which include its start: rough, and better than leaving a strategy out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median, stdev

from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.devices.opencl.tuning import Tuning
from hetero_bfs.energy import Domain, Unmeasured
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.runtime.options import device_settings
from hetero_bfs.runtime.search import Search
from hetero_bfs.selection.objective import Power, is_metered
from hetero_bfs.selection.selectors import FixedSelector, alpha_beta
from hetero_bfs.selection.strategies import (
    STRATEGIES,
    DeviceKind,
    Strategy,
    available,
    host_only,
    plain,
)
from hetero_bfs.training.metering import Batch, Metering, Window

ROUNDS = 3
REST_SECONDS = 2.0
"""At rest before idle power is read."""

MOST_ERROR = 0.25
"""Watts of a difference whose standard error is a larger share of them are not taken."""

IDLE = "idle"
_KEYS = 4
_CANDIDATE_KEYS = 64


def scale_for(info: DeviceInfo | None, quick: bool) -> int:
    """Return the scale of a Kronecker graph whose levels outweigh launches."""
    if info is not None and info.type == "GPU":
        return 22 if quick else 24
    return 16 if quick else 18


def planned(info: DeviceInfo | None, metering: Metering) -> list[str]:
    """Name the windows of a round: at rest, then searches by each device that is metered."""
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
    """Measure on a Kronecker graph; yields None after each window, at last the watts.

    Parameters
    ----------
    info, tuning
        The device, and how its kernels are compiled; None for the host alone.
    scale : int
    metering : Metering
    missing : sequence of Unmeasured
        Meters that are not there, to say why strategies have no watts.
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
    """Return the watts of all strategies whose windows are there, by the names of `planned`."""
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
                told = f"{mean:.3g} +- {error:.2g} W" if math.isfinite(error) else "no watts"
                remarks[name] = (
                    f"{domain}: {told} by the difference, its levels being too small a part of "
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
    """Return the watts of what longer searches do more than shorter ones, and their error.

    The error is infinite if they take no longer.
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
    """List the kinds of devices whose work is metered."""
    shared = info is not None and info.unified_memory
    kinds = dict.fromkeys(s.device_kind for s in available(info is not None))
    return [kind for kind in kinds if is_metered(kind, metering.domains(), shared)]


def _base_of(strategy: Strategy) -> str:
    """Name the windows of searches that lack a strategy's levels and nothing else."""
    kind = strategy.device_kind
    if strategy.direction == "top-down":
        return f"first {kind}"
    return plain("top-down", kind).name


def _batches(engine: Engine, kind: DeviceKind) -> dict[str, Batch]:
    """Return what to repeat for the strategies of one device, and for their bases."""
    keys = _usual_keys(engine, kind)
    if not keys:  # a graph too small to turn
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
    """Return a function that searches once from each key, as far as its schedule goes."""
    new_ids = engine.graph.relabelling.new_of_old
    searches = [(int(new_ids[k]), FixedSelector(*s), len(s)) for k, s in schedules.items()]

    def run() -> int:
        for source, selector, levels in searches:
            Search(engine.platform, source, selector).run(max_levels=levels)
        return len(searches)

    return run


def _usual_keys(engine: Engine, kind: DeviceKind) -> dict[int, tuple[int, int]]:
    """Return keys, and their levels top-down and then bottom-up by Beamer's rule on this device.

    Of those with a top-down level after the first, which begins a search; the most usual ones.
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
