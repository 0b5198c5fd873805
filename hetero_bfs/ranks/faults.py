"""Errors that are sent to all ranks, so that no rank waits for one that has failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hetero_bfs.errors import AgreedError, HeteroBFSError
from hetero_bfs.ranks.communicator import Communicator

T = TypeVar("T")


def agreed(communicator: Communicator, work: Callable[[], T]) -> T:
    """Do work without communication; return its result.

    Raises `AgreedError` on all ranks if the work of any rank raised `HeteroBFSError`, `OSError` or
    `MemoryError`.
    """
    problem, result = None, None
    try:
        result = work()
    except (HeteroBFSError, OSError) as error:
        problem = str(error)
    except MemoryError:
        problem = "out of memory; choose a smaller graph or more machines"
    problems = communicator.collect(problem)
    failed = [rank for rank, text in enumerate(problems) if text is not None]
    if failed:
        where = "" if len(failed) == communicator.size else f"rank {failed[0]}: "
        raise AgreedError(f"{where}{problems[failed[0]]}")
    return result  # type: ignore[return-value]
