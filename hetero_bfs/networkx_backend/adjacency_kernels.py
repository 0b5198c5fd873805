"""Reads neighbours from dicts of dicts without an iterator and a Python object for each."""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.python_objects import (
    clear_error,
    dict_value,
    next_key,
    next_value,
    prefetch_object,
    type_of,
    value_of_int,
)

_PREFETCHED = 256  # most keys between a key's prefetch and its use


@kernel(holds_lock=True)
def read_ids(adjacency, number, int_type, str_type, num_nodes, indices):
    """Fill `indices` with the ids of all inner dicts' keys; return whether that was possible.

    `adjacency` is the address of a dict of dicts. Other threads cannot change them meanwhile, since
    they wait for Python's lock. `number` is the address of a dict of ids, whose keys are strings
    and integers; or 0 if keys equal their ids. `int_type` and `str_type` are the addresses of these
    types. Keys of other types could run Python code, so they end the loop.
    """
    keys, waiting = np.empty(_PREFETCHED, np.int64), 0
    end, outer = 0, 0
    while True:
        outer, row = next_value(adjacency, outer)
        if row == 0:
            break
        inner, key = next_key(row, 0)
        while key != 0:
            prefetch_object(key)
            keys[waiting] = key
            waiting += 1
            if waiting == _PREFETCHED:
                end = _append_ids(
                    keys, waiting, number, int_type, str_type, num_nodes, indices, end
                )
                if end < 0:
                    return False
                waiting = 0
            inner, key = next_key(row, inner)
    return (
        _append_ids(keys, waiting, number, int_type, str_type, num_nodes, indices, end)
        == indices.size
    )


@kernel(holds_lock=True, inner=True)
def _append_ids(keys, count, number, int_type, str_type, num_nodes, indices, end):
    """Append the ids of some keys; return the new end, -1 if a key has no id or no room is left."""
    if end + count > indices.size:
        return -1
    for i in range(count):
        key = keys[i]
        kind = type_of(key)
        if kind != int_type and (kind != str_type or number == 0):
            return -1
        if number != 0:
            key = dict_value(number, key)
        v = -1 if key == 0 else value_of_int(key)
        if not 0 <= v < num_nodes:
            clear_error()
            return -1
        indices[end + i] = v
    return end + count
