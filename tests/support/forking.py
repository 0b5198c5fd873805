"""Children made by fork while another thread of the parent holds locks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

_PATIENCE = 120  # seconds; ends a child that waits for a lock of its parent's thread


def in_child(work: Callable[[], bool], *locks: AbstractContextManager[object]) -> bool:
    """Fork while another thread holds these locks; tell whether `work` is true in the child."""
    locked, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            locked.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(_PATIENCE)
        status = 1
        try:
            status = int(not work())
        finally:
            os._exit(status)
    forked.set()
    thread.join()
    return os.waitpid(child, 0)[1] == 0
