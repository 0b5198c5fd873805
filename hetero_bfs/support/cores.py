"""The cores that this process may use: its affinity, limited by a quota of CPU time.

A control group's quota limits CPU time, not the cores. With a thread for each core the group uses
up its time early in each period, and all its threads wait for the next period.
"""

from __future__ import annotations

import math
import os
import sys
from functools import cache
from pathlib import Path

from hetero_bfs.support.control_groups import groups

_THREADS = "NUMBA_NUM_THREADS"
_set_here: set[str] = set()


@cache
def cpu_quota() -> float | None:
    """CPU time that control groups allow, in cores; None without a limit."""
    found = (_read_quota(folder, version_2) for folder, version_2 in groups("cpu"))
    return min((quota for quota in found if quota is not None), default=None)


def _read_quota(folder: Path, version_2: bool) -> float | None:
    try:
        if version_2:
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        cores = int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no such group, or no limit: "max"
        return None
    return cores if cores > 0 else None  # -1: no limit


def core_numbers() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def bound_cores() -> int:
    return len(core_numbers())


def usable_cores(bound: int | None = None) -> int:
    """Return the number of cores to use, at least 1: `bound` cores, limited by the quota."""
    quota, bound = cpu_quota(), bound_cores() if bound is None else bound
    return bound if quota is None else min(bound, math.ceil(quota))


def keep_quota() -> None:
    """Let Numba start no more threads than a quota allows, unless the user has set their number.

    Numba reads the environment when it is loaded. If it is loaded already, this does nothing.
    """
    if "numba" in sys.modules or _THREADS in os.environ:
        return
    if (cores := usable_cores()) < bound_cores():
        os.environ[_THREADS] = str(cores)
        _set_here.add(_THREADS)


def numba_variables() -> list[str]:
    return [name for name in os.environ if name.startswith("NUMBA_") and name not in _set_here]
