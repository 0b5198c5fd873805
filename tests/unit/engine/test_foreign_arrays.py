"""Arrays of other packages: damaged ones are refused before compiled code follows them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs
from array_memory import other_memory
from checkout import TOP

import hetero_bfs as hb
from hetero_bfs import csgraph
from hetero_bfs.errors import ArgumentError, GraphError

CALLS = {
    "breadth_first_order": lambda m: csgraph.breadth_first_order(m, 0),
    "breadth_first_order, undirected": lambda m: csgraph.breadth_first_order(m, 0, False),
    "connected_components": csgraph.connected_components,
    "strong components": lambda m: csgraph.connected_components(m, connection="strong"),
    "dijkstra": lambda m: csgraph.dijkstra(m, indices=0),
    "dijkstra, undirected": lambda m: csgraph.dijkstra(m, directed=False),
    "without weights": lambda m: csgraph.shortest_path(m, unweighted=True, indices=0),
    "Bellman and Ford": lambda m: csgraph.shortest_path(m, "BF"),
    "from_scipy": hb.CSRGraph.from_scipy,
    "from_scipy, weighted": lambda m: hb.CSRGraph.from_scipy(m, True, weighted=True),
}


def coo() -> scipy.sparse.coo_array:
    """A path of four vertices, and one that no search from 0 reaches."""
    ends = np.array([0, 1, 2, 4]), np.array([1, 2, 3, 3])
    return scipy.sparse.coo_array((np.ones(4), ends), shape=(6, 6))


def compressed(form: str, **arrays: np.ndarray) -> scipy.sparse.sparray:
    matrix = coo().asformat(form)
    for name, array in arrays.items():
        setattr(matrix, name, np.asarray(array))
    return matrix


def replaced(array: np.ndarray, position: int, value: int, dtype: type = np.int64) -> np.ndarray:
    array = array.astype(dtype)
    array[position] = value
    return array


def damaged() -> dict[str, scipy.sparse.sparray]:
    """Matrices that SciPy's constructors and attributes take."""
    found = {}
    for form in ("csr", "csc"):
        sound = coo().asformat(form)
        for value in (-1, 6, 10**6, 2**32, 2**40, -(2**40)):  # the last three would wrap to 0
            for position in (0, 3):
                name = f"{form}, id {value} at {position}"
                found[name] = compressed(form, indices=replaced(sound.indices, position, value))
        found[f"{form}, ids from 1"] = compressed(form, indices=sound.indices + 3)
        for value in (-1, 5, 2**31 - 1):
            found[f"{form}, offset {value}"] = compressed(
                form, indptr=replaced(sound.indptr, 2, value, np.int32)
            )
        found[f"{form}, begins above 0"] = compressed(form, indptr=replaced(sound.indptr, 0, 1))
        found[f"{form}, ends beyond"] = compressed(form, indptr=replaced(sound.indptr, -1, 9))
        found[f"{form}, offsets lack"] = compressed(form, indptr=sound.indptr[:-1])
        found[f"{form}, values lack"] = compressed(form, data=sound.data[:-1])
        found[f"{form}, ids lack"] = compressed(form, indices=sound.indices[:-1])
        found[f"{form}, ids of float"] = compressed(form, indices=sound.indices.astype(float))
        found[f"{form}, two dimensions"] = compressed(form, indices=sound.indices[None])
        found[f"{form}, objects"] = compressed(form, data=sound.data.astype(object))
        masked = compressed(form)
        masked.data = np.ma.masked_equal(sound.data, 1.0)
        found[f"{form}, masked"] = masked
    for value in (-1, 3, 2**30):  # twice the last one wraps below 0
        blocks = coo().tobsr(blocksize=(2, 2))
        blocks.indices = replaced(blocks.indices, 0, value, np.int32)
        found[f"bsr, block {value}"] = blocks
    for name in ("row", "col"):
        for value in (-1, 6, 10**6):
            found[f"coo, {name} {value}"] = matrix = coo()
            getattr(matrix, name)[1] = value
    found["coo, unequal"] = matrix = coo()
    matrix.coords = matrix.coords[0], matrix.coords[1][:-1]
    found["lil, id"] = matrix = coo().tolil()
    matrix.rows[0] = [6]
    found["lil, values beyond ids"] = matrix = coo().tolil()
    matrix.data[0] = [1.0] * 10**5  # SciPy writes all of them
    found["dok, key"] = matrix = coo().todok()
    matrix._dict[0, 6] = 1.0
    found["dok, keys of one and three"] = matrix = coo().todok()
    matrix._dict[1, 2, 0] = matrix._dict[1,] = 1.0
    found["bsr, flat values"] = matrix = coo().tobsr(blocksize=(2, 2))
    matrix.data = matrix.data.reshape(-1)
    found["dia, offsets"] = matrix = coo().todia()
    matrix.offsets = np.arange(50, dtype=np.int32)
    for offset in (2**32 - 1, 2**63 - 1, -(2**40), np.uint64(2**64 - 1)):  # int32 makes -1 of some
        found[f"dia, offset {offset}"] = matrix = coo().todia()
        matrix.offsets = replaced(matrix.offsets, 0, offset, np.array(offset).dtype)
    return found


