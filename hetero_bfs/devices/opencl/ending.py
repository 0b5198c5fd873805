"""The end of the program while daemon threads use OpenCL.

Up to version 3.13, Python ends a daemon thread when the thread asks for Python's lock during the
interpreter's finalisation. PyOpenCL asks for it in C++ when a driver returns. The C++ runtime does
not let a thread end there, and aborts the process. So before that, this module lets no other thread
begin a driver call, and waits until no other thread is in a function of this package. There it may
be in a call, about to begin one, or releasing a driver's objects. The wait has a limit, and a
thread may release objects after it has left the package. Such a thread sleeps instead of aborting.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

MOST_SECONDS = 30.0
"""Limit of the wait at the program's end; a driver that hangs must not keep the process."""

_POLL_SECONDS = 1e-3
_PACKAGE = str(Path(__file__).parents[2])

begun = False
"""Whether the program is ending. Driver calls read it, and then call `leave`."""

_ends_in = 0
"""Id of the thread that ends the program."""


def leave(queues: Sequence[Any] = ()) -> None:
    """End this thread without a message, after the work in `queues`, unless it ends the program.

    The work may use host arrays that are released with the thread. Raises `SystemExit` in every
    other thread.
    """
    if threading.get_ident() == _ends_in:
        return
    import pyopencl as cl

    for queue in queues:
        with suppress(cl.Error):
            queue.finish()
    raise SystemExit


def end() -> None:
    """Wait until no other thread is in this package or in PyOpenCL."""
    global begun, _ends_in
    _ends_in, begun = threading.get_ident(), True
    if "pyopencl" not in sys.modules:
        return
    _sleep_instead_of_aborting()
    last = time.monotonic() + MOST_SECONDS
    while _others_in_calls() and time.monotonic() < last:
        time.sleep(_POLL_SECONDS)


def _sleep_instead_of_aborting() -> None:
    """Let `std::terminate` suspend its thread; the main thread ends the process with its status."""
    with suppress(OSError, AttributeError):  # on another system, or with another C++ runtime
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))


def _others_in_calls() -> bool:
    frames = sys._current_frames()
    return any(_in_call(frame) for thread, frame in frames.items() if thread != _ends_in)


def _in_call(frame: FrameType | None) -> bool:
    """Return whether a thread's stack has a function of this package or of PyOpenCL."""
    folders = (_PACKAGE, str(Path(sys.modules["pyopencl"].__file__ or _PACKAGE).parent))
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            return True
        frame = frame.f_back
    return False


atexit.register(end)
