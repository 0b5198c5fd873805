"""The base class of vertex programs, which users derive: a few short methods.

A program has a state for each vertex. In an iteration each active vertex sends a message along its
edges, the messages to a vertex combine into one, and `apply` computes the vertex's new state from
it. A vertex is active in the next iteration if its state changed. The run ends when no vertex is
active.

This model is common to Pregel (Malewicz et al., 2010), GraphMat (Sundaram et al., 2015), Ligra
(Shun and Blelloch, 2013) and GPregel. The program does not say how an iteration runs: push or pull,
on the host or on a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

Operation = Literal[
    "minimum", "maximum", "plus", "bitwise_or", "any_one", "most_frequent", "a method"
]


@dataclass(frozen=True)
class Monoid:
    """An operation on two messages: associative, commutative, with an identity.

    `any_one` takes any of the messages, and has no identity. `most_frequent` is an operation on all
    messages of a vertex together.
    """

    operation: Operation

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """Return the identity as a Python number, or None for `any_one`."""
        if self.operation == "any_one":
            return None
        if self.operation in ("plus", "bitwise_or"):
            return False if dtype.kind == "b" else dtype.type(0).item()
        low = self.operation == "maximum"  # most_frequent: no message has the greatest number
        if dtype.kind == "f":
            return -np.inf if low else np.inf
        if dtype.kind == "b":
            return not low
        limits = np.iinfo(dtype)
        return int(limits.min if low else limits.max)

    def suits(self, dtype: np.dtype[Any]) -> bool:
        """Tell whether it can combine messages of this type."""
        if self.operation == "most_frequent":
            return dtype.kind in "iu"
        return dtype.kind != "f" if self.operation == "bitwise_or" else True

    def of(self, first: Any, second: Any) -> Any:
        """Combine two messages in plain Python. `any_one` takes the first.

        `most_frequent` takes the least of two messages, as they are equally frequent.
        """
        if self.operation in ("minimum", "most_frequent"):
            return second if second < first else first
        if self.operation == "maximum":
            return second if second > first else first
        if self.operation == "plus":
            return first + second
        return first | second if self.operation == "bitwise_or" else first


minimum = Monoid("minimum")
"""The least of the messages."""

maximum = Monoid("maximum")
"""The greatest of the messages."""

plus = Monoid("plus")
"""The sum of the messages."""

bitwise_or = Monoid("bitwise_or")
"""The bits that any of the messages has."""

any_one = Monoid("any_one")
"""Any one of the messages."""

most_frequent = Monoid("most_frequent")
"""The most frequent message; the least one if several are equally frequent. For integers, in
programs whose vertices are all active. The greatest number of the type must not be a message:
vertices without messages get it."""


Along = Literal["out", "in", "both"]
"""Direction of messages: along edges, against them, or both."""


class Program:
    """Base class of vertex programs.

    The names of a method's parameters say which values it needs::

        state           the vertex's fields (state.distance); in `message` the sender's fields
        receiver        the receiver's fields, in `message`; its new ones, in `apply_edge`
        vertex          the vertex's id
        degree          number of its edges; in a directed graph, edges along which it sends
        num_vertices    number of vertices in the graph
        iteration       number of the iteration, 0 for the first one
        weight          weight of the edge, in `message` and `apply_edge`
        edge            the edge's fields, in `message` and `apply_edge`
        message         a message to the vertex, in `receives`
        combined        all messages to the vertex combined, in `apply`
        messages        instead of `combined`: all messages, for loops `for message in messages:`
        previous        the fields before `apply`: the vertex's in `measure`, the receiver's in
                        `apply_edge`
        num_active      vertices active in the next iteration, in `finished`

    All other names are arguments of the run: `engine.run(SSSP(), source=3)`. An array with one
    value, or one row, per vertex gives each vertex its own value, or vector. `totals` are known by
    their names.

    Methods are plain Python with numbers: arithmetic, comparisons, `and`, `or`, `not`, conditions,
    loops (`while`, `for i in range(n)`), local variables, `min`, `max`, `sum`, `abs`, `int`,
    `float`, `bool`, functions of `math` and types of NumPy. Types follow NumPy's scalars: float32
    plus float32 is float32, and a Python number takes the other operand's type. Values that `apply`
    and `initial` return are converted to the fields' types. The run is refused if that would lose
    digits, for example if a float goes to an int32 field.

    Attributes
    ----------
    state : mapping of name to dtype
        The fields: bool, int32, int64, uint32, uint64, float32 or float64. A pair such as
        `(np.float32, 8)` is a vector of 1 to 64 of them. Methods read `state.factor[0]`, go over it
        in loops or comprehensions, and return lists.
    combine : Monoid
        `hb.minimum`, `hb.maximum`, `hb.plus`, `hb.bitwise_or`, `hb.any_one` or `hb.most_frequent`.
        Or a method with the parameters `first` and `second`, which combines two messages into one.
        The result must not depend on the order in which messages are combined. For messages of
        several fields: a mapping with a monoid for each field, or a method. Not if `apply` reads
        `messages`.
    edges : mapping of name to dtype, optional
        Fields of edges, which `message` reads as `edge.capacity`. Each is an argument of the run:
        an array with a value for each entry of the graph's neighbour lists, in their order. An
        undirected graph has two entries an edge; a message from u to v reads that in u's list.
    identity : number or tuple of numbers, optional
        With a method `combine`: the message that changes no other one.
    along : {"out", "in", "both"}
        Direction of messages in a directed graph: along the edges that leave the sender, against
        the edges that lead to it, or both. With "both", a pair of opposite edges brings two
        messages.
    message_type : dtype, or mapping of name to dtype, optional
        Type of messages; by default the type that `message` returns. A Python int has the type of
        the first field, a Python float the type of the first float field, or else float64. A
        mapping gives messages several fields, which are read as `combined.distance`. As in `state`,
        a pair is a vector.
    all_active : bool
        True if every vertex sends and applies in every iteration, as in PageRank. `finished` or
        `max_iterations` end the run.
    active_apply : bool
        True if active vertices apply in the next iteration even without messages, as in Pregel. A
        vertex stays active as long as `apply` says so, or its state changes.
    monotone : bool
        True promises more of a program with `priority` and `hb.minimum`, which then runs faster. A
        message depends only on the sender's priority and on the weight. It does not fall as either
        of them grows, and is never below the priority. A message changes a vertex only if it is
        below the vertex's priority, and then the least message is the new priority. Weights must be
        at least 0. Results are wrong if the promise is not kept.
    any_order : bool
        True promises that the final states do not depend on when a vertex sees a message. Then
        `RunOptions(mode="auto")` may choose another mode. Programs break the promise if they count
        iterations, or if `receives` refuses messages that would change a state.
    totals : tuple of str, or mapping of str to Monoid
        Names of totals over the vertices that applied: sums, or by `hb.plus`, `hb.minimum` or
        `hb.maximum`. The maximum of truth values says whether any is true, the minimum whether all
        are. `measure` returns the vertex's share of each. `apply` and `finished` read the totals of
        the previous iteration (at first the totals of the initial states of all vertices).

    Methods
    -------
    initial(...)
        The state of a vertex: a number, or one for each field. One more value, True or False, says
        whether it is active. By default it is, unless its first field is the identity of `combine`.
    message(...)
        The message that an active vertex sends along an edge.
    message_back(...)
        Optional: the message that an active vertex sends against an edge, besides `message`.
    apply_edge(...)
        Optional: the new fields of an edge, a number for each in the order of `edges`. It is called
        after `apply` of a vertex, for all edges along which the vertex gets messages, whether or
        not one came. It reads the same as `message`; `state` has the sender's fields before the
        iteration. The next iteration reads the new fields, and the result has them as `edges`.
    apply(...)
        The new state, returned as by `initial`. By default the vertex is active if it changed.
    receives(...)
        Optional: False to skip a vertex or a message.
    priority(...)
        Optional: a number. Vertices of low priority run first (shortest paths: the distance).
    measure(...)
        With `totals`: the vertex's share of each.
    finished(...)
        Optional: True ends the run.
    """

    state: ClassVar[Mapping[str, Any]]
    combine: Any  # a Monoid, or a method
    identity: ClassVar[Any] = None
    edges: ClassVar[Mapping[str, Any]] = {}
    along: ClassVar[Along] = "out"
    message_type: ClassVar[Any] = None
    all_active: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    any_order: ClassVar[bool] = False
    active_apply: ClassVar[bool] = False
    totals: ClassVar[tuple[str, ...] | Mapping[str, Monoid]] = ()

    # Subclasses choose the parameters of the methods, so no signatures are declared here.
