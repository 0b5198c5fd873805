"""The measurements of an open graph in a study: its levels by each strategy, and energy.

Levels are the paper's Table 5. The state before each level comes from a search on the host. The
level is measured without migration of the frontier. Its time is the median over rounds. Each round
goes through the search and takes the median of a few repetitions of each level
(training/measure.py).

A row of energy belongs to one domain: cpu, device or system. Without a measurement it has empty
values and the reason. That includes a configuration that spends more than a tenth of its time on a
unit without a meter, such as the host's strategies if only the GPU has one, and a configuration
that hardly uses the domain's unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from statistics import median

from hetero_bfs import energy
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph500.protocol import meters_of
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace
from hetero_bfs.study.searches import (
    Configuration,
    Row,
    StudyOptions,
    Subject,
    add_note,
    quartile_row,
)
from hetero_bfs.support.messages import progress
from hetero_bfs.training.measure import REPEATS, levels_to_measure, measure_search

_COUNTS = "frontier_vertices", "frontier_edges", "unvisited_vertices", "unvisited_edges"


def level_rows(subject: Subject, rounds: int, notes: list[str]) -> list[Row]:
    """Measure each strategy on the levels of the searches from the subject's sources."""
    engine, new_of_old = subject.engine, subject.graph.relabelling.new_of_old
    wanted: dict[int, frozenset[int]] = {}
    for key in subject.sources:
        records, levels = levels_to_measure(engine, int(new_of_old[key]))
        wanted[key] = frozenset(levels)
        if len(levels) < len(records):
            text = f"{len(levels)} of {len(records)} levels from key {key} are measured"
            add_note(notes, f"{subject.about.name}: {text}")
    states: dict[tuple[int, int], LevelFeatures] = {}
    times: dict[tuple[int, int], dict[str, list[float]]] = {}
    turns = [key for _ in range(rounds) for key in subject.sources]
    for key in progress(turns, f"{subject.about.name}: levels"):
        walk = measure_search(engine, int(new_of_old[key]), REPEATS, median, wanted[key])
        for features, name, seconds, _ in walk:
            if name in STRATEGIES:
                level = key, features.level
                states.setdefault(level, features)
                times.setdefault(level, {}).setdefault(name, []).append(seconds)
    return [
        {
            **subject.row(),
            "key": level[0],
            "level": level[1],
            "strategy": name,
            **{count: getattr(states[level], count) for count in _COUNTS},
            "seconds": median(each),
            **quartile_row("seconds", each),
            "fastest": median(each) == min(map(median, of_level.values())),
            "rounds": len(each),
        }
        for level, of_level in times.items()
        for name, each in of_level.items()
    ]


_IDLE_SECONDS = 1.0
_MOST_UNSEEN = 0.1  # largest share of the time without a meter; beyond it joules are incomplete
_LEAST_SEEN = 0.1  # least share of a configuration's time that a domain's meters see
_ERRORS = 2  # standard errors; a smaller difference from idle is not significant

METERED = (
    "meters",
    "mteps_per_watt",
    "mteps_per_watt_without_idle",
    "watts",
    "idle_watts",
    "joules_per_search",
    "relative_error",
    "meter_period_seconds",
    "searches",
    "seconds",
)
"""Columns of the energy table that are empty without a measurement."""

_AS_READ = "mteps_per_watt", "watts", "idle_watts", "joules_per_search", "searches", "seconds"


def efficiency(subject: Subject, options: StudyOptions, notes: list[str]) -> list[Row]:
    meters, unmeasured = meters_of(subject.engine.device_info, options.power_log, notes)
    nedge = sum(subject.nedge[key] for key in subject.keys)
    rows = []
    for config in progress(subject.configs, f"{subject.about.name}: energy"):
        subject.engine.set_selector(config.selector)
        search = partial(_search_all, subject.engine, subject.keys, nedge)
        report = energy.measure(search, meters, unmeasured, options.energy_seconds, _IDLE_SECONDS)
        reasons = _unseen(subject, config, [total.domain for total in report.totals])
        for total in report.totals:
            row = _unmeasured(subject, config, total.domain, reasons[total.domain])
            rows.append(row if reasons[total.domain] else _measured(subject, config, total))
        found = {total.domain for total in report.totals}
        for domain in dict.fromkeys(u.domain for u in report.unmeasured):
            if domain not in found:
                missing = [u.reason for u in report.unmeasured if u.domain == domain]
                rows.append(_unmeasured(subject, config, domain, "; ".join(missing)))
    return rows


def _unseen(
    subject: Subject, config: Configuration, domains: Sequence[energy.Domain]
) -> dict[str, str | None]:
    """Return why a domain's joules do not cover a configuration's searches; None if they do."""
    if not domains:
        return {}
    info = subject.engine.device_info
    shared = info is not None and info.unified_memory
    traces = [t for key in subject.keys for t in subject.engine.search(key).traces]
    missed = _unmetered_share(traces, domains, shared)
    if missed > _MOST_UNSEEN:
        because = f"{config.name} spends {100 * missed:.0f} % of its time where no meter looks"
        return dict.fromkeys(domains, because)
    seen = {domain: 1.0 - _unmetered_share(traces, [domain], shared) for domain in domains}
    return {
        domain: f"{config.name} spends hardly any time where this meter looks"
        if share < _LEAST_SEEN
        else None
        for domain, share in seen.items()
    }


def _unmetered_share(
    traces: Iterable[LevelTrace], domains: Sequence[energy.Domain], shared_memory: bool
) -> float:
    """Return the share of levels' seconds, migration included, that these domains do not cover.

    With `shared_memory` the OpenCL device is the CPU or part of it, whose meters see both.
    """
    spent = {True: 0.0, False: 0.0}
    for trace in traces:
        seen_by = {"system", STRATEGIES[trace.strategy].device_kind}
        seen_by |= {"cpu"} if shared_memory else set()
        spent[not seen_by.isdisjoint(domains)] += trace.seconds + trace.transfer_seconds
    return spent[False] / max(sum(spent.values()), 1e-12)


def _search_all(engine: Engine, keys: Sequence[int], nedge: int) -> tuple[int, int]:
    for key in keys:
        engine.search(key)
    return len(keys), nedge


def _measured(subject: Subject, config: Configuration, total: energy.MeterReading) -> Row:
    net = None
    if total.net_joules is not None and total.net_joules > _ERRORS * total.error_joules:
        net = total.mteps_per_watt * total.joules / total.net_joules
    return _unmeasured(subject, config, total.domain, None) | {
        "meters": total.name,
        "mteps_per_watt_without_idle": net,
        "relative_error": total.error_joules / total.joules,
        "meter_period_seconds": total.period_seconds,
        **{name: getattr(total, name) for name in _AS_READ},
    }


def _unmeasured(subject: Subject, config: Configuration, domain: str, because: str | None) -> Row:
    return {
        **subject.row(),
        "selector": config.name,
        "kind": config.kind,
        "domain": domain,
        **dict.fromkeys(METERED),
        "unmeasured_because": because,
    }
