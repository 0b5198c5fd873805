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
    "engine on the CPU": 'engine = hb.Engine(edges, "fixed:TC", device="cpu"); engine.bfs(1)',
    "engine": 'engine = hb.Engine(edges, "alpha-beta"); engine.bfs(1)',
    "graph": "hb.kronecker(6)",
    "two graphs": (
        "path = hb.CSRGraph.from_edges(range(140_000), range(1, 140_001)); "
        "heavy = hb.CSRGraph.from_edges(range(60), range(1, 61), weights=[1e37] * 60)"
    ),
    "devices": "hetero_bfs.devices.opencl.driver.list_devices()",
}
PROGRAM = """
import os, sys
import hetero_bfs, hetero_bfs.devices.opencl.driver
import hetero_bfs as hb
edges = hb.EdgeList([0, 1], [1, 2], 3)
{prepare}
for use in {uses!r}:
    child = os.fork()
    if child == 0:
        try:
            exec(use)
            print("done")
        except hb.HeteroBFSError as error:
            print(type(error).__name__, error)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, use
    {after}
print("the parent goes on")
"""


def fork(prepare: str, *uses: str, after: str = "pass") -> list[str]:
    """Return what children print, one for each use; fails if one hangs, or ends in another way."""
    code = PROGRAM.format(prepare=PREPARE[prepare], uses=uses, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    *said, last = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert last == "the parent goes on"
    assert len(said) == len(uses)
    return said


def test_one_thread_answers_in_a_child_that_lacks_the_others():
    """Passes that threads share otherwise run on the caller's."""
    uses = "hb.colour(path)", "hb.sssp(heavy, 0)"
    assert fork("two graphs", *uses) == ["done", "done"]


OPENS = 'hb.Engine(edges, "fixed:TC", device="cpu").bfs(1)'


@pytest.mark.parametrize("prepare", ["engine on the CPU", "engine"])
def test_a_parents_engine(prepare):
    uses = ["engine.bfs(1)", "engine.bfs_back_to_back([1, 2])", 'engine.set_selector("alpha-beta")']
    for said in fork(prepare, *uses, after="engine.bfs(1)"):
        assert said.startswith("ForkError the engine was opened in process")
        assert 'multiprocessing.get_context("spawn")' in said


def test_a_parents_engine_is_the_parents_to_close():
    closes = "engine.close(); del engine"
    assert fork("engine", closes, after="engine.bfs(1); engine.close()") == ["done"]


TALKS = """
class Talks:
    def release(self, queue):
        os.write(1, b"unmapped by the %s\\n" % (b"parent" if os.getpid() == parent else b"child"))
class Mapped:
    def __init__(self):
        self.base = Talks()
parent = os.getpid()
item, other = Mapped(), Mapped()
from hetero_bfs.devices.opencl.opencl_device import MappedMemory, release_with
release_with(item, [MappedMemory(item)])
release_with(other, [MappedMemory(other)])
"""


def test_what_is_the_parents_is_released_by_the_parent_alone():
    """Mapped memory of OpenCL: to unmap it, PoCL wakes threads that a child lacks, and may hang."""
    code = (
        f"import os, sys\n{TALKS}"
        + """
child = os.fork()
if child == 0:
    del item
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
del item
"""
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["unmapped by the parent"] * 2


USES = (
    OPENS,
    "hb.kronecker(5)",
    "hb.KroneckerEdges(5).materialise()",
    "hb.RMATEdges(5).materialise()",
    "hb.CSRGraph.from_edge_source(edges)",
    "import numpy; hb.validate(edges, 0, numpy.array([0, 0, 1]))",
)


def test_parallel_loops_after_the_parents():
    for use, said in zip(USES, fork("graph", *USES), strict=True):
        assert said.startswith("ForkError this process was forked from one that had used compiled")
        assert 'multiprocessing.get_context("spawn")' in said, use


@pytest.mark.skipif(not list_devices(), reason="no OpenCL device")
def test_opencl_after_the_parents():
    said, on_the_cpu = fork("devices", 'hb.Engine(edges, "alpha-beta")', OPENS)
    assert said.startswith("ForkError this process was forked from one that had used OpenCL")
    assert on_the_cpu == "done"


def test_a_child_may_begin():
    assert fork("nothing", OPENS) == ["done"]
