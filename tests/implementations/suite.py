"""Runs the device suite in this very system with one driver, or with all that are registered."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .setups import DRIVERS, FAST, FAST_OPTIONS, Driver

CHECKOUT = Path(__file__).resolve().parents[2]
LIST = """
import json
from hetero_bfs.devices.opencl.driver import list_devices
print(json.dumps([device.to_dict() for device in list_devices()]))
"""
ALL = Driver("all that are registered")
TIMEOUT = "1200"
"""Seconds of a test: in a new chroot it also waits for compilers."""
Row = dict[str, Any]


def run_here(driver: str | None, part: str, workers: int, limit: int, xml: Path | None) -> Row:
    """Run the suite here and return a row of the table.

    Pytest's output goes to stderr, and its XML into the file `xml` if that is given. `limit` is in
    seconds.
    """
    chosen = DRIVERS[driver] if driver else ALL
    with tempfile.TemporaryDirectory() as scratch:
        variables = {**os.environ, **limited_to(chosen, Path(scratch))}
        row = {**_system(), **_devices(chosen, variables), "part": part}
        if not row["note"]:
            row |= _run(chosen, part, workers, limit, xml or Path(scratch, "xml"), variables)
    return row


def limited_to(driver: Driver, scratch: Path) -> dict[str, str]:
    """Return the variables that let a process see this driver alone."""
    if driver is ALL:
        return {}
    vendors = scratch / "vendors"
    vendors.mkdir()
    variables = {"OCL_ICD_VENDORS": str(vendors), **driver.environment}
    if driver.registered:
        shutil.copy(Path("/etc/OpenCL/vendors") / driver.registered, vendors)
    if driver.wheels:
        wheels = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        wheels = wheels / "hetero_bfs_implementations" / driver.wheels[0]
        if not any(wheels.rglob(driver.library)):
            venv.create(wheels, with_pip=True, clear=True)
            pip = [str(wheels / "bin/python"), "-m", "pip", "install", "-q", "--no-input"]
            subprocess.run([*pip, *driver.wheels], check=True, stdout=sys.stderr)
        library = next(wheels.rglob(driver.library))
        (vendors / "wheel.icd").write_text(f"{library}\n")
        variables["LD_LIBRARY_PATH"] = str(library.parent)
    return variables


def _system() -> Row:
    """Return names of the system and of Python, and the day."""
    release = platform.freedesktop_os_release()
    return {
        "system": release.get("PRETTY_NAME", platform.platform()),
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def _devices(driver: Driver, variables: dict[str, str]) -> Row:
    """Return what the devices say of themselves; `note` says why none can be used."""
    done = subprocess.run(
        [*driver.under, sys.executable, "-c", LIST],
        cwd=CHECKOUT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        return {"note": f"listing devices ended with status {done.returncode}"}
    devices = json.loads(done.stdout.splitlines()[-1])
    problems = [device["problem"] for device in devices]
    note = "no device" if not devices else "" if None in problems else f"refused: {problems[0]}"
    return {
        "implementation": "; ".join(sorted({device["platform"] for device in devices})),
        "version": "; ".join(sorted({device["driver"] for device in devices})),
        "device": "; ".join(sorted({device["name"] for device in devices})),
        "note": note,
    }


def _run(
    driver: Driver, part: str, workers: int, limit: int, xml: Path, variables: dict[str, str]
) -> Row:
    is_fast = part == "fast" and driver.tests == ALL.tests
    tests: Sequence[str] = [*FAST, *FAST_OPTIONS] if is_fast else driver.tests
    command = [sys.executable, "-m", "pytest", *tests, "-n", str(workers), f"--junitxml={xml}"]
    command += ["-m", ""] if driver.under else []  # the thorough tests, too
    command += ["-v", "--max-worker-restart", "50", "--timeout", TIMEOUT]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=CHECKOUT, env=variables, stdout=sys.stderr, timeout=limit, check=False
        )
        status = done.returncode
    except subprocess.TimeoutExpired:
        return {"seconds": limit, "note": f"not at its end after {limit} s"}
    row = {"seconds": round(time.monotonic() - started)}
    if status not in (0, 1) or not xml.exists():
        return {**row, "note": f"pytest ended with status {status}"}
    return {**row, **counts(ElementTree.parse(xml))}


def counts(tree: ElementTree.ElementTree) -> Row:
    """Return pytest's counts from its XML, and in `note` which files have failures."""
    outcomes: Counter[str] = Counter()
    failing: Counter[str] = Counter()
    for case in tree.iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            outcomes["failed"] += 1
            failing[case.get("classname", "").rpartition(".")[2]] += 1
        else:
            outcomes["skipped" if "skipped" in kinds else "passed"] += 1
    note = ", ".join(f"{count} of {name}" for name, count in failing.most_common())
    return {**{name: outcomes[name] for name in ("passed", "failed", "skipped")}, "note": note}
