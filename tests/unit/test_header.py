"""The numbers that Python and OpenCL C share are written once, in Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hetero_bfs
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.devices.opencl.header import SHARED, header
from hetero_bfs.devices.opencl.streaming import paged_graph
from hetero_bfs.scheduling import columns, packed_policy, schema

TABLES = (
    SHARED,
    schema.OPENCL,
    columns.OPENCL,
    packed_policy.OPENCL,
    steps.OPENCL,
    paged_graph.OPENCL,
)


def test_no_kernel_file_has_a_number_of_its_own_for_a_shared_name():
    shared = {name for table in TABLES for name in table}
    for path in Path(hetero_bfs.__file__).parent.rglob("*.cl"):
        defined = set(re.findall(r"^ *#define (\w+) ", path.read_text(), re.MULTILINE))
        # cooperative.cl has MISSING too, of another program than stream.cl's
        allowed = {"MISSING"} if path.name == "cooperative.cl" else set()
        assert defined & shared <= allowed, path.name


def test_tables_have_the_numbers_of_their_modules():
    for module in (schema, columns, packed_policy, steps, paged_graph):
        for name, value in module.OPENCL.items():
            if hasattr(module, name) and name not in ("NUM_COLUMNS", "MIGRATION_COLUMNS"):
                assert value == getattr(module, name), name
    assert schema.OPENCL["NUM_COLUMNS"] == len(schema.COLUMNS)
    assert schema.OPENCL["MIGRATION_COLUMNS"] == len(schema.MIGRATION_COLUMNS)


def test_a_state_on_the_device_begins_as_the_hosts():
    words = {name: steps.OPENCL[name] for name in steps.OPENCL if name.startswith("MODELLED")}
    assert sorted(words.values())[-1] + 1 == steps.STATE_WORDS
    assert steps.STEP == schema.CHOSEN + 1
    assert len({*words.values(), steps.STEP, steps.STATUS, steps.LIMIT, steps.FLAGS}) == 9


def test_a_header_has_a_line_for_each_number():
    text = header({"ONE": 1, "HALF": 0.5}, {"LARGE": 0xFFFFFFFF, "ONE": 1})
    assert text == "#define ONE 1\n#define HALF ((REAL)0.5f)\n#define LARGE 0xffffffffu\n"


def test_two_numbers_for_a_name_are_refused():
    with pytest.raises(ValueError, match="ONE is 1 in one table and 2 in another"):
        header({"ONE": 1}, {"ONE": 2})
