"""`hetero-bfs run`: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cli_runs import one_line, run

import hetero_bfs as hb
from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.io.vertex_values import read_values

PATHS = """
import math

import numpy as np

import hetero_bfs as hb


class Paths(hb.Program):
    state = {"distance": np.float64}
    combine = hb.minimum

    def initial(self, vertex, source):
        return 0.0 if vertex == source else math.inf

    def message(self, state, weight):
        return state.distance + weight

    def apply(self, state, combined):
        return min(state.distance, combined)
"""
LARGEST = """
import numpy as np

import hetero_bfs as hb

print("text of the user's file")


class Largest(hb.Program):
    state = {"largest": np.int32, "sweep": np.int32}
    combine = hb.maximum
    totals = ("sum",)

    def initial(self, largest):
        return largest, 0, True

    def message(self, state):
        return state.largest

    def apply(self, state, combined, iteration):
        if combined > state.largest:
            return combined, iteration + 1
        return state.largest, state.sweep

    def measure(self, state):
        return state.largest
"""
WIDEST = """
import numpy as np

import hetero_bfs as hb


class Widest(hb.Program):
    state = {"width": np.float64, "ends": (np.int32, 2)}
    combine = hb.maximum
    edges = {"capacity": np.float64, "is_open": bool}

    def initial(self, vertex, source, start):
        return (1000 if vertex == source else 0), start, vertex == source

    def message(self, state, edge):
        return min(state.width, edge.capacity) if edge.is_open else 0.0

    def apply(self, state, combined):
        return max(state.width, combined), [state.ends[1], state.ends[0]]
