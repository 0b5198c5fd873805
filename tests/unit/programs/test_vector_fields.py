"""Programs with vectors and fields of edges: what is refused, and files of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from method_classes import class_of

import hetero_bfs as hb
from hetero_bfs.errors import ArgumentError, GraphFileError, ProgramError
from hetero_bfs.graph.io.vertex_values import columns_of, read_values
from hetero_bfs.programs.codegen.dialects import HostDialect
from hetero_bfs.programs.parameters import Parameters, checked_edges
from hetero_bfs.programs.plan import Plan, ProgramClass

CLASS = """
import numpy as np
import hetero_bfs as hb

class Vectors(hb.Program):
    state = {"x": (np.float32, 3), "y": np.float32}
    message_type = (np.float32, 3)
    combine = hb.plus
    table = (1.0, 2.0, 4.0)

    def initial(self, vertex):
        return [0.0] * 3, 1.0

    def message(self, state, degree):
"""

REST = """
    def apply(self, state, combined):
        return combined, state.y
"""

REFUSED = {
    "a vector as a number": ("return state.x * 2", "`state.x`, a vector, as a number"),
    "an index beyond": ("return [state.x[3]] * 3", "index 3 of 3 elements"),
    "an index by a field": ("return [state.x[degree], 0, 0]", "not known beforehand"),
    "an element of a number": ("return [state.y[0], 0, 0]", "only vectors and constants"),
    "too short": ("return [1.0, state.y]", "a vector of 2 .* takes a vector of 3"),
    "a number for a vector": ("return state.y", "a number .* takes a vector of 3"),
    "several values": ("return 1.0, 2.0, state.y", "3 returned values"),
    "a vector of vectors": ("return [state.x, state.x, state.x]", "`state.x`, a vector"),
    "an element's change": ("v = [0, 1, 2]\nv[0] = 3\nreturn v", "make a new vector"),
    "another length": ("v = [0.0]\nv = [0.0, state.y]\nreturn state.x", "number of elements"),
    "a number, then a vector": ("v = 0.0\nv = state.x\nreturn v", "number of elements"),
    "no value": ("if state.y > 0:\n    v = state.x\nreturn v", "no value on every path"),
    "a variable twice": ("for x in state.x:\n    x = 1\nreturn state.x", "another 'x'"),
    "its vector changes": ("v = state.x\nfor x in v:\n    v = [x] * 3\nreturn v", "another 'v'"),
    "break": ("for x in state.x:\n    if x > 0: break\nreturn state.x", "`break` or"),
    "a filter": ("return [x for x in state.x if x]", "without `if`"),
    "two loops": ("return [x for x in state.x for y in state.x]", "one `for`"),
    "a range by a field": ("return [state.x[i] for i in range(degree)]", "a range of constants"),
    "unlike lengths": ("return [x + y for x, y in zip(state.x, [1, 2])]", "of one length"),
    "one name for two": ("return [x for x in zip(state.x, state.x)]", "as a number|only expr"),
    "three names for two": (
        "return [x for x, y, z in zip(state.x, state.x)]", "name one for each vector",
    ),
    "a generator": ("v = (x for x in state.x)\nreturn v", "only expressions of numbers"),
    "a sum in a loop's head": (
        "while sum(state.x) > 1:\n    pass\nreturn state.x", "compute it in the loop",
    ),
    "unlike choices": ("return state.x if degree > 1 else state.y", "unlike vectors"),
    "too many passes": (
        "a = 0\nfor i in range(5000):\n    a += self.table[i % 3]\nreturn state.x",
        "more than 4096 passes",
    ),
}  # fmt: skip


def plan_of(body: str, **parameters) -> Plan:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    program = class_of(CLASS + lines + REST, "Vectors")()
    return Plan(program, Parameters.of(parameters, 5), None)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, words = REFUSED[name]
    with pytest.raises(ProgramError, match=words) as refused:
        plan_of(body).functions(HostDialect)
    assert "Vectors.message, line" in str(refused.value)


@pytest.mark.parametrize(
    "kind", [(np.float32, 65), (np.float32, 0), (np.float32, (2, 2)), ("text", 2), (np.float16, 2)]
)
def test_no_such_type(kind):
    class Wrong(hb.Program):
        state = {"x": kind}  # noqa: RUF012
        combine = hb.plus

        def initial(self):
            return 0

        def message(self, state):
            return 0

        def apply(self, combined):
            return combined

    with pytest.raises(ProgramError, match="a vector of 1 to 64"):
        Plan(Wrong(), Parameters.of({}, 5), None)


def test_loops_over_constants_and_vectors_are_written_out():
    plan = plan_of(
        "a = 0.0\nfor i, x in enumerate(state.x):\n    a += x * self.table[i]\n"
        "return [a, max(state.x), sum(self.table)]"
    )
    code = plan.functions(HostDialect)["message"].code
    assert "for " not in code
    assert code.count("np.float32(4.0)") == 1
    assert "np.float32(7.0)" in code


@pytest.mark.parametrize("suffix", ["csv", "npz", "npy"])
def test_files_have_a_column_for_each_element(tmp_path, suffix):
    from hetero_bfs.cli.output import save_values

    rows = np.arange(12, dtype=np.int32).reshape(4, 3)
    path = tmp_path / f"values.{suffix}"
    if suffix == "npy":
        np.save(path, rows)
    else:
        save_values(path, columns_of({"x": rows, "y": rows[:, 0]}), None, ())
    np.testing.assert_array_equal(read_values(path, "x", 4, None), rows)


def test_a_missing_column(tmp_path):
    (tmp_path / "values.csv").write_text("vertex,x[0],x[2]\n0,1,2\n")
    with pytest.raises(GraphFileError, match=r"give all from x\[0\] on"):
        read_values(tmp_path / "values.csv", "x", 1, None)


def test_arrays_of_arguments_have_one_or_two_dimensions():
    for shape in ((5,), (5, 3), (5, 1)):
        assert "start" in Parameters.of({"start": np.zeros(shape)}, 5).sources
    for shape in ((4, 3), (3, 5), (5, 3, 2), (5, 0)):
        with pytest.raises(ArgumentError, match="or a vector a vertex"):
            Parameters.of({"start": np.zeros(shape)}, 5)


def bottleneck(**changes):
    class Bottleneck(hb.Program):
        state = {"width": np.int32}  # noqa: RUF012
        combine = hb.maximum
        edges = {"capacity": np.int32}  # noqa: RUF012

        def initial(self, vertex):
            return vertex

        def message(self, state, edge):
            return min(state.width, edge.capacity)

        def apply(self, state, combined):
            return max(state.width, combined)

    return type("Bottleneck", (Bottleneck,), changes)()


@pytest.mark.parametrize(
    "edges", [{"capacity": "text"}, {"not a name": int}, {"state": np.int32}, 3, {"x": (int, 2)}]
)
def test_wrong_fields_of_edges(edges):
    with pytest.raises(ProgramError, match=r"Bottleneck\.edges"):
        ProgramClass(bottleneck(edges=edges))


@pytest.mark.parametrize(
    "given", [{}, {"capacity": np.zeros(3, np.int32)}, {"capacity": np.zeros(8)}, {"capacity": 1}]
)
def test_wrong_arrays_of_edges(given):
    kinds = ProgramClass(bottleneck()).edge_kinds
    with pytest.raises(ArgumentError, match=r"field capacity .* int32 .* shape \(8,\)"):
        checked_edges(given, kinds, 8)
    fits = checked_edges({"capacity": np.arange(8, dtype=np.int8)}, kinds, 8)
    assert fits["capacity"].dtype == np.int32


def test_a_field_of_edges_is_read_in_message_only():
    def apply(self, state, edge):
        return edge.capacity

    plan = Plan(bottleneck(apply=apply), Parameters.of({}, 5), None)
    with pytest.raises(ProgramError, match="'edge' is not given"):
        plan.functions(HostDialect)


def apply_edge(self, state, receiver, previous, edge):
    return edge.capacity - 1


def message_back(self, state):
    return state.width


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edges": {}, "message": message_back}, r"no fields of edges; add edges = \{"),
        ({"message_back": message_back}, "write the same entry; leave message_back or apply_edge"),
        ({"along": "both"}, r'along = "both" .* write the same entry; set along = "out"'),
    ],
)
def test_entries_that_no_vertex_or_two_would_write(changes, words):
    with pytest.raises(ProgramError, match=rf"Bottleneck\.apply_edge, line \d+: .*{words}"):
        ProgramClass(bottleneck(apply_edge=apply_edge, **changes))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("edge.capacity / 2", "returns .* for field 'capacity' of edges, which is int32"),
        ("edge.capacity, 1", "2 returned values"),
        ("edge.width", "`edge.width` cannot be translated; fields: capacity"),
        ("messages", "parameter 'messages' is not given"),
    ],
)
def test_new_fields_of_edges_fit(returned, words):
    more = ", messages" if returned == "messages" else ""
    text = f"""
import numpy as np
import hetero_bfs as hb

class Worn(hb.Program):
    state = {{"x": np.int32}}
    combine = hb.plus
    edges = {{"capacity": np.int32}}

    def initial(self, vertex):
        return vertex

    def message(self, state, edge):
        return state.x

    def apply(self, state, combined):
        return combined

    def apply_edge(self, edge{more}):
        return {returned}
"""
    with pytest.raises(ProgramError, match=rf"Worn\.apply_edge, line \d+: .*{words}"):
        Plan(class_of(text, "Worn")(), Parameters.of({}, 5), None).functions(HostDialect)
