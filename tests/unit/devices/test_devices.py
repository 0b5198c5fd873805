"""Which OpenCL device is taken, and what is said when none can be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_devices import CPU

from hetero_bfs.devices.machine import machine_slug, slug
from hetero_bfs.devices.opencl import driver as opencl
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.errors import DeviceError

GPU = replace(CPU, index=1, name="NVIDIA H200", platform="NVIDIA CUDA", type="GPU", compute_units=8)
BIGGER = replace(GPU, index=2, name="AMD Instinct", platform="AMD", compute_units=16)
OLD = replace(BIGGER, index=3, name="Old card", compute_units=99, problem="it lacks 64-bit atomics")
CARD = replace(CPU, index=4, name="A card", type="ACCELERATOR", compute_units=1)


def having(monkeypatch, *devices):
    monkeypatch.setattr(opencl, "list_devices", lambda: list(devices))


@pytest.mark.parametrize(
    ("devices", "taken"),
    [
        ([CPU], CPU),
        ([CPU, GPU], GPU),
        ([GPU, CPU], GPU),
        ([CPU, GPU, BIGGER, OLD, CARD], BIGGER),
        ([CPU, CARD], CARD),
        ([CPU, OLD], CPU),
        ([GPU, replace(GPU, index=7)], GPU),
    ],
)
def test_a_gpu_before_any_other(monkeypatch, devices, taken):
    having(monkeypatch, *devices)
    assert choose_device() == taken


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [("0", CPU), ("2", BIGGER), ("h200", GPU), ("portable", CPU), ("NVIDIA CUDA", GPU)],
)
def test_by_index_or_part_of_the_name(monkeypatch, wanted, taken):
    having(monkeypatch, CPU, GPU, BIGGER, OLD)
    assert choose_device(wanted) == taken


@pytest.mark.parametrize("wanted", ["9", "voodoo", "-1"])
def test_no_such_device(monkeypatch, wanted):
    having(monkeypatch, CPU, GPU)
    with pytest.raises(DeviceError) as caught:
        choose_device(wanted)
    for words in (f"device={wanted!r}", "device 0, pthread-skylake", "device 1, NVIDIA H200"):
        assert words in str(caught.value)


def test_a_device_that_cannot_be_used(monkeypatch):
    having(monkeypatch, CPU, OLD)
    with pytest.raises(DeviceError, match="Old card cannot be used: it lacks 64-bit atomics"):
        choose_device("3")
    having(monkeypatch, OLD)
    with pytest.raises(DeviceError, match="no usable OpenCL device: it lacks 64-bit atomics"):
        choose_device()


def test_part_of_a_name_prefers_a_device_that_can_be_used(monkeypatch):
    having(monkeypatch, replace(OLD, name="H200 MIG", index=0), GPU)
    assert choose_device("h200") == GPU


def test_no_runtime(monkeypatch):
    having(monkeypatch)
    for wanted in (None, "0"):
        with pytest.raises(DeviceError, match="pocl-opencl-icd"):
            choose_device(wanted)


def test_what_is_found_is_described(opencl_device):
    data = opencl_device.to_dict()
    assert data["memory_bytes"] >= data["max_alloc_bytes"] > 0
    assert data["compute_units"] > 0
    assert data["local_memory_bytes"] >= 2**14
    assert data["type"] in ("CPU", "GPU", "ACCELERATOR", "CUSTOM")
    assert data["name"] == data["name"].strip() != ""
    assert opencl_device.index < len(opencl.list_devices())


def test_machine_names_are_file_names():
    assert slug("Intel(R) Xeon(R) CPU @ 2.20GHz") == "intel-xeon-cpu-2-20ghz"
    assert machine_slug(GPU).endswith("-cores__nvidia-h200")
    assert machine_slug(None).endswith("-cores__no-device")
