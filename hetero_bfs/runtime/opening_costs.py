"""What an engine on the CPU costs to open, beside searches by one thread that need none.

Measured with graphs of 1 to 8 million entries of neighbour lists, kernels compiled
(benchmarks/results/pocl-2-cores/networkx_backend.md). Only their ratio decides anything.
"""

from __future__ import annotations

_OPENING_SECONDS = 0.03
_OPENING_SECONDS_PER_ENTRY = 5e-8
_SEARCH_SECONDS_PER_ENTRY = 3e-9
_WEIGHTED_SEARCH_SECONDS_PER_ENTRY = 6e-8


def opening_seconds(num_entries: int) -> float:
    """Return about how long it takes to open an engine for lists of so many entries."""
    return _OPENING_SECONDS + _OPENING_SECONDS_PER_ENTRY * num_entries


def search_seconds(num_entries: int, weighted: bool = False) -> float:
    """Return about how long a search takes without an engine."""
    each = _WEIGHTED_SEARCH_SECONDS_PER_ENTRY if weighted else _SEARCH_SECONDS_PER_ENTRY
    return each * num_entries
