"""The check of colourings finds each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import SmallChunks

import hetero_bfs as hb
from hetero_bfs.graph.edge_list import EdgeList

#  0 - 1 - 2 - 0,  a loop at 3, 4 alone
EDGES = EdgeList.from_arrays([0, 1, 2, 3], [1, 2, 0, 3], 5)


@pytest.mark.parametrize("colour", [[0, 1, 2, 0, 0], [7, 3, 1, 9, 4]])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
def test_sound_colourings_pass(colour, dtype):
    check = hb.check_colouring(EDGES, np.array(colour, dtype))
    assert check.valid
    check.raise_if_invalid()


@pytest.mark.parametrize(
    ("colour", "said"),
    [
        ([0, 1, -1, 0, 0], "check 1 .*: vertex 2 has -1"),
        ([0, 1, 0, 0, 0], r"check 2 .*: edge \(2, 0\) joins two vertices of colour 0"),
        ([5, 5, 2, 0, 0], r"check 2 .*: edge \(0, 1\) joins two vertices of colour 5"),
    ],
)
def test_each_fault_is_found(colour, said):
    check = hb.check_colouring(EDGES, np.array(colour))
    assert not check.valid
    with pytest.raises(hb.ValidationError, match=said):
        check.raise_if_invalid()


@pytest.mark.parametrize("directed", [False, True])
def test_a_fault_in_a_late_chunk_is_found(directed):
    n = 100
    edges = SmallChunks(
        np.arange(n - 1, dtype=np.uint32), np.arange(1, n, dtype=np.uint32), n, directed
    )
    colour = np.arange(n) % 2
    assert hb.check_colouring(edges, colour).valid
    colour[-1] = colour[-2]
    assert "edge (98, 99)" in hb.check_colouring(edges, colour).message


def test_wrong_arguments():
    with pytest.raises(hb.ArgumentError, match=r"colour has shape \(3,\)"):
        hb.check_colouring(EDGES, np.zeros(3, int))
    with pytest.raises(hb.ArgumentError, match="colour holds float64; give integers"):
        hb.check_colouring(EDGES, np.zeros(5))
    with pytest.raises(hb.ArgumentError, match="the graph is of type list"):
        hb.check_colouring([1], np.zeros(5, int))
