"""Code that adapters in both languages share.

An adapter loads the values that a translated method reads, calls it, and stores its results. The
host's adapters are in host_code.py, the devices' adapters in device_code.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hetero_bfs.programs.codegen.dialects import Dialect, Template
from hetero_bfs.programs.codegen.method_source import MESSAGES, Source, length_of, vector_of
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Monoid, any_one

_SIGNS = {"plus": "+", "bitwise_or": "|"}


class Adapters:
    """Attributes of type `Template` are format strings, called with the codes of their parts."""

    array: Template
    """Of the name of an array."""
    number: Template
    """Of an array and a vertex: the vertex's entry, as int64."""
    sends: Template
    """Of a vertex: whether it sends."""
    takes: Template
    """Of the fields of a message: whether vertex v takes it."""
    messages: str
    """The code of the arguments of functions that go through the messages to a vertex."""
    sums: str
    """The array of totals to which `start` and `apply` add."""

    def __init__(self, plan: Plan, dialect: type[Dialect]) -> None:
        self.plan = plan
        self.dialect = dialect()
        self.functions = plan.once(Plan.functions, dialect)
        self.integers = list(plan.parameters.integers)
        self.fractions = list(plan.parameters.fractions)

    def of_run(self, name: str) -> str:
        raise NotImplementedError

    def truth(self, code: str) -> str:
        """Return the code of a truth value that is stored as an integer."""
        return f"({code} != 0)"

    def combination(self) -> str:
        """Return the code that combines the messages `first` and `second`."""
        kind = self.plan.stored_type
        if self.plan.monoid.operation == "a method":
            is_bool = self.plan.message_type == "bool"
            given = [self.truth(x) if is_bool else x for x in self.arguments("combine")]
            code = f"user_combine({', '.join(given)})"
            return self.dialect.conversion("bool", kind, code) if is_bool else code
        return self.merged(self.plan.monoid, kind, "first", "second")

    def merged(self, monoid: Monoid, kind: str, first: str, second: str) -> str:
        """Return the code that combines two values by a monoid which is not a method."""
        operation = monoid.operation
        if operation == "any_one":
            return second
        if operation in _SIGNS:
            return self.dialect.binary(_SIGNS[operation], kind, first, second)
        if kind == "bool":
            return self.dialect.boolean("or" if operation == "maximum" else "and", [first, second])
        # most_frequent takes the least of equally frequent messages.
        return self.dialect.extreme(operation != "maximum", kind, first, second)

    def names(self, prefix: str) -> list[str]:
        """Return a variable for each field of messages."""
        return [f"{prefix}_{field}" if field else prefix for field in self.plan.messages]

    def merges(self) -> list[str]:
        """Return the code of each combined field of `combined` and `message`, without a method."""
        rows = zip(
            map(self.plan.combines, self.plan.messages), self.plan.messages.values(),
            self.names("combined"), self.names("message"), strict=True,
        )  # fmt: skip
        return [self.merged(*row) for row in rows]

    def neutrals(self) -> list[str]:
        """Return the identity of each field of messages, any number if it has none."""
        pairs = zip(self.plan.identities, self.plan.messages.values(), strict=True)
        return [self.dialect.literal(identity or 0, kind) for identity, kind in pairs]

    def differs(self) -> str:
        """Return the code that tests whether `combined` is not the identity; "" if none is."""
        if None in self.plan.identities:
            return ""
        pairs = zip(self.names("combined"), self.neutrals(), strict=True)
        tests = [self.dialect.comparison("!=", *pair) for pair in pairs]
        return self.dialect.boolean("or", tests)

    def _collect(self) -> list[str]:
        """Return the lines that apply the messages to a vertex, and store its new state aside."""
        plan, dialect, kinds = self.plan, self.dialect, self.plan.messages.values()
        assign, names, combined = dialect.assign, self.names("message"), self.names("combined")
        lines = [
            *self._declared({"found": "bool"}),
            assign("found", dialect.literal(False, "bool")),
        ]
        steps = dialect.fetch(0, dict(zip(names, kinds, strict=True)))
        steps += [assign("found", dialect.literal(True, "bool"))]
        if plan.takes_messages:
            steps += [dialect.leave("break")]
        else:
            lines += self._declared(dict(zip(combined, kinds, strict=True)))
            lines += map(assign, combined, self.neutrals())
            if plan.monoid.operation == "a method":
                for to, of in (("first", combined), ("second", names)):
                    steps += self._declared(dict(zip(self.names(to), kinds, strict=True)))
                    steps += map(assign, self.names(to), of)
                steps += [self._assigned(combined, "combine")]
            else:
                steps += map(assign, combined, self.merges())
        if not (plan.takes_messages and plan.all_active):
            lines += self._block(dialect.begin_messages(0), steps)
        if not plan.takes_messages and self.differs():
            lines += [assign("found", self.differs())]
        if plan.active_apply:
            lines += [assign("found", dialect.boolean("or", ["found", self.sends("v")]))]
        none, applied, active = (dialect.literal(flag, "int32") for flag in range(3))
        if not plan.all_active:
            none_found = dialect.begin_if(dialect.negation("found"))
            lines += self._block(none_found, dialect.return_values([none]))
        lines += self._store("apply", "new")
        lines += self._apply_edge()
        if self.returns_activity("apply"):
            applied = dialect.choice("is_active", active, applied)
        return [*lines, *dialect.return_values([applied])]

    def _fetch(self) -> str:
        """Return the function that fetches message k of a vertex: whether it is one, its fields."""
        plan, dialect, names = self.plan, self.dialect, self.names("message")
        kinds = dict(zip(names, plan.messages.values(), strict=True))
        results = ["bool", *kinds.values()]
        none = dialect.return_values([dialect.literal(0, kind) for kind in results])
        message = dialect.return_values([self.takes(", ".join(names)), *names])

        def along(method: str, lists: str, entry: str) -> list[str]:
            sender, *held = self._at_entry(lists, entry)
            lines = [*held, self._assigned(names, method, "u"), *message]
            if plan.all_active:
                return [sender, *lines]
            return [sender, *self._block(dialect.begin_if(self.sends("u")), lines), *none]

        lines = self._declared(kinds)
        if plan.sends_back:
            back = along("message_back", "", "back_begin + k - count")
            lines += self._block(dialect.begin_if("k >= count"), back)
        lines += along("message", "backward_", "begin + k")
        parameters = [("", MESSAGES), ("k", "OFFSET")]
        indented = [f"    {line}" for line in lines]
        return dialect.function("fetch", parameters, results, indented)

    def _apply_edge(self) -> list[str]:
        """Return the lines that write the fields of the entries along which a vertex receives."""
        kinds = self.plan.written_edges
        if not kinds:
            return []
        names = [f"new_edge_{name}" for name in kinds]
        lines = [
            *self._at_entry("backward_", "c_0"),
            *self._declared(dict(zip(names, kinds.values(), strict=True))),
        ]
        lines.append(self._assigned(names, "apply_edge", "u"))
        fields = [f"{self.array(f'backward_edge_{name}')}[c_0]" for name in kinds]
        lines += map(self.dialect.assign, fields, names)
        return self._block(self.dialect.begin_range(0, "begin", "begin + count"), lines)

    def _at_entry(self, lists: str, entry: str) -> list[str]:
        """Return the lines that load the other end of an edge as `u`, its weight and its fields."""
        raise NotImplementedError

    def _block(self, head: str, lines: Sequence[str]) -> list[str]:
        end = self.dialect.end_block
        return [head, *(f"    {line}" for line in lines), *([end] if end else [])]

    def _declared(self, kinds: Mapping[str, str]) -> list[str]:
        """Return the lines that declare variables, given by name and type."""
        return []

    def _assigned(
        self, to: Sequence[str], method: str, vertex: str = "v", held: Sequence[str] = ()
    ) -> str:
        """Return the line that calls a method and assigns its results."""
        raise NotImplementedError

    def _function(self, head: str, lines: Sequence[str]) -> str:
        raise NotImplementedError

    def _call(self, method: str, vertex: str = "v") -> str:
        return f"user_{method}({', '.join(self.arguments(method, vertex))})"

    def _simple(self, head: str, method: str, default: str) -> str:
        """Return a function that calls a method, if the program has it."""
        body = self._call(method) if method in self.functions else default
        return self._function(head, self.dialect.return_values([body]))

    def _receives(self) -> tuple[str, str]:
        """Return the codes that tell whether a vertex takes messages, and whether one message."""
        always = self.dialect.literal(True, "bool")
        call = self._call("receives") if "receives" in self.functions else always
        return (always, call) if self.plan.receives_messages else (call, always)

    def _store(self, method: str, array: str = "state") -> list[str]:
        """Return the lines that call `initial` or `apply` and store the new state."""
        fields = self.plan.fields
        kinds = {f"now_{name}": kind for name, kind in fields.items()}
        entries = [self.entry(array, name, "v") for name in fields]
        stores = list(map(self.dialect.assign, entries, kinds))
        if self.returns_activity(method):
            kinds["is_active"] = "bool"
        return [*self._declared(kinds), self._assigned([*kinds], method), *stores]

    def _held(self, prefix: str, codes: Sequence[str]) -> list[str]:
        """Return the lines that assign codes to a variable for each number of a state."""
        kinds = {f"{prefix}_{name}": kind for name, kind in self.plan.fields.items()}
        return [*self._declared(kinds), *map(self.dialect.assign, kinds, codes)]

    def _measured(self) -> list[str]:
        """Return the lines that add the vertex's shares to the totals."""
        totals = self.plan.totals
        if not totals:
            return []
        held = [f"{word}_{name}" for word in ("now", "before") for name in self.plan.fields]
        shares = {f"share_{name}": "float64" for name in totals}
        lines = [*self._declared(shares), self._assigned([*shares], "measure", held=held)]
        for i, (share, kind) in enumerate(zip(shares, totals.values(), strict=True)):
            total = f"{self.sums}[{i}]"
            lines.append(self.dialect.assign(total, self.added(kind, total, share)))
        return lines

    def _start(self) -> list[str]:
        lines = self._store("initial")
        if self.plan.totals:
            lines += self._held("before", [f"now_{name}" for name in self.plan.fields])
        return [*lines, *self._measured(), *self.dialect.return_values([self._starts_active()])]

    def _starts_active(self) -> str:
        """Return the code that tells whether a vertex is active at the start."""
        plan = self.plan
        of_numbers = "" in plan.messages and not length_of(next(iter(plan.kinds.values())))
        has_rest = plan.monoid != any_one and of_numbers  # a state that is not sent at first
        if not plan.all_active and self.returns_activity("initial"):
            return "is_active"
        if plan.all_active or not has_rest:
            return self.dialect.literal(True, "bool")
        return self.dialect.negation(self.is_identity(f"now_{next(iter(plan.fields))}"))

    def _apply(self) -> list[str]:
        plan, dialect = self.plan, self.dialect
        lines = self._held("before", [self._field(name, "v") for name in plan.fields])
        if plan.collects:
            entries = [self.entry("state", name, "v") for name in plan.fields]
            lines += self._held("now", [self._field(name, "v", "new") for name in plan.fields])
            lines += map(dialect.assign, entries, [f"now_{name}" for name in plan.fields])
            lines += self._declared({"is_active": "bool"})
            lines += [dialect.assign("is_active", dialect.comparison("==", "combined", "2"))]
        else:
            lines += self._store("apply")
        active = "is_active" if self.returns_activity("apply") else self._changed()
        return [*lines, *self._measured(), *dialect.return_values([active])]

    def _changed(self) -> str:
        """Return the code that tells whether the new state differs; NaN equals NaN."""
        dialect, tests = self.dialect, []
        for name, kind in self.plan.fields.items():
            both = f"now_{name}", f"before_{name}"
            same = dialect.comparison("==", *both)
            if kind.startswith("float"):
                nans = dialect.boolean("and", [dialect.test("isnan", one) for one in both])
                same = dialect.boolean("or", [same, nans])
            tests.append(dialect.negation(same))
        return dialect.boolean("or", tests)

    def added(self, operation: str, total: str, share: str) -> str:
        """Return the code that adds a vertex's share to a total."""
        if operation == "plus":
            return self.dialect.binary("+", "float64", total, share)
        return self.dialect.extreme(operation == "minimum", "float64", total, share)

    def is_identity(self, name: str) -> str:
        """Return the code that tests whether variable `name`, the first field, is the identity."""
        kind = next(iter(self.plan.fields.values()))
        identity = self.plan.monoid.identity(np.dtype(kind))
        return self.dialect.comparison("==", name, self.dialect.literal(identity, kind))

    def returns_activity(self, method: str) -> bool:
        """Tell whether `initial` or `apply` also returns whether the vertex is active."""
        return self.functions[method].num_results > len(self.plan.fields)

    def arguments(self, method: str, vertex: str = "v", held: Sequence[str] = ()) -> list[str]:
        """Return the code of a method's arguments; variables already hold the fields in `held`."""
        sources = self.functions[method].parameters
        if method == "combine":
            return [f"{s.owner}_{s.name}" if s.owner else s.name for s in sources]
        receivers = "new" if method == "apply_edge" else "state"
        return [self._load(source, vertex, held, receivers) for source in sources]

    def _load(self, source: Source, vertex: str, held: Sequence[str], receivers: str) -> str:
        name = source.name
        if source.type == MESSAGES:
            return self.messages
        if source.owner == "edge":
            return self.truth(f"at_edge_{name}") if source.type == "bool" else f"at_edge_{name}"
        if source.owner == "receiver":
            return self._field(name, "v", receivers)
        if source.owner in ("message", "combined"):
            return f"{source.owner}_{name}"
        if source.owner:
            before = source.owner == "previous"  # of v, the vertex that applies
            variable = f"{'before' if before else 'now'}_{name}"
            return variable if variable in held else self._field(name, "v" if before else vertex)
        if name in ("message", "combined"):
            return self.truth(name) if self.plan.message_type == "bool" else name
        if name in self.plan.totals:
            return f"{self.array('totals')}[{[*self.plan.totals].index(name)}]"
        if name in self.integers:
            code = f"{self.array('integers')}[{self.integers.index(name)}]"
            return self.truth(code) if source.type == "bool" else code
        if name in self.fractions:
            return f"{self.array('fractions')}[{self.fractions.index(name)}]"
        if name in ("vertex", "degree"):
            return self.number("names" if name == "vertex" else "degree", vertex)
        if vector_of(name)[0] in self.plan.parameters.arrays:
            code = self.entry("parameter", name, vertex)
            return self.truth(code) if source.type == "bool" else code
        return "weight" if name == "weight" else self.of_run(name)

    def _field(self, name: str, vertex: str, array: str = "state") -> str:
        code = self.entry(array, name, vertex)
        return self.truth(code) if self.plan.fields[name] == "bool" else code

    def entry(self, array: str, name: str, vertex: str) -> str:
        """Return the code of a vertex's number in an array, as of a field of the state."""
        vector, index = vector_of(name)
        place = vertex if index < 0 else self.place_in(f"{array}_{vector}", vertex, index)
        return f"{self.array(f'{array}_{vector}')}[{place}]"

    def place_in(self, array: str, vertex: str, index: int) -> str:
        """Return the place of an element in an array of vectors."""
        raise NotImplementedError
