"""Finding and choosing OpenCL devices, and translating the driver's errors."""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from hetero_bfs.devices.machine import DeviceInfo, describe
from hetero_bfs.devices.opencl.built_programs import forget
from hetero_bfs.errors import ArgumentError, DeviceError
from hetero_bfs.support import processes
from hetero_bfs.support.checks import check_type
from hetero_bfs.support.messages import setting

NO_RUNTIME = (
    "no OpenCL runtime found; install your GPU vendor's driver, or PoCL (`apt-get install "
    "pocl-opencl-icd`), or the wheels intel-opencl-rt and intel-cmplr-lib-rt; PoCL shows itself "
    "only where it can write its cache ($POCL_CACHE_DIR, or ~/.cache/pocl)"
)
ALL_DEVICES = "all"
"""Names one device of each kind."""

NO_DEVICE = "cpu"
"""Means no OpenCL device. A device with this word in its name is chosen by index or other words."""

USUAL_DEVICE = "auto"
"""Same as None: a GPU if there is one, else another device."""

_BY_TYPE = {"GPU": 0, "ACCELERATOR": 1}


def list_devices() -> list[DeviceInfo]:
    """Return every OpenCL device whose driver describes it; none without an OpenCL runtime.

    Raises `DeviceError` if there are devices, but their drivers describe none.
    """
    described: list[DeviceInfo] = []
    problem: DeviceError | None = None
    for index, device in enumerate(platform_devices()):
        try:
            with driver_errors(f"asking for the properties of device {index}"):
                described.append(describe(index, device))
        except DeviceError as error:
            problem = error
    if problem is not None and not described:
        raise problem
    return described


def usable_devices() -> list[DeviceInfo]:
    return sorted((d for d in list_devices() if d.problem is None), key=_preference)


def plain_device_name(wanted: str | None) -> str | None:
    """Return a checked value: words in lower case, None for "auto".

    Raises `ArgumentError` for a value that names no device; empty text would match every name.
    """
    if wanted is None:
        return None
    check_type("device", wanted, str, 'the index or part of the name as text, such as "0"')
    if not wanted.strip():
        raise ArgumentError(
            f"{setting('device')} is {wanted!r}; give the index or part of the name of an OpenCL "
            "device, or leave it out for the usual one"
        )
    names = [name.strip().lower() for name in wanted.split(",")]
    for word in (USUAL_DEVICE, NO_DEVICE, ALL_DEVICES):
        if word in names and len(names) > 1:
            raise ArgumentError(
                f"{setting('device', wanted)}: {word!r} stands alone; leave out the other devices"
            )
    word = wanted.strip().lower()
    if word == USUAL_DEVICE:
        return None
    return word if word in (NO_DEVICE, ALL_DEVICES) else wanted


def choose_device(wanted: str | None = None) -> DeviceInfo:
    """Choose a device by index or part of its name; by default GPUs come first."""
    wanted = plain_device_name(wanted)
    if wanted == NO_DEVICE:
        raise ArgumentError(f"{setting('device', wanted)} stands for no OpenCL device; name one")
    devices = list_devices()
    if not devices:
        raise DeviceError(NO_RUNTIME)
    listing = "; ".join(f"device {d.index}, {d.name} ({d.platform})" for d in devices)
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
        raise DeviceError(
            f"no OpenCL device matches {setting('device', wanted)}; give an index or a part of a "
            f"name, found {listing}"
        )
    chosen = next((d for d in matches if d.problem is None), matches[0])
    if chosen.problem is not None:
        raise DeviceError(f"device {chosen.name} cannot be used: {chosen.problem}")
    return chosen


def choose_devices(wanted: str | None = None, most: int = 1) -> list[DeviceInfo]:
    """Choose devices: by names such as "0,1", one of each kind for "all", none for "cpu", the usual
    device for None or "auto".

    Selectors would never choose a second device of the same name. So "all" has one device per name,
    best first.
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
    return _BY_TYPE.get(device.type, 2), -device.compute_units, device.index


def platform_devices() -> list[Any]:
    processes.use_opencl()
    if is_ending:
        leave()
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


def device_error(action: str, error: Exception, queues: Sequence[Any] = ()) -> DeviceError:
    """Return the error, after all queued work is done or has failed.

    That work may use host arrays that are released with the error. The error may have broken the
    context, so later engines get another one.
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

    During the program's end, all threads except the ending thread stop here.
    """
    import pyopencl as cl

    if is_ending:
        leave(queues)
    try:
        yield
    except (cl.Error, MemoryError) as error:
        raise device_error(action, error, queues) from error


# The end of the program while daemon threads use OpenCL.
#
# Up to version 3.13, Python ends a daemon thread when the thread asks for Python's lock during the
# interpreter's finalisation. PyOpenCL asks for it in C++ when a driver returns. The C++ runtime
# does not let a thread end there, and aborts the process. So before that, `end` lets no other
# thread begin a driver call, and waits until no other thread is in a function of this package.
# There it may be in a call, about to begin one, or releasing a driver's objects. The wait has a
# limit, and a thread may release objects after it has left the package. Such a thread sleeps
# instead of aborting.

MOST_SECONDS = 30.0
"""Limit of the wait at the program's end; a driver that hangs must not keep the process."""

_POLL_SECONDS = 1e-3
_PACKAGE = str(Path(__file__).parents[2])

is_ending = False
"""Whether the program is ending. Driver calls read it, and then call `leave`."""

_ends_in = 0
"""Id of the thread that ends the program."""


def leave(queues: Sequence[Any] = ()) -> None:
    """End this thread without a message, after the work in `queues`, unless it ends the program.

    The work may use host arrays that are released with the thread. Raises `SystemExit` in every
    other thread.
    """
    if threading.get_ident() == _ends_in:
        return
    import pyopencl as cl

    for queue in queues:
        with suppress(cl.Error):
            queue.finish()
    raise SystemExit


def end() -> None:
    """Wait until no other thread is in this package or in PyOpenCL."""
    global is_ending, _ends_in
    _ends_in, is_ending = threading.get_ident(), True
    if "pyopencl" not in sys.modules:
        return
    _sleep_instead_of_aborting()
    last = time.monotonic() + MOST_SECONDS
    while _others_in_calls() and time.monotonic() < last:
        time.sleep(_POLL_SECONDS)


def _sleep_instead_of_aborting() -> None:
    """Let `std::terminate` suspend its thread; the main thread ends the process with its status."""
    with suppress(OSError, AttributeError):  # on another system, or with another C++ runtime
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))


def _others_in_calls() -> bool:
    frames = sys._current_frames()
    return any(_in_call(frame) for thread, frame in frames.items() if thread != _ends_in)


def _in_call(frame: FrameType | None) -> bool:
    folders = (_PACKAGE, str(Path(sys.modules["pyopencl"].__file__ or _PACKAGE).parent))
    while frame is not None:
        if frame.f_code.co_filename.startswith(folders):
            return True
        frame = frame.f_back
    return False


atexit.register(end)
