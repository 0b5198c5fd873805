"""What notebooks show of results and engines, and the tutorial, run from top to bottom.

The tutorial's cells run in this process, by docs/run_notebook.py. Jupyter's own means (nbclient,
ipykernel) would run the same cells in a second process, and bring many packages.
"""

from __future__ import annotations

import importlib.util
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from checkout import TOP
from sample_programs import Labels

import hetero_bfs as hb
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.timeline.rendering import as_html

DOCS = TOP / "docs"
WITHOUT_END = {"meta", "br", "img"}


class Checker(HTMLParser):
    """Collects texts; fails at tags that are not closed in turn, and at scripts."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag != "script"
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag != "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def texts_of(shown) -> list[str]:
    html = shown if isinstance(shown, str) else shown._repr_html_()
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker.texts


@pytest.fixture(scope="module")
def ring():
    ids = np.arange(60)
    weights = np.ones(60, np.float32)
    return hb.CSRGraph.from_edges(ids, (ids + 1) % 60, weights=weights)


def test_engines_and_results_show_their_numbers(ring):
    with hb.Engine(ring, device="cpu") as engine:
        assert {"Engine", "60", "none"} <= set(texts_of(engine))
        engine.notes.append("<b>&\"'")
        assert "<b>&\"'" in texts_of(engine)
        search, paths = engine.bfs(3), engine.sssp(3)
        others = engine.connected_components(), engine.colour(), engine.pagerank()
        program, many = engine.run(Labels()), engine.bfs_many([1, 2])
        assert "Breadth-first search from 2 vertices" in texts_of(engine.bfs([1, 5]))
    assert "closed" in texts_of(engine)
    assert {"60 of 60 vertices", "Breadth-first search from vertex 3"} <= set(texts_of(search))
    search.drop_parents()
    assert "60 of 60 vertices" in texts_of(search)
    assert {"largest distance", "30"} <= set(texts_of(paths))
    for shown, words in zip(others, ("components", "colours", "converged"), strict=True):
        assert words in texts_of(shown)
    assert "converged" in texts_of(program)
    assert {"searches", "60"} <= set(texts_of(many))
    for result in (search, paths, *others, program, many):
        assert "CPU" in texts_of(result)  # a lane of the timeline


def test_long_runs_stay_small():
    traces = [IterationTrace(i, f"s{i % 2}", 1, 1, 1e-6) for i in range(100_000)]
    assert len(as_html("long", {}, traces)) < 1000
    traces = [IterationTrace(i, "push", 1, 1, 1e-6) for i in range(2000)]
    assert len(as_html("many steps", {}, traces)) < 60_000


def test_the_timeline_ends_with_the_run():
    """The time after the last step, here 6 of 10 us, is drawn as the result's."""
    traces = [IterationTrace(i, "push", 1, 1, 2e-6) for i in range(2)]
    shown = as_html("program", {}, traces, 10e-6)
    assert "result: 6 µs" in shown
    assert "result" not in as_html("program", {}, traces, 4e-6)


def test_hostile_text_is_escaped():
    hostile = "</td><script>alert(1)</script>"
    shown = as_html(hostile, {hostile: hostile}, [IterationTrace(0, hostile, 1, 1, 1.0)])
    assert "<script" not in shown
    assert hostile in texts_of(shown)


# The tutorial.


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("run_notebook", DOCS / "run_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tutorial_runs_from_top_to_bottom(runner):
    kept = json.loads((DOCS / "tutorial.ipynb").read_text())
    fresh = json.loads((DOCS / "tutorial.ipynb").read_text())
    runner.run_cells(fresh)

    def kinds(notebook):
        return [[sorted(o["data"]) for o in c.get("outputs", ())] for c in notebook["cells"]]

    assert kinds(fresh) == kinds(kept)
    assert any("image/svg+xml" in kind for outputs in kinds(fresh) for kind in outputs)
    for cell in fresh["cells"]:
        for output in cell.get("outputs", ()):
            if "text/html" in output["data"]:
                texts_of(output["data"]["text/html"])


def test_the_tutorial_is_short_and_small():
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text())
    codes = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = [line for code in codes[1:] for line in code.splitlines() if line]
    assert len(lines) <= 20  # from the data frame to the picture
    assert (DOCS / "tutorial.ipynb").stat().st_size < 300_000


def test_a_notebook_as_markdown(runner):
    cells = [
        {"cell_type": "markdown", "source": ["# A title"]},
        {"cell_type": "code", "source": ["x = 1\n", "x + 1"]},
    ]
    notebook = {"cells": cells}
    runner.run_cells(notebook)
    text = runner.as_markdown(notebook)
    assert text == "# A title\n\n```python\nx = 1\nx + 1\n```\n\n```text\n2\n```\n"


def test_an_error_in_a_cell_is_raised(runner):
    notebook = {"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}
    with pytest.raises(ZeroDivisionError):
        runner.run_cells(notebook)
