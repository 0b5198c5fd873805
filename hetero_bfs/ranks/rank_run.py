"""An algorithm's run on all ranks, from start to end: who compiles, who fails, who is slowest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.partition import RankGraph

H = TypeVar("H", bound=HostRun)
P = ParamSpec("P")
T = TypeVar("T")


def usual_threads(communicator: Communicator) -> int:
    return max(int(numba.get_num_threads()) // communicator.host_size, 1)


def prepare_on_all(communicator: Communicator, prepare: Callable[[], object]) -> None:
    """Prepare on one rank of each host; its other ranks then load the compiled code.

    Raises `AgreedError` on all ranks if one of them fails.
    """
    for first in (True, False):
        is_due = (communicator.host_rank == 0) == first
        agreed(communicator, prepare if is_due else lambda: None)


def slowest(communicator: Communicator, seconds: float) -> float:
    """Return the seconds of the slowest rank."""
    most = np.array([seconds])
    communicator.reduce_to_all(most, "max")
    return float(most[0])


def of_all_ranks(communicator: Communicator, steps: Sequence[T], *summed: str) -> list[T]:
    """Return a search's steps, which are NamedTuples, with the figures of all ranks.

    `summed` are the fields to sum, first that of edges. A step has five other fields. `seconds` are
    the slowest rank's, `mean_seconds` the mean over ranks. `exchange_seconds` are the maximum over
    ranks, and `bytes_sent` the sum. `imbalance` is the largest number of edges of a rank, divided
    by the mean.
    """
    names = (*summed, "bytes_sent", "seconds", "exchange_seconds")
    total = np.array([[getattr(step, name) for name in names] for step in steps], np.float64)
    most, ranks = total.copy(), communicator.size
    communicator.reduce_to_all(most.reshape(-1), "max")
    communicator.reduce_to_all(total.reshape(-1), "sum")
    combined = []
    for step, largest, sums in zip(steps, most.tolist(), total.tolist(), strict=True):
        *counts, seconds, _ = sums
        of_all: Any = step
        combined.append(
            of_all._replace(
                **{name: int(count) for name, count in zip(names, counts, strict=False)},
                seconds=largest[-2],
                mean_seconds=seconds / ranks,
                exchange_seconds=largest[-1],
                imbalance=largest[0] * ranks / sums[0] if sums[0] else 1.0,
            )
        )
    return combined


class RankRun(Generic[H]):
    """Base class of runs on all ranks, which make the same calls.

    `graph` is this rank's part, and `make_host` makes its run on the host: arrays, threads and
    loops. A subclass runs the loops, and communicates between them.

    Raises `AgreedError` on all ranks if one of them lacks the memory.
    """

    def __init__(
        self, communicator: Communicator, graph: RankGraph, make_host: Callable[[], H]
    ) -> None:
        self.communicator, self.graph = communicator, graph
        self.host = agreed(communicator, make_host)
        try:
            prepare_on_all(communicator, self.host.prepare)
        except BaseException:
            self.host.close()
            raise

    def timed(self, run: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        """Run when all ranks are here; also return the seconds of the slowest one."""
        self.communicator.barrier()
        began = time.perf_counter()
        found = run(*args, **kwargs)
        return found, slowest(self.communicator, time.perf_counter() - began)

    def count(self, reached: npt.NDArray[np.bool_]) -> tuple[int, int]:
        """Return the vertices that all ranks reached, and the input edges between them.

        `reached` has shape (own old ids,).
        """
        graph = self.graph
        ends = graph.input_degree.sum(where=reached, dtype=np.int64)
        totals = np.array([np.count_nonzero(reached), ends], np.int64)
        self.communicator.reduce_to_all(totals, "sum")
        return int(totals[0]), int(totals[1]) // (1 if graph.graph.directed else 2)

    def close(self) -> None:
        self.host.close()
