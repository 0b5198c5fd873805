"""The translator: the same values by plain Python, Numba and OpenCL C; and what it refuses."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import linecache
import math
import re
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from plain_python import convert, plain_methods
from random_methods import FIELDS, RESULTS, WEAK, MethodWriter

from hetero_bfs.devices.opencl.driver import OpenCLDevice, list_devices
from hetero_bfs.errors import ProgramError
from hetero_bfs.programs import dialects, expressions, method_source, translate
from hetero_bfs.programs.dialects import C_TYPES, DeviceDialect, HostDialect

pytestmark = pytest.mark.optimised

ROWS = 64
METHODS = 20
_FILES = count()

HEAD = """
import math
import numpy as np

"""


def class_of(text: str, name: str):
    """Return a class that a text defines; the text can be read as a source file."""
    file = f"<methods {next(_FILES)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict = {"__name__": "methods"}
    exec(compile(text, file, "exec"), space)
    return space[name]


def method_of(program, name: str, results: list[str], optional=None) -> method_source.Method:
    names = {n: method_source.Source("", n, kind, True) for n, kind in WEAK.items()}
    return method_source.Method(program, name, FIELDS, ("state",), names, results, optional)


# Random methods


def _inputs(seed: int) -> dict[str, np.ndarray]:
    """Return values of fields and names, by their parameters in translated methods."""
    random = np.random.default_rng(seed)
    values = {f"state_{name}": _values(random, kind) for name, kind in FIELDS.items()}
    return values | {f"p_{name}": _values(random, kind) for name, kind in WEAK.items()}


def _values(random: np.random.Generator, kind: str) -> np.ndarray:
    dtype = np.dtype(kind)
    if kind == "bool":
        return random.integers(0, 2, ROWS).astype(bool)
    if dtype.kind == "f":
        special = [0.0, -0.0, 0.5, -1.5, 3.0, 1e10, -1e10, 3e38, np.inf, -np.inf, np.nan, 1e-40,
                   2.0**31, 2.0**32, 2.0**63, -(2.0**63), 2.0**64]  # fmt: skip
        drawn = random.normal(0, 100, ROWS)
    else:
        limits = np.iinfo(dtype)
        special = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, limits.min, limits.max, limits.max - 1]
        special += [-1, -2, -3, -64] if dtype.kind == "i" else []
        special = np.array(special, dtype)
        drawn = random.integers(limits.min, limits.max, ROWS, dtype, endpoint=True)
    with np.errstate(all="ignore"):
        chosen = random.choice(np.array(special).astype(dtype), ROWS)
        return np.where(random.random(ROWS) < 0.6, chosen, drawn.astype(dtype))


def _by_plain_python(text: str, wanted, inputs) -> dict[str, np.ndarray]:
    program = plain_methods(text, "Methods")()
    found = {}
    state = type("State", (), {})()
    with np.errstate(all="ignore"):
        for name, results in wanted.items():
            rows = []
            for row in range(ROWS):
                for field in FIELDS:
                    setattr(state, field, inputs[f"state_{field}"][row])
                weak = [inputs[f"p_{n}"][row].item() for n in WEAK]
                values = getattr(program, name)(state, *weak)
                rows.append(values if isinstance(values, tuple) else (values,))
            for place, (column, kind) in enumerate(
                zip(zip(*rows, strict=True), results, strict=True)
            ):
                found[f"{name}_{place}"] = np.array([convert(v, kind) for v in column], kind)
    return found


def _columns(wanted) -> list[tuple[str, str]]:
    return [(f"{n}_{i}", kind) for n, kinds in wanted.items() for i, kind in enumerate(kinds)]


def _by_numba(functions, wanted, inputs) -> dict[str, np.ndarray]:
    lines = ["import numpy as np", "from numba import njit",
             "from hetero_bfs.programs.kernels.scalars import *"]  # fmt: skip
    lines += [function.code for function in functions.values()]
    columns = _columns(wanted)
    lines += ["@njit", f"def run({', '.join([*inputs, *(n for n, _ in columns)])}):"]
    lines += [f"    for row in range({ROWS}):"]
    for name, function in functions.items():
        given_ = ", ".join(f"{expressions.parameter_name(s)}[row]" for s in function.parameters)
        targets = ", ".join(f"{name}_{i}[row]" for i in range(len(wanted[name])))
        lines.append(f"        {targets} = {function.name}({given_})")
    space: dict = {}
    exec("\n".join(lines), space)
    found = {name: np.zeros(ROWS, kind) for name, kind in columns}
    space["run"](*inputs.values(), *found.values())
    return found


@cache
def _device():
    usable = [info for info in list_devices() if info.problem is None and info.has_double]
    return OpenCLDevice(usable[0]) if usable else None


def _c_type(kind: str) -> str:
    return "uchar" if kind == "bool" else C_TYPES[kind]


def _c_dtype(kind: str) -> str:
    return "uint8" if kind == "bool" else kind


def _by_opencl(device, functions, wanted, inputs) -> dict[str, np.ndarray]:
    columns = _columns(wanted)
    parameters = [f"__global const {_c_type(a.dtype.name)} *{n}" for n, a in inputs.items()]
    parameters += [f"__global {_c_type(kind)} *{name}" for name, kind in columns]
    lines = [function.code for function in functions.values()]
    lines += [f"__kernel void run({', '.join(parameters)})", "{",
              "    const int row = get_global_id(0);"]  # fmt: skip
    for name, function in functions.items():
        given_ = [f"{expressions.parameter_name(s)}[row]" for s in function.parameters]
        kinds = wanted[name]
        if len(kinds) == 1:
            lines.append(f"    {name}_0[row] = {function.name}({', '.join(given_)});")
            continue
        held = [f"held_{name}_{i}" for i in range(len(kinds))]
        lines += [f"    {C_TYPES[k]} {h};" for k, h in zip(kinds, held, strict=True)]
        lines.append(f"    {function.name}({', '.join(given_ + ['&' + h for h in held])});")
        lines += [f"    {name}_{i}[row] = {h};" for i, h in enumerate(held)]
    lines.append("}")
    scalars = (Path(dialects.__file__).parent / "kernels/scalars.cl").read_text()
    options = ["-DHAS_DOUBLE", "-cl-fp32-correctly-rounded-divide-sqrt"]
    program = device.build(options, scalars + "\n".join(lines), [])
    found = {name: np.zeros(ROWS, kind) for name, kind in columns}
    buffers = [device.upload(a.view(_c_dtype(a.dtype.name))) for a in inputs.values()]
    outputs = [device.buffer(ROWS, _c_dtype(kind)) for _, kind in columns]
    device.bind(program, "run", *buffers, *outputs).launch(ROWS, 1)
    for array, buffer in zip(found.values(), outputs, strict=True):
        device.read(array, buffer)
    return found


def _check_same(text, wanted, seed) -> None:
    program = class_of(text, "Methods")()
    inputs = _inputs(seed)
    forms = {}
    for form, dialect in (("Numba", HostDialect), ("OpenCL", DeviceDialect)):
        forms[form] = {
            name: translate.translate(method_of(program, name, results), dialect())
            for name, results in wanted.items()
        }
    expected = _by_plain_python(text.removeprefix(HEAD), wanted, inputs)
    found = {"Numba": _by_numba(forms["Numba"], wanted, inputs)}
    if _device() is not None:
        found["OpenCL C"] = _by_opencl(_device(), forms["OpenCL"], wanted, inputs)
    for form, arrays in found.items():
        for name, array in arrays.items():
            same = (array == expected[name]) | (
                (array != array) & (expected[name] != expected[name])
            )
            if not same.all():
                row = int(np.argmin(same))
                method = name.rpartition("_")[0]
                body = re.search(rf"    def {method}\(.*?(?=\n    def |\Z)", text, re.S)
                values = {n: a[row] for n, a in inputs.items()}
                pytest.fail(f"{form}: {name} gives {array[row]!r}, not {expected[name][row]!r}, of "
                            f"{values}\n{body and body[0]}")  # fmt: skip


@settings(max_examples=2, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_random_methods_give_the_same_in_every_form(seed):
    writer = MethodWriter(seed)
    wanted = {}
    texts = []
    for number in range(METHODS):
        results = [writer.random.choice(RESULTS) for _ in range(writer.random.choice([1, 1, 2]))]
        wanted[f"f{number}"] = results
        texts.append(writer.method(f"f{number}", results))
    text = HEAD + "class Methods:\n" + "\n\n".join(texts) + "\n"
    _check_same(text, wanted, seed % 2**32)


# Methods one by one


def _value_of(body: str, results, **values):
    """Return what a method of this body gives by Numba and OpenCL C, if they agree."""
    text = f"{HEAD}class Methods:\n    def f(self, state, vertex, other, rate):\n"
    text += "".join(f"        {line}\n" for line in body.strip().split("\n"))
    program = class_of(text, "Methods")()
    inputs = _inputs(1)
    for name, value in values.items():
        inputs[f"p_{name}" if name in WEAK else f"state_{name}"][:] = value
    wanted = {"f": results}
    methods = {
        dialect: {"f": translate.translate(method_of(program, "f", results), dialect())}
        for dialect in (HostDialect, DeviceDialect)
    }
    found = _by_numba(methods[HostDialect], wanted, inputs)
    if _device() is not None:
        other = _by_opencl(_device(), methods[DeviceDialect], wanted, inputs)
        for name, array in found.items():
            np.testing.assert_allclose(other[name], array, rtol=1e-14)
    return tuple(array[0].item() for array in found.values())


def test_functions_of_math():
    body = """
