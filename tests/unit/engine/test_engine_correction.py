"""Correction within an engine: after each search."""

from __future__ import annotations

import json

import numpy as np
import pytest
from made_models import model_json

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.scheduling.correction import factors_of
from hetero_bfs.scheduling.correction_kernels import BOUND
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.strategies import available

# In an engine, on the host alone: a model that expects a quarter of an hour of everything.


def seconds_for_all(data) -> None:
    for table in ("learned", "start", "switch", "convert"):
        data[table] = {name: {"constant": 1000.0} for name in data[table]}


@pytest.fixture
def slow_model(trained, one_thread):
    trained(None, seconds_for_all)


KRONECKER = hb.KroneckerEdges(8)


def search_some(engine, count=8):
    for key in np.flatnonzero(engine.graph.input_degree)[:count].tolist():
        engine.bfs(key)


@pytest.mark.usefixtures("slow_model")
def test_an_engine_corrects_after_its_searches():
    with hb.Engine(KRONECKER, selector="learned", device="cpu") as engine:
        assert engine.corrections == {}
        search_some(engine)
        assert engine.corrections["TC"] == 1 / BOUND
        result = engine.bfs(int(np.flatnonzero(engine.graph.input_degree)[0]))
        first = result.traces[0]
        assert first.predicted_seconds["TC"] == pytest.approx(2000 / BOUND)
        assert "corrected x0.031" in first.reason
        engine.set_selector("alpha-beta")
        assert engine.corrections == {}
        engine.set_selector("learned")
        assert engine.corrections["TC"] == 1 / BOUND


@pytest.mark.usefixtures("slow_model")
def test_switched_off_choices_are_those_of_the_model():
    with hb.Engine(KRONECKER, selector="learned", device="cpu", correction=False) as engine:
        before = engine.selector
        for key in np.flatnonzero(engine.graph.input_degree)[:4].tolist():
            traces = engine.bfs(key).traces
            assert all("corrected" not in trace.reason for trace in traces)
            assert traces[0].predicted_seconds["TC"] == 2000.0
        assert engine.selector is before
        assert engine.corrections == {}


@pytest.mark.usefixtures("one_thread")
def test_the_papers_model_is_taken_as_it_is_where_it_is_asked_for(trained):
    trained(None, seconds_for_all)
    with hb.Engine(KRONECKER, selector="zhang", device="cpu") as engine:
        assert engine.corrections == {}


@pytest.mark.usefixtures("slow_model")
def test_what_was_learned_outlives_another_selector():
    """Selectors are compared in turn; each goes on where it was."""
    with hb.Engine(KRONECKER, selector="learned", device="cpu") as engine:
        search_some(engine)
        corrected = engine.selector
        assert engine.corrections
        for _ in range(3):
            engine.set_selector("fixed:TC")
            engine.set_selector("learned")
            assert engine.selector is corrected
        for _ in range(3):  # factors are of the model, not of what was corrected
            factors = dict(engine.corrections)
            engine.set_selector(engine.selector)
            assert engine.corrections == factors
        made = read_model(json.dumps(model_json("machine")), "made")
        another = model_selector("learned", made, available(False))
        engine.set_selector(another)
        assert engine.selector.model is another.model


@pytest.mark.usefixtures("slow_model")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (2, 1), (3, 1)], [], [(0, 0)]])
def test_the_smallest_graphs_have_a_model_too(edges, directed):
    src, dst = np.array(edges, np.uint32).reshape(-1, 2).T
    graph = hb.CSRGraph.from_edges(src, dst, num_vertices=5, directed=directed)
    with hb.Engine(graph, selector="learned", device="cpu") as engine:
        assert engine.bfs(0).parent[0] == 0


@pytest.mark.usefixtures("one_thread")
def test_only_a_whole_search_from_one_source_is_a_trial(trained, monkeypatch):
    """Others are not learned from, so they would never end it."""
    trained(None)
    used = []
    search = Search.run

    def run(self, *args, **kwargs):
        used.append(self.selector)
        return search(self, *args, **kwargs)

    monkeypatch.setattr(Search, "run", run)
    with hb.Engine(KRONECKER, device="cpu") as engine:
        one, other = np.flatnonzero(engine.graph.input_degree)[:2].tolist()
        engine.search(one)
        correction = engine._selection.learns
        correction.trial = trial = correction.selector.corrected(correction.selector.factors)
        usual = correction.selector
        used.clear()
        engine.bfs(one, depth_limit=1)
        engine.bfs([one, other])
        engine.bfs(one, target=other)
        assert all(selector is usual for selector in used)
        assert engine.corrections == factors_of(usual)
        used.clear()
        expected = []
        monkeypatch.setattr(Platform, "expect", lambda self, *which: expected.append(which))
        while correction.trial is not None:
            engine.search(one)
        assert used in ([trial], [trial, trial])
        assert expected == [(usual, 1, trial)], "the device gets the next policy in advance"
