"""Vertex programs whose receivers go through their messages one by one (collected.py)."""

from __future__ import annotations

import numpy as np

import hetero_bfs as hb


class Cores(hb.Program):
    """The core number of each vertex: the h-index of its neighbours' numbers, again and again."""

    state = {"core": np.int32}  # noqa: RUF012
    all_active = True
    totals = {"changed": hb.maximum}  # noqa: RUF012
    along = "both"

    def initial(self, degree):
        return degree

    def message(self, state):
        return state.core

    def apply(self, state, messages):
        core = state.core + 1
        enough = False
        while not enough:
            core -= 1
            count = 0
            for message in messages:
                if message >= core:
                    count += 1
                    if count == core:
                        break
            enough = count >= core
        return core

    def measure(self, state, previous):
        return state.core != previous.core

    def finished(self, changed):
        return changed == 0


class Second(hb.Program):
    """The greatest but one of the labels that were ever seen; not all messages are taken."""

    state = {"first": np.int32, "second": np.int32}  # noqa: RUF012
    totals = ("changes",)

    def initial(self, vertex, modulus):
        return vertex * 7919 % 2003, -1, vertex % modulus == 0

    def receives(self, state, message):
        return message != 3

    def message(self, state, weight):
        return state.first - weight

    def apply(self, state, messages):
        first, second = state.first, state.second
        for message in messages:
            if message > first:
                first, second = message, first
            elif message == first:
                continue
            elif message > second:
                second = message
        return first, second

    def measure(self, state, previous):
        return int(state.first != previous.first) + int(state.second != previous.second)


class Common(hb.Program):
    """How many bits the two ends of each edge have in common, by the receiver's state."""

    state = {"bits": np.uint64, "common": np.int64}  # noqa: RUF012
    combine = hb.plus
    message_type = np.int64

    def initial(self, vertex):
        return vertex * 2654435761 % 65521, 0, True

    def receives(self, vertex):
        return vertex % 5 != 2

    def message(self, state, receiver):
        both = state.bits & receiver.bits
        count = 0
        for i in range(16):
            count += int(both >> i & 1 != 0)
        return count

    def apply(self, state, combined):
        return state.bits, state.common + combined, False


class Summary(hb.Program):
    """Messages of several fields, each combined by a monoid of its own."""

    state = {"least": np.int32, "sum": np.int64, "mask": np.uint32, "any": bool}  # noqa: RUF012
    message_type = state
    combine = {  # noqa: RUF012
        "least": hb.minimum, "sum": hb.plus, "mask": hb.bitwise_or, "any": hb.maximum,
    }  # fmt: skip
    all_active = True

    def initial(self, vertex):
        return vertex * 7919 % 2003, vertex, 1 << (vertex % 32), False

    def receives(self, message):
        return message.least % 7 != 1

    def message(self, state, weight):
        return state.least, state.sum % 1009 + weight, state.mask, state.any or weight == 8

    def apply(self, state, combined):
        least = min(state.least, combined.least)
        return least, combined.sum % 100003, state.mask | combined.mask, combined.any

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Nearest(hb.Program):
    """Distances with parents: a method combines messages of two fields."""

    state = {"distance": np.int64, "parent": np.int64}  # noqa: RUF012
    message_type = {"distance": np.int64, "parent": np.int64}  # noqa: RUF012
    identity = (2**62, -1)

    def combine(self, first, second):
        closer = first.distance < second.distance
        same = first.distance == second.distance
        if closer or (same and first.parent > second.parent):
            return first.distance, first.parent
        return second.distance, second.parent

    def initial(self, vertex, source):
        return (0, source, True) if vertex == source else (2**62, -1, False)

    def message(self, state, weight, vertex):
        return state.distance + weight, vertex

    def apply(self, state, combined):
        if combined.distance < state.distance:
            return combined.distance, combined.parent
        return state.distance, state.parent


