"""docs/development/architecture.md: the files from a call to compiled code."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import TOP
from sample_programs import Parents

import hetero_bfs as hb

PACKAGE = str(Path(hb.__file__).parent)
PAGE = (TOP / "docs/development/architecture.md").read_text()
ROWS = re.findall(r"^\| `Engine\.(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
CALLS: dict[str, Callable[[hb.Engine], object]] = {
    "bfs": lambda engine: engine.bfs(2),
    "bfs_many": lambda engine: engine.bfs_many([1, 2]),
    "sssp": lambda engine: engine.sssp(2),
    "connected_components": lambda engine: engine.connected_components(),
    "pagerank": lambda engine: engine.pagerank(),
    "run": lambda engine: engine.run(Parents(), source=2),
}


@pytest.fixture(scope="module")
def engine():
    with hb.Engine(hb.kronecker(8, weighted=True), device="cpu", threads=1) as engine:
        yield engine


def files_at_compiled_code(work: Callable[[], object]) -> list[list[str]]:
    """Return the files of the package on the call stack, at each call of a kernel's file."""
    stack: list[str | None] = []
    found = []

    def note(frame, event, _) -> None:
        path = frame.f_code.co_filename
        if event == "call":
            inside = path.startswith(PACKAGE)
            stack.append(path[len(PACKAGE) + 1 :] if inside else None)
            if inside and re.search(r"/kernels[/.]", path):
                found.append(list(dict.fromkeys(file for file in stack if file)))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(("call", "files"), ROWS)
def test_files_from_a_call_to_compiled_code(engine, call, files):
    CALLS[call](engine)  # prepares
    assert files_at_compiled_code(lambda: CALLS[call](engine))[0] == re.findall(r"`(.*?)`", files)


def test_a_later_run_enters_few_files(engine):
    """Before its compiled code, a run needs neither translation nor the texts of kernels."""
    entered: dict[str, None] = {}

    def note(frame, event, _) -> None:
        file = frame.f_code.co_filename.removeprefix(PACKAGE)
        if event == "call" and file != frame.f_code.co_filename and not kernels(entered):
            entered[file] = None

    def kernels(files) -> list[str]:
        return [file for file in files if re.search(r"/kernels[/.]", file)]

    CALLS["run"](engine)
    sys.setprofile(note)
    try:
        CALLS["run"](engine)
    finally:
        sys.setprofile(None)
    assert [*entered][-1] == "/programs/kernels/loop.py"
    assert len(entered) <= 13
    assert not {"/programs/codegen/host_code.py", "/programs/codegen/translate.py"} & {*entered}


def test_every_call_has_a_row():
    assert {call for call, _ in ROWS} == CALLS.keys()


def test_files_of_a_compiled_level_name_each_other():
    """A file of the chain imports the next one, or names it for calls by address."""
    chain = re.search(r"goes through three files: (.*?)\.\s+The\s+loop", PAGE, re.DOTALL)
    files = [TOP / "hetero_bfs/algorithms/bfs/kernels" / f for f in re.findall("`(.*?)`", chain[1])]
    assert len(files) == 3
    strategies = (TOP / "hetero_bfs/scheduling/strategies.py").read_text()
    host = (TOP / "hetero_bfs/algorithms/bfs/host.py").read_text()
    for file, following in itertools.pairwise(files):
        name = rf"\bkernels(\.| import .*\b){following.stem}\b"
        assert any(re.search(name, text) for text in (file.read_text(), strategies, host)), file