"""
EDGES_OF_WIDEST = """to,capacity,from,is_open
b,5,a,1
c,7,a,1
d,6,b,1
d,2,c,1
e,9,d,0
"""
SPARSE = ["--device", "cpu", "--json", "-"]


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "g.wel"
    path.write_text("0 1 2\n1 2 3\n0 2 9\n4 3 1\n")
    return path


def test_numbers_arguments_and_outputs(program, graph, tmp_path, capsys):
    out, trace = tmp_path / "d.csv", tmp_path / "t.csv"
    options = ["--argument", "source=0", "--out", out, "--trace", trace, *SPARSE]
    assert run("run", program(PATHS), graph, *options) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    frame = pd.read_csv(out)
    assert frame.vertex.tolist() == [0, 1, 2, 3, 4]
    assert frame.distance.tolist() == [0, 2, 5, np.inf, np.inf]
    assert (data["program"], data["arguments"]) == ("Paths", {"source": 0})
    assert data["fields"] == {"distance": {"dtype": "float64", "min": 0.0, "max": "inf"}}
    assert (data["converged"], data["device"], data["mode"]) == (True, None, "synchronous")
    assert data["place_reason"] is None
    with trace.open() as lines:
        assert len(list(csv.DictReader(lines))) == data["iterations"]
    assert "distance: float64, 0.0 to inf\nPaths: " in captured.err
    assert run("run", program(PATHS), graph, *options, "--directed", "-v") == 0
    assert "push" in (err := capsys.readouterr().err) or "pull" in err


def test_it_says_why_it_ran_on_the_cpu(program, graph, capsys):
    assert run("run", program(PATHS), graph, "--argument", "source=0", "--json", "-") == 0
    reason = json.loads(capsys.readouterr().out)["place_reason"]
    assert reason.startswith("cpu in mode synchronous: no device is looked for")


def test_it_answers_as_an_engine_does(program, opencl_device, tmp_path, capsys):
    edges = hb.KroneckerEdges(7, weighted=True).materialise()
    path, out = tmp_path / "k.wel", tmp_path / "d.npy"
    src, dst = (np.concatenate(part) for part in zip(*edges.chunks(), strict=True))
    weights = np.random.default_rng(3).integers(1, 9, src.size)
    np.savetxt(path, np.column_stack([src, dst, weights]), "%d")
    peer = nx.Graph()
    peer.add_nodes_from(range(int(max(src.max(), dst.max())) + 1))
    for u, v, w in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
        peer.add_edge(u, v, weight=min(w, peer.get_edge_data(u, v, {"weight": w})["weight"]))
    found = nx.single_source_dijkstra_path_length(peer, 1)
    options = ["--argument", "source=1", "--out", out, "--json", "-"]
    for where in ("cpu", opencl_device.index):
        assert run("run", program(PATHS), path, *options, "--device", where) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["device"] == (None if where == "cpu" else opencl_device.name)
        assert data["place_reason"] is None
        assert np.load(out).tolist() == [found.get(v, np.inf) for v in range(len(peer))]


def test_names_and_a_file_of_values(program, friends, tmp_path, capsys):
    values, out = tmp_path / "value.csv", tmp_path / "o.parquet"
    values.write_text("vertex,value\nzoe,3\nbob,1\nada,4\nzed,5\ncat,2\n")
    options = ["--argument", f"largest=@{values}", "--renumber", "--out", out, *SPARSE]
    assert run("run", program(LARGEST), friends, *options) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)  # nothing else is there
    assert "text of the user's file" in captured.err
    frame = pd.read_parquet(out)
    assert frame.vertex.tolist() == ["ada", "bob", "cat", "zed", "zoe"]
    assert frame.largest.tolist() == [4, 4, 4, 5, 5]
    assert data["totals"].keys() == {"sum"}
    assert data["arguments"] == {"largest": f"@{values}"}
    for text in ("_reread", "_again"):  # an output is an input
        again = tmp_path / f"{text}.csv"
        given = ["--argument", f"largest=@{out}", "--renumber", "--out", again, *SPARSE]
        assert run("run", tmp_path / "program.py", friends, *given) == 0
        out = again
    assert pd.read_csv(out).largest.tolist() == [4, 4, 4, 5, 5]


def test_a_vertex_by_its_name(program, friends, tmp_path, capsys):
    out = tmp_path / "d.csv"
    options = ["--renumber", "--out", out, *SPARSE]
    assert run("run", program(PATHS), friends, "--vertex", "source=bob", *options) == 0
    assert json.loads(capsys.readouterr().out)["arguments"] == {"source": "bob"}
    assert out.read_text().splitlines()[1:4] == ["ada,2.0", "bob,0.0", "cat,3.0"]
    assert run("run", program(PATHS), friends, "--argument", "source=1", *options) == 0
    assert "note: argument" not in capsys.readouterr().err
    for other in ("20", "bob"):
        friends.write_text(f"source,target,weight\n10,{other},2\n{other},1,3\n")
        assert run("run", program(PATHS), friends, "--argument", "source=1", *options) == 0
        note = "note: argument source is the number 1; a vertex of that name is --vertex"
        assert note in capsys.readouterr().err


def test_a_vertex_beyond_the_graph(program, graph, capsys):
    assert run("run", program(PATHS), graph, "--vertex", "source=9") == 1
    assert "vertex 9 is not in the graph; its ids are 0 to 4" in one_line(capsys)


def test_several_fields_of_any_name_but_vertex(program, graph, tmp_path, capsys):
    path = program(LARGEST.replace("largest", "file").replace("sweep", "allow_pickle"))
    for out in (tmp_path / "o.npy", tmp_path / "o.npz"):
        assert run("run", path, graph, "--argument=file=1", "--out", out) == 0
    with np.load(out) as found:
        assert found.files == ["vertex", "file", "allow_pickle"]
        assert (found["vertex"].tolist(), found["file"].tolist()) == ([*range(5)], [1] * 5)
    found = np.load(tmp_path / "o.npy")
    assert (found.dtype.names, found["file"].tolist()) == (("file", "allow_pickle"), [1] * 5)
    path.write_text(LARGEST.replace("sweep", "vertex"))
    assert run("run", path, tmp_path / "none.wel", "--argument=largest=1", "--out", out) == 1
    assert "Largest.state: 'vertex' is the column" in capsys.readouterr().err


@pytest.mark.parametrize(
    "extra", [["asynchronous"], ["asynchronous", "--num-classes=2"], ["layered", "--root", "0"]]
)
def test_modes(program, graph, extra, capsys):
    options = ["--argument", "source=0", "--mode", *extra, *SPARSE]
    assert run("run", program(PATHS), graph, *options) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["mode"], data["fields"]["distance"]["min"]) == (extra[0], 0.0)


def test_a_number_of_classes_needs_its_mode(program, graph, capsys):
    assert run("run", program(PATHS), graph, "--argument=source=0", "--num-classes=2") == 1
    assert "--num-classes is given, which mode 'synchronous' has no use" in one_line(capsys)


def test_an_end_by_max_iterations_is_a_note(program, graph, capsys):
    assert run("run", program(PATHS), graph, "--argument=source=0", "--max-iterations=1") == 0
    assert "note: not converged after 1 iteration; give a larger" in capsys.readouterr().err


def test_an_end_is_needed_before_the_graph_is_read(program, tmp_path, capsys):
    path = program(PATHS.replace("    combine", "    all_active = True\n    combine"))
    assert run("run", path, tmp_path / "none.wel", "--argument=source=0") == 1
    assert "give --max-iterations N" in capsys.readouterr().err


def test_several_programs(program, graph, capsys):
    path = program(PATHS + "\n\nclass Longer(Paths):\n    pass\n")
    assert run("run", path, graph, "--argument=source=0") == 1
    assert "has the programs Paths, Longer; name one by --program" in one_line(capsys)
    assert run("run", path, graph, "--argument=source=0", "--program=Shorter") == 1
    assert "--program is Shorter, and the file has the programs" in one_line(capsys)
    assert run("run", path, graph, "--argument=source=0", "--program=Longer") == 0
    assert "Longer: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "program.py:1: invalid syntax; correct the file"),
        ("x = 1\ny = x / 0\n", "program.py:2: ZeroDivisionError: division by zero; correct"),
        ("import nowhere_at_all\n", "program.py:1: ModuleNotFoundError: No module named"),
        ("import sys\nsys.exit(3)\n", "program.py:2: SystemExit: 3; correct"),
        ("x = 1\n", "has no program; write a class derived from hb.Program"),
        (PATHS.replace("message", "mesage"), "Paths has no method message"),
        (PATHS.replace("hb.minimum", "hb.minimum\n    totals = 3"), "Paths.totals is 3; give a"),
        (PATHS.replace("hb.minimum", "hb.minimum\n    state = 3"), "Paths.state is not a mapping"),
        (PATHS.replace("state.distance + weight", "open(weight)"), "Paths.message, line 17"),
        (PATHS.replace("+ weight", "+ weight / (1 // 0)"), "Paths.message, line 17: `1 // 0`"),
        (
            PATHS + "\n    def __init__(self, n):\n        self.n = n\n",
            "program.py: TypeError: Paths.__init__() missing 1 required positional argument: 'n'",
        ),
        (
            PATHS + "\n    def __init__(self):\n        self.n = [][3]\n",
            "program.py:23: IndexError: list index out of range",
        ),
    ],
)
def test_a_file_that_cannot_be_used(program, graph, capsys, text, said):
    assert run("run", program(text), graph, "--argument", "source=0") == 1
    assert said in one_line(capsys)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ([], "Paths needs the argument 'source'; give --argument source=VALUE, or --vertex"),
        (["source=0", "far=3"], "Paths has no argument 'far'; its arguments are source"),
        (["source=0", "source=1"], "argument source of Paths is given twice"),
        (["source=@none.csv"], "none.csv: no such file"),
        ([f"source={2**70}"], "give a number of 64 bits"),
    ],
)
def test_arguments_that_cannot_be_used(program, graph, capsys, extra, said):
    given = [f"--argument={one}" for one in extra]
    assert run("run", program(PATHS), graph, *given) == 1
    assert said in one_line(capsys)


def test_a_wrong_type_is_named(program, graph, capsys):
    path = program(LARGEST)
    assert run("run", path, graph, "--argument=largest=0.5") == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "hetero-bfs:" in line]
    assert len(lines) == 1
    assert "Largest.initial, line 15" in lines[0]


@pytest.mark.parametrize("given", ["source", "=3", "source=", "source=bob", "2x=3", "source=1e"])
def test_wrong_usage(program, graph, given):
    assert run("run", program(PATHS), graph, "--argument", given) == 2


def test_files(program, graph, tmp_path, capsys):
    path = program(PATHS)
    for wrong, said in [(tmp_path / "no.py", "no such file"), (tmp_path, "is a directory"),
                        (graph, "its name must end in .py")]:  # fmt: skip
        assert run("run", wrong, graph, "--argument=source=0") == 1
        assert said in one_line(capsys)
    assert run("run", path, graph, "--argument=source=0", "--out", path) == 1
    assert "is an input, too" in one_line(capsys)
    values = tmp_path / "v.csv"
    values.write_text("1\n")
    assert run("run", path, graph, f"--argument=source=@{values}", "--out", values) == 1
    assert "is an input, too" in one_line(capsys)
    assert run("run", path, graph, f"--argument=source=@{values}") == 1
    assert "parameter source is an array of shape (1,) and type int32" in one_line(capsys)


def test_modules_beside_the_file(program, graph, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_it.py").write_text(PATHS)
    path = program("from beside_it import Paths\n\n\nclass Own(Paths):\n    pass\n")
    assert run("run", path, graph, "--argument=source=0") == 0
    assert "Own: " in capsys.readouterr().out


# Values of vertices.


@pytest.mark.parametrize(
    ("name", "text", "names", "expected"),
    [
        ("v.txt", "3\n1\n2\n", None, [3, 1, 2]),
        ("v.csv", "vertex,x\n2,0.5\n0,nan\n1,inf\n", None, [np.nan, np.inf, 0.5]),
        ("v.csv", "vertex,x,label\n2,1,7\n0,1,8\n1,1,9\n", None, [8, 9, 7]),
        ("v.txt", "# by hand\n2 5\n0 6\n1 7\n", None, [6, 7, 5]),
        ("v.csv", '"vertex","x"\n"b",1\n"a",2\n"c",3\n', ["a", "b", "c"], [2, 1, 3]),
        ("v.csv", "vertex,x\n30,1\n10,2\n20,3\n", [10, 20, 30], [2, 3, 1]),
        ("v.csv", "vertex,x\n0,True\n1,False\n2,True\n", None, [True, False, True]),
        ("v.csv", 'vertex,"a first name"\n0,1\n1,2\n2,3\n', None, [1, 2, 3]),
        ("v.txt", '"vertex"  "a name"\n0 1\n1 2\n2 3\n', None, [1, 2, 3]),
        ("v.csv", '# it is "\n\nvertex,x\n#1,1\nb#,2\nc,3\n', ["#1", "b#", "c"], [1, 2, 3]),
        ("v.txt", "-5000000000\n0\n1\n", None, [-5000000000, 0, 1]),
    ],
)
def test_values(tmp_path, name, text, names, expected):
    path = tmp_path / name
    path.write_text(text)
    is_text = names is not None and isinstance(names[0], str)
    known = None if names is None else np.array(names, object if is_text else None)
    found = read_values(path, "label", 3, known)
    np.testing.assert_array_equal(found, expected)
    kind = np.array(expected).dtype
    wide = kind == np.int64 and min(expected) < -(2**31)
    assert found.dtype == (np.int32 if kind == np.int64 and not wide else kind)


def test_damaged_arrays(tmp_path):
    whole, cut = tmp_path / "v.npz", tmp_path / "cut.npz"
    np.savez(whole, vertex=[0, 1], x=[1, 2])
    for number in (0, 3, 100, whole.stat().st_size - 40):
        cut.write_bytes(whole.read_bytes()[:number])
        with pytest.raises(GraphFileError, match="is not a table of values"):
            read_values(cut, "x", 2, None)


def test_values_of_arrays(tmp_path):
    np.save(tmp_path / "v.npy", np.array([1, 2, 3], np.uint64))
    assert read_values(tmp_path / "v.npy", "x", 3, None).dtype == np.uint64
    (tmp_path / "v.npy").rename(tmp_path / "v.NPY")
    assert read_values(tmp_path / "v.NPY", "x", 3, None).dtype == np.uint64
    np.savez(tmp_path / "v.npz", vertex=[2, 0, 1], x=np.array([1, 2, 3], np.int64))
    found = read_values(tmp_path / "v.npz", "x", 3, None)
    assert (found.dtype, found.tolist()) == (np.int64, [2, 3, 1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vertex,x\n0,1\n1,2\n", "vertex 2 lacks a value or is not in the graph"),
        ("vertex,x\n0,1\n1,2\n2,3\n3,4\n", "vertex 3 lacks a value or is not in the graph"),
        ("vertex,x\n0,1\n1,2\n1,3\n", "vertex 1 appears twice"),
        ("vertex,x\n0,1,7\n1,2,8\n2,0,9\n", "rows have more fields than the 2"),
        ("vertex,x\n0,1\n1,two\n2,3\n", "column 'x' has 'two', which is not a number"),
        ("vertex,x\n0,1\n1,\n2,3\n", "column 'x' has '', which is not a number"),
        ("vertex,x,y\n0,1,1\n1,2,2\n2,3,3\n", "the columns of values are x, y"),
        ("vertex\n0\n1\n2\n", "the columns of values are none"),
        ("\x00\xff", "is not a"),
    ],
)
def test_values_that_cannot_be_used(tmp_path, text, said):
    path = tmp_path / "v.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(GraphFileError, match=r"v\.csv: ") as caught:
        read_values(path, "label", 3, None)
    assert said in str(caught.value)


def test_fields_of_edges_are_columns_and_vectors_too(capsys, program, tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES_OF_WIDEST)
    names = ["a", "b", "c", "d", "e"]
    start = pd.DataFrame({"vertex": names, "start[1]": range(5), "start[0]": range(10, 15)})
    start.to_csv(tmp_path / "start.csv", index=False)
    given = [
        "run", program(WIDEST), tmp_path / "edges.csv", "--directed", "--renumber", *SPARSE[:2],
        "--vertex", "source=a", "--argument", f"start=@{tmp_path / 'start.csv'}",
    ]  # fmt: skip
    out = tmp_path / "out.csv"
    assert run(*given, "--columns", "from,to", "--out", out) == 0
    table = pd.read_csv(out, index_col="vertex").loc[names]
    assert table["width"].tolist() == [1000, 5, 7, 5, 0]
    assert table["ends[0]"].tolist() == [10, 1, 2, 3, 4]
    assert table["ends[1]"].tolist() == [0, 11, 12, 13, 14]
    capsys.readouterr()
    assert run(*given, "--columns", "from,to", "--edges-out", out) == 1
    assert "Widest has no method apply_edge" in one_line(capsys)
    assert run(*given) == 1
    assert "--columns source,target" in one_line(capsys)
    text = EDGES_OF_WIDEST.replace("capacity", "size")
    (tmp_path / "edges.csv").write_text(text)
    assert run(*given, "--columns", "from,to") == 1
    assert "column 'capacity' is not there" in one_line(capsys)


WORN = """
import numpy as np

