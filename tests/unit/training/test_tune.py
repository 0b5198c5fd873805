"""Trying settings of a device's kernels, without the device: what is known of each is made up."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hetero_bfs.devices.machine import DeviceInfo, default_tuning
from hetero_bfs.training import tune as tuning_of
from hetero_bfs.training.tune import TuningPlan, borrowed_tuning, tune

GPU = DeviceInfo(
    0, "GPU", "Vendor", "GPU", 8, 2**30, 2**28, 2**15, False, True, "1", "OpenCL 1.2", None, None
)
START = default_tuning("GPU")
PLAN = TuningPlan((8, 9), (7,), (("registers", (32, 64)), ("group_size", (512,))))


@pytest.fixture
def made_up(monkeypatch):
    """Return a function that sets what a search takes by scale and tuning."""

    def take(seconds) -> None:
        def ratio(info, graph, best, candidate):
            first, second = (seconds(graph.scale, tuning) for tuning in (best, candidate))
            return None if first is None or second is None else second / first

        monkeypatch.setattr(tuning_of, "_ratio", ratio)
        monkeypatch.setattr(tuning_of, "build_search_graph", lambda edges: edges)
        monkeypatch.setattr(tuning_of.KroneckerEdges, "materialise", lambda edges: edges)

    return take


def test_large_and_small_graphs_have_what_suits_them(made_up):
    made_up(
        lambda scale, t: (
            (2 if t.registers == 64 else 3) * (1 if (t.group_size == 512) == (scale == 7) else 2)
        )
    )
    steps = list(tune(GPU, PLAN, START))
    assert len(steps) == PLAN.steps
    assert steps[0] == default_tuning("GPU")
    best = steps[-1]
    assert (best.registers, best.group_size) == (64, 256)
    assert best.small is not None
    assert (best.small.registers, best.small.group_size) == (64, 512)


def test_a_gain_must_be_more_than_noise(made_up):
    made_up(lambda scale, t: 0.995 if t.registers else 1.0)
    assert list(tune(GPU, PLAN, START))[-1] == default_tuning("GPU")


def test_graphs_without_room_say_nothing(made_up):
    """The gain at the other scale decides alone."""
    made_up(lambda scale, t: None if scale == 9 else 0.985 if t.registers == 64 else 1.0)
    assert list(tune(GPU, PLAN, START))[-1].registers == 64


def test_what_cannot_run_is_not_chosen_and_is_replaced(made_up):
    made_up(lambda scale, t: float("inf") if t.group_size == 512 else 1.0)
    assert list(tune(GPU, PLAN, START))[-1].group_size == 256
    made_up(lambda scale, t: 1.0 if t.registers == 32 else 1e9)
    assert list(tune(GPU, PLAN, START))[-1].registers == 32


def test_a_descent_that_ends_early_keeps_the_tuning_it_began_with(made_up):
    made_up(lambda scale, t: 1.0)
    start = replace(START, registers=48, small=replace(START, group_size=512))
    assert next(tune(GPU, PLAN, start)) == start
    assert list(tune(GPU, PLAN, start))[-1] == start
    made_up(lambda scale, t: 1.0 if t.registers == 64 else 2.0)
    found = list(tune(GPU, PLAN, start))[2]  # both values of registers were tried on large graphs
    assert (found.registers, found.small) == (64, start.small)
    found = list(tune(GPU, PLAN, START))[2]
    assert (found.registers, found.small) == (64, START)


def test_a_tuning_is_borrowed_from_a_device_of_the_same_maker_and_type():
    theirs = replace(default_tuning("GPU"), registers=48)
    about = {"machine": {"device": {"platform": GPU.platform, "type": "GPU"}}}
    base = SimpleNamespace(about=about, tuning=theirs)
    assert borrowed_tuning(base, GPU) == theirs
    about["machine"]["device"]["platform"] = "another"
    assert borrowed_tuning(base, GPU) == default_tuning("GPU").fitting(GPU)
    assert borrowed_tuning(None, GPU) == default_tuning("GPU").fitting(GPU)
