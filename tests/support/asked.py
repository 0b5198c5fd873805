"""Questions to a breadth-first search, drawn at random, and a check of the answer."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from plain_search import plain_levels

import hetero_bfs as hb


def check_answer(result, edges, sources, name, **asked):
    """Compare a result with plain Python and with validation; `name` says who searched."""
    asked.pop("want", None)
    assert result.parent.dtype == asked.pop("dtype", "int64")
    mask = asked.get("mask")
    several = sources if np.ndim(sources) else [sources]
    ids = () if mask is None else np.flatnonzero(mask)
    levels = plain_levels(edges, several, **{**asked, "mask": ids})
    context = f"{name}, {sources}, {asked}"
    np.testing.assert_array_equal(result.level, levels, err_msg=context)
    assert result.reached == np.count_nonzero(levels >= 0)
    if result.parent.size:
        outcome = hb.validate(edges, sources, result.parent, result.level, **asked)
        assert outcome.valid, f"{context}: {outcome.message}"
        assert outcome.reached == result.reached
    return result


@st.composite
def questions(draw, num_vertices):
    """Return sources and what else is asked, of a graph of so many vertices."""
    vertex = st.integers(0, num_vertices - 1)
    sources = draw(st.one_of(vertex, st.lists(vertex, min_size=1, max_size=5)))
    asked = {}
    if draw(st.booleans()):
        asked["depth_limit"] = draw(st.integers(0, 6))
    if draw(st.booleans()):
        asked["target"] = draw(vertex)
    if draw(st.booleans()):
        mask = np.random.default_rng(draw(st.integers(0, 99))).random(num_vertices)
        asked["mask"] = mask < draw(st.sampled_from([0.02, 0.3]))
        asked["mask"][sources] = False
    if draw(st.booleans()):
        asked["reverse"] = True
    if draw(st.booleans()):
        asked["want"] = "levels"
    if draw(st.booleans()):
        asked["dtype"] = draw(st.sampled_from(["int32", np.int32, np.dtype(np.int64)]))
    return sources, asked
