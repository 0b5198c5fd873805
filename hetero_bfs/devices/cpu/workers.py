"""The threads of a pool (thread_pool.py): its control block, start and end."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.support import forks
from hetero_bfs.support.checks import check_integer
from hetero_bfs.support.memory import aligned_empty


def most_threads() -> int:
    """Return the most threads of a search: one per core, or NUMBA_NUM_THREADS."""
    import numba

    return int(numba.config.NUMBA_NUM_THREADS)


def check_threads(threads: Any) -> int:
    """Return the number of threads; raise `ArgumentError` unless it is 1 to `most_threads`."""
    remedy = (
        ", or leave it out for the usual number; the environment variable NUMBA_NUM_THREADS, if "
        "set, allows another number"
    )
    return check_integer("threads", threads, 1, most_threads(), remedy)


def make_control(threads: int) -> npt.NDArray[np.int64]:
    """Return the control block of a pool of `threads` threads, the caller's thread included."""
    from hetero_bfs.devices.cpu.thread_pool import control_words, initialise

    control: npt.NDArray[np.int64] = aligned_empty(control_words(threads), np.int64)
    initialise(control)
    return control


def start_workers(
    owner: object, run_worker: Any, control: npt.NDArray[np.int64], shared: Any, threads: int
) -> Callable[[], object]:
    """Start a pool's workers; they end with `owner`, or with the program.

    Worker number i runs run_worker(control, shared, i). `threads` includes the caller's thread, so
    1 starts no workers. Returns a function that ends the workers now.
    """
    from hetero_bfs.devices.cpu.thread_pool import SHUTDOWN, shut_down

    if threads == 1:
        return no_workers
    shut_down(control)  # compiles the workers' code once, not in every thread
    run_worker(control, shared, 1)
    control[SHUTDOWN] = 0
    workers: list[threading.Thread] = []
    stop = weakref.finalize(owner, _stop_workers, control, workers, forks.generation())
    for number in range(1, threads):
        worker = threading.Thread(
            target=run_worker,
            args=(control, shared, number),
            name=f"hetero_bfs worker {number}",
            daemon=True,
        )
        worker.start()
        workers.append(worker)
    return stop


def no_workers() -> None:
    """Do nothing: no workers were started."""


def _stop_workers(
    control: npt.NDArray[np.int64], workers: list[threading.Thread], generation: int
) -> None:
    from hetero_bfs.devices.cpu.thread_pool import shut_down

    if generation != forks.generation():
        return  # they belong to the parent process, whose mutex may stay locked for ever
    shut_down(control)
    for worker in workers:
        worker.join(timeout=1.0)
