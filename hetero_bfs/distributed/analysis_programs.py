"""Shortest paths, components and PageRank as vertex programs, for several ranks."""

from __future__ import annotations

import numpy as np

from hetero_bfs.programs.monoids import minimum, plus
from hetero_bfs.programs.program import Program

UNREACHED = 2**63 - 1
"""Distance of a vertex that is not reached, in integers."""


class Distances(Program):
    """Least distances in float64, in buckets."""

    state = {"distance": np.float64}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        """Nothing but the source is reached."""
        return 0.0 if vertex == source else np.inf

    def message(self, state, weight):  # type: ignore[no-untyped-def]
        """The path goes on along the edge."""
        return state.distance + weight

    def apply(self, state, combined):  # type: ignore[no-untyped-def]
        """The shorter path stays."""
        return min(state.distance, combined)

    def priority(self, state):  # type: ignore[no-untyped-def]
        """Near vertices first."""
        return state.distance


class Float32Distances(Distances):
    """The same with sums rounded to float32."""

    state = {"distance": np.float32}  # noqa: RUF012


class IntegerDistances(Distances):
    """The same for integers."""

    state = {"distance": np.int64}  # noqa: RUF012

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        """Nothing but the source is reached."""
        return 0 if vertex == source else 9223372036854775807


DISTANCES: dict[str, type[Distances]] = {
    "int32": IntegerDistances,
    "float32": Float32Distances,
    "float64": Distances,
}
"""By the type of the weights."""


class LeastLabels(Program):
    """Components: the least vertex of each."""

    state = {"label": np.uint32}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex):  # type: ignore[no-untyped-def]
        """Each vertex is a component."""
        return vertex

    def message(self, state):  # type: ignore[no-untyped-def]
        """The label goes along."""
        return state.label

    def apply(self, state, combined):  # type: ignore[no-untyped-def]
        """The lesser label stays."""
        return min(state.label, combined)


class PowerRanks(Program):
    """PageRank by the power method; ends when the L1 change is below `limit`."""

    state = {"rank": np.float64}  # noqa: RUF012
    combine = plus
    all_active = True
    totals = ("dangling", "change")

    def initial(self, num_vertices):  # type: ignore[no-untyped-def]
        """All are alike."""
        return 1 / num_vertices

    def message(self, state, degree):  # type: ignore[no-untyped-def]
        """Each neighbour gets an equal share."""
        return state.rank / max(degree, 1)

    def apply(self, combined, num_vertices, dangling, alpha):  # type: ignore[no-untyped-def]
        """What arrives is damped; the rank of vertices without edges goes to all."""
        return (1 - alpha) / num_vertices + alpha * (combined + dangling / num_vertices)

    def measure(self, state, previous, degree):  # type: ignore[no-untyped-def]
        """The rank of vertices without edges, and the change."""
        return (state.rank if degree == 0 else 0.0), abs(state.rank - previous.rank)

    def finished(self, change, limit):  # type: ignore[no-untyped-def]
        """The change is small enough."""
        return change < limit
