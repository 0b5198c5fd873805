"""Arguments that cannot be used, from Python: one clear error each, before any work."""

from __future__ import annotations

import dataclasses
import pydoc
import re

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.cli import arguments
from hetero_bfs.engine import engine
from hetero_bfs.errors import ArgumentError, GraphError, HeteroBFSError
from hetero_bfs.scheduling.strategies import NAMED_SELECTORS, STRATEGIES


@pytest.fixture
def edges():
    return hb.KroneckerEdges(5).materialise()


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("correction", "x", "True or False"),
        ("correction", None, "True or False"),
        ("correction", 1, "True or False"),
        ("selector", 3, "learned"),
        ("selector", None, "learned"),
        ("device", 0, "as text"),
        ("device", " ", "leave it out"),
        ("order", "random", '"locality"'),
        ("order", None, '"locality"'),
        ("decision_interval", 0, "at least 1"),
        ("decision_interval", 1.5, "integer"),
        ("threads", 0, "from 1 to"),
        ("threads", "2", "from 1 to"),
        ("threads", True, "from 1 to"),
        ("max_alloc_bytes", "1G", "integer"),
        ("device_memory_bytes", 0.5, "integer"),
        ("tuning", {}, "Tuning"),
    ],
)
def test_the_engine_names_argument_value_and_remedy(edges, monkeypatch, name, value, remedy):
    def never(*_):
        raise AssertionError("opened")

    monkeypatch.setattr(engine, "open_devices", never)
    with pytest.raises(ArgumentError) as caught:
        hb.Engine(edges, **({"device": "cpu", "selector": "fixed:TC"} | {name: value}))
    assert str(caught.value).startswith(f"{name} is {value!r}; give ")
    assert remedy in str(caught.value)


@pytest.mark.parametrize("make", [hb.EngineOptions, lambda **wrong: hb.Engine(None, **wrong)])
def test_no_device_beside_a_device(make):
    with pytest.raises(ArgumentError, match="device='0,cpu': 'cpu' stands alone"):
        make(device="0,cpu")


def test_words_for_devices():
    found = {word: hb.EngineOptions(device=word).device for word in ("auto", "CPU", "All", "Tesla")}
    assert found == {"auto": None, "CPU": "cpu", "All": "all", "Tesla": "Tesla"}


@pytest.mark.parametrize(
    ("selector", "words"),
    [("best", "unknown selector 'best'; choose one of auto"), ("fixed:XX", "names strategy 'XX'")],
)
def test_a_selector_that_there_is_not_is_found_before_the_graph_is_built(
    edges, monkeypatch, selector, words
):
    monkeypatch.setattr(engine, "build_search_graph", lambda *_: pytest.fail("built"))
    with pytest.raises(hb.ModelError, match=words):
        hb.Engine(edges, selector)


def test_help_of_the_engine_lists_every_setting_with_default_and_description():
    text = pydoc.render_doc(hb.Engine, renderer=pydoc.plaintext)
    signature = next(line for line in text.splitlines() if "Engine(graph" in line)
    for setting in dataclasses.fields(hb.EngineOptions):
        assert f"{setting.name}: {setting.type!r} = {setting.default!r}" in signature
        assert re.search(rf"^ \|\s+{setting.name} : ", text, re.MULTILINE)


def test_an_engine_takes_its_settings_by_place_name_and_from_options(edges):
    options = hb.EngineOptions("fixed:TC", device="cpu", decision_interval=2)
    with (
        hb.Engine(edges, "fixed:TC", "cpu", decision_interval=2) as one,
        hb.Engine(graph=edges, **options.settings()) as other,
    ):
        assert one.options == other.options == options
        assert one.selector.name == other.selector.name == "fixed:TC"


def test_a_setting_that_there_is_not(edges):
    with pytest.raises(TypeError, match="colour"):
        hb.Engine(edges, colour="red")


def test_numpys_numbers_and_flags_will_do(edges):
    options = {"decision_interval": np.int64(2), "threads": np.int32(1), "correction": np.True_}
    with hb.Engine(edges, "fixed:TC", device="cpu", **options) as made:
        assert made.bfs(1).parent[1] == 1
        assert type(made.decision_interval) is type(made.threads) is int


@pytest.mark.parametrize("graph", ["g.txt", None, np.zeros((3, 3)), 5])
@pytest.mark.parametrize(
    "use",
    [
        lambda graph: hb.Engine(graph),
        lambda graph: hb.bfs(graph, 0),
        lambda graph: hb.validate(graph, 0, np.zeros(3, np.int64)),
        lambda graph: hb.CSRGraph.from_edge_source(graph),
    ],
)
def test_what_is_no_graph(graph, use):
    with pytest.raises(ArgumentError, match=rf"type {type(graph).__name__}; make one with .*load"):
        use(graph)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hb.kronecker("6"), "scale is '6'"),
        (lambda: hb.kronecker(6.0), r"scale is 6\.0"),
        (lambda: hb.kronecker(6, 1.5), r"edgefactor is 1\.5"),
        (lambda: hb.KroneckerEdges(6, seed1="x"), "seed1 is 'x'"),
        (lambda: hb.load(5), "path is 5"),
        (lambda: hb.load("g.txt", directed="no"), "directed is 'no'; give True or False"),
        (lambda: hb.CSRGraph.from_edges([0], [1], directed=1), "directed is 1"),
        (lambda: hb.CSRGraph.from_scipy(np.ones((3, 3))), "ndarray; give a SciPy sparse one"),
        (lambda: hb.CSRGraph.from_networkx([(0, 1)]), r"list; give a networkx\.Graph"),
    ],
)
def test_graphs_from_what_cannot_be_used(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_a_root_that_is_no_number(edges):
    with pytest.raises(GraphError, match="'1' is not a vertex id"):
        hb.validate(edges, "1", np.zeros(edges.num_vertices, np.int64))


def test_an_argument_error_is_ours_and_a_value_error():
    assert issubclass(ArgumentError, HeteroBFSError)
    assert issubclass(ArgumentError, ValueError)
    assert hb.ArgumentError is ArgumentError


# The command line's selectors.


@pytest.mark.parametrize("text", ["fixed:XX", "fixed:", "fixed:TC,,BC", "fixed:TC;BC", "best", ""])
def test_a_wrong_selector_lists_the_right_ones(text, capsys):
    with pytest.raises(SystemExit):
        arguments.make_parser("0").parse_args(["graph500", "--selector", text])
    error = capsys.readouterr().err
    for name in STRATEGIES:
        assert name in error
    if not text.startswith("fixed:"):
        for name in NAMED_SELECTORS:
            assert name in error
