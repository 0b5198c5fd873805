"""Costs of vertex programs: fitted, kept in models, used by runs; and the regret of choices."""

from __future__ import annotations

import json
from itertools import pairwise, product

import numba
import numpy as np
import pandas as pd
import pytest
from graphs import random_graph
from made_models import model_json
from sample_programs import Distances

import hetero_bfs as hb
from hetero_bfs.algorithms import program_runs
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.errors import ModelError
from hetero_bfs.graph.generators.families import StudyGraph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.speed_model import MESSAGE_KINDS, ProgramCosts, first_guess
from hetero_bfs.training import program_regret, regret
from hetero_bfs.training.measured_runs import (
    MEASURED,
    fit_programs,
    measure_programs,
)
from hetero_bfs.training.oracle import schedule_text
from hetero_bfs.training.program_regret import (
    COLUMNS,
    best_schedule,
    options_of,
    place_of,
    regret_of_programs,
    schedule_on,
    summarise_programs,
)

COSTS = ProgramCosts(4e-9, 2e-9, 1e-9, 8e-9, 3e-9, 9e-9)

OLDER_COSTS = ("push_edge", "pull_vertex", "pull_edge", "pull_miss")


def made_samples() -> pd.DataFrame:
    """Iterations of a machine with these costs, and 5 us for each iteration."""
    random = np.random.default_rng(1)
    rows = []
    for direction in ("push", "pull"):
        for _ in range(200):
            vertices, edges = 10 ** random.uniform(2, 6, 2)
            senders, changes, misses = edges * random.uniform(0, [0.5, 0.5, 0.25])
            seconds = 5e-6 + COSTS.push_edge * edges
            seconds += COSTS.push_vertex * senders + COSTS.push_change * changes
            if direction == "pull":
                seconds = 5e-6 + COSTS.pull_vertex * vertices + COSTS.pull_edge * edges
                seconds += COSTS.pull_miss * misses
            counts = vertices, senders, edges, changes, misses
            rows.append(("made", "weighted", "cpu", direction, 1, *counts, seconds))
    names = "family kind place direction iterations vertices senders edges changes misses seconds"
    return pd.DataFrame(rows, columns=names.split())


def test_costs_are_found_again():
    (costs,) = fit_programs(made_samples())["cpu"].values()
    for name in ProgramCosts.names():
        assert getattr(costs, name) == pytest.approx(getattr(COSTS, name), rel=0.01)


def test_every_kind_of_message_has_a_program():
    assert set(MEASURED) == set(MESSAGE_KINDS)
    for kind, program in MEASURED.items():
        parameters = {} if kind == "unweighted" else {"source": 0}
        assert Plan(program(), Parameters.of(parameters, 1), "float32").message_kind == kind


def test_a_model_keeps_costs():
    data = model_json("made") | {"programs": {"device": {"any_one": COSTS.__dict__}}}
    model = read_model(json.dumps(data), "made")
    assert model.programs == {"device": {"any_one": COSTS}}
    assert read_model(json.dumps(model.to_json()), "again").programs == model.programs


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({"cpu": {"other": {}}}, "unknown kind of messages 'other'"),
        ({"gpu": {}}, "unknown device"),
        ({"cpu": {"weighted": {"push_edge": 1}}}, "it lacks 'pull_vertex'"),
        ({"cpu": {"weighted": COSTS.__dict__ | {"push_change": "much"}}}, "could not convert"),
        ({"cpu": {"weighted": COSTS.__dict__ | {"pull_edge": -1}}}, "-1.0 is not a speed"),
    ],
)
def test_costs_that_cannot_be(programs, said):
    with pytest.raises(ModelError, match=said):
        read_model(json.dumps(model_json("made") | {"programs": programs}), "made")


def test_runs_begin_with_the_models_costs(monkeypatch):
    data = model_json("made") | {"programs": {"cpu": {"weighted": COSTS.__dict__}}}
    model = read_model(json.dumps(data), "made")
    edges = hb.EdgeList.from_arrays([0], [1], weights=np.ones(1, np.float32))
    plan = Plan(Distances(), Parameters.of({"source": 0}, 2), "float32")
    for known, costs in ((model, COSTS), (None, first_guess("cpu", 1))):
        monkeypatch.setattr(program_runs, "model_of", lambda _, known=known: known)
        with ProgramRuns(build_search_graph(edges), 1) as runs:
            assert runs._costs(plan, "cpu") == costs
            assert runs._costs(plan, "device") == first_guess("device", 1)


