"""Spans of a timeline, made from trace records.

A record has no start time: steps follow each other, and each takes the seconds that were measured.
A step's choice and migration come before it, and the exchange with other ranks, if any, after it.
Time between steps is not in the records, so a timeline is a little shorter than the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from hetero_bfs.scheduling.strategies import STRATEGIES

_LANES = ("runs", "steps", "choices", "migrations", "exchanges", "result", "CPU", "device")
"""In drawing order; further devices are "device 2" and so on."""

Row = Mapping[str, Any]

_STEPS = {"level": "level", "iteration": "iteration", "rounds": "window"}
"""The column that identifies a kind of record, and the name of its steps."""

_DRAWN_SECONDS = tuple(
    f"{name}seconds" for name in ("", "transfer_", "select_", "migration_", "exchange_")
)

_DEVICE = "device "  # precedes the strategy's name in records of iterations and windows


@dataclass(frozen=True)
class Span:
    """A stretch of time in one lane.

    `kind` is a strategy's name or an event such as "migration"; it decides the colour. Viewers show
    `details` on demand.
    """

    lane: str
    name: str
    kind: str
    start_seconds: float
    seconds: float
    details: Mapping[str, Any]


def spans_of(*records: Iterable[Row]) -> list[Span]:
    """Return the spans of one or several runs, one after another, starting at time 0.

    Each of `records` has the rows of one or several whole runs.
    """
    now, spans = 0.0, []
    for number, run in enumerate(chain.from_iterable(map(_runs, records))):
        steps: list[Span] = []
        end, lane = now, None
        for place, row in enumerate(run):
            end = _add_step(steps, row, place, lane, end)
            lane = _lane_of(row)
        root = run[0].get("root", run[0].get("key"))
        name = f"run {number}" if root is None else f"search from {root}"
        spans += [Span("runs", name, "run", now, end - now, {"steps": len(run)}), *steps]
        now = end
    return spans


def _runs(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Split records into runs: a new root, or a smaller number of the step, starts one."""
    number, last = 0, (None, -1.0)

    def run_of(row: Row) -> int:
        nonlocal number, last
        root, step = row.get("root"), float(row.get(_step_column(row), math.inf))
        if root != last[0] or step < last[1]:
            number += 1
        last = root, step
        return number

    for _, run in groupby(rows, run_of):
        yield list(run)


def _step_column(row: Row) -> str:
    """Windows have no such column and belong to one run."""
    return next((name for name in ("level", "iteration") if name in row), "")


def _add_step(
    spans: list[Span], row: Row, place: int, lane_before: str | None, now: float
) -> float:
    """Append the spans of one record, which starts at `now`; return its end."""
    strategy, lane = _strategy(row), _lane_of(row)
    choice, moving = _choice(row), row.get("transfer_seconds", row.get("migration_seconds", 0.0))
    moved = {"migrated_bytes": row["migrated_bytes"]} if row.get("migrated_bytes") else {}
    parts: list[tuple[str, str, str, float, Mapping[str, Any]]] = [
        ("choices", f"choose {strategy}", "choice", row.get("select_seconds", 0.0), choice),
        ("migrations", _migration(lane_before, lane), "migration", moving, moved),
        (lane, strategy.removeprefix(_DEVICE), strategy, row["seconds"], _facts(row) | choice),
        ("exchanges", "exchange", "exchange", row.get("exchange_seconds", 0.0), {}),
    ]
    kind = next(what for column, what in _STEPS.items() if column in row)
    whole = float(sum(part[3] for part in parts))
    number = row.get(_step_column(row), place)
    spans.append(Span("steps", f"{kind} {number}", "step", now, whole, {}))
    for where, name, kind, seconds, details in parts:
        if seconds > 0 or where == lane:
            spans.append(Span(where, name, kind, now, float(seconds), _finite(details)))
            now += float(seconds)
    return now


def lanes_of(spans: Iterable[Span]) -> list[str]:
    used = {span.lane for span in spans}
    return sorted(used, key=lambda lane: (_LANES.index(lane.partition(" ")[0]), lane))


def _strategy(row: Row) -> str:
    """Searches of many ranks have a direction instead."""
    return str(row.get("strategy") or row.get("direction") or "")


def _lane_of(row: Row) -> str:
    """TG@2 ran on the second device."""
    strategy = _strategy(row)
    name, _, number = strategy.partition("@")
    known = STRATEGIES.get(name)
    if known is None:
        on_device = strategy.startswith(_DEVICE) or bool(row.get("on_devices"))
        return "device" if on_device else "CPU"
    if known.device_kind == "cpu":
        return "CPU"
    return f"device {number}" if number else "device"


def _migration(before: str | None, lane: str) -> str:
    if before is None:
        return f"start on {lane}"
    return "convert frontier" if before == lane else f"migrate to {lane}"


def _finite(details: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out NaN and infinity, which JSON lacks; for example, streamed windows have no start."""
    return {
        name: value
        for name, value in details.items()
        if not isinstance(value, float) or math.isfinite(value)
    }


_OF_CANDIDATES = ("predicted", "compared")
"""Kinds of a candidate's seconds in a record: these names, then the strategy's, are columns."""


def _choice(row: Row) -> dict[str, Any]:
    reason = {"reason": row["reason"]} if row.get("reason") else {}
    return reason | {
        f"{what}_ms_{name.removeprefix(f'{what}_')}": 1e3 * value
        for what in _OF_CANDIDATES
        for name, value in row.items()
        if name.startswith(f"{what}_") and isinstance(value, (int, float))
    }


def _facts(row: Row) -> dict[str, Any]:
    apart = ("strategy", "direction", "root", "key", "reason", "graph", "family", "scale")
    return {
        name: value
        for name, value in row.items()
        if name not in (*apart, *_DRAWN_SECONDS)
        and value not in ("", None)
        and not name.startswith(tuple(f"{what}_" for what in _OF_CANDIDATES))
    }
