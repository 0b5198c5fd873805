"""hetero_bfs: adaptive breadth-first search on CPUs and OpenCL devices.

    import hetero_bfs as hb
    graph = hb.kronecker(18)
    with hb.Engine(graph) as engine:
        result = engine.bfs(source=1)
    result.parent, result.level, result.traces
"""

from hetero_bfs.bfs import BFSResult
from hetero_bfs.engine import Engine, bfs
from hetero_bfs.errors import (
    DeviceError,
    GraphError,
    GraphFileError,
    HeteroBFSError,
    ModelError,
    ValidationError,
)
from hetero_bfs.graph import CSRGraph, EdgeList
from hetero_bfs.io import load
from hetero_bfs.kronecker import KroneckerEdges, RMATEdges, kronecker
from hetero_bfs.trace import LevelFeatures, LevelTrace
from hetero_bfs.validate import validate

__version__ = "0.1.0"

__all__ = [
    "BFSResult",
    "CSRGraph",
    "DeviceError",
    "EdgeList",
    "Engine",
    "GraphError",
    "GraphFileError",
    "HeteroBFSError",
    "KroneckerEdges",
    "LevelFeatures",
    "LevelTrace",
    "ModelError",
    "RMATEdges",
    "ValidationError",
    "bfs",
    "kronecker",
    "load",
    "validate",
]
