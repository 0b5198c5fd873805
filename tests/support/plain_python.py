"""Methods of vertex programs by plain Python on NumPy's scalars.

Import as `from plain_python import ...`: tests/conftest.py puts this folder on the path.

A translated method differs from plain Python in these points, which are changed here:

- Python's integers have no limits. Here they wrap at 64 bits, as NumPy's do.
- NumPy refuses a Python number beyond the type that it takes. Here it wraps.
- Integers divided by zero are 0, as NumPy's are, and fractions infinity or NaN.
- A fraction as an integer is the nearest limit if it is beyond, and 0 if it is NaN.
- `a if c else b`, `min` and `max` have the common type of all values.
- Shifts by a negative count, or by the whole width or more, shift everything out.
- An integer beside a fraction is rounded once, to the fraction's type.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

_LIMITS = {kind: np.iinfo(kind) for kind in ("int32", "int64", "uint32", "uint64")}
_SCALARS = {kind: np.dtype(kind).type for kind in (*_LIMITS, "bool", "float32", "float64")}


def plain_methods(text: str, name: str, **names: Any) -> Any:
    """Return the class that a text defines, with the changes above."""
    tree = ast.fix_missing_locations(_Calls().visit(ast.parse(text)))
    space = {**_NAMES, **names}
    exec(compile(tree, "<plain Python>", "exec"), space)
    return space[name]


def convert(value: Any, kind: str) -> Any:
    """Return a number as a NumPy scalar of a type."""
    if type(value) is _SCALARS[kind]:
        return value
    if kind == "bool":
        return np.bool_(value != 0)
    if kind in _LIMITS:
        return _SCALARS[kind](_integer(value, kind))
    if isinstance(value, int) and not isinstance(value, bool):
        value = np.uint64(value) if value >= 2**63 else np.int64(value)
    return np.asarray(value).astype(kind)[()]


def _integer(value: Any, kind: str) -> int:
    limits = _LIMITS[kind]
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return 0
        least, greatest = int(limits.min), int(limits.max)
        return least if value <= least else greatest if value >= greatest else int(value)
    bits = limits.bits
    wrapped = int(value) & (1 << bits) - 1
    return wrapped - (1 << bits) if kind.startswith("i") and wrapped >> bits - 1 else wrapped


def _kind(value: Any) -> tuple[str, bool]:
    if isinstance(value, bool | np.bool_):
        return "bool", False
    if isinstance(value, np.generic):
        return value.dtype.name, False
    return ("int64", True) if isinstance(value, int) else ("float64", True)


def _is_python(value: Any) -> bool:
    return not isinstance(value, np.generic)


def _suited(value: Any, other: Any) -> Any:
    """Return a Python number as NumPy takes it beside another one."""
    if _is_python(other) or not isinstance(value, int) or isinstance(value, bool):
        return value
    if isinstance(other, np.floating):
        return convert(value, other.dtype.name)
    return value if isinstance(other, np.bool_) else _integer(value, other.dtype.name)


def _both(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two numbers in their common type; Python's remain Python's if both are."""
    (first, weak), (second, also_weak) = _kind(left), _kind(right)
    left, right = _suited(left, right), _suited(right, left)
    if weak and also_weak:
        common: Any = float if "float64" in (first, second) else int
        return common(left), common(right)
    kind = first if first == second else np.result_type(*(
        x if _is_python(x) else x.dtype for x in (left, right))).name  # fmt: skip
    return convert(left, kind), convert(right, kind)


