"""Runs the device suite on every OpenCL implementation and writes the table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import table
from .chroots import CHECKOUT, INSIDE, PYTHON, ChrootError, Chroots, say
from .setups import DRIVERS, SETUPS, STARTS
from .start import run_start
from .suite import run_here

ABOUT = """
Without --here: makes chroots of Debian and Ubuntu by debootstrap, installs the drivers and the
package there, runs tests/device with one driver at a time, and writes
benchmarks/results/implementations.csv and the tables in docs/development/implementations.md. Needs
root, git, unshare and debootstrap (apt-get install debootstrap), 8 GB in the folder, and hours for
all setups. What is done is kept: a second call goes on where the first ended. It runs setups again
whose row is of another commit, or of changed files.

With --here: runs the suite in this system by the Python that runs this, with all drivers that are
registered or with one of them, and prints a row as JSON. So `--here >row.json` on a machine with a
GPU, then `--add row.json --name NAME` in a checkout, adds its row.

The exit status is 1 if a test failed, or a setup could not be made.
"""


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.implementations",
        description=__doc__,
        epilog=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [*SETUPS, *(f"{release}/start" for release in STARTS)]
    parser.add_argument("setups", nargs="*", metavar="SETUP", help=f"of {', '.join(names)}; all")
    parser.add_argument("--fast", action="store_true", help="the fast part of the suite alone")
    parser.add_argument("--again", action="store_true", help="run what has a row already, too")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest (default 2)")
    parser.add_argument("--limit", type=int, default=7200, help="seconds of a suite (default 7200)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/hetero_bfs_implementations"))
    parser.add_argument("--here", action="store_true", help="run in this system, print a row")
    parser.add_argument("--driver", choices=DRIVERS, help="with --here: with this driver alone")
    parser.add_argument("--xml", type=Path, help="with --here: keep pytest's XML in this file")
    parser.add_argument("--add", type=Path, metavar="ROW.json", help="add a row of --here")
    parser.add_argument("--name", help="with --add: the setup's name in the table")
    parser.add_argument("--commit", help="the commit, where git does not know it")
    given = parser.parse_args(words)
    if unknown := set(given.setups) - set(names):
        parser.error(f"there is no setup {', '.join(sorted(unknown))}; give of {', '.join(names)}")
    if (given.add is None) != (given.name is None):
        parser.error("--add and --name belong together: --add row.json --name gpu")
    given.setups = given.setups or names
    return given


def commit() -> str:
    """Return the checkout's commit, with a plus if files changed; empty where git is absent."""
    if shutil.which("git") is None:
        return ""
    describe = ["git", "rev-parse", "--short=12", "HEAD"]
    name = subprocess.run(describe, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    status = ["git", "status", "--porcelain", "--", ".", ":!benchmarks/results", ":!docs"]
    changed = subprocess.run(status, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return f"{name.stdout.strip()}{'+' if changed.stdout.strip() else ''}"


def run_setup(chroots: Chroots, name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Prepare the chroot of a setup, run the suite there, and return its row."""
    release, driver = name.split("/")
    if driver == "start":
        return run_start(chroots, release)
    root = chroots.prepare(release)
    part = "fast" if given.fast else "whole"
    say(f"{name}: the suite ({part}); its output is in {chroots.folder}/{release}-{driver}.log")
    options = ["--driver", driver, "--workers", str(given.workers), "--limit", str(given.limit)]
    options += ["--xml", f"/srv/{driver}-{part}.xml"]
    options += ["--fast"] if given.fast else []
    command = [PYTHON, "-m", "tests.implementations", "--here", *options]
    words = ["/usr/bin/env", "-C", INSIDE, *command]
    with (chroots.folder / f"{release}-{driver}.log").open("w") as log:
        done = subprocess.run(
            chroots.enter(root, words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise ChrootError(f"{name} ended with status {done.returncode}; see {log.name}") from error


def run_all(given: argparse.Namespace) -> int:
    """Run the setups that have no row of this commit yet; return how many failed."""
    if os.geteuid() != 0 or not shutil.which("debootstrap") or not shutil.which("unshare"):
        sys.exit("implementations: needs root, unshare and debootstrap; see --help, or use --here")
    chroots, failures = Chroots(given.folder), 0
    part, now = "fast" if given.fast else "whole", given.commit or commit()
    done = {(row["name"], row["part"]): row for row in table.read() if row["commit"] == now}
    for name in given.setups:
        kept = done.get((name, "start" if name.endswith("/start") else part))
        if kept and not now.endswith("+") and not given.again:
            say(f"{name}: has a row of {now}")
            failures += is_failure(kept)
            continue
        try:
            row = {**run_setup(chroots, name, given), "name": name, "commit": now}
        except ChrootError as error:
            say(f"{name}: {error}")
            failures += 1
            continue
        table.keep(row)
        say(f"{name}: {summary(row)}")
        failures += is_failure(row)
    return failures


def is_failure(row: dict[str, Any]) -> bool:
    """Tell whether a row is of a run with failures, or of none at all."""
    return int(row.get("failed") or 0) > 0 or int(row.get("passed") or 0) == 0


def summary(row: dict[str, Any]) -> str:
    """Return a row in one line."""
    counted = [f"{row[word]} {word}" for word in ("passed", "failed", "skipped") if word in row]
    return "; ".join([*counted, *([row["note"]] if row.get("note") else [])])


def main() -> None:
    """Run what the command line asks for."""
    given = parse()
    if given.add is not None:
        table.keep({**json.loads(given.add.read_text()), "name": given.name})
        return
    if not given.here:
        sys.exit(1 if run_all(given) else 0)
    part = "fast" if given.fast else "whole"
    row = run_here(given.driver, part, given.workers, given.limit, given.xml)
    row["commit"] = given.commit or commit()
    say(summary(row))
    print(json.dumps(row))
    sys.exit(1 if is_failure(row) else 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the chroot's processes
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
