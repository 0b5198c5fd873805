"""Exchanges between ranks, and their costs.

A *dense* exchange gives all ranks the visited bits of each rank's vertices that have several edges.
Each rank writes its bits to memory that its host's ranks share, and reads the others' there. A
*sparse* exchange sends words of child and parent to the child's owner (kernels/push.py): one call
for the counts, one for the words.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.distributed.communicator import Communicator, Counts, parts_of
from hetero_bfs.distributed.faults import agreed
from hetero_bfs.distributed.partition import Partition
from hetero_bfs.support.memory import aligned_empty, check_shared_memory

WORD_BYTES = 8
_REMEDY = "give the container more (--shm-size), or start fewer ranks on this host"
_PROBE_REPEATS = 20
_PROBE_WORDS = 1 << 15  # of a large sparse exchange, for each rank


@dataclass(frozen=True)
class ExchangeCosts:
    """Seconds of exchanges, measured by `probe`: the same on all ranks.

    `dense` is a whole dense exchange; a sparse one takes `latency` and `per_byte` of what the rank
    with the most sends.
    """

    dense: float
    latency: float
    per_byte: float

    def sparse(self, num_bytes: float) -> float:
        """Return the seconds of a sparse exchange."""
        return self.latency + self.per_byte * num_bytes


class Mail(NamedTuple):
    """Messages to a rank's own vertices: these vertices, and the count from each rank."""

    numbers: npt.NDArray[np.uint32]
    messages: npt.NDArray[Any]
    received: Counts


def mail(
    communicator: Communicator,
    partition: Partition,
    columns: npt.NDArray[np.uint32],
    messages: npt.NDArray[Any],
) -> Mail:
    """Send each message to the owner of its column: three calls."""
    from hetero_bfs.distributed.kernels.mailing import count_by_owner, sort_by_owner

    counts, received = (np.zeros(communicator.size, np.int64) for _ in range(2))
    owners, first = partition.owner_of_line, partition.first_column
    count_by_owner(columns, owners, counts)
    places = parts_of(counts)
    numbers, sorted_messages = np.empty_like(columns), np.empty_like(messages)
    sort_by_owner(columns, messages, owners, first, places.copy(), numbers, sorted_messages)
    communicator.exchange(counts, received)
    total = int(received.sum())
    own, got = np.empty(total, numbers.dtype), np.empty(total, messages.dtype)
    communicator.exchange_parts(numbers, counts, places, own, received)
    communicator.exchange_parts(sorted_messages, counts, places, got, received)
    return Mail(own, got, received)


class Bitmaps(Protocol):
    """The two bitmaps of all columns of a rank, on its host or its device."""

    def give(self, index: int, bits: npt.NDArray[np.uint32]) -> None:
        """Copy the first words of one of them."""

    def take(self, index: int, first: int, bits: npt.NDArray[np.uint32]) -> None:
        """Write its words from `first` on. `bits` stay as they are until the next level ends."""


class Exchange:
    """The exchanges of one rank, with the bytes that it sent to others in all.

    Parameters
    ----------
    communicator : Communicator
    partition : Partition
    device : OpenCLDevice, optional
        This rank's: it can copy from and to the memory of exchanges fast.

    Raises
    ------
    AgreedError
        A host has too little shared memory; all ranks raise it.
    """

    def __init__(
        self,
        communicator: Communicator,
        partition: Partition,
        device: OpenCLDevice | None = None,
    ) -> None:
        self._communicator = communicator
        self._partition = partition
        self.counts: Counts = np.zeros(communicator.size, np.int64)
        """Words for each rank, which `tell` sends."""
        self._received: Counts = np.zeros(communicator.size, np.int64)
        self._allocate = aligned_empty if device is None else device.host_array
        self._words = np.empty(0, np.uint64)
        self._first_column: Counts = partition.first_column
        sent = partition.sent_words
        needed = 4 * int(sent.sum())
        agreed(communicator, lambda: check_shared_memory(needed, "a search by ranks", _REMEDY))
        self._board = communicator.board(sent, np.uint32)
        memory = self._board.memory if device is None else device.pin(self._board.memory)
        parts = [memory[p : p + n] for p, n in zip(self._board.places, sent, strict=True)]
        self._mine = parts[partition.rank]
        self._others = [
            (int(first), part)
            for rank, (first, part) in enumerate(zip(partition.first_word, parts, strict=True))
            if rank != partition.rank and part.size
        ]
        self.bytes_sent = 0

    def dense(self, bitmaps: Bitmaps, index: int) -> None:
        """Complete a bitmap of all columns by the other ranks' bits."""
        bitmaps.give(index, self._mine)
        self._board.complete()
        for first, part in self._others:
            bitmaps.take(index, first, part)
        if self._partition.ranks > 1:
            self.bytes_sent += self._mine.nbytes

    def tell(self, words: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Counts]:
        """Send `counts` words to each rank; return those received, and how many each rank sent.

        The words for a rank begin at its first column.
        """
        communicator, counts, received = self._communicator, self.counts, self._received
        communicator.exchange(counts, received)
        total = int(np.add.reduce(received))
        if self._words.size < total:
            self._words = self._allocate(2 * total, np.uint64)
        into = self._words[:total]
        communicator.exchange_parts(words, counts, self._first_column, into, received)
        self.bytes_sent += WORD_BYTES * int(np.add.reduce(counts))
        return into, received

    def probe(self, bitmaps: Bitmaps) -> ExchangeCosts:
        """Measure the costs, in which a bitmap changes; all ranks get the slowest rank's."""
        ranks = self._partition.ranks
        before = self.bytes_sent
        dense = self._time(lambda: self.dense(bitmaps, 0))
        words = np.zeros(self._partition.num_columns, np.uint64)
        self.counts[:] = 0
        small = self._time(lambda: self.tell(words))
        room = int(self._partition.words.min()) * 32
        self.counts[:] = min(_PROBE_WORDS // ranks, room)
        self.counts[self._partition.rank] = 0
        sent = WORD_BYTES * int(self.counts.sum())
        large = self._time(lambda: self.tell(words))
        self.bytes_sent = before
        costs = np.array([dense, small, max(large - small, 0.0) / sent if sent else 0.0])
        self._communicator.reduce_to_all(costs, "max")
        return ExchangeCosts(*costs.tolist())

    def _time(self, call: Callable[[], object]) -> float:
        """Return the median seconds of a call that all ranks make."""
        seconds = []
        for _ in range(_PROBE_REPEATS):
            self._communicator.barrier()
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
        return float(np.median(seconds))
