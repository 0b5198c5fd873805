"""Machine instructions and system calls that Numba does not offer.

Atomics on array items, arrays by address, bit counts, prefetching, a clock, and waiting without
using the processor. The atomic updates return the value before the update. `atomic_or`,
`atomic_add` and `atomic_min` only make single updates indivisible ("monotonic" ordering). `store`,
`exchange`, `fetch_add` and `compare_and_swap` release earlier writes; `load`, `exchange`,
`fetch_add` and `compare_and_swap` acquire them.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_WORD_BYTES = 8
_CLOCK_MONOTONIC: int = time.CLOCK_MONOTONIC


def _item(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    value = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, value, [index], wraparound=False)


def _is_integer_array(array: Any) -> bool:
    return isinstance(array, types.Array) and isinstance(array.dtype, types.Integer)


def _atomic(operation: str, ordering: str) -> Callable[..., Any]:
    def typed(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        if not _is_integer_array(array):
            return None
        signature = array.dtype(array, types.intp, array.dtype)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
            return builder.atomic_rmw(operation, pointer, arguments[2], ordering)

        return signature, codegen

    typed.__name__ = f"atomic_{operation}_{ordering}"
    return intrinsic(typed)  # type: ignore[no-any-return]


atomic_or = _atomic("or", "monotonic")
"""atomic_or(array, index, value): set bits; return the old value."""

atomic_add = _atomic("add", "monotonic")
"""atomic_add(array, index, value): add; return the old value."""

atomic_min = _atomic("min", "monotonic")
"""atomic_min(array, index, value): keep the smaller signed integer; return the old value."""

exchange = _atomic("xchg", "acq_rel")
"""exchange(array, index, value): write; return the old value. A full memory barrier."""

fetch_add = _atomic("add", "acq_rel")
"""fetch_add(array, index, value): add with acquire and release; return the old value."""


@intrinsic
def compare_and_swap(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """compare_and_swap(array, index, expected, value): write if as expected; return success."""
    if not _is_integer_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        outcome = builder.cmpxchg(pointer, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """load(array, index): read an int64 that another thread may write, and acquire."""
    if not _is_integer_array(array) or array.dtype.bitwidth != 8 * _WORD_BYTES:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load_atomic(pointer, "acquire", _WORD_BYTES)

    return array.dtype(array, types.intp), codegen


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """store(array, index, value): write an int64 that another thread may read, and release."""
    if not _is_integer_array(array) or array.dtype.bitwidth != 8 * _WORD_BYTES:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store_atomic(arguments[2], pointer, "release", _WORD_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


def _array_at(kind: Any) -> Callable[..., Any]:
    array_type = types.Array(kind, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(array_type)(context, builder)
        item_bytes = context.get_constant(types.intp, kind.bitwidth // 8)
        populate_array(
            array,
            data=builder.inttoptr(arguments[0], array.data.type),
            shape=[arguments[1]],
            strides=[item_bytes],
            itemsize=item_bytes,
            meminfo=None,
        )
        return array._getvalue()

    def typed(typing_context: Any, address: Any, size: Any) -> Any:
        return array_type(types.intp, types.intp), codegen

    typed.__name__ = f"array_of_{kind}_at"
    return intrinsic(typed)  # type: ignore[no-any-return]


array_at = _array_at(types.int64)
"""array_at(address, size): the int64 array at an address; the caller keeps it alive."""

int32_array_at = _array_at(types.int32)
uint32_array_at = _array_at(types.uint32)


@intrinsic
def stream(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """stream(array, index, value): write an item past the caches.

    The caller calls `end_stream` before other threads may read it.
    """
    if not _is_integer_array(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        written = builder.store(arguments[2], pointer)
        written.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


@intrinsic
def end_stream(typing_context: Any) -> Any:
    """end_stream(): complete all writes by `stream` before later writes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """prefetch(array, index): prefetch an item's cache line; the index may be out of range."""
    if not isinstance(array, types.Array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _item(context, builder, signature.args[0], arguments[0], arguments[1])
        address = builder.bitcast(pointer, cgutils.voidptr_t)
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [cgutils.voidptr_t],
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word]),
        )
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def bits_of(typing_context: Any, value: Any) -> Any:
    """bits_of(value): a float's bits as a signed integer of its size; an integer as it is.

    Floats of at least 0 are in the order of their bits.
    """
    if isinstance(value, types.Integer):
        return value(value), lambda context, builder, signature, arguments: arguments[0]
    result = types.int32 if value.bitwidth == 32 else types.int64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(value.bitwidth))

    return result(value), codegen


