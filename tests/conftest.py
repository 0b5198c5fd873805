"""Fixtures: every OpenCL device there is, models made by hand, one thread for tiny graphs."""

from __future__ import annotations

import gc
import json
import os
import sys
import zlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

sys.path[:0] = [str(Path(__file__).parent / "support"), str(Path(__file__).parents[1])]

from made_models import model_json
from posing import pose_as_asked

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.devices.opencl.driver import NO_RUNTIME, list_devices
from hetero_bfs.scheduling.model_files import MODELS_VARIABLE
from hetero_bfs.support import private_cache
from hetero_bfs.support.environment import COMPILING_VARIABLE
from hetero_bfs.warm_up import warm_up

# Workers of pytest-xdist leave no core idle, so a thread of OpenMP that spins takes the time of
# another one. Before the first parallel loop; the commands that tests start have it, too.
os.environ["GOMP_SPINCOUNT"] = "0"

# Compiling makes millions of objects that stay, so the collector looks for garbage less often.
gc.set_threshold(200_000, 50, 100)

# Two workers and some two hundred commands read the same files: all but the first find bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

pose_as_asked()
# Answers are those of compiled code, whatever is compiled already.
os.environ.setdefault(COMPILING_VARIABLE, "wait,quiet")
# These tests say more of a device than the package's own do, and some devices here are made up.
os.environ[verdicts.VARIABLE] = "off"

