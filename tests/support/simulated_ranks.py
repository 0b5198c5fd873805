"""Ranks within one process, for tests and predictions: threads that run one at a time.

A rank runs until its next collective call, then the next rank runs. So each rank has the machine to
itself, and its levels take as long as on a separate machine. Transfers cost nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.ranks.communicator import Board, BoardMemory, Counts, Operation, parts_of

T = TypeVar("T")

_REDUCTIONS = {"max": np.maximum.reduce, "min": np.minimum.reduce, "sum": np.add.reduce}


class _Aborted(BaseException):
    """Another rank failed; this rank ends without a message."""


class _Meeting:
    """The state of a collective call: the rank that runs now, and the ranks' contributions."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.RLock()
        self.turns = [threading.Condition(self.lock) for _ in range(size)]
        self.turn = 0
        self.number = 0
        self.brought: list[Any] = [None] * size
        self.kinds = [""] * size
        self.ended = [False] * size
        self.result: Any = None
        self.failure: BaseException | None = None
        self.shared: dict[tuple[int, int], npt.NDArray[Any]] = {}
        """Arrays that a host's ranks share, by host and number."""

    def await_turn(self, rank: int, number: int) -> None:
        with self.lock:
            self.turns[rank].wait_for(
                lambda: self.failure or (self.turn == rank and self.number == number)
            )
            if self.failure:
                raise _Aborted

    def pass_turn(self, rank: int) -> None:
        """Let the next rank run; the others sleep, since they would disturb its levels."""
        with self.lock:
            self.turn = (rank + 1) % self.size
            self.turns[self.turn].notify()

    def fail(self, error: BaseException) -> None:
        with self.lock:
            self.failure = self.failure or error
            for turn in self.turns:
                turn.notify()


class SimulatedCommunicator:
    """A rank of `run_ranks`, as a `Communicator`. `host_size` consecutive ranks form a host."""

    def __init__(self, rank: int, meeting: _Meeting, host_size: int) -> None:
        self.rank, self.size = rank, meeting.size
        self.host_rank, self._host = rank % host_size, rank // host_size
        self.host_size = min(host_size, self.size - self._host * host_size)
        self.num_hosts = -(-self.size // host_size)
        self._first_ranks = range(0, self.size, host_size)
        self._meeting = meeting
        first = rank - self.host_rank
        self.host_ranks = list(range(first, first + self.host_size))
        self._shared = 0
        self._boards = BoardMemory(lambda size: self.shared_array(size, np.uint8))
        self.calls = 0
        """Number of collective calls so far."""
        self.items_sent = 0
        """Number of items that this rank gave to `gather_to_all`, boards and exchanges so far."""

    def _meet(self, kind: str, brought: Any, combine: Callable[[list[Any]], Any]) -> Any:
        """Contribute a value. The last rank combines all values; each rank gets the result."""
        meeting, number = self._meeting, self._meeting.number
        if any(meeting.ended):
            raise RuntimeError(f"rank {self.rank} calls {kind}, and a rank has ended")
        self.calls += 1
        meeting.brought[self.rank], meeting.kinds[self.rank] = brought, kind
        if self.rank == self.size - 1:
            if len(set(meeting.kinds)) > 1:
                raise RuntimeError(f"the ranks make different calls: {meeting.kinds}")
            meeting.result = combine(meeting.brought)
            with meeting.lock:
                meeting.number += 1
        meeting.pass_turn(self.rank)
        meeting.await_turn(self.rank, number + 1)
        return meeting.result

    def barrier(self) -> None:
        self._meet("barrier", None, lambda _: None)

    def reduce_to_all(self, array: npt.NDArray[Any], operation: Operation) -> None:
        array[:] = self._meet(
            "reduce", array.copy(), lambda all_: _REDUCTIONS[operation](np.stack(all_))
        )

    def collect(self, value: Any) -> list[Any]:
        return list(self._meet("collect", value, list))

    def gather_to_all(
        self, send: npt.NDArray[Any], receive: npt.NDArray[Any], counts: Counts, places: Counts
    ) -> None:
        self.items_sent += send.size
        for r, items in enumerate(self._meet("gather", send.copy(), list)):
            receive[places[r] : places[r] + counts[r]] = items

    def board(self, counts: Counts, dtype: npt.DTypeLike, extra_bytes: int = 0) -> Board:
        memory, extra = self._boards.cut(counts, dtype, extra_bytes)
        return _SimulatedBoard(self, memory, extra, counts)

    def exchange(self, send: npt.NDArray[Any], receive: npt.NDArray[Any]) -> None:
        self.items_sent += send.size
        receive[:] = self._meet("exchange", send.copy(), np.stack)[:, self.rank]

    def exchange_parts(
        self,
        send: npt.NDArray[Any],
        counts: Counts,
        places: Counts,
        receive: npt.NDArray[Any],
        received: Counts,
    ) -> None:
        self.items_sent += int(counts.sum())
        parts = [send[p : p + n].copy() for p, n in zip(places, counts, strict=True)]
        mine = [parts[self.rank] for parts in self._meet("exchange parts", parts, list)]
        assert [part.size for part in mine] == received.tolist(), "the ranks disagree"
        receive[:] = np.concatenate(mine)

    def shared_array(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        self._shared += 1
        place = self._host, self._shared
        return self._meeting.shared.setdefault(place, np.zeros(size, dtype))

    def free_shared(self) -> None:
        """Do nothing: the arrays end with the run."""

    def combine_hosts(self, array: npt.NDArray[Any], operation: Operation) -> None:
        def combine(brought: list[Any]) -> None:
            hosts = [brought[r] for r in self._first_ranks]
            result = _REDUCTIONS[operation](np.stack(hosts))
            for one in brought:
                one[:] = result

        self._meet("combine", array, combine)

    def abort(self) -> None:
        raise _Aborted


class _SimulatedBoard:
    def __init__(
        self,
        ranks: SimulatedCommunicator,
        memory: npt.NDArray[Any],
        extra: npt.NDArray[np.uint8],
        counts: Counts,
    ) -> None:
        self.memory, self.extra, self.places = memory, extra, parts_of(counts)
        self._ranks, self._counts = ranks, counts

    def complete(self) -> None:
        def combine(brought: list[npt.NDArray[Any]]) -> None:
            for source, begin, count in zip(brought, self.places, self._counts, strict=True):
                for memory in brought:
                    memory[begin : begin + count] = source[begin : begin + count]

        self._ranks.items_sent += int(self._counts[self._ranks.rank])
        self._ranks._meet("board", self.memory, combine)


def run_ranks(
    size: int, function: Callable[[SimulatedCommunicator], T], host_size: int | None = None
) -> list[T]:
    """Run a function on simulated ranks; return the ranks' results.

    Raises the exception of the first rank that failed.
    """
    meeting = _Meeting(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            meeting.await_turn(rank, 0)
            results[rank] = function(SimulatedCommunicator(rank, meeting, host_size or size))
            meeting.ended[rank] = True
            meeting.pass_turn(rank)
        except _Aborted:
            pass
        except BaseException as error:  # it must reach the caller, and end the other ranks
            meeting.fail(error)

    threads = [threading.Thread(target=run, args=(r,), daemon=True) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if meeting.failure:
        raise meeting.failure
    return results
