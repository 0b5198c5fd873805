"""Output of commands: text, notes and JSON.

Under an MPI launcher all ranks share one run, and only one of them prints.
"""

from __future__ import annotations

import io
import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from hetero_bfs.algorithms.table import commands
from hetero_bfs.errors import AgreedError, HeteroBFSError
from hetero_bfs.support.environment import launched_rank, launched_ranks, tasks_without_mpi
from hetero_bfs.support.files import replacing

if TYPE_CHECKING:
    from hetero_bfs.devices.machine import DeviceInfo
    from hetero_bfs.ranks.communicator import Communicator


def text_stream(options: Namespace) -> TextIO:
    """Standard error if JSON goes to standard output."""
    return sys.stderr if str(options.json) == "-" else sys.stdout


def print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def write_trace(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    from hetero_bfs.scheduling.trace import write_csv
    from hetero_bfs.timeline.rendering import is_timeline_path, write_timeline
    from hetero_bfs.timeline.spans import spans_of

    if is_timeline_path(path):
        write_timeline(path, spans_of(list(rows)), f"Timeline of {path.stem}")
    else:
        write_csv(path, rows)


def as_json(number: float) -> float | str:
    """Return a number as JSON has it, which knows neither infinity nor NaN."""
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def write_json(path: Path | None, data: Any) -> None:
    if path is None:
        return
    text = json.dumps(data, indent=1, allow_nan=False)
    if str(path) == "-":
        print(text)
        return
    with replacing(path) as stream:
        stream.write(text + "\n")


def write_record(
    path: Path | None,
    data: Mapping[str, Any],
    device: DeviceInfo | None = None,
    seeds: Mapping[str, int] | None = None,
) -> None:
    from hetero_bfs.devices.machine import record_of_run

    if path is not None:
        write_json(path, {**data, **record_of_run(device, seeds)})


T = TypeVar("T")


def _on_ranks() -> list[str]:
    return ["graph500", *(name for name, row in commands().items() if row.on_ranks)]


@contextmanager
def one_voice() -> Iterator[None]:
    """Let only rank 0 print while all ranks do the same work."""
    if launched_rank() == 0:
        yield
        return
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def check_command(options: Namespace) -> None:
    """Raise `AgreedError` for a command that every rank would run independently.

    Tasks that srun started without MPI are noted on stderr.
    """
    if (tasks := tasks_without_mpi()) > 1 and options.command in _on_ranks():
        print(
            f"note: srun started {tasks} tasks without MPI, and each runs alone; srun --mpi=pmi2 "
            "starts ranks of one run",
            file=sys.stderr,
        )
    ranks = launched_ranks()
    if ranks > 1 and options.command not in _on_ranks():
        raise AgreedError(
            f"{options.command} runs in one process, and the launcher started {ranks}; "
            f"{', '.join(_on_ranks())} run on several"
        )


def agreed_by_all(work: Callable[[], None]) -> None:
    """Do work without communication; if it fails on any rank, all ranks raise `AgreedError`."""
    if launched_ranks() == 1:
        work()
        return
    from hetero_bfs.ranks.communicator import agreed
    from hetero_bfs.ranks.mpi import world

    agreed(world(), work)


def says(error: HeteroBFSError) -> bool:
    return not (isinstance(error, AgreedError) and launched_rank() > 0)


def run_together(work: Callable[[Communicator], T]) -> T:
    """Run work on all ranks; an error of a single rank ends all of them with status 1.

    An `AgreedError`, which all ranks have raised, is passed on.
    """
    from hetero_bfs.ranks.mpi import world

    communicator = world()
    try:
        return work(communicator)
    except AgreedError:
        raise
    except Exception as error:  # otherwise the other ranks would wait for ever
        known = isinstance(error, (HeteroBFSError, OSError, MemoryError))
        text = str(error) or type(error).__name__
        if not known:
            text = f"{type(error).__name__}: {text}"
        print(f"hetero-bfs: rank {communicator.rank}: {text}", file=sys.stderr)
        sys.stderr.flush()
        communicator.abort()
        raise
