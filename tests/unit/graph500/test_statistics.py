"""The reference's statistics against numbers worked out by hand, and its report line by line."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.graph500.report import (
    Graph500Report,
    KeyRecord,
    SearchFigures,
    statistics,
    teps_statistics,
)


def test_five_numbers():
    # sorted 1 2 4 8 10; quartile indices (4 // 4, 5 // 4) and (4 - 1, 4 - 1)
    found = statistics([8, 1, 10, 2, 4])
    assert found == {
        "minimum": 1,
        "firstquartile": 2,
        "median": 4,
        "thirdquartile": 8,
        "maximum": 10,
        "mean": 5,
        "stddev": math.sqrt((9 + 16 + 25 + 9 + 1) / 4),
    }
    assert list(found) == [
        "minimum", "firstquartile", "median", "thirdquartile", "maximum", "mean", "stddev",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "quartiles"),
    [
        (1, (0, 0, 0)),
        (2, (0, 0.5, 1)),
        (3, (0, 1, 2)),
        (4, (0.5, 1.5, 2.5)),
        (6, (1, 2.5, 4)),
        (8, (1.5, 3.5, 5.5)),
        (64, (15.5, 31.5, 47.5)),
    ],
)
def test_quartiles_of_0_1_2(count, quartiles):
    found = statistics(np.arange(count)[::-1])
    assert (found["firstquartile"], found["median"], found["thirdquartile"]) == quartiles


def test_one_number_has_no_standard_deviation():
    found = statistics([3.0])
    assert math.isnan(found.pop("stddev"))
    assert set(found.values()) == {3.0}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=70))
def test_statistics_are_ordered_and_agree_with_numpy(values):
    found = statistics(values)
    order = ["minimum", "firstquartile", "median", "thirdquartile", "maximum"]
    ordered = [found[key] for key in order]
    assert ordered == sorted(ordered)
    assert found["median"] == pytest.approx(np.median(values), abs=1e-9)
    assert found["mean"] == pytest.approx(np.mean(values), abs=1e-6)
    assert found["stddev"] == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


def test_teps_are_harmonic():
    # seconds per edge 1/2, 1/4, 1/8: mean 7/24
    found = teps_statistics([1.0, 2.0, 4.0], [2, 8, 32])
    deviations = [1 / 2 - 7 / 24, 1 / 4 - 7 / 24, 1 / 8 - 7 / 24]
    stddev = math.sqrt(sum(d * d for d in deviations) / 2)
    assert found == pytest.approx(
        {
            "min_TEPS": 2,
            "firstquartile_TEPS": 2,
            "median_TEPS": 4,
            "thirdquartile_TEPS": 8,
            "max_TEPS": 8,
            "harmonic_mean_TEPS": 24 / 7,
            "harmonic_stddev_TEPS": stddev / ((7 / 24) ** 2 * math.sqrt(2)),
        }
    )


def test_quartiles_of_teps_are_those_of_the_seconds_per_edge():
    found = teps_statistics([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1])
    assert found["firstquartile_TEPS"] == 1 / 3.5
    assert found["median_TEPS"] == 1 / 2.5
    assert found["thirdquartile_TEPS"] == 1 / 1.5


def test_a_search_without_edges_has_teps_0():
    found = teps_statistics([1.0, 0.0, 1.0, 1.0], [10, 0, 20, 40])
    assert found == {
        "min_TEPS": 0,
        "firstquartile_TEPS": 0,
        "median_TEPS": pytest.approx(1 / 0.075),
        "thirdquartile_TEPS": pytest.approx(1 / 0.0375),
        "max_TEPS": 40,
        "harmonic_mean_TEPS": 0,
        "harmonic_stddev_TEPS": 0,
    }


def test_one_search_without_edges():
    found = teps_statistics([1e-6], [0])
    assert math.isnan(found.pop("harmonic_stddev_TEPS"))
    assert set(found.values()) == {0.0}


def test_a_search_in_no_time_has_infinite_teps():
    found = teps_statistics([0.0, 1.0], [5, 4])
    assert (found["min_TEPS"], found["max_TEPS"]) == (4, math.inf)
    assert found["harmonic_mean_TEPS"] == 8


REPORT = """\
SCALE:                          20
edgefactor:                     16
NBFS:                           4
graph_generation:               1.5
num_mpi_processes:              1
construction_time:              0.123457
bfs  min_time:                  0.001
bfs  firstquartile_time:        0.0015
bfs  median_time:               0.0025
bfs  thirdquartile_time:        0.0035
bfs  max_time:                  0.004
bfs  mean_time:                 0.0025
bfs  stddev_time:               0.00129099
min_nedge:                      16775770
firstquartile_nedge:            16775770
median_nedge:                   16775770
thirdquartile_nedge:            16775770
max_nedge:                      16775770
mean_nedge:                     16775770
stddev_nedge:                   0
bfs  min_TEPS:                  4.19394e+09
bfs  firstquartile_TEPS:        4.79308e+09
bfs  median_TEPS:               6.71031e+09
bfs  thirdquartile_TEPS:        1.11838e+10
bfs  max_TEPS:                  1.67758e+10
bfs  harmonic_mean_TEPS:     !  6.71031e+09
bfs  harmonic_stddev_TEPS:      2.00063e+09
bfs  min_validate:              0.5
bfs  firstquartile_validate:    0.5
bfs  median_validate:           0.5
bfs  thirdquartile_validate:    0.5
bfs  max_validate:              0.5
bfs  mean_validate:             0.5
bfs  stddev_validate:           0
"""


def graph500_lines(
    scale, edgefactor, generation, construction, seconds, nedges, validating, kernel="bfs"
):
    searches = zip(seconds, nedges, validating, strict=True)
    report = SimpleNamespace(
        failures=[], kernel=kernel, processes=1, scale=scale, edgefactor=edgefactor,
        generation_seconds=generation, construction_seconds=construction,
        sources=[KeyRecord(SearchFigures(0, s, 0.0, n, []), 0, 0, None, v) for s, n, v in searches],
    )  # fmt: skip
    return Graph500Report.lines(report)


def test_the_report_is_the_reference_s_line_by_line():
    # harmonic stddev: 0.00129099 / 0.0025**2 / sqrt(3) * 16775770 = 119.25696 * 16775770
    times = [0.004, 0.001, 0.003, 0.002]
    lines = graph500_lines(20, 16, 1.5, 0.1234567, times, [16775770] * 4, [0.5] * 4)
    assert "\n".join(lines) + "\n" == REPORT
    assert all(line[31] == " " != line[32] for line in lines)


def test_the_lines_of_kernel_3_have_its_name_instead():
    times = [0.004, 0.001, 0.003, 0.002]
    lines = graph500_lines(20, 16, 1.5, 0.1234567, times, [16775770] * 4, [0.5] * 4, kernel="sssp")
    assert "\n".join(lines) + "\n" == REPORT.replace("bfs  ", "sssp ")


def test_graphs_from_files_and_skipped_validation():
    lines = graph500_lines(17.3, 2.0, 0, 2e-7, [1.0, 1.0], [12345678901, 12345678902], [-1.0] * 2)
    assert lines[0] == "SCALE:                          17.3"
    assert lines[1] == "edgefactor:                     2"
    assert lines[5] == "construction_time:              2e-07"
    assert "median_nedge:                   12345678902" in lines  # ...901.5, 11 digits
    assert lines[-7:] == [
        "bfs  min_validate:              -1",
        "bfs  firstquartile_validate:    -1",
        "bfs  median_validate:           -1",
        "bfs  thirdquartile_validate:    -1",
        "bfs  max_validate:              -1",
        "bfs  mean_validate:             -1",
        "bfs  stddev_validate:           0",
    ]


def test_one_search():
    lines = graph500_lines(1_000_000, 1, 0, 0, [0.5], [4], [1.0])
    assert lines[0] == "SCALE:                          1000000"
    assert "bfs  harmonic_mean_TEPS:     !  8" in lines
    assert "bfs  stddev_time:               nan" in lines
