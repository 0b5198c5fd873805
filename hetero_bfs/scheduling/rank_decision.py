"""The direction of a level, one for all ranks, by the slowest rank's predictions.

Each rank predicts its own seconds of the next level in both directions: a push by its edges and the
vertices that it is expected to find, a pull by its machine's speed model. One reduction takes the
maxima. The seconds of the exchange are added: latency plus bytes over bandwidth, both measured when
the search opens (ranks/exchange.py). All ranks compute with the same numbers, so they decide the
same.

A model was trained with all cores of one process, perhaps on another machine. So each rank corrects
its predictions by the measured times of its levels.

A rank with an OpenCL device also predicts both directions there. Its part of a search starts on the
host and moves to the device for a level that is much faster there. It stays there, since each move
copies a bitmap. The first moves ignore predictions, since nothing was measured yet. If starting on
the host and moving is slow, later searches start on the device. The ranks agree only on the
direction, not on the place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import dot, fill_columns, size_of_level
from hetero_bfs.scheduling.first_model import first_model
from hetero_bfs.scheduling.model_files import similar_model
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.policy import CAUTION
from hetero_bfs.scheduling.selectors import ALPHA, BETA
from hetero_bfs.scheduling.strategies import (
    DIRECTIONS,
    Direction,
    Strategy,
    available,
    plain,
    schedule_names,
    strategy_named,
)
from hetero_bfs.support.compiling import kernel

_NUM_COLUMNS = len(schema.COLUMNS)
_WEIGHT = 0.25  # weight of a new measurement in a correction
_LEAST_TO_LEARN = 30e-6  # seconds, taken and predicted: shorter levels are mostly calls
_MUCH_FASTER = 4.0  # than predicted: no disturbance does this, so the measurement counts fully
_TRIES = 2  # moves to the device before its predictions are compared with the host's
_PUSHES_A_LEVEL = 2  # a rank pushes, and receives messages from other ranks
_SLOW_STARTS = 2  # slow starts in a row, since the first start is cold
_EARLY = 15  # the frontier has less than this share of the unvisited edges

(EDGES, VERTICES, UNVISITED, UNVISITED_LEFT, PUSH_SECONDS, PULL_SECONDS, SENT_BYTES, FOUND) = range(
    8
)
"""Numbers that the ranks reduce by maximum: edges and vertices of the frontier, unvisited vertices
and their edges, predicted seconds, bytes for other ranks, and 1 if the target was found."""

NUM_REDUCED = 8
PUSH, PULL, DEVICE_PUSH, DEVICE_PULL = range(4)
"""Predicted levels: a push and a pull on the host, and both on the rank's OpenCL device."""

NUM_PREDICTED = 4
MOVE_GAIN = 2.0
"""A search moves to the device for a level that takes less than 1 / 2 there, and then stays."""

_SECONDS_PER_EDGE, _SECONDS_PER_FOUND = 2e-9, 8e-9  # a push without a model
_SECONDS_PER_SCAN, _SECONDS_PER_WORD = 1.5e-9, 2e-9  # a pull without a model
_WORD_BYTES = 8


