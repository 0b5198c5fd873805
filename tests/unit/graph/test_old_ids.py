"""Values and vertices by the caller's ids, by one thread or by several."""

from __future__ import annotations

import numpy as np
import pytest

from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.kernels import old_ids
from hetero_bfs.graph.relabel import Relabelling, inverse
from hetero_bfs.support import parallel


@pytest.fixture(params=[1, 1 << 20], ids=["all threads", "one thread"])
def _shared_from(request, monkeypatch):
    monkeypatch.setattr(parallel, "_SHARED_FROM", request.param)


def numbers_of(random, size: int, searched: int) -> Relabelling:
    old_of_new = random.permutation(size)[:searched].astype(np.uint32)
    return Relabelling(inverse(old_of_new, size), old_of_new, "given")


@pytest.mark.usefixtures("_shared_from")
@pytest.mark.parametrize("kind", [np.bool_, np.int16, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("searched", [0, 70, 90])
def test_values(kind, searched):
    random = np.random.default_rng(searched)
    numbers = numbers_of(random, 90, searched)
    found = random.integers(-5, 99, searched).astype(kind)
    expected = np.full(90, 1, kind)
    for new, old in enumerate(numbers.old_of_new.tolist()):
        expected[old] = found[new]
    restored = old_ids.by_old_ids(found, numbers.old_of_new, 90, outside=1)
    assert restored.dtype == kind
    np.testing.assert_array_equal(restored, expected)


@pytest.mark.usefixtures("_shared_from")
@pytest.mark.parametrize("dtype", [np.int64, np.uint32])
def test_parents(dtype):
    random = np.random.default_rng(3)
    numbers = numbers_of(random, 90, 70)
    up = random.integers(0, 70, 70).astype(np.uint32)
    up[::7] = NO_VERTEX
    expected = np.full(90, -1, np.int64)
    for new, old in enumerate(numbers.old_of_new.tolist()):
        if up[new] != NO_VERTEX:
            expected[old] = numbers.old_of_new[up[new]]
    restored = old_ids.parents_by_old_ids(up, numbers, dtype)
    np.testing.assert_array_equal(restored, expected.astype(dtype))
