"""Memory that a driver has mapped for the host.

PyOpenCL unmaps such memory when its object goes. If the driver fails then, as after a reset, the
process ends. In a forked process the driver waits for threads that are not there. So an object
here goes only once its memory is unmapped; otherwise it stays for ever.
"""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from typing import Any

import numpy.typing as npt

from hetero_bfs.support import forks


class MappedMemory:
    """A mapping, for the host's use until `release`.

    Parameters
    ----------
    mapped : array
        From PyOpenCL's `enqueue_map_buffer`.
    """

    def __init__(self, mapped: npt.NDArray[Any]) -> None:
        self._mapping: Any = mapped.base
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._mapping))

    def release(self, queue: Any = None) -> None:
        """Unmap the memory, by default in the queue that mapped it; PyOpenCL's errors come out."""
        self._mapping.release(queue)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._mapping))


def release_with(owner: object, memories: list[MappedMemory]) -> weakref.finalize[Any, Any]:
    """Let the mappings that a list then holds go with an object, in this process."""
    return weakref.finalize(owner, _release, memories, forks.generation())


def _release(memories: list[MappedMemory], generation: int) -> None:
    import pyopencl as cl

    if generation == forks.generation():
        with suppress(cl.Error):
            while memories:
                memories.pop().release()
