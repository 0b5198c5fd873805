"""Translates a method of a vertex program, from Python to a dialect (dialects.py).

The method is parsed, every expression gets a type as NumPy's scalars have it (NEP 50), and the
dialect writes it down with all conversions. So the host and a device compute the same. Anything
that has no such translation is refused with its line.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from tokenize import TokenError
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.dialects import Dialect

FIELD_TYPES = ("bool", "int32", "int64", "uint32", "uint64", "float32", "float64")

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
               ast.Mod: "%"}  # fmt: skip
_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
                ast.GtE: ">="}  # fmt: skip
_DEEPEST = 120
"""Brackets within brackets of a line: Python reads 200, compilers of OpenCL C read 256."""

_MOST_INDENTED = 60
_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan")
_TESTS = ("isinf", "isnan")
_NUMPY_TYPES = {np.dtype(kind).type: kind for kind in FIELD_TYPES}


class Value(NamedTuple):
    """An expression's code and type. A weak one, of Python's own numbers, takes another's type."""

    code: str
    type: str
    weak: bool = False


class Source(NamedTuple):
    """Where a value comes from: a field of `state` or `previous`, or a name; and its type."""

    owner: str
    name: str
    type: str
    weak: bool


@dataclass
class Function:
    """A translated method: `code` defines it by `name` with `parameters`.

    `num_results` is how many values it returns: one is returned, several in the dialect's way.
    """

    name: str
    parameters: list[Source]
    num_results: int
    code: str


@dataclass
class Method:
    """A method to translate.

    Parameters
    ----------
    program : object
        The user's program; attributes of `self` are constants.
    name : str
    fields : mapping
        Types of the state's fields.
    owners : sequence of str
        Names under which fields can be read here, "state" or "previous".
    names : mapping of str to Source
        Other names that parameters may have here.
    results : sequence of str
        Types of the values to return.
    optional : str, optional
        The type of one more value that may be returned.
    """

    program: Any
    name: str
    fields: Mapping[str, str]
    owners: Sequence[str]
    names: Mapping[str, Source]
    results: Sequence[str]
    optional: str | None = None


def parameters_of(program: Any, name: str) -> list[str]:
    """Return the names of a method's parameters, without `self`.

    Raises
    ------
    ProgramError
        The method is no function of Python.
    """
    try:
        signature = inspect.signature(getattr(program, name))
    except (TypeError, ValueError):
        raise ProgramError(
            f"{type(program).__name__}.{name}: it is no `def`; write it as one"
        ) from None
    return [p for p in signature.parameters if p != "self"]


def translate(method: Method, dialect: Dialect) -> Function:
    """Translate a method.

    Raises
    ------
    ProgramError
        Its source is not there, or has something that has no translation.
    """
    kinds: dict[str, Value] = {}
    while True:
        translator = _Translator(method, dialect, kinds)
        try:
            return translator.run()
        except _OtherKind:
            dialect.variables.clear()
        except RecursionError:
            translator.refuse_depth()


class _OtherKind(Exception):
    """A variable has another type than was thought so far."""


