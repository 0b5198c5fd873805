"""Output of commands: text, notes and JSON."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hetero_bfs.support.files import replacing, write_array

if TYPE_CHECKING:  # `hetero-bfs doctor` prints without NumPy
    import numpy.typing as npt


def text_stream(options: Namespace) -> TextIO:
    """Standard error if JSON goes to standard output."""
    return sys.stderr if str(options.json) == "-" else sys.stdout


def print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def write_trace(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    from hetero_bfs.scheduling.trace import write_csv
    from hetero_bfs.timeline.spans import spans_of
    from hetero_bfs.timeline.timeline_files import is_timeline_path, write_timeline

    if is_timeline_path(path):
        write_timeline(path, spans_of(list(rows)), f"Timeline of {path.stem}")
    else:
        write_csv(path, rows)


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    import numpy as np
    from numpy.lib import format as npy

    array = np.ascontiguousarray(array)
    with replacing(path, "wb") as stream:
        npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(array))
        write_array(stream, array)


def write_json(path: Path | None, data: Any) -> None:
    """Write JSON to a file, or to standard output if the path is "-"."""
    if path is None:
        return
    text = json.dumps(data, indent=1, allow_nan=False)
    if str(path) == "-":
        print(text)
        return
    with replacing(path) as stream:
        stream.write(text + "\n")
