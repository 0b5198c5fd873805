"""Checks kernels by the rules of docs/development/kernel-rules.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kernel_syntax import Node, Tree
from kernel_values import Values

ATOMICS = "devices/opencl/atomics.cl"
VENDOR = "devices/opencl/vendor.cl"
MOST_LOCAL_BYTES = 1 << 15
_INT64 = re.compile(r"\batom_\w+\s*\(|cl_khr_int64")
_OF_VENDORS = re.compile(
    r"\basm\b|\bNVIDIA\b|\b(?:cl_)?(?:nv|amd|intel|qcom|arm|img)_\w+|\b__nv", re.I
)
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_CONDITIONS = ("IF_STMT", "CONDITIONAL_OPERATOR", "SWITCH_STMT")


@dataclass(frozen=True)
class Fault:
    """A rule that a kernel breaks, and where."""

    rule: str
    place: str
    text: str


@dataclass(frozen=True)
class Build:
    """A program that the package builds: its -D options, and its text by file."""

    options: tuple[str, ...]
    sections: tuple[tuple[str, str], ...]

    @property
    def runs_in_one_launch(self) -> bool:
        """Whether its work-groups wait for each other: barriers may be in conditions then."""
        return "-DONE_LAUNCH" in self.options

    @property
    def lacks_doubles(self) -> bool:
        """Whether the device may have no doubles."""
        return not {"-DHAS_DOUBLE", "-DIS_DOUBLE"} & set(self.options)


def check_text(file: str, text: str) -> Iterator[Fault]:
    """Yield what is wrong with the text of a file: what only one other file may contain."""
    bare = _COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(bare.splitlines(), 1):
        if file != ATOMICS and (found := _INT64.search(line)):
            yield Fault("64-bit atomics", f"{file}:{number}", found[0])
        if file != VENDOR and (found := _OF_VENDORS.search(line)):
            yield Fault("vendors", f"{file}:{number}", found[0])


def check_build(build: Build) -> list[Fault]:
    """Return what is wrong with a program."""
    return _Checker(build).check()


class _Checker:
    def __init__(self, build: Build) -> None:
        self._build = build
        self._tree = Tree(build.sections, list(build.options))
        self._functions = self._tree.functions
        self._faults: dict[Fault, None] = {}
        self._unused_parameters: dict[str, set[int]] = {}  # their places, by function
        self._find_unused_parameters()

    def check(self) -> list[Fault]:
        for error in self._tree.errors:
            self._faults[Fault("compiles", error, "")] = None
        if not self._faults:
            for function in self._functions.values():
                self._check_barriers(function)
                self._check_reads(function)
                self._check_arrays(function)
                self._check_types(function)
            for name in self._tree.kernels:
                self._check_local(self._functions[name])
        return list(self._faults)

    def _note(self, rule: str, node: Node, text: str) -> None:
        self._faults[Fault(rule, f"{node.file}:{node.line}", text)] = None

    @cached_property
    def _values(self) -> Values:
        return Values(self._functions, self._tree.kernels)

    @cached_property
    def _with_barrier(self) -> set[str]:
        """The functions that have a barrier, or call one that has."""
        found = {"barrier"}
        while True:
            more = {
                name
                for name, function in self._functions.items()
                if any(call.name in found for call in function.calls())
            }
            if more <= found:
                return found
            found |= more

    def _has_barrier(self, node: Node) -> bool:
        return any(call.name in self._with_barrier for call in node.calls())

    def _may_vary(self, *nodes: Node) -> bool:
        """Tell whether work-items of a group may see different values."""
        return any(self._values.varies(node) for node in nodes)

    def _bad(self, *nodes: Node) -> bool:
        """Tell whether a barrier must not depend on a condition."""
        return not self._build.runs_in_one_launch or self._may_vary(*nodes)

    def _check_barriers(self, function: Node) -> None:
        if self._has_barrier(function):
            self._visit(function.body)
            self._check_ends(function)

    def _visit(self, node: Node) -> None:
        """Find barriers within conditions, and in loops whose ends may vary."""
        if node.kind in _CONDITIONS or node.operator in ("&&", "||"):
            first, *others = node.children
            for other in others:
                if self._has_barrier(other) and self._bad(first):
                    self._note("barriers", other, f"a barrier within a condition: {other.kind}")
        if node.is_loop and self._has_barrier(node):
            for control in node.controls:
                if self._may_vary(control):
                    self._note("barriers", control, "a barrier in a loop whose ends may vary")
        for child in node.children:
            self._visit(child)

    def _check_ends(self, node: Node) -> None:
        """Find `break`, `continue` and `return` before or among barriers."""
        barriers = [c for c in node.calls() if c.name in self._with_barrier]
        for statement, within, loop in _jumps(node.body, [], None):
            jumps_over = (
                _is_before(statement, barriers) or (loop is not None and self._has_barrier(loop))
                if statement.kind == "RETURN_STMT"
                else loop is not None and self._has_barrier(loop)
            )
            if jumps_over and self._bad(*within):
                self._note("barriers", statement, f"{statement.kind} that jumps over a barrier")

    def _check_reads(self, function: Node) -> None:
        for node, index in self._values.unguarded(function):
            self._note("reads", node, f"an index that may be stale, read in a loop: {index.name}")

    def _check_arrays(self, function: Node) -> None:
        """Find private arrays that are passed to functions with barriers."""
        for call in function.calls():
            if call.name in self._with_barrier and call.name in self._functions:
                for argument in call.children:
                    if "[" in argument.type and argument.spaces[0] == "__private":
                        self._note("arrays", call, f"{argument.name} is passed to {call.name}")

    def _check_types(self, function: Node) -> None:
        if self._build.lacks_doubles:
            for node in function.walk():
                if re.search(r"\bdouble\b", node.type):
                    self._note("doubles", node, f"{node.kind} {node.name} is {node.type}")
                    break

    def _check_local(self, kernel: Node) -> None:
        """Find local memory that is not used, and too much of it."""
        used = {node.variable for node in self._used(kernel)}
        for node in kernel.walk():
            is_local = node.kind == "VAR_DECL" and node.spaces[0] == "__local"
            if is_local and node.variable not in used:
                self._note("local memory", node, f"{node.name} is not used")
        size = self._tree.local_bytes.get(kernel.name, 0)
        if size > MOST_LOCAL_BYTES:
            self._note("local memory", kernel, f"{kernel.name} has {size} bytes")

    def _used(self, node: Node) -> Iterator[Node]:
        """Yield the references in a function that are executed at all."""
        if node.kind == "FOR_STMT" and any(_is_never(control) for control in node.controls):
            return
        if node.kind == "CALL_EXPR" and node.name in self._functions:
            unused = self._unused_parameters[node.name]
            for place, argument in enumerate(node.children):
                if place not in unused:
                    yield from self._used(argument)
            return
        if node.kind == "DECL_REF_EXPR":
            yield node
        for child in node.children:
            yield from self._used(child)

    def _find_unused_parameters(self) -> None:
        for name, function in self._functions.items():  # those that are called come first
            used = {node.variable for node in self._used(function.body)}
            parameters = [c for c in function.children if c.kind == "PARM_DECL"]
            unused = {i for i, one in enumerate(parameters) if one.variable not in used}
            self._unused_parameters[name] = unused


def _is_never(control: Node) -> bool:
    """Tell whether a loop ends before it begins, as one over no totals."""
    return (
        control.operator == "<"
        and control.children[1].kind == "INTEGER_LITERAL"
        and control.children[1].name == "0"
    )


def _is_before(statement: Node, calls: list[Node]) -> bool:
    """Tell whether a call comes behind a statement, and is not in it."""
    own = {id(call) for call in statement.calls()}
    return any(call.order > statement.order and id(call) not in own for call in calls)


def _jumps(
    node: Node, conditions: list[Node], loop: Node | None
) -> Iterator[tuple[Node, list[Node], Node | None]]:
    """Yield the statements that jump, the conditions around each, and the loop that it leaves."""
    if node.kind in ("BREAK_STMT", "CONTINUE_STMT", "RETURN_STMT"):
        yield node, conditions, loop
    inner = [*conditions, node.children[0]] if node.kind in _CONDITIONS else conditions
    for child in node.children:
        yield from _jumps(child, inner, node if node.is_loop else loop)
