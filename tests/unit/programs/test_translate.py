"""The translator: the same values by plain Python, Numba and OpenCL C; and what it refuses."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from method_classes import HEAD, class_of, method_of
from plain_python import convert, plain_methods
from random_methods import FIELDS, RESULTS, WEAK, MethodWriter

from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.programs.codegen import dialects, expressions, translate
from hetero_bfs.programs.codegen.dialects import C_TYPES, DeviceDialect, HostDialect

pytestmark = pytest.mark.optimised

ROWS = 64
METHODS = 12


# Random methods


def _inputs(seed: int) -> dict[str, np.ndarray]:
    """Return values of fields and names, by their parameters in translated methods."""
    random = np.random.default_rng(seed)
    values = {f"f_state_{name}": _values(random, kind) for name, kind in FIELDS.items()}
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
                    setattr(state, field, inputs[f"f_state_{field}"][row])
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
    scalars = (Path(dialects.__file__).parents[1] / "kernels/scalars.cl").read_text()
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
            name: translate.translate(method_of(program, name, results), dialect(), {})
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


@settings(max_examples=1, phases=[Phase.explicit, Phase.reuse, Phase.generate])
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
        inputs[f"p_{name}" if name in WEAK else f"f_state_{name}"][:] = value
    wanted = {"f": results}
    methods = {
        dialect: {"f": translate.translate(method_of(program, "f", results), dialect(), {})}
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
    function = translate.translate(method_of(program, "f", ["float64"]), HostDialect(), {})
    inputs = {"f_state_u": np.full(ROWS, 3, np.uint32)}
    found = _by_numba({"f": function}, {"f": ["float64"]}, inputs)
    assert found["f_0"][0] == 16.0
