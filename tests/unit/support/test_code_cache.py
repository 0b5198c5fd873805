"""Compiled code on disk: fresh, whole and this user's, or compiled anew."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher
from numba_server import run_program

import hetero_bfs
from hetero_bfs.support import code_cache, private_cache

PACKAGE = Path(hetero_bfs.__file__).parent
PROGRAM = """
from hetero_bfs.support.compiling import kernel
@kernel
def twice(x):
    return 2 * x
assert twice(21) == 42
hits, misses = twice.stats.cache_hits, twice.stats.cache_misses
print(f"{sum(hits.values())} {sum(misses.values())}\\n", end="")
"""


def run(cache: Path, folder: Path, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Run a program that compiles one kernel, with the copy of the package in `folder`."""
    return run_program(program, folder, NUMBA_CACHE_DIR=str(cache))


def counts(cache: Path, folder: Path) -> str:
    """Return hits and misses of the cache, of a run in which all went well."""
    done = run(cache, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, and its cache with that kernel in it."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "hetero_bfs", ignore=ignored)
    assert counts(folder / "cache", folder) == "0 1"
    return folder


@pytest.fixture
def cache(copied, tmp_path):
    """A cache with that kernel in it, which a test may damage."""
    shutil.copytree(copied / "cache", tmp_path / "cache")
    return tmp_path / "cache"


def files_of(cache: Path) -> list[Path]:
    (folder,) = cache.iterdir()
    return sorted(folder.iterdir())


def test_code_is_compiled_once(copied, cache):
    assert counts(cache, copied) == "1 0"
    assert [path.suffix for path in files_of(cache)] == [".bin"]
    assert (files_of(cache)[0].parent.stat().st_mode & 0o777) == 0o700


def test_a_change_in_another_kernel_file_counts(copied, cache):
    """And puts the new code where the old was."""
    before = files_of(cache)
    other = copied / "hetero_bfs" / "devices" / "cpu" / "thread_pool.py"
    text = other.read_text()
    try:
        other.write_text(text + "\n# changed\n")
        assert counts(cache, copied) == "0 1"
        assert counts(cache, copied) == "1 0"
    finally:
        other.write_text(text)
    assert files_of(cache) == before
    assert counts(cache, copied) == "0 1"


def test_a_change_elsewhere_does_not(copied, cache):
    (copied / "hetero_bfs" / "new.py").write_text("import numpy\n")
    assert counts(cache, copied) == "1 0"


def damages(content: bytes):
    """Yield what may become of a file, by name."""
    middle = len(content) // 2
    yield "empty", b""
    yield "cut", content[:middle]
    yield "a byte less", content[:-1]
    yield "no digest", content[32:]
    yield "longer", content + b"\0"
    yield "zeros", content[:middle] + bytes(64) + content[middle + 64 :]
    yield "a bit", content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    yield "the digest", bytes(32) + content[32:]


def many(count: int) -> str:
    """Return a program that compiles so many kernels, and prints which the cache lacked."""
    functions = "".join(f"@kernel\ndef f{i}_(x):\n    return x + {i}\n" for i in range(count))
    return (
        f"from hetero_bfs.support.compiling import kernel\n{functions}"
        f"for i in range({count}):\n"
        "    function = globals()[f'f{i}_']\n"
        "    assert function(21) == 21 + i\n"
        "    if sum(function.stats.cache_misses.values()):\n"
        "        print(i)\n"
    )


def compiled_anew(copied: Path, cache: Path, count: int) -> set[int]:
    """Return which of so many kernels a process has to compile."""
    done = run(cache, copied, many(count))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return {int(word) for word in done.stdout.split()}


def kernel_files(cache: Path, count: int) -> list[Path]:
    """Return the file of each kernel of `many`."""
    return [next(p for p in files_of(cache) if p.name.startswith(f"f{i}_")) for i in range(count)]


def test_damaged_code_is_compiled_anew(copied, tmp_path):
    cache, count = tmp_path / "cache", len(list(damages(bytes(100))))
    assert compiled_anew(copied, cache, count) == set(range(count))
    for i, path in enumerate(kernel_files(cache, count)):
        path.write_bytes([content for _, content in damages(path.read_bytes())][i])
    assert compiled_anew(copied, cache, count) == set(range(count))
    assert compiled_anew(copied, cache, count) == set()


class Evil:
    def __reduce__(self):
        return (os.system, ("echo executed; touch executed",))


def test_nothing_in_a_file_is_executed(copied, cache):
    (path,) = files_of(cache)
    for content in (pickle.dumps(Evil()), bytes(32) + pickle.dumps(Evil())):
        path.write_bytes(content)
        assert counts(cache, copied) == "0 1"
        assert not (copied / "executed").exists()


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing"])
def test_something_else_in_its_place(copied, cache, kind):
    (path,) = files_of(cache)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    done = run(cache, copied)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0 1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_file_or_folder_is_not_used(copied, cache):
    (path,) = files_of(cache)
    os.chown(path, 12345, 12345)
    assert counts(cache, copied) == "0 1"
    os.chown(path.parent, 12345, 12345)
    done = run(cache, copied)
    assert done.stdout.strip() == "0 1"
    assert "not a folder of yours" in done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_folder_open_to_others_is_not_used(copied, cache):
    (path,) = files_of(cache)
    path.parent.chmod(0o770)
    done = run(cache, copied)
    assert done.stdout.strip() == "0 1"
    assert "others may use it" in done.stderr
    assert "chmod 700" in done.stderr


def test_a_place_where_nothing_can_be_written(copied):
    """Everything works, and is compiled each time; it is said once, with a remedy."""
    for place in ("/proc/none", "/dev/null/none"):
        done = run(Path(place), copied)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "0 1"
        assert done.stderr.count("compiled code is not kept") == 1
        assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_full_disk_is_told_once(copied, cache):
    """The folder is there and code cannot be put in."""
    program = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + PROGRAM
    )
    (path,) = files_of(cache)
    path.unlink()
    done = run(cache, copied, program)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("File too large") == 1
    assert files_of(cache) == []


