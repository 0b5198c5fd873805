"""Rows of 64 items, one for each bit of a word, as vector code that LLVM adapts to the processor.

A row lies at an address, since its items have different types from run to run. With AVX-512 each
step below is one instruction, as a word of bits is a mask there.
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
"""Items of a row: bits of a word."""

WORDS = 8
"""Words that `write_row` takes."""

_BYTE_BITS = 8
_FLAGS = ir.VectorType(ir.IntType(1), LANES)
_ADDRESS_AND_WORDS = (types.int64, types.UniTuple(types.uint64, WORDS), types.int64)


def _row_type(bits: int) -> Any:
    return ir.VectorType(ir.IntType(bits), LANES)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, _row_type(bits).as_pointer())


def _everywhere(builder: Any, value: Any, bits: int) -> Any:
    """Return a row of one value."""
    item, zero = builder.trunc(value, ir.IntType(bits)), ir.IntType(32)(0)
    undefined = ir.Constant(_row_type(bits), ir.Undefined)
    one = builder.insert_element(undefined, item, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, lanes)


def _with_levels(builder: Any, row: Any, words: Any, first: Any, bits: int) -> Any:
    """Return a row in which items of word i's bits are `first` + i."""
    for i in range(WORDS):
        flags = builder.bitcast(builder.extract_value(words, i), _FLAGS)
        level = _everywhere(builder, builder.add(first, ir.IntType(64)(i)), bits)
        row = builder.select(flags, level, row)
    return row


def _writer(bits: int, keep: bool) -> Callable[..., Any]:
    """Make an intrinsic that writes a row of integers of so many bits."""

    def row(typing_context: Any, address: Any, words: Any, first: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, words, first = arguments
            pointer = _pointer(builder, address, bits)
            before = ir.Constant(_row_type(bits), [-1] * LANES)
            if keep:
                before = builder.load(pointer, align=LANES)
            after = _with_levels(builder, before, words, first, bits)
            stored = builder.store(after, pointer, align=LANES)
            if not keep:  # nobody reads it soon, and the line need not be read before
                past = builder.module.add_metadata([ir.IntType(32)(1)])
                stored.set_metadata("nontemporal", past)
            return context.get_dummy_value()

        return types.void(*_ADDRESS_AND_WORDS), codegen

    row.__name__ = f"{'add_to' if keep else 'write'}_row_{bits}"
    return intrinsic(row)  # type: ignore[no-any-return]


write_row_8, write_row_16, write_row_32 = (_writer(bits, keep=False) for bits in (8, 16, 32))
"""write_row(address, words, first): write `first` + i where word i has a bit, -1 elsewhere.

`words` are a tuple of `WORDS`. The row begins on a cache line. Call `finish_rows` after the last.
"""

add_to_row_8, add_to_row_16, add_to_row_32 = (_writer(bits, keep=True) for bits in (8, 16, 32))
"""add_to_row(address, words, first): as write_row, but other items stay."""


@intrinsic
def finish_rows(typing_context: Any) -> Any:
    """finish_rows(): have other threads see the rows that this one wrote (x86 only; else no-op)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            function_type = ir.FunctionType(ir.VoidType(), [])
            fence = builder.module.declare_intrinsic("llvm.x86.sse.sfence", (), function_type)
            builder.call(fence, [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def count_bits(typing_context: Any, counts: Any, place: Any, word: Any) -> Any:
    """count_bits(counts, place, word): add 1 to byte i of 64 if the word has bit i.

    `counts` is an array of uint8; the bytes begin at `place`, which a cache line begins at, too.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counts_type = signature.args[0]
        array = context.make_array(counts_type)(context, builder, arguments[0])
        item = cgutils.get_item_pointer(
            context, builder, counts_type, array, [arguments[1]], wraparound=False
        )
        pointer = builder.bitcast(item, _row_type(_BYTE_BITS).as_pointer())
        flags = builder.bitcast(arguments[2], _FLAGS)
        ones = builder.zext(flags, _row_type(_BYTE_BITS))
        before = builder.load(pointer, align=1)
        builder.store(builder.add(before, ones), pointer, align=1)
        return context.get_dummy_value()

    return types.void(counts, types.intp, types.uint64), codegen
