"""Measurements of levels on a device."""

from __future__ import annotations

import numpy as np
from oracle import engine_on

from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.training.measure import LevelMeasurement


def test_a_level_is_measured_again_from_the_same_state(opencl_device):
    """Bottom-up on a device that shares the host's memory uses the queue's memory."""
    edges = KroneckerEdges(15).materialise()
    with engine_on(opencl_device, edges, selector="fixed:TC") as engine:
        host, graph = engine.platform.host, engine.graph
        source = int(np.flatnonzero(graph.degree == 1)[0])
        frontier = Frontier(1, graph.num_searched, graph.graph.num_stored_edges)
        host.begin(source, frontier)
        while not frontier.is_over:
            measurement = LevelMeasurement(engine, frontier, 1, min)
            offsets = host.offsets[frontier.queue_index][: frontier.vertices].copy()
            queue = host.queue[frontier.queue_index][: frontier.vertices].copy()
            for strategy in engine.candidates:
                measurement.strategy(strategy)
                measurement.restore()
                now = host.offsets[frontier.queue_index][: frontier.vertices]
                np.testing.assert_array_equal(now, offsets, strategy.name)
                now = host.queue[frontier.queue_index][: frontier.vertices]
                np.testing.assert_array_equal(now, queue, strategy.name)
            host.run(STRATEGIES["TC"], frontier)
            if not frontier.has_queue and not frontier.is_over:
                host.to_queue(frontier)
