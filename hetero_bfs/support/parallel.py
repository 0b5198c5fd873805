"""Structs and kernels that are passed to kernels by address, and parts of work on several threads.

Numba passes a tuple item by item, and an array as several words. A tuple of two dozen arrays
takes some 200 words per call, and compiling these takes longer than compiling the kernel's own
code. Here the addresses and shapes of the arrays are stored in memory, and a kernel gets one
address. In the kernel this is a struct with attributes; reading an attribute loads an array.

No kernel changes the stored words, so their loads are marked as invariant. Otherwise a loop would
load the addresses again after each store.

Numba also links a copy of each callee into a kernel, and optimises it there again. A kernel that
is called by address is compiled once, and only if it is needed. Numba compiles the body of each
parallel loop three times. Therefore there is only one such loop, which calls all work by address
(`in_parallel`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import typing
from numba.core.datamodel import models
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    register_model,
    unbox,
)
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from hetero_bfs.support import processes
from hetero_bfs.support.compiling import kernel

_WORD = ir.IntType(64)

STATE, RECORDS = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
"""The types of a search's state and of its records of levels."""

_CONTROL = types.Array(types.int64, 1, "C")

CHUNK_RESULTS = ("found", "edges", "scanned")
"""Return values of a kernel that runs a chunk of a phase, each an int64."""

LEVEL_RESULTS = ("representation", "found", "edges", "scanned")
"""Return values of a kernel that runs a level, each an int64."""


_SHARED_FROM = 1 << 17


