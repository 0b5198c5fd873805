"""Vector code that packs edges, against NumPy."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from hetero_bfs.devices.cpu.vectors import append_edges, can_pack, keep_unvisited

if not can_pack():
    pytest.skip("this processor does not pack vectors", allow_module_level=True)

LANES = 8
ROOM = 64
UNTOUCHED = 0xABCD


@njit
def _append(indices, k, count, u, but, ends, sources, place):
    return append_edges(indices, k, count, u, but, ends, sources, place)


@njit
def _keep(ends, sources, k, count, visited, bits, mixed, place):
    return keep_unvisited(ends, sources, k, count, visited, bits, mixed, place)


def scratch() -> np.ndarray:
    return np.full(ROOM, UNTOUCHED, np.uint32)


VERTICES = st.lists(st.integers(0, 9) | st.integers(0, 2**32 - 1), min_size=1, max_size=24)


def before_a_forbidden_page(array: np.ndarray) -> np.ndarray:
    """Return a copy behind whose last item no memory may be read."""
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(pages, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    forbidden = ctypes.c_void_p(whole.ctypes.data + page)
    assert libc.mprotect(forbidden, ctypes.c_size_t(page), 0) == 0
    copy = whole[page - array.nbytes : page].view(array.dtype)
    copy[:] = array
    return copy


@given(VERTICES, st.data())
def test_edges_are_appended_but_for_one(vertices, data):
    """The last list ends where the array does: nothing behind it may be read."""
    indices = before_a_forbidden_page(np.array(vertices, np.uint32))
    k = data.draw(st.integers(0, indices.size - 1))
    count = data.draw(st.integers(0, min(LANES, indices.size - k)))
    but = data.draw(st.sampled_from(vertices) | st.integers(0, 2**32 - 1))
    place = data.draw(st.integers(0, ROOM - LANES))
    ends, sources = scratch(), scratch()
    appended = _append(indices, k, count, np.uint32(7), np.uint32(but), ends, sources, place)
    expected = [v for v in vertices[k : k + count] if v != but]
    assert ends[place : place + appended].tolist() == expected
    assert sources[place : place + appended].tolist() == [7] * len(expected)
    assert (ends[:place] == UNTOUCHED).all()
    assert (ends[place + LANES :] == UNTOUCHED).all()


EDGES = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=1, max_size=ROOM - LANES
)


@given(EDGES, st.sets(st.integers(0, 255)), st.integers(3, 31), st.sampled_from([0, 1]))
def test_edges_to_visited_vertices_are_left_out(edges, reached, bits, mixed):
    """All in turn, packed where they lie, as a search does it."""
    visited = np.zeros(8, np.uint32)
    for v in reached:
        visited[v // 32] |= np.uint32(1 << v % 32)
    ends, sources = scratch(), scratch()
    ends[: len(edges)], sources[: len(edges)] = np.array(edges).T
    kept = 0
    for k in range(0, len(edges), LANES):
        count = min(len(edges) - k, LANES)
        kept += int(_keep(ends, sources, k, count, visited, bits, np.uint32(mixed), kept))
    expected = [(v, u) for v, u in edges if mixed or v >> bits != u >> bits or v not in reached]
    assert list(zip(ends[:kept].tolist(), sources[:kept].tolist(), strict=True)) == expected