def _operate(sign: str, left: Any, right: Any) -> Any:
    if sign == "Div" and isinstance(left, int | np.integer) and isinstance(right, int | np.integer):
        quotient = convert(left, "float64") / convert(right, "float64")
        return float(quotient) if _is_python(left) and _is_python(right) else quotient
    left, right = _suited(left, right), _suited(right, left)
    if not (_is_python(left) and _is_python(right)):
        return _OPERATIONS[sign](left, right)
    if isinstance(left, bool):
        return _OPERATIONS[sign](left, right)
    if isinstance(left, float) or isinstance(right, float):
        return float(_OPERATIONS[sign](np.float64(left), np.float64(right)))
    if sign in ("FloorDiv", "Mod") and right == 0:
        return 0
    if sign in ("LShift", "RShift"):
        out = 0 if sign == "LShift" else left >> 63
        return out if not 0 <= right < 64 else _integer(_OPERATIONS[sign](left, right), "int64")
    return _integer(_OPERATIONS[sign](left, right), "int64")


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mult": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "FloorDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "LShift": lambda a, b: a << b,
    "RShift": lambda a, b: a >> b,
    "BitAnd": lambda a, b: a & b,
    "BitOr": lambda a, b: a | b,
    "BitXor": lambda a, b: a ^ b,
    "Eq": lambda a, b: a == b,
    "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b,
    "LtE": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b,
}


def _unary(sign: str, value: Any) -> Any:
    result = -value if sign == "USub" else ~value if sign == "Invert" else value
    return _integer(result, "int64") if type(result) is int else result


def _compare(signs: list[str], values: list[Any]) -> bool:
    for sign, left, right in zip(signs, values, values[1:], strict=False):
        if isinstance(left, float | np.floating) or isinstance(right, float | np.floating):
            left, right = _both(left, right)
        if not _OPERATIONS[sign](left, right):
            return False
    return True


def _choose(test: Any, first: Any, second: Any) -> Any:
    if isinstance(first, tuple):
        return tuple(_choose(test, *pair) for pair in zip(first, second, strict=True))
    return _both(first, second)[0 if test else 1]


def _extreme(least: bool, *values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result, value = _both(result, value)
        if value < result if least else value > result:
            result = value
    return result


def _absolute(value: Any) -> Any:
    result = builtins.abs(value)
    return _integer(result, "int64") if type(result) is int else result


def _rounded(function: Callable[[Any], Any], value: Any) -> int:
    if isinstance(value, int | np.integer):
        return _integer(value, "int64")
    return _integer(function(np.float64(value)), "int64")


def _to(kind: str) -> Callable[[Any], Any]:
    return lambda value: convert(value, kind)


_NUMPY = SimpleNamespace(
    isinf=np.isinf,
    isnan=np.isnan,
    sqrt=lambda x: np.sqrt(np.float64(x)) if _is_python(x) else np.sqrt(x),
    **{kind: _to(kind) for kind in (*_LIMITS, "float32", "float64")},
)
_MATH = SimpleNamespace(
    inf=math.inf,
    nan=math.nan,
    isinf=math.isinf,
    isnan=math.isnan,
    sqrt=lambda x: float(np.sqrt(np.float64(x))),
    floor=lambda x: _rounded(np.floor, x),
    ceil=lambda x: _rounded(np.ceil, x),
)
_NAMES: dict[str, Any] = {
    "range": range,
    "operate": _operate,
    "unary": _unary,
    "compare": _compare,
    "choose": _choose,
    "min": lambda *values: _extreme(True, *values),
    "max": lambda *values: _extreme(False, *values),
    "abs": _absolute,
    "int": lambda x: _integer(x, "int64"),
    "float": lambda x: float(convert(x, "float64")),
    "bool": lambda x: bool(x != 0),
    "np": _NUMPY,
    "math": _MATH,
}


class _Calls(ast.NodeTransformer):
    """Turns operations into calls of the functions above."""

    def _call(self, name: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("operate", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        before = ast.Name(node.target.id, ast.Load())  # type: ignore[union-attr]
        sign = ast.Constant(type(node.op).__name__)
        return ast.Assign([node.target], self._call("operate", sign, before, node.value))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return node
        return self._call("unary", ast.Constant(type(node.op).__name__), node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        signs: list[ast.expr] = [ast.Constant(type(sign).__name__) for sign in node.ops]
        values = [node.left, *node.comparators]
        return self._call("compare", ast.List(signs, ast.Load()), ast.List(values, ast.Load()))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return self._call("choose", node.test, node.body, node.orelse)
