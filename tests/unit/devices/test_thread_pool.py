"""The thread pool: every chunk of every phase is done once."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from hetero_bfs.devices.cpu import thread_pool
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add
from hetero_bfs.support.memory import aligned_empty

pytestmark = pytest.mark.usefixtures("many_threads")


@kernel(counted=False)
def _count_chunks(control, me, threads, counts):
    while True:
        chunk = thread_pool.take_chunk(control, me, threads)
        if chunk < 0:
            return
        atomic_add(counts, chunk, 1)


_OWN = thread_pool.JOB + 1
"""A word of the job: whether each share of the phase is its thread's own, or it has chunks."""


@kernel(counted=False)
def _lead(control, threads, participants, counts, patience=64):
    """Lead a phase of shares of their own, or of chunks."""
    phase = thread_pool.begin_phase(control, participants, threads)
    if not control[_OWN]:
        _count_chunks(control, 0, threads, counts)
        thread_pool.end_chunks(control, phase)
        return
    atomic_add(counts, 0, 1)
    for thread in range(1, participants):
        if thread_pool.await_share(control, thread, phase, patience):
            atomic_add(counts, thread, 1)
            thread_pool.end_share(control, thread, phase)


@kernel(counted=False)
def _help(control, me, threads, counts):
    phase = np.int64(0)
    while True:
        phase = thread_pool.await_phase(control, me, phase)
        if phase < 0:
            return
        if thread_pool.take_share(control, me, phase):
            if control[_OWN]:
                atomic_add(counts, me, 1)
                thread_pool.report_of(control, me)[0] = 100 + me
            else:
                _count_chunks(control, me, threads, counts)
            thread_pool.end_share(control, me, phase)


@contextmanager
def _team(threads, counts):
    """Yield the control block of a thread pool whose workers count what they do."""
    control = aligned_empty(thread_pool.control_words(threads), np.int64)
    thread_pool.initialise(control)
    workers = [
        threading.Thread(target=_help, args=(control, i, threads, counts), daemon=True)
        for i in range(1, threads)
    ]
    for worker in workers:
        worker.start()
    yield control
    thread_pool.shut_down(control)
    for worker in workers:
        worker.join(timeout=10)
        assert not worker.is_alive()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_chunk_is_done_once(threads):
    counts = np.zeros(100, np.int64)
    with _team(threads, counts) as control:
        for round_number in range(300):
            chunks = control[thread_pool.CHUNKS] = 1 + round_number % 100
            counts[:] = 0
            _lead(control, threads, min(chunks, threads), counts)
            assert counts[:chunks].tolist() == [1] * chunks
            assert not counts[chunks:].any()
            if round_number % 100 == 0:
                time.sleep(0.01)  # workers fall asleep, and are woken by the next phase


@pytest.mark.parametrize("threads", [2, 7])
def test_every_share_of_every_phase_is_done_once(threads):
    """Whether workers come in time, late or not at all; with phases of chunks in between."""
    counts = np.zeros(100, np.int64)
    with _team(threads, counts) as control:
        for round_number in range(60):
            counts[:] = 0
            participants = threads - round_number % 2
            control[_OWN] = 1
            for times in range(1, 40):
                _lead(control, threads, participants, counts)
                assert counts[:participants].tolist() == [times] * participants
                assert not counts[participants:].any()
            counts[:] = 0
            control[_OWN], control[thread_pool.CHUNKS] = 0, threads
            _lead(control, threads, threads, counts)
            assert counts[:threads].tolist() == [1] * threads
            if round_number % 20 == 0:
                time.sleep(0.01)  # workers fall asleep


@pytest.mark.parametrize(
    ("participants", "pause_seconds"), [(2, 0.0), (4, 0.0), (4, 0.05)], ids=str
)
def test_workers_come_awake_or_asleep(pause_seconds, participants):
    """A master of endless patience gets each share done by its own worker, and by no other.

    Where not all take part, all sleep: if a worker sleeps while one that is not asked for does not,
    nobody wakes it, and a master of usual patience does its share (`begin_phase`).
    """
    threads = 4
    counts = np.zeros(threads, np.int64)
    with _team(threads, counts) as control:
        control[_OWN] = 1
        reports = [thread_pool.report_of.py_func(control, i) for i in range(1, threads)]
        for times in range(1, 6):
            time.sleep(pause_seconds)
            while participants < threads and control[thread_pool.SLEEPERS] < threads - 1:
                time.sleep(0.001)
            for report in reports:
                report[0] = 0
            lead = threading.Thread(
                target=_lead, args=(control, threads, participants, counts, 2**60), daemon=True
            )
            lead.start()
            lead.join(timeout=30)
            assert not lead.is_alive(), "a worker did not come"
            expected = [100 + i if i < participants else 0 for i in range(1, threads)]
            assert [int(report[0]) for report in reports] == expected
            assert counts.tolist() == [times if i < participants else 0 for i in range(threads)]
