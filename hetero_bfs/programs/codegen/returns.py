"""Translates what a method returns: numbers and vectors, in the types that hold them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import zip_longest

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen.digits import TOLD, holds, holds_number
from hetero_bfs.programs.codegen.elements import Vector, Vectors
from hetero_bfs.programs.codegen.expressions import Value, common
from hetero_bfs.programs.codegen.method_source import (
    length_of,
    listed,
    scalars,
    walk_outside_functions,
    word,
)


@dataclass
class Returns(Vectors):
    """Translates values that a method returns."""

    num_results: int = 0
    first: Value | None = None  # the first returned value, without code

    def _returned(self, node: ast.Return) -> list[str]:
        """Return the code of the numbers that `node` returns."""
        items = [self.item(part) for part in self.parts(node)]
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

    def parts(self, node: ast.Return) -> list[ast.expr]:
        """Return the expressions of the returned items."""
        if node.value is None:
            self.refuse(node, "a return without a value", "return a value")
        return self._parts(node.value)

    def _parts(self, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.IfExp) and self._length(node) > 1:
            pairs = zip(self._parts(node.body), self._parts(node.orelse), strict=True)
            return [ast.copy_location(ast.IfExp(node.test, *pair), node) for pair in pairs]
        return node.elts if isinstance(node, ast.Tuple) else [node]

    def _length(self, node: ast.expr | None) -> int:
        if isinstance(node, ast.IfExp):
            lengths = {self._length(node.body), self._length(node.orelse)}
            if len(lengths) > 1:
                self.refuse(node, "a choice of unlike tuples", "return as many values on each path")
            return lengths.pop()
        return len(node.elts) if isinstance(node, ast.Tuple) else 1

    def count_results(self) -> int:
        least = len(self.method.results)
        most = least + (self.method.optional is not None)
        counts = set()
        for node in walk_outside_functions(self.source.definition):
            if isinstance(node, ast.Return):
                counts.add(self._length(node.value))
                if not least <= self._length(node.value) <= most:
                    wanted = f"{least}" if least == most else f"{least} or {most}"
                    self.refuse(node, f"{self._length(node.value)} returned values",
                                 f"return {wanted}: {self._meaning()}")  # fmt: skip
        if len(counts) > 1:
            self.refuse(
                self.source.definition, "unlike returns", "return as many values on each path"
            )
        return counts.pop() if counts else least

    def _meaning(self) -> str:
        if self.method.name in ("initial", "apply"):
            return f"{', '.join(self.method.stored)}, and if you like whether it is active"
        return listed(self.method.results)
