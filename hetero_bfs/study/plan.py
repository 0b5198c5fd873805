"""The plan of a study: its graphs, and how often it measures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.families import StudyGraph, families, graph_of_file, named_graph
from hetero_bfs.options import EngineOptions
from hetero_bfs.support.messages import setting

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
    families : whether to also measure regret on a graph of each other family (families.py)
    keys, rounds : search keys of each graph, and searches of every configuration from each key
    energy_seconds : least seconds of searches for each reading of the energy meters
    quick : for a first look: small graphs if none are given, fewer keys and rounds
    power_log : log of an external meter
    engine : settings of searches; the study itself sets selector, order, objective and correction
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
    engine: EngineOptions = field(default_factory=EngineOptions)

    def completed_for(self, info: DeviceInfo | None) -> StudyOptions:
        """Return the options with scales that suit the device, and with `quick` applied."""
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


def graphs_of(options: StudyOptions, info: DeviceInfo | None) -> list[Planned]:
    """List the graphs: Kronecker graphs, files, and for regret a graph of each other family.

    Raises `HeteroBFSError` if a scale is out of range, or a file is missing.
    """
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