@dataclass
class _Translator:
    method: Method
    dialect: Dialect
    kinds: dict[str, Value]  # of variables, as far as known, without code
    used: dict[tuple[str, str], Source] = field(default_factory=dict)
    local: dict[str, Value] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    held: int = 0
    statement: ast.stmt | None = None

    def run(self) -> Function:
        self._parse()
        arguments = self.definition.args
        if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kwonlyargs:
            self._refuse(self.definition, "parameters with defaults, * or **", "name what you need")
        given = [*arguments.posonlyargs, *arguments.args]
        self.parameters = [a.arg for a in given if a.arg != "self"]
        for argument in given:
            known = {"self", *self.method.owners, *self.method.names}
            if argument.arg not in known:
                raise ProgramError(
                    f"{self._place(argument)}: parameter {argument.arg!r} is not given to the run; "
                    f"known here: {_listed(known)}"
                )
        nodes = ast.walk(self.definition)
        stores = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.assigned = {n.id for n in stores}
        for node in ast.walk(self.definition):
            name = getattr(node, "arg", None) or getattr(node, "id", None)
            if isinstance(name, str) and not name.isascii():
                self._refuse(node, f"the name {name!r}", "use letters of ASCII")
        self.num_results = self._count_results()
        if not self._block(self.definition.body):
            self._refuse(self.definition, "an end without return", "return a value on every path")
        name = f"user_{self.method.name}"
        sources = list(self.used.values())
        parameters = [(_parameter(source), source.type) for source in sources]
        results = self._result_types()
        code = self.dialect.function(name, parameters, results, self.lines)
        return Function(name, sources, self.num_results, code)

    # Source and errors

    def _parse(self) -> None:
        function = inspect.unwrap(getattr(self.method.program, self.method.name))
        function = getattr(function, "__func__", function)
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError, SyntaxError, TokenError):
            raise ProgramError(
                f"{self._title()}: its source cannot be read; define the class in a file or a "
                "notebook, not at a plain prompt"
            ) from None
        self.first = first
        definition = _parsed(lines)
        if not isinstance(definition, ast.FunctionDef):
            raise ProgramError(
                f"{self._title()}, line {first}: it is no plain `def`; write it as one"
            )
        self.definition = definition
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        self.constants = {**vars(builtins), **function.__globals__}
        for name, cell in zip(names, cells, strict=True):
            with contextlib.suppress(ValueError):  # it has no value yet
                self.constants[name] = cell.cell_contents
        self.constants["self"] = self.method.program

    def _title(self) -> str:
        return f"{type(self.method.program).__name__}.{self.method.name}"

    def _place(self, node: Any) -> str:
        return f"{self._title()}, line {self.first + node.lineno - 1}"

    def _refuse(self, node: Any, what: str, remedy: str) -> NoReturn:
        text = f"{self._place(node)}: {what} cannot be translated; {remedy}"
        raise ProgramError(" ".join(text.split()))

    def refuse_depth(self, node: Any = None) -> NoReturn:
        """Refuse what no compiler takes."""
        self._refuse(
            node or self.definition, "an expression or a condition so deep", "use variables"
        )

    # Statements

    def _emit(self, text: str) -> None:
        if self.depth > _MOST_INDENTED or _nesting(text) > _DEEPEST:
            self.refuse_depth(self.statement)
        self.lines.append("    " * self.depth + text)

    def _block(self, body: list[ast.stmt]) -> bool:
        """Translate statements; return whether every path through them returns."""
        for number, statement in enumerate(body):
            returned = self._statement(statement)
            if returned:
                if number + 1 < len(body):
                    self._refuse(body[number + 1], "a line that is never reached", "remove it")
                return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        self.statement = node
        if isinstance(node, ast.Return):
            self._return(node)
            return True
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            pass  # a docstring
        elif not isinstance(node, ast.Pass):
            self._refuse(node, f"`{_word(node)}`", "use assignments, if and return")
        return False

    def _if(self, node: ast.If) -> bool:
        self._emit(self.dialect.begin_if(self._condition(node.test)))
        before = dict(self.local)
        ends = [self._inner(node.body)]
        after = dict(self.local)
        self.local = {**before}
        if node.orelse:
            self._emit(self.dialect.begin_else())
            ends.append(self._inner(node.orelse))
        self._close()
        if len(ends) == 2 and ends[0] != ends[1]:  # variables of the path that goes on
            self.local = self.local if ends[0] else after
        else:
            both = after.keys() & self.local.keys()
            self.local = {name: after[name] for name in both}
        if ends[0] and len(ends) == 1:
            self.local = before
        return len(ends) == 2 and all(ends)

    def _inner(self, body: list[ast.stmt]) -> bool:
        self.depth += 1
        before = len(self.lines)
        returned = self._block(body)
        if len(self.lines) == before:
            self._emit(self.dialect.nothing)
        self.depth -= 1
        return returned

    def _close(self) -> None:
        if self.dialect.end_block:
            self._emit(self.dialect.end_block)

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or node.value is None:
            self._refuse(node, "this assignment", "write one variable = one value")
        target, source = targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
            if len(target.elts) != len(source.elts):
                self._refuse(node, "an assignment of unlike tuples", "give each variable a value")
            values = [self._value(item) for item in source.elts]
            held = []
            for value in values:  # all are computed before any is assigned
                self.held += 1
                held.append(self._declare(f"held_{self.held}", value, node))
            for item, value in zip(target.elts, held, strict=True):
                self._assign_one(item, value)
            return
        if isinstance(node, ast.AugAssign):
            spread = ast.BinOp(left=_as_load(node.target), op=node.op, right=source)
            value = self._value(ast.copy_location(spread, node))
        else:
            value = self._value(source)
        self._assign_one(target, value)

    def _assign_one(self, target: ast.expr, value: Value) -> None:
        if not isinstance(target, ast.Name):
            self._refuse(
                target,
                f"an assignment to `{ast.unparse(target)}`",
                "assign to variables, and return the new state",
            )
        if target.id in self.parameters or target.id == "self":
            self._refuse(target, f"an assignment to parameter {target.id!r}", "use another name")
        self._declare(target.id, value, target)

    def _declare(self, name: str, value: Value, node: Any) -> Value:
        known = self.kinds.setdefault(name, value._replace(code=""))
        both = {known.type, value.type}
        if len(both) > 1 and ("bool" in both or not (known.weak or value.weak)):
            self._refuse(
                node,
                f"{name!r} as {known.type} and as {value.type}",
                "use two variables, or convert",
            )
        kind = known if both == {"bool"} else Value("", *_promoted(known, value))
        if kind != known:
            self.kinds[name] = kind
            raise _OtherKind
        self.dialect.variables[name] = kind.type
        self._emit(self.dialect.assign(f"v_{name}", self._converted(value, kind.type, node)))
        self.local[name] = kind._replace(code=f"v_{name}")
        return self.local[name]

    def _return(self, node: ast.Return) -> None:
        items = self._items(node.value, node)
        kinds = self._result_types()
        codes = [self._converted(item, kind, node) for item, kind in zip(items, kinds, strict=True)]
        for line in self.dialect.return_values(codes):
            self._emit(line)

    def _result_types(self) -> list[str]:
        kinds = [*self.method.results, *([self.method.optional] if self.method.optional else [])]
        return kinds[: self.num_results]

    def _items(self, node: ast.expr | None, place: ast.AST) -> list[Value]:
        """Return the values of a returned expression; a choice of tuples is split up."""
        if isinstance(node, ast.IfExp) and self._length(node) > 1:
            test = self._condition(node.test)
            pairs = zip(self._items(node.body, place), self._items(node.orelse, place), strict=True)
            return [self._choice(test, *pair, place) for pair in pairs]
        if isinstance(node, ast.Tuple):
            return [self._value(item) for item in node.elts]
        if node is None:
            self._refuse(place, "a return without a value", "return a value")
        return [self._value(node)]

    def _length(self, node: ast.expr | None) -> int:
        if isinstance(node, ast.IfExp):
            lengths = {self._length(node.body), self._length(node.orelse)}
            if len(lengths) > 1:
                self._refuse(
                    node, "a choice of unlike tuples", "return as many values on each path"
                )
            return lengths.pop()
        return len(node.elts) if isinstance(node, ast.Tuple) else 1

    def _count_results(self) -> int:
        least = len(self.method.results)
        most = least + (self.method.optional is not None)
        counts = set()
        for node in _walk_outside_functions(self.definition):
            if isinstance(node, ast.Return):
                counts.add(self._length(node.value))
                if not least <= self._length(node.value) <= most:
                    wanted = f"{least}" if least == most else f"{least} or {most}"
                    self._refuse(node, f"{self._length(node.value)} returned values",
                                 f"return {wanted}: {self._meaning()}")  # fmt: skip
        if len(counts) > 1:
            self._refuse(self.definition, "unlike returns", "return as many values on each path")
        return counts.pop() if counts else least

    def _meaning(self) -> str:
        if self.method.name in ("initial", "apply"):
            return f"{', '.join(self.method.fields)}, and if you like whether it is active"
        return _listed(self.method.results)

    # Expressions

    def _value(self, node: ast.expr) -> Value:
        if not self._uses_variables(node):
            return self._constant(node)
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            self._refuse(node, f"`{ast.unparse(node)}`", "only expressions of numbers can be")
        value: Value = handler(self, node)
        return value

    def _uses_variables(self, node: ast.AST) -> bool:
        known = {*self.parameters, *self.assigned}
        return any(isinstance(n, ast.Name) and n.id in known for n in ast.walk(node))

    def _constant(self, node: ast.expr) -> Value:
        """Compute an expression without variables now."""
        try:
            code = compile(ast.Expression(body=node), "<constant>", "eval")
            value = eval(code, {"__builtins__": {}}, self.constants)  # the user's own code
        except NameError as error:
            self._refuse(node, f"`{ast.unparse(node)}` ({error})",
                         "if it is a parameter, name it among the method's own")  # fmt: skip
        except Exception as error:
            self._refuse(node, f"`{ast.unparse(node)}` ({error})", "it must be a number")
        if isinstance(value, np.generic) and value.dtype.name in FIELD_TYPES:
            kind = value.dtype.name
            return Value(self.dialect.literal(value.item(), kind), kind)
        if isinstance(value, bool):
            return Value(self.dialect.literal(value, "bool"), "bool")
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return Value(self.dialect.literal(value, "int64"), "int64", True)
        if isinstance(value, float):
            return Value(self.dialect.literal(value, "float64"), "float64", True)
        remedy = "a constant must be a number"
        if isinstance(value, int):
            remedy = "write np.uint64(...)" if 0 <= value < 2**64 else "use a number of 64 bits"
        return self._refuse(node, f"`{ast.unparse(node)}`", remedy)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.local:
            return self.local[node.id]
        if node.id in self.method.names and node.id in self.parameters:
            return self._read(self.method.names[node.id])
        if node.id in self.assigned:
            self._refuse(node, f"{node.id!r}, which has no value on every path here", "assign it")
        return self._refuse(node, f"{node.id!r}", "read its fields, as in state.distance")

    def _read(self, source: Source) -> Value:
        self.used.setdefault((source.owner, source.name), source)
        return Value(_parameter(source), source.type, source.weak)

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = node.value
        if not (isinstance(owner, ast.Name) and owner.id in self.method.owners):
            self._refuse(node, f"`{ast.unparse(node)}`", f"only {_listed(self.method.owners)} has "
                         "fields here")  # fmt: skip
        if node.attr not in self.method.fields:
            self._refuse(node, f"`{ast.unparse(node)}`", f"fields: {_listed(self.method.fields)}")
        return self._read(Source(owner.id, node.attr, self.method.fields[node.attr], False))

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        return self._operate(node, left, right)

    def _operate(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        operation = _ARITHMETIC.get(type(node.op)) or _BITS.get(type(node.op))
        bits = type(node.op) in _BITS
        if operation is None:
            self._refuse(node, f"`{ast.unparse(node)}`", "write x * x, or use functions of math")
        kinds = {left.type, right.type}
        if kinds == {"bool"} and operation in ("&", "|", "^"):
            return Value(self.dialect.binary(operation, "bool", left.code, right.code), "bool")
        if "bool" in kinds:
            self._refuse(node, f"arithmetic of a truth value in `{ast.unparse(node)}`",
                         "convert it by int(...)")  # fmt: skip
        kind, weak = _promoted(left, right)
        if bits and kind.startswith("float"):
            self._refuse(node, f"`{ast.unparse(node)}` of {kind}", "bits need integers")
        if operation in ("//", "%") and kind.startswith("float"):
            self._refuse(node, f"`{ast.unparse(node)}` of {kind}",
                         "convert to int, or use math.floor")  # fmt: skip
        if operation == "/" and not kind.startswith("float"):
            kind = "float64"
        codes = [self._converted(value, kind, node) for value in (left, right)]
        return Value(self.dialect.binary(operation, kind, *codes), kind, weak)

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value(self.dialect.negation(self._condition(node.operand)), "bool")
        value = self._value(node.operand)
        if value.type == "bool":
            self._refuse(node, f"`{ast.unparse(node)}` of a truth value", "use `not`")
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert) and value.type.startswith("float"):
            self._refuse(node, f"`{ast.unparse(node)}` of {value.type}", "bits need integers")
        operation = "~" if isinstance(node.op, ast.Invert) else "-"
        return Value(self.dialect.unary(operation, value.type, value.code), value.type, value.weak)

    def _boolean(self, node: ast.BoolOp) -> Value:
        operation = "and" if isinstance(node.op, ast.And) else "or"
        codes = [self._truth(item, self._value(item)) for item in node.values]
        return Value(self.dialect.boolean(operation, codes), "bool")

    def _truth(self, node: ast.expr, value: Value) -> str:
        if value.type != "bool":
            self._refuse(node, f"`{ast.unparse(node)}` within `and` or `or`", "compare it, != 0")
        return value.code

    def _condition(self, node: ast.expr) -> str:
        value = self._value(node)
        if value.type == "bool":
            return value.code
        zero = self.dialect.literal(0, value.type)
        return self.dialect.comparison("!=", value.code, zero)

    def _compare(self, node: ast.Compare) -> Value:
        values = [self._value(item) for item in (node.left, *node.comparators)]
        parts = []
        for i, operation in enumerate(node.ops):
            sign = _COMPARISONS.get(type(operation))
            if sign is None:
                self._refuse(node, f"`{ast.unparse(node)}`", "use == != < <= > >=")
            parts.append(self._compare_two(sign, values[i], values[i + 1], node))
        code = parts[0] if len(parts) == 1 else self.dialect.boolean("and", parts)
        return Value(code, "bool")

    def _compare_two(self, sign: str, left: Value, right: Value, node: ast.Compare) -> str:
        kinds = {left.type, right.type}
        kind = "bool" if kinds == {"bool"} else _promoted(left, right)[0]
        if "bool" in kinds and kinds != {"bool"}:
            self._refuse(node, f"`{ast.unparse(node)}` of a truth value and a number",
                         "convert it by int(...)")  # fmt: skip
        literal = any(v.weak and self.dialect.is_literal(v.code) for v in (left, right))
        if not literal and all("int" in k for k in kinds):  # exact, as NumPy compares integers
            kind = np.promote_types(left.type, right.type).name
            if kind == "float64":
                return self._compare_signs(sign, left, right, node)
        codes = [self._converted(value, kind, node) for value in (left, right)]
        return self.dialect.comparison(sign, *codes)

    def _compare_signs(self, sign: str, left: Value, right: Value, node: ast.Compare) -> str:
        """Compare a signed integer with an unsigned one of 64 bits."""
        signed = left if right.type == "uint64" else right
        zero = self.dialect.literal(0, signed.type)
        negative = self.dialect.comparison("<", signed.code, zero)
        codes = [self._converted(value, "uint64", node) for value in (left, right)]
        compared = self.dialect.comparison(sign, *codes)
        if sign == "!=" or sign[0] == ("<" if signed is left else ">"):
            return self.dialect.boolean("or", [negative, compared])
        return self.dialect.boolean("and", [self.dialect.negation(negative), compared])

    def _if_expression(self, node: ast.IfExp) -> Value:
        test = self._condition(node.test)
        return self._choice(test, self._value(node.body), self._value(node.orelse), node)

    def _choice(self, test: str, first: Value, second: Value, node: Any) -> Value:
        kind, weak = first.type, first.weak and second.weak
        if {first.type, second.type} != {"bool"}:
            if "bool" in (first.type, second.type):
                self._refuse(node, "a choice of a truth value and a number", "convert by int(...)")
            kind, weak = _promoted(first, second)
        codes = [self._converted(value, kind, node) for value in (first, second)]
        return Value(self.dialect.choice(test, *codes), kind, weak)

    def _call(self, node: ast.Call) -> Value:
        if node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
            self._refuse(node, f"`{ast.unparse(node)}`", "give values by position")
        function = self._callee(node.func)
        if function is None:
            self._refuse_call(node)
        arguments = [self._value(item) for item in node.args]
        if function in (builtins.min, builtins.max) and len(arguments) > 1:
            return self._extreme(function is builtins.min, arguments, node)
        value = self._call_of_one(function, arguments[0], node) if len(arguments) == 1 else None
        return self._refuse_call(node) if value is None else value

    def _refuse_call(self, node: ast.Call) -> NoReturn:
        known = f"and of math {', '.join((*_FUNCTIONS, 'floor', 'ceil', *_TESTS))}"
        self._refuse(
            node,
            f"the call `{ast.unparse(node)}`",
            f"there are min, max, abs, int, float, bool, types of NumPy, np.sqrt, {known}",
        )

    def _callee(self, node: ast.expr) -> Any:
        """Return the function that is called, if it is one of Python's, NumPy's or a type."""
        try:
            code = compile(ast.Expression(body=node), "<callee>", "eval")
            function = eval(code, {"__builtins__": {}}, self.constants)  # the user's own name
        except Exception:
            return None
        kinds = type, types.BuiltinFunctionType, np.ufunc
        known = isinstance(function, kinds) and not self._uses_variables(node)
        return function if known else None

    def _extreme(self, least: bool, values: list[Value], node: ast.Call) -> Value:
        result = values[0]
        for value in values[1:]:
            if "bool" in (result.type, value.type):
                self._refuse(node, f"`{ast.unparse(node)}` of truth values", "use `and` or `or`")
            kind, weak = _promoted(result, value)
            codes = [self._converted(item, kind, node) for item in (result, value)]
            result = Value(self.dialect.extreme(least, kind, *codes), kind, weak)
        return result

    def _call_of_one(self, function: Any, value: Value, node: ast.Call) -> Value | None:
        kinds = {int: "int64", float: "float64", bool: "bool"}
        if function in kinds:
            kind = kinds[function]
            code = self._converted(value, kind, node)
            return Value(code, kind, kind != "bool")
        if function in _NUMPY_TYPES:
            kind = _NUMPY_TYPES[function]
            return Value(self._converted(value, kind, node), kind)
        if value.type == "bool":
            return None
        if function is abs:
            return Value(self.dialect.absolute(value.type, value.code), value.type, value.weak)
        name = getattr(function, "__name__", "")
        if function in (math.floor, math.ceil):
            if not value.type.startswith("float"):
                return Value(self._converted(value, "int64", node), "int64", True)
            code = self._converted(value, "float64", node)
            return Value(self.dialect.rounded(name, code), "int64", True)
        if name in _TESTS and function in (getattr(math, name), getattr(np, name)):
            kind = value.type if value.type.startswith("float") else "float64"
            return Value(self.dialect.test(name, self._converted(value, kind, node)), "bool")
        if name in _FUNCTIONS and function is getattr(math, name):
            code = self._converted(value, "float64", node)
            return Value(self.dialect.function_of("float64", name, code), "float64", True)
        if function is np.sqrt:
            kind = value.type if value.type.startswith("float") else "float64"
            code = self._converted(value, kind, node)
            return Value(self.dialect.function_of(kind, "sqrt", code), kind)
        return None

    def _converted(self, value: Value, kind: str, node: Any) -> str:
        if value.type == kind:
            return value.code
        if value.weak and self.dialect.is_literal(value.code):
            number = self.dialect.number(value.code)
            if not _fits(number, kind):
                self._refuse(node, f"{number} as {kind}", "take a number within the type's limits")
            if not (kind.startswith(("int", "uint")) and isinstance(number, float)):
                return self.dialect.literal(number, kind)
        return self.dialect.conversion(value.type, kind, value.code)


