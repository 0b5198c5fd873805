"""Timelines: spans of traces, the Trace Event Format, SVG, and commands that write them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import fields
from itertools import pairwise

import pytest
from cli_runs import run
from in_browser import measured

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp.result import WindowTrace
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.scheduling.trace import (
    IterationTrace,
    LevelFeatures,
    LevelTrace,
)
from hetero_bfs.timeline.rendering import (
    svg_file,
    timeline_svg,
    trace_events,
    with_unit,
    write_timeline,
)
from hetero_bfs.timeline.spans import spans_of


def level(number, strategy, kind, seconds=1e-4, moving=0.0, choosing=1e-6):
    features = LevelFeatures(number, 3, 40, 100, 900, 128, 1000, 2.5, kind, "queue")
    predicted = {"TC": 3e-5, "BC": 2e-5}
    compared = {"TC": 5e-5, "BC": 4e-5}
    reason = "10 us before"
    return LevelTrace(features, strategy, seconds, moving, choosing, 7, predicted, reason, compared)


SEARCH = [
    level(0, "TC", None, 3.3e-7, 4e-6),
    level(1, "TG", "cpu", 1e-4, 2.5e-5),
    level(2, "BG", "device"),
    level(3, "TG@2", "device", 1 / 3e5, 1e-5),
    level(4, "BC", "device", 1e-5, 1e-5, 0.0),
]
ROWS = {
    "levels": [{"root": 17, **trace.row()} for trace in SEARCH]
    + [{"root": 5, **trace.row()} for trace in SEARCH[:2]],
    "iterations": [
        IterationTrace(number, strategy, 100, 1000, 1e-3, 4096, 2e-4).row()
        for number, strategy in enumerate(["push", "device pull", "device pull", "push"])
    ],
    "windows": [
        WindowTrace(0.5 * number, strategy, 10, 100, 2, 1e-3).row()
        for number, strategy in enumerate(["prefix", "device full", "pull"])
    ],
}


def in_lane(spans, lane):
    return [span for span in spans if span.lane == lane]


def test_the_columns_of_a_level():
    assert tuple(SEARCH[0].row()) == (
        *(one.name for one in fields(LevelFeatures)),
        *("expected_examined", "expected_found", "expected_length", "strategy", "seconds"),
        *("transfer_seconds", "select_seconds", "found_vertices"),
        *(f"{what}_{name}" for what in ("predicted", "compared") for name in STRATEGIES),
        "reason",
    )


@pytest.mark.parametrize("kind", ROWS)
def test_spans_fill_the_time_that_was_measured(kind):
    rows = ROWS[kind]
    spans = spans_of(rows)
    names = ("seconds", "transfer_seconds", "select_seconds", "migration_seconds")
    measured = sum(row.get(name, 0.0) for row in rows for name in names)
    assert sum(span.seconds for span in in_lane(spans, "runs")) == pytest.approx(measured)
    assert len(in_lane(spans, "steps")) == len(rows)
    within = [span for span in spans if span.lane not in ("runs", "steps")]
    assert sum(span.seconds for span in within) == pytest.approx(measured)
    for one, next_one in pairwise(within):  # one after another, whatever their lanes
        assert one.start_seconds + one.seconds == pytest.approx(next_one.start_seconds)


def test_runs_and_lanes_of_a_search():
    spans = spans_of(ROWS["levels"])
    assert [span.name for span in in_lane(spans, "runs")] == ["search from 17", "search from 5"]
    assert [span.name for span in in_lane(spans, "CPU")] == ["TC", "BC", "TC"]
    assert [span.name for span in in_lane(spans, "device")] == ["TG", "BG", "TG"]
    assert [span.name for span in in_lane(spans, "device 2")] == ["TG@2"]
    assert [span.name for span in in_lane(spans, "migrations")][:4] == [
        "start on CPU",
        "migrate to device",
        "migrate to device 2",
        "migrate to CPU",
    ]
    chosen = in_lane(spans, "choices")[0].details
    assert chosen["reason"] == "10 us before"
    assert chosen["predicted_ms_BC"] == pytest.approx(0.02)
    assert chosen["compared_ms_BC"] == pytest.approx(0.04)


def test_runs_of_programs_and_paths():
    spans = spans_of(ROWS["iterations"])
    assert [span.name for span in in_lane(spans, "device")] == ["pull", "pull"]
    assert in_lane(spans, "migrations")[1].details == {"migrated_bytes": 4096}
    assert len(in_lane(spans_of(ROWS["iterations"] * 2), "runs")) == 2
    spans = spans_of(ROWS["windows"])
    assert [span.name for span in in_lane(spans, "steps")] == ["window 0", "window 1", "window 2"]
    assert [span.name for span in in_lane(spans, "CPU")] == ["prefix", "pull"]


def test_what_json_lacks_is_left_out(tmp_path):
    """Windows of lists that stream to the device have no start."""
    row = WindowTrace(float("nan"), "device full", 10, 100, 2, 1e-3).row()
    row |= {"migrated_bytes": float("inf"), "migration_seconds": 1e-4, "predicted_TC": 1e307}
    (step,) = in_lane(spans_of([row]), "device")
    assert step.details == {"vertices": 10, "edges_scanned": 100, "rounds": 2}
    write_timeline(tmp_path / "t.json", spans_of([row]), "streamed")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_runs_on_many_ranks():
    record = {"root": 3, "level": 0, "direction": "top-down", "seconds": 2e-3, "on_devices": 0}
    rows = [record, {**record, "level": 1, "on_devices": 2, "exchange_seconds": 1e-3}]
    spans = spans_of(rows)
    assert [span.name for span in in_lane(spans, "CPU")] == ["top-down"]
    (level,) = in_lane(spans, "device")
    assert level.details == {"level": 1, "on_devices": 2}
    (exchange,) = in_lane(spans, "exchanges")
    assert exchange.start_seconds == pytest.approx(4e-3)


# The Trace Event Format.


@pytest.mark.parametrize("kind", ROWS)
def test_events_are_as_the_format_has_them(kind):
    spans = spans_of(ROWS[kind])
    data = json.loads(json.dumps(trace_events(spans, {"made_from": "x"}), allow_nan=False))
    assert data["displayTimeUnit"] == "ns"
    events = data["traceEvents"]
    assert {event["ph"] for event in events} <= {"M", "X", "C"}
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == len(spans)
    for event in complete:
        assert event.keys() >= {"name", "cat", "ts", "dur", "pid", "tid", "args"}
        assert event["dur"] >= 0
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(threads) == {event["tid"] for event in complete}
    assert len(threads) == len({span.lane for span in spans})


def test_events_of_a_lane_do_not_overlap_by_a_nanosecond():
    events = trace_events(spans_of(ROWS["levels"] * 50))["traceEvents"]
    for lane in range(1, 8):
        ends = 0
        for event in (e for e in events if e["ph"] == "X" and e["tid"] == lane):
            start, length = round(1e3 * event["ts"]), round(1e3 * event["dur"])
            assert start == pytest.approx(1e3 * event["ts"], abs=1e-4)  # whole nanoseconds
            assert start >= ends
            ends = start + length


# SVG.


def rects(svg: str):
    root = ET.fromstring(svg if "xmlns" in svg else svg_file(svg))
    space = "{http://www.w3.org/2000/svg}"
    frame = [float(number) for number in root.get("viewBox").split()]
    return frame, [group.find(f"{space}rect") for group in root.iter(f"{space}g")]


@pytest.mark.parametrize("kind", ROWS)
def test_every_span_is_within_the_picture(kind):
    spans = spans_of(ROWS[kind])
    (_, _, width, height), found = rects(timeline_svg(spans, "a <search>"))
    assert 0 < len(found) <= len(spans)
    for rect in found:
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height


@pytest.mark.slow
def test_boxes_and_labels_in_a_browser(tmp_path):
    """Boxes are in the picture, and labels in their boxes."""
    svg = timeline_svg(spans_of(ROWS["levels"]), "a search")
    (tmp_path / "t.html").write_text(f"<body>{svg}</body>")
    (timeline,) = measured(tmp_path / "t.html", tmp_path)["svgs"]
    assert {"runs", "steps", "CPU"} <= set(timeline["lanes"])
    left, top, right, bottom = timeline["frame"]
    assert right - left > 500
    assert {"TG", "BG"} <= {span["told"].partition(":")[0] for span in timeline["spans"]}
    for span in timeline["spans"]:
        x, y, x_end, y_end = span["rect"]
        assert left <= x < x_end <= right + 1
        assert top <= y < y_end <= bottom + 1
        if span["text"] is not None:
            assert x <= span["text"][0] <= span["text"][2] <= x_end


def test_many_thin_spans_are_few_boxes():
    rows = [level(number, "TC", "cpu").row() for number in range(5000)]
    assert len(rects(timeline_svg(spans_of(rows), "long"))[1]) < 2000


def test_nothing_and_no_time_can_be_drawn():
    assert rects(timeline_svg([], "empty"))[1] == []
    still = [IterationTrace(0, "push", 0, 0, 0.0).row()]
    assert len(rects(timeline_svg(spans_of(still), "still"))[1]) == 3


def test_text_is_escaped():
    rows = [IterationTrace(0, '<script>"&', 0, 0, 1.0).row()]
    svg = timeline_svg(spans_of(rows), "<b>")
    assert "<script>" not in svg
    assert "<b>" not in svg
    rects(svg)  # well-formed


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (1.5, "1.5 s"), (1.88e-4, "188 µs"), (2e-3, "2 ms")]
)
def test_times_with_units(seconds, text):
    assert with_unit(seconds) == text


# Commands and results.


def test_a_trace_may_be_a_timeline_at_once(graph, tmp_path):
    for arguments in (
        ["bfs", graph, "--source", 0],
        ["components", graph],
        ["graph500", "--scale", 6, "--sources", 2],
    ):
        for name in ("t.json", "t.svg"):
            assert run(*arguments, "--device", "cpu", "--trace", tmp_path / name) == 0
        events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
        assert "runs" in [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        assert (tmp_path / "t.svg").read_text().startswith("<svg")


def test_results_become_a_timeline(tmp_path):
    path = hb.CSRGraph.from_edges([0, 1, 2], [1, 2, 3])
    weighted = hb.CSRGraph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 2.0, 3.0])
    paths = [hb.sssp(weighted, 0) for _ in range(2)]
    results = hb.bfs(path, 0), hb.bfs(path, 0), hb.pagerank(path), *paths
    hb.save_timeline(tmp_path / "t.json", *results)
    hb.save_timeline(tmp_path / "t.svg", *results)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    runs = [event["name"] for event in events if event.get("cat") == "runs"]
    assert runs == ["search from 0", "search from 0", "run 2", "search from 0", "search from 0"]
    rects((tmp_path / "t.svg").read_text())
    with pytest.raises(hb.ArgumentError, match="ends in"):
        hb.save_timeline(tmp_path / "t.png", *results)
