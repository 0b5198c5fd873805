"""The study command, as tests run it, and the tables that it writes."""

from __future__ import annotations

from unittest import mock

import pandas as pd

from hetero_bfs.cli import main as cli
from hetero_bfs.training import regret

TINY = ["--keys", "2", "--rounds", "1"]


def study(*arguments) -> int:
    """Run the command in this process; short schedules are not replayed for a second each."""
    with mock.patch.object(regret, "REPLAY_SECONDS", 0.0):
        return cli.main(["study", *map(str, arguments)])


def table(folder, name) -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv")