def test_two_processes_at_once(copied, cache):
    (path,) = files_of(cache)
    path.unlink()
    fork = "import os\nchild = os.fork()\n"
    wait = "if child:\n    assert os.waitpid(child, 0)[1] == 0\n"
    for allowed in ({"0 1", "1 0"}, {"1 0"}):
        done = run(cache, copied, fork + PROGRAM + wait)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert set(done.stdout.splitlines()) <= allowed
        assert files_of(cache) == [path]


def test_a_numba_with_other_parts_keeps_nothing(copied, cache):
    hidden = (
        "from numba.core.compiler import CompileResult\n"
        "del CompileResult._rebuild, CompileResult._reduce\n" + PROGRAM
    )
    done = run(cache, copied, hidden)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0 1"


def test_functions_without_a_file_are_compiled(tmp_path):
    done = run(tmp_path / "cache", tmp_path, f"exec({PROGRAM!r})")
    assert (done.stdout.strip(), done.stderr) == ("0 1", "")


def _modules_with_kernels():
    for path in sorted(PACKAGE.rglob("*.py")):
        if b"numba" in path.read_bytes():
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            module = importlib.import_module(name.removesuffix(".__init__"))
            if any(isinstance(value, Dispatcher) for value in vars(module).values()):
                yield module


def test_the_digest_covers_all_that_kernels_can_see():
    covered = {str(PACKAGE / path) for path in code_cache.kernel_sources()}
    modules = list(_modules_with_kernels())
    assert len(modules) > 15
    for module in modules:
        assert module.__file__ in covered
        for value in vars(module).values():
            seen = sys.modules.get(getattr(value, "__module__", None) or "", value)
            file = getattr(seen, "__file__", None) or ""
            if file.startswith(str(PACKAGE)):
                assert file in covered, f"{module.__name__} sees {file}"


def test_random_damages(copied, tmp_path):
    """Also such as nobody thought of; kernels are numbered by the seed."""
    cache, count = tmp_path / "cache", int(os.environ.get("HETERO_BFS_DAMAGES", "4"))
    compiled_anew(copied, cache, count)
    damaged = set()
    for seed, path in enumerate(kernel_files(cache, count)):
        whole = path.read_bytes()
        rng = random.Random(seed)
        content = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            start = rng.randrange(len(content) + 1)
            stop = min(len(content), start + rng.choice([1, 64, 4096, len(content)]))
            content[start:stop] = rng.choice(
                [b"", bytes(stop - start), rng.randbytes(stop - start)]
            )
        path.write_bytes(content)
        if bytes(content) != whole:
            damaged.add(seed)
    assert compiled_anew(copied, cache, count) == damaged


def test_a_library_user_is_warned_once(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/none")
    private_cache.folder.cache_clear()
    private_cache._tell_of_failure.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert private_cache.folder() is None
            assert private_cache.folder() is None
        assert [str(w.message).startswith("compiled code is not kept") for w in caught] == [True]
    finally:
        private_cache.folder.cache_clear()
        private_cache._tell_of_failure.cache_clear()


def test_a_second_folder_is_only_read(copied, cache, tmp_path, monkeypatch):
    """That of an image: it may belong to root and be readable by all."""
    (given,) = cache.iterdir()
    given.chmod(0o755)
    monkeypatch.setenv("HETERO_BFS_COMPILED", str(given))
    before = [(path.name, path.stat().st_mtime_ns) for path in given.iterdir()]
    assert counts(tmp_path / "own", copied) == "1 0"
    assert files_of(tmp_path / "own") == []
    assert [(path.name, path.stat().st_mtime_ns) for path in given.iterdir()] == before
    (path,) = given.iterdir()
    path.chmod(0o664)
    assert counts(tmp_path / "own", copied) == "0 1"  # others could have written it
    assert counts(tmp_path / "own", copied) == "1 0"


@pytest.mark.parametrize("kind", ["others can write", "another user's", "not there"])
def test_a_second_folder_that_is_not_used(copied, cache, tmp_path, monkeypatch, kind):
    (given,) = cache.iterdir()
    monkeypatch.setenv("HETERO_BFS_COMPILED", str(given))
    if kind == "others can write":
        given.chmod(0o777)
    elif kind == "not there":
        shutil.rmtree(given)
    elif os.geteuid() == 0:
        os.chown(given, 12345, 12345)
    else:
        pytest.skip("only root can give folders away")
    done = run(tmp_path / "own", copied)
    assert done.stdout.strip() == "0 1"
    assert "HETERO_BFS_COMPILED" in done.stderr
    assert "is not used" in done.stderr


def test_code_for_another_cpu_is_compiled_anew(copied, cache, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert counts(cache, copied) == "0 1"
    assert counts(cache, copied) == "1 0"
    monkeypatch.delenv("NUMBA_CPU_NAME")
    assert counts(cache, copied) == "1 0"
    assert len(files_of(cache)) == 2
