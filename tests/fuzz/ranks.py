"""Runs on ranks over random graphs, compared with plain Python; one start of MPI tries several.

A kind is a number of ranks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from random import Random

from tests.fuzz.campaign import Attempt, Campaign
from tests.fuzz.rank_cases import draw_case

KINDS = {f"ranks{count}": count for count in (1, 2, 3, 4)}
_CASES = 8  # of one start, which takes seconds
_PATIENCE_SECONDS = 280  # ranks that wait spin, so other load slows them most


def trouble(kind: str, path: Path) -> str | None:
    """Try the cases of a file; return what went wrong, None if nothing did."""
    mpirun = Path(sys.executable).with_name("mpirun")
    if not mpirun.exists():
        raise SystemExit(f"{mpirun} is absent; install it with: pip install mpi4py mpich")
    top = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([top, *filter(None, sys.path)])}
    worker = [sys.executable, "-m", "tests.fuzz.rank_cases", str(path)]
    process = subprocess.Popen(
        [mpirun, "-n", str(KINDS[kind]), *worker], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"it runs for more than {_PATIENCE_SECONDS} s"
    finally:
        with suppress(ProcessLookupError):  # if it has not ended, this ends all ranks
            os.killpg(process.pid, signal.SIGKILL)
    return None if process.returncode == 0 and not said else f"{process.returncode}: {said[-3000:]}"


def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try the cases of one start, kept as JSON."""
    chance = Random(f"{seed} {kind} {number}")
    cases = [draw_case(chance) for _ in range(_CASES)]
    path = folder / f"{kind}-{seed}-{number}.json"
    path.write_text(json.dumps([asdict(case) for case in cases]))
    return Attempt(path, trouble(kind, path), sum(len(case.steps) for case in cases))


def replay(kind: str, path: Path) -> list[str]:
    """Try kept cases."""
    wrong = trouble(kind, path)
    return [] if wrong is None else [wrong]


CAMPAIGN = Campaign("ranks", KINDS, attempt, replay)