@pytest.mark.parametrize("call", CALLS)
def test_damaged_matrices_are_refused(call):
    messages = {name: refusal(CALLS[call], matrix) for name, matrix in damaged().items()}
    assert [name for name, message in messages.items() if message is None] == []
    for message in messages.values():
        assert "\n" not in message
        assert ";" in message, "value, limit and remedy"


def refusal(call, matrix) -> str | None:
    """Return a call's message, None if it answers."""
    try:
        call(matrix)
    except GraphError as error:
        return str(error)
    return None


def test_the_message_names_value_limit_and_remedy():
    matrix = compressed("csr", indices=[1, 2, 6, 3])
    with pytest.raises(GraphError, match=r"indices\[2\].*neighbour 6 is not below 6.*subtract 1"):
        csgraph.breadth_first_order(matrix, 0)
    matrix = compressed("csr", indices=np.array([1, 2, -3, 3], np.int32))
    with pytest.raises(GraphError, match=r"neighbour -3 is negative; ids start at 0"):
        csgraph.breadth_first_order(matrix, 4)  # which is not in a list that is read


@pytest.mark.parametrize("memory", other_memory())
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_arrays_in_other_memory_are_read_right(memory, form):
    change = other_memory()[memory]
    matrix, sound = coo().asformat(form), coo().tocsr()
    matrix.data = change(matrix.data)
    if form == "coo":
        matrix.coords = tuple(map(change, matrix.coords))
    else:
        matrix.indices, matrix.indptr = change(matrix.indices), change(matrix.indptr)
    found = csgraph.breadth_first_order(matrix, 0)
    np.testing.assert_array_equal(found[0], theirs.breadth_first_order(sound, 0)[0])
    np.testing.assert_array_equal(csgraph.dijkstra(matrix), theirs.dijkstra(sound))
    assert csgraph.connected_components(matrix)[0] == 2
    assert csgraph.connected_components(matrix, connection="strong")[0] == 6
    graph = hb.CSRGraph.from_scipy(matrix, directed=True)
    assert graph.indices.tolist() == [1, 2, 3, 3]


def test_zeros_that_pad_blocks_and_diagonals_are_not_edges():
    sound = coo().tocsr()
    for matrix in (coo().tobsr(blocksize=(3, 3)), coo().todia()):
        np.testing.assert_array_equal(csgraph.dijkstra(matrix), theirs.dijkstra(sound))
        assert csgraph.connected_components(matrix)[0] == 2
        assert hb.CSRGraph.from_scipy(matrix, directed=True).num_stored_edges == 4
    for form in ("csr", "csc", "coo", "lil", "dok"):
        zeros = coo()
        zeros.data[:] = 0.0
        assert csgraph.dijkstra(zeros.asformat(form))[0, 3] == 0.0, form


