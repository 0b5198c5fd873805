"""Whole searches on the host: the level loop, compiled, and the work that its team shares.

`run_levels` is the leader's: it chooses, converts, runs and records level after level, and returns
to Python only when the search ends or another device must take part. `help_search` is what each
helper runs from the engine's start to its end. Small pieces of work the leader does alone, which
costs nothing; larger ones become stages (team.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hetero_bfs.kernels.bfs import (
    CHUNK_EDGES,
    adopt_words,
    bottom_up_words,
    propose_chunk,
    top_down_chunk,
)
from hetero_bfs.kernels.compile import kernel
from hetero_bfs.kernels.expand import (
    add_owners_segment,
    collect_owned,
    copy_segments,
    expand_owned,
    join_segments,
    read_report,
    set_one_segment,
    top_down_alone,
)
from hetero_bfs.kernels.frontier import forget_stale_parents, queue_words
from hetero_bfs.kernels.intrinsics import array_at, clock_seconds
from hetero_bfs.kernels.level import (
    BITMAP,
    CHOSEN,
    EXAMINED,
    FORM,
    FOUND_VERTICES,
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    HOST,
    KIND,
    LEVEL,
    LISTED,
    NOWHERE,
    QUEUE,
    QUEUE_INDEX,
    SECONDS,
    SELECT_SECONDS,
    TRANSFER_SECONDS,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
    VISITED_INDEX,
    WIDE_BITMAP,
    advance,
    is_over,
    is_wide,
)
from hetero_bfs.kernels.policy import choose_level
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

PART_EDGES = 256
"""Fewest edges of a frontier for which another thread is worth its while."""

_CHUNKS_PER_THREAD = 8
_MIN_CHUNK_WORDS = 32
_MIN_CHUNK_BLANKS = 256  # words that take next to no time, but for their lines to arrive
_SCAN_WORDS = 4096  # bitmap words per chunk, at least, where most of them need no work
_SCAN_WORDS_BY_THREAD = 512  # times the threads, at least: one scans them before the others come
_RESTORED_VERTICES = 1 << 16  # in a chunk: smaller ones by several threads are no faster

# Words of a job, after its number of chunks (team.py).
_TASK, _VISITED, _QUEUE, _VERTICES, _EDGES, _SIZE = range(JOB + 1, JOB + 7)
(
    _TOP_DOWN,
    _PROPOSE,
    _ADOPT,
    _EXPAND,
    _COLLECT,
    _BOTTOM_UP,
    _CONVERT,
    _BLANK,
    _FORGET,
    _CLEAR,
    _RESTORE,
) = range(11)

# Whether the frontier is as the owners of patches left it, and how many edges are posted in it.
_OWNED, _POSTED = OWN, OWN + 1

_ADDRESS = OWN + 2  # of what a stage fills that was not there when the helpers began

_advance = kernel(advance, counted=False)
_is_over = kernel(is_over, counted=False)
_is_wide_level = kernel(is_wide, counted=False)

ENDED, LEAVES = 0, 1
"""What `run_levels` returns: the search ended (or the limit), or Python has the next move."""


class HostArrays(NamedTuple):
    """A graph and the state of its search; kernels/bfs.py has the encoding.

    `backward_indptr`, `backward_indices` and `first` belong to the transposed graph; `visited`,
    `queue`, `offsets` and `segments` are pairs. `written` is a bitmap of the vertices whose parent
    an earlier search may have left; `listed` takes the vertices that the host found, while they
    are few, for another device; `found` and `source`, uint32 (threads, CHUNK_EDGES + 64), are
    scratch. For owners of patches (expand.py): `boxes`, uint32 (2, owners, edges + 1, 2), what they
    post to each other from a queue; `territory`, int64 (owners + 1,), where each one's part of a
    queue begins; `longest`, the most edges of a vertex. `old_of_new` is the relabelling's.
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
    edge_bits: Any


