"""Arrays and matrices of other packages, drawn, damaged, and read by plain Python."""

from __future__ import annotations

import contextlib
import math
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import scipy.sparse

FORMATS = ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")
_WEIGHTS = (0.0, 0.25, 1.0, 1.0, 2.0, 3.0)
_ODD_WEIGHTS = (math.nan, math.inf, 1e308, 1e-320, -1.0)
_NUMBERS = (-1, -2, 10**6, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, -(2**31), -(2**40), 2**63 - 1)
_INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">i8", ">u8")
_VALUES = ("f2", "f4", "f8", ">f8", ">f4", "g", "i1", "i4", "i8", "u8", ">i4", "?")
_REFUSED = ("O", "c16", "S3", "M8[s]", "V8")

Entry = tuple[int, int, float]


def draw_entries(chance: Random, n: int, twice: bool, odd: bool) -> list[Entry]:
    """Return entries of a matrix in a random order; with `twice` some places have several."""
    drawn: dict[Any, Entry] = {}
    for i in range(chance.choice((0, n, 2 * n, 3 * n)) if n else 0):
        u, v = chance.randrange(n), chance.randrange(n)
        weight = chance.choice(_ODD_WEIGHTS if odd and chance.random() < 0.1 else _WEIGHTS)
        drawn[i if twice else (u, v)] = (u, v, weight)
    entries = list(drawn.values())
    chance.shuffle(entries)
    return entries


def make_matrix(chance: Random, form: str, n: int, entries: list[Entry]) -> Any:
    """Return entries as a matrix of a format; lists are in the order of the entries."""
    shape, kind = (n, n), chance.choice(("array", "matrix"))
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    data = np.array(values, np.float64)
    if form in ("csr", "csc"):
        major, minor = (rows, columns) if form == "csr" else (columns, rows)
        order = sorted(range(len(entries)), key=lambda i: major[i])
        indptr = np.searchsorted([major[i] for i in order], range(n + 1)).astype(np.int32)
        ids = np.array([minor[i] for i in order], chance.choice((np.int32, np.int64)))
        lists = data[order], ids, indptr
        return getattr(scipy.sparse, f"{form}_{kind}")(lists, shape=shape)
    ends = np.array(rows, np.int32), np.array(columns, np.int32)
    coo = getattr(scipy.sparse, f"coo_{kind}")((data, ends), shape=shape)
    if form == "coo":
        return coo
    if form == "bsr":
        widths = [d for d in range(1, n + 1) if n % d == 0] or [1]
        return coo.tobsr(blocksize=(chance.choice(widths), chance.choice(widths)))
    if form == "lil":
        lil = getattr(scipy.sparse, f"lil_{kind}")(shape)
        for u, v, weight in entries:
            lil.rows[u].append(v)
            lil.data[u].append(weight)
        return lil
    return coo.asformat(form)


# Damages


def other_layout(chance: Random, array: Any) -> Any:
    """Return the same entries in other memory: these are no damage."""
    deed = chance.randrange(6)
    if deed == 0:
        view = array.view()
        view.flags.writeable = False
        return view
    if deed == 1:
        return np.repeat(array, 2, axis=0)[::2]
    if deed == 2:
        return array[::-1].copy()[::-1]
    if deed == 3:
        return array.astype(array.dtype.newbyteorder())
    if deed == 4 and not array.dtype.hasobject:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        shifted = raw.view(array.dtype).reshape(array.shape)
        shifted[...] = array
        return shifted
    return array.view(_Own)


class _Own(np.ndarray):
    """An array of another class."""


