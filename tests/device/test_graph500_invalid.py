"""What an invalid search does to a Graph500 run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cached_property
from unittest import mock

import pytest
from graph500_runs import BREAKS, Breaking, run

from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.cli import main as cli
from hetero_bfs.graph500.report import format_report

# checks; vertices are found by their true levels.


HARMLESS = ["lose_one", "no_edge"]


@pytest.mark.parametrize("how", HARMLESS)
def test_an_invalid_search_is_named(how):
    breaking = Breaking(how)
    with breaking.patch():
        report = run(None, sources=6)
    check, vertex = breaking.expected
    assert not report.valid
    assert report.lines() == []
    assert report.energy is None
    (message,) = report.failures
    assert message.startswith(f"source 220: check {check} (")
    assert f"fails at vertex {vertex}" in message
    assert [record.validation.valid for record in report.sources] == [True] * 2 + [False] + [
        True
    ] * 3
    text = format_report(report)
    assert text.startswith("INVALID: 1 of 6 searches failed")
    assert message in text
    assert "TEPS" not in text
    data = report.to_dict()
    assert data["valid"] is False
    assert data["failures"] == [message]
    assert [source["valid"] for source in data["roots"]].index(False) == 2


@pytest.mark.parametrize("how", HARMLESS)
def test_an_invalid_search_is_exit_status_1(how, capsys, tmp_path):
    breaking = Breaking(how)
    path = tmp_path / "report.json"
    command = ["graph500", "--scale", "10", "--sources", "6", "--selector", "fixed:TC"]
    with breaking.patch():
        status = cli.main([*command, "--device", "cpu", "--json", str(path)])
    assert status == 1
    check, vertex = breaking.expected
    printed = capsys.readouterr().out
    assert "source 220" in printed
    assert f"check {check}" in printed
    assert f"vertex {vertex}" in printed
    assert json.loads(path.read_text())["valid"] is False


SCRIPT = """
import sys
sys.path[:0] = {path!r}
from graph500_runs import Breaking
from hetero_bfs.cli import main as cli
from hetero_bfs.graph500 import protocol as graph500
from hetero_bfs.support import memory
command = "graph500 --scale 10 --sources 6 --selector fixed:TC --device cpu".split()
for how in {breaks!r}:
    breaking = Breaking(how)
    with breaking.patch():
        status = cli.main(command)
    print("ended", (status, *breaking.expected), flush=True)
"""


@pytest.mark.slow
def test_parents_that_are_no_tree_are_reported_not_followed():
    """In another process: following parents blindly would never end, or leave the array."""
    breaks = [how for how in BREAKS if how not in HARMLESS]
    script = SCRIPT.format(path=[p for p in sys.path if "tests" in p], breaks=breaks)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    said = re.findall(r"(.*?)^ended ([^\n]*)\n", done.stdout, re.DOTALL | re.MULTILINE)
    assert len(said) == len(breaks) > 2
    for text, ended in said:
        status, check, vertex = eval(ended)
        assert status == 1
        assert f"source 220: check {check} (" in text
        assert vertex is None or f"vertex {vertex}" in text


def test_a_miscounted_search_is_a_failure():
    count = BFSResult.nedge.func
    wrong = cached_property(lambda result: count(result) + 1)
    wrong.__set_name__(BFSResult, "nedge")
    with mock.patch.object(BFSResult, "nedge", wrong):
        report = run(None, sources=3)
    assert len(report.failures) == 3
    assert "source 458" in report.failures[0]
    assert "traversed edges" in report.failures[0]
