"""Hostile inputs, made at random from a seed: each must be refused in one line, or answered right.

    python -m tests.fuzz files --minutes 5 --seed 1 --out failures
    python -m tests.fuzz device-files --minutes 5 --seed 1 --out failures
    python -m tests.fuzz searches --minutes 5 --seed 1 --out failures
    python -m tests.fuzz doors --minutes 5 --seed 1 --out failures
    python -m tests.fuzz ranks --minutes 5 --seed 1 --out failures
    python -m tests.fuzz models --minutes 5 --seed 1 --out failures
    python -m tests.fuzz drivers --minutes 5 --seed 1 --out failures
    python -m tests.fuzz commands --minutes 5 --seed 1 --out failures
    python -m tests.fuzz endurance --minutes 5 --seed 1 --out failures
    python -m tests.fuzz foreign --minutes 5 --seed 1 --out failures

run from the top of a checkout. `files` damages graph files and compares with plain parsers.
`device-files` searches in the graphs of such files under oclgrind, which finds bad accesses.
`searches` makes graphs, and runs algorithms and vertex programs on them with all kinds of options;
it compares with plain Python. A failing case of `searches` is made smaller by itself. `doors` makes
one graph by every constructor and file format, and runs algorithms by every interface: they must
have one answer. `ranks` does as `searches` on one to four processes of MPI. `models` damages speed
models and searches by them. `drivers` lets calls of OpenCL fail. `commands` ends commands by
signals, takes disk, memory, pipes and caches away from them, and runs two at once. `endurance` uses
one process for long, and watches what it holds. `foreign` damages matrices, arrays and tables of
other packages and gives them to every entry that takes them.

Campaigns print how many inputs were tried and how many failed, by kind. A failing input is kept in
the folder `--out`, and the line that tries it again is printed. The same seed gives the same
inputs: `--start N` continues where an earlier run stopped, and `--replay FILE` tries one file. An
input that ends the process stays in the folder, too. The exit status is 1 if any failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hetero_bfs.cli.argument_groups import positive
from tests.fuzz import (
    campaign,
    commands,
    device_files,
    doors,
    drivers,
    endurance,
    files,
    foreign,
    models,
    ranks,
    searches,
)

_MODULES = (
    files,
    device_files,
    searches,
    doors,
    ranks,
    models,
    drivers,
    commands,
    endurance,
    foreign,
)
CAMPAIGNS = {one.CAMPAIGN.name: one.CAMPAIGN for one in _MODULES}


def main() -> int:
    """Run one campaign; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("campaign", choices=CAMPAIGNS, help="what to attack")
    parser.add_argument("--minutes", type=float, default=1.0, help="stop after this long")
    parser.add_argument("--count", type=positive, help="stop after so many inputs per kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first input's number")
    parser.add_argument("--out", type=Path, default=Path("hostile-failures"), help="folder")
    parser.add_argument("--replay", type=Path, help="try this file alone")
    arguments = parser.parse_args()
    if arguments.minutes <= 0 or arguments.seed < 0 or arguments.start < 0:
        parser.error("--minutes must be above 0, --seed and --start at least 0")
    return campaign.run(CAMPAIGNS[arguments.campaign], arguments)


if __name__ == "__main__":
    sys.exit(main())
