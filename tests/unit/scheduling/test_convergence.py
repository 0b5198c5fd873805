"""Corrections on simulated machines that differ from the model, are noisy, and drift.

A machine's seconds are the model's, times a factor for each strategy at small and at large levels
and for each migration. Searches learn from their own times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from selector_levels import ALL, reference_of, states_of
from test_plans import M, N, core_and_tail_levels, machine

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import (
    NUM_COLUMNS,
    dot,
    fill_columns,
    size_of_level,
    transition_seconds,
)
from hetero_bfs.scheduling.correction import Correction
from hetero_bfs.scheduling.model_selectors import ModelSelector, model_selector
from hetero_bfs.scheduling.rehearsal import rehearse
from hetero_bfs.scheduling.selectors import Recording
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.support.compiling import kernel

SEARCHES = 200
WARM = 8
SHAPES = {
    "core and tail": core_and_tail_levels(40),
    "core": core_and_tail_levels(0)[:6],
    "chain": ((1, 2), *[(2, 4)] * 300),
    "road": ((1, 2), *[(800, 1600)] * 300),
}


@kernel(counted=False)
def _seconds_of(costs, columns, num_vertices, record, place, is_queue, s):
    """Return the seconds of a level, and of the migrations before it."""
    fill_columns(columns, num_vertices, record)
    weights = costs.weights[size_of_level(record[schema.FRONTIER_EDGES])]
    return dot(weights[s], columns), transition_seconds(costs, columns, place, is_queue, s)


class Machine:
    """Simulated searches of one graph; `truth` is the selector that knows the true seconds."""

    def __init__(self, base: ModelSelector, seed: int, spread: float, noise: float) -> None:
        self.base, self.noise = base, noise
        self.random = np.random.default_rng(seed)
        self.set_factors(np.exp(self.random.normal(0.0, spread, base.factors.size)))

    def set_factors(self, factors) -> None:
        self.factors = factors
        self.truth = self.base.corrected(factors)

    def best(self) -> float:
        return self.true_seconds(self.truth)

    def true_seconds(self, selector: ModelSelector) -> float:
        """Return the seconds of the reference search and of those like it, as others search."""
        return self.truth._expected(selector.policy)

    def search(self, selector) -> tuple[Recording, float]:
        """Run a search; times vary from level to level and as a whole."""
        n, m, reference = self.base._graph
        numbers = [ALL.index(s) for s in selector.candidates]
        levels = np.column_stack((reference, np.ones(len(reference))))  # each counts once
        chosen, _ = rehearse(selector.policy, _costs_of(self.truth, numbers), n, m, levels)
        records = np.zeros((len(reference), schema.record_width(len(selector.candidates))))
        records[:, : schema.RECORD_STATE] = reference
        place, is_queue = schema.NOWHERE, True
        costs, columns = self.truth.by_model, np.zeros(NUM_COLUMNS)
        for record, c in zip(records, chosen, strict=True):
            s = numbers[c]
            record[schema.PLACE] = place
            record[schema.REPRESENTATION] = schema.QUEUE if is_queue else schema.BITMAP
            seconds, moving = _seconds_of(costs, columns, n, record, place, is_queue, s)
            record[schema.STRATEGY] = c
            record[schema.SECONDS] = seconds * self._noise()
            record[schema.TRANSFER_SECONDS] = moving * self._noise()
            place, is_queue = ALL[s].place, ALL[s].direction == "top-down"
        whole = self._noise()
        for column in (schema.SECONDS, schema.TRANSFER_SECONDS):
            records[:, column] *= whole
        total = float(records[:, [schema.SECONDS, schema.TRANSFER_SECONDS]].sum())
        return Recording(records, selector, n, m, 1), total

    def _noise(self) -> float:
        slow = 3.0 if self.random.random() < 0.02 else 1.0  # as after an interrupt
        return slow * float(np.exp(self.random.normal(0.0, self.noise)))


def _costs_of(selector: ModelSelector, numbers):
    """Return the costs of some candidates, in another order."""
    costs = selector.by_model
    return costs._replace(
        weights=costs.weights[:, numbers],
        places=costs.places[numbers],
        top_down=costs.top_down[numbers],
        traits=costs.traits[numbers],
    )


def with_slow_host(model: SpeedModel, times: float) -> SpeedModel:
    """Return the model with this many times the host's seconds."""
    large = dict(model.learned)
    large["TC"] = Linear(large["TC"].columns, tuple(times * c for c in large["TC"].coefficients))
    return replace(model, learned=large)


