"""Graph files damaged at random: each must be read as a plain parser does, or refused in a line.

Some of the graphs that are read are searched, too, on the host and on a device.
"""

from __future__ import annotations

import gzip
import random
import re
import struct
import tempfile
import traceback
import zlib
from functools import cache, partial
from pathlib import Path

import numpy as np

import hetero_bfs as hb
from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from tests.fuzz import plain_readers as plain
from tests.fuzz.campaign import Attempt, Campaign

Random = random.Random
FORMATS = {
    "edges": plain.edge_list,
    "edges.gz": plain.edge_list,
    "mtx": plain.matrix_market,
    "mtx.gz": plain.matrix_market,
    "konect": plain.edge_list,
    "gr": plain.dimacs,
    "sg": plain.serialized,
    "hbg": plain.hbg,
    "wel": partial(plain.edge_list, weighted=True),
    "wel.gz": partial(plain.edge_list, weighted=True),
    "wmtx": partial(plain.matrix_market, weighted=True),
    "wsg": partial(plain.serialized, weighted=True),
    "whbg": partial(plain.hbg, weighted=True),
}
WEIGHTED = ("gr", "wel", "wel.gz", "wmtx", "wsg", "whbg")
_TEXT = (".el", ".txt", ".tsv", ".wel")
SUFFIXES = {"edges": _TEXT, "wel": _TEXT, "konect": _TEXT[1:3], "gr": (".gr", ".col")}
SUFFIXES |= {"wmtx": (".mtx",), "whbg": (".hbg",)}
_SOUND_FILES = 60  # of each format
_SEARCHED_ONE_IN = 256  # an engine takes longer to open than many files to read
MAY_LACK_MEMORY = 1_000_000  # this many vertices or more may exceed a machine's memory
WORDS_TEXT = """0 1 -1 -0 +1 00 1.0 1e3 nan inf 0x1 1_0 1,2 '' "1" true ٣ é # % %% #1 1#
Nodes: 3 2147483647 2147483648 4294967293 4294967294 4294967295 4294967296 9223372036854775807
18446744073709551615 18446744073709551616 99999999999999999999999999 3 4 5 6 7 8
-2147483648 -2147483649 2.5 .5 5. . - 1e -.5E+2 +7e-1 1e22 1e23 1e400 -1e-400 9007199254740993.5
0.1000000000000000055511151231257827 -inf Infinity 1.5.5"""
WORDS = WORDS_TEXT.split()
NUMBERS = [0, 1, 2, 3, 7, 64, 255, 2**31 - 1, 2**31, 2**32 - 3, 2**32 - 2, 2**32 - 1, 2**32]
NUMBERS += [2**40, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]
ENDS = [b"\n", b"\r\n", b"\r", b"\n\r", b"\n\n", b"\v", b"\x1c", b"\x85", "\u2028".encode(), b""]
PLACE = re.compile(r":\d+: |bytes? \d|\d bytes|after \d+ lines|holds \d+ edges")


def make(form: str, chance: Random) -> tuple[str, bytes]:
    """Return the suffix and the content of a damaged file."""
    suffix = chance.choice(SUFFIXES.get(form.removesuffix(".gz"), (f".{form.split('.')[0]}",)))
    raw = _sound(form, chance.randrange(_SOUND_FILES))
    text = suffix not in (".sg", ".wsg", ".hbg")
    damages = (TEXT_DAMAGES if text else BINARY_DAMAGES) + DAMAGES
    zipped = form.endswith(".gz")
    inside = not zipped or chance.random() < 0.7
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3)) if inside else 0):
        raw = chance.choice(damages)(raw, chance)
    if form in ("hbg", "whbg") and chance.random() < 0.6:
        raw = _resealed(raw)
    if zipped:
        raw = gzip.compress(raw, chance.choice((0, 1, 9)), mtime=0)
        if not inside:
            raw = chance.choice(DAMAGES)(raw, chance)
    return suffix + (".gz" if zipped else ""), raw


