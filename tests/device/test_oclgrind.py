"""The kernels under oclgrind, where it is installed: no access out of bounds, no data race.

oclgrind interprets every work-item, so graphs are tiny. PyOpenCL's cache is off: it does not tell
oclgrind's binaries from others. The option --uninitialized is no use: oclgrind 21.10 reports
`for (i = get_global_id(0); i < n; i += get_global_size(0)) x[i] = 0;` as leaving x unwritten.

Top-down reads a word of `visited` plainly before it claims a bit there with an atomic OR. The word
only gains bits, a stale one only costs the atomic, and the atomic alone decides. With
-DATOMIC_PEEK that read is atomic too, and there must be no race at all; without, no other one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
OCLGRIND = shutil.which("oclgrind")
pytestmark = [
    pytest.mark.skipif(OCLGRIND is None, reason="oclgrind is not installed"),
    pytest.mark.slow,
]

SEARCHES = """
import json
import sys
import traceback
sys.path.insert(0, {tests!r})
from graphs import grid, late_hub, path, random_graph, two_hubs
from dataclasses import replace
from unittest import mock
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.opencl.tuning import Tuning

ONE_LAUNCH = {one_launch}
TUNING = Tuning(
    group_size=32,
    vertices_per_item=4,
    edges_per_item=1,
    single_group_edges=64,
    cooperative_groups=2,
    groups_per_unit=1,
    one_launch=ONE_LAUNCH,
)

def search(edges, schedules, sources, max_alloc=None, order="degree", budget=None, type="GPU"):
    options = dict(selector="fixed:TG", max_alloc_bytes=max_alloc, order=order, tuning=TUNING)
    info = replace(choose_device(), type=type)
    if budget is not None:
        options["device_memory_bytes"] = budget
        info = replace(info, unified_memory=False)
    chosen = mock.patch("hetero_bfs.runtime.engine.choose_device", return_value=info)
    # Where other work takes the cores, work-groups wait for each other for long.
    patient = mock.patch("hetero_bfs.algorithms.bfs.opencl_program._PROBE_PATIENCE", 1 << 22)
    with chosen, patient, hb.Engine(edges, **options) as engine:
        assert engine.device_info.name.startswith("Oclgrind"), engine.notes
        assert engine.accelerator.one_launch == ONE_LAUNCH
        assert engine.accelerator.groups > 1
        assert (engine.num_parts > 3) == (max_alloc is not None or budget is not None)
        assert (engine.streaming is None) == (budget is None)
        for schedule in schedules:
            engine.set_selector(schedule if "-" in schedule else "fixed:" + schedule)
            for source in sources:
                result = engine.bfs(source)
                outcome = hb.validate(edges, source, result.parent, result.level)
                assert outcome.valid, (schedule, outcome.message)
        assert engine.bytes_streamed > 0 or engine.streaming is None

for name, (graph, schedules, sources, case) in {cases!r}.items():
    directed = case.pop("directed", False)
    problem = ""
    print("{begin}", file=sys.stderr, flush=True)
    try:
        search(replace(eval(graph), directed=directed), schedules, sources, **case)
    except Exception:
        problem = traceback.format_exc()
    print(json.dumps([name, problem]))
