"""The JSON of each command has the fields that docs/guide/json.md lists for it, and no others."""

from __future__ import annotations

import argparse
import datetime
import json
import re

import pytest
from checkout import TOP
from cli_runs import run
from json_page import differences, fields_of, sections

from hetero_bfs.cli.arguments import make_parser

CPU = ["--device", "cpu"]
PROGRAMS = str(TOP / "tests/support/sample_programs.py")
RANKS = ["--argument=alpha=0.85", "--argument=tol=0.1"]
COMMANDS = {
    "bfs": ["bfs", "GRAPH", "--source", "0", "--target", "2", *CPU],
    "sssp": ["sssp", "GRAPH", "--source", "0", *CPU],
    "components": ["components", "GRAPH", *CPU],
    "colour": ["colour", "GRAPH", *CPU],
    "pagerank": ["pagerank", "GRAPH", *CPU],
    "run": ["run", PROGRAMS, "GRAPH", "--program=Ranks", *RANKS, *CPU],
    "layers": ["layers", "GRAPH", "--root", "0", *CPU],
    "info": ["info", "GRAPH"],
    "devices": ["devices"],
    "doctor": ["doctor"],
    "graph500": ["graph500", "--scale", "8", "--sources", "4", *CPU],
    "graph500 --kernel sssp": [
        "graph500",
        "--scale",
        "8",
        "--sources",
        "4",
        "--kernel",
        "sssp",
        *CPU,
    ],
}


def listed_for(name: str) -> set[str]:
    found, page = set(), sections()
    if name.startswith("graph500 "):  # without the fields of the other kernel
        found = page["graph500"] - page_of_kernel_bfs()
    return page["Every command"] | page[name] | found


def page_of_kernel_bfs() -> set[str]:
    own = ("selector", "rules.*", "model.*", "corrections.*", "parts", "streaming.*")
    roots = ("levels", "streamed_bytes", "strategies")
    return {"bfs.*", *own, *(f"roots[].{one}" for one in roots)}


@pytest.mark.parametrize("name", COMMANDS)
def test_fields(name, tmp_path, capsys):
    graph, path = tmp_path / "g.wel", tmp_path / "out.json"
    graph.write_text("0 1 2\n1 2 3\n2 0 1\n3 4 1\n")
    given = [graph if word == "GRAPH" else word for word in COMMANDS[name]]
    assert run(*given, "--json", path) == 0
    data = json.loads(path.read_text())
    assert differences(fields_of(data), listed_for(name)) == []
    now = datetime.datetime.now(datetime.UTC)
    age = now - datetime.datetime.fromisoformat(data["time"])
    assert datetime.timedelta(seconds=-1) <= age <= datetime.timedelta(minutes=5)
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", data["machine"]["commit"])
    assert data["seeds"] == ({"seed1": 2, "seed2": 3} if "graph500" in name else {})
    for package in ("numpy", "scipy", "numba", "llvmlite", "pyopencl"):
        assert re.match(r"\d+\.\d+", data["machine"][package]), package


def test_every_command_with_json_is_on_the_page():
    parser = make_parser("0")
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    with_json = {
        name
        for name, command in commands.choices.items()
        if any("--json" in action.option_strings for action in command._actions)
    }
    assert with_json <= sections().keys()


def test_differences_are_found():
    listed = {"a", "b.c", "d.*", "e[].f"}
    seen = {"a": 1, "b": {"c": 2}, "d": {"x": 3}, "e": [{"f": 4}]}
    assert differences(fields_of(seen), listed) == []
    assert differences(fields_of({**seen, "b": None, "d": {}, "e": []}), listed) == []
    assert differences(fields_of({**seen, "g": 1}), listed) == ["g is not on the page"]
    assert differences(fields_of({**seen, "b": {}}) - {"a"}, listed) == ["a is on the page only"]
    wrong = ["e[].h is not on the page", "e[].f is on the page only"]
    assert differences(fields_of({**seen, "e": [{"h": 1}]}), listed) == wrong
