"""The source of a program's method: parsed, with its constants, and with positions for errors.

`Digits` tell how many digits the numbers of an expression may have, and so which types hold them.
NumPy's result types do not answer this: int32 with uint32 gives int64, float32 with int32 gives
float64. The digits come from types that the program declares: fields, arrays and conversions such
as `np.float64(...)`. Python's own numbers, and weights, take the type of the other operand.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from tokenize import TokenError
from types import CodeType
from typing import Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ProgramError


class Digits(IntEnum):
    """Digits of a number. An operation has the digits of the operand with most digits."""

    FEW = 0
    """Truth values, and Python's integers: they fit wherever they are used."""
    INTEGER32 = 1
    """32 bits, signed or not; integers wrap."""
    BEYOND_INT32 = 2
    """An argument that fits in uint32 but not in int32."""
    INTEGER64 = 3
    FRACTION = 4
    """Floats of no declared type, which may be rounded."""
    FLOAT32 = 5
    FLOAT64 = 6


_DECLARED = {
    "bool": Digits.FEW, "int32": Digits.INTEGER32, "uint32": Digits.INTEGER32,
    "int64": Digits.INTEGER64, "uint64": Digits.INTEGER64, "float32": Digits.FLOAT32,
    "float64": Digits.FLOAT64,
}  # fmt: skip
_MOST = _DECLARED | {"bool": Digits.FLOAT64, "uint32": Digits.BEYOND_INT32}
TOLD = {
    Digits.INTEGER32: "an integer of 32 bits", Digits.BEYOND_INT32: "an integer beyond int32",
    Digits.INTEGER64: "an integer of 64 bits", Digits.FRACTION: "a float",
    Digits.FLOAT32: "a float32", Digits.FLOAT64: "a float64",
}  # fmt: skip
"""Names for error messages."""

_LARGEST = float(np.finfo(np.float32).max)


def declared(kind: str, weak: bool = False) -> Digits:
    if weak:
        return Digits.FRACTION if kind.startswith("float") else Digits.FEW
    return _DECLARED[kind]


def holds(kind: str, digits: Digits) -> bool:
    """Tell whether a type can hold `digits`. A bool holds all: it says that the number is not 0."""
    return digits <= _MOST[kind]


def holds_number(kind: str, number: Any) -> bool:
    """Tell whether a type can hold a constant: integers exactly, floats rounded."""
    if kind == "bool" or not math.isfinite(number):
        return True  # other checks refuse infinity and NaN for integer types
    if kind.startswith("float"):
        return bool(abs(number) <= float(np.finfo(kind).max))
    limits = np.iinfo(kind)
    return bool(number == int(number) and limits.min <= number <= limits.max)


def of_argument(value: int | float | npt.NDArray[Any]) -> Digits:
    """Return the digits of a run's argument, from its value or the values of its array."""
    low = high = value
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "b" or value.size == 0:
            return Digits.FEW
        low, high = value.min(), value.max()
    if isinstance(low, float | np.floating):
        if low >= -_LARGEST and high <= _LARGEST:
            return Digits.FRACTION
        finite = np.abs(np.asarray(value)[np.isfinite(value)])
        return Digits.FLOAT64 if finite.max(initial=0.0) > _LARGEST else Digits.FRACTION
    if low >= -(2**31) and high < 2**31:
        return Digits.FEW
    return Digits.BEYOND_INT32 if low >= 0 and high < 2**32 else Digits.INTEGER64


def type_of_messages(kind: str, digits: Digits, fields: Mapping[str, str]) -> str:
    """Return the type of messages for a program that does not declare it.

    `kind` and `digits` are NumPy's type and the digits of the value that `message` returns.
    """
    kinds = list(fields.values())
    if digits == Digits.FLOAT32 or digits == Digits.FLOAT64:
        return digits.name.lower()
    if digits == Digits.FRACTION:
        return next((k for k in kinds if k.startswith("float")), "float64")
    if digits == Digits.FEW and (kinds[0] != "bool" or kind == "bool"):
        return kinds[0]
    if digits != Digits.FEW and _DECLARED[kind] == digits:
        return kind
    suits = (k for k in kinds if "int" in k and holds(k, digits))
    return next(suits, "int64")


MESSAGES = "messages"
"""Type of the parameter `messages`."""

FIELD_TYPES = ("bool", "int32", "int64", "uint32", "uint64", "float32", "float64")


def length_of(kind: str) -> int:
    """Return the number of elements of a vector's type, such as "(8,)float32"; 0 of a number's."""
    return int(np.dtype(kind).shape[0]) if kind.startswith("(") else 0


def scalars(kinds: Mapping[Any, str]) -> dict[str, str]:
    """Return names and types with vectors spread: element 3 of `factor` has the name 3_factor."""
    spread: dict[str, str] = {}
    for name, kind in kinds.items():
        length = length_of(kind)
        base = str(np.dtype(kind).base.name) if length else kind
        spread |= {f"{i}_{name}": base for i in range(length)} if length else {name: base}
    return spread


def vector_of(name: str) -> tuple[str, int]:
    """Return the vector and the index of a name by `scalars`; -1 if it is a number's name."""
    if not name[:1].isdigit():
        return name, -1
    index, _, vector = name.partition("_")
    return vector, int(index)


class Source(NamedTuple):
    """A value that a method reads: a field of `owner`, such as "state", or a name."""

    owner: str
    name: str
    type: str
    weak: bool