class Farther(hb.Program):
    """A method combines messages of one value, which depend on both ends."""

    state = {"label": np.int32}  # noqa: RUF012
    identity = 1000

    def combine(self, first, second):
        one, other = (first - 1000) * (first - 1000), (second - 1000) * (second - 1000)
        return first if one > other or (one == other and first > second) else second

    def initial(self, vertex):
        return vertex * 7919 % 2003

    def message(self, state, receiver):
        return state.label if state.label % 7 != receiver.label % 7 else 1000

    def apply(self, state, combined):
        return max(combined, state.label)


class Flags(hb.Program):
    """Messages of truth values, which depend on both ends."""

    state = {"on": bool, "times": np.int32}  # noqa: RUF012
    combine = hb.maximum
    message_type = bool

    def initial(self, vertex, every):
        return vertex % every == 0, 0

    def message(self, state, receiver):
        return state.on and not receiver.on

    def apply(self, state, combined):
        return state.on or combined, state.times + int(combined)


class AnyOne(hb.Program):
    """All messages of an iteration are the same, so it is known which one comes."""

    state = {"heard": np.int32, "times": np.int32}  # noqa: RUF012
    combine = hb.any_one

    def initial(self, vertex, every):
        return -1, 0, vertex % every == 0

    def message(self, iteration, receiver):
        return iteration + 0 * receiver.times

    def apply(self, state, combined):
        return combined, state.times + 1, state.times < 3


class Countdown(hb.Program):
    """Vertices count down without messages; each that ends wakes those that it reaches."""

    state = {"rest": np.int32, "woken": np.int32}  # noqa: RUF012
    combine = hb.plus
    active_apply = True

    def initial(self, vertex):
        return vertex % 7, 0, vertex % 3 == 0

    def message(self, state):
        return 1 if state.rest == 1 else 0

    def apply(self, state, combined):
        if combined > 0 and state.woken < 3:
            return state.rest + combined % 4 + 1, state.woken + 1, True
        rest = max(state.rest - 1, 0)
        return rest, state.woken, rest > 0


class Hubs(hb.Program):
    """HITS with integers: hubs are sent along edges, authorities against them."""

    state = {"hub": np.int64, "authority": np.int64}  # noqa: RUF012
    message_type = {"hub": np.int64, "authority": np.int64}  # noqa: RUF012
    combine = {"hub": hb.plus, "authority": hb.plus}  # noqa: RUF012
    all_active = True

    def initial(self, vertex):
        return 1, vertex % 3

    def message(self, state):
        return state.hub, 0

    def message_back(self, state, receiver):
        return 0, state.authority + receiver.hub % 3

    def apply(self, combined):
        return combined.authority % 10007, combined.hub % 10007

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Sketches(hb.Program):
    """Messages are vectors that depend on both ends and on the weight, and are summed."""

    state = {"sketch": (np.int32, 3), "sum": np.int64}  # noqa: RUF012
    message_type = (np.int32, 3)
    combine = hb.plus
    all_active = True
    totals = ("changes",)
    factors = (3, 5, 7)

    def initial(self, start):
        return [start[0], start[1] * 2, 7], sum(start)

    def receives(self, message):
        return message[0] % 5 != 1

    def message(self, state, receiver, weight):
        both = sum(x & y for x, y in zip(state.sketch, receiver.sketch, strict=True))
        return [(both + self.factors[i] * weight) % 101 for i in range(3)]

    def apply(self, state, combined):
        swapped = [state.sketch[2], state.sketch[0], state.sketch[1]]
        total = np.int64(0)
        for i, (one, other) in enumerate(zip(swapped, combined, strict=True)):
            if one > other:
                total += i
        sketch = [(x + y) % 1009 for x, y in zip(swapped, combined, strict=True)]
        return sketch, state.sum + total + max(combined)

    def measure(self, state, previous):
        return sum(int(x != y) for x, y in zip(state.sketch, previous.sketch, strict=True))

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Hops(hb.Program):
    """Distances from three vertices at once, and how many messages came."""

    state = {"hops": (np.int64, 3), "heard": np.int32}  # noqa: RUF012
    message_type = {"hops": (np.int64, 3), "count": np.int32}  # noqa: RUF012
    combine = {"hops": hb.minimum, "count": hb.plus}  # noqa: RUF012

    def initial(self, vertex, source):
        hops = [0 if vertex == source + i else 2**40 for i in range(3)]
        return hops, 0, min(hops) == 0

    def message(self, state):
        return [x + 1 for x in state.hops], 1

    def apply(self, state, combined):
        hops = [min(x, y) for x, y in zip(state.hops, combined.hops, strict=True)]
        closer = 0
        for i in range(3):
            closer += 1 if hops[i] < state.hops[i] else 0
        return hops, state.heard + combined.count, closer > 0


