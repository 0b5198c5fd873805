"""Replacing a file: all or nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import hetero_bfs as hb
from hetero_bfs.cli.output import save_array
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.io import registry
from hetero_bfs.support.files import check_writable, replacing, temporary_next_to


def test_a_new_file(tmp_path):
    with replacing(tmp_path / "a.txt") as stream:
        stream.write("one\n")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_old_file_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old and longer")
    with replacing(path, "wb") as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old and longer"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as stream:
            stream.write("half of")
            raise error("stop")

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_is_one_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path):
            raise OSError(28, "No space left on device")

    with pytest.raises(HeteroBFSError, match=r"a\.txt.* written: No space left on device"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


WRITERS = {
    "graph.hbg": lambda path: registry.write(hb.kronecker(8), path),
    "graph.sg": lambda path: registry.write(hb.kronecker(8), path),
    "levels.npy": lambda path: save_array(path, np.arange(3000)),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("missing", [1, 100, 5000])
def test_a_disk_that_is_full_at_the_end(tmp_path, name, missing):
    """NumPy's own writing lost the last bytes of an array without an error."""
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) - missing, limits[1]))
    try:
        with pytest.raises(HeteroBFSError, match="cannot be written: File too large"):
            WRITERS[name](path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == whole
    assert os.listdir(tmp_path) == [name]


def test_no_such_folder(tmp_path):
    with (
        pytest.raises(HeteroBFSError, match=r"none.a\.txt.* written: No such file"),
        replacing(tmp_path / "none" / "a.txt"),
    ):
        pass


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / "a.txt").mkdir()
    with (
        pytest.raises(HeteroBFSError, match=r"a\.txt.* written: Is a directory"),
        replacing(tmp_path / "a.txt") as stream,
    ):
        stream.write("x")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_checking_leaves_nothing(tmp_path):
    check_writable(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("old")
    check_writable(tmp_path / "b.txt")
    assert os.listdir(tmp_path) == ["b.txt"]


def test_what_cannot_be_written_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "a.txt", "there is no folder .*none; make it first"),
        (tmp_path / "file" / "a.txt", "file is a file, no folder"),
        (tmp_path / "pipe", "not a regular file"),
    ):
        with pytest.raises(HeteroBFSError, match=words):
            check_writable(path)


def test_a_locked_folder_is_told_as_the_system_has_it(tmp_path, monkeypatch):
    def locked(*_, **__):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("hetero_bfs.support.files.os.open", locked)
    with pytest.raises(HeteroBFSError, match=rf"a\.txt.*in {tmp_path} \(Permission denied\)"):
        check_writable(tmp_path / "a.txt")


KILLED = """
import os, signal
from pathlib import Path
from hetero_bfs.support import files
with files.temporary_next_to(Path("out"), folder=True) as (folder, _):
    (folder / "part").write_text("half")
    with files.replacing(Path("out")) as stream:
        stream.write("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 2
    with replacing(tmp_path / "other") as stream:
        stream.write("whole")
    assert os.listdir(tmp_path) == ["other"]


def test_what_a_living_process_writes_is_left(tmp_path):
    """Here it is this one, which does not look up what it has itself, but asks the system."""
    with temporary_next_to(tmp_path / "a", folder=True), replacing(tmp_path / "a") as stream:
        stream.write("one")
        check_writable(tmp_path / "b")
        with replacing(tmp_path / "b") as other:
            other.write("two")
    assert (tmp_path / "a").read_text() == "one"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_only_our_own_leftovers_are_removed(tmp_path):
    with temporary_next_to(tmp_path / "a") as (temporary, _):
        name = temporary.name
    ours = name.rpartition("-")[0]
    strangers = [
        f"{ours}-0123456789abcdef.tmp.txt",
        f"x{ours}-0123456789abcdef.tmp",
        f"{ours}-mine.tmp",
        ".hetero-bfs-00000000-0123456789abcdef.tmp",  # another host's
        ".a.0123abcd.tmp",
    ]
    for stranger in strangers:
        (tmp_path / stranger).write_text("mine")
    os.mkfifo(tmp_path / f"{ours}-0000000000000000.tmp")
    (tmp_path / f"{ours}-1111111111111111.tmp").symlink_to(strangers[0])
    before = set(os.listdir(tmp_path))
    (tmp_path / name).write_text("nobody's")
    check_writable(tmp_path / "b")
    assert set(os.listdir(tmp_path)) == before


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    with replacing(path) as stream:
        stream.write("one")
    assert path.read_text() == "one"


def test_many_processes_write_one_file(tmp_path):
    """Each sweeps while the others make, lock and rename theirs."""
    code = """
from pathlib import Path
from hetero_bfs.support.files import replacing
for _ in range(200):
    with replacing(Path("a")) as stream:
        stream.write("whole")
"""
    command = [sys.executable, "-c", code]
    programs = [subprocess.Popen(command, cwd=tmp_path) for _ in range(4)]
    assert [program.wait(60) for program in programs] == [0] * 4
    assert (tmp_path / "a").read_text() == "whole"
    assert os.listdir(tmp_path) == ["a"]
