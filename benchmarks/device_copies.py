"""Copies between a host and its OpenCL devices: what an exchange between two GPUs can cost.

    python benchmarks/device_copies.py --out FOLDER

For every size it copies, with the two first devices of one platform:

* "to device", "to host": pinned memory, one device alone;
* "both ways, both devices": pinned memory, four copies at once, each its own queue;
* "window to device", "window to host": memory of a mapping that processes share, for which a buffer
  was made by USE_HOST_PTR; as fast as pinned memory only if the driver pins such memory;
* "plain to device": ordinary memory;
* "device to device": buffers of one context, with no event or wait in between;
* "through the host": to pinned memory from one device, then from there to the other one.

A copy's result is compared. Times are medians of --rounds, all kinds in turn; gigabytes are 10^9.
Writes device_copies.csv and device_copies.md.
"""

from __future__ import annotations

import argparse
import mmap
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyopencl as cl
from tables import markdown, provenance, run_script

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.opencl.driver import usable_devices
from hetero_bfs.errors import DeviceError

_SIZES = (4096, 2**18, 2**21, 2**23, 2**25, 2**27)


class Pair:
    """Two devices of one context, each with a queue a direction, and buffers of one size."""

    def __init__(self, devices: list[Any], size: int) -> None:
        self.size = size
        self.context = cl.Context(devices)
        make = cl.CommandQueue
        self.up = [make(self.context, device) for device in devices]
        self.down = [make(self.context, device) for device in devices]
        self.buffers = [cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size) for _ in devices]
        self.others = [cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size) for _ in devices]
        self.pinned = [self._pinned(cl.mem_flags.ALLOC_HOST_PTR, None) for _ in range(4)]
        self._window = mmap.mmap(-1, size)
        self.window = self._pinned(cl.mem_flags.USE_HOST_PTR, np.frombuffer(self._window, np.uint8))
        self.plain = np.zeros(size, np.uint8)
        self.value = 0

    def _pinned(self, flag: int, memory: Any) -> Any:
        size = 0 if memory is not None else self.size
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE | flag, size, hostbuf=memory)
        flags = cl.map_flags.READ | cl.map_flags.WRITE
        return cl.enqueue_map_buffer(self.up[0], buffer, flags, 0, (self.size,), np.uint8)[0]

    def close(self) -> None:
        """Unmap the host's memory; without it NVIDIA's driver ends the process later."""
        for memory in (*self.pinned, self.window):
            memory.base.release(self.up[0])
        self.up[0].finish()

    def write(self, memory: Any, k: int = 0) -> None:
        """Copy from the host's memory to device k, and wait."""
        cl.enqueue_copy(self.up[k], self.buffers[k], memory, is_blocking=True)

    def read(self, memory: Any, k: int = 0) -> None:
        """Copy from device k to the host's memory, and wait."""
        cl.enqueue_copy(self.down[k], memory, self.buffers[k], is_blocking=True)

    def all_at_once(self) -> None:
        """Copy to and from both devices at the same time."""
        for k in (0, 1):
            cl.enqueue_copy(self.up[k], self.buffers[k], self.pinned[k], is_blocking=False)
            cl.enqueue_copy(self.down[k], self.pinned[2 + k], self.others[k], is_blocking=False)
        for queue in self.up + self.down:
            queue.flush()
        for queue in self.up + self.down:
            queue.finish()

    def across(self) -> None:
        """Copy from the first device's buffer to the second one's by one command."""
        cl.enqueue_copy(self.up[1], self.buffers[1], self.buffers[0])
        self.up[1].finish()

    def through_the_host(self) -> None:
        """Copy from the first device's buffer to the second one's by way of pinned memory."""
        self.read(self.pinned[0], 0)
        self.write(self.pinned[0], 1)

    def settle(self) -> None:
        """Give both buffers contents of their own, on their devices."""
        self.value = self.value % 200 + 1
        for k in (0, 1):
            cl.enqueue_fill_buffer(
                self.up[k], self.buffers[k], np.uint8(self.value + k), 0, self.size
            )
            self.up[k].finish()

    def check_second(self) -> None:
        """Raise `DeviceError` unless the second device's buffer has the first one's contents."""
        self.read(self.plain, 1)
        if not (self.plain == self.value).all():
            raise DeviceError(f"a copy of {self.size} bytes between devices changed them")


def kinds(pair: Pair) -> dict[str, tuple[Callable[[], None], int]]:
    """Return each kind of copy, and how often it moves the pair's bytes."""
    return {
        "to device": (lambda: pair.write(pair.pinned[0]), 1),
        "to host": (lambda: pair.read(pair.pinned[0]), 1),
        "both ways, both devices": (pair.all_at_once, 4),
        "window to device": (lambda: pair.write(pair.window), 1),
        "window to host": (lambda: pair.read(pair.window), 1),
        "plain to device": (lambda: pair.write(pair.plain), 1),
        "device to device": (pair.across, 1),
        "through the host": (pair.through_the_host, 1),
    }


def measure(devices: list[Any], size: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each kind of copy of `size` bytes."""
    pair = Pair(devices, size)
    copies = kinds(pair)
    seconds: dict[str, list[float]] = {name: [] for name in copies}
    for turn in range(rounds + 1):
        for name, (copy, _) in copies.items():
            pair.settle()
            start = time.perf_counter()
            copy()
            if turn > 0:
                seconds[name].append(time.perf_counter() - start)
            if name in ("device to device", "through the host"):
                pair.check_second()
    pair.close()
    return [
        {
            "copy": name,
            "bytes": size,
            "us": round(1e6 * statistics.median(seconds[name]), 1),
            "GB/s": round(times * size / statistics.median(seconds[name]) / 1e9, 2),
        }
        for name, (_, times) in copies.items()
    ]


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=15)
    parser.add_argument("--out", type=Path, metavar="FOLDER", required=True)
    options = parser.parse_args()
    infos = usable_devices()
    pairs = [(a, b) for a in infos for b in infos if a.index < b.index and a.platform == b.platform]
    if not pairs:
        raise DeviceError("two OpenCL devices of one platform are needed, and were not found")
    listed = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    devices = [listed[info.index] for info in pairs[0]]
    table = pd.DataFrame([row for size in _SIZES for row in measure(devices, size, options.rounds)])
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "device_copies.csv", index=False)
    wide = table.pivot(index="copy", columns="bytes", values="us").reindex(table["copy"].unique())
    rates = table.pivot(index="copy", columns="bytes", values="GB/s").reindex(wide.index)
    wide = wide.astype(str) + " (" + rates.astype(str) + ")"
    wide.columns = wide.columns.astype(str)
    text = [
        *provenance(pairs[0][0], f"python benchmarks/device_copies.py --rounds {options.rounds}"),
        "",
        "Microseconds, and in brackets GB/s of all bytes moved, by bytes of a copy:",
        "",
        markdown(wide.reset_index()),
        "",
    ]
    (options.out / "device_copies.md").write_text("\n".join(text))
    sys.stdout.write("\n".join(text))


if __name__ == "__main__":
    run_script(main)