def test_samples_and_regret_of_a_graph(plain_place, monkeypatch):
    edges = random_graph(300, 900, 1)
    threads = numba.get_num_threads()
    graph = StudyGraph("random", "random300", lambda: edges)
    samples = measure_programs([graph], plain_place, threads, 2)
    assert set(samples["kind"]) == set(MESSAGE_KINDS)
    assert set(samples["place"]) == {"cpu"} if plain_place is None else {"cpu", "device"}
    assert (samples["seconds"] > 0).all()
    pushed = samples[(samples["direction"] == "push") & (samples["kind"] == "unweighted")]
    for _, rows in pushed.groupby("place"):  # in the first iteration every vertex sends
        assert rows["edges"].iloc[0] == build_search_graph(edges).graph.num_stored_edges
        assert rows["changes"].iloc[:-1].tolist() == rows["senders"].iloc[1:].tolist()
    monkeypatch.setattr(regret, "REPLAY_SECONDS", 0.0)
    rows = list(regret_of_programs(edges, plain_place, threads, 2))
    assert [row["program"] for row in rows] == [program.__name__ for program in MEASURED.values()]
    for row in rows:
        assert tuple(row) == COLUMNS
        assert row["regret"] == pytest.approx(row["seconds"] / row["best_seconds"] - 1)
        assert row["regret"] >= 0
        assert row["place_regret"] >= 0
        assert row["first_regret"] >= 0
        assert 0 <= row["choosing"] < 1
        assert row["schedule"].startswith("device") == (row["place"] == "device")


def test_programs_are_summarised_by_family():
    rows = [("a", "P", 0.1, 0.01), ("a", "P", 0.1, 0.01), ("b", "Q", 0.0, 0.03), ("b", "Q", 0.0, 0)]
    table = pd.DataFrame(rows, columns=["family", "program", "regret", "choosing"])
    found = summarise_programs(table)
    assert found["families"] == {"a": pytest.approx(0.1), "b": 0.0}
    assert found["programs"] == {"P": pytest.approx(0.1), "Q": 0.0}
    assert found["all"] == pytest.approx(1.1**0.5 - 1)
    assert found["worst"] == pytest.approx(0.1)
    assert found["choosing"] == pytest.approx(0.0125)


def test_the_best_schedule_is_the_best_of_all():
    costs = np.random.default_rng(1).uniform(0, 1, (6, 2, 2))
    sums = {}
    for pulls in product([0, 1], repeat=6):
        pairs = pairwise((pulls[0], *pulls))
        sums[pulls] = sum(costs[i, before, now] for i, (before, now) in enumerate(pairs))
    costs[0, [1, 0], [0, 1]] = costs[0, [0, 1], [0, 1]]  # nothing is before the first iteration
    assert best_schedule(costs) == min(sums, key=lambda pulls: sums[pulls])
    assert best_schedule(costs[:0]) == ()


def test_schedules_as_options_and_as_text():
    schedule = schedule_on("cpu", (False, True, True))
    assert options_of(schedule) == hb.RunOptions(schedule=("push", "pull", "pull"))
    assert schedule_text(schedule) == "push pull*2"
    assert schedule_on("device", (True, False)) == ("device pull", "device push")
    assert schedule_text(("push", "device pull", "device pull")) == "push device pull*2"


def test_places_of_schedules():
    places = [
        place_of(one) for one in (("push", "pull"), ("device pull",), ("device pull", "pull"))
    ]
    assert places == ["cpu", "device", "both"]


def test_the_regret_of_a_graph_is_measured_before_the_next_one_is_taken(monkeypatch):
    """So that a budget can end them: it measures how long each graph takes."""
    events = []

    def graphs():
        for name in ("first", "second"):
            events.append(name)
            yield StudyGraph("random", name, lambda: random_graph(10, 20, 1))

    def measure(what, row):
        return lambda *_, **__: events.append(what) or iter([row])

    monkeypatch.setattr(program_regret, "regret_of_programs", measure("programs", {}))
    monkeypatch.setattr(program_regret, "regret_of_algorithms", measure("algorithms", {}))
    table = program_regret.measure_program_regret(graphs(), None, 1)
    assert len(table) == 4
    measured = ["programs", "algorithms"]
    assert events == ["first", *measured, "second", *measured]
