"""Folders of a study: new, empty, refused; and bad input."""

from __future__ import annotations

import pandas as pd
import pytest
from study_runs import TINY, study

from hetero_bfs.study import run
from hetero_bfs.study.page import Section, SectionResult, page
from hetero_bfs.support.files import replacing


@pytest.fixture
def quickly(monkeypatch):
    """Measure nothing: every table is empty."""
    monkeypatch.setattr(run, "measure_graph", lambda *_: None)


@pytest.fixture
def never(monkeypatch):
    """Fail if anything is measured."""

    def measured(*_):
        raise AssertionError("measured")

    monkeypatch.setattr(run, "measure_graph", measured)


def study_in(folder) -> int:
    return study(folder, "--scale", 5, "--device", "cpu")


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("quickly")
def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "out").mkdir()
    assert study_in(tmp_path / "out") == 0
    assert (tmp_path / "out" / "index.html").exists()


@pytest.mark.usefixtures("quickly")
def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    assert study_in(tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out" / "index.html").exists()


@pytest.mark.usefixtures("quickly")
def test_files_that_came_meanwhile_are_kept(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(run, "measure_graph", lambda *_: (out / "notes.txt").write_text("mine"))
    assert study_in(out) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert contents(out) == {"notes.txt": b"mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def refused(folder, capsys, *words) -> None:
    """Check that no study is begun and that the message has the words."""
    assert study_in(folder) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hetero-bfs: ")
    for word in (folder.name, *words):
        assert word in error


@pytest.mark.usefixtures("never")
def test_other_folders_are_refused_before_any_work(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "index.html").write_text("mine")
    refused(tmp_path, capsys, "thesis.tex", "name a new folder")
    refused(tmp_path / "thesis.tex", capsys, "is a file")
    refused(tmp_path / "thesis.tex" / "below", capsys, "thesis.tex is a file")
    refused(tmp_path / "no" / "such", capsys, "there is no folder", "make it first")
    (tmp_path / "link").symlink_to("nowhere")
    refused(tmp_path / "link", capsys, "link to nothing")
    assert (tmp_path / "index.html").read_text() == "mine"


@pytest.mark.usefixtures("quickly")
def test_an_earlier_study_is_not_replaced(tmp_path, capsys):
    out = tmp_path / "out"
    assert study_in(out) == 0
    before = contents(out)
    refused(out, capsys, "index.html", "remove an earlier study")
    assert contents(out) == before


@pytest.mark.usefixtures("never")
def test_the_current_folder_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    refused(tmp_path / "out", capsys, "current folder", str(tmp_path / "out" / "study"))


@pytest.mark.usefixtures("never")
def test_where_nothing_can_be_written_is_told(tmp_path, monkeypatch, capsys):
    def locked(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("hetero_bfs.support.files.os.open", locked)
    refused(tmp_path / "out", capsys, "Read-only file system", str(tmp_path))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
def test_stopped_it_leaves_nothing(tmp_path, monkeypatch, error):
    def stop(*_):
        raise error

    monkeypatch.setattr(run, "measure_graph", stop)
    assert study(tmp_path / "out", "--scale", 5, "--device", "cpu") != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("failing", ["write_bytes", "rename"])
def test_failing_to_write_it_leaves_all_as_it_was(tmp_path, monkeypatch, failing, exists):
    out = tmp_path / "out"
    if exists:
        out.mkdir()

    def full(*_):
        raise OSError(28, "No space left on device")

    if failing == "rename":
        monkeypatch.setattr("hetero_bfs.study.run.os.rename", full)
    else:
        monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert study_in(out) == 1
    assert not out.exists() or contents(out) == {}
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if exists else [])


# Bad input: one line, no traceback.


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["out", "--scale"],
        ["out", "--scale", "0"],
        ["out", "--scale", "40"],
        ["out", "--scale", "big"],
        ["out", "--keys", "0"],
        ["out", "--rounds", "0"],
        ["out", "--devices", "cpu"],
        ["out", "--directed"],
    ],
)
def test_wrong_usage(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert study(*arguments) == 2
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def graph_with(path, text):
    with replacing(path) as stream:
        stream.write(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["bad.txt", "no such file"]),
        ("0 x\n", ["bad.txt", "1"]),
        ("", ["bad.txt"]),
        ("3 3\n", ["bad", "nothing to search"]),
    ],
)
def test_bad_graphs(tmp_path, capsys, text, words):
    path = tmp_path / "bad.txt"
    if text is not None:
        graph_with(path, text)
    assert study(tmp_path / "out", "--graph", path, "--device", "cpu") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("hetero-bfs: ")
    for word in words:
        assert word in error
    assert not (tmp_path / "out").exists()


def test_two_graphs_of_one_name_are_refused(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    first = graph_with(tmp_path / "g.txt", "0 1\n")
    second = graph_with(tmp_path / "a" / "g.txt", "0 1\n")
    assert study(tmp_path / "out", "--graph", first, second, "--device", "cpu") == 1
    assert "rename" in capsys.readouterr().err


def test_a_wrong_result_is_never_timed(tmp_path, monkeypatch, capsys):
    def timed(*_):
        raise AssertionError("timed")

    from hetero_bfs.engine.engine import Engine

    right = Engine.bfs

    def wrong(self, source):
        result = right(self, source)
        result.parent[source] = -1
        return result

    monkeypatch.setattr(Engine, "bfs", wrong)
    monkeypatch.setattr(run, "throughput", timed)
    monkeypatch.setattr(run, "regret_rows", timed)
    assert study(tmp_path / "out", "--scale", 5, *TINY, "--device", "cpu") == 1
    assert "source" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_names_are_escaped_on_the_page():
    section = Section("n", "a < b", "read", (), str)
    part = SectionResult(section, "f & g", "c<d", pd.DataFrame({"x<y": ["<b>"]}), "<svg/>")
    text = page("t<i>", "m&m", [part], ["<script>"], "f<g")
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "a &lt; b" in text
