"""A program with its parameters: types, names, and its translated methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar, get_args
from weakref import WeakKeyDictionary

from hetero_bfs.errors import ArgumentError, GraphError, ProgramError
from hetero_bfs.programs.codegen.dialects import Dialect, HostDialect
from hetero_bfs.programs.codegen.method_source import (
    FIELD_TYPES,
    MESSAGES,
    Evaluated,
    Method,
    MethodSource,
    Source,
    are_alike,
    declared,
    length_of,
    parameters_of,
    scalars,
    type_of_messages,
)
from hetero_bfs.programs.codegen.translate import Function, translate
from hetero_bfs.programs.message_plan import (
    OF_CLASS,
    OF_EDGES,
    REQUIRED,
    TYPES,
    MessagePlan,
    declared_by,
    is_name,
    type_name,
)
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.program import (
    Along,
    Monoid,
    Program,
    any_one,
    minimum,
    most_frequent,
    plus,
)
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.programs.schema import TOTALS

_WAYS = ", ".join(get_args(Along))
_OF_VERTEX = ("vertex", "degree", "num_vertices")
_OF_RUN = ("iteration", "num_vertices", "num_active")
_RESERVED = {
    *_OF_VERTEX, *_OF_RUN, "self", "state", "previous", "receiver", "weight", "message", "messages",
    "combined", "edge",
}  # fmt: skip
_OF_RESULT = {*dir(ProgramResult), *(field.name for field in fields(ProgramResult))}
_OPTIONS = {field.name for field in fields(RunOptions)}

T = TypeVar("T")

_KEPT: WeakKeyDictionary[type[Program], tuple[tuple[list[Any], Plan], ...]] = WeakKeyDictionary()
"""The plans last made for each class, without programs and arguments, which they would keep."""

_MOST_KEPT = 8
"""Most kept plans of a class."""


class ProgramClass(MessagePlan):
    """A program's class, without a graph. Raises `ProgramError` if it lacks something."""

    def __init__(self, program: Program) -> None:
        self.program, self.name = program, type(program).__name__
        self._check()
        self.totals = self._totals()

    @property
    def arguments(self) -> list[str]:
        """The names of a run's arguments, which the methods read and which mean nothing else."""
        return sorted(self.read - _RESERVED - {*self.totals})

    @cached_property
    def read(self) -> set[str]:
        return {
            name
            for method in self.methods
            if method != "combine"
            for name in parameters_of(self.program, method)
        }

    @property
    def is_endless(self) -> bool:
        """Whether only a number of iterations ends a run."""
        return self.program.all_active and "finished" not in self.methods

    def check_end(self, max_iterations: int | None, remedy: str) -> None:
        """Raise `ArgumentError` if a run would never end; `remedy` says how to give a limit."""
        if self.is_endless and max_iterations is None:
            raise ArgumentError(
                f"{self.name} has all vertices active and no method finished; give {remedy}"
            )

    def _check(self) -> None:
        program, name = self.program, self.name
        missing = [method for method in REQUIRED if not callable(getattr(program, method, None))]
        if missing:
            raise ProgramError(f"{name} has no method {missing[0]}; see help(hetero_bfs.Program)")
        self.monoids = self._monoids()
        state = getattr(program, "state", None)
        if not isinstance(state, Mapping) or not state:
            raise ProgramError(f'{name}.state is not a mapping, such as {{"level": numpy.int32}}')
        for field, kind in state.items():
            if not is_name(field) or not type_name(kind):
                raise ProgramError(f"{name}.state: {field!r} of {kind!r}; use names, and {TYPES}")
            if field in _OF_RESULT:
                raise ProgramError(
                    f"{name}.state: {field!r} is a name that results use for something else; "
                    "rename the field"
                )
        self.kinds = {field: type_name(kind) for field, kind in state.items()}
        self._check_edges()
        if program.along not in get_args(Along):
            raise ProgramError(f"{name}.along is {program.along!r}; use {_WAYS}")
        if self.collects:
            self._check_collected()
        if self.monoid == most_frequent and not program.all_active:
            raise ProgramError(f"{name}: most_frequent counts the messages of all neighbours; set "
                               "all_active = True")  # fmt: skip
        without = "all_active" if program.all_active else "active_apply"
        if any_one in self.monoids.values() and (program.all_active or program.active_apply):
            raise ProgramError(
                f"{name}: any_one has no identity, which {without} needs; combine by hb.minimum, "
                f"for example, or leave {without} out"
            )
        if program.all_active and "priority" in self.methods:
            raise ProgramError(
                f"{name}: `priority` has no effect with all_active; leave out one of them"
            )
        if program.monotone and (self.monoid != minimum or "priority" not in self.methods):
            raise ProgramError(
                f"{name}: a monotone program has `priority` and hb.minimum; add them, or leave "
                "monotone out"
            )
        if program.monotone and program.along != "out":
            raise ProgramError(f'{name}: a monotone program has along = "out"; leave monotone out')
        self._check_totals()
        self._check_spelling()

    def _check_edges(self) -> None:
        edges = self.program.edges
        for field, kind in edges.items() if isinstance(edges, Mapping) else [(edges, None)]:
            if not is_name(field) or type_name(kind) not in FIELD_TYPES or field in self.read:
                raise ProgramError(
                    f"{self.name}.edges: {field!r} of {kind!r}; use a mapping of names that no "
                    f"method has as a parameter, and {', '.join(FIELD_TYPES)}"
                )
        if "apply_edge" in self.methods:
            self._check_apply_edge()

    def _check_apply_edge(self) -> None:
        """Raise `ProgramError` if a field of an edge has no owner, or two."""
        both = "both ends of an edge would write the same entry"
        refused = {
            'there are no fields of edges; add edges = {"flow": numpy.float32}, for example':
                not self.edge_kinds,
            f"with message_back {both}; leave message_back or apply_edge out": self.sends_back,
            f'with along = "both" {both}; set along = "out", which in an undirected graph is '
            "the same": self.program.along == "both",
        }  # fmt: skip
        for reason in (reason for reason, wrong in refused.items() if wrong):
            code = getattr(self.program.apply_edge, "__code__", None)  # type: ignore[attr-defined]
            line = f", line {code.co_firstlineno}" if code else ""
            raise ProgramError(f"{self.name}.apply_edge{line}: {reason}")

    def _check_spelling(self) -> None:
        """Raise `ProgramError` if a name of the class is nearly one that programs may have.

        Names that a method reads, such as constants, are the user's own.
        """
        owners = [owner for owner in type(self.program).__mro__ if owner not in Program.__mro__]
        codes = [getattr(getattr(self.program, m), "__code__", None) for m in self.methods]
        read = {name for code in codes if code is not None for name in code.co_names}
        for name in (name for owner in owners for name in vars(owner)):
            if name.startswith("_") or name in OF_CLASS or name in read:
                continue
            if near := get_close_matches(name, OF_CLASS, 1, 0.8):
                raise ProgramError(
                    f"{self.name}.{name}: programs have {near[0]}, and no {name}; correct the "
                    "name, or begin your own with an underscore"
                )

    def _check_totals(self) -> None:
        name, totals = self.name, self.program.totals
        if not isinstance(totals, tuple | list | Mapping) or not all(map(is_name, totals)):
            raise ProgramError(
                f"{name}.totals is {totals!r}; give a tuple of names, or a mapping of names to "
                "hb.plus, hb.minimum or hb.maximum"
            )
        names = [*totals]
        taken = [total for total in names if total in _RESERVED or names.count(total) > 1]
        if taken:
            raise ProgramError(
                f"{name}.totals: {taken[0]!r} is already the name of a parameter or of another "
                "total; rename it"
            )
        if bool(totals) != ("measure" in self.methods):
            raise ProgramError(f"{name}: `totals` and `measure` go together; define both or none")

    def _totals(self) -> dict[str, str]:
        """Return the operation of each total, one of `TOTALS`."""
        totals = self.program.totals
        kinds = totals if isinstance(totals, Mapping) else dict.fromkeys(totals, plus)
        for total, kind in kinds.items():
            if not isinstance(kind, Monoid) or kind.operation not in TOTALS:
                raise ProgramError(
                    f"{self.name}.totals: {total!r} has {getattr(kind, 'operation', kind)!r}; use "
                    "hb.plus, hb.minimum or hb.maximum"
                )
        return {total: kind.operation for total, kind in kinds.items()}


