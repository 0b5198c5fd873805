"""Every selector in searches: choices, traces and crossings."""

from __future__ import annotations

import pytest
from graphs import (
    core_with_tails,
    nasty,
    sources_of,
)
from oracle import check_search, engine_on

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.strategies import MODEL_SELECTORS, STRATEGIES, available


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "selector", ["auto", "learned", "thresholds", "zhang", "alpha-beta", "daga", "yasui"]
)
@pytest.mark.parametrize("name", ["no edges", "one loop", "two components", "grid", "Kronecker 12"])
def test_every_selector(place, trained, selector, name):
    if selector == "daga" and place is None:
        with pytest.raises(ModelError, match="there is none"):
            engine_on(None, nasty(name), selector=selector)
        return
    trained(place)
    edges = nasty(name)
    with engine_on(place, edges, selector=selector) as engine:
        assert engine.notes == []
        assert engine.selector.name == selector
        for source in sources_of(edges):
            result = check_search(engine, edges, source)
            for trace in result.traces:
                check_choice(trace, selector, place)


def check_choice(trace, selector, place) -> None:
    if selector in ("auto", *MODEL_SELECTORS):
        assert set(trace.predicted_seconds) == {s.name for s in available(place is not None)}
        assert all(0 < seconds < 1 for seconds in trace.predicted_seconds.values())
        if selector == "zhang":
            chosen = trace.predicted_seconds[trace.strategy]
            assert chosen == min(trace.predicted_seconds.values())
    else:
        assert trace.predicted_seconds == {}
        bottom_up = "BG" if place is not None and selector != "yasui" else "BC"
        top_down = "TG" if place is not None and selector == "alpha-beta" else "TC"
        assert trace.strategy in (top_down, bottom_up)
    assert trace.reason


@pytest.mark.parametrize("edges", [core_with_tails(), nasty("Kronecker 12")])
def test_the_least_of_the_compared_seconds_is_chosen(place, trained, edges):
    """A device compares in float32, what the trace has is computed in float64."""
    trained(place)
    with engine_on(place, edges, selector="learned", correction=False) as engine:
        traces = check_search(engine, edges, sources_of(edges)[0]).traces
        for trace in traces:
            compared = trace.compared_seconds
            assert compared.keys() == trace.predicted_seconds.keys()
            for name, seconds in trace.predicted_seconds.items():
                assert compared[name] >= 0.999 * seconds
                assert trace.row()[f"compared_{name}"] == compared[name]
            if "which is alike" not in trace.reason:
                assert compared[trace.strategy] <= 1.001 * min(compared.values())
        rest = [t.compared_seconds[t.strategy] - t.predicted_seconds[t.strategy] for t in traces]
        assert max(rest) > 0
        engine.set_selector("thresholds")
        traces = check_search(engine, edges, sources_of(edges)[0]).traces
        assert all(trace.predicted_seconds and not trace.compared_seconds for trace in traces)


def test_a_made_up_model_makes_the_search_cross_both_ways(opencl_device, trained):
    """Bottom-up free on the device, top-down free on the CPU, while a switch costs little."""

    def change(data):
        for name, columns in data["learned"].items():
            columns["constant"] = 1e-9 if name in ("BG", "TC") else 1.0

    trained(opencl_device, change)
    edges = nasty("Kronecker 12")
    made_up = {"selector": "learned", "correction": False}  # measured times would change choices
    with engine_on(opencl_device, edges, **made_up) as engine:
        result = check_search(engine, edges, 7)
    used = [trace.strategy for trace in result.traces]
    assert set(used) == {"TC", "BG"}
    assert used[0] == "TC"


@pytest.mark.parametrize("name", ["two components", "star", "Kronecker 12", "grid"])
def test_beamers_rule_as_the_levels_show_it(place, name):
    """Replay the rule on the recorded features."""
    edges = nasty(name)
    with engine_on(place, edges, selector="alpha-beta") as engine:
        for source in sources_of(edges):
            direction = "top-down"
            for trace in check_search(engine, edges, source).traces:
                f = trace.features
                if direction == "top-down":
                    if f.growth > 1 and f.frontier_edges > f.unvisited_edges / 15:
                        direction = "bottom-up"
                elif f.frontier_vertices < f.num_vertices / 18:
                    direction = "top-down"
                assert STRATEGIES[trace.strategy].direction == direction
