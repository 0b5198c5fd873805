"""Tests of eight vertices at once, as vector code that LLVM fits to the processor.

Numba does not vectorise these loops by itself, since for all it knows the arrays overlap. The words
of the bitmap are fetched one by one: hardware gathers are no faster where they exist.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_LANES = 8
_BIT, _BYTE, _WORD, _LONG = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_VECTOR = ir.VectorType(_WORD, _LANES)
_ITEM_BYTES = 4


def _splat(value: int) -> Any:
    return ir.Constant(_VECTOR, [value] * _LANES)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _address(builder: Any, data: Any, index: Any) -> Any:
    """Return where eight items from `index` (64 bits) on begin, as the address of a vector."""
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _visited_bits(builder: Any, visited: Any, vertices: Any) -> Any:
    """Return a vector whose lowest bits tell which of eight vertices are visited."""
    positions = builder.lshr(vertices, _splat(5))
    words = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(_LANES):
        position = builder.zext(builder.extract_element(positions, _WORD(lane)), _LONG)
        word = builder.load(builder.gep(visited, [position]))
        words = builder.insert_element(words, word, _WORD(lane))
    return builder.lshr(words, builder.and_(vertices, _splat(31)))


def _mask(builder: Any, bits: Any) -> Any:
    """Return as booleans, and as a byte, which lanes have their lowest bit set."""
    lanes = builder.trunc(bits, ir.VectorType(_BIT, _LANES))
    return lanes, builder.zext(builder.bitcast(lanes, _BYTE), _WORD)


@intrinsic
def visited_among_eight(typing_context: Any, indices: Any, position: Any, visited: Any) -> Any:
    """visited_among_eight(indices, k, visited): bit i tells if indices[k + i] is visited.

    `position` is an unsigned integer; all eight items must exist.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        indices_type, position_type, visited_type = signature.args
        data = _data(context, builder, indices_type, arguments[0])
        index = context.cast(builder, arguments[1], position_type, types.uint64)
        vertices = builder.load(_address(builder, data, index), align=_ITEM_BYTES)
        bitmap = _data(context, builder, visited_type, arguments[2])
        _, byte = _mask(builder, _visited_bits(builder, bitmap, vertices))
        return byte

    return types.uint32(indices, position, visited), codegen


@intrinsic
def settle_word(
    typing_context: Any,
    word: Any,
    pending: Any,
    first: Any,
    degree: Any,
    visited: Any,
    parent: Any,
) -> Any:
    """settle_word(word, pending, first, degree, visited, parent): settle vertices of one word.

    Of the 32 vertices of bitmap word `word` (unsigned), those in `pending` whose first neighbour
    is visited get it as parent. Returns them as bits, and the sum of their degrees. All 32 must
    exist.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base = builder.shl(
            context.cast(builder, arguments[0], signature.args[0], types.uint64), _LONG(5)
        )
        pending_word = context.cast(builder, arguments[1], signature.args[1], types.uint32)
        firsts, degrees, bitmap, parents = (
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:], arguments[2:], strict=True)
        )
        fresh, total = _WORD(0), ir.Constant(ir.VectorType(_LONG, _LANES), [0] * _LANES)
        for start in range(0, 32, _LANES):
            index = builder.add(base, _LONG(start))
            vertices = builder.load(_address(builder, firsts, index), align=_ITEM_BYTES)
            wanted = ir.Constant(_VECTOR, ir.Undefined)
            wanted = builder.insert_element(wanted, pending_word, _WORD(0))
            wanted = builder.shuffle_vector(wanted, ir.Constant(_VECTOR, ir.Undefined), _splat(0))
            shifts = ir.Constant(_VECTOR, list(range(start, start + _LANES)))
            bits = builder.and_(
                builder.lshr(wanted, shifts), _visited_bits(builder, bitmap, vertices)
            )
            lanes, byte = _mask(builder, bits)
            address = _address(builder, parents, index)
            before = builder.load(address, align=_ITEM_BYTES)
            builder.store(builder.select(lanes, vertices, before), address, align=_ITEM_BYTES)
            counted = builder.load(_address(builder, degrees, index), align=_ITEM_BYTES)
            counted = builder.select(lanes, counted, _splat(0))
            total = builder.add(total, builder.zext(counted, total.type))
            fresh = builder.or_(fresh, builder.shl(byte, _WORD(start)))
        edges = _LONG(0)
        for lane in range(_LANES):
            edges = builder.add(edges, builder.extract_element(total, _WORD(lane)))
        return cgutils.pack_struct(builder, [fresh, edges])

    result = types.Tuple((types.uint32, types.int64))
    return result(word, pending, first, degree, visited, parent), codegen
