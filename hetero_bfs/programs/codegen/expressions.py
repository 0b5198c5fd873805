"""Translates Python expressions to a dialect, with the types of NumPy's scalars."""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hetero_bfs.programs.codegen.dialects import Dialect
from hetero_bfs.programs.codegen.method_source import (
    FIELD_TYPES,
    MESSAGES,
    Digits,
    Method,
    MethodSource,
    Source,
    declared,
    listed,
    vector_of,
)

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
               ast.Mod: "%"}  # fmt: skip
_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
                ast.GtE: ">="}  # fmt: skip
_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan")
_TESTS = ("isinf", "isnan")
_INSTEAD_OF_DICTIONARY = "use a field for each key, or a vector of fixed length"
_CONVERSIONS = {int: ("int64", True), float: ("float64", True), bool: ("bool", False)} | {
    np.dtype(kind).type: (kind, False) for kind in FIELD_TYPES
}
"""The type that a call of each gives, and whether it is weak."""


class Value(NamedTuple):
    """An expression's code, type, and possible digits (method_source.py).

    Python's own numbers have weak types: they take the other operand's type.
    """

    code: str
    type: str
    weak: bool = False
    digits: Digits = Digits.FEW


@dataclass
class Expressions:
    """Translates expressions of one method; a subclass translates its statements."""

    method: Method
    dialect: Dialect
    source: MethodSource
    used: dict[tuple[str, str], Source] = field(default_factory=dict)
    local: dict[str, Value] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    statement: ast.stmt | None = None

    def refuse(self, node: Any, what: str, remedy: str) -> NoReturn:
        self.source.refuse(node, what, remedy)

    def value(self, node: ast.expr) -> Value:
        if not self._uses_variables(node):
            return self.literal(self.constant(node), node)
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            remedy = "only expressions of numbers can be"
            if isinstance(node, ast.Dict | ast.DictComp):
                remedy = _INSTEAD_OF_DICTIONARY
            self.refuse(node, f"`{ast.unparse(node)}`", remedy)
        value: Value = handler(self, node)
        return value

    def _uses_variables(self, node: ast.AST) -> bool:
        known = {*self.parameters, *self.assigned}
        return any(isinstance(n, ast.Name) and n.id in known for n in ast.walk(node))

    def constant(self, node: ast.expr) -> Any:
        """Evaluate an expression without variables at translation."""
        try:
            value = self.source.evaluate(node)
            is_constant = self.source.is_constant(node)
        except NameError as error:
            self.refuse(node, f"`{ast.unparse(node)}` ({error})",
                         "if it is a parameter, name it among the method's own")  # fmt: skip
        except Exception as error:
            self.refuse(node, f"`{ast.unparse(node)}` ({error})", "it must be a number")
        if not is_constant:
            self.refuse(node, f"`{ast.unparse(node)}`, a new number each time",
                         "give the run an array of numbers as a parameter")  # fmt: skip
        return value

    def literal(self, value: Any, node: ast.expr) -> Value:
        if isinstance(value, np.generic) and value.dtype.name in FIELD_TYPES:
            kind = value.dtype.name
            return Value(self.dialect.literal(value.item(), kind), kind, False, declared(kind))
        if isinstance(value, bool):
            return Value(self.dialect.literal(value, "bool"), "bool")
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return Value(self.dialect.literal(value, "int64"), "int64", True)
        if isinstance(value, float):
            code = self.dialect.literal(value, "float64")
            return Value(code, "float64", True, Digits.FRACTION)
        remedy = "a constant must be a number"
        if isinstance(value, dict):
            remedy = _INSTEAD_OF_DICTIONARY
        if isinstance(value, int):
            remedy = "write np.uint64(...)" if 0 <= value < 2**64 else "use a number of 64 bits"
        return self.refuse(node, f"`{ast.unparse(node)}`", remedy)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.local:
            return self.local[node.id]
        if node.id in self.method.names and node.id in self.parameters:
            return self._read(self.method.names[node.id])
        if node.id in self.assigned:
            self.refuse(node, f"{node.id!r}, which has no value on every path here", "assign it")
        return self.refuse(node, f"{node.id!r}", "read its fields, as in state.distance")

    def _read(self, source: Source) -> Value:
        if source.type == MESSAGES:
            self.refuse(self.statement, "`messages` as a value", "write for message in messages:")
        self.used.setdefault((source.owner, source.name), source)
        digits = declared(source.type, source.weak)
        if not source.owner:
            digits = self.method.digits.get(vector_of(source.name)[0], digits)
        return Value(parameter_name(source), source.type, source.weak, digits)

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = node.value
        if isinstance(owner, ast.Name) and (f"{owner.id}.{node.attr}") in self.local:
            return self.local[f"{owner.id}.{node.attr}"]
        if not (isinstance(owner, ast.Name) and owner.id in self.method.owners):
            self.refuse(node, f"`{ast.unparse(node)}`", f"only {listed(self.method.owners)} has "
                         "fields here")  # fmt: skip
        fields = self.method.owners[owner.id]
        if node.attr not in fields:
            self.refuse(node, f"`{ast.unparse(node)}`", f"fields: {listed(fields)}")
        return self._read(Source(owner.id, node.attr, fields[node.attr], False))

    def _binary(self, node: ast.BinOp) -> Value:
        return self._operate(node, self.value(node.left), self.value(node.right))

    def _operate(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        operation = _ARITHMETIC.get(type(node.op)) or _BITS.get(type(node.op))
        bits = type(node.op) in _BITS
        if operation is None:
            self.refuse(node, f"`{ast.unparse(node)}`", "write x * x, or use functions of math")
        kinds = {left.type, right.type}
        if kinds == {"bool"} and operation in ("&", "|", "^"):
            return Value(self.dialect.binary(operation, "bool", left.code, right.code), "bool")
        if "bool" in kinds:
            self.refuse(node, f"arithmetic of a truth value in `{ast.unparse(node)}`",
                         "convert it by int(...)")  # fmt: skip
        kind, weak = promoted(left, right)
        if bits and kind.startswith("float"):
            self.refuse(node, f"`{ast.unparse(node)}` of {kind}", "bits need integers")
        if operation in ("//", "%") and kind.startswith("float"):
            self.refuse(node, f"`{ast.unparse(node)}` of {kind}",
                         "convert to int, or use math.floor")  # fmt: skip
        if operation == "/" and not kind.startswith("float"):
            kind = "float64"
        codes = [self.converted(value, kind, node) for value in (left, right)]
        digits = joined(kind, left, right)
        return Value(self.dialect.binary(operation, kind, *codes), kind, weak, digits)

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(self.dialect.negation(self.condition(node.operand)), "bool")
        value = self.value(node.operand)
        if value.type == "bool":
            self.refuse(node, f"`{ast.unparse(node)}` of a truth value", "use `not`")
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert) and value.type.startswith("float"):
            self.refuse(node, f"`{ast.unparse(node)}` of {value.type}", "bits need integers")
        operation = "~" if isinstance(node.op, ast.Invert) else "-"
        return value._replace(code=self.dialect.unary(operation, value.type, value.code))

    def _boolean(self, node: ast.BoolOp) -> Value:
        operation = "and" if isinstance(node.op, ast.And) else "or"
        values = [self.value(item) for item in node.values]
        for item, value in zip(node.values, values, strict=True):
            if value.type != "bool":
                self.refuse(item, f"`{ast.unparse(item)}` within `and` or `or`", "compare it, != 0")
        return Value(self.dialect.boolean(operation, [value.code for value in values]), "bool")

    def condition(self, node: ast.expr) -> str:
        value = self.value(node)
        if value.type == "bool":
            return value.code
        zero = self.dialect.literal(0, value.type)
        return self.dialect.comparison("!=", value.code, zero)

    def _compare(self, node: ast.Compare) -> Value:
        values = [self.value(item) for item in (node.left, *node.comparators)]
        parts = []
        for i, operation in enumerate(node.ops):
            sign = _COMPARISONS.get(type(operation))
            if sign is None:
                self.refuse(node, f"`{ast.unparse(node)}`", "use == != < <= > >=")
            parts.append(self._compare_two(sign, values[i], values[i + 1], node))
        code = parts[0] if len(parts) == 1 else self.dialect.boolean("and", parts)
        return Value(code, "bool")

    def _compare_two(self, sign: str, left: Value, right: Value, node: ast.Compare) -> str:
        kinds = {left.type, right.type}
        kind = "bool" if kinds == {"bool"} else promoted(left, right)[0]
        if "bool" in kinds and kinds != {"bool"}:
            self.refuse(node, f"`{ast.unparse(node)}` of a truth value and a number",
                         "convert it by int(...)")  # fmt: skip
        literal = any(v.weak and self.dialect.is_literal(v.code) for v in (left, right))
        if not literal and all("int" in k for k in kinds):  # exact, as in NumPy
            kind = np.promote_types(left.type, right.type).name
            if kind == "float64":
                return self._compare_signs(sign, left, right, node)
        codes = [self.converted(value, kind, node) for value in (left, right)]
        return self.dialect.comparison(sign, *codes)

    def _compare_signs(self, sign: str, left: Value, right: Value, node: ast.Compare) -> str:
        """Compare a signed integer with an unsigned 64-bit one."""
        signed = left if right.type == "uint64" else right
        zero = self.dialect.literal(0, signed.type)
        negative = self.dialect.comparison("<", signed.code, zero)
        codes = [self.converted(value, "uint64", node) for value in (left, right)]
        compared = self.dialect.comparison(sign, *codes)
        if sign == "!=" or sign[0] == ("<" if signed is left else ">"):
            return self.dialect.boolean("or", [negative, compared])
        return self.dialect.boolean("and", [self.dialect.negation(negative), compared])

    def _if_expression(self, node: ast.IfExp) -> Value:
        test = self.condition(node.test)
        return self.choice(test, self.value(node.body), self.value(node.orelse), node)

    def choice(self, test: str, first: Value, second: Value, node: Any) -> Value:
        kind, weak = first.type, first.weak and second.weak
        if {first.type, second.type} != {"bool"}:
            if "bool" in (first.type, second.type):
                self.refuse(node, "a choice of a truth value and a number", "convert by int(...)")
            kind, weak = promoted(first, second)
        codes = [self.converted(value, kind, node) for value in (first, second)]
        digits = joined(kind, first, second)
        return Value(self.dialect.choice(test, *codes), kind, weak, digits)

    def _call(self, node: ast.Call) -> Value:
        if node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
            self.refuse(node, f"`{ast.unparse(node)}`", "give values by position")
        function = self._callee(node.func)
        if function is None:
            self._refuse_call(node)
        arguments = [self.value(item) for item in node.args]
        if function in (builtins.min, builtins.max) and len(arguments) > 1:
            return self._extreme(function is builtins.min, arguments, node)
        value = self._call_of_one(function, arguments[0], node) if len(arguments) == 1 else None
        return self._refuse_call(node) if value is None else value

    def _refuse_call(self, node: ast.Call) -> NoReturn:
        known = f"and of math {', '.join((*_FUNCTIONS, 'floor', 'ceil', *_TESTS))}"
        self.refuse(
            node,
            f"the call `{ast.unparse(node)}`",
            f"there are min, max, abs, int, float, bool, types of NumPy, np.sqrt, {known}",
        )

    def _callee(self, node: ast.expr) -> Any:
        """Return the called function if it is a built-in, a NumPy function or a type, else None."""
        try:
            function = self.source.evaluate(node)
        except Exception:
            return None
        kinds = type, types.BuiltinFunctionType, np.ufunc
        known = isinstance(function, kinds) and not self._uses_variables(node)
        return function if known else None

    def _extreme(self, least: bool, values: list[Value], node: ast.Call) -> Value:
        result = values[0]
        for value in values[1:]:
            if "bool" in (result.type, value.type):
                self.refuse(node, f"`{ast.unparse(node)}` of truth values", "use `and` or `or`")
            kind, weak = promoted(result, value)
            codes = [self.converted(item, kind, node) for item in (result, value)]
            digits = joined(kind, result, value)
            result = Value(self.dialect.extreme(least, kind, *codes), kind, weak, digits)
        return result

    def _call_of_one(self, function: Any, value: Value, node: ast.Call) -> Value | None:
        if function in _CONVERSIONS:
            kind, weak = _CONVERSIONS[function]
            return Value(self.converted(value, kind, node), kind, weak, declared(kind, weak))
        if value.type == "bool":
            return None
        if function is abs:
            return value._replace(code=self.dialect.absolute(value.type, value.code))
        name = getattr(function, "__name__", "")
        if function in (math.floor, math.ceil):
            if not value.type.startswith("float"):
                return Value(self.converted(value, "int64", node), "int64", True)
            code = self.converted(value, "float64", node)
            return Value(self.dialect.rounded(name, code), "int64", True)
        if name in _TESTS and function in (getattr(math, name), getattr(np, name)):
            kind = value.type if value.type.startswith("float") else "float64"
            return Value(self.dialect.test(name, self.converted(value, kind, node)), "bool")
        if name in _FUNCTIONS and function is getattr(math, name):
            code = self.converted(value, "float64", node)
            code = self.dialect.function_of("float64", name, code)
            return Value(code, "float64", True, Digits.FRACTION)
        if function is np.sqrt:
            kind = value.type if value.type.startswith("float") else "float64"
            code = self.converted(value, kind, node)
            code = self.dialect.function_of(kind, "sqrt", code)
            return Value(code, kind, False, joined(kind, value))
        return None

    def converted(self, value: Value, kind: str, node: Any) -> str:
        if value.type == kind:
            return value.code
        if value.weak and self.dialect.is_literal(value.code):
            number = self.dialect.number(value.code)
            if not _fits(number, kind):
                self.refuse(node, f"{number} as {kind}", "take a number within the type's limits")
            if not (kind.startswith(("int", "uint")) and isinstance(number, float)):
                return self.dialect.literal(number, kind)
        return self.dialect.conversion(value.type, kind, value.code)


_EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any], Value]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._if_expression,
    ast.Call: Expressions._call,
}


def promoted(left: Value, right: Value) -> tuple[str, bool]:
    """Return the common type of two numbers, and whether it is weak (NEP 50)."""
    if left.weak == right.weak:
        return np.result_type(left.type, right.type).name, left.weak
    weak, strong = (left, right) if left.weak else (right, left)
    if weak.type == "float64" and not strong.type.startswith("float"):
        return "float64", False
    return strong.type, False


def common(one: Value, other: Value) -> Value:
    """Return the common type of two values (bool allowed) and their digits, without code."""
    if "bool" in (one.type, other.type):
        return max(one, other, key=lambda value: (value.type != "bool", value.digits))
    kind, weak = promoted(one, other)
    return Value("", kind, weak, joined(kind, one, other))


def joined(kind: str, *values: Value) -> Digits:
    """Return the digits of an operation's result of type `kind`."""
    least = Digits.FRACTION if kind.startswith("float") else Digits.FEW
    return max(least, *(value.digits for value in values))


def _fits(number: Any, kind: str) -> bool:
    if kind.startswith("float") or kind == "bool":
        return True
    if isinstance(number, float):
        return math.isfinite(number)
    limits = np.iinfo(kind)
    return bool(limits.min <= number <= limits.max)


def parameter_name(source: Source) -> str:
    return f"f_{source.owner}_{source.name}" if source.owner else f"p_{source.name}"
