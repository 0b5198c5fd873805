"""What the translator refuses, and in which words."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re

import pytest
from method_classes import HEAD, class_of
from random_methods import RESULTS

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen import method_source, translate
from hetero_bfs.programs.codegen.dialects import DeviceDialect, HostDialect

_SETTINGS = {"x": "int32", "y": "float64", "flag": "bool"}

REFUSED = {
    "for": ("for i in {1, 2}: pass", "`for i in {1, 2}:`"),
    "range with a step": ("for i in range(0, 9, 2): pass", "`for i in range(0, 9, 2):`"),
    "range of a float": ("for i in range(int(1), state.y): pass", "a range of float64"),
    "else of a loop": ("while state.flag: pass\nelse: pass", "`else` of a loop"),
    "a variable of a loop": ("for i in range(state.x): a = i\nreturn a, 1.0", "'a', which has no"),
    "try": ("try: a = 1\nexcept ValueError: a = 2", "`try:`"),
    "with": ("with open('f'): pass", "`with open('f'):`"),
    "assert": ("assert state.x", "`assert state.x`"),
    "raise": ("raise ValueError(state.x)", "`raise ValueError(state.x)`"),
    "del": ("a = 1\ndel a", "`del a`"),
    "global": ("global LIMIT", "`global LIMIT`"),
    "import": ("import math", "`import math`"),
    "match": ("match state.x:\n    case 1: pass", "`match state.x:`"),
    "function": ("def f(): return 1, 2, 3, 4", "`def f():`"),
    "class": ("class A: pass", "`class A:`"),
    "statement": ("abs(state.x)", "`abs(state.x)`"),
    "yield": ("yield state.x", "`yield state.x`"),
    "lambda": ("a = lambda: state.x", "`lambda: state.x`"),
    "set": ("a = {state.x}", "`{state.x}`"),
    "dict": ("a = {1: state.x}", "`{1: state.x}`"),
    "tuple": ("a = (state.x, 1)", "`(state.x, 1)`"),
    "string": ("a = 'text'", "`'text'`"),
    "f-string": ("a = f'''\n{state.x}'''", "`f"),
    "none": ("a = None", "`None`"),
    "complex": ("a = 1j", "`1j`"),
    "half precision": ("a = np.float16(1)", "`np.float16(1)`"),
    "comprehension": ("a = {i for i in (1, 2)}", "`{i for i in (1, 2)}`"),
    "generator": ("a = (i for i in (1, 2))", "`(i for i in (1, 2))`"),
    "walrus": ("a = (z := state.x)", "`(z := state.x)`"),
    "subscript": ("a = TABLE[state.x]", "`TABLE[state.x]`"),
    "call of a function": ("a = helper(state.x)", "the call `helper(state.x)`"),
    "call of a list": ("a = TABLE(state.x)", "the call `TABLE(state.x)`"),
    "call of an array": ("a = ARRAY(state.x)", "the call `ARRAY(state.x)`"),
    "random number": ("a = np.random.random()", "`np.random.random()`, a new number each time"),
    "call of nothing": ("a = nothing(state.x)", "the call `nothing(state.x)`"),
    "call of a variable": ("min = 3\na = min(state.x, 1)", "the call `min(state.x, 1)`"),
    "call of an abstract type": ("a = np.integer(state.x)", "the call `np.integer(state.x)`"),
    "call of another type": ("a = np.int8(state.x)", "the call `np.int8(state.x)`"),
    "call by keyword": ("a = int(x=state.x)", "`int(x=state.x)`"),
    "call with a star": ("a = min(*TABLE, state.x)", "`min(*TABLE, state.x)`"),
    "least of one": ("a = min(state.x)", "the call `min(state.x)`"),
    "least of truth values": ("a = min(state.flag, True)", "`min(state.flag, True)`"),
    "other function of math": ("a = math.gamma(state.y)", "the call `math.gamma(state.y)`"),
    "power": ("a = state.x ** 2", "`state.x ** 2`"),
    "matrix product": ("a = state.x @ 2", "`state.x @ 2`"),
    "is": ("a = state.x is vertex", "`state.x is vertex`"),
    "in": ("a = state.x in TABLE", "`TABLE`"),
    "attribute assigned": ("state.x = 1", "an assignment to `state.x`"),
    "attribute augmented": ("state.x += 1", "an assignment to `state.x`"),
    "parameter assigned": ("vertex = 1", "an assignment to parameter 'vertex'"),
    "subscript assigned": ("TABLE[0] = state.x", "an assignment to `TABLE[0]`"),
    "starred assignment": ("a, *b = 1, state.x", "an assignment to `*b`"),
    "two targets": ("a = b = state.x", "this assignment"),
    "no value": ("a: int", "this assignment"),
    "unlike tuples": ("a, b = 1, 2, state.x", "an assignment of unlike tuples"),
    "unpacking": ("a, b = state.x", "an assignment to `(a, b)`"),
    "unknown field": ("a = state.z", "`state.z`"),
    "method of a field": ("a = state.x.real", "`state.x.real`"),
    "the state itself": ("a = state", "'state'"),
    "field of a number": ("a = vertex.real", "`vertex.real`"),
    "name that is not there": ("a = source", "`source`"),
    "name of one path": ("if state.flag:\n    a = 1\nb = a", "'a', which has no value"),
    "own name": ("LIMIT = LIMIT + 1", "'LIMIT', which has no value"),
    "name that C does not have": ("é = state.x", "the name 'é'"),
    "types of one variable": ("a = state.x\na = state.y", "'a' as int32 and as float64"),
    "truth value in arithmetic": ("a = state.flag + 1", "arithmetic of a truth value"),
    "truth value compared": ("a = state.flag < 1", "`state.flag < 1` of a truth value"),
    "truth value negated": ("a = -state.flag", "`-state.flag` of a truth value"),
    "choice of a truth value": ("a = 1 if state.x else state.flag", "a choice of a truth value"),
    "number within and": ("a = state.x and state.flag", "`state.x` within `and` or `or`"),
    "bits of a fraction": ("a = state.y & 1", "`state.y & 1` of float64"),
    "bits of a fraction inverted": ("a = ~state.y", "`~state.y` of float64"),
    "floor of a fraction": ("a = state.y // 2", "`state.y // 2` of float64"),
    "constant too large": ("a = state.x + 2**40", "1099511627776 as int32"),
    "constant too large in a comparison": ("a = state.x < 2**40", "1099511627776 as int32"),
    "constant of more than 64 bits": ("a = vertex + 2**70", "`2 ** 70`"),
    "constant of 64 bits": ("a = vertex + 2**63", "write np.uint64(...)"),
    "constant that fails": ("a = 1 // 0", "`1 // 0` (integer division or modulo by zero)"),
    "line never reached": (
        "if vertex:\n    return 1, 2.0\n    a = 1",
        "a line that is never reached",
    ),
    "one value": ("return state.x", "1 returned values"),
    "five values": ("return 1, 2, 3, 4, 5", "5 returned values"),
    "nothing returned": ("return", "1 returned values"),
    "unlike returns": ("if vertex: return 1, 2, True\na = 1", "unlike returns"),
    "unlike choice": ("return (1, 2, True) if vertex else (1, 2)", "a choice of unlike tuples"),
    "starred return": ("return *TABLE, state.x, 1", "`*TABLE`"),
    "infinity as an integer": ("return math.inf, 1.0, True", "inf as int32"),
}

OTHER_HEADS = {
    "a star": ("def apply(self, *state): return 1, 2.0", "*"),
    "two stars": ("def apply(self, **state): return 1, 2.0", "**"),
    "a default": ("def apply(self, vertex=1): return 1, 2.0", "defaults"),
    "by keyword only": ("def apply(self, *, vertex): return 1, 2.0", "*"),
    "an unknown parameter": ("def apply(self, source): return 1, 2.0", "'source'"),
    "no return": ("def apply(self, state): pass", "an end without return"),
    "a return on one path": (
        "def apply(self, state):\n        if state.x: return 1, 2.0",
        "an end without return",
    ),
    "a coroutine": ("async def apply(self): return 1, 2.0", "it is not a plain `def`"),
    "a lambda": ("apply = lambda self: (1, 2.0)", "it is not a plain `def`"),
    "lambdas": ("apply, other = (lambda self: (1,\n 2.0)), 1", "it is not a plain `def`"),
}


def _refusal(text: str) -> str:
    head = HEAD + "LIMIT, TABLE, ARRAY = 3, [1, 2], np.arange(3)\ndef helper(x): return x\n\n"
    program = class_of(head + text, "Bad")()
    names = {"vertex": method_source.Source("", "vertex", "int64", True)}
    method = method_source.Method(
        program, "apply", {"state": _SETTINGS}, names, ["int32", "float64"], "bool"
    )
    messages = set()
    for dialect in (HostDialect, DeviceDialect):
        with pytest.raises(ProgramError) as caught:
            translate.translate(method, dialect(), {})
        messages.add(str(caught.value))
    assert len(messages) == 1
    return messages.pop()


def _line_of(text: str, wanted: str) -> int:
    return next(i for i, line in enumerate(text.split("\n"), 1) if wanted in line)


@pytest.mark.parametrize(("body", "construct"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_translated(body, construct):
    lines = body.split("\n")
    lines += [] if "return" in lines[-1] else ["return 1, 2.0"]
    text = "class Bad:\n    def apply(self, state, vertex):\n"
    message = _refusal(text + "".join(f"        {line}\n" for line in lines))
    found = re.fullmatch(r"Bad\.apply, line (\d+): (.*)", message)
    assert found, message
    assert construct in found[2]
    assert 9 <= int(found[1]) < 9 + len(lines) + 1, message


@pytest.mark.parametrize(
    "value", ["{}", "{1: state.x}", "dict(a=1)", "{i: 1 for i in (1, 2)}", "{1: 2}[state.x]"]
)
def test_a_dictionary_has_a_remedy(value):
    message = _refusal(
        f"class Bad:\n    def apply(self, state):\n        a = {value}\n        return 1, 2.0\n"
    )
    assert message.endswith("; use a field for each key, or a vector of fixed length")


@pytest.mark.parametrize(("definition", "construct"), OTHER_HEADS.values(), ids=list(OTHER_HEADS))
def test_methods_that_cannot_be_translated(definition, construct):
    message = _refusal(f"class Bad:\n    {definition}\n")
    assert re.match(r"Bad\.apply, line 9: ", message), message
    assert construct in message


def test_the_line_is_that_of_the_construct():
    text = "class Bad:\n    @staticmethod\n    def apply(state):\n"
    text += "        a = (1 +\n             state.z)\n"
    assert _refusal(text).startswith("Bad.apply, line 12: `state.z`")


DEEP = {
    "sum": "return " + " + ".join(["state.x"] * 130) + ", 1",
    "long sum": "return " + " + ".join(["state.x"] * 600) + ", 1",
    "brackets": "return " + "(-" * 80 + "state.x" + ")" * 80 + ", 1",
    "elif": "if vertex == 0: a = 1\n"
    + "".join(f"elif vertex == {i}: a = 1\n" for i in range(1, 400))
    + "return 1, 2",
}


@pytest.mark.parametrize("body", DEEP.values(), ids=list(DEEP))
def test_what_is_too_deep_for_compilers(body):
    text = "class Bad:\n    def apply(self, state, vertex):\n"
    message = _refusal(text + "".join(f"        {line}\n" for line in body.split("\n")))
    assert re.fullmatch(r"Bad\.apply, line \d+: an expression or a condition so deep .*", message)


def test_a_source_that_cannot_be_read():
    space: dict = {}
    exec("class Bad:\n    def apply(self, state): return 1, 2.0\n", space)
    method = method_source.Method(space["Bad"](), "apply", {"state": _SETTINGS}, {}, ["int32"])
    with pytest.raises(ProgramError, match=r"Bad\.apply: its source cannot be read"):
        translate.translate(method, HostDialect(), {})


@pytest.mark.parametrize("module", ["bisect", "heapq", "statistics", "textwrap", "colorsys"])
def test_any_function_is_translated_or_refused(module):
    """Nothing but ProgramError comes of functions that were not made for this."""
    functions = vars(importlib.import_module(module)).values()
    for function in filter(inspect.isfunction, functions):
        names = {
            name: method_source.Source("", name, kind, kind == "int64")
            for name, kind in zip(inspect.signature(function).parameters, RESULTS * 3, strict=False)
        }
        program = type("Any", (), {"apply": staticmethod(function)})()
        method = method_source.Method(program, "apply", {"state": _SETTINGS}, names, ["int64"])
        for dialect in (HostDialect, DeviceDialect):
            with contextlib.suppress(ProgramError):
                translate.translate(method, dialect(), {})
