"""The numbers that kernels and their Python readers must have in common."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from hetero_bfs.algorithms.bfs import opencl_executor as opencl_search
from hetero_bfs.algorithms.bfs.kernels import steps as report
from hetero_bfs.devices.opencl import graph_buffers as opencl_graph
from hetero_bfs.selection import policy
from hetero_bfs.selection import schema as level


def defines(stem: str) -> dict[str, int]:
    """Read the plain numbers that a kernel file defines."""
    text = resources.files("hetero_bfs.kernels").joinpath(f"{stem}.cl").read_text()
    found = re.findall(r"^#define (\w+) (0x[0-9A-Fa-f]+|\d+)u?\b", text, re.MULTILINE)
    return {name: int(value, 0) for name, value in found}


STATE = ("FRONTIER_VERTICES", "FRONTIER_EDGES", "UNVISITED_VERTICES", "UNVISITED_EDGES")
STATE += ("PREVIOUS_EDGES", "FORM", "LEVEL", "VISITED_INDEX", "QUEUE_INDEX", "CHOSEN")
REPORT = ("ROOT", "STEP", "STATUS", "LIMIT", "FLAGS", "BEGAN", "DONE", "PENDING", "DECIDED")
REPORT += ("TO_QUEUE", "PUSH", "PULL", "RUNNING", "ENDED", "LEAVES", "FAILED")
REPORT += ("FORGETS", "CONVERTS", "PROBES")


@pytest.mark.parametrize(
    ("stem", "module", "names"),
    [
        ("steps", level, STATE),
        ("steps", report, REPORT),
        ("policy", policy, ("NUM_COLUMNS", "MOST_CANDIDATES", "FIXED", "DIRECTION")),
        ("policy", policy, ("SWITCH", "CONVERT")),
        ("policy", level, ("LEAST_SHARED_EDGES", "LEAST_WIDE_EDGES", "WIDE", "CROWDED")),
    ],
)
def test_same_names_have_the_same_numbers(stem, module, names):
    known = defines(stem)
    assert {name: known[name] for name in names} == {name: getattr(module, name) for name in names}


def test_other_names_for_the_same_numbers():
    known = defines("steps") | defines("grid")
    assert known["STATE_SIZE"] == report.STATE_WORDS
    assert known["ROW_SIZE"] == report.ROW_WORDS
    assert known["NUM_COUNTERS"] == opencl_search._NUM_COUNTERS
    assert known["GAVE_UP"] == opencl_search._GAVE_UP
    assert known["ARRIVALS"] == known["SPREAD"] * known["LINE"]
    assert known["GAVE_UP"] == 2 * known["ARRIVALS"]
    assert known["BITMAP"] == level.BITMAP
    assert defines("common")["MIXED_DEGREES"] == opencl_graph._MIXED_DEGREES
