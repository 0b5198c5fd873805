"""What a study measures: which graphs, how often, and roughly how long that takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph import EdgeSource
from hetero_bfs.io import read
from hetero_bfs.kronecker import KroneckerEdges, check_scale

EDGEFACTOR = 16
_SCALES = (14, 15, 16, 17, 18)
_GPU_SCALES = (16, 18, 20, 22)
_QUICK_SCALES = (12, 14)
_QUICK_KEYS, _QUICK_ROUNDS, _QUICK_ENERGY_SECONDS = 4, 2, 1.0


@dataclass(frozen=True)
class StudyOptions:
    """What to study.

    Parameters
    ----------
    scales : tuple of int
        Kronecker graphs. Without scales and files: those that suit the device.
    graphs : tuple of Path
        Graph files.
    keys, rounds : int
        Search keys of each graph, and times that each is searched by every strategy and selector.
    energy_seconds : float
        Least seconds of searches for each reading of the energy meters, where there are any.
    quick : bool
        Small graphs if none are given, fewer keys and rounds: for a first look.
    """

    scales: tuple[int, ...] = ()
    graphs: tuple[Path, ...] = ()
    directed: bool = False
    keys: int = 8
    rounds: int = 3
    energy_seconds: float = 2.0
    quick: bool = False
    device: str | None = None
    devices: str = "all"
    power_log: Path | None = None

    def settled(self, info: DeviceInfo | None) -> StudyOptions:
        """Return the options with scales that suit the device, and with what `quick` means."""
        scales = tuple(dict.fromkeys(self.scales))
        if not scales and not self.graphs:
            gpu = info is not None and info.type == "GPU"
            scales = _QUICK_SCALES if self.quick else _GPU_SCALES if gpu else _SCALES
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
class StudyGraph:
    """One graph of a study; `make` generates or reads its edges, `scale` is None for a file.

    `edges` counts its edges, of a file roughly by its size.
    """

    name: str
    family: str
    scale: int | None
    make: Callable[[], EdgeSource]
    edges: int


def graphs_of(options: StudyOptions) -> list[StudyGraph]:
    """List the graphs, none of them made yet.

    Raises
    ------
    HeteroBFSError
        A scale out of range, or a file that is not there.
    """
    graphs = [kronecker_graph(scale) for scale in sorted(options.scales)]
    for path in dict.fromkeys(options.graphs):
        if not path.is_file():
            raise HeteroBFSError(f"{path}: no such file; --graph takes graph files")
        name = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
        if any(graph.name == name for graph in graphs):
            raise HeteroBFSError(f"{path}: another graph is called {name} too; rename the file")
        graphs.append(
            StudyGraph(name, "file", None, partial(read, path, options.directed), _roughly(path))
        )
    return graphs


def kronecker_graph(scale: int) -> StudyGraph:
    """Return Graph500's graph of one scale."""
    check_scale(scale, EDGEFACTOR)
    edges = KroneckerEdges(scale, EDGEFACTOR)
    return StudyGraph(
        f"Kronecker {scale}", "kronecker", scale, edges.materialise, edges.num_input_edges
    )


def _roughly(path: Path) -> int:
    bytes_per_edge = 4 if path.suffix == ".gz" else 10
    return path.stat().st_size // bytes_per_edge
