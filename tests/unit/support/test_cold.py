"""Before kernels are compiled: who answers, what is said, and the process that compiles."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numba_server import run_program
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs import serial as bfs_serial
from hetero_bfs.algorithms.bfs.serial import search_from
from hetero_bfs.algorithms.colouring import algorithm as colouring
from hetero_bfs.algorithms.components import serial as components_serial
from hetero_bfs.algorithms.pagerank import algorithm as pagerank
from hetero_bfs.algorithms.sssp import serial as sssp_serial
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph import lists
from hetero_bfs.graph.lists import Lists
from hetero_bfs.support import cold, private_cache
from hetero_bfs.support.environment import COMPILING_VARIABLE, ways_of_compiling

ASKING = (bfs_serial, colouring, components_serial, cold, lists, pagerank, sssp_serial)


@pytest.fixture
def both(monkeypatch):
    """Return a function that gives a call's results by compiled code and by other code."""

    def call(work):
        found = []
        for is_cold in (False, True):
            for module in ASKING:
                monkeypatch.setattr(module, "is_cold", lambda *_, is_cold=is_cold: is_cold)
            found.append(work())
        return found

    return call


def random_edges(directed, dtype, duplicates="min", n=80):
    random = np.random.default_rng(7)
    ends = random.integers(0, n - 5, (2, 3 * n)).astype(np.uint32)
    weights = None if dtype is None else random.integers(0, 9, 3 * n).astype(dtype)
    return hb.EdgeList(*ends, n, directed, weights, duplicates)


def path(n=300):
    return hb.EdgeList.from_arrays(range(n - 1), range(1, n), weights=np.ones(n - 1))


DIRECTED = pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])