class Votes(hb.Program):
    """Vectors that are read one by one, beside one that a method combines."""

    state = {"votes": (np.uint32, 2), "on": (bool, 2)}  # noqa: RUF012
    message_type = (np.uint32, 2)

    def initial(self, vertex):
        return [vertex * 7919 % 97, 1], [vertex > 3, False]

    def message(self, state):
        return state.votes

    def apply(self, state, messages, iteration):
        total, most = state.votes, [0, 0]
        for message in messages:
            total = [x + y % 3 for x, y in zip(total, message, strict=True)]
            most = [max(x, y) for x, y in zip(most, message, strict=True)]
        return total, [most[0] > most[1], state.on[0]], iteration < 3


class Outermost(hb.Program):
    """A method combines vectors."""

    state = {"box": (np.int32, 4)}  # noqa: RUF012
    message_type = (np.int32, 4)
    identity = (1000, 1000, -1000, -1000)

    def combine(self, first, second):
        low = [min(first[i], second[i]) for i in range(2)]
        return [low[0], low[1], max(first[2], second[2]), max(first[3], second[3])]

    def initial(self, vertex):
        place = [vertex * 7919 % 101, vertex * 104729 % 103]
        return [place[0], place[1], place[0], place[1]]

    def message(self, state):
        return state.box

    def apply(self, state, combined):
        ends = [min(x, y) for x, y in zip(state.box, combined, strict=True)]
        return [ends[i] if i < 2 else max(state.box[i], combined[i]) for i in range(4)]


class Bottleneck(hb.Program):
    """Fields of edges: how much fits along a path, and along open edges only; also backwards."""

    state = {"width": np.int32, "open": bool}  # noqa: RUF012
    message_type = {"width": np.int32, "back": np.int32}  # noqa: RUF012
    combine = {"width": hb.maximum, "back": hb.maximum}  # noqa: RUF012
    edges = {"capacity": np.int32, "is_open": bool}  # noqa: RUF012

    def initial(self, vertex, source):
        return (1000, True, True) if vertex == source else (0, False, False)

    def message(self, state, edge):
        return min(state.width, edge.capacity) if edge.is_open else 0, 0

    def message_back(self, state, edge):
        return 0, min(state.width, edge.capacity) // 2

    def apply(self, state, combined):
        width = max(state.width, combined.width, combined.back)
        return width, state.open or combined.width > 0


class Toll(hb.Program):
    """Edges count who passes, and close at times; labels pay for what passed."""

    state = {"label": np.int32, "times": np.int32}  # noqa: RUF012
    combine = hb.minimum
    edges = {"toll": np.int32, "is_open": bool}  # noqa: RUF012

    def initial(self, vertex):
        return vertex * 7919 % 2003, 0

    def message(self, state, edge):
        return state.label + edge.toll % 5 if edge.is_open else 2**31 - 1

    def apply(self, state, combined):
        return min(state.label, combined), state.times + 1, combined < state.label

    def apply_edge(self, state, receiver, previous, edge, vertex, iteration):
        toll = edge.toll + 1 if state.label < previous.label else edge.toll
        opens = (previous.label - receiver.label + vertex + iteration) % 3 == 1
        return toll, edge.is_open != opens


