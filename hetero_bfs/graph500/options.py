"""The options of a Graph500 run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.options import EngineOptions

KernelName = Literal["bfs", "sssp"]
"""The specification's kernel 2 and kernel 3."""


@dataclass(frozen=True)
class Graph500Options:
    """Options of a run; the defaults are Graph500's own. `graph` names a file instead of a scale.

    `engine` has the order of the vertices and the settings of searches; "sssp" uses only those of
    devices.
    """

    kernel: KernelName = "bfs"
    scale: int = 18
    edgefactor: int = 16
    sources: int = 64
    seed1: int = 2
    seed2: int = 3
    graph: Path | None = None
    directed: bool = False
    regenerate: bool = False
    engine: EngineOptions = field(default_factory=EngineOptions)
    validate: bool = True
    power_log: Path | None = None
    energy_seconds: float = 3.0

    @property
    def weighted(self) -> bool:
        """Whether edges need weights."""
        return self.kernel == "sssp"

    def generator(self) -> KroneckerEdges:
        """Return the generator of the graph, if no file holds it."""
        arguments = self.scale, self.edgefactor, self.seed1, self.seed2
        return KroneckerEdges(*arguments, weighted=self.weighted)
