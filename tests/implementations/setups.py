"""Which releases of Debian and Ubuntu, and which OpenCL drivers there, the suite runs with."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Release:
    """A release that debootstrap can install, and a Python there that the package supports."""

    title: str
    suite: str
    python: str
    origin: str = "Debian"
    components: str = "main"


@dataclass(frozen=True)
class Driver:
    """One OpenCL driver: where it comes from, and how a process is limited to it.

    `registered` is its file in /etc/OpenCL/vendors. `wheels` are packages of PyPI and `library` the
    driver's file among them. `under` is a command that shows the device to the process it starts.
    """

    title: str
    packages: tuple[str, ...] = ()
    registered: str = ""
    wheels: tuple[str, ...] = ()
    library: str = ""
    under: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    tests: tuple[str, ...] = ("tests/device",)


RELEASES = {
    "debian12": Release("Debian 12", "bookworm", "python3"),
    "debian13": Release("Debian 13", "trixie", "python3"),
    "debian14": Release("Debian 14 (testing)", "forky", "python3.13"),
    "ubuntu24.04": Release("Ubuntu 24.04", "noble", "python3", "Ubuntu", "main universe"),
}

DRIVERS = {
    "pocl": Driver("PoCL", ("pocl-opencl-icd",), "pocl.icd"),
    "rusticl": Driver(
        "Mesa's rusticl on llvmpipe",
        ("mesa-opencl-icd",),
        "rusticl.icd",
        environment={"RUSTICL_ENABLE": "llvmpipe"},
    ),
    "intel": Driver(
        "Intel's CPU runtime, from wheels",
        wheels=("intel-opencl-rt", "intel-cmplr-lib-rt"),
        library="libintelocl.so",
    ),
    "oclgrind": Driver(
        "oclgrind, the tests for it",
        ("oclgrind",),
        under=("oclgrind",),
        tests=(
            "tests/device/test_oclgrind.py",
            "tests/device/test_oclgrind_algorithms.py",
            "tests/device/test_oclgrind_programs.py",
            "tests/device/test_device_files.py",
        ),
    ),
}

SETUPS = (
    "debian12/pocl",
    "debian12/intel",
    "debian12/oclgrind",
    "ubuntu24.04/pocl",
    "debian13/pocl",
    "debian13/rusticl",
    "debian14/pocl",
    "debian14/rusticl",
)
"""RELEASE/DRIVER, in the order of the table."""

STARTS = ("debian12", "debian13", "ubuntu24.04")
"""Releases whose python3 is supported: there ./start must find a device."""

FAST = (
    "tests/device/test_optimised_programs.py",
    "tests/device/test_policy.py",
    "tests/device/test_strategies.py",
    "tests/device/test_many_searches.py",
    "tests/device/test_components.py",
    "tests/device/test_pagerank.py",
)
"""The fast part: searches, components, PageRank, and programs as users build them."""

FAST_OPTIONS = ("-m", "not slow", "-k", "(device0 or device1) and not copying")
"""Leaves out what runs on the host alone, and devices that pose as if they shared no memory."""


def drivers_of(release: str) -> list[Driver]:
    """Return the drivers of all setups of a release."""
    names = [setup.split("/") for setup in SETUPS]
    return [DRIVERS[driver] for where, driver in names if where == release]
