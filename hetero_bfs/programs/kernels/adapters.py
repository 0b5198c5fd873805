"""A program's functions and flags for the kernels; host_code.py replaces these for each program.

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

HAS_PRIORITY = False
"""Whether vertices of low priority run first."""

HAS_FINISHED = False
"""Whether the program says when it ends."""

NUM_TOTALS = 0
"""How many sums `apply` adds to."""


@njit(forceinline=True)
def start(arrays, v, sums):
    """Write the initial state of a vertex, and add to the sums; tell whether it is active."""
    raise NotImplementedError


@njit(forceinline=True)
def send(arrays, u, weight):
    """Return the message of a vertex along an edge."""
    raise NotImplementedError


@njit(forceinline=True)
def combine(first, second):
    """Combine two messages."""
    raise NotImplementedError


@njit(forceinline=True)
def is_final(combined):
    """Tell whether further messages change nothing."""
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
    """Write the new state of a vertex, and add to the sums; tell whether it is active."""
    raise NotImplementedError


@njit(forceinline=True)
def priority(arrays, v):
    """Return the priority of a vertex, a float64."""
    raise NotImplementedError


@njit(forceinline=True)
def finished(arrays):
    """Tell whether the run must end."""
    raise NotImplementedError
