"""Built-in algorithms as vertex programs, for streamed graphs and for several ranks."""

from __future__ import annotations

import numpy as np

from hetero_bfs.programs.program import Program, minimum, plus


class PowerRanks(Program):
    """The power method of PageRank. `restart` is each vertex's restart probability.

    It ends when the sum of absolute score changes is below `goal`.
    """

    state = {"rank": np.float64}  # noqa: RUF012
    message_type = np.float64
    combine = plus
    all_active = True
    totals = ("dangling", "change")

    def initial(self, start):
        return start

    def message(self, state, degree):
        return state.rank / max(degree, 1)

    def apply(self, combined, restart, dangling, alpha):
        return (1 - alpha) * restart + alpha * (combined + dangling * restart)

    def measure(self, state, previous, degree):
        return (state.rank if degree == 0 else 0.0), abs(state.rank - previous.rank)

    def finished(self, change, goal):
        return change < goal


class WeightedPowerRanks(PowerRanks):
    """The power method by weights; `given` is the sum of the weights of a vertex's edges."""

    def message(self, state, weight, given):
        return state.rank * weight / given if given > 0.0 else 0.0

    def measure(self, state, previous, given):
        return (state.rank if given == 0.0 else 0.0), abs(state.rank - previous.rank)


class FloatPaths(Program):
    """Shortest paths by Bellman-Ford in buckets; `unreached` is greater than all distances."""

    state = {"distance": np.float32}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex, source, unreached):
        return 0 if vertex == source else unreached

    def receives(self, state, message):
        return message < state.distance

    def message(self, state, weight):
        return state.distance + weight

    def apply(self, state, combined):
        return min(state.distance, combined)

    def priority(self, state):
        return state.distance


class DoublePaths(FloatPaths):
    """`FloatPaths` with float64 weights."""

    state = {"distance": np.float64}  # noqa: RUF012


class WholePaths(FloatPaths):
    """`FloatPaths` with integer weights, whose sums may need 64 bits."""

    state = {"distance": np.int64}  # noqa: RUF012


PATHS: dict[str, type[FloatPaths]] = {
    "int32": WholePaths,
    "float32": FloatPaths,
    "float64": DoublePaths,
}
"""Programs by weight type."""


def beyond_all(program: FloatPaths) -> int | float:
    dtype = np.dtype(program.state["distance"])
    return int(np.iinfo(dtype).max) if dtype.kind == "i" else np.inf


class LeastLabels(Program):
    """(Weakly) connected components: each vertex gets the smallest vertex id of its component."""

    state = {"label": np.uint32}  # noqa: RUF012
    combine = minimum
    along = "both"

    def initial(self, vertex):
        return vertex

    def message(self, state):
        return state.label

    def apply(self, state, combined):
        return min(state.label, combined)
