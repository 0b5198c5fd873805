"""Ends the process after a signal, even while other code holds Python's lock (the GIL).

PyOpenCL holds that lock in many calls. If the driver hangs in such a call, no Python code runs any
more. The function here is compiled and needs no lock.
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
        File descriptors. The function returns at the end of `reading`.
    numbers : int
        Signals that end the process, as bits: after byte n with bit n set, the status is 128 + n.
    patience : int
        Microseconds from that byte to the end. Within them the reader of the second pipe can clean
        up and end the process itself.
    byte : uint8 array (1)
        Buffer for a byte.
    said : uint8 array (any length)
        Text written to standard error at the end.
    """
    while True:
        came = _read(reading, byte.ctypes.data, 1)
        if came == 0:
            return
        if came < 0:
            continue  # a signal interrupted the call
        _write(writing, byte.ctypes.data, 1)
        if numbers >> byte[0] & 1:
            _usleep(patience)
            _write(2, said.ctypes.data, said.size)
            _exit(128 + byte[0])
