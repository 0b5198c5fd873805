"""Verdicts on OpenCL drivers, by a self-test of our kernels.

A driver may crash, hang, or compute wrong answers. So when a device is first opened for a family of
kernels, another process runs them on small graphs with known answers (doctor/self_test.py). The
verdict is kept in the private cache, for this device, version of its driver, and our kernels. A
device whose self-test failed is not opened.

`HETERO_BFS_SELF_TEST=off` opens devices untested.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import ArgumentError, DeviceError
from hetero_bfs.support import private_cache
from hetero_bfs.support.processes import Answer, run_module

VARIABLE = "HETERO_BFS_SELF_TEST"
_MODULE = "hetero_bfs.doctor.self_test"
_TIMEOUT_SECONDS = 600.0
_QUIET_SECONDS = 2.0
_LOCK = "self-test.lock"
_NOT_THE_DRIVERS = ("by SIGKILL", "by SIGTERM", "by SIGINT", "by SIGHUP", "MemoryError")
"""Ends of a process that are not the driver's fault; verdicts with them are not kept."""

_PACKAGE = Path(__file__).resolve().parents[2]

Family = Literal[
    "searches",
    "directed searches",
    "searches in parts",
    "int32 paths",
    "float32 paths",
    "float64 paths",
    "components",
    "colouring",
    "PageRank",
    "vertex programs",
]
"""Kernels that are tested together."""

FAMILIES: tuple[Family, ...] = get_args(Family)


@dataclass(frozen=True)
class Verdict:
    """The result of a self-test; `problem` is one line, None if all answers were right."""

    date: str
    seconds: float
    problem: str | None


def check_verdict(info: DeviceInfo, family: Family) -> None:
    """Test a device for a family of kernels if that was not done yet.

    Raises `DeviceError` if the self-test failed, now or before, and `ArgumentError` if
    `HETERO_BFS_SELF_TEST` is neither "off" nor "on".
    """
    if is_off():
        return
    verdict = kept_verdict(info, family) or _test_now(info, family)
    if verdict is not None and verdict.problem is not None:
        raise DeviceError(
            f"{info.name} failed its self-test of {family} on {verdict.date}, {verdict.problem}; "
            "another version of its driver may help, and `hetero-bfs doctor --retest` tests again"
        )


def is_off() -> bool:
    """Return whether devices are used untested; raise `ArgumentError` for an unknown setting."""
    setting = os.environ.get(VARIABLE, "") or "on"
    if setting not in ("on", "off"):
        raise ArgumentError(
            f'the environment variable {VARIABLE} is {setting!r}; set it to "off" to use OpenCL '
            "devices untested, or unset it"
        )
    return setting == "off"


def kept_verdict(info: DeviceInfo, family: Family) -> Verdict | None:
    key = _key(info, family)
    if key not in _of_this_process:
        with suppress(OSError, ValueError, TypeError):
            _of_this_process[key] = Verdict(**json.loads(private_cache.read(_name(key), key)))
    return _of_this_process.get(key)


def kept_as_json(info: DeviceInfo) -> dict[str, Any]:
    kept = {family: kept_verdict(info, family) for family in FAMILIES}
    return {family: verdict and asdict(verdict) for family, verdict in kept.items()}


def test(info: DeviceInfo, family: Family) -> Verdict | None:
    """Run the self-test and keep its verdict; None if it ended before it used the driver."""
    began = time.monotonic()
    try:
        answer = run_module(_MODULE, _TIMEOUT_SECONDS, str(info.index), family, **{VARIABLE: "off"})
    except OSError:  # no process can be started
        return None
    if not any("step" in line for line in answer.lines):
        return None
    seconds = round(time.monotonic() - began, 1)
    verdict = Verdict(time.strftime("%Y-%m-%d"), seconds, _problem(answer))
    key = _key(info, family)
    _of_this_process[key] = verdict
    if not any(end in (verdict.problem or "") for end in _NOT_THE_DRIVERS):
        private_cache.write(_name(key), key, json.dumps(asdict(verdict)).encode())
    return verdict


_of_this_process: dict[bytes, Verdict] = {}
_waited = [0.0]


def seconds_of_tests() -> float:
    """Return how long this process has waited for self-tests and first models.

    No timed work should include it.
    """
    return _waited[0]


def _test_now(info: DeviceInfo, family: Family) -> Verdict | None:
    """Test a device, unless another process is doing so."""
    text = f"testing {family} on {info.name}, which is done once for a driver's version"
    with waiting(text), private_cache.one_at_a_time(_LOCK):
        return kept_verdict(info, family) or test(info, family)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Print `text` on stderr if the body takes long; add its seconds to `seconds_of_tests`.

    Of waits within each other the outermost counts.
    """
    timer = threading.Timer(_QUIET_SECONDS, print, [text], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    began, before = time.perf_counter(), _waited[0]
    try:
        yield
    finally:
        timer.cancel()
        _waited[0] = before + time.perf_counter() - began


def _problem(answer: Answer) -> str | None:
    if answer.problem is None and any("passed" in line for line in answer.lines):
        return None
    step = next(line["step"] for line in reversed(answer.lines) if "step" in line)
    wrong: Any = next((line["wrong"] for line in answer.lines if "wrong" in line), None)
    reason = wrong or answer.problem or "the process ended early"
    return f"step {step!r}: {' '.join(str(reason).split())[:300]}"


def _key(info: DeviceInfo, family: Family) -> bytes:
    forced = os.environ.get("PYOPENCL_BUILD_OPTIONS", "")
    device = info.platform, info.name, info.driver, info.version
    return repr((*device, family, forced, _kernels_digest())).encode()


def _name(key: bytes) -> str:
    return f"self-test-{hashlib.sha256(key).hexdigest()[:32]}.bin"


@cache
def _kernels_digest() -> str:
    """Return a digest of the kernels, the code that generates kernels, and the self-test."""
    paths = [*_PACKAGE.rglob("*.cl"), *(_PACKAGE / "programs").rglob("*.py")]
    paths.append(_PACKAGE.joinpath(*_MODULE.split(".")[1:]).with_suffix(".py"))
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGE)} {len(content)} ".encode() + content)
    return digest.hexdigest()
