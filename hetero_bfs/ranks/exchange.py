"""Exchanges between ranks, and their costs.

A *dense* exchange gives all ranks the visited bits of each rank's vertices that have several edges.
Each rank writes its bits to memory that its host's ranks share, and reads the others' bits there. A
*sparse* exchange sends words of child and parent to the child's owner (kernels/ranks.py). A first
call sends the counts. Words for ranks on the same host are in *boxes*, one for each pair of ranks,
in their shared memory. A second call sends the words for other hosts, and all words of a rank for
which a box is too small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.ranks.communicator import Communicator, Counts, agreed, parts_of
from hetero_bfs.ranks.owner_kernels import count_by_owner, sort_by_owner
from hetero_bfs.ranks.partition import Partition
from hetero_bfs.scheduling.rank_decision import ExchangeCosts
from hetero_bfs.support.memory import aligned_empty, check_shared_memory, free_shared_bytes

WORD_BYTES = 8
_REMEDY = "give the container more (--shm-size), or start fewer ranks on this host"
_PROBE_REPEATS = 20
_PROBE_WORDS = 1 << 15  # words that a rank sends in a large sparse exchange
_LEAST_WORDS = 1 << 12  # fewest words in all boxes of a host

Words = npt.NDArray[np.uint64]


class Mail(NamedTuple):
    """Messages to a rank's own vertices: vertices, messages, and the count from each rank."""

    numbers: npt.NDArray[np.uint32]
    messages: npt.NDArray[Any]
    received: Counts


def mail(
    communicator: Communicator,
    partition: Partition,
    columns: npt.NDArray[np.uint32],
    messages: npt.NDArray[Any],
) -> Mail:
    """Send each message to the owner of its column, by three collective calls."""
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


def mail_loops(
    partition: Partition, columns: npt.NDArray[np.uint32], messages: npt.NDArray[Any]
) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the compiled loops of `mail`, with arguments of the same types (`HostRun`)."""
    owners, first = partition.owner_of_line, partition.first_column
    return [
        (count_by_owner, (columns, owners, first)),
        (sort_by_owner, (columns, messages, owners, first, first, columns, messages)),
    ]


class Runner(Protocol):
    """The executor of a rank's levels, on its host or device, as exchanges see it.

    It has two bitmaps of all columns, and words for other ranks.
    """

    sent: Words
    """On the host: words for other ranks; each rank's words begin at its first column."""

    def give(self, index: int, bits: npt.NDArray[np.uint32]) -> None:
        """Copy the first words of bitmap `index` to `bits`."""

    def take(self, index: int, first: int, bits: npt.NDArray[np.uint32]) -> None:
        """Write words into bitmap `index` at `first`; keep `bits` until the next level ends."""

    def copy_words(self, rank: int, into: Words) -> None:
        """Copy the first words for a rank from where the last push left them."""

    def fill_sent(self, ranks: Iterable[int], counts: Counts) -> None:
        """Copy counts[r] words for each of the ranks r to `sent`, if they are not there."""


