"""Migrations between two levels, by name and as a policy predicts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import NUM_MIGRATION_COLUMNS, migrations_of
from hetero_bfs.scheduling.policy import MODEL, choose, make_policy
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, REPRESENTATIONS, STRATEGIES

ALL = list(STRATEGIES.values())
MIGRATIONS = [
    (None, "TC", ("cpu", None, None)),
    (None, "BG", ("device", None, None)),
    ("TC", "TC", (None, None, None)),
    ("TC", "BC", (None, None, None)),
    ("BC", "BC", (None, None, None)),
    ("BC", "TC", (None, "cpu", None)),
    ("TG", "TC", (None, None, "cpu")),
    ("BG", "BC", (None, None, "cpu")),
    ("BG", "TC", (None, "device", "cpu")),
    ("BC", "TG", (None, "cpu", "device")),
    ("BGC", "BG", (None, None, None)),
]


@pytest.mark.parametrize(("last", "name", "expected"), MIGRATIONS)
def test_a_frontier_is_converted_where_it_lies_then_switches(last, name, expected):
    before = None if last is None else STRATEGIES[last]
    assert tuple(migrations_of(before, STRATEGIES[name], dense_push=False)) == expected


def test_only_a_strategy_with_dense_pushes_leaves_a_bitmap_of_a_dense_push():
    down = STRATEGIES["TC"]
    assert down.dense_pushes
    assert migrations_of(down, down, dense_push=True).convert == "cpu"
    assert migrations_of(down, STRATEGIES["BC"], dense_push=True).convert is None
    assert migrations_of(replace(down, dense_pushes=False), down, dense_push=True).convert is None
    assert migrations_of(STRATEGIES["TG"], STRATEGIES["TG"], dense_push=True).convert is None


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("kind", [None, *DEVICE_KINDS])
def test_a_policy_predicts_the_moves_that_there_are(kind, representation):
    """Each has seconds that no sum of others has: 1, 2, 4, ... by migration and device."""
    seconds = 2.0 ** np.arange(6).reshape(3, 2)  # start, switch, convert
    migrations = np.zeros((3, 2, NUM_MIGRATION_COLUMNS))
    migrations[:, :, 0] = seconds
    policy = make_policy(MODEL, ALL, migrations=migrations)
    state = np.zeros(schema.STATE_SIZE)
    state[: schema.PLACE] = 10.0, 20.0, 1000.0, 9000.0, 5.0
    state[schema.PLACE] = schema.NOWHERE if kind is None else DEVICE_KINDS.index(kind)
    state[schema.REPRESENTATION] = REPRESENTATIONS.index(representation)
    predicted, total = np.zeros(len(ALL)), np.zeros(len(ALL))
    choose(policy, 2000, 9100, state, predicted, total)
    for strategy, found in zip(ALL, predicted.tolist(), strict=True):
        there = DEVICE_KINDS.index(strategy.device_kind)
        if kind is None:
            expected = seconds[0, there]
        else:
            here = DEVICE_KINDS.index(kind)
            converts = representation in ("bitmap", "wide") and strategy.direction == "top-down"
            expected = seconds[2, here] * converts + seconds[1, there] * (there != here)
        assert found == expected, strategy.name