@kernel(counted=False)
def _run_chunk(control, arrays, chunk, me):
    """Do one chunk of a stage; return what it adds to the stage's sums."""
    task, chunks = control[_TASK], control[CHUNKS]
    begin = chunk * control[_SIZE]
    end = begin + control[_SIZE]
    if task == _CLEAR or task == _RESTORE:
        _restore_chunk(control, arrays, begin, end)
        return 0, 0, 0
    if task == _TOP_DOWN or task == _PROPOSE:
        _expand_chunk(control, arrays, begin, min(end, control[_EDGES]), me)
        return 0, 0, 0
    visited = arrays.visited[control[_VISITED]]
    other = arrays.visited[1 - control[_VISITED]]
    if task == _CONVERT:
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
    if task == _ADOPT:
        found, edges = adopt_words(begin, end, arrays.degree, visited, other, arrays.parent)
        return found, edges, 0
    if task == _BOTTOM_UP:
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
        )
    if task == _BLANK:
        visited[begin:end] = 0
    else:
        forget_stale_parents(begin, end, visited, arrays.written, arrays.parent)
    return 0, 0, 0


@kernel(counted=False)
def _expand_chunk(control, arrays, begin, end, me):
    """Follow edges [begin, end) of the frontier: claim what they lead to, or propose parents."""
    visited, this = arrays.visited[control[_VISITED]], control[_QUEUE]
    if control[_TASK] == _PROPOSE:
        propose_chunk(
            begin,
            end,
            arrays.queue[this],
            arrays.offsets[this],
            control[_VERTICES],
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
            control[_VERTICES],
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


@kernel(counted=False)
def _restore_chunk(control, arrays, begin, end):
    """Fill items of the array that is at an address, or bring parents home to it."""
    restored = array_at(control[_ADDRESS], control[_VERTICES])
    if control[_TASK] == _CLEAR:
        restored[begin : min(end, restored.size)] = -1
    else:
        end = min(end, arrays.parent.size)
        restore_range(begin, end, arrays.parent, arrays.old_of_new, restored)


@kernel(counted=False)
def _run_owners_part(control, arrays, owner):
    """Do an owner's part of a stage in which each one has its own."""
    visited = arrays.visited[control[_VISITED]]
    this, owners = control[_QUEUE], control[CHUNKS]
    if control[_TASK] == _EXPAND:
        expand_owned(
            owner,
            owners,
            report_of(control, owner),
            control[_OWNED],
            arrays.queue[this],
            arrays.segments[this],
            arrays.indptr,
            arrays.indices,
            visited,
            arrays.parent,
            arrays.queue[1 - this],
            arrays.territory,
            arrays.boxes[this],
            arrays.boxes[1 - this],
        )
    else:
        collect_owned(
            owner,
            owners,
            report_of(control, owner),
            arrays.indptr,
            visited,
            arrays.parent,
            arrays.queue[this],
            arrays.territory,
            arrays.boxes[1 - this],
        )


@kernel(counted=False)
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
            if control[_TASK] == _EXPAND or control[_TASK] == _COLLECT:
                _run_owners_part(control, arrays, me)
            else:
                report = report_of(control, me)
                report[0], report[1], report[2] = _take_part(control, arrays, me)
            end_share(control, me, stage)


@kernel(counted=False)
def _share(control, arrays, state, task, size, chunks):
    """Do a piece of a search together with the team; return the sums of its chunks."""
    control[_VISITED] = np.int64(state[VISITED_INDEX])
    control[_QUEUE] = np.int64(state[QUEUE_INDEX])
    control[_VERTICES] = np.int64(state[FRONTIER_VERTICES])
    control[_EDGES] = np.int64(state[FRONTIER_EDGES])
    return _share_out(control, arrays, task, size, chunks)


@kernel(counted=False)
def _share_words(control, arrays, state, task, least):
    """Do a piece of a search for all words of the bitmap, at least so many in a chunk."""
    chunks = min(arrays.visited[0].size // least, arrays.found.shape[0] * _CHUNKS_PER_THREAD)
    return _share(control, arrays, state, task, 0, max(chunks, 1))


@kernel(counted=False)
def _share_out(control, arrays, task, size, chunks):
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


@kernel(counted=False)
def _share_among_owners(control, arrays, state, task):
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


@kernel(counted=False)
def _expand_among_owners(control, arrays, state, records):
    """Run a top-down level; return vertices and edges found, but for those that are posted."""
    found, edges, posted, late, late_edges = _share_among_owners(control, arrays, state, _EXPAND)
    _count_late(state, records, late, late_edges)
    control[_OWNED], control[_POSTED] = 1, posted
    return found, edges


@kernel(counted=False)
def _may_wait(control, arrays, state, limit):
    """Tell whether what owners posted may wait until they expand the next level.

    That must come, fit in the boxes, and be known well enough to choose its strategy: what is
    posted must not lead to more edges than are counted, taking degrees as they are in the mean.
    """
    edges, posted = state[FRONTIER_EDGES], control[_POSTED]
    most = edges + posted * arrays.longest
    return (
        state[LEVEL] < limit
        and state[LISTED] < 0
        and 2 * PART_EDGES <= edges
        and posted * arrays.indices.size <= edges * arrays.degree.size
        and most < arrays.boxes.shape[2]
        and posted < state[UNVISITED_VERTICES]
    )


@kernel(counted=False)
def _settle(control, arrays, state, records):
    """Have the owners collect what is posted; the frontier then lies in segments, one for each."""
    if control[_POSTED]:
        _, _, _, late, late_edges = _share_among_owners(control, arrays, state, _COLLECT)
        _count_late(state, records, late, late_edges)
    control[_OWNED] = 0
    segments = arrays.segments[np.int64(state[QUEUE_INDEX])]
    for owner in range(arrays.territory.size - 1):
        add_owners_segment(owner, report_of(control, owner), arrays.territory, segments)


@kernel(counted=False)
def _count_late(state, records, vertices, edges):
    """Count vertices of the frontier, and their edges, that the level before left posted."""
    level = int(state[LEVEL])
    if vertices:
        records[level - 1, FOUND_VERTICES] += vertices
        _count_more(state, vertices, edges)
        if level < records.shape[0]:
            _count_more(records[level], vertices, edges)


@njit(inline="always")
def _count_more(state, vertices, edges):
    state[FRONTIER_VERTICES] += vertices
    state[FRONTIER_EDGES] += edges
    state[UNVISITED_VERTICES] -= vertices
    state[UNVISITED_EDGES] -= edges


@njit(inline="always")
def _counted(arrays):
    """Return vertices and edges of the packed counter."""
    packed, bits = arrays.counter[0], np.uint64(arrays.edge_bits)
    return np.int64(packed >> bits), np.int64(packed & ((np.uint64(1) << bits) - np.uint64(1)))


@kernel(counted=False)
def _top_down(control, arrays, state, records):
    """Run a top-down level whose frontier the next one finds in a queue.

    Returns vertices and edges found, but for what waits for owners.
    """
    edges = np.int64(state[FRONTIER_EDGES])
    this = np.int64(state[QUEUE_INDEX])
    threads, owners = arrays.found.shape[0], arrays.territory.size - 1
    if edges < 2 * PART_EDGES or threads == 1:
        return top_down_alone(
            arrays.queue[this],
            arrays.segments[this],
            arrays.indptr,
            arrays.indices,
            arrays.visited[np.int64(state[VISITED_INDEX])],
            arrays.parent,
            arrays.queue[1 - this],
            arrays.offsets[1 - this],
            arrays.segments[1 - this],
            arrays.boxes[0, 0],
        )
    if owners > 1 and edges < arrays.boxes.shape[2]:
        return _expand_among_owners(control, arrays, state, records)
    join(arrays, state)
    size = min(_edges_of_a_chunk(edges, threads), CHUNK_EDGES)
    _share(control, arrays, state, _TOP_DOWN, size, (edges + size - 1) // size)
    vertices, edges = _counted(arrays)
    set_one_segment(arrays.segments[1 - this], vertices)
    return vertices, edges


@njit(inline="always")
def _edges_of_a_chunk(edges, threads):
    return max(edges // (threads * _CHUNKS_PER_THREAD) + 1, PART_EDGES)


@njit(inline="always")
def _is_wide(arrays, state):
    """Tell whether several threads have so much to find that they propose parents.

    Not where vertices have owners: the levels of deep graphs are narrow.
    """
    return (
        arrays.found.shape[0] > 1
        and arrays.territory.size == 2
        and _is_wide_level(arrays.degree.size, state[FRONTIER_EDGES], state[UNVISITED_VERTICES])
    )


@kernel(counted=False)
def _top_down_by_proposals(control, arrays, state):
    """Run a top-down level whose frontier the next one finds in the other bitmap.

    Returns vertices and edges found. Threads write parents without asking who else does, and then
    look who has got one: claims wait for the bitmap's few lines, which go to and fro between them.
    """
    join(arrays, state)
    edges = np.int64(state[FRONTIER_EDGES])
    size = _edges_of_a_chunk(edges, arrays.found.shape[0])
    _share(control, arrays, state, _PROPOSE, size, (edges + size - 1) // size)
    found, edges, _ = _share_words(control, arrays, state, _ADOPT, _MIN_CHUNK_WORDS)
    return found, edges


@kernel(counted=False)
def _bottom_up(control, arrays, state):
    """Run a bottom-up level; return vertices and edges found, and neighbours examined."""
    return _share_words(control, arrays, state, _BOTTOM_UP, _MIN_CHUNK_WORDS)


@kernel(counted=False)
def convert(control, arrays, state):
    """Turn the frontier that is a bitmap into a queue; return seconds."""
    began = clock_seconds()
    words = arrays.visited[0].size
    size = 256
    if state[FRONTIER_VERTICES] <= 4096:
        size = max(_SCAN_WORDS, _SCAN_WORDS_BY_THREAD * arrays.found.shape[0])
    _share(control, arrays, state, _CONVERT, size, max((words + size - 1) // size, 1))
    vertices, edges = _counted(arrays)
    set_one_segment(arrays.segments[np.int64(state[QUEUE_INDEX])], vertices)
    state[FRONTIER_VERTICES], state[FRONTIER_EDGES] = vertices, edges
    state[FORM] = QUEUE
    return clock_seconds() - began


@kernel(counted=False)
def forget(control, arrays, state):
    """Leave NO_VERTEX as parent wherever this search wrote none."""
    _share_words(control, arrays, state, _FORGET, _MIN_CHUNK_BLANKS)


@kernel(counted=False)
def restore(control, arrays, address, num_vertices):
    """Fill the array of all old ids at an address with parents; see `restore_range`."""
    control[_ADDRESS] = address
    control[_VERTICES] = num_vertices
    if arrays.parent.size < num_vertices:
        _restore_part(control, arrays, _CLEAR, num_vertices)
    _restore_part(control, arrays, _RESTORE, arrays.parent.size)


@kernel(counted=False)
def _restore_part(control, arrays, task, count):
    size = _RESTORED_VERTICES
    _share_out(control, arrays, task, size, max((count + size - 1) // size, 1))


@kernel(counted=False)
def start(control, arrays, root, state):
    """Make `root` the only visited vertex and the frontier."""
    visited = arrays.visited[np.int64(state[VISITED_INDEX])]
    this = np.int64(state[QUEUE_INDEX])
    _share_words(control, arrays, state, _BLANK, _MIN_CHUNK_BLANKS)
    visited[root >> 5] = np.uint32(1) << np.uint32(root & 31)
    arrays.parent[root] = root
    arrays.queue[this][0] = root
    arrays.offsets[this][0] = 0
    set_one_segment(arrays.segments[this], 1)
    state[KIND] = HOST
    if state[LISTED] >= 0:
        arrays.listed[0] = root
        state[LISTED] = 1


@kernel(counted=False)
def join(arrays, state):
    """Make the frontier's queue one piece, as others than this loop want it."""
    this = np.int64(state[QUEUE_INDEX])
    join_segments(arrays.segments[this], arrays.queue[this], arrays.indptr, arrays.offsets[this])


@kernel(counted=False)
def _list_found(arrays, state, found):
    """Add what a level found to the host's list, or give the list up."""
    if found == 0 or state[LISTED] < 0:
        return
    count = np.int64(state[LISTED])
    if state[FORM] == QUEUE and count + found <= arrays.listed.size:
        this = np.int64(state[QUEUE_INDEX])
        copy_segments(arrays.segments[this], arrays.queue[this], arrays.listed[count:])
        state[LISTED] = count + found
    else:
        state[LISTED] = -1


@kernel(counted=False)
def _run_level(control, arrays, state, top_down, records, limit):
    """Run the chosen level and move the state on to the next."""
    record = records[int(state[LEVEL])]
    looked = -1
    if not top_down:
        form = BITMAP
        found, edges, looked = _bottom_up(control, arrays, state)
    elif _is_wide(arrays, state):
        form = WIDE_BITMAP
        found, edges = _top_down_by_proposals(control, arrays, state)
    else:
        form = QUEUE
        found, edges = _top_down(control, arrays, state, records)
    _advance(state, form, found, edges)
    record[FOUND_VERTICES] = found
    record[EXAMINED] = looked
    if control[_OWNED] and not _may_wait(control, arrays, state, limit):
        _settle(control, arrays, state, records)
    _list_found(arrays, state, np.int64(record[FOUND_VERTICES]))


@kernel(counted=False)
def run_levels(control, arrays, policy, interval, root, alone, state, records, limit):
    """Run a search on the host as long as the policy keeps it there.

    Parameters
    ----------
    control : int64 (team.control_words(threads),)
    arrays : HostArrays
    policy : Policy
    interval : int
        Levels between two choices.
    root : int
        Where the search starts, if it has not yet and may start here: if it is `alone`.
    alone : bool
        Whether no other device takes part, so that starting and ending need no Python.
    state : float64 (STATE_SIZE,)
        Moved on.
    records : float64 (rows, record_width)
        One row per level.
    limit : int
        Levels after which to return, at most `rows`.

    Returns
    -------
    int
        ENDED: no frontier, nothing unvisited, or the limit is reached. LEAVES: the row of the
        coming level has the strategy chosen, `state[CHOSEN]` too; it needs another device, or
        the search must be brought here first.
    """
    num_vertices, num_edges = arrays.degree.size, arrays.indices.size
    now = clock_seconds()
    while state[LEVEL] < limit and not _is_over(state):
        level = int(state[LEVEL])
        record = records[level]
        if state[CHOSEN] < 0:
            began = now
            choose_level(policy, interval, num_vertices, num_edges, state, records)
            now = clock_seconds()
            record[SELECT_SECONDS] = now - began
        chosen = int(state[CHOSEN])
        if control[_OWNED] and (not policy.top_down[chosen] or policy.kinds[chosen] != HOST):
            _settle(control, arrays, state, records)
            settled = clock_seconds()
            records[level - 1, SECONDS] += settled - now
            now = settled
        if policy.kinds[chosen] != HOST or (state[KIND] != HOST and not alone):
            join(arrays, state)
            return LEAVES
        ready = now
        if state[KIND] == NOWHERE:
            start(control, arrays, root, state)
            ready = clock_seconds()
        elif policy.top_down[chosen] and state[FORM] != QUEUE:
            convert(control, arrays, state)
            ready = clock_seconds()
        record[TRANSFER_SECONDS] += ready - now
        _run_level(control, arrays, state, policy.top_down[chosen], records, limit)
        now = clock_seconds()
        record[SECONDS] = now - ready
    if alone:
        if state[KIND] == NOWHERE:
            start(control, arrays, root, state)
        forget(control, arrays, state)
    join(arrays, state)
    return ENDED
