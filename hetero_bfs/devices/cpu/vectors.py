"""Operations on eight vertices at once, as vector code that LLVM adapts to the processor.

Numba does not vectorise such loops itself, since it cannot know that the arrays do not overlap. The
words of the bitmap are read one by one: where processors have a gather instruction, it is not
faster. The last two functions pack vectors. They need an instruction for it (`can_pack`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from hetero_bfs.graph.edge_source import NO_VERTEX

_LANES = 8
_BIT, _BYTE, _WORD, _LONG = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_VECTOR = ir.VectorType(_WORD, _LANES)
_ITEM_BYTES = 4
_NO_EDGES = ir.Constant(ir.VectorType(_LONG, _LANES), [0] * _LANES)
_FLAGS = ir.VectorType(_BIT, _LANES)
_LANE_NUMBERS = ir.Constant(_VECTOR, list(range(_LANES)))
_FRESH_AND_EDGES = types.Tuple((types.uint32, types.int64))


def _splat(value: int) -> Any:
    return ir.Constant(_VECTOR, [value] * _LANES)


def _spread(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _WORD(0))
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), _splat(0))


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _address(builder: Any, data: Any, index: Any) -> Any:
    """Return the address of the vector of eight items that begins at `index` (64 bits)."""
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _visited_bits(builder: Any, visited: Any, vertices: Any) -> Any:
    positions = builder.lshr(vertices, _splat(5))
    words = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(_LANES):
        position = builder.zext(builder.extract_element(positions, _WORD(lane)), _LONG)
        word = builder.load(builder.gep(visited, [position]))
        words = builder.insert_element(words, word, _WORD(lane))
    return builder.lshr(words, builder.and_(vertices, _splat(31)))


def _mask(builder: Any, bits: Any) -> Any:
    lanes = builder.trunc(bits, _FLAGS)
    return lanes, builder.zext(builder.bitcast(lanes, _BYTE), _WORD)


def _first_vertex(context: Any, builder: Any, word_type: Any, word: Any) -> Any:
    return builder.shl(context.cast(builder, word, word_type, types.uint64), _LONG(5))


def _bits_from(builder: Any, word: Any, start: int) -> Any:
    """Return a vector whose lowest bits are a word's bits `start` to `start + 7`."""
    shifts = ir.Constant(_VECTOR, list(range(start, start + _LANES)))
    return builder.lshr(_spread(builder, word), shifts)


def _add_degrees(builder: Any, total: Any, degrees: Any, index: Any, lanes: Any) -> Any:
    """Add the degrees of the eight vertices from `index`, where `lanes` is true, to `total`."""
    counted = builder.load(_address(builder, degrees, index), align=_ITEM_BYTES)
    counted = builder.select(lanes, counted, _splat(0))
    return builder.add(total, builder.zext(counted, total.type))


def _sum(builder: Any, total: Any) -> Any:
    edges = _LONG(0)
    for lane in range(_LANES):
        edges = builder.add(edges, builder.extract_element(total, _WORD(lane)))
    return edges


@intrinsic
def visited_among_eight(typing_context: Any, indices: Any, position: Any, visited: Any) -> Any:
    """visited_among_eight(indices, k, visited): bit i is set if indices[k + i] is visited.

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
def resolve_word(
    typing_context: Any,
    word: Any,
    pending: Any,
    first: Any,
    degree: Any,
    visited: Any,
    parent: Any,
) -> Any:
    """resolve_word(word, pending, first, degree, visited, parent): try first neighbours as parents.

    `word` (unsigned) is the position of a word in the bitmap. A pending vertex of that word gets
    its first neighbour as parent if that neighbour is visited. Returns these vertices as bits, and
    the sum of their degrees. All 32 vertices must exist.
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
def resolve_pushed_word(
    typing_context: Any, word: Any, pending: Any, degree: Any, visited: Any, parent: Any
) -> Any:
    """resolve_pushed_word(word, pending, degree, visited, parent): find visited parents.

    `word` (unsigned) is the position of a word in the bitmap. Returns its pending vertices that
    have a visited parent, as bits, and the sum of their degrees. All 32 vertices must exist.
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
            is_vertex = builder.icmp_unsigned("!=", up, _splat(NO_VERTEX))
            seen = _visited_bits(builder, bitmap, builder.select(is_vertex, up, _splat(0)))
            bits = builder.and_(_bits_from(builder, pending_word, start), seen)
            lanes, byte = _mask(builder, builder.and_(bits, builder.zext(is_vertex, _VECTOR)))
            total = _add_degrees(builder, total, degrees, index, lanes)
            fresh = builder.or_(fresh, builder.shl(byte, _WORD(start)))
        return cgutils.pack_struct(builder, [fresh, _sum(builder, total)])

    return _FRESH_AND_EDGES(word, pending, degree, visited, parent), codegen


def can_pack() -> bool:
    """Return whether the processor packs vectors with one instruction (AVX-512 VL)."""
    try:
        features = cpu_target.target_context.codegen().magic_tuple()[2]
    except (AttributeError, IndexError):  # another version of Numba
        return False
    return "+avx512vl" in features.split(",")


def _instruction(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _lanes_below(builder: Any, number: Any) -> Any:
    """Return booleans that are true in the first `number` (64 bits) lanes."""
    count = _spread(builder, builder.trunc(number, _WORD))
    return builder.icmp_unsigned("<", _LANE_NUMBERS, count)


def _pack(builder: Any, vector: Any, lanes: Any, data: Any, place: Any) -> None:
    """Store the items in `lanes` contiguously; up to eight items after `place` are overwritten."""
    compress = _instruction(
        builder, "llvm.x86.avx512.mask.compress.v8i32", _VECTOR, [_VECTOR, _VECTOR, _FLAGS]
    )
    packed = builder.call(compress, [vector, _splat(0), lanes])
    builder.store(packed, _address(builder, data, place), align=_ITEM_BYTES)


def _count(builder: Any, lanes: Any) -> Any:
    return builder.ctpop(builder.zext(builder.bitcast(lanes, _BYTE), _LONG))


@intrinsic
def append_edges(
    typing_context: Any,
    indices: Any,
    position: Any,
    count: Any,
    source: Any,
    but: Any,
    ends: Any,
    sources: Any,
    place: Any,
) -> Any:
    """append_edges(indices, k, count, u, p, ends, sources, place): append edges except one.

    Reads `count` items of `indices` from index `k`, eight at most. Items other than `p` go to
    `ends` from index `place`, and for each of them `u` goes to `sources`. Both need room for eight
    items. Returns the number of items appended.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        data, to, by = (_data(context, builder, kinds[i], arguments[i]) for i in (0, 5, 6))
        start, number, target = (
            context.cast(builder, arguments[i], kinds[i], types.uint64) for i in (1, 2, 7)
        )
        u, p = (context.cast(builder, arguments[i], kinds[i], types.uint32) for i in (3, 4))
        there = _lanes_below(builder, number)
        bytes_ = _BYTE.as_pointer()
        load = _instruction(builder, "llvm.x86.avx2.maskload.d.256", _VECTOR, [bytes_, _VECTOR])
        address = builder.bitcast(builder.gep(data, [start]), bytes_)
        vertices = builder.call(load, [address, builder.sext(there, _VECTOR)])
        lanes = builder.and_(there, builder.icmp_unsigned("!=", vertices, _spread(builder, p)))
        _pack(builder, vertices, lanes, to, target)
        builder.store(_spread(builder, u), _address(builder, by, target), align=_ITEM_BYTES)
        return _count(builder, lanes)

    arguments = (indices, position, count, source, but, ends, sources, place)
    return types.uint64(*arguments), codegen