@dataclass
class Method:
    """A method to translate.

    Attributes of `self`, the user's `program`, are constants. `owners` has the types of the fields
    of each parameter that has some, such as "state", and `names` the other names that parameters
    may have here. `messages` has the types of a message's fields, or one type by the name "".
    `results` are the types of the returned values, `optional` the type of one more that may be
    returned. All other types may be vectors', such as "(8,)float32". `digits` has the types of
    Python's numbers and the caller's arrays, where the type does not say. `stored` tells where each
    result is stored, for errors: a result that would lose digits there is refused.
    """

    program: Any
    name: str
    owners: Mapping[str, Mapping[str, str]]
    names: Mapping[str, Source]
    results: Sequence[str]
    optional: str | None = None
    digits: Mapping[str, Digits] = field(default_factory=dict)
    stored: Sequence[str] = ()
    messages: Mapping[str, str] = field(default_factory=dict)


_PARSED: WeakKeyDictionary[Any, tuple[Any, int, ast.FunctionDef]] = WeakKeyDictionary()
"""Code, first line and definition of functions, for all dialects and later runs."""


def parameters_of(program: Any, name: str) -> list[str]:
    """Return the names of a method's parameters, without `self`.

    Raises `ProgramError` if the method is not a Python function.
    """
    try:
        signature = inspect.signature(getattr(program, name))
    except (TypeError, ValueError):
        raise ProgramError(
            f"{type(program).__name__}.{name}: it is no `def`; write it as one"
        ) from None
    return [p for p in signature.parameters if p != "self"]


def code_of(value: Any) -> Any:
    """Return a method's code, which changes if a module is reloaded; other values as they are."""
    function = getattr(value, "__func__", value)
    if "__wrapped__" in getattr(function, "__dict__", ()):
        function = inspect.unwrap(function)
    return getattr(function, "__code__", value)


Evaluated = dict[str, tuple[CodeType, Any]]
"""Constant expressions, compiled, and their values by `_fixed`."""


class MethodSource:
    """A method's definition and the constants that it can read.

    `evaluated` has the constant expressions that were read so far; more are added. Raises
    `ProgramError` if the source cannot be read, or is not a plain function.
    """

    def __init__(self, program: Any, name: str, evaluated: Evaluated) -> None:
        self.title = f"{type(program).__name__}.{name}"
        function = inspect.unwrap(getattr(program, name))
        function, code = getattr(function, "__func__", function), code_of(function)
        if function not in _PARSED or _PARSED[function][0] is not code:
            _PARSED[function] = code, *self._parse(function)
        _, self._first, self.definition = _PARSED[function]
        self._globals, self._evaluated = function.__globals__, evaluated
        self._own: dict[str, Any] = {}
        names, cells = function.__code__.co_freevars, function.__closure__ or ()
        for name, cell in zip(names, cells, strict=True):
            with contextlib.suppress(ValueError):  # a cell without a value yet
                self._own[name] = cell.cell_contents
        self._own["self"] = program

    def _parse(self, function: Any) -> tuple[int, ast.FunctionDef]:
        """Return a function's first line and its definition, which callers must not change."""
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError, SyntaxError, TokenError):
            raise ProgramError(
                f"{self.title}: its source cannot be read; define the class in a file or a "
                "notebook, not at a plain prompt"
            ) from None
        definition = _parsed(lines)
        if not isinstance(definition, ast.FunctionDef):
            raise ProgramError(
                f"{self.title}, line {first}: it is not a plain `def`; write it as one"
            )
        return first, definition

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of a constant expression. Exceptions of the user's code pass through."""
        code = compile(ast.Expression(body=node), "<constant>", "eval")
        value = self._value(code)
        self._evaluated[ast.unparse(node)] = code, _fixed(value)
        return value

    def is_constant(self, node: ast.expr) -> bool:
        """Tell whether an expression has the same value if it is evaluated again."""
        code, value = self._evaluated[ast.unparse(node)]
        return are_alike(value, _fixed(self._value(code)))

    def is_unchanged(self) -> bool:
        """Tell whether all expressions that were read have the same values now."""
        try:
            read = [*self._evaluated.values()]  # another thread may add some
            return all(are_alike(value, _fixed(self._value(code))) for code, value in read)
        except Exception:  # from the user's code
            return False

    def _value(self, code: CodeType) -> Any:
        if any(isinstance(part, CodeType) for part in code.co_consts):  # reads no local names
            return eval(code, {**self._globals, **self._own})
        return eval(code, self._globals, self._own)  # the user's own code

    def place(self, node: Any) -> str:
        return f"{self.title}, line {self._first + node.lineno - 1}"

    def refuse(self, node: Any, what: str, remedy: str) -> NoReturn:
        text = f"{self.place(node)}: {what} cannot be translated; {remedy}"
        raise ProgramError(" ".join(text.split()))


def _fixed(value: Any) -> Any:
    """Return a constant, or a text that tells the elements of a vector before they change."""
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return repr([(type(element).__name__, element) for element in value])
    return value


def are_alike(one: Any, other: Any) -> bool:
    """Tell whether constants have the same literal: 0.0 and -0.0 differ, NaN equals NaN."""
    return one is other or (type(one) is type(other) and repr(one) == repr(other))


def _parsed(lines: Sequence[str]) -> ast.stmt | None:
    text = "".join(lines)
    try:
        if not text[:1].isspace():
            return ast.parse(text).body[0]
        whole = ast.parse(f"if True:\n{text}").body[0]
    except (SyntaxError, IndexError, RecursionError, MemoryError):  # the file may have changed
        return None
    return ast.increment_lineno(whole, -1).body[0]  # type: ignore[attr-defined, no-any-return]


def listed(names: Any) -> str:
    """Return names in order, without `self`."""
    return ", ".join(sorted(n for n in names if n != "self"))


def walk_outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from walk_outside_functions(child)


def nesting(text: str) -> int:
    deepest = depth = 0
    for sign in re.findall(r"[()]", text):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    return deepest


def word(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n")[0]
