"""Writes a program's adapters as Python for Numba, and compiles a file of kernels with them."""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hetero_bfs.programs.codegen.adapter_code import Adapters
from hetero_bfs.programs.codegen.dialects import HOST_MESSAGES, HostDialect
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.schema import TOTALS
from hetero_bfs.support import private_cache
from hetero_bfs.support.files import replacing

_KERNELS = Path(__file__).parents[1] / "kernels"
_ADAPTERS = "hetero_bfs.programs.kernels.adapters"
_HOST = "hetero_bfs.programs.kernels.host"
_HELPERS = """from hetero_bfs.programs.kernels.scalars import (
    divide, floor_divide, greater, lesser, modulo, shift_left, shift_right, to_int64,
    to_uint64)
from hetero_bfs.support.compiling import inlined"""


def host_module(plan: Plan, kernels: str = "host") -> ModuleType:
    """Return a module of kernels, such as host.py with its extensions, with a program's
    adapters.

    The text is stored with the compiled code, under the text's digest. A process has one module per
    text, whatever the name of the class. It is in `sys.modules`, where Numba looks up the module of
    cached code.
    """
    text = host_text(plan, kernels)
    name = f"program_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    path = f"<{name}>"
    folder = private_cache.folder()
    if folder is not None:
        path = str(folder / f"{name}.py")
        with replacing(Path(path)) as stream:
            stream.write(text)
    module = ModuleType(name)
    exec(compile(text, path, "exec"), module.__dict__)  # our text: the file may have changed
    sys.modules[name] = module
    return module


def code_key(plan: Plan) -> tuple[Any, ...]:
    """Return a key that is equal for plans which can share compiled code."""
    parameters = plan.parameters.sources
    return host_text(plan), tuple(parameters.items()), tuple(plan.edge_kinds.items())


def host_text(plan: Plan, kernels: str = "host") -> str:
    """Return the source of `host_module`, which depends on the plan only.

    It has the imports of the kernel files, the program's adapters, and the kernels. If two files
    define the same name, all use the definition of the later file.
    """
    files = ["host", "sweep"] if kernels == "sweep" else [kernels]
    if kernels == "host":
        files += ["monotone"] if plan.monotone else []
        files += ["collected"] if plan.collects or plan.counts else []
    imports = [_statements(name, imports=True) for name in files]
    bodies = [_statements(name, imports=False) for name in files]
    return "\n\n".join([*imports, _HELPERS, _HostAdapters(plan).text(), *bodies, ""])


@functools.cache
def _statements(kernels: str, imports: bool) -> str:
    """Return the imports of a kernel file, or its other statements.

    Imports of adapters are left out, and imports of host.py in the files that extend it.
    """
    path = _KERNELS / f"{kernels}.py"
    here = {"__future__", _ADAPTERS, _HOST}
    chosen = []
    for node in ast.parse(path.read_text()).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import == imports and getattr(node, "module", None) not in here:
            chosen.append(ast.unparse(node))
    return "\n\n".join(chosen)


class _HostAdapters(Adapters):
    array = "arrays.{}".format
    number = "np.int64(arrays.{}[{}])".format
    sends = "sends(active, {})".format
    takes = "takes(arrays, v, {})".format
    messages, sums = HOST_MESSAGES, "sums"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, HostDialect)

    def of_run(self, name: str) -> str:
        if name == "num_vertices":
            return "arrays.num_vertices"
        from hetero_bfs.programs.kernels import loop

        place = {"iteration": loop.ITERATION, "num_active": loop.NUM_ACTIVE}[name]
        return f"arrays.loop[{place}]"

    def place_in(self, array: str, vertex: str, index: int) -> str:
        return f"{vertex}, {index}"

    def _function(self, head: str, lines: Sequence[str]) -> str:
        return "\n".join(["@inlined", f"def {head}:", *(f"    {x}" for x in lines)])

    def text(self) -> str:
        parts = [self._constants(), *(f.code for f in self.functions.values())]
        vertex, message = self._receives()
        given = ", ".join(["arrays", "v", *self.names("message")])
        parts += [
            self._clear_totals(),
            self._function("start(arrays, v, sums)", self._start()),
            self._function("receives(arrays, v)", [f"return {vertex}"]),
            self._function(f"takes({given})", [f"return {message}"]),
            self._function("apply(arrays, v, combined, sums)", self._apply()),
        ]
        if self.plan.collects:
            parts += [self._fetch()]
            parts += [self._function(f"collect({self.messages})", self._collect())]
        else:
            parts += [self._send(), self._combine()]
        parts += [
            self._simple("priority(arrays, v)", "priority", "np.float64(0.0)"),
            self._simple("finished(arrays)", "finished", "False"),
        ]
        return "\n\n".join(parts) + "\n"

    def _constants(self) -> str:
        plan, kind = self.plan, f"np.{self.plan.stored_type}"
        identity = self.dialect.literal(plan.identity or 0, plan.stored_type)
        return "\n".join(
            [
                f"ALL_ACTIVE = {plan.all_active}",
                f"HAS_IDENTITY = {plan.identity is not None}",
                f"IDENTITY = {identity}",
                f"APPLIES_IN_PULLS = {plan.applies_in_pulls}",
                f"COUNTS = {plan.counts}",
                f"WEIGHTED = {plan.uses_weights}",
                f"SENDS_BACK = {plan.sends_back}",
                f"ACTIVE_APPLY = {plan.active_apply}",
                f"HAS_PRIORITY = {'priority' in plan.methods}",
                f"MONOTONE = {plan.monotone}",
                f"HAS_FINISHED = {'finished' in plan.methods}",
                f"_message = {kind}",
            ]
        )

    def _send(self) -> str:
        call = self._call("message", "u")
        body = f"np.int32({call})" if self.plan.message_type == "bool" else call
        return self._function("send(arrays, u, weight)", [f"return {body}"])

    def _combine(self) -> str:
        operation = self.plan.monoid.operation
        final = "True" if operation == "any_one" else "False"
        if operation == "bitwise_or":
            every = "1" if self.plan.message_type == "bool" else "~_message(0)"
            final = f"combined == _message({every})"
        return "\n\n".join(
            [
                self._function("combine(first, second)", [f"return {self.combination()}"]),
                self._function("is_final(combined)", [f"return {final}"]),
            ]
        )

    def _at_entry(self, lists: str, entry: str) -> list[str]:
        plan = self.plan
        lines = [f"u = np.int64(arrays.{lists}neighbours[{entry}])"]
        lines += [f"weight = arrays.{lists}weights[{entry}]"] if plan.uses_weights else []
        return lines + [f"at_edge_{n} = arrays.{lists}edge_{n}[{entry}]" for n in plan.edge_kinds]

    def _assigned(
        self, to: Sequence[str], method: str, vertex: str = "v", held: Sequence[str] = ()
    ) -> str:
        return f"{', '.join(to)} = user_{method}({', '.join(self.arguments(method, vertex, held))})"

    def _clear_totals(self) -> str:
        kinds = enumerate(self.plan.totals.values())
        lines = [f"sums[{i}] = {self.dialect.literal(TOTALS[k], 'float64')}" for i, k in kinds]
        return self._function("clear_totals(sums)", lines or ["pass"])