@DIRECTED
@pytest.mark.parametrize("dtype", [None, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("duplicates", ["min", "max"])
def test_numpy_builds_the_same_lists(both, directed, dtype, duplicates):
    for n in (80, 6):
        edges = random_edges(directed, dtype, duplicates, n)
        ours, theirs = both(lambda edges=edges: lists.build_lists(edges))
        assert ours.keys() == theirs.keys()
        for name, one in ours.items():
            other = theirs[name]
            assert np.array_equal(one, other), name
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name
            assert getattr(one, "flags", None) is None or not other.flags.writeable
        again = hb.CSRGraph(**theirs)  # checks them
        ours, theirs = both(lambda again=again: list(again.chunks(7)))
        assert [[*map(list, chunk)] for chunk in ours] == [[*map(list, chunk)] for chunk in theirs]


def test_wrong_edges_are_refused(both):
    edges = random_edges(False, None)
    edges.src.flags.writeable = True
    edges.src[3] = 1000
    for _ in range(2):
        with pytest.raises(hb.GraphError, match="1000"):
            both(lambda: lists.build_lists(edges))


def graphs():
    for directed in (False, True):
        yield hb.CSRGraph.from_edge_source(random_edges(directed, np.float64))
    yield hb.CSRGraph.from_edge_source(path())
    yield hb.CSRGraph.from_edges([], [], 3, weights=np.empty(0))


@pytest.mark.parametrize("number", range(4))
def test_searches_are_the_same(both, number):
    graph = list(graphs())[number]
    given, parents = Lists(graph.indptr, graph.indices), np.full(graph.num_vertices, 9, np.uint32)
    for source in range(0, graph.num_vertices, 7):
        for query in ({}, {"most_levels": 0}, {"most_levels": 2.5}, {"target": 5}, {"target": 74}):
            if query.get("target") == source or query.get("target", 0) >= graph.num_vertices:
                continue
            ours, theirs = both(lambda s=source, q=query: search_from(given, s, **q))
            for name in ("queue", "parent", "ends"):
                one, other = getattr(ours, name), getattr(theirs, name)
                assert one.tolist() == other.tolist(), (name, source, query)
                assert one.dtype == other.dtype, name
            ours, theirs = both(lambda s=source: search_from(given, s, parent=parents.copy()))
            assert ours.parent.tolist() == theirs.parent.tolist()


@pytest.mark.parametrize("number", range(4))
def test_algorithms_find_the_same(both, number):
    graph = list(graphs())[number]
    ours, theirs = both(lambda: hb.connected_components(graph))
    assert ours.component.tolist() == theirs.component.tolist()
    assert ours.num_components == theirs.num_components
    ours, theirs = both(lambda: hb.colour(graph))
    assert theirs.colour.dtype == ours.colour.dtype
    assert hb.check_colouring(graph, theirs.colour).valid
    assert theirs.num_colours <= ours.num_colours + 1
    for weighted in (False, True):
        ours, theirs = both(lambda w=weighted: hb.pagerank(graph, weighted=w))
        assert theirs.converged
        assert hb.check_pagerank(graph, theirs.rank, weighted=weighted).valid
        assert np.abs(ours.rank - theirs.rank).sum() < graph.num_vertices * 2e-6 * 0.85 / 0.15
    limited = both(lambda: hb.pagerank(graph, tol=0, max_iter=3))
    assert {len(one.traces) for one in limited if one.traces} <= {3}


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@DIRECTED
def test_shortest_paths_are_the_same(both, directed, dtype):
    graph = hb.CSRGraph.from_edge_source(random_edges(directed, dtype))
    for source in range(0, 80, 9):
        ours, theirs = both(lambda source=source: hb.sssp(graph, source))
        assert ours.distance.tolist() == theirs.distance.tolist()
        assert hb.check_paths(graph, source, theirs.distance, theirs.parent).valid


@DIRECTED
def test_csgraph_is_scipys(monkeypatch, directed):
    graph = next(graphs())
    matrix = csr_array((graph.weights + 1, graph.indices.astype(np.int32), graph.indptr), (80, 80))
    asked = []
    monkeypatch.setattr(
        "hetero_bfs.csgraph.matrix_searches.is_cold", lambda job, *_: asked.append(job) or True
    )
    found = hb.csgraph.dijkstra(matrix, directed, 3, return_predecessors=True)
    right = dijkstra(matrix, directed, 3, return_predecessors=True)
    assert all(map(np.array_equal, found, right))
    hb.csgraph.breadth_first_order(matrix, 0, directed)
    assert hb.csgraph.connected_components(matrix, directed)[1].dtype == np.int32
    assert asked == ["csgraph"] * 3


@pytest.fixture
def started(monkeypatch):
    """The commands of processes that are started, which end when `release` is called."""
    commands: list = []
    popen = subprocess.Popen

    def start(command, **options):
        commands.append(command[-2:])
        waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        process = popen(waits, stdin=subprocess.PIPE)
        commands.append(process)
        return process

    monkeypatch.delenv(COMPILING_VARIABLE)
    monkeypatch.setattr(cold.subprocess, "Popen", start)
    monkeypatch.setattr(cold, "was_compiled", lambda _: False)
    for name in ("_ready", "_asked"):
        monkeypatch.setattr(cold, name, set())
    monkeypatch.setattr(cold, "_process", None)
    yield commands
    for one in commands[1::2]:
        one.communicate()


def test_one_process_compiles_meanwhile(started, monkeypatch):
    assert cold.is_cold("searches")
    assert cold.is_cold("graphs")
    assert started[::2] == [["hetero_bfs.warm_up", "searches"]]
    monkeypatch.setattr(cold, "was_compiled", lambda job: job == "searches")
    assert not cold.is_cold("searches")
    assert cold.is_cold("graphs")
    started[1].communicate()  # it ends without "graphs", which another one compiles
    assert cold.is_cold("graphs")
    assert len(started) == 4
    started[3].communicate()  # nor does that one: this process compiles
    assert not cold.is_cold("graphs")


def test_what_takes_long_otherwise_is_compiled_now(started):
    assert not cold.is_cold("graphs", cold._LONGEST_SECONDS + 1)
    assert started == []


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (private_cache, "folder", lambda: None),
        (sys, "executable", "/usr/bin/editor"),
        (sys, "executable", None),
        (cold, "ways_of_compiling", lambda: {"wait"}),
        (cold, "was_compiled", lambda _: True),
    ],
)
def test_no_process_is_started_where_it_is_of_no_use(started, monkeypatch, where, name, value):
    monkeypatch.setattr(where, name, value)
    assert not cold.is_cold("graphs")
    assert started == []


