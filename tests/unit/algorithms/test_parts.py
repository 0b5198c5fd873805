"""Edge parts: they cover the array, respect the limit, and errors name one that works."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hetero_bfs.algorithms.bfs.device_memory import EDGE_BYTES, MAX_PARTS, cut_edges
from hetero_bfs.errors import DeviceError

SIZES = st.one_of(st.integers(0, 300), st.integers(0, 2**40))


@given(num_edges=SIZES, data=st.data())
def test_parts_cover_all_edges_within_the_limit(num_edges, data):
    enough = max(2 * EDGE_BYTES * -(-num_edges // MAX_PARTS), 4)
    limit = data.draw(st.integers(enough, 8 * enough + 100))
    partition = cut_edges(num_edges, limit)
    parts = partition.parts
    assert 1 <= len(parts) <= MAX_PARTS
    assert [part.start for part in parts] == [i << partition.shift for i in range(len(parts))]
    assert [part.stop for part in parts] == [part.start for part in parts[1:]] + [num_edges]
    assert EDGE_BYTES << partition.shift <= limit
    assert (2 << partition.shift) * EDGE_BYTES > limit, "parts could be larger"


@given(num_edges=st.integers(1, 2**40), limit=st.integers(4, 2**20))
def test_too_many_parts_name_the_smallest_limit(num_edges, limit):
    largest_part = 1 << ((limit // EDGE_BYTES).bit_length() - 1)
    assume(num_edges > MAX_PARTS * largest_part)
    with pytest.raises(DeviceError) as caught:
        cut_edges(num_edges, limit)
    named = int(re.search(r"allow at least (\d+) bytes \(max_alloc_bytes\)", str(caught.value))[1])
    assert named > limit
    assert len(cut_edges(num_edges, named).parts) <= MAX_PARTS
    assert str(num_edges * EDGE_BYTES) in str(caught.value)
    with pytest.raises(DeviceError):
        cut_edges(num_edges, named - 1)


def test_examples():
    assert cut_edges(0, 4).parts == [slice(0, 0)]
    assert cut_edges(5, 8).parts == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert cut_edges(5, 15) == cut_edges(5, 8)
    assert cut_edges(32, 4).shift == 0
    assert len(cut_edges(32, 4).parts) == 32
    assert len(cut_edges(4, 2**31).parts) == 1


@pytest.mark.parametrize("limit", [3, 0, -1])
def test_limits_below_one_edge(limit):
    with pytest.raises(DeviceError, match=f"a limit of {limit} bytes is below one edge"):
        cut_edges(10, limit)


def test_one_part_too_many():
    with pytest.raises(DeviceError, match="into 33 parts, more than the 32"):
        cut_edges(33, 4)
