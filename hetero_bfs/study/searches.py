"""The graphs of a study, and whole searches of them: throughput, and the gain by relabelling.

A configuration is a single strategy or a selector. All are validated on every key before anything
is timed. Timings are interleaved: in each round every configuration searches from all keys
back-to-back, so that drift affects all of them equally. Each round has a new order, since a search
affects the caches and threads of the next one. A key's seconds are the median of its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.check import Validator, group_size
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import GraphError, HeteroBFSError, ModelError, ValidationError
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.families import StudyGraph, families, graph_of_file, named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph500.report import teps_statistics
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.selectors import FixedSelector, Selector
from hetero_bfs.scheduling.strategies import host_only
from hetero_bfs.support.messages import progress, setting
from hetero_bfs.training.measure import seconds_back_to_back
from hetero_bfs.training.regret import SELECTORS, sources_of

_SCALES = (14, 15, 16, 17, 18)
_GPU_SCALES = (16, 18, 20, 22)
_QUICK_SCALES = (12, 14)
_FAMILY_SCALES = {False: 15, True: 18}  # whether the device is a GPU
_QUICK_KEYS, _QUICK_ROUNDS, _QUICK_ENERGY_SECONDS = 4, 2, 1.0


@dataclass(frozen=True)
class StudyOptions:
    """Options of a study.

    scales : Kronecker graphs; by default, without files, scales that suit the device
    directed : whether to keep the direction of the files' edges
    families : whether to also measure regret on graphs of each other family (families.py)
    keys, rounds : search keys of each graph, and searches of every configuration from each key
    energy_seconds : least seconds of searches for each reading of the energy meters
    quick : for a first look: small graphs if none are given, fewer keys and rounds
    power_log : log of an external meter
    budget_seconds : a graph that would end later, by the slowest one so far, is left out; None for
        all graphs
    paper : name of one of `PAPERS`, to show its own tables instead
    regenerate : with `paper`, generate edges again for each pass even if they fit in memory
    engine : settings of searches; the study itself sets selector, order and correction
    """

    scales: tuple[int, ...] = ()
    graphs: tuple[Path, ...] = ()
    directed: bool = False
    families: bool = False
    keys: int = 8
    rounds: int = 3
    energy_seconds: float = 2.0
    quick: bool = False
    power_log: Path | None = None
    budget_seconds: float | None = None
    paper: str | None = None
    regenerate: bool = False
    engine: EngineOptions = field(default_factory=EngineOptions)

    @property
    def threads(self) -> int:
        import numba

        return self.engine.threads or numba.get_num_threads()

    def completed_for(self, info: DeviceInfo | None) -> StudyOptions:
        scales = tuple(dict.fromkeys(self.scales))
        if not scales and not self.graphs:
            scales = _QUICK_SCALES if self.quick else _GPU_SCALES if _is_gpu(info) else _SCALES
        if not self.quick:
            return replace(self, scales=scales)
        return replace(
            self,
            scales=scales,
            keys=min(self.keys, _QUICK_KEYS),
            rounds=min(self.rounds, _QUICK_ROUNDS),
            energy_seconds=min(self.energy_seconds, _QUICK_ENERGY_SECONDS),
        )


@dataclass(frozen=True)
class Planned:
    """`scale` is None except for Graph500's Kronecker graphs."""

    graph: StudyGraph
    scale: int | None
    regret_only: bool = False

    @property
    def name(self) -> str:
        return str(self.graph.name)

    def row(self) -> Row:
        return {"graph": self.name, "family": self.graph.family, "scale": self.scale}


def graphs_of(options: StudyOptions, info: DeviceInfo | None) -> list[Planned]:
    """List the graphs: Kronecker graphs, files, and for regret graphs of each other family."""
    planned = [Planned(named_graph(f"kronecker{s}"), s) for s in sorted(options.scales)]
    for path in dict.fromkeys(options.graphs):
        if not path.is_file():
            raise HeteroBFSError(f"{path}: no such file; {setting('graphs')} takes graph files")
        graph = graph_of_file(path, options.directed)
        if any(other.name == graph.name for other in planned):
            raise HeteroBFSError(f"{path}: two graphs are called {graph.name}; rename the file")
        planned.append(Planned(graph, None))
    if options.families:
        scale = _QUICK_SCALES[0] if options.quick else _FAMILY_SCALES[_is_gpu(info)]
        known = {one.name for one in planned}
        planned += [
            Planned(graph, None, regret_only=True)
            for graph in families(scale)
            if graph.name not in known
        ]
    return planned


