"""Ranks under MPI. mpi4py is imported only in a process that an MPI launcher has started."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import AgreedError
from hetero_bfs.ranks.communicator import (
    Board,
    BoardMemory,
    Communicator,
    Counts,
    Operation,
    parts_of,
)
from hetero_bfs.support.environment import core_numbers, is_open_mpi, launched_ranks, usable_cores

_NAP_SECONDS = 2e-5
_SECONDS_TO_READ_TEXT = 0.3


@cache
def world() -> MPICommunicator:
    """Return a communicator of all ranks that the launcher started."""
    wanted = launched_ranks()
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"  # only the main thread calls MPI
        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # about another launcher; see below
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise AgreedError(
            f"a launcher of MPI started {wanted} processes, but mpi4py cannot be loaded "
            f"({reason}); install it with: pip install mpi4py mpich"
        ) from None
    library = " ".join(MPI.Get_library_version().split("\n")[0].strip("\0").split())
    remedy = (
        f"mpi4py uses {library[:40]}, which is not the launcher's; "
        "start with the mpirun of that MPI"
    )
    if is_open_mpi() and "MPICH" in library:  # it would end the process
        raise AgreedError(f"Open MPI's launcher started {wanted} processes, but {remedy}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if not MPI.Is_initialized():  # a script may have imported mpi4py's MPI before
            MPI.Init_thread(MPI.THREAD_FUNNELED)
    if MPI.COMM_WORLD.size != wanted:
        raise AgreedError(
            f"the launcher started {wanted} processes, but MPI sees {MPI.COMM_WORLD.size}: {remedy}"
        )
    if wanted > 1:
        _end_all_at_an_error(MPI)
    return MPICommunicator(MPI.COMM_WORLD)


def _end_all_at_an_error(mpi: Any) -> None:
    """Make an uncaught exception of a rank's script end all ranks, which would otherwise wait.

    All ranks raise an `AgreedError` together, so no rank waits then.
    """
    say = sys.excepthook

    def end(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        try:
            say(kind, error, traceback)
        finally:
            if not isinstance(error, AgreedError) and not mpi.Is_finalized():
                _abort(mpi.COMM_WORLD)

    sys.excepthook = end


def _abort(comm: Any) -> None:
    """End all ranks. MPICH's launcher loses text that it has not read yet, so it is given time."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it may be closed
            stream.flush()
    time.sleep(_SECONDS_TO_READ_TEXT)
    comm.Abort(1)


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


