"""What the tests of the meters share: a clock, files of sysfs, searches that take a while."""

import errno
from pathlib import Path


class FakeTime:
    """A clock that only `sleep` and the tests move; replaces the module `time`."""

    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def time(self):
        return self.now

    perf_counter = time

    def sleep(self, seconds):
        self.now += seconds


def by_name(entries):
    return {entry.name: entry for entry in entries}


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")
    return folder


def zone(sysfs, key, name, microjoules=1_000_000, wraps_at=262_143_328_850):
    folder = sysfs / "class" / "powercap" / f"intel-rapl:{key}"
    return write(folder, name=name, energy_uj=microjoules, max_energy_range_uj=wraps_at)


def deny(monkeypatch, name, error=None):
    """Source reads everything, so refuse the file by name."""
    real = Path.read_text

    def read_text(self, *args, **kwargs):
        if self.name == name:
            raise error or PermissionError(errno.EACCES, "Permission denied", str(self))
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)


def searches_of(clock, seconds, searches=4, nedge=8_000_000):
    def run():
        clock.now += seconds
        run.calls += 1
        return searches, nedge

    run.calls = 0
    return run


def device_of(found):
    meters, unmeasured = found
    (entry,) = [entry for entry in (*meters, *unmeasured) if entry.domain == "device"]
    return entry
