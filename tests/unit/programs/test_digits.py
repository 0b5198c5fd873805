"""A program's numbers keep their digits: the type of messages, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_classes import HEAD, class_of
from plain_python import plain_methods
from random_methods import FIELDS, WEAK, MethodWriter

import hetero_bfs as hb
from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen.dialects import DeviceDialect, HostDialect
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan

CLASS = """
import hetero_bfs as hb

class Program(hb.Program):
    state = {state}
    combine = hb.maximum
    {more}

    def initial(self{initial_needs}):
        return {initial}

    def message(self, state, vertex{message_needs}):
        return {message}

    def apply(self, state, combined{apply_needs}):
        return {apply}
"""


def plan_of(
    state="level: np.int32, sigma: np.float64", more="", initial="0, 0", message="state.level",
    apply="state.level, state.sigma", weight=None, **arguments,
) -> Plan:  # fmt: skip
    """Return the plan of a program; its methods have the arguments that their results name."""
    pairs = (part.split(": ") for part in state.split(", "))
    fields = ", ".join(f'"{name}": {kind}' for name, kind in pairs)
    results = {"initial": initial, "message": message, "apply": apply}
    needs = {
        f"{method}_needs": "".join(f", {n}" for n in (*arguments, "weight") if n in result)
        for method, result in results.items()
    }
    text = HEAD + CLASS.format(state=f"{{{fields}}}", more=more, **results, **needs)
    plan = Plan(class_of(text, "Program")(), Parameters.of(arguments, 8), weight)
    for dialect in (HostDialect, DeviceDialect):
        plan.functions(dialect)
    return plan


TWO = "level: np.int32, sigma: np.float64"
MESSAGES = [
    (TWO, "state.sigma", None, "float64"),
    (TWO, "state.level", None, "int32"),
    (TWO, "state.level + 1", None, "int32"),
    (TWO, "state.sigma * state.level", None, "float64"),
    (TWO, "state.level / 2", None, "float64"),
    (TWO, "0.5", None, "float64"),
    (TWO, "1", None, "int32"),
    (TWO, "vertex", None, "int32"),
    (TWO, "int(state.sigma)", None, "int32"),
    (TWO, "np.int64(state.level)", None, "int64"),
    (TWO, "state.level > 0", None, "int32"),
    (TWO, "weight", "float32", "float64"),
    (TWO, "state.level if vertex == 3 else 0.5", None, "float64"),
    ("near: np.int32, far: np.float32", "state.near + 0.5", None, "float32"),
    ("near: np.int32, far: np.float32", "state.near * state.far", None, "float32"),
    ("near: np.float32, label: np.int64", "state.label", None, "int64"),
    ("near: np.int32, mask: np.uint32", "state.mask", None, "uint32"),
    ("near: np.int32, label: np.int64", "state.near + state.label", None, "int64"),
    ("vote: np.uint32, x: np.int32", "state.vote + weight * 3", "int32", "uint32"),
    ("distance: np.float32, x: np.int32", "state.distance + weight", "float64", "float32"),
    ("distance: np.float32, x: np.int32", "state.distance + weight", "int32", "float32"),
    ("seen: bool, x: np.int32", "state.seen", None, "bool"),
    ("seen: bool, x: np.int32", "state.x", None, "int32"),
    ("seen: bool, x: np.int32", "1", None, "int32"),
]


@pytest.mark.parametrize(("state", "message", "weight", "expected"), MESSAGES)
def test_the_type_of_messages(state, message, weight, expected):
    first, second = (part.split(": ")[0] for part in state.split(", "))
    plan = plan_of(
        state,
        message=message,
        weight=weight,
        apply=f"state.{first}, state.{second}",
        initial="0, 0",
    )
    assert plan.message_type == expected


def test_a_declared_type_of_messages_counts():
    assert plan_of(more="message_type = np.float32").message_type == "float32"
    with pytest.raises(ProgramError, match=r"Program\.message.*a float64 for messages.*int32"):
        plan_of(more="message_type = np.int32", message="state.sigma")


BIG = {"number": 2**40}
KEPT = [
    {"apply": "combined, combined"},
    {"apply": "combined + 1, combined * state.sigma"},
    {"apply": "int(state.sigma), 1"},
    {"apply": "np.int32(state.sigma), 1"},
    {"apply": "np.int32(number), 1", "number": 0.5},
    {"apply": "math.floor(state.sigma), 1"},
    {"apply": "1e9, number", "number": math.inf},
    {"apply": "number, number", "number": 7},
    {"apply": "number, number", "number": np.arange(8)},
    {"apply": "number, 0", "number": np.arange(8) == 3},
    {"apply": "state.level, number", **BIG},
    {"apply": "state.level, number", "state": "level: np.int64, sigma: np.float32", "number": 0.1},
    {"apply": "number, 1", "state": "level: np.uint32, sigma: np.float32", "number": 2**32 - 1},
    {"initial": "0, number", "number": np.full(8, 0.1)},
]


@pytest.mark.parametrize("program", KEPT)
def test_what_is_kept(program):
    plan_of(**program)


SMALL = "level: np.int32, sigma: np.float32"
REFUSED = [
    ({"apply": "state.sigma, 1"}, "a float64 for field 'level', which is int32"),
    ({"apply": "combined, 1", "message": "state.sigma"}, "a float64 for field 'level'"),
    ({"apply": "state.level / 2, 1"}, "a float for field 'level'"),
    ({"apply": "0.5, 1"}, "0.5 for field 'level'"),
    ({"apply": "np.int64(2**40), 1"}, "1099511627776 for field 'level'"),
    ({"apply": "math.sqrt(state.level), 1"}, "a float for field 'level'"),
    ({"apply": "number, 1", "number": 0.5}, "a float for field 'level'"),
    ({"apply": "number, 1", **BIG}, "an integer of 64 bits for field 'level'"),
    ({"apply": "number, 1", "number": 2**31}, "an integer beyond int32 for field 'level'"),
    ({"apply": "number, 1", "number": np.full(8, 2**40)}, "an integer of 64 bits for field"),
    ({"apply": "number, 1", "number": np.full(8, 0.0)}, "a float for field 'level'"),
    ({"initial": "number, 1", "number": 2.0}, "a float for field 'level'"),
    ({"apply": "1, 1e300", "state": SMALL}, "1e+300 for field 'sigma', which is float32"),
    ({"apply": "1, number", "state": SMALL, "number": 1e300}, "a float64 for field 'sigma'"),
    ({"apply": "1, np.float64(state.level)", "state": SMALL}, "a float64 for field 'sigma'"),
    ({"apply": "1, combined", "state": SMALL, "more": "message_type = np.float64"},
     "a float64 for field 'sigma'"),
    ({"apply": "state.sigma, 1", "state": "level: np.int32, sigma: np.int64"},
     "an integer of 64 bits for field 'level'"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "message"), REFUSED)
def test_what_is_refused(program, message):
    with pytest.raises(ProgramError) as refusal:
        plan_of(**program)
    said = str(refusal.value)
    assert message in said
    assert "would lose digits; declare field" in said
    assert "or convert by np." in said


def test_a_total_is_a_float():
    class Sums(hb.Program):
        state = {"level": np.int32}  # noqa: RUF012
        combine = hb.minimum
        totals = ("sum",)

        def initial(self, vertex):
            return vertex

        def message(self, state):
            return state.level

        def apply(self, combined, sum):
            return sum

        def measure(self, state):
            return state.level

    with pytest.raises(ProgramError, match=r"Sums\.apply.*a float for field 'level'"):
        Plan(Sums(), Parameters.of({}, 8), None).functions(HostDialect)


def values_of(kind: str, rng: np.random.Generator):
    dtype = np.dtype(kind)
    if kind == "bool":
        return dtype.type(rng.integers(2))
    return dtype.type(rng.integers(0, 100) if dtype.kind in "iu" else rng.normal(0, 10))


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_a_number_with_a_fraction_never_becomes_an_integer(seed):
    """Random messages, evaluated by plain Python: a float is sent, and stored, as a float."""
    body = MethodWriter(seed).method("message", ["float64"])
    fields = ", ".join(f'"{name}": np.{kind if kind != "bool" else "bool_"}'
                       for name, kind in FIELDS.items())  # fmt: skip
    same = ", ".join(f"state.{name}" for name in FIELDS)
    text = (
        f"{HEAD}import hetero_bfs as hb\n\n\nclass Program(hb.Program):\n    state = {{{fields}}}\n"
        "    combine = hb.minimum\n\n    def initial(self):\n"
        f"        return {', '.join('0' for _ in FIELDS)}\n\n{body}\n\n"
        f"    def apply(self, state):\n        return {same}\n"
    )
    arguments = {name: 3 if kind == "int64" else 0.5 for name, kind in WEAK.items()}
    del arguments["vertex"]
    kind = Plan(class_of(text, "Program")(), Parameters.of(arguments, 8), None).message_type
    message = plain_methods(f"class Methods:\n{body}", "Methods")().message
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for _ in range(20):
            state = type("State", (), {name: values_of(k, rng) for name, k in FIELDS.items()})()
            value = message(state, 5, arguments["other"], arguments["rate"])
            if isinstance(value, float | np.floating):
                assert np.dtype(kind).kind == "f", body
