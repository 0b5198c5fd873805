"""hetero_bfs: adaptive breadth-first search on CPUs and OpenCL devices.

>>> import hetero_bfs as hb
>>> graph = hb.kronecker(18)
>>> with hb.Engine(graph) as engine:
...     result = engine.bfs(source=1)
>>> result.parent, result.level, result.traces

The names below are imported when first used, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetero_bfs.algorithms.bfs.result import BFSResult
    from hetero_bfs.algorithms.bfs.validate import validate
    from hetero_bfs.algorithms.sssp.check_paths import check_paths
    from hetero_bfs.algorithms.sssp.paths import ShortestPaths, WindowTrace
    from hetero_bfs.errors import (
        ArgumentError,
        DeviceError,
        EngineClosedError,
        ForkError,
        GraphError,
        GraphFileError,
        HeteroBFSError,
        ModelError,
        ValidationError,
    )
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList
    from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, kronecker
    from hetero_bfs.graph.io.registry import load
    from hetero_bfs.runtime.engine import Engine
    from hetero_bfs.runtime.one_call import bfs, sssp
    from hetero_bfs.runtime.options import EngineOptions
    from hetero_bfs.selection.trace import LevelFeatures, LevelTrace

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BFSResult",
    "CSRGraph",
    "DeviceError",
    "EdgeList",
    "Engine",
    "EngineClosedError",
    "EngineOptions",
    "ForkError",
    "GraphError",
    "GraphFileError",
    "HeteroBFSError",
    "KroneckerEdges",
    "LevelFeatures",
    "LevelTrace",
    "ModelError",
    "RMATEdges",
    "ShortestPaths",
    "ValidationError",
    "WindowTrace",
    "bfs",
    "check_paths",
    "kronecker",
    "load",
    "sssp",
    "validate",
]

_MODULE_OF = {
    "ArgumentError": "errors",
    "BFSResult": "algorithms.bfs.result",
    "CSRGraph": "graph.csr",
    "DeviceError": "errors",
    "EdgeList": "graph.edge_list",
    "Engine": "runtime.engine",
    "EngineClosedError": "errors",
    "EngineOptions": "runtime.options",
    "ForkError": "errors",
    "GraphError": "errors",
    "GraphFileError": "errors",
    "HeteroBFSError": "errors",
    "KroneckerEdges": "graph.generators.kronecker",
    "LevelFeatures": "selection.trace",
    "LevelTrace": "selection.trace",
    "ModelError": "errors",
    "RMATEdges": "graph.generators.kronecker",
    "ValidationError": "errors",
    "ShortestPaths": "algorithms.sssp.paths",
    "WindowTrace": "algorithms.sssp.paths",
    "bfs": "runtime.one_call",
    "check_paths": "algorithms.sssp.check_paths",
    "sssp": "runtime.one_call",
    "kronecker": "graph.generators.kronecker",
    "load": "graph.io.registry",
    "validate": "algorithms.bfs.validate",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
