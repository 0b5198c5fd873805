"""Graphs of pandas frames and of tables that export Arrow data."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hetero_bfs as hb
from hetero_bfs.graph.tables import TableColumns, edges_of_arrow

pa = pytest.importorskip("pyarrow")

edges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-5, 5)), max_size=30)


def frame_of(rows, ids=np.int64, weights=np.int32):
    src, dst, cost = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = {"from": np.array(src, ids), "to": np.array(dst, ids), "cost": np.array(cost, weights)}
    return pd.DataFrame(arrays)


def assert_same_graphs(found, expected):
    assert found.directed == expected.directed
    assert found.num_input_edges == expected.num_input_edges
    for name in ("indptr", "indices", "input_degree", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(
    edges,
    st.booleans(),
    st.sampled_from([None, 12]),
    st.sampled_from([np.int64, np.uint32, np.int8]),
    st.sampled_from([np.int32, np.float64, np.int64]),
    st.sampled_from(["min", "sum"]),
    st.integers(1, 9),
)
def test_tables_give_the_graph_of_their_edges(
    rows, directed, num_vertices, ids, weights, duplicates, batch_rows
):
    frame = frame_of(rows, ids, weights)
    expected = hb.CSRGraph.from_edges(
        frame["from"], frame["to"], num_vertices, directed, frame["cost"], duplicates
    )
    settings = {"num_vertices": num_vertices, "directed": directed, "duplicates": duplicates}
    columns = ("from", "to", "cost")
    assert_same_graphs(hb.CSRGraph.from_pandas(frame, *columns, **settings), expected)
    table = pa.Table.from_batches(
        pa.Table.from_pandas(frame).to_batches(batch_rows), pa.Schema.from_pandas(frame)
    )
    assert_same_graphs(hb.CSRGraph.from_arrow(table, *columns, **settings), expected)


def test_columns_are_named_source_and_target_by_default_and_weights_left_out():
    frame = pd.DataFrame({"weight": [1, 2], "target": [1, 2], "source": [0, 1]})
    assert hb.CSRGraph.from_pandas(frame).weights is None
    assert hb.CSRGraph.from_arrow(pa.Table.from_pandas(frame)).num_stored_edges == 4


def test_a_stream_and_a_batch_are_tables_too():
    batch = pa.record_batch({"source": pa.array([0], pa.uint32()), "target": pa.array([3])})
    stream = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    for table in (
        batch,
        stream,
        frame_of([(0, 3, 1)]).rename(columns={"from": "source", "to": "target"}),
    ):
        assert hb.CSRGraph.from_arrow(table).num_vertices == 4


def test_arrow_columns_of_the_right_types_are_not_copied():
    ends = np.arange(5, dtype=np.uint32)
    table = pa.table({"a": ends, "b": ends[::-1].copy(), "w": np.ones(5)})
    edges = edges_of_arrow(table, TableColumns("a", "b", "w"))
    for array, name in ((edges.src, "a"), (edges.dst, "b"), (edges.weights, "w")):
        assert np.shares_memory(array, table[name].chunk(0).to_numpy())


@pytest.mark.parametrize("make", [hb.CSRGraph.from_pandas, lambda frame, *names, **settings:
    hb.CSRGraph.from_arrow(pa.Table.from_pandas(frame), *names, **settings)])  # fmt: skip
@pytest.mark.parametrize(
    ("column", "names", "message"),
    [
        ([0, 1], ("a", "x"), "column 'x' is not in the table; its columns are 'a', 'b'"),
        (["u", "v"], ("a", "b"), r"column 'a' holds .*renumber=True"),
        (pd.array([0, None], "Int64"), ("a", "b"), "column 'a' has 1 missing"),
        ([0, -1], ("a", "b"), "-1"),
        ([0.0, 1.0], ("a", "b"), "float64"),
    ],
)
def test_columns_that_are_no_ids_are_refused(make, column, names, message):
    frame = pd.DataFrame({"a": column, "b": [1, 2]})
    with pytest.raises((hb.GraphError, hb.ArgumentError), match=message):
        make(frame, *names)


def test_what_is_no_table_is_refused(monkeypatch):
    with pytest.raises(hb.ArgumentError, match=r"list; give a pandas\.DataFrame"):
        hb.CSRGraph.from_pandas([(0, 1)])
    with pytest.raises(hb.ArgumentError, match="__arrow_c_stream__"):
        hb.CSRGraph.from_arrow([(0, 1)])
    twice = pd.DataFrame([[0, 1]], columns=["source", "source"])
    with pytest.raises(hb.ArgumentError, match="more than once"):
        hb.CSRGraph.from_pandas(twice)
    table = pa.table({"source": [0], "target": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(hb.ArgumentError, match="pip install pyarrow"):
        hb.CSRGraph.from_arrow(table)