def _is_gpu(info: DeviceInfo | None) -> bool:
    return info is not None and info.type == "GPU"


SOURCES = 2
"""Searches of each graph that are measured level by level."""

_VALIDATED_AT_ONCE = 16
_DEEPEST = 64  # levels that the validator's memory is planned for; deeper searches end a group
_MOST_SECONDS = 30.0  # for all keys, configurations and rounds of a graph

Row = dict[str, Any]


@dataclass(frozen=True)
class Configuration:
    name: str
    kind: str
    selector: Selector


@dataclass
class Subject:
    """A graph of a study: built, open on the device, its searches validated.

    `nedge` has the traversed edges of each key. `sources` are the keys whose searches are measured
    level by level; their searches reach much of the graph.
    """

    about: Planned
    edges: EdgeSource
    engine: Engine
    keys: list[int]
    sources: list[int]
    nedge: dict[int, int]
    configs: list[Configuration]

    @property
    def graph(self) -> SearchGraph:
        return self.engine.graph

    def row(self) -> Row:
        return self.about.row()


def open_subject(about: Planned, options: StudyOptions, notes: list[str]) -> Subject:
    """Make and build a graph, open it on the device, and validate every configuration."""
    edges = about.graph.make()
    graph = build_search_graph(edges)
    keys = search_keys(graph.num_vertices, graph.is_isolated, options.keys)
    if not keys:
        raise GraphError(f"{about.name} has no edge between two vertices: nothing to search")
    engine = open_engine(graph, options)
    notes += [f"{about.name}: {note}" for note in engine.notes]
    configs = configs_of(about.name, engine, notes)
    keys = affordable(about.name, engine, configs, keys, options.rounds, notes)
    sources = sources_of(engine, SOURCES)
    nedge = validate_configs(
        about.name, engine, edges, list(dict.fromkeys([*keys, *sources])), configs
    )
    return Subject(about, edges, engine, keys, sources, nedge, configs)


def open_engine(graph: SearchGraph, options: StudyOptions) -> Engine:
    """Open a graph without correction; the study sets each search's selector."""
    chosen = replace(options.engine, selector=host_only(), correction=False)
    return Engine(graph, **chosen.settings())


def configs_of(graph: str, engine: Engine, notes: list[str]) -> list[Configuration]:
    """List the single strategies and the selectors that this machine can run.

    A selector that this machine would replace by another, such as "learned" without a model, is
    left out with a note. "auto" is left out if its selector is in the list already.
    """
    configs = [Configuration(s.name, "strategy", FixedSelector(s)) for s in engine.candidates]
    known = len(engine.notes)
    for name in SELECTORS:
        try:
            engine.set_selector(name)
        except ModelError as error:
            add_note(notes, f"{name} is left out: {error}")
            continue
        made = engine.selector
        if name == "auto" and made.name != name:
            text = f"auto, the default selector, is {made.name} on"
            if not any(note.startswith(text) for note in notes):
                notes.append(f"{text} {graph} and graphs like it")
            if made.name in {config.selector.name for config in configs}:
                continue
        elif made.name != name:
            add_note(notes, f"{name} is left out: it would be {made.name} on this machine")
            continue
        configs.append(Configuration(name, "selector", made))
    for note in engine.notes[known:]:
        add_note(notes, note)
    return configs


def add_note(notes: list[str], text: str) -> None:
    if text not in notes:
        notes.append(text)


def affordable(
    name: str,
    engine: Engine,
    configs: Sequence[Configuration],
    keys: list[int],
    rounds: int,
    notes: list[str],
) -> list[int]:
    """Return the keys that all configurations can search in a bounded time, at least one.

    On a high-diameter graph a single strategy may take seconds for a search.
    """
    spent = 0.0
    for config in configs:
        engine.set_selector(config.selector)
        spent += engine.search(keys[0]).seconds
    most = max(int(_MOST_SECONDS / (rounds * spent)), 1)
    if most < len(keys):
        notes.append(
            f"{name}: {most} of {len(keys)} keys, since all configurations together take "
            f"{spent:.2g} s for a search"
        )
    return keys[:most]


