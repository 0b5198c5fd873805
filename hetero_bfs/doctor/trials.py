"""Examines OpenCL and MPI, and searches a small graph, each in a process that it may end.

OpenCL is the files that name drivers, their libraries, platforms and devices. MPI is mpi4py, the
library that it uses, and the launcher. The searches are validated: on the CPU, then with default
settings.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hetero_bfs as hb
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.doctor import Finding
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.messages import announce
from hetero_bfs.support.processes import Answer, run_main, run_module, say

OPENCL = "OpenCL"
_OPENCL_SECONDS = 60.0
_POCL = "apt-get install pocl-opencl-icd"
_ASKS_DRIVERS = ("platforms", "devices")
"""Steps of the probe that call all drivers."""

_WITHOUT = "searches run on the CPU only"


class OpenCLDrivers:
    """The examination of OpenCL; after it, `default` holds the fields of the default device."""

    def __init__(self, retest: bool = False) -> None:
        self.default: dict[str, Any] | None = None
        self._retest = retest

    def check(self) -> Iterator[Finding]:
        answer = run_module(__name__, _OPENCL_SECONDS, OPENCL)
        yield from _drivers(answer)
        for line in answer.lines:
            if "pyopencl" in line:
                yield Finding(OPENCL, "PyOpenCL", "ok", line["pyopencl"])
        if answer.problem is not None:
            yield from _culprits(answer)
            return
        yield from _platforms(answer)
        yield from self._devices(answer)

    def _devices(self, answer: Answer) -> Iterator[Finding]:
        devices = [line for line in answer.lines if "device" in line]
        for line in devices:
            fields = line["device"]
            name = f"device {fields['index']}"
            text = (
                f"{fields['name']}, {fields['type']}, driver {fields['driver']}, "
                f"{fields['memory_bytes'] / 2**30:.1f} GiB"
            )
            if fields["problem"] is not None:
                yield Finding(OPENCL, name, "failed", f"{text}: {fields['problem']}")
                continue
            if line["default"]:
                self.default = fields
                text += ", used by default"
            yield Finding(OPENCL, name, "ok", text)
            yield from _self_tests(_tested_again(fields) if self._retest else line["self_test"])
        if not devices:
            yield Finding(OPENCL, "devices", "missing", f"none found; {_WITHOUT}", _POCL)


def _tested_again(fields: dict[str, Any]) -> dict[str, Any]:
    info = DeviceInfo(**fields)
    for family in verdicts.FAMILIES:
        announce(f"testing {family} on {info.name}")
        verdicts.test(info, family)
    return verdicts.kept_as_json(info)


def _self_tests(verdicts: dict[str, Any]) -> Iterator[Finding]:
    right, untested = [], []
    for family, verdict in verdicts.items():
        if verdict is None:
            untested.append(family)
            continue
        when = f"({verdict['date']}, {verdict['seconds']} s)"
        if verdict["problem"] is None:
            right.append(f"{family} {when}")
            continue
        text = f"{family} {when}: {verdict['problem']}; they run on the CPU only"
        remedy = "install another version of the driver; test again: hetero-bfs doctor --retest"
        yield Finding(OPENCL, "self-test", "failed", text, remedy)
    if right:
        yield Finding(OPENCL, "self-test", "ok", f"right: {', '.join(right)}")
    if untested:
        text = f"before their first use: {', '.join(untested)}"
        yield Finding(OPENCL, "self-test", "ok", text)


def _drivers(answer: Answer) -> Iterator[Finding]:
    if not vendor_files():
        place = os.environ.get("OCL_ICD_VENDORS") or DEFAULT_VENDORS
        yield Finding(OPENCL, "drivers", "missing", f"no .icd file in {place}; {_WITHOUT}", _POCL)
    for line in answer.lines:
        if "driver" not in line:
            continue
        if line["problem"] is None:
            yield Finding(OPENCL, "driver", "ok", f"{line['library']}, named in {line['driver']}")
        else:
            fault = "names a library that cannot be loaded" if line["library"] else "cannot be read"
            text = f"{line['driver']} {fault}: {line['problem']}"
            remedy = f"install its driver anew, or remove {line['driver']}"
            yield Finding(OPENCL, "driver", "failed", text, remedy)


def _platforms(answer: Answer) -> Iterator[Finding]:
    for line in answer.lines:
        if "platform" in line:
            yield Finding(OPENCL, "platform", "ok", f"{line['platform']}, {line['version']}")
        elif line.keys() == {"problem"}:
            text = f"no platform ({line['problem']}); {_WITHOUT}"
            yield Finding(OPENCL, "platforms", "missing", text, _POCL)


def _culprits(answer: Answer) -> Iterator[Finding]:
    """Report where the probe ended; find drivers at fault by probing each one separately."""
    step = next((line for line in reversed(answer.lines) if "step" in line), {"step": "start"})
    text = f"the examination ended at step {step['step']!r}: {answer.problem}"
    guilty = [file for file in vendor_files() if _is_guilty(file, step)]
    good = [file for file in vendor_files() if file not in guilty]
    for file in guilty:
        remedy = f"install its driver anew, or remove {file}"
        if len(good) == 1:
            remedy += f", or search without it: export OCL_ICD_VENDORS={good[0]}"
        yield Finding(OPENCL, "driver", "failed", f"{file}: {text}", remedy, True)
    if not guilty:
        yield Finding(OPENCL, "examination", "failed", text, "", step["step"] in _ASKS_DRIVERS)


def _is_guilty(file: Path, step: dict[str, Any]) -> bool:
    """Whether a driver ends a process: it was loaded last, or fails when probed separately."""
    if step["step"] not in _ASKS_DRIVERS:
        return step.get("file") == str(file)
    alone = run_module(__name__, _OPENCL_SECONDS, OPENCL, OCL_ICD_VENDORS=str(file))
    return alone.problem is not None


DEFAULT_VENDORS = "/etc/OpenCL/vendors"


def vendor_files() -> list[Path]:
    place = Path(os.environ.get("OCL_ICD_VENDORS") or DEFAULT_VENDORS)
    if place.suffix == ".icd":
        return [place]
    return sorted(place.glob("*.icd")) if place.is_dir() else []


def library_of(file: Path) -> str:
    return (file.read_text(errors="replace").strip().splitlines() or [""])[0].strip()


def load_drivers() -> None:
    """Load OpenCL in this process; a driver may crash or hang.

    A step that may never end is announced first, so that the reader knows where the process
    stopped.
    """
    for file in vendor_files():
        say(step="driver", file=str(file))
        library = ""
        try:
            library = library_of(file)
            ctypes.CDLL(library)
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            say(driver=str(file), library=library, problem=str(error))
        else:
            say(driver=str(file), library=library, problem=None)
    say(step="loader")
    import pyopencl

    say(pyopencl=pyopencl.VERSION_TEXT)
    say(step="platforms")
    try:
        platforms = [(platform.name, platform.version) for platform in pyopencl.get_platforms()]
    except pyopencl.Error as error:
        say(problem=" ".join(str(error).split()))
        return
    for name, version in platforms:
        say(platform=name.strip(), version=version.strip())
    say(step="devices")
    from hetero_bfs.devices.opencl.driver import choose_device, list_devices

    found = list_devices()
    usable = any(device.problem is None for device in found)
    default = choose_device().index if usable else None
    for device in found:
        tests = verdicts.kept_as_json(device)
        say(device=device.to_dict(), default=device.index == default, self_test=tests)


MPI = "MPI"
_MPI_SECONDS = 60.0
_INSTALL = "pip install mpi4py mpich"
_LAUNCHERS = ("mpirun", "mpiexec", "srun")
_FAMILIES = {"MPICH": ("mpich", "hydra"), "Open MPI": ("open mpi", "open-mpi", "openrte", "prrte")}
"""Words in the names of libraries and launchers, by the MPI that they belong to."""


def check_mpi() -> Iterator[Finding]:
    answer = run_module(__name__, _MPI_SECONDS, MPI)
    library = next((line["library"] for line in answer.lines if "library" in line), None)
    if library is None:
        text = f"mpi4py cannot be loaded ({answer.problem}); one process only"
        yield Finding(MPI, "mpi4py", "missing", text, _INSTALL)
        return
    version = next(line["mpi4py"] for line in answer.lines if "mpi4py" in line)
    yield Finding(MPI, "mpi4py", "ok", f"{version}, with {library}")
    yield from _launchers(library)


def _launchers(library: str) -> Iterator[Finding]:
    found = {name: place for name in _LAUNCHERS if (place := shutil.which(name))}
    local = shutil.which(_LAUNCHERS[0], path=str(Path(sys.executable).parent))
    if not found:
        remedy = f"start with {local}" if local else _INSTALL
        text = f"none of {', '.join(_LAUNCHERS)} is on the PATH"
        yield Finding(MPI, "launcher", "missing", text, remedy)
    wanted = family(library)
    for name, place in found.items():
        of = family(_version(place))
        if name == "srun" or None in (of, wanted) or of == wanted:
            yield Finding(MPI, name, "ok", f"{place}{'' if of is None else f', of {of}'}")
            continue
        text = f"{place} is of {of}, but mpi4py uses {wanted}: each process would be alone"
        fits = local is not None and family(_version(local)) == wanted
        remedy = f"start with {local if fits else f'the mpirun of {wanted}'}"
        yield Finding(MPI, name, "failed", text, remedy)


def family(text: str) -> str | None:
    lower = text.lower()
    return next((of for of, words in _FAMILIES.items() if any(w in lower for w in words)), None)


def _version(launcher: str) -> str:
    try:
        done = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout + done.stderr


def load_mpi() -> None:
    """Load MPI in this process: a wrong library may end it."""
    import mpi4py

    say(mpi4py=mpi4py.__version__)
    mpi4py.rc.initialize = False
    from mpi4py import MPI as library

    say(library=" ".join(library.Get_library_version().split("\n")[0].strip("\0 ").split()))


SEARCHES = "searches"
_SEARCHING_SECONDS = 600.0  # the first run on a slow machine compiles everything
_SCALE = 10


def check_searches() -> Iterator[Finding]:
    answer = run_module(__name__, _SEARCHING_SECONDS, SEARCHES)
    trials = {line["trial"]: line for line in answer.lines if "trial" in line}
    for name in ("CPU", "default"):
        result = trials.get(name, {"problem": f"it did not end: {answer.problem}"})
        yield _finding(name, result)
    for line in answer.lines:
        if "threading_layer" in line:
            text = f"{line['threading_layer']}, {line['threads']} threads"
            yield Finding(SEARCHES, "threading layer", "ok", text)


def _finding(name: str, result: dict[str, Any]) -> Finding:
    if result["problem"] is not None:
        remedy = "" if name == "CPU" else "search on the CPU: --device cpu"
        return Finding(SEARCHES, name, "failed", result["problem"], remedy, True)
    return Finding(SEARCHES, name, "ok", result["text"])


def search_small_graph() -> None:
    import numba

    graph = hb.kronecker(_SCALE)
    for name, device in (("CPU", "cpu"), ("default", "auto")):
        try:
            text = _search(graph, device)
        except HeteroBFSError as error:
            say(trial=name, problem=str(error))
        else:
            say(trial=name, problem=None, text=text)
    say(threading_layer=numba.threading_layer(), threads=numba.get_num_threads())


def _search(graph: Any, device: Any) -> str:
    with hb.Engine(graph, device=device) as engine:
        result = engine.bfs(1)
        where = "the CPU alone" if engine.device_info is None else engine.device_info.name
        outcome = hb.validate(graph, 1, result.parent, result.level)
        if not outcome.valid:
            raise HeteroBFSError(f"wrong result: {outcome.message}")
        return f"valid on {where}, selector {engine.selector.name}"


if __name__ == "__main__":
    run_main({OPENCL: load_drivers, MPI: load_mpi, SEARCHES: search_small_graph}[sys.argv[2]])
