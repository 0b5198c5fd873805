"""The target languages of translated methods: Python for Numba, and OpenCL C.

Both write every conversion explicitly, and put every operation in brackets. Python and C differ in
division, remainder, minimum, and conversion of floats to integers. There both call functions of
kernels/scalars.py and kernels/scalars.cl.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.programs.codegen.method_source import MESSAGES

C_TYPES = {
    "bool": "bool", "int32": "int", "int64": "long", "uint32": "uint", "uint64": "ulong",
    "float32": "float", "float64": "double",
}  # fmt: skip

HOST_MESSAGES = "arrays, active, v, begin, count, back_begin, back_count"
"""Arguments of a function that goes through the messages to vertex v. First come `count` edges of
the list of incoming edges, from entry `begin`. Then come `back_count` edges of the list of outgoing
edges, from entry `back_begin`, for messages against edges."""

_NAMED = {
    "//": "floor_divide", "%": "modulo", "<<": "shift_left", ">>": "shift_right",
}  # fmt: skip

Template = Callable[..., str]
Names = Sequence[str]
Pairs = Sequence[tuple[str, str]]


class Dialect(ABC):
    """A target language. An object writes one method, and holds its variables.

    Attributes of type `Template` are format strings, called with the codes of their parts.
    """

    end_block = ""
    nothing = ""
    comparison: Template = "({1} {0} {2})".format
    words: ClassVar[Mapping[str, str]]
    """Code of "and" and "or"."""
    negation: Template
    choice: Template
    """Of a test and two values."""
    test: Template
    """Of "isinf" or "isnan", and a number."""
    begin_if: Template
    begin_else: Template
    leave: Template
    """Of "break" or "continue"."""
    begin_while: Template
    begin_range: Template
    """Of a loop's number, begin and end. The counter is c_ and the number."""
    begin_messages: Template
    """Of the number of a loop over the places of messages to a vertex."""
    assign: Template
    unary: Template
    """Of "-" or "~", a number's type, and the number."""
    absolute: Template
    """Of a number's type, and the number."""
    function_of: Template
    """Of a number's type, a function's name, and the number."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self._literals: dict[str, Any] = {}

    def literal(self, value: Any, kind: str) -> str:
        code = self._literal(value, kind)
        self._literals[code] = value
        return code

    def is_literal(self, code: str) -> bool:
        return code in self._literals

    def number(self, code: str) -> Any:
        """Return the number that a literal's code stands for."""
        return self._literals[code]

    def boolean(self, operation: str, codes: Names) -> str:
        """Join truth values by "and" or "or"."""
        return f"({f' {self.words[operation]} '.join(codes)})"

    def extreme(self, least: bool, kind: str, left: str, right: str) -> str:
        """Return the smaller or greater number, as Python's min and max do."""
        return f"{self._named('lesser' if least else 'greater', kind)}({left}, {right})"

    @abstractmethod
    def _named(self, function: str, kind: str) -> str:
        """Return the name of a function of scalars.py or scalars.cl for numbers of a type."""

    @abstractmethod
    def _literal(self, value: Any, kind: str) -> str: ...

    @abstractmethod
    def conversion(self, source: str, target: str, code: str) -> str:
        """Convert between types; floats to integers towards zero, within the type's limits."""

    @abstractmethod
    def binary(self, operation: str, kind: str, left: str, right: str) -> str:
        """Operate on two numbers of type `kind`; the result has that type, too."""

    @abstractmethod
    def rounded(self, name: str, code: str) -> str:
        """Round a float64 by "floor" or "ceil" to an int64."""

    @abstractmethod
    def fetch(self, loop: int, held: Mapping[str, str]) -> list[str]:
        """Fetch a message into variables, by name and type; go on if there is none."""

    @abstractmethod
    def return_values(self, codes: Names) -> list[str]: ...

    @abstractmethod
    def function(self, name: str, parameters: Pairs, results: Names, lines: Names) -> str:
        """Define a function. `parameters` are pairs of name and type, `results` are types."""


