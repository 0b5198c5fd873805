"""What values in kernels may be: different in a work-group, or an index from a list's stale end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_syntax import Node

_OWN = {"get_local_id", "get_global_id", "shuffle_up", "shuffle_down", "shuffle_from", "ballot"}
_IN_RANGE = {"min", "clamp"}
_ITSELF = -1
_MEMORY = ("__global", "__local", "__constant")


@dataclass
class _Writes:
    """What a function does with variables: assignments, calls, and results.

    Each has the conditions that it depends on, and whether it is in a loop, but in no `if` there.
    """

    assigned: list[tuple[int, Node, list[Node], bool]] = field(default_factory=list)
    called: list[tuple[Node, list[Node], bool]] = field(default_factory=list)
    returned: list[tuple[Node, list[Node], bool]] = field(default_factory=list)
    touched: list[tuple[Node, bool]] = field(default_factory=list)


class Values:
    """Facts about the variables of a program, found by going round until nothing changes.

    A variable varies if work-items of a group may have different values in it. What all of them
    read from one address of global or local memory does not vary. A variable is raw if a loop read
    it from memory at such an address, unless it was then limited by `min`, `clamp`, `%` or `&`.
    """

    def __init__(self, functions: dict[str, Node], kernels: set[str]) -> None:
        self._functions = functions
        self._writes = {name: _Writes() for name in functions}
        self._parameters = {
            name: [c for c in function.children if c.kind == "PARM_DECL"]
            for name, function in functions.items()
        }
        self._stepping: set[int] = set()
        for name, function in functions.items():
            self._collect(function.body, self._writes[name], [], False)
        self._varying: set[int] = set()
        self._raw: set[int | str] = set()
        self._looped: set[str] = set()
        self._returns: dict[str, set[int]] = {}
        for name in functions:  # those that are called come first
            self._returns[name] = self._returned_labels(name)
        size = -1
        while size != (size := len(self._varying) + len(self._raw) + len(self._looped)):
            for name in functions:
                self._go_round(name)

    def _returned_labels(self, name: str) -> set[int]:
        """Return on which parameters a result depends, by place; _ITSELF if it varies anyway."""
        writes = self._writes[name]
        labels = {one.variable: {i} for i, one in enumerate(self._parameters[name])}
        size = -1
        while size != (size := sum(map(len, labels.values()))):
            for variable, value, conditions, _ in writes.assigned:
                known = labels.setdefault(variable, set())
                for node in (value, *conditions):
                    known |= self._labels(node, labels)
        result: set[int] = set()
        for value, conditions, _ in writes.returned:
            for node in (value, *conditions):
                result |= self._labels(node, labels)
        return result

    def _labels(self, node: Node, labels: dict[int, set[int]]) -> set[int]:
        if node.kind == "CALL_EXPR" and node.name in self._returns:
            places = self._returns[node.name]
            found = {_ITSELF} & places
            for place, argument in enumerate(node.children):
                if place in places:
                    found |= self._labels(argument, labels)
            return found
        found = {_ITSELF} if _is_own(node) else set()
        if node.kind in ("DECL_REF_EXPR", "VAR_DECL"):
            found |= labels.get(node.variable, set())
        for child in node.children:
            found |= self._labels(child, labels)
        return found

    def varies(self, node: Node) -> bool:
        """Tell whether work-items may see different values."""
        if node.kind == "CALL_EXPR" and node.name in self._returns:
            places = self._returns[node.name]
            passed = (one for place, one in enumerate(node.children) if place in places)
            return _ITSELF in places or any(map(self.varies, passed))
        if _is_own(node):
            return True
        if node.kind in ("DECL_REF_EXPR", "VAR_DECL") and node.variable in self._varying:
            return True
        return any(self.varies(child) for child in node.children)

    def unguarded(self, function: Node) -> Iterator[tuple[Node, Node]]:
        """Yield accesses in loops at an address that all share, and the raw index of each."""
        is_looped = function.name in self._looped
        for node, in_loop in self._writes[function.name].touched:
            spaces = node.spaces[0], node.children[0].spaces[1]
            if (in_loop or is_looped) and "__global" in spaces and not self.varies(node):
                raw = next((part for part in node.children if self._is_raw(part, True)), None)
                if raw is not None:
                    yield node, raw

    def _is_raw(self, node: Node, in_loop: bool) -> bool:
        if node.kind == "CALL_EXPR":
            if node.name in self._raw:
                return True
            return node.name not in _IN_RANGE and any(
                self._is_raw(c, in_loop) for c in node.children
            )
        if node.operator in ("%", "&", "<", ">", "<=", ">=", "==", "!=", "!", "&&", "||"):
            return False
        if node.kind == "DECL_REF_EXPR":
            return node.variable in self._raw
        if _is_access(node) and node.type and "*" not in node.type and "[" not in node.type:
            steps = in_loop and any(self._steps(child) for child in node.children)
            return (steps or any(self._is_raw(c, in_loop) for c in node.children)) and (
                not self.varies(node)
            )
        return any(self._is_raw(child, in_loop) for child in node.children)

    def _steps(self, node: Node) -> bool:
        """Tell whether an index has a variable that a loop steps on, and that nothing limits."""
        if node.kind == "CALL_EXPR" or node.operator in ("%", "&"):
            return False
        if node.kind == "DECL_REF_EXPR":
            return node.variable in self._stepping
        return any(map(self._steps, node.children))

    def _collect(self, node: Node, to: _Writes, conditions: list[Node], in_loop: bool) -> None:
        inner, loops = conditions, in_loop
        if node.kind in ("IF_STMT", "CONDITIONAL_OPERATOR", "SWITCH_STMT"):
            inner, loops = [*conditions, node.children[0]], in_loop and node.kind != "IF_STMT"
        elif node.is_loop:
            inner, loops = [*conditions, *node.controls], True
            for part in node.controls:
                self._stepping |= {
                    _written(one.children[0]) for one in part.walk() if one.operator in ("=", "++")
                }
        if node.kind == "VAR_DECL" and node.children:
            to.assigned.append((node.variable, node.children[-1], conditions, in_loop))
        elif node.operator in ("=", "++", "--"):
            variable = _written(node.children[0])
            if variable:
                to.assigned.append((variable, node, conditions, in_loop))
                if in_loop:
                    self._stepping.add(variable)
        elif node.kind == "CALL_EXPR":
            to.called.append((node, conditions, in_loop))
        elif node.kind == "RETURN_STMT" and node.children:
            to.returned.append((node.children[0], conditions, in_loop))
        if _is_access(node):
            to.touched.append((node, in_loop))
        for place, child in enumerate(node.children):
            outside = node.kind == "IF_STMT" and place == 0
            self._collect(child, to, inner, in_loop if outside else loops)

    def _go_round(self, name: str) -> None:
        writes, looped = self._writes[name], name in self._looped
        for variable, value, conditions, in_loop in writes.assigned:
            if self.varies(value) or any(map(self.varies, conditions)):
                self._varying.add(variable)
            if self._is_raw(value, in_loop or looped):
                self._raw.add(variable)
        for value, _, in_loop in writes.returned:
            if self._is_raw(value, in_loop or looped):
                self._raw.add(name)
        for call, conditions, in_loop in writes.called:
            if call.name in self._functions:
                self._pass(call, conditions, in_loop or looped)

    def _pass(self, call: Node, conditions: list[Node], in_loop: bool) -> None:
        """Let parameters have what is passed, and variables what is written to their addresses."""
        if in_loop:
            self._looped.add(call.name)
        for argument, parameter in zip(call.children, self._parameters[call.name], strict=False):
            if self.varies(argument):
                self._varying.add(parameter.variable)
            if self._is_raw(argument, in_loop):
                self._raw.add(parameter.variable)
            if parameter.spaces[1] == "__private" and "*" in parameter.type:
                variable = _written(argument)
                if variable and parameter.variable in self._varying:
                    self._varying.add(variable)


def _is_own(node: Node) -> bool:
    """Tell whether it is a call whose result each work-item has for itself."""
    return node.kind == "CALL_EXPR" and (
        node.name in _OWN or node.name.startswith(("atomic_", "atom_"))
    )


def _is_access(node: Node) -> bool:
    """Tell whether an expression is an item of global or local memory."""
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" or (node.operator == "*" and len(node.children) == 1):
        return node.spaces[0] in _MEMORY or node.children[0].spaces[1] in _MEMORY
    return node.kind == "MEMBER_REF_EXPR" and node.spaces[0] in _MEMORY


def _written(node: Node) -> int:
    """Return the private variable of an expression that is written, or 0."""
    if node.spaces[0] in _MEMORY or _is_access(node):
        return 0
    if node.kind == "DECL_REF_EXPR":
        return node.variable
    return _written(node.children[0]) if node.children else 0
