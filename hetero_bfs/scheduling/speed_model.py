"""The speed model: seconds per strategy from the features of a level. It needs no scikit-learn.

A model is one JSON file, named <cpu>__<device>.json, readable as text:

    learned   per strategy: seconds = sum of coefficient x column, for LARGE levels (schema.py).
              Columns are counts of work, coefficients >= 0 are seconds per unit of work
    learned_small
              the same for SMALL levels, which other kernels run (cooperative.cl, expand.py)
    zhang     the model of Zhang et al. 2018 (`ZhangSpeeds`); two shipped models lack it
    start, switch, convert
              linear, too: starting a search on a device, migrating it to the other device,
              converting a bitmap to a queue
    tuning    how the device's kernels are compiled and launched (machine.py)
    programs  costs of vertex programs' iterations (`ProgramCosts`), by place and kind of message
    algorithms
              costs of whole runs of the other algorithms (`RunCosts`), by place and algorithm

model_files.py finds, reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from hetero_bfs.devices.machine import Tuning
from hetero_bfs.scheduling.schema import COLUMNS, SMALL, size_of
from hetero_bfs.scheduling.strategies import STRATEGIES, DeviceKind, Strategy, place_name
from hetero_bfs.scheduling.trace import LevelFeatures

# Seconds of a vertex program's iterations, by direction: from training, or as a first guess.
#
#     push    push_vertex x active vertices + push_edge x their edges + push_change x changes
#     pull    pull_vertex x vertices + pull_edge x edges scanned + pull_miss x misses
#
# `changes` counts vertices that messages make active. Their number per edge is predicted to be the
# same as in the previous iteration. `misses` is edges scanned x p x (1 - p), where p is the share
# of edges with an active sender: a processor mispredicts the branch most often if half of the
# senders are active.
#
# A program runs in the direction that these formulas predict to be faster. On the host it corrects
# them by the measured seconds of its iterations.

MESSAGE_KINDS = ("any_one", "unweighted", "weighted")
"""Kinds of messages, by the work of a pull. any_one: it ends with a vertex's first message.
unweighted: it reads messages that senders wrote. weighted: it computes each message from the edge's
weight."""


@dataclass(frozen=True)
class ProgramCosts:
    """Seconds of an iteration's parts (see above), of all threads together."""

    push_edge: float
    pull_vertex: float
    pull_edge: float
    pull_miss: float
    push_vertex: float
    push_change: float

    @classmethod
    def names(cls) -> list[str]:
        return [one.name for one in fields(cls)]


CostTable = Mapping[DeviceKind, Mapping[str, ProgramCosts]]
"""Costs by place and kind of message."""


def first_guess(place: DeviceKind, threads: int) -> ProgramCosts:
    if place == "cpu":
        seconds = 2.4e-9, 1.0e-9, 1.0e-9, 8.0e-9, 6.0e-9, 28.0e-9
        return ProgramCosts(*(value / threads for value in seconds))
    return ProgramCosts(1.0e-10, 2.0e-11, 5.0e-11, 0.0, 0.0, 0.0)


FORMAT = 3
TRAIN_COMMAND = "hetero-bfs train"


@dataclass(frozen=True)
class Linear:
    """Predicted seconds: a sum of columns times coefficients (seconds per unit)."""

    columns: tuple[str, ...]
    coefficients: tuple[float, ...]

    def weights(self) -> list[float]:
        given = self.to_json()
        return [given.get(name, 0.0) for name in COLUMNS]

    def seconds(self, features: LevelFeatures | GraphSize) -> float:
        numbers = features.columns
        return sum(w * numbers[name] for name, w in self.to_json().items())

    def to_json(self) -> dict[str, float]:
        return dict(zip(self.columns, self.coefficients, strict=True))


class GraphSize(NamedTuple):
    """The sizes from which the seconds of a whole run are predicted.

    `levels` are a typical search's, `vertices` the searched ones, `edges` the entries of the
    neighbour lists. `largest_degree` is 0 where it is not known.
    """

    levels: float
    vertices: float
    edges: float
    largest_degree: float = 0.0

    @property
    def columns(self) -> dict[str, float]:
        return {"constant": 1.0, **self._asdict()}


RUN_COLUMNS = ("constant", *GraphSize._fields)


@dataclass(frozen=True)
class RunCosts:
    """Seconds of an algorithm's run on a place, and of opening it there, by `RUN_COLUMNS`."""

    run: Linear
    opening: Linear


@dataclass(frozen=True)
class ZhangSpeeds:
    """The model of Zhang et al. 2018: equations 2 and 4, speeds as in section 3.2.

    Top-down takes frontier_edges / speed, bottom-up alpha x unvisited_edges / speed. There are no
    seconds for starts, migrations and conversions.

    alpha : share of the unvisited edges that bottom-up scans, the mean over levels
    edges_per_second : by strategy, the mean over levels of edges / seconds. The edges are as in
        the equations: of the frontier, or alpha x the unvisited ones.
    graphs, levels : size of the training set, which has Kronecker graphs only
    """

    alpha: float
    edges_per_second: Mapping[str, float]
    graphs: int
    levels: int

    def seconds(self, features: LevelFeatures, strategy: Strategy) -> float:
        speed = self.edges_per_second[strategy.name]
        if strategy.direction == "top-down":
            return features.frontier_edges / speed
        return self.alpha * features.unvisited_edges / speed


