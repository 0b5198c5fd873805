"""Which choice runs next, by the seconds of those so far."""

from __future__ import annotations

import pytest

from hetero_bfs.scheduling.selectors import Trials


def runs(seconds: dict[str, float], disturbed: float, count: int) -> list[str]:
    """Return the choices of so many runs; the second one of the first choice is disturbed."""
    trials, chosen = Trials(list(seconds)), []
    for _ in range(count):
        choice = trials.choose()
        chosen.append(choice)
        is_disturbed = choice == next(iter(seconds)) and chosen.count(choice) == 2
        trials.learn(choice, disturbed if is_disturbed else seconds[choice])
    return chosen


@pytest.mark.parametrize("others", [["device"], ["device", "both"]])
def test_a_choice_that_was_disturbed_is_taken_in_the_end(others):
    seconds = {"cpu": 0.2} | dict.fromkeys(others, 4.0)
    chosen = runs(seconds, 5.0, 800)
    assert "cpu" not in chosen[2:100]
    assert set(chosen[-100:]) == {"cpu"}


def test_slower_choices_take_a_small_share_of_the_time():
    seconds = {"cpu": 1.0, "device": 3.0, "both": 2.0}
    chosen = runs(seconds, 1.0, 5000)
    assert set(chosen[6:400]) == {"cpu"}
    lost = [seconds[choice] for choice in chosen[6:] if choice != "cpu"]
    assert len(lost) > 5
    assert sum(lost) < 0.01 * sum(seconds[choice] for choice in chosen)