class StructType(types.Type):  # type: ignore[misc]
    """The Numba type of a struct."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        kinds = hashlib.sha256(repr(fields).encode()).hexdigest()[:16]
        super().__init__(name=f"{name}_{kinds}")  # short, since it is part of many other names

    def offset(self, name: str) -> int:
        before = list(self.fields).index(name)
        return sum(_count_words(kind) for kind in list(self.fields.values())[:before])


class Struct:
    """Named arrays, tuples of arrays, and integers, which kernels read by name.

    Kernels may write to the arrays even if NumPy calls them read-only. The caller must keep the
    struct while a kernel uses it.
    """

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        kinds = tuple((field, _kind(value)) for field, value in fields.items())
        self.numba_type = self._numba_type_ = _struct_type(name, kinds)
        self._fields = fields
        words = [word for value in fields.values() for word in _words(value)]
        self._words = np.array(words, np.int64)
        self.address: int = self._words.ctypes.data


class Head:
    """The first fields of a struct, for kernels that use only these; it keeps the struct alive."""

    def __init__(self, name: str, struct: Struct, count: int) -> None:
        fields = tuple(struct.numba_type.fields.items())[:count]
        self.numba_type = self._numba_type_ = _struct_type(name, fields)
        self._struct = struct
        self.address = struct.address


@cache
def _struct_type(name: str, kinds: tuple[tuple[str, Any], ...]) -> StructType:
    return StructType(name, kinds)


@cache
def _array_type(dtype: np.dtype[Any], ndim: int, layout: str) -> Any:
    return types.Array(from_dtype(dtype), ndim, layout)


def _kind(value: Any) -> Any:
    """Return the type of a field; of an array only dtype, dimensions and contiguity matter."""
    if isinstance(value, np.ndarray):
        return _array_type(value.dtype, value.ndim, "C" if value.flags.c_contiguous else "A")
    if isinstance(value, tuple):
        return types.UniTuple(_kind(value[0]), len(value))
    return types.uint64 if isinstance(value, np.uint64) else types.int64


def _words(value: Any) -> list[int]:
    if isinstance(value, np.ndarray):
        strides = () if value.flags.c_contiguous else value.strides
        return [value.ctypes.data, *value.shape, *strides]
    if isinstance(value, tuple):
        return [word for item in value for word in _words(item)]
    word = int(value)
    return [word - (1 << 64) if word >= 1 << 63 else word]


def _count_words(kind: Any) -> int:
    if isinstance(kind, types.Array):
        return 1 + (1 if kind.layout == "C" else 2) * int(kind.ndim)
    if isinstance(kind, types.UniTuple):
        return int(kind.count) * _count_words(kind.dtype)
    return 1


register_model(StructType)(models.OpaqueModel)


@unbox(StructType)
def _unbox(kind: Any, value: Any, context: Any) -> Any:
    address = context.pyapi.object_getattr_string(value, "address")
    pointer = context.pyapi.long_as_voidptr(address)
    context.pyapi.decref(address)
    return NativeValue(pointer)


@infer_getattr
class _StructAttributes(typing.templates.AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.fields.get(name)


@lower_getattr_generic(StructType)
def _read_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    words = builder.bitcast(value, _WORD.as_pointer())
    return _read(context, builder, kind.fields[name], words, kind.offset(name))


def _read(context: Any, builder: Any, kind: Any, words: Any, offset: int) -> Any:
    """Load a field, or an item of a tuple, whose words begin at `offset`."""
    if isinstance(kind, types.UniTuple):
        size = _count_words(kind.dtype)
        items = [
            _read(context, builder, kind.dtype, words, offset + i * size) for i in range(kind.count)
        ]
        return context.make_tuple(builder, kind, items)
    read = [
        _load_constant(builder, builder.gep(words, [_WORD(offset + i)]))
        for i in range(_count_words(kind))
    ]
    return _array(context, builder, kind, *read) if isinstance(kind, types.Array) else read[0]


def _load_constant(builder: Any, pointer: Any) -> Any:
    """Load a word that no kernel changes: the compiler may load it once, before loops."""
    word = builder.load(pointer)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _array(context: Any, builder: Any, kind: Any, address: Any, *places: Any) -> Any:
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    item_bytes = context.get_constant(types.intp, size)
    shape, strides = list(places[: kind.ndim]), list(places[kind.ndim :])
    if kind.layout == "C":
        strides = [item_bytes]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=item_bytes,
        meminfo=None,
    )
    return array._getvalue()


@cache
def address_of(function: Any, *kinds: Any) -> int:
    function.compile(kinds)
    compiled = function.overloads[kinds]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


@intrinsic
def call_at(typing_context: Any, address: Any, control: Any, arrays: Any, i: Any, j: Any) -> Any:
    """call_at(address, control, arrays, i, j): call a kernel of `chunk_address`."""
    return _caller((control, arrays, types.int64, types.int64), CHUNK_RESULTS)


@intrinsic
def call_level(
    typing_context: Any, address: Any, control: Any, arrays: Any, state: Any, records: Any
) -> Any:
    return _caller((control, arrays, STATE, RECORDS), LEVEL_RESULTS)


def chunk_address(function: Any, arrays: Any) -> int:
    return _checked_address(function, (_CONTROL, arrays, types.int64, types.int64), CHUNK_RESULTS)


def level_address(function: Any, arrays: Any) -> int:
    return _checked_address(function, (_CONTROL, arrays, STATE, RECORDS), LEVEL_RESULTS)


def _checked_address(function: Any, kinds: tuple[Any, ...], results: tuple[str, ...]) -> int:
    """Return the address of a kernel; raise TypeError unless it returns int64 as in `results`."""
    address = address_of(function, *kinds)
    result = function.overloads[kinds].signature.return_type
    if result != types.UniTuple(types.int64, len(results)):
        raise TypeError(
            f"{function.py_func.__name__} returns {result}; such a kernel must return "
            f"{len(results)} int64 ({', '.join(results)}); wrap constants in np.int64"
        )
    return address


def _caller(kinds: tuple[Any, ...], results: tuple[str, ...]) -> Any:
    result = types.UniTuple(types.int64, len(results))

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _call(context, builder, values[0], result, kinds, values[1:])

    return result(types.int64, *kinds), codegen


@intrinsic
def call_part(typing_context: Any, address: Any, struct: Any, part: Any, parts: Any) -> Any:
    """call_part(address, struct, part, parts): call a kernel that returns nothing.

    The kernel's arguments are the struct, given by its address, and two int64.
    """
    kinds = (StructType("any", ()), types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[1], context.get_value_type(kinds[0]))
        return _call(context, builder, values[0], types.none, kinds, [pointer, *values[2:]])

    return types.none(types.int64, types.int64, types.int64, types.int64), codegen


def _call(
    context: Any, builder: Any, address: Any, result: Any, kinds: tuple[Any, ...], values: Any
) -> Any:
    """Call a kernel that was compiled for arguments of these types."""
    convention = context.call_conv
    pointer = convention.get_function_type(result, kinds).as_pointer()
    function = builder.inttoptr(address, pointer)
    status, returned = convention.call_function(builder, function, result, kinds, values)
    with builder.if_then(status.is_error, likely=False):
        convention.return_status_propagate(builder, status)
    return returned


def in_parallel(work: Any, parts: int | None = None, /, **given: Any) -> None:
    """Let several threads call `work(given, part, parts)` for each part from 0 to `parts` - 1.

    `work` is a kernel that returns nothing. `given` is a struct of the keyword arguments. By
    default `parts` is the number of threads. A single part runs on the calling thread, without a
    barrier. So do all parts in a forked process that lost its threads.
    """
    parts = numba.get_num_threads() if parts is None else parts
    struct = Struct(work.py_func.__name__, given)
    address = address_of(work, struct.numba_type, numba.int64, numba.int64)
    call = _call_all if parts > 1 and not processes.lacks_loops() else _call_one
    call(address, struct.address, parts)


def parts_for(items: int) -> int:
    """Return the parts for `in_parallel`: one for few items, as waking threads takes longer."""
    return numba.get_num_threads() if items >= _SHARED_FROM else 1


def parallel_kernel(fields: str, **options: Any) -> Any:
    """Decorate a kernel `f(given, part, parts)` to be called as f(*values, parts=None).

    `fields` names the values, which become `given`; `in_parallel` runs the parts. `options` are
    `kernel`'s.
    """
    names = fields.split()

    def decorate(function: Any) -> Any:
        work = kernel(inner=True, **options)(function)

        @wraps(function)
        def run(*values: Any, parts: int | None = None) -> None:
            in_parallel(work, parts, **dict(zip(names, values, strict=True)))

        return run

    return decorate


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit `in_parallel` in this thread to `threads` threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@kernel(parallel=True, counted=False)
def _call_all(address, struct, parts):
    for part in prange(parts):
        call_part(address, struct, part, parts)


@kernel(counted=False)
def _call_one(address, struct, parts):
    for part in range(parts):
        call_part(address, struct, part, parts)


@njit(inline="always")
def part_of(size, part, parts):
    return size * part // parts, size * (part + 1) // parts
