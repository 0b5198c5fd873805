"""The vertex programs of compare.py; imported after hetero_bfs, which may be of an older commit."""

from __future__ import annotations

import numpy as np

import hetero_bfs as hb


class Levels(hb.Program):
    """Breadth-first levels: few senders, so the direction and the place matter."""

    state = {"level": np.int32}  # noqa: RUF012
    combine = hb.any_one

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        return (0, True) if vertex == source else (-1, False)

    def receives(self, state):  # type: ignore[no-untyped-def]
        return state.level < 0

    def message(self, state):  # type: ignore[no-untyped-def]
        return state.level + 1

    def apply(self, combined):  # type: ignore[no-untyped-def]
        return combined


class Walks(hb.Program):
    """Walks of ten edges that end at each vertex, modulo 2**64: all vertices send all the time."""

    state = {"walks": np.uint64}  # noqa: RUF012
    combine = hb.plus
    all_active = True

    def initial(self):  # type: ignore[no-untyped-def]
        return 1

    def message(self, state):  # type: ignore[no-untyped-def]
        return state.walks

    def apply(self, combined):  # type: ignore[no-untyped-def]
        return combined

    def finished(self, iteration):  # type: ignore[no-untyped-def]
        return iteration == 10
