"""Writes a program's adapters as OpenCL C. The text of the kernel files follows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hetero_bfs.programs.codegen.adapter_code import Adapters, starts_active
from hetero_bfs.programs.codegen.dialects import C_TYPES, DeviceDialect, SingleDialect
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.schema import TOTALS


def device_text(plan: Plan, has_double: bool) -> str:
    return _DeviceAdapters(plan, has_double).text()


class _DeviceAdapters(Adapters):
    def __init__(self, plan: Plan, has_double: bool) -> None:
        super().__init__(plan, DeviceDialect if has_double else SingleDialect)
        self._fraction = "double" if has_double else "float"

    def array(self, name: str) -> str:
        return name

    def of_run(self, name: str) -> str:
        return "integers[0]" if name == "num_vertices" else name

    def _number(self, array: str, vertex: str) -> str:
        return f"(long){array}[{vertex}]"

    def text(self) -> str:
        self.integers = ["num_vertices", *self.plan.parameters.integers]
        parts = [self._constants(), self._state()]
        parts += [function.code for function in self.functions.values()]
        parts += [self._combine(), self._send(), self._receives(), self._add_share()]
        parts += [self._start(), self._apply()]
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
        return f"#define STATE {', '.join(parameters)}\n#define STATE_NAMES {', '.join(names)}\n"

    def _call(self, method: str, vertex: str = "v", held: Sequence[str] = ()) -> str:
        return f"user_{method}({', '.join(self.arguments(method, vertex, held))})"

    def _simple(self, head: str, method: str, default: str) -> str:
        body = self._call(method) if method in self.functions else default
        return _device_function(head, [f"return {body};"])

    def _send(self) -> str:
        head = "MESSAGE send(const uint u, const long iteration, const WEIGHT weight, STATE)"
        return _device_function(head, [f"return (MESSAGE){self._call('message', 'u')};"])

    def _combine(self) -> str:
        head = "MESSAGE combine(const MESSAGE first, const MESSAGE second)"
        return _device_function(head, [f"return {self.combination()};"])

    def _receives(self) -> str:
        call = self._call("receives") if "receives" in self.functions else "true"
        vertex, message = ("true", call) if self.plan.receives_messages else (call, "true")
        rest = "const long iteration, STATE)"
        return _device_function(
            f"bool receives(const uint v, {rest}", [f"return {vertex};"]
        ) + _device_function(
            f"bool takes(const uint v, const MESSAGE message, {rest}", [f"return {message};"]
        )

    def _store(self, method: str) -> list[str]:
        """Return the lines that call `initial` or `apply` and store the new state."""
        fields = self.plan.fields
        lines = [f"{C_TYPES[kind]} state_new_{name};" for name, kind in fields.items()]
        results = [f"state_new_{name}" for name in fields]
        if self.returns_activity(method):
            lines.append("bool is_active;")
            results.append("is_active")
        arguments = self.arguments(method)
        if len(results) == 1:
            lines.append(f"{results[0]} = user_{method}({', '.join(arguments)});")
        else:
            given = ", ".join([*arguments, *(f"&{name}" for name in results)])
            lines.append(f"user_{method}({given});")
        return lines + [f"state_{name}[v] = state_new_{name};" for name in fields]

    def _measured(self) -> list[str]:
        """Return the lines that add the vertex's shares to the sums."""
        totals = self.plan.totals
        if not totals:
            return []
        held = [f"before_{name}" for name in self.plan.fields]
        arguments = self.arguments("measure", held=held)
        if len(totals) == 1:
            return [f"shares[0] = add_share(0, shares[0], user_measure({', '.join(arguments)}));"]
        names = [f"share_{i}" for i in range(len(totals))]
        given = ", ".join([*arguments, *(f"&{name}" for name in names)])
        return [
            f"{self._fraction} {', '.join(names)};",
            f"user_measure({given});",
            *(f"shares[{i}] = add_share({i}, shares[{i}], share_{i});" for i in range(len(names))),
        ]

    def _add_share(self) -> str:
        code = "total + share"
        for i, kind in enumerate(self.plan.totals.values()):
            if kind != "plus":
                code = f"i == {i} ? {self.added(kind, 'total', 'share')} : ({code})"
        head = "TOTAL add_share(const uint i, const TOTAL total, const TOTAL share)"
        return _device_function(head, [f"return {code};"])

    def _start(self) -> str:
        fields = self.plan.fields
        lines = self._store("initial")
        if self.plan.totals:
            kinds = fields.items()
            lines += [f"const {C_TYPES[k]} before_{n} = state_new_{n};" for n, k in kinds]
        lines += [*self._measured(), starts_active(self, "state_new_") + ";"]
        return _device_function("bool start(const uint v, TOTAL *shares, STATE)", lines)

    def _apply(self) -> str:
        fields = self.plan.fields
        lines = [
            f"const {C_TYPES[kind]} before_{name} = {self._field(name, 'v')};"
            for name, kind in fields.items()
        ]
        lines += self._store("apply") + self._measured()
        changed = [f"!(state_new_{f} == before_{f}" + (
            f" || (isnan(state_new_{f}) && isnan(before_{f})))" if kind.startswith("float") else ")"
        ) for f, kind in fields.items()]  # fmt: skip
        active = "is_active" if self.returns_activity("apply") else " || ".join(changed)
        head = "bool apply(const uint v, const MESSAGE combined, const long iteration, "
        return _device_function(head + "TOTAL *shares, STATE)", [*lines, f"return {active};"])


def state_arrays(plan: Plan) -> list[tuple[str, str, bool]]:
    """List the program's own arrays on a device: name, type in OpenCL C, whether it is constant."""
    arrays = [(f"state_{name}", _stored(kind), False) for name, kind in plan.fields.items()]
    arrays += [
        (f"parameter_{name}", _stored(array.dtype.name), True)
        for name, array in plan.parameters.arrays.items()
    ]
    arrays += [("names", "uint", True), ("degree", "uint", True), ("integers", "long", True)]
    if plan.parameters.fractions:
        arrays.append(("fractions", "double", True))
    return [*arrays, ("totals", "TOTAL", False)]


def _splits(plan: Plan) -> bool:
    """Tell whether messages can be combined in any order; rounded float sums cannot."""
    rounds = plan.monoid.operation in ("plus", "a method")
    in_order = rounds and plan.stored_type.startswith("float")
    return plan.identity is not None and not in_order


def _stored(kind: str) -> str:
    return "uchar" if kind == "bool" else C_TYPES[kind]


def _device_function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"static {head}", "{", *(f"    {line}" for line in lines), "}", ""])
