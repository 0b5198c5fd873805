"""Runs of vertex programs by plain Python, one vertex after the other, from the programs' classes.

Import as `from plain_programs import ...`: tests/conftest.py puts this folder on the path.
This is what runs on the host and on devices are compared with. It shares nothing with them but the
combination of two messages.
"""

from __future__ import annotations

import inspect
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from inspect import ismethod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from plain_python import convert

import hetero_bfs as hb
from hetero_bfs.programs.program import Monoid

_NO_TOTAL = {"plus": 0.0, "minimum": np.inf, "maximum": -np.inf}


@dataclass(frozen=True)
class OwnMonoid(Monoid):
    """A program's own method `combine`, with the class's `identity`."""

    method: Callable[[Any, Any], Any]
    neutral: Any

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """Return the identity, converted to a type."""
        return np.asarray(self.neutral).astype(dtype).item()

    def of(self, first: Any, second: Any) -> Any:
        return self.method(first, second)


def monoid_of(program: Any) -> Monoid | None:
    """Return how a program combines messages; None unless `combine` is a monoid or a method."""
    combine = getattr(program, "combine", None)
    if ismethod(combine):
        return OwnMonoid("a method", combine, getattr(program, "identity", None))
    return combine if isinstance(combine, Monoid) else None


class Outcome(NamedTuple):
    """What a run gives."""

    state: dict[str, np.ndarray]
    iterations: int
    converged: bool
    totals: dict[str, float]
    edges: dict[str, np.ndarray] | None = None


