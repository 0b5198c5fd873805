"""An open OpenCL device: memory, programs, and kernels with their arguments."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl import driver
from hetero_bfs.devices.opencl.built_programs import programs_of
from hetero_bfs.devices.opencl.driver import device_error, driver_errors
from hetero_bfs.devices.opencl.verdicts import Family, check_verdict
from hetero_bfs.errors import DeviceError
from hetero_bfs.support.memory import aligned_empty

T = TypeVar("T")

_BASE = "devices/opencl/atomics.cl", "devices/opencl/vendor.cl"
"""Kernel files at the beginning of every program."""

VARIES = object()
"""Marks a kernel argument that is set at each launch."""


class OpenCLDevice:
    """An open device: context, in-order queue, memory and programs.

    `bytes_copied` counts the bytes copied between host and device. On unified memory large arrays
    are never copied. Kernels of `family` are tested now if they have not been tested on this
    device.
    """

    def __init__(self, info: DeviceInfo, family: Family | None = None) -> None:
        import pyopencl as cl

        if family is not None:
            check_verdict(info, family)
        self.info = info
        self._cl = cl
        with driver_errors(f"opening {info.name}"):
            devices = driver.platform_devices()
            if info.index >= len(devices):
                raise DeviceError(f"{info.name} is gone: its driver lists it no more")
            self._device = devices[info.index]
            self._programs = programs_of(self._device)
            self.context = self._programs.context
            self.queue = cl.CommandQueue(self.context)
        self.queues = [self.queue]
        self.bytes_copied = 0
        self.blocks: weakref.ref[Any] | None = None
        """The `BlockMemory` whose blocks are on the device."""

    def _errors(self, action: str) -> AbstractContextManager[None]:
        return driver_errors(action, self.queues)

    @property
    def device_name(self) -> str:
        return self.info.name

    @property
    def is_nvidia(self) -> bool:
        return "nvidia" in self.info.platform.lower()

    def build(self, options: list[str], header: str, files: Sequence[str]) -> Any:
        """Build kernel files with these options; errors contain the driver's build log.

        `header` (built_programs.py) follows the files of `_BASE`. `files` are paths below the
        package; each file comes after the files that it uses.
        """
        base = (kernel_source(file) for file in _BASE)
        source = "\n".join([*base, header, *(kernel_source(file) for file in files)])
        options = [*options, *(["-DNVIDIA"] if self.is_nvidia else [])]
        options += ["-DINT64_ATOMICS"] if self.info.has_int64_atomics else []
        with self._errors(f"compiling kernels for {self.info.name}"):
            return self._programs.build(source, options)

    def shared(self, key: Any, make: Callable[[], T]) -> T:
        """Return the object of a key if others on this device still use it; else make it."""
        return self._programs.shared(key, make)

    def buffer(self, size: int, dtype: npt.DTypeLike) -> Any:
        """Allocate device memory for `size` items and touch its end.

        A driver may promise memory that it does not have, and only the first access fails. The end
        is touched by a copy, since NVIDIA's driver 580 loses the queue if a fill starts beyond
        4 GiB of a buffer.
        """
        num_bytes = max(size, 1) * np.dtype(dtype).itemsize
        end = np.zeros(min(num_bytes, 64), np.uint8)
        with self._errors(f"allocating {num_bytes} bytes on {self.info.name}"):
            buffer = self._cl.Buffer(self.context, self._cl.mem_flags.READ_WRITE, num_bytes)
            self._cl.enqueue_copy(self.queue, buffer, end, dst_offset=num_bytes - end.size)
        return buffer

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """Make an array readable by kernels: in place on unified memory, else by a copy."""
        if self.info.unified_memory:
            return self.share(array)
        buffer = self.buffer(array.size, array.dtype)
        if array.size:
            self.write(buffer, np.ascontiguousarray(array))
        return buffer

    def share(self, array: npt.NDArray[Any]) -> Any:
        """Wrap a host array as a buffer without a copy; the array must outlive the buffer."""
        if array.size == 0:  # OpenCL has no empty buffers
            return self.buffer(1, array.dtype)
        flags = self._cl.mem_flags
        access = flags.READ_WRITE if array.flags.writeable else flags.READ_ONLY
        with self._errors(f"sharing {array.nbytes} bytes with {self.info.name}"):
            return self._cl.Buffer(self.context, access | flags.USE_HOST_PTR, hostbuf=array)

    def write(self, buffer: Any, array: npt.NDArray[Any], offset_bytes: int = 0) -> None:
        """Copy an array into a buffer at an offset; return after the copy."""
        if array.size == 0:  # OpenCL has no empty copies
            return
        with self._errors(f"copying to {self.info.name}"):
            self._cl.enqueue_copy(
                self.queue, buffer, array, dst_offset=offset_bytes, is_blocking=True
            )
        self.bytes_copied += array.nbytes

    def copy(self, target: Any, source: Any, offset_bytes: int = 0) -> None:
        """Copy a buffer from an offset to another buffer of its size; later work waits for it."""
        if source.size == offset_bytes:
            return
        with self._errors(f"copying on {self.info.name}"):
            self._cl.enqueue_copy(
                self.queue,
                target,
                source,
                byte_count=source.size - offset_bytes,
                src_offset=offset_bytes,
                dst_offset=offset_bytes,
            )

    def fill(self, buffer: Any, byte: int) -> None:
        """Fill a buffer with one byte value; later work waits for it."""
        with self._errors(f"filling memory of {self.info.name}"):
            self._cl.enqueue_fill_buffer(self.queue, buffer, np.uint8(byte), 0, buffer.size)

    def second_queue(self) -> Any:
        with self._errors(f"setting up {self.info.name}"):
            self.queues.append(self._cl.CommandQueue(self.context))
        return self.queues[-1]

    def send(self, queue: Any, buffer: Any, array: npt.NDArray[Any], offset_bytes: int = 0) -> Any:
        """Queue a copy of an array into a buffer at an offset; return its event.

        The array must not change before the event.
        """
        if driver.is_ending:
            driver.leave(self.queues)
        try:
            if array.size == 0:
                return self._cl.enqueue_marker(queue)
            event = self._cl.enqueue_copy(
                queue, buffer, array, dst_offset=offset_bytes, is_blocking=False
            )
        except (self._cl.Error, MemoryError) as error:
            raise device_error(f"copying to {self.info.name}", error, self.queues) from error
        self.bytes_copied += array.nbytes
        return event

    def write_all(self, copies: Sequence[tuple[Any, npt.NDArray[Any]]]) -> None:
        """Copy arrays into buffers; return after all copies."""
        events = [self.send(self.queue, buffer, array) for buffer, array in copies]
        self.finish()
        del events  # PyOpenCL waits for a copy when its event is deleted

    def read_all(self, copies: Sequence[tuple[npt.NDArray[Any], Any]]) -> None:
        """Copy buffers to arrays; return after all queued work is done."""
        events = [self.start_read(array, buffer) for array, buffer in copies if array.size]
        self.finish()
        del events

    def wait(self, event: Any) -> None:
        with self._errors(f"waiting for {self.info.name}"):
            event.wait()

    def read(self, array: npt.NDArray[Any], buffer: Any, offset_bytes: int = 0) -> None:
        """Copy from a buffer to an array; return after all queued work is done."""
        if driver.is_ending:
            driver.leave(self.queues)
        if array.size == 0:
            self.finish()
            return
        try:
            self._cl.enqueue_copy(
                self.queue, array, buffer, src_offset=offset_bytes, is_blocking=True
            )
        except self._cl.Error as error:
            raise device_error(f"reading from {self.info.name}", error, self.queues) from error
        self.bytes_copied += array.nbytes

    def start_read(self, array: npt.NDArray[Any], buffer: Any, offset_bytes: int = 0) -> Any:
        """Queue a copy from a buffer to an array; return its event.

        The array must not be empty. The queue is not flushed.
        """
        with self._errors(f"reading from {self.info.name}"):
            event = self._cl.enqueue_copy(
                self.queue, array, buffer, src_offset=offset_bytes, is_blocking=False
            )
        self.bytes_copied += array.nbytes
        return event

    def host_array(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Allocate host memory for fast access by this device: shared, or pinned for copies."""
        if self.info.unified_memory or size == 0:
            return aligned_empty(size, dtype)
        flags = self._cl.mem_flags
        num_bytes = size * np.dtype(dtype).itemsize
        with self._errors(f"pinning {num_bytes} bytes for {self.info.name}"):
            pinned = self._cl.Buffer(
                self.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, num_bytes
            )
        return self._mapped(pinned, size, dtype)

    def pin(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array's memory for fast copies by this device; the array must outlive it."""
        if self.info.unified_memory or array.size == 0:
            return array
        return self._mapped(self.share(array), array.size, array.dtype)

    def _mapped(self, buffer: Any, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Map a buffer of host memory until the returned array is released."""
        access = self._cl.map_flags.READ | self._cl.map_flags.WRITE
        with self._errors(f"mapping memory of {self.info.name}"):
            array, _ = self._cl.enqueue_map_buffer(
                self.queue, buffer, access, 0, size, np.dtype(dtype)
            )
        result: npt.NDArray[Any] = array
        release_with(result, [MappedMemory(result)])
        return result

    def map(self, buffer: Any, array: npt.NDArray[Any]) -> MappedMemory:
        """Let the host use a shared buffer once `finish` returns; `unmap` takes the result."""
        access = self._cl.map_flags.READ | self._cl.map_flags.WRITE
        with self._errors(f"mapping memory of {self.info.name}"):
            mapped, _ = self._cl.enqueue_map_buffer(
                self.queue, buffer, access, 0, array.size, array.dtype, is_blocking=False
            )
        return MappedMemory(mapped)

    def unmap(self, memory: MappedMemory) -> None:
        """Give a shared buffer back to the device; later work waits for it."""
        with self._errors(f"giving memory back to {self.info.name}"):
            memory.release(self.queue)

    def bind(self, program: Any, name: str, *arguments: Any) -> BoundKernel:
        """Make a separate kernel object with these arguments; `launch` sets the `VARIES` ones."""
        with self._errors(f"setting up {name} on {self.info.name}"):
            kernel = self._cl.Kernel(program, name)
            for position, argument in enumerate(arguments):
                if argument is not VARIES:
                    kernel.set_arg(position, argument)
        varying = [i for i, argument in enumerate(arguments) if argument is VARIES]
        return BoundKernel(self, kernel, arguments, varying)

    def flush(self) -> None:
        """Let all queues begin their commands."""
        with self._errors(f"starting commands on {self.info.name}"):
            for queue in self.queues:
                queue.flush()

    def finish(self) -> None:
        with self._errors(f"waiting for {self.info.name}"):
            self.queue.finish()


class BoundKernel:
    """A kernel with most arguments set, so that a launch sets only the varying ones.

    It keeps references to its arguments, which an OpenCL kernel does not do.
    """

    def __init__(
        self, device: OpenCLDevice, kernel: Any, arguments: Sequence[Any], varying: list[int]
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
        """Queue the kernel with the varying arguments, NumPy scalars or arrays, in order.

        The kernel waits for the events in `after`. Returns its own event.
        """
        device, kernel, set_argument = self._device, self._kernel, self._set
        if driver.is_ending:
            driver.leave(device.queues)
        try:
            for position, argument in zip(self._varying, arguments, strict=True):
                set_argument(position, argument)
            return device._cl.enqueue_nd_range_kernel(
                device.queue, kernel, (global_size,), (group_size,), wait_for=after or None
            )
        except device._cl.Error as error:
            action = f"running a kernel on {device.info.name}"
            raise device_error(action, error, device.queues) from error


class MappedMemory:
    """Memory that a driver has mapped for the host's use until `release`.

    PyOpenCL unmaps this memory when its object is deleted. If the driver fails then, as after a
    reset, the process ends. In a forked process the driver waits for threads that do not exist. So
    an object is deleted only after its memory is unmapped; otherwise it is kept for ever.

    `mapped` is from PyOpenCL's `enqueue_map_buffer`.
    """

    def __init__(self, mapped: npt.NDArray[Any]) -> None:
        self._mapping: Any = mapped.base
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._mapping))

    def release(self, queue: Any = None) -> None:
        """Unmap, by default in the queue that mapped it; PyOpenCL's errors pass through."""
        self._mapping.release(queue)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._mapping))


def release_with(owner: object, memories: list[MappedMemory]) -> weakref.finalize[Any, Any]:
    """Release, in this process, the mappings that a list then holds when an object is deleted."""
    return weakref.finalize(owner, _release, memories, os.getpid())


def _release(memories: list[MappedMemory], process: int) -> None:
    import pyopencl as cl

    if process == os.getpid():
        with suppress(cl.Error):
            while memories:
                memories.pop().release()


@cache
def kernel_source(file: str) -> str:
    return resources.files("hetero_bfs").joinpath(file).read_text()