_EXPRESSIONS: dict[type[ast.expr], Callable[[_Translator, Any], Value]] = {
    ast.Name: _Translator._name,
    ast.Attribute: _Translator._attribute,
    ast.BinOp: _Translator._binary,
    ast.UnaryOp: _Translator._unary,
    ast.BoolOp: _Translator._boolean,
    ast.Compare: _Translator._compare,
    ast.IfExp: _Translator._if_expression,
    ast.Call: _Translator._call,
}


def _promoted(left: Value, right: Value) -> tuple[str, bool]:
    """Return the common type of two numbers, and whether it is weak (NEP 50)."""
    if left.weak == right.weak:
        return np.result_type(left.type, right.type).name, left.weak
    weak, strong = (left, right) if left.weak else (right, left)
    if weak.type == "float64" and not strong.type.startswith("float"):
        return "float64", False
    return strong.type, False


def _fits(number: Any, kind: str) -> bool:
    if kind.startswith("float") or kind == "bool":
        return True
    if isinstance(number, float):
        return math.isfinite(number)
    limits = np.iinfo(kind)
    return bool(limits.min <= number <= limits.max)


def _parameter(source: Source) -> str:
    return f"{source.owner}_{source.name}" if source.owner else f"p_{source.name}"


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target


def _parsed(lines: Sequence[str]) -> ast.stmt | None:
    """Return the first statement of lines that may be indented."""
    text = "".join(lines)
    try:
        if not text[:1].isspace():
            return ast.parse(text).body[0]
        whole = ast.parse(f"if True:\n{text}").body[0]
    except (SyntaxError, IndexError, RecursionError, MemoryError):  # or a file that was changed
        return None
    return ast.increment_lineno(whole, -1).body[0]  # type: ignore[attr-defined, no-any-return]


def _walk_outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _walk_outside_functions(child)


def _nesting(text: str) -> int:
    """Return how many brackets are within each other."""
    deepest = depth = 0
    for sign in re.findall(r"[()]", text):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    return deepest


def _word(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n")[0]


def _listed(names: Any) -> str:
    return ", ".join(sorted(n for n in names if n != "self"))
