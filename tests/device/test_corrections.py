"""Corrections with an OpenCL device: searches stay right."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import nasty
from oracle import check_search, engine_on


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("seed", range(3))
def test_searches_stay_right_while_choices_change(opencl_device, trained, seed):
    """What looks too cheap leads from device to device; the policy is replaced."""
    random = np.random.default_rng(seed)

    def spoil(data):
        for table in ("learned", "start", "switch", "convert"):
            for columns in data[table].values():
                for name in columns:
                    columns[name] *= 10 ** random.uniform(-4, -1)

    trained(opencl_device, spoil)
    edges = nasty("Kronecker 10")
    used = set()
    with engine_on(opencl_device, edges, selector="learned") as engine:
        for source in random.integers(0, edges.num_vertices, 24).tolist():
            result = check_search(engine, edges, source)
            assert all(np.isfinite(list(t.predicted_seconds.values())).all() for t in result.traces)
            used |= {trace.strategy for trace in result.traces}
        assert len(used) > 2 or engine.corrections
