"""Writes the host's functions that choose and predict as OpenCL C, so that each has one source.

A function reads numbers, and reads or writes items of arrays. It may call functions before it.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from types import SimpleNamespace
from typing import Any

from hetero_bfs.programs.codegen.dialects import SingleDialect
from hetero_bfs.programs.codegen.elements import Vector
from hetero_bfs.programs.codegen.expressions import Value, parameter_name
from hetero_bfs.programs.codegen.method_source import Method, Source, declared
from hetero_bfs.programs.codegen.translate import Function, Statements, translate


@cache
def twins(functions: tuple[Any, ...], **kinds: str) -> str:
    """Return functions, compiled or plain Python, as OpenCL C.

    Parameters are floats, except those in `kinds`: "bool", "int64", or an array's type in C.
    """
    written: dict[str, Function] = {}
    for function in functions:
        plain = inspect.unwrap(function)
        names = inspect.signature(plain).parameters
        sources = {name: Source("", name, kinds.get(name, "float64"), True) for name in names}
        name = plain.__name__
        method = Method(SimpleNamespace(**{name: plain}, twins=written), name, {}, sources, ())
        written[name] = translate(method, _FastDialect(), {}, _Twin)
    return "\n".join(function.code for function in written.values())


class _FastDialect(SingleDialect):
    """Predictions need neither doubles nor the last digits."""

    def extreme(self, least: bool, kind: str, left: str, right: str) -> str:
        return f"{'min' if least else 'max'}({left}, {right})"

    def function_of(self, kind: str, name: str, code: str) -> str:
        return f"native_{name}({code})"


class _Twin(Statements):
    results: tuple[str, ...] = ()

    def run(self) -> Function:
        sources = list(self.method.names.values())
        self.parameters = list(self.method.names)
        self._note_assigned()
        self._block(self.source.definition.body)
        parameters = [(parameter_name(source), source.type) for source in sources]
        name = self.method.name
        code = self.dialect.function(name, parameters, self.results, self.lines)
        first = _number("", self.results[0] if self.results else "void")
        return Function(name, sources, len(self.results), code, first)

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Subscript):
            return _number(self._item(node), "float64")
        twin = self._twin(node)
        if twin is not None:
            return twin.first._replace(code=self._call_of_twin(node))
        return super().value(node)

    def _twin(self, node: ast.expr) -> Function | None:
        """Return the twin that an expression calls."""
        if not isinstance(node, ast.Call) or self._uses_variables(node.func):
            return None
        called = inspect.unwrap(self.source.evaluate(node.func))
        twin: Function | None = self.method.program.twins.get(getattr(called, "__name__", ""))
        return twin

    def _call_of_twin(self, node: Any, results: tuple[str, ...] = ()) -> str:
        twin = self._twin(node)
        assert twin is not None
        pairs = zip(node.args, twin.parameters, strict=True)
        given = [self.converted(self.value(arg), source.type, node) for arg, source in pairs]
        return f"{twin.name}({', '.join([*given, *results])})"

    def _item(self, node: ast.Subscript) -> str:
        return f"{self.value(node.value).code}[{self.value(node.slice).code}]"

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call)):
            super()._assign(node)
            return
        names = [f"held_{self.held + i}" for i in range(1, 1 + len(target.elts))]
        self.held += len(names)
        self.dialect.variables |= dict.fromkeys(names, "float64")
        self._emit(self._call_of_twin(node.value, tuple(f"&v_{name}" for name in names)) + ";")
        for item, name in zip(target.elts, names, strict=True):
            self._assign_one(item, _number(f"v_{name}", "float64"))

    def written_out(self, node: ast.For) -> None:
        """Leave all loops: arrays are read at any index."""

    def _assign_one(self, target: ast.expr, value: Value | Vector) -> None:
        if isinstance(target, ast.Subscript) and isinstance(value, Value):
            self._emit(f"{self._item(target)} = {self.converted(value, 'float64', target)};")
        else:
            super()._assign_one(target, value)

    def _returned(self, node: ast.Return) -> list[str]:
        items = [self.value(part) for part in self.parts(node)]
        self.results = self.results or tuple(item.type for item in items)
        return [self.converted(*pair, node) for pair in zip(items, self.results, strict=True)]


def _number(code: str, kind: str) -> Value:
    return Value(code, kind, True, declared(kind, True))