def _nearest(value: Any, kind: str) -> float:
    """Round a number to a float type; infinity if it is too large."""
    with np.errstate(over="ignore"):
        return float(np.dtype(kind).type(value))


class HostDialect(Dialect):
    nothing = "pass"
    words: ClassVar = {"and": "and", "or": "or"}
    negation = "(not {})".format
    choice = "({1} if {0} else {2})".format
    test = "bool(np.{}({}))".format
    begin_if = "if {}:".format
    begin_else = "else:".format
    leave = "{}".format
    begin_while = "while {}:".format
    begin_range = "for c_{} in range({}, {}):".format
    begin_messages = "for k_{} in range(count + back_count):".format
    assign = "{} = {}".format
    unary = "np.{1}({0}({2}))".format
    absolute = "np.{}(abs({}))".format

    def _named(self, function: str, kind: str) -> str:
        return function

    def _literal(self, value: Any, kind: str) -> str:
        if kind == "bool":
            return "True" if value else "False"
        if not kind.startswith("float"):
            return f"np.{kind}({int(value)})"
        number = _nearest(value, kind)
        if math.isfinite(number):
            return f"np.{kind}({number!r})"
        text = "np.nan" if math.isnan(number) else ("np.inf" if number > 0 else "-np.inf")
        return f"np.{kind}({text})"

    def conversion(self, source: str, target: str, code: str) -> str:
        if target == "bool":
            return f"({code} != 0)"
        if source == "bool":
            return f"np.{target}(1 if {code} else 0)"
        if source.startswith("float") and not target.startswith("float"):
            return _towards_zero(target, code)
        return f"np.{target}({code})"

    def binary(self, operation: str, kind: str, left: str, right: str) -> str:
        if operation == "/" or operation in _NAMED:
            return f"np.{kind}({_NAMED.get(operation, 'divide')}({left}, {right}))"
        if kind == "bool":
            return f"bool({left} {operation} {right})"
        if kind == "int64" and operation in "+-*":  # signed overflow is undefined in Numba
            return f"np.int64(np.uint64({left}) {operation} np.uint64({right}))"
        return f"np.{kind}({left} {operation} {right})"

    def rounded(self, name: str, code: str) -> str:
        return _towards_zero("int64", f"np.{name}({code})")

    def function_of(self, kind: str, name: str, code: str) -> str:
        return f"np.{kind}(np.{'arctan' if name == 'atan' else name}({code}))"

    def fetch(self, loop: int, held: Mapping[str, str]) -> list[str]:
        got = f"is_sent_{loop}"
        return [
            f"{', '.join([got, *held])} = fetch({HOST_MESSAGES}, k_{loop})",
            f"if not {got}:",
            "    continue",
        ]

    def return_values(self, codes: Names) -> list[str]:
        return [f"return {', '.join(codes)}"]

    def function(self, name: str, parameters: Pairs, results: Names, lines: Names) -> str:
        given = [HOST_MESSAGES if kind == MESSAGES else p for p, kind in parameters]
        head = f"@inlined\ndef {name}({', '.join(given)}):"
        return "\n".join([head, *lines, ""])


def _towards_zero(target: str, code: str) -> str:
    if target in ("int64", "uint64"):
        return f"to_{target}({code})"
    limits = np.iinfo(target)
    low, high = f"np.int64({limits.min})", f"np.int64({limits.max})"
    return f"np.{target}(lesser(greater(to_int64({code}), {low}), {high}))"


