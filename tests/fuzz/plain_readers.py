"""Readers of graph files in plain Python, by the letter of the formats: slow, simple, independent.

Each returns the meaning of a file, or raises `BadFileError` if it has none.
"""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field

Pairs = list[tuple[int, int]]
MOST_VERTICES = 2**32 - 2
LONGEST_LINE = 65536
MASK = 2**64 - 1
WEIGHTS = {b"<i4": ("i", "int32", 4), b"<f4": ("f", "float32", 4), b"<f8": ("d", "float64", 8)}


class BadFileError(Exception):
    """The file is not a graph."""


class OtherFormError(Exception):
    """A file in a form that only the package reads: a table, or an odd matrix."""


@dataclass
class Meaning:
    """A graph: every edge in its order for text; stored edges and counts for binary formats."""

    num_vertices: int
    pairs: Pairs
    directed: bool | None = None
    num_input: int | None = None
    input_degree: list[int] = field(default_factory=list)
    weights: list[float] | None = None
    weight_dtype: str = ""
    skew: bool = False


def need(condition: object) -> None:
    """Raise `BadFileError` unless a condition holds."""
    if not condition:
        raise BadFileError


def unzipped(raw: bytes) -> bytes:
    """Return the content of a gzip file."""
    try:
        return gzip.decompress(raw) if raw else b""
    except (OSError, EOFError, zlib.error):
        raise BadFileError from None


def _rows(raw: bytes) -> list[tuple[str, list[str]]]:
    """Return each line, and its words before a comment."""
    need(b"\0" not in raw)
    rows = []
    for line in raw.removeprefix(b"\xef\xbb\xbf").splitlines():
        need(len(line) <= LONGEST_LINE)
        text = line.decode("utf-8", "replace")
        rows.append((text, re.split("[#%]", text)[0].split()))
    return rows


def _pair(words: list[str], lowest: int, highest: int) -> tuple[int, int]:
    need(len(words) > 1)
    need(all(re.fullmatch("[+-]?0*[0-9]{1,99}", word) for word in words[:2]))
    first, second = (int(re.sub("^([+-]?)0+(?=.)", r"\1", word)) for word in words[:2])
    need(lowest <= min(first, second) and max(first, second) <= highest)
    return first - lowest, second - lowest


def _weight(words: list[str], integers: bool = False) -> float:
    need(len(words) > 2 and words[2].isascii() and "_" not in words[2])
    need(not integers or re.fullmatch("[+-]?[0-9]+", words[2]))
    try:
        value = float(words[2])
    except ValueError:
        raise BadFileError from None
    need(not math.isnan(value) and (not math.isinf(value) or "inf" in words[2].lower()))
    return value


def _weight_dtype(rows: list[list[str]]) -> str:
    """Return int32 if the third words are integers within it, else float64."""
    whole = all(re.fullmatch("[+-]?[0-9]+", row[2]) for row in rows)
    within = whole and all(-(2**31) <= float(row[2]) < 2**31 for row in rows)
    return "int32" if within else "float64"


_KONECT = (
    r"(?a)%\s*(sym|asym|bip)\s+(unweighted|positive|posweighted|signed|multisigned|weighted"
    r"|multiweighted|dynamic|multiposweighted)\s*"
)


def _konect(rows: list[tuple[str, list[str]]], form: str, values: str, weighted: bool) -> Meaning:
    """Read what is below KONECT's header."""
    second = rows[1][0] if len(rows) > 1 else ""
    said = re.fullmatch(r"(?a)%\s*(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s*", second)
    count, *sizes = map(int, said.groups()) if said else (0,)
    body = [words for _, words in rows if words]
    need(body or sizes)
    need(values not in ("unweighted", "posweighted", "signed", "weighted") or len(body) >= count)
    pairs = [_pair(words, 1, MOST_VERTICES) for words in body]
    largest = [max((pair[side] + 1 for pair in pairs), default=0) for side in (0, 1)]
    if form != "bip":
        largest = [max(largest)] * 2
        sizes = [max(sizes)] * 2 if sizes else []
    need(not sizes or all(most <= size for most, size in zip(largest, sizes, strict=True)))
    left, right = sizes or largest
    if form == "bip":
        pairs = [(u, v + left) for u, v in pairs]
    meaning = Meaning(left + right if form == "bip" else left, pairs)
    need(meaning.num_vertices <= MOST_VERTICES)
    if weighted:
        meaning.weights = [_weight(words) for words in body]
        meaning.weight_dtype = _weight_dtype(body)
    return meaning


def dimacs(raw: bytes, weighted: bool = True) -> Meaning:
    """Read a DIMACS file of shortest paths or of colouring."""
    problem, pairs, rows = None, [], []
    for line, words in _rows(raw):
        if line.strip()[:1] in ("", "#", "%", "c"):
            continue
        if problem is None:
            known = r"(?a)p\s+(sp|edges?|col)\s+([0-9]{1,20})\s+([0-9]{1,20})"
            problem = re.fullmatch(known, line.strip())
            need(problem)
            num_vertices, count = int(problem[2]), int(problem[3])
            need(num_vertices <= MOST_VERTICES)
            continue
        need(len(words) > 1 and words[0] == ("a" if problem[1] == "sp" else "e"))
        pairs.append(_pair(words[1:], 1, num_vertices))
        rows.append(words[1:])
    need(problem is not None)
    need(len(pairs) == count or (problem[1] != "sp" and 2 * len(pairs) == count))
    weights = [_weight(row) for row in rows] if weighted else None
    return Meaning(
        num_vertices, pairs, weights=weights, weight_dtype=_weight_dtype(rows) if weighted else ""
    )


