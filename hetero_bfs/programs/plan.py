"""A program with its parameters: types, names, and its translated methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError, ProgramError
from hetero_bfs.programs.codegen.dialects import Dialect, HostDialect
from hetero_bfs.programs.codegen.digits import Digits, declared, of_argument, type_of_messages
from hetero_bfs.programs.codegen.method_source import FIELD_TYPES, Method, Source, parameters_of
from hetero_bfs.programs.codegen.translate import Function, translate
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.program import (
    Along,
    Monoid,
    OwnMonoid,
    Program,
    any_one,
    minimum,
    monoid_of,
    most_frequent,
)
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.support.checks import refuse_masked
from hetero_bfs.support.messages import shown

REQUIRED = ("initial", "message", "apply")
OPTIONAL = ("receives", "measure", "finished", "priority", "combine")

_WAYS = ", ".join(get_args(Along))
_OF_VERTEX = ("vertex", "degree", "num_vertices")
_OF_RUN = ("iteration", "num_vertices", "num_active")
_RESERVED = {*_OF_VERTEX, *_OF_RUN, "self", "state", "previous", "weight", "message", "combined"}
_OF_CLASS = (*REQUIRED, *OPTIONAL, *Program.__annotations__)
_OF_RESULT = {*dir(ProgramResult), *(field.name for field in fields(ProgramResult))}
_OPTIONS = {field.name for field in fields(RunOptions)}


@dataclass(frozen=True)
class Parameters:
    """A run's arguments: numbers, and arrays with a value per vertex (caller's ids)."""

    integers: Mapping[str, int]
    fractions: Mapping[str, float]
    arrays: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def of(cls, values: Mapping[str, Any], num_vertices: int) -> Parameters:
        """Sort parameters by kind.

        Raises `ArgumentError` if one is neither a number nor an array with one number per vertex,
        and `GraphError` if entries of an array are masked.
        """
        integers: dict[str, int] = {}
        fractions: dict[str, float] = {}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in sorted(values.items()):  # compiled code is cached by their order
            if isinstance(value, RunOptions):
                raise ArgumentError(
                    f"{name} holds options, which are not a parameter; give them without a name: "
                    "engine.run(program, hb.RunOptions(...))"
                )
            refuse_masked(f"parameter {name}", value)
            if isinstance(value, np.ndarray) and value.ndim:
                arrays[name] = _checked_array(name, value, num_vertices)
                continue
            number = value
            if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf":
                number = value.item()
            if isinstance(number, int) and -(2**63) <= number < 2**63:
                integers[name] = number
            elif isinstance(number, float):
                fractions[name] = number
            else:
                raise ArgumentError(
                    f"parameter {name} is {shown(value)}; give a number of 64 bits, or a "
                    f"NumPy array of {num_vertices} of them"
                )
        return cls(integers, fractions, arrays)

    @property
    def sources(self) -> dict[str, Source]:
        """Values that methods can read, by name. Python's numbers have weak types."""
        kinds = {n: "bool" if isinstance(v, bool) else "int64" for n, v in self.integers.items()}
        numbers = {n: Source("", n, kind, kind != "bool") for n, kind in kinds.items()}
        numbers |= {name: Source("", name, "float64", True) for name in self.fractions}
        return numbers | {n: Source("", n, a.dtype.name, False) for n, a in self.arrays.items()}

    @cached_property
    def digits(self) -> dict[str, Digits]:
        values: dict[str, Any] = {**self.integers, **self.fractions, **self.arrays}
        return {name: of_argument(value) for name, value in values.items()}


def _checked_array(name: str, array: npt.NDArray[Any], num_vertices: int) -> npt.NDArray[Any]:
    if array.shape != (num_vertices,) or array.dtype.name not in FIELD_TYPES:
        raise ArgumentError(
            f"parameter {name} is an array of shape {array.shape} and type {array.dtype}; give one "
            f"value a vertex, shape ({num_vertices},), of {', '.join(FIELD_TYPES)}"
        )
    native = array.dtype.name  # in the machine's byte order
    return np.asarray(array).astype(native, copy=False)


