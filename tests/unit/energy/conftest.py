"""Fixtures of the tests of the meters: time stands still and no test sees the machine's NVML."""

import sys

import pytest
from energy_fakes import FakeTime

from hetero_bfs.energy import meters, power_log


@pytest.fixture
def clock(monkeypatch):
    fake = FakeTime()
    for module in (meters, power_log):
        monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def no_thread(monkeypatch):
    """The polling thread starts but does not get to its first reading."""
    monkeypatch.setattr(meters, "POWER_POLL_SECONDS", 1000.0)


@pytest.fixture(autouse=True)
def no_nvml(monkeypatch):
    """No test sees the machine's own NVML; `None` makes the import fail."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