@kernel(counted=False)
def predict(
    state, weights, floors, move, trying, others_share, factors, columns, raw, on_device, reduced
):
    """Predict a push and a pull, each at the place where the rank would run it.

    state : float64 (STATE_SIZE,)
    weights : float64 (2, NUM_PREDICTED, NUM_COLUMNS); of speed models, at SMALL and at LARGE
        levels; all 0 without one
    floors : float64 (2,); constant seconds of a push and of a pull on the device, inf without one
    move : seconds that the move to the device takes
    trying : whether to take the device whatever its model predicts
    others_share : share of the vertices that other ranks own
    factors : float64 (NUM_PREDICTED,); corrections of the predictions
    columns : float64 (NUM_COLUMNS,); scratch
    raw : float64 (NUM_PREDICTED,); filled with predictions without corrections and floors
    on_device : bool (2,); filled with the place of a push and of a pull
    reduced : float64 (NUM_REDUCED,); filled
    """
    edges, found = state[schema.FRONTIER_EDGES], state[schema.FRONTIER_VERTICES]
    unvisited, left = state[schema.UNVISITED_VERTICES], state[schema.UNVISITED_EDGES]
    vertices = unvisited + found
    scanned = expected = 0.0
    columns[:] = 0.0
    if found > 0.0 and unvisited > 0.0:
        fill_columns(columns, vertices, state)
        scanned, expected = columns[6], columns[7]
    size = size_of_level(edges)
    for which in range(NUM_PREDICTED):
        predicted = dot(weights[size, which], columns)
        if predicted <= 0.0 and which % 2 == PUSH:
            predicted = _SECONDS_PER_EDGE * edges + _SECONDS_PER_FOUND * expected
        elif predicted <= 0.0:
            predicted = _SECONDS_PER_WORD * vertices / 32.0 + _SECONDS_PER_SCAN * scanned
        raw[which] = predicted
    reduced[EDGES], reduced[VERTICES] = edges, found
    reduced[UNVISITED], reduced[UNVISITED_LEFT] = unvisited, left
    for which in range(2):
        here = factors[which] * raw[which]
        there = floors[which] + factors[DEVICE_PUSH + which] * raw[DEVICE_PUSH + which]
        if state[schema.PLACE] != schema.HOST:
            on_device[which] = True
        else:
            there += move
            least = floors[which] + move if trying else MOVE_GAIN * there
            on_device[which] = least < here
        reduced[PUSH_SECONDS + which] = there if on_device[which] else here
    reduced[SENT_BYTES] = _WORD_BYTES * expected * others_share
    reduced[FOUND] = state[schema.TARGET] == schema.FOUND_TARGET


@dataclass(frozen=True)
class ExchangeCosts:
    """Seconds of exchanges, measured when a search opens: the same on all ranks.

    `dense` is a whole dense exchange. A sparse exchange takes `latency`, and `per_byte` for each
    byte of the rank that sends the most.
    """

    dense: float
    latency: float
    per_byte: float

    def sparse(self, num_bytes: float) -> float:
        return self.latency + self.per_byte * num_bytes


class DecidedDevice(Protocol):
    """A rank's OpenCL device: seconds of an empty push and pull, and of the move there."""

    info: DeviceInfo
    floor_seconds: npt.NDArray[np.float64]
    move_seconds: float