def test_a_weight_that_is_nan_is_not_an_edge_as_in_scipy():
    matrix = coo().tocsr()
    matrix.data[1] = np.nan
    for method in ("auto", "D", "BF", "J", "FW"):
        distance = csgraph.shortest_path(matrix, method)
        assert distance[0].tolist() == [0, 1, np.inf, np.inf, np.inf, np.inf], method
    assert csgraph.breadth_first_order(matrix, 0)[0].tolist() == [0, 1, 2, 3]


def test_a_dense_matrix_that_is_not_square_or_has_no_mask():
    for call in ("breadth_first_order", "dijkstra"):
        with pytest.raises(GraphError, match=r"shape \(2, 3\)"):
            getattr(csgraph, call)(np.ones((2, 3)), 0)
    one = np.ma.array([[2.0]])
    for method in ("auto", "D", "BF", "J", "FW"):
        assert csgraph.shortest_path(one, method).tolist() == [[0.0]], method
    for connection in ("weak", "strong"):
        assert csgraph.connected_components(one, connection=connection)[0] == 1


def test_numbers_close_to_0_of_a_dense_matrix_are_no_edges_as_in_scipy():
    matrix = np.array([[0, 1e-320, 1.1e-8], [-1e-8, 0, 1.0], [0, 0, 0]])
    for unweighted in (False, True):
        expected = theirs.dijkstra(matrix, unweighted=unweighted)
        np.testing.assert_array_equal(csgraph.dijkstra(matrix, unweighted=unweighted), expected)
    sparse = scipy.sparse.csr_array(matrix)
    assert csgraph.breadth_first_order(matrix, 0)[0].tolist() == [0, 2]
    assert csgraph.breadth_first_order(sparse, 0)[0].tolist() == [0, 1, 2]


def test_strong_components_of_a_matrix_with_an_entry_twice():
    """SciPy's own search does not end."""
    lists = np.ones(4), np.array([1, 1, 0, 2]), np.array([0, 2, 4, 4])
    matrix = scipy.sparse.csr_array(lists, shape=(3, 3))
    count, label = csgraph.connected_components(matrix, connection="strong")
    assert count == 2
    assert label[0] == label[1] != label[2]
    assert matrix.nnz == 4


def test_diagonals_outside_the_matrix_have_no_entries():
    for kind in (np.int8, np.int64, ">i4"):
        offsets = np.array([1, 100, -100], kind)
        matrix = scipy.sparse.dia_array((np.ones((3, 3)), offsets), shape=(3, 3))
        matrix.offsets = offsets
        assert csgraph.dijkstra(matrix, indices=0).tolist() == [0.0, 1.0, 2.0]
        assert hb.CSRGraph.from_scipy(matrix, directed=True).indices.tolist() == [1, 2]


class Source:
    """A user's own source of edges."""

    num_vertices, num_input_edges, directed, both_directions = 3, 2, True, False

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def chunks(self, size=0):
        yield np.array([0, 1], np.uint32), np.array([1, 2], np.uint32)

    def weighted_chunks(self, size=0):
        yield *next(self.chunks()), np.ones(2)


@pytest.mark.parametrize(
    "attributes",
    [
        {"weight_dtype": 1},
        {"weight_dtype": np.dtype(">f8")},
        {"weight_dtype": np.dtype("c16")},
        {"weight_dtype": np.dtype(float), "duplicates": "mean"},
        {"input_degree": np.zeros(2, np.uint32)},
        {"input_degree": np.zeros(3)},
    ],
)
def test_attributes_of_a_source_of_edges_are_checked(attributes):
    with pytest.raises((ArgumentError, GraphError), match="the graph's"):
        hb.CSRGraph.from_edge_source(Source(**attributes))


def test_the_reported_cases_do_not_crash():
    program = (
        "import numpy as np, scipy.sparse as sp, hetero_bfs as hb\n"
        "ids, offsets = np.array([1, 2, 10**6, 3]), np.array([0, 2, 3, 4, 4])\n"
        "matrix = sp.csr_array((np.ones(4), ids, offsets), shape=(4, 4))\n"
        "try:\n"
        "    hb.csgraph.dijkstra(matrix, indices=0)\n"
        "except hb.GraphError as error:\n"
        "    print(error)\n"
    )
    root = TOP
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0
    assert "neighbour 1000000 is not below 4" in done.stdout
