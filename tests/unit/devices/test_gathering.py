"""Blocks are gathered one after another, by one thread or by several."""

from __future__ import annotations

import numpy as np
import pytest

from hetero_bfs.graph.kernels.neighbour_lists import _BY_ONE_THREAD, gather_blocks, place_blocks


@pytest.mark.parametrize("entries", [50, 2 * _BY_ONE_THREAD])
@pytest.mark.parametrize("kind", [np.uint32, np.float64])
def test_blocks_back_to_back(entries, kind):
    random = np.random.default_rng(3)
    bounds = np.sort(np.append(random.integers(0, entries, 19), [0, entries]))
    values = random.integers(0, 1000, entries).astype(kind)
    blocks = np.array([0, 1, 4, 5, 6, 11, 19], np.int64) if entries == 50 else np.arange(20)
    sizes = bounds[blocks + 1] - bounds[blocks]
    rows = np.full((blocks.size + 1, 2), 7777, np.uint32)
    assert place_blocks(blocks, bounds, sizes.sum(), rows) == (blocks.size, sizes.sum())
    np.testing.assert_array_equal(rows[:-1], np.column_stack([blocks, np.cumsum(sizes) - sizes]))
    assert (rows[-1] == 7777).all()
    gathered = np.full(entries + 1, 7777, kind)
    gather_blocks(rows[:-1], bounds, values, gathered)
    expected = np.concatenate([values[bounds[b] : bounds[b + 1]] for b in blocks])
    np.testing.assert_array_equal(gathered[: expected.size], expected)
    assert (gathered[expected.size :] == 7777).all()


@pytest.mark.parametrize(
    ("most_entries", "most_blocks", "placed"), [(7, 9, 2), (8, 9, 3), (9, 2, 2), (12, 4, 4)]
)
def test_as_many_blocks_are_placed_as_there_is_room_for(most_entries, most_blocks, placed):
    bounds = np.array([0, 5, 5, 8, 12], np.int64)
    rows = np.zeros((most_blocks, 2), np.uint32)
    found = place_blocks(np.arange(4), bounds, most_entries, rows)
    assert found == (placed, bounds[placed])
