"""Errors of the OpenCL driver, translated once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hetero_bfs.devices.opencl import ending
from hetero_bfs.devices.opencl.built_programs import forget
from hetero_bfs.errors import DeviceError


def device_error(action: str, error: Exception, queues: Sequence[Any] = ()) -> DeviceError:
    """Return the error, after all queued work is done or has failed.

    That work may use arrays of the host that are released with the error. The error may have broken
    the context, so later engines get another one.
    """
    import pyopencl as cl

    for queue in queues:
        with suppress(cl.Error):
            queue.finish()
    forget()
    reason = str(error).strip() or type(error).__name__
    return DeviceError(f"{action} failed: {reason}")


@contextmanager
def driver_errors(action: str, queues: Sequence[Any] = ()) -> Iterator[None]:
    """Translate the driver's exceptions to `DeviceError`, after waiting for `queues`.

    Once the program ends, other threads than the one that ends it end here (ending.py).
    """
    import pyopencl as cl

    if ending.begun:
        ending.leave(queues)
    try:
        yield
    except (cl.Error, MemoryError) as error:
        raise device_error(action, error, queues) from error