class PlainRun:
    """A run of a program on a graph.

    Parameters
    ----------
    program : Program
    graph : CSRGraph
    parameters : dict
    alone : bool
        Whether a vertex without any edge keeps a run going.
    seed : int
        Of the order in which messages come.
    """

    def __init__(self, program: hb.Program, graph, parameters, alone: bool, seed: int = 0) -> None:
        self.program, self.graph, self.parameters = program, graph, parameters
        self.n = graph.num_vertices
        self.kinds = {name: np.dtype(kind) for name, kind in program.state.items()}
        declared = program.message_type or next(iter(program.state.values()))
        declared = declared if isinstance(declared, dict) else {"": declared}
        self.message_kinds = {name: np.dtype(kind) for name, kind in declared.items()}
        self.monoid = monoid_of(program)
        self.identity = self._identity()
        self.edges = {name: parameters[name].tolist() for name in program.edges}
        self.random = random.Random(seed)
        self.receivers = self._receivers()
        self.senders: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        for u, receivers in enumerate(self.receivers):
            for v, k in receivers:
                self.senders[v].append((u, k))
        self.degree = [len(receivers) for receivers in self.receivers]
        ends = np.diff(graph.indptr) + np.bincount(graph.indices, minlength=self.n)[: self.n]
        self.counts = np.full(self.n, True) if alone else ends > 0
        names = ["initial", "message", "message_back", "receives", "apply", "measure", "finished"]
        names += ["apply_edge"]
        self.methods = {name: self._method(name) for name in names if hasattr(program, name)}
        wanted = self.methods["receives"][1] if "receives" in self.methods else None
        self.takes = None if wanted is None else "message" in wanted  # messages one by one
        named = program.totals
        kinds = named if isinstance(named, dict) else dict.fromkeys(named, hb.plus)
        self.total_monoids = [*kinds.values()]
        self.totals: dict[str, float] = {}
        self.iteration = 0

    def _identity(self) -> Any:
        """Return the message that counts as none; None if there is none."""
        if "" in self.message_kinds:
            return None if self.monoid is None else _identity(self.monoid, self.message_kinds[""])
        neutral = getattr(self.program, "identity", None)
        if neutral is None:
            pairs = zip(self.program.combine.values(), self.message_kinds.values(), strict=True)
            neutral = tuple(_identity(monoid, kind) for monoid, kind in pairs)
        return None if None in neutral else self._message(neutral)

    def _message(self, sent: Any) -> Any:
        """Return a message of the declared types; its fields are attributes if it has some."""
        if "" in self.message_kinds:
            return _stored(sent, self.message_kinds[""])
        kinds = self.message_kinds.items()
        parts = [
            (name, _stored(part, kind)) for (name, kind), part in zip(kinds, sent, strict=True)
        ]
        return SimpleNamespace(**dict(parts))

    def _receivers(self) -> list[list[tuple[int, int]]]:
        """Return to whom each vertex sends, and along which entry of the lists."""
        receivers: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        way = self.program.along if self.graph.directed else "out"
        indptr, indices = self.graph.indptr.tolist(), self.graph.indices.tolist()
        for u in range(self.n):
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if way in ("out", "both"):
                    receivers[u].append((v, k))
                if way in ("in", "both"):
                    receivers[v].append((u, k))
        return receivers

    def _method(self, name: str) -> tuple[Callable[..., Any], list[str]]:
        function = getattr(self.program, name)
        return function, list(inspect.signature(function).parameters)

    def _call(self, name: str, vertex: int | None, **known: Any) -> Any:
        function, wanted = self.methods[name]
        return function(*[known[w] if w in known else self._argument(w, vertex) for w in wanted])

    def _argument(self, word: str, vertex: int | None) -> Any:
        if word in ("vertex", "degree"):
            return vertex if word == "vertex" else self.degree[vertex]
        if word in ("iteration", "num_vertices"):
            return self.iteration if word == "iteration" else self.n
        if word in self.totals:
            return self.totals[word]
        value = self.parameters[word]
        return value[vertex] if isinstance(value, np.ndarray) else value

    def _stored(self, returned: Any) -> tuple[SimpleNamespace, Any]:
        """Return a state of the fields' types, and what was returned beside it."""
        values = returned if isinstance(returned, tuple) else (returned,)
        fields = zip(self.kinds.items(), values, strict=False)
        state = SimpleNamespace(**{name: _stored(value, kind) for (name, kind), value in fields})
        return state, values[len(self.kinds)] if len(values) > len(self.kinds) else None

    def _begin(self) -> list[int]:
        first, kind = next(iter(self.kinds.items()))
        rests = self.monoid is not None and "" in self.message_kinds
        resting = self.monoid.identity(kind) if rests and not kind.shape else None
        self.states, active = [], []
        for vertex in range(self.n):
            state, is_active = self._stored(self._call("initial", vertex))
            if is_active is None:
                is_active = resting is None or getattr(state, first) != resting
            self.states.append(state)
            if is_active:
                active.append(vertex)
        self._measure([(v, state, state) for v, state in enumerate(self.states)])
        return active

    def _measure(self, changes: list[tuple[int, Any, Any]]) -> None:
        sums = [_NO_TOTAL[monoid.operation] for monoid in self.total_monoids]
        for vertex, state, previous in changes if sums else ():
            shares = self._call("measure", vertex, state=state, previous=previous)
            for i, share in enumerate(shares if isinstance(shares, tuple) else (shares,)):
                sums[i] = self.total_monoids[i].of(sums[i], float(share))
        self.totals = dict(zip(self.program.totals, sums, strict=True))

    def _gather(self, active: list[int]) -> dict[int, Any]:
        """Return the messages to each vertex, combined."""
        messages: dict[int, list[Any]] = {}
        for u in self.random.sample(active, len(active)):
            self._send("message", u, self.receivers[u], messages)
            if "message_back" in self.methods:
                self._send("message_back", u, self.senders[u], messages)
        return {v: self._combined(messages[v]) for v in messages}

    def _send(self, method: str, u: int, ends: list[Any], messages: dict[int, list[Any]]) -> None:
        for v, k in ends:
            if self.takes is False and not self._receives(v):
                continue
            known = {"receiver": self.states[v]}
            message = self._message(self._call(method, u, **known, **self._at_entry(u, k)))
            if not self.takes or self._receives(v, message):
                messages.setdefault(v, []).append(message)

    def _at_entry(self, u: int, k: int) -> dict[str, Any]:
        edge = SimpleNamespace(**{name: values[k] for name, values in self.edges.items()})
        weights = self.graph.weights
        weight = {} if weights is None else {"weight": weights[k]}
        return {"state": self.states[u], "edge": edge, **weight}

    def _apply_edges(self, v: int, state: Any, before: Any) -> None:
        """Write the entries along which a vertex receives; the states are still the old ones."""
        if "apply_edge" not in self.methods or (self.takes is False and not self._receives(v)):
            return
        for u, k in self.senders[v]:
            known = {"receiver": state, "previous": before, **self._at_entry(u, k)}
            given = self._call("apply_edge", u, **known)
            new = given if isinstance(given, tuple) else (given,)
            for value, (name, kind) in zip(new, self.program.edges.items(), strict=True):
                self.edges[name][k] = _stored(value, np.dtype(kind))

    def _combined(self, messages: list[Any]) -> Any:
        if self.monoid is None and "messages" in self.methods["apply"][1]:
            return messages
        if self.monoid is None:
            fields = self.program.combine.items()
            parts = [_merged(m, [getattr(x, name) for x in messages]) for name, m in fields]
            return self._message(parts)
        if "" not in self.message_kinds or self.monoid.operation == "a method":
            return reduce(lambda one, two: self._message(self.monoid.of(one, two)), messages)
        if self.monoid != hb.most_frequent:
            return _merged(self.monoid, messages)
        counts = Counter(message for message in messages if message != self.identity)
        most = max(counts.values(), default=0)
        return min((m for m in counts if counts[m] == most), default=messages[0])

    def _receives(self, v: int, message: Any = None) -> bool:
        """Tell whether a vertex takes messages, or this one if `receives` asks for it."""
        return bool(self._call("receives", v, state=self.states[v], message=message))

    def _apply(self, combined: dict[int, Any], senders: list[int]) -> list[int]:
        collects = "messages" in self.methods["apply"][1]
        if not collects and self.identity is not None:
            combined = {v: total for v, total in combined.items() if total != self.identity}
        whole = range(self.n) if self.program.all_active else ()
        for v in senders if self.program.active_apply else whole:
            combined.setdefault(v, [] if collects else self.identity)
        changes, active = [], []
        for v, total in combined.items():
            before = self.states[v]
            known = {"messages": total} if collects else {"combined": total}
            state, is_active = self._stored(self._call("apply", v, state=before, **known))
            if is_active is None:
                is_active = state != before
            changes.append((v, state, before))
            self._apply_edges(v, state, before)
            if is_active:
                active.append(v)
        for v, state, _ in changes:
            self.states[v] = state
        self._measure(changes)
        return list(range(self.n)) if self.program.all_active else active

    def run(self, max_iterations: int = 1 << 40) -> Outcome:
        """Run it."""
        active = self._begin()
        if self.program.all_active:
            active = list(range(self.n))
        converged = False
        while not converged and self.iteration < max_iterations:
            if not self._goes_on(active):
                converged = True
                break
            active = self._apply(self._gather(active), active)
            self.iteration += 1
            if "finished" in self.methods:
                converged = bool(self._call("finished", None, num_active=len(active)))
        converged = converged or not self._goes_on(active)
        state = {
            name: np.array([getattr(s, name) for s in self.states], kind.base)
            for name, kind in self.kinds.items()
        }
        kinds = self.program.edges.items() if "apply_edge" in self.methods else ()
        edges = {name: np.array(self.edges[name], kind) for name, kind in kinds}
        return Outcome(state, self.iteration, converged, self.totals, edges)

    def _goes_on(self, active: list[int]) -> bool:
        return bool(active) if self.program.all_active else bool(self.counts[active].any())


