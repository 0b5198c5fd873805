"""Functions for all scripts here: exit with a message, tables as Markdown, and their heads."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo, describe_machine
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.support.files import replacing


def run_script(main: Callable[[], None]) -> None:
    try:
        main()
    except (HeteroBFSError, OSError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def markdown(table: pd.DataFrame) -> str:
    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in table.to_numpy()]
    return "\n".join(lines)


def save(folder: Path, stem: str, table: pd.DataFrame, lines: Sequence[str]) -> None:
    """Write STEM.csv, and the lines as STEM.md."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"{stem}.csv") as stream:
        table.to_csv(stream, index=False, float_format="%.9g")
    with replacing(folder / f"{stem}.md") as stream:
        stream.write("\n".join(lines) + "\n")


def provenance(info: DeviceInfo | None, command: str) -> list[str]:
    """Return a result's origin, one line each: machine, versions, speed model, command."""
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
