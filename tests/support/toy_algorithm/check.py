"""The check: counts from the edges by NumPy, in code that shares nothing with the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.errors import CheckOutcome


def check_busy(edges: Any, count: Any, least: int) -> CheckOutcome:
    """Check the counts against all edges."""
    n = max(edges.num_vertices, 1)
    known = [np.empty(0, np.int64)]
    for src, dst in edges.chunks():
        a, b = src.astype(np.int64), dst.astype(np.int64)
        known += [a * n + b] if edges.directed else [a * n + b, b * n + a]
    start, end = np.divmod(np.unique(np.concatenate(known)), n)
    start, end = start[start != end], end[start != end]
    degree = np.bincount(start, minlength=edges.num_vertices)
    expected = np.bincount(end[degree[start] >= least], minlength=edges.num_vertices)
    wrong = np.flatnonzero(expected != count)
    if wrong.size == 0:
        return CheckOutcome(True, "all counts are right")
    v = int(wrong[0])
    return CheckOutcome(False, f"vertex {v} has count {count[v]} instead of {expected[v]}")
