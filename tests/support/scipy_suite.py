"""Run SciPy's own tests of the functions that `hetero_bfs.csgraph` has, with these in their place.

    python tests/support/scipy_suite.py

The status is 1 if a test fails, or if the functions were called less often than expected.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import wraps

import pytest
import scipy.sparse.csgraph

import hetero_bfs.csgraph

MODULES = [
    f"scipy.sparse.csgraph.tests.test_{n}" for n in ("connected_components", "shortest_path")
]
LEAST_CALLS = {"connected_components": 10, "dijkstra": 50, "shortest_path": 100}
"""12, 59 and 113 in SciPy 1.17."""

calls: Counter[str] = Counter()


def counted(name):
    function = getattr(hetero_bfs.csgraph, name)

    @wraps(function)
    def counting(*args, **kwargs):
        calls[name] += 1
        return function(*args, **kwargs)

    return counting


def main() -> int:
    for name in hetero_bfs.csgraph.OURS:
        setattr(scipy.sparse.csgraph, name, counted(name))
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", os.sep]
    status = pytest.main([*options, *sys.argv[1:], "--pyargs", *MODULES])
    print("calls of hetero_bfs.csgraph by SciPy's tests:", dict(calls))
    few = {name for name, least in LEAST_CALLS.items() if calls[name] < least}
    if few:
        print(f"fewer calls than expected of {', '.join(sorted(few))}")
    return int(bool(status or few))


if __name__ == "__main__":
    sys.exit(main())
