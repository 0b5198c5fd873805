"""The messages of a program, and how they combine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from inspect import ismethod
from typing import Any

import numpy as np

from hetero_bfs.errors import ProgramError
from hetero_bfs.programs.codegen.method_source import (
    FIELD_TYPES,
    code_of,
    length_of,
    parameters_of,
    scalars,
    vector_of,
)
from hetero_bfs.programs.program import Monoid, Program, any_one, most_frequent

REQUIRED = ("initial", "message", "apply")
OPTIONAL = (
    "message_back", "apply_edge", "receives", "measure", "finished", "priority", "combine",
)  # fmt: skip
OF_CLASS = tuple(dict.fromkeys((*REQUIRED, *OPTIONAL, *Program.__annotations__)))
SENDING = ("message", "message_back")
OF_EDGES = (*SENDING, "apply_edge")
"""Methods that read an edge and the states of both ends."""

_MOST_ELEMENTS = 64

TYPES = (
    f"{', '.join(FIELD_TYPES)}, or a vector of 1 to {_MOST_ELEMENTS} of them, such as "
    "(numpy.float32, 8)"
)


class MessagePlan:
    """The messages of a program; `Plan` adds its states, and translates its methods."""

    program: Program
    name: str
    monoids: dict[str, Monoid]
    kinds: Mapping[str, str]
    """The types of the fields of states."""
    message_kinds: Mapping[str, str] = {}  # until `message` is translated
    """The types of a message's fields; a message of one value has one field, by the name ""."""

    def _monoids(self) -> dict[str, Monoid]:
        """Return how each field of messages combines; a method combines all, by the name ""."""
        program, combine = self.program, getattr(self.program, "combine", None)
        if self.takes_messages:
            if combine is not None:
                raise ProgramError(
                    f"{self.name}.apply goes through `messages`, and there is `combine`; leave it "
                    "out, or read `combined`"
                )
            return {}
        if isinstance(combine, Mapping) and isinstance(program.message_type, Mapping):
            if [*combine] != [*program.message_type]:
                raise ProgramError(
                    f"{self.name}.combine has {', '.join(map(str, combine))}, and message_type "
                    f"{', '.join(map(str, program.message_type))}; give both the same names"
                )
            if all(isinstance(one, Monoid) and one != most_frequent for one in combine.values()):
                return dict(combine)
        if not isinstance(combine, Monoid) and not ismethod(combine):
            raise ProgramError(
                f"{self.name}.combine is none of hb.minimum, hb.maximum, hb.plus, hb.bitwise_or, "
                "hb.any_one, hb.most_frequent; or write it as a method: "
                "def combine(self, first, second)"
            )
        if isinstance(program.message_type, Mapping) and isinstance(combine, Monoid):
            raise ProgramError(
                f"{self.name}.combine is one monoid for messages of several fields; give a mapping "
                "with one for each, or a method"
            )
        if isinstance(combine, Monoid):
            return {"": combine}
        declared, neutral = program.message_type, program.identity
        declared = declared if isinstance(declared, Mapping) else {"": declared}
        wanted = len(scalars({name: type_name(kind) for name, kind in declared.items()}))
        several = wanted > 1 or "" not in declared
        numbers = neutral if several and isinstance(neutral, tuple) else (neutral,)
        kinds = int | float | np.number | np.bool_
        if len(numbers) != wanted or not all(isinstance(x, kinds) and x == x for x in numbers):
            what = f"a tuple of {wanted} numbers" if several else "a number"
            raise ProgramError(
                f"{self.name}.identity is {neutral!r}; a class with a method `combine` has "
                f"{what} there that changes no message"
            )
        return {"": Monoid("a method")}

    def _check_collected(self) -> None:
        """Raise `ProgramError` if a pull that collects messages cannot run the program."""
        program = self.program
        for name, given in (("monotone", program.monotone), ("most_frequent", self.counts)):
            if given:
                raise ProgramError(
                    f"{self.name} has {self.collects}, which {name} rules out; leave one out"
                )
        if program.active_apply and program.all_active:
            raise ProgramError(f"{self.name}: all_active includes active_apply; leave it out")

    def _message_types(self, kind: Any) -> dict[str, str]:
        """Return the types of a message's fields, from the one that the program declares."""
        kinds = dict(kind) if isinstance(kind, Mapping) else {"": kind}
        for field, one in kinds.items():
            if (field and not is_name(field)) or not type_name(one):
                raise ProgramError(f"{self.name}.message_type is {kind!r}; use {TYPES}")
        types = {field: type_name(one) for field, one in kinds.items()}
        if self.monoid.operation == "a method":
            self._neutral(scalars(types))
        for field, name in scalars(types).items():
            monoid = self.combines(field)
            if not monoid.suits(np.dtype(name)):
                raise ProgramError(f"{self.name}: {monoid.operation} does not combine {name}; "
                                   "set message_type to an integer type")  # fmt: skip
            if name == "bool" and monoid.operation == "plus":
                raise ProgramError(f"{self.name}: plus does not combine bool; set message_type")
        return types

    def _neutral(self, types: Mapping[str, str]) -> list[Any]:
        """Return the class's own identity, converted to the types of a message's numbers.

        Raises `ProgramError` if a type does not hold it.
        """
        given, found = self.program.identity, []
        numbers = given if isinstance(given, tuple) else (given,)
        for number, kind in zip(numbers, types.values(), strict=True):
            with np.errstate(all="ignore"):
                found.append(np.asarray(number).astype(kind).item())
            if found[-1] != number:
                raise ProgramError(
                    f"{self.name}.identity is {number!r}, which is not of type {kind}; set "
                    "message_type"
                )
        return found

    @cached_property
    def methods(self) -> list[str]:
        return [m for m in (*REQUIRED, *OPTIONAL) if callable(getattr(self.program, m, None))]

    @property
    def monoid(self) -> Monoid:
        """How messages of one field combine; `any_one` if they have several, or do not combine."""
        return self.monoids.get("", any_one)

    @property
    def messages(self) -> dict[str, str]:
        """The types of the numbers of a message: `message_kinds` with vectors spread."""
        return scalars(self.message_kinds)

    def combines(self, field: str) -> Monoid:
        return self.monoids.get(vector_of(field)[0], any_one)

    @property
    def message_type(self) -> str:
        """The type of messages of one value; "" if it is not known, or they have several."""
        return self.messages.get("", "")

    @cached_property
    def takes_messages(self) -> bool:
        """Whether `apply` goes through the messages one by one."""
        return "messages" in parameters_of(self.program, "apply")

    @cached_property
    def collects(self) -> str:
        """The parts of the program that need a pull in which each receiver goes through its
        messages one by one (collected.py); "" if nothing."""
        program = self.program
        sending = [method for method in SENDING if method in self.methods]
        reads = any("receiver" in parameters_of(program, method) for method in sending)
        needs = {
            "an `apply` of `messages`": self.takes_messages,
            "the receiver's state in `message`": reads,
            "messages of several fields": isinstance(program.message_type, Mapping),
            "vectors": any(map(length_of, (*self.kinds.values(), type_name(program.message_type)))),
            "fields of edges": bool(self.edge_kinds),
            "active_apply": self.active_apply,
            "a method message_back": self.sends_back,
        }
        return next((name for name, needed in needs.items() if needed), "")

    @cached_property
    def edge_kinds(self) -> dict[str, str]:
        return {name: type_name(kind) for name, kind in self.program.edges.items()}

    @property
    def written_edges(self) -> dict[str, str]:
        """The types of the fields of edges, if the program changes them."""
        return self.edge_kinds if "apply_edge" in self.methods else {}

    @property
    def edge_lists(self) -> list[str]:
        """Prefixes of the arrays of edges' fields, and of the neighbour lists with their order."""
        return ["backward_", ""] if self.sends_back else ["backward_"]

    @property
    def sends_back(self) -> bool:
        return "message_back" in self.methods

    @property
    def active_apply(self) -> bool:
        return bool(self.program.active_apply)

    @property
    def stored_type(self) -> str:
        """The type of `combined`: of messages, or of a flag if the program collects them."""
        return "int32" if self.collects or self.message_type == "bool" else self.message_type

    @property
    def identity(self) -> Any:
        """The identity of `combined`; None if there is none."""
        return None if self.collects else self.identities[0]

    @property
    def identities(self) -> list[Any]:
        """The identity of each field of messages, None if it has none."""
        if self.monoid.operation == "a method":
            found = self._neutral(self.messages)
        else:
            kinds = self.messages.items()
            found = [self.combines(field).identity(np.dtype(kind)) for field, kind in kinds]
        return [int(one) if isinstance(one, bool) else one for one in found]

    @cached_property
    def uses_weights(self) -> bool:
        """Whether messages, or new fields of edges, depend on the edge's weight."""
        reading = [method for method in OF_EDGES if method in self.methods]
        return any("weight" in parameters_of(self.program, method) for method in reading)

    @property
    def message_kind(self) -> str:
        """One of `MESSAGE_KINDS`."""
        if self.identity is None and not self.collects:
            return "any_one"
        return "weighted" if self.uses_weights else "unweighted"

    @property
    def counts(self) -> bool:
        """Whether messages are counted instead of combined."""
        return self.monoid == most_frequent

    @property
    def receives_messages(self) -> bool:
        return "receives" in self.methods and "message" in parameters_of(self.program, "receives")


def is_name(name: Any) -> bool:
    """Tell whether a text can be a name in Python and in OpenCL C."""
    return isinstance(name, str) and name.isidentifier() and name.isascii()


def type_name(kind: Any) -> str:
    """Return the name of a type of numbers or vectors, as (numpy.float32, 8); "" if it is none."""
    vector = isinstance(kind, tuple) and len(kind) == 2
    base, length = kind if vector else (kind, 0)
    try:
        name = "" if base is None else str(np.dtype(base).name)
    except (TypeError, ValueError, SyntaxError):
        name = ""
    if name not in FIELD_TYPES or (vector and length not in range(1, _MOST_ELEMENTS + 1)):
        return ""
    return f"({length},){name}" if vector else name


def declared_by(program: Program) -> Iterator[Any]:
    """Yield a program's declarations: its methods' code, and copies of values that may change."""
    for name in OF_CLASS:
        value = getattr(program, name, None)
        if isinstance(value, Mapping):
            yield from (len(value), *value, *value.values())
        else:
            yield tuple(value) if isinstance(value, list) else code_of(value)
