"""The numbers that Python and OpenCL C share are written once, in Python."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest

import hetero_bfs
from hetero_bfs.algorithms.bfs import heads
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.algorithms.colouring.device import StreamedColouring
from hetero_bfs.algorithms.components.device import StreamedComponents
from hetero_bfs.algorithms.pagerank.device import DevicePageRank
from hetero_bfs.algorithms.sssp.device import DeviceSearch
from hetero_bfs.devices.opencl.built_programs import SHARED, header
from hetero_bfs.programs.device_forms import StreamedProgram, StreamedSweeps
from hetero_bfs.scheduling import device_policy, schema

PACKAGE = Path(hetero_bfs.__file__).parent
TABLES = (
    SHARED,
    schema.OPENCL,
    device_policy.OPENCL,
    steps.OPENCL,
    heads.OPENCL,
)
RUNS = (
    DevicePageRank, DeviceSearch, StreamedColouring, StreamedComponents,
    StreamedProgram, StreamedSweeps,
)  # fmt: skip


def own_names(path: Path) -> set[str]:
    """Return the names to which a kernel file itself gives values."""
    text = path.read_text()
    found = set(re.findall(r"^ *#define (\w+) ", text, re.MULTILINE))
    for names in re.findall(r"enum {([^}]*)}", text):
        found |= set(re.findall(r"\w+", re.sub("=[^,]*", "", names)))
    return found


def shared_names(*tables) -> set[str]:
    return {line.split()[1] for line in header(*tables).splitlines()}


def test_no_kernel_file_has_a_number_of_its_own_for_a_shared_name():
    shared = shared_names(*TABLES)
    # These have another meaning in programs without the tables that have them, too.
    allowed = {"cooperative.cl": {"MISSING"}, "sweep.cl": {"PENDING"}}
    for path in PACKAGE.rglob("*.cl"):
        assert not own_names(path) & shared - allowed.get(path.name, set()), path.name


@pytest.mark.parametrize("run", RUNS)
def test_no_file_of_a_run_has_a_number_of_its_own_for_one_that_it_shares(run):
    for file in run.files:
        assert not own_names(PACKAGE / file) & shared_names(*run.constants), file


def test_tables_have_the_numbers_of_their_modules():
    for module in (schema, device_policy, steps, heads):
        for name, value in module.OPENCL.items():
            if hasattr(module, name) and name not in ("NUM_COLUMNS", "MIGRATION_COLUMNS"):
                assert value == getattr(module, name), name
    assert schema.OPENCL["NUM_COLUMNS"] == len(schema.COLUMNS)
    assert schema.OPENCL["MIGRATION_COLUMNS"] == len(schema.MIGRATION_COLUMNS)


def test_a_state_on_the_device_begins_as_the_hosts():
    words = {name: steps.OPENCL[name] for name in steps.OPENCL if name.startswith("MODELLED")}
    assert max(*words.values(), steps.HELD) + 1 == steps.STATE_WORDS
    assert steps.STEP == schema.CHOSEN + 1
    others = steps.STEP, steps.STATUS, steps.LIMIT, steps.FLAGS, steps.HELD
    assert len({*words.values(), *others}) == 10


def test_a_header_has_a_line_for_each_number():
    kind = IntEnum("Kind", "NONE SOME", start=0)
    text = header({"ONE": 1, "HALF": 0.5}, {"LARGE": 0xFFFFFFFF, "LONG": 2**40, "ONE": 1}, kind)
    assert text.splitlines() == [
        "#define ONE 1",
        "#define HALF ((REAL)0.5f)",
        "#define LARGE 0xffffffffu",
        "#define LONG 0x10000000000ul",
        "#define NONE 0",
        "#define SOME 1",
    ]


def test_two_numbers_for_a_name_are_refused():
    with pytest.raises(ValueError, match="ONE is 1 in one table and 2 in another"):
        header({"ONE": 1}, {"ONE": 2})
