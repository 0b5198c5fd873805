"""Replacing a file: all or nothing."""

from __future__ import annotations

import os

import pytest

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.files import check_writable, replacing


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
        (tmp_path / "pipe", "no regular file"),
    ):
        with pytest.raises(HeteroBFSError, match=words):
            check_writable(path)


def test_a_locked_folder_is_told_as_the_system_has_it(tmp_path, monkeypatch):
    def locked(*_, **__):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("hetero_bfs.support.files.tempfile.mkdtemp", locked)
    with pytest.raises(HeteroBFSError, match=rf"a\.txt.*folder {tmp_path}: Permission denied"):
        check_writable(tmp_path / "a.txt")