"""

CASES = {
    "random": ("random_graph(300, 700, 1)", ["TG", "BG", "BGC"], [0], {}),
    "mixtures": (
        "random_graph(300, 500, 2)",
        ["TG,BG,TG,BGC,BC,TG", "TC,TG,TC,BG,TC,BGC,TG"],
        [0, 299],
        {},
    ),
    "directed": ("random_graph(300, 900, 3)", ["TG,TG,BG,TG,BGC"], [0], {"directed": True}),
    "parts": ("random_graph(300, 500, 4)", ["TG", "BG,TG", "BGC"], [5], {"max_alloc": 256}),
    "parts, directed": (
        "random_graph(200, 300, 5)",
        ["TG,BG,TG", "BGC"],
        [5],
        {"directed": True, "max_alloc": 64},
    ),
    "hubs over parts": ("two_hubs(130)", ["TG", "BG,TG"], [0, 266], {"max_alloc": 128}),
    "long lists": ("late_hub(560)", ["BG", "BGC", "TG"], [561], {"order": "given"}),
    "path": ("path(40)", ["TG,BG,TG,BGC"], [3], {}),
    "rounds": (
        "grid(20, 24)",
        ["TG", "TG,TG,TG,TG,TG,TG,TG,TG,TG,TG,BG,TG", "TG,TG,TG,TG,TG,TC,TG", "alpha-beta"],
        [210],
        {},
    ),
    "a kernel for each step": (
        "random_graph(300, 500, 7)",
        ["TG,BG,TG,BGC,BC,TG"],
        [0],
        {"type": "CPU"},
    ),
    "streamed": ("random_graph(300, 700, 6)", ["TG,BG,TG", "BG,TC,TG"], [5], {"budget": 8_000}),
    "streamed, directed": (
        "two_hubs(130)",
        ["TG,BG,TG", "BG,TC,TG"],
        [0],
        {"directed": True, "budget": 7_600},
    ),
}
"""A graph, schedules or selectors, sources, and options, by name."""


BEGIN = "A case begins"
COMPILERS = re.compile(r"\d+ warnings? generated\.")
PEEK = ("--build-options", "-DATOMIC_PEEK")


@dataclass
class Report:
    """One message of oclgrind: its first line, and all of it."""

    title: str
    text: str

    @property
    def is_meant(self) -> bool:
        """Tell whether this is the test before the claim in top-down."""
        kernel = re.search(r"Kernel: (\w+)", self.text)
        look = r"before\[k\] = PEEK\("
        claim = r"return before & bit \? before : atomic_or\(&visited\["
        sources = [len(re.findall(rf"\t\s*{line}", self.text)) for line in (look, claim)]
        instructions = re.findall(r"= (?:tail )?(load|call spir_func i32 @_Z9atomic_or)", self.text)
        return (
            self.title.startswith("Read-write data race at global memory")
            and kernel is not None
            and kernel[1] in ("step", "push_step")
            and sources == [1, 1]
            and sorted(word.split()[0] for word in instructions) == ["call", "load"]
        )


def parse(said: str) -> list[Report]:
    """Split what oclgrind says into messages: a line at the margin begins one."""
    reports: list[Report] = []
    for line in said.splitlines():
        if COMPILERS.fullmatch(line):
            continue
        if line and not line[0].isspace() and not line.startswith(("First", "Second")):
            reports.append(Report(line, line))
        elif reports:
            reports[-1].text += "\n" + line
    return reports


def run(script: str, *options: str) -> subprocess.CompletedProcess:
    command = [
        *[OCLGRIND, "--max-errors", "1000000", "--data-races", *options],
        *[sys.executable, "-c", script],
    ]
    environment = os.environ | {"PYOPENCL_NO_CACHE": "1"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment,
    )


@pytest.fixture(scope="module")
def searched():
    """Return a function that runs cases in one process, and returns what oclgrind says of each.

    It says so on stderr: a log would be begun anew for each case.
    """
    known: dict = {}

    def search(names: Iterable[str], *options: str, one_launch: bool = False) -> dict:
        key = (*names, *options, one_launch)
        if key not in known:
            cases = {name: CASES[name] for name in names}
            script = SEARCHES.format(
                tests=str(TESTS), cases=cases, one_launch=one_launch, begin=BEGIN
            )
            done = run(script, *options)
            assert done.returncode == 0, done.stdout + done.stderr[-3000:]
            _, *said = done.stderr.split(f"{BEGIN}\n")
            known[key] = {}
            for line, text in zip(done.stdout.splitlines(), said, strict=True):
                name, problem = json.loads(line)
                known[key][name] = problem, parse(text)
        return known[key]

    return search


def reports_of(searched: dict, name: str) -> list[Report]:
    """Return oclgrind's reports of a case, whose searches must have been right."""
    problem, reports = searched[name]
    assert not problem, problem
    return reports


FOUR_GROUPS = ("--compute-units", "4", "--num-threads", "4")
THREE_GROUPS = ("--compute-units", "3", "--num-threads", "3")
LOOKED_AT = ("random", "hubs over parts", "a kernel for each step")
IN_ONE_LAUNCH = tuple(name for name in CASES if not {"budget", "type"} & {*CASES[name][3]})


@pytest.mark.parametrize("name", CASES)
def test_no_bad_access_and_no_race(searched, name):
    reports = reports_of(searched(tuple(CASES), *FOUR_GROUPS, *PEEK), name)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


@pytest.mark.parametrize("name", LOOKED_AT)
def test_no_race_but_the_one_that_is_meant(searched, name):
    reports = reports_of(searched(LOOKED_AT, *FOUR_GROUPS), name)
    bad = [report.text for report in reports if not report.is_meant]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert reports, "the test is of no use if nothing is found"


