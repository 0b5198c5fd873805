"""The threads of a pool whose work is cut into chunks (sharing.py)."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.support import forks
from hetero_bfs.support.memory import aligned_empty


class Workers:
    """A control block and threads that wait for phases on `shared`; they end with this object.

    Parameters
    ----------
    shared : Struct
        See sharing.py.
    threads : int
        The caller's own among them; 1 starts none.
    """

    def __init__(self, shared: Any, threads: int) -> None:
        from hetero_bfs.devices.cpu.sharing import run_worker
        from hetero_bfs.devices.cpu.thread_pool import (
            SHUTDOWN,
            control_words,
            initialise,
            shut_down,
        )

        self.shared = shared
        self.control: npt.NDArray[np.int64] = aligned_empty(control_words(threads), np.int64)
        initialise(self.control)
        if threads > 1:
            shut_down(self.control)  # what workers run is compiled once, not in every thread
            run_worker(self.control, shared, 1)
            self.control[SHUTDOWN] = 0
        started: list[threading.Thread] = []
        self.stop = weakref.finalize(self, _stop, self.control, started, forks.generation())
        for number in range(1, threads):
            thread = threading.Thread(
                target=run_worker,
                args=(self.control, shared, number),
                name=f"hetero_bfs worker {number}",
                daemon=True,
            )
            thread.start()
            started.append(thread)


def _stop(control: npt.NDArray[np.int64], threads: list[threading.Thread], generation: int) -> None:
    from hetero_bfs.devices.cpu.thread_pool import shut_down

    if generation != forks.generation():
        return  # they are a parent process's, and its mutex may be locked for ever
    shut_down(control)
    for thread in threads:
        thread.join(timeout=1.0)
