"""Searches that no one asked for, so that none that is asked for pays for compiling."""

from __future__ import annotations

from collections.abc import Sequence

from hetero_bfs.runtime.platform import Platform
from hetero_bfs.runtime.results import restored_parents
from hetero_bfs.runtime.search import Search
from hetero_bfs.selection.selectors import FixedSelector
from hetero_bfs.selection.strategies import STRATEGIES, Strategy

_SCHEDULES = (
    ("TC", "BC", "TC"),
    ("TG", "BG", "TG"),
    ("BGC",),
    ("TC", "TG", "TC"),
    ("BG", "BC", "BG"),
)
"""Schedules that together run every kernel and cross in both directions."""


def warm_up(platform: Platform, candidates: Sequence[Strategy]) -> None:
    """Run every strategy that is a candidate, every conversion and every crossing."""
    graph = platform.graph
    if graph.num_searched == 0:
        return
    names = {strategy.name for strategy in candidates}
    root = int(graph.degree.argmax())
    for schedule in _SCHEDULES:
        if names.issuperset(schedule):
            selector = FixedSelector(*(STRATEGIES[name] for name in schedule))
            search = Search(platform, root, selector)
            search.run(max_levels=len(schedule))
            search.gather()
            restored_parents(search, int(graph.relabelling.old_of_new[root]))
