"""`hetero-bfs devices`: list the OpenCL devices."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.cli.output import write_json
from hetero_bfs.cli.terminal import ended_at_once
from hetero_bfs.devices.machine import cpu_name
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, choose_device, list_devices
from hetero_bfs.support.cores import usable_cores


def run(options: Namespace) -> int:
    """Run the command; return the exit status."""
    with ended_at_once():  # a driver may hang; nothing is written yet
        found = list_devices()
        default = choose_device().index if any(d.problem is None for d in found) else None
    if options.json is not None:
        write_json(options.json, [device.to_dict() for device in found])
        if str(options.json) == "-":
            return 0
    print(f"host: {cpu_name()}, {usable_cores()} cores")
    if not found:
        print(NO_RUNTIME)
        return 0
    for device in found:
        _print_device(device, device.index == default)
    return 0


def _print_device(device: DeviceInfo, is_default: bool) -> None:
    print(f"{device.index}: {device.name}{'  (default)' if is_default else ''}")
    print(f"   platform         {device.platform}, {device.version}, driver {device.driver}")
    print(f"   type             {device.type}, {device.compute_units} compute units")
    print(
        f"   memory           {device.memory_bytes / 2**30:.2f} GiB, "
        f"{'shared with the host' if device.unified_memory else 'its own'}, "
        f"at most {device.max_alloc_bytes / 2**30:.2f} GiB per buffer, "
        f"{device.local_memory_bytes // 1024} KiB local"
    )
    if device.problem is not None:
        print(f"   cannot be used   {device.problem}")
