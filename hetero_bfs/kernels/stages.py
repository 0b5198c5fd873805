"""What the team does together in a search on the host: its stages, and what each is made of.

Small pieces of work the leader does alone, which costs nothing; larger ones become stages
(team.py). `share` and the functions after it are the leader's (host_search.py); `help_search` is
what each helper runs from the engine's start to its end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.kernels.bfs import adopt_words, bottom_up_words, propose_chunk, top_down_chunk
from hetero_bfs.kernels.compile import kernel
from hetero_bfs.kernels.expand import collect_owned, expand_owned, read_report
from hetero_bfs.kernels.frontier import forget_stale_parents, queue_words
from hetero_bfs.kernels.intrinsics import array_at
from hetero_bfs.kernels.level import (
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    QUEUE_INDEX,
    VISITED_INDEX,
)
from hetero_bfs.kernels.restore import restore_range
from hetero_bfs.kernels.team import (
    CHUNKS,
    JOB,
    OWN,
    await_share,
    await_stage,
    begin_stage,
    end_chunks,
    end_share,
    report_of,
    take_chunk,
    take_share,
)

CHUNKS_PER_THREAD = 8
"""Chunks of a stage for each thread: whoever is done early takes another's."""

_MIN_CHUNK_WORDS = 32

# Words of a job, after its number of chunks (team.py).
_TASK, _VISITED, _QUEUE, VERTICES, _EDGES, _SIZE = range(JOB + 1, JOB + 7)
(
    TOP_DOWN,
    PROPOSE,
    ADOPT,
    EXPAND,
    COLLECT,
    BOTTOM_UP,
    CONVERT,
    BLANK,
    FORGET,
    END,  # FORGET, then BLANK
    CLEAR,
    RESTORE,
) = range(12)

OWNED = OWN
"""Whether the frontier is as the owners of patches left it; host_search.py has other such words."""

WHOLE = OWN + 1
"""Whether this host has found all that is visited, so that the parents are here."""

ADDRESS = OWN + 2
"""Of what a stage fills that was not there when the helpers began."""

NEXT_OWN = OWN + 3
"""First word that stays from stage to stage and means nothing here."""


class HostArrays(NamedTuple):
    """A graph and the state of its search; kernels/bfs.py has the encoding.

    `backward_indptr`, `backward_indices` and `first` belong to the transposed graph; `visited`,
    `queue`, `offsets` and `segments` are pairs. `written` is a bitmap of the vertices whose parent
    an earlier search may have left; `listed` takes the vertices that the host found, while they
    are few, for another device; `remaining` takes all that bottom-up leaves unvisited, if they are
    no more than it has room for; `found` and `source`, uint32 (threads, CHUNK_EDGES + 64), are
    scratch. For owners of patches (expand.py): `boxes`, uint32 (2, owners, edges + 1, 2), what they
    post to each other from a queue; `territory`, int64 (owners + 1,), where each one's part of a
    queue begins; `longest`, the most edges of a vertex. `old_of_new` is the relabelling's;
    `is_local` tells whether that is by locality, `is_packed` whether edges are packed before they
    are followed (follow.py).
    """

    indptr: Any
    indices: Any
    degree: Any
    backward_indptr: Any
    backward_indices: Any
    first: Any
    parent: Any
    visited: Any
    written: Any
    listed: Any
    remaining: Any
    queue: Any
    offsets: Any
    segments: Any
    counter: Any
    found: Any
    source: Any
    boxes: Any
    territory: Any
    longest: Any
    old_of_new: Any
    is_local: Any
    is_packed: Any
    edge_bits: Any


