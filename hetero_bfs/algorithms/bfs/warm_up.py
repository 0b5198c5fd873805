"""Searches that run before the user's first one, so that its time includes no compilation."""

from __future__ import annotations

from collections.abc import Sequence

from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.restoring import restored_parents
from hetero_bfs.algorithms.bfs.schedules import warm_up_schedules
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.scheduling.selectors import FixedSelector
from hetero_bfs.scheduling.strategies import Strategy


def warm_up(platform: Platform, candidates: Sequence[Strategy]) -> None:
    """Run every candidate, every conversion and every migration."""
    graph = platform.graph
    if graph.num_searched == 0:
        return
    source = int(graph.degree.argmax())
    for schedule in warm_up_schedules(candidates):
        search = Search(platform, source, FixedSelector(*schedule))
        search.run(max_levels=len(schedule))
        search.gather()
        restored_parents(search, (int(graph.relabelling.old_of_new[source]),))