@pytest.mark.parametrize("name", IN_ONE_LAUNCH)
def test_one_launch_for_a_whole_search(searched, name):
    """oclgrind runs three work-groups at a time, so that the barrier across them is in use.

    Two of them keep a small frontier, and the third waits. oclgrind does not know that barrier,
    and reports as races in global memory what it keeps apart.
    """
    found = searched(IN_ONE_LAUNCH, *THREE_GROUPS, *PEEK, one_launch=True)
    kept_apart = r"(Read-write|Write-write) data race at global memory"
    reports = reports_of(found, name)
    bad = [report for report in reports if not re.match(kept_apart, report.title)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0].text}"


SHORTEST_PATHS = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import device_search
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.path_searches import PathSearches

for graph in (random_graph(300, 700, 1), grid(12, 13), star(90)):
    for dtype in (np.int32, np.float32):
        weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(dtype)
        edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
        with mock.patch.object(device_search, "_HEAVY_EDGES", 40):
            searches = PathSearches(build_search_graph(edges), 1, choose_device())
        assert searches.device_name.startswith("Oclgrind"), searches.notes
        result = searches.search(5, "device")
        check = hb.check_paths(edges, 5, result.distance, result.parent)
        assert check.valid, check.message
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_shortest_paths_no_bad_access_and_no_race(peek):
    """Without the option looks at distances are races, which are meant."""
    done = run(SHORTEST_PATHS.format(tests=str(TESTS)), *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [report.text for report in reports if "PEEK(distance + " not in report.text]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


PROGRAMS = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import random_graph
from sample_programs import Communities, Distances, Labels, Parents, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device_run
from hetero_bfs.runtime.program_runs import ProgramRuns

ranks = dict(alpha=0.85, tol=0.05)
SMALL = dict(_HEAVY_EDGES=6, _FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT=2)
graph = random_graph(150, 300, 1)
weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
assert runs.device_name.startswith("Oclgrind"), runs.notes
from_five = dict(source=5)
for program, parameters in (
    (Distances(), from_five), (Labels(), {{}}), (Parents(), from_five), (Ranks(), ranks),
    (Communities(), dict(rounds=3)),
):
    for direction in ("push", "pull"):
        with mock.patch.multiple(device_run, **SMALL):
            results = [
                runs.run(program, parameters, hb.RunOptions(direction=direction, place=place))
                for place in ("cpu", "device")
            ]
        host, device = results
        assert host.iterations == device.iterations
        if not isinstance(program, Parents):
            field = next(iter(host.state))
            np.testing.assert_allclose(device.state[field], host.state[field], rtol=1e-9)
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_programs_no_bad_access_and_no_race(peek):
    """Without the option looks at combined messages are races, which are meant."""
    done = run(PROGRAMS.format(tests=str(TESTS)), *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    bad = [report.text for report in reports if "PEEK(combined + " not in report.text]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


MODES = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import grid, random_graph
from sample_programs import Distances, Labels, Parents, Ranks
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import arranged, device_run, device_sweeps
from hetero_bfs.runtime import program_runs
from hetero_bfs.runtime.program_runs import ProgramRuns

program_runs._NUM_EXACT = 2
arranged._PART_EDGES = 30
device_sweeps._HEAVY_EDGES = device_sweeps._HEAVY_EDGES_OF_CPU = 6
SMALL = dict(_FIRST_BATCH=2, _GROUP=32, _GROUPS_PER_UNIT=2)
layered = dict(mode="layered", root=5)
for graph in (random_graph(150, 300, 1), grid(4, 30)):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges = EdgeList(graph.src, graph.dst, graph.num_vertices, weights=weights)
    runs = ProgramRuns(build_search_graph(edges), 1, choose_device())
    assert runs.device_name.startswith("Oclgrind"), runs.notes
    for program, parameters, mode in (
        (Distances(), dict(source=5), layered),
        (Labels(), {{}}, dict(mode="asynchronous")),
        (Parents(), dict(source=5), layered),
        (Ranks(), dict(alpha=0.85, tol=0.05), dict(mode="asynchronous")),
    ):
        with mock.patch.multiple(device_run, **SMALL):
            host, device = [
                runs.run(program, parameters, hb.RunOptions(place=place, **mode))
                for place in ("cpu", "device")
            ]
        assert host.iterations == device.iterations
        assert device.traces[0].strategy == "device " + mode["mode"]
        if not isinstance(program, Parents):
            field = next(iter(host.state))
            np.testing.assert_allclose(device.state[field], host.state[field], rtol=1e-9)
"""


def test_modes_no_bad_access_and_no_race():
    done = run(MODES.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


COMPONENTS = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.components import device_components
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.component_runs import ComponentRuns

for graph in (random_graph(1300, 1400, 1), grid(12, 13), star(90)):
    for directed in (False, True):
        edges = replace(graph, directed=directed)
        with mock.patch.object(device_components, "_HEAVY_EDGES", 8):
            runs = ComponentRuns(build_search_graph(edges, "given"), 1, choose_device())
        assert runs.device_name.startswith("Oclgrind"), runs.notes
        check = hb.check_components(edges, runs.find("device").component)
        assert check.valid, check.message
"""


@pytest.mark.parametrize("peek", [PEEK, ()], ids=["atomic look", "plain look"])
def test_components_no_bad_access_and_no_race(peek):
    """Without the option looks at labels, and their compression, are races, which are meant.

    They alone are volatile; the compiler joins some of their lines to one without a source.
    """
    done = run(COMPONENTS.format(tests=str(TESTS)), *FOUR_GROUPS, *peek)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    meant = re.compile(r"(load|store) volatile i32")
    bad = [report.text for report in reports if not meant.search(report.text)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert bool(reports) == (peek == ()), "the test is of no use if nothing is found"


COLOURING = """
import sys
sys.path.insert(0, {tests!r})
from unittest import mock
import numpy as np
from graphs import complete, grid, random_graph, star
from hetero_bfs.algorithms.colouring import device_colouring
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.colourings import Colourings

for edges in (random_graph(300, 700, 1), grid(9, 10), star(90), complete(45)):
    with mock.patch.object(device_colouring, "_HEAVY_EDGES", 40):
        colourings = Colourings(build_search_graph(edges), 1, choose_device())
        assert colourings.device_name.startswith("Oclgrind"), colourings.notes
        found = colourings.colour("device").colour
    assert np.array_equal(found, colourings.colour("cpu").colour)
"""


def test_colouring_no_bad_access_and_no_race():
    done = run(COLOURING.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


PAGERANK = """
import sys
sys.path.insert(0, {tests!r})
from dataclasses import replace
from unittest import mock
import numpy as np
from graphs import grid, random_graph, star
import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank import device_ranks
from hetero_bfs.algorithms.pagerank.rank_lists import check_settings
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.runtime.page_ranks import ranks_kind

SMALL = dict(_GROUP=32, _LANES=4, _LOW_EDGES=3, _MEDIUM_EDGES=8, _GROUPS_PER_UNIT=1)
for graph in (random_graph(300, 900, 1), replace(random_graph(90, 500, 2), directed=True),
              grid(12, 13), star(90)):
    weights = np.random.default_rng(1).integers(0, 9, graph.src.size).astype(np.float32)
    edges, n = replace(graph, weights=weights), graph.num_vertices
    for weighted in (False, True):
        with mock.patch.multiple(device_ranks, **SMALL):
            ranks = ranks_kind(weighted)(build_search_graph(edges), 1, choose_device())
            assert ranks.device_name.startswith("Oclgrind"), ranks.notes
            for tol in (1e-3, 1e-9):
                result = ranks.rank(check_settings(n, 0.85, tol, 100), "device")
                assert result.used_device and result.converged
                check = hb.check_pagerank(edges, result.rank, tol=tol, weighted=weighted)
                assert check.valid, check.message
"""


def test_pagerank_no_bad_access_and_no_race():
    done = run(PAGERANK.format(tests=str(TESTS)), *FOUR_GROUPS)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    reports = parse(done.stderr)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


BROKEN = """
import pyopencl as cl, numpy as np
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
source = '''__kernel void far(__global uint *x) { x[get_global_id(0) + 1] = 3; }
__kernel void race(__global uint *x) { x[0] = get_global_id(0); }
__kernel void push_step(__global uint *x) { if (x[0] == 7) x[1] = 2; else atomic_or(&x[0], 1); }'''
program = cl.Program(context, source).build()
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
cl.enqueue_copy(queue, buffer, np.zeros(16, np.uint32))
for name in ("far", "race", "push_step"):
    getattr(program, name)(queue, (16,), None, buffer)
queue.finish()
"""


def test_what_would_be_found():
    """oclgrind and the reading of what it says notice bad kernels."""
    done = run(BROKEN)
    assert done.returncode == 0, done.stderr
    reports = parse(done.stderr)
    titles = [report.title for report in reports if not report.is_meant]
    assert any(title.startswith("Invalid write of size 4") for title in titles)
    assert any(title.startswith("Write-write data race") for title in titles)
    in_push_step = [report for report in reports if "Kernel: push_step" in report.text]
    assert in_push_step
    assert not any(report.is_meant for report in in_push_step), "another race in that kernel"
