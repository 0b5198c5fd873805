"""Ends the process after a signal, even while other code holds Python's lock (the GIL).

PyOpenCL holds that lock in many calls. If the driver hangs in such a call, no Python code runs any
more. `pass_on` is compiled and needs no lock.
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
    """Pass bytes from one pipe to another until the first ends; end the process after some of them.

    `numbers` has the signals that end it, as bits: after byte n with bit n set the status is
    128 + n. Before that the reader of the second pipe has `patience` microseconds to clean up and
    end the process itself. Then `said` is written to standard error. `byte` is a buffer.
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
