"""A kernel of OpenCL with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetero_bfs.devices.opencl import ending
from hetero_bfs.devices.opencl.driver_errors import device_error


class BoundKernel:
    """A kernel with most arguments set already, so that a launch sets only the varying ones.

    It keeps its arguments, which an OpenCL kernel does not do. `device` is the `OpenCLDevice` that
    makes it.
    """

    def __init__(
        self, device: Any, kernel: Any, arguments: Sequence[Any], varying: list[int]
    ) -> None:
        self._device = device
        self._kernel = kernel
        self._arguments = arguments
        self._varying = varying
        # As in PyOpenCL's generated code: set_arg would take 8 to 16 us for a scalar.
        self._set = getattr(kernel, "_set_arg_buf", kernel.set_arg)

    def launch(
        self, global_size: int, group_size: int, *arguments: Any, after: Sequence[Any] = ()
    ) -> Any:
        """Queue the kernel with the varying arguments, NumPy scalars or arrays, in their order.

        The kernel waits for the events in `after`. Return its own event.
        """
        device, kernel, set_argument = self._device, self._kernel, self._set
        if ending.begun:
            ending.leave(device.queues)
        try:
            for position, argument in zip(self._varying, arguments, strict=True):
                set_argument(position, argument)
            return device._cl.enqueue_nd_range_kernel(
                device.queue, kernel, (global_size,), (group_size,), wait_for=after or None
            )
        except device._cl.Error as error:
            action = f"running a kernel on {device.info.name}"
            raise device_error(action, error, device.queues) from error
