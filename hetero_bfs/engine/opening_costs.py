"""Estimates when opening an engine on the CPU takes less time than searches without one.

An engine took 0.09, 0.3 to 0.4 and 0.3 s to open for soc-Slashdot0902, cnr-2000 and Kronecker 18,
with 1.0, 5.5 and 7.6 million entries of neighbour lists; a search took 2.5, 17 and 35 ms (2 cores,
kernels compiled, commit 649b7ee, 2026-11-24). With weights the first and last took 0.2 and 2.4 s of
CPU (commit dc404ab); a search takes 9 and 63 ms (2026-11-25). Only the ratio matters.
"""

from __future__ import annotations

_OPENING_SECONDS = 0.03
_OPENING_SECONDS_PER_ENTRY = {False: 5e-8, True: 2.5e-7}
_SEARCH_SECONDS_PER_ENTRY = {False: 3e-9, True: 1e-8}


def opening_seconds(num_entries: int, weighted: bool = False) -> float:
    """Return about how many seconds an engine takes to open, by the entries of the lists."""
    return _OPENING_SECONDS + _OPENING_SECONDS_PER_ENTRY[weighted] * num_entries


def search_seconds(num_entries: int, weighted: bool = False) -> float:
    """Return about how many seconds a search takes without an engine."""
    return _SEARCH_SECONDS_PER_ENTRY[weighted] * num_entries