settings.register_profile(
    "hetero_bfs",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("hetero_bfs")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts its workers
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile what all workers need, if all tests run in several workers."""
    config = session.config
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    has_workers = config.getoption("dist", "no") != "no" and bool(config.getoption("tx", None))
    if is_whole and has_workers and not config.option.collectonly:
        jobs = "opening", "PathSearches", "Engine", "graph500", "graphs", "PageRanks", "Colourings"
        list(warm_up(jobs))


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rest of sampled tests as thorough, and all thorough tests as slow."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        for case in _left_out(cases):
            case.add_marker(pytest.mark.thorough)
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Let `gc` pass over what all tests share."""
    gc.collect()
    gc.freeze()


def _left_out(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return what does not run of a sampled test, of which one of n cases runs.

    Next comes the case with the most values of parameters that did not run yet, then with the most
    pairs of values.
    """
    left = sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
    values = {case: {(k, repr(v)) for k, v in case.callspec.params.items()} for case in cases}
    pairs = {case: set(combinations(sorted(values[case]), 2)) for case in cases}
    (one_of,) = cases[0].get_closest_marker("sampled").args
    for _ in range(-(-len(cases) // one_of)):
        best = max(left, key=lambda case: (len(values[case]), len(pairs[case])))
        left.remove(best)
        for new in (values, pairs):
            ran = set(new[best])
            for case in left:
                new[case] -= ran
    return left


def _devices(posing: bool) -> list:
    """Every usable device; with `posing`, one that shares the host's memory also as if it did not.

    So what is for GPUs alone (copies, pinned memory, streaming) runs where there is only PoCL.
    """
    params = []
    for info in list_devices():
        if info.problem is not None:
            reason = f"{info.name}: {info.problem}"
            params.append(pytest.param(None, marks=pytest.mark.skip(reason=reason), id=info.name))
            continue
        params.append(pytest.param(info, id=f"device{info.index}"))
        if posing and info.unified_memory:
            apart = replace(info, unified_memory=False)
            params.append(pytest.param(apart, id=f"device{info.index}-copying"))
    if not params:
        params.append(pytest.param(None, marks=pytest.mark.skip(reason=NO_RUNTIME), id="none"))
    return params


def _with_memory(unified: bool) -> list:
    """Those that share the host's memory, or those that do not; a skipped one if there are none."""
    of_this_kind = [p for p in _DEVICES if p.values[0] and p.values[0].unified_memory == unified]
    none = pytest.mark.skip(reason="no device here shares the host's memory")
    skipped = [p for p in _DEVICES if p.marks] or [pytest.param(None, marks=none, id="none")]
    return of_this_kind or skipped


_DEVICES, _PLAIN_DEVICES = _devices(posing=True), _devices(posing=False)
_ONLY_POCL = all(info.platform == "Portable Computing Language" for info in list_devices())
_OPTIONS_VARIABLE = "PYOPENCL_BUILD_OPTIONS"
_WARN = private_cache.warn


@pytest.fixture(scope="module", autouse=True)
def _optimisation(request):
    """Build kernels without optimisation, which takes PoCL most of the time of a cold test.

    Modules marked `optimised` build them as users do. All do if the variable is set, be it empty.
    """
    with pytest.MonkeyPatch.context() as patch:
        as_users = request.node.get_closest_marker("optimised") or _OPTIONS_VARIABLE in os.environ
        if _ONLY_POCL and not as_users:
            patch.setenv(_OPTIONS_VARIABLE, "-cl-opt-disable")
        yield


@pytest.fixture(scope="module", autouse=True)
def _old_objects():
    """Let `gc` look only at objects of this module: compiled code of others is millions."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _library_warns(monkeypatch):
    """A command run in this process has private_cache warn in its own way: for that test only."""
    monkeypatch.setattr(private_cache, "warn", _WARN)


@pytest.fixture
def without_costs(monkeypatch):
    """No model predicts whole runs, so each place is tried twice."""
    monkeypatch.setattr("hetero_bfs.scheduling.run_chooser.run_costs", lambda *_: {})


@pytest.fixture(scope="session", params=_DEVICES)
def opencl_device(request):
    """A usable OpenCL device (DeviceInfo), in turn; skips where there is none."""
    return request.param


@pytest.fixture(scope="session", params=_with_memory(unified=False))
def apart(request):
    """A device with memory of its own (DeviceInfo), in turn, or one that poses as such."""
    return request.param


@pytest.fixture(scope="session", params=_with_memory(unified=True))
def shared(request):
    """A device that shares the host's memory (DeviceInfo), in turn."""
    return request.param


@pytest.fixture(scope="session", params=[pytest.param(None, id="cpu"), *_DEVICES])
def place(request):
    """The CPU alone (None), then every OpenCL device beside it (DeviceInfo)."""
    return request.param


@pytest.fixture(scope="session", params=_PLAIN_DEVICES)
def plain_device(request):
    """A usable OpenCL device as it is, in turn: for what copies nothing of its own."""
    return request.param


@pytest.fixture(scope="session", params=[pytest.param(None, id="cpu"), *_PLAIN_DEVICES])
def plain_place(request):
    """The CPU alone (None), then every OpenCL device as it is."""
    return request.param


@pytest.fixture(scope="module")
def kept():
    """Return a function that gives the engine of a key, opened once and kept for the module."""
    engines: dict = {}

    def engine_of(key, open_engine):
        if key not in engines:
            engines[key] = open_engine()
        return engines[key]

    yield engine_of
    for engine in engines.values():
        engine.close()


@pytest.fixture
def few_objects():
    """Let `gc` look only at what is made from here on, not at a million objects of the module."""
    gc.freeze()


@pytest.fixture
def one_thread():
    """Search without barriers between threads: milliseconds saved on every tiny graph."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)


@pytest.fixture
def many_threads(monkeypatch):
    """Let engines have more threads than this machine has cores."""
    monkeypatch.setattr("hetero_bfs.devices.cpu.host_run.most_threads", lambda: 64)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Return a function that puts a model for a device (DeviceInfo or None) where it is found."""
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))

    def train(device, change=None) -> str:
        name = machine_slug(device)
        data = model_json(name)
        if change is not None:
            change(data)
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / f"{name}.json").write_text(json.dumps(data))
        return name

    return train


@pytest.fixture
def friends(tmp_path):
    """A graph file with names and weights: ada, bob and cat in a row; zoe and zed apart."""
    path = tmp_path / "friends.csv"
    path.write_text("source,target,weight\nada,bob,2\nbob,cat,3\nzoe,zed,1\n")
    return path


@pytest.fixture
def graph(tmp_path):
    """0-1-2-3 back to back, a loop, a duplicate, 5-6 apart, 4, 7 and 8 alone."""
    path = tmp_path / "g.txt"
    path.write_text("# Nodes: 9\n0 1\n1 2\n2 2\n2 3\n1 2\n5 6\n")
    return path