def edge_list(raw: bytes, weighted: bool = False) -> Meaning:
    """Read a list of edges in SNAP's or KONECT's style."""
    said: dict[str, int] = {}
    pairs: Pairs = []
    rows = []
    konect = re.fullmatch(_KONECT, next(iter(_rows(raw)), ("", []))[0])
    if konect:
        return _konect(_rows(raw), konect[1], konect[2], weighted)
    for number, (line, words) in enumerate(_rows(raw)):
        in_head = not pairs and not words
        if words and not pairs and len(line.split()) == 1 and re.search("[,;|]", line):
            raise OtherFormError
        if words and not pairs and "\t" in line and re.search("[a-z]{2}", line.lower()):
            raise OtherFormError  # a line of column names
        need(not (number == 0 and line.lower().startswith("%%matrixmarket")))
        if in_head:
            for key, digits in re.findall(r"(?a)\b(nodes|edges):\s*(\d+)", line.lower()):
                said.setdefault(key, int(digits[:20]))
        if words:
            pairs.append(_pair(words, 0, MOST_VERTICES - 1))
            rows.append(words)
    need(pairs or "nodes" in said)
    need(len(pairs) >= said.get("edges", 0))
    num_vertices = max([said.get("nodes", 0), *(max(pair) + 1 for pair in pairs)])
    need(num_vertices <= MOST_VERTICES)
    meaning = Meaning(num_vertices, pairs)
    if weighted:
        meaning.weights = [_weight(row) for row in rows]
        meaning.weight_dtype = _weight_dtype(rows)
    return meaning


def matrix_market(raw: bytes, weighted: bool = False) -> Meaning:
    """Read a square coordinate matrix; each entry once."""
    rows = _rows(raw)
    need(rows)
    head = rows[0][0].lower()
    if "matrix" not in head or re.match("%matrix", head) or re.search("array|unsigned", head):
        raise OtherFormError
    need(head.startswith("%%matrixmarket") and re.fullmatch(r"[\x00-\x7f]*", head))
    words = re.split(r"[ \t\v\f]+", head.strip(" \t\v\f"))
    need(words[:3] == ["%%matrixmarket", "matrix", "coordinate"] and len(words) == 5)
    need(words[3] in ("pattern", "real", "integer", "double", "complex"))
    need(words[4] in ("general", "symmetric", "skew-symmetric", "hermitian"))
    body = [(line, found) for line, found in rows[1:] if found]
    need(body)
    size = body[0][0].split()
    if len(size) == 2 and all(word.isdigit() for word in size):
        raise OtherFormError
    need(len(size) == 3 and all(re.fullmatch("[0-9]{1,20}", word) for word in size))
    num_vertices, columns, entries = map(int, size)
    need(num_vertices == columns and num_vertices <= MOST_VERTICES)
    pairs = [_pair(found, 1, num_vertices) for _, found in body[1:]]
    need(len(pairs) == entries)
    meaning = Meaning(num_vertices, pairs, skew=weighted and words[4] == "skew-symmetric")
    if weighted:
        need(words[3] not in ("pattern", "complex"))
        integers, found = words[3] == "integer", [found for _, found in body[1:]]
        meaning.weights = [_weight(row, integers) for row in found]
        meaning.weight_dtype = _weight_dtype(found) if integers else "float64"
    return meaning


def _take(raw: bytes, start: int, code: str, count: int) -> list[int]:
    need(count >= 0 and start + struct.calcsize(code) * count <= len(raw))
    return list(struct.unpack_from(f"<{count}{code}", raw, start))


def _listed(offsets: list[int], ids: list[int]) -> Pairs:
    need(offsets[0] == 0 and offsets[-1] == len(ids) and offsets == sorted(offsets))
    need(all(v < len(offsets) - 1 for v in ids))
    return [(u, v) for u in range(len(offsets) - 1) for v in ids[offsets[u] : offsets[u + 1]]]


def _need_symmetry(pairs: Pairs) -> None:
    need(Counter(pairs) == Counter((v, u) for u, v in pairs))


def least(pairs: Pairs, weights: list[float]) -> dict[tuple[int, int], float]:
    """Return the smallest weight of each edge that is no loop."""
    found: dict[tuple[int, int], float] = {}
    for (u, v), weight in zip(pairs, weights, strict=True):
        if u != v:
            found[u, v] = min(weight, found.get((u, v), weight))
    return found


def _need_like_weights(pairs: Pairs, weights: list[float]) -> None:
    found = least(pairs, weights)
    need(all(found[u, v] == found[v, u] for u, v in found))


