"""Communication between ranks: a few collective calls, and errors that all ranks raise.

mpi.py makes them with MPI. Every rank must make the same calls in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import AgreedError, HeteroBFSError
from hetero_bfs.support.memory import PAGE_BYTES

Operation = Literal["max", "min", "sum"]

Counts = npt.NDArray[np.int64]


class BoardMemory:
    """The memory of all boards of a host: it grows as needed.

    `share` returns a number of bytes that the ranks of a host share; all of them call it. Boards
    may have different sizes on different hosts.
    """

    def __init__(self, share: Callable[[int], npt.NDArray[np.uint8]]) -> None:
        self._share = share
        self._memory = np.empty(0, np.uint8)

    def cut(
        self, counts: Counts, dtype: npt.DTypeLike, extra_bytes: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
        end = int(counts.sum()) * np.dtype(dtype).itemsize
        begin = -(-end // PAGE_BYTES) * PAGE_BYTES
        if self._memory.size < begin + extra_bytes:
            self._memory = self._share(begin + extra_bytes)
        return self._memory[:end].view(dtype), self._memory[begin : begin + extra_bytes]


@dataclass
class Board:
    """Memory on each host in which every rank of the run has a part, readable by all.

    `places` has the position of each rank's part in `memory`. `extra` is further memory, for the
    ranks of one host only. It begins on a page boundary.
    """

    memory: npt.NDArray[Any]
    places: Counts
    extra: npt.NDArray[np.uint8]

    def complete(self) -> None:
        """Wait until all ranks have written their parts; then each host has all parts.

        A rank must read them before its next collective call.
        """


class Communicator:
    """The ranks of a run, from the view of one rank. In this class it is the only one.

    Arrays are contiguous and one-dimensional. A host is a machine whose ranks share memory. In a
    call the arrays of all ranks have the same dtype.
    """

    rank: int = 0
    size: int = 1
    host_rank: int = 0
    """Number of this rank on its host, from 0."""
    host_size: int = 1
    num_hosts: int = 1
    host_ranks: Sequence[int] = (0,)
    """The ranks of this host, by their `host_rank`."""

    def __init__(self) -> None:
        self._boards = BoardMemory(lambda size: self.shared_array(size, np.uint8))

    def barrier(self) -> None:
        """Wait for all ranks."""

    def reduce_to_all(self, array: npt.NDArray[Any], operation: Operation) -> None:
        """Replace each item by the maximum, the minimum or the sum over ranks."""

    def collect(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank; values must be small and picklable."""
        return [value]

    def gather_to_all(
        self, send: npt.NDArray[Any], receive: npt.NDArray[Any], counts: Counts, places: Counts
    ) -> None:
        """Send `send` to all ranks; rank r's counts[r] items arrive at receive[places[r]:].

        `send` may be the part of `receive` where it would arrive.
        """
        receive[places[0] :][: counts[0]] = send

    def board(self, counts: Counts, dtype: npt.DTypeLike, extra_bytes: int = 0) -> Board:
        """Return a board with room for counts[r] items of rank r; all ranks make the same call.

        All boards use the same memory, which grows as needed and is never freed.
        """
        memory, extra = self._boards.cut(counts, dtype, extra_bytes)
        return Board(memory, np.zeros(1, np.int64), extra)

    def exchange(self, send: npt.NDArray[Any], receive: npt.NDArray[Any]) -> None:
        """Send item r to rank r, for all r; item r of `receive` is from rank r."""
        receive[:] = send

    def exchange_parts(
        self,
        send: npt.NDArray[Any],
        counts: Counts,
        places: Counts,
        receive: npt.NDArray[Any],
        received: Counts,
    ) -> None:
        """Send send[places[r]:][:counts[r]] to each rank r.

        Received items are ordered by rank: received[r] items are from rank r.
        """
        receive[:] = send[places[0] :][: counts[0]]

    def shared_array(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of zeros that all ranks of this host share."""
        return np.zeros(size, dtype)

    def free_shared(self) -> None:
        """Free all arrays of `shared_array`, which must not be used any more; all ranks call it."""

    def combine_hosts(self, array: npt.NDArray[Any], operation: Operation) -> None:
        """Combine the `shared_array` of all hosts, item by item; all ranks wait for it."""

    def abort(self) -> None:
        """End all ranks with status 1; this rank immediately."""
        raise SystemExit(1)


def parts_of(counts: Counts) -> Counts:
    places = np.zeros(counts.size, np.int64)
    np.cumsum(counts[:-1], out=places[1:])
    return places


T = TypeVar("T")


def agreed(communicator: Communicator, work: Callable[[], T]) -> T:
    """Do work without communication; return its result.

    Raises `AgreedError` on all ranks if the work of any rank raised `HeteroBFSError`, `OSError` or
    `MemoryError`.
    """
    problem, result = _tried(work)
    problems = communicator.collect(problem)
    failed = [rank for rank, text in enumerate(problems) if text is not None]
    if failed:
        where = "" if len(failed) == communicator.size else f"rank {failed[0]}: "
        raise AgreedError(f"{where}{problems[failed[0]]}")
    return result  # type: ignore[return-value]


def done_by_first(communicator: Communicator, work: Callable[[], T]) -> T:
    """Do work without communication on rank 0; return its result on all ranks, as `collect` does.

    Raises `AgreedError` on all ranks as `agreed` does.
    """
    mine = _tried(work) if communicator.rank == 0 else (None, None)
    problem, result = communicator.collect(mine)[0]
    if problem is not None:
        raise AgreedError(problem)
    return result  # type: ignore[no-any-return]


def _tried(work: Callable[[], T]) -> tuple[str | None, T | None]:
    """Return the text of the error, if there was one, and the result."""
    try:
        return None, work()
    except (HeteroBFSError, OSError) as error:
        return str(error), None
    except MemoryError:
        return "out of memory; choose a smaller graph or more machines", None