@cache
def _sound(form: str, number: int) -> bytes:
    """Return one of the sound files to damage; it is kept, since making one takes long."""
    chance = Random(f"{form} {number}")
    n = chance.choice((0, 1, 2, 5, 9, 20))
    m = chance.choice((0, 1, 3, 10, 40)) if n else 0
    ends = np.array([chance.randrange(n) for _ in range(2 * m)], np.int64).reshape(2, m)
    weights = _weights(form, m, chance) if form in WEIGHTED else None
    edges = EdgeList.from_arrays(*ends, n, chance.random() < 0.5, weights)
    if form in ("konect", "gr"):
        return _with_header(form, edges, chance)
    if form == "wsg" and chance.random() < 0.5:
        return _disordered(edges, chance)
    form = form.removesuffix(".gz")
    suffix = {"edges": "el", "wmtx": "mtx", "whbg": "hbg"}.get(form, form)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sound.{suffix}"
        io.write(edges, path)
        raw = path.read_bytes()
    if form == "wmtx" and chance.random() < 0.3:
        raw = raw.replace(b" symmetric", b" skew-symmetric")
    return raw


def _with_header(form: str, edges: EdgeList, chance: Random) -> bytes:
    """Return a file of KONECT or DIMACS, whose ids start at 1."""
    n, ends = edges.num_vertices, (edges.src + 1, edges.dst + 1)
    rows = list(zip(*(array.tolist() for array in ends), strict=True))
    if form == "konect":
        values = chance.choice(("unweighted", "positive"))
        head = f"% {chance.choice(('sym', 'asym', 'bip'))} {values}\n"
        if chance.random() < 0.7 or not rows:
            head += f"% {len(rows)} {n} {n + chance.choice((0, 0, 2))}\n"
        return (head + "".join(f"{u} {v}\n" for u, v in rows)).encode()
    kind, mark = chance.choice((("sp", "a"), ("edge", "e"), ("col", "e")))
    text = f"c\np {kind} {n} {len(rows)}\n"
    for (u, v), weight in zip(rows, edges.weights.tolist(), strict=True):
        text += f"{mark} {u} {v} {weight}\n" + "c x\n" * (chance.random() < 0.1)
    return text.encode()


def _disordered(edges: EdgeList, chance: Random) -> bytes:
    """Return a .wsg file whose lists have loops and duplicates, in any order."""
    lists = [[] for _ in range(edges.num_vertices)]
    turned = [[] for _ in lists] if edges.directed else lists
    for u, v, w in zip(edges.src, edges.dst, edges.weights, strict=True):
        lists[u].append((v, w))
        turned[v].append((u, w))
    raw = struct.pack("<?qq", edges.directed, sum(map(len, lists)), len(lists))
    for part in (lists, turned) if edges.directed else (lists,):
        raw += np.cumsum([0, *map(len, part)]).astype("<i8").tobytes()
        for neighbours in part:
            chance.shuffle(neighbours)
            raw += b"".join(struct.pack("<Ii", *neighbour) for neighbour in neighbours)
    return raw


def _weights(form: str, count: int, chance: Random) -> np.ndarray:
    dtype = np.int32 if form == "wsg" else chance.choice((np.int32, np.float32, np.float64))
    if dtype == np.int32:
        return np.array([chance.randrange(-(2**31), 2**31) for _ in range(count)], dtype)
    return np.array([chance.choice((chance.random(), 2.5, 7.0, 1e-9)) for _ in range(count)], dtype)


def _cut(raw: bytes, chance: Random) -> bytes:
    return raw[: chance.randrange(len(raw) + 1)]


def _flip(raw: bytes, chance: Random) -> bytes:
    if not raw:
        return raw
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]


def _span(raw: bytes, chance: Random) -> tuple[int, int]:
    first = chance.randrange(len(raw) + 1)
    return first, min(first + chance.choice((1, 2, 4, 8, 16, 64)), len(raw))


def _drop(raw: bytes, chance: Random) -> bytes:
    first, last = _span(raw, chance)
    return raw[:first] + raw[last:]


def _repeat(raw: bytes, chance: Random) -> bytes:
    first, last = _span(raw, chance)
    return raw[:last] + raw[first:last] * chance.choice((1, 2, 8)) + raw[last:]


def _noise(raw: bytes, chance: Random) -> bytes:
    first, last = _span(raw, chance)
    return raw[:first] + chance.randbytes(chance.choice((0, 1, last - first))) + raw[last:]


