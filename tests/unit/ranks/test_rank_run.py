"""The life of a run on all ranks: who compiles first, who fails, and the seconds of all."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from graphs import nasty, path
from simulated_ranks import SimulatedCommunicator, run_ranks

from hetero_bfs.algorithms.bfs.ranks import DistributedSearch
from hetero_bfs.algorithms.sssp.kernels import ranks_relax
from hetero_bfs.algorithms.sssp.ranks import RankPathSearch, RankWindow
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.errors import AgreedError, DeviceError
from hetero_bfs.programs.ranks import RankProgram
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.mpi import MPICommunicator
from hetero_bfs.ranks.rank_run import (
    RankRun,
    of_all_ranks,
    prepare_on_all,
    slowest,
    usual_threads,
)


class Host:
    """A host's run that notes when it was prepared, or cannot be."""

    def __init__(self, rank: int, log: list[int], fails: bool = False) -> None:
        self.rank, self.log, self.fails, self.is_open = rank, log, fails, True

    def prepare(self) -> None:
        if self.fails:
            raise DeviceError("cannot")
        self.log.append(self.rank)

    def close(self) -> None:
        self.is_open = False


@pytest.mark.parametrize("kind", [DistributedSearch, RankPathSearch, RankProgram])
def test_there_is_one_ranked_run(kind):
    assert issubclass(kind, RankRun)
    assert not {"timed", "prepare", "compile"} & vars(kind).keys()


@pytest.mark.parametrize("host_size", [1, 2, 3, 5])
def test_one_rank_of_each_host_prepares_before_its_others(host_size):
    log: list[int] = []

    def open_run(communicator):
        RankRun(communicator, None, lambda: Host(communicator.rank, log))

    run_ranks(5, open_run, host_size)
    assert sorted(log) == [*range(5)]
    first = [rank for rank in range(5) if rank % host_size == 0]
    assert set(log[: len(first)]) == set(first)


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_rank_that_cannot_prepare_ends_the_run_of_all(wrong):
    def open_run(communicator):
        with pytest.raises(AgreedError, match=f"rank {wrong}: cannot"):
            RankRun(communicator, None, lambda: Host(0, [], communicator.rank == wrong))
        return True

    assert run_ranks(3, open_run, 2) == [True] * 3


def test_a_rank_without_memory_ends_the_run_of_all():
    def open_run(communicator):
        def make() -> Host:
            if communicator.rank == 1:
                raise MemoryError
            return Host(communicator.rank, [])

        with pytest.raises(AgreedError, match="rank 1: out of memory"):
            RankRun(communicator, None, make)
        return True

    assert run_ranks(3, open_run) == [True] * 3


def test_seconds_are_those_of_the_slowest_rank():
    def work(communicator):
        run = RankRun(communicator, None, lambda: Host(communicator.rank, []))
        found, seconds = run.timed(lambda rank: time.sleep(0.02 * rank) or -rank, communicator.rank)
        run.close()
        assert not run.host.is_open
        return found, seconds, slowest(communicator, float(communicator.rank))

    found = run_ranks(3, work)
    assert [one[0] for one in found] == [0, -1, -2]
    assert len({one[1:] for one in found}) == 1
    assert found[0][1] >= 0.04
    assert found[0][2] == 2.0


def test_ranks_of_a_host_share_its_cores(monkeypatch):
    monkeypatch.setattr("numba.get_num_threads", lambda: 9)
    assert run_ranks(4, usual_threads, 4) == [2] * 4
    assert run_ranks(4, usual_threads, 1) == [9] * 4


def test_preparing_does_not_depend_on_the_number_of_hosts():
    for host_size in (1, 3):
        calls = run_ranks(3, lambda c: prepare_on_all(c, lambda: None) or c.calls, host_size)
        assert calls == [2, 2, 2]


def signatures() -> list[int]:
    loops = (getattr(ranks_relax, name) for name in ("begin", "relax_active", "take_in"))
    return [len(loop.signatures) for loop in loops]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_search_compiles_nothing_that_opening_has_not(dtype):
    edges = nasty("Kronecker 10")
    edges = replace(edges, weights=(np.arange(edges.src.size) % 9).astype(dtype))

    def work(communicator):
        graph = construct(communicator, edges, edges.num_input_edges)
        search = RankPathSearch(communicator, graph)
        before = signatures()
        search.search(3)
        return before, signatures()

    for before, after in run_ranks(1, work):
        assert before == after


def test_nothing_is_compiled_while_distances_beyond_float32_are_timed():
    edges = path(41)
    edges = replace(edges, weights=np.full(edges.src.size, 3e38, np.float32))

    def work(communicator):
        tried = []

        class Watched(RankPathSearch):
            def _search(self, source):
                before = signatures()
                found = super()._search(source)
                tried.append((self.host.dtype.name, signatures() == before))
                return found

        search = Watched(communicator, construct(communicator, edges, edges.num_input_edges))
        assert search.search(0).distance.max() > 1e39
        return tried

    for tried in run_ranks(1, work):
        assert tried == [("float32", True), ("float64", True)]


def test_a_module_of_threads_needs_phases():
    class Run(HostRun):
        _module = "json"

    with pytest.raises(AttributeError, match="PHASES"):
        Run(1)._phases()


def test_steps_of_all_ranks():
    def work(communicator):
        rank = communicator.rank
        step = RankWindow(0.5, "full", 10 + rank, 100 * rank, 3, 1.0 + rank, 9.0 - rank, 7)
        return of_all_ranks(communicator, [step], "edges_scanned", "vertices")

    whole = RankWindow(0.5, "full", 33, 300, 3, 3.0, 9.0, 21, mean_seconds=2.0, imbalance=2.0)
    assert run_ranks(3, work) == [[whole]] * 3
    assert run_ranks(2, lambda communicator: of_all_ranks(communicator, [], "edges")) == [[], []]


@pytest.mark.parametrize("kind", [MPICommunicator, SimulatedCommunicator])
def test_several_ranks_answer_nothing_as_one_rank_does(kind):
    """A method of `Communicator`, which is one rank, would do nothing among several."""
    methods = {name for name, one in vars(Communicator).items() if callable(one)}
    assert {name for name in methods if not name.startswith("_")} <= vars(kind).keys()
