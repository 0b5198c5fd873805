"""When a driver's call fails, nothing that was queued before may use memory that is let go."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError

LONG = """
__kernel void last(__global uint *x) {
    uint sum = 0;
    for (uint i = 0; i < 40000000u; ++i) sum = sum * 1664525u + i;
    x[0] = sum;
}
"""


@pytest.mark.parametrize("call", ["fill", "launch", "read"])
def test_an_error_waits_for_what_was_queued(plain_device, call):
    import pyopencl as cl

    device = OpenCLDevice(plain_device)
    buffer = device.buffer(1, np.uint32)
    program = cl.Program(device.context, LONG).build()
    kernel = device.bind(program, "last", buffer)
    running = kernel.launch(1, 1)
    calls = {
        "fill": ("enqueue_fill_buffer", lambda: device.fill(buffer, 0)),
        "launch": ("enqueue_nd_range_kernel", lambda: kernel.launch(1, 1)),
        "read": ("enqueue_copy", lambda: device.read(np.zeros(1, np.uint32), buffer)),
    }
    name, fail = calls[call]
    broken = mock.patch.object(cl, name, side_effect=cl.RuntimeError("made to fail"))
    with broken, pytest.raises(DeviceError, match="made to fail"):
        fail()
    assert running.command_execution_status == cl.command_execution_status.COMPLETE
