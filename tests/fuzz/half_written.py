"""Tells whether a file that a command wrote is whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

import hetero_bfs as hb


def half_written(path: Path) -> str | None:
    """Return why a file is no whole result, None if it is one."""
    try:
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".npy":
            np.load(path)
        elif path.suffix == ".hbg":
            hb.load(path)
        elif path.suffix == ".csv":
            table = path.read_text()
            if not table.endswith("\n") or pd.read_csv(path, comment="#").empty:
                return "the table ends early"
        elif path.suffix == ".html" and "</html>" not in path.read_text():
            return "the page ends early"
        elif path.suffix == ".png" and not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
            return "the picture ends early"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
