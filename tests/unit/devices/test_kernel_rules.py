"""The rules for kernels hold in all programs of the package, and faults are found."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("clang", reason="libclang is not installed")

from kernel_builds import DEVICES, KERNEL_FILES, record
from kernel_rules import Build, check_build, check_text

HEAD = "static void sum(__local uint *s)\n{\n    barrier(1);\n    s[0]++;\n    barrier(1);\n}\n"
KERNEL = HEAD + (
    "__kernel void k(const uint n, __global const uint *count, __global const uint *list,\n"
    "                __global const uint *table, __global uint *out)\n"
    "{\n    const uint lid = get_local_id(0), group = get_group_id(0);\n    BODY\n}\n"
)


def faults(body: str, *options: str) -> set[str]:
    text = KERNEL.replace("BODY", body)
    return {f.rule for f in check_build(Build(options, (("k.cl", text),)))}


USED = "__local uint s[64]; s[lid] = lid; sum(s); out[lid] = s[0];"
BARRIERS = {
    "in if": "if (n > 1) { barrier(1); }",
    "in else": "if (n > 1) out[0] = 1; else barrier(1);",
    "in a function called in if": "__local uint s[64]; s[lid] = 0; if (n) sum(s);",
    "behind return": "if (n > 1) return; barrier(1);",
    "behind return of some": "if (lid > 1) return; barrier(1);",
    "loop with break": "for (uint i = 0; i < n; i++) { barrier(1); if (count[i]) break; }",
    "loop with continue": "for (uint i = 0; i < n; i++) { if (count[i]) continue; barrier(1); }",
    "loop whose end varies": "for (uint i = 0; i < lid; i++) barrier(1);",
    "loop whose begin varies": "for (uint i = lid; i < n; i += 64) barrier(1);",
    "loop until an atomic": "while (atomic_inc(out) < n) barrier(1);",
    "in a choice": "n ? barrier(1) : barrier(2);",
}


@pytest.mark.parametrize("body", BARRIERS.values(), ids=BARRIERS.keys())
def test_finds_barriers_that_some_may_not_reach(body):
    assert faults(body) == {"barriers"}


@pytest.mark.parametrize(
    "body",
    [
        "barrier(1);",
        "for (uint i = group; i < count[0]; i += get_num_groups(0)) { barrier(1); }",
        "for (uint width = 32; width; width /= 2) { barrier(1); if (lid < width) out[lid] = 1; }",
        "barrier(1); if (lid) return; out[0] = 1;",
        "for (uint i = lid; i < n; i += 64) { if (count[i]) break; out[i] = 1; } barrier(1);",
        USED,
    ],
)
def test_allows_barriers_that_all_reach(body):
    assert faults(body) == set()


def test_one_launch_allows_conditions_that_a_group_shares():
    assert faults("if (n > 1) barrier(1);", "-DONE_LAUNCH") == set()
    assert faults("if (count[group]) return; barrier(1);", "-DONE_LAUNCH") == set()
    assert faults("if (lid > 1) barrier(1);", "-DONE_LAUNCH") == {"barriers"}
    assert faults("if (lid > 1) return; barrier(1);", "-DONE_LAUNCH") == {"barriers"}


LOOP = "for (uint i = group; i < count[0]; i += get_num_groups(0)) "


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (LOOP + "{ const uint v = list[i]; out[lid] = table[v]; }", True),
        (LOOP + "out[lid] = table[list[i]];", True),
        (
            LOOP + "{ const uint v = min(list[i], n - 1); out[lid] = table[v] + table[v + 1]; }",
            False,
        ),
        (LOOP + "if (count[0]) { const uint v = list[i]; out[lid] = table[v]; }", False),
        ("for (uint i = lid; i < n; i += 64) out[lid] = table[list[i]];", False),
    ],
)
def test_finds_reads_at_an_index_that_may_be_stale(body, found):
    assert faults(body) == ({"reads"} if found else set())


@pytest.mark.parametrize(
    "body",
    [
        "__local uint s[64]; out[lid] = 1;",
        "__local uint s[64]; for (uint i = 0; i < 0; i++) out[i] = s[i];",
        "__local uint s[16384]; s[lid] = 1; out[lid] = s[lid];",
    ],
)
def test_finds_local_memory_that_is_unused_or_too_much(body):
    assert faults(body) == {"local memory"}


def test_finds_private_arrays_passed_to_functions_with_barriers():
    text = (
        "static void f(uint *a) { barrier(1); a[0] = 1; }\nstatic void g(uint *a) { a[0] = 1; }\n"
        "__kernel void k(__global uint *out) { uint a[4]; uint b; %s out[0] = a[0]; }\n"
    )
    found = [
        {f.rule for f in check_build(Build((), (("k.cl", text % body),)))}
        for body in ("f(a);", "g(a); f(&b);")
    ]
    assert found == [{"arrays"}, set()]


def test_finds_doubles_where_the_device_may_have_none():
    for body in ("out[0] = (uint)(0.5 * n);", "double x = n; out[0] = x;"):
        assert faults(body) == {"doubles"}
        assert faults(body, "-DHAS_DOUBLE") == set()
    assert faults("out[0] = (uint)(0.5f * n);") == set()


def test_finds_what_only_one_file_may_have():
    lines = 'atom_add(p, 1);\n#pragma cl_khr_int64_base_atomics\nasm("");\n#ifdef NVIDIA\n'
    found = [(f.rule, f.place) for f in check_text("a.cl", lines)]
    assert found == [
        ("64-bit atomics", "a.cl:1"),
        ("64-bit atomics", "a.cl:2"),
        ("vendors", "a.cl:3"),
        ("vendors", "a.cl:4"),
    ]
    assert not list(check_text("a.cl", "/* NVIDIA: atom_add( */ x = 1; // asm\natomic_add(p, 1);"))


def test_finds_what_does_not_compile():
    assert faults("out[0] = unknown;") == {"compiles"}


def test_files_keep_the_rules():
    assert [f for file, text in KERNEL_FILES.items() for f in check_text(file, text)] == []


RECORDED = [(device, directed) for device in DEVICES for directed in (True, False)]
recorded = cache(lambda device, directed: record(DEVICES[device], directed))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("device", "directed"),
    [RECORDED[0], *[pytest.param(*case, marks=pytest.mark.thorough) for case in RECORDED[1:]]],
)
def test_programs_keep_the_rules(device, directed):
    """All programs for a device and a graph, without those that an earlier case has too."""
    earlier = RECORDED[: RECORDED.index((device, directed))]
    before = {one for case in earlier for one in recorded(*case)}
    builds = [one for one in recorded(device, directed) if one not in before]
    assert builds
    assert [fault for build in builds for fault in check_build(build)] == []
    size = DEVICES[device].max_work_group_size
    groups = {int(o.removeprefix("-DGROUP=")) for b in builds for o in b.options if "GROUP=" in o}
    assert max(groups) <= size
