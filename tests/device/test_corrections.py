"""Corrections with an OpenCL device: everything is probed, and searches stay right."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import nasty
from oracle import check_search, engine_on

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.correction_kernels import BOUND, KNOWN
from hetero_bfs.scheduling.model_selectors import migration_names
from hetero_bfs.scheduling.strategies import STRATEGIES, available


def seconds_for_all(data) -> None:
    for table in ("learned", "start", "switch", "convert"):
        data[table] = {name: {"constant": 1000.0} for name in data[table]}


@pytest.mark.usefixtures("one_thread")
def test_probes_run_every_strategy_and_move(opencl_device, foreign):
    """If all predictions are off by a million, all are corrected as far as the bound allows."""
    foreign(seconds_for_all)
    with engine_on(opencl_device, nasty("Kronecker 10"), selector="learned") as engine:
        small = [f"{name} (small levels)" for name in STRATEGIES]
        assert engine.corrections == dict.fromkeys(
            (*small, *STRATEGIES, *migration_names(available(1))), 1 / BOUND
        )
        count = len(STRATEGIES)
        known = engine._selection.learns._memory[: 2 * count, KNOWN].reshape(2, count) == 1
        assert known.any(axis=0).all(), "each was measured itself"
        assert known[schema.SMALL].any()
        assert known[schema.LARGE].any()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("seed", range(3))
def test_searches_stay_right_while_choices_change(opencl_device, foreign, seed):
    """Models that are wrong at random lead from device to device; the policy is replaced."""
    random = np.random.default_rng(seed)

    def spoil(data):
        for table in ("learned", "start", "switch", "convert"):
            for columns in data[table].values():
                for name in columns:
                    columns[name] *= 10 ** random.uniform(-3, 3)

    foreign(spoil)
    edges = nasty("Kronecker 10")
    with engine_on(opencl_device, edges, selector="learned") as engine:
        for source in random.integers(0, edges.num_vertices, 12).tolist():
            result = check_search(engine, edges, source)
            assert all(np.isfinite(list(t.predicted_seconds.values())).all() for t in result.traces)
        assert engine.corrections