def damaged_array(chance: Random, array: Any) -> Any:
    """Return an array of ids, offsets or weights with other entries, length, type or shape."""
    array = np.array(array)
    deed = chance.randrange(9)
    if deed <= 2 and array.size:
        if chance.random() < 0.5 and array.dtype.kind in "iu":
            array = array.astype(np.int64)
        number = chance.choice((*_NUMBERS, array.size, array.size + 1, 0, 1))
        place = chance.randrange(array.size)
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array.flat[place] = number  # not all types can hold it
        return array
    if deed == 3 and array.dtype.kind in "iu":
        return array + 1  # as in Fortran and MATLAB
    if deed == 4 and not array.dtype.hasobject:
        return array[: chance.randrange(array.size + 1)] if array.ndim == 1 else array[:-1]
    if deed == 5:
        return np.append(array, array[:2] if array.ndim == 1 else array[:1].ravel())
    if deed == 6:
        kinds = _INTEGERS if array.dtype.kind in "iu" else _VALUES
        kind = chance.choice(_REFUSED if chance.random() < 0.3 else (*kinds, *_VALUES))
        try:
            with np.errstate(all="ignore"):
                return array.astype(kind)
        except (TypeError, ValueError, RuntimeError):  # the last one by datetimes of bytes
            return array.astype(object)
    if deed == 7:
        first = array.flat[0] if array.size else 0
        return chance.choice((array.reshape(-1, 1), array[None], first, None, array.tolist()))
    masked = np.ma.array(array, mask=False)
    if array.size and chance.random() < 0.7:
        masked[(0,) * array.ndim] = np.ma.masked
    return masked


def damage_matrix(chance: Random, matrix: Any) -> bool:
    """Change a matrix's arrays; return whether it says the same still."""
    names = {
        "csr": ("indptr", "indices", "data"), "csc": ("indptr", "indices", "data"),
        "bsr": ("indptr", "indices", "data"), "coo": ("row", "col", "data"),
        "dia": ("offsets", "data"), "lil": ("rows", "data"), "dok": ("_dict",),
    }[matrix.format]  # fmt: skip
    name = chance.choice(names)
    if chance.random() < 0.05:
        n = matrix.shape[0]
        matrix._shape = chance.choice(((n + 1, n + 1), (n + 1, n), (n,), (0, 0), (n, n, n)))
        return False
    if matrix.format == "dok":
        n = matrix.shape[0]
        keys = ((n, 0), (0, -1), (0, 2**40), 5, (0,), (0, 0, 0), (0.5, 0), ("a", 0), (None, 0))
        matrix._dict[chance.choice(keys)] = 1.0
        return False
    if matrix.format == "lil":
        _damage_lists(chance, getattr(matrix, name), matrix.shape[0])
        return False
    array = getattr(matrix, name)
    if not isinstance(array, np.ndarray):
        return False  # of an earlier damage
    harmless = chance.random() < 0.4
    new = other_layout(chance, array) if harmless else damaged_array(chance, array)
    if matrix.format == "coo" and name != "data":
        place = 0 if name == "row" else 1
        coords = list(matrix.coords)
        coords[place] = new
        matrix.coords = tuple(coords)
    else:
        setattr(matrix, name, new)
    return harmless


def _damage_lists(chance: Random, lists: Any, n: int) -> None:
    if len(lists) == 0:
        return
    i, deed = chance.randrange(len(lists)), chance.randrange(5)
    if deed == 0 or not isinstance(lists[i], list):
        lists[i] = chance.choice((None, 3, (0,), "a", np.zeros(1)))
    elif deed == 1:
        lists[i] = [*lists[i], chance.choice((-1, n, 2**40, 1.5, None, "a", [0], 0))]
    elif deed == 2:
        lists[i] = lists[i][:-1]
    elif deed == 3:
        lists[i] = [*lists[i], *[0] * 1000]
    else:
        lists[i] = [one + 1 if isinstance(one, int | float) else one for one in lists[i]]


# Plain readers


def integers(array: Any) -> list[int] | None:
    """Return a one-dimensional array of integers as Python's; None for anything else."""
    if np.ma.is_masked(array):
        return None
    array = np.asarray(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        return None
    return [int(one) for one in array]


def numbers(array: Any, dimensions: int = 1) -> Any:
    """Return an array of real numbers, also of Python's, as float64; None for anything else.

    An empty array has no wrong numbers.
    """
    if np.ma.is_masked(array):
        return None
    array = np.asarray(array)
    if array.ndim != dimensions:
        return None
    if array.size == 0:
        return np.zeros(array.shape)
    if array.dtype.kind == "O" and all(isinstance(one, int | float) for one in array.flat):
        array = np.asarray(array.tolist())
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def read_lists(indptr: Any, indices: Any, lists: int, most: int) -> list[list[int]] | None:
    """Return the positions of each list's entries; None unless offsets and ids are sound."""
    offsets, ids = integers(indptr), integers(indices)
    if offsets is None or ids is None or len(offsets) != lists + 1 or offsets[0] != 0:
        return None
    if offsets[-1] != len(ids) or any(a > b for a, b in pairwise(offsets)):
        return None
    if not all(0 <= one < most for one in ids):
        return None
    return [list(range(a, b)) for a, b in pairwise(offsets)]


def read_matrix(matrix: Any, transposed: bool = False) -> list[Entry] | None:
    """Return a matrix's entries in the order of its rows; None if it is damaged."""
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    try:
        entries = _READERS[matrix.format](matrix, shape[0])
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError):
        return None
    if entries is not None and transposed:
        entries = [(v, u, weight) for u, v, weight in entries]
    return None if entries is None else sorted(entries, key=lambda entry: entry[0])


