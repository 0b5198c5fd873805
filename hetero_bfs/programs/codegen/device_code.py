"""Writes Python as OpenCL C: a program's adapters, and functions of the host (`twins`).

The text of the kernel files follows the adapters. A function that chooses or predicts has one
source for both places. It reads numbers, and reads or writes items of arrays. It may call functions
before it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from hetero_bfs.programs.codegen.adapter_code import Adapters
from hetero_bfs.programs.codegen.dialects import C_TYPES, DeviceDialect, SingleDialect
from hetero_bfs.programs.codegen.elements import Vector
from hetero_bfs.programs.codegen.expressions import Value, parameter_name
from hetero_bfs.programs.codegen.method_source import Method, Source, declared, length_of
from hetero_bfs.programs.codegen.translate import Function, Statements, translate
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.schema import TOTALS

_PLACES = {"v": "uint", "iteration": "long"} | dict.fromkeys(
    ("begin", "count", "back_begin", "back_count"), "OFFSET"
)
_LISTS = {
    "backward_neighbours": "uint", "backward_weights": "WEIGHT", "neighbours": "uint",
    "weights": "WEIGHT", "active_in": "int",
}  # fmt: skip
"""The parameters of a function that goes through messages (HOST_MESSAGES), with types in OpenCL
C."""


def device_text(plan: Plan, has_double: bool) -> str:
    return _DeviceAdapters(plan, has_double).text()


class _DeviceAdapters(Adapters):
    array = "{}".format
    number = "(long){}[{}]".format
    sends = "active_in[{}] == iteration".format
    takes = "takes(v, {}, iteration, STATE_NAMES)".format
    messages, sums = "MESSAGES_NAMES", "shares"

    def __init__(self, plan: Plan, has_double: bool) -> None:
        dialect = DeviceDialect if has_double else SingleDialect
        super().__init__(plan, dialect)
        self._types = dialect.types
        self._fraction = "double" if has_double else "float"

    def of_run(self, name: str) -> str:
        return "integers[0]" if name == "num_vertices" else name

    def place_in(self, array: str, vertex: str, index: int) -> str:
        return f"(ulong){vertex} * {lengths(self.plan)[array]} + {index}"

    def _function(self, head: str, lines: Sequence[str]) -> str:
        return "\n".join([f"static {head}", "{", *(f"    {line}" for line in lines), "}", ""])

    def text(self) -> str:
        self.integers = ["num_vertices", *self.plan.parameters.integers]
        parts = [self._constants(), self._state()]
        parts += [f.code for name, f in self.functions.items() if name != "apply"]
        parts += [self._takes(), self._add_share()]
        parts += [self._fetch()] if self.plan.collects else [self._combine(), self._send()]
        head = "bool apply(const uint v, const MESSAGE combined, const long iteration, "
        parts += [
            self.functions["apply"].code,
            self._function("bool start(const uint v, TOTAL *shares, STATE)", self._start()),
            self._function(head + "TOTAL *shares, STATE)", self._apply()),
        ]
        if self.plan.collects:
            parts += [self._function("int collect(MESSAGES)", self._collect())]
        parts += [
            self._simple("float priority(const uint v, STATE)", "priority", "0.0f"),
            self._simple(
                "bool finished(const long iteration, const long num_active, STATE)",
                "finished",
                "false",
            ),
        ]
        return "\n".join(parts)

    def _constants(self) -> str:
        plan = self.plan
        message, weight = C_TYPES[plan.stored_type], plan.weight_type
        wide = np.dtype(plan.stored_type).itemsize == 8
        bits = "long" if wide else "int"
        identity = self.dialect.literal(plan.identity or 0, plan.stored_type)
        none = [self.dialect.literal(TOTALS[kind], "float64") for kind in plan.totals.values()]
        flags = {
            "WIDE": wide,
            "ALL_ACTIVE": plan.all_active,
            "HAS_IDENTITY": plan.identity is not None,
            "SPLITS": _splits(plan),
            "COLLECTS": bool(plan.collects),
            "COUNTS": plan.counts,
            "SENDS_BACK": plan.sends_back,
            "ACTIVE_APPLY": plan.active_apply,
            "WEIGHTED": plan.uses_weights,
            "PREPARED": plan.prepares,
            "HAS_PRIORITY": "priority" in plan.methods,
        }
        lines = [f"#define {name} {int(flag)}" for name, flag in flags.items()]
        return "\n".join(
            [
                *lines,
                f"#define NUM_TOTALS {len(plan.totals)}",
                f"#define MESSAGE {message}",
                f"#define BITS {bits}",
                f"#define TO_BITS(x) as_{bits}(x)",
                f"#define FROM_BITS(x) as_{message}(x)",
                f"#define IDENTITY {identity}",
                f"#define WEIGHT {C_TYPES[weight] if weight and plan.uses_weights else 'int'}",
                f"#define TOTAL {self._fraction}",
                f"#define NO_TOTALS {{{', '.join([*none, '0'])}}}",
            ]
        )

    def _state(self) -> str:
        parameters = [
            f"__global {'const ' if constant else ''}{kind} *{name}"
            for name, kind, constant in state_arrays(self.plan)
        ]
        names = [name for name, _, _ in state_arrays(self.plan)]
        text = f"#define STATE {', '.join(parameters)}\n#define STATE_NAMES {', '.join(names)}\n"
        if not self.plan.collects:
            return text
        needed = [f"const {kind} {name}" for name, kind in _PLACES.items()]
        needed += [f"__global const {kind} *{name}" for name, kind in _LISTS.items()]
        names = [*_PLACES, *_LISTS, "STATE_NAMES"]
        text += f"#define MESSAGES {', '.join([*needed, 'STATE'])}\n"
        return text + f"#define MESSAGES_NAMES {', '.join(names)}\n"

    def _send(self) -> str:
        head = "MESSAGE send(const uint u, const long iteration, const WEIGHT weight, STATE)"
        return self._function(head, [f"return (MESSAGE){self._call('message', 'u')};"])

    def _combine(self) -> str:
        head = "MESSAGE combine(const MESSAGE first, const MESSAGE second)"
        return self._function(head, [f"return {self.combination()};"])

    def _takes(self) -> str:
        vertex, message = self._receives()
        rest = "const long iteration, STATE)"
        pairs = zip(self._kinds(), self.names("message"), strict=True)
        given = ", ".join(f"const {kind} {name}" for kind, name in pairs)
        return self._function(
            f"bool receives(const uint v, {rest}", [f"return {vertex};"]
        ) + self._function(f"bool takes(const uint v, {given}, {rest}", [f"return {message};"])

    def _kinds(self) -> list[str]:
        """Return the type of each field of messages as the kernels have it."""
        if not self.plan.collects:
            return ["MESSAGE"]
        return [C_TYPES[kind] for kind in self.plan.messages.values()]

    def _assigned(
        self, to: Sequence[str], method: str, vertex: str = "v", held: Sequence[str] = ()
    ) -> str:
        given = self.arguments(method, vertex, held)
        if len(to) == 1:
            return f"{to[0]} = user_{method}({', '.join(given)});"
        return f"user_{method}({', '.join([*given, *(f'&{name}' for name in to)])});"

    def _at_entry(self, lists: str, entry: str) -> list[str]:
        weight = f"const WEIGHT weight = {lists}weights[{entry}];"
        return [
            f"const uint u = {lists}neighbours[{entry}];",
            *([weight] if self.plan.uses_weights else []),
            *(
                f"const {_stored(kind)} at_edge_{name} = {lists}edge_{name}[{entry}];"
                for name, kind in self.plan.edge_kinds.items()
            ),
        ]

    def _declared(self, kinds: Mapping[str, str]) -> list[str]:
        return [f"{self._types[kind]} {name};" for name, kind in kinds.items()]

    def _add_share(self) -> str:
        code = "total + share"
        for i, kind in enumerate(self.plan.totals.values()):
            if kind != "plus":
                code = f"i == {i} ? {self.added(kind, 'total', 'share')} : ({code})"
        head = "TOTAL add_share(const uint i, const TOTAL total, const TOTAL share)"
        return self._function(head, [f"return {code};"])


def state_arrays(plan: Plan) -> list[tuple[str, str, bool]]:
    """List the program's own arrays on a device: name, type in OpenCL C, whether it is constant."""
    kept = ("state", "new") if plan.collects else ("state",)
    arrays = [
        (f"{one}_{name}", _stored(kind), False) for one in kept for name, kind in plan.kinds.items()
    ]
    arrays += [
        (f"parameter_{name}", _stored(array.dtype.name), True)
        for name, array in plan.parameters.arrays.items()
    ]
    arrays += [
        (f"{lists}edge_{name}", _stored(kind), name not in plan.written_edges)
        for lists in plan.edge_lists for name, kind in plan.edge_kinds.items()
    ]  # fmt: skip
    arrays += [("names", "uint", True), ("degree", "uint", True), ("integers", "long", True)]
    if plan.parameters.fractions:
        arrays.append(("fractions", "double", True))
    return [*arrays, ("totals", "TOTAL", False)]


