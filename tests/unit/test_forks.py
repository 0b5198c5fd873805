"""Children made by fork: refused in a sentence where threads of the parent would be missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hetero_bfs.devices.opencl.driver import list_devices

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")

PREPARE = {
    "nothing": "",
    "engine on the CPU": 'engine = hb.Engine(edges, "fixed:TC", devices="cpu"); engine.bfs(1)',
    "engine": 'engine = hb.Engine(edges, "alpha-beta"); engine.bfs(1)',
    "graph": "hb.kronecker(6)",
    "devices": "hetero_bfs.devices.opencl.driver.list_devices()",
}
PROGRAM = """
import os, sys
import hetero_bfs, hetero_bfs.devices.opencl.driver
import hetero_bfs as hb
edges = hb.EdgeList([0, 1], [1, 2], 3)
{prepare}
child = os.fork()
if child == 0:
    try:
        {use}
        print("done")
    except hb.HeteroBFSError as error:
        print(type(error).__name__, error)
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
{after}
print("the parent goes on")
"""


def fork(prepare: str, use: str, after: str = "") -> str:
    """Return what the child prints; fails if it hangs, or ends in another way."""
    code = PROGRAM.format(prepare=PREPARE[prepare], use=use, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[-1] == "the parent goes on"
    return lines[0]


OPENS = 'hb.Engine(edges, "fixed:TC", devices="cpu").bfs(1)'


@pytest.mark.parametrize(
    "use", ["engine.bfs(1)", "engine.bfs_back_to_back([1, 2])", 'engine.set_selector("alpha-beta")']
)
@pytest.mark.parametrize("prepare", ["engine on the CPU", "engine"])
def test_a_parents_engine(prepare, use):
    said = fork(prepare, use, "engine.bfs(1)")
    assert said.startswith("ForkError the engine was opened in process")
    assert 'multiprocessing.get_context("spawn")' in said


def test_a_parents_engine_is_the_parents_to_close():
    assert fork("engine", "engine.close(); del engine", "engine.bfs(1); engine.close()") == "done"


@pytest.mark.parametrize(
    "use",
    [
        OPENS,
        "hb.kronecker(5)",
        "hb.KroneckerEdges(5).materialise()",
        "hb.RMATEdges(5).materialise()",
        "hb.CSRGraph.from_edge_source(edges)",
        "import numpy; hb.validate(edges, 0, numpy.array([0, 0, 1]))",
    ],
)
def test_parallel_loops_after_the_parents(use):
    said = fork("graph", use)
    assert said.startswith("ForkError this process was forked from one that had used compiled loop")
    assert 'multiprocessing.get_context("spawn")' in said


@pytest.mark.skipif(not list_devices(), reason="no OpenCL device")
def test_opencl_after_the_parents():
    said = fork("devices", 'hb.Engine(edges, "alpha-beta")')
    assert said.startswith("ForkError this process was forked from one that had used OpenCL")
    assert fork("devices", OPENS) == "done"


def test_a_child_may_begin():
    assert fork("nothing", OPENS) == "done"
