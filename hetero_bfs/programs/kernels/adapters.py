"""A program's functions and flags for the kernels; host_code.py replaces them for each program.

`arrays` is the struct of a run (host.py). `v` and `u` are vertices in new ids.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ALL_ACTIVE = False
"""Whether every vertex sends and applies in every iteration."""

HAS_IDENTITY = True
"""Whether `combine` has an identity."""

IDENTITY = np.int64(0)
"""The message that changes no other one; any value if there is none."""

WEIGHTED = False
"""Whether a message depends on the edge's weight."""

APPLIES_IN_PULLS = False
"""Whether a pull may apply messages at once, because it reads no other vertex's state."""

COUNTS = False
"""Whether messages are counted instead of combined."""

HAS_PRIORITY = False
"""Whether vertices of low priority run first."""

SENDS_BACK = False
"""Whether messages go against edges, too, in programs that collect them."""

ACTIVE_APPLY = False
"""Whether active vertices apply without messages."""

HAS_FINISHED = False
"""Whether the program decides when the run ends."""

NUM_TOTALS = 0
"""Number of totals to which `start` and `apply` add."""


@njit(forceinline=True)
def clear_totals(sums):
    """Write the totals of no vertex."""
    raise NotImplementedError


@njit(forceinline=True)
def start(arrays, v, sums):
    """Write the initial state of a vertex, and add to the sums; return whether it is active."""
    raise NotImplementedError


@njit(forceinline=True)
def send(arrays, u, weight):
    """Return the message of `u` along an edge."""
    raise NotImplementedError


@njit(forceinline=True)
def combine(first, second):
    raise NotImplementedError


@njit(forceinline=True)
def is_final(combined):
    """Tell whether no further message can change `combined`."""
    raise NotImplementedError


@njit(forceinline=True)
def receives(arrays, v):
    """Tell whether a vertex takes messages."""
    raise NotImplementedError


@njit(forceinline=True)
def takes(arrays, v, message):
    """Tell whether a vertex takes this message."""
    raise NotImplementedError


@njit(forceinline=True)
def apply(arrays, v, combined, sums):
    """Write the new state of a vertex, and add to the sums; return whether it is active."""
    raise NotImplementedError


@njit(forceinline=True)
def collect(arrays, active, v, begin, count, back_begin, back_count):
    """Store the new state of a vertex aside; return a flag (collected.py)."""
    raise NotImplementedError


@njit(forceinline=True)
def priority(arrays, v):
    """Return the priority of a vertex as float64."""
    raise NotImplementedError


@njit(forceinline=True)
def finished(arrays):
    """Tell whether the run must end."""
    raise NotImplementedError