import hetero_bfs as hb


class Worn(hb.Program):
    state = {"level": np.int64}
    combine = hb.minimum
    edges = {"capacity": np.float64, "is_open": bool}

    def initial(self, vertex, source):
        return (0, True) if vertex == source else (2**40, False)

    def message(self, state):
        return state.level + 1

    def apply(self, state, combined):
        return min(state.level, combined)

    def apply_edge(self, state, receiver, edge):
        return edge.capacity - receiver.level, receiver.level == state.level + 1
"""


@pytest.mark.parametrize("suffix", ["csv", "npz", "npy", "parquet"])
def test_written_fields_of_edges(program, tmp_path, suffix):
    (tmp_path / "edges.csv").write_text(EDGES_OF_WIDEST)
    out = tmp_path / f"out.{suffix}"
    given = [
        "run", program(WORN), tmp_path / "edges.csv", "--directed", "--renumber", *SPARSE[:2],
        "--vertex", "source=a", "--columns", "from,to",
    ]  # fmt: skip
    assert run(*given, "--edges-out", out) == 0
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "npy": np.load, "npz": np.load}[suffix]
    table = pd.DataFrame({name: read(out)[name] for name in NEW_FIELDS})
    if suffix == "npy":
        assert table["source"].tolist() == [0, 0, 1, 2, 3]
        table[["source", "target"]] = np.array([*"abcde"])[table[["source", "target"]].to_numpy()]
    assert {name: table[name].tolist() for name in NEW_FIELDS} == NEW_FIELDS


NEW_FIELDS = {
    "source": [*"aabcd"], "target": [*"bcdde"], "capacity": [4.0, 6.0, 4.0, 0.0, 6.0],
    "is_open": [True] * 5,
}  # fmt: skip
