"""How often Python looks for garbage while Numba compiles."""

from __future__ import annotations

import gc

import numba
import pytest
from numba.core import event

import hetero_bfs.support.compiling  # noqa: F401


class Watcher(event.Listener):
    """Notes the thresholds whenever Numba begins to compile a function."""

    def __init__(self):
        self.seen = []

    def on_start(self, event):
        self.seen.append(gc.get_threshold())

    def on_end(self, event):
        self.seen.append(gc.get_threshold())


@pytest.fixture
def thresholds():
    """Thresholds that nobody else sets."""
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield (701, 11, 12)
    gc.set_threshold(*before)


@pytest.fixture
def watcher():
    made = Watcher()
    event.register("numba:compile", made)
    yield made
    event.unregister("numba:compile", made)


@numba.njit
def _length(x):
    return len(x)


def test_garbage_is_looked_for_rarely_until_all_is_compiled(thresholds, watcher):
    @numba.njit
    def lengths(x):
        return _length(x) + 1

    assert lengths((1, 2)) == 3
    outer, *within, _ = watcher.seen
    assert outer[0] > 100 * thresholds[0]
    assert within == [outer, outer]
    assert gc.get_threshold() == thresholds


def test_thresholds_return_when_compiling_fails(thresholds, watcher):
    @numba.njit
    def fails(x):
        return _length(x)

    with pytest.raises(numba.TypingError):
        fails(3)
    assert watcher.seen
    assert gc.get_threshold() == thresholds