def _stored(value: Any, kind: np.dtype) -> Any:
    """Return a number, or the tuple of a vector, of a type."""
    if type(value) is kind.type:  # `kind.name` is slow
        return value
    if not kind.shape:
        return convert(value, kind.name)
    return tuple(convert(one, kind.base.name) for one in value)


def _identity(monoid: Any, kind: np.dtype) -> Any:
    if kind.shape and monoid.operation == "a method":
        return _stored(monoid.neutral, kind)
    neutral = monoid.identity(kind.base)
    return (neutral,) * kind.shape[0] if kind.shape and neutral is not None else neutral


def _merged(monoid: Any, messages: list[Any]) -> Any:
    if not isinstance(messages[0], tuple):
        return reduce(monoid.of, messages)
    return tuple(reduce(monoid.of, numbers) for numbers in zip(*messages, strict=True))


class PlainSweeps(PlainRun):
    """A run in mode "asynchronous": the vertices take turns in the order of their colours.

    A vertex that takes its turn gathers, and changes before the next turn. It has a turn in a sweep
    if one of its neighbours has changed since its last turn, or if all vertices are active.
    """

    def __init__(self, program, graph: hb.CSRGraph, colour: np.ndarray, parameters=None) -> None:
        super().__init__(program, graph, parameters or {}, alone=True)
        self.turns = np.argsort(colour, kind="stable").tolist()

    def run(self, max_iterations: int = 1 << 40) -> Outcome:
        """Run it; states are those after the last sweep."""
        active = self._begin()
        if self.program.all_active or len(active) == self.n:
            due = set(range(self.n))
        else:
            due = {v for u in active for v, _ in self.receivers[u]}
        self.sent = set(range(self.n)) if self.program.all_active else set(active)
        goes_on = bool(active) or self.program.all_active
        while self.iteration < max_iterations and goes_on:
            for v in self.turns:
                if v in due:
                    due.discard(v)
                    due |= self._turn(v)
            self.iteration += 1
            if self.program.all_active:
                due = set(range(self.n))
            goes_on = bool(due)
        state = {
            name: np.array([getattr(s, name) for s in self.states], kind.base)
            for name, kind in self.kinds.items()
        }
        return Outcome(state, self.iteration, not goes_on, self.totals)

    def _turn(self, v: int) -> set[int]:
        """Let a vertex gather and change; return the vertices that must gather again."""
        messages = []
        for u, k in self.senders[v]:
            if u in self.sent:
                of_edge = "weight" in self.methods["message"][1]
                weight = {"weight": self.graph.weights[k]} if of_edge else {}
                sent = self._call("message", u, state=self.states[u], **weight)
                messages.append(_stored(sent, self.message_kinds[""]))
        identity = _stored(self.identity, self.message_kinds[""])
        total = reduce(self.monoid.of, messages, identity)
        if not self.program.all_active and total == identity:
            return set()
        before = self.states[v]
        state, is_active = self._stored(self._call("apply", v, state=before, combined=total))
        self.states[v] = state
        if state == before if is_active is None else not is_active:
            return set()
        self.sent.add(v)
        return {receiver for receiver, _ in self.receivers[v]}