def lengths(plan: Plan) -> dict[str, int]:
    """Return the number of elements of vectors, by the name of their array."""
    kept, kinds = ("state", "new"), plan.kinds.items()
    found = {f"{one}_{name}": length_of(kind) for one in kept for name, kind in kinds}
    found |= {f"parameter_{n}": a.shape[1] for n, a in plan.parameters.arrays.items() if a.ndim > 1}
    return {name: length for name, length in found.items() if length}


def _splits(plan: Plan) -> bool:
    """Tell whether messages can be combined in any order; rounded float sums cannot."""
    rounds = plan.monoid.operation in ("plus", "a method")
    in_order = rounds and plan.stored_type.startswith("float")
    return plan.identity is not None and not in_order


def _stored(kind: str) -> str:
    base = kind.rpartition(")")[2]
    return "uchar" if base == "bool" else C_TYPES[base]


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

    function_of = "native_{1}({2})".format

    def extreme(self, least: bool, kind: str, left: str, right: str) -> str:
        return f"{'min' if least else 'max'}({left}, {right})"


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
        items = [self.value(part) for part in self.parts(node, node.value)]
        self.results = self.results or tuple(item.type for item in items)
        return [self.converted(*pair, node) for pair in zip(items, self.results, strict=True)]


def _number(code: str, kind: str) -> Value:
    return Value(code, kind, True, declared(kind, True))
