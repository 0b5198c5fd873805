"""LDBC Graphalytics' validation graphs: their results are ours (data/ldbc/README.md)."""

from __future__ import annotations

import numpy as np
import pytest
from checkout import TOP
from sample_programs import Communities, Ranks

import hetero_bfs as hb

FOLDER = TOP / "tests" / "data/ldbc"
TOLERANCE = 1e-4  # relative, theirs
NOT_REACHED = np.iinfo(np.int64).max


class Case:
    """A graph and results by vertex, both in numbers from 0 that keep the vertices' order."""

    def __init__(self, name: str, directed: bool, output: str, weighted: bool = False) -> None:
        if weighted:
            self.vertices = np.loadtxt(FOLDER / f"{name}.v", np.int64, ndmin=1)
            table = np.loadtxt(FOLDER / f"{name}.e", ndmin=2)
            pairs, weights = table[:, :2].astype(np.int64), table[:, 2].astype(np.float32)
        else:
            lines = [[int(word) for word in line.split()] for line in _lines(f"{name}-input")]
            pairs = np.array([(line[0], other) for line in lines for other in line[1:]])
            self.vertices = np.union1d([line[0] for line in lines], pairs)
            weights = None
        src, dst = self.numbers(pairs[:, 0]), self.numbers(pairs[:, 1])
        self.graph = hb.CSRGraph.from_edges(src, dst, self.vertices.size, directed, weights)
        results = [line.split() for line in _lines(output)]
        assert self.numbers([int(v) for v, _ in results]).tolist() == [*range(self.vertices.size)]
        self.results = np.array([result for _, result in results])

    def numbers(self, vertices) -> np.ndarray:
        """Return the numbers of vertices."""
        return np.searchsorted(self.vertices, vertices)

    def engine(self) -> hb.Engine:
        """Return an engine for the graph."""
        return hb.Engine(self.graph, device="cpu")


def _lines(name: str) -> list[str]:
    return (FOLDER / name).read_text().splitlines()


def cases(folder: str, algorithm: str, parameters) -> pytest.MarkDecorator:
    """Return a graph and its results of both kinds of graph, twice, each with a parameter."""
    names = [
        (f"{folder}/dir", True, f"{folder}/dir-output"),
        (f"{folder}/undir", False, f"{folder}/undir-output"),
        ("example/example-directed", True, f"example/example-directed-{algorithm}"),
        ("example/example-undirected", False, f"example/example-undirected-{algorithm}"),
    ]
    cases = list(zip(names, parameters, strict=True))
    return pytest.mark.parametrize(("names", "parameter"), cases, ids=[n[0] for n in names])


@cases("bfs", "BFS", [1, 1, 1, 2])
def test_levels(names, parameter):
    case = Case(*names)
    with case.engine() as engine:
        level = engine.bfs(int(case.numbers(parameter))).level.astype(np.int64)
    np.testing.assert_array_equal(
        np.where(level < 0, NOT_REACHED, level), case.results.astype(np.int64)
    )


@cases("wcc", "WCC", [None] * 4)
def test_components(names, parameter):
    case = Case(*names)
    with case.engine() as engine:
        found = engine.connected_components().component
    _, expected = np.unique(case.results.astype(np.int64), return_inverse=True)
    assert len({*zip(found.tolist(), expected.tolist(), strict=True)}) == np.unique(found).size
    assert np.unique(found).size == np.unique(expected).size


@cases("pr", "PR", [14, 26, 2, 2])
def test_ranks(names, parameter):
    case = Case(*names)
    expected = case.results.astype(np.float64)
    with case.engine() as engine:
        options = hb.RunOptions(max_iterations=parameter)
        rank = engine.run(Ranks(), options, alpha=0.85, tol=0.0).rank
        np.testing.assert_allclose(rank, expected, rtol=TOLERANCE)
        if parameter > 2:  # they are all but converged
            rank = engine.pagerank(tol=1e-9).rank
            np.testing.assert_allclose(rank, expected, rtol=TOLERANCE)


@cases("cdlp", "CDLP", [5, 5, 2, 2])
def test_communities(names, parameter):
    case = Case(*names)
    with case.engine() as engine:
        label = engine.run(Communities(), rounds=parameter).label
    np.testing.assert_array_equal(case.vertices[label], case.results.astype(np.int64))


@cases("sssp", "SSSP", [1, 1, 1, 2])
def test_distances(names, parameter):
    name, directed, output = names
    case = Case(f"{name}-input" if "sssp" in name else name, directed, output, weighted=True)
    with case.engine() as engine:
        distance = engine.sssp(int(case.numbers(parameter))).distance
    np.testing.assert_allclose(distance, case.results.astype(np.float64), rtol=TOLERANCE)