def validate_configs(
    name: str,
    engine: Engine,
    edges: EdgeSource,
    keys: Sequence[int],
    configs: Sequence[Configuration],
) -> dict[int, int]:
    """Return the traversed edges of each key; raise `ValidationError` for a wrong result."""
    searches = [(config, key) for config in configs for key in keys]
    nedge: dict[int, int] = {}
    most = group_size(edges.num_vertices, min(_VALIDATED_AT_ONCE, len(searches)), _DEEPEST)
    validator = Validator(edges, most)
    group: list[tuple[Configuration, int]] = []
    for config, key in progress(searches, f"{name}: validating"):
        engine.set_selector(config.selector)
        result = engine.bfs(key)
        validator.add(key, result.parent, result.level)
        group.append((config, key))
        if validator.is_full() or (config, key) == searches[-1]:
            for (done, of), outcome in zip(group, validator.finish(), strict=True):
                if not outcome.valid:
                    raise ValidationError(f"{name}, {done.name}: {outcome.message}")
                nedge[of] = outcome.nedge
            group = []
    return nedge


def throughput(subject: Subject, rounds: int) -> list[Row]:
    """Time whole searches by every configuration; one row for each.

    `harmonic_mean_gteps` is over keys, as in Graph500; so are the quartiles.
    """
    engine, keys, configs = subject.engine, subject.keys, subject.configs
    seconds = np.empty((len(configs), rounds, len(keys)))
    rules: dict[int, str] = {}
    for turn in progress(range(rounds), f"{subject.about.name}: whole searches"):
        for number, config in _shuffled(configs, turn):
            engine.set_selector(config.selector)
            seconds[number, turn] = seconds_back_to_back(engine, keys)
            rules[number] = engine.selector.rule
    graph = {
        **subject.row(),
        "vertices": subject.graph.num_vertices,
        "input_edges": subject.graph.num_input_edges,
    }
    return [
        {
            **graph,
            "selector": config.name,
            "kind": config.kind,
            "rule": rules[number],
            **_speeds(np.median(seconds[number], axis=0), keys, subject.nedge),
            "keys": len(keys),
            "rounds": rounds,
        }
        for number, config in enumerate(configs)
    ]


def _shuffled(configs: Sequence[Configuration], turn: int) -> list[tuple[int, Configuration]]:
    order = np.random.default_rng(turn).permutation(len(configs))
    return [(int(number), configs[number]) for number in order]


def _speeds(seconds: npt.NDArray[np.float64], keys: Sequence[int], nedge: Mapping[int, int]) -> Row:
    teps = teps_statistics(seconds, [nedge[key] for key in keys])
    return {
        "median_seconds": float(np.median(seconds)),
        "harmonic_mean_gteps": teps["harmonic_mean_TEPS"] / 1e9,
        "first_quartile_gteps": teps["firstquartile_TEPS"] / 1e9,
        "third_quartile_gteps": teps["thirdquartile_TEPS"] / 1e9,
    }


def quartile_names(what: str) -> tuple[str, str]:
    return f"first_quartile_{what}", f"third_quartile_{what}"


def quartile_row(what: str, values: Sequence[float] | npt.NDArray[np.float64]) -> Row:
    ends = np.quantile(values, (0.25, 0.75)).tolist()
    return dict(zip(quartile_names(what), ends, strict=True))


def relabelling(subject: Subject, options: StudyOptions) -> list[Row]:
    """Search the graph with and without relabelling, alternately, by every configuration.

    Without relabelling vertices keep the given order, and isolated vertices stay in the searched
    range.
    """
    name, keys, configs = subject.about.name, subject.keys, subject.configs
    plain = build_search_graph(subject.edges, "given")
    seconds = np.empty((2, len(configs), options.rounds, len(keys)))
    with open_engine(plain, options) as given:
        validate_configs(f"{name} as given", given, subject.edges, keys, configs)
        engines = (subject.engine, given)
        for turn in progress(range(options.rounds), f"{name}: relabelling"):
            for number, config in _shuffled(configs, turn):
                for order in (0, 1) if turn % 2 else (1, 0):
                    engine = engines[order]
                    engine.set_selector(config.selector)
                    seconds[order, number, turn] = seconds_back_to_back(engine, keys)
    of_key = np.median(seconds, axis=2)
    with_it, without = np.median(of_key, axis=2)
    vertices, removed = subject.graph.num_vertices, plain.num_searched - subject.graph.num_searched
    return [
        {
            **subject.row(),
            "vertices": vertices,
            "removed_vertices": removed,
            "removed_share": removed / vertices,
            "order": subject.graph.relabelling.order,
            "selector": config.name,
            "kind": config.kind,
            "relabelled_seconds": with_it[number],
            "as_given_seconds": without[number],
            "speedup": without[number] / with_it[number],
            **quartile_row("speedup", of_key[1, number] / of_key[0, number]),
            "keys": len(keys),
            "rounds": options.rounds,
        }
        for number, config in enumerate(configs)
    ]