@intrinsic
def keep_unvisited(
    typing_context: Any,
    ends: Any,
    sources: Any,
    position: Any,
    count: Any,
    visited: Any,
    bits: Any,
    mixed: Any,
    place: Any,
) -> Any:
    """keep_unvisited(ends, sources, k, count, visited, bits, mixed, place): move edges together.

    Reads `count` edges from index `k`, eight at most. It keeps edges whose end is not visited, and
    edges to another partition of 1 << `bits` vertices. If `mixed` is not 0 it keeps all edges,
    without reading the bitmap. Kept edges are stored from index `place`, which is at most `k`.
    Returns the number of edges kept.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        to, by, bitmap = (_data(context, builder, kinds[i], arguments[i]) for i in (0, 1, 4))
        start, number, target = (
            context.cast(builder, arguments[i], kinds[i], types.uint64) for i in (2, 3, 7)
        )
        shift, foreign = (
            context.cast(builder, arguments[i], kinds[i], types.uint32) for i in (5, 6)
        )
        there = _lanes_below(builder, number)
        v = builder.load(_address(builder, to, start), align=_ITEM_BYTES)
        u = builder.load(_address(builder, by, start), align=_ITEM_BYTES)
        partitions = builder.lshr(builder.xor(u, v), _spread(builder, shift))
        partitions = builder.or_(partitions, _spread(builder, foreign))
        within = builder.and_(there, builder.icmp_unsigned("==", partitions, _splat(0)))
        seen = _visited_bits(builder, bitmap, builder.select(within, v, _splat(0)))
        seen = builder.and_(within, builder.trunc(seen, _FLAGS))
        lanes = builder.and_(there, builder.not_(seen))
        _pack(builder, v, lanes, to, target)
        _pack(builder, u, lanes, by, target)
        return _count(builder, lanes)

    arguments = (ends, sources, position, count, visited, bits, mixed, place)
    return types.uint64(*arguments), codegen


# Rows of 64 items, one for each bit of a word, as vector code that LLVM adapts to the processor.
#
# A row is passed by address, since the type of its items differs from run to run. With AVX-512 each
# step below is one instruction, since a 64-bit word is a mask there.

LANES = 64
"""Items per row: bits of a word."""

WORDS = 8

_BYTE_BITS = 8
_LANE_FLAGS = ir.VectorType(ir.IntType(1), LANES)
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
    item, zero = builder.trunc(value, ir.IntType(bits)), ir.IntType(32)(0)
    undefined = ir.Constant(_row_type(bits), ir.Undefined)
    one = builder.insert_element(undefined, item, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, lanes)


def _with_levels(builder: Any, row: Any, words: Any, levels: Any, bits: int) -> Any:
    """Return a row whose items are levels[i] where word i has a bit."""
    for i in range(WORDS):
        flags = builder.bitcast(builder.extract_value(words, i), _LANE_FLAGS)
        level = _everywhere(builder, builder.extract_value(levels, i), bits)
        row = builder.select(flags, level, row)
    return row


def _writer(bits: int, keep: bool) -> Callable[..., Any]:
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
`end_stream` after the last row.
"""

add_to_row_8, add_to_row_16, add_to_row_32 = (_writer(bits, keep=True) for bits in (8, 16, 32))
"""add_to_row(address, words, levels): as `write_row`, but other items keep their values."""


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
            flags = builder.bitcast(builder.load(builder.gep(of.data, [index])), _LANE_FLAGS)
            total = builder.add(total, builder.zext(flags, total.type))
        builder.store(total, pointer, align=1)
        return context.get_dummy_value()

    return types.void(counts, words, types.intp), codegen