def test_an_unknown_way_is_refused(monkeypatch):
    monkeypatch.setenv(COMPILING_VARIABLE, "wait, quiet")
    assert ways_of_compiling() == {"wait", "quiet"}
    monkeypatch.setenv(COMPILING_VARIABLE, "later")
    with pytest.raises(ArgumentError, match="'later'; give wait, quiet or both, or unset it"):
        ways_of_compiling()


DOORS = """
import numpy as np
from numba.core import event
import hetero_bfs as hb
from hetero_bfs.support import cold
cold._process = type("Endless", (), {"poll": lambda self: None})()
with event.install_recorder("numba:compile") as recorder:
    ends = np.random.default_rng(0).integers(0, 500, (2, 4000))
    graph = hb.CSRGraph.from_edges(*ends, weights=np.ones(4000))
    for call in (hb.connected_components, hb.pagerank, hb.colour):
        call(hb.CSRGraph.from_edges(*ends))
    hb.bfs(graph, 0)
    hb.bfs_many(graph, [0, 1])
    hb.sssp(graph, 0)
    hb.pagerank(graph, weighted=True)
    matrix = graph.to_scipy() if hasattr(graph, "to_scipy") else np.eye(5)
    hb.csgraph.dijkstra(matrix, directed=False)
    hb.csgraph.connected_components(matrix)
print([one.data["dispatcher"].py_func.__name__ for _, one in recorder.buffer])
"""


def run(program, cache, **variables):
    """Run a program as users do, without pytest's variables."""
    usual = {"PYTEST_CURRENT_TEST": None, COMPILING_VARIABLE: None, "NUMBA_CACHE_DIR": str(cache)}
    done = run_program(program, cache, **usual | variables)
    assert done.returncode == 0, done.stderr
    return done


def test_first_calls_compile_nothing(tmp_path):
    done = run(DOORS, tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


NOTICE = """
from hetero_bfs.support import compiling
compiling._NOTICE_SECONDS = SECONDS
for number in range(3):
    @compiling.kernel
    def twice(x):
        return 2 * x
    twice(number)
"""


@pytest.mark.parametrize(
    ("seconds", "variables", "lines"),
    [
        (0.0, {}, 1),
        (1000.0, {}, 0),
        (0.0, {COMPILING_VARIABLE: "quiet"}, 0),
        (0.0, {"PYTEST_CURRENT_TEST": "test"}, 0),
    ],
)
def test_one_line_if_compiling_takes_long(tmp_path, seconds, variables, lines):
    done = run(NOTICE.replace("SECONDS = SECONDS", f"SECONDS = {seconds}"), tmp_path, **variables)
    assert len(done.stderr.splitlines()) == lines, done.stderr
    assert lines == 0 or "hetero-bfs warm-up" in done.stderr


def test_a_job_is_compiled_and_noted(tmp_path):
    """The process that cold.py starts, with one job."""
    program = (
        "from hetero_bfs import warm_up\n"
        "from hetero_bfs.support.code_cache import was_compiled\n"
        "warm_up._AT_FIRST_USE = {}\n"
        "warm_up.compile_in_background('networkx')\n"
        "print(was_compiled('networkx'), was_compiled('graphs'))\n"
    )
    done = run(program, tmp_path, **{COMPILING_VARIABLE: "wait"})
    assert done.stdout == "True False\n"
