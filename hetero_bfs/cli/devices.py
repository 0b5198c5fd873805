"""`hetero-bfs devices`: list the OpenCL devices."""

from __future__ import annotations

from argparse import Namespace

from hetero_bfs.cli.output import write_json
from hetero_bfs.cli.terminal import ended_at_once
from hetero_bfs.devices.machine import cpu_name
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, choose_device, list_devices
from hetero_bfs.devices.opencl.verdicts import FAMILIES, kept_as_json, kept_verdict
from hetero_bfs.support.cores import usable_cores


def run(options: Namespace) -> int:
    with ended_at_once():  # a driver may hang; nothing is written yet
        found = list_devices()
        default = choose_device().index if any(d.problem is None for d in found) else None
    if options.json is not None:
        tests = [{"self_test": kept_as_json(device)} for device in found]
        write_json(options.json, [d.to_dict() | test for d, test in zip(found, tests, strict=True)])
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
        return
    print(f"   self-test        {_self_test(device)}")


def _self_test(device: DeviceInfo) -> str:
    kept = {family: kept_verdict(device, family) for family in FAMILIES}
    failed = [f"{family} failed, {v.problem}" for family, v in kept.items() if v and v.problem]
    right = [family for family, v in kept.items() if v and v.problem is None]
    if not failed and not right:
        return "not tested yet"
    return "; ".join([*failed, f"right: {', '.join(right) or 'none'}"])
