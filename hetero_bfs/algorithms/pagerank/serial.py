"""PageRank by SciPy's products of matrix and vector: answers while the kernels are compiled."""

from __future__ import annotations

import time

import numpy as np

from hetero_bfs.algorithms.bfs.serial import as_matrix
from hetero_bfs.algorithms.pagerank.lists import RankSettings
from hetero_bfs.algorithms.pagerank.result import PageRank
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.lists import Lists
from hetero_bfs.graph.weights import needed_weights, refuse_negative
from hetero_bfs.scheduling.trace import SERIAL, numbered


def rank_by_scipy(graph: CSRGraph, settings: RankSettings, weighted: bool) -> PageRank:
    """Run the power method on a graph of fewer than 2**31 entries, in the caller's ids."""
    began = time.perf_counter()
    n = graph.num_vertices
    if weighted:
        refuse_negative(graph, np.arange(n, dtype=np.uint32), "weighted ranks", are_finite=True)
    matrix = as_matrix(
        Lists(graph.indptr, graph.indices), needed_weights(graph) if weighted else None
    )
    if weighted and matrix.nnz:  # only ratios count, and sums then neither overflow nor vanish
        largest = np.repeat(matrix.max(axis=1).toarray(), np.diff(graph.indptr))
        matrix.data /= np.where(largest > 0, largest, 1)
    total = matrix.sum(axis=1)
    restart = settings.personalization
    restart = np.full(n, 1 / max(n, 1)) if restart is None else restart
    rank, change, seconds = restart, np.inf, [began]
    passed_on = matrix.T.tocsr()
    while not change < settings.change and len(seconds) <= settings.max_iter:
        given = np.divide(rank, total, out=np.zeros(n), where=total > 0)
        dangling = rank[total == 0].sum()
        new = settings.alpha * (passed_on @ given)
        new += (settings.alpha * dangling + 1 - settings.alpha) * restart
        new /= new.sum() or 1.0
        change, rank = float(np.abs(new - rank).sum()), new
        seconds.append(time.perf_counter())
    records = [(SERIAL, n, matrix.nnz, float(taken)) for taken in np.diff(seconds)]
    converged = change < settings.change
    return PageRank(rank, seconds[-1] - began, change, converged, numbered(records))