class RankDecision:
    """Chooses directions for one rank; all ranks choose the same.

    selector : "alpha-beta" is Beamer's rule, "fixed:TC,BG" a schedule of directions and places; all
        others compare predictions
    reduce : replaces each item of an array by the maximum over ranks
    others_share : share of the searched vertices that other ranks have
    num_vertices : searched vertices of the largest rank
    correction : whether to learn from measured times; without it no move to the device is a trial

    `choose` may only compare values that are the same on all ranks: reduced, or of the whole graph.
    """

    def __init__(
        self,
        reduce: Callable[[npt.NDArray[np.float64]], None],
        selector: str,
        others_share: float,
        num_vertices: int,
        costs: ExchangeCosts,
        device: DecidedDevice | None = None,
        correction: bool = True,
    ) -> None:
        self.selector = selector
        self.factors = np.ones(NUM_PREDICTED)
        """Factors that correct the predictions of a push and a pull, and of both on the device."""
        self._floors = np.full(2, np.inf) if device is None else device.floor_seconds
        self._move = 0.0 if device is None else device.move_seconds
        self._slow_starts = 0
        self._tries = _TRIES if device is not None and correction else 0
        self._corrects = correction
        self._device = device
        self._reduce = reduce
        self._others_share = others_share
        self._num_vertices = num_vertices
        self._costs = costs
        self._weights = np.zeros((2, NUM_PREDICTED, _NUM_COLUMNS))
        self._weights[:, PULL] = _weights("bottom-up", None)
        if device is not None:
            self._weights[:, DEVICE_PUSH] = _weights("top-down", device.info)
            self._weights[:, DEVICE_PULL] = _weights("bottom-up", device.info)
        self._columns = np.zeros(_NUM_COLUMNS)
        self._raw = np.zeros(NUM_PREDICTED)
        self._on_device = np.zeros(2, np.bool_)
        self._reduced = np.zeros(NUM_REDUCED)
        self._edges_before = 0.0
        self._schedule: list[Strategy] | None = None
        if selector.startswith("fixed:"):
            self._schedule = [strategy_named(name) for name in schedule_names(selector)]

    def agree(self, state: npt.NDArray[np.float64]) -> bool:
        """Predict, and reduce over all ranks; return false if the search is over."""
        reduced = self._reduced
        self._edges_before = float(reduced[EDGES])
        predict(
            state,
            self._weights,
            self._floors,
            self._move,
            self._tries > 0,
            self._others_share,
            self.factors,
            self._columns,
            self._raw,
            self._on_device,
            reduced,
        )
        self._reduce(reduced)
        return bool(reduced[EDGES] > 0 and reduced[UNVISITED] > 0 and not reduced[FOUND])

    def seconds(self) -> tuple[float, float]:
        reduced = self._reduced
        push = reduced[PUSH_SECONDS] + self._costs.sparse(reduced[SENT_BYTES])
        return float(push), float(reduced[PULL_SECONDS] + self._costs.dense)

    def choose(self, level: int, before: Direction) -> Direction:
        """Return the direction of the next level, the same on all ranks."""
        if level == 0:  # ranks do not send the bit of a source with a single edge
            return "top-down"
        if self._schedule is not None:
            return self._scheduled(level).direction
        if self.selector == "alpha-beta":
            return self._by_rule(before)
        push, pull = self.seconds()
        early = _EARLY * self._reduced[EDGES] < self._reduced[UNVISITED_LEFT]
        if before == "top-down" and early:
            pull *= CAUTION
        return "top-down" if push <= pull else "bottom-up"

    def _by_rule(self, before: Direction) -> Direction:
        """Return the direction by Beamer's rule (2012), applied to the maxima over all ranks."""
        reduced = self._reduced
        if before == "bottom-up":
            stays = reduced[VERTICES] * BETA >= self._num_vertices
            return "bottom-up" if stays else "top-down"
        grows = reduced[EDGES] > self._edges_before
        rises = grows and reduced[EDGES] * ALPHA > reduced[UNVISITED_LEFT]
        return "bottom-up" if rises else "top-down"

    def _scheduled(self, level: int) -> Strategy:
        assert self._schedule is not None
        return self._schedule[min(level, len(self._schedule) - 1)]

    def begins_on_device(self) -> bool:
        if self._device is None:
            return False
        if self._schedule is not None:
            return self._scheduled(0).device_kind == "device"
        return self._slow_starts >= _SLOW_STARTS

    def learn_start(self, seconds: float, levels: int) -> None:
        """Record the time that a search spent from its start on the host until the device had it.

        `seconds` includes clearing the host's bitmaps, `levels` levels on the host, and the move.
        The start was slow if the same number of small levels on the device takes less. After
        `_SLOW_STARTS` slow starts in a row, searches start on the device.
        """
        if not self._corrects:
            return
        is_slow = seconds > _PUSHES_A_LEVEL * levels * self._floors[0]
        self._slow_starts = self._slow_starts + 1 if is_slow else 0

    def is_on_device(self, direction: Direction, state: npt.NDArray[np.float64]) -> bool:
        if self._schedule is not None:
            scheduled = self._scheduled(int(state[schema.LEVEL])).device_kind == "device"
            return scheduled and self._device is not None
        chosen = bool(self._on_device[DIRECTIONS.index(direction)])
        if chosen and self._tries and state[schema.PLACE] == schema.HOST:
            self._tries -= 1
        return chosen

    def learn(self, direction: Direction, on_device: bool, seconds: float) -> None:
        if not self._corrects:
            return
        i, floor = DIRECTIONS.index(direction), 0.0
        if on_device:
            floor = self._floors[i]
            i += DEVICE_PUSH
        expected = self.factors[i] * self._raw[i]
        weight = 1.0 if _MUCH_FASTER * seconds < floor + expected else _WEIGHT
        if on_device:
            seconds = max(seconds - floor, _LEAST_TO_LEARN)
        if min(seconds, self._raw[i]) >= _LEAST_TO_LEARN:
            self.factors[i] *= (seconds / expected) ** weight


def _weights(direction: Direction, device: DeviceInfo | None) -> npt.NDArray[np.float64]:
    """Return the learned weights by a model of this machine, else of the most similar one.

    The shape is (2, columns): the weights of SMALL levels, then of LARGE ones.
    Average speeds would count all unvisited edges in a pull, even where each vertex finds a parent
    at once.
    """
    model = model_of(device) or first_model(device, measures=False) or similar_model(device)
    candidates = available(device is not None)
    if model is None:
        return np.zeros((2, _NUM_COLUMNS))
    wanted = plain(direction, "cpu" if device is None else "device")
    policy = model_selector("learned", model, candidates).by_model
    weights: npt.NDArray[np.float64] = policy.weights[:, candidates.index(wanted)].copy()
    return weights