class DeviceDialect(Dialect):
    """OpenCL C. A function with several results writes them to the pointers r0, r1 and so on."""

    types: ClassVar[Mapping[str, str]] = C_TYPES
    nothing = ";"
    end_block = "}"
    words: ClassVar = {"and": "&&", "or": "||"}
    negation = "(!{})".format
    choice = "({} ? {} : {})".format
    test = "({}({}) != 0)".format
    begin_if = "if ({}) {{".format
    begin_else = "}} else {{".format
    leave = "{};".format
    begin_while = "while ({}) {{".format
    begin_range = "for (long c_{0} = {1}, e_{0} = {2}; c_{0} < e_{0}; c_{0}++) {{".format
    begin_messages = "for (OFFSET k_{0} = 0; k_{0} < count + back_count; k_{0}++) {{".format
    assign = "{} = {};".format
    function_of = "{1}({2})".format

    def _named(self, function: str, kind: str) -> str:
        return f"{function}_{self.types[kind]}"

    def _literal(self, value: Any, kind: str) -> str:
        if kind == "bool":
            return "true" if value else "false"
        name = self.types[kind]
        if kind.startswith("float"):
            number = _nearest(value, "float32" if name == "float" else "float64")
            if math.isnan(number):
                return f"({name})NAN"
            if math.isinf(number):
                return f"({name})INFINITY" if number > 0 else f"(-({name})INFINITY)"
            return f"({name})({number.hex()}{'f' if name == 'float' else ''})"
        if kind == "uint64":
            return f"{int(value)}UL"
        if value == -(2**63):
            return "(-9223372036854775807L - 1)"
        return f"({name})({int(value)}L)"

    def conversion(self, source: str, target: str, code: str) -> str:
        if target == "bool":
            return f"({code} != 0)"
        if source == "bool":
            return f"({self.types[target]})({code} ? 1 : 0)"
        if source.startswith("float") and not target.startswith("float"):
            return f"{self.types[target]}_of_{self.types[source]}({code})"
        return f"({self.types[target]})({code})"

    def binary(self, operation: str, kind: str, left: str, right: str) -> str:
        name = self.types[kind]
        if operation == "/":
            return f"({left} / {right})"
        if operation in _NAMED:
            return f"{self._named(_NAMED[operation], kind)}({left}, {right})"
        if kind.startswith("int") and operation in "+-*":  # signed overflow is undefined in C
            unsigned = f"u{name}"
            return f"({name})(({unsigned})({left}) {operation} ({unsigned})({right}))"
        if kind == "bool":
            return f"(bool)({left} {operation} {right})"
        return f"({name})({left} {operation} {right})"

    def unary(self, operation: str, kind: str, code: str) -> str:
        name = self.types[kind]
        if kind.startswith("int") and operation == "-":
            return f"({name})(0 - (u{name})({code}))"
        return f"({name})({operation}({code}))"

    def absolute(self, kind: str, code: str) -> str:
        if kind.startswith("float"):
            return f"fabs({code})"
        return code if kind.startswith("u") else f"{self._named('absolute', kind)}({code})"

    def rounded(self, name: str, code: str) -> str:
        return f"long_of_{self.types['float64']}({name}({code}))"

    def fetch(self, loop: int, held: Mapping[str, str]) -> list[str]:
        got = {f"is_sent_{loop}": "bool", **held}
        return [
            *(f"{self.types[kind]} {name};" for name, kind in got.items()),
            f"fetch(MESSAGES_NAMES, k_{loop}, {', '.join(f'&{name}' for name in got)});",
            f"if (!is_sent_{loop})",
            "    continue;",
        ]

    def return_values(self, codes: Names) -> list[str]:
        if len(codes) == 1:
            return [f"return {codes[0]};"]
        return [*(f"*r{i} = {code};" for i, code in enumerate(codes)), "return;"]

    def function(self, name: str, parameters: Pairs, results: Names, lines: Names) -> str:
        given = [
            "MESSAGES" if kind == MESSAGES else f"{self.types.get(kind, kind)} const {p}"
            for p, kind in parameters
        ]
        result = self.types[results[0]] if results else "void"
        if len(results) > 1:
            result = "void"
            given += [f"{self.types[kind]} *r{i}" for i, kind in enumerate(results)]
        head = f"static {result} {name}({', '.join(given) or 'void'})\n{{"
        variables = [f"    {self.types[kind]} v_{v};" for v, kind in self.variables.items()]
        return "\n".join([head, *variables, *lines, "}", ""])


class SingleDialect(DeviceDialect):
    """OpenCL C for devices without doubles: float64 is computed as float."""

    types: ClassVar[Mapping[str, str]] = {**C_TYPES, "float64": "float"}