class Exchange:
    """The exchanges of one rank; `bytes_sent` is their total volume to other ranks.

    `device` is this rank's: it can copy from and to the memory of exchanges fast.

    Raises `AgreedError` on all ranks if a host has too little shared memory.
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
        """Number of words for each rank, which `send` sends."""
        self._announced, self._received = (np.zeros(communicator.size, np.int64) for _ in range(2))
        self._allocate = aligned_empty if device is None else device.host_array
        self._words: Words = np.empty(0, np.uint64)
        self._first_column: Counts = partition.first_column
        sent = partition.sent_words
        bits_bytes = 4 * int(sent.sum())
        agreed(communicator, lambda: check_shared_memory(bits_bytes, "a search by ranks", _REMEDY))
        size, me = communicator.host_size, communicator.host_rank
        self._box_words = self._agree_on_box(bits_bytes)
        boxes_bytes = WORD_BYTES * self._box_words * size * size if size > 1 else 0
        self._board = communicator.board(sent, np.uint32, boxes_bytes)
        memory = _pinned(device, self._board.memory)
        boxes = _pinned(device, self._board.extra).view(np.uint64).reshape(size, size, -1)
        peers = [(i, rank) for i, rank in enumerate(communicator.host_ranks) if i != me]
        self._boxes_to = {rank: boxes[me, i] for i, rank in peers}
        self._boxes_from = {rank: boxes[i, me] for i, rank in peers}
        parts = [memory[p : p + n] for p, n in zip(self._board.places, sent, strict=True)]
        self._mine = parts[partition.rank]
        self._others = [
            (int(first), part)
            for rank, (first, part) in enumerate(zip(partition.first_word, parts, strict=True))
            if rank != partition.rank and part.size
        ]
        self.bytes_sent = 0

    def dense(self, runner: Runner, index: int) -> None:
        """Complete a bitmap of all columns with the other ranks' bits."""
        runner.give(index, self._mine)
        self._board.complete()
        for first, part in self._others:
            runner.take(index, first, part)
        if self._partition.ranks > 1:
            self.bytes_sent += self._mine.nbytes

    def _agree_on_box(self, bits_bytes: int) -> int:
        """Return the number of words in a box, the same for all ranks.

        All boxes of a host take 4 bytes per vertex, or half of the memory that is left for sharing.
        """
        words = max(self._partition.num_columns // 2, _LEAST_WORDS)
        if (free := free_shared_bytes()) is not None:
            words = min(words, max(free - bits_bytes, 0) // (2 * WORD_BYTES))
        box = np.array([words // self._communicator.host_size**2])
        self._communicator.reduce_to_all(box, "min")
        return int(box[0])

    def send(self, runner: Runner) -> list[tuple[int, Words]]:
        """Send `counts` words to each rank; return the ranks that sent words, with their words.

        The words may be in other ranks' boxes: use them before the next collective call.

        A rank whose boxes are too small sends its words by a second call. It announces n words as
        ~n, which is negative even for n = 0, to all ranks. So all ranks know that they must make
        the call.
        """
        counts = self.counts.tolist()
        fit = all(counts[rank] <= self._box_words for rank in self._boxes_to)
        for rank, box in self._boxes_to.items() if fit else ():
            if counts[rank]:
                runner.copy_words(rank, box[: counts[rank]])
        self.bytes_sent += WORD_BYTES * sum(counts)
        np.bitwise_xor(self.counts, 0 if fit else -1, out=self._announced)
        self._communicator.exchange(self._announced, self._received)
        received = self._received.tolist()
        boxed = [
            (rank, self._boxes_from[rank][:n])
            for rank, n in enumerate(received)
            if n > 0 and rank in self._boxes_from
        ]
        if self._communicator.num_hosts == 1 and min(received) >= 0:
            return boxed
        return boxed + self._send_by_call(runner, fit, [rank for rank, _ in boxed])

    def _send_by_call(self, runner: Runner, fit: bool, boxed: list[int]) -> list[tuple[int, Words]]:
        """Send the words that are in no box; return the received words. `boxed` ranks use boxes."""
        sent = self.counts.copy()
        if fit:
            sent[list(self._boxes_to)] = 0
        coming = np.where(self._received < 0, ~self._received, self._received)
        coming[boxed] = 0
        runner.fill_sent(np.flatnonzero(sent).tolist(), sent)
        total = int(coming.sum())
        if self._words.size < total:
            self._words = self._allocate(2 * total, np.uint64)
        into = self._words[:total]
        self._communicator.exchange_parts(runner.sent, sent, self._first_column, into, coming)
        parts = zip(parts_of(coming).tolist(), coming.tolist(), strict=True)
        return [(rank, into[p : p + n]) for rank, (p, n) in enumerate(parts) if n]

    def probe(self, runner: Runner) -> ExchangeCosts:
        ranks = self._partition.ranks
        before = self.bytes_sent
        dense = self._time(lambda: self.dense(runner, 0))
        self.counts[:] = 0
        small = self._time(lambda: self.send(runner))
        most = min(_PROBE_WORDS // ranks, int(self._partition.words.min()) * 32)
        if self._boxes_to and self._box_words:  # as most levels send them
            most = min(most, self._box_words)
        self.counts[:] = most
        self.counts[self._partition.rank] = 0
        sent = WORD_BYTES * int(self.counts.sum())
        large = self._time(lambda: self.send(runner))
        self.bytes_sent = before
        costs = np.array([dense, small, max(large - small, 0.0) / sent if sent else 0.0])
        self._communicator.reduce_to_all(costs, "max")
        return ExchangeCosts(*costs.tolist())

    def _time(self, call: Callable[[], object]) -> float:
        seconds = []
        for _ in range(_PROBE_REPEATS):
            self._communicator.barrier()
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
        return float(np.median(seconds))


def _pinned(device: OpenCLDevice | None, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array's memory for fast copies by the device, if there is one and it allows that.

    Otherwise the array itself: it can be copied, too.
    """
    if device is None:
        return array
    try:
        return device.pin(array)
    except DeviceError:  # for example, a limit of locked memory
        return array
