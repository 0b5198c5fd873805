"""Run NetworkX's own tests of the functions that the backend has, each graph converted to it.

    python tests/support/networkx_suite.py

What the backend cannot run falls back to NetworkX. The status is 1 if a test fails, or if fewer
tests than expected reached the backend, more were skipped, or a function was never called.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import wraps

import pytest

from hetero_bfs.networkx_backend import backend_interface
from hetero_bfs.networkx_backend.backend_info import FUNCTIONS

MODULES = [
    "networkx.algorithms.coloring",
    "networkx.algorithms.components.tests.test_connected",
    "networkx.algorithms.components.tests.test_weakly_connected",
    "networkx.algorithms.link_analysis.tests.test_pagerank",
    "networkx.algorithms.shortest_paths",
    "networkx.algorithms.tests.test_distance_measures",
    "networkx.algorithms.traversal.tests.test_bfs",
]
RANDOM = "test_use_bounds_on_off_consistency"
"""A test of 500 random graphs, which would take nine tenths of the time: one of 20 runs."""
LEAST_PASSED = 360  # 368 in NetworkX 3.6.1
LEAST_ON_BACKEND = 180  # 201
MOST_SKIPPED = 10


class Counts:
    """A plugin for pytest: calls of each function, and outcomes of tests."""

    def __init__(self):
        self.calls = Counter()
        self.outcomes = Counter()
        self.tests_on_backend = 0
        for name in FUNCTIONS:
            setattr(backend_interface, name, self.counted(name))

    def counted(self, name):
        function = getattr(backend_interface, name)

        @wraps(function)
        def counting(*args, **kwargs):
            self.calls[name] += 1
            return function(*args, **kwargs)

        return counting

    def pytest_collection_modifyitems(self, items):
        random = [item for item in items if item.originalname == RANDOM]
        left_out = {*random} - {*random[::20]}
        items[:] = [item for item in items if item not in left_out]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        before = self.calls.total()
        yield
        self.tests_on_backend += self.calls.total() > before

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome == "skipped":
            self.outcomes["xfailed" if hasattr(report, "wasxfail") else report.outcome] += 1

    def faults(self):
        """What is not as expected, a line each."""
        if self.outcomes["passed"] < LEAST_PASSED:
            yield f"fewer than {LEAST_PASSED} tests passed"
        if self.tests_on_backend < LEAST_ON_BACKEND:
            yield f"fewer than {LEAST_ON_BACKEND} tests reached the backend"
        if self.outcomes["skipped"] + self.outcomes["xfailed"] > MOST_SKIPPED:
            yield f"more than {MOST_SKIPPED} tests were skipped or expected to fail"
        if never := FUNCTIONS.keys() - self.calls.keys():
            yield f"never called: {', '.join(sorted(never))}"


def main() -> int:
    os.environ["NETWORKX_TEST_BACKEND"] = "hetero"
    os.environ["NETWORKX_FALLBACK_TO_NX"] = "true"  # any text counts as true, "False" too
    counts = Counts()
    # Without this project's settings of pytest, which are for its own tests.
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", os.sep]
    status = pytest.main([*options, *sys.argv[1:], "--pyargs", *MODULES], plugins=[counts])
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(counts.outcomes.items()))
    print(
        f"NetworkX's tests with the backend hetero: {outcomes}; {counts.tests_on_backend} tests "
        f"made {counts.calls.total()} calls of it"
    )
    faults = list(counts.faults())
    for fault in faults:
        print(f"not as expected: {fault}")
    return int(bool(status or faults))


if __name__ == "__main__":
    sys.exit(main())