@kernel(counted=False, inner=True)
def _run_chunk(control, arrays, chunk, me):
    """Do one chunk of a stage; return what it adds to the stage's sums."""
    task, chunks = control[_TASK], control[CHUNKS]
    begin = chunk * control[_SIZE]
    end = begin + control[_SIZE]
    if task == CLEAR or task == RESTORE:
        _restore_chunk(control, arrays, begin, end)
        return 0, 0, 0
    if task == TOP_DOWN or task == PROPOSE:
        _expand_chunk(control, arrays, begin, min(end, control[_EDGES]), me)
        return 0, 0, 0
    visited = arrays.visited[control[_VISITED]]
    other = arrays.visited[1 - control[_VISITED]]
    if task == CONVERT:
        queue_words(
            begin,
            min(end, visited.size),
            visited,
            other,
            arrays.degree,
            arrays.edge_bits,
            arrays.counter,
            arrays.queue[control[_QUEUE]],
            arrays.offsets[control[_QUEUE]],
        )
        return 0, 0, 0
    # The same cut in all stages of as many chunks, so that each thread meets the same words again.
    # Chunks grow: after relabelling the first words are the hubs', whose lists are the longest.
    begin = np.int64(visited.size * (chunk / chunks) ** 2)
    end = np.int64(visited.size * ((chunk + 1) / chunks) ** 2)
    if task == ADOPT:
        found, edges = adopt_words(begin, end, arrays.degree, visited, other, arrays.parent)
        return found, edges, 0
    if task == BOTTOM_UP:
        return bottom_up_words(
            begin,
            end,
            arrays.parent.size,
            arrays.first,
            arrays.backward_indptr,
            arrays.backward_indices,
            arrays.degree,
            visited,
            other,
            arrays.parent,
            arrays.found[me],
            arrays.counter,
            arrays.remaining,
        )
    if task != BLANK:
        forget_stale_parents(begin, end, visited, arrays.written, arrays.parent)
    if task != FORGET:
        visited[begin:end] = 0
    return 0, 0, 0


@kernel(counted=False, inner=True)
def _expand_chunk(control, arrays, begin, end, me):
    """Follow edges [begin, end) of the frontier: claim what they lead to, or propose parents."""
    visited, this = arrays.visited[control[_VISITED]], control[_QUEUE]
    if control[_TASK] == PROPOSE:
        propose_chunk(
            begin,
            end,
            arrays.queue[this],
            arrays.offsets[this],
            control[VERTICES],
            arrays.indptr,
            arrays.indices,
            visited,
            arrays.parent,
        )
    else:
        top_down_chunk(
            begin,
            end,
            arrays.queue[this],
            arrays.offsets[this],
            control[VERTICES],
            arrays.indptr,
            arrays.indices,
            arrays.degree,
            visited,
            arrays.parent,
            arrays.queue[1 - this],
            arrays.offsets[1 - this],
            arrays.edge_bits,
            arrays.counter,
            arrays.found[me],
            arrays.source[me],
        )


@kernel(counted=False, inner=True)
def _restore_chunk(control, arrays, begin, end):
    """Fill items of the array that is at an address, or bring parents home to it."""
    restored = array_at(control[ADDRESS], control[VERTICES])
    if control[_TASK] == CLEAR:
        restored[begin : min(end, restored.size)] = -1
    else:
        end = min(end, arrays.parent.size)
        restore_range(begin, end, arrays.parent, arrays.old_of_new, restored)


@kernel(counted=False, inner=True)
def _run_owners_part(control, arrays, owner):
    """Do an owner's part of a stage in which each one has its own."""
    visited = arrays.visited[control[_VISITED]]
    this, owners = control[_QUEUE], control[CHUNKS]
    if control[_TASK] == EXPAND:
        expand_owned(
            owner,
            owners,
            report_of(control, owner),
            control[OWNED],
            control[WHOLE],
            arrays.queue[this],
            arrays.segments[this],
            arrays.indptr,
            arrays.indices,
            arrays.is_packed,
            visited,
            arrays.parent,
            arrays.queue[1 - this],
            arrays.territory,
            arrays.boxes[this],
            arrays.boxes[1 - this],
            arrays.found[owner],
            arrays.source[owner],
        )
    else:
        collect_owned(
            owner,
            owners,
            report_of(control, owner),
            arrays.indptr,
            arrays.indices,
            visited,
            arrays.parent,
            arrays.queue[this],
            arrays.territory,
            arrays.boxes[1 - this],
        )


