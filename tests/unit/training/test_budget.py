"""What a training says of its length, on a clock of its own."""

from __future__ import annotations

import re
import threading
import time

import pytest

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.verdicts import Verdict
from hetero_bfs.support import messages
from hetero_bfs.training import train
from hetero_bfs.training.budget import Budget
from hetero_bfs.training.collect import PAPER_PLAN

UNTESTED = DeviceInfo(
    0, "GPU", "Vendor", "GPU", 8, 2**30, 2**28, 2**15, False, True, "1", "OpenCL 1.2", None, None
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def within(self, budget: Budget, costs: list[float], factor: float) -> list[int]:
        """Go through items with these costs; return those that the budget has time for."""
        done: list[int] = []
        items = range(len(costs))
        for number in budget.within("graphs", items, "measuring graphs", costs=costs):
            self.now += factor * costs[number] + (5.0 if number == 0 else 0.0)  # it loads code
            done.append(number)
        return done


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr("time.monotonic", one.monotonic)
    monkeypatch.setattr(messages, "enabled", True)
    return one


@pytest.mark.parametrize("factor", [0.2, 1.0, 7.0])
def test_the_estimate_is_that_of_the_whole(
    clock: Clock, factor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = [graph.cost for graph in PAPER_PLAN.graphs()]
    budget = Budget(None, graphs=0.8, regret=0.2)
    assert clock.within(budget, costs, factor) == list(range(len(costs)))
    printed = capsys.readouterr().err
    estimates = re.findall(r"about (\d+) (s|minutes) are left", printed)
    assert len(estimates) == 1
    seconds = float(estimates[0][0]) * (60 if estimates[0][1] == "minutes" else 1)
    assert seconds == pytest.approx(factor * sum(costs[2:]) / 0.8, rel=0.2)
    lines = re.findall(r"(\d+) of \d+ done, about (\d+) s left", printed)
    assert lines
    for number, left in lines[len(lines) // 4 :]:
        assert float(left) == pytest.approx(factor * sum(costs[int(number) :]), rel=0.3, abs=10)


def test_a_limit_is_no_estimate(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    assert clock.within(Budget(20.0, graphs=1.0), [1.0] * 100, 1.0) == list(range(15))
    printed = capsys.readouterr().err
    assert "are left" not in printed
    assert "measuring graphs: 85 of 100 left out for lack of time" in printed


def test_what_is_too_long_is_left_out_and_smaller_items_follow(clock: Clock) -> None:
    began = clock.now
    costs = [10.0, 80.0, 3.0, 80.0, 3.0, 500.0, 3.0]
    assert clock.within(Budget(60.0, graphs=1.0), costs, 2.0) == [0, 2, 4, 6]
    assert clock.now - began <= 60.0


def test_the_first_item_counts_until_a_second_one_has_run(clock: Clock) -> None:
    assert clock.within(Budget(200.0, graphs=1.0), [1.0, 3.0, 20.0, 2.0], 60.0) == [0, 3]


@pytest.mark.parametrize("seconds", [30.0, 100.0, 300.0])
def test_lines_never_say_more_than_the_limit(
    clock: Clock, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = [graph.cost for graph in PAPER_PLAN.graphs()]
    clock.within(Budget(seconds, graphs=1.0), costs, 2.0)
    found = re.findall(r"done, about (\d+) s left", capsys.readouterr().err)
    assert found
    assert all(float(left) <= seconds for left in found)


def test_a_line_is_printed_while_one_item_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "enabled", True)
    monkeypatch.setattr(messages, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(messages, "_TICK_SECONDS", 0.001)
    printed = ""
    for _ in messages.progress("a", "measuring", 1):
        capsys.readouterr()  # the line before the item
        end = time.monotonic() + 30.0
        while "measuring: 0 of 1 done" not in printed and time.monotonic() < end:
            time.sleep(0.001)
            printed = capsys.readouterr().err
    assert "measuring: 0 of 1 done" in printed
    before = set(threading.enumerate())
    list(messages.progress("abc", "measuring", 3))
    for _ in messages.progress("abc", "measuring", 3):
        break
    for one in set(threading.enumerate()) - before:
        one.join(5.0)
        assert not one.is_alive()


@pytest.mark.parametrize(
    ("tested", "seconds", "has_time"),
    [(False, 80.0, False), (False, 100.0, True), (False, None, True), (True, 1.0, True)],
)
def test_programs_of_an_untested_driver_need_time(
    monkeypatch: pytest.MonkeyPatch, tested: bool, seconds: float | None, has_time: bool
) -> None:
    verdict = Verdict("2026-11-29", 1.0, None) if tested else None
    monkeypatch.setattr(train, "kept_verdict", lambda *_: verdict)
    monkeypatch.setattr(train, "is_off", lambda: False)
    budget = Budget(seconds, programs=1.0)
    assert train._has_time_for_programs(UNTESTED, budget) is has_time
    assert train._has_time_for_programs(None, budget)
