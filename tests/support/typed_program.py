"""A user's program; `.ci/packages` checks it by mypy --strict and by pyright, with the installed
package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import hetero_bfs as hb


class Hops(hb.Program):
    """Levels from vertex 0, as a vertex program."""

    state = {"hops": np.int32}  # noqa: RUF012
    combine = hb.minimum

    def initial(self, vertex: int) -> int:
        return 0 if vertex == 0 else 2**30

    def message(self, state: Any) -> Any:
        return state.hops + 1

    def apply(self, state: Any, combined: int) -> tuple[int, bool]:
        if combined < state.hops:
            return combined, True
        return state.hops, False


def levels(graph: hb.CSRGraph, source: int) -> npt.NDArray[np.int32]:
    """Search with an engine; errors have one base class."""
    try:
        with hb.Engine(graph, selector="auto", device="cpu") as engine:
            result: hb.BFSResult = engine.bfs(source)
            paths: hb.ShortestPaths = engine.sssp(source)
            spread: npt.NDArray[np.float64] = engine.pagerank(alpha=0.9).rank
    except hb.HeteroBFSError as error:
        raise SystemExit(str(error)) from error
    seconds: float = result.seconds
    first: hb.LevelTrace = result.traces[0]
    route: list[int] = paths.path_to(int(result.parent[source]))
    print(f"{seconds:.6f} s, {first.strategy}, {len(route)} vertices, {spread.sum():.1f}")
    return result.level


def main(folder: Path) -> None:
    """Build, search, rank, and save a timeline."""
    source, target = np.array([0, 1, 2]), np.array([1, 2, 3])
    graph = hb.CSRGraph.from_edges(source, target, weights=np.ones(3, np.float32))
    found = levels(graph, 0)
    ranks: hb.PageRank = hb.pagerank(graph)
    distance: npt.NDArray[np.float64] = hb.sssp(graph, 0, device="cpu", threads=1).distance
    assert distance[3] == 3.0
    hops = hb.Engine(graph, device="cpu").run(Hops()).hops
    assert np.array_equal(hops, found)
    outcome = hb.validate(graph, 0, hb.bfs(graph, 0).parent)
    hb.save_timeline(folder / "ranks.svg", ranks)
    assert outcome.valid
    assert found.tolist() == [0, 1, 2, 3]


if __name__ == "__main__":
    main(Path())