def run(
    shape: str,
    seed: int,
    spread: float,
    noise: float,
    drift=None,
    host=1.0,
    predicted=1.0,
) -> list[float]:
    """Return true seconds over the best policy's, for each search.

    `predicted` is how slow the model expects the host's large top-down levels to be, and `host` how
    many times as slow the host is as the model expects.
    """
    states = states_of(SHAPES[shape], N, M)
    made = with_slow_host(machine(), predicted)
    base = model_selector("auto", made, ALL).on_graph(N, M, reference_of(states))
    simulated = Machine(base, seed, spread, noise)
    on_host = [strategy.device_kind == "cpu" for strategy in ALL]
    simulated.factors[: 2 * len(ALL)][on_host * 2] *= host
    simulated.set_factors(simulated.factors)
    correction = Correction(base)
    ratios = []
    for number in range(SEARCHES):
        if drift is not None:
            simulated.set_factors(drift(simulated.factors, number))
        used = correction.trial or correction.selector
        ratios.append(simulated.true_seconds(used) / simulated.best())
        correction.learn(*simulated.search(used))
    return ratios


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_that_is_nearly_right_stays_so(shape):
    """Few searches are much slower than by the true seconds; none of them after a while."""
    for seed in range(3):
        ratios = run(shape, seed, 0.2, 0.1)
        assert max(ratios[WARM:]) <= 1.5, (seed, np.round(ratios, 2))
        assert np.mean(ratios[WARM:]) <= 1.1, (seed, np.round(ratios, 2))


@pytest.mark.parametrize("host", [1.4, 1.8, 2.2])
def test_of_places_that_are_nearly_equal_the_faster_one_is_found(host):
    """The host's levels are predicted to take 0.8 times the device's; they take 1.1 to 1.8."""
    for seed in range(3):
        ratios = run("road", seed, 0.05, 0.1, host=host)
        assert ratios[0] > 1.05
        assert np.mean(ratios[WARM:]) <= 1.05, (seed, np.round(ratios, 2))


@pytest.mark.parametrize("host", [0.5, 0.6])
def test_a_place_that_is_faster_than_predicted_is_found(host):
    """The host's levels are predicted to take 1.2 times the device's; they take 0.6 and 0.7."""
    for seed in range(3):
        ratios = run("road", seed, 0.05, 0.1, host=host, predicted=1.5)
        assert ratios[0] > 1.05
        assert np.mean(ratios[WARM:]) <= 1.05, (seed, np.round(ratios, 2))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_machine_that_drifts_is_followed(shape):
    """Other work makes the device three times as slow for a while."""

    def drift(factors, number):
        if number not in (80, 140):
            return factors
        changed = factors.copy()
        device = [i for i, s in enumerate(ALL) if s.device_kind == "device"]
        for i in (*device, *(len(ALL) + i for i in device)):
            changed[i] *= 3.0 if number == 80 else 1.0 / 3.0
        return changed

    for seed in range(2):
        ratios = run(shape, seed, 0.3, 0.1, drift)
        settled = [*ratios[WARM:80], *ratios[110:140]]
        # Now and then a search tries what once was faster; that takes a single search.
        assert np.quantile(settled, 0.95) <= 1.5, (seed, np.round(ratios, 2))
        assert np.mean(ratios[WARM:]) <= 1.25, (seed, np.round(ratios, 2))


@pytest.mark.parametrize("cold", [False, True])
def test_the_first_search_of_a_place_may_be_slow(cold):
    """As of threads that have slept: the second search of a trial finds that the host is faster."""
    states = states_of(SHAPES["road"], N, M)
    made = with_slow_host(machine(), 1.5)
    base = model_selector("auto", made, ALL).on_graph(N, M, reference_of(states))
    simulated = Machine(base, 0, 0.0, 0.02)
    factors = np.ones(base.factors.size)
    on_host = [strategy.device_kind == "cpu" for strategy in ALL]
    factors[: 2 * len(ALL)][on_host * 2] = 0.6
    simulated.set_factors(factors)
    correction = Correction(base)
    trials = 0
    for _ in range(8):
        recording, seconds = simulated.search(correction.trial or correction.selector)
        if correction.trial is not None:
            trials += 1
            seconds *= 1.7 if cold and trials == 1 else 1.0
        correction.learn(recording, seconds)
    assert simulated.true_seconds(correction.selector) < 1.02 * simulated.best()
    assert trials == (2 if cold else 1)