class Slopes(hb.Program):
    """All that a new field of an edge can depend on; some vertices take no messages."""

    state = {"x": (np.int64, 2)}  # noqa: RUF012
    combine = hb.plus
    message_type = np.int64
    edges = {"slope": np.int64}  # noqa: RUF012
    all_active = True

    def initial(self, vertex):
        return [vertex, 1]

    def receives(self, state):
        return state.x[0] % 3 != 1

    def message(self, state, edge):
        return (state.x[0] + edge.slope) % 101

    def apply(self, state, combined):
        return [(combined + state.x[1]) % 1009, state.x[0]]

    def apply_edge(self, state, receiver, previous, edge, weight, degree, start, vertex):
        ends = 3 * state.x[0] + 5 * receiver.x[0] + 7 * previous.x[1] + vertex
        return (edge.slope + ends + weight * degree + start[0]) % 997

    def finished(self, iteration, rounds):
        return iteration >= rounds


class Wear(hb.Program):
    """Edges wear out while vertices apply without messages."""

    state = {"rest": np.int32, "heard": np.float32}  # noqa: RUF012
    message_type = np.float32
    edges = {"worn": np.float32}  # noqa: RUF012
    active_apply = True

    def initial(self, vertex):
        return vertex % 4, 0, vertex % 3 == 0

    def receives(self, message):
        return message < 64

    def message(self, state, edge):
        return edge.worn + np.float32(state.rest)

    def apply(self, state, messages):
        heard = state.heard
        for message in messages:
            heard = max(heard, message)
        return max(state.rest - 1, 0), heard, state.rest > 0

    def apply_edge(self, receiver, edge):
        return edge.worn * 0.5 + np.float32(receiver.rest)


def edge_cases() -> dict:
    """Return programs that write fields of edges, as `collected_cases` does."""
    slopes = {"rounds": 3, "start": "rows", "slope": "entries"}
    return {
        "toll": (Toll(), {"toll": "entries", "is_open": "flags"}, None, None),
        "slopes": (Slopes(), slopes, np.int32, None),
        "wear": (Wear(), {"worn": "entries as floats"}, None, None),
    }


def collected_cases(source: int) -> dict:
    """Return programs with parameters, the weights' type, and the most iterations."""
    return {
        "cores": (Cores(), {}, None, None),
        "second": (Second(), {"modulus": 1 + source % 4}, np.int32, None),
        "common": (Common(), {}, None, None),
        "summary": (Summary(), {"rounds": 3}, np.int32, None),
        "nearest": (Nearest(), {"source": source}, np.int32, None),
        "farther": (Farther(), {}, None, None),
        "flags": (Flags(), {"every": 1 + source % 5}, None, None),
        "any one": (AnyOne(), {"every": 1 + source % 3}, None, None),
        "countdown": (Countdown(), {}, None, None),
        "hubs": (Hubs(), {"rounds": 4}, None, None),
        "sketches": (Sketches(), {"rounds": 3, "start": "rows"}, np.int32, None),
        "hops": (Hops(), {"source": source}, None, None),
        "bottleneck": (
            Bottleneck(),
            {"source": source, "capacity": "entries", "is_open": "flags"},
            None,
            None,
        ),
        "votes": (Votes(), {}, None, None),
        "outermost": (Outermost(), {}, None, None),
        **edge_cases(),
    }


def with_arrays(parameters: dict, graph: hb.CSRGraph) -> dict:
    """Return parameters with arrays for words: vectors of vertices, fields of edges."""
    draw, entries = np.random.default_rng(2).integers, graph.num_stored_edges
    arrays = {
        "rows": draw(-9, 9, (graph.num_vertices, 2)),
        "entries": draw(1, 900, entries).astype(np.int32),
        "flags": draw(0, 4, entries) > 0,
        "entries as floats": draw(0, 99, entries).astype(np.float32),
    }
    return {
        name: arrays[value] if isinstance(value, str) else value
        for name, value in parameters.items()
    }