return math.exp(rate), math.log(rate), math.sin(rate), math.cos(rate), math.tan(rate), \
math.tanh(rate), math.atan(rate), math.sqrt(rate), math.floor(-rate), math.ceil(rate)
"""

    names = ("exp", "log", "sin", "cos", "tan", "tanh", "atan", "sqrt")
    expected = [getattr(math, name)(0.75) for name in names]
    results = ["float64"] * 8 + ["int64"] * 2
    assert _value_of(body, results, rate=0.75) == pytest.approx((*expected, -1, 1), rel=1e-14)


def test_a_variable_has_one_type():
    body = """
x, y, z = 0, 1, vertex
if state.b:
    x = state.i
    y = y / 4
    z = state.f
return x + (2**31 - 1), y, z * 0.1
"""
    found = _value_of(body, ["int64", "float64", "float64"], b=True, i=1, vertex=3, f=3.0)
    assert found == (-(2**31), 0.25, np.float32(3) * np.float32(0.1))


def test_a_variable_is_weak_only_if_it_is_on_every_path():
    body = """
if state.b:
    x = vertex
else:
    x = np.int64(5)
return x + state.i
"""
    assert _value_of(body, ["int64"], b=True, vertex=7, i=2**31 - 1) == (2**31 + 6,)


def test_two_exchanges_on_one_line():
    body = "x, y = 1, 2.5; z, w = state.b, y\nx, y = int(w), float(x)\nreturn x, y, z"
    assert _value_of(body, ["int64", "float64", "bool"], b=True) == (2, 1.0, True)


def test_constants_are_those_of_the_class_and_the_module():
    text = """
