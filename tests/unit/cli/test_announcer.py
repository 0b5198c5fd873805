"""What is said on stderr while Numba compiles."""

from __future__ import annotations

import numba
import pytest
from numba.core import event

from hetero_bfs.cli import with_numba as compiling


@pytest.fixture
def announcer(monkeypatch):
    """One that is alone: the command line's own may be there from other tests."""
    monkeypatch.setitem(event._registered, "numba:compile", [])
    made = compiling.announce()
    yield made
    event.unregister("numba:compile", made)


def fresh():
    """Return a function that Numba has not compiled, and one that it calls."""

    @numba.njit
    def twice(x):
        return 2 * x

    @numba.njit
    def four_times(x):
        return twice(twice(x))

    return four_times


class Terminal:
    """A terminal that remembers what was written to it."""

    encoding = "utf-8"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_it_is_said_once(announcer, capsys):
    assert fresh()(3) == 12
    assert fresh()(3) == 12
    said = "compiling for this machine; times may include it; later runs find it on disk\n"
    assert capsys.readouterr().err == said


def test_a_terminal_has_the_functions_that_are_compiled(announcer, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert fresh()(3) == 12
    assert "functions, four_times" in terminal.text
    assert "functions, twice" in terminal.text
    assert terminal.text.endswith("\r")  # the bar is gone


def test_functions_of_the_package_are_counted(announcer, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    ours = fresh()
    ours.py_func.__module__ = "hetero_bfs.graph.made_up"
    assert ours(3) == 12
    assert fresh()(3) == 12
    assert ": 1 of at most " in terminal.text
    assert ": 2 of at most " not in terminal.text
