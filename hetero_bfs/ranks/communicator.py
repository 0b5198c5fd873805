"""The communication of ranks: the few collective calls of a distributed run.

mpi.py makes them with MPI, simulated.py within one process, for tests and predictions.
Every rank must make the same calls in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.support.memory import PAGE_BYTES

Operation = Literal["max", "min", "sum"]

Counts = npt.NDArray[np.int64]


class Board(Protocol):
    """Memory of each host in which every rank of the run has a part, for all to read."""

    memory: npt.NDArray[Any]
    places: Counts
    """Where each rank's part begins in `memory`."""
    beside: npt.NDArray[np.uint8]
    """Further memory, for the ranks of one host alone. It begins a page of the whole memory."""

    def complete(self) -> None:
        """Wait until all ranks have written their parts; then each host has all of them.

        A rank must have read them before its next collective call.
        """


class Communicator(Protocol):
    """The ranks of a run, as one of them sees them.

    Arrays are contiguous and one-dimensional. A host is a machine whose ranks share memory. The
    arrays of different ranks of a call have one dtype.
    """

    rank: int
    """Number of this rank, from 0."""
    size: int
    """Number of ranks."""
    host_rank: int
    """Number of this rank among those of its host, from 0."""
    host_size: int
    """Number of ranks on this host."""
    num_hosts: int
    host_ranks: list[int]
    """The ranks of this host, by their numbers on it."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def reduce_to_all(self, array: npt.NDArray[Any], operation: Operation) -> None:
        """Replace each item by the maximum, the minimum or the sum over ranks."""

    def collect(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank; values are small and can be pickled."""

    def gather_to_all(
        self, send: npt.NDArray[Any], receive: npt.NDArray[Any], counts: Counts, places: Counts
    ) -> None:
        """Send `send` to all ranks; rank r's counts[r] items arrive at receive[places[r]:].

        `send` may be the part of `receive` where it would arrive.
        """

    def board(self, counts: Counts, dtype: npt.DTypeLike, beside_bytes: int = 0) -> Board:
        """Return a board with room for counts[r] items of rank r; all ranks make the same call.

        All boards lie in the same memory, which grows as needed and stays.
        """

    def exchange(self, send: npt.NDArray[Any], receive: npt.NDArray[Any]) -> None:
        """Send item r to rank r, for all r; item r of `receive` is from rank r."""

    def exchange_parts(
        self,
        send: npt.NDArray[Any],
        counts: Counts,
        places: Counts,
        receive: npt.NDArray[Any],
        received: Counts,
    ) -> None:
        """Send each rank r the counts[r] items from send[places[r]] on.

        Received items are in the order of the ranks, received[r] items from rank r.
        """

    def shared_array(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of zeros that all ranks of this host share."""

    def free_shared(self) -> None:
        """Free all memory of `shared_array`, which must not be used any more; all ranks call it."""

    def combine_hosts(self, array: npt.NDArray[Any], operation: Operation) -> None:
        """Combine the `shared_array` of all hosts, item by item; all ranks wait for it."""

    def abort(self) -> None:
        """End all ranks with status 1; this rank at once."""


class BoardMemory:
    """The memory of all boards of a host: it grows as needed.

    Parameters
    ----------
    share : callable
        Returns so many bytes that the ranks of a host share; all of them call it. Hosts may have
        boards of unlike sizes.
    """

    def __init__(self, share: Callable[[int], npt.NDArray[np.uint8]]) -> None:
        self._share = share
        self._memory = np.empty(0, np.uint8)

    def cut(
        self, counts: Counts, dtype: npt.DTypeLike, beside_bytes: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """Return a board's `memory` and `beside`."""
        end = int(counts.sum()) * np.dtype(dtype).itemsize
        begin = -(-end // PAGE_BYTES) * PAGE_BYTES
        if self._memory.size < begin + beside_bytes:
            self._memory = self._share(begin + beside_bytes)
        return self._memory[:end].view(dtype), self._memory[begin : begin + beside_bytes]


def parts_of(counts: Counts) -> Counts:
    """Return the begin of each part, for contiguous parts of these sizes."""
    places = np.zeros(counts.size, np.int64)
    np.cumsum(counts[:-1], out=places[1:])
    return places
