"""The check of shortest paths finds each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.graph.edge_list import EdgeList

#  0 -2- 1 -2- 2,  0 -5- 2,  3 -1- 4, and 5 alone
EDGES = EdgeList.from_arrays([0, 1, 0, 3], [1, 2, 2, 4], 6, weights=np.array([2, 2, 5, 1]))
INF = np.inf
DISTANCE = [0, 2, 4, INF, INF, INF]
PARENT = [0, 0, 1, -1, -1, -1]


def changed(values, **at):
    return [at.get(f"v{i}", value) for i, value in enumerate(values)]


def test_sound_paths_pass():
    assert hb.check_paths(EDGES, 0, np.array(DISTANCE), np.array(PARENT)).valid


@pytest.mark.parametrize(
    ("distance", "parent", "said"),
    [
        (changed(DISTANCE, v0=1), PARENT, "check 1 .the source.: distance 1.0"),
        (DISTANCE, changed(PARENT, v0=1), "check 1 .* parent 1"),
        (changed(DISTANCE, v3=7), PARENT, "check 2 .*: vertex 3"),
        (DISTANCE, changed(PARENT, v3=0), "check 2 .*: vertex 3"),
        (DISTANCE, changed(PARENT, v2=6), "check 2 .*: vertex 2"),
        (changed(DISTANCE, v1=np.nan), PARENT, "check 2 .*: vertex 1"),
        (changed(DISTANCE, v2=5), changed(PARENT, v2=0), "check 3 .* edge .1, 2. of weight 2"),
        (changed(DISTANCE, v2=3), PARENT, "check 4 .* parent 1 to vertex 2"),
        (DISTANCE, changed(PARENT, v2=0), "check 4 .* parent 0 to vertex 2"),
        (
            changed(DISTANCE, v3=0, v4=1),
            changed(PARENT, v3=4, v4=3),
            "check 4 .* parent 4 to vertex 3",
        ),
    ],
)
def test_each_fault_is_found(distance, parent, said):
    check = hb.check_paths(EDGES, 0, np.array(distance, float), np.array(parent))
    assert not check.valid
    with pytest.raises(hb.ValidationError, match=said):
        check.raise_if_invalid()


def test_a_circle_of_parents_over_edges_of_weight_0_is_found():
    edges = EdgeList.from_arrays([0, 1, 1], [1, 2, 3], weights=[1, 0, 0], directed=False)
    distance = np.array([0.0, 1.0, 1.0, 1.0])
    assert hb.check_paths(edges, 0, distance, np.array([0, 0, 1, 1])).valid
    said = hb.check_paths(edges, 0, distance, np.array([0, 2, 1, 1])).message
    assert "check 5" in said


def test_rounding_of_one_addition_is_allowed():
    third = np.float32(1) / np.float32(3)
    edges = EdgeList.from_arrays([0, 1], [1, 2], weights=np.array([third, third]))
    sums = np.array([0, third, third + third], np.float32)
    parent = np.array([0, 0, 1])
    assert hb.check_paths(edges, 0, sums, parent).valid
    assert not hb.check_paths(edges, 0, sums * np.array([1, 1, 1.00001]), parent).valid


def test_wrong_arguments():
    with pytest.raises(hb.ArgumentError, match="distance has shape"):
        hb.check_paths(EDGES, 0, np.zeros(3), np.zeros(6, int))
    with pytest.raises(hb.GraphError, match="no weights"):
        hb.check_paths(EdgeList([0], [1], 2), 0, np.zeros(2), np.zeros(2, int))
