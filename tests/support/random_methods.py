"""Random methods of vertex programs: text that the translator takes.

Import as `from random_methods import ...`: tests/conftest.py puts this folder on the path.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

FIELDS = {
    "i": "int32", "j": "int32", "k": "int64", "m": "int64", "u": "uint32", "w": "uint64",
    "f": "float32", "g": "float32", "d": "float64", "e": "float64", "b": "bool", "c": "bool",
}  # fmt: skip
WEAK = {"vertex": "int64", "other": "int64", "rate": "float64"}
RESULTS = ("int32", "int64", "uint32", "uint64", "float32", "float64", "bool")

_INTEGERS = ("0", "1", "2", "3", "7", "31", "32", "63", "64", "100")
_FRACTIONS = ("0.0", "0.5", "2.0", "1e10", "1e300", "0.1", "math.inf", "math.nan")
_SIGNED = ("-1", "-5", "-0.5", "np.int32(-3)", "np.float32(0.3)", "np.uint32(9)", "-math.inf")


class Part(NamedTuple):
    """An expression: its text, type, whether it is a Python number, and a constant."""

    text: str
    type: str
    weak: bool = False
    constant: bool = False


class MethodWriter:
    """Writes random methods, all different in what they use.

    An operation never has two constants: Python computes those, with other limits.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: dict[str, Part] = {}
        self.lines: list[str] = []
        self.count = 0

    def method(self, name: str, results: list[str]) -> str:
        """Return the text of a method that returns values of these types."""
        self.variables, self.lines, self.count = {}, [], 0
        parameters = ", ".join(["self", "state", *WEAK])
        self._line(1, f"def {name}({parameters}):")
        if self.random.random() < 0.2:
            self._line(2, '"""Describe it."""')
        for _ in range(self.random.randrange(3)):
            self._statement(2, len(results))
        self._end(2, len(results))
        return "\n".join(self.lines)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # Statements

    def _statement(self, depth: int, num_results: int) -> None:
        draw = self.random.random()
        if draw < 0.45 or depth > 3:
            self._assign(depth)
        elif draw < 0.55 and self.variables:
            self._augment(depth)
        elif draw < 0.62 and len(self.variables) > 1:
            self._exchange(depth)
        elif draw < 0.7:
            self._loop(depth, num_results)
        else:
            self._if(depth, num_results)

    def _declared(self, name: str, kind: str, weak: bool) -> None:
        self.variables[name] = Part(name, kind, weak)

    def _conversion(self) -> tuple[str, str, bool]:
        """Return a call that makes a value of a type, the type, and whether it is weak."""
        choices = [(f"np.{kind}", kind, False) for kind in RESULTS if kind != "bool"]
        choices += [("int", "int64", True), ("float", "float64", True), ("bool", "bool", False)]
        return self.random.choice(choices)

    def _assign(self, depth: int) -> None:
        call, kind, weak = self._conversion()
        name = f"x{self.count}"
        self.count += 1
        note = f": {call}" if self.random.random() < 0.1 else ""
        self._line(depth, f"{name}{note} = {call}({self.any_value(3).text})")
        self._declared(name, kind, weak)

    def _augment(self, depth: int) -> None:
        name, part = self.random.choice(list(self.variables.items()))
        if part.type == "bool":
            self._line(depth, f"{name} {self.random.choice('&|^')}= {self.condition(2).text}")
            return
        call = {"int64": "int", "float64": "float"}[part.type] if part.weak else f"np.{part.type}"
        signs = "+-*/" if part.type.startswith("float") else "+-*&|^%"
        value = f"{call}({self.number(2).text})"
        self._line(depth, f"{name} {self.random.choice(signs)}= {value}")

    def _exchange(self, depth: int) -> None:
        first = self.random.choice(list(self.variables))
        like = [n for n, p in self.variables.items() if p[1:] == self.variables[first][1:]]
        second = self.random.choice(like)
        if first != second:
            self._line(depth, f"{first}, {second} = {second}, {first}")

    def _if(self, depth: int, num_results: int) -> None:
        common = f"x{self.count}" if self.random.random() < 0.5 else None
        self.count += 1
        call, kind, weak = self._conversion()
        before = dict(self.variables)
        has_else = common is not None or self.random.random() < 0.5
        tests = ["if", *["elif"] * self.random.randrange(3), *["else"] * has_else]
        for word in tests:
            self.variables = dict(before)
            test = "" if word == "else" else f" {self.test(2)}"
            self._line(depth, f"{word}{test}:")
            for _ in range(self.random.randrange(2)):
                self._statement(depth + 1, num_results)
            if self.random.random() < 0.15 and word != "else":
                self._end(depth + 1, num_results)
            elif common is not None:
                self._line(depth + 1, f"{common} = {call}({self.any_value(2).text})")
            else:
                self._line(depth + 1, "pass")
        self.variables = before
        if common is not None:
            self._declared(common, kind, weak)

    def _loop(self, depth: int, num_results: int) -> None:
        """Write a loop of a few passes, which may end early."""
        counter = f"x{self.count}"
        self.count += 1
        before = dict(self.variables)
        if self.random.random() < 0.5:
            begin = self.random.choice(["", "1, ", f"int({self.number(1).text}) & 3, "])
            self._line(depth, f"for {counter} in range({begin}int({self.number(1).text}) & 7):")
            self._declared(counter, "int64", True)
        else:
            self._line(depth, f"{counter} = {self.random.randrange(4)}")
            before[counter] = Part(counter, "int64", True)  # in the loop, only its end changes it
            self._line(depth, f"while {counter} < 5 and {self.condition(2).text}:")
            self._line(depth + 1, f"{counter} = {counter} + 1")
        for _ in range(self.random.randrange(3)):
            self._statement(depth + 1, num_results)
        if self.random.random() < 0.5:
            self._line(depth + 1, f"if {self.test(2)}:")
            self._line(depth + 2, self.random.choice(["break", "continue"]))
        self._line(depth + 1, "pass")
        self.variables = before

    def _end(self, depth: int, num_results: int) -> None:
        """Return, by one line or on the paths of a condition."""
        if self.random.random() < 0.15 and depth < 4:
            self._line(depth, f"if {self.test(2)}:")
            self._end(depth + 1, num_results)
            self._line(depth, "else:")
            self._end(depth + 1, num_results)
            return
        if num_results > 1 and self.random.random() < 0.3:
            self._line(depth, f"return {self._choice_of_tuples(num_results)}")
            return
        values = [self.any_value(3).text for _ in range(num_results)]
        self._line(depth, f"return {', '.join(values)}")

    def _choice_of_tuples(self, num_results: int) -> str:
        makers = [self.random.choice([self.number, self.condition]) for _ in range(num_results)]
        first, second = (", ".join(m(3).text for m in makers) for _ in range(2))
        return f"({first}) if {self.test(2)} else ({second})"

    # Expressions

    def test(self, depth: int) -> str:
        """Return what decides: a truth value, or a number."""
        make = self.number if self.random.random() < 0.2 else self.condition
        return make(depth).text

    def any_value(self, depth: int) -> Part:
        """Return a number or a truth value."""
        return self.condition(depth) if self.random.random() < 0.2 else self.number(depth)

    def _known(self, wanted: Callable[[str], bool]) -> Part:
        choices = [Part(f"state.{name}", kind) for name, kind in FIELDS.items() if wanted(kind)]
        choices += [Part(name, kind, True) for name, kind in WEAK.items() if wanted(kind)]
        choices += 2 * [part for part in self.variables.values() if wanted(part.type)]
        return self.random.choice(choices)

    def _pair(self, depth: int) -> tuple[Part, Part]:
        """Return two numbers, of which one may be a constant that fits the other."""
        first, second = self.number(depth - 1), self.number(depth - 1)
        if self.random.random() < 0.3:
            second = self._constant(first)
        return (first, second) if self.random.random() < 0.7 else (second, first)

    def _constant(self, beside: Part) -> Part:
        unsigned = beside.type.startswith("u")
        texts = _INTEGERS if unsigned else _INTEGERS + _FRACTIONS + _SIGNED
        text = self.random.choice(texts)
        if text.startswith("np."):
            return Part(text, text[3 : text.index("(")], False, True)
        fraction = "." in text or "e" in text
        return Part(text, "float64" if fraction else "int64", True, True)

    def number(self, depth: int) -> Part:
        """Return a number of any type."""
        if depth <= 0 or self.random.random() < 0.15:
            return self._known(lambda kind: kind != "bool")
        makers = [self._arithmetic] * 8 + [self._call, self._negated, self._chosen, self._extreme]
        return self.random.choice(makers)(depth)

    def _arithmetic(self, depth: int) -> Part:
        left, right = self._pair(depth)
        kind, weak = common(left, right)
        signs = ["+", "-", "*", "/"]
        if not kind.startswith("float"):
            signs += ["//", "%", "<<", ">>", "&", "|", "^"] * 2
        sign = self.random.choice(signs)
        if sign == "/" and not kind.startswith("float"):
            kind = "float64"
        return Part(f"({left.text} {sign} {right.text})", kind, weak)

    def _negated(self, depth: int) -> Part:
        value = self.number(depth - 1)
        signs = "-+" if value.type.startswith("float") else "-+~"
        text = "".join(self.random.choice(signs) for _ in range(self.random.randrange(1, 3)))
        return value._replace(text=f"({text}{value.text})")

    def _chosen(self, depth: int) -> Part:
        left, right = self._pair(depth)
        text = f"({left.text} if {self.test(depth - 1)} else {right.text})"
        return Part(text, *common(left, right))

    def _extreme(self, depth: int) -> Part:
        parts = list(self._pair(depth))
        result = Part("", *common(*parts))
        if self.random.random() < 0.3:
            parts.append(self.number(depth - 1))
            result = Part("", *common(result, parts[2]))
        texts = ", ".join(part.text for part in parts)
        return result._replace(text=f"{self.random.choice(['min', 'max'])}({texts})")

    def _call(self, depth: int) -> Part:
        draw = self.random.random()
        value = self.number(depth - 1)
        if draw < 0.15:
            return value._replace(text=f"abs({value.text})")
        if draw < 0.3:
            name = self.random.choice(["floor", "ceil"])
            return Part(f"math.{name}({value.text})", "int64", True)
        if draw < 0.4:
            return Part(f"math.sqrt({value.text})", "float64", True)
        if draw < 0.5:
            kind = value.type if value.type.startswith("float") else "float64"
            return Part(f"np.sqrt({value.text})", kind)
        call, kind, weak = self._conversion()
        if kind == "bool":
            return value
        return Part(f"{call}({self.any_value(depth - 1).text})", kind, weak)

    def condition(self, depth: int) -> Part:
        """Return a truth value."""
        if depth <= 0 or self.random.random() < 0.1:
            return self._known(lambda kind: kind == "bool")
        draw = self.random.random()
        if draw < 0.5:
            text = self._comparison(depth)
        elif draw < 0.65:
            word = self.random.choice([" and ", " or "])
            parts = [self.condition(depth - 1) for _ in range(self.random.randrange(2, 4))]
            text = word.join(part.text for part in parts)
        elif draw < 0.75:
            text = f"not {self.test(depth - 1)}"
        elif draw < 0.85:
            sign = self.random.choice(["&", "|", "^", "==", "!=", "<", ">="])
            text = f"{self.condition(depth - 1).text} {sign} {self.condition(depth - 1).text}"
        elif draw < 0.93:
            name = self.random.choice(["math.isinf", "math.isnan", "np.isinf", "np.isnan"])
            return Part(f"{name}({self.number(depth - 1).text})", "bool")
        else:
            return Part(f"bool({self.any_value(depth - 1).text})", "bool")
        return Part(f"({text})", "bool")

    def _comparison(self, depth: int) -> str:
        parts = list(self._pair(depth))
        if self.random.random() < 0.25 and not parts[1].constant:
            parts.append(self.number(depth - 1))
        signs = ["==", "!=", "<", "<=", ">", ">="]
        text = parts[0].text
        for part in parts[1:]:
            text += f" {self.random.choice(signs)} {part.text}"
        return text


def common(left: Part, right: Part) -> tuple[str, bool]:
    """Return the type of an operation on two numbers, and whether it is weak (NEP 50)."""
    if left.weak == right.weak:
        return np.promote_types(left.type, right.type).name, left.weak
    weak, strong = (left, right) if left.weak else (right, left)
    if weak.type.startswith("float") and not strong.type.startswith("float"):
        return "float64", False
    return strong.type, False
