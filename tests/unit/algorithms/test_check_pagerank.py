"""The check of PageRank finds each kind of fault."""

from __future__ import annotations

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.graph.edge_list import EdgeList

# Edges of 0 to 1 and 2, of 1 to 2, a loop and a duplicate that do not count; 2 is dangling.
EDGES = EdgeList.from_arrays(
    [0, 0, 0, 1, 1], [1, 2, 2, 2, 1], 4, directed=True, weights=np.array([1, 3, 3, 2, 9])
)


def exact(alpha, halves, restart=(0.25, 0.25, 0.25, 0.25)):
    """Solve x = alpha (x passed on + dangling ranks by restart) + (1 - alpha) restart."""
    passed_on = np.zeros((4, 4))
    passed_on[0, 1:3], passed_on[1, 2] = halves, 1
    step = alpha * passed_on.T
    step += alpha * np.outer(restart, [0, 0, 1, 1])
    return np.linalg.solve(np.eye(4) - step, (1 - alpha) * np.array(restart))


def test_sound_ranks_pass():
    assert hb.check_pagerank(EDGES, exact(0.85, (0.5, 0.5)), tol=1e-15).valid
    assert hb.check_pagerank(EDGES, exact(0.5, (0.5, 0.5)), 0.5, tol=0).valid
    assert hb.check_pagerank(EDGES, exact(0.85, (0.25, 0.75)), weighted=True, tol=0).valid
    wanted = np.array([0.5, 0.25, 0.25, 0])
    ranks = exact(0.85, (0.5, 0.5), wanted)
    assert hb.check_pagerank(EDGES, ranks, tol=0, personalization=4 * wanted).valid
    assert not hb.check_pagerank(EDGES, ranks).valid
    assert hb.check_pagerank(EdgeList([], [], 0), np.zeros(0)).valid


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([np.nan, 0, 0, 0], "vertex 0 has rank nan"),
        ([0, -1, 1, 0], "vertex 1 has rank -0"),
        ([0.001, 0, 0, 0], "the ranks add up to 1.001"),
        ([0.001, 0, -0.001, 0], "another step changes the ranks by 0.00"),
        ([0, 0, 0.001, -0.001], "another step changes the ranks by 0.00"),
    ],
)
def test_each_fault_is_found(change, said):
    check = hb.check_pagerank(EDGES, exact(0.85, (0.5, 0.5)) + change)
    assert not check.valid
    with pytest.raises(hb.ValidationError, match=said):
        check.raise_if_invalid()


def test_how_much_is_allowed():
    ranks = exact(0.85, (0.5, 0.5)) + np.array([1e-5, 0, -1e-5, 0])
    residual = hb.check_pagerank(EDGES, ranks).residual
    assert hb.check_pagerank(EDGES, ranks, tol=1.001 * residual / 0.85 / 4).valid
    assert not hb.check_pagerank(EDGES, ranks, tol=0.999 * residual / 0.85 / 4).valid


def test_wrong_arguments():
    with pytest.raises(hb.ArgumentError, match="rank has shape"):
        hb.check_pagerank(EDGES, np.zeros(3))
    with pytest.raises(hb.ArgumentError, match="personalization has shape"):
        hb.check_pagerank(EDGES, np.zeros(4), personalization=np.zeros(3))
    with pytest.raises(hb.GraphError, match="no weights"):
        hb.check_pagerank(EdgeList([0], [1], 2), np.full(2, 0.5), weighted=True)
