"""Levels, models and searches that Hypothesis draws, for tests of selectors."""

from __future__ import annotations

from hypothesis import strategies as st

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.scheduling.trace import LevelFeatures

FEATURES = st.builds(
    lambda n, degree, visited, frontier, kind, representation, growth: LevelFeatures(
        level=0 if kind is None else 3,
        frontier_vertices=max(int(visited * n * frontier), 1),
        frontier_edges=max(int(visited * n * frontier * degree), 1),
        unvisited_vertices=n - max(int(visited * n), 1),
        unvisited_edges=int((n - max(int(visited * n), 1)) * degree),
        num_vertices=n,
        num_edges=max(int(n * degree), 1),
        growth=growth,
        device_kind=kind,
        representation="queue" if kind is None else representation,
    ),
    st.integers(2, 10**7),
    st.floats(1, 50),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([None, "cpu", "device"]),
    st.sampled_from(["queue", "bitmap"]),
    st.floats(1e-6, 1e6),
)


def weights(columns):
    return st.fixed_dictionaries({name: st.floats(0, 1e-3) for name in columns}).map(
        lambda d: Linear(tuple(d), tuple(d.values()))
    )


@st.composite
def models(draw):
    learned = {name: draw(weights(STRATEGIES[name].columns)) for name in STRATEGIES}
    migrations = [
        {kind: draw(weights(schema.MIGRATION_COLUMNS)) for kind in ("cpu", "device")}
        for _ in range(3)
    ]
    return SpeedModel("m", learned, *migrations, {})


@st.composite
def searches(draw):
    """The states of a search: frontiers take vertices and edges until some are left over.

    Each has more than a fifteenth of the edges left, so that predicted seconds alone decide.
    """
    sizes = st.tuples(st.integers(10**4, 2 * 10**4), st.integers(5, 6))
    found = draw(st.lists(sizes, min_size=1, max_size=6))
    sizes = [(vertices, vertices * degree) for vertices, degree in found]
    n, m = (sum(size[i] for size in sizes) + draw(st.integers(1, 1000)) for i in (0, 1))
    left_vertices, left_edges, before, states = n, m, 1, []
    for level, (vertices, edges) in enumerate(sizes):
        left_vertices, left_edges = left_vertices - vertices, left_edges - edges
        states.append(
            LevelFeatures(
                level, vertices, edges, left_vertices, left_edges, n, m, edges / before, None,
                "queue",
            )
        )  # fmt: skip
        before = edges
    return states
