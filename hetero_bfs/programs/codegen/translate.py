"""Translates a method of a vertex program from Python to a dialect (dialects.py).

The method is parsed. Every expression gets the type of NumPy's scalars (NEP 50), and the dialect
writes it with all conversions, so the host and a device compute the same. Anything else is refused
with its line.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NoReturn

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen.dialects import Dialect
from hetero_bfs.programs.codegen.elements import Returns, Vector
from hetero_bfs.programs.codegen.expressions import Value, common, parameter_name
from hetero_bfs.programs.codegen.method_source import (
    MESSAGES,
    Evaluated,
    Method,
    MethodSource,
    Source,
    declared,
    listed,
    nesting,
    scalars,
    vector_of,
    word,
)

_DEEPEST = 120
"""Most nested brackets in a line: Python parses 200, OpenCL C compilers 256."""

_MOST_INDENTED = 60


@dataclass
class Function:
    """A translated method: `code` defines it by `name` with `parameters`.

    `num_results` is the number of numbers it returns; dialects return several of them differently.
    `first` has type and digits of the first value before its conversion, without code.
    """

    name: str
    parameters: list[Source]
    num_results: int
    code: str
    first: Value


def translate(
    method: Method, dialect: Dialect, evaluated: Evaluated, make: type[Statements] | None = None
) -> Function:
    """Translate a method, and add the constants that it reads to `evaluated`.

    Objects of `make` do it, until all variables' types are known. Raises `ProgramError` if the
    source cannot be read or translated.
    """
    source = MethodSource(method.program, method.name, evaluated)
    kinds = dict[str, Value]()
    while True:
        translator = (make or Statements)(method, dialect, source, kinds=kinds)
        try:
            return translator.run()
        except _OtherKind:
            dialect.variables.clear()
        except RecursionError:
            translator.refuse_depth()


class _OtherKind(Exception):
    """A variable has another type than inferred so far; the translation starts again."""


@dataclass
class Statements(Returns):
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: int = 0
    fetched: set[str] = field(default_factory=set)  # variables that hold messages
    lengths: dict[str, int] = field(default_factory=dict)  # elements of variables; 0: a number

    def run(self) -> Function:
        definition, place = self.source.definition, self.source.place
        arguments = definition.args
        if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kwonlyargs:
            self.refuse(definition, "parameters with defaults, * or **", "name what you need")
        given = [*arguments.posonlyargs, *arguments.args]
        self.parameters = [a.arg for a in given if a.arg != "self"]
        for argument in given:
            known = {"self", *self.method.owners, *self.method.names}
            if argument.arg not in known:
                raise ProgramError(
                    f"{place(argument)}: parameter {argument.arg!r} is not given to the run; "
                    f"known here: {listed(known)}"
                )
        self._note_assigned()
        for node in ast.walk(definition):
            name = getattr(node, "arg", None) or getattr(node, "id", None)
            if isinstance(name, str) and not name.isascii():
                self.refuse(node, f"the name {name!r}", "use letters of ASCII")
        self.num_results = self.count_results()
        if not self._block(definition.body):
            self.refuse(definition, "an end without return", "return a value on every path")
        name = f"user_{self.method.name}"
        sources = list(self.used.values())
        parameters = [(parameter_name(source), source.type) for source in sources]
        results = self.result_types()
        code = self.dialect.function(name, parameters, results, self.lines)
        assert self.first is not None  # every path returns
        return Function(name, sources, len(results), code, self.first)

    def _note_assigned(self) -> None:
        names = (n for n in ast.walk(self.source.definition) if isinstance(n, ast.Name))
        self.assigned = {n.id for n in names if isinstance(n.ctx, ast.Store)}

    def refuse_depth(self, node: Any = None) -> NoReturn:
        self.refuse(
            node or self.source.definition, "an expression or a condition so deep", "use variables"
        )

    def _emit(self, text: str) -> None:
        if self.depth > _MOST_INDENTED or nesting(text) > _DEEPEST:
            self.refuse_depth(self.statement)
        self.lines.append("    " * self.depth + text)

    def _block(self, body: list[ast.stmt]) -> bool:
        """Translate statements; return whether every path through them returns."""
        for number, statement in enumerate(body):
            returned = self._statement(statement)
            if returned:
                if number + 1 < len(body):
                    self.refuse(body[number + 1], "a line that is never reached", "remove it")
                return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        self.statement = node
        if isinstance(node, ast.Return):
            for line in self.dialect.return_values(self._returned(node)):
                self._emit(line)
            return True
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.For | ast.While):
            self._loop(node)
            return False
        if isinstance(node, ast.Break | ast.Continue):
            self._emit(self.dialect.leave("break" if isinstance(node, ast.Break) else "continue"))
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            pass  # a docstring
        elif not isinstance(node, ast.Pass):
            self.refuse(node, f"`{word(node)}`", "use assignments, if, for, while and return")
        return False

    def _if(self, node: ast.If) -> bool:
        self._emit(self.dialect.begin_if(self.condition(node.test)))
        before = dict(self.local)
        ends = [self._inner(node.body)]
        after = dict(self.local)
        self.local = {**before}
        if node.orelse:
            self._emit(self.dialect.begin_else())
            ends.append(self._inner(node.orelse))
        self._close()
        if len(ends) == 2 and ends[0] != ends[1]:  # keep variables of the path that continues
            self.local = self.local if ends[0] else after
        else:
            both = after.keys() & self.local.keys()
            self.local = {name: after[name] for name in both}
        if ends[0] and len(ends) == 1:
            self.local = before
        return len(ends) == 2 and all(ends)

    def _loop(self, node: ast.For | ast.While) -> None:
        """Translate a loop. Only variables that have a value before it have one after it."""
        if node.orelse:
            self.refuse(node, "`else` of a loop", "set a variable in the loop, and test it")
        before = dict(self.local)
        if isinstance(node, ast.For) and (bodies := self.written_out(node)) is not None:
            for body in bodies:
                self._block(body)
            return
        self.loops += 1
        if isinstance(node, ast.While):
            emitted, test = len(self.lines), self.condition(node.test)
            if len(self.lines) > emitted:
                self.refuse(node, f"`{ast.unparse(node.test)}` as the condition of a loop",
                             "compute it in the loop, and `break`")  # fmt: skip
            self._emit(self.dialect.begin_while(test))
            heads: list[str] = []
        elif isinstance(node.iter, ast.Name) and node.iter.id in self.parameters:
            heads = self._begin_messages(node)
        else:
            heads = self._begin_range(node)
        self.depth += 1
        for line in heads:
            self._emit(line)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            counter = Value(f"c_{self.loops}", "int64", True)
            self._assign_one(node.target, counter)
        self.depth -= 1
        self._inner(node.body)
        self._close()
        self.local = before

    def _begin_range(self, node: ast.For) -> list[str]:
        call = node.iter
        is_range = isinstance(call, ast.Call) and not call.keywords and len(call.args) in (1, 2)
        if not (is_range and self._callee(call.func) is range):  # type: ignore[attr-defined]
            self.refuse(node, f"`{word(node)}`", "write for i in range(end), or range(begin, end)")
        values = [self.value(item) for item in call.args]  # type: ignore[attr-defined]
        for value in values:
            if not value.type.startswith(("int", "uint")):
                self.refuse(node, f"a range of {value.type}", "give integers")
        codes = [self.converted(value, "int64", node) for value in values]
        begin = codes[0] if len(codes) == 2 else self.dialect.literal(0, "int64")
        self._emit(self.dialect.begin_range(self.loops, begin, codes[-1]))
        return []

    def _begin_messages(self, node: ast.For) -> list[str]:
        """Begin a loop over messages; return the lines that fetch one."""
        assert isinstance(node.iter, ast.Name)
        source = self.method.names.get(node.iter.id)
        if source is None or source.type != MESSAGES or not isinstance(node.target, ast.Name):
            self.refuse(node, f"`{word(node)}`", "write for message in messages:")
        self.used.setdefault((source.owner, source.name), source)
        name, held = node.target.id, {}
        taken = {vector_of(key.split(".")[0])[0] for key in self.local} | {*self.parameters}
        if name in taken:
            self.refuse(node, f"{name!r} as a message and as something else", "use another name")
        self.fetched.add(name)
        for field_, kind in scalars(self.method.messages).items():
            code = f"m_{self.loops}_{field_}"
            held[code] = kind
            self.local[f"{name}.{field_}" if field_ else name] = Value(
                code, kind, False, declared(kind)
            )
        self._emit(self.dialect.begin_messages(self.loops))
        return self.dialect.fetch(self.loops, held)

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
            self.refuse(node, "this assignment", "write one variable = one value")
        target, source = targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
            if len(target.elts) != len(source.elts):
                self.refuse(node, "an assignment of unlike tuples", "give each variable a value")
            values = [self.item(item) for item in source.elts]
            held = [self._held(value) for value in values]  # all before assigning any
            for item, one in zip(target.elts, held, strict=True):
                self._assign_one(item, one)
            return
        if isinstance(node, ast.AugAssign):
            spread = ast.BinOp(left=node.target, op=node.op, right=source)
            self._assign_one(target, self.value(ast.copy_location(spread, node)))
        else:
            self._assign_one(target, self.item(source))

    def hold(self, value: Value) -> Value:
        if self.dialect.is_literal(value.code):
            return value
        self.held += 1
        name = f"{self.held}_"
        self.dialect.variables[name] = value.type
        self._emit(self.dialect.assign(f"v_{name}", value.code))
        return value._replace(code=f"v_{name}")

    def _held(self, value: Value | Vector) -> Value | Vector:
        return self.hold(value) if isinstance(value, Value) else [self.hold(one) for one in value]

    def _assign_one(self, target: ast.expr, value: Value | Vector) -> None:
        if not isinstance(target, ast.Name):
            whole = "make a new vector, as in x = [2 * y for y in x]"
            self.refuse(
                target,
                f"an assignment to `{ast.unparse(target)}`",
                whole if isinstance(target, ast.Subscript)
                else "assign to variables, and return the new state",
            )  # fmt: skip
        if target.id in self.parameters or target.id in self.fetched or target.id == "self":
            kind = "message" if target.id in self.fetched else "parameter"
            self.refuse(target, f"an assignment to {kind} {target.id!r}", "use another name")
        length = 0 if isinstance(value, Value) else len(value)
        if self.lengths.setdefault(target.id, length) != length or value == []:
            self.refuse(target, f"{target.id!r} with another number of elements",
                         "use two variables")  # fmt: skip
        if isinstance(value, Value):
            self._declare(target.id, value, target)
            return
        names = [f"{i}_{target.id}" for i in range(length)]
        held = [self.hold(one) for one in value]  # all before assigning any
        widened = [self._widens(*pair, target) for pair in zip(names, held, strict=True)]
        if any(widened):
            raise _OtherKind
        for name, one in zip(names, held, strict=True):
            self._declare(name, one, target)

    def _declare(self, name: str, value: Value, node: Any) -> None:
        if self._widens(name, value, node):
            raise _OtherKind
        kind = self.kinds[name]
        self.dialect.variables[name] = kind.type
        self._emit(self.dialect.assign(f"v_{name}", self.converted(value, kind.type, node)))
        self.local[name] = kind._replace(code=f"v_{name}")

    def _widens(self, name: str, value: Value, node: Any) -> bool:
        """Note the type of a variable; return whether it has another one than inferred so far."""
        known = self.kinds.setdefault(name, value._replace(code=""))
        both = {known.type, value.type}
        if len(both) > 1 and ("bool" in both or not (known.weak or value.weak)):
            self.refuse(
                node,
                f"{vector_of(name)[0]!r} as {known.type} and as {value.type}",
                "use two variables, or convert",
            )
        self.kinds[name] = known if both == {"bool"} else common(known, value)
        return self.kinds[name] != known
