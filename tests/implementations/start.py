"""./start on a bare system: it must install an OpenCL driver, and Graph500 must use it."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import time
from typing import Any

from .chroots import INSIDE, Chroots, lay_checkout, say
from .setups import RELEASES

VALID = "validation: all five checks passed for every key"


def run_start(chroots: Chroots, name: str) -> dict[str, Any]:
    """Run `./start run --scale 14` in a fresh copy of a release without lists of packages."""
    release = RELEASES[name]
    base = chroots.base(name)
    root = chroots.folder / "start" / name
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(exist_ok=True)
    chroots.run(f"copying {base}", ["cp", "-a", str(base), str(root)])
    shutil.rmtree(root / "var/lib/apt/lists")
    lay_checkout(root / INSIDE.lstrip("/"))
    say(f"{release.title}: ./start run --scale 14 on a bare system")
    started = time.monotonic()
    command = chroots.enter(root, [f"{INSIDE}/start", "run", "--scale", "14"])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    seconds = round(time.monotonic() - started)
    said = done.stdout.decode(errors="replace")
    chroots.folder.joinpath(f"start-{name}.log").write_bytes(done.stderr + done.stdout)
    device = re.search(r"^device: (.*) \((.*)\)$", said, re.MULTILINE)
    ended_well = done.returncode == 0 and VALID in said and device is not None
    note = "valid" if ended_well else f"status {done.returncode}, see start-{name}.log"
    python = re.search(r"Python ([\d.]+)", done.stderr.decode(errors="replace"))
    shutil.rmtree(root)
    return {
        "part": "start",
        "implementation": device[2] if device else "",
        "device": device[1] if device else "none",
        "system": release.title,
        "python": python[1] if python else "",
        "passed": int(ended_well),
        "failed": int(not ended_well),
        "note": note,
        "seconds": seconds,
        "date": datetime.date.today().isoformat(),
    }
