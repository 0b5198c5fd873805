"""Schedules that together run every strategy of the table and every migration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hetero_bfs.scheduling.selectors import by_direction
from hetero_bfs.scheduling.strategies import Strategy

Pair = tuple[Strategy, Strategy]
"""A top-down and a bottom-up strategy."""


def warm_up_schedules(candidates: Sequence[Strategy]) -> list[tuple[Strategy, ...]]:
    """Return schedules that run every candidate, convert on each device and migrate both ways."""
    pairs = _plain_pairs(candidates)
    schedules: list[tuple[Strategy, ...]] = [(down, up, down) for down, up in pairs]
    schedules += [(strategy,) for strategy in _others(candidates, pairs)]
    for (down, up), (other_down, other_up) in pairwise(pairs):
        schedules += [(down, other_down, down), (other_up, up, other_up)]
    return schedules


def pairs_to_probe(candidates: Sequence[Strategy]) -> list[Pair]:
    """Return pairs that together contain every candidate.

    The plain pair of each place comes first. Then each other candidate is paired with a plain
    strategy of another place, if there is one, so that searches migrate.
    """
    pairs = _plain_pairs(candidates)
    found = list(pairs)
    for strategy in _others(candidates, pairs):
        down, up = next((p for p in pairs if p[0].place != strategy.place), pairs[0])
        found.append((strategy, up) if strategy.direction == "top-down" else (down, strategy))
    return found


def _plain_pairs(candidates: Sequence[Strategy]) -> list[Pair]:
    """Return the plain pair of each place that has both directions."""
    places = sorted({s.place for s in candidates})
    there = [[s for s in candidates if s.place == place] for place in places]
    found = [by_direction(each, each[0].device_kind, each[0].device_kind) for each in there]
    return [(one["top-down"], one["bottom-up"]) for one in found if len(one) == 2]


def _others(candidates: Sequence[Strategy], pairs: Sequence[Pair]) -> list[Strategy]:
    paired = {strategy for pair in pairs for strategy in pair}
    return [strategy for strategy in candidates if strategy not in paired]
