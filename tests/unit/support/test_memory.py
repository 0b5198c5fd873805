"""Page-aligned arrays: what they hold, and what becomes of the pages given back."""

from __future__ import annotations

import mmap

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.errors import GraphError
from hetero_bfs.support.memory import (
    PAGE_BYTES,
    Recycler,
    aligned_copy,
    aligned_empty,
    check_free_memory,
    shrink,
)


@given(size=st.integers(0, 5000), dtype=st.sampled_from([np.uint8, np.uint32, np.int64]))
def test_arrays_start_on_a_page_with_zeros(size, dtype):
    array = aligned_empty(size, dtype)
    assert (array.shape, array.dtype) == ((size,), dtype)
    assert array.ctypes.data % PAGE_BYTES == 0
    assert not array.any()
    array[:] = 7
    assert (array == 7).all()


@given(size=st.integers(0, 5000), kept=st.floats(0, 1), rows=st.integers(1, 3))
def test_shrunk_arrays_keep_their_beginning(size, kept, rows):
    array = aligned_empty(rows * size, np.uint32)
    array[:] = np.arange(array.size)
    kept = int(kept * array.size)
    shrunk = shrink(array.reshape(rows, size), kept)
    assert shrunk.tolist() == list(range(kept))
    assert shrunk.ctypes.data == array.ctypes.data
    del array
    assert shrunk.tolist() == list(range(kept)), "the mapping lives as long as what is left of it"


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="the system takes no pages back")
def test_shrinking_gives_memory_back():
    process = psutil.Process()
    array = aligned_empty(1 << 24, np.uint32)
    array[:] = 1
    full = process.memory_info().rss
    shrunk = shrink(array, 1 << 22)
    assert full - process.memory_info().rss > 40 << 20  # 48 MiB but for what else happens
    assert shrunk.sum() == 1 << 22


def test_a_copy_only_where_it_must_be():
    array = aligned_empty(3000, np.uint32)
    array[:] = np.arange(3000)
    assert aligned_copy(array) is array
    copy = aligned_copy(array[1:])
    assert copy.ctypes.data % PAGE_BYTES == 0
    assert copy.tolist() == list(range(1, 3000))


def test_free_memory_is_checked():
    check_free_memory(1, "little", "none")
    with pytest.raises(GraphError, match=r"much needs about 1048576\.0 GiB .* free; buy some"):
        check_free_memory(1 << 50, "much", "buy some")


def test_memory_serves_again_once_nobody_has_it():
    recycler = Recycler(1 << 20)
    first = recycler.empty(100, np.int64)
    address = first.ctypes.data
    view = first[10:].reshape(9, 10)[::2]
    del first
    other = recycler.empty(100, np.int64)
    assert other.ctypes.data != address, "a view still shows it"
    del view
    again = recycler.empty(100, np.int64)
    assert again.ctypes.data == address
    again[:] = other[:] = 7
    assert recycler.empty(50, np.int64).ctypes.data not in (again.ctypes.data, other.ctypes.data)


def test_memory_of_one_size_is_kept_up_to_a_limit():
    recycler = Recycler(2999)

    def addresses(size, count):
        arrays = [recycler.empty(size, np.uint8) for _ in range(count)]
        found = {array.ctypes.data for array in arrays}
        del arrays
        return found

    first = addresses(1000, 3)
    assert len(recycler._spare) == 2
    assert len(addresses(1000, 2) & first) == 2
    addresses(100, 3)
    assert [piece.size for piece in recycler._spare] == [100] * 3


def test_what_is_large_or_empty_is_not_kept():
    recycler = Recycler(799)
    for size in (0, 100):
        array = recycler.empty(size, np.int64)
        assert (array.size, array.dtype) == (size, np.int64)
        assert array.base is None
