"""Renumbering: by falling degree or as given, and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.graph import NO_VERTEX
from hetero_bfs.relabel import ORDERS, relabel

DEGREES = st.lists(st.one_of(st.integers(0, 4), st.integers(0, 5000)), max_size=60)


@given(degrees=DEGREES)
def test_by_falling_degree_ties_by_id(degrees):
    relabelling = relabel(np.array(degrees, np.uint32), "degree")
    expected = sorted((v for v, d in enumerate(degrees) if d), key=lambda v: (-degrees[v], v))
    assert relabelling.old_of_new.tolist() == expected
    assert relabelling.num_searched == len(expected)
    new = {old: i for i, old in enumerate(expected)}
    assert relabelling.new_of_old.tolist() == [new.get(v, NO_VERTEX) for v in range(len(degrees))]
    assert relabelling.old_of_new.dtype == relabelling.new_of_old.dtype == np.uint32


@given(degrees=DEGREES)
def test_as_given(degrees):
    relabelling = relabel(np.array(degrees, np.uint32), "given")
    assert relabelling.old_of_new.tolist() == list(range(len(degrees)))
    assert relabelling.new_of_old.tolist() == list(range(len(degrees)))


@pytest.mark.parametrize("order", ORDERS)
@given(degrees=DEGREES.filter(len), data=st.data())
def test_restored_parents(order, degrees, data):
    relabelling = relabel(np.array(degrees, np.uint32), order)
    n = relabelling.num_searched
    some = st.one_of(st.just(NO_VERTEX), st.integers(0, max(n - 1, 0)))
    parent = data.draw(st.lists(some, min_size=n, max_size=n)) if n else []
    restored = relabelling.restore_parents(np.array(parent, np.uint32))
    expected = [-1] * len(degrees)
    for v, p in enumerate(parent):
        if p != NO_VERTEX:
            expected[relabelling.old_of_new[v]] = int(relabelling.old_of_new[p])
    assert restored.tolist() == expected
    assert restored.dtype == np.int64


def test_the_largest_degree_a_vertex_can_have():
    relabelling = relabel(np.array([0, 3, 1_000_000, 3], np.uint32), "degree")
    assert relabelling.old_of_new.tolist() == [2, 1, 3]
