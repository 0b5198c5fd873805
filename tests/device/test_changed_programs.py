"""Right answers after a first run of a program: what has changed since then is seen."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from changed_programs import CHANGES, steps
from graphs import random_graph
from plain_programs import PlainRun

import hetero_bfs as hb
from hetero_bfs.graph.edge_list import EdgeList

WAYS = ("an attribute", "a list", "a global", "a method")


def graph_of(weight_type) -> hb.CSRGraph:
    edges = random_graph(40, 90, 1)
    weights = np.random.default_rng(1).integers(1, 5, edges.src.size).astype(weight_type)
    return hb.CSRGraph.from_edge_source(EdgeList(edges.src, edges.dst, 40, True, weights))


def engine_of(graph: hb.CSRGraph, info) -> hb.Engine:
    return hb.Engine(graph, device="cpu" if info is None else str(info.index))


@pytest.fixture(scope="module")
def engine(plain_place):
    with engine_of(graph_of(np.int32), plain_place) as engine:
        yield engine


def confirm(engine: hb.Engine, graph: hb.CSRGraph, program, begin) -> None:
    place = "cpu" if engine.device_info is None else "device"
    result = engine.run(program, hb.RunOptions(place=place), begin=begin)
    expected = PlainRun(program, graph, {"begin": begin}, False).run()
    np.testing.assert_array_equal(result.value, expected.state["value"])
    assert result.value.dtype == expected.state["value"].dtype


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", WAYS)
def test_what_changes(engine, change):
    graph, kind = graph_of(np.int32), steps()
    first, program = kind(), kind()
    confirm(engine, graph, first, 2)
    CHANGES[change](program)
    for one in (program, first, program):
        confirm(engine, graph, one, 2)


def test_other_arguments(engine):
    graph, program = graph_of(np.int32), steps()()
    for begin in (2, 30, 2.5, True, np.arange(40, dtype=np.int32), np.arange(40.0), 3, 2.5):
        confirm(engine, graph, program, begin)


def test_a_class_of_the_same_name(engine):
    graph = graph_of(np.int32)
    for old, new in (("", ""), ("step = 1", "step = 2"), ("BOUND = 40", "BOUND = 11"), ("", "")):
        confirm(engine, graph, steps(old, new)(), 2)


def test_another_type_of_weights(engine):
    program = steps()()
    confirm(engine, graph_of(np.int32), program, 2)
    with engine_of(graph_of(np.float32), engine.device_info) as other:
        confirm(other, graph_of(np.float32), program, 2)


def test_a_closed_engine_keeps_no_class(plain_place, few_objects):
    kind, graph = steps(), graph_of(np.int32)
    with engine_of(graph, plain_place) as engine:
        confirm(engine, graph, kind(), 2)
    gone = weakref.ref(kind)
    del kind
    gc.collect()
    assert gone() is None
