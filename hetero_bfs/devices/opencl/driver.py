"""OpenCL devices: finding them, opening one, buffers and programs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl import ending
from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.built_programs import programs_of
from hetero_bfs.devices.opencl.device_info import DeviceInfo, describe
from hetero_bfs.devices.opencl.driver_errors import device_error, driver_errors
from hetero_bfs.devices.opencl.mapped_memory import MappedMemory, release_with
from hetero_bfs.devices.opencl.verdicts import Family, check_verdict
from hetero_bfs.errors import ArgumentError, DeviceError
from hetero_bfs.support import forks
from hetero_bfs.support.checks import check_type
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.wording import setting

NO_RUNTIME = (
    "no OpenCL runtime found; install your GPU vendor's driver, or PoCL (`apt-get install "
    "pocl-opencl-icd`), or the wheels intel-opencl-rt and intel-cmplr-lib-rt; PoCL shows itself "
    "only where it can write its cache ($POCL_CACHE_DIR, or ~/.cache/pocl)"
)
ALL_DEVICES = "all"
"""Names each kind of device there is."""

NO_DEVICE = "cpu"
"""Stands for no OpenCL device; one with this word in its name goes by its index or other words."""

USUAL_DEVICE = "auto"
"""As None: a GPU if there is one, else another device."""

_BY_TYPE = {"GPU": 0, "ACCELERATOR": 1}

_BASE = "devices/opencl/atomics.cl", "devices/opencl/vendor.cl"
"""Kernel files at the beginning of all programs."""

T = TypeVar("T")

VARIES = object()
"""Marks a kernel argument that is given at each launch."""


def list_devices() -> list[DeviceInfo]:
    """List every OpenCL device whose driver describes it; empty if there is no runtime.

    Raises
    ------
    DeviceError
        There are devices, and the driver describes none.
    """
    described: list[DeviceInfo] = []
    problem: DeviceError | None = None
    for index, device in enumerate(_devices()):
        try:
            with driver_errors(f"asking for the properties of device {index}"):
                described.append(describe(index, device))
        except DeviceError as error:
            problem = error
    if problem is not None and not described:
        raise problem
    return described


def usable_devices() -> list[DeviceInfo]:
    """List the devices that can be used, a GPU before any other one."""
    return sorted((d for d in list_devices() if d.problem is None), key=_preference)


def check_device_name(wanted: str | None) -> None:
    """Raise `ArgumentError` for a value that names no device; empty text would fit every name."""
    if wanted is None:
        return
    check_type("device", wanted, str, 'the index or part of the name as text, such as "0"')
    if not wanted.strip():
        raise ArgumentError(
            f"{setting('device')} is {wanted!r}; give the index or part of the name of an OpenCL "
            "device, or leave it out for the usual one"
        )
    names = [name.strip().lower() for name in wanted.split(",")]
    for word in (USUAL_DEVICE, NO_DEVICE, ALL_DEVICES):
        if word in names and len(names) > 1:
            raise ArgumentError(f"{setting('device', wanted)}: {word!r} stands alone")


def plain_device_name(wanted: str | None) -> str | None:
    """Return a checked value with its words in lower case: None for "auto", "cpu" or "all"."""
    check_device_name(wanted)
    word = None if wanted is None else wanted.strip().lower()
    if word == USUAL_DEVICE:
        return None
    return word if word in (NO_DEVICE, ALL_DEVICES) else wanted


def choose_device(wanted: str | None = None) -> DeviceInfo:
    """Pick a device by index or part of its name; by default a GPU before any other.

    Raises
    ------
    ArgumentError
        `wanted` is no text, empty, or "cpu", which stands for no device.
    DeviceError
        There is no OpenCL runtime, or no device matches; the message lists all devices.
    """
    wanted = plain_device_name(wanted)
    if wanted == NO_DEVICE:
        raise ArgumentError(f"{setting('device', wanted)} stands for no OpenCL device; name one")
    devices = list_devices()
    if not devices:
        raise DeviceError(NO_RUNTIME)
    listing = "; ".join(f"{d.index}: {d.name} ({d.platform})" for d in devices)
    if wanted is None:
        usable = [d for d in devices if d.problem is None]
        if not usable:
            raise DeviceError(f"no usable OpenCL device: {devices[0].problem}; found {listing}")
        return min(usable, key=_preference)
    if wanted.isdecimal():
        matches = [d for d in devices if d.index == int(wanted)]
    else:
        matches = [d for d in devices if wanted.lower() in f"{d.name} {d.platform}".lower()]
    if not matches:
        raise DeviceError(f"no OpenCL device matches {setting('device', wanted)}; found {listing}")
    chosen = next((d for d in matches if d.problem is None), matches[0])
    if chosen.problem is not None:
        raise DeviceError(f"device {chosen.name} cannot be used: {chosen.problem}")
    return chosen


def choose_devices(wanted: str | None = None, most: int = 1) -> list[DeviceInfo]:
    """Pick devices: those that a list such as "0,1" names, each kind there is for "all", none for
    "cpu", the usual one for None or "auto".

    Selectors would never choose a second device of the same name. So "all" has one of each name,
    the best first.

    Raises
    ------
    ArgumentError
        `wanted` is no text, empty, or names a device twice.
    DeviceError
        As `choose_device`; more than `most` devices are named.
    """
    wanted = plain_device_name(wanted)
    if wanted == NO_DEVICE:
        return []
    if wanted == ALL_DEVICES:
        first = choose_device()
        unlike = {d.name: d for d in reversed(usable_devices())}
        others = [d for d in unlike.values() if d.name != first.name]
        return [first, *sorted(others, key=_preference)][:most]
    names = wanted.split(",") if wanted is not None else [None]
    chosen = [choose_device(name) for name in names]
    if len({d.index for d in chosen}) < len(chosen):
        raise ArgumentError(f"{setting('device', wanted)} names a device twice; name each once")
    if len(chosen) > most:
        raise DeviceError(
            f"{setting('device', wanted)} names {len(chosen)} devices; a search runs on at most "
            f"{most}: name fewer, or start a rank for each device with mpirun"
        )
    return chosen


def _preference(device: DeviceInfo) -> tuple[int, int, int]:
    """Return a key by which a GPU comes before any other device, a larger one before a smaller."""
    return _BY_TYPE.get(device.type, 2), -device.compute_units, device.index


class OpenCLDevice:
    """An open device: context, in-order queue, memory and programs.

    `bytes_copied` counts the bytes copied between host and device. On unified memory large arrays
    are never copied.

    Parameters
    ----------
    info : DeviceInfo
    family : str, optional
        The kernels that it is to run. If they have not been tested on it yet, they are now.

    Raises
    ------
    DeviceError
        The self-test failed, or the driver does.
    """

    def __init__(self, info: DeviceInfo, family: Family | None = None) -> None:
        import pyopencl as cl

        if family is not None:
            check_verdict(info, family)
        self.info = info
        self._cl = cl
        with driver_errors(f"opening {info.name}"):
            devices = _devices()
            if info.index >= len(devices):
                raise DeviceError(f"{info.name} is gone: its driver lists it no more")
            self._device = devices[info.index]
            self._programs = programs_of(self._device)
            self.context = self._programs.context
            self.queue = cl.CommandQueue(self.context)
        self.queues = [self.queue]
        self.bytes_copied = 0
        self.blocks: weakref.ref[Any] | None = None
        """The `BlockMemory` whose blocks of lists are on the device."""

    def _errors(self, action: str) -> AbstractContextManager[None]:
        return driver_errors(action, self.queues)

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.info.name

    @property
    def is_nvidia(self) -> bool:
        """Whether NVIDIA's compiler builds the kernels."""
        return "nvidia" in self.info.platform.lower()

    def build(self, options: list[str], header: str, files: Sequence[str]) -> Any:
        """Build kernel files with these -D options; an error contains the driver's build log.

        `header` comes first (header.py), after what all programs have. `files` are paths below the
        package; each file follows those that it uses.
        """
        base = (kernel_source(file) for file in _BASE)
        source = "\n".join([*base, header, *(kernel_source(file) for file in files)])
        options = [*options, *(["-DNVIDIA"] if self.is_nvidia else [])]
        options += ["-DINT64_ATOMICS"] if self.info.has_int64_atomics else []
        with self._errors(f"compiling kernels for {self.info.name}"):
            return self._programs.build(source, options)

    def shared(self, key: Any, make: Callable[[], T]) -> T:
        """Return what others on this device made for a key and still use; else make it."""
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
        """Wrap a host array as a buffer without a copy; the array must outlive it."""
        if array.size == 0:  # OpenCL has no empty buffers
            return self.buffer(1, array.dtype)
        flags = self._cl.mem_flags
        access = flags.READ_WRITE if array.flags.writeable else flags.READ_ONLY
        with self._errors(f"sharing {array.nbytes} bytes with {self.info.name}"):
            return self._cl.Buffer(self.context, access | flags.USE_HOST_PTR, hostbuf=array)

    def write(self, buffer: Any, array: npt.NDArray[Any], offset_bytes: int = 0) -> None:
        """Copy an array into a buffer, by default to its start; return after the copy."""
        if array.size == 0:  # OpenCL has no empty copies
            return
        with self._errors(f"copying to {self.info.name}"):
            self._cl.enqueue_copy(
                self.queue, buffer, array, dst_offset=offset_bytes, is_blocking=True
            )
        self.bytes_copied += array.nbytes

    def copy(self, target: Any, source: Any, offset_bytes: int = 0) -> None:
        """Copy a buffer, from an offset on, to another one of its size; later work waits for it."""
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
        """Fill a buffer with one byte's value; later work on it waits."""
        with self._errors(f"filling memory of {self.info.name}"):
            self._cl.enqueue_fill_buffer(self.queue, buffer, np.uint8(byte), 0, buffer.size)

    def second_queue(self) -> Any:
        """Return a queue for copies that overlap with the first queue's kernels."""
        with self._errors(f"setting up {self.info.name}"):
            self.queues.append(self._cl.CommandQueue(self.context))
        return self.queues[-1]

    def send(self, queue: Any, buffer: Any, array: npt.NDArray[Any], offset_bytes: int = 0) -> Any:
        """Queue a copy of an array into a buffer, by default to its start; return its event.

        The array must not change before the event.
        """
        with self._errors(f"copying to {self.info.name}"):
            if array.size == 0:
                return self._cl.enqueue_marker(queue)
            event = self._cl.enqueue_copy(
                queue, buffer, array, dst_offset=offset_bytes, is_blocking=False
            )
        self.bytes_copied += array.nbytes
        return event

    def wait(self, event: Any) -> None:
        """Wait for an event."""
        with self._errors(f"waiting for {self.info.name}"):
            event.wait()

    def read(self, array: npt.NDArray[Any], buffer: Any, offset_bytes: int = 0) -> None:
        """Copy from a buffer to an array; return when all queued work is done."""
        if ending.begun:
            ending.leave(self.queues)
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
        """Map a buffer of the host's memory for as long as the array that this returns exists."""
        access = self._cl.map_flags.READ | self._cl.map_flags.WRITE
        with self._errors(f"mapping memory of {self.info.name}"):
            array, _ = self._cl.enqueue_map_buffer(
                self.queue, buffer, access, 0, size, np.dtype(dtype)
            )
        result: npt.NDArray[Any] = array
        release_with(result, [MappedMemory(result)])
        return result

    def map(self, buffer: Any, array: npt.NDArray[Any]) -> MappedMemory:
        """Let the host use a shared buffer once `finish` returns; return what `unmap` takes."""
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
        """Make a separate kernel object with these arguments; `VARIES` marks later ones."""
        with self._errors(f"setting up {name} on {self.info.name}"):
            kernel = self._cl.Kernel(program, name)
            for position, argument in enumerate(arguments):
                if argument is not VARIES:
                    kernel.set_arg(position, argument)
        varying = [i for i, argument in enumerate(arguments) if argument is VARIES]
        return BoundKernel(self, kernel, arguments, varying)

    def finish(self) -> None:
        """Wait until all queued work is done."""
        with self._errors(f"waiting for {self.info.name}"):
            self.queue.finish()


@cache
def kernel_source(file: str) -> str:
    """Return the text of a kernel file by its path below the package."""
    return resources.files("hetero_bfs").joinpath(file).read_text()


def _devices() -> list[Any]:
    forks.use_opencl()
    if ending.begun:
        ending.leave()
    try:
        import pyopencl as cl

        platforms = cl.get_platforms()
    except Exception:  # no ICD loader, no platform: each binding reports it differently
        return []
    found: list[Any] = []
    for platform in platforms:
        try:
            found.extend(platform.get_devices())
        except cl.Error:
            continue
    return found
