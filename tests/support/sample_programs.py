"""Vertex programs that use every part of the kernels between them."""

from __future__ import annotations

import numpy as np

import hetero_bfs as hb


class Parents(hb.Program):
    """Breadth-first search: any message will do, so there is no identity."""

    state = {"parent": np.int32}  # noqa: RUF012
    combine = hb.any_one

    def initial(self, vertex, source):
        return (source, True) if vertex == source else (-1, False)

    def receives(self, state):
        return state.parent < 0

    def message(self, vertex):
        return vertex

    def apply(self, combined):
        return combined


class Distances(hb.Program):
    """Shortest paths in buckets, with the weights of edges."""

    state = {"distance": np.float32}  # noqa: RUF012
    combine = hb.minimum

    def initial(self, vertex, source):
        return 0.0 if vertex == source else np.inf

    def receives(self, state, message):
        return message < state.distance

    def message(self, state, weight):
        return state.distance + weight

    def apply(self, state, combined):
        return min(state.distance, combined)

    def priority(self, state):
        return state.distance


class MonotoneDistances(Distances):
    """The same, with the promise that makes it faster."""

    monotone = True


class Labels(hb.Program):
    """Components: messages of 64 bits, and a second field that counts changes."""

    state = {"label": np.int64, "changes": np.uint32}  # noqa: RUF012
    combine = hb.minimum

    def initial(self, vertex):
        return vertex, 0

    def message(self, state):
        return state.label

    def apply(self, state, combined):
        if combined < state.label:
            return combined, state.changes + 1, True
        return state.label, state.changes, False


class Ranks(hb.Program):
    """PageRank: all vertices are active, and sums end the run."""

    state = {"rank": np.float64}  # noqa: RUF012
    combine = hb.plus
    all_active = True
    totals = ("dangling", "change")

    def initial(self, num_vertices):
        return 1 / num_vertices

    def message(self, state, degree):
        return state.rank / max(degree, 1)

    def apply(self, combined, num_vertices, dangling, alpha):
        return (1 - alpha) / num_vertices + alpha * (combined + dangling / num_vertices)

    def measure(self, state, previous, degree):
        return (state.rank if degree == 0 else 0.0), abs(state.rank - previous.rank)

    def finished(self, change, tol):
        return change < tol


class Reached(hb.Program):
    """Reachability from several vertices: a mask of the sources, from an array of the caller."""

    state = {"mask": np.uint32}  # noqa: RUF012
    combine = hb.bitwise_or

    def initial(self, mask):
        return mask

    def message(self, state):
        return state.mask

    def apply(self, state, combined):
        return state.mask | combined


class Communities(hb.Program):
    """Label propagation (CDLP of Graphalytics): in- and out-neighbours count alike."""

    state = {"label": np.int64}  # noqa: RUF012
    combine = hb.most_frequent
    all_active = True
    along = "both"

    def initial(self, vertex):
        return vertex

    def message(self, state):
        return state.label

    def apply(self, state, combined, degree):
        return combined if degree > 0 else state.label

    def finished(self, iteration, rounds):
        return iteration >= rounds


def needs_doubles(program: hb.Program) -> bool:
    """Tell whether a device runs a program only if it has float64: totals are of that type."""
    return bool(program.totals) or np.float64 in program.state.values()


class Votes(hb.Program):
    """Messages of 32 bits that depend on weights, of which some are none and some are not taken."""

    state = {"vote": np.uint32, "none": np.int32}  # noqa: RUF012
    combine = hb.most_frequent
    all_active = True
    totals = ("changes",)

    def initial(self, vertex):
        return vertex % 13, 0

    def receives(self, state, message):
        return state.none % 5 != 4 and message != 3

    def message(self, state, weight):
        return -1 if weight == 2 else state.vote + weight * 1000003

    def apply(self, state, combined):
        if combined == 2**32 - 1:
            return state.vote, state.none + 1
        return combined % 13, state.none

    def measure(self, state, previous):
        return state.vote != previous.vote

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Extremes(hb.Program):
    """The greatest label reaches all; how it is passed on depends on totals of every kind."""

    state = {"label": np.int32}  # noqa: RUF012
    combine = hb.maximum
    totals = {  # noqa: RUF012
        "least": hb.minimum, "changes": hb.plus, "most": hb.maximum, "all_even": hb.minimum,
    }  # fmt: skip

    def initial(self, vertex):
        return vertex * 7919 % 2003

    def message(self, state):
        return state.label

    def apply(self, state, combined, least, most, all_even, changes):
        if all_even > 0 or changes > 40:
            return max(state.label, combined - 1)
        return max(state.label, combined - int(least < 100) - int(most > 1500))

    def measure(self, state, previous):
        label = state.label
        return label - 7, label != previous.label, label, label % 2 == 0


class Farthest(hb.Program):
    """A method combines messages: the label that is farthest from 1000 reaches all."""

    state = {"label": np.int32}  # noqa: RUF012
    identity = 1000

    def combine(self, first, second):
        one, other = first - self.identity, second - self.identity
        one, other = one * one, other * other
        return first if one > other or (one == other and first > second) else second

    def initial(self, vertex):
        return vertex * 7919 % 2003

    def message(self, state):
        return state.label

    def apply(self, state, combined):
        one, other = state.label - self.identity, combined - self.identity
        one, other = one * one, other * other
        return combined if other > one or (one == other and combined > state.label) else state.label


class Parity(hb.Program):
    """A method combines messages of all vertices, which depend on weights."""

    state = {"bits": np.uint32}  # noqa: RUF012
    identity = 0
    all_active = True

    def combine(self, first, second):
        return first ^ second

    def initial(self, vertex):
        return vertex * 2654435761

    def message(self, state, weight):
        return (state.bits << 1) ^ weight

    def apply(self, state, combined):
        return state.bits ^ combined

    def finished(self, iteration, rounds):
        return iteration >= rounds
