"""tests/fuzz device-files: damaged files under oclgrind, and that it finds bad accesses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from checkout import TOP
from under_oclgrind import MARKS, ONE_LAUNCH, TESTS, run

pytestmark = MARKS


@pytest.mark.thorough
def test_a_few_files(tmp_path):
    words = ["device-files", "--count", "3", "--seed", "1", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words],
        cwd=TOP,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [line.split()[1:] for line in done.stdout.splitlines() if " tried " in line]
    assert sum(int(tried) for tried, *_ in counts) > 2
    assert all(rest == ["tried", "0", "failed"] for _, *rest in counts)


DAMAGED = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
from random import Random
from tests.fuzz import device_files
import hetero_bfs as hb

def damaged(graph):
    searched = build(graph)
    searched.graph.indices.flags.writeable = True
    searched.graph.indices[5] = 5000
    return searched

graph = hb.kronecker(5)
for one_launch in (False, True):
    problem = device_files.search_problem(graph, Random(1), one_launch)
    assert problem is None, problem
build, device_files.build_search_graph = device_files.build_search_graph, damaged
device_files._RUNS = [device_files._colours]
print(device_files.search_problem(graph, Random(1), False))
"""


@pytest.mark.thorough
def test_a_neighbour_that_does_not_exist_is_found():
    """As if a file could bring one into the lists."""
    options = ("--compute-units", "2", "--num-threads", "2", "--data-races", *ONE_LAUNCH)
    done = run(DAMAGED.format(root=str(TOP), tests=str(TESTS)), *options)
    assert done.returncode == 0, done.stderr
    assert "_colours: Invalid read of size " in done.stdout
