"""The cache of compiled kernels: fresh only while all kernel files are as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hetero_bfs
from hetero_bfs.kernels.compile import kernel, sources_digest

PROGRAM = """
import numpy as np
from hetero_bfs.kernels.policy import choose, expectations
expectations(np.ones(12))
stats = expectations.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder: Path) -> tuple[int, int]:
    """Compile one kernel of a copy of the package; return hits and misses of the cache."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    hits, misses = output.split()
    return int(hits), int(misses)


def test_a_change_in_another_kernel_file_counts(tmp_path):
    package = Path(hetero_bfs.__file__).parent
    shutil.copytree(package, tmp_path / "hetero_bfs", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(tmp_path) == (0, 1)
    assert run(tmp_path) == (1, 0)
    other = tmp_path / "hetero_bfs" / "kernels" / "team.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert run(tmp_path) == (0, 1)


def test_kernels_carry_the_digest_of_all_sources():
    @kernel
    def twice(x):
        return 2 * x

    assert twice(21) == 42
    assert sources_digest() in twice._cache._cache_file._source_stamp
