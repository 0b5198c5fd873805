"""Programs are built once in a process, and found on disk by the next one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from hetero_bfs.devices.opencl import built_programs
from hetero_bfs.devices.opencl.built_programs import BuiltPrograms
from hetero_bfs.devices.opencl.driver import device_error, platform_devices
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.support import private_cache

SOURCE = "__kernel void fill(__global uint *x) { x[get_global_id(0)] = VALUE; }"


@pytest.fixture
def processes(plain_device, tmp_path, monkeypatch):
    """Return a function that makes the programs of another process, whose driver keeps nothing."""
    monkeypatch.setattr("pyopencl.characterize.has_src_build_cache", lambda _: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    private_cache.folder.cache_clear()
    yield lambda: BuiltPrograms(platform_devices()[plain_device.index])
    private_cache.folder.cache_clear()


@pytest.fixture
def builds(monkeypatch):
    """The options of programs that are built from their source, in order."""
    found = []
    build = built_programs._without_warnings

    def counted(program, options):
        if program._prg is None:  # PyOpenCL makes it from its source
            found.append(tuple(options))
        return build(program, options)

    monkeypatch.setattr(built_programs, "_without_warnings", counted)
    return found


def filled(programs: BuiltPrograms, value: int) -> bool:
    """Build the program, run it, and tell whether it did what its options say."""
    import pyopencl as cl

    program = programs.build(SOURCE, [f"-DVALUE={value}"])
    queue, found = cl.CommandQueue(programs.context), np.zeros(4, np.uint32)
    buffer = cl.Buffer(programs.context, cl.mem_flags.READ_WRITE, found.nbytes)
    cl.Kernel(program, "fill")(queue, (4,), (1,), buffer)
    cl.enqueue_copy(queue, found, buffer)
    return found.tolist() == [value] * 4


def kept_files():
    return sorted(private_cache.folder().glob("program-*"))


def test_another_process_builds_nothing(processes, builds):
    for _ in range(2):
        programs = processes()
        assert filled(programs, 5)
        assert filled(programs, 5)
    assert builds == [("-DVALUE=5",)]
    assert len(kept_files()) == 1


def test_other_options_and_other_drivers_have_other_programs(processes, builds, monkeypatch):
    assert filled(processes(), 5)
    assert filled(processes(), 6)
    monkeypatch.setattr(built_programs, "_identity", lambda device: ("another driver",))
    assert filled(processes(), 5)
    assert builds == [("-DVALUE=5",), ("-DVALUE=6",), ("-DVALUE=5",)]
    assert len(kept_files()) == 3


@pytest.mark.parametrize("variable", ["PYOPENCL_BUILD_OPTIONS", "OCLGRIND_BUILD_OPTIONS"])
def test_options_of_the_environment_have_other_programs(processes, builds, monkeypatch, variable):
    """PyOpenCL or the driver adds them, so the package's own options do not show them."""
    assert filled(processes(), 5)
    monkeypatch.setenv(variable, "-DOTHER")
    assert filled(processes(), 5)
    assert len(builds) == len(kept_files()) == 2


@pytest.mark.parametrize("how", ["empty", "cut", "a bit", "another's"])
def test_a_damaged_or_foreign_binary_is_built_anew(processes, builds, how):
    assert filled(processes(), 5)
    (file,) = kept_files()
    content = file.read_bytes()
    if how == "another's":
        assert filled(processes(), 6)
        (other,) = set(kept_files()) - {file}
        other.replace(file)
        builds.pop()
    else:
        middle = len(content) // 2
        bit = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes({"empty": b"", "cut": content[:middle], "a bit": bit}[how])
    assert filled(processes(), 5)
    assert builds == [("-DVALUE=5",)] * 2
    assert filled(processes(), 5)
    assert len(builds) == 2


def test_a_binary_that_the_driver_refuses_is_built_anew(processes, builds, monkeypatch):
    monkeypatch.setattr(private_cache, "read", lambda name, stamp: b"of a driver before it")
    assert filled(processes(), 5)
    assert filled(processes(), 5)
    assert builds == [("-DVALUE=5",)] * 2


def test_a_folder_that_others_may_use_is_not_read(processes, builds):
    assert filled(processes(), 5)
    private_cache.folder().chmod(0o777)
    private_cache.folder.cache_clear()
    with pytest.warns(RuntimeWarning, match="not kept"):
        assert filled(processes(), 5)
    assert len(builds) == 2


def test_engines_share_a_context_until_a_driver_fails(plain_device):
    first, second = OpenCLDevice(plain_device), OpenCLDevice(plain_device)
    assert first.context is second.context
    assert first.build(["-DVALUE=1"], SOURCE, []) is second.build(["-DVALUE=1"], SOURCE, [])
    device_error("running a kernel", RuntimeError("made to fail"))
    third = OpenCLDevice(plain_device)
    assert third.context is not first.context
    assert first.build(["-DVALUE=1"], SOURCE, []) is second.build(["-DVALUE=1"], SOURCE, [])


def test_a_process_keeps_so_many_programs(plain_device, monkeypatch):
    monkeypatch.setattr(built_programs, "_MOST_PROGRAMS", 2)
    programs = BuiltPrograms(platform_devices()[plain_device.index])
    built = [programs.build(SOURCE, [f"-DVALUE={i}"]) for i in range(3)]
    assert programs.build(SOURCE, ["-DVALUE=2"]) is built[2]
    assert programs.build(SOURCE, ["-DVALUE=0"]) is not built[0]


FORKS = """
import os, sys
from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
device = OpenCLDevice(next(info for info in list_devices() if info.name == sys.argv[2]))
device.build(["-DVALUE=1"], sys.argv[1], [])
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_forked_process_ends(plain_device):
    if "nvidia" in plain_device.platform.lower():
        pytest.skip("NVIDIA's own exit handlers end a forked process by a signal")
    done = subprocess.run(
        [sys.executable, "-c", FORKS, SOURCE, plain_device.name],
        timeout=100,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0