RunTable = Mapping[DeviceKind, Mapping[str, RunCosts]]
"""Costs by place and algorithm (`Analysis.what`)."""


@dataclass(frozen=True)
class SpeedModel:
    """A trained model of one host and device; see the head of this file."""

    name: str
    learned: Mapping[str, Linear]
    start: Mapping[str, Linear]
    switch: Mapping[str, Linear]
    convert: Mapping[str, Linear]
    about: Mapping[str, Any]
    tuning: Tuning | None = None
    learned_small: Mapping[str, Linear] | None = None
    programs: CostTable | None = None
    algorithms: RunTable | None = None
    zhang: ZhangSpeeds | None = None

    @property
    def origin(self) -> dict[str, Any]:
        """Origin for reports: name, version, commit and date of its training, None if unknown, and
        whether it is a first model (first_model.py).
        """
        machine = self.about.get("machine")
        return {
            "name": self.name,
            "version": self.about.get("version"),
            "commit": machine.get("commit") if isinstance(machine, dict) else None,
            "date": self.about.get("date"),
            "is_first": self.about.get("is_first") is True,
        }

    @property
    def origin_text(self) -> str:
        origin = self.origin
        date = "at an unknown date" if origin["date"] is None else origin["date"]
        how = "first measured" if origin["is_first"] else "trained"
        return f"{self.name}, {how} {date} with commit {origin['commit'] or 'unknown'}"

    def predictor(self, strategy: str, size: int) -> Linear:
        """Return the learned formula of a strategy at SMALL or at LARGE levels."""
        small = self.learned_small if size == SMALL else None
        return (small or {}).get(strategy, self.learned[strategy])

    def learned_seconds(self, features: LevelFeatures, strategy: Strategy) -> float:
        return self.predictor(strategy.name, size_of(features.frontier_edges)).seconds(features)

    def lacking(self, candidates: Iterable[Strategy]) -> list[str]:
        lacking = [s.name for s in candidates if s.name not in self.learned]
        kinds = [place_name(place) for place in sorted({s.place for s in candidates})]
        tables = {"start on": self.start, "convert on": self.convert}
        if len(kinds) > 1:
            tables["switch to"] = self.switch
        return lacking + [f"{w} {k}" for w, t in tables.items() for k in kinds if k not in t]

    def joined(self, other: SpeedModel, device: int) -> SpeedModel:
        """Return this model with the device of another model as number `device`, at least 2."""
        names = {s.name: s.on(device).name for s in STRATEGIES.values() if s.place}
        kinds = {place_name(1): place_name(device)}

        def both(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
            renamed = {(names | kinds)[n]: v for n, v in more.items() if n in names or n in kinds}
            return dict(table) | renamed

        small = both(self.learned_small or self.learned, other.learned_small or other.learned)
        return replace(
            self,
            name=f"{self.name} and {other.name}",
            learned=both(self.learned, other.learned),
            learned_small=small,
            zhang=_zhang_of_both(self.zhang, other.zhang, both),
            start=both(self.start, other.start),
            switch=both(self.switch, other.switch),
            convert=both(self.convert, other.convert),
        )

    def to_json(self) -> dict[str, Any]:
        found = {
            "format": FORMAT,
            "name": self.name,
            "about": dict(self.about),
            "tuning": self.tuning and self.tuning.to_json(),
            "programs": self.programs and _costs_to_json(self.programs),
            "algorithms": self.algorithms and _runs_to_json(self.algorithms),
            "learned": _to_json(self.learned),
            "learned_small": self.learned_small and _to_json(self.learned_small),
            "zhang": self.zhang and asdict(self.zhang),
            "start": _to_json(self.start, "on_"),
            "switch": _to_json(self.switch, "to_"),
            "convert": _to_json(self.convert, "on_"),
        }
        return {name: value for name, value in found.items() if value is not None}


def _zhang_of_both(
    own: ZhangSpeeds | None, other: ZhangSpeeds | None, both: Callable[..., dict[str, float]]
) -> ZhangSpeeds | None:
    """Return speeds of two models by the alpha of the first one."""
    if own is None or other is None:
        return None
    speeds = dict(other.edges_per_second)
    for name in speeds:
        if STRATEGIES[name].direction == "bottom-up":
            speeds[name] *= own.alpha / other.alpha
    return replace(own, edges_per_second=both(own.edges_per_second, speeds))


def _costs_to_json(table: CostTable) -> dict[str, Any]:
    return {
        place: {kind: asdict(costs) for kind, costs in kinds.items()}
        for place, kinds in table.items()
    }


def _runs_to_json(table: RunTable) -> dict[str, Any]:
    return {
        place: {
            name: {"run": costs.run.to_json(), "opening": costs.opening.to_json()}
            for name, costs in runs.items()
        }
        for place, runs in table.items()
    }


def _to_json(table: Mapping[Any, Linear], prefix: str = "") -> dict[str, dict[str, float]]:
    return {f"{prefix}{name}": linear.to_json() for name, linear in table.items()}
