"""Scripts under oclgrind, and the reading of what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
OCLGRIND = shutil.which("oclgrind")
COMPILERS = re.compile(r"\d+ warnings? generated\.")
PEEK = ("--build-options", "-DATOMIC_PEEK")
FOUR_GROUPS = ("--compute-units", "4", "--num-threads", "4", "--data-races")
# For kernels with a barrier of the grid: work-groups that wait there are simulated, too. The
# checker of races does not know that barrier. It is on only where local memory is to be checked.
ONE_LAUNCH = ("--build-options", "-DATOMIC_PEEK -DPROBE_ROUNDS=3")
TWO_GROUPS = ("--compute-units", "2", "--num-threads", "2", *ONE_LAUNCH)
MARKS = [
    pytest.mark.skipif(OCLGRIND is None, reason="oclgrind is not installed"),
    pytest.mark.slow,
    pytest.mark.optimised,
]


@dataclass
class Report:
    """One message of oclgrind: its first line, and all of it."""

    title: str
    text: str

    @property
    def is_meant(self) -> bool:
        """Tell whether this is the test before the claim in top-down."""
        kernel = re.search(r"Kernel: (\w+)", self.text)
        look = r"before\[k\] = PEEK\("
        claim = r"return before & bit \? before : atomic_or\(&visited\["
        sources = [len(re.findall(rf"\t\s*{line}", self.text)) for line in (look, claim)]
        instructions = re.findall(r"= (?:tail )?(load|call spir_func i32 @_Z9atomic_or)", self.text)
        return (
            self.title.startswith("Read-write data race at global memory")
            and kernel is not None
            and kernel[1] in ("step", "push_step")
            and sources == [1, 1]
            and sorted(word.split()[0] for word in instructions) == ["call", "load"]
        )


def parse(said: str) -> list[Report]:
    """Split what oclgrind says into messages: a line at the margin begins one."""
    reports: list[Report] = []
    for line in said.splitlines():
        if COMPILERS.fullmatch(line):
            continue
        if line and not line[0].isspace() and not line.startswith(("First", "Second")):
            reports.append(Report(line, line))
        elif reports:
            reports[-1].text += "\n" + line
    return reports


def run(script: str, *options: str) -> subprocess.CompletedProcess:
    command = [
        *[OCLGRIND, "--max-errors", "1000000", *options],
        *[sys.executable, "-c", script],
    ]
    environment = os.environ | {"PYOPENCL_NO_CACHE": "1"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment,
    )


def check_said(done: subprocess.CompletedProcess, meant: str | None = None) -> list[Report]:
    """Assert that a script ended well and no message is there but those that match `meant`.

    Returns all messages.
    """
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [one.text for one in reports if meant is None or not re.search(meant, one.text)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    return reports