class MPICommunicator(Communicator):
    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._comm = comm
        self._in_place = MPI.IN_PLACE
        self._operations = {"max": MPI.MAX, "min": MPI.MIN, "sum": MPI.SUM}
        self.rank = comm.rank
        self.size = comm.size
        self._host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.host_rank = self._host.rank
        self.host_size = self._host.size
        cores: set[int] = set().union(*self._host.allgather(core_numbers()))
        crowded = self.host_size > usable_cores(len(cores))
        # The same on all ranks: blocking and non-blocking collective calls do not match.
        self._naps: bool = comm.allreduce(crowded, MPI.LOR)
        self._leaders = comm.Split(0 if self.host_rank == 0 else MPI.UNDEFINED)
        heads = comm.allgather(self._host.bcast(self.rank))
        self._hosts = [[r for r in range(comm.size) if heads[r] == h] for h in sorted({*heads})]
        self.host_ranks = next(host for host in self._hosts if self.rank in host)
        self.num_hosts = len(self._hosts)
        self._windows: list[Any] = []
        self._boards = BoardMemory(lambda size: self._share(size, np.uint8)[0])  # never freed

    def _call(self, comm: Any, name: str, *arguments: Any) -> None:
        """Make a collective call.

        MPI waits busily. If a host has more ranks than cores, a waiting rank would keep a core from
        a working rank for milliseconds. So all ranks sleep between tests.
        """
        if not self._naps:
            getattr(comm, name)(*arguments)
            return
        request = getattr(comm, "I" + name.lower())(*arguments)
        while not request.Test():
            time.sleep(_NAP_SECONDS)

    def barrier(self) -> None:
        self._call(self._comm, "Barrier")

    def reduce_to_all(self, array: npt.NDArray[Any], operation: Operation) -> None:
        self._call(self._comm, "Allreduce", self._in_place, array, self._operations[operation])

    def collect(self, value: Any) -> list[Any]:
        if self._naps:
            self.barrier()  # sleeps while it waits
        return list(self._comm.allgather(value))

    def gather_to_all(
        self, send: npt.NDArray[Any], receive: npt.NDArray[Any], counts: Counts, places: Counts
    ) -> None:
        """All ranks must agree on whether `send` is in place, even a rank whose part is empty."""
        there = _address(receive) + int(places[self.rank]) * receive.itemsize
        is_there = _address(send) == there
        part = self._in_place if is_there else send
        self._call(self._comm, "Allgatherv", part, [receive, (counts, places)])

    def board(self, counts: Counts, dtype: npt.DTypeLike, extra_bytes: int = 0) -> Board:
        memory, extra = self._boards.cut(counts, dtype, extra_bytes)
        return _MPIBoard(self, memory, extra, counts)

    def exchange(self, send: npt.NDArray[Any], receive: npt.NDArray[Any]) -> None:
        self._call(self._comm, "Alltoall", send, receive)

    def exchange_parts(
        self,
        send: npt.NDArray[Any],
        counts: Counts,
        places: Counts,
        receive: npt.NDArray[Any],
        received: Counts,
    ) -> None:
        sent, got = [send, (counts, places)], [receive, (received, parts_of(received))]
        self._call(self._comm, "Alltoallv", sent, got)

    def shared_array(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        array, window = self._share(size, dtype)
        self._windows.append(window)
        return array

    def _share(self, size: int, dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], Any]:
        """Return an array of zeros that this host's ranks share, and its window, to free it."""
        from mpi4py import MPI

        dtype = np.dtype(dtype)
        mine = size * dtype.itemsize if self.host_rank == 0 else 0
        window = MPI.Win.Allocate_shared(mine, dtype.itemsize, comm=self._host)
        memory: Any = window.Shared_query(0)[0]
        array: npt.NDArray[Any] = np.frombuffer(memory, dtype, size)
        if self.host_rank == 0:
            array[:] = 0
        self._call(self._host, "Barrier")
        return array, window

    def free_shared(self) -> None:
        while self._windows:
            self._windows.pop().Free()

    def combine_hosts(self, array: npt.NDArray[Any], operation: Operation) -> None:
        self._call(self._host, "Barrier")
        if self.num_hosts > 1 and self.host_rank == 0:
            self._call(
                self._leaders, "Allreduce", self._in_place, array, self._operations[operation]
            )
        self._call(self._host, "Barrier")

    def abort(self) -> None:
        _abort(self._comm)


class _MPIBoard(Board):
    """A board in the shared memory of each host.

    The parts of a host's ranks are contiguous, so that one rank sends them all.
    """

    def __init__(
        self,
        ranks: MPICommunicator,
        memory: npt.NDArray[Any],
        extra: npt.NDArray[np.uint8],
        counts: Counts,
    ) -> None:
        order = np.concatenate(ranks._hosts)
        of_hosts = np.array([counts[host].sum() for host in ranks._hosts])
        super().__init__(memory, np.empty_like(counts), extra)
        self.places[order] = parts_of(counts[order])
        self._ranks, self._all = ranks, [memory, (of_hosts, parts_of(of_hosts))]

    def complete(self) -> None:
        ranks = self._ranks
        ranks._call(ranks._host, "Barrier")
        if ranks.num_hosts > 1:
            if ranks.host_rank == 0:
                ranks._call(ranks._leaders, "Allgatherv", ranks._in_place, self._all)
            ranks._call(ranks._host, "Barrier")
