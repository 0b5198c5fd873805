"""Checks of SciPy's sparse matrices, before compiled code follows their offsets and ids.

SciPy's constructors check only lengths, and a matrix's arrays can be replaced afterwards. SciPy's
own conversions access memory out of bounds if offsets or ids are wrong. So matrices are checked
before they are converted.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.list_checks import ids_fault, integer_array, offsets_fault
from hetero_bfs.support.checks import as_array
from hetero_bfs.support.messages import shown


def convert_matrix(
    matrix: Any, convert: Callable[[Any], Any], ids_of_rows_later: bool = False
) -> Any:
    """Check a SciPy sparse matrix of any format and return `convert(matrix)`.

    With `ids_of_rows_later` the ids of a CSR matrix are left to the caller (`check_ids`, or a
    compiled loop that checks each id).
    """
    check_square(matrix)
    later = ids_of_rows_later and matrix.format == "csr"
    try:
        if matrix.format in _PLAIN:
            matrix = _PLAIN[matrix.format](matrix)
        check = _check_rows if later else _CHECKS[matrix.format]
        check(matrix)
        return convert(_readable(matrix))
    except GraphError:
        raise
    except (ValueError, TypeError, OverflowError, AttributeError, IndexError) as error:
        text = " ".join(str(error).split())
        raise GraphError(
            f"the {matrix.format.upper()} matrix cannot be converted: {text}; build it anew, for "
            "example by scipy.sparse.coo_array((data, (rows, columns)), shape=(N, N))"
        ) from error


def check_square(matrix: Any) -> None:
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise GraphError(f"the matrix has shape {shape}; it must be square, of shape (N, N)")


def arrays_of(matrix: Any, weighted: bool) -> list[npt.NDArray[Any]] | None:
    """Return the arrays that decide about a matrix's edges, and their weights if `weighted`.

    None if an array is not plain, or the format has Python's lists instead.
    """
    names = _ARRAYS.get(matrix.format)
    if names is None:
        return None
    if not weighted and matrix.format in ("csr", "csc", "coo"):  # stored zeros are edges
        names = names[1:]
    arrays = [getattr(matrix, name) for name in names]
    return arrays if all(map(_is_plain, arrays)) else None


def _readable(matrix: Any) -> Any:
    names = _ARRAYS.get(matrix.format, ())
    wrong = [name for name in names if not _is_plain(getattr(matrix, name))]
    if not wrong:
        return matrix
    matrix = copy(matrix)
    for name in wrong:
        array = np.asarray(getattr(matrix, name))
        setattr(matrix, name, np.require(array, array.dtype.newbyteorder("="), ("C", "A")))
    return matrix


def _is_plain(array: Any) -> bool:
    if type(array) is not np.ndarray or not array.dtype.isnative:
        return False
    return bool(array.flags.c_contiguous and array.flags.aligned)


def check_ids(given: Any, num_vertices: int, name: str = "indices") -> None:
    fault = ids_fault(np.asarray(given), num_vertices)
    if fault is not None:
        raise GraphError(
            f"{name}[{fault.position}] of the matrix: {fault.text}; number rows and columns from 0 "
            "(of ids that start at 1 subtract 1)"
        )


def refuse_ids(indices: npt.NDArray[np.uint32], num_vertices: int) -> NoReturn:
    """Raise `GraphError` for an id out of range that a compiled loop found.

    There are fewer than 2**31 vertices; the ids may be a view of int32.
    """
    check_ids(indices.view(np.int32), num_vertices)
    raise GraphError(
        "ids of the matrix changed during the call; leave them as they are until it ends"
    )


_MOST_OFFSET = 2**30
"""Below this, SciPy's int32 sum of a diagonal's offset and a row does not overflow."""


def _check_lists(matrix: Any, num_lists: int) -> None:
    indptr = integer_array(matrix.indptr, "the matrix's indptr")
    indices = integer_array(matrix.indices, "the matrix's indices")
    if indptr.size != num_lists + 1:
        raise GraphError(
            f"the matrix's indptr has {indptr.size} entries; {num_lists} lists need {num_lists + 1}"
        )
    fault = offsets_fault(indptr, indices.size)
    if fault is not None:
        raise GraphError(
            f"indptr[{fault.position}] of the matrix: {fault.text}; build the matrix anew from "
            "rows and columns"
        )


def _check_values(values: Any, num_ids: int, dimensions: int = 1) -> None:
    array = as_array("the matrix's data", values)
    if array.ndim != dimensions or len(array) != num_ids:
        raise GraphError(
            f"the matrix's data has shape {array.shape}, and there are {num_ids} ids; give one "
            "value for each"
        )
    if array.dtype.kind not in "biufc":
        raise GraphError(f"the matrix's data holds {array.dtype}; give numbers, such as float64")


def _check_rows(matrix: Any) -> None:
    _check_lists(matrix, matrix.shape[0])
    _check_values(matrix.data, len(matrix.indices))


def _check_compressed(matrix: Any) -> None:
    _check_rows(matrix)
    check_ids(matrix.indices, matrix.shape[0])


def _check_blocks(matrix: Any) -> None:
    _check_values(matrix.data, len(matrix.indices), 3)
    height, width = matrix.blocksize
    n = matrix.shape[0]
    if height < 1 or width < 1 or n % height or n % width:
        raise GraphError(
            f"the matrix has blocks of shape ({height}, {width}); {n} rows and columns must be "
            "multiples of it"
        )
    _check_lists(matrix, n // height)
    check_ids(matrix.indices, n // width)


def _check_coordinates(matrix: Any) -> None:
    for name, given in (("row", matrix.row), ("col", matrix.col)):
        ids = integer_array(given, f"the matrix's {name}")
        _check_values(matrix.data, ids.size)
        check_ids(ids, matrix.shape[0], name)


def _check_diagonals(matrix: Any) -> None:
    offsets = integer_array(matrix.offsets, "the matrix's offsets")
    _check_values(matrix.data, offsets.size, 2)
    limit = max(matrix.shape[0], _MOST_OFFSET)
    wrong = (offsets <= -limit) | (offsets >= limit)
    if wrong.any():  # SciPy would convert them to int32
        k = int(wrong.argmax())
        raise GraphError(
            f"offsets[{k}] of the matrix is {offsets[k]}, and it has only {matrix.shape[0]} "
            "diagonals on each side; offsets below the main diagonal are negative, of a signed type"
        )
    if np.unique(offsets).size != offsets.size:
        raise GraphError("the matrix's offsets name a diagonal twice; add these diagonals up")


def _rows_of_lists(matrix: Any) -> Any:
    """Return a LIL matrix as CSR; SciPy's own conversion trusts the lengths of its lists."""
    from scipy.sparse import csr_array

    lengths = [len(ids) for ids in matrix.rows]
    if lengths != [len(values) for values in matrix.data]:
        raise GraphError("rows of the matrix have more ids, or more values; give a value for each")
    ids, values = (list(chain.from_iterable(lists)) for lists in (matrix.rows, matrix.data))
    indices = integer_array(np.array(ids), "the matrix's rows")
    lists = np.array(values, matrix.dtype), indices, np.cumsum([0, *lengths])
    return csr_array(lists, shape=matrix.shape)


def _coordinates_of_keys(matrix: Any) -> Any:
    from scipy.sparse import coo_array

    keys = list(matrix.keys())
    for key in keys:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise GraphError(f"a key of the matrix is {shown(key)}; give a pair (row, column)")
    ends = integer_array(np.array(list(chain.from_iterable(keys))), "the matrix's keys")
    values = np.array(list(matrix.values()), matrix.dtype)
    return coo_array((values, tuple(ends.reshape(values.size, 2).T)), shape=matrix.shape)


_LISTS = ("data", "indices", "indptr")
_ARRAYS = {
    "csr": _LISTS,
    "csc": _LISTS,
    "bsr": _LISTS,
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
_CHECKS = {
    "csr": _check_compressed,
    "csc": _check_compressed,
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "dia": _check_diagonals,
}
_PLAIN = {"lil": _rows_of_lists, "dok": _coordinates_of_keys}
"""Conversions of formats without arrays; the results are checked."""
