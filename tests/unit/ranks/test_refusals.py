"""What several ranks refuse: the same words from Python and from commands."""

from __future__ import annotations

from dataclasses import fields

import pytest
from cli_runs import one_line, run
from graphs import nasty
from sample_programs import Labels
from simulated import run_commands_on_ranks
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.cli import algorithms, commands
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.refusals import ENGINE, GRAPH500, GRAPH500_SSSP, ON_CPU, PROGRAMS

RANKS = 2


@pytest.fixture
def on_ranks(monkeypatch):
    run_commands_on_ranks(monkeypatch, RANKS, algorithms, commands)


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.el"
    path.write_text("0 1\n1 2\n2 3\n")
    return path


def message_of(run) -> str:
    """Return the error that all ranks raise."""

    def work(communicator) -> str:
        with pytest.raises(AgreedError) as raised:
            run(communicator)
        return str(raised.value)

    messages = run_ranks(RANKS, work)
    assert len(set(messages)) == 1
    return messages[0]


def same_words(message: str, name: str, line: str, option: str) -> None:
    assert message.startswith(f"{name} needs a single process: ")
    assert message.endswith("; start without mpirun")
    assert line == f"hetero-bfs: {message.replace(name, option, 1)}"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"order": "given"}, ["--order", "given"]),
        ({"selector": "zhang"}, ["--selector", "zhang"]),
        ({"decision_interval": 2}, ["--decision-interval", 2]),
    ],
)
def test_settings_of_the_benchmark_and_of_commands(on_ranks, graph, capsys, settings, options):
    asked = Graph500Options(scale=6, engine=EngineOptions(**settings))
    message = message_of(lambda communicator: run_graph500(asked, communicator))
    (name,) = settings
    assert run("graph500", "--scale", 6, *options) == 1
    same_words(message, name, one_line(capsys), options[0])
    assert run("bfs", graph, "--source", 1, *options) == 1
    same_words(message, name, one_line(capsys), options[0])
    opening = message_of(
        lambda communicator: RankEngine.read(graph, communicator=communicator, **settings)
    )
    assert opening == message


def test_a_device_for_all_but_breadth_first_search(on_ranks, graph, capsys, monkeypatch):
    def engine(communicator):
        edges = nasty("star") if communicator.rank == 0 else None
        return RankEngine(edges, communicator, device="0")

    message = message_of(lambda communicator: engine(communicator).connected_components())
    assert message == message_of(lambda communicator: engine(communicator).run(Labels()))
    monkeypatch.setattr("hetero_bfs.cli.main._check_device", lambda _: None)
    assert run("components", graph, "--device", 0) == 1
    same_words(message, "device", one_line(capsys), "--device")


def test_wrong_settings():
    """In the words of one process."""
    with pytest.raises(hb.HeteroBFSError) as alone:
        hb.Engine(nasty("star"), threads=0)
    raised = message_of(lambda communicator: RankEngine(None, communicator, threads=0))
    assert raised == str(alone.value)


def test_a_device_for_shortest_paths(on_ranks, capsys, monkeypatch):
    asked = Graph500Options("sssp", scale=6, engine=EngineOptions(device="0"))
    message = message_of(lambda communicator: run_graph500(asked, communicator))
    monkeypatch.setattr("hetero_bfs.cli.main._check_device", lambda _: None)
    assert run("graph500", "--kernel", "sssp", "--scale", 6, "--device", 0) == 1
    same_words(message, "device", one_line(capsys), "--device")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"mode": "asynchronous"}, "mode"),
        ({"place": "device"}, "place"),
        ({"place": "both"}, "place"),
        ({"schedule": ["push", "device pull"]}, "schedule"),
    ],
)
def test_options_of_programs(options, name):
    def program(communicator):
        edges = nasty("star") if communicator.rank == 0 else None
        RankEngine(edges, communicator).run(Labels(), hb.RunOptions(**options))

    message = message_of(program)
    assert message.startswith(f"{name} needs a single process: several ranks run programs ")


def test_a_schedule_of_the_cpu_is_run():
    def program(communicator):
        edges = nasty("star") if communicator.rank == 0 else None
        result = RankEngine(edges, communicator).run(Labels(), hb.RunOptions(schedule=["pull"]))
        return {trace.strategy for trace in result.traces}

    assert run_ranks(RANKS, program) == [{"pull"}] * RANKS


def test_an_algorithm_of_one_process():
    def search(communicator):
        edges = nasty("star") if communicator.rank == 0 else None
        RankEngine(edges, communicator).bfs_many([0, 1])

    words = "a single process must run multi-source searches; start without mpirun"
    assert message_of(search) == words


def test_each_row_is_an_argument():
    """A row of a wrong name would refuse nothing."""
    engine = {field.name for field in fields(EngineOptions)}
    assert ENGINE.keys() | ON_CPU.keys() <= engine
    assert PROGRAMS.keys() <= {field.name for field in fields(hb.RunOptions)}
    assert GRAPH500_SSSP.keys() <= engine | {field.name for field in fields(Graph500Options)}
    assert GRAPH500.keys() < GRAPH500_SSSP.keys()