def _number(raw: bytes, chance: Random) -> bytes:
    code = chance.choice(("<I", "<Q"))
    size = struct.calcsize(code)
    steps = len(raw) // size
    at = size * chance.randrange(steps) + chance.choice((0, 0, 1)) if steps else 0
    value = chance.choice(NUMBERS) % 256**size
    return raw[:at] + struct.pack(code, value) + raw[at + size :]


def _near(raw: bytes, chance: Random) -> bytes:
    """Add 1 to a number, or take 1 off."""
    at = 4 * chance.randrange(max(len(raw) // 4, 1)) + chance.choice((0, 0, 1))
    if at + 4 > len(raw):
        return raw
    (value,) = struct.unpack_from("<I", raw, at)
    changed = (value + chance.choice((-1, 1))) % 2**32
    return raw[:at] + struct.pack("<I", changed) + raw[at + 4 :]


def _word(raw: bytes, chance: Random) -> bytes:
    """Replace, drop or add a word."""
    words = list(re.finditer(rb"\S+", raw))
    if not words:
        return chance.choice(WORDS).encode()
    found = chance.choice(words)
    new = chance.choice((b"", *[chance.choice(WORDS).encode() for _ in range(4)]))
    if chance.random() < 0.3:
        new = found[0] + chance.choice((b" ", b"\t", b"\xc2\xa0", b",")) + new
    return raw[: found.start()] + new + raw[found.end() :]


def _line_ends(raw: bytes, chance: Random) -> bytes:
    """Change all line ends, or one."""
    most = chance.choice((-1, 1, 2))
    return raw.replace(b"\n", chance.choice(ENDS), most)


def _line(raw: bytes, chance: Random) -> bytes:
    """Move, double or drop a line, or make it a comment or too long."""
    lines = raw.split(b"\n")
    at = chance.randrange(len(lines))
    line = lines.pop(at)
    long = line + chance.choice(b" #0x").to_bytes(1, "little") * chance.choice((65_000, 66_000))
    put = chance.choice((b"", line + b"\n" + line, b"#" + line, b"%" + line, line + b" 1", long))
    lines.insert(chance.choice((at, chance.randrange(len(lines) + 1))), put)
    return b"\n".join(lines)


def _encoding(raw: bytes, chance: Random) -> bytes:
    marks = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0", b"\n", b"", b"\x1f\x8b"
    code = chance.choice(("latin-1", "latin-1", "utf-16", "utf-16-le", "utf-32", "utf-7", "cp500"))
    return chance.choice(marks) + raw.decode("latin-1").encode(code)


DAMAGES = (_cut, _flip, _flip, _drop, _repeat, _noise)
BINARY_DAMAGES = (_number, _number, _near, _near)
TEXT_DAMAGES = (_word, _word, _word, _line_ends, _line, _line, _encoding)


def _resealed(raw: bytes) -> bytes:
    """Return a damaged .hbg file of version 2 with the right checksums where its table says."""
    try:
        end = plain.table_end(raw)
    except (plain.BadFileError, struct.error):
        return raw
    out = bytearray(raw)
    for at in range(64, end - 47, 48):
        start, size = struct.unpack_from("<QQ", raw, at + 24)
        part = raw[start : start + plain.filled(size)]
        if len(part) == plain.filled(size) and any(raw[at : at + 48]):
            struct.pack_into("<Q", out, at + 40, plain.word_sum(part))
    struct.pack_into("<I", out, 60, zlib.crc32(bytes(out[:60] + out[64:end])))
    return bytes(out)


def trouble(path: Path, form: str, directed: bool, searched: bool) -> str | None:
    """Read a file, and search in it; return what is wrong with how that went, None if nothing."""
    raw = path.read_bytes()
    expected = None
    judged = True
    try:
        expected = FORMATS[form](plain.unzipped(raw) if path.suffix == ".gz" else raw)
    except plain.OtherFormError:
        judged = False
    except plain.BadFileError:
        pass
    if expected is not None and expected.skew and not directed:
        expected = None
    try:
        graph = io.read(path, directed, form in WEIGHTED)
    except GraphFileError as error:
        message = str(error)
        if "\n" in message or not message.startswith(str(path)) or not PLACE.search(message):
            return f"the message names no place in one line: {message!r}"
        if expected is not None and expected.num_vertices < MAY_LACK_MEMORY:
            return f"refused, but a plain parser reads it: {message}"
        return None
    except Exception:
        return traceback.format_exc()
    if not judged:
        return None
    if expected is None:
        return "read, but a plain parser finds no graph in it"
    wrong = _difference(graph, expected, directed, raw)
    if wrong is None and searched and 0 < graph.num_vertices < MAY_LACK_MEMORY:
        return _search_problem(graph)
    return wrong


def _search_problem(graph: EdgeList | CSRGraph) -> str | None:
    """Search from a few vertices, in both directions and on both places."""
    try:
        with hb.Engine(graph) as engine:
            selectors = ["fixed:TC,BC"] + ["fixed:TG,BG"] * (engine.device_info is not None)
            for selector in selectors:
                engine.set_selector(selector)
                for source in {0, graph.num_vertices // 2, graph.num_vertices - 1}:
                    hb.validate(graph, source, engine.bfs(source).parent).raise_if_invalid()
    except Exception:
        return traceback.format_exc()
    return None


def _difference(
    graph: EdgeList | CSRGraph, expected: plain.Meaning, directed: bool, raw: bytes
) -> str | None:
    """Return a difference between a graph and the expected one, None if there is none."""
    pairs = [tuple(map(int, p)) for s, d in graph.chunks() for p in zip(s, d, strict=True)]
    wanted, weights = expected.pairs, expected.weights
    if isinstance(graph, CSRGraph):
        if expected.directed and not directed:
            wanted = [*wanted, *((v, u) for u, v in wanted)]
            weights = None if weights is None else weights * 2
        least = {} if weights is None else plain.least(wanted, weights)
        wanted = sorted({(u, v) for u, v in wanted if u != v})
        weights = None if weights is None else [least[pair] for pair in wanted]
    elif directed and re.match(rb"(?s)[^\r\n]*(symmetric|hermitian)\s", _head(raw)):
        if weights is not None:
            sign = -1 if expected.skew else 1
            pairs_and_weights = zip(wanted, weights, strict=True)
            weights = [*weights, *(sign * w for (u, v), w in pairs_and_weights if u != v)]
        wanted = [*wanted, *((v, u) for u, v in wanted if u != v)]
    if (graph.num_vertices, graph.directed) != (expected.num_vertices, directed):
        return f"{graph.num_vertices} vertices for {expected.num_vertices}"
    if pairs != wanted:
        return f"edges {pairs[:9]}..., expected {wanted[:9]}..."
    held = None if graph.weights is None else graph.weights.tolist()
    if held != weights or (held is not None and not _fits(graph.weights.dtype, expected, weights)):
        return f"weights {held and held[:9]}..., expected {weights and weights[:9]}..."
    if isinstance(graph, CSRGraph) and expected.directed == directed and expected.input_degree:
        counts = graph.num_input_edges, graph.input_degree.tolist()
        if counts != (expected.num_input, expected.input_degree):
            return f"counts {counts}, expected {expected.num_input}, {expected.input_degree}"
    return None


def _fits(dtype: np.dtype, expected: plain.Meaning, weights: list[float]) -> bool:
    """Tell whether weights have the type they should have."""
    turned = expected.skew and max(weights, default=0) == 2**31  # beyond int32
    return str(dtype) == ("float64" if turned else expected.weight_dtype)


def _head(raw: bytes) -> bytes:
    """Return the header of a Matrix Market file in small letters, nothing of another."""
    text = plain.unzipped(raw) if raw[:2] == b"\x1f\x8b" else raw
    text = text[:200].removeprefix(b"\xef\xbb\xbf").lower()
    return text + b"\n" if text.startswith(b"%%matrixmarket") else b""


def attempt(form: str, number: int, seed: int, folder: Path) -> Attempt:
    """Try one input, kept as a file."""
    chance = Random(f"{seed} {form} {number}")
    suffix, raw = make(form, chance)
    path = folder / f"{form}-{seed}-{number}{suffix}"
    path.write_bytes(raw)
    directed = chance.random() < 0.5
    return Attempt(path, trouble(path, form, directed, number % _SEARCHED_ONE_IN == 0))


def replay(form: str, path: Path) -> list[str]:
    """Try a kept file, read as undirected and as directed."""
    wrong = [trouble(path, form, directed, True) for directed in (False, True)]
    return [text for text in wrong if text is not None]


CAMPAIGN = Campaign("files", FORMATS, attempt, replay)
