"""Rows of 64 items, one for each bit of a word, as vector code that LLVM adapts to the processor.

A row is passed by address, since the type of its items differs from run to run. With AVX-512 each
step below is one instruction, since a 64-bit word is a mask there.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64
"""Items per row: bits of a word."""

WORDS = 8

_BYTE_BITS = 8
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_ROW_ARGUMENTS = (
    types.int64,
    types.UniTuple(types.uint64, WORDS),
    types.UniTuple(types.int64, WORDS),
)


def _row_type(bits: int) -> Any:
    return ir.VectorType(ir.IntType(bits), LANES)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, _row_type(bits).as_pointer())


def _everywhere(builder: Any, value: Any, bits: int) -> Any:
    """Return a row with one value in all lanes."""
    item, zero = builder.trunc(value, ir.IntType(bits)), ir.IntType(32)(0)
    undefined = ir.Constant(_row_type(bits), ir.Undefined)
    one = builder.insert_element(undefined, item, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, lanes)


def _with_levels(builder: Any, row: Any, words: Any, levels: Any, bits: int) -> Any:
    """Return a row whose items are levels[i] where word i has a bit."""
    for i in range(WORDS):
        flags = builder.bitcast(builder.extract_value(words, i), _FLAGS)
        level = _everywhere(builder, builder.extract_value(levels, i), bits)
        row = builder.select(flags, level, row)
    return row


def _writer(bits: int, keep: bool) -> Callable[..., Any]:
    """Make an intrinsic that writes a row of integers of `bits` bits."""

    def row(typing_context: Any, address: Any, words: Any, levels: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, words, levels = arguments
            pointer = _pointer(builder, address, bits)
            before = ir.Constant(_row_type(bits), [-1] * LANES)
            if keep:
                before = builder.load(pointer, align=LANES)
            after = _with_levels(builder, before, words, levels, bits)
            stored = builder.store(after, pointer, align=LANES)
            if not keep:  # not read again soon, and fully written
                past = builder.module.add_metadata([ir.IntType(32)(1)])
                stored.set_metadata("nontemporal", past)
            return context.get_dummy_value()

        return types.void(*_ROW_ARGUMENTS), codegen

    row.__name__ = f"{'add_to' if keep else 'write'}_row_{bits}"
    return intrinsic(row)  # type: ignore[no-any-return]


write_row_8, write_row_16, write_row_32 = (_writer(bits, keep=False) for bits in (8, 16, 32))
"""write_row(address, words, levels): write levels[i] where word i has a bit, -1 elsewhere.

`words` and `levels` are tuples of `WORDS` entries. The row begins on a cache line. Call
`finish_rows` after the last row.
"""

add_to_row_8, add_to_row_16, add_to_row_32 = (_writer(bits, keep=True) for bits in (8, 16, 32))
"""add_to_row(address, words, levels): as `write_row`, but other items keep their values."""


@intrinsic
def finish_rows(typing_context: Any) -> Any:
    """finish_rows(): make this thread's rows visible to others (x86 only; else no-op)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            function_type = ir.FunctionType(ir.VoidType(), [])
            fence = builder.module.declare_intrinsic("llvm.x86.sse.sfence", (), function_type)
            builder.call(fence, [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def count_bits(typing_context: Any, counts: Any, words: Any, place: Any) -> Any:
    """count_bits(counts, words, k): add bit i of each of words[k] to words[k + 7] to counts[i].

    `counts` is uint8 (64,). All eight words must exist.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counts_type, words_type, _ = signature.args
        array, zero = context.make_array(counts_type), context.get_constant(types.intp, 0)
        to = array(context, builder, arguments[0])
        item = cgutils.get_item_pointer(context, builder, counts_type, to, [zero], wraparound=False)
        pointer = builder.bitcast(item, _row_type(_BYTE_BITS).as_pointer())
        of = context.make_array(words_type)(context, builder, arguments[1])
        total = builder.load(pointer, align=1)
        for i in range(WORDS):
            index = builder.add(arguments[2], arguments[2].type(i))
            flags = builder.bitcast(builder.load(builder.gep(of.data, [index])), _FLAGS)
            total = builder.add(total, builder.zext(flags, total.type))
        builder.store(total, pointer, align=1)
        return context.get_dummy_value()

    return types.void(counts, words, types.intp), codegen