class Plan:
    """A program's types and methods, for parameters and weights of certain types.

    Raises `ProgramError` if the class lacks something or a method cannot be translated,
    `ArgumentError` if no method names a parameter, and `GraphError` if the program reads weights
    and there are none.
    """

    message_type = ""  # until `message` is translated

    def __init__(self, program: Program, parameters: Parameters, weight_type: str | None) -> None:
        self.program, self.parameters, self.weight_type = program, parameters, weight_type
        self.name = type(program).__name__
        self._check()
        self.fields = {name: np.dtype(kind).name for name, kind in program.state.items()}
        self.totals = tuple(program.totals)
        self.all_active = bool(program.all_active)
        self.along: Along = program.along
        self.monotone = bool(program.monotone)
        self.any_order = bool(program.any_order)
        if self.uses_weights and weight_type is None:
            raise GraphError(
                f"{self.name} reads weights, and the graph has none; load it with weights"
            )
        used = {
            name
            for method in self.methods
            if method != "combine"
            for name in parameters_of(program, method)
        }
        unknown = [name for name in parameters.sources if name not in used]
        if unknown and unknown[0] in _OPTIONS:
            raise ArgumentError(
                f"{unknown[0]} is an option, no parameter of {self.name}; give "
                f"engine.run(program, hb.RunOptions({unknown[0]}=...))"
            )
        if unknown:
            raise ArgumentError(
                f"{self.name} has no parameter {unknown[0]!r}; its methods name "
                f"{', '.join(sorted(used))}"
            )
        self.message_type = self._message_type()

    def _check(self) -> None:
        program, name = self.program, self.name
        missing = [method for method in REQUIRED if not callable(getattr(program, method, None))]
        if missing:
            raise ProgramError(f"{name} has no method {missing[0]}; see help(hetero_bfs.Program)")
        self.monoid = self._monoid()
        state = getattr(program, "state", None)
        if not isinstance(state, Mapping) or not state:
            raise ProgramError(f'{name}.state is not a mapping, such as {{"level": numpy.int32}}')
        for field, kind in state.items():
            if not _is_name(field) or _type_name(kind) not in FIELD_TYPES:
                raise ProgramError(
                    f"{name}.state: {field!r} of {kind!r}; use names, and {', '.join(FIELD_TYPES)}"
                )
            if field in _OF_RESULT:
                raise ProgramError(
                    f"{name}.state: results have something else of the name {field!r}; rename it"
                )
        if program.along not in get_args(Along):
            raise ProgramError(f"{name}.along is {program.along!r}; use {_WAYS}")
        if self.monoid == most_frequent and not program.all_active:
            raise ProgramError(f"{name}: most_frequent counts the messages of all neighbours; set "
                               "all_active = True")  # fmt: skip
        if program.all_active and self.monoid == any_one:
            raise ProgramError(f"{name}: any_one has no identity, which all_active needs")
        if program.all_active and "priority" in self.methods:
            raise ProgramError(f"{name}: no vertex waits for its priority if all are active")
        if program.monotone and (self.monoid != minimum or "priority" not in self.methods):
            raise ProgramError(f"{name}: a monotone program has `priority` and hb.minimum")
        if program.monotone and program.along != "out":
            raise ProgramError(f'{name}: a monotone program has along = "out"; leave monotone out')
        self._check_totals()
        self._check_spelling()

    def _monoid(self) -> Monoid:
        monoid = monoid_of(self.program)
        if monoid is None:
            raise ProgramError(
                f"{self.name}.combine is none of hb.minimum, hb.maximum, hb.plus, hb.bitwise_or, "
                "hb.any_one, hb.most_frequent; or write it as a method: "
                "def combine(self, first, second)"
            )
        if isinstance(monoid, OwnMonoid):
            neutral = monoid.neutral
            if not isinstance(neutral, int | float | np.number | np.bool_) or neutral != neutral:
                raise ProgramError(
                    f"{self.name}.identity is {neutral!r}; a class with a method `combine` has a "
                    "number there that changes no message"
                )
        return monoid

    def _check_spelling(self) -> None:
        """Raise `ProgramError` if a name of the class is nearly one that programs may have.

        Names that a method reads, such as constants, are the user's own.
        """
        owners = [owner for owner in type(self.program).__mro__ if owner not in Program.__mro__]
        codes = [getattr(getattr(self.program, m), "__code__", None) for m in self.methods]
        read = {name for code in codes if code is not None for name in code.co_names}
        for name in (name for owner in owners for name in vars(owner)):
            if name.startswith("_") or name in _OF_CLASS or name in read:
                continue
            if near := get_close_matches(name, _OF_CLASS, 1, 0.8):
                raise ProgramError(
                    f"{self.name}.{name}: programs have {near[0]}, and no {name}; correct the "
                    "name, or begin your own with an underscore"
                )

    def _check_totals(self) -> None:
        name, totals = self.name, self.program.totals
        if not isinstance(totals, tuple | list) or not all(map(_is_name, totals)):
            raise ProgramError(f"{name}.totals is {totals!r}; give a tuple of names")
        taken = [total for total in totals if total in _RESERVED or totals.count(total) > 1]
        if taken:
            raise ProgramError(f"{name}.totals: {taken[0]!r} is the name of something else, too")
        if bool(totals) != ("measure" in self.methods):
            raise ProgramError(f"{name}: `totals` and `measure` go together; define both or none")

    def _message_type(self) -> str:
        kind = self.program.message_type
        if kind is None:
            returned = translate(self._method("message"), HostDialect()).first
            kind = type_of_messages(returned.type, returned.digits, self.fields)
        name = _type_name(kind)
        if name not in FIELD_TYPES:
            raise ProgramError(
                f"{self.name}.message_type is {kind!r}; use {', '.join(FIELD_TYPES)}"
            )
        if isinstance(self.monoid, OwnMonoid):
            self._check_identity(self.monoid, name)
        if not self.monoid.suits(np.dtype(name)):
            raise ProgramError(f"{self.name}: {self.monoid.operation} does not combine {name}; "
                               "set message_type to an integer type")  # fmt: skip
        if name == "bool" and self.monoid.operation == "plus":
            raise ProgramError(f"{self.name}: plus does not combine bool; set message_type")
        return name

    def _check_identity(self, monoid: OwnMonoid, message_type: str) -> None:
        with np.errstate(all="ignore"):
            kept = monoid.identity(np.dtype(message_type))
        if kept != monoid.neutral:
            raise ProgramError(
                f"{self.name}.identity is {monoid.neutral!r}, which is not of type {message_type}; "
                "set message_type"
            )

    @property
    def methods(self) -> list[str]:
        return [m for m in (*REQUIRED, *OPTIONAL) if callable(getattr(self.program, m, None))]

    @property
    def stored_type(self) -> str:
        return "int32" if self.message_type == "bool" else self.message_type

    @property
    def identity(self) -> Any:
        """The identity of messages; None if there is none."""
        identity = self.monoid.identity(np.dtype(self.message_type))
        return int(identity) if isinstance(identity, bool) else identity

    @cached_property
    def uses_weights(self) -> bool:
        """Whether messages depend on the edge's weight."""
        return "weight" in parameters_of(self.program, "message")

    @property
    def message_kind(self) -> str:
        """One of `MESSAGE_KINDS`."""
        if self.identity is None:
            return "any_one"
        return "weighted" if self.uses_weights else "unweighted"

    @property
    def counts(self) -> bool:
        """Whether messages are counted instead of combined."""
        return self.monoid == most_frequent

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
        rounds = not (self.all_active or self.monotone or self.totals)
        return rounds and (self.prepares or not reads_state)

    @property
    def receives_messages(self) -> bool:
        return "receives" in self.methods and "message" in parameters_of(self.program, "receives")

    def functions(self, make_dialect: Callable[[], Dialect]) -> dict[str, Function]:
        return {name: translate(self._method(name), make_dialect()) for name in self.methods}

    def _method(self, name: str) -> Method:
        """Return a method to translate. The message type may still be unknown for `message`."""
        kind = self.message_type or "float64"
        message = Source("", "message", kind, False)
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
        if name == "message" and self.weight_type is not None:
            names["weight"] = Source("", "weight", self.weight_type, False)
        if name == "receives":
            names["message"] = message
        if name in ("apply", "finished"):
            names |= {n: Source("", n, "float64", True) for n in self.totals}
        if name == "apply":
            names["combined"] = message._replace(name="combined")
        if name == "combine":
            names = {n: message._replace(name=n) for n in ("first", "second")}
        owners = {"initial": (), "combine": (), "finished": (), "measure": ("state", "previous")}
        fields = list(self.fields.values())
        results = {
            "initial": fields, "apply": fields, "message": [kind],
            "receives": ["bool"], "finished": ["bool"], "priority": ["float64"],
            "measure": ["float64"] * len(self.totals), "combine": [kind],
        }  # fmt: skip
        named = [f"field {field!r}" for field in self.fields]
        stored = {
            "initial": named, "apply": named, "message": ["messages"], "combine": ["messages"],
        }  # fmt: skip
        digits = dict(self.parameters.digits)
        if self.weight_type is not None:
            digits["weight"] = declared(self.weight_type, self.weight_type.startswith("float"))
        optional = "bool" if name in ("initial", "apply") else None
        return Method(
            self.program, name, self.fields, owners.get(name, ("state",)), names, results[name],
            optional, digits, stored.get(name, []),
        )  # fmt: skip


def arguments_of(program: Program) -> list[str]:
    """Return the names of a run's arguments, which are those that the methods read and that have no
    other meaning."""
    methods = [one for one in (*REQUIRED, *OPTIONAL) if callable(getattr(program, one, None))]
    read = {name for one in methods if one != "combine" for name in parameters_of(program, one)}
    return sorted(read - _RESERVED - {*program.totals})


def _is_name(name: Any) -> bool:
    """Tell whether a text can be a name in Python and in OpenCL C."""
    return isinstance(name, str) and name.isidentifier() and name.isascii()


def _type_name(kind: Any) -> str:
    try:
        return "" if kind is None else str(np.dtype(kind).name)
    except (TypeError, ValueError, SyntaxError):
        return ""
