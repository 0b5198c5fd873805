"""Python's dicts and integers in compiled code, through functions of Python's stable ABI.

Objects are given by their `id`, which is their address. The kernel that calls these functions must
hold Python's lock (`kernel(holds_lock=True)`). Its caller must hold a reference to each object.
"""

from __future__ import annotations

import sysconfig
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_INT64, _INT32 = ir.IntType(64), ir.IntType(32)
_TYPE_OFFSET = 8  # in an object, after its reference count


def are_readable() -> bool:
    """Whether kernels may read Python's objects.

    On free-threaded Python other threads may change a dict meanwhile, and an object's type has
    another offset.
    """
    return not sysconfig.get_config_var("Py_GIL_DISABLED")


def _call(builder: Any, name: str, result: Any, addresses: list[Any]) -> Any:
    pointers = [
        builder.inttoptr(one, cgutils.voidptr_t) if one.type == _INT64 else one for one in addresses
    ]
    kind = ir.FunctionType(result, [cgutils.voidptr_t] * len(pointers))
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, pointers)


@intrinsic
def next_key(typing_context: Any, address: Any, position: Any) -> Any:
    """next_key(address, position): (next position, address of the key); position 0 starts.

    The key is 0 at the end of the dict.
    """
    result = types.UniTuple(types.int64, 2)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        after, key, _ = _next_item(builder, *arguments)
        return context.make_tuple(builder, result, [after, key])

    return result(types.int64, types.int64), codegen


@intrinsic
def next_value(typing_context: Any, address: Any, position: Any) -> Any:
    """next_value(address, position): as `next_key`, with the address of the value."""
    result = types.UniTuple(types.int64, 2)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        after, _, value = _next_item(builder, *arguments)
        return context.make_tuple(builder, result, [after, value])

    return result(types.int64, types.int64), codegen


def _next_item(builder: Any, address: Any, position: Any) -> tuple[Any, Any, Any]:
    cells = [cgutils.alloca_once(builder, _INT64) for _ in range(3)]
    builder.store(position, cells[0])
    pointers = [builder.bitcast(cell, cgutils.voidptr_t) for cell in cells]
    found = _call(builder, "PyDict_Next", _INT32, [address, *pointers])
    is_item = builder.icmp_signed("!=", found, _INT32(0))
    after, key, value = (builder.load(cell) for cell in cells)
    return (
        after,
        builder.select(is_item, key, _INT64(0)),
        builder.select(is_item, value, _INT64(0)),
    )


@intrinsic
def dict_value(typing_context: Any, address: Any, key: Any) -> Any:
    """dict_value(address, key): the address of a key's value; 0, perhaps with an exception set.

    A comparison of keys other than strings and numbers may run Python code.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = _call(builder, "PyDict_GetItemWithError", cgutils.voidptr_t, arguments)
        return builder.ptrtoint(value, _INT64)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def type_of(typing_context: Any, address: Any) -> Any:
    """type_of(address): the address of an object's type."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.add(arguments[0], _INT64(_TYPE_OFFSET))
        return builder.load(builder.inttoptr(place, _INT64.as_pointer()))

    return types.int64(types.int64), codegen


@intrinsic
def prefetch_object(typing_context: Any, address: Any) -> Any:
    """prefetch_object(address): prefetch an object's first cache line."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[_INT32] * 3])
        function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        pointer = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        builder.call(function, [pointer, _INT32(0), _INT32(3), _INT32(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def value_of_int(typing_context: Any, address: Any) -> Any:
    """value_of_int(address): an int's value; if it is too large, -1 with an exception set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "PyLong_AsLongLong", _INT64, [arguments[0]])

    return types.int64(types.int64), codegen


@intrinsic
def clear_error(typing_context: Any) -> Any:
    """clear_error(): clear the exception that is set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _call(builder, "PyErr_Clear", ir.VoidType(), [])
        return context.get_dummy_value()

    return types.void(), codegen
