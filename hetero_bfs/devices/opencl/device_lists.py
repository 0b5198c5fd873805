"""Neighbour lists in a device's memory: each array once, for all its readers.

All engines and algorithms of a process share a device's context (built_programs.py), so their
kernels can read the same buffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice

_MOST_STRIDE = 1 << 24
"""Kernels may add this to an offset before they compare it with the end of a neighbour list."""


class DeviceArray:
    """An array in a device's memory. On unified memory kernels read the host's array in place."""

    def __init__(self, device: OpenCLDevice, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._array = array  # so that no other array gets its address
        is_view = array.dtype.itemsize == dtype.itemsize
        host = array.view(dtype) if is_view else array.astype(dtype)
        self.buffer = device.upload(host)


class DeviceLists:
    """Neighbour lists and other read-only arrays of graphs on a device.

    All objects of this class share the buffer of an array, which must not change meanwhile. A
    buffer is released with the last of these objects that used it.
    """

    def __init__(self, device: OpenCLDevice) -> None:
        self.device = device
        self._arrays: dict[Any, DeviceArray] = {}

    def array(self, array: npt.NDArray[Any], dtype: np.dtype[Any] | None = None) -> Any:
        """Return the buffer of an array, or of its items converted to another integer type."""
        device, dtype = self.device, array.dtype if dtype is None else dtype
        key = (
            array.ctypes.data, array.shape, array.strides, array.dtype, dtype,
            device.info.unified_memory,
        )  # fmt: skip
        if key not in self._arrays:
            self._arrays[key] = device.shared(key, lambda: DeviceArray(device, array, dtype))
        return self._arrays[key].buffer


def offset_dtype(info: DeviceInfo, entries: int) -> np.dtype[Any]:
    """Return the type of offsets for this number of entries; uint64, as on the host, if unified."""
    needs_64_bits = info.unified_memory or entries >= 2**32 - _MOST_STRIDE
    return np.dtype(np.uint64 if needs_64_bits else np.uint32)
