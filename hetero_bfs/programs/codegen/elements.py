"""Translates vectors of fixed length, and a method's return values.

Vectors are values, as tuples are: lists, list comprehensions, fields, and variables that hold one.
Each element is a variable or a parameter of its own. Loops and comprehensions over vectors are
written out, a pass for each element, with the loop's variables replaced in the parsed code. So an
index is known when the method is translated.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import zip_longest
from typing import Any

import numpy as np

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen.expressions import Expressions, Value, common
from hetero_bfs.programs.codegen.method_source import (
    TOLD,
    Source,
    holds,
    holds_number,
    length_of,
    listed,
    scalars,
    walk_outside_functions,
    word,
)

Vector = list[Value]
_Bound = dict[str, ast.expr]
_Pieces = list[ast.expr]

_MOST_PASSES = 4096
"""Passes of loops that are written out, in a method."""


@dataclass
class Vectors(Expressions):
    kinds: dict[str, Value] = field(default_factory=dict)  # known types of variables, without code
    held: int = 0
    passes: int = 0

    def hold(self, value: Value) -> Value:
        """Assign a value to a variable of no name."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Value:
        if not self._uses_variables(node):
            return super().value(node)
        if isinstance(node, ast.Subscript):
            return self._element(node)
        if isinstance(node, ast.Call) and len(node.args) == 1:
            fold = {sum: self._sum, min: self._extreme_of, max: self._extreme_of}.get(
                self._callee(node.func)
            )
            values = self._gone_over(node.args[0]) if fold else None
            if fold and values is not None:
                if not values:
                    self.refuse(node, f"`{ast.unparse(node)}` of nothing", "give it elements")
                return fold(values, node)
        if self.vector(node) is not None:
            self.refuse(
                node, f"`{ast.unparse(node)}`, a vector, as a number",
                "take an element, as in state.factor[0], or write [2 * x for x in state.factor]",
            )  # fmt: skip
        return super().value(node)

    def _gone_over(self, node: ast.expr) -> Vector | None:
        if isinstance(node, ast.GeneratorExp):
            return self._comprehension(node)
        return self.vector(node)

    def item(self, node: ast.expr) -> Value | Vector:
        values = self.vector(node)
        return self.value(node) if values is None else values

    def vector(self, node: ast.expr) -> Vector | None:
        """Return the elements of a vector; None if the expression is none."""
        if isinstance(node, ast.ListComp):
            return self._comprehension(node)
        if not self._uses_variables(node):
            value = self.constant(node)
            if not _is_sequence(value):
                return None
            return [self.literal(element, node) for element in value]
        if isinstance(node, ast.List):
            return [self.value(element) for element in node.elts]
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        if isinstance(node, ast.Name):
            return self._named(node)
        owner = node.value if isinstance(node, ast.Attribute) else None
        if not (isinstance(node, ast.Attribute) and isinstance(owner, ast.Name)):
            return None
        fields = self.method.owners.get(owner.id, {})
        return self._known(f"{owner.id}.", node.attr) or self._read_all(
            owner.id, node.attr, fields.get(node.attr, "")
        )

    def _named(self, node: ast.Name) -> Vector | None:
        name = node.id
        if values := self._known("", name) or self._known(f"{name}.", ""):
            return values
        if self.kinds.get(f"0_{name}") is not None and name not in self.parameters:
            self.refuse(node, f"{name!r}, which has no value on every path here", "assign it")
        if name not in self.parameters:
            return None
        if name in self.method.owners:
            return self._read_all(name, "", self.method.owners[name].get("", ""))
        return self._read_all("", name, self.method.names[name].type)

    def _known(self, owner: str, name: str) -> Vector:
        """Return the elements of a variable or a message."""
        values: Vector = []
        while (key := f"{owner}{len(values)}_{name}") in self.local:
            values.append(self.local[key])
        return values

    def _read_all(self, owner: str, name: str, kind: str) -> Vector | None:
        if not length_of(kind):
            return None
        return [
            self._read(Source(owner, element, base, False))
            for element, base in scalars({name: kind}).items()
        ]

    def _choice(self, node: ast.IfExp) -> Vector | None:
        first, second = self.vector(node.body), self.vector(node.orelse)
        if first is None and second is None:
            return None
        if first is None or second is None or len(first) != len(second):
            self.refuse(node, f"`{ast.unparse(node)}`, a choice of unlike vectors",
                         "give both the same length")  # fmt: skip
        test = self.condition(node.test)
        return [self.choice(test, *pair, node) for pair in zip(first, second, strict=True)]

    def _element(self, node: ast.Subscript) -> Value:
        values = self.vector(node.value)
        if values is None:
            if not self._uses_variables(node.value):
                self.value(node.value)  # refuses a dictionary
            self.refuse(node, f"`{ast.unparse(node)}`", "only vectors and constants have elements")
        if self._uses_variables(node.slice):
            self.refuse(
                node, f"`{ast.unparse(node)}` with an index that is not known beforehand",
                "take a number, or the variable of a loop `for i in range(8)` of constant bounds",
            )  # fmt: skip
        index = self.constant(node.slice)
        if not isinstance(index, int | np.integer) or not -len(values) <= index < len(values):
            self.refuse(node, f"`{ast.unparse(node)}`, index {index} of {len(values)} elements",
                         "take an integer within the vector")  # fmt: skip
        return values[index]

    def _sum(self, values: Vector, node: ast.Call) -> Value:
        sign = ast.copy_location(ast.BinOp(node, ast.Add(), node), node)
        zero = self.literal(0, node)
        return self._folded(lambda one, other: self._operate(sign, one, other), [zero, *values])

    def _extreme_of(self, values: Vector, node: ast.Call) -> Value:
        least = self._callee(node.func) is min
        return self._folded(lambda *pair: self._extreme(least, list(pair), node), values)

    def _folded(self, operate: Callable[[Value, Value], Value], values: Vector) -> Value:
        """Operate on all values in order, a line for each: brackets cannot be that deep."""
        return reduce(lambda one, other: self.hold(operate(one, other)), values)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Vector:
        (generator, *more) = node.generators
        if more or generator.ifs or generator.is_async:
            self.refuse(node, f"`{ast.unparse(node)}`", "write one `for`, without `if`")
        passes = self.passes_of(generator.target, generator.iter, [node.elt])
        return [self.value(_replaced(node.elt, bound)) for bound in passes]

    def written_out(self, node: ast.For) -> list[list[ast.stmt]] | None:
        """Return the body of each pass of a loop over vectors; None if it is another loop."""
        callee = self._callee(node.iter.func) if isinstance(node.iter, ast.Call) else None
        bound = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        if callee is range:
            indices = [
                n.slice
                for line in node.body
                for n in ast.walk(line)
                if isinstance(n, ast.Subscript)
            ]
            named = {n.id for i in indices for n in ast.walk(i) if isinstance(n, ast.Name)}
            if not named & bound or self._uses_variables(node.iter):
                return None
        elif not (callee in (zip, enumerate) or isinstance(node.iter, ast.Tuple)) and (
            self.vector(node.iter) is None
        ):
            return None
        for inner in _of_loop(node.body):
            if isinstance(inner, ast.Break | ast.Continue):
                self.refuse(inner, "`break` or `continue` in a loop over a vector", "use `if`")
        passes = self.passes_of(node.target, node.iter, node.body)
        return [[_replaced(line, one) for line in node.body] for one in passes]

    def passes_of(self, target: ast.expr, over: ast.expr, body: Sequence[ast.AST]) -> list[_Bound]:
        """Return a loop's variables in each pass: parsed constants and elements."""
        pieces = self._pieces(over)
        self.passes += len(pieces)
        if self.passes > _MOST_PASSES:
            self.refuse(over, f"more than {_MOST_PASSES} passes through vectors", "take fewer")
        read = {n.id for n in ast.walk(over) if isinstance(n, ast.Name)}
        fixed = read | {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        for node in (n for part in body for n in ast.walk(part) if isinstance(n, ast.Name)):
            if isinstance(node.ctx, ast.Store) and node.id in fixed:
                self.refuse(node, f"another {node.id!r} in a loop over it", "use another name")
        return [self._bind(target, piece) for piece in pieces]

    def _pieces(self, over: ast.expr) -> _Pieces:
        callee = self._callee(over.func) if isinstance(over, ast.Call) else None
        if isinstance(over, ast.Call) and callee in (zip, enumerate) and over.args:
            rows = [self._pieces(argument) for argument in over.args]
            if callee is enumerate:
                rows = [[ast.Constant(i) for i in range(len(rows[0]))], *rows]
            named = [keyword.arg for keyword in over.keywords]
            if len({*map(len, rows)}) > 1 or named not in ([], ["strict"]):
                self.refuse(over, f"`{ast.unparse(over)}`", "give vectors of one length")
            return [ast.Tuple([*row], ast.Load()) for row in zip(*rows, strict=True)]
        if isinstance(over, ast.List | ast.Tuple):
            return over.elts
        if not self._uses_variables(over):
            held = self.constant(over)
            if not _is_sequence(held):
                self.refuse(over, f"`{ast.unparse(over)}`", "go over a vector, or a range")
            return [
                ast.Constant(x) if type(x) is int else _subscript(over, i)
                for i, x in enumerate(held)
            ]
        values = self.vector(over) if isinstance(over, ast.Name | ast.Attribute) else None
        if values is None:
            self.refuse(over, f"a loop over `{ast.unparse(over)}`",
                         "go over a vector by its name, or a range of constants")  # fmt: skip
        return [_subscript(over, i) for i in range(len(values))]

    def _bind(self, target: ast.expr, piece: ast.expr) -> _Bound:
        if isinstance(target, ast.Name):
            return {target.id: piece}
        both = isinstance(target, ast.Tuple) and isinstance(piece, ast.Tuple)
        if not both or len(target.elts) != len(piece.elts):  # type: ignore[attr-defined]
            self.refuse(target, f"the loop's variables `{ast.unparse(target)}`",
                         "name one for each vector")  # fmt: skip
        pairs = zip(target.elts, piece.elts, strict=True)  # type: ignore[attr-defined]
        return reduce(lambda bound, pair: bound | self._bind(*pair), pairs, _Bound())


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1


def _subscript(vector: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(copy.deepcopy(vector), ast.Constant(index), ast.Load())


def _of_loop(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Return the parts of a loop's body, without inner loops' parts."""
    for node in body:
        yield node
        if not isinstance(node, ast.For | ast.While):
            yield from _of_loop([*ast.iter_child_nodes(node)])  # type: ignore[list-item]


class _Replacement(ast.NodeTransformer):
    def __init__(self, bound: _Bound) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._bound:
            return node
        piece = copy.deepcopy(self._bound[node.id])
        for part in ast.walk(piece):
            ast.copy_location(part, node)
        return piece


def _replaced(node: Any, bound: _Bound) -> Any:
    return _Replacement(bound).visit(copy.deepcopy(node))


@dataclass
class Returns(Vectors):
    num_results: int = 0
    first: Value | None = None  # the first returned value, without code

    def _returned(self, node: ast.Return) -> list[str]:
        items = [self.item(part) for part in self.parts(node, node.value)]
        named = zip_longest(self._kinds(), self.method.stored[: len(items)], fillvalue="")
        flat: Vector = []
        where: list[str] = []
        for item, (kind, stored) in zip(items, named, strict=True):
            values = [item] if isinstance(item, Value) else item
            length = 0 if isinstance(item, Value) else len(item)
            if length != length_of(kind):
                what = [f"a vector of {n}" if n else "a number" for n in (length, length_of(kind))]
                self.refuse(
                    node, f"{what[0]} in `{word(node)}`",
                    f"{stored or 'the value'} takes {what[1]}; a vector is declared as in "
                    "(numpy.float32, 8)",
                )  # fmt: skip
            flat += values
            where += [stored] * len(values)
        kinds = self.result_types()
        first = flat[0]._replace(code="")
        self.first = first if self.first is None else common(self.first, first)
        for one, kind, stored in zip(flat, kinds, where, strict=True):
            if stored:
                self._check_digits(one, kind, stored, node)
        return [self.converted(one, kind, node) for one, kind in zip(flat, kinds, strict=True)]

    def _check_digits(self, item: Value, kind: str, where: str, node: ast.Return) -> None:
        kept = holds(kind, item.digits)
        what = TOLD.get(item.digits, item.type)
        if self.dialect.is_literal(item.code):
            number = self.dialect.number(item.code)
            kept, what = holds_number(kind, number), repr(number)
        if not kept:
            raise ProgramError(
                f"{self.source.place(node)}: `{word(node)}` returns {what} for {where}, which "
                f"{'are' if where == 'messages' else 'is'} {kind} and would lose digits; declare "
                f"{where} with a type that holds it, or convert by np.{kind}(...)"
            )

    def _kinds(self) -> list[str]:
        kinds = [*self.method.results, *([self.method.optional] if self.method.optional else [])]
        return kinds[: self.num_results]

    def result_types(self) -> list[str]:
        return [*scalars(dict(enumerate(self._kinds()))).values()]

    def parts(self, node: ast.Return, value: ast.expr | None) -> list[ast.expr]:
        """Return each of the values; of a choice of tuples, a choice for each item."""
        if value is None:
            self.refuse(node, "a return without a value", "return a value")
        if isinstance(value, ast.IfExp):
            first, second = self.parts(node, value.body), self.parts(node, value.orelse)
            if len(first) != len(second):
                self.refuse(
                    value, "a choice of unlike tuples", "return as many values on each path"
                )
            if len(first) > 1:
                pairs = zip(first, second, strict=True)
                return [ast.copy_location(ast.IfExp(value.test, *p), value) for p in pairs]
        return value.elts if isinstance(value, ast.Tuple) else [value]

    def count_results(self) -> int:
        least = len(self.method.results)
        most = least + (self.method.optional is not None)
        counts = set()
        for node in walk_outside_functions(self.source.definition):
            if isinstance(node, ast.Return):
                count = len(self.parts(node, node.value)) if node.value else 1
                counts.add(count)
                if not least <= count <= most:
                    wanted = f"{least}" if least == most else f"{least} or {most}"
                    self.refuse(
                        node, f"{count} returned values", f"return {wanted}: {self._meaning()}"
                    )
        if len(counts) > 1:
            self.refuse(
                self.source.definition, "unlike returns", "return as many values on each path"
            )
        return counts.pop() if counts else least

    def _meaning(self) -> str:
        if self.method.name in ("initial", "apply"):
            return f"{', '.join(self.method.stored)}, and if you like whether it is active"
        return listed(self.method.results)
