"""Shortest paths with windows that a test plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from hetero_bfs.algorithms.sssp import device, host
from hetero_bfs.scheduling.algorithm_decision import WindowPlan


@contextmanager
def planned(plan: WindowPlan | None) -> Iterator[None]:
    """Let executors that open meanwhile have this plan, unless it is None."""
    with ExitStack() as stack:
        for module in (host, device) if plan else ():
            stack.enter_context(mock.patch.object(module, "plan_windows", return_value=plan))
        yield
