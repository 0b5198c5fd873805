"""The choices of a search for shortest paths: its first strategy, and the widths of windows."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

_PREFIX_EDGES, _FULL_EDGES, _AFTER_PULL_EDGES = 4.0, 16.0, 64.0
"""Mean number of edges, of a vertex of mean degree, that end within a window: for windows with
prefixes, with whole lists from the start, and with whole lists after a pull. Wider windows relax
edges twice, narrower windows leave threads idle.
"""

_LONG_LISTS = 8.0
"""From this mean degree a search relaxes prefixes of neighbour lists."""


_LEAST_WIDTHS = {"int32": 1.0, "float32": 2.0**-126, "float64": 2.0**-900}
"""Least widths of windows: the number of buckets divided by a width must be finite."""


class WindowStrategy(IntEnum):
    """Strategies of a window, by their number in its record; sssp/kernels/phases.py explains them.

    The numbers count from 0 without gaps: `ON_DEVICE` in sssp/device.py follows the last.
    """

    PREFIX = 0
    FULL = 1
    PULL = 2

    @property
    def label(self) -> str:
        """The name in traces."""
        return self.name.lower()


class WindowPlan(NamedTuple):
    """The strategy of a search's first window, and the widths of windows; see sssp/kernels/loop.py.

    strategy : PREFIX or FULL; a search with PREFIX pulls once, and goes on with FULL. A search that
        leaves a device goes on with FULL on the host
    prefix_width : of a window with PREFIX
    full_width : with FULL the host divides this width into buckets, and takes more or fewer of them
        for a window
    """

    strategy: WindowStrategy
    prefix_width: float
    full_width: float


def plan_windows(
    weight_dtype: np.dtype[Any], total: float, finite: float, entries: float, vertices: float
) -> WindowPlan:
    mean = total / finite if finite else 1.0
    degree = max(entries / max(vertices, 1), 1.0)
    least = _LEAST_WIDTHS[weight_dtype.name]
    strategy = WindowStrategy.FULL if degree < _LONG_LISTS else WindowStrategy.PREFIX
    full_edges = _FULL_EDGES if strategy is WindowStrategy.FULL else _AFTER_PULL_EDGES
    wanted = _PREFIX_EDGES, full_edges
    widths = (max(mean * edges / degree, least) for edges in wanted)
    return WindowPlan(strategy, *widths)
