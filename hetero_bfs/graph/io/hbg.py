"""Our own format of graph files, `.hbg`: neighbour lists that can be mapped into memory.

A file is little-endian. It is a header, a table of sections, and the sections. Each part is
padded with zeros to a multiple of 64 bytes, and checksums cover every byte of the file.

| byte | type | header |
|---|---|---|
| 0 | 8 bytes | magic, 89 48 42 47 0d 0a 1a 0a |
| 8 | uint32 | version, 2 |
| 12 | uint32 | flags: bit 0 means directed, the others are zero |
| 16 | uint64 | vertices |
| 24 | uint64 | stored edges |
| 32 | uint64 | input edges, self-loops and duplicates included |
| 40 | uint64 | self-loops among the input edges |
| 48 | uint32 | sections |
| 52 | 8 bytes | zeros |
| 60 | uint32 | CRC-32 (zlib's) of bytes 0 to 59 and of the table with its zeros |

An entry of the table has 48 bytes: name and NumPy dtype (16 and 8 bytes of ASCII, padded with
zeros), then as uint64 the section's first byte, its length in bytes, and the checksum
(graph/kernels/digests.py) of the section and its padding. The sections follow in the table's order:
`indptr` (<i8), `indices` (<u4) and `input_degree` (<u4), as in `CSRGraph`, are always there.
`weights` (<i4, <f4 or <f8) has the weight of each stored edge, and only weighted graphs have it.
`names` has the names of the vertices, and only graphs with names have it: integers (<i8 or <u8), or
UTF-8 (|u1) of one name after the other, and then `name_ends` (<i8) where each ends. `layers` (<i8)
has the end of each layer, and only graphs that are numbered layer by layer have it.
Sections of other names are checked and otherwise ignored.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import OffsetArray
from hetero_bfs.graph.io.graph_files import GraphFile, Place, Wanted, check_size, refuse
from hetero_bfs.graph.list_checks import (
    MAX_VERTICES,
    degree_fault,
    lists_faults,
    range_fault,
)
from hetero_bfs.graph.vertex_names import NameArray
from hetero_bfs.graph.weights import nan_fault, symmetry_fault
from hetero_bfs.support.files import write_array
from hetero_bfs.support.memory import aligned_empty

if TYPE_CHECKING:
    from io import BufferedIOBase

_MAGIC = b"\x89HBG\r\n\x1a\n"  # as in PNG: a transfer as text would change it
_VERSION = 2
_ALIGNMENT_BYTES = 64
_DIRECTED = 1
_MOST_SECTIONS = 16
_MAPPED_FROM_BYTES = 1 << 26
_NAMES = ("indptr", "indices", "input_degree", "weights")
_WEIGHTS = ("<i4", "<f4", "<f8")

_FIELDS = struct.Struct("<8sIIQQQ")
_MORE_FIELDS = struct.Struct("<QI8sI")  # bytes 40 to 63
_CHECKSUM = struct.Struct("<I")
_ENTRY = struct.Struct("<16s8sQQQ")


class _Section(NamedTuple):
    name: str
    dtype: str
    start: int
    num_bytes: int
    checksum: int

    @property
    def end(self) -> int:
        """The first byte after the section and its padding."""
        return _align(self.start + self.num_bytes)

    def array(self, content: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        return content[self.start : self.start + self.num_bytes].view(self.dtype)


class _Header(NamedTuple):
    directed: bool
    num_input: int
    num_loops: int
    sections: Sequence[_Section]


def read_hbg(file: GraphFile, wanted: Wanted) -> CSRGraph:
    """Read a file; its arrays are read-only.

    Without `weighted`, weights are only checked by their checksum. If a directed file is read as
    undirected, the smaller weight of an edge's two directions counts.

    A file of 64 MiB or more is mapped into memory, a smaller one is copied. If another program
    truncates a mapped file while the graph is in use, the system ends this process (SIGBUS). Our
    own `write` replaces a file by a new one, and mappings keep the old one.
    """
    with file.opened() as handle:
        header = _read_header(handle, file)
        content = _content(handle, file)
    for section in header.sections:
        _check_section(file, section, content)
    graph = _checked_graph(file, header, content, wanted.weighted)
    names = _names_of(file, header.sections, content, graph.num_vertices)
    if graph.directed == wanted.directed:
        graph.__dict__["names"] = names
        graph.__dict__["layers"] = _layers_of(file, header.sections, content, graph.num_vertices)
        return graph
    if graph.directed:
        rows = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), np.diff(graph.indptr))
        ends = rows, graph.indices
        return CSRGraph.from_edge_source(
            EdgeList.trusted(*ends, graph.num_vertices, weights=graph.weights, names=names)
        )
    num_loops = graph.num_self_loops
    num_input = 2 * (graph.num_input_edges - num_loops) + num_loops
    lists = graph.indptr, graph.indices
    degree = graph.input_degree
    return CSRGraph.trusted(*lists, True, num_input, degree, graph.weights, names)


def hbg_size(file: GraphFile) -> int:
    return next(s.num_bytes for s in _sections_of(file) if s.name == "indptr") // 8 - 1


def hbg_has_names(file: GraphFile) -> bool:
    return any(section.name == "names" for section in _sections_of(file))


def _sections_of(file: GraphFile) -> Sequence[_Section]:
    with file.opened() as handle:
        return _read_header(handle, file).sections


def write_hbg(graph: CSRGraph, handle: BufferedIOBase) -> None:
    """Write a file; raise `GraphError` if input edges and input degrees do not match."""
    import zlib

    arrays: dict[str, npt.NDArray[Any]] = {
        "indptr": np.ascontiguousarray(graph.indptr, "<i8"),
        "indices": np.ascontiguousarray(graph.indices, "<u4"),
        "input_degree": np.ascontiguousarray(graph.input_degree, "<u4"),
    }
    if graph.weights is not None:
        dtype = graph.weights.dtype.newbyteorder("<")
        arrays["weights"] = np.ascontiguousarray(graph.weights, dtype)
    if graph.names is not None:
        arrays |= _sections_of_names(graph.names)
    if graph.layers is not None:
        arrays["layers"] = np.ascontiguousarray(graph.layers, "<i8")
    num_loops = graph.num_self_loops
    sizes = graph.num_vertices, graph.num_stored_edges, graph.num_input_edges
    head = _FIELDS.pack(_MAGIC, _VERSION, _DIRECTED if graph.directed else 0, *sizes)
    head += _MORE_FIELDS.pack(num_loops, len(arrays), bytes(8), 0)[: -_CHECKSUM.size]
    table, start = b"", _table_end(len(arrays))
    for name, array in arrays.items():
        code = array.dtype.newbyteorder("<").str.encode()
        table += _ENTRY.pack(name.encode(), code, start, array.nbytes, _checksum(array))
        start = _align(start + array.nbytes)
    table += bytes(_table_end(len(arrays)) - _ALIGNMENT_BYTES - len(table))
    handle.write(head + _CHECKSUM.pack(zlib.crc32(head + table)) + table)
    for array in arrays.values():
        write_array(handle, array)
        handle.write(bytes(_align(array.nbytes) - array.nbytes))


def _sections_of_names(names: NameArray) -> dict[str, npt.NDArray[Any]]:
    if names.dtype.kind in "iu":
        return {"names": names.astype("<u8" if names.dtype.kind == "u" else "<i8")}
    raw = [str(name).encode() for name in names.tolist()]
    ends = np.cumsum([len(name) for name in raw], dtype="<i8")
    return {"names": np.frombuffer(b"".join(raw), np.uint8), "name_ends": ends}


def _names_of(
    file: GraphFile, sections: Sequence[_Section], content: npt.NDArray[np.uint8], count: int
) -> NameArray | None:
    at = {section.name: section for section in sections}
    found = at.get("names")
    if found is None:
        return None
    names = None
    if found.dtype in ("<i8", "<u8") and found.num_bytes == 8 * count:
        names = found.array(content)
    elif found.dtype == "|u1" and "name_ends" in at:
        part = at["name_ends"]
        if part.dtype == "<i8" and part.num_bytes == 8 * count:
            names = _decoded(found.array(content), part.array(content))
    if names is None:
        raise GraphFileError(
            f"{file}: header: byte {_ALIGNMENT_BYTES}: section names holds {found.num_bytes} bytes "
            f"of {found.dtype}, which are not {count} names: damaged, write the file again"
        )
    return names


def _layers_of(
    file: GraphFile, sections: Sequence[_Section], content: npt.NDArray[np.uint8], count: int
) -> OffsetArray | None:
    found = next((section for section in sections if section.name == "layers"), None)
    if found is None:
        return None
    if found.dtype == "<i8" and found.num_bytes % 8 == 0:
        ends = found.array(content)
        if ends.size and ends[0] > 0 and ends[-1] <= count and (ends[1:] > ends[:-1]).all():
            return ends
    raise GraphFileError(
        f"{file}: header: byte {_ALIGNMENT_BYTES}: section layers holds {found.num_bytes} bytes of "
        f"{found.dtype}, which are not rising ends up to {count}: damaged, write the file again"
    )


def _decoded(raw: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> NameArray | None:
    starts = np.append(0, ends[:-1])
    if (ends < starts).any() or (ends[-1:] != raw.size).any():
        return None
    text = raw.tobytes()
    names = np.empty(ends.size, object)
    try:
        names[:] = [text[i:j].decode() for i, j in zip(starts, ends, strict=True)]
    except UnicodeDecodeError:
        return None
    return names


def _align(offset: int) -> int:
    return -(-offset // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _table_end(num_sections: int) -> int:
    return _align(_ALIGNMENT_BYTES + num_sections * _ENTRY.size)


def _checksum(array: npt.NDArray[Any]) -> int:
    from hetero_bfs.graph.kernels.digests import sum_of_words

    raw = array.view(np.uint8)
    whole = raw.size // 8 * 8
    rest = np.zeros(_align(raw.size) - whole, np.uint8)
    rest[: raw.size - whole] = raw[whole:]
    words = sum_of_words(raw[:whole].view("<u8"), 0)
    return (int(words) + int(sum_of_words(rest.view("<u8"), whole // 8))) % 2**64


def _content(handle: BufferedIOBase, file: GraphFile) -> npt.NDArray[np.uint8]:
    num_bytes = os.fstat(handle.fileno()).st_size
    if num_bytes >= _MAPPED_FROM_BYTES:
        return np.memmap(handle, np.uint8, "r").view(np.ndarray)
    content: npt.NDArray[np.uint8] = aligned_empty(num_bytes, np.uint8)
    handle.seek(0)
    check_size(file, handle.readinto(content.data), num_bytes)
    content.flags.writeable = False
    return content


def _read_header(handle: BufferedIOBase, file: GraphFile) -> _Header:
    num_bytes = os.fstat(handle.fileno()).st_size
    head = handle.read(_ALIGNMENT_BYTES)
    if not head.startswith(_MAGIC[: len(head)]):
        raise GraphFileError(
            f"{file}: header: byte 0: {head[:8]!r} is not the mark of an .hbg file, {_MAGIC!r}; "
            "check the name, or write the file again"
        )
    if len(head) < _ALIGNMENT_BYTES:
        check_size(file, num_bytes, _ALIGNMENT_BYTES)
    _, version, flags, num_vertices, num_stored, num_input = _FIELDS.unpack_from(head)
    if version != _VERSION:
        raise GraphFileError(
            f"{file}: header: byte 8: .hbg version {version}; this hetero_bfs reads version "
            f"{_VERSION}: update hetero_bfs or write the file again"
        )
    num_loops, table = _read_table(handle, file, head)
    if flags & ~_DIRECTED or num_vertices > MAX_VERTICES:
        raise GraphFileError(
            f"{file}: header: byte 12: flags {flags:#x}, {num_vertices} vertices; at most flag "
            f"{_DIRECTED:#x} and {MAX_VERTICES} vertices: damaged, write the file again"
        )
    check_size(file, num_bytes, table[-1].end)
    _check_table(file, table, num_vertices, num_stored)
    return _Header(bool(flags & _DIRECTED), num_input, num_loops, table)


def _read_table(handle: BufferedIOBase, file: GraphFile, head: bytes) -> tuple[int, list[_Section]]:
    """Check all bytes before the sections; return the number of self-loops and the sections."""
    import zlib

    num_loops, num_sections, zeros, expected = _MORE_FIELDS.unpack_from(head, _FIELDS.size)
    if not 0 < num_sections <= _MOST_SECTIONS:
        raise GraphFileError(
            f"{file}: header: byte 48: {num_sections} sections; 1 to {_MOST_SECTIONS} are known: "
            "damaged, or of a newer hetero_bfs: write the file again, or update"
        )
    end = _table_end(num_sections)
    table = handle.read(end - len(head))
    check_size(file, len(head + table), end)
    actual = zlib.crc32(head[: -_CHECKSUM.size] + table)
    if actual != expected:
        raise GraphFileError(
            f"{file}: header: byte 60: its checksum is {actual:#010x}, and {expected:#010x} is "
            "stored: the file is damaged, write or fetch it again"
        )
    used = num_sections * _ENTRY.size
    if any(zeros) or any(table[used:]):
        raise GraphFileError(
            f"{file}: header: byte 52: the reserved bytes are {zeros!r}, and {table[used:]!r} "
            "behind the table; zeros are expected: update hetero_bfs"
        )
    sections = []
    for name, dtype, *numbers in _ENTRY.iter_unpack(table[:used]):
        text = (part.rstrip(b"\0").decode("ascii", "backslashreplace") for part in (name, dtype))
        sections.append(_Section(*text, *numbers))
    return num_loops, sections


def _check_table(
    file: GraphFile, table: list[_Section], num_vertices: int, num_stored: int
) -> None:
    """Check that the sections are contiguous, and that each required section exists once."""
    start = _table_end(len(table))
    for number, section in enumerate(table):
        if section.start != start:
            raise GraphFileError(
                f"{file}: header: byte {_ALIGNMENT_BYTES + _ENTRY.size * number}: section "
                f"{section.name!r} starts at byte {section.start}; it must start at {start}: "
                "damaged, write the file again"
            )
        start = section.end
    for name, dtypes, count in (
        ("indptr", ("<i8",), num_vertices + 1),
        ("indices", ("<u4",), num_stored),
        ("input_degree", ("<u4",), num_vertices),
        ("weights", _WEIGHTS, num_stored),  # which may be missing
    ):
        found = [(s.dtype, s.num_bytes) for s in table if s.name == name]
        known = [(dtype, count * int(dtype[-1])) for dtype in dtypes]
        if (found or name != "weights") and not (len(found) == 1 and found[0] in known):
            expected = " or ".join(f"{size} bytes of {dtype}" for dtype, size in known)
            raise GraphFileError(
                f"{file}: header: byte {_ALIGNMENT_BYTES}: section {name} is "
                f"{found or 'missing'} in the table; one entry with {expected} is expected: "
                "damaged, write the file again"
            )


def _check_section(file: GraphFile, section: _Section, content: npt.NDArray[np.uint8]) -> None:
    actual = _checksum(content[section.start : section.end])
    if actual != section.checksum:
        raise GraphFileError(
            f"{file}: section {section.name}: bytes {section.start} to {section.end - 1}: their "
            f"checksum is {actual:#018x}, and {section.checksum:#018x} is stored: the file is "
            "damaged, write or fetch it again"
        )


def _checked_graph(
    file: GraphFile, header: _Header, content: npt.NDArray[np.uint8], weighted: bool
) -> CSRGraph:
    """Check every entry, and build a graph from views of the content.

    Checksums detect damage but not the output of a faulty program, and searches follow the
    neighbour lists without checks.
    """
    at = {section.name: section for section in header.sections if section.name in _NAMES}
    if weighted and "weights" not in at:
        raise GraphFileError(
            f"{file}: header: byte 48: the file has no section weights; give a file with weights, "
            "or read this one without"
        )
    arrays = {name: part.array(content) for name, part in at.items()}
    places = {name: Place(at[name].start, array.itemsize) for name, array in arrays.items()}
    indptr, indices, input_degree = (arrays[name] for name in _NAMES[:3])
    refuse(file, range_fault(indptr, indices), places)
    order, reverse = lists_faults(indptr, indices)
    refuse(file, order, places)
    if not header.directed:
        refuse(file, reverse, places)
    refuse(file, degree_fault(input_degree, indptr), places)
    _check_input_edges(file, header, int(input_degree.sum(dtype=np.int64)))
    weights = arrays["weights"] if weighted else None
    if weights is not None:
        refuse(file, nan_fault(weights), places)
        if not header.directed:
            refuse(file, symmetry_fault(indptr, indices, weights), places)
    lists = indptr, indices
    return CSRGraph.trusted(*lists, header.directed, header.num_input, input_degree, weights)


def _check_input_edges(file: GraphFile, header: _Header, ends: int) -> None:
    """Check that the input edges without self-loops have `ends` ends, the sum of the degrees."""
    ends_per_edge = 1 if header.directed else 2
    fit = ends == (header.num_input - header.num_loops) * ends_per_edge
    if not fit or header.num_input * ends_per_edge >= 2**63:
        raise GraphFileError(
            f"{file}: header: byte 32: {header.num_input} input edges, {header.num_loops} of them "
            f"self-loops, and their ends at vertices are {ends}: damaged, write the file again"
        )
