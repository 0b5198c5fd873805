"""Variables, limits and folders that a process is given: one line each, or a result."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
from checkout import TOP

SEARCH = ("bfs", "g.txt", "--source", "0", "--device", "cpu")


@pytest.fixture
def search(tmp_path):
    """Return a function that runs the program on a small graph, with some variables set."""
    (tmp_path / "g.txt").write_text("0 1\n")

    def run(*arguments, before=None, **variables) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hetero_bfs", *(arguments or SEARCH)],
            cwd=tmp_path,
            env={**os.environ, **variables},
            preexec_fn=before,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("hetero-bfs: ")
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_THREADING_LAYER", "nonsense"),
        ("NUMBA_THREADING_LAYER_PRIORITY", "omp tbb nope"),
        ("NUMBA_OPT", "x"),
    ],
)
def test_variables_of_numbas_are_checked(search, name, value):
    refused(search(**{name: value}), name, "unset")


def test_a_threading_layer_that_is_absent(search):
    try:
        from numba.np.ufunc import tbbpool  # noqa: F401
    except ImportError:
        refused(search(NUMBA_THREADING_LAYER="tbb"), "TBB", "unset NUMBA_THREADING_LAYER")
    else:
        assert search(NUMBA_THREADING_LAYER="tbb").returncode == 0


def test_variables_that_numba_takes(search):
    """Where all is compiled anew, progress bars show beside the usual notes."""
    done = search(NUMBA_THREADING_LAYER="workqueue", NUMBA_NUM_THREADS="1")
    usual = "note: no speed model for this machine"
    lines = [x for x in done.stderr.splitlines() if x.strip() and not x.startswith(usual)]
    assert (done.returncode, [x for x in lines if "%|" not in x]) == (0, [])


@pytest.mark.parametrize("mib", [64, 1000])
def test_too_little_address_space(search, mib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    refused(search(before=limit), f"{mib} MiB", "ulimit -v")
    assert search("--help", before=limit).returncode == 0


def test_the_remedy_named_is_one(search):
    def limit_to(kib):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))

    said = search(before=limit_to(200 << 10)).stderr
    least = int(said.rpartition("ulimit -v ")[2].rstrip(")\n"))
    done = search(before=limit_to(least))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["numba", "numpy"])
def test_a_library_that_cannot_be_loaded_is_one_line(search, tmp_path, missing):
    (tmp_path / f"{missing}.py").write_text("raise ImportError('x.so: failed to map segment')")
    refused(search(), "out of memory", "ulimit -v")
    (tmp_path / f"{missing}.py").write_text("raise ImportError('no such part')")
    refused(search(), "no such part")


@pytest.mark.parametrize("options", [(), ("--out", "o")])
def test_a_folder_that_is_gone(tmp_path, options):
    line = f'rmdir ../gone; exec {sys.executable} -m hetero_bfs bfs g.txt --source 0 "$@"'
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["bash", "-c", line, "bash", *options],
        cwd=tmp_path / "gone",
        env={**os.environ, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    refused(done, "current folder is gone", "cd to another")
