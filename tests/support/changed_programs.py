"""A program whose code depends on much that may change between runs, and the changes."""

from __future__ import annotations

import numpy as np
from method_classes import HEAD, class_of

import hetero_bfs as hb

_TEXT = (
    HEAD
    + """
import hetero_bfs as hb

BOUND = 40

def made(lowest):
    class Steps(hb.Program):
        state = {"value": np.int64}
        combine = hb.minimum
        step = 1
        table = [1, 2]

        def initial(self, vertex, begin):
            return max(int(begin) + sum([vertex * x for x in self.table]), lowest)

        def message(self, state, weight):
            return state.value + self.step * int(weight)

        def apply(self, state, combined):
            return int(min(state.value, combined, BOUND))

    return Steps
"""
)


def steps(old: str = "", new: str = "") -> type[hb.Program]:
    """Return the class of its text with a part replaced, as of a notebook's cell run again."""
    assert old in _TEXT
    return class_of(_TEXT.replace(old, new), "made")(-5)


def _more(self, state, weight):
    return state.value + 7 * int(weight)


def _priority(self, state):
    return state.value


def _set_cell(method, value) -> None:
    method.__func__.__closure__[0].cell_contents = value


CHANGES = {
    "an attribute": lambda program: setattr(program, "step", 3),
    "its type": lambda program: setattr(program, "step", np.int32(1)),
    "an attribute of the class": lambda program: setattr(type(program), "step", 4),
    "a list": lambda program: program.table.__setitem__(1, 9),
    "a global": lambda program: program.apply.__globals__.update(BOUND=6),
    "a closure": lambda program: _set_cell(program.initial, 2),
    "a field's type": lambda program: program.state.update(value="int32"),
    "a method": lambda program: setattr(type(program), "message", _more),
    "a method's code": lambda program: setattr(type(program).message, "__code__", _more.__code__),
    "a method of the object": lambda program: setattr(program, "message", _more.__get__(program)),
    "another method": lambda program: setattr(type(program), "priority", _priority),
    "a monoid": lambda program: setattr(program, "combine", hb.maximum),
    "the messages' type": lambda program: setattr(program, "message_type", "float64"),
    "the direction": lambda program: setattr(program, "along", "in"),
    "who is active": lambda program: setattr(program, "all_active", True),
}
