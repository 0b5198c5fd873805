"""Tables as Markdown, and what stands above them, for all scripts here."""

from __future__ import annotations

import datetime

import pandas as pd

from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.machine import describe_machine
from hetero_bfs.named_selector import model_of


def markdown(table: pd.DataFrame) -> str:
    """Format a table as Markdown."""
    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in table.to_numpy()]
    return "\n".join(lines)


def provenance(info: DeviceInfo | None, command: str) -> list[str]:
    """Say what gave a result: machine, versions, speed model, command; a line each."""
    machine = describe_machine(info)
    device = machine["device"] or {"name": "no OpenCL device", "driver": "-"}
    model = model_of(info)
    return [
        f"- machine: {machine['cpu']}, {machine['threads']} threads; {device['name']}, "
        f"driver {device['driver']}",
        f"- versions: Python {machine['python']}, Numba {machine['numba']}, "
        f"commit {machine['commit']}, {datetime.date.today().isoformat()}",
        f"- speed model: {'none of this machine' if model is None else model.origin_text}",
        f"- command: `{command}`",
    ]
