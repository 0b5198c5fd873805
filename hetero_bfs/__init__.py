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
    from hetero_bfs import csgraph
    from hetero_bfs.algorithms.bfs.result import BFSResult
    from hetero_bfs.algorithms.bfs.validate import validate
    from hetero_bfs.algorithms.colouring.check_colouring import check_colouring
    from hetero_bfs.algorithms.colouring.coloured import Colouring
    from hetero_bfs.algorithms.components.check_components import check_components
    from hetero_bfs.algorithms.components.component_result import Components
    from hetero_bfs.algorithms.iterations import IterationTrace
    from hetero_bfs.algorithms.msbfs.many_result import ManySearches
    from hetero_bfs.algorithms.pagerank.check_pagerank import check_pagerank
    from hetero_bfs.algorithms.pagerank.pagerank_result import PageRank
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
        ProgramError,
        ValidationError,
    )
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList
    from hetero_bfs.graph.generators.kronecker import KroneckerEdges, RMATEdges, kronecker
    from hetero_bfs.graph.io.registry import load
    from hetero_bfs.programs.monoids import (
        any_one,
        bitwise_or,
        maximum,
        minimum,
        most_frequent,
        plus,
    )
    from hetero_bfs.programs.program import Program
    from hetero_bfs.programs.program_result import ProgramResult
    from hetero_bfs.programs.run_options import RunOptions
    from hetero_bfs.runtime.engine import Engine
    from hetero_bfs.runtime.one_call import (
        bfs,
        bfs_many,
        colour,
        connected_components,
        hybrid_classes,
        pagerank,
        sssp,
    )
    from hetero_bfs.runtime.options import EngineOptions
    from hetero_bfs.selection.trace import LevelFeatures, LevelTrace
    from hetero_bfs.timeline.timeline_files import save_timeline

__version__ = "0.1.0"  # the only place; pyproject.toml reads it

__all__ = [
    "ArgumentError",
    "BFSResult",
    "CSRGraph",
    "Colouring",
    "Components",
    "DeviceError",
    "EdgeList",
    "Engine",
    "EngineClosedError",
    "EngineOptions",
    "ForkError",
    "GraphError",
    "GraphFileError",
    "HeteroBFSError",
    "IterationTrace",
    "KroneckerEdges",
    "LevelFeatures",
    "LevelTrace",
    "ManySearches",
    "ModelError",
    "PageRank",
    "Program",
    "ProgramError",
    "ProgramResult",
    "RMATEdges",
    "RunOptions",
    "ShortestPaths",
    "ValidationError",
    "WindowTrace",
    "any_one",
    "bfs",
    "bfs_many",
    "bitwise_or",
    "check_colouring",
    "check_components",
    "check_pagerank",
    "check_paths",
    "colour",
    "connected_components",
    "csgraph",
    "hybrid_classes",
    "kronecker",
    "load",
    "maximum",
    "minimum",
    "most_frequent",
    "pagerank",
    "plus",
    "save_timeline",
    "sssp",
    "validate",
]

_MODULE_OF = {
    "ArgumentError": "errors",
    "BFSResult": "algorithms.bfs.result",
    "CSRGraph": "graph.csr",
    "Components": "algorithms.components.component_result",
    "Colouring": "algorithms.colouring.coloured",
    "DeviceError": "errors",
    "EdgeList": "graph.edge_list",
    "Engine": "runtime.engine",
    "EngineClosedError": "errors",
    "EngineOptions": "runtime.options",
    "ForkError": "errors",
    "GraphError": "errors",
    "GraphFileError": "errors",
    "HeteroBFSError": "errors",
    "IterationTrace": "algorithms.iterations",
    "KroneckerEdges": "graph.generators.kronecker",
    "LevelFeatures": "selection.trace",
    "LevelTrace": "selection.trace",
    "ManySearches": "algorithms.msbfs.many_result",
    "ModelError": "errors",
    "PageRank": "algorithms.pagerank.pagerank_result",
    "Program": "programs.program",
    "ProgramError": "errors",
    "ProgramResult": "programs.program_result",
    "RMATEdges": "graph.generators.kronecker",
    "RunOptions": "programs.run_options",
    "ValidationError": "errors",
    "ShortestPaths": "algorithms.sssp.paths",
    "WindowTrace": "algorithms.sssp.paths",
    "any_one": "programs.monoids",
    "bfs": "runtime.one_call",
    "bfs_many": "runtime.one_call",
    "bitwise_or": "programs.monoids",
    "check_components": "algorithms.components.check_components",
    "check_pagerank": "algorithms.pagerank.check_pagerank",
    "pagerank": "runtime.one_call",
    "check_paths": "algorithms.sssp.check_paths",
    "connected_components": "runtime.one_call",
    "check_colouring": "algorithms.colouring.check_colouring",
    "colour": "runtime.one_call",
    "hybrid_classes": "runtime.one_call",
    "sssp": "runtime.one_call",
    "kronecker": "graph.generators.kronecker",
    "load": "graph.io.registry",
    "maximum": "programs.monoids",
    "minimum": "programs.monoids",
    "most_frequent": "programs.monoids",
    "plus": "programs.monoids",
    "save_timeline": "timeline.timeline_files",
    "validate": "algorithms.bfs.validate",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF and name != "csgraph":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.support")  # before anything loads Numba
    if name == "csgraph":
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