def serialized(raw: bytes, weighted: bool = False) -> Meaning:
    """Read GAP's .sg, or .wsg with weights.

    The transposed lists of a directed graph are not looked at.
    """
    step = 8 if weighted else 4
    need(len(raw) >= 17)
    directed, num_stored, num_vertices = struct.unpack_from("<Bqq", raw)
    need(directed < 2 and num_stored >= 0 and 0 <= num_vertices <= 2**31)
    need(len(raw) == 17 + (1 + directed) * (8 * (num_vertices + 1) + step * num_stored))
    offsets = _take(raw, 17, "q", num_vertices + 1)
    first = 17 + 8 * (num_vertices + 1)
    listed = [struct.unpack_from("<I", raw, first + step * i)[0] for i in range(num_stored)]
    pairs = _listed(offsets, listed)
    if not directed:
        _need_symmetry(pairs)
    meaning = Meaning(num_vertices, pairs, bool(directed))
    if weighted:
        places = range(first + 4, first + 8 * num_stored, 8)
        meaning.weights = [struct.unpack_from("<i", raw, place)[0] for place in places]
        meaning.weight_dtype = "int32"
        if not directed:
            _need_like_weights(pairs, meaning.weights)
    return meaning


def word_sum(raw: bytes) -> int:
    """Return the checksum of a section of .hbg and its padding."""
    total = 0
    for position, (word,) in enumerate(struct.iter_unpack("<Q", raw), 1):
        z = (word + position * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        total += z ^ (z >> 31)
    return total & MASK


def filled(size: int) -> int:
    """Return a size rounded up to a multiple of 64."""
    return -(-size // 64) * 64


def table_end(raw: bytes) -> int:
    """Return the end of a version 2 file's table."""
    (count,) = struct.unpack_from("<I", raw, 48)
    need(0 < count <= 16)
    need(len(raw) >= filled(64 + 48 * count))
    return filled(64 + 48 * count)


def _sections(
    raw: bytes, num_vertices: int, num_stored: int
) -> tuple[list[int], tuple[bytes, int] | None]:
    """Return where the three sections of version 2 begin, and dtype and place of any weights.

    All bytes are checked.
    """
    end = table_end(raw)
    (count, zeros, crc) = struct.unpack_from("<I8sI", raw, 48)
    need(crc == zlib.crc32(raw[:60] + raw[64:end]) and not any(zeros))
    need(not any(raw[64 + 48 * count : end]))
    known: dict[bytes, list[tuple[bytes, int, int]]] = {}
    for entry in range(count):
        name, dtype, start, size, total = struct.unpack_from("<16s8sQQQ", raw, 64 + 48 * entry)
        need(start == end)
        end = start + filled(size)
        need(end <= len(raw) and word_sum(raw[start:end]) == total)
        known.setdefault(name.rstrip(b"\0"), []).append((dtype.rstrip(b"\0"), size, start))
    need(end == len(raw))
    sizes = {b"indptr": 8 * (num_vertices + 1), b"indices": 4 * num_stored}
    sizes[b"input_degree"] = 4 * num_vertices
    for name, size in sizes.items():
        dtype = b"<i8" if name == b"indptr" else b"<u4"
        need([found[:2] for found in known.get(name, [])] == [(dtype, size)])
    weights = None
    if b"weights" in known:
        [*others, (dtype, size, start)] = known[b"weights"]
        need(not others and dtype in WEIGHTS and size == num_stored * WEIGHTS[dtype][2])
        weights = dtype, start
    return [known[name][0][2] for name in sizes], weights


def hbg(raw: bytes, weighted: bool = False) -> Meaning:
    """Read our own format."""
    need(len(raw) >= 64 and raw.startswith(b"\x89HBG\r\n\x1a\n"))
    version, directed, num_vertices, num_stored, num_input = struct.unpack_from("<IIQQQ", raw, 8)
    need(version == 2 and directed < 2 and num_vertices <= MOST_VERTICES)
    starts, weights = _sections(raw, num_vertices, num_stored)
    offsets = _take(raw, starts[0], "q", num_vertices + 1)
    pairs = _listed(offsets, _take(raw, starts[1], "I", num_stored))
    degree = _take(raw, starts[2], "I", num_vertices)
    need(pairs == sorted(set(pairs)) and all(u != v for u, v in pairs))
    need(all(d >= b - a for d, a, b in zip(degree, offsets, offsets[1:], strict=False)))
    if not directed:
        _need_symmetry(pairs)
    ends = sum(degree)
    need(directed or ends % 2 == 0)
    loops = num_input - (ends if directed else ends // 2)
    need(loops >= 0 and num_input * (1 if directed else 2) < 2**63)
    need(loops == struct.unpack_from("<Q", raw, 40)[0])
    meaning = Meaning(num_vertices, pairs, bool(directed), num_input, degree)
    if weighted:
        need(weights is not None)
        code, meaning.weight_dtype, _ = WEIGHTS[weights[0]]
        found = struct.unpack_from(f"<{num_stored}{code}", raw, weights[1])
        meaning.weights = list(found)
        need(not any(map(math.isnan, found)))
        if not directed:
            _need_like_weights(pairs, meaning.weights)
    return meaning
