"""What a training says of its length, on a clock of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hetero_bfs.support import messages
from hetero_bfs.training.budget import Budget
from hetero_bfs.training.collect import PAPER_PLAN


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def spend(self, costs: list[float], factor: float) -> Iterator[int]:
        for number, cost in enumerate(costs):
            self.now += factor * cost + (5.0 if number == 0 else 0.0)  # the first one loads code
            yield number


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
    steps = clock.spend(costs, factor)
    done = list(budget.within("graphs", steps, "measuring graphs", len(costs), costs=costs))
    assert done == list(range(len(costs)))
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
    costs = [1.0] * 100
    budget = Budget(10.0, graphs=1.0)
    done = list(budget.within("graphs", clock.spend(costs, 1.0), "graphs", 100, costs=costs))
    assert len(done) < 10
    assert "are left" not in capsys.readouterr().err
