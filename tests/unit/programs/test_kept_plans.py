"""Plans of programs are kept between runs, and made anew if anything has changed in the code."""

from __future__ import annotations

import functools
import gc
import weakref
from unittest import mock

import numpy as np
import pytest
from changed_programs import CHANGES, steps

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs import plan as plans
from hetero_bfs.programs.codegen.device_code import device_text
from hetero_bfs.programs.codegen.host_code import host_text
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan

ARGUMENTS = [2, 2.5, True, 2**40, np.zeros(5, np.int32), np.zeros(5), np.full(5, 2**40)]


def content(plan: Plan) -> tuple:
    given = plan.parameters
    rest = plan.along, plan.all_active, plan.monotone, plan.any_order, plan.active_apply
    return host_text(plan), device_text(plan, True), [*given.integers], [*given.arrays], rest


def confirm(program, begin=2, weight_type: str = "int32") -> tuple:
    """Compare the content of a plan that may be a kept one with that of a new plan; return it."""
    given = Parameters.of({"begin": begin}, 5)
    plan = Plan.of(program, given, weight_type)
    assert plan.program is program
    assert plan.parameters is given
    assert content(plan) == content(Plan(program, given, weight_type))
    return content(plan)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes(change):
    kind = steps()
    first, program = kind(), kind()
    before = confirm(first)
    CHANGES[change](program)
    assert confirm(program) != before
    for one in (first, program):
        confirm(one)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_before_any_code_is_written(change):
    program = steps()()
    Plan.of(program, Parameters.of({"begin": 2}, 5), "int32")
    CHANGES[change](program)
    confirm(program)


def test_all_arguments_and_weights():
    program = steps()()
    for _ in range(2):
        for begin in ARGUMENTS:
            for weight_type in ("int32", "float32", "float64"):
                confirm(program, begin, weight_type)
                confirm(steps("step = 1", "step = 2")(), begin, weight_type)


def test_more_digits_than_before():
    program = steps("max(int(begin)", "max(begin")()
    program.state = {"value": np.int32}
    confirm(program, 2)
    with pytest.raises(ProgramError, match="an integer of 64 bits for field 'value'"):
        Plan.of(program, Parameters.of({"begin": 2**40}, 5), "int32").once(host_text)


def test_an_equal_run_makes_nothing():
    kind = steps()
    confirm(kind())
    with mock.patch.object(plans, "translate", side_effect=AssertionError):
        plan = Plan.of(kind(), Parameters.of({"begin": 3}, 5), "int32")
        made = plan.once(host_text)
        assert Plan.of(kind(), Parameters.of({"begin": 4}, 5), "int32").once(host_text) is made


def test_what_a_decorator_wraps():
    def decorated(method):
        @functools.wraps(method)
        def wrapper(self, *given):
            return method(self, *given)

        return wrapper

    kind = steps()
    before = confirm(kind())
    kind.message = decorated(kind.message)
    assert confirm(kind()) == before
    kind.message = decorated(steps("self.step *", "8 *").message)
    assert confirm(kind()) != before


def test_constants_of_any_kind():
    kind = steps("return state.value + self.step * int(weight)",
                 "return int(state.value * self.part + math.floor(LIMIT))")  # fmt: skip
    program, names = kind(), kind.message.__globals__
    names["LIMIT"] = 2.5
    program.part = 0.5
    first = confirm(program)
    for value in (0.0, -0.0, np.nan, np.float32(0.5), 1, 0.5):
        program.part = value
        assert (confirm(program) == first) == (value == 0.5 and type(value) is float)
        with mock.patch.object(plans, "translate", side_effect=AssertionError):
            Plan.of(program, Parameters.of({"begin": 2}, 5), "int32")  # NaN is like itself
    names["LIMIT"] = 3.5
    assert confirm(program) != first
    del names["LIMIT"]
    with pytest.raises(ProgramError, match="LIMIT"):
        confirm(program)
    names["LIMIT"] = 2.5
    assert confirm(program) == first
    names["math"] = type("Other", (), {"floor": staticmethod(lambda value: value)})
    assert confirm(program) != first


def test_plans_are_few_and_do_not_keep_their_class(few_objects):
    kind = steps("def apply", """identity = 99

        def combine(self, first, second):
            return min(first, second)

        def apply""")  # fmt: skip
    array = np.zeros(5)
    for step in range(20):
        program = kind()
        program.step = step
        confirm(program, array)
    kept = plans._KEPT[kind]
    assert len(kept) == plans._MOST_KEPT
    gone = [weakref.ref(one) for one in (kind, program, array)]
    del kind, program, array
    gc.collect()
    assert [one() for one in gone] == [None] * 3


def test_objects_that_come_before_any_code_is_written_do_not_share_it():
    """As two engines in two threads may; see `Plan.of`."""
    kind, given = steps(), Parameters.of({"begin": 2}, 5)
    first, second = kind(), kind()
    CHANGES["an attribute"](second)
    made = {program: Plan.of(program, given, "int32") for program in (first, second)}
    for program in (second, first):
        assert content(made[program]) == content(Plan(program, given, "int32"))


def test_a_class_that_is_refused_is_not_kept():
    kind = steps("step = 1", "step = object()")
    with pytest.raises(ProgramError):
        Plan.of(kind(), Parameters.of({"begin": 2}, 5), "int32")
    assert kind not in plans._KEPT
    seen = weakref.ref(kind)
    del kind
    gc.collect()
    assert seen() is None