@kernel(counted=False, inner=True)
def _take_part(control, arrays, me):
    """Take chunks of the stage until none is left; return what they add to the stage's sums."""
    found, edges, looked = 0, 0, 0
    while True:
        chunk = take_chunk(control, me, arrays.found.shape[0])
        if chunk < 0:
            break
        more_found, more_edges, more_looked = _run_chunk(control, arrays, chunk, me)
        found += more_found
        edges += more_edges
        looked += more_looked
    return found, edges, looked


@kernel(counted=False)
def help_search(control, arrays, me):
    """Run by helper number `me` (1 and up) until the team is shut down."""
    stage = np.int64(0)
    while True:
        stage = await_stage(control, me, stage)
        if stage < 0:
            return
        if take_share(control, me, stage):
            if control[_TASK] == EXPAND or control[_TASK] == COLLECT:
                _run_owners_part(control, arrays, me)
            else:
                report = report_of(control, me)
                report[0], report[1], report[2] = _take_part(control, arrays, me)
            end_share(control, me, stage)


@kernel(counted=False, inner=True)
def share(control, arrays, state, task, size, chunks):
    """Do a piece of a search together with the team; return the sums of its chunks."""
    control[_VISITED] = np.int64(state[VISITED_INDEX])
    control[_QUEUE] = np.int64(state[QUEUE_INDEX])
    control[VERTICES] = np.int64(state[FRONTIER_VERTICES])
    control[_EDGES] = np.int64(state[FRONTIER_EDGES])
    return share_out(control, arrays, task, size, chunks)


@kernel(counted=False, inner=True)
def share_words(control, arrays, state, task):
    """Do a piece of a search for all words of the bitmap."""
    threads = arrays.found.shape[0]
    chunks = min(arrays.visited[0].size // _MIN_CHUNK_WORDS, threads * CHUNKS_PER_THREAD)
    return share(control, arrays, state, task, 0, max(chunks, 1))


@kernel(counted=False, inner=True)
def share_out(control, arrays, task, size, chunks):
    """Do what the job's other words say together with the team, or alone if it is one chunk.

    Its reports take the place of those that owners leave for their next stage (`_settle`).
    """
    threads = arrays.found.shape[0]
    control[CHUNKS] = chunks
    control[_TASK] = task
    control[_SIZE] = size
    arrays.counter[0] = 0
    found, edges, looked = np.int64(0), np.int64(0), np.int64(0)
    if chunks == 1 or threads == 1:
        for chunk in range(chunks):
            more_found, more_edges, more_looked = _run_chunk(control, arrays, chunk, 0)
            found += more_found
            edges += more_edges
            looked += more_looked
        return found, edges, looked
    stage = begin_stage(control, min(chunks, threads), threads)
    found, edges, looked = _take_part(control, arrays, 0)
    more_found, more_edges, more_looked = end_chunks(control, stage)
    return found + more_found, edges + more_edges, looked + more_looked


@kernel(counted=False, inner=True)
def share_among_owners(control, arrays, state, task):
    """Do a stage in which each owner does its part.

    Returns vertices and edges found, edges posted, and vertices and edges of the frontier that were
    counted late.
    """
    owners = arrays.territory.size - 1
    control[CHUNKS] = owners
    control[_TASK] = task
    control[_VISITED] = np.int64(state[VISITED_INDEX])
    control[_QUEUE] = np.int64(state[QUEUE_INDEX])
    stage = begin_stage(control, owners, arrays.found.shape[0])
    _run_owners_part(control, arrays, 0)
    found, edges, posted, late, late_edges = read_report(report_of(control, 0))
    for owner in range(1, owners):
        if await_share(control, owner, stage):
            _run_owners_part(control, arrays, owner)
            end_share(control, owner, stage)
        more = read_report(report_of(control, owner))
        found += more[0]
        edges += more[1]
        posted += more[2]
        late += more[3]
        late_edges += more[4]
    return found, edges, posted, late, late_edges