@intrinsic
def value_of(typing_context: Any, bits: Any, like: Any) -> Any:
    """value_of(bits, like): the reverse of `bits_of`, for a value of the type of `like`."""
    if isinstance(like, types.Integer):
        return bits(bits, like), lambda context, builder, signature, arguments: arguments[0]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(like))

    return like(bits, like), codegen


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """trailing_zeros(value): zero bits below the lowest set bit of an unsigned integer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return value(value), codegen


@intrinsic
def population_count(typing_context: Any, value: Any) -> Any:
    """population_count(value): set bits of an unsigned integer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return value(value), codegen


def _system_function(
    builder: Any, name: str, result: Any, arguments: list[Any], values: list[Any]
) -> Any:
    function_type = ir.FunctionType(result, arguments)
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, values)


@intrinsic
def clock_seconds(typing_context: Any) -> Any:
    """clock_seconds(): the monotonic clock of time.perf_counter."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, long_word = ir.IntType(32), ir.IntType(64)
        timespec = cgutils.alloca_once(builder, ir.ArrayType(long_word, 2))
        address = builder.bitcast(timespec, cgutils.voidptr_t)
        _system_function(
            builder,
            "clock_gettime",
            word,
            [word, cgutils.voidptr_t],
            [word(_CLOCK_MONOTONIC), address],
        )
        value = builder.load(timespec)
        double = ir.DoubleType()
        seconds = builder.sitofp(builder.extract_value(value, 0), double)
        nanoseconds = builder.sitofp(builder.extract_value(value, 1), double)
        return builder.fadd(seconds, builder.fmul(nanoseconds, double(1e-9)))

    return types.float64(), codegen


@intrinsic
def yield_processor(typing_context: Any) -> Any:
    """yield_processor(): let another thread run if one waits for this processor."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _system_function(builder, "sched_yield", ir.IntType(32), [], [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def relax(typing_context: Any) -> Any:
    """relax(): hint to the processor that this is a spin loop (x86 only; else nothing)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            function_type = ir.FunctionType(ir.VoidType(), [])
            function = builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), function_type)
            builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


def _thread_call(name: str, addresses: int) -> Callable[..., Any]:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        pointers = [
            builder.bitcast(
                _item(context, builder, array_type, arguments[0], index), cgutils.voidptr_t
            )
            for index in arguments[1:]
        ]
        if name.endswith("_init"):
            pointers.append(ir.Constant(cgutils.voidptr_t, None))
        kinds = [cgutils.voidptr_t] * len(pointers)
        _system_function(builder, name, ir.IntType(32), kinds, pointers)
        return context.get_dummy_value()

    def one(typing_context: Any, array: Any, index: Any) -> Any:
        return types.void(array, types.intp), build

    def two(typing_context: Any, array: Any, index: Any, other: Any) -> Any:
        return types.void(array, types.intp, types.intp), build

    typed = one if addresses == 1 else two
    typed.__name__ = name
    return intrinsic(typed)  # type: ignore[no-any-return]


mutex_init = _thread_call("pthread_mutex_init", 1)
"""mutex_init(array, index): make a mutex of the 8 words (64 bytes) that begin at `index`."""

condition_init = _thread_call("pthread_cond_init", 1)
"""condition_init(array, index): make a condition variable of the 8 words that begin at `index`."""

mutex_lock = _thread_call("pthread_mutex_lock", 1)
mutex_unlock = _thread_call("pthread_mutex_unlock", 1)
condition_wait = _thread_call("pthread_cond_wait", 2)
"""condition_wait(array, condition_index, mutex_index): sleep until woken."""

wake_all = _thread_call("pthread_cond_broadcast", 1)
"""wake_all(array, condition_index): wake all threads that wait on a condition variable."""
