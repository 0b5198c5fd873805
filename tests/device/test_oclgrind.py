"""Searches under oclgrind, where it is installed: no access out of bounds, no data race.

oclgrind interprets every work-item, so graphs are tiny. PyOpenCL's cache is off: it does not tell
oclgrind's binaries from others. The option --uninitialized is no use: oclgrind 21.10 reports
`for (i = get_global_id(0); i < n; i += get_global_size(0)) x[i] = 0;` as leaving x unwritten.

Top-down reads a word of `visited` plainly before it claims a bit there with an atomic OR. The word
only gains bits, a stale one only costs the atomic, and the atomic alone decides. With
-DATOMIC_PEEK that read is atomic too, and there must be no race at all; without, no other one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pytest
from under_oclgrind import FOUR_GROUPS, MARKS, ONE_LAUNCH, PEEK, TESTS, Report, parse, run

pytestmark = MARKS

SEARCHES = """
import json
import sys
import traceback
sys.path.insert(0, {tests!r})
from graphs import clique_with_door, grid, late_hub, path, random_graph, two_hubs
from dataclasses import replace
from unittest import mock
import hetero_bfs as hb
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.devices.machine import Tuning

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
    chosen = mock.patch("hetero_bfs.options.choose_devices", return_value=[info])
    # Where other work takes the cores, work-groups wait for each other for long.
    patient = mock.patch("hetero_bfs.devices.opencl.device_run._PROBE_PATIENCE", 1 << 22)
    with chosen, patient, hb.Engine(edges, **options) as engine:
        assert engine.device_info.name.startswith("Oclgrind"), engine.notes
        program = getattr(engine.accelerator, "program", None)  # none if edges stream
        assert (program is not None and program.one_launch) == ONE_LAUNCH
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
    "random": ("random_graph(200, 450, 1)", ["TG", "BG", "BGC"], [0], {}),
    "mixtures": (
        "random_graph(200, 330, 2)",
        ["TG,BG,TG,BGC,BC,TG", "TC,TG,TC,BG,TC,BGC,TG"],
        [0, 199],
        {},
    ),
    "directed": ("random_graph(200, 600, 3)", ["TG,TG,BG,TG,BGC"], [0], {"directed": True}),
    "parts": ("random_graph(300, 500, 4)", ["TG", "BG,TG", "BGC"], [5], {"max_alloc": 256}),
    "parts, directed": (
        "random_graph(200, 300, 5)",
        ["TG,BG,TG", "BGC"],
        [5],
        {"directed": True, "max_alloc": 64},
    ),
    "hubs over parts": ("two_hubs(130)", ["TG", "BG,TG"], [0, 266], {"max_alloc": 128}),
    "long lists": ("late_hub(400)", ["BG", "BGC", "TG"], [401], {"order": "given"}),
    "shared lists": ("late_hub(560)", ["BG", "BGC", "TG,BG"], [561], {"order": "given"}),
    "read in vain": ("clique_with_door(120, 20)", ["BG"], [120], {"order": "given"}),
    "path": ("path(40)", ["TG,BG,TG,BGC"], [3], {}),
    "rounds": (
        "grid(14, 18)",
        ["TG", "TG,TG,TG,TG,TG,TG,TG,TG,TG,TG,BG,TG", "TG,TG,TG,TG,TG,TC,TG", "alpha-beta"],
        [130],
        {},
    ),
    "a kernel for each step": (
        "random_graph(200, 330, 7)",
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


THREE_GROUPS = ("--compute-units", "3", "--num-threads", "3", "--data-races", *ONE_LAUNCH)
VARIED = (
    "mixtures", "directed", "parts", "parts, directed", "long lists", "path", "streamed, directed",
)  # fmt: skip
"""Cases that launch what others launch."""
SEARCHED = tuple(name for name in CASES if name not in VARIED)
LOOKED_AT = ("random", "hubs over parts", "a kernel for each step")
IN_ONE_LAUNCH = (
    "random", "mixtures", "hubs over parts", "long lists", "shared lists", "rounds",
)  # fmt: skip


@pytest.mark.parametrize("name", SEARCHED)
def test_no_bad_access_and_no_race(searched, name):
    check_without_races(searched, SEARCHED, name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", VARIED)
def test_no_bad_access_and_no_race_in_variations(searched, name):
    check_without_races(searched, VARIED, name)


def check_without_races(searched, names: tuple[str, ...], name: str) -> None:
    reports = reports_of(searched(names, *FOUR_GROUPS, *PEEK), name)
    assert not reports, f"{len(reports)} messages, the first:\n{reports[0].text}"


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOOKED_AT)
def test_no_race_but_the_one_that_is_meant(searched, name):
    reports = reports_of(searched(LOOKED_AT, *FOUR_GROUPS), name)
    bad = [report.text for report in reports if not report.is_meant]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0]}"
    assert reports, "the test is of no use if nothing is found"


@pytest.mark.thorough
@pytest.mark.parametrize("name", IN_ONE_LAUNCH)
def test_one_launch_for_a_whole_search(searched, name):
    """oclgrind runs three work-groups at a time, so that the barrier across them is in use.

    Two of them keep a small frontier, and the third waits. oclgrind does not know that barrier,
    and reports as races in global memory what it keeps apart.
    """
    found = searched(IN_ONE_LAUNCH, *THREE_GROUPS, one_launch=True)
    kept_apart = r"(Read-write|Write-write) data race at global memory"
    reports = reports_of(found, name)
    bad = [report for report in reports if not re.match(kept_apart, report.title)]
    assert not bad, f"{len(bad)} messages, the first:\n{bad[0].text}"


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
    done = run(BROKEN, "--data-races")
    assert done.returncode == 0, done.stderr
    reports = parse(done.stderr)
    titles = [report.title for report in reports if not report.is_meant]
    assert any(title.startswith("Invalid write of size 4") for title in titles)
    assert any(title.startswith("Write-write data race") for title in titles)
    in_push_step = [report for report in reports if "Kernel: push_step" in report.text]
    assert in_push_step
    assert not any(report.is_meant for report in in_push_step), "another race in that kernel"