class Plan(ProgramClass):
    """A program's types and methods, for parameters and weights of certain types.

    `of` returns a plan that was made before, if the same code follows from it. Raises
    `ProgramError` if the class lacks something or a method cannot be translated,
    `ArgumentError` if no method names a parameter, and `GraphError` if the program reads weights
    and there are none.
    """

    def __init__(self, program: Program, parameters: Parameters, weight_type: str | None) -> None:
        super().__init__(program)
        self.parameters, self.weight_type = parameters, weight_type
        self._evaluated: dict[str, Evaluated] = {name: {} for name in self.methods}
        self._made: dict[Any, Any] = {}
        self.fields = scalars(self.kinds)
        """The types of a state's numbers: `kinds` with vectors spread."""
        self.all_active = bool(program.all_active)
        self.along: Along = program.along
        self.monotone = bool(program.monotone)
        self.any_order = bool(program.any_order)
        if self.uses_weights and weight_type is None:
            raise GraphError(
                f"{self.name} reads weights, and the graph has none; load it with weights"
            )
        unknown = [name for name in parameters.sources if name not in self.read]
        if unknown and unknown[0] in _OPTIONS:
            raise ArgumentError(
                f"{unknown[0]} is an option, no parameter of {self.name}; give "
                f"engine.run(program, hb.RunOptions({unknown[0]}=...))"
            )
        if unknown:
            raise ArgumentError(
                f"{self.name} has no parameter {unknown[0]!r}; its methods name "
                f"{', '.join(sorted(self.read))}"
            )
        kind = program.message_type
        if kind is None:
            returned = self._translated("message", HostDialect()).first
            kind = type_of_messages(returned.type, returned.digits, self.fields)
        self.message_kinds = self._message_types(kind)

    @classmethod
    def of(cls, program: Program, parameters: Parameters, weight_type: str | None) -> Plan:
        """Return a plan for a run, the kept one if nothing has changed that enters the code."""
        types = chain(*parameters.sources.values(), parameters.digits.values())
        key = [weight_type, *types, *declared_by(program)]
        kept = _KEPT.get(type(program), ())
        for known, plan in kept:
            if len(known) == len(key) and all(map(are_alike, known, key)) and plan._reads(program):
                return plan._with(program, parameters)
        plan = cls(program, parameters, weight_type)
        plan.once(Plan.functions, HostDialect)  # before another thread or object can find the plan
        _KEPT[type(program)] = (key, plan._with(None, None)), *kept[: _MOST_KEPT - 1]
        return plan

    @property
    def prepares(self) -> bool:
        """Whether each sender writes its message once, and pulls read it."""
        return self.identity is not None and not self.uses_weights

    @property
    def applies_in_pulls(self) -> bool:
        """Whether a pull may apply messages at once, because it reads no other vertex's state.

        Programs with totals may not: their sums are computed in fixed chunks.
        """
        reads_state = "state" in parameters_of(self.program, "message")
        rounds = not (self.all_active or self.monotone or self.totals or self.collects)
        return rounds and (self.prepares or not reads_state)

    @property
    def only_synchronous(self) -> str:
        """The parts of the program that need mode "synchronous"; "" if nothing."""
        other = {*self.totals.values()} - {"plus"}
        return f"totals by {min(other)}" if other else self.collects

    @property
    def stays(self) -> str:
        """Why a run of the program stays on one place; "" if it need not."""
        return "is monotone" if self.monotone else self.collects and f"has {self.collects}"

    def once(self, make: Callable[..., T], *given: Any) -> T:
        """Return `make(plan, *given)`, which is made once and kept with the plan."""
        if (make, given) not in self._made:
            self._made[make, given] = make(self, *given)
        made: T = self._made[make, given]
        return made

    def functions(self, dialect: type[Dialect]) -> dict[str, Function]:
        return {name: self._translated(name, dialect()) for name in self.methods}

    def _translated(self, name: str, dialect: Dialect) -> Function:
        return translate(self._method(name), dialect, self._evaluated[name])

    def _reads(self, program: Program) -> bool:
        """Tell whether the methods read the same constants in `program`."""
        read = ((name, evaluated) for name, evaluated in self._evaluated.items() if evaluated)
        return all(MethodSource(program, *one).is_unchanged() for one in read)

    def _with(self, program: Program | None, parameters: Parameters | None) -> Plan:
        """Return a plan that shares all else with this one, also later values of `once`."""
        plan = Plan.__new__(Plan)
        vars(plan).update(vars(self), program=program, parameters=parameters)
        return plan

    def _method(self, name: str) -> Method:
        """Return a method to translate. The message type may still be unknown for `message`."""
        kinds = self.message_kinds or {"": "float64"}
        if isinstance(self.program.message_type, Mapping):  # so that their names are known
            kinds = {field: type_name(kind) for field, kind in self.program.message_type.items()}
        names = dict(self.parameters.sources)
        taken = [n for n in names if n in {*_RESERVED, *self.totals}]
        if taken:
            raise ArgumentError(f"parameter {taken[0]!r} has the name of something else; rename it")
        own = _OF_RUN if name == "finished" else _OF_VERTEX
        names |= {n: Source("", n, "int64", True) for n in own}
        if name == "finished":
            names = {n: s for n, s in names.items() if n not in self.parameters.arrays}
        elif name not in ("initial", "priority", "measure"):
            names["iteration"] = Source("", "iteration", "int64", True)
        if name in OF_EDGES and self.weight_type is not None:
            names["weight"] = Source("", "weight", self.weight_type, False)
        if name in ("apply", "finished"):
            names |= {n: Source("", n, "float64", True) for n in self.totals}
        if name == "combine":
            names = {}
        state = {f"field {field!r}": kind for field, kind in self.kinds.items()}
        message = {f"field {f!r} of messages" if f else "messages": k for f, k in kinds.items()}
        edge = {f"field {field!r} of edges": kind for field, kind in self.edge_kinds.items()}
        ends, nowhere = ("state", "receiver"), dict[str, str]()
        states, stored = {
            "initial": ((), state), "apply": (("state",), state), "combine": ((), message),
            "message": (ends, message), "message_back": (ends, message),
            "apply_edge": ((*ends, "previous"), edge), "finished": ((), nowhere),
            "measure": (("state", "previous"), nowhere),
        }.get(name, (("state",), nowhere))  # fmt: skip
        owners: dict[str, Mapping[str, str]] = dict.fromkeys(states, self.kinds)
        if name in OF_EDGES and self.edge_kinds:
            owners["edge"] = self.edge_kinds
        if name == "apply" and self.takes_messages:
            names[MESSAGES] = Source("", MESSAGES, MESSAGES, False)
        elif name in ("receives", "apply", "combine"):
            of = {"receives": ["message"], "apply": ["combined"], "combine": ["first", "second"]}
            for word in of[name]:
                if "" in kinds and not length_of(kinds[""]):
                    names[word] = Source("", word, kinds[""], False)
                else:
                    owners[word] = kinds
        results = {
            "receives": ["bool"], "finished": ["bool"], "priority": ["float64"],
            "measure": ["float64"] * len(self.totals),
        }.get(name, [*stored.values()])  # fmt: skip
        digits = dict(self.parameters.digits)
        if self.weight_type is not None:
            digits["weight"] = declared(self.weight_type, self.weight_type.startswith("float"))
        optional = "bool" if name in ("initial", "apply") else None
        return Method(
            self.program, name, owners, names, results, optional, digits, [*stored], kinds,
        )  # fmt: skip
