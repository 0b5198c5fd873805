"""A sixth strategy: one row of the table and one kernel, and every part of the package knows it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from graphs import SEARCHABLE_NAMES, grid, nasty, sources_of
from oracle import check_search, engine_on

from hetero_bfs.algorithms.bfs.kernels.expand import finish_queue
from hetero_bfs.algorithms.bfs.kernels.phases import join
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import STRATEGIES, Strategy, available
from hetero_bfs.study import figures
from hetero_bfs.support.compiling import kernel
from hetero_bfs.training.collect import measure_graph
from hetero_bfs.training.fit import fit
from hetero_bfs.training.oracle import best_schedule, measure_costs

TOY = Strategy(
    name="XC",
    direction="top-down",
    device_kind="cpu",
    columns=("constant", "frontier_edges"),
    description="top-down by one thread, as a textbook has it",
    color="#654321",
    marker="8",
    kernel=f"{__name__}:textbook_level",
)


@kernel(counted=False, inner=True)
def textbook_level(control, arrays, state, records):
    join(arrays, state)
    this = np.int64(state[schema.QUEUE_INDEX])
    queue, found_queue = arrays.queue[this], arrays.queue[1 - this]
    visited = arrays.visited[np.int64(state[schema.VISITED_INDEX])]
    found = 0
    for i in range(np.int64(state[schema.FRONTIER_VERTICES])):
        u = queue[i]
        for k in range(arrays.indptr[u], arrays.indptr[u + 1]):
            v = arrays.indices[k]
            bit = np.uint32(1) << np.uint32(v & 31)
            if visited[v >> 5] & bit == 0:
                visited[v >> 5] |= bit
                arrays.parent[v] = u
                found_queue[found] = v
                found += 1
    vertices, edges = finish_queue(arrays, 1 - this, found)
    return np.int64(schema.QUEUE), vertices, edges, np.int64(-1)


@kernel(counted=False, inner=True)
def careless_level(control, arrays, state, records):
    return np.int64(0), np.int64(0), np.int64(0)  # one too few


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(STRATEGIES, TOY.name, TOY)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_it_runs_and_is_traced(name, directed):
    edges = nasty(name, directed)
    with engine_on(None, edges, selector="fixed:XC") as engine:
        for source in sources_of(edges):
            traces = check_search(engine, edges, source).traces
            assert {trace.strategy for trace in traces} <= {"XC"}
        engine.set_selector("fixed:TC,XC,BC,XC,BC,BC,XC,TC")
        for source in sources_of(edges):
            check_search(engine, edges, source)


@pytest.mark.usefixtures("many_threads")
def test_it_takes_a_frontier_from_owners():
    """Owners keep frontiers in parts, and others must process deferred edges."""
    edges = grid(150, 3000)
    with engine_on(None, edges, selector="fixed:TC", threads=4) as engine:
        assert engine.graph.relabelling.order == "locality"
        for back in ("XC", "XC,TC"):
            engine.set_selector(f"fixed:{','.join(['TC'] * 155)},{back}")
            check_search(engine, edges, 0)


@pytest.mark.parametrize("name", ["two components", "Kronecker 12", "grid"])
def test_it_crosses_to_a_device_and_back(opencl_device, name):
    edges = nasty(name)
    with engine_on(opencl_device, edges, selector="fixed:XC,TG,XC,BG,XC") as engine:
        for source in sources_of(edges):
            check_search(engine, edges, source)


@pytest.mark.parametrize("selector", ["auto", "learned", "zhang"])
def test_models_choose_among_six(place, trained, selector):
    """Made so cheap it is the first choice; top-down rules still take the table's plain rows."""

    def make_cheap(data):
        data["learned"]["XC"] = {"constant": 1e-9}
        data["zhang"]["edges_per_second"]["XC"] = 1e15

    trained(place, make_cheap)
    edges = nasty("Kronecker 12")
    source = sources_of(edges)[0]
    with engine_on(place, edges, selector=selector, correction=False) as engine:
        traces = check_search(engine, edges, source).traces
        assert {trace.strategy for trace in traces} == {"XC"}
        expected = {s.name for s in available(place is not None)}
        assert all(set(trace.predicted_seconds) == expected for trace in traces)
        assert all(trace.row()["predicted_XC"] > 0 for trace in traces)
        engine.set_selector("alpha-beta")
        used = {trace.strategy for trace in check_search(engine, edges, source).traces}
        assert "XC" not in used


def test_it_is_measured_and_fitted_in_training():
    about = named_graph("kronecker9")
    with Engine(build_search_graph(about.make()), "fixed:TC", device="cpu") as engine:
        samples = pd.DataFrame(measure_graph(engine, 0, about, sources=2))
        costs = measure_costs(engine, int(engine.graph.degree.argmax()), repeats=1)
    levels = samples[samples["measured"].isin(["TC", "BC", "XC"])]
    assert set(levels["measured"]) == {"TC", "BC", "XC"}
    assert (levels["seconds"] > 0).all()
    model = fit(samples, "m", {})
    assert model.learned["XC"].columns == TOY.columns
    assert model.lacking(available(False)) == []
    free = costs.seconds.copy()
    free[:, [s.name for s in costs.strategies].index("XC")] = 0.0
    costs.convert[:], costs.start[:] = 0.0, 0.0
    cheap = type(costs)(costs.strategies, free, *list(vars(costs).values())[2:])
    assert set(best_schedule(cheap).strategies) == {"XC"}


def test_it_is_drawn_in_a_study():
    rows = [
        {"graph": "g", "scale": None, "key": 3, "level": level, "strategy": name, "seconds": 1e-3}
        for name in ("TC", "XC")
        for level in range(3)
    ]
    axes = figures.levels(pd.DataFrame(rows)).axes[0]
    (line,) = [line for line in axes.get_lines() if line.get_label() == "XC"]
    assert (line.get_color(), line.get_marker(), line.get_linestyle()) == ("#654321", "8", "--")
    assert line.get_markerfacecolor() == "white"  # as strategies have, and selectors have not


def test_a_kernel_of_other_results_is_refused(monkeypatch):
    """Its caller would read other integers than it returns."""
    row = Strategy(**{**vars(TOY), "kernel": f"{__name__}:careless_level"})
    monkeypatch.setitem(STRATEGIES, "XC", row)
    with pytest.raises(TypeError, match=r"careless_level returns .* must return 4 int64"):
        Engine(nasty("grid"), "fixed:XC", device="cpu")
