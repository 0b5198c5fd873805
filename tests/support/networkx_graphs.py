"""NetworkX graphs for tests of the backend: random ones with any objects as nodes."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
from hypothesis import strategies as st

NAMES = (0, 1, 2, 3, 1.5, "a", "b", ("t", 1), frozenset({7}), None.__class__, Fraction(1, 3), -4)
"""Objects for nodes, of types that cannot be compared."""


@st.composite
def networkx_graphs(draw, directed=None, weights=None):
    """A small graph: loops, isolated nodes, edges added in any order; sometimes nodes 0 to n - 1.

    `weights` is a strategy of the attribute "weight", which every other edge has.
    """
    count = draw(st.integers(1, len(NAMES)))
    names = draw(st.sampled_from([NAMES, range(len(NAMES))]))[:count]
    directed = draw(st.booleans()) if directed is None else directed
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(draw(st.permutations(names)) if draw(st.booleans()) else names)
    pairs = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=30)
    for i, pair in enumerate(draw(pairs)):
        if weights is not None and i % 2 == 0:
            graph.add_edge(*pair, weight=draw(weights))
        else:
            graph.add_edge(*pair)
    return graph


def outcome(function, *args, **kwargs):
    """What a call gives: a list of what it yields, or its result, or its exception."""
    try:
        result = function(*args, **kwargs)
        return list(result) if hasattr(result, "__next__") else result
    except Exception as error:
        return type(error), str(error)
