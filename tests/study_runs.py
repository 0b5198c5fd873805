"""The study command, as tests run it, and the tables that it writes."""

from __future__ import annotations

import pandas as pd

from hetero_bfs.cli import main as cli

TINY = ["--keys", "2", "--rounds", "1"]


def study(*arguments) -> int:
    """Run the command in this process."""
    return cli.main(["study", *map(str, arguments)])


def table(folder, name) -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv")
