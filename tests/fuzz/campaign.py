"""What all campaigns share: inputs by number until the time is over, counts, failures kept."""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

_PATIENCE_SECONDS = 300  # for one input; then the process ends with a traceback, and the file stays


class Attempt(NamedTuple):
    """One input that was tried, as a file; what went wrong, if anything; and how much it tried."""

    path: Path
    wrong: str | None
    tried: int = 1


class Campaign(NamedTuple):
    """A name, kinds of inputs, how an input of a kind is tried, and how a kept file is.

    `attempt` takes the kind, the input's number, the seed and the folder for the file. `replay`
    returns a description of each wrong outcome, None if the file is none of this campaign.
    """

    name: str
    kinds: Iterable[str]
    attempt: Callable[[str, int, int, Path], Attempt]
    replay: Callable[[str, Path], list[str] | None]


def campaign_of_faults(
    name: str,
    kinds: Iterable[str],
    fault_type: type[Any],
    draw: Callable[[Random], Any],
    trouble: Callable[[str, Any], str | None],
) -> Campaign:
    """Return a campaign whose inputs are a dataclass, kept as JSON.

    `draw` makes one; `trouble` tries it and returns what went wrong, None if nothing did.
    """

    def attempt(kind: str, number: int, seed: int, folder: Path) -> Attempt:
        fault = draw(Random(f"{seed} {kind} {number}"))
        path = folder / f"{kind}-{seed}-{number}.json"
        path.write_text(json.dumps(asdict(fault)))
        return Attempt(path, trouble(kind, fault))

    def replay(kind: str, path: Path) -> list[str] | None:
        try:
            fault = fault_type(**json.loads(path.read_text()))
        except (ValueError, TypeError):
            return None
        wrong = trouble(kind, fault)
        return [] if wrong is None else [wrong]

    return Campaign(name, kinds, attempt, replay)


def run(campaign: Campaign, arguments: argparse.Namespace) -> int:
    """Try inputs of all kinds in turn until the time or the count is over; return the status."""
    if arguments.replay is not None:
        return _replay(campaign, arguments.replay)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kinds = list(campaign.kinds)
    tried, failed = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    until = time.monotonic() + 60 * arguments.minutes
    number = arguments.start
    while time.monotonic() < until and number - arguments.start != arguments.count:
        for kind in kinds:
            faulthandler.dump_traceback_later(_PATIENCE_SECONDS, exit=True, file=sys.__stderr__)
            attempt = campaign.attempt(kind, number, arguments.seed, arguments.out)
            faulthandler.cancel_dump_traceback_later()
            tried[kind] += attempt.tried
            if attempt.wrong is None:
                attempt.path.unlink()  # the file remains if an input ends the process
                continue
            failed[kind] += 1
            print(f"{attempt.path}: {attempt.wrong}")
            print(f"  python -m tests.fuzz {campaign.name} --replay {attempt.path}")
        number += 1
    print(f"seed {arguments.seed}, inputs {arguments.start} to {number - 1} of each kind")
    for kind in kinds:
        print(f"{kind:18}{tried[kind]:>8} tried{failed[kind]:>6} failed")
    print(f"go on with --seed {arguments.seed} --start {number}")
    return int(any(failed.values()))


def _replay(campaign: Campaign, path: Path) -> int:
    kind = path.name.split("-")[0]
    known = kind in campaign.kinds and path.is_file()
    wrong = campaign.replay(kind, path) if known else None
    if wrong is None:
        print(f"{path} cannot be replayed: give a file that a campaign kept, by its own name")
        return 2
    for text in wrong:
        print(f"{path}: {text}")
    return int(bool(wrong))