def _read_compressed(matrix: Any, n: int) -> list[Entry] | None:
    lists, values = read_lists(matrix.indptr, matrix.indices, n, n), numbers(matrix.data)
    if lists is None or values is None or len(values) != len(matrix.indices):
        return None
    ids = integers(matrix.indices) or []
    if matrix.format == "csr":
        return [(u, ids[k], float(values[k])) for u in range(n) for k in lists[u]]
    return [(ids[k], u, float(values[k])) for u in range(n) for k in lists[u]]


def _read_blocks(matrix: Any, n: int) -> list[Entry] | None:
    values = numbers(matrix.data, 3)
    if values is None or len(values) != len(matrix.indices):
        return None
    height, width = values.shape[1:]
    if height < 1 or width < 1 or n % height or n % width:
        return None
    lists = read_lists(matrix.indptr, matrix.indices, n // height, n // width)
    if lists is None:
        return None
    ids = integers(matrix.indices) or []
    return [
        (u * height + r, ids[k] * width + c, float(values[k, r, c]))
        for u, positions in enumerate(lists)
        for r in range(height)
        for k in positions
        for c in range(width)
        if values[k, r, c] != 0
    ]


def _read_coordinates(matrix: Any, n: int) -> list[Entry] | None:
    rows, columns, values = integers(matrix.row), integers(matrix.col), numbers(matrix.data)
    if rows is None or columns is None or values is None:
        return None
    if not len(rows) == len(columns) == len(values):
        return None
    if not all(0 <= one < n for one in (*rows, *columns)):
        return None
    return _summed(zip(rows, columns, values.tolist(), strict=True))


def _summed(entries: Any) -> list[Entry]:
    """Return entries by rows and columns, those of one place added up."""
    total: dict[tuple[int, int], float] = {}
    for u, v, weight in entries:
        total[u, v] = total[u, v] + weight if (u, v) in total else weight
    return [(u, v, total[u, v]) for u, v in sorted(total)]


def _read_diagonals(matrix: Any, n: int) -> list[Entry] | None:
    offsets, values = integers(matrix.offsets), numbers(matrix.data, 2)
    if offsets is None or values is None or len(values) != len(offsets):
        return None
    if len(set(offsets)) != len(offsets):
        return None
    cells = [
        (v - offset, v, float(values[i, v]))
        for i, offset in enumerate(offsets)
        for v in range(min(n, values.shape[1]))
        if 0 <= v - offset < n and values[i, v] != 0
    ]
    return sorted(cells, key=lambda entry: entry[:2])


def _read_linked(matrix: Any, n: int) -> list[Entry] | None:
    if len(matrix.rows) != n or len(matrix.data) != n:
        return None
    entries = []
    for u in range(n):
        ids, values = matrix.rows[u], matrix.data[u]
        if not isinstance(ids, list) or not isinstance(values, list) or len(ids) != len(values):
            return None
        if not all(isinstance(v, int) and 0 <= v < n for v in ids):
            return None
        entries += [(u, v, float(value)) for v, value in zip(ids, values, strict=True)]
    return entries


def _read_keys(matrix: Any, n: int) -> list[Entry] | None:
    for key in matrix._dict:
        if not isinstance(key, tuple) or len(key) != 2:
            return None
        if not all(isinstance(one, int | np.integer) and 0 <= one < n for one in key):
            return None
    return [(int(u), int(v), float(value)) for (u, v), value in matrix._dict.items()]


_READERS = {
    "csr": _read_compressed, "csc": _read_compressed, "bsr": _read_blocks,
    "coo": _read_coordinates, "dia": _read_diagonals, "lil": _read_linked, "dok": _read_keys,
}  # fmt: skip
