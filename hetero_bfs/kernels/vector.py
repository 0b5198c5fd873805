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
_NO_EDGES = ir.Constant(ir.VectorType(_LONG, _LANES), [0] * _LANES)
_NO_VERTEX = 0xFFFFFFFF
_FRESH_AND_EDGES = types.Tuple((types.uint32, types.int64))


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


def _first_vertex(context: Any, builder: Any, word_type: Any, word: Any) -> Any:
    """Return the number, 64 bits, of the first vertex of a bitmap's word."""
    return builder.shl(context.cast(builder, word, word_type, types.uint64), _LONG(5))


def _bits_from(builder: Any, word: Any, start: int) -> Any:
    """Return a vector whose lowest bits are those of a word from bit `start` on."""
    everywhere = ir.Constant(_VECTOR, ir.Undefined)
    everywhere = builder.insert_element(everywhere, word, _WORD(0))
    everywhere = builder.shuffle_vector(everywhere, ir.Constant(_VECTOR, ir.Undefined), _splat(0))
    return builder.lshr(everywhere, ir.Constant(_VECTOR, list(range(start, start + _LANES))))


def _add_degrees(builder: Any, total: Any, degrees: Any, index: Any, lanes: Any) -> Any:
    """Return the sums so far with the degrees of those of eight vertices that `lanes` has."""
    counted = builder.load(_address(builder, degrees, index), align=_ITEM_BYTES)
    counted = builder.select(lanes, counted, _splat(0))
    return builder.add(total, builder.zext(counted, total.type))


def _sum(builder: Any, total: Any) -> Any:
    """Return the sum of all lanes."""
    edges = _LONG(0)
    for lane in range(_LANES):
        edges = builder.add(edges, builder.extract_element(total, _WORD(lane)))
    return edges


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
        base = _first_vertex(context, builder, signature.args[0], arguments[0])
        pending_word = context.cast(builder, arguments[1], signature.args[1], types.uint32)
        firsts, degrees, bitmap, parents = (
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:], arguments[2:], strict=True)
        )
        fresh, total = _WORD(0), _NO_EDGES
        for start in range(0, 32, _LANES):
            index = builder.add(base, _LONG(start))
            vertices = builder.load(_address(builder, firsts, index), align=_ITEM_BYTES)
            bits = builder.and_(
                _bits_from(builder, pending_word, start), _visited_bits(builder, bitmap, vertices)
            )
            lanes, byte = _mask(builder, bits)
            address = _address(builder, parents, index)
            before = builder.load(address, align=_ITEM_BYTES)
            builder.store(builder.select(lanes, vertices, before), address, align=_ITEM_BYTES)
            total = _add_degrees(builder, total, degrees, index, lanes)
            fresh = builder.or_(fresh, builder.shl(byte, _WORD(start)))
        return cgutils.pack_struct(builder, [fresh, _sum(builder, total)])

    return _FRESH_AND_EDGES(word, pending, first, degree, visited, parent), codegen


@intrinsic
def adopt_word(
    typing_context: Any, word: Any, pending: Any, degree: Any, visited: Any, parent: Any
) -> Any:
    """adopt_word(word, pending, degree, visited, parent): see who has a visited parent.

    Returns those of the 32 vertices of bitmap word `word` (unsigned) that are in `pending` and
    have one, as bits, and the sum of their degrees. All 32 must exist.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base = _first_vertex(context, builder, signature.args[0], arguments[0])
        pending_word = context.cast(builder, arguments[1], signature.args[1], types.uint32)
        degrees, bitmap, parents = (
            _data(context, builder, kind, value)
            for kind, value in zip(signature.args[2:], arguments[2:], strict=True)
        )
        fresh, total = _WORD(0), _NO_EDGES
        for start in range(0, 32, _LANES):
            index = builder.add(base, _LONG(start))
            up = builder.load(_address(builder, parents, index), align=_ITEM_BYTES)
            is_vertex = builder.icmp_unsigned("!=", up, _splat(_NO_VERTEX))
            seen = _visited_bits(builder, bitmap, builder.select(is_vertex, up, _splat(0)))
            bits = builder.and_(_bits_from(builder, pending_word, start), seen)
            lanes, byte = _mask(builder, builder.and_(bits, builder.zext(is_vertex, _VECTOR)))
            total = _add_degrees(builder, total, degrees, index, lanes)
            fresh = builder.or_(fresh, builder.shl(byte, _WORD(start)))
        return cgutils.pack_struct(builder, [fresh, _sum(builder, total)])

    return _FRESH_AND_EDGES(word, pending, degree, visited, parent), codegen
