"""The check of connected components finds each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import SmallChunks, edge_lists
from hypothesis import given

import hetero_bfs as hb
from hetero_bfs.algorithms.components.check import _count_components
from hetero_bfs.graph.edge_list import EdgeList

#  0 - 1 - 2,  3 - 4,  5 alone
EDGES = EdgeList.from_arrays([0, 1, 3], [1, 2, 4], 6)
COMPONENT = [0, 0, 0, 3, 3, 5]


def test_sound_labels_pass():
    assert hb.check_components(EDGES, np.array(COMPONENT)).message == "valid; 3 components"
    assert hb.check_components(EDGES, np.array(COMPONENT, np.uint8)).valid


@pytest.mark.parametrize(
    ("component", "said"),
    [
        ([0, 0, 0, 3, 3, 6], "check 1 .*: vertex 5 has label 6"),
        ([0, 0, 0, 3, 3, -1], "check 1 .*: vertex 5 has label -1"),
        ([0, 0, 0, 4, 4, 5], "check 1 .*: vertex 3 has label 4"),
        ([0, 0, 1, 3, 3, 5], "check 1 .*: vertex 2 has label 1"),
        ([0, 0, 0, 3, 4, 5], "check 2 .*: edge .3, 4. joins the labels 3 and 4"),
        ([0, 0, 0, 0, 0, 5], "check 3 .*: 2 labels for 3 components"),
        ([0, 0, 0, 3, 3, 3], "check 3 .*: 2 labels for 3 components"),
    ],
)
def test_each_fault_is_found(component, said):
    check = hb.check_components(EDGES, np.array(component))
    assert not check.valid
    with pytest.raises(hb.ValidationError, match=said):
        check.raise_if_invalid()


@given(edges=edge_lists(min_vertices=0))
def test_the_count_does_not_depend_on_how_edges_come(edges):
    pieces = SmallChunks(edges.src, edges.dst, edges.num_vertices, edges.directed)
    assert _count_components(pieces) == _count_components(edges)


def test_wrong_arguments():
    with pytest.raises(hb.ArgumentError, match=r"component has shape \(3,\); give one number"):
        hb.check_components(EDGES, np.zeros(3, int))
    with pytest.raises(hb.ArgumentError, match="component holds float64; give integers"):
        hb.check_components(EDGES, np.zeros(6))
    with pytest.raises(hb.ArgumentError, match="the graph is of type int"):
        hb.check_components(3, np.zeros(6, int))
