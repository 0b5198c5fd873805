"""Structs that kernels get by address, kernels that are called by address, parallel parts."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types
from numba.core.dispatcher import Dispatcher

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import Struct, address_of, call_at, in_parallel, part_of


@kernel
def _read(struct):
    pair = struct.pair[struct.which]
    return struct.matrix[1, 2], struct.strided[1, 1], pair[0], struct.large >> np.uint64(63)


def test_kernels_read_the_fields_of_a_struct():
    fields = {
        "matrix": np.arange(6, dtype=np.int64).reshape(2, 3),
        "strided": np.arange(16, dtype=np.uint32).reshape(4, 4)[::2, 1::2],
        "pair": (np.array([7.0]), np.array([8.0])),
        "which": 1,
        "large": np.uint64(2**63),
    }
    assert _read(Struct("Fields", fields)) == (5, 11, 8.0, 1)
    assert _read(Struct("Fields", {**fields, "which": 0})) == (5, 11, 7.0, 1)


@kernel
def _fill(struct, value):
    struct.array[:] = value


def test_kernels_write_to_the_arrays():
    array = np.zeros(5, np.uint32)
    _fill(Struct("Array", {"array": array}), 7)
    assert array.tolist() == [7] * 5


def test_read_only_arrays_have_no_kernel_of_their_own():
    array = np.zeros(5, np.uint32)
    array.flags.writeable = False
    known, mapped = Struct("A", {"array": np.ones(3, np.uint32)}), Struct("A", {"array": array})
    assert known.numba_type == mapped.numba_type
    assert known.numba_type != Struct("A", {"array": np.ones(3, np.int64)}).numba_type
    assert known.numba_type != Struct("A", {"items": array}).numba_type


@kernel(inner=True)
def _add(control, struct, i, j):
    control[0] += 1
    if struct.array.size == 0:
        raise ValueError("nothing to add to")
    return struct.array[i], struct.array[j], struct.array[i] + struct.array[j]


@kernel
def _call(address, control, struct):
    return call_at(address, control, struct, 1, 2)


def test_kernels_are_called_by_address():
    control, array = np.zeros(1, np.int64), np.array([10, 20, 30])
    struct = Struct("Array", {"array": array})
    control_type = types.Array(types.int64, 1, "C")
    address = address_of(_add, control_type, struct.numba_type, types.int64, types.int64)
    assert _call(address, control, struct) == (20, 30, 50)
    assert control[0] == 1
    empty = Struct("Array", {"array": array[:0]})
    with pytest.raises(ValueError, match="nothing to add to"):
        _call(address, control, empty)


@kernel(inner=True)
def _square(given, part, parts):
    begin, end = part_of(given.squares.size, part, parts)
    for i in range(begin, end):
        given.squares[i] += i * i
    given.parts[part] += parts


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize("parts", [1, 3, 200])
def test_every_part_is_done_once(size, parts):
    squares, seen = np.zeros(size, np.int64), np.zeros(parts, np.int64)
    in_parallel(_square, parts, squares=squares, parts=seen)
    assert np.array_equal(squares, np.arange(size) ** 2)
    assert (seen == parts).all()


def test_constants_are_no_reason_to_compile_again():
    @kernel(inner=True)
    def add(x, y):
        return x + y

    @kernel
    def sums(x):
        return add(x, 1) + add(x, 2) + add(3, x)

    assert isinstance(add, Dispatcher)
    assert sums(10) == 36
    assert len(add.signatures) == 1
