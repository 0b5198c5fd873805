"""Ends the process after a signal, even while other code keeps Python's lock.

PyOpenCL holds that lock in many calls. If the driver hangs in one, no Python code runs any more. So
compiled code waits here, which needs no lock.
"""

from __future__ import annotations

from numba import types

from hetero_bfs.support.compiling import kernel

_int, _word = types.int32, types.intp
_read = types.ExternalFunction("read", _word(_int, _word, _word))
_write = types.ExternalFunction("write", _word(_int, _word, _word))
_usleep = types.ExternalFunction("usleep", _int(types.uint32))
_exit = types.ExternalFunction("_exit", types.void(_int))


@kernel(counted=False)
def pass_on(reading, writing, numbers, patience, byte, said):
    """Pass bytes from one pipe to another; end the process some time after one of `numbers`.

    Parameters
    ----------
    reading, writing : int
        File descriptors. The end of the first one ends this function.
    numbers : int
        Bit n tells that the process ends after byte n, with status 128 + n.
    patience : int
        Microseconds before that end, for whoever reads the second pipe to end it better.
    byte : uint8 array (1)
        Room for a byte.
    said : uint8 array (any length)
        Is written to standard error then.
    """
    while True:
        came = _read(reading, byte.ctypes.data, 1)
        if came == 0:
            return
        if came < 0:
            continue  # a signal interrupted it
        _write(writing, byte.ctypes.data, 1)
        if numbers >> byte[0] & 1:
            _usleep(patience)
            _write(2, said.ctypes.data, said.size)
            _exit(128 + byte[0])