import numpy as np
LIMIT = 2.5
class Methods:
    half = 0.5
    table = (3, 4)
    def f(self, state):
        '''Indented
as it likes.'''
# as comments are
        return self.half * self.table[1] + LIMIT * min(2, 3) + state.u * (np.uint32(7) - 4)
"""
    program = class_of(text, "Methods")()
    function = translate.translate(method_of(program, "f", ["float64"]), HostDialect())
    inputs = {"state_u": np.full(ROWS, 3, np.uint32)}
    found = _by_numba({"f": function}, {"f": ["float64"]}, inputs)
    assert found["f_0"][0] == 16.0


# Refusals

_SETTINGS = {"x": "int32", "y": "float64", "flag": "bool"}

REFUSED = {
    "for": ("for i in (1, 2): pass", "`for i in (1, 2):`"),
    "while": ("while state.x: pass", "`while state.x:`"),
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
    "list": ("a = [state.x]", "`[state.x]`"),
    "dict": ("a = {1: state.x}", "`{1: state.x}`"),
    "set": ("a = {state.x}", "`{state.x}`"),
    "tuple": ("a = (state.x, 1)", "`(state.x, 1)`"),
    "constant list": ("a = [1]", "`[1]`"),
    "string": ("a = 'text'", "`'text'`"),
    "f-string": ("a = f'''\n{state.x}'''", "`f"),
    "none": ("a = None", "`None`"),
    "complex": ("a = 1j", "`1j`"),
    "half precision": ("a = np.float16(1)", "`np.float16(1)`"),
    "comprehension": ("a = [i for i in (1, 2)]", "`[i for i in (1, 2)]`"),
    "generator": ("a = sum(i for i in (1, 2))", "`(i for i in (1, 2))`"),
    "walrus": ("a = (z := state.x)", "`(z := state.x)`"),
    "subscript": ("a = TABLE[state.x]", "`TABLE[state.x]`"),
    "call of a function": ("a = helper(state.x)", "the call `helper(state.x)`"),
    "call of a list": ("a = TABLE(state.x)", "the call `TABLE(state.x)`"),
    "call of an array": ("a = ARRAY(state.x)", "the call `ARRAY(state.x)`"),
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
    "a coroutine": ("async def apply(self): return 1, 2.0", "it is no plain `def`"),
    "a lambda": ("apply = lambda self: (1, 2.0)", "it is no plain `def`"),
    "lambdas": ("apply, other = (lambda self: (1,\n 2.0)), 1", "it is no plain `def`"),
}


def _refusal(text: str) -> str:
    head = HEAD + "LIMIT, TABLE, ARRAY = 3, [1, 2], np.arange(3)\ndef helper(x): return x\n\n"
    program = class_of(head + text, "Bad")()
    names = {"vertex": method_source.Source("", "vertex", "int64", True)}
    method = method_source.Method(
        program, "apply", _SETTINGS, ("state",), names, ["int32", "float64"], "bool"
    )
    messages = set()
    for dialect in (HostDialect, DeviceDialect):
        with pytest.raises(ProgramError) as caught:
            translate.translate(method, dialect())
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
    method = method_source.Method(space["Bad"](), "apply", _SETTINGS, ("state",), {}, ["int32"])
    with pytest.raises(ProgramError, match=r"Bad\.apply: its source cannot be read"):
        translate.translate(method, HostDialect())


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
        method = method_source.Method(program, "apply", _SETTINGS, ("state",), names, ["int64"])
        for dialect in (HostDialect, DeviceDialect):
            with contextlib.suppress(ProgramError):
                translate.translate(method, dialect())
