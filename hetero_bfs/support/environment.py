"""The process's environment: cores and memory it may use, Numba's variables, and MPI launchers.

Control groups limit cores and memory. The cores are the ones of the process's affinity. A control
group's quota limits CPU time, not the cores. With a thread for each core the group uses up its time
early in each period, and all its threads wait for the next period.

Unusable settings are refused here with a one-line message. Otherwise Numba or LLVM would print a
traceback or end the process.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from hetero_bfs.errors import ArgumentError, HeteroBFSError

# Linux control groups, with which containers and batch systems limit processes.
#
# Version 2 has one hierarchy of groups, version 1 one for each kind of limit. A process is limited
# by its group and by all groups above it. The system ends a process that exceeds its limit of
# memory.

_MEMBERSHIPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def groups(controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the folders whose files may limit this process, and whether they are of version 2.

    `controller` is version 1's name of the kind of limit. In a container only the mount point may
    exist, which then is the folder of the process's group.
    """
    try:
        lines = _MEMBERSHIPS.read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = _MOUNT / controller if controllers else _MOUNT
        inside = Path(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield top / folder, not controllers


_MEMORY_FILES = {
    True: ("memory.max", "memory.current", ("active_file", "inactive_file")),
    False: (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_active_file", "total_inactive_file"),
    ),
}
"""By whether a group is of version 2: files of its limit and its use, and the entries of
`memory.stat` for the page cache, subgroups included."""


class MemoryLimit(NamedTuple):
    """The limit of the control group that leaves the least memory, in bytes."""

    limit_bytes: int
    free_bytes: int


def memory_limit() -> MemoryLimit | None:
    found = (_read_limit(folder, version_2) for folder, version_2 in groups("memory"))
    limits = [limit for limit in found if limit is not None]
    return min(limits, key=lambda limit: limit.free_bytes, default=None)


def _read_limit(folder: Path, version_2: bool) -> MemoryLimit | None:
    limit_file, usage_file, reclaimed = _MEMORY_FILES[version_2]
    try:
        limit = int((folder / limit_file).read_text())
        used = int((folder / usage_file).read_text())
        entries = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        reclaimable = sum(int(entries.get(name, 0)) for name in reclaimed)
    except (OSError, ValueError):  # no such group, or no limit: "max"
        return None
    return MemoryLimit(limit, max(limit - used + reclaimable, 0))


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


_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""Variables with the number of started processes, in this order: MPICH, Intel MPI and MVAPICH
(Hydra); Open MPI; Hydra on one host; Slurm's srun.
"""

_RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def is_open_mpi() -> bool:
    return "OMPI_COMM_WORLD_SIZE" in os.environ


def launched_ranks() -> int:
    """Processes that the MPI launcher started; 1 without a launcher.

    srun also starts single processes. Slurm's variable therefore counts only with one of MPI's own.
    """
    if not any(name in os.environ for name in _RANK_VARIABLES):
        return 1
    sizes = (os.environ.get(name, "") for name in _SIZE_VARIABLES)
    return next((int(size) for size in sizes if size.isdigit()), 1)


def tasks_without_mpi() -> int:
    """Tasks that Slurm's srun started without MPI; 1 if none."""
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    return int(tasks) if tasks.isdigit() and launched_ranks() == 1 else 1


def launched_rank() -> int:
    """0 without a launcher."""
    if launched_ranks() == 1:
        return 0
    ranks = (os.environ.get(name, "") for name in (*_RANK_VARIABLES, "SLURM_PROCID"))
    return next((int(rank) for rank in ranks if rank.isdigit()), 0)


COMPILING_VARIABLE = "HETERO_BFS_COMPILING"
_WAYS = {"wait", "quiet"}


def ways_of_compiling() -> set[str]:
    """Return the words of `HETERO_BFS_COMPILING`; raise `ArgumentError` for an unknown one.

    `wait` compiles before it answers (see cold.py), and `quiet` omits the line on stderr that says
    that compiling takes long.
    """
    given = set(os.environ.get(COMPILING_VARIABLE, "").replace(",", " ").split())
    if not given <= _WAYS:
        raise ArgumentError(
            f"the environment variable {COMPILING_VARIABLE} is {os.environ[COMPILING_VARIABLE]!r}; "
            "give wait, quiet or both, or unset it"
        )
    return given


def wait_for_compiling() -> None:
    os.environ[COMPILING_VARIABLE] = ",".join(sorted({*ways_of_compiling(), "wait"}))


_SHARED_MIB = 1024
_CORE_MIB = 128
"""Address space for libraries, LLVM and drivers, and for the threads of each core.

Each thread needs a stack, and malloc reserves 64 MiB for it. With less, LLVM and PoCL abort the
process.
"""


def check() -> None:
    """Raise `HeteroBFSError` for settings that would make every search fail.

    Numba is loaded only if one of its variables is set.
    """
    _check_address_space()
    threads = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if threads and not (threads.isascii() and threads.isdigit() and int(threads)):
        raise HeteroBFSError(
            f"the environment variable NUMBA_NUM_THREADS is {threads!r}; give a number of threads "
            "from 1 on, or unset it"
        )
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise HeteroBFSError(
            "the environment variable NUMBA_DISABLE_JIT is set; unset it: searches run compiled"
        )
    if numba_variables():
        _check_by_numba()


def _check_address_space() -> None:
    try:
        import resource
    except ImportError:  # the system has no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    least_mib = _SHARED_MIB + _CORE_MIB * bound_cores()  # drivers' threads ignore the quota
    if limit != resource.RLIM_INFINITY and limit < least_mib << 20:
        raise HeteroBFSError(
            f"the limit of address space is {limit >> 20} MiB; give at least {least_mib} MiB "
            f"(ulimit -v {least_mib << 10})"
        )


def _check_by_numba() -> None:
    """Let Numba read its variables, and load the threading layer if they name one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import_numba()
    unread = [str(w.message) for w in caught if str(w.message).startswith("Environment variable")]
    if unread:
        raise HeteroBFSError(f"{unread[0].splitlines()[0].rstrip('.')}; set it right or unset it")
    chosen = [name for name in os.environ if name.startswith("NUMBA_THREADING_LAYER")]
    if chosen:
        import numba

        try:
            numba.get_num_threads()
        except ValueError as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise HeteroBFSError(f"{reason}; set it right or unset {', '.join(chosen)}") from error


def import_numba() -> None:
    """Import Numba without SciPy's linear algebra.

    Numba tries to load it at import, which takes longer than many searches. No kernel uses it.
    """
    unused = "scipy.linalg.cython_blas"
    absent = unused not in sys.modules
    if absent:
        sys.modules[unused] = None  # type: ignore[assignment]  # not to be found
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        if absent:
            del sys.modules[unused]


def need_package(module: str, package: str, extra: str, what: str) -> None:
    """Raise `HeteroBFSError` if a module of an optional package cannot be imported."""
    try:
        import_module(module)
    except ImportError as error:
        reason = "is not installed" if error.name == module else f"cannot be loaded ({error})"
        raise HeteroBFSError(
            f"{what} needs the package {package}, which {reason}; run: {sys.executable} -m pip "
            f"install {package} (in a clone, pip install '.[{extra}]')"
        ) from None


def cannot_load(error: ImportError) -> str:
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    if any("failed to map" in text or "annot allocate memory" in text for text in causes):
        return "out of memory as libraries were loaded; raise ulimit -v, or free some memory"
    return f"{' '.join(causes[-1].split())}; install hetero_bfs anew"
