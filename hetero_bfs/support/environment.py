"""The process's environment: Numba's variables, the address space, and MPI launchers.

Unusable settings are refused here with a one-line message. Otherwise Numba or LLVM would print a
traceback or end the process.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module

from hetero_bfs.errors import ArgumentError, HeteroBFSError
from hetero_bfs.support.cores import bound_cores, numba_variables

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
    """Add `wait` for this process and its children."""
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
